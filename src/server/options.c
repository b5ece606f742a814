#include "server/options.h"

#include <arpa/inet.h>
#include <errno.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "api/api.h"
#include "base/clock.h"
#include "base/take.h"
#include "server/certificate_file.h"
#include "store/postgres.h"
#include "wire/form/command_line.h"
#include "wire/http/transfer.h"

enum {
	EXIT_USAGE = 2,
	EXIT_CONFIG = 78,
	REPORT_BYTES_MAX = 1 << 20,
};

/* What the command line says, before anything is looked up. */
struct server_flags {
	struct config_request request;
	struct config_sets sets;
};

static int complain(const char *format, ...) __attribute__((format(printf, 1, 2)));

static int complain(const char *format, ...)
{
	va_list args;

	va_start(args, format);
	fputs("stintd: ", stderr);
	vfprintf(stderr, format, args);
	fputc('\n', stderr);
	va_end(args);
	return EXIT_USAGE;
}

/* ---- flags ------------------------------------------------------------------------------------------------ */

#define SETS_ALLOWED "KEY=VALUE; stintd --help lists the keys"

static const struct field flag_fields[] = {
	FIELD(server_flags, request.home, "", FIELD_STRING, .flag = "--home"),
	FIELD(server_flags, request.file, "", FIELD_STRING, .flag = "--config"),
	FIELD(server_flags, sets, "listen", FIELD_BY, .by = config_take_flag, .flag = "--listen"),
	FIELD(server_flags, sets, "store", FIELD_BY, .by = config_take_flag, .flag = "--store"),
	FIELD(server_flags, sets, "behindProxy", FIELD_BY, .by = config_take_flag, .bare = true,
		.flag = "--behind-proxy"),
	FIELD(server_flags, sets, "", FIELD_BY, .by = config_take_set, .many = true, .allowed = SETS_ALLOWED,
		.flag = "--set"),
};

static const struct field option_fields[] = {
	FIELD(options, restore, "", FIELD_STRING, .flag = "--restore"),
	FIELD(options, ui_dir, "", FIELD_STRING, .flag = "--ui-dir"),
	FIELD(options, check_store, "", FIELD_BOOL, .bare = true, .flag = "--check-store"),
	FIELD(options, accept_loss, "", FIELD_BOOL, .bare = true, .flag = "--accept-loss"),
	FIELD(options, new_store, "", FIELD_BOOL, .bare = true, .flag = "--new-store"),
	FIELD(options, check_config, "", FIELD_BOOL, .bare = true, .flag = "--check-config"),
	FIELD(options, json, "", FIELD_BOOL, .bare = true, .flag = "--json"),
	FIELD(options, help, "", FIELD_BOOL, .bare = true, .flag = "--help"),
	FIELD(options, version, "", FIELD_BOOL, .bare = true, .flag = "--version"),
};

/* --check-store may be followed by a file. */
static int take_check_path(int argc, char **argv, const char **ret_path)
{
	for (int i = 1; i + 1 < argc; i++) {
		if (strcmp(argv[i], "--check-store") != 0 || argv[i + 1][0] == '-')
			continue;
		*ret_path = argv[i + 1];
		memmove(&argv[i + 1], &argv[i + 2],
			(size_t)(argc - i - 1) * sizeof *argv); /* with the NULL */
		return argc - 1;
	}
	return argc;
}

static int read_flags(int argc, char **argv, struct options *options, struct server_flags *flags)
{
	const struct command_line line = {.program = "stintd",
		.tables = {{FIELDS(flag_fields), flags}, {FIELDS(option_fields), options}}};
	char complaint[COMMAND_COMPLAINT_BYTES];

	argc = take_check_path(argc, argv, &options->check_path);
	if (command_line_read(&line, argc, argv, NULL, complaint) < 0)
		return complain("%s", complaint);
	if (options->json && !options->check_config)
		return complain("--json goes with --check-config");
	if (options->check_store && (options->restore || options->accept_loss || options->new_store))
		return complain("--check-store changes nothing: it goes with no other way out");
	if (!!options->restore + options->accept_loss + options->new_store > 1)
		return complain("--restore, --accept-loss and --new-store are three ways out: choose one");
	return 0;
}

