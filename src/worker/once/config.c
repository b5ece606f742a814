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

#include "base/take.h"
#include "worker/once/once.h"

CLEANUP_AT(yyjson_doc, yyjson_doc_free);

enum {
	FILE_BYTES_MAX = 64 << 10,
	TEXT_BYTES_MAX = 256,
	LIST_BYTES_MAX = 4096,
};

#define DAY_MS (INT64_C(24) * 3600 * 1000)

enum field_kind {
	FIELD_NAME,
	FIELD_TEXT,
	FIELD_NAMES,
	FIELD_CHOICE,
	FIELD_CHOICES,
	FIELD_NUMBER,
	FIELD_SWITCH
};

struct field {
	const char *name, *flag;
	enum field_kind kind;
	size_t at; /* a text or a number */
	const char *choices;
	int64_t least, most;
};

#define AT(member) offsetof(struct once_config, member)

static const struct field fields[] = {
	{"agentId", "--agent-id", FIELD_NAME, AT(agent_id), NULL, 0, 0},
	{"queues", NULL, FIELD_NAMES, AT(queues), NULL, 0, 0}, /* --queues is every worker's */
	{"leaseMs", "--lease-ms", FIELD_NUMBER, AT(lease_ms), NULL, 1000, DAY_MS},
	{"progressEveryMs", "--progress-every-ms", FIELD_NUMBER, AT(progress_every_ms), NULL, 100, DAY_MS},
	{"maxIterations", "--max-iterations", FIELD_NUMBER, AT(max_iterations), NULL, 1, 10000},
	{"pollIntervalMs", "--poll-interval-ms", FIELD_NUMBER, AT(poll_interval_ms), NULL, 0, DAY_MS},
	{"enablePrSweep", "--enable-pr-sweep", FIELD_SWITCH, AT(enable_pr_sweep), NULL, 0, 1},
	{"allowStatuses", "--allow-statuses", FIELD_CHOICES, AT(allow_statuses), "ready|pending", 0, 0},
	{"executionMode", "--execution-mode", FIELD_CHOICE, AT(execution_mode), "isolated|main", 0, 0},
	{"model", "--model", FIELD_TEXT, AT(model), NULL, 0, 0},
	{"thinking", "--thinking", FIELD_CHOICE, AT(thinking), "low|medium|high", 0, 0},
	{"maxToolCalls", "--max-tool-calls", FIELD_NUMBER, AT(max_tool_calls), NULL, 1, 1000000},
	{"maxRunSeconds", "--max-run-seconds", FIELD_NUMBER, AT(max_run_s), NULL, 1, 30 * DAY_MS / 1000},
	{NULL, "--empty-exit", FIELD_NUMBER, AT(empty_status), NULL, 0, 125},
};

#define FIELD_COUNT (sizeof fields / sizeof *fields)

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

static const char **text_at(struct once_config *config, const struct field *field)
{
	return (const char **)(void *)((char *)config + field->at);
}

static int64_t *number_at(struct once_config *config, const struct field *field)
{
	return (int64_t *)(void *)((char *)config + field->at);
}

/* What a value must be, for people. */
static void describe(const struct field *field, char *out, size_t room)
{
	switch (field->kind) {
	case FIELD_NAME:
		snprintf(out, room, "a name: letters, digits and -._:, at most 128");
		break;
	case FIELD_TEXT:
		snprintf(out, room, "a text of at most %d bytes", TEXT_BYTES_MAX);
		break;
	case FIELD_NAMES:
		snprintf(out, room, "a list of names, at least one");
		break;
	case FIELD_CHOICE:
		snprintf(out, room, "one of %s", field->choices);
		break;
	case FIELD_CHOICES:
		snprintf(out, room, "a list of some of %s, at least one", field->choices);
		break;
	case FIELD_NUMBER:
		snprintf(out, room, "a whole number from %lld to %lld", (long long)field->least,
			(long long)field->most);
		break;
	case FIELD_SWITCH:
		snprintf(out, room, "true or false");
		break;
	}
}

/* One of a|b|c? */
static bool is_choice(const char *choices, const char *word)
{
	size_t len = strlen(word);

	for (const char *at = choices; *at; at += strcspn(at, "|"), at += *at == '|') {
		if (strcspn(at, "|") == len && strncmp(at, word, len) == 0)
			return true;
	}
	return false;
}

/* A text that stands alone, or one word of a list. */
static bool accepts(const struct field *field, const char *text)
{
	switch (field->kind) {
	case FIELD_NAME:
	case FIELD_NAMES:
		return settings_is_name(text);
	case FIELD_TEXT:
		return text[0] && strlen(text) <= TEXT_BYTES_MAX;
	case FIELD_CHOICE:
	case FIELD_CHOICES:
		return is_choice(field->choices, text);
	case FIELD_NUMBER:
	case FIELD_SWITCH:
		return false;
	}
	return false;
}

