#include "server/options.h"

#include <arpa/inet.h>
#include <errno.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/take.h"
#include "wire/json.h"

enum {
	EXIT_USAGE = 2,
	EXIT_CONFIG = 78,
	CONFIG_BYTES_MAX = 1 << 20,
	KEY_MAX = 128,
};

/* A number in the configuration, and where it goes. */
struct setting {
	const char *key;
	size_t offset; /* of a uint32_t in struct options */
	uint32_t least, most;
};

#define RULE(field) offsetof(struct options, storage.rules.field)
#define DAY_MS      (24u * 60 * 60 * 1000)

static const struct setting settings[] = {
	{"claim.verifyAfterMs", RULE(verify_after_ms), 1000, DAY_MS},
	{"worker.leaseMinMs", RULE(lease_min_ms), 100, DAY_MS},
	{"restart.graceMs", RULE(restart_grace_ms), 0, DAY_MS},
	{"retry.baseMs", RULE(retry_base_ms), 1, DAY_MS},
	{"retry.maxMs", RULE(retry_max_ms), 1, DAY_MS},
	{"task.crashBudget", RULE(crash_budget), 1, 1000},
	{"task.timeoutMs", RULE(timeout_ms), 1, 30 * DAY_MS},
	{"task.timeoutMaxMs", RULE(timeout_max_ms), 1, 30 * DAY_MS},
	{"quarantine.trialAfterMs", RULE(quarantine_trial_ms), 0, 30 * DAY_MS},
	{"sweep.intervalMs", offsetof(struct options, sweep_ms), 10, 60 * 1000},
	{"limits.authFailuresPerS", offsetof(struct options, auth_failures_per_s), 1, 1000},
	{"limits.unauthenticatedConnections", offsetof(struct options, strangers_max), 1, 100000},
	{"limits.requestsInFlight", offsetof(struct options, in_flight_max), 1, 4096},
	{"limits.eventStreams", offsetof(struct options, streams_max), 1, 10000},
};

static int complain(int status, const char *format, ...) __attribute__((format(printf, 2, 3)));

static int complain(int status, const char *format, ...)
{
	va_list args;

	va_start(args, format);
	fputs("stintd: ", stderr);
	vfprintf(stderr, format, args);
	fputc('\n', stderr);
	va_end(args);
	return status;
}

static int set_path(char *into, const char *value, const char *flag)
{
	if (strlen(value) >= OPTIONS_PATH_MAX || value[0] == 0)
		return complain(EXIT_USAGE, "%s needs a path of 1 to %d bytes", flag, OPTIONS_PATH_MAX - 1);
	strcpy(into, value);
	return 0;
}

static int set_number(struct options *options, const char *key, const char *text, const char *where)
{
	char *end;
	errno = 0;
	long long value = strtoll(text, &end, 10);

	for (size_t i = 0; i < sizeof settings / sizeof *settings; i++) {
		const struct setting *setting = &settings[i];
		if (strcmp(setting->key, key) != 0)
			continue;
		if (errno || end == text || *end || value < setting->least || value > setting->most)
			return complain(EXIT_CONFIG,
				"%s: %s must be a whole number from %u to %u, not \"%s\"", where, key,
				setting->least, setting->most, text);
		*(uint32_t *)((char *)options + setting->offset) = (uint32_t)value;
		return 0;
	}
	return complain(
		EXIT_CONFIG, "%s: there is no setting \"%s\"; see the manual for their names", where, key);
}

/* HOST:PORT, with [::1] for addresses that have colons. */
static int set_listen(struct options *options, const char *text, const char *where)
{
	const char *colon = strrchr(text, ':');
	char *end;
	size_t host_len = colon ? (size_t)(colon - text) : 0;
	const char *host = text;

	if (host_len > 2 && host[0] == '[' && host[host_len - 1] == ']') {
		host++;
		host_len -= 2;
	}
	long port = colon ? strtol(colon + 1, &end, 10) : -1;
	if (!colon || host_len == 0 || host_len >= sizeof options->host || colon[1] == 0 || *end ||
		port < 0 || port > 65535)
		return complain(EXIT_CONFIG,
			"%s: listen must be ADDRESS:PORT, as in 127.0.0.1:8787, not \"%s\"", where, text);
	memcpy(options->host, host, host_len);
	options->host[host_len] = 0;
	options->port = (uint16_t)port;
	return 0;
}

static int set_auth(struct options *options, const char *text, const char *where)
{
	options->auth_open = strcmp(text, "open") == 0;
	if (!options->auth_open && strcmp(text, "token") != 0)
		return complain(EXIT_CONFIG, "%s: auth must be token or open, not \"%s\"", where, text);
	return 0;
}

