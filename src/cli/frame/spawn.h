/*
 * The other programs that `stint` starts: the server and its companions of `stint up`, the worker that `stint doctor` asks,
 * and the program that `stint worker` and `stint notify` become. No other file of this room starts or signals a process.
 */
#pragma once

#include <stdbool.h>
#include <sys/types.h>

#include "base/buf.h"

/* Starts the program of argv[0], which is looked for in PATH if it has no slash. It writes to `log_fd`, or with -1 where we
 * write; it gets no Ctrl-C of the terminal and no blocked signal, and gets TERM when we die. `without` names a variable of the
 * environment that it does not get; NULL: none. The pid, or a negative errno. A program that cannot be run says so and ends
 * with status 127. */
pid_t spawn_start(const char *const *argv, const char *without, int log_fd);

/* The same for a service (base/service.h): where it tells us of itself, and the sockets of the process before it. */
struct spawn_service {
	const char *notify; /* a path */
	const int *sockets;
	size_t socket_count;
};
pid_t spawn_start_service(const char *const *argv, int log_fd, const struct spawn_service *service);

/* Goes on in a child that has no terminal: 0 there, with a descriptor for spawn_tell_ready(). In the caller the status of the
 * child that has ended, or 0 when it is ready; a negative errno if there is no child. */
int spawn_detach(bool *ret_is_child, int *ret_ready_fd);

/* The child has said all that it has to say to the caller: from now on it writes to `log_fd`. */
void spawn_tell_ready(int ready_fd, int log_fd);

/* Has the child ended? Then its status is that of waitpid(), and the pid no longer names it. */
bool spawn_has_ended(pid_t pid, int *ret_status);
int spawn_wait(pid_t pid);

void spawn_signal(pid_t pid, int number);

/* The same for a process that is not our child: a descriptor that names it even after its pid has gone to another. */
int spawn_open(pid_t pid);
int spawn_signal_open(int pid_fd, int number);

/* Ends the child and waits for that: TERM twice, so that it does not wait for anything, and KILL after `patience_ms`. */
void spawn_end(pid_t pid, int patience_ms);

/* Runs the program to its end; what it prints is appended to `said`, what it complains of is thrown away. Its status; -1: it
 * cannot be run, or a signal ended it. */
int spawn_and_read(const char *const *argv, struct buf *said);

/* The same; the person hears its complaints. */
int spawn_and_hear(const char *const *argv, struct buf *said);

/* Shows the text with $PAGER (less -FRX without one) and waits until the person leaves it. Below 0: there is no pager, or none is
 * wanted (PAGER is empty or cat), and nothing was shown. */
int spawn_pager(struct span text);

/* A notice on the person's desktop, by notify-send; nothing happens where there is none. */
void spawn_notice(const char *title, const char *text);

/* Becomes that program. Comes back only if that fails, with a negative errno. */
int spawn_become(const char *const *argv);
