#include "worker/run.h"

#include <assert.h>
#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <time.h>
#include <unistd.h>

#include "base/log.h"
#include "base/take.h"
#include "exec/proc.h"
#include "exec/rundir.h"
#include "exec/workdir.h"
#include "worker/beat_text.h"
#include "worker/environment.h"
#include "worker/pool.h"
#include "worker/scribe.h"
#include "worker/walls.h"
#include "worker/worktree.h"

CLEANUP_AT(yyjson_doc, yyjson_doc_free);

enum {
	ARENA_BYTES_MAX = 8 << 20,
	TASK_BYTES_MAX = 4 << 20,
	BODY_BYTES_MAX = 1 << 20,
	RESULT_BYTES_MAX = 256 << 10, /* of a last line */
	WORDS_BYTES_MAX = 4 << 10,    /* of what it said last */
	GRANTS_OWN_MAX = 6,
	CALL_MS = 10 * 1000,
	AWAY_MS = 15 * 1000,
	OTHER_MS = 50,
	NOTE_MS = 1000, /* between two notes of progress */
	NOTE_BYTES_MAX = 32 << 10,
	WORDS_KEPT_BYTES_MAX = 1 << 20,
	FINAL_MS = 10 * 1000,    /* after the final word */
	LOOK_MS = 5 * 1000,      /* while it asks: is there an answer? */
	TIMEOUT_SLACK_MS = 2000, /* the server's clock of the same limit started a little earlier */
};

enum run_phase {
	RUN_CLAIMED, /* a token for its claim is asked for */
	RUN_STARTED, /* the process, or what is left of it */
	RUN_ENDED,   /* it is gone; the log is brought to its end */
	RUN_TOLD,    /* the report is on its way */
	RUN_OVER,
};

struct run {
	struct supervisor *supervisor;
	enum run_phase phase;
	char name[PROCESS_RUN_BYTES_MAX + 1];
	uint64_t number;
	struct arena arena; /* all texts below */
	const char *task, *fence, *queue, *working_dir, *module;
	const char *const *argv;
	const struct executor *executor;
	struct wall wall;
	struct span input, log_target;
	uint32_t attempt;
	int64_t timeout_ms, granted_ms; /* how long it may run; and by the server's word alone */
	bool timeout_is_budget;         /* of the executor, which is shorter than the others */
	int64_t waited_ms;              /* so long it has waited for answers: that is not its own time */
	int64_t claimed_ms, heard_ms;   /* on the clock of leases: the last sign of life */
	bool spoke, reported;
	bool asks; /* when it was last looked at */
	bool remembered; /* its record is there still: the disk did not take the report, or there is more to remove */
	struct process_end end; /* once it is gone */
	enum stop_reason stop;
	int64_t limit_ms;
	int64_t final_ms; /* when it must be gone, after its last word; 0: it has not said it */
	uint32_t failures;
	struct line *line;
	struct line *looks; /* NULL: it was never looked at */
	bool has_token, tree_unwanted;
	struct worktree *tree;              /* of its own; NULL: none */
	const char *refused_code, *refused; /* to be told when its work tree is gone */
	const char *tree_rest;              /* what of the work dir the task named beneath the top of it */
	struct process *process;
	struct scribe scribe;
	uv_timer_t clock;
	int open_handles;
	/* of one that a pool works off */
	struct pool_job job;
	struct output words; /* what its worker wrote on standard error for it */
	struct line *notes;  /* its progress; NULL until there is some */
	uv_timer_t note_timer;
	struct buf note; /* the body of the newest, on its way or not yet */
	bool note_waits;
};

static const struct process_events events;
static void start_pooled(struct run *run);

/* ---- reading a claim -------------------------------------------------------------------------------------- */

static const char *keep(struct run *run, yyjson_val *object, const char *key)
{
	yyjson_val *value = yyjson_obj_get(object, key);
	struct span kept;

	if (!yyjson_is_str(value) || strlen(yyjson_get_str(value)) != yyjson_get_len(value) ||
		arena_copy(&run->arena, span_of(yyjson_get_str(value)), &kept) < 0)
		return NULL;
	return kept.data;
}

/* The task as its child reads it, with what its last attempt left. */
static int keep_input(struct run *run, yyjson_val *task, yyjson_val *checkpoint)
{
	cleanup(buf_done) struct buf text = {0};

	buf_init(&text, TASK_BYTES_MAX);
	int r = json_put_value(&text, task);
	if (r == 0 && checkpoint && !yyjson_is_null(checkpoint) && !yyjson_obj_get(task, "checkpoint")) {
		text.len--; /* the brace comes after it */
		r = buf_printf(&text, ",\"checkpoint\":");
		if (r == 0)
			r = json_put_value(&text, checkpoint);
		if (r == 0)
			r = buf_put_byte(&text, '}');
	}
	if (r == 0)
		r = buf_put_byte(&text, '\n');
	return r < 0 ? r : arena_copy(&run->arena, buf_span(&text), &run->input);
}

static int keep_target(struct run *run)
{
	cleanup(buf_done) struct buf text = {0};

	buf_init(&text, 1024);
	int r = http_put_path(&text, "/api/tasks/", span_of(run->task), "/log");
	return r < 0 ? r : arena_copy(&run->arena, buf_span(&text), &run->log_target);
}

/* {"argv":["make","test"]} */
static const char *const *payload_argv(struct run *run, yyjson_val *payload)
{
	yyjson_val *list = yyjson_obj_get(payload, "argv"), *item;
	size_t index, count = yyjson_arr_size(list);
	const char **argv =
		count > 0 && count <= ARGV_MAX ? arena_alloc(&run->arena, (count + 1) * sizeof *argv) : NULL;
	struct span kept;

	if (!argv)
		return NULL;
	yyjson_arr_foreach(list, index, count, item)
	{
		const char *text = yyjson_get_str(item);
		if (!text || strlen(text) != yyjson_get_len(item) || (index == 0 && !text[0]) ||
			arena_copy(&run->arena, span_of(text), &kept) < 0)
			return NULL;
		argv[index] = kept.data;
	}
	return argv;
}

