/*
 * The process in a member: how it is started, what it may use, and what is removed after it.
 */
#include "pool/member.h"

#include <assert.h>
#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "base/log.h"
#include "base/take.h"
#include "exec/tree/proc.h"
#include "exec/rundir.h"
#include "attempt/environment.h"
#include "attempt/reach.h"

enum { SPAWN_ARENA_BYTES = 1 << 20 };

int pool_member_note(struct pool_member *member)
{
	const struct pools_site *site = &member->pools->site;
	struct process_identity identity = {0};

	if (member->process)
		process_identify(member->process, &identity);
	else
		process_foretell(site->host, member->run, &identity);
	int r = site->owner->note_run(site->context, &identity);
	if (r < 0)
		log_warn("a process cannot be written down", log_cstr("poolWorker", member->name),
			log_cstr("reason", strerror(-r)));
	return r;
}

/* False: there is more to remove. */
static bool forget_leftover(struct pool_member *member)
{
	const struct pools_site *site = &member->pools->site;

	if (site->owner->forget_run(site->context, member->leftover) == -EAGAIN)
		return false;
	member->leftover[0] = 0;
	return true;
}

static void on_clear_again(uv_timer_t *timer)
{
	struct pool_member *member = timer->data;

	if (forget_leftover(member))
		pools_tell_changed(member->pools);
	else
		uv_timer_start(timer, on_clear_again, 1, 0);
}

void pool_member_clear_up(struct pool_member *member)
{
	child_socket_close(member->proxy);
	member->proxy = NULL;
	while (member->leftover[0] && !forget_leftover(member))
		; /* only in a pass, which begins its next task at once: others wait until it is gone */
	snprintf(member->leftover, sizeof member->leftover, "%s", member->run);
	if (!forget_leftover(member))
		uv_timer_start(&member->clear_timer, on_clear_again, 1, 0);
}

void pool_member_bar(struct pool_member *member, const char *code, const char *why)
{
	snprintf(member->barred, sizeof member->barred, "%s", why);
	member->barred_code = code;
	pool_member_note_trouble(member, why);
	log_error("a worker of a pool cannot be started as its executor says",
		log_cstr("poolWorker", member->name), log_cstr("code", code), log_cstr("reason", why));
}

/* Its process could not be started. What its executor asks for will not change by itself; what this machine is short of will. */
static void hear_fault(struct pool_member *member, int fault, bool of_workdir)
{
	const struct executor *executor = member->executor;
	bool path = fault == -ENOENT || fault == -EACCES || fault == -ENOTDIR || fault == -ELOOP;
	char why[WALLS_COMPLAINT_BYTES];
	const char *code = start_refused(fault, executor->working_dir != NULL, executor->wall.level, why);

	if (path && of_workdir && executor->working_dir) {
		code = "BAD_WORKDIR";
		snprintf(why, sizeof why, "the workingDir of its executor, \"%.300s\", cannot be opened: %s",
			executor->working_dir, strerror(-fault));
	}
	if (!failure_is_of_host(code)) {
		pool_member_bar(member, code, why);
		return;
	}
	pool_member_note_trouble(member, strerror(-fault));
	log_error("a worker of a pool cannot be started", log_cstr("poolWorker", member->name),
		log_cstr("reason", strerror(-fault)));
}

static int open_workdir(const struct pool_member *member, int run_fd, int *ret_fd)
{
	const char *dir = member->executor->working_dir;

	if (!dir && mkdirat(run_fd, "work", 0700) < 0)
		return -errno;
	*ret_fd = openat(run_fd, dir ? dir : "work", O_PATH | O_DIRECTORY | O_CLOEXEC);
	return *ret_fd < 0 ? -errno : 0;
}

static void on_barred(void *context, const char *host, uint16_t port, const char *address)
{
	const struct pool_member *member = context;

	log_warn("a worker of a pool was refused a host: add it to \"network\" of its executor",
		log_cstr("poolWorker", member->name), log_cstr("executor", member->executor->name),
		log_cstr("host", host), log_int("port", port), log_cstr("address", address));
}

static int open_proxy(struct pool_member *member, int run_fd)
{
	const struct pools_site *site = &member->pools->site;
	struct child_socket_options options = {
		.loop = site->loop,
		.share = site->accepts,
		.run_fd = run_fd,
		.hosts = member->executor->hosts,
		.barred = on_barred,
		.context = member,
	};

	return options.hosts ? child_socket_open(&options, &member->proxy) : 0;
}

