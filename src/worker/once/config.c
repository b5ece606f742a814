/*
 * The configuration object of run-once, from a file and from flags: one table for both.
 */
#include <errno.h>
#include <fcntl.h>
#include <stddef.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "base/complain.h"
#include "base/take.h"
#include "wire/form/form.h"
#include "worker/once/once.h"

enum { FILE_BYTES_MAX = 64 << 10 };

#define DAY_MS (INT64_C(24) * 3600 * 1000)

#define NAME_ALLOWED "a name: letters, digits and -._:, at most 128"

static const struct field fields[] = {
	FIELD(once_config, agent_id, "agentId", FIELD_STRING, .accepts = settings_is_name,
		.allowed = NAME_ALLOWED, .flag = "--agent-id"),
	FIELD(once_config, queues, "queues", FIELD_CSV, .min = 1, .accepts = settings_is_name,
		.allowed = "a list of names, at least one"), /* --queues is every worker's */
	FIELD(once_config, lease_ms, "leaseMs", FIELD_INT, .min = 1000, .max = DAY_MS, .unit = "ms",
		.flag = "--lease-ms"),
	FIELD(once_config, progress_every_ms, "progressEveryMs", FIELD_INT, .min = 100, .max = DAY_MS,
		.unit = "ms", .flag = "--progress-every-ms"),
	FIELD(once_config, max_iterations, "maxIterations", FIELD_INT, .min = 1, .max = 10000,
		.flag = "--max-iterations"),
	FIELD(once_config, poll_interval_ms, "pollIntervalMs", FIELD_INT, .max = DAY_MS, .unit = "ms",
		.flag = "--poll-interval-ms"),
	FIELD(once_config, enable_pr_sweep, "enablePrSweep", FIELD_BOOL, .flag = "--enable-pr-sweep"),
	FIELD(once_config, allow_statuses, "allowStatuses", FIELD_CSV, .min = 1, .words = "ready|pending",
		.flag = "--allow-statuses"),
	FIELD(once_config, execution_mode, "executionMode", FIELD_STRING, .words = "isolated|main",
		.flag = "--execution-mode"),
	FIELD(once_config, model, "model", FIELD_STRING, .min = 1, .max = 256, .flag = "--model"),
	FIELD(once_config, thinking, "thinking", FIELD_STRING, .words = "low|medium|high",
		.flag = "--thinking"),
	FIELD(once_config, max_tool_calls, "maxToolCalls", FIELD_INT, .min = 1, .max = 1000000,
		.flag = "--max-tool-calls"),
	FIELD(once_config, max_run_s, "maxRunSeconds", FIELD_INT, .min = 1, .max = 30 * DAY_MS / 1000,
		.flag = "--max-run-seconds"),
	FIELD(once_config, empty_status, "", FIELD_INT, .max = 125, .flag = "--empty-exit"),
};

struct once_config once_config_default(void)
{
	return (struct once_config){
		.lease_ms = 15 * 60 * 1000,
		.progress_every_ms = 10 * 60 * 1000,
		.max_iterations = 1,
		.poll_interval_ms = 2000,
		.enable_pr_sweep = true,
		.allow_statuses = "ready",
	};
}

/* A text that is read, and the first thing that is wrong with it. */
struct once_text {
	const char *path;
	struct span text;
	yyjson_doc *doc;
	char *complaint;
};

static void note_first(struct form *form, const char *name, const char *message)
{
	const struct once_text *text = form->context;

	if (form->error_count == 1)
		snprintf(text->complaint, ONCE_COMPLAINT_BYTES, "%.200s:%u: %s %s", text->path,
			json_place(text->text, json_string_at(text->doc, form->place)).line, name, message);
}

/* -EINVAL with the complaint; or the fault of memory, with a complaint about that. */
static int judge(const struct form *form, char complaint[ONCE_COMPLAINT_BYTES])
{
	if (form->error_count == 0 && form->fault < 0)
		snprintf(complaint, ONCE_COMPLAINT_BYTES,
			"there is no memory to read the configuration object");
	return form->error_count > 0 ? -EINVAL : form->fault;
}