static int read_claim(struct run *run, yyjson_val *claim)
{
	yyjson_val *task = yyjson_obj_get(claim, "task");

	run->task = keep(run, task, "id");
	run->queue = keep(run, task, "queue");
	run->fence = keep(run, claim, "fence");
	run->working_dir = keep(run, task, "workingDir");
	run->module = keep(run, task, "module");
	run->attempt = (uint32_t)yyjson_get_uint(yyjson_obj_get(claim, "attempt"));
	run->timeout_ms = run->granted_ms = yyjson_get_sint(yyjson_obj_get(task, "timeoutMs"));
	run->tree_unwanted = yyjson_is_false(yyjson_obj_get(yyjson_obj_get(task, "payload"), "worktree"));
	if (!run->task || !run->fence || !run->queue || run->timeout_ms <= 0)
		return -EPROTO;
	int r = keep_input(run, task, yyjson_obj_get(claim, "checkpoint"));
	return r < 0 ? r : keep_target(run);
}

/* ---- reporting ---------------------------------------------------------------------------------------------- */

/* What the work itself may have said: nothing if none of it ran, or if it says how it ended on the wire of its pool. */
static enum yields_to run_yields_to(const struct run *run)
{
	if (run->phase != RUN_ENDED || run_is_pooled(run))
		return YIELDS_TO_NOTHING;
	return verdict_yields_to(&(struct attempt_end){.stop = run->stop, .end = &run->end});
}

/* Of one that has ended it is held until its log is at its end, too. */
static int put_report(struct run *run, enum report_verb verb, struct span members)
{
	cleanup(buf_done) struct buf body = {0}, target = {0};
	struct json_object object;

	buf_init(&body, BODY_BYTES_MAX);
	buf_init(&target, 1024);
	json_begin(&object, &body);
	json_member_string(&object, "workerId", pulse_worker_id(run->supervisor->pulse));
	json_member_string(&object, "fence", span_of(run->fence));
	if (members.len > 0)
		json_members_raw(&object, members);
	int r = json_end(&object);
	if (r == 0)
		r = http_put_path(&target, "/api/tasks/", span_of(run->task), "/");
	if (r == 0)
		r = buf_put_span(&target, span_of(report_verb_name(verb)));
	if (r == 0)
		r = outbox_put(run->supervisor->outbox, run->name, run_yields_to(run), buf_span(&target),
			buf_span(&body), run->phase == RUN_ENDED);
	if (r < 0)
		log_error("the report of an attempt is in memory alone", log_cstr("task", run->task),
			log_cstr("reason", strerror(-r)));
	return r;
}

static void leave(struct run *run);

static void on_leave_again(uv_timer_t *timer)
{
	leave(timer->data);
}

/* What the work left on disk goes first, in pieces between which others are served. */
static void leave(struct run *run)
{
	if (run->remembered && nest_forget_run(&run->supervisor->nest, run->name) == -EAGAIN)
		uv_timer_start(
			&run->clock, on_leave_again, 1, 0); /* not 0: that is called again before anybody */
	else
		supervisor_forget(run->supervisor, run);
}

/* The end of a run that has no report, or whose report is settled. */
static void finish(struct run *run)
{
	run->phase = RUN_OVER;
	uv_timer_stop(&run->clock);
	if (!supervisor_has_other(run->supervisor, run))
		pulse_forget(run->supervisor->pulse, span_of(run->task));
	if (run->remembered)
		nest_note_settled(&run->supervisor->nest, run->name);
	leave(run);
}

static int64_t wall_ms(void)
{
	struct timespec now;

	clock_gettime(CLOCK_REALTIME, &now);
	return (int64_t)now.tv_sec * 1000 + now.tv_nsec / 1000000;
}

static void on_unused_tree_ended(void *context);

/* It ends before anything was started: by trouble of this host, or by what the task asks for, which will not change. */
static void refuse(struct run *run, const char *code, const char *message)
{
	cleanup(buf_done) struct buf members = {0};
	struct span kept;

	if (run->tree) { /* what was made for it goes first */
		run->refused_code = code;
		run->refused = arena_copy(&run->arena, span_of(message), &kept) < 0 ? "" : kept.data;
		worktree_end(run->tree, on_unused_tree_ended, run);
		return;
	}
	buf_init(&members, BODY_BYTES_MAX);
	log_warn("a task cannot be run here", log_cstr("task", run->task), log_cstr("code", code),
		log_cstr("reason", message));
	run->phase = RUN_TOLD;
	nest_forget_run(&run->supervisor->nest, run->name);
	bool host = strcmp(code, "WORKER_INIT_FAILED") == 0;
	if (host)
		supervisor_spare(run->supervisor);
	if (failure_put(&members, code, message, host ? wall_ms() + HOST_TROUBLE_MS : RETRY_NEVER) == 0)
		put_report(run, REPORT_FAIL, buf_span(&members));
}

/* Stopped before it had a process. */
static void end_unstarted(struct run *run)
{
	cleanup(buf_done) struct buf members = {0};
	struct attempt_end attempt = {.stop = run->stop};
	enum report_verb verb;

	if (run->stop == STOP_LOST) {
		finish(run);
		return;
	}
	buf_init(&members, BODY_BYTES_MAX);
	run->phase = RUN_TOLD;
	if (verdict_put(&attempt, &verb, &members) == 0)
		put_report(run, verb, buf_span(&members));
}

void run_settled(struct run *run)
{
	if (run->phase == RUN_TOLD)
		finish(run);
}

/* ---- clocks ------------------------------------------------------------------------------------------------ */

static void on_clock(uv_timer_t *timer);

static int64_t earliest(int64_t a, int64_t b)
{
	return a < b ? a : b;
}

/* When silence is too long; INT64_MAX: there is no such clock. */
static int64_t silent_until_ms(const struct run *run)
{
	int64_t limit_ms = run->spoke ? run->executor->stall_ms : run->executor->start_ms;

	if (!run->spoke && limit_ms == 0)
		limit_ms = run->executor->stall_ms;
	return limit_ms > 0 ? run->heard_ms + limit_ms : INT64_MAX;
}

