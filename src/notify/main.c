/*
 * stint-notify: sends events as webhooks. Here are its command line, its configuration and where the server is; the work is
 * in notifier.c. It is a client of the event stream like any other and has nothing to do with the store.
 */
#include <errno.h>
#include <signal.h>
#include <sodium.h>
#include <stdarg.h>
#include <stdio.h>
#include <string.h>
#include <sys/prctl.h>
#include <sys/stat.h>
#include <unistd.h>

#include "base/files.h"
#include "base/iso_time.h"
#include "base/log.h"
#include "base/take.h"
#include "notify/notifier.h"
#include "wire/form/command_line.h"

enum {
	EXIT_FAILED = 1,
	EXIT_USAGE = 2,
	EXIT_CONFIG = 78,
	TEXT_BYTES_MAX = 4 << 20,
};

static const char usage[] =
	"usage: stint-notify [run] [FLAGS]        send webhooks to the targets of the configuration, until a signal\n"
	"       stint-notify ls [--json] [FLAGS]  the targets, the last event sent to each, and how that delivery went\n"
	"       stint-notify test NAME [--json] [FLAGS]  send one test message, and print the answer\n"
	"\n"
	"A target gets signed webhooks: one at the end of every session whose channel is its name, and one for each event that\n"
	"it lists. `stint notify` is the same program.\n"
	"\n"
	"  --home DIR         state directory (default $STINT_HOME, $XDG_STATE_HOME/stint, ~/.local/state/stint)\n"
	"  --url URL          the server: https://HOST:PORT, http://… or unix:/PATH; several of one store with\n"
	"                     commas (default $STINT_URL, else that of the home)\n"
	"  --token TOKEN      credential (default $STINT_TOKEN); others can see it, so a file is better\n"
	"  --token-file FILE  a file with it (default $STINT_TOKEN_FILE, else admin.token of the home)\n"
	"  --ca FILE          certificates of the authorities that an https server is trusted by (default $STINT_CA)\n"
	"  --plain            send the credential by http to another computer: anybody on the way can read it\n"
	"  --config FILE      instead of the three configuration files\n"
	"  --set KEY=VALUE    a key that the server has too, as log.level\n"
	"  --version          print the version\n"
	"\n"
	"The configuration (JSON, comments allowed): {\"notify\": {\"targets\": {\"ops\": {\"url\": \"https://example.com/hook\",\n"
	"\"secretFile\": \"/etc/stint/ops.secret\", \"events\": [\"alerts\"]}}}}. The status is 78 if it is wrong, or has no target.\n"
	"\n"
	"Try: stint notify test ops\n";

struct notify_flags {
	struct server_place_flags place;
	const char *config;
	const char *verb, *name; /* words that are no flags; the verb is "run" unless another is given */
	struct config_sets sets;
	bool json, help, version;
};

__attribute__((format(printf, 2, 3))) static int complain(int status, const char *format, ...)
{
	va_list args;

	va_start(args, format);
	fputs("stint-notify: ", stderr);
	vfprintf(stderr, format, args);
	fputc('\n', stderr);
	va_end(args);
	return status;
}

/* ---- the command line ------------------------------------------------------------------------------------------------ */

static const struct field flag_fields[] = {
	FIELD(notify_flags, place.home, "", FIELD_STRING, .flag = "--home"),
	FIELD(notify_flags, place.url, "", FIELD_STRING, .flag = "--url"),
	FIELD(notify_flags, place.token, "", FIELD_STRING, .flag = "--token"),
	FIELD(notify_flags, place.token_file, "", FIELD_STRING, .flag = "--token-file"),
	FIELD(notify_flags, place.ca, "", FIELD_STRING, .flag = "--ca"),
	FIELD(notify_flags, place.plain, "", FIELD_BOOL, .bare = true, .flag = "--plain"),
	FIELD(notify_flags, config, "", FIELD_STRING, .flag = "--config"),
	FIELD(notify_flags, sets, "", FIELD_BY, .by = config_take_set, .many = true, .allowed = "KEY=VALUE",
		.flag = "--set"),
	FIELD(notify_flags, json, "", FIELD_BOOL, .bare = true, .flag = "--json"),
	FIELD(notify_flags, help, "", FIELD_BOOL, .bare = true, .flag = "--help"),
	FIELD(notify_flags, version, "", FIELD_BOOL, .bare = true, .flag = "--version"),
};