/* ---- flags ------------------------------------------------------------------------------------------------ */

static bool accepts_list(const struct field *field, const char *list)
{
	char word[200];

	for (const char *at = list; *at;) {
		size_t len = strcspn(at, ",");
		if (len >= sizeof word)
			return false;
		snprintf(word, sizeof word, "%.*s", (int)len, at);
		if (!accepts(field, word))
			return false;
		at += len + (at[len] == ',');
	}
	return list[0] != 0;
}

static bool take_number(const struct field *field, const char *text, int64_t *number)
{
	char *end;

	errno = 0;
	long long value = strtoll(text, &end, 10);
	if (errno || end == text || *end || value < field->least || value > field->most)
		return false;
	*number = value;
	return true;
}

static bool take_flag(struct once_config *config, const struct field *field, const char *value)
{
	switch (field->kind) {
	case FIELD_NUMBER:
		return take_number(field, value, number_at(config, field));
	case FIELD_SWITCH:
		*number_at(config, field) = strcmp(value, "true") == 0;
		return is_choice("true|false", value);
	case FIELD_NAMES:
	case FIELD_CHOICES:
		*text_at(config, field) = value;
		return accepts_list(field, value);
	case FIELD_NAME:
	case FIELD_TEXT:
	case FIELD_CHOICE:
		*text_at(config, field) = value;
		return accepts(field, value);
	}
	return false;
}

int once_config_flag(
	struct once_config *config, const char *flag, const char *value, char complaint[ONCE_COMPLAINT_BYTES])
{
	char must_be[160];

	for (size_t i = 0; i < FIELD_COUNT; i++) {
		if (!fields[i].flag || strcmp(fields[i].flag, flag) != 0)
			continue;
		if (take_flag(config, &fields[i], value))
			return 0;
		describe(&fields[i], must_be, sizeof must_be);
		snprintf(complaint, ONCE_COMPLAINT_BYTES, "%s must be %s; it is \"%.200s\"", flag, must_be,
			value);
		return -EINVAL;
	}
	return -ENOENT;
}

const char *once_config_flag_name(size_t index)
{
	for (size_t i = 0; i < FIELD_COUNT; i++) {
		if (fields[i].flag && index-- == 0)
			return fields[i].flag;
	}
	return NULL;
}

/* ---- the file --------------------------------------------------------------------------------------------- */

static const char *plain_text(yyjson_val *value)
{
	const char *text = yyjson_get_str(value);

	return text && strlen(text) == yyjson_get_len(value) ? text : NULL;
}

static bool keep_list(
	struct once_config *config, const struct field *field, yyjson_val *list, struct arena *arena)
{
	cleanup(buf_done) struct buf text = {0};
	struct span kept;
	size_t index, count;
	yyjson_val *item;

	buf_init(&text, LIST_BYTES_MAX);
	yyjson_arr_foreach(list, index, count, item)
	{
		const char *word = plain_text(item);
		if (!word || !accepts(field, word) ||
			buf_printf(&text, "%s%s", index > 0 ? "," : "", word) < 0)
			return false;
	}
	if (text.len == 0 || arena_copy(arena, buf_span(&text), &kept) < 0)
		return false;
	*text_at(config, field) = kept.data;
	return true;
}

static bool keep_value(
	struct once_config *config, const struct field *field, yyjson_val *value, struct arena *arena)
{
	struct span kept;

	switch (field->kind) {
	case FIELD_NUMBER:
		*number_at(config, field) = yyjson_get_sint(value);
		return yyjson_is_int(value) && yyjson_get_sint(value) >= field->least &&
			yyjson_get_sint(value) <= field->most;
	case FIELD_SWITCH:
		*number_at(config, field) = yyjson_get_bool(value);
		return yyjson_is_bool(value);
	case FIELD_NAMES:
	case FIELD_CHOICES:
		return yyjson_is_arr(value) && keep_list(config, field, value, arena);
	case FIELD_NAME:
	case FIELD_TEXT:
	case FIELD_CHOICE:
		if (!plain_text(value) || !accepts(field, plain_text(value)) ||
			arena_copy(arena, span_of(plain_text(value)), &kept) < 0)
			return false;
		*text_at(config, field) = kept.data;
		return true;
	}
	return false;
}

static const struct field *find_field(const char *name)
{
	for (size_t i = 0; i < FIELD_COUNT; i++) {
		if (fields[i].name && strcmp(fields[i].name, name) == 0)
			return &fields[i];
	}
	return NULL;
}