/* When it has run too long. */
static int64_t over_ms(const struct run *run)
{
	return run->claimed_ms + run->timeout_ms + run->waited_ms;
}

static void arm_clock(struct run *run)
{
	int64_t now_ms = worker_clock_ms();
	int64_t due_ms = run->asks ? now_ms + LOOK_MS : earliest(over_ms(run), silent_until_ms(run));

	if (run->final_ms > 0)
		due_ms = earliest(due_ms, run->final_ms);
	int64_t wait_ms = due_ms > now_ms ? due_ms - now_ms : 0;

	uv_timer_start(&run->clock, on_clock, (uint64_t)earliest(wait_ms, 3600 * 1000), 0);
}

/* Its time is up, unless it waits for an answer. */
static void judge_time(struct run *run)
{
	int64_t now_ms = worker_clock_ms();

	if (run->phase != RUN_STARTED || run->stop != STOP_NOT)
		return;
	if (!run->asks && now_ms >= over_ms(run)) {
		run->limit_ms = run->timeout_ms;
		run_stop(run, STOP_TIMED_OUT, INT64_MAX);
	} else if (!run->asks && now_ms >= silent_until_ms(run)) {
		run->limit_ms = now_ms - run->heard_ms;
		run_stop(run, STOP_STALLED, INT64_MAX);
	} else {
		arm_clock(run);
	}
}

void run_seen(struct run *run, yyjson_val *task)
{
	int64_t now_ms = worker_clock_ms();
	yyjson_val *left = yyjson_obj_get(task, "runMs");

	if (!yyjson_equals_str(yyjson_obj_get(task, "fence"), run->fence) || !yyjson_is_int(left))
		return;
	/* what the server leaves it beyond what our clock says is what it has waited */
	int64_t waited_ms = yyjson_get_sint(left) - (run->granted_ms - (now_ms - run->claimed_ms));
	run->asks = yyjson_equals_str(yyjson_obj_get(task, "state"), "asking");
	if (waited_ms <= run->waited_ms)
		return;
	run->heard_ms = earliest(run->heard_ms + waited_ms - run->waited_ms, now_ms);
	run->waited_ms = waited_ms;
}

static void on_looked(void *context, int fault, enum http_reach reach, const struct http_answer *answer)
{
	struct run *run = context;
	struct json_complaint complaint;
	cleanup(yyjson_doc_free_at) yyjson_doc *doc =
		fault == 0 ? json_read(http_answer_body(answer), &complaint) : NULL;

	(void)reach; /* a server that is away has told before what it asks */
	if (doc && http_answer_status(answer) == 200)
		run_seen(run, yyjson_doc_get_root(doc));
	judge_time(run);
}

/* Before anything is stopped for its age or its silence: does it wait for a person? Whatever it has asked it has asked
 * the server, and not us. */
static void look(struct run *run)
{
	struct http_answer_limits limits = {.head_bytes_max = 64 << 10, .body_bytes_max = 4 << 20};
	const struct supervisor *supervisor = run->supervisor;
	struct span target = run->log_target, token = pulse_token(supervisor->pulse);

	target.len -= sizeof "/log" - 1;
	struct http_call call = {
		.method = HTTP_METHOD_GET,
		.target = target,
		.token = token.len > 0 ? token : (struct span){0},
		.may_repeat = true,
		.timeout_ms = CALL_MS,
	};
	if (!run->looks)
		run->looks = line_new(supervisor->loop, &supervisor->options->address, &limits);
	if (run->looks && line_is_busy(run->looks))
		return;
	if (!run->looks || line_call(run->looks, &call, on_looked, run) < 0)
		judge_time(run);
}

static void on_clock(uv_timer_t *timer)
{
	struct run *run = timer->data;
	int64_t now_ms = worker_clock_ms();

	if (run->phase != RUN_STARTED || run->stop != STOP_NOT)
		return;
	if (run->final_ms > 0 && now_ms >= run->final_ms)
		run_stop(run, STOP_FINAL, INT64_MAX);
	else if (run->asks || now_ms >= over_ms(run) || now_ms >= silent_until_ms(run))
		look(run);
	else
		arm_clock(run);
}

/* ---- starting ---------------------------------------------------------------------------------------------- */

static const char *text_of(struct run *run, const char *format, ...) __attribute__((format(printf, 2, 3)));

static const char *text_of(struct run *run, const char *format, ...)
{
	char text[4096 + 512];
	struct span kept;
	va_list args;

	va_start(args, format);
	vsnprintf(text, sizeof text, format, args);
	va_end(args);
	return arena_copy(&run->arena, span_of(text), &kept) < 0 ? "" : kept.data;
}

/* The directory it works in: what the task asks for, or its own empty one. False: it was refused. */
static bool open_workdir(struct run *run, int run_fd, int *ret_fd)
{
	const struct settings *settings = run->supervisor->settings;
	char reason[WORKDIR_REASON_BYTES];

	if (!run->working_dir) {
		if (mkdirat(run_fd, "work", 0700) == 0)
			*ret_fd = openat(run_fd, "work", O_PATH | O_DIRECTORY | O_NOFOLLOW | O_CLOEXEC);
		if (*ret_fd < 0)
			refuse(run, "WORKER_INIT_FAILED", strerror(errno));
		return *ret_fd >= 0;
	}
	int r = workdir_open(settings->roots, settings->root_count, run->working_dir, ret_fd, reason);
	if (r == -EMFILE || r == -ENFILE || r == -ENOMEM)
		refuse(run, "WORKER_INIT_FAILED", reason);
	else if (r < 0)
		refuse(run, "BAD_WORKDIR", reason);
	return r == 0;
}

struct grant_list {
	struct grant *items;
	size_t count, room;
};

static void grant(struct grant_list *list, const char *path, enum grant_access access, bool optional)
{
	if (list->count < list->room && path && path[0])
		list->items[list->count++] =
			(struct grant){.path = path, .fd = -1, .access = access, .optional = optional};
}

