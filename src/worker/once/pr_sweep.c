#include "worker/once/sweep.h"

#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "attempt/job.h"
#include "base/complain.h"
#include "base/take.h"
#include "wire/http/client.h"

enum {
	GH_MS = 60 * 1000,
	CALL_MS = 10 * 1000,
	BODY_BYTES_MAX = 256 << 10,
	PATH_DIRS_MAX = 64,
	PATH_BYTES = 4096,
	TITLE_BYTES_MAX = 150,
	OID_SHOWN = 12,
};

struct sweeping {
	const struct supervisor_options *options;
	const char *program; /* gh, or that of the configuration */
	const struct settings_sweep *sweep;
	struct sweep_result *result;
	uv_loop_t loop;
	struct job job;
	struct grant grants[PATH_DIRS_MAX + 4];
	size_t grant_count;
	char paths[PATH_DIRS_MAX + 4][PATH_BYTES];
};

/* ---- gh ----------------------------------------------------------------------------------------------------- */

static void grant(struct sweeping *sweeping, const char *path, size_t len)
{
	size_t at = sweeping->grant_count;

	const char *state = sweeping->options->home;

	/* nothing above the state directory: it is kept out of reach */
	if (at == sizeof sweeping->grants / sizeof *sweeping->grants || path[0] != '/' || len < 2 ||
		len >= PATH_BYTES ||
		(strncmp(path, state, len) == 0 && (state[len] == '/' || state[len] == 0)))
		return;
	snprintf(sweeping->paths[at], PATH_BYTES, "%.*s", (int)len, path);
	sweeping->grants[at] =
		(struct grant){.path = sweeping->paths[at], .fd = -1, .access = GRANT_READ, .optional = true};
	sweeping->grant_count++;
}

/* Is it in that directory of the PATH? */
static bool lies_in(const char *dir, size_t len, const char *program)
{
	char path[PATH_BYTES];
	int full = snprintf(path, sizeof path, "%.*s/%s", (int)len, dir, program);

	return len > 0 && full > 0 && (size_t)full < sizeof path && access(path, X_OK) == 0;
}

/* A program that is named by its path, and the files among its arguments. */
static bool grant_named(struct sweeping *sweeping)
{
	const char *const *argv = sweeping->sweep->argv;
	const char *slash = strrchr(sweeping->program, '/');

	for (; argv && *argv; argv++)
		grant(sweeping, *argv, strlen(*argv));
	if (slash)
		grant(sweeping, sweeping->program, (size_t)(slash - sweeping->program));
	return slash && access(sweeping->program, X_OK) == 0;
}

/* Where programs lie, and what gh knows about its user. Is it there? */
static bool look_for_program(struct sweeping *sweeping)
{
	const char *at = getenv("PATH"), *home = getenv("HOME"), *config = getenv("GH_CONFIG_DIR");
	bool found = grant_named(sweeping), is_name = !strchr(sweeping->program, '/');
	char path[PATH_BYTES];

	while (at && *at) {
		size_t len = strcspn(at, ":");
		found |= is_name && lies_in(at, len, sweeping->program);
		if (sweeping->grant_count < PATH_DIRS_MAX)
			grant(sweeping, at, len);
		at += len + (at[len] == ':');
	}
	if (config)
		grant(sweeping, config, strlen(config));
	if (home && (size_t)snprintf(path, sizeof path, "%s/.config/gh", home) < sizeof path)
		grant(sweeping, path, strlen(path));
	return found;
}

/* The worker's own PATH has no directory in which tasks may write: one of them could leave a program there that then gets the
 * person's token. A program that is only there is not missing, and the person should know. */
static int complain_of_missing(struct sweeping *sweeping)
{
	const struct settings *settings = sweeping->options->settings;
	char *complaint = sweeping->result->complaint;
	const char *program = sweeping->program;

	for (uint32_t i = 0; i < settings->path_count && !strchr(program, '/'); i++) {
		const char *dir = settings->path[i].name;
		if (lies_in(dir, strlen(dir), program))
			return complain(complaint, SWEEP_COMPLAINT_BYTES, -ENOENT,
				"%s lies in %.200s, where tasks may write, so it is not run: it would get your login; put it into a directory of the PATH that is beneath no root; nothing was changed",
				program, dir);
	}
	if (sweeping->sweep->argv)
		return complain(complaint, SWEEP_COMPLAINT_BYTES, -ENOENT,
			"the program of prSweep, %.200s, is not there or cannot be run; nothing was changed",
			program);
	return complain(complaint, SWEEP_COMPLAINT_BYTES, -ENOENT,
		"gh is not in the PATH: install GitHub's command line and log in with gh auth login; nothing was changed");
}

