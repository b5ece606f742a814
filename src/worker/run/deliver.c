/*
 * Delivering the work of an agent: a step of ours, once its processes are gone and its checks have passed.
 *
 *	branch   what it did not commit is committed on the branch of its work tree; the branch is pushed if there is a remote "origin"
 *	pr       the same, and gh opens a pull request for the branch, unless there is one
 *
 * Committing runs as the agent ran: its tree may have filters. Pushing and gh have the person's login, and nothing of the tree: they
 * run on the repository alone, whose configuration and hooks no task can write. What cannot be delivered is no failure of the work:
 * the task goes to review, and its evidence says why.
 */
#include "worker/run/parts.h"

#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "agent/settings.h"
#include "base/take.h"
#include "base/utf8.h"

enum {
	DELIVER_MS = 5 * 60 * 1000,
	LOGIN_GRANTS_MAX = 64,
	TITLE_BYTES = 200,
	BODY_BYTES = 16 << 10,
	COMMITS_MAX = 100,
};

static const char *const way_names[] = {
	[DELIVER_NONE] = "none", [DELIVER_BRANCH] = "branch", [DELIVER_PR] = "pr"};

static enum deliver way_of(const struct run *run)
{
	return run->executor->agent->deliver;
}

static void finish(struct run *run)
{
	struct run_agent *agent = run->agent;

	agent->checking = false;
	agent->checked(run);
}

/* The last program failed; or it cannot be run at all. */
static void give_up(struct run *run, const char *what, const char *why)
{
	struct run_agent *agent = run->agent;

	agent->undelivered = arena_text(&run->arena, "%s: %s", what, why);
	session_note(&agent->session,
		span_of(arena_text(&run->arena, "stint: the work is done and cannot be delivered: %s",
			agent->undelivered)));
	finish(run);
}

static void give_up_after(struct run *run, const char *what)
{
	char why[400];

	if (run->stop != STOP_NOT) { /* killed with its task */
		finish(run);
		return;
	}
	job_explain(&run->agent->check, why, sizeof why);
	give_up(run, what, why);
}

/* ---- with the person's login ---------------------------------------------------------------------------------- */

struct grants {
	struct run *run;
	struct grant items[LOGIN_GRANTS_MAX];
	size_t count;
};

static void add(struct grants *grants, const char *path, enum grant_access access, bool direct)
{
	if (path && path[0] == '/' && grants->count < LOGIN_GRANTS_MAX)
		grants->items[grants->count++] = (struct grant){
			.path = path, .fd = -1, .access = access, .optional = true, .direct = direct};
}

static void add_path(struct grants *grants)
{
	const char *at = getenv("PATH");

	while (at && *at) {
		size_t len = strcspn(at, ":");
		add(grants, arena_text(&grants->run->arena, "%.*s", (int)len, at), GRANT_READ, false);
		at += len + (at[len] == ':');
	}
}

/* What git and gh know of the person. */
static void add_login(struct grants *grants)
{
	static const char *const names[] = {".gitconfig", ".config/git", ".git-credentials", ".netrc", ".ssh",
		".config/gh", ".local/share/gh"};
	const char *home = getenv("HOME");

	for (size_t i = 0; home && i < sizeof names / sizeof *names; i++)
		add(grants, arena_text(&grants->run->arena, "%s/%s", home, names[i]), GRANT_READ, false);
	add(grants, getenv("GH_CONFIG_DIR"), GRANT_READ, false);
}

/* One program of ours, in the repository. */
struct call {
	const char *const *argv;
	const char *remote; /* a repository on this machine that it pushes to; NULL: none */
	struct span input;
	bool at_source; /* where the person works, as gh wants it; else in the repository itself */
};

static int start(struct run *run, const struct call *call, void (*done)(void *run))
{
	static const char *const allowed[] = {"PATH", "HOME", "USER", "LOGNAME", "LANG", "XDG_CONFIG_HOME",
		"SSH_AUTH_SOCK", "GH_TOKEN", "GITHUB_TOKEN", "GH_HOST", "GH_ENTERPRISE_TOKEN",
		"GH_CONFIG_DIR", "HTTPS_PROXY", "https_proxy", "NO_PROXY", "no_proxy", "SSL_CERT_FILE",
		"SSL_CERT_DIR", NULL};
	static const char *const env[] = {"GIT_TERMINAL_PROMPT=0", "GH_NO_UPDATE_NOTIFIER=1",
		"GH_PROMPT_DISABLED=1", "GIT_CONFIG_COUNT=2", "GIT_CONFIG_KEY_0=core.hooksPath",
		"GIT_CONFIG_VALUE_0=/dev/null", "GIT_CONFIG_KEY_1=core.fsmonitor", "GIT_CONFIG_VALUE_1=false",
		NULL};
	const struct worktree_record *record = worktree_record(run->tree);
	struct grants grants = {.run = run};
	struct process_spec spec = process_spec_default();
	cleanup(close_at) int dir_fd = open(call->at_source ? record->source : record->common,
		O_PATH | O_DIRECTORY | O_NOFOLLOW | O_CLOEXEC);

	if (dir_fd < 0)
		return -errno;
	add_path(&grants);
	add_login(&grants);
	add(&grants, record->source, GRANT_READ, true);
	add(&grants, record->common, GRANT_WRITE, true);
	add(&grants, call->remote, GRANT_WRITE, true);
	spec.run = run->name;
	spec.argv = call->argv;
	spec.env = env;
	spec.env_allow = allowed;
	spec.workdir_fd = dir_fd;
	spec.stdin_from = call->input.len > 0 ? STDIN_BYTES : STDIN_NULL;
	spec.input = call->input;
	spec.confine.grants = grants.items;
	spec.confine.grant_count = grants.count;
	spec.confine.keep_out = run->supervisor->state_dir.home;
	spec.confine.workdir_read_only = call->at_source;
	spec.confine.limits = limits_default();
	spec.confine.limits.file_bytes = LIMIT_UNCHANGED;
	return job_start(&run->agent->check, &spec, DELIVER_MS, done);
}

