/* The system calls that no child gets, as a program for seccomp. */
#pragma once

#include "base/buf.h"

/* Append the program: an array of struct sock_filter. -EOPNOTSUPP if this machine has no seccomp filters. */
int syscalls_filter(struct buf *buf);