static bool is_above(const char *path, const char *other)
{
	size_t len = strlen(path);

	return strncmp(path, other, len) == 0 && (other[len] == '/' || other[len] == 0 || len == 1);
}

/* A command that somebody types runs programs where the shell would find them. */
static void grant_path(struct run *run, struct grant_list *list)
{
	const char *at = getenv("PATH");

	while (at && *at) {
		size_t len = strcspn(at, ":");
		const char *dir = text_of(run, "%.*s", (int)len, at);
		if (dir[0] == '/' && dir[1] && !is_above(dir, run->supervisor->nest.home))
			grant(list, dir, GRANT_READ, true);
		at += len + (at[len] == ':');
	}
}

/* Our own command line, for children that report by themselves. */
static const char *own_program(struct run *run)
{
	char path[4096];
	ssize_t len = readlink("/proc/self/exe", path, sizeof path - 1);
	char *slash;

	if (len <= 0)
		return NULL;
	path[len] = 0;
	slash = strrchr(path, '/');
	return slash ? text_of(run, "%.*s/stint", (int)(slash - path), path) : NULL;
}

static int make_grants(struct run *run, const char *run_path, struct grant_list *list)
{
	const struct executor *executor = run->executor;

	*list = (struct grant_list){.room = GRANTS_MAX};
	list->items = arena_alloc(&run->arena, GRANTS_MAX * sizeof *list->items);
	if (!list->items)
		return -ENOMEM;
	grant(list, run_path, GRANT_READ, false);
	grant(list, text_of(run, "%s/home", run_path), GRANT_WRITE, false);
	grant(list, text_of(run, "%s/tmp", run_path), GRANT_WRITE, false);
	grant(list, own_program(run), GRANT_READ, true);
	for (size_t i = 0; executor->read && executor->read[i]; i++)
		grant(list, executor->read[i], GRANT_READ, false);
	for (size_t i = 0; executor->write && executor->write[i]; i++)
		grant(list, executor->write[i], GRANT_WRITE, false);
	if (run->tree && list->count + WORKTREE_GRANTS_MAX <= list->room)
		list->count += worktree_grants(run->tree, list->items + list->count);
	if (!executor->argv)
		grant_path(run, list);
	return 0;
}

static const char *path_of(struct run *run, int fd)
{
	char path[4096];
	ssize_t len = readlink(text_of(run, "/proc/self/fd/%d", fd), path, sizeof path - 1);

	path[len > 0 ? len : 0] = 0;
	return text_of(run, "%s", path);
}

/* Before anything of it exists, and again when more is known: whoever comes after us finds it. */
static int note_run(struct run *run)
{
	struct process_identity identity = {0};
	struct nest_attempt attempt = {pulse_worker_id(run->supervisor->pulse).data, run->task, run->fence};

	if (run->process)
		process_identify(run->process, &identity);
	else
		process_foretell(run->supervisor->host, run->name, &identity);
	int r = nest_note_run(&run->supervisor->nest, &identity, &attempt);
	if (r < 0)
		log_warn("a process cannot be written down", log_cstr("task", run->task),
			log_cstr("reason", strerror(-r)));
	return r;
}

/* The way to the server for a child behind a wall: the socket that the worker uses, or that of the home if the server is
 * there; by its door where it has one, which stays right when the server is started again. */
static void settle_wall(struct run *run, const char *run_path)
{
	const struct supervisor *supervisor = run->supervisor;
	const struct http_address *address = &supervisor->options->address;
	const char *socket = address->local      ? address->path
		: supervisor->options->same_host ? text_of(run, "%s/stint.sock", supervisor->nest.home)
						 : NULL;
	const char *slash = socket ? strrchr(socket, '/') : NULL;
	const char *door = slash ? text_of(run, "%.*s/door%s", (int)(slash - socket), socket, slash) : NULL;
	bool has_door = door && strlen(door) < sizeof address->path && access(door, F_OK) == 0;

	walls_settle(&run->wall, run_path, has_door ? door : socket, has_door);
}

static int fill_spec(void *context, int workdir_fd, struct process_spec *spec)
{
	struct run *run = context;
	const struct supervisor *supervisor = run->supervisor;
	const char *run_path = text_of(run, "%s/runs/%s", supervisor->nest.home, run->name);
	int64_t left_ms = run->claimed_ms + run->timeout_ms - worker_clock_ms();
	struct environment about = {
		.url = supervisor->options->url,
		.token_file = run->has_token ? text_of(run, "%s/token", run_path) : NULL,
		.task = run->task,
		.fence = run->fence,
		.queue = run->queue,
		.worker = pulse_worker_id(supervisor->pulse).data,
		.workspace = path_of(run, workdir_fd),
		.home = text_of(run, "%s/home", run_path),
		.tmp = text_of(run, "%s/tmp", run_path),
		.attempt = run->attempt,
		.deadline_ms = wall_ms() + (left_ms > 0 ? left_ms : 0),
	};
	struct grant_list grants;

	if (supervisor->options->once) {
		about.model = supervisor->options->once->model;
		about.thinking = supervisor->options->once->thinking;
		about.execution_mode = supervisor->options->once->execution_mode;
	}
	settle_wall(run, run_path);
	if (walls_rename(&run->arena, &run->wall, &about) < 0)
		return -ENOMEM;
	spec->wall = &run->wall;
	spec->run = run->name;
	spec->argv = run->argv;
	spec->env = environment_make(&run->arena, &about, run->executor);
	spec->env_allow = environment_allowed(&run->arena, run->executor);
	spec->workdir_fd = workdir_fd;
	if (run->executor->argv) {
		spec->stdin_from = STDIN_BYTES;
		spec->input = run->input;
	}
	int r = make_grants(run, run_path, &grants);
	if (r < 0 || !spec->env || !spec->env_allow)
		return -ENOMEM;
	spec->confine.limits = run->executor->limits;
	spec->confine.grants = grants.items;
	spec->confine.grant_count = grants.count;
	spec->confine.keep_out = supervisor->nest.home;
	spec->events = &events;
	spec->context = run;
	return 0;
}