struct command_table once_config_table(struct once_config *config)
{
	return (struct command_table){FIELDS(fields), config};
}

/* ---- the file --------------------------------------------------------------------------------------------- */

/* `-` is standard input. */
static int read_text(const char *path, struct buf *text)
{
	char block[4096];
	ssize_t got;
	int r = 0;

	cleanup(close_at) int fd =
		strcmp(path, "-") == 0 ? dup(STDIN_FILENO) : open(path, O_RDONLY | O_CLOEXEC);
	if (fd < 0)
		return -errno;
	while (r == 0 && (got = read(fd, block, sizeof block)) != 0)
		r = got < 0 ? -errno : buf_put(text, block, (size_t)got);
	return r;
}

int once_config_read(struct once_config *config, const char *path, struct arena *arena,
	char complaint[ONCE_COMPLAINT_BYTES])
{
	cleanup(buf_done) struct buf text = {0};
	struct json_complaint wrong;
	struct form form;

	buf_init(&text, FILE_BYTES_MAX);
	int r = read_text(path, &text);
	if (r < 0)
		return complain(
			complaint, ONCE_COMPLAINT_BYTES, r, "cannot read %.300s: %s", path, strerror(-r));
	cleanup(yyjson_doc_free_at) yyjson_doc *doc = json_read_config(buf_span(&text), &wrong);
	if (!doc)
		return complain(complaint, ONCE_COMPLAINT_BYTES, -EINVAL, "%.200s:%u: %s", path,
			json_place(buf_span(&text), wrong.at).line, wrong.reason);
	if (!yyjson_is_obj(yyjson_doc_get_root(doc)))
		return complain(complaint, ONCE_COMPLAINT_BYTES, -EINVAL,
			"%.200s must hold an object, as {\"agentId\": \"dev-3\"}", path);
	struct once_text object = {path, buf_span(&text), doc, complaint};
	form_start(&form, arena);
	form.note = note_first;
	form.context = &object;
	form_read(&form, yyjson_doc_get_root(doc), FIELDS(fields), config);
	return judge(&form, complaint);
}

/* ---- does it fit ------------------------------------------------------------------------------------------- */

/* A budget that nobody can enforce is a mistake, and not a wish: a command does not tell what tools it calls, and has no
 * session to continue. Model and thinking are handed on in its environment. */
static int check_command(
	const struct once_config *config, const char *executor, char complaint[ONCE_COMPLAINT_BYTES])
{
	if (config->max_tool_calls > 0)
		return complain(complaint, ONCE_COMPLAINT_BYTES, -EINVAL,
			"maxToolCalls cannot be enforced: the executor \"%s\" is a command, and nobody counts its tool calls; "
			"maxRunSeconds can be",
			executor);
	if (config->execution_mode && strcmp(config->execution_mode, "main") == 0)
		return complain(complaint, ONCE_COMPLAINT_BYTES, -EINVAL,
			"executionMode \"main\" cannot be kept: the executor \"%s\" is a command, which has no session to "
			"continue; \"isolated\" can be",
			executor);
	return 0;
}

int once_config_check(const struct once_config *config, const struct settings *settings,
	char complaint[ONCE_COMPLAINT_BYTES])
{
	if (!config->agent_id)
		return complain(complaint, ONCE_COMPLAINT_BYTES, -EINVAL,
			"agentId is missing: say --agent-id dev-3, or write it into the file of --config-object");
	if (config->progress_every_ms >= config->lease_ms)
		return complain(complaint, ONCE_COMPLAINT_BYTES, -EINVAL,
			"progressEveryMs (%lld) must be less than leaseMs (%lld): the lease would run out before it is renewed",
			(long long)config->progress_every_ms, (long long)config->lease_ms);
	for (uint32_t i = 0; i < settings->executor_count; i++) {
		if (strcmp(settings->executors[i].kind, "command") == 0 &&
			check_command(config, settings->executors[i].name, complaint) < 0)
			return -EINVAL;
	}
	return 0;
}
