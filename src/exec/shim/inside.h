/*
 * The shim once more, as the first process inside of a wall: what bubblewrap or a container runtime was told to start.
 *
 * Nothing that a task could have prepared has run in there yet, so this is the place for what must be sure before:
 * that each path leads to what was meant when it was opened outside, and not to what somebody put there since. Then the
 * program is started as at level process: limits, no_new_privs, Landlock and seccomp hold inside of a wall too.
 *
 *	request ──binds are as meant──▶ fork ──exec──▶ STATUS_STARTED ──the program ended──▶ STATUS_ENDED ──nobody left──▶ exit
 *	                └──────────────────└──────▶ STATUS_FAULT
 *
 * It stays as the first process of its namespace: it takes in orphans, no signal from inside kills it, and it reports
 * exactly how the program ended, which neither bubblewrap nor the runtimes do.
 */
#pragma once

/* Uses the descriptors INSIDE_*_FD. Returns the status to exit with. */
int inside_main(void);