/* What kept it from being started, and whether it may be tried again. */
static void refuse_start(struct run *run, int fault)
{
	if (fault == -EOPNOTSUPP)
		refuse(run, "ISOLATION_UNAVAILABLE",
			"a limit of its executor cannot be enforced here any more");
	else if (fault == -E2BIG || fault == -EINVAL)
		refuse(run, "EXECUTION_ERROR", text_of(run, "cannot be started: %s", strerror(-fault)));
	else if (fault == -EILSEQ)
		refuse(run, "EXECUTION_ERROR",
			"at level \"vm\" an argument or a value of the environment cannot have a line break: it goes in as one line");
	else if (fault == -EXDEV)
		refuse(run, run->working_dir ? "BAD_WORKDIR" : "ISOLATION_UNAVAILABLE",
			"its work dir, or another path that it may use, contains the state directory or lies in it");
	else if (run->wall.level != WALL_PROCESS &&
		(fault == -ENOENT || fault == -EACCES || fault == -ENOTDIR))
		refuse(run, "ISOLATION_UNAVAILABLE",
			text_of(run, "level \"%s\": a path that it may use cannot be opened: %s",
				wall_level_name(run->wall.level), strerror(-fault)));
	else
		refuse(run, "WORKER_INIT_FAILED", text_of(run, "cannot be started: %s", strerror(-fault)));
}

static void start_in(struct run *run, int workdir_fd)
{
	struct process_spec spec = process_spec_default();
	int r = fill_spec(run, workdir_fd, &spec);

	if (r == 0)
		r = process_start(run->supervisor->host, &spec, &run->process);
	if (r < 0) {
		refuse_start(run, r);
		return;
	}
	run->phase = RUN_STARTED;
	run->heard_ms = worker_clock_ms();
	note_run(run);
	scribe_begin(&run->scribe, run->process);
	arm_clock(run);
	log_info("started", log_cstr("task", run->task), log_cstr("executor", run->executor->name),
		log_int("attempt", run->attempt), log_cstr("run", run->name));
}

/* ---- a work tree of its own ---------------------------------------------------------------------------------- */

static void let_tree_go(struct run *run)
{
	const struct worktree_record *record = worktree_record(run->tree);

	if (!worktree_is_gone(run->tree))
		log_info("a work tree is kept", log_cstr("task", run->task), log_cstr("path", record->path),
			log_cstr("reason", record->kept));
	worktree_free(run->tree);
	run->tree = NULL;
}

static void on_unused_tree_ended(void *context)
{
	struct run *run = context;

	let_tree_go(run);
	if (run->stop != STOP_NOT)
		end_unstarted(run);
	else
		refuse(run, run->refused_code, run->refused);
}

static void on_tree_made(void *context, int fault)
{
	struct run *run = context;
	const char *path = worktree_record(run->tree)->path;
	char why[WORKDIR_REASON_BYTES];
	cleanup(close_at) int workdir_fd = -1;

	if (fault) {
		run->refused_code = "BAD_WORKDIR";
		run->refused = text_of(run, "%s", worktree_reason(run->tree));
		on_unused_tree_ended(run);
	} else if (run->stop != STOP_NOT) {
		worktree_end(run->tree, on_unused_tree_ended, run);
	} else if (workdir_open(&path, 1, run->tree_rest[0] ? run->tree_rest : ".", &workdir_fd, why) < 0) {
		refuse(run, "BAD_WORKDIR", text_of(run, "in its work tree: %s", why));
	} else {
		start_in(run, workdir_fd);
	}
}

/* True: its start waits for it, or was refused. */
static bool make_tree(struct run *run, int workdir_fd)
{
	const struct settings *settings = run->supervisor->settings;
	struct worktree_site site = {
		run->supervisor->loop, run->supervisor->host, run->supervisor->nest.home, run->name};
	struct worktree_wish wish = {&run->executor->worktree, run->task, run->fence, NULL, NULL, fill_spec};
	char top[WORKTREE_PATH_BYTES], common[WORKTREE_PATH_BYTES],
		reason[WORKTREE_REASON_BYTES] = "its repository cannot be found";
	const char *path = path_of(run, workdir_fd);

	if (!run->executor->worktree.on || run->tree_unwanted || !run->working_dir)
		return false;
	if (worktree_find(settings->roots, settings->root_count, path, top, common, &run->tree_rest, reason) <
		0) {
		refuse(run, "BAD_WORKDIR", reason);
		return true;
	}
	wish.top = text_of(run, "%s", top);
	wish.common = text_of(run, "%s", common);
	run->tree = worktree_make(&site, &wish, on_tree_made, run);
	if (!run->tree)
		refuse_start(run, -ENOMEM);
	return true;
}

static void start_process(struct run *run, struct span token)
{
	struct supervisor *supervisor = run->supervisor;
	cleanup(close_at) int run_fd = -1;
	cleanup(close_at) int workdir_fd = -1;

	int r = note_run(run);
	if (r == 0)
		r = rundir_make(supervisor->nest.runs_fd, run->name, &run_fd);
	if (r == 0 && token.len > 0)
		r = rundir_put_secret(run_fd, "token", token);
	if (r < 0) {
		refuse_start(run, r);
		return;
	}
	run->has_token = token.len > 0;
	if (open_workdir(run, run_fd, &workdir_fd) && !make_tree(run, workdir_fd))
		start_in(run, workdir_fd);
}

/* ---- a token for its own claim ------------------------------------------------------------------------------ */

static void ask_token(struct run *run);

static void on_token_again(uv_timer_t *timer)
{
	ask_token(timer->data);
}