static void on_gh_ended(void *context)
{
	struct sweeping *sweeping = context;

	uv_stop(&sweeping->loop);
}

static void on_closed(void *context)
{
	(void)context;
}

static int start_gh(struct sweeping *sweeping)
{
	static const char *const allowed[] = {"PATH", "HOME", "LANG", "GH_TOKEN", "GITHUB_TOKEN", "GH_HOST",
		"GH_ENTERPRISE_TOKEN", "GH_CONFIG_DIR", "HTTPS_PROXY", "https_proxy", "NO_PROXY", "no_proxy",
		"SSL_CERT_FILE", "SSL_CERT_DIR", NULL};
	static const char *const env[] = {"GH_NO_UPDATE_NOTIFIER=1", "GH_PROMPT_DISABLED=1", NULL};
	const char *repository = sweeping->sweep->repository;
	const char *argv[] = {"gh", "pr", "list", "--state", "open", "--limit", "100", "--json",
		"number,title,url,isDraft,reviewDecision,headRefOid", repository ? "--repo" : NULL,
		repository, NULL};
	struct process_spec spec = process_spec_default();
	char run[PROCESS_RUN_BYTES_MAX];

	/* with a repository it looks at no file; without one it finds it in the directory we are in */
	bool is_anywhere = repository || sweeping->sweep->argv;
	cleanup(close_at) int workdir_fd = open(is_anywhere ? "/usr" : ".", O_PATH | O_DIRECTORY | O_CLOEXEC);
	if (workdir_fd < 0)
		return -errno;
	snprintf(run, sizeof run, "sweep-%d-%llu", (int)getpid(), (unsigned long long)uv_hrtime());
	spec.run = run;
	spec.argv = sweeping->sweep->argv ? sweeping->sweep->argv : argv;
	spec.env = env;
	spec.env_allow = allowed;
	spec.workdir_fd = workdir_fd;
	spec.output_bytes_max[STREAM_OUT] = PROCESS_OUTPUT_BYTES_MAX;
	spec.confine.grants = sweeping->grants;
	spec.confine.grant_count = sweeping->grant_count;
	spec.confine.keep_out = sweeping->options->home;
	spec.confine.workdir_read_only = true;
	spec.confine.limits = limits_default();
	return job_start(&sweeping->job, &spec, GH_MS, on_gh_ended);
}

static int ask_gh(struct sweeping *sweeping)
{
	char why[400];

	int r = start_gh(sweeping);
	if (r == -EXDEV)
		return complain(sweeping->result->complaint, SWEEP_COMPLAINT_BYTES, r,
			"the state of stint lies beneath this directory: go to the repository itself, or say --repository OWNER/NAME");
	if (r < 0)
		return complain(sweeping->result->complaint, SWEEP_COMPLAINT_BYTES, r,
			"%.200s cannot be run: %s", sweeping->program, strerror(-r));
	uv_run(&sweeping->loop, UV_RUN_DEFAULT);
	if (sweeping->job.timed_out)
		return complain(sweeping->result->complaint, SWEEP_COMPLAINT_BYTES, -ETIMEDOUT,
			"%.200s did not answer within %d s", sweeping->program, GH_MS / 1000);
	if (job_went_well(&sweeping->job))
		return 0;
	job_explain(&sweeping->job, why, sizeof why);
	return complain(sweeping->result->complaint, SWEEP_COMPLAINT_BYTES, -EIO, "%.100s failed: %s",
		sweeping->program, why);
}

/* ---- tasks ------------------------------------------------------------------------------------------------------ */

static const char *text_at(yyjson_val *object, const char *key)
{
	const char *text = yyjson_get_str(yyjson_obj_get(object, key));

	return text ? text : "";
}

/* https://github.com/owner/name/pull/7 → owner/name */
static struct span repository_of(const char *url)
{
	const char *host = strstr(url, "://"), *path = host ? strchr(host + 3, '/') : NULL;
	const char *end = path ? strstr(path, "/pull/") : NULL;

	return end ? (struct span){path + 1, (size_t)(end - path - 1)} : (struct span){0};
}

/* Not a draft, and nobody has approved it. */
static bool needs_attention(yyjson_val *pr)
{
	return yyjson_is_int(yyjson_obj_get(pr, "number")) && repository_of(text_at(pr, "url")).len > 0 &&
		!yyjson_is_true(yyjson_obj_get(pr, "isDraft")) &&
		strcmp(text_at(pr, "reviewDecision"), "APPROVED") != 0;
}

