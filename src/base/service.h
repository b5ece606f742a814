/*
 * What a service and the one that manages it (systemd, stint up) tell each other: READY=1, STOPPING=1, WATCHDOG=1, see
 * sd_notify(3); and the sockets that one process leaves to the next, see sd_pid_notify_with_fds(3) and sd_listen_fds(3). While no
 * process serves, the address still belongs to the service, and no other program can take it.
 */
#pragma once

#include <stdbool.h>
#include <stddef.h>

enum {
	SERVICE_SOCKETS_MAX = 4,
};

struct service_socket {
	int fd;
	bool is_kept; /* by service_keep() of an earlier process; otherwise it was opened for us, by a socket unit */
};

/* Tell it, if one is waiting to hear. Nobody learns whether it did. */
void service_tell(const char *text);

/* Ask it to keep this socket, and to give it to the process that comes after us. */
void service_keep(int fd);
void service_keep_none(void); /* it lets go of all of them */

/* The sockets that it gives to us; their count. They are closed at an exec, and our children are told of none. */
size_t service_sockets(struct service_socket *ret, size_t max);

/* The manager's side. In a child that is about to become the service: give it these. */
void service_hand_on(const int *fds, size_t count);

/* The next message on a datagram socket with SO_PASSCRED: a socket to keep, or -ENOMSG if the message has none or is not of this
 * sender; -EAGAIN: there is no message. */
int service_hear(int from, long sender);