static int set_value(struct options *options, const char *key, const char *text, const char *where)
{
	if (strcmp(key, "listen") == 0)
		return set_listen(options, text, where);
	if (strcmp(key, "auth") == 0)
		return set_auth(options, text, where);
	if (strcmp(key, "worker.rescheduleOnExpiry") == 0) {
		bool yes = strcmp(text, "true") == 0;
		if (!yes && strcmp(text, "false") != 0)
			return complain(
				EXIT_CONFIG, "%s: %s must be true or false, not \"%s\"", where, key, text);
		options->storage.rules.reschedule_on_expiry = yes;
		return 0;
	}
	return set_number(options, key, text, where);
}

/* --- the file ------------------------------------------------------------------------------------- */

static int set_json(struct options *options, const char *prefix, yyjson_val *object, const char *where)
{
	size_t at, count;
	yyjson_val *name, *value;
	char key[KEY_MAX], text[KEY_MAX];

	yyjson_obj_foreach(object, at, count, name, value)
	{
		snprintf(key, sizeof key, "%s%s%s", prefix, prefix[0] ? "." : "", yyjson_get_str(name));
		int r = 0;
		if (strcmp(key, "$schema") == 0)
			continue;
		if (yyjson_is_obj(value)) {
			r = set_json(options, key, value, where);
		} else if (yyjson_is_str(value)) {
			r = set_value(options, key, yyjson_get_str(value), where);
		} else if (yyjson_is_int(value)) {
			snprintf(text, sizeof text, "%lld", (long long)yyjson_get_sint(value));
			r = set_value(options, key, text, where);
		} else if (yyjson_is_bool(value)) {
			r = set_value(options, key, yyjson_get_bool(value) ? "true" : "false", where);
		} else {
			r = complain(EXIT_CONFIG, "%s: %s has a value of a kind that no setting takes", where,
				key);
		}
		if (r != 0)
			return r;
	}
	return 0;
}

static int read_file(const char *path, struct buf *text)
{
	char block[4096];
	size_t got;
	FILE *file = fopen(path, "re");

	if (!file)
		return -errno;
	int r = 0;
	while (r == 0 && (got = fread(block, 1, sizeof block, file)) > 0)
		r = buf_put(text, block, got);
	if (r == 0 && ferror(file))
		r = -EIO;
	fclose(file);
	return r;
}

static int read_config(struct options *options)
{
	char path[OPTIONS_PATH_MAX + 16];
	bool named = options->config[0] != 0;
	struct json_complaint complaint;
	struct buf text;

	if (named)
		snprintf(path, sizeof path, "%s", options->config);
	else
		snprintf(path, sizeof path, "%s/config.json", options->home);
	buf_init(&text, CONFIG_BYTES_MAX);
	int r = read_file(path, &text);
	if (r == -ENOENT && !named) {
		buf_done(&text);
		return 0;
	}
	if (r < 0) {
		buf_done(&text);
		return complain(EXIT_CONFIG, "cannot read %s: %s", path, strerror(-r));
	}
	yyjson_doc *doc = json_read_config(buf_span(&text), &complaint);
	buf_done(&text);
	if (!doc)
		return complain(EXIT_CONFIG, "%s: %s", path, complaint.reason);
	yyjson_val *root = yyjson_doc_get_root(doc);
	r = yyjson_is_obj(root) ? set_json(options, "", root, path)
				: complain(EXIT_CONFIG, "%s: a configuration is an object: { … }", path);
	yyjson_doc_free(doc);
	return r;
}

/* --- flags ------------------------------------------------------------------------------------------ */

static int default_home(struct options *options)
{
	const char *home = getenv("STINT_HOME"), *state = getenv("XDG_STATE_HOME"), *user = getenv("HOME");
	int len;

	if (home && home[0])
		len = snprintf(options->home, sizeof options->home, "%s", home);
	else if (state && state[0])
		len = snprintf(options->home, sizeof options->home, "%s/stint", state);
	else if (user && user[0])
		len = snprintf(options->home, sizeof options->home, "%s/.local/state/stint", user);
	else
		return complain(EXIT_USAGE, "say where the state goes: --home DIR, or set STINT_HOME");
	return len < (int)sizeof options->home
		? 0
		: complain(EXIT_USAGE, "the path of the state directory is too long");
}

static int set_store(struct options *options, const char *url)
{
	if (strncmp(url, "sqlite:", 7) == 0)
		return set_path(options->store, url + 7, "--store");
	return complain(EXIT_USAGE, "--store takes sqlite:PATH, not \"%s\"", url);
}

