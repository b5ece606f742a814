/*
 * The shim once more, as the program that holds the serial line of a machine (WALL_VM). It starts qemu, waits until
 * somebody in there says that he is ready, tells him what to run, and passes on what comes back. docs/isolation.md has
 * the few words of that line for whoever builds an image.
 *
 *	guest ──"stint ready"──▶                     what came before is noise, and goes to stderr
 *	guest ◀──"stint 1", end, env, arg, input──   all from our stdin, as machine.c wrote it
 *	guest ──anything──▶ stdout
 *	guest ──"WORD exit 0" or "WORD signal 9"──▶  and that is how we end
 */
#pragma once

/* argv: the word that ends it, then qemu and its arguments. Returns the status to exit with. */
int guest_main(char **argv);
