/*
 * How a run comes to have a process: the token of its claim, a directory, its grants, its environment. A run is
 * written down before anything of it exists.
 */
#include "worker/run/parts.h"

#include <assert.h>
#include <errno.h>
#include <fcntl.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "base/clock.h"
#include "base/complain.h"
#include "base/log.h"
#include "base/take.h"
#include "exec/request/ancestors.h"
#include "exec/rundir.h"
#include "exec/workdir.h"
#include "attempt/environment.h"
#include "attempt/reach.h"
#include "attempt/walls.h"

enum { OTHER_MS = 50, ROOTS_NAMED_MAX = 4 };

/* The private entries of the home are no place for work, even where a root lies above them. */
static int check_workdir(struct run *run, int fd, char reason[WORKDIR_REASON_BYTES])
{
	const struct settings *settings = run->supervisor->settings;
	struct person_home home = settings->home;
	int r = person_home_look(&home, &run->arena);

	if (r < 0)
		return complain(reason, WORKDIR_REASON_BYTES, r, "%s", strerror(-r));
	const char *why = person_home_bars(
		&home, settings->roots, settings_named_roots(settings), run_path_of(run, fd));
	return why ? complain(reason, WORKDIR_REASON_BYTES, -EACCES,
			     "work dir '%s' %s; work in another directory, or name it in \"roots\"",
			     run->working_dir, why)
		   : 0;
}

/* Which roots there are, and where to add one. */
static const char *explain_roots(struct run *run)
{
	const struct settings *settings = run->supervisor->settings;
	const char *list = "", *file = settings_file_of(settings, settings->roots_origin);

	for (uint32_t i = 0; i < settings->root_count && i < ROOTS_NAMED_MAX; i++)
		list = arena_text(&run->arena, "%s%s%s", list, i > 0 ? ", " : "", settings->roots[i]);
	if (settings->root_count == 0)
		return arena_text(&run->arena,
			"%s is not beneath a root: this worker has no \"roots\". Add it to \"roots\" in %s, restart the worker, "
			"then: stint retry %s",
			run->working_dir, file, run->task);
	const char *further = settings->root_count > ROOTS_NAMED_MAX ? ", …" : "";
	const char *how = settings->roots_origin.source == CONFIG_FILE
		? "Add it"
		: "List it in \"roots\", with the other directories that you work in,";
	return arena_text(&run->arena,
		"%s is not among this worker's \"roots\" (%s%s). %s in %s, restart the worker, then: stint retry %s",
		run->working_dir, list, further, how, file, run->task);
}

/* The directory it works in: what the task asks for, or its own empty one. False: it was refused. */
static bool open_workdir(struct run *run, int *ret_fd)
{
	const struct settings *settings = run->supervisor->settings;
	char reason[WORKDIR_REASON_BYTES];

	if (!run->working_dir && run->agent) { /* its own as long as the task lives */
		const char *path = arena_text(&run->arena, "%s/work", run->agent->memory.path);
		if (mkdir(path, 0700) == 0 || errno == EEXIST)
			*ret_fd = open(path, O_PATH | O_DIRECTORY | O_NOFOLLOW | O_CLOEXEC);
		return *ret_fd >= 0 || run_refuse(run, "WORKER_INIT_FAILED", strerror(errno));
	}
	if (!run->working_dir) {
		if (mkdirat(run->dir_fd, "work", 0700) == 0)
			*ret_fd = openat(run->dir_fd, "work", O_PATH | O_DIRECTORY | O_NOFOLLOW | O_CLOEXEC);
		return *ret_fd >= 0 || run_refuse(run, "WORKER_INIT_FAILED", strerror(errno));
	}
	int r = workdir_open(settings->roots, settings->root_count, run->working_dir, ret_fd, reason);
	if (r == 0)
		r = check_workdir(run, *ret_fd, reason);
	bool short_of = r == -EMFILE || r == -ENFILE || r == -ENOMEM;
	const char *told = r == -EXDEV && run->working_dir[0] == '/' ? explain_roots(run) : reason;
	return r == 0 || run_refuse(run, short_of ? "WORKER_INIT_FAILED" : "BAD_WORKDIR", told);
}