static void go_on(struct run *run, const struct call *call, const char *what, void (*done)(void *run))
{
	int r = start(run, call, done);

	if (r < 0)
		give_up(run, what, strerror(-r));
}

/* ---- the pull request ----------------------------------------------------------------------------------------- */

static void be_delivered(struct run *run, const char *what)
{
	session_note(&run->agent->session, span_of(arena_text(&run->arena, "stint: %s", what)));
	finish(run);
}

static void note_link(struct run *run, struct span url)
{
	while (url.len > 0 && strchr(" \t\r\n", url.data[url.len - 1]))
		url.len--;
	for (size_t i = url.len; i > 0; i--) { /* the last line */
		if (url.data[i - 1] == '\n') {
			url = (struct span){url.data + i, url.len - i};
			break;
		}
	}
	if (url.len > 0 && url.len < 2000 && utf8_is_text(url))
		run->agent->link = arena_text(&run->arena, "%.*s", SPAN_ARGS(url));
}

static void on_created(void *context)
{
	struct run *run = context;

	if (!job_went_well(&run->agent->check)) {
		give_up_after(run, "gh pr create");
		return;
	}
	note_link(run, buf_span(&run->agent->check.out));
	be_delivered(run,
		arena_text(
			&run->arena, "the pull request is %s", run->agent->link ? run->agent->link : "open"));
}

static struct span title_of(struct run *run)
{
	struct json_complaint complaint;
	cleanup(yyjson_doc_free_at) yyjson_doc *doc =
		json_read_to(run->input, JSON_REPLY_DEPTH_MAX, &complaint);
	struct span title =
		utf8_cut(json_text(yyjson_obj_get(yyjson_doc_get_root(doc), "title")), TITLE_BYTES);
	size_t line = 0;

	while (line < title.len && title.data[line] != '\n')
		line++;
	const char *kept = line > 0 ? arena_text(&run->arena, "%.*s", (int)line, title.data)
				    : arena_text(&run->arena, "stint task %s", run->task);
	return span_of(kept);
}

/* The branch that the work is for, if the tree began with one that has a name. NULL: the repository's usual one. */
static const char *base_of(const struct run *run)
{
	const char *base = run->tree_wish.base;

	if (strncmp(base, "origin/", 7) == 0)
		base += 7;
	bool is_commit = strlen(base) >= 7 && strspn(base, "0123456789abcdef") == strlen(base);
	return is_commit || base[0] == '-' || strpbrk(base, "~^@:") || strcmp(base, "HEAD") == 0 ? NULL
												 : base;
}

static void create_request(struct run *run)
{
	const struct worktree_record *record = worktree_record(run->tree);
	const char *base = base_of(run);
	const char *argv[] = {"gh", "pr", "create", "--head", record->branch, "--title", title_of(run).data,
		"--body-file", "-", base ? "--base" : NULL, base, NULL};
	cleanup(buf_done) struct buf body = {0};

	buf_init(&body, 2 * BODY_BYTES);
	buf_put_span(&body, utf8_cut(buf_span(&run->agent->session.words), BODY_BYTES));
	buf_printf(&body, "\n\nTask %s of stint.\n", run->task);
	go_on(run, &(struct call){.argv = argv, .input = buf_span(&body), .at_source = true}, "gh",
		on_created);
}

static void on_listed(void *context)
{
	struct run *run = context;
	struct json_complaint complaint;

	if (!job_went_well(&run->agent->check)) {
		give_up_after(run, "gh pr list");
		return;
	}
	cleanup(yyjson_doc_free_at) yyjson_doc *doc =
		json_read_to(buf_span(&run->agent->check.out), JSON_REPLY_DEPTH_MAX, &complaint);
	yyjson_val *first = yyjson_arr_get_first(yyjson_doc_get_root(doc));
	if (!first) {
		create_request(run);
		return;
	}
	note_link(run, json_text(yyjson_obj_get(first, "url")));
	be_delivered(run,
		arena_text(&run->arena, "the pull request %s has what is new",
			run->agent->link ? run->agent->link : ""));
}

