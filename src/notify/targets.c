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
#include "wire/form/form.h"
#include "wire/json/json.h"

enum {
	URL_BYTES_MAX = 2000,
	RETRY_BASE_MS = 1000,
	RETRY_MAX_MS = 60 * 60 * 1000,
	RETRY_MOST_MS = 24 * 60 * 60 * 1000,
};

CLEANUP_AT(CURLU, curl_url_cleanup);

/* ---- what a text may be -------------------------------------------------------------------------------------- */

/* It stands in ids, whose parts a dot divides when they are signed. */
static bool is_source(const char *text)
{
	return text_is_id(span_of(text)) && !strpbrk(text, ".:");
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

static bool is_plain(const char *url)
{
	return strncmp(url, "http://", 7) == 0;
}

static bool is_url(const char *text)
{
	cleanup(curl_url_cleanup_at) CURLU *parts = curl_url();

	return parts && (is_plain(text) || strncmp(text, "https://", 8) == 0) &&
		strlen(text) <= URL_BYTES_MAX && curl_url_set(parts, CURLUPART_URL, text, 0) == CURLUE_OK &&
		!has_part(parts, CURLUPART_USER) && !has_part(parts, CURLUPART_PASSWORD) &&
		!has_part(parts, CURLUPART_FRAGMENT);
}

/* ---- a target ------------------------------------------------------------------------------------------------- */

/* An absolute path, or one that begins at home. */
static bool take_path(struct form *form, const struct field *field, yyjson_val *value, void *at)
{
	const char *text = yyjson_get_str(value), *home = getenv("HOME");
	char full[4096];
	bool whole = text && strlen(text) == yyjson_get_len(value);

	if (whole && text[0] == '~' && text[1] == '/' && home && home[0] == '/' &&
		(size_t)snprintf(full, sizeof full, "%s%s", home, text + 1) < sizeof full)
		text = full;
	if (!whole || text[0] != '/')
		return form_wrong(form, field, value);
	*(const char **)at = form_keep(form, span_of(text));
	return true;
}

static bool is_known(const char *pattern)
{
	return strcmp(pattern, "*") == 0 || strcmp(pattern, "alerts") == 0 ||
		event_types_has(span_of(pattern));
}

/* A slip here would not be noticed by anything else: the event never comes. */
static void complain_unknown(struct form *form, const char *name, const char *event)
{
	char room[EVENT_TYPE_BYTES];
	const char *like = event_types_like(event, room);

	if (like)
		form_error(form, name, "has an event that does not exist: \"%.100s\"; did you mean %s?",
			event, like);
	else
		form_error(form, name,
			"has an event that does not exist: \"%.100s\"; spec/events.md lists the events",
			event);
}

static bool take_events(struct form *form, const struct field *field, yyjson_val *value, void *at)
{
	const struct field patterns = {.name = field->name,
		.kind = FIELD_STRINGS,
		.max = TARGET_EVENTS_MAX,
		.accepts = is_pattern,
		.allowed = "a list of types of events, as [\"alerts\", \"task.failed\", \"slot.*\"]; "
			   "the output of processes is not sent"};
	const char *const *list = NULL;
	yyjson_val *outer = form->place;

	if (!form_take(form, &patterns, value, &list))
		return false;
	for (size_t i = 0; list[i]; i++) {
		if (is_known(list[i]))
			continue;
		form->place = yyjson_arr_get(value, i);
		complain_unknown(form, field->name, list[i]);
		form->place = outer;
		return false;
	}
	*(const char *const **)at = list;
	return true;
}

static bool take_allow(struct form *form, const struct field *field, yyjson_val *value, void *at)
{
	struct target *target = at;
	size_t index, count;
	yyjson_val *item;

	if (!yyjson_is_arr(value) || yyjson_arr_size(value) > TARGET_ALLOW_MAX)
		return form_wrong(form, field, value);
	yyjson_arr_foreach(value, index, count, item)
	{
		const char *text = yyjson_get_str(item);
		if (!text || strlen(text) != yyjson_get_len(item) ||
			!network_parse(text, &target->allow[target->allow_count]))
			return form_wrong_item(form, field, index, item);
		target->allow_count++;
	}
	return true;
}

static_assert(FORMAT_CLOUDEVENTS == 0 && FORMAT_SLACK == 1 && FORMAT_DISCORD == 2 && FORMAT_NTFY == 3 &&
		FORMAT_OTLP == 4,
	"the words of format");

#define PATH_ALLOWED "an absolute path, or one that begins with ~/"

static const struct field target_fields[] = {
	FIELD(target, url, "url", FIELD_STRING, .accepts = is_url, .secret = true,
		.allowed = "an address: https://HOST/PATH, without user, password or fragment"),
	FIELD(target, secret_file, "secretFile", FIELD_BY, .by = take_path, .allowed = PATH_ALLOWED),
	FIELD(target, events, "events", FIELD_BY, .by = take_events),
	FIELD(target, format, "format", FIELD_CHOICE, .words = "cloudevents|slack|discord|ntfy|otlp"),
	{"allow", FIELD_BY, .by = take_allow,
		.allowed = "a list of addresses and networks, as [\"127.0.0.1\", \"10.0.0.0/8\"]"},
	FIELD(target, ca_file, "caFile", FIELD_BY, .by = take_path, .allowed = PATH_ALLOWED),
};

static void take_target(struct form *form, struct span name, yyjson_val *value, void *into)
{
	struct targets *targets = into;
	uint32_t i = 0;

	while (i < targets->count && !span_equal(span_of(targets->items[i].name), name))
		i++;
	if (!text_is_id(name) || name.len > TARGET_NAME_BYTES_MAX || i == TARGETS_MAX) {
		form_error(form, "",
			"cannot be a target: a name has letters, digits and -._:, at most %d; and there are at most %d targets",
			TARGET_NAME_BYTES_MAX, TARGETS_MAX);
		return;
	}
	if (!yyjson_is_obj(value)) {
		form_wrong_as(form, "", "an object", value);
		return;
	}
	const char *kept = form_keep(form, name);
	if (!kept)
		return;
	targets->count += i == targets->count;
	targets->items[i] = (struct target){.name = kept, .where = config_form_origin(form)};
	form_read(form, value, FIELDS(target_fields), &targets->items[i]);
	targets->items[i].plain = targets->items[i].url && is_plain(targets->items[i].url);
}

/* ---- all of it ------------------------------------------------------------------------------------------------- */

static bool take_targets(struct form *form, const struct field *field, yyjson_val *value, void *at)
{
	form_each(form, field->name, value, take_target, at);
	return true;
}

static const struct field notify_fields[] = {
	{"targets", FIELD_BY, .by = take_targets},
	FIELD(targets, source, "source", FIELD_STRING, .accepts = is_source,
		.allowed = "a name: letters, digits, - and _"),
	FIELD(targets, retry_base_ms, "retryBaseMs", FIELD_INT, .min = 1, .max = RETRY_MOST_MS, .unit = "ms"),
	FIELD(targets, retry_max_ms, "retryMaxMs", FIELD_INT, .min = 1, .max = RETRY_MOST_MS, .unit = "ms"),
};

void targets_init(struct targets *targets)
{
	*targets = (struct targets){
		.source = "stint", .retry_base_ms = RETRY_BASE_MS, .retry_max_ms = RETRY_MAX_MS};
}

void targets_read(void *targets, struct config *config, struct form *form, struct span key, yyjson_val *value)
{
	((struct targets *)targets)->config = config;
	if (span_is(key, "notify"))
		form_read_inner(form, "notify", value, FIELDS(notify_fields), targets);
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
	if (target->format == FORMAT_OTLP && target->events)
		config_note_problem(config, target->where,
			"notify.targets.%s.events: format otlp sends the spans of every task; leave out \"events\"",
			target->name);
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