static void on_token(void *context, int fault, enum http_reach reach, const struct http_answer *answer)
{
	struct run *run = context;
	struct json_complaint complaint;
	int status = fault == 0 ? http_answer_status(answer) : 0;

	(void)reach;
	if (run->stop != STOP_NOT) {
		end_unstarted(run);
		return;
	}
	cleanup(yyjson_doc_free_at) yyjson_doc *doc =
		fault == 0 ? json_read(http_answer_body(answer), &complaint) : NULL;
	yyjson_val *token = yyjson_obj_get(yyjson_doc_get_root(doc), "token");
	if (status >= 200 && status < 300 && yyjson_is_str(token)) {
		start_process(run, (struct span){yyjson_get_str(token), yyjson_get_len(token)});
	} else if (status >= 400 && status < 500 && status != 429 && status != 401) {
		log_warn("the claim is not ours any more", log_cstr("task", run->task),
			log_int("status", status));
		run->stop = STOP_LOST;
		end_unstarted(run);
	} else {
		int64_t delay_ms = retry_delay_ms(++run->failures, AWAY_MS, &run->supervisor->rng);
		uv_timer_start(&run->clock, on_token_again, (uint64_t)delay_ms, 0);
	}
}

static void ask_token(struct run *run)
{
	struct supervisor *supervisor = run->supervisor;
	cleanup(buf_done) struct buf body = {0};
	struct json_object object;

	if (run->stop != STOP_NOT) {
		end_unstarted(run);
		return;
	}
	if (supervisor_has_other(
		    supervisor, run)) { /* nothing runs twice at once: that one must be gone first */
		uv_timer_start(&run->clock, on_token_again, OTHER_MS, 0);
		return;
	}
	if (run->executor->size > 0) { /* it speaks to us alone */
		start_pooled(run);
		return;
	}
	if (!supervisor->options->token) { /* an open server asks nobody for one */
		start_process(run, (struct span){0});
		return;
	}
	buf_init(&body, 4096);
	json_begin(&object, &body);
	json_member_string(&object, "kind", SPAN("claim"));
	json_member_string(&object, "task", span_of(run->task));
	json_member_string(&object, "fence", span_of(run->fence));
	int r = json_end(&object);
	struct http_call call = {
		.method = HTTP_METHOD_POST,
		.target = SPAN("/api/tokens"),
		.body = buf_span(&body),
		.token = pulse_token(supervisor->pulse),
		.may_repeat = true, /* one token too many dies with the claim */
		.timeout_ms = CALL_MS,
	};
	if (r == 0)
		r = line_call(run->line, &call, on_token, run);
	if (r < 0)
		refuse_start(run, r);
}

/* ---- what the process does ----------------------------------------------------------------------------------- */

static void on_started(void *context, struct process *process)
{
	struct run *run = context;

	(void)process;
	run->supervisor->troubles = 0;
	note_run(run);
}

static void on_output(void *context, struct process *process, enum process_stream stream)
{
	struct run *run = context;

	(void)process;
	(void)stream;
	run->heard_ms = worker_clock_ms();
	run->spoke = true;
	scribe_look(&run->scribe);
}

static void on_exited(void *context, struct process *process)
{
	(void)context;
	(void)process;
}

static void on_log_finished(void *context)
{
	struct run *run = context;

	process_free(run->process);
	run->process = NULL;
	run->scribe.process = NULL;
	run->scribe.own = NULL;
	if (!run->reported) {
		finish(run);
		return;
	}
	run->phase = RUN_TOLD;
	outbox_release(run->supervisor->outbox, run->name);
}

static int judge(struct run *run, enum report_verb *ret_verb, struct buf *members)
{
	cleanup(buf_done) struct buf out = {0}, err = {0};

	buf_init(&out, RESULT_BYTES_MAX);
	buf_init(&err, WORDS_BYTES_MAX);
	int r = output_tail(process_output(run->process, STREAM_OUT), RESULT_BYTES_MAX, &out);
	if (r == 0)
		r = output_tail(process_output(run->process, STREAM_ERR), WORDS_BYTES_MAX, &err);
	struct attempt_end attempt = {
		.stop = run->stop,
		.end = process_end(run->process),
		.out = buf_span(&out),
		.err = buf_span(&err),
		.limit_ms = run->limit_ms,
		.limit_is_budget = run->timeout_is_budget,
		.limits = &run->executor->limits,
		.wall_ms = wall_ms(),
		.own_argv = !run->executor->argv,
	};
	return r < 0 ? r : verdict_put(&attempt, ret_verb, members);
}

static void on_tree_ended(void *context)
{
	struct run *run = context;

	let_tree_go(run);
	scribe_finish(&run->scribe, on_log_finished, run);
}

static void on_gone(void *context, struct process *process)
{
	struct run *run = context;
	const struct process_end *end = process_end(process);
	cleanup(buf_done) struct buf members = {0};
	enum report_verb verb = REPORT_RELEASE;
	bool saved = true;

	uv_timer_stop(&run->clock);
	run->phase = RUN_ENDED;
	run->end = *end;
	buf_init(&members, BODY_BYTES_MAX);
	if (run->stop != STOP_LOST) {
		int r = judge(run, &verb, &members);
		if (r < 0)
			buf_clear(&members);
		saved = put_report(run, verb, buf_span(&members)) == 0;
		run->reported = true;
	}
	log_info("ended", log_cstr("task", run->task),
		log_cstr("as", run->stop == STOP_LOST ? "lost" : report_verb_name(verb)),
		log_int(end->how == ENDED_SIGNAL ? "signal" : "exit", end->code),
		log_int("strays", end->strays));
	if (verdict_is_shortage(end))
		supervisor_spare(run->supervisor);
	if (!saved) { /* perhaps it was the work that filled the disk */
		nest_clear_run(&run->supervisor->nest, run->name);
		saved = outbox_save(run->supervisor->outbox) == 0;
	}
	run->remembered = !saved || nest_forget_run(&run->supervisor->nest, run->name) == -EAGAIN;
	if (run->tree)
		worktree_end(run->tree, on_tree_ended, run);
	else
		scribe_finish(&run->scribe, on_log_finished, run);
}

static const struct process_events events = {
	.started = on_started,
	.output = on_output,
	.exited = on_exited,
	.gone = on_gone,
};

/* ---- in a pool ------------------------------------------------------------------------------------------------ */