/* A command that somebody types runs programs where the shell would find them. */
static void grant_path(struct run *run, struct grant_list *list)
{
	const struct settings *settings = run->supervisor->settings;
	const char *home = run->supervisor->state_dir.home;

	for (uint32_t i = 0; i < settings->path_count && list->count < list->room; i++) {
		const struct settings_path *dir = &settings->path[i];
		if (!path_lies_in(home, dir->real) && !path_lies_in(dir->real, home))
			list->items[list->count++] = (struct grant){.path = dir->real,
				.inside = dir->name,
				.fd = -1,
				.access = GRANT_READ,
				.optional = true,
				.direct = true,
				.outside = true};
	}
}

/* Our own command line, for children that report by themselves. */
static const char *own_program(struct supervisor *supervisor)
{
	char *path = supervisor->program;
	const size_t room = sizeof supervisor->program;

	if (path[0]) /* looked up once */
		return path;
	ssize_t len = readlink("/proc/self/exe", path, room - sizeof "/stint");
	path[len > 0 ? len : 0] = 0;
	char *slash = strrchr(path, '/');
	if (slash)
		strcpy(slash, "/stint");
	return slash ? path : NULL;
}

static int make_grants(struct run *run, const char *run_path)
{
	struct grant_list *list = &run->grants;
	int r = grants_begin(list, &run->arena, run->executor, run_path, run->dir_fd);

	if (r < 0)
		return r;
	grants_add(list, own_program(run->supervisor), GRANT_READ, true);
	grants_add_executor(list, run->executor);
	if (run->agent) {
		grants_add(list, arena_text(&run->arena, "%s/home", run->agent->memory.path), GRANT_WRITE,
			false);
		if (!run->working_dir)
			grants_add(list, arena_text(&run->arena, "%s/work", run->agent->memory.path),
				GRANT_WRITE, false);
	}
	if (run->tree && list->count + WORKTREE_GRANTS_MAX <= list->room)
		list->count += worktree_grants(run->tree, list->items + list->count);
	if (!run->executor->argv)
		grant_path(run, list);
	return reach_grant(&run->reach, &run->arena, &run->supervisor->settings->place, run->executor,
		run->wall.level, list);
}

const char *run_path_of(struct run *run, int fd)
{
	char path[4096];
	ssize_t len = readlink(arena_text(&run->arena, "/proc/self/fd/%d", fd), path, sizeof path - 1);

	path[len > 0 ? len : 0] = 0;
	return arena_text(&run->arena, "%s", path);
}

/* Before anything of it exists, and again when more is known: the next worker finds it. */
int run_note(struct run *run)
{
	struct process_identity identity = {0};
	struct run_attempt attempt = {
		heartbeat_worker_id(run->supervisor->heartbeat).data, run->task, run->fence};

	if (run->process)
		process_identify(run->process, &identity);
	else
		process_foretell(run->supervisor->host, run->name, &identity);
	run->remembered = true;
	int r = state_dir_note_run(&run->supervisor->state_dir, &run->record, &identity, &attempt);
	if (r < 0)
		log_warn("a process cannot be written down", log_cstr("task", run->task),
			log_cstr("reason", strerror(-r)));
	return r;
}

