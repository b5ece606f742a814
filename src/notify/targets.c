#include "notify/targets.h"

#include <assert.h>
#include <ctype.h>
#include <curl/curl.h>
#include <errno.h>
#include <fcntl.h>
#include <sodium.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "base/take.h"
#include "wire/event_types.h"
#include "wire/json/json.h"

enum {
	URL_BYTES_MAX = 2000,
	RETRY_BASE_MS = 1000,
	RETRY_MAX_MS = 60 * 60 * 1000,
	RETRY_MOST_MS = 24 * 60 * 60 * 1000,
};

CLEANUP_AT(CURLU, curl_url_cleanup);

/* Where a complaint belongs, and how the thing is called. */
struct at {
	struct targets *targets;
	struct config_file *file;
	yyjson_val *key; /* of the member that is looked at */
	char name[200];  /* notify.targets.ops.url */
};

typedef void (*take_member)(const struct at *at, yyjson_val *value, struct target *target);

static void complain(const struct at *at, yyjson_val *value, const char *must_be)
{
	char given[256];

	config_describe(value, given, sizeof given);
	config_note_problem(at->targets->config, config_file_origin(at->file, at->key),
		"%s must be %s; it is %s", at->name, must_be, given);
}

static void take_each(const struct at *at, yyjson_val *value, take_member take_one, struct target *target)
{
	size_t index, count;
	yyjson_val *key, *member;

	if (!yyjson_is_obj(value)) {
		complain(at, value, "an object");
		return;
	}
	yyjson_obj_foreach(value, index, count, key, member)
	{
		struct at inner = {.targets = at->targets, .file = at->file, .key = key};
		snprintf(inner.name, sizeof inner.name, "%.120s.%.70s", at->name, yyjson_get_str(key));
		take_one(&inner, member, target);
	}
}

/* ---- what a text may be -------------------------------------------------------------------------------------- */

/* A text without a NUL in it; NULL: it is none, or empty. */
static const char *text_of(yyjson_val *value)
{
	const char *text = yyjson_get_str(value);

	return text && text[0] && strlen(text) == yyjson_get_len(value) ? text : NULL;
}

static bool is_name(const char *name)
{
	size_t len = strlen(name);

	return len > 0 && len <= TARGET_NAME_BYTES_MAX && isalnum((unsigned char)name[0]) &&
		name[strspn(name, "abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ0123456789-._:")] == 0;
}

/* It stands in ids, whose parts a dot divides when they are signed. */
static bool is_source(const char *text)
{
	return is_name(text) && !strpbrk(text, ".:");
}

/* task.failed, task.*, alerts, * */
static bool is_pattern(const char *text)
{
	size_t noun = strspn(text, "abcdefghijklmnopqrstuvwxyz");
	const char *verb = text + noun + 1;

	if (strcmp(text, "*") == 0 || strcmp(text, "alerts") == 0)
		return true;
	return noun > 0 && text[noun] == '.' && verb[0] && strcmp(text, "session.output") != 0 &&
		(strcmp(verb, "*") == 0 || verb[strspn(verb, "abcdefghijklmnopqrstuvwxyz_")] == 0);
}

static bool has_part(CURLU *parts, CURLUPart which)
{
	char *text = NULL;
	bool has = curl_url_get(parts, which, &text, 0) == CURLUE_OK;

	curl_free(text);
	return has;
}

/* *ret_plain: it is not https. */
static bool is_url(const char *text, bool *ret_plain)
{
	cleanup(curl_url_cleanup_at) CURLU *parts = curl_url();
	bool plain = strncmp(text, "http://", 7) == 0;

	*ret_plain = plain;
	return parts && (plain || strncmp(text, "https://", 8) == 0) && strlen(text) <= URL_BYTES_MAX &&
		curl_url_set(parts, CURLUPART_URL, text, 0) == CURLUE_OK &&
		!has_part(parts, CURLUPART_USER) && !has_part(parts, CURLUPART_PASSWORD) &&
		!has_part(parts, CURLUPART_FRAGMENT);
}

/* ---- a target ------------------------------------------------------------------------------------------------- */

static void take_url(const struct at *at, yyjson_val *value, struct target *target)
{
	const char *text = text_of(value);

	if (text && is_url(text, &target->plain))
		target->url = config_keep(at->targets->config, text);
	else /* what was given may hold a secret */
		config_note_problem(at->targets->config, config_file_origin(at->file, at->key),
			"%s must be an address: https://HOST/PATH, without user, password or fragment",
			at->name);
}

/* NULL: it was complained about. */
static const char *take_path(const struct at *at, yyjson_val *value)
{
	const char *text = text_of(value), *home = getenv("HOME");
	char full[4096];

	if (text && text[0] == '~' && text[1] == '/' && home && home[0] == '/' &&
		(size_t)snprintf(full, sizeof full, "%s%s", home, text + 1) < sizeof full)
		text = full;
	if (text && text[0] == '/')
		return config_keep(at->targets->config, text);
	complain(at, value, "an absolute path, or one that begins with ~/");
	return NULL;
}

static void take_secret_file(const struct at *at, yyjson_val *value, struct target *target)
{
	target->secret_file = take_path(at, value);
}

