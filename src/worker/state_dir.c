#include "worker/state_dir.h"

#include <assert.h>
#include <errno.h>
#include <fcntl.h>
#include <poll.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/file.h>
#include <sys/stat.h>
#include <unistd.h>

#include "base/arena.h"
#include "base/complain.h"
#include "base/files.h"
#include "base/take.h"
#include "exec/orphan.h"
#include "exec/tree/proc.h"
#include "exec/rundir.h"
#include "wire/http/http.h"
#include "wire/json/json.h"
#include "worker/report/report_file.h"
#include "attempt/verdict.h"

enum {
	RECORD_BYTES_MAX = 16 << 10,
	RECORDS_MAX =
		1000, /* of one dead worker at a time: it had as many runs, and workers of pools besides */
	ROUNDS_MAX = 100,
	DEAD_MAX = 1000,
	ENTRIES_AT_ONCE = 1000, /* some milliseconds */
	ORPHANS_MS = 15 * 1000,
	LOCK_TRIES = 50,
	LOCK_AGAIN_MS = 20,
};

/* ---- records ---- */

static void put_text(struct json_object *object, const char *key, const char *text)
{
	json_member_string(object, key, span_of(text));
}

/* After a loss of power there is no process to find: the page cache is enough. */
static int write_in_place(struct run_record *record, struct buf *text)
{
	while (text->len < record->len && buf_put_byte(text, ' ') == 0)
		;
	if (buf_fault(text) < 0)
		return buf_fault(text);
	ssize_t put = pwrite(record->fd, text->data, text->len, 0);
	if (put != (ssize_t)text->len)
		return put < 0 ? -errno : -ENOSPC;
	record->len = text->len;
	return 0;
}

int state_dir_note_run(struct state_dir *state, struct run_record *record,
	const struct process_identity *identity, const struct run_attempt *attempt)
{
	cleanup(buf_done) struct buf text = {0};
	struct json_object object;

	buf_init(&text, RECORD_BYTES_MAX);
	json_begin(&object, &text);
	put_text(&object, "run", identity->run);
	put_text(&object, "boot", identity->boot);
	put_text(&object, "cgroup", identity->cgroup);
	json_member_int(&object, "shim", identity->shim);
	json_member_int(&object, "shimStart", (int64_t)identity->shim_start);
	json_member_int(&object, "main", identity->main);
	json_member_int(&object, "mainStart", (int64_t)identity->main_start);
	put_text(&object, "workerId", attempt->worker_id);
	put_text(&object, "task", attempt->task);
	put_text(&object, "fence", attempt->fence);
	int r = json_end(&object);
	if (r < 0)
		return r;
	if (record->fd < 0)
		record->fd = openat(
			state->records_fd, identity->run, O_WRONLY | O_CREAT | O_NOFOLLOW | O_CLOEXEC, 0600);
	return record->fd < 0 ? -errno : write_in_place(record, &text);
}

void run_record_settle(struct run_record *record)
{
	cleanup(buf_done) struct buf text = {0};

	buf_init(&text, RECORD_BYTES_MAX);
	if (buf_put_span(&text, SPAN("{}")) == 0 &&
		record->fd >= 0) /* without a task there is nothing to say of it */
		write_in_place(record, &text);
	run_record_close(record);
}

void run_record_close(struct run_record *record)
{
	if (record->fd >= 0)
		close(record->fd);
	*record = (struct run_record){.fd = -1};
}

int state_dir_clear_run(struct state_dir *state, const char *run)
{
	return rundir_remove_some(state->runs_fd, run, ENTRIES_AT_ONCE);
}

int state_dir_forget_run(struct state_dir *state, const char *run)
{
	if (state_dir_clear_run(state, run) == -EAGAIN)
		return -EAGAIN;
	unlinkat(state->records_fd, run, 0);
	return 0;
}

static int read_document(int dir_fd, const char *name, yyjson_doc **ret_doc)
{
	cleanup(buf_done) struct buf text = {0};
	struct json_complaint complaint;

	buf_init(&text, RECORD_BYTES_MAX);
	int r = file_read(dir_fd, name, &text);
	if (r < 0)
		return r;
	*ret_doc = json_read(buf_span(&text), &complaint);
	return *ret_doc ? 0 : -EPROTO;
}