struct sets {
	const char *texts[64];
	size_t count;
};

static int take_flag(struct options *options, const char *flag, const char *value, struct sets *sets)
{
	if (strcmp(flag, "--home") == 0)
		return set_path(options->home, value, flag);
	if (strcmp(flag, "--config") == 0)
		return set_path(options->config, value, flag);
	if (strcmp(flag, "--store") == 0)
		return set_store(options, value);
	if (strcmp(flag, "--listen") == 0 || strcmp(flag, "--set") == 0) {
		if (sets->count + 2 > sizeof sets->texts / sizeof *sets->texts)
			return complain(EXIT_USAGE, "too many settings on the command line");
		sets->texts[sets->count++] = flag;
		sets->texts[sets->count++] = value;
		return 0;
	}
	return complain(EXIT_USAGE, "there is no flag %s; try stintd --help", flag);
}

static int read_flags(int argc, char **argv, struct options *options, struct sets *sets)
{
	for (int i = 1; i < argc; i++) {
		const char *flag = argv[i];
		if (strcmp(flag, "--help") == 0 || strcmp(flag, "-h") == 0) {
			options->help = true;
		} else if (strcmp(flag, "--version") == 0) {
			options->version = true;
		} else if (strcmp(flag, "--behind-proxy") == 0) {
			options->behind_proxy = true;
		} else if (flag[0] != '-') {
			return complain(EXIT_USAGE, "stintd takes flags only; \"%s\" is none", flag);
		} else if (i + 1 == argc) {
			return complain(EXIT_USAGE,
				"%s needs a value, or is no flag of stintd; try stintd --help", flag);
		} else {
			int r = take_flag(options, flag, argv[++i], sets);
			if (r != 0)
				return r;
		}
	}
	return 0;
}

/* Flags stand above the file, so they are applied after it. */
static int apply_sets(struct options *options, const struct sets *sets)
{
	char key[KEY_MAX];

	for (size_t i = 0; i < sets->count; i += 2) {
		const char *flag = sets->texts[i], *value = sets->texts[i + 1];
		int r;
		if (strcmp(flag, "--listen") == 0) {
			r = set_listen(options, value, flag);
		} else {
			const char *equals = strchr(value, '=');
			if (!equals || equals == value || (size_t)(equals - value) >= sizeof key)
				return complain(EXIT_USAGE, "--set takes KEY=VALUE, not \"%s\"", value);
			memcpy(key, value, (size_t)(equals - value));
			key[equals - value] = 0;
			r = set_value(options, key, equals + 1, flag);
		}
		if (r != 0)
			return r;
	}
	return 0;
}

static bool is_loopback(const char *host)
{
	struct in_addr four;
	struct in6_addr six;

	if (inet_pton(AF_INET, host, &four) == 1)
		return ntohl(four.s_addr) >> 24 == 127;
	if (inet_pton(AF_INET6, host, &six) == 1)
		return IN6_IS_ADDR_LOOPBACK(&six);
	return strcmp(host, "localhost") == 0;
}

int options_read(int argc, char **argv, struct options *ret_options)
{
	struct options *options = ret_options;
	struct sets sets = {.count = 0};

	memset(options, 0, sizeof *options);
	options->storage = store_options_default();
	options->sweep_ms = 1000;
	options->auth_failures_per_s = 10;
	options->strangers_max = 100;
	options->in_flight_max = 64;
	options->streams_max = 16;
	strcpy(options->host, "127.0.0.1");
	options->port = 8787;
	int r = read_flags(argc, argv, options, &sets);
	if (r != 0 || options->help || options->version)
		return r;
	if (options->home[0] == 0)
		r = default_home(options);
	if (r == 0)
		r = read_config(options);
	if (r == 0)
		r = apply_sets(options, &sets);
	if (r != 0)
		return r;
	if (options->auth_open && (!is_loopback(options->host) || options->behind_proxy))
		return complain(EXIT_CONFIG,
			"auth=open lets in whoever reaches the port without a token, so it goes with 127.0.0.1 or ::1 and without --behind-proxy only");
	if (!is_loopback(options->host) && !options->behind_proxy)
		return complain(EXIT_CONFIG,
			"listening on %s needs a proxy that speaks TLS in front: say --behind-proxy, or listen on 127.0.0.1",
			options->host);
	if (options->store[0] == 0 &&
		snprintf(options->store, sizeof options->store, "%s/stint.db", options->home) >=
			(int)sizeof options->store)
		return complain(EXIT_USAGE, "the path of the state directory is too long");
	return 0;
}
