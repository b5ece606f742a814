/*
 * The descendants of a process, from /proc. Where the root is a subreaper nobody can leave: a process whose parent ends
 * becomes the root's own child, whatever session it has joined. So killing in rounds until no child is left
 * ends all of them.
 */
#pragma once

#include <stdbool.h>
#include <stdint.h>
#include <sys/types.h>

enum { TREE_PIDS_MAX = 32768 };

/* Reads a list of pids from the kernel, separated by spaces or line breaks. Returns how many, at most `most`. */
uint32_t tree_pids_read(int fd, pid_t *ret_pids, uint32_t most);

/* Direct children of a process, including zombies. Returns how many, at most `most`. */
uint32_t tree_children(pid_t pid, pid_t *ret_pids, uint32_t most);

/* Send a signal to every descendant of root, not to root itself; signal 0 only counts. Returns how many got it; zombies do
 * not count. A round may miss a process that is born or orphaned during it: go round again. */
uint32_t tree_signal(pid_t root, int signal);

/* The same for root and its descendants; root is known by its start time. */
uint32_t tree_signal_known(pid_t root, uint64_t start, int signal);

/* Send a signal to everything whose environment began with this entry, ourselves excepted. */
uint32_t tree_signal_marked(const char *entry, int signal);

/* Processor time of the living descendants and of the children they waited for. Processes that ended unwaited for are not
 * in it. */
uint64_t tree_cpu_us(pid_t root);