static int put_task(struct sweeping *sweeping, struct buf *body, yyjson_val *pr)
{
	long long number = yyjson_get_sint(yyjson_obj_get(pr, "number"));
	struct span repository = repository_of(text_at(pr, "url"));
	char id[128], key[160], title[TITLE_BYTES_MAX + 80], payload[600];
	struct json_object object;

	snprintf(key, sizeof key, "pr:%.*s#%lld", (int)repository.len, repository.data, number);
	snprintf(id, sizeof id, "pr-%.*s-%lld-%.*s", (int)repository.len < 60 ? (int)repository.len : 60,
		repository.data, number, OID_SHOWN, text_at(pr, "headRefOid"));
	for (char *at = id; *at; at++) {
		if (*at == '/')
			*at = '.';
	}
	snprintf(title, sizeof title, "Review #%lld: %.*s", number, TITLE_BYTES_MAX, text_at(pr, "title"));
	snprintf(payload, sizeof payload, "%.500s", text_at(pr, "url"));
	buf_clear(body);
	json_begin(&object, body);
	json_member_string(&object, "id", span_of(id));
	json_member_string(&object, "uniqueKey", span_of(key));
	json_member_string(&object, "title", span_of(title));
	json_member_string(&object, "queue", span_of(sweeping->sweep->queue));
	if (sweeping->sweep->executor)
		json_member_string(&object, "executor", span_of(sweeping->sweep->executor));
	json_member_raw(&object, "labels", SPAN("[\"pr-review\"]"));
	json_member_string(&object, "instructions", span_of(payload));
	cleanup(buf_done) struct buf copy = {0};
	buf_init(&copy, BODY_BYTES_MAX);
	if (json_put_value(&copy, pr) == 0)
		json_member_raw(&object, "payload", buf_span(&copy));
	return json_end(&object);
}

/* 1: it is new; 0: it is there already. */
static int add_task(struct sweeping *sweeping, struct http_client *client, struct span body)
{
	struct http_answer *answer;
	enum http_reach reach;
	struct http_call call = {
		.method = HTTP_METHOD_POST,
		.target = SPAN("/api/tasks"),
		.body = body,
		.token = span_of(sweeping->options->token),
		.may_repeat = true, /* by its id */
		.timeout_ms = CALL_MS,
	};

	int r = http_client_call(client, &call, &answer, &reach);
	if (r < 0)
		return complain(sweeping->result->complaint, SWEEP_COMPLAINT_BYTES, r,
			"the server at %.200s does not answer: %s; start it (stint up), or name another with --url",
			sweeping->options->url, strerror(-r));
	int status = http_answer_status(answer);
	if (status == 201 || status == 200 || status == 409)
		return status == 201;
	return complain(sweeping->result->complaint, SWEEP_COMPLAINT_BYTES, -EIO,
		"the server refuses the tasks of the sweep, with status %d", status);
}

static int add_prs(struct sweeping *sweeping, struct http_client *client, struct buf *body)
{
	struct json_complaint complaint;
	cleanup(yyjson_doc_free_at) yyjson_doc *doc = json_read(buf_span(&sweeping->job.out), &complaint);
	yyjson_val *list = yyjson_doc_get_root(doc), *pr;
	size_t index, count;
	int r = 0;

	if (!yyjson_is_arr(list))
		return complain(sweeping->result->complaint, SWEEP_COMPLAINT_BYTES, -EPROTO,
			"gh did not print a list of pull requests");
	yyjson_arr_foreach(list, index, count, pr)
	{
		if (r < 0 || !needs_attention(pr))
			continue;
		sweeping->result->found++;
		r = put_task(sweeping, body, pr);
		if (r == 0)
			r = add_task(sweeping, client, buf_span(body));
		sweeping->result->added += r == 1;
	}
	return r;
}

/* A task as the program printed it; queue and executor as configured, if it names none. */
static int put_line(struct sweeping *sweeping, struct buf *body, yyjson_val *task)
{
	struct json_object object;
	yyjson_val *key, *value;
	size_t at, count;

	buf_clear(body);
	json_begin(&object, body);
	yyjson_obj_foreach(task, at, count, key, value)
	{
		if (json_put_key(&object, yyjson_get_str(key)))
			json_put_value(body, value);
	}
	if (!yyjson_obj_get(task, "queue"))
		json_member_string(&object, "queue", span_of(sweeping->sweep->queue));
	if (sweeping->sweep->executor && !yyjson_obj_get(task, "executor"))
		json_member_string(&object, "executor", span_of(sweeping->sweep->executor));
	return json_end(&object);
}