/* ---- what the table of keys does not know ------------------------------------------------------------------ */

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

/* HOST:PORT, with [::1] for addresses that have colons. */
static bool parse_listen(struct options *options, const char *text)
{
	const char *colon = strrchr(text, ':');
	const char *host = text;
	size_t host_len = colon ? (size_t)(colon - text) : 0;

	if (host_len > 2 && host[0] == '[' && host[host_len - 1] == ']') {
		host++;
		host_len -= 2;
	}
	if (host_len == 0 || host_len >= sizeof options->host || colon[1] == 0 ||
		strspn(colon + 1, "0123456789") != strlen(colon + 1) || strlen(colon + 1) > 5)
		return false;
	long port = strtol(colon + 1, NULL, 10);
	memcpy(options->host, host, host_len);
	options->host[host_len] = 0;
	options->port = (uint16_t)port;
	return port <= UINT16_MAX;
}

static void take_front(struct options *options)
{
	struct config *config = &options->config;
	const char *url = config_text(config, CONFIG_PUBLIC_URL), *wrong;

	if (url[0] && !front_read_url(&options->front, url))
		config_complain(config, CONFIG_PUBLIC_URL,
			"publicUrl must be https://HOST[:PORT][/PATH], as in https://example.org/stint, or http://localhost[:PORT][/PATH]; it is \"%s\"",
			url);
	wrong = front_read_proxies(&options->front, config_text(config, CONFIG_PROXY_FROM));
	if (wrong)
		config_complain(config, CONFIG_PROXY_FROM,
			"proxy.from must be addresses or networks with spaces between, at most %d, as in 127.0.0.1 10.0.0.0/8; it is wrong from \"%s\" on",
			FRONT_PROXIES_MAX, wrong);
	else if (options->front.proxy_count > 0 && !options->behind_proxy)
		config_complain(config, CONFIG_PROXY_FROM,
			"proxy.from is for a server with behindProxy (--behind-proxy)");
}

static void take_listen(struct options *options)
{
	struct config *config = &options->config;
	const char *text = config_text(config, CONFIG_LISTEN);

	options->behind_proxy = config_bool(config, CONFIG_BEHIND_PROXY);
	if (!parse_listen(options, text))
		config_complain(config, CONFIG_LISTEN,
			"listen must be ADDRESS:PORT, as in 127.0.0.1:8787 or [::1]:8787; it is \"%s\"",
			text);
	else if (!is_loopback(options->host) && !options->behind_proxy && !options->tls_cert[0])
		config_complain(config, CONFIG_LISTEN,
			"listening on %s needs TLS: set tls.cert and tls.key (stint tls init makes them), or say --behind-proxy (behindProxy) where a proxy in front speaks TLS, or listen on 127.0.0.1",
			options->host);
	take_front(options);
	options->auth_open = config_number(config, CONFIG_AUTH) == 1;
	if (options->auth_open && (!is_loopback(options->host) || options->behind_proxy))
		config_complain(config, CONFIG_AUTH,
			"auth \"open\" lets in everyone who reaches the port, without a token; it is allowed only on 127.0.0.1 or ::1 and without --behind-proxy");
}

static void take_postgres(struct options *options, const char *url)
{
	options->store_url = url;
	free(options->shown_url);
	options->shown_url = postgres_url_for_people(url);
	options->store = options->shown_url ? options->shown_url : "postgres";
	options->config.values[CONFIG_STORE].text =
		options->store; /* who asks for the configuration is not told the password */
	if (options->accept_loss || options->new_store)
		config_complain(&options->config, CONFIG_STORE,
			"--accept-loss and --new-store are about a store in a file; in PostgreSQL a new store is begun with another schema: postgres://…?schema=NAME");
}