static int complain_unknown(
	const char *path, uint32_t line, const char *name, char complaint[ONCE_COMPLAINT_BYTES])
{
	int used = snprintf(complaint, ONCE_COMPLAINT_BYTES,
		"%.200s:%u: there is no field \"%.60s\"; there are", path, line, name);

	for (size_t i = 0; i < FIELD_COUNT && used < ONCE_COMPLAINT_BYTES; i++) {
		if (fields[i].name)
			used += snprintf(complaint + used, (size_t)(ONCE_COMPLAINT_BYTES - used), "%s %s",
				i > 0 ? "," : "", fields[i].name);
	}
	return -EINVAL;
}

static int read_fields(struct once_config *config, const char *path, struct span text, yyjson_doc *doc,
	struct arena *arena, char complaint[ONCE_COMPLAINT_BYTES])
{
	char must_be[160], given[160];
	size_t index, count;
	yyjson_val *key, *value;

	yyjson_obj_foreach(yyjson_doc_get_root(doc), index, count, key, value)
	{
		uint32_t line = json_place(text, json_string_at(doc, key)).line;
		const struct field *field = find_field(yyjson_get_str(key));
		if (!field)
			return complain_unknown(path, line, yyjson_get_str(key), complaint);
		if (yyjson_is_null(value) || keep_value(config, field, value, arena))
			continue;
		describe(field, must_be, sizeof must_be);
		config_describe(value, given, sizeof given);
		snprintf(complaint, ONCE_COMPLAINT_BYTES, "%.200s:%u: %s must be %s; it is %s", path, line,
			field->name, must_be, given);
		return -EINVAL;
	}
	return 0;
}

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

	buf_init(&text, FILE_BYTES_MAX);
	int r = read_text(path, &text);
	if (r < 0) {
		snprintf(complaint, ONCE_COMPLAINT_BYTES, "cannot read %.300s: %s", path, strerror(-r));
		return r;
	}
	cleanup(yyjson_doc_free_at) yyjson_doc *doc = json_read_config(buf_span(&text), &wrong);
	if (!doc) {
		snprintf(complaint, ONCE_COMPLAINT_BYTES, "%.200s:%u: %s", path,
			json_place(buf_span(&text), wrong.at).line, wrong.reason);
		return -EINVAL;
	}
	if (!yyjson_is_obj(yyjson_doc_get_root(doc))) {
		snprintf(complaint, ONCE_COMPLAINT_BYTES,
			"%.200s must hold an object, as {\"agentId\": \"dev-3\"}", path);
		return -EINVAL;
	}
	return read_fields(config, path, buf_span(&text), doc, arena, complaint);
}

/* ---- does it fit ------------------------------------------------------------------------------------------- */

/* A budget that nobody can enforce is a mistake, and not a wish: a command does not tell what tools it calls, and has no
 * session to continue. Model and thinking are handed on in its environment. */
static int check_command(
	const struct once_config *config, const char *executor, char complaint[ONCE_COMPLAINT_BYTES])
{
	if (config->max_tool_calls > 0) {
		snprintf(complaint, ONCE_COMPLAINT_BYTES,
			"maxToolCalls cannot be enforced: the executor \"%s\" is a command, and nobody counts its tool calls; "
			"maxRunSeconds can be",
			executor);
		return -EINVAL;
	}
	if (config->execution_mode && strcmp(config->execution_mode, "main") == 0) {
		snprintf(complaint, ONCE_COMPLAINT_BYTES,
			"executionMode \"main\" cannot be kept: the executor \"%s\" is a command, which has no session to "
			"continue; \"isolated\" can be",
			executor);
		return -EINVAL;
	}
	return 0;
}

int once_config_check(const struct once_config *config, const struct settings *settings,
	char complaint[ONCE_COMPLAINT_BYTES])
{
	if (!config->agent_id) {
		snprintf(complaint, ONCE_COMPLAINT_BYTES,
			"agentId is missing: say --agent-id dev-3, or write it into the file of --config-object");
		return -EINVAL;
	}
	if (config->progress_every_ms >= config->lease_ms) {
		snprintf(complaint, ONCE_COMPLAINT_BYTES,
			"progressEveryMs (%lld) must be less than leaseMs (%lld): the lease would run out before it is renewed",
			(long long)config->progress_every_ms, (long long)config->lease_ms);
		return -EINVAL;
	}
	for (uint32_t i = 0; i < settings->executor_count; i++) {
		if (strcmp(settings->executors[i].kind, "command") == 0 &&
			check_command(config, settings->executors[i].name, complaint) < 0)
			return -EINVAL;
	}
	return 0;
}