static void read_identity(yyjson_val *record, struct process_identity *identity)
{
	json_copy_text(record, "run", identity->run, sizeof identity->run);
	json_copy_text(record, "boot", identity->boot, sizeof identity->boot);
	json_copy_text(record, "cgroup", identity->cgroup, sizeof identity->cgroup);
	identity->shim = (pid_t)json_int(record, "shim");
	identity->shim_start = (uint64_t)json_int(record, "shimStart");
	identity->main = (pid_t)json_int(record, "main");
	identity->main_start = (uint64_t)json_int(record, "mainStart");
}

static int write_record(const struct state_dir *state, const struct predecessor *who)
{
	cleanup(buf_done) struct buf text = {0};
	struct json_object object;

	buf_init(&text, RECORD_BYTES_MAX);
	json_begin(&object, &text);
	put_text(&object, "workerId", who->worker_id);
	put_text(&object, "boot", who->boot);
	json_member_int(&object, "pid", who->pid);
	json_member_int(&object, "start", who->start);
	int r = json_end(&object);
	return r < 0 ? r : file_write(state->dir_fd, "worker", buf_span(&text), true);
}

int state_dir_note_worker(struct state_dir *state, const char *worker_id)
{
	struct predecessor self = {.pid = getpid()};
	struct proc_stat stat = {0};

	proc_stat_read(getpid(), &stat);
	self.start = (int64_t)stat.start;
	boot_id_read(self.boot, sizeof self.boot);
	snprintf(self.worker_id, sizeof self.worker_id, "%s", worker_id);
	int r = write_record(state, &self);
	if (r == 0)
		state->not_ours = false;
	return r;
}

int state_dir_note_refused(struct state_dir *state)
{
	if (state->not_ours || !state->before.worker_id[0])
		return 0;
	int r = write_record(state, &state->before);
	state->not_ours = r == 0;
	return r;
}

/* ---- taking over ---- */

/* A record that a dead worker left: of no attempt (a worker of a pool, or its end was reported), of one that its agent takes up
 * itself, or of one that crashed. */
struct left_run {
	const char *name;
	enum { LEFT_NOTHING, LEFT_OWN, LEFT_CRASH } kind;
	struct span crash; /* the report of LEFT_CRASH, unless there is one already */
};

/* What a dead worker had under way. */
struct estate {
	struct state_dir *state;
	int dir_fd, outbox_fd, records_fd; /* of the dead one */
	struct arena arena;                /* of all below, for one round */
	struct left_run *runs;
	struct process_identity *identities;
	struct report_file *crashes; /* to be written */
	uint32_t run_count, identity_count, crash_count;
};

/* Nobody said how this attempt ended: it died with its supervisor. */
static int put_crash(struct estate *estate, yyjson_val *record, struct span *ret_text)
{
	cleanup(buf_done) struct buf text = {0};
	struct json_object object;

	buf_init(&text, RECORD_BYTES_MAX);
	http_put_path(&text, "/api/tasks/", json_text(yyjson_obj_get(record, "task")), "/fail\n");
	json_begin(&object, &text);
	json_member_string(&object, "workerId", json_text(yyjson_obj_get(record, "workerId")));
	json_member_string(&object, "fence", json_text(yyjson_obj_get(record, "fence")));
	json_member_bool(&object, "byReport", true); /* it may have said itself how it failed */
	buf_put_byte(&text, ',');
	failure_put(&text, "WORKER_CRASHED", "the supervisor ended while it ran; its processes are gone",
		RETRY_USUAL);
	int r = json_end(&object);
	return r < 0 ? r : arena_copy(&estate->arena, buf_span(&text), ret_text);
}

static int collect_record(void *context, const char *name)
{
	struct estate *estate = context;
	const char *agent = estate->state->resumes;
	cleanup(yyjson_doc_free_at) yyjson_doc *doc = NULL;
	struct left_run run = {.kind = LEFT_OWN};
	struct span kept;

	assert(estate->run_count < RECORDS_MAX);
	assert(estate->identity_count <= estate->run_count);
	int r = arena_copy(&estate->arena, span_of(name), &kept);
	if (r == 0 && read_document(estate->records_fd, name, &doc) == 0) {
		yyjson_val *record = yyjson_doc_get_root(doc);
		read_identity(record, &estate->identities[estate->identity_count]);
		estate->identity_count += estate->identities[estate->identity_count].run[0] != 0;
		if (yyjson_get_len(yyjson_obj_get(record, "task")) == 0)
			run.kind = LEFT_NOTHING;
		else if (!agent || !yyjson_equals_str(yyjson_obj_get(record, "workerId"), agent))
			run.kind = LEFT_CRASH;
		if (run.kind == LEFT_CRASH)
			r = put_crash(estate, record, &run.crash);
	}
	if (r < 0)
		return r;
	run.name = kept.data;
	estate->runs[estate->run_count++] = run;
	return 0;
}

