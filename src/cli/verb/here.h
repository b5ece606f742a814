/*
 * What runs in a state directory of this computer: the server that listens on its socket, the `stint up` that started it, and
 * the tasks that its worker has.
 *
 * `stint up` holds a lock on up.lock for as long as it runs; the kernel knows who holds it, so that no file has to name a
 * process that may be gone.
 */
#pragma once

#include <sys/types.h>

#include "cli/frame/cli.h"

/* The state directory that is meant, as an absolute path. 0, or the ending. */
int here_home(struct cli *cli, char *ret_home, size_t room);

/* The path as a person writes it: ~ for the home of the user. */
const char *here_short(struct cli *cli, const char *path);

/* Does a server answer on the socket of this home? */
bool here_answers(const char *home);

/* The pid that listens on the socket of this home; 0: no process does. */
pid_t here_listener(const char *home);

bool here_url(const char *home, char *ret_url, size_t room);

/* Take the lock of `stint up`. The descriptor that holds it, or a negative errno. */
int here_lock(const char *home);

/* The pid of the `stint up` that holds the lock; 0: none does. */
pid_t here_locker(const char *home);

/* Requests of this run go to the server of this home, as its admin. False: there is none. */
bool here_find_server(struct cli *cli, const char *home);

/* The tasks that the worker under this `stint up` has: how many, and the first of them by name, "t-4 (make test) and 2 more". */
struct here_work {
	size_t count;
	const char *names;
};
struct here_work here_work(struct cli *cli, pid_t up);

/* "3 tasks wait": for a worker, for their time or for each other. `more` of them are not in a queue yet. NULL: none
 * does, or the server does not say. */
const char *here_waiting(struct cli *cli, size_t more);