bool run_is_pooled(const struct run *run)
{
	return run->executor && run->executor->size > 0;
}

static void on_job_started(void *context)
{
	struct run *run = context;

	run->phase = RUN_STARTED;
	run->supervisor->troubles = 0;
	run->heard_ms = worker_clock_ms();
	run->spoke = true; /* that it starts in time was its worker's to show */
	scribe_begin_own(&run->scribe, &run->words);
	arm_clock(run);
}

static void on_job_wrote(void *context, struct span bytes)
{
	struct run *run = context;

	run->heard_ms = worker_clock_ms();
	output_put(&run->words, bytes);
	scribe_look(&run->scribe);
}

static void send_note(struct run *run);

static void on_note_again(uv_timer_t *timer)
{
	send_note(timer->data);
}

/* What became of it does not matter: the next one is newer, and the report tells the end. */
static void on_noted(void *context, int fault, enum http_reach reach, const struct http_answer *answer)
{
	struct run *run = context;

	(void)fault;
	(void)reach;
	(void)answer;
	uv_timer_start(&run->note_timer, on_note_again, NOTE_MS, 0);
}

static void send_note(struct run *run)
{
	struct http_answer_limits limits = {.head_bytes_max = 64 << 10, .body_bytes_max = 1 << 20};
	struct supervisor *supervisor = run->supervisor;
	cleanup(buf_done) struct buf target = {0};

	if (!run->note_waits || run->phase != RUN_STARTED)
		return;
	if (!run->notes)
		run->notes = line_new(supervisor->loop, &supervisor->options->address, &limits);
	buf_init(&target, 1024);
	buf_put(&target, run->log_target.data, run->log_target.len - (sizeof "/log" - 1));
	if (!run->notes || line_is_busy(run->notes) || buf_printf(&target, "/progress") < 0)
		return;
	struct span token = pulse_token(supervisor->pulse);
	struct http_call call = {
		.method = HTTP_METHOD_POST,
		.target = buf_span(&target),
		.body = buf_span(&run->note),
		.token = token.len > 0 ? token : (struct span){0},
		.timeout_ms = CALL_MS,
	};
	run->note_waits = false;
	if (line_call(run->notes, &call, on_noted, run) < 0)
		uv_timer_start(&run->note_timer, on_note_again, NOTE_MS, 0);
}

/* One note a second at the most: of several the newest counts. */
static void on_job_progress(void *context, int percent, struct span note)
{
	struct run *run = context;
	struct json_object object;

	run->heard_ms = worker_clock_ms();
	buf_clear(&run->note);
	json_begin(&object, &run->note);
	json_member_string(&object, "workerId", pulse_worker_id(run->supervisor->pulse));
	json_member_string(&object, "fence", span_of(run->fence));
	if (percent >= 0)
		json_member_int(&object, "percent", percent);
	if (note.len > 0)
		json_member_string(&object, "note", note);
	run->note_waits = json_end(&object) == 0;
	if (!uv_is_active((uv_handle_t *)&run->note_timer))
		send_note(run);
}

static void on_job_ended(void *context, const struct pool_job_end *end)
{
	struct run *run = context;
	cleanup(buf_done) struct buf members = {0};
	struct process_end asked = {.stop_asked = true};
	struct attempt_end attempt = {.stop = run->stop,
		.end = &asked,
		.limit_ms = run->limit_ms,
		.limit_is_budget = run->timeout_is_budget};
	enum report_verb verb = end->verb;
	bool started = run->phase == RUN_STARTED, saved = true;

	buf_init(&members, BODY_BYTES_MAX);
	uv_timer_stop(&run->clock);
	uv_timer_stop(&run->note_timer);
	run->phase = started ? RUN_ENDED : RUN_TOLD;
	if (run->stop != STOP_LOST) {
		int r = end->stopped ? verdict_put(&attempt, &verb, &members) : 0;
		r = put_report(run, verb, end->stopped && r == 0 ? buf_span(&members) : end->members);
		saved = r == 0;
		run->reported = true;
	}
	log_info("ended", log_cstr("task", run->task),
		log_cstr("as", run->stop == STOP_LOST ? "lost" : report_verb_name(verb)));
	run->remembered = !saved || nest_forget_run(&run->supervisor->nest, run->name) == -EAGAIN;
	if (started)
		scribe_finish(&run->scribe, on_log_finished, run);
}

static const struct pool_job_events job_events = {
	.started = on_job_started,
	.progress = on_job_progress,
	.wrote = on_job_wrote,
	.ended = on_job_ended,
};

static void start_pooled(struct run *run)
{
	if (run->working_dir) {
		refuse(run, "BAD_WORKDIR",
			"the workers of a pool stay in the directory of their executor; the task must not ask for another");
		return;
	}
	int r = note_run(run);
	if (r < 0) {
		refuse_start(run, r);
		return;
	}
	run->job = (struct pool_job){
		.executor = run->executor,
		.task = run->task,
		.module = run->module,
		.text = run->input,
		.deadline_ms = wall_ms() + (run->claimed_ms + run->timeout_ms - worker_clock_ms()),
		.events = &job_events,
		.context = run,
	};
	pools_submit(run->supervisor->pools, &run->job);
}

/* ---- for the supervisor --------------------------------------------------------------------------------------- */

static const char *const reasons[] = {
	[STOP_NOT] = "",
	[STOP_CANCELLED] = "cancelled",
	[STOP_TIMED_OUT] = "timeout",
	[STOP_STALLED] = "stalled",
	[STOP_SHUTDOWN] = "shutdown",
	[STOP_LAPSED] = "no answer",
	[STOP_PARKED] = "it waits for an answer",
	[STOP_FINAL] = "its last word was said",
	[STOP_LOST] = "lost",
};