static int inherit_report(void *context, const char *name)
{
	struct estate *estate = context;

	return renameat(estate->outbox_fd, name, estate->state->outbox_fd, name) < 0 ? -errno : 0;
}

/* All crashes are written together: one sync each would keep a worker with a thousand attempts from starting for a minute. */
static int report_crashes(struct estate *estate)
{
	struct state_dir *state = estate->state;
	int r = 0;

	for (uint32_t i = 0; i < estate->run_count; i++) {
		const struct left_run *run = &estate->runs[i];
		bool reported = faccessat(state->outbox_fd, run->name, F_OK, 0) == 0;
		state->adopted += reported || run->kind != LEFT_NOTHING;
		if (run->kind == LEFT_CRASH && !reported)
			estate->crashes[estate->crash_count++] =
				(struct report_file){.name = run->name, .text = run->crash};
	}
	reports_write(state->outbox_fd, estate->crashes, estate->crash_count);
	for (uint32_t i = 0; r == 0 && i < estate->crash_count; i++)
		r = estate->crashes[i].fault;
	return r;
}

/* 1: all that a round can take were there, and are gone. */
static int forget_runs(struct estate *estate)
{
	uint32_t gone = 0;

	for (uint32_t i = 0; i < estate->run_count; i++) {
		rundir_remove(estate->state->runs_fd, estate->runs[i].name);
		gone += unlinkat(estate->records_fd, estate->runs[i].name, 0) == 0;
	}
	return gone == RECORDS_MAX;
}

/* Some of what it had under way is ended, reported and forgotten, in this order. 1: there may be more. Outbox and records may be
 * missing: it died while they were made, or ended cleanly with reports that nobody took. */
static int take_over_some(struct estate *estate, char complaint[STATE_DIR_COMPLAINT_BYTES])
{
	struct arena *arena = &estate->arena;
	struct orphans_left left = {0};

	arena_reset(arena);
	estate->run_count = estate->identity_count = estate->crash_count = 0;
	estate->runs = arena_alloc(arena, RECORDS_MAX * sizeof *estate->runs);
	estate->identities = arena_alloc(arena, RECORDS_MAX * sizeof *estate->identities);
	estate->crashes = arena_alloc(arena, RECORDS_MAX * sizeof *estate->crashes);
	if (!estate->runs || !estate->identities || !estate->crashes)
		return -ENOMEM;
	int r = estate->records_fd >= 0 ? file_each(estate->records_fd, RECORDS_MAX, collect_record, estate)
					: 0;
	if (r == 0 && estate->identity_count > 0)
		r = orphans_end(estate->identities, estate->identity_count, ORPHANS_MS, &left);
	if (r == 0 && left.left > 0)
		return complain(complaint, STATE_DIR_COMPLAINT_BYTES, -EBUSY,
			"%u processes of a worker that died are still there and do not go away", left.left);
	estate->state->orphans += left.found;
	if (r == 0 && estate->outbox_fd >= 0 && estate->dir_fd != estate->state->dir_fd)
		r = file_each(estate->outbox_fd, UINT32_MAX, inherit_report, estate);
	if (r == 0)
		r = report_crashes(estate);
	return r < 0 ? r : forget_runs(estate);
}

static int take_over(struct state_dir *state, int dir_fd, char complaint[STATE_DIR_COMPLAINT_BYTES])
{
	struct estate estate = {.state = state, .dir_fd = dir_fd};
	int r = 1;

	cleanup(close_at) int outbox_fd = openat(dir_fd, "outbox", O_RDONLY | O_DIRECTORY | O_CLOEXEC);
	cleanup(close_at) int records_fd = openat(dir_fd, "runs", O_RDONLY | O_DIRECTORY | O_CLOEXEC);
	estate.outbox_fd = outbox_fd;
	estate.records_fd = records_fd;
	arena_init(&estate.arena, (size_t)RECORDS_MAX * RECORD_BYTES_MAX);
	for (int round = 0; r == 1 && round < ROUNDS_MAX; round++)
		r = take_over_some(&estate, complaint);
	arena_done(&estate.arena);
	file_tidy(outbox_fd);
	file_tidy(records_fd);
	return r < 0 ? r : 0;
}