int run_fill_spec(void *context, int workdir_fd, struct process_spec *spec)
{
	struct run *run = context;
	const struct supervisor *supervisor = run->supervisor;
	const char *run_path = arena_text(&run->arena, "%s/runs/%s", supervisor->state_dir.home, run->name);
	int64_t left_ms = run->claimed_ms + run->timeout_ms - worker_clock_ms();
	struct environment about = {
		.path = supervisor->settings->path_text,
		.token_file = run->token ? arena_text(&run->arena, "%s/token", run_path) : NULL,
		.task = run->task,
		.fence = run->fence,
		.queue = run->queue,
		.worker = heartbeat_worker_id(supervisor->heartbeat).data,
		.workspace = run->working_dir || run->agent ? run_path_of(run, workdir_fd)
							    : arena_text(&run->arena, "%s/work", run_path),
		.home = run->agent ? arena_text(&run->arena, "%s/home", run->agent->memory.path)
				   : arena_text(&run->arena, "%s/home", run_path),
		.of_agent = run->agent ? run_agent_variables(run) : NULL,
		.tmp = arena_text(&run->arena, "%s/tmp", run_path),
		.attempt = run->attempt,
		.deadline_ms = clock_wall_ms() + (left_ms > 0 ? left_ms : 0),
		.from_task = run->env,
		.traceparent = run->traceparent,
	};
	if (supervisor->options->once) {
		about.model = supervisor->options->once->model;
		about.thinking = supervisor->options->once->thinking;
		about.execution_mode = supervisor->options->once->execution_mode;
	}
	run->workspace = about.workspace;
	int r = run_name_sockets(run, run_path);
	if (r < 0)
		return r;
	if (walls_rename(&run->arena, &run->wall, &about) < 0)
		return -ENOMEM;
	r = reach_look(&run->reach, &run->arena, &supervisor->settings->place, run->executor, run->argv,
		run->wall.level);
	if (r < 0)
		return r;
	about.person = run->executor->reads_home ? &run->reach.home : NULL;
	about.cache = run->reach.cache;
	spec->wall = &run->wall;
	spec->run = run->name;
	spec->argv = run->argv;
	spec->program = run->reach.program;
	spec->env = environment_make(&run->arena, &about, run->executor);
	spec->env_allow = environment_allowed(&run->arena, run->executor);
	spec->workdir_fd = workdir_fd;
	if (run->agent && !about.of_agent)
		return -ENOMEM;
	if (run->executor->argv || run->input.len > 0) {
		spec->stdin_from = STDIN_BYTES;
		spec->input = run->input;
	}
	r = make_grants(run, run_path);
	if (r < 0 || !spec->env || !spec->env_allow)
		return r < 0 ? r : -ENOMEM;
	spec->confine.limits = run->executor->limits;
	spec->confine.grants = run->grants.items;
	spec->confine.grant_count = run->grants.count;
	spec->confine.keep_out = supervisor->state_dir.home;
	spec->confine.hidden = supervisor->settings->home.token;
	spec->events = &run_process_events;
	spec->context = run;
	return 0;
}

void run_start_in(struct run *run, int workdir_fd)
{
	assert(run->phase == RUN_CLAIMED);
	assert(!run->process);
	assert(run->remembered); /* on disk, before anything of it exists */
	assert(run->dir_fd >= 0);
	assert(workdir_fd >= 0);
	struct process_spec spec = process_spec_default();
	int r = run_fill_spec(run, workdir_fd, &spec);

	if (r == 0 && run->agent) {
		r = run_agent_fill(run, &spec);
		spec.events = &run_agent_events;
	}
	spec.lease = run_lease(run);
	if (r == 0)
		r = process_start(run->supervisor->host, &spec, &run->process);
	close_at(&run->dir_fd);
	run->dir_fd = -1;
	if (r < 0) {
		run_refuse_start(run, r);
		return;
	}
	run_move(run, RUN_STARTED);
	run->heard_ms = worker_clock_ms();
	run_note(run); /* with its shim, which a successor lets end its work */
	log_upload_begin(&run->upload, run->agent ? NULL : run->process, run->agent ? &run->words : NULL);
	if (run->first_words)
		log_upload_add_first(&run->upload, span_of(run->first_words));
	run_arm_clock(run);
	log_info("started", log_cstr("task", run->task), log_cstr("executor", run->executor->name),
		log_int("attempt", run->attempt), log_cstr("run", run->name));
	if (run->agent)
		run_agent_begin(run);
}

static void start(struct run *run)
{
	struct supervisor *supervisor = run->supervisor;
	cleanup(close_at) int workdir_fd = -1;

	int r = run_note(run);
	if (r == 0)
		r = rundir_make(supervisor->state_dir.runs_fd, run->name, &run->dir_fd);
	if (r == 0 && run->token)
		r = rundir_put_secret(run->dir_fd, "token", span_of(run->token));
	if (r == 0)
		r = run_open_sockets(run);
	if (r < 0) {
		run_refuse_start(run, r);
		return;
	}
	if (run->executor->agent && !run_agent_open(run))
		return;
	if (open_workdir(run, &workdir_fd) && !run_make_tree(run, workdir_fd))
		run_start_in(run, workdir_fd);
}

static void on_begin_again(uv_timer_t *timer)
{
	run_begin(timer->data);
}

void run_begin(struct run *run)
{
	struct supervisor *supervisor = run->supervisor;

	if (run->stop != STOP_NOT)
		run_end_unstarted(run);
	/* nothing runs twice at once: that one must be gone first; and after a stop of ours this may be somebody else's */
	else if (supervisor_has_other(supervisor, run) || run_is_past_lease(run))
		uv_timer_start(&run->clock, on_begin_again, OTHER_MS, 0);
	else if (run->executor->size > 0) /* it speaks to us alone */
		run_start_pooled(run);
	else
		start(run);
}