/* Absolute: a service has another directory than the shell in which it is tried. */
static const char *take_path(struct options *options, enum config_key key)
{
	struct config *config = &options->config;
	const char *path = config_text(config, key);

	if (path[0] && path[0] != '/')
		config_complain(config, key,
			"%s must be an absolute path, as in /etc/stint/tls/server.crt; it is \"%s\"",
			config_keys[key].name, path);
	return path;
}

/* Both files, or neither. They are read here, so that --check-config finds what is wrong with them. What works on the store alone
 * answers nobody: root may do that by hand though the key belongs to the service. */
static void take_tls(struct options *options)
{
	struct config *config = &options->config;
	char complaint[CERTIFICATE_COMPLAINT_BYTES];
	struct tls_facts facts;
	bool serves = !options->restore && !options->check_store;

	options->tls_cert = take_path(options, CONFIG_TLS_CERT);
	options->tls_key = take_path(options, CONFIG_TLS_KEY);
	options->tls_ca = take_path(options, CONFIG_TLS_CA);
	if (!options->tls_cert[0] != !options->tls_key[0])
		config_complain(config, options->tls_cert[0] ? CONFIG_TLS_CERT : CONFIG_TLS_KEY,
			"tls.cert and tls.key go together: %s is not set",
			options->tls_cert[0] ? "tls.key" : "tls.cert");
	else if (options->tls_ca[0] && !options->tls_cert[0])
		config_complain(config, CONFIG_TLS_CA, "tls.ca is for a server with tls.cert and tls.key");
	else if (options->tls_cert[0] && serves && config->problem_count == 0 &&
		certificate_load(options, clock_ms(CLOCK_REALTIME), &options->identity, complaint) < 0)
		config_complain(config, CONFIG_TLS_CERT, "%s", complaint);
	if (options->identity && options->tls_ca[0] && certificate_authority(options, &facts, complaint) < 0)
		config_complain(config, CONFIG_TLS_CA, "%s", complaint);
}

static void take_store(struct options *options)
{
	struct config *config = &options->config;
	char path[OPTIONS_PATH_MAX + 32];

	snprintf(path, sizeof path, "sqlite:%s/stint.db", options->home);
	config_fall_back(config, CONFIG_STORE, path);
	const char *url = config_text(config, CONFIG_STORE);
	if (strncmp(url, "sqlite:", 7) == 0 && url[7])
		options->store = url + 7;
	else if (postgres_is_url(url))
		take_postgres(options, url);
	else
		config_complain(config, CONFIG_STORE,
			"store must be sqlite:PATH, as in sqlite:/var/lib/stint/stint.db, or postgres://USER@HOST/DATABASE; it is \"%s\"",
			url);
}

static void take_heartbeats(struct options *options)
{
	struct config *config = &options->config;

	options->heartbeat_file = config_text(config, CONFIG_HEARTBEATS_FILE);
	options->heartbeat_array = config_number(config, CONFIG_HEARTBEATS_SHAPE) == 1;
	options->heartbeat_interval_ms = (uint32_t)config_number(config, CONFIG_HEARTBEATS_INTERVAL_MS);
	if (options->heartbeat_file[0] && options->heartbeat_file[0] != '/')
		config_complain(config, CONFIG_HEARTBEATS_FILE,
			"heartbeats.file must be an absolute path, as in /home/me/.openclaw/workspace/.clawhub/worker-heartbeats.json; it is \"%s\"",
			options->heartbeat_file);
}

static uint32_t number(const struct options *options, enum config_key key)
{
	return (uint32_t)config_number(&options->config, key);
}

static void take_leader(struct options *options)
{
	struct config *config = &options->config;
	struct http_address address;
	const char *complaint;

	options->leader_lease_ms = number(options, CONFIG_LEADER_LEASE_MS);
	options->leader_url = config_text(config, CONFIG_LEADER_URL);
	if (options->leader_url[0] &&
		(http_address_parse(options->leader_url, &address, &complaint) < 0 || address.local))
		config_complain(config, CONFIG_LEADER_URL,
			"leader.url must be http://HOST:PORT or https://HOST:PORT; it is \"%s\"",
			options->leader_url);
}

