/*
 * Processes as the kernel shows them. A pid may be another process's tomorrow: to send a signal open a pidfd, check which
 * process it holds, and signal that. Nothing in this room calls kill().
 */
#pragma once

#include <stdbool.h>
#include <stdint.h>
#include <sys/types.h>

/* Closed at exec. -ESRCH, -EMFILE, ... */
int pidfd_open_of(pid_t pid);

/* -ESRCH: the process has ended and was waited for. */
int pidfd_signal(int pidfd, int signal);

/* Has the process ended, waited for or not? */
bool pidfd_is_over(int pidfd);

/* Reads the start of a /proc file as text, in `dir` or AT_FDCWD; returns its length, or a negative errno with the text empty;
 * -ESRCH: no such process. */
ssize_t proc_text_read(int dir, const char *name, char *text, size_t room);

struct proc_stat {
	pid_t parent;
	char state;         /* Z: ended, not yet waited for */
	uint64_t cpu_ticks; /* its own, and of children it has waited for */
	uint64_t start;     /* ticks since boot: with the pid it is an identity within one boot */
};

/* -ESRCH: no such process. */
int proc_stat_read(pid_t pid, struct proc_stat *ret_stat);

/* The process with that pid and start time, or -ESRCH: it has ended, or the number is another's by now. */
int pidfd_open_known(pid_t pid, uint64_t start);

/* What this process has inherited, as bits: signal n is bit n - 1. Where /proc does not show them all bits are set: then
 * each one is tried. */
struct proc_self {
	uint64_t ignored;                /* signals */
	uint64_t bounding, capabilities; /* capabilities that an exec can bring; capabilities in effect */
	uint64_t ambient;                /* capabilities that an exec leaves to a program of another user */
};

void proc_self_read(struct proc_self *ret_self);

/* No signal is ignored any more. */
void proc_heed_signals(const struct proc_self *self);

/* Take these out of the bounding set, for this process and all that it starts. A process without the privilege to do so
 * can gain no capability by an exec: then nothing is done. */
int proc_drop_bounding(const struct proc_self *self, uint64_t capabilities);

/* The boot we are in: 36 characters and NUL into room for at least 37. */
int boot_id_read(char *boot, size_t room);

/* Does the environment that a process was started with have this entry (NAME=value)? False also for processes of other
 * users, whose environment cannot be read. */
bool proc_has_env(pid_t pid, const char *entry);

int64_t monotonic_ms(void);
