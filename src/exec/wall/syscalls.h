/* The system calls that no child gets, as a program for seccomp. */
#pragma once

#include "base/buf.h"

/* Append the program: an array of struct sock_filter. `offline`: also refuse the sockets that reach out of a network
 * namespace. -EOPNOTSUPP if this machine has no seccomp filters. */
int syscalls_filter(bool offline, struct buf *buf);