static void take_rules(struct options *options)
{
	struct rules *rules = &options->storage.rules;
	struct retention *retention = &options->storage.retention;
	const struct config *config = &options->config;

	rules->verify_after_ms = number(options, CONFIG_CLAIM_VERIFY_AFTER_MS);
	rules->lease_min_ms = number(options, CONFIG_WORKER_LEASE_MIN_MS);
	rules->reschedule_on_expiry = config_bool(config, CONFIG_WORKER_RESCHEDULE_ON_EXPIRY);
	rules->restart_grace_ms = number(options, CONFIG_RESTART_GRACE_MS);
	rules->retry_base_ms = number(options, CONFIG_RETRY_BASE_MS);
	rules->retry_max_ms = number(options, CONFIG_RETRY_MAX_MS);
	rules->executor_missing_ms = number(options, CONFIG_EXECUTOR_MISSING_AFTER_MS);
	rules->ask_park_ms = number(options, CONFIG_ASK_PARK_MS);
	rules->crash_budget = number(options, CONFIG_TASK_CRASH_BUDGET);
	rules->timeout_ms = number(options, CONFIG_TASK_TIMEOUT_MS);
	rules->timeout_max_ms = number(options, CONFIG_TASK_TIMEOUT_MAX_MS);
	rules->hold_release_per_minute = number(options, CONFIG_HOLD_RELEASE_PER_MINUTE);
	rules->log_keep_bytes = number(options, CONFIG_TASK_LOG_KEEP_BYTES);
	rules->log_bytes_per_s = number(options, CONFIG_TASK_LOG_BYTES_PER_SECOND);
	options->storage.actions.queues[ACTION_CREATE_PR] =
		span_of(config_text(config, CONFIG_WORKFLOW_CREATE_PR));
	options->storage.actions.queues[ACTION_VALIDATE] =
		span_of(config_text(config, CONFIG_WORKFLOW_VALIDATE));
	options->storage.actions.queues[ACTION_MERGE] = span_of(config_text(config, CONFIG_WORKFLOW_MERGE));
	options->storage.actions.queues[ACTION_VERIFY] = span_of(config_text(config, CONFIG_WORKFLOW_VERIFY));
	options->storage.actions.body = api_action_body;
	options->storage.actions.error = api_action_error;
	options->storage.opt_in_queues = config_text(config, CONFIG_EXECUTION_OPT_IN_QUEUES);
	rules->principal_registrations = number(options, CONFIG_LIMITS_REGISTRATIONS);
	rules->slot_registrations = number(options, CONFIG_LIMITS_SLOT_REGISTRATIONS);
	rules->principal_workers = number(options, CONFIG_LIMITS_WORKERS);
	rules->queue_age_ms = config_number(config, CONFIG_QUEUE_AGE_MS);
	rules->task_children = number(options, CONFIG_TASK_CHILDREN_MAX);
	rules->task_tree = number(options, CONFIG_TASK_TREE_MAX);
	rules->open_tasks = number(options, CONFIG_QUOTA_OPEN_TASKS);
	rules->open_kib = (uint32_t)((config_number(config, CONFIG_QUOTA_OPEN_BYTES) + 1023) / 1024);
	rules->attempt_progress = number(options, CONFIG_LIMITS_PROGRESS);
	rules->quarantine_trial_ms = number(options, CONFIG_QUARANTINE_TRIAL_AFTER_MS);
	retention->final_ms = config_number(config, CONFIG_RETENTION_FINAL_MS);
	retention->finals_max = (uint64_t)config_number(config, CONFIG_RETENTION_FINAL_MAX);
	retention->event_ms = config_number(config, CONFIG_RETENTION_EVENT_MS);
	retention->events_max = (uint64_t)config_number(config, CONFIG_RETENTION_EVENT_MAX);
	retention->audit_max = (uint64_t)config_number(config, CONFIG_RETENTION_AUDIT_MAX);
}

/* ---- workflows ----------------------------------------------------------------------------------------------- */