void run_stop(struct run *run, enum stop_reason reason, int64_t grace_ms)
{
	/* the server's clock of the same limit: it says "cancel" and means "too long" */
	if (reason == STOP_CANCELLED && run->timeout_ms > 0 &&
		worker_clock_ms() >= over_ms(run) - TIMEOUT_SLACK_MS) {
		reason = STOP_TIMED_OUT;
		run->limit_ms = run->timeout_ms;
	}
	bool first = run->stop == STOP_NOT;
	if (first || reason == STOP_LOST)
		run->stop = reason;
	if (run->phase == RUN_STARTED) {
		int64_t grace = earliest(grace_ms, run->executor->grace_ms);
		if (first)
			log_info("stopping", log_cstr("task", run->task),
				log_cstr("reason", reasons[run->stop]));
		if (run_is_pooled(run))
			pools_withdraw(run->supervisor->pools, &run->job, grace > 0 ? grace : 0);
		else
			process_stop(run->process, (uint32_t)(grace > 0 ? grace : 0));
	} else if (run->phase == RUN_CLAIMED && run->tree) {
		worktree_cancel(run->tree); /* and on_tree_made() ends it */
	} else if (run->phase == RUN_CLAIMED && !line_is_busy(run->line)) {
		uv_timer_stop(&run->clock);
		if (run_is_pooled(run)) {
			pools_withdraw(run->supervisor->pools, &run->job, 0);
			nest_forget_run(&run->supervisor->nest, run->name);
		}
		end_unstarted(run);
	}
}

void run_reported(struct run *run)
{
	if (run->final_ms > 0 || run->phase != RUN_STARTED)
		return;
	run->final_ms = worker_clock_ms() + FINAL_MS;
	arm_clock(run);
}

struct span run_task(const struct run *run)
{
	return span_of(run->task);
}

const char *run_name(const struct run *run)
{
	return run->name;
}

uint64_t run_number(const struct run *run)
{
	return run->number;
}

const struct executor *run_executor(const struct run *run)
{
	return run->executor;
}

/* Which executor, with which argv? False: none that we have, and that was reported. */
static bool find_executor(struct run *run, yyjson_val *task)
{
	const struct settings *settings = run->supervisor->settings;
	const char *name = yyjson_get_str(yyjson_obj_get(task, "executor"));
	const char *level = yyjson_get_str(yyjson_obj_get(task, "isolationLevel"));
	char complaint[WALLS_COMPLAINT_BYTES];

	run->executor = name ? settings_executor(settings, name) : settings_fallback(settings, run->queue);
	if (!run->executor) {
		refuse(run, "EXECUTOR_NOT_FOUND",
			name ? text_of(run, "this worker has no executor \"%s\"", name)
			     : text_of(run,
				       "the task names no executor, and the worker has none for tasks of queue \"%s\" that do not",
				       run->queue));
		return false;
	}
	if (walls_choose(run->executor, level, &run->wall, complaint) < 0) {
		refuse(run, "ISOLATION_UNAVAILABLE", complaint);
		return false;
	}
	if (run->wall.level == WALL_VM && run->working_dir) {
		refuse(run, "BAD_WORKDIR",
			"at level \"vm\" no directory is shared: the task must not name one");
		return false;
	}
	run->argv = run->executor->argv ? run->executor->argv
					: payload_argv(run, yyjson_obj_get(task, "payload"));
	if (!run->argv) {
		refuse(run, "EXECUTION_ERROR",
			"payload.argv must be a list of a program and its arguments, as texts");
		return false;
	}
	if (run->executor->timeout_ms > 0)
		run->timeout_ms = earliest(run->timeout_ms, run->executor->timeout_ms);
	if (run->supervisor->options->once && run->supervisor->options->once->max_run_s > 0)
		run->timeout_ms = earliest(run->timeout_ms, run->supervisor->options->once->max_run_s * 1000);
	if (run->executor->budget_ms > 0 && run->executor->budget_ms < run->timeout_ms) {
		run->timeout_ms = run->executor->budget_ms;
		run->timeout_is_budget = true;
	}
	return true;
}

struct run *run_new(struct supervisor *supervisor, yyjson_val *claim)
{
	struct http_answer_limits limits = {.head_bytes_max = 64 << 10, .body_bytes_max = 4 << 20};
	struct run *run = calloc(1, sizeof *run);

	if (!run)
		return NULL;
	arena_init(&run->arena, ARENA_BYTES_MAX);
	run->supervisor = supervisor;
	run->claimed_ms = run->heard_ms = worker_clock_ms();
	run->line = line_new(supervisor->loop, &supervisor->options->address, &limits);
	if (!run->line || read_claim(run, claim) < 0) {
		line_free(run->line);
		arena_done(&run->arena);
		free(run);
		return NULL;
	}
	run->number = ++supervisor->run_number;
	snprintf(run->name, sizeof run->name, "%s-%llu", supervisor->instance,
		(unsigned long long)run->number);
	uv_timer_init(supervisor->loop, &run->clock);
	run->clock.data = run;
	scribe_init(&run->scribe, supervisor->loop, run->line, supervisor->pulse, run->log_target,
		span_of(run->fence));
	uv_timer_init(supervisor->loop, &run->note_timer);
	run->note_timer.data = run;
	buf_init(&run->note, NOTE_BYTES_MAX);
	output_init(&run->words, WORDS_KEPT_BYTES_MAX);
	run->open_handles = 3;
	pulse_bind(supervisor->pulse, span_of(run->task));
	if (find_executor(run, yyjson_obj_get(claim, "task")))
		ask_token(run);
	return run;
}

static void on_handle_closed(uv_handle_t *handle)
{
	struct run *run = handle->data;

	if (--run->open_handles > 0)
		return;
	scribe_done(&run->scribe);
	buf_done(&run->note);
	output_done(&run->words);
	arena_done(&run->arena);
	free(run);
}

void run_free(struct run *run)
{
	assert(run->phase == RUN_OVER);
	assert(!run->process);
	line_free(run->line);
	line_free(run->looks);
	line_free(run->notes);
	run->clock.data = run->scribe.timer.data = run;
	uv_close((uv_handle_t *)&run->note_timer, on_handle_closed);
	uv_close((uv_handle_t *)&run->clock, on_handle_closed);
	uv_close((uv_handle_t *)&run->scribe.timer, on_handle_closed);
}