static void look_for_request(struct run *run)
{
	const char *argv[] = {"gh", "pr", "list", "--head", worktree_record(run->tree)->branch, "--state",
		"open", "--limit", "1", "--json", "url", NULL};

	go_on(run, &(struct call){.argv = argv, .at_source = true}, "gh", on_listed);
}

/* ---- the branch ----------------------------------------------------------------------------------------------- */

static void on_pushed(void *context)
{
	struct run *run = context;

	if (!job_went_well(&run->agent->check))
		give_up_after(run, "git push");
	else if (way_of(run) == DELIVER_PR)
		look_for_request(run);
	else
		be_delivered(run,
			arena_text(&run->arena, "branch %s is pushed to origin",
				worktree_record(run->tree)->branch));
}

/* A branch that was pushed before may have been rewritten since; nobody else's commits give way. */
static void on_remote(void *context)
{
	struct run *run = context;
	struct run_agent *agent = run->agent;
	const char *branch = worktree_record(run->tree)->branch;
	char url[4096];
	const char *argv[] = {"git", "push", "--quiet", "--force-with-lease", "origin",
		arena_text(&run->arena, "refs/heads/%s:refs/heads/%s", branch, branch), NULL};

	if (!job_went_well(&agent->check) && run->stop == STOP_NOT && way_of(run) == DELIVER_BRANCH &&
		agent->check.end.how == ENDED_EXIT) { /* nowhere to push to */
		be_delivered(run, arena_text(&run->arena, "the work is on branch %s", branch));
		return;
	}
	if (!job_went_well(&agent->check)) {
		give_up_after(run, "git remote get-url origin");
		return;
	}
	struct span out = buf_span(&agent->check.out);
	const char *end = out.len > 0 ? memchr(out.data, '\n', out.len) : NULL; /* no 0 ends the output */
	out.len = end ? (size_t)(end - out.data) : out.len;
	snprintf(url, sizeof url, "%.*s", SPAN_ARGS(out));
	const char *local = strncmp(url, "file://", 7) == 0 ? url + 7 : url[0] == '/' ? url : NULL;
	go_on(run,
		&(struct call){.argv = argv, .remote = local ? arena_text(&run->arena, "%s", local) : NULL},
		"git push", on_pushed);
}

/* Lines of "COMMIT title". */
static void note_commits(struct run *run, struct span lines)
{
	struct run_agent *agent = run->agent;
	struct json_object commit;

	buf_clear(&agent->commits);
	while (lines.len > 0) {
		const char *newline = memchr(lines.data, '\n', lines.len), *blank;
		size_t len = newline ? (size_t)(newline - lines.data) : lines.len;
		blank = memchr(lines.data, ' ', len);
		size_t id_len = blank ? (size_t)(blank - lines.data) : len;
		if (agent->commits.len > 0)
			buf_put_byte(&agent->commits, ',');
		json_begin(&commit, &agent->commits);
		json_member_string(&commit, "id", (struct span){lines.data, id_len});
		if (blank)
			json_member_string(&commit, "title",
				utf8_cut((struct span){blank + 1, len - id_len - 1}, TITLE_BYTES));
		json_end(&commit);
		lines.data += len + (newline != NULL);
		lines.len -= len + (newline != NULL);
	}
}

static void on_committed(void *context)
{
	static const char *const argv[] = {"git", "remote", "get-url", "--push", "origin", NULL};
	struct run *run = context;
	struct run_agent *agent = run->agent;

	if (!job_went_well(&agent->check)) {
		give_up_after(run, "git commit");
		return;
	}
	note_commits(run, buf_span(&agent->check.out));
	if (agent->commits.len == 0) {
		be_delivered(run, "there is no change to deliver");
		return;
	}
	go_on(run, &(struct call){.argv = argv}, "git", on_remote);
}

static bool is_wanted(const struct run *run)
{
	const struct run_agent *agent = run->agent;

	return way_of(run) != DELIVER_NONE && agent->worked && !agent->reported_trouble &&
		!agent->check_failed && run->stop == STOP_NOT;
}

bool run_deliver(struct run *run, void (*delivered)(struct run *run))
{
	static const char script[] =
		"git add --all >&2 && { git diff --cached --quiet || git -c core.hooksPath=/dev/null commit --quiet -m \"$1\" >&2; } && "
		"git log --max-count=\"$3\" --format='%H %s' \"$2..HEAD\"";
	struct run_agent *agent = run->agent;

	if (!is_wanted(run))
		return false;
	if (!run->tree) {
		session_note(&agent->session,
			SPAN("stint: nothing is delivered: the task has no work tree of its own"));
		return false;
	}
	const char *argv[] = {"sh", "-c", script, "sh", title_of(run).data, worktree_record(run->tree)->base,
		arena_text(&run->arena, "%d", COMMITS_MAX), NULL};
	agent->checked = delivered;
	agent->checking = true;
	session_note(&agent->session,
		span_of(arena_text(
			&run->arena, "stint: the work is delivered (%s)", way_names[way_of(run)])));
	int r = run_start_beside(run, argv, DELIVER_MS, on_committed);
	if (r < 0)
		give_up(run, "git", strerror(-r));
	return true;
}