/* Of the keys that are no plain values, the server's own. */
static void read_foreign(
	void *context, struct config *config, struct form *form, struct span key, struct yyjson_val *value)
{
	struct options *options = context;

	(void)config;
	workflow_form_take(&options->workflows, form, key, value);
}

/* Of two values that do not go together, complain about the one that somebody gave. */
static void check_order(struct config *config, enum config_key less, enum config_key more)
{
	enum config_key given = config->values[less].origin.source == CONFIG_DEFAULT ? more : less;

	if (config_number(config, less) > config_number(config, more))
		config_complain(config, given, "%s (%s) must not be larger than %s (%s)",
			config_keys[less].name, config->values[less].text, config_keys[more].name,
			config->values[more].text);
}

static void take_all(struct options *options)
{
	struct config *config = &options->config;

	options->home = config->home.text;
	options->storage = store_options_default();
	options->storage.workflows = options->workflows.plans;
	options->storage.workflow_count = options->workflows.count;
	take_tls(options);
	take_listen(options);
	take_store(options);
	take_rules(options);
	take_heartbeats(options);
	take_leader(options);
	check_order(config, CONFIG_RETRY_BASE_MS, CONFIG_RETRY_MAX_MS);
	check_order(config, CONFIG_TASK_TIMEOUT_MS, CONFIG_TASK_TIMEOUT_MAX_MS);
	options->sweep_ms = number(options, CONFIG_SWEEP_INTERVAL_MS);
	options->auth_failures_per_s = number(options, CONFIG_LIMITS_AUTH_FAILURES_PER_S);
	options->strangers_max = number(options, CONFIG_LIMITS_UNAUTHENTICATED);
	options->in_flight_max = number(options, CONFIG_LIMITS_REQUESTS_IN_FLIGHT);
	options->streams_max = number(options, CONFIG_LIMITS_EVENT_STREAMS);
	options->default_queues = config_text(config, CONFIG_WORKQUEUE_DEFAULT_QUEUES);
	options->disk_low_bytes = (uint64_t)config_number(config, CONFIG_DISK_LOW_BYTES);
	options->slow_turn_ms = number(options, CONFIG_LOG_SLOW_TURN_MS);
	options->log_level = (enum log_level)config_number(config, CONFIG_LOG_LEVEL);
	options->log_format = (enum log_format)config_number(config, CONFIG_LOG_FORMAT);
}

/* ---- all of it ----------------------------------------------------------------------------------------------- */

static void report_problems(const struct config *config)
{
	cleanup(buf_done) struct buf text;

	buf_init(&text, REPORT_BYTES_MAX);
	if (config_put_problems(&text, config, "stintd: ") < 0)
		fputs("stintd: the configuration is wrong, and there is no memory to say how\n", stderr);
	fwrite(text.data, 1, text.len, stderr);
}

static void print_config(const struct options *options)
{
	cleanup(buf_done) struct buf text;

	buf_init(&text, REPORT_BYTES_MAX);
	int r = options->json ? config_put_json(&text, &options->config)
			      : config_put_table(&text, &options->config);
	if (r == 0)
		fwrite(text.data, 1, text.len, stdout);
}

int options_read(int argc, char **argv, struct options *ret_options)
{
	struct options *options = ret_options;
	static struct server_flags flags; /* the configuration borrows from it */

	memset(options, 0, sizeof *options);
	memset(&flags, 0, sizeof flags);
	int r = read_flags(argc, argv, options, &flags);
	if (r != 0 || options->help || options->version)
		return r;
	flags.request.flags = flags.sets.flags;
	flags.request.flag_count = flags.sets.count;
	flags.request.foreign_read = read_foreign;
	flags.request.foreign_context = options;
	config_read(&options->config, &flags.request);
	take_all(options);
	bool good = options->config.problem_count == 0;
	if (options->check_config && (good || options->json))
		print_config(options);
	if (!good)
		report_problems(&options->config);
	return good ? 0 : EXIT_CONFIG;
}

void options_done(struct options *options)
{
	free(options->shown_url);
	if (options->identity)
		tls_identity_free(options->identity);
	config_done(&options->config);
}