static int read_flags(int argc, char **argv, struct notify_flags *flags)
{
	static const char *const commands[] = {"run", "ls", "test", NULL};
	const struct command_line line = {.program = "stint-notify",
		.tables = {{FIELDS(flag_fields), flags}},
		.words = commands,
		.word_max = 2};
	const char *words[COMMAND_WORDS_MAX] = {0};
	char complaint[COMMAND_COMPLAINT_BYTES];

	if (command_line_read(&line, argc, argv, words, complaint) < 0)
		return complain(EXIT_USAGE, "%s", complaint);
	flags->verb = words[0] ? words[0] : "run";
	flags->name = words[1];
	return 0;
}

/* A verb, with a name if and only if it wants one. */
static int check_words(const struct notify_flags *flags)
{
	bool tests = strcmp(flags->verb, "test") == 0, lists = strcmp(flags->verb, "ls") == 0;

	if (tests != (flags->name != NULL))
		return complain(EXIT_USAGE,
			tests ? "test needs the name of a target; stint-notify ls lists the targets"
			      : "only test takes a name; stint-notify --help");
	if (flags->json && !lists && !tests)
		return complain(EXIT_USAGE, "--json is for ls and test");
	return 0;
}

/* ---- ls --------------------------------------------------------------------------------------------------------------- */

static void put_json_target(
	struct buf *out, const struct target *target, const struct cursor *cursor, int dir_fd)
{
	static struct history history;
	struct json_object object;
	char origin[300];

	target_put_origin(target, origin, sizeof origin);
	json_begin(&object, out);
	json_member_string(&object, "name", span_of(target->name));
	json_member_string(&object, "url", span_of(origin));
	bool any = false;
	json_member_raw(&object, "events", SPAN("["));
	for (size_t i = 0; target->events && target->events[i]; i++) {
		json_put_comma(out, &any);
		json_put_string(out, span_of(target->events[i]));
	}
	buf_put_byte(out, ']');
	if (cursor->known)
		json_member_decimal(&object, "cursor", (uint64_t)cursor->seq);
	else
		json_member_null(&object, "cursor");
	cursor_put_figures(&object, cursor);
	history_open(&history, dir_fd, target->name);
	if (json_put_key(&object, "last"))
		history_put(out, &history);
	json_end(&object);
}

static void put_target(struct buf *out, const struct target *target, const struct cursor *cursor)
{
	char origin[300], when[ISO_TIME_BYTES + 1];

	target_put_origin(target, origin, sizeof origin);
	iso_time_put(cursor->last_ms, when);
	buf_printf(out, "%s  %s\n  events     sessions of channel %s", target->name, origin, target->name);
	for (size_t i = 0; target->events && target->events[i]; i++)
		buf_printf(out, ", %s", target->events[i]);
	buf_put_byte(out, '\n');
	if (!cursor->known) {
		buf_printf(
			out, "  cursor     none yet: it begins with what happens when stint-notify runs\n");
		return;
	}
	buf_printf(out, "  cursor     %lld\n  delivered  %lld, given up %lld, missed %lld\n",
		(long long)cursor->seq, (long long)cursor->delivered, (long long)cursor->given_up,
		(long long)cursor->missed);
	if (cursor->last_ms > 0)
		buf_printf(out, "  last       %s %s: %s\n", when, cursor->last_id,
			cursor->last_error[0] ? cursor->last_error : "delivered");
}

static int list(const struct targets *targets, const char *home, bool json)
{
	cleanup(buf_done) struct buf out = {0};
	cleanup(close_at) int dir_fd = cursor_dir_open(home);

	if (dir_fd < 0)
		return complain(EXIT_FAILED, "cannot look into %s/notify: %s", home, strerror(-dir_fd));
	buf_init(&out, TEXT_BYTES_MAX);
	if (json)
		buf_printf(&out, "{\"schema\":1,\"ok\":true,\"targets\":[");
	for (uint32_t i = 0; i < targets->count; i++) {
		const struct target *target = &targets->items[i];
		struct cursor cursor;
		int r = cursor_read(dir_fd, target->name, &cursor);
		if (r < 0)
			return complain(EXIT_FAILED, "%s/notify/%s.json cannot be read: %s", home,
				target->name, strerror(-r));
		if (json && i > 0)
			buf_put_byte(&out, ',');
		if (json)
			put_json_target(&out, target, &cursor, dir_fd);
		else
			put_target(&out, target, &cursor);
	}
	if (json)
		buf_printf(&out, "]}\n");
	if (buf_fault(&out))
		return complain(EXIT_FAILED, "the list does not fit: %s", strerror(-buf_fault(&out)));
	int r = file_write_all(STDOUT_FILENO, buf_span(&out));
	return r < 0 ? complain(EXIT_FAILED, "cannot write the list: %s", strerror(-r)) : 0;
}

/* ---- test -------------------------------------------------------------------------------------------------------------- */

