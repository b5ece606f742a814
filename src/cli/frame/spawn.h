/*
 * The other programs that `stint` starts: the server and its companions of `stint up`, the worker that `stint doctor` asks,
 * and the program that `stint worker` and `stint notify` become. No other file of this room starts or signals a process.
 */
#pragma once

#include <stdbool.h>
#include <sys/types.h>

#include "base/buf.h"

/* Starts the program of argv[0], which is looked for in PATH if it has no slash. It writes where we write, gets no Ctrl-C of
 * the terminal and no blocked signal, and gets TERM when we die. `without` names a variable of the environment that it
 * does not get; NULL: none. The pid, or a negative errno. A program that cannot be run says so and ends with status 127. */
pid_t spawn_start(const char *const *argv, const char *without);

/* Has the child ended? Then its status is that of waitpid(), and the pid no longer names it. */
bool spawn_has_ended(pid_t pid, int *ret_status);
int spawn_wait(pid_t pid);

void spawn_signal(pid_t pid, int number);

/* Ends the child and waits for that: TERM twice, so that it does not wait for anything, and KILL after `patience_ms`. */
void spawn_end(pid_t pid, int patience_ms);

/* Runs the program to its end; what it prints is appended to `said`, what it complains of is thrown away. Its status; -1: it
 * cannot be run, or a signal ended it. */
int spawn_and_read(const char *const *argv, struct buf *said);

/* Becomes that program. Comes back only if that fails, with a negative errno. */
int spawn_become(const char *const *argv);
