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

enum {
	GUEST_SAID_FD = 3
}; /* qemu finds our stderr there: it takes none of the first three for a serial line */

/* Of the arguments of qemu: the first becomes the second where KVM does not work. */
#define GUEST_KVM "accel=kvm"
#define GUEST_TCG "accel=tcg"
#define KVM_PATH  "/dev/kvm"

/* argv: the word that ends it, then qemu and its arguments. Returns the status to exit with. */
int guest_main(char **argv);