/* {"schema":1,"ok":true,"test":{"target":"ops","delivered":true,"status":200}} */
static int put_outcome(const char *name, const struct delivery_outcome *outcome)
{
	cleanup(buf_done) struct buf text;
	struct json_object object, told;

	buf_init(&text, TEXT_BYTES_MAX);
	json_begin(&object, &text);
	json_member_int(&object, "schema", 1);
	json_member_bool(&object, "ok", outcome->delivered);
	json_put_key(&object, "test");
	json_begin(&told, &text);
	json_member_string(&told, "target", span_of(name));
	json_member_bool(&told, "delivered", outcome->delivered);
	if (outcome->status > 0)
		json_member_int(&told, "status", outcome->status);
	if (!outcome->delivered)
		json_member_string(&told, "error", span_of(outcome->error));
	json_end(&told);
	int r = json_end(&object);
	if (r == 0)
		r = buf_put_byte(&text, '\n');
	if (r < 0 || fwrite(text.data, 1, text.len, stdout) != text.len)
		return complain(EXIT_FAILED, "the outcome cannot be printed");
	return outcome->delivered ? 0 : EXIT_FAILED;
}

static int test(const struct targets *targets, const char *name, bool json)
{
	const struct target *target = targets_find(targets, name);

	if (!target)
		return complain(
			EXIT_USAGE, "there is no target \"%s\"; stint-notify ls lists the targets", name);
	struct delivery_outcome outcome = notifier_test(targets, target);
	if (json)
		return put_outcome(name, &outcome);
	if (!outcome.delivered)
		return complain(EXIT_FAILED, "%s did not get the message: %s", name, outcome.error);
	printf("%s got the message; its answer was %ld\n", name, outcome.status);
	return 0;
}

/* ---- all of it ---------------------------------------------------------------------------------------------------------- */

static int print_problems(const struct config *config)
{
	cleanup(buf_done) struct buf text;

	buf_init(&text, TEXT_BYTES_MAX);
	if (config_put_problems(&text, config, "stint-notify: ") < 0)
		return complain(EXIT_CONFIG, "the configuration is wrong, and there is no memory to say how");
	fwrite(text.data, 1, text.len, stderr);
	return EXIT_CONFIG;
}

static int run(const struct notify_flags *flags, struct config *config, const struct targets *targets)
{
	static struct server_place place;
	char complaint[SERVER_PLACE_COMPLAINT_BYTES];

	if (targets->count == 0)
		return complain(EXIT_CONFIG,
			"the configuration has no target, so there is nothing to do; add one, as in\n"
			"  {\"notify\": {\"targets\": {\"ops\": {\"url\": \"https://example.com/hook\", \"secretFile\": "
			"\"/etc/stint/ops.secret\", \"events\": [\"alerts\"]}}}}");
	if (strcmp(flags->verb, "ls") == 0)
		return list(targets, config->home.text, flags->json);
	if (strcmp(flags->verb, "test") == 0)
		return test(targets, flags->name, flags->json);
	if (server_place_find(&flags->place, config->home.text, &place, complaint) < 0)
		return complain(EXIT_USAGE, "%s", complaint);
	log_start(STDERR_FILENO, (enum log_format)config_number(config, CONFIG_LOG_FORMAT),
		(enum log_level)config_number(config, CONFIG_LOG_LEVEL));
	return notifier_run(targets, &place, config->home.text);
}

int main(int argc, char **argv)
{
	static struct notify_flags flags;
	static struct config config;
	static struct targets targets;

	int r = read_flags(argc, argv, &flags);
	if (r != 0)
		return r;
	if (flags.help || flags.version) {
		fputs(flags.help ? usage : "stint-notify " STINT_VERSION "\n", stdout);
		return 0;
	}
	r = check_words(&flags);
	if (r != 0)
		return r;
	if (sodium_init() < 0 || curl_global_init(CURL_GLOBAL_DEFAULT) != CURLE_OK)
		return complain(EXIT_FAILED, "the libraries for HTTP and signatures cannot be used");
	signal(SIGPIPE, SIG_IGN);
	umask(077);
	prctl(PR_SET_DUMPABLE, 0);
	targets_init(&targets);
	struct config_request request = {
		.home = flags.place.home,
		.file = flags.config,
		.flags = flags.sets.flags,
		.flag_count = flags.sets.count,
		.foreign_read = targets_read,
		.foreign_context = &targets,
	};
	config_read(&config, &request);
	targets_check(&targets, &config);
	r = config.problem_count > 0 ? print_problems(&config) : run(&flags, &config, &targets);
	sodium_memzero(&targets, sizeof targets);
	config_done(&config);
	curl_global_cleanup();
	return r;
}