static int add_line(struct sweeping *sweeping, struct http_client *client, struct buf *body, struct span line,
	uint32_t number)
{
	struct json_complaint complaint;
	cleanup(yyjson_doc_free_at) yyjson_doc *doc = json_read(line, &complaint);
	yyjson_val *task = yyjson_doc_get_root(doc);
	bool has_name = yyjson_get_len(yyjson_obj_get(task, "id")) > 0 ||
		yyjson_get_len(yyjson_obj_get(task, "uniqueKey")) > 0;

	if (!yyjson_is_obj(task))
		return complain(sweeping->result->complaint, SWEEP_COMPLAINT_BYTES, -EPROTO,
			"line %u of what %.200s printed is no task: it must be one JSON object", number,
			sweeping->program);
	if (!has_name)
		return complain(sweeping->result->complaint, SWEEP_COMPLAINT_BYTES, -EPROTO,
			"the task in line %u of what %.200s printed has neither id nor uniqueKey: every sweep would add it again",
			number, sweeping->program);
	sweeping->result->found++;
	int r = put_line(sweeping, body, task);
	if (r == 0)
		r = add_task(sweeping, client, buf_span(body));
	sweeping->result->added += r == 1;
	return r < 0 ? r : 0;
}

static int add_lines(struct sweeping *sweeping, struct http_client *client, struct buf *body)
{
	struct span rest = buf_span(&sweeping->job.out);
	uint32_t number = 0;
	int r = 0;

	while (r == 0 && rest.len > 0) {
		const char *end = memchr(rest.data, '\n', rest.len);
		size_t len = end ? (size_t)(end - rest.data) : rest.len;
		struct span line = {rest.data, len};
		number++;
		if (len > 0)
			r = add_line(sweeping, client, body, line, number);
		rest = (struct span){rest.data + len + (end != NULL), rest.len - len - (end != NULL)};
	}
	return r;
}

static int add_tasks(struct sweeping *sweeping)
{
	struct http_answer_limits limits = http_answer_limits_default();
	cleanup(buf_done) struct buf body = {0};

	struct http_client *client = http_client_new(&sweeping->options->address, &limits);
	if (!client)
		return complain(sweeping->result->complaint, SWEEP_COMPLAINT_BYTES, -ENOMEM, "no memory");
	buf_init(&body, BODY_BYTES_MAX);
	int r = sweeping->sweep->argv ? add_lines(sweeping, client, &body) : add_prs(sweeping, client, &body);
	http_client_free(client);
	return r < 0 ? r : 0;
}

/* The output of gh is the job's: the tasks are added before it is closed. */
static int sweep_with_gh(struct sweeping *sweeping)
{
	struct host_options options = {.landlock_optional = sweeping->options->settings->landlock_optional};
	char complaint[HOST_COMPLAINT_BYTES];
	struct host *host;

	int r = host_open(&sweeping->loop, &options, &host, complaint);
	if (r < 0)
		return complain(sweeping->result->complaint, SWEEP_COMPLAINT_BYTES, r, "%s", complaint);
	job_init(&sweeping->job, &sweeping->loop, host, sweeping);
	r = ask_gh(sweeping);
	if (r == 0)
		r = add_tasks(sweeping);
	job_close(&sweeping->job, on_closed);
	host_close(host);
	uv_run(&sweeping->loop, UV_RUN_DEFAULT);
	return r;
}

int sweep_prs(const struct supervisor_options *options, const struct settings_sweep *sweep,
	struct sweep_result *ret)
{
	cleanup(free_at) struct sweeping *sweeping = calloc(1, sizeof *sweeping);

	*ret = (struct sweep_result){0};
	if (!sweeping)
		return complain(ret->complaint, SWEEP_COMPLAINT_BYTES, -ENOMEM, "no memory");
	*sweeping = (struct sweeping){.options = options,
		.program = sweep->argv ? sweep->argv[0] : "gh",
		.sweep = sweep,
		.result = ret};
	if (!look_for_program(sweeping))
		return complain_of_missing(sweeping);
	int r = uv_loop_init(&sweeping->loop);
	if (r < 0)
		return complain(sweeping->result->complaint, SWEEP_COMPLAINT_BYTES, r,
			"%.200s cannot be run: %s", sweeping->program, uv_strerror(r));
	r = sweep_with_gh(sweeping);
	uv_loop_close(&sweeping->loop);
	return r;
}