static void take_ca_file(const struct at *at, yyjson_val *value, struct target *target)
{
	target->ca_file = take_path(at, value);
}

static bool is_known(const char *pattern)
{
	return strcmp(pattern, "*") == 0 || strcmp(pattern, "alerts") == 0 ||
		event_types_has(span_of(pattern));
}

/* A slip here would be told by nothing: the event never comes. */
static void complain_unknown(const struct at *at, yyjson_val *item)
{
	char room[EVENT_TYPE_BYTES];
	const char *like = event_types_like(text_of(item), room);

	config_note_problem(at->targets->config, config_file_origin(at->file, item),
		like ? "%s: there is no event \"%.100s\"; did you mean %s?"
		     : "%s: there is no event \"%.100s\"; spec/events.md has those there are",
		at->name, text_of(item), like);
}

static void take_events(const struct at *at, yyjson_val *value, struct target *target)
{
	static const char must_be[] =
		"a list of types of events, as [\"alerts\", \"task.failed\", \"slot.*\"]; "
		"the output of processes is not sent";
	size_t index, count = yyjson_arr_size(value);
	struct arena *arena = &at->targets->config->arena;
	const char **list = yyjson_is_arr(value) && count <= TARGET_EVENTS_MAX
		? arena_alloc(arena, (count + 1) * sizeof *list)
		: NULL;
	yyjson_val *item;

	if (!list) {
		complain(at, value, must_be);
		return;
	}
	yyjson_arr_foreach(value, index, count, item)
	{
		if (!text_of(item) || !is_pattern(text_of(item))) {
			complain(at, item, must_be);
			return;
		}
		if (!is_known(text_of(item))) {
			complain_unknown(at, item);
			return;
		}
		list[index] = config_keep(at->targets->config, text_of(item));
	}
	list[count] = NULL;
	target->events = list;
}

static void take_allow(const struct at *at, yyjson_val *value, struct target *target)
{
	static const char must_be[] = "a list of addresses and networks, as [\"127.0.0.1\", \"10.0.0.0/8\"]";
	size_t index, count;
	yyjson_val *item;

	if (!yyjson_is_arr(value) || yyjson_arr_size(value) > TARGET_ALLOW_MAX) {
		complain(at, value, must_be);
		return;
	}
	yyjson_arr_foreach(value, index, count, item)
	{
		if (text_of(item) && network_parse(text_of(item), &target->allow[target->allow_count])) {
			target->allow_count++;
			continue;
		}
		complain(at, item, must_be);
		return;
	}
}

static void take_format(const struct at *at, yyjson_val *value, struct target *target)
{
	static const char *const words[] = {"cloudevents", "slack", "discord", "ntfy"};

	for (size_t i = 0; i < sizeof words / sizeof *words; i++) {
		if (yyjson_equals_str(value, words[i])) {
			target->format = (enum target_format)i;
			return;
		}
	}
	complain(at, value, "\"cloudevents\", \"slack\", \"discord\" or \"ntfy\"");
}

static void take_target_member(const struct at *at, yyjson_val *value, struct target *target)
{
	static const struct {
		const char *name;
		take_member takes;
	} members[] = {
		{"url", take_url},
		{"secretFile", take_secret_file},
		{"events", take_events},
		{"allow", take_allow},
		{"caFile", take_ca_file},
		{"format", take_format},
	};

	for (size_t i = 0; i < sizeof members / sizeof *members; i++) {
		if (yyjson_equals_str(at->key, members[i].name)) {
			members[i].takes(at, value, target);
			return;
		}
	}
	config_note_problem(at->targets->config, config_file_origin(at->file, at->key),
		"there is no key %s; here there may be url, secretFile, events, format, allow and caFile",
		at->name);
}

static void take_target(const struct at *at, yyjson_val *value, struct target *unused)
{
	const char *name = yyjson_get_str(at->key);
	struct targets *targets = at->targets;
	uint32_t i = 0;

	(void)unused;
	while (i < targets->count && strcmp(targets->items[i].name, name) != 0)
		i++;
	if (!is_name(name) || strlen(name) != yyjson_get_len(at->key) || i == TARGETS_MAX) {
		config_note_problem(targets->config, config_file_origin(at->file, at->key),
			"%s: a target has a name of letters, digits and -._:, at most %d; and there are at most %d",
			at->name, TARGET_NAME_BYTES_MAX, TARGETS_MAX);
		return;
	}
	targets->count += i == targets->count;
	targets->items[i] = (struct target){
		.name = config_keep(targets->config, name), .where = config_file_origin(at->file, at->key)};
	take_each(at, value, take_target_member, &targets->items[i]);
}

/* ---- all of it ------------------------------------------------------------------------------------------------- */

static void take_time(const struct at *at, yyjson_val *value, int64_t *ret_ms)
{
	if (yyjson_is_int(value) && yyjson_get_sint(value) >= 1 && yyjson_get_sint(value) <= RETRY_MOST_MS)
		*ret_ms = yyjson_get_sint(value);
	else
		complain(at, value, "a whole number of ms from 1 to 86400000");
}

