/*
 * By qemu. The machine is a program like any other: it runs at level process, with nothing granted but its files and
 * /dev/kvm, so that an escape from the machine ends where every other program runs. What goes in and what comes out
 * goes over one serial line (guest.h): no directory is shared, no socket reaches in.
 *
 * Rejected: a share for the work dir. It would be a file server of ours, spoken to by a hostile kernel.
 */
#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <string.h>
#include <sys/random.h>
#include <unistd.h>

#include "base/take.h"
#include "exec/env.h"
#include "exec/wall/plan.h"

enum {
	MEMORY_DEFAULT_MIB = 512,
	MACHINE_MIB = 192, /* of qemu itself, at the most */
	HEADER_BYTES_MAX = 2 << 20,
};

/* ---- the header before the input ------------------------------------------------------------------------------------- */

/* Each is a line of its own: a text with a line break cannot be sent. */
static int put_line(struct buf *buf, const char *kind, const char *text)
{
	return strchr(text, '\n') ? -EILSEQ : buf_printf(buf, "%s %s\n", kind, text);
}

static int put_header(struct buf *buf, const struct process_spec *spec, const char *token)
{
	const char *env[PROCESS_ENV_MAX + 1];
	int fault = env_build(spec, PROCESS_MARKER "=", env, sizeof env / sizeof *env);

	if (!fault)
		fault = buf_printf(buf, "stint 1\nend %s\n", token);
	for (size_t i = 1; !fault && env[i]; i++)
		fault = put_line(buf, "env", env[i]);
	for (size_t i = 0; !fault && spec->argv[i]; i++)
		fault = put_line(buf, "arg", spec->argv[i]);
	return fault ? fault : buf_printf(buf, "input %zu\n", spec->input.len);
}

/* ---- the command ---------------------------------------------------------------------------------------------------- */

/* In an option of qemu a comma is written twice. */
static const char *escaped(struct wall_plan *plan, const char *path)
{
	char text[4096];
	size_t len = 0;

	for (; *path && len + 2 < sizeof text; path++) {
		text[len++] = *path;
		if (*path == ',')
			text[len++] = ',';
	}
	text[len] = 0;
	plan->short_of |= *path != 0;
	return plan_text(plan, "%s", text);
}

static const char *format_of(const char *image)
{
	cleanup(close_at) int fd = open(image, O_RDONLY | O_CLOEXEC);
	char magic[4] = "";

	return fd >= 0 && read(fd, magic, sizeof magic) == sizeof magic && memcmp(magic, "QFI\xfb", 4) == 0
		? "qcow2"
		: "raw";
}

static uint64_t memory_mib(const struct limits *limits)
{
	return limits->memory_bytes == LIMIT_UNCHANGED ? MEMORY_DEFAULT_MIB : limits->memory_bytes >> 20;
}

static void put_command(struct wall_plan *plan, const struct process_spec *spec, const char *qemu)
{
	static const char *const machine[] = {"-nodefaults", "-no-user-config", "-display", "none",
		"-no-reboot", "-cpu", "max", "-sandbox", "on,obsolete=deny,elevateprivileges=deny,spawn=deny",
		"-chardev", "stdio,id=line,signal=off", "-serial", "chardev:line", "-add-fd",
		"fd=3,set=1" /* GUEST_SAID_FD */, "-chardev", "file,id=said,path=/dev/fdset/1,append=on",
		"-serial", "chardev:said", NULL};
	const struct wall *wall = spec->wall;

	plan_word(plan, qemu);
	plan_words(plan, machine);
	plan_words(plan,
		(const char *const[]){"-machine", wall->emulate ? GUEST_TCG : GUEST_KVM, "-m",
			plan_text(plan, "%llu", (unsigned long long)memory_mib(&spec->confine.limits)),
			"-nic", wall->network ? "user,model=virtio-net-pci" : "none", "-kernel", wall->kernel,
			"-append",
			wall->image ? "console=ttyS1 quiet panic=-1 root=/dev/vda rw"
				    : "console=ttyS1 quiet panic=-1",
			NULL});
	if (wall->initrd)
		plan_words(plan, (const char *const[]){"-initrd", wall->initrd, NULL});
	if (wall->image) /* what the guest writes is gone with it */
		plan_words(plan,
			(const char *const[]){"-drive",
				plan_text(plan, "file=%s,format=%s,if=virtio,snapshot=on",
					escaped(plan, wall->image), format_of(wall->image)),
				NULL});
}

static int new_end_token(struct wall_plan *plan, const char **ret_token)
{
	uint64_t number[2];

	if (getrandom(number, sizeof number, 0) != sizeof number)
		return -errno;
	*ret_token = plan_text(
		plan, "stint-%016llx%016llx", (unsigned long long)number[0], (unsigned long long)number[1]);
	return 0;
}

/* ---- the spec ------------------------------------------------------------------------------------------------------- */

static void grant_machine(struct wall_plan *plan, const char *shim, const struct process_spec *spec)
{
	const char *const paths[] = {shim, spec->wall->kernel, spec->wall->initrd, spec->wall->image};

	for (size_t i = 0; i < sizeof paths / sizeof *paths; i++)
		if (paths[i]) {
			plan_grant(plan, paths[i], GRANT_READ);
			plan->grants[plan->grant_count - 1].direct = i > 0; /* the executor's */
		}
	if (!spec->wall->emulate)
		plan_grant(plan, KVM_PATH, GRANT_DEVICE);
	if (spec->wall->run_path) /* what the guest writes to its disk, until it ends */
		plan_grant(plan, plan_text(plan, "%s/tmp", spec->wall->run_path), GRANT_WRITE);
}

int machine_plan(struct wall_plan *plan, const char *shim, const struct process_spec *given)
{
	const char *qemu = wall_program(&plan->arena, WALL_QEMU), *token = NULL;
	struct process_spec *spec = &plan->spec;
	int fault = new_end_token(plan, &token);

	if (!qemu || !given->wall->kernel)
		return -ENOENT;
	if (memory_mib(&given->confine.limits) < WALL_MACHINE_MIB_LEAST)
		return -EOPNOTSUPP;
	if (given->stdin_from ==
		STDIN_PIPE) /* a serial line has no end of file, and a reader would wait for it */
		return -EOPNOTSUPP;
	buf_init(&plan->input, HEADER_BYTES_MAX + PROCESS_INPUT_BYTES_MAX);
	if (!fault)
		fault = put_header(&plan->input, given, token);
	if (!fault && given->stdin_from == STDIN_BYTES)
		fault = buf_put_span(&plan->input, given->input);
	if (fault)
		return fault;
	plan_words(plan, (const char *const[]){shim, SHIM_GUEST, token, NULL});
	put_command(plan, given, qemu);
	grant_machine(plan, shim, given);
	*spec = *given;
	plan->env[0] = "PATH=/usr/local/bin:/usr/bin:/bin";
	plan->env[1] = given->wall->run_path ? plan_text(plan, "TMPDIR=%s/tmp", given->wall->run_path) : NULL;
	spec->argv = plan->argv;
	spec->env = plan->env;
	spec->env_allow = NULL;
	spec->stdin_from = STDIN_BYTES;
	spec->input = buf_span(&plan->input);
	spec->confine.grants = plan->grants;
	spec->confine.grant_count = plan->grant_count;
	if (spec->confine.limits.memory_bytes !=
		LIMIT_UNCHANGED) /* the guest's memory plus qemu's own overhead */
		spec->confine.limits.memory_bytes = (memory_mib(&given->confine.limits) + MACHINE_MIB) << 20;
	spec->wall = NULL;
	return 0;
}
