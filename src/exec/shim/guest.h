/*
 * The shim once more, as the program at the serial line of a machine (WALL_VM). It starts qemu, waits until the guest says
 * that it is ready, tells it what to run, and passes on what comes back. docs/isolation.md describes these messages for the
 * builders of images.
 *
 *	guest ──"stint ready"──▶                     what came before is noise, and goes to stderr
 *	guest ◀──"stint 1", end, env, arg, input──   all from our stdin, as machine.c wrote it
 *	guest ──anything──▶ stdout
 *	guest ──"TOKEN exit 0" or "TOKEN signal 9"──▶  the end line: this program ends in the same way
 */
#pragma once

/* argv: the token of the end line, then qemu and its arguments. Returns the status to exit with. */
int guest_main(char **argv);
