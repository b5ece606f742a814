#include "worktree/worktrees.h"

#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/file.h>
#include <unistd.h>

#include "base/files.h"
#include "base/log.h"
#include "base/take.h"
#include "wire/json/json.h"
#include "worktree/worktree.h"

enum {
	TREES_MAX = 10000,
	OUT_BYTES_MAX = 64 << 20,
	EXIT_CONFIG = 78,
};

/* One pass over all of them. */
struct pass {
	const char *home;
	bool landlock_optional;
	bool heals;  /* only trees that a dead worker left */
	bool prunes; /* also trees that were kept */
	int records_fd;
	uv_loop_t loop;
	struct host *host; /* opened when the first one needs it */
	struct buf out;    /* rows, or members of a list */
	bool json;
	uint32_t looked, removed, kept;
	char complaint[HOST_COMPLAINT_BYTES];
};

/* A worker, or somebody who prunes, works with it. */
static bool is_busy(const struct pass *pass, const char *name)
{
	char path[300];

	snprintf(path, sizeof path, "%s/lock", name);
	cleanup(close_at) int fd = openat(pass->records_fd, path, O_RDWR | O_NOFOLLOW | O_CLOEXEC);
	return fd >= 0 && flock(fd, LOCK_EX | LOCK_NB) < 0;
}

static int open_host(struct pass *pass)
{
	struct host_options options = {.landlock_optional = pass->landlock_optional};

	if (pass->host)
		return 0;
	int r = uv_loop_init(&pass->loop);
	if (r < 0)
		return r;
	return host_open(&pass->loop, &options, &pass->host, pass->complaint);
}

static void close_host(struct pass *pass)
{
	if (!pass->host)
		return;
	host_close(pass->host);
	while (uv_run(&pass->loop, UV_RUN_DEFAULT))
		;
	uv_loop_close(&pass->loop);
}

static void on_ended(void *context)
{
	uv_stop(context);
}

/* Look after one. `ret_gone`: nothing is left of it. -EBUSY, -ENOENT: it is not there any more. */
static int look_after(struct pass *pass, const char *name, struct worktree_record *record, bool *ret_gone)
{
	struct worktree_site site = {.home = pass->home};
	struct worktree *tree;
	char run[80];

	int fault = open_host(pass);
	if (fault)
		return fault;
	snprintf(run, sizeof run, "trees-%d-%u", (int)getpid(), ++pass->looked);
	site.loop = &pass->loop;
	site.host = pass->host;
	site.run = run;
	fault = worktree_open(&site, name, &tree);
	if (fault)
		return fault;
	worktree_end(tree, on_ended, &pass->loop);
	uv_run(&pass->loop, UV_RUN_DEFAULT);
	*record = *worktree_record(tree);
	*ret_gone = worktree_is_gone(tree);
	worktree_free(tree);
	uv_run(&pass->loop, UV_RUN_NOWAIT);
	return 0;
}

static int put_json(struct pass *pass, const struct worktree_record *record, const char *state)
{
	struct json_object object;
	int r = pass->out.len > 0 ? buf_put_byte(&pass->out, ',') : 0;

	if (r < 0)
		return r;
	json_begin(&object, &pass->out);
	json_member_string(&object, "name", span_of(record->name));
	json_member_string(&object, "state", span_of(state));
	json_member_string(&object, "task", span_of(record->task));
	json_member_string(&object, "fence", span_of(record->fence));
	json_member_string(&object, "path", span_of(record->path));
	json_member_string(&object, "branch", span_of(record->branch));
	json_member_string(&object, "source", span_of(record->source));
	json_member_string(&object, "reason", span_of(record->kept));
	json_member_int(&object, "since", record->since_ms);
	return json_end(&object);
}

static int put_row(struct pass *pass, const struct worktree_record *record, const char *state)
{
	if (pass->json)
		return put_json(pass, record, state);
	return buf_printf(&pass->out, "%-24s %-8s %s%s%s\n", record->name, state, record->path,
		record->kept[0] && strcmp(state, "removed") != 0 ? "  " : "",
		strcmp(state, "removed") != 0 ? record->kept : "");
}

static int each(void *context, const char *name)
{
	struct pass *pass = context;
	struct worktree_record record;
	bool gone = false, busy = is_busy(pass, name);
	int r = worktree_record_read(pass->records_fd, name, &record);

	if (r < 0 && r != -ENOENT) {
		log_warn("the record of a work tree cannot be read", log_cstr("name", name),
			log_cstr("reason", strerror(-r)));
		return 0;
	}
	bool due = !busy && (r == -ENOENT || pass->prunes || (pass->heals && record.state != TREE_KEPT));
	if (due) {
		int fault = look_after(pass, name, &record, &gone);
		if (fault == -ENOENT)
			return 0;
		if (fault && fault != -EBUSY)
			return fault;
		busy = fault == -EBUSY;
	} else if (r == -ENOENT) {
		return 0;
	}
	pass->removed += gone;
	pass->kept += !gone && !busy;
	if (pass->heals)
		return 0;
	return put_row(pass, &record, gone ? "removed" : busy ? "live" : worktree_state_name(record.state));
}

static int go_over(struct pass *pass)
{
	buf_init(&pass->out, OUT_BYTES_MAX);
	pass->records_fd = worktree_records_open(pass->home);
	int r = pass->records_fd < 0 ? pass->records_fd : file_each(pass->records_fd, TREES_MAX, each, pass);
	close_host(pass);
	close_at(&pass->records_fd);
	return r;
}

uint32_t worktrees_heal(const char *home, bool landlock_optional)
{
	struct pass pass = {.home = home, .landlock_optional = landlock_optional, .heals = true};

	int r = go_over(&pass);
	if (r < 0)
		log_warn("work trees that a worker left cannot be looked after",
			log_cstr("reason", pass.complaint[0] ? pass.complaint : strerror(-r)));
	buf_done(&pass.out);
	return pass.looked;
}

int worktrees_list(const char *home, bool landlock_optional, bool prune, bool json)
{
	struct pass pass = {
		.home = home, .landlock_optional = landlock_optional, .prunes = prune, .json = json};

	int r = go_over(&pass);
	if (r == -ENOENT) /* where nobody has worked there is not even a directory */
		r = 0;
	if (r < 0)
		fprintf(stderr, "stint-worker: %s\n", pass.complaint[0] ? pass.complaint : strerror(-r));
	else if (json)
		printf("{\"schema\":1,\"ok\":true,\"worktrees\":[%.*s]}\n", (int)pass.out.len,
			pass.out.len > 0 ? pass.out.data : "");
	else if (pass.out.len > 0)
		fwrite(pass.out.data, 1, pass.out.len, stdout);
	else
		puts("no work trees");
	buf_done(&pass.out);
	return r == 0 ? 0 : pass.complaint[0] ? EXIT_CONFIG : 1;
}