static int start_process(struct pool_member *member, int run_fd, int workdir_fd, struct arena *arena)
{
	const struct pools_site *site = &member->pools->site;
	const struct executor *executor = member->executor;
	struct process_spec spec = process_spec_default();
	const char *run_path = arena_text(arena, "%s/runs/%s", site->home, member->run);
	struct grant_list grants;
	struct reach reach;
	struct environment about = {
		.path = site->place->path,
		.worker = site->worker_id,
		.pool_child = member->name,
		.workspace = executor->working_dir ? executor->working_dir
						   : arena_text(arena, "%s/work", run_path),
		.home = arena_text(arena, "%s/home", run_path),
		.tmp = arena_text(arena, "%s/tmp", run_path),
	};
	struct wall wall = executor->wall;
	int r = open_proxy(member, run_fd);
	if (r < 0)
		return r;
	walls_settle(&wall, run_path, NULL,
		member->proxy ? arena_text(arena, "%s/" PROXY_SOCKET_NAME, run_path) : NULL);
	if (walls_rename(arena, &wall, &about) < 0)
		return -ENOMEM;
	r = reach_look(&reach, arena, site->place, executor, executor->argv, wall.level);
	if (r < 0)
		return r;
	about.person = executor->reads_home ? &reach.home : NULL;
	about.cache = reach.cache;
	spec.wall = &wall;
	spec.run = member->run;
	spec.argv = executor->argv;
	spec.program = reach.program;
	spec.env = environment_make(arena, &about, executor);
	spec.env_allow = environment_allowed(arena, executor);
	spec.workdir_fd = workdir_fd;
	spec.stdin_from = STDIN_PIPE;
	spec.overflow[STREAM_OUT] = OVERFLOW_HOLDS;
	spec.confine.limits = executor->limits;
	spec.budget_later = true; /* what it needs to begin with is nobody's */
	spec.confine.keep_out = site->home;
	spec.confine.hidden = site->place->home->token;
	spec.confine.workdir_read_only = executor->working_dir != NULL;
	spec.events = &pool_member_events;
	spec.context = member;
	r = grants_begin(&grants, arena, executor, run_path, run_fd);
	if (r < 0 || !spec.env || !spec.env_allow)
		return r < 0 ? r : -ENOMEM;
	grants_add_executor(&grants, executor);
	r = reach_grant(&reach, arena, site->place, executor, wall.level, &grants);
	if (r < 0)
		return r;
	spec.confine.grants = grants.items;
	spec.confine.grant_count = grants.count;
	return process_start(site->host, &spec, &member->process);
}

void pool_member_spawn(struct pool_member *member)
{
	const struct pools_site *site = &member->pools->site;
	char complaint[WALLS_COMPLAINT_BYTES];
	cleanup(close_at) int run_fd = -1, workdir_fd = -1;
	struct arena arena;
	struct wall wall;

	assert(!member->process);
	assert(!member->job);
	if (walls_choose(member->executor, NULL, site->home, &wall, complaint) < 0) {
		pool_member_bar(member, "ISOLATION_UNAVAILABLE", complaint);
		pool_member_perform(member, pool_child_unspawned(&member->worker, pool_clock_ms()), NULL);
		return;
	}
	site->owner->name_run(site->context, member->run);
	frame_reader_done(&member->frames);
	frame_reader_init(&member->frames);
	buf_clear(&member->modules);
	member->module_count = 0;
	member->last_task[0] = member->dropped[0] = member->quote[0] = 0;
	member->words_from = 0;
	arena_init(&arena, SPAWN_ARENA_BYTES);
	int r = pool_member_note(member);
	if (r == 0)
		r = rundir_make(site->runs_fd, member->run, &run_fd);
	if (r == 0)
		r = open_workdir(member, run_fd, &workdir_fd);
	if (r == 0)
		r = start_process(member, run_fd, workdir_fd, &arena);
	arena_done(&arena);
	if (r < 0) {
		hear_fault(member, r, run_fd >= 0 && workdir_fd < 0);
		pool_member_clear_up(member);
		pool_member_perform(member, pool_child_unspawned(&member->worker, pool_clock_ms()), NULL);
		return;
	}
	pool_member_note(member);
}