/* 0 and the lock, or -EBUSY: somebody lives there. */
static int lock_dir(int dir_fd, int *ret_fd)
{
	int fd = openat(dir_fd, "lock", O_RDWR | O_CREAT | O_NOFOLLOW | O_CLOEXEC, 0600);

	if (fd < 0)
		return -errno;
	if (flock(fd, LOCK_EX | LOCK_NB) < 0) {
		int r = errno == EWOULDBLOCK ? -EBUSY : -errno;
		close(fd);
		return r;
	}
	*ret_fd = fd;
	return 0;
}

static void remove_dir(int workers_fd, int dir_fd, const char *name, bool with_record)
{
	file_tidy(dir_fd);
	if (with_record)
		unlinkat(dir_fd, "worker", 0);
	unlinkat(dir_fd, "runs", AT_REMOVEDIR);
	if (unlinkat(dir_fd, "outbox", AT_REMOVEDIR) < 0 && errno != ENOENT)
		return; /* there are reports in it: the next worker sends them */
	if (faccessat(dir_fd, "worker", F_OK, 0) == 0)
		return; /* the next worker replaces it */
	unlinkat(dir_fd, "lock", 0);
	unlinkat(workers_fd, name, AT_REMOVEDIR);
}

struct state_dir_search {
	struct state_dir *state;
	char *complaint;
	bool slotless; /* we have neither a slot nor an agent's name: any worker of that kind that died is our predecessor */
};

static void read_predecessor(struct state_dir *state, int dir_fd)
{
	cleanup(yyjson_doc_free_at) yyjson_doc *doc = NULL;

	if (read_document(dir_fd, "worker", &doc) < 0)
		return;
	yyjson_val *root = yyjson_doc_get_root(doc);
	json_copy_text(root, "workerId", state->before.worker_id, sizeof state->before.worker_id);
	json_copy_text(root, "boot", state->before.boot, sizeof state->before.boot);
	state->before.pid = json_int(root, "pid");
	state->before.start = json_int(root, "start");
}

static int look_at_dir(void *context, const char *name)
{
	struct state_dir_search *search = context;
	struct state_dir *state = search->state;
	cleanup(close_at) int lock_fd = -1;

	if (strcmp(name, state->name) == 0)
		return 0;
	cleanup(close_at) int dir_fd =
		openat(state->workers_fd, name, O_RDONLY | O_DIRECTORY | O_NOFOLLOW | O_CLOEXEC);
	if (dir_fd < 0 || lock_dir(dir_fd, &lock_fd) < 0)
		return 0;
	/* a slot's directory is its successor's to judge, unless there is something to end or to send */
	int r = take_over(state, dir_fd, search->complaint);
	if (r == 0 && search->slotless && !state->before.worker_id[0] && strncmp(name, "slot-", 5) != 0 &&
		strncmp(name, "agent-", 6) != 0)
		read_predecessor(state, dir_fd);
	if (r == 0 && strncmp(name, "slot-", 5) != 0)
		remove_dir(state->workers_fd, dir_fd, name, true);
	return r;
}

/* ---- opening ---- */

static int make_dir(int parent_fd, const char *name, int *ret_fd)
{
	if (mkdirat(parent_fd, name, 0700) < 0 && errno != EEXIST)
		return -errno;
	*ret_fd = openat(parent_fd, name, O_RDONLY | O_DIRECTORY | O_NOFOLLOW | O_CLOEXEC);
	return *ret_fd < 0 ? -errno : 0;
}

/* The state directory must be ours. */
static int make_home(const char *home, int *ret_fd)
{
	struct stat about;
	int r = directory_make(home);

	if (r < 0)
		return r;
	*ret_fd = open(home, O_RDONLY | O_DIRECTORY | O_CLOEXEC);
	if (*ret_fd < 0 || fstat(*ret_fd, &about) < 0)
		return -errno;
	return about.st_uid == geteuid() ? 0 : -EPERM;
}