static void take_notify_member(const struct at *at, yyjson_val *value, struct target *unused)
{
	struct targets *targets = at->targets;

	if (yyjson_equals_str(at->key, "targets"))
		take_each(at, value, take_target, unused);
	else if (yyjson_equals_str(at->key, "retryBaseMs"))
		take_time(at, value, &targets->retry_base_ms);
	else if (yyjson_equals_str(at->key, "retryMaxMs"))
		take_time(at, value, &targets->retry_max_ms);
	else if (!yyjson_equals_str(at->key, "source"))
		config_note_problem(targets->config, config_file_origin(at->file, at->key),
			"there is no key %s; here there may be targets, source, retryBaseMs and retryMaxMs",
			at->name);
	else if (text_of(value) && is_source(text_of(value)))
		targets->source = config_keep(targets->config, text_of(value));
	else
		complain(at, value, "a name: letters, digits, - and _");
}

void targets_init(struct targets *targets)
{
	*targets = (struct targets){
		.source = "stint", .retry_base_ms = RETRY_BASE_MS, .retry_max_ms = RETRY_MAX_MS};
}

void targets_read(
	void *targets, struct config *config, struct config_file *file, yyjson_val *key, yyjson_val *value)
{
	struct at at = {.targets = targets, .file = file, .key = key, .name = "notify"};

	at.targets->config = config;
	if (yyjson_equals_str(key, "notify"))
		take_each(&at, value, take_notify_member, NULL);
}

/* One line or two: the second is the old one, while receivers learn the new. */
static int parse_secrets(struct target *target, char *text)
{
	char *rest = text;

	for (char *line; (line = strsep(&rest, "\n"));) {
		line[strcspn(line, "\r \t")] = 0;
		if (!line[0])
			continue;
		if (target->secret_count == SECRETS_MAX ||
			secret_parse(span_of(line), &target->secrets[target->secret_count]) < 0)
			return -EINVAL;
		target->secret_count++;
	}
	return target->secret_count > 0 ? 0 : -EINVAL;
}

static void read_secrets(struct target *target, struct config *config)
{
	char text[SECRET_FILE_BYTES_MAX + 1];
	struct stat about;

	cleanup(close_at) int fd = open(target->secret_file, O_RDONLY | O_NONBLOCK | O_NOCTTY | O_CLOEXEC);
	ssize_t got = fd < 0 || fstat(fd, &about) < 0 ? -1 : read(fd, text, SECRET_FILE_BYTES_MAX);
	if (got < 0) {
		config_note_problem(config, target->where,
			"notify.targets.%s.secretFile: %s cannot be read: %s", target->name,
			target->secret_file, strerror(errno));
		return;
	}
	text[got] = 0;
	if (about.st_mode & 007) /* a group may: systemd passes credentials on in that way */
		config_note_problem(config, target->where,
			"notify.targets.%s.secretFile: others may read %s (mode %03o); fix: chmod o= %s",
			target->name, target->secret_file, about.st_mode & 0777, target->secret_file);
	else if (parse_secrets(target, text) < 0)
		config_note_problem(config, target->where,
			"notify.targets.%s.secretFile: %s must have a line (or two, while a secret is replaced) of whsec_ and 24 to "
			"64 bytes in base64; fix: echo whsec_$(openssl rand -base64 32) > %s",
			target->name, target->secret_file, target->secret_file);
	sodium_memzero(text, sizeof text);
}

static void check_target(struct target *target, struct config *config)
{
	bool signs = target->format == FORMAT_CLOUDEVENTS; /* elsewhere nobody would look */

	if (!target->url || (signs && !target->secret_file)) {
		config_note_problem(config, target->where, "notify.targets.%s needs url%s", target->name,
			signs ? " and secretFile" : "");
		return;
	}
	if (target->plain && target->allow_count == 0)
		config_note_problem(config, target->where,
			"notify.targets.%s.url must be https: http is for addresses that \"allow\" has, as "
			"[\"127.0.0.1\"]",
			target->name);
	if (target->ca_file && access(target->ca_file, R_OK) < 0)
		config_note_problem(config, target->where, "notify.targets.%s.caFile: %s cannot be read: %s",
			target->name, target->ca_file, strerror(errno));
	if (target->secret_file)
		read_secrets(target, config);
}

void targets_check(struct targets *targets, struct config *config)
{
	if (config->problem_count > 0)
		return; /* what is missing may be what was wrong */
	for (uint32_t i = 0; i < targets->count; i++)
		check_target(&targets->items[i], config);
}

const struct target *targets_find(const struct targets *targets, const char *name)
{
	for (uint32_t i = 0; i < targets->count; i++) {
		if (strcmp(targets->items[i].name, name) == 0)
			return &targets->items[i];
	}
	return NULL;
}

void target_put_origin(const struct target *target, char *out, size_t room)
{
	const char *host = strstr(target->url, "://") + 3;
	size_t len = strcspn(host, "/?#");

	snprintf(out, room, "%.*s%s", (int)(host - target->url + (ptrdiff_t)len), target->url,
		host[len] && host[len + 1] ? "/…" : "");
}