/* 0 and the lock. -EBUSY, -ENOENT: somebody has it, or took it away under our hands. */
static int try_own(struct state_dir *state)
{
	struct stat about;

	int r = make_dir(state->workers_fd, state->name, &state->dir_fd);
	if (r < 0)
		return r;
	r = lock_dir(state->dir_fd, &state->lock_fd);
	if (r == 0 && (fstat(state->lock_fd, &about) < 0 || about.st_nlink == 0)) {
		close(take_fd(state->lock_fd));
		r = -EBUSY;
	}
	if (r < 0)
		close(take_fd(state->dir_fd));
	return r;
}

/* The lock may be held for a moment: by another worker that starts and checks whether we are dead; by the agent's last pass,
 * which is just ending; or by a forked child of a killed worker that has not called exec yet. */
static int open_own(struct state_dir *state)
{
	int r = try_own(state);

	for (int tries = 0; (r == -EBUSY || r == -ENOENT) && tries < LOCK_TRIES; tries++) {
		poll(NULL, 0, LOCK_AGAIN_MS);
		r = try_own(state);
	}
	return r;
}

static int open_dirs(struct state_dir *state)
{
	cleanup(close_at) int home_fd = -1;

	int r = make_home(state->home, &home_fd);
	if (r == 0)
		r = make_dir(home_fd, "runs", &state->runs_fd);
	if (r == 0)
		rundir_spread(state->runs_fd);
	if (r == 0)
		r = make_dir(home_fd, "workers", &state->workers_fd);
	if (r == 0)
		r = open_own(state);
	if (r == 0)
		r = make_dir(state->dir_fd, "outbox", &state->outbox_fd);
	if (r == 0)
		r = make_dir(state->dir_fd, "runs", &state->records_fd);
	return r;
}

/* Percent-escaped: no slash, no surprise. */
static int name_of(char *out, const char *slot, const char *worker_id, bool agent)
{
	cleanup(buf_done) struct buf text = {0};

	buf_init(&text, STATE_DIR_NAME_BYTES - 1);
	buf_printf(&text, "%s", slot ? "slot-" : agent ? "agent-" : "");
	http_encode(span_of(slot ? slot : worker_id), &text);
	if (buf_fault(&text) == 0)
		snprintf(out, STATE_DIR_NAME_BYTES, "%.*s", SPAN_ARGS(buf_span(&text)));
	return buf_fault(&text);
}

int state_dir_open(struct state_dir *state, const char *home, const char *slot, const char *worker_id,
	bool agent, char complaint[STATE_DIR_COMPLAINT_BYTES])
{
	struct state_dir_search search = {state, complaint, !slot && !agent};

	*state = (struct state_dir){.workers_fd = -1,
		.runs_fd = -1,
		.dir_fd = -1,
		.lock_fd = -1,
		.outbox_fd = -1,
		.records_fd = -1,
		.resumes = agent ? worker_id : NULL};
	complaint[0] = 0;
	snprintf(state->home, sizeof state->home, "%s", home);
	int r = name_of(state->name, slot, worker_id, agent);
	if (r == 0)
		r = open_dirs(state);
	if (r == -EBUSY && slot)
		return complain(complaint, STATE_DIR_COMPLAINT_BYTES, r,
			"another worker on this machine has the slot %s", slot);
	if (r == -EBUSY && agent)
		return complain(complaint, STATE_DIR_COMPLAINT_BYTES, r,
			"%s is at work already on this machine", worker_id);
	if (r == 0) {
		read_predecessor(state, state->dir_fd);
		r = take_over(state, state->dir_fd, complaint);
	}
	if (r == 0)
		r = file_each(state->workers_fd, DEAD_MAX, look_at_dir, &search);
	if (r == 0)
		r = state_dir_note_worker(state, worker_id);
	if (r < 0 && !complaint[0])
		snprintf(complaint, STATE_DIR_COMPLAINT_BYTES, "%s cannot be used: %s", home, strerror(-r));
	return r;
}

void state_dir_close(struct state_dir *state, bool clean)
{
	int *const fds[] = {&state->outbox_fd, &state->records_fd, &state->dir_fd, &state->lock_fd,
		&state->workers_fd, &state->runs_fd};

	if (clean && state->lock_fd >= 0)
		remove_dir(state->workers_fd, state->dir_fd, state->name, !state->not_ours);
	for (size_t i = 0; i < sizeof fds / sizeof *fds; i++) {
		if (*fds[i] >= 0)
			close(*fds[i]);
		*fds[i] = -1;
	}
}
