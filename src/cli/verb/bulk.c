/*
 * stint bulk: one change for all tasks that match a filter. The server does it in steps; this verb counts first, asks, and watches.
 */
#include "cli/verb/bulk.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <termios.h>
#include <time.h>
#include <unistd.h>

#include "base/clock.h"
#include "base/take.h"
#include "cli/verb/task_view.h"

enum {
	LOOK_MS = 250,
	SETTLE_MS = 500, /* a key that was typed before the question could be read is no answer */
	SKIPPED_TOLD = 3,
};

static const struct bulk_words all_words[] = {
	{"cancel", "Cancel", "cancelled",
		"pending,scheduled,waiting,ready,claimed,running,asking,review,blocked"},
	{"retry", "Retry", "retried", "failed,blocked"},
	{"park", "Park", "parked", "scheduled,waiting,ready"},
	{"unpark", "Unpark", "unparked", "pending"},
	{"move", "Move", "moved", "pending,scheduled,waiting,ready,claimed,running,asking,review,blocked"},
	{"priority", "Change the priority of", "given another priority",
		"pending,scheduled,waiting,ready,claimed,running,asking,review,blocked"},
	{"purge", "Purge", "purged", "done,failed,cancelled"},
};

const struct bulk_words *bulk_words_of(struct span action)
{
	for (size_t i = 0; i < sizeof all_words / sizeof *all_words; i++) {
		if (span_is(action, all_words[i].action))
			return &all_words[i];
	}
	return NULL;
}

/* ---- counting and asking ------------------------------------------------------------------------------------ */

static const char *tasks_of(struct cli *cli, long long count)
{
	return cli_text(cli, "%lld task%s", count, count == 1 ? "" : "s");
}

static long long running_of(yyjson_val *count)
{
	yyjson_val *states = field_get(count, "states");

	return field_int(states, "running", 0) + field_int(states, "claimed", 0);
}

static const char *and_running(struct cli *cli, yyjson_val *count)
{
	long long running = running_of(count);

	return running > 0 ? cli_text(cli, ", %lld of them running", running) : "";
}

static int tell_count(struct cli *cli, const struct bulk_words *words, yyjson_val *count)
{
	long long matched = field_int(count, "matched", 0);

	if (cli->output == OUTPUT_JSON)
		return cli_put_json(cli, "bulk", count);
	if (matched == 0)
		cli_put(cli, "No task matches\n");
	else
		cli_put(cli, "%s would be %s%s\n", tasks_of(cli, matched), words->done,
			and_running(cli, count));
	return 0;
}

/* Only a person at a terminal is asked. */
static bool must_ask(const struct cli *cli)
{
	return !args_has(&cli->args, "yes") && cli->output != OUTPUT_JSON && cli->term.talk_tty &&
		isatty(STDIN_FILENO);
}

/* The number is typed, so that Enter alone is never yes. */
static bool is_confirmed(struct cli *cli, const struct bulk_words *words, yyjson_val *count)
{
	long long matched = field_int(count, "matched", 0);
	const char *wanted = cli_text(cli, "%lld\n", matched);
	const struct timespec settle = {.tv_nsec = SETTLE_MS * 1000000L};
	char typed[32];

	cli_say(cli, "%s %s%s? Type %lld:", words->begin, tasks_of(cli, matched), and_running(cli, count),
		matched);
	nanosleep(&settle, NULL);
	tcflush(STDIN_FILENO, TCIFLUSH);
	return fgets(typed, sizeof typed, stdin) && strcmp(typed, wanted) == 0;
}

/* ---- until the end ------------------------------------------------------------------------------------------- */

static const char *skipped_of(struct cli *cli, yyjson_val *bulk)
{
	yyjson_val *code, *number;
	const char *text = "";
	size_t at, count;

	yyjson_obj_foreach(field_get(bulk, "skipped"), at, count, code, number)
	{
		if (at < SKIPPED_TOLD)
			text = cli_text(cli, "%s%s%lld %.*s", text, text[0] ? ", " : "",
				(long long)yyjson_get_sint(number), SPAN_ARGS(json_text(code)));
	}
	return text;
}

static void draw(struct cli *cli, yyjson_val *bulk)
{
	long long matched = field_int(bulk, "matched", 0), done = field_int(bulk, "done", 0);
	const char *skipped = skipped_of(cli, bulk);

	cli_progress(cli, matched > 0 ? (int)(done < matched ? done * 100 / matched : 100) : 100,
		cli_text(cli, "%s  %lld of %lld", field_cstr(cli, bulk, "id"), done, matched),
		skipped[0] ? cli_text(cli, "skipped: %s", skipped) : "");
}

static int tell_end(struct cli *cli, const struct bulk_words *words, yyjson_val *bulk, int64_t took_ms)
{
	bool good = span_is(field_text(bulk, "state"), "done");
	const char *skipped = skipped_of(cli, bulk);

	if (cli->output == OUTPUT_JSON) {
		int r = cli_put_json(cli, "bulk", bulk);
		return r != 0 || good ? r : EXIT_UNSUCCESSFUL;
	}
	if (cli->term.tty)
		cli_put(cli, "%lld %s%s, %.*s\n", (long long)field_int(bulk, "done", 0), words->done,
			good ? ""
			     : cli_text(cli, " before it was stopped (%s)", field_cstr(cli, bulk, "reason")),
			SPAN_ARGS(view_duration(cli, took_ms)));
	else
		cli_put(cli, "%s\n", field_cstr(cli, bulk, "id"));
	if (skipped[0])
		cli_say(cli, "skipped: %s", skipped);
	return good ? EXIT_GOOD : EXIT_UNSUCCESSFUL;
}

static int watch(struct cli *cli, const struct bulk_words *words, const char *id)
{
	const struct timespec pause = {.tv_nsec = LOOK_MS * 1000000L};
	int64_t began_ms = clock_ms(CLOCK_MONOTONIC);

	for (;;) {
		struct ask ask = {HTTP_METHOD_GET, "/api/bulk/*", .names = {id}, .patience = UINT32_MAX};
		cleanup(reply_done) struct reply reply = {0};
		int r = server_ask(cli, &ask, &reply);
		if (r != 0)
			return r;
		if (!span_is(field_text(reply.root, "state"), "running"))
			return tell_end(cli, words, reply.root, clock_ms(CLOCK_MONOTONIC) - began_ms);
		if (clock_ms(CLOCK_MONOTONIC) - began_ms >= LOOK_MS)
			draw(cli, reply.root);
		nanosleep(&pause, NULL);
	}
}

static struct reply post(struct cli *cli, const struct bulk_run *run, bool dry)
{
	struct json_object *body = cli_body(cli);

	run->members(cli, body);
	if (dry)
		json_member_bool(body, "dryRun", true);
	return server_post(cli, run->path, run->name, cli_body_end(cli));
}

static int begin(struct cli *cli, const struct bulk_run *run)
{
	cleanup(reply_done) struct reply reply = post(cli, run, false);
	const char *id = field_cstr(cli, reply.root, "id");

	if (!args_has(&cli->args, "no-wait"))
		return watch(cli, run->words, id);
	if (cli->output == OUTPUT_JSON)
		return cli_put_json(cli, "bulk", reply.root);
	cli_put_change(cli, 1, id,
		cli_text(cli, "%s begins: %s", id, tasks_of(cli, field_int(reply.root, "matched", 0))));
	return 0;
}

int bulk_go(struct cli *cli, const struct bulk_run *run)
{
	cleanup(reply_done) struct reply count = post(cli, run, true);

	if (args_has(&cli->args, "dry-run") || field_int(count.root, "matched", 0) == 0)
		return tell_count(cli, run->words, count.root);
	if (must_ask(cli) && !is_confirmed(cli, run->words, count.root))
		return cli_fail(cli, EXIT_UNSUCCESSFUL, "not_confirmed", NULL, "nothing was changed");
	return begin(cli, run);
}

/* ---- the verbs ------------------------------------------------------------------------------------------------ */

#define BULK_FLAGS                                                                                           \
	{"state", 's', FLAG_NAMES, OFFER_STATES, true, .value = "STATE,…",                                   \
		.text = "only in these states (default: those that the change is for)"},                     \
		{"queue", 'Q', FLAG_TEXT, OFFER_QUEUES, .value = "NAME", .text = "only of this queue"},      \
		{"owner", 0, FLAG_TEXT, OFFER_SLOTS, .value = "SLOT", .text = "only for this slot"},         \
		{"label", 'l', FLAG_TEXT, .value = "LABEL", .text = "only with this label"},                 \
		{"group", 'g', FLAG_TEXT, OFFER_GROUPS, .value = "GROUP", .text = "only of this group"},     \
		{"schedule", 0, FLAG_TEXT, OFFER_SCHEDULES, .value = "ID",                                   \
			.text = "only made by this schedule"},                                               \
		{"error", 'e', FLAG_TEXT, .value = "CODE", .text = "only failed or blocked with this code"}, \
		{"search", '/', FLAG_TEXT, .value = "TEXT",                                                  \
			.text = "only with these words, as stint ls finds them"},                            \
		{"all", 'a', FLAG_SWITCH, .text = "all tasks in these states"}

#define RUN_FLAGS                                                               \
	{"dry-run", 'n', FLAG_SWITCH, .text = "only say how many tasks match"}, \
		{"yes", 'y', FLAG_SWITCH, .text = "do not ask"},                \
		{"no-wait", 0, FLAG_SWITCH, .text = "print the id of the bulk action and return"}

static const struct flag flags[] = {BULK_FLAGS, RUN_FLAGS, {0}};
const struct flag bulk_group_flags[] = {RUN_FLAGS, {0}};

static const char *action_of(const struct cli *cli)
{
	return cli->verb->name + strlen("bulk ");
}

static void put_states(struct cli *cli, struct json_object *filter, const struct bulk_words *words)
{
	struct args_names walk = {0};
	const char *states = "";
	struct span name;

	while (args_each_name(&cli->args, "state", &walk, &name)) {
		if (span_is(name, "parked"))
			name = SPAN("pending");
		states = cli_text(cli, "%s%s%.*s", states, states[0] ? "," : "", SPAN_ARGS(name));
	}
	json_member_string(filter, "state", span_of(states[0] ? states : words->states));
}

static void put_value(struct cli *cli, struct json_object *body)
{
	const char *action = action_of(cli), *value = args_plain(&cli->args, 0);
	char *end = NULL;

	if (!value)
		return;
	long number = strtol(value, &end, 10);
	if (strcmp(action, "priority") == 0 && *value && !*end)
		json_member_int(body, "value", number);
	else
		json_member_string(body, "value", span_of(value));
}

static void put_request(struct cli *cli, struct json_object *body)
{
	static const struct {
		const char *flag, *member;
	} filters[] = {{"queue", "queue"}, {"owner", "owner"}, {"label", "label"}, {"group", "group"},
		{"schedule", "schedule"}, {"error", "error"}, {"search", "q"}};
	struct json_object filter;

	json_member_string(body, "action", span_of(action_of(cli)));
	put_value(cli, body);
	if (!json_put_key(body, "filter"))
		return;
	json_begin(&filter, body->buf);
	put_states(cli, &filter, bulk_words_of(span_of(action_of(cli))));
	for (size_t i = 0; i < sizeof filters / sizeof *filters; i++)
		cli_member_text(&filter, filters[i].member, args_text(&cli->args, filters[i].flag));
	json_note(body, json_end(&filter));
}

/* Nobody means all tasks by saying nothing. */
static bool names_tasks(const struct args *args)
{
	static const char *const names[] = {
		"queue", "owner", "label", "group", "schedule", "error", "search", "all", "state"};

	for (size_t i = 0; i < sizeof names / sizeof *names; i++) {
		if (args_has(args, names[i]))
			return true;
	}
	return false;
}

static int run_bulk(struct cli *cli)
{
	const char *action = action_of(cli);
	struct bulk_run run = {"/api/tasks/bulk", NULL, bulk_words_of(span_of(action)), put_request};

	if (!names_tasks(&cli->args))
		return cli_fail(cli, EXIT_USAGE, "usage", "stint help bulk",
			"say which tasks: a filter such as --queue or --label, or --all");
	return bulk_go(cli, &run);
}

#define BULK_VERB(action, words, ...)                                                                                             \
	const struct verb verb_bulk_##action = {.name = "bulk " #action,                                                          \
		.gives = GIVES_JSON,                                                                                              \
		.text = words                                                                                                     \
		" Says how many tasks match, asks, and waits until all were looked at; Ctrl-C leaves the work to the server. "    \
		"Each task that was there and still matches is changed once. On a terminal the answer is how many were changed; " \
		"elsewhere the id of the bulk action. Exit status 9: it was stopped.",                                            \
		.flags = flags,                                                                                                   \
		.run = run_bulk,                                                                                                  \
		__VA_ARGS__}

BULK_VERB(cancel, "Cancels all tasks that match and have not ended.", .brief = "cancel many",
	.examples = "stint bulk cancel -Q ci -l nightly --dry-run\n"
		    "stint bulk cancel -Q ci -l nightly --yes\n");
BULK_VERB(retry, "Retries all tasks that match and have failed or are blocked.", .brief = "retry many",
	.examples = "stint bulk retry --error CHECK_FAILED --yes\n");
BULK_VERB(park, "Parks all tasks that match and wait.", .brief = "park many",
	.examples = "stint bulk park -l nightly --yes\n");
BULK_VERB(unpark, "Unparks all parked tasks that match.", .brief = "unpark many",
	.examples = "stint bulk unpark -l nightly --yes\n");
BULK_VERB(move, "Moves all tasks that match and have not ended into another queue.", .arguments = "QUEUE",
	.offer = OFFER_QUEUES, .brief = "into another queue",
	.examples = "stint bulk move later -Q ci --yes\n");
BULK_VERB(priority,
	"Gives all tasks that match and have not ended another priority: a number, or urgent, high, normal, low.",
	.arguments = "PRIORITY", .brief = "another priority",
	.examples = "stint bulk priority high -g nightly --yes\n");
BULK_VERB(purge,
	"Removes all tasks that match and have ended, with their results and logs. What an open task needs stays.",
	.brief = "remove ended ones", .examples = "stint bulk purge --state cancelled -Q ci --yes\n");

/* ---- looking ---------------------------------------------------------------------------------------------------- */

static struct span how_far(struct cli *cli, yyjson_val *bulk)
{
	return span_of(cli_text(cli, "%lld of %lld", (long long)field_int(bulk, "done", 0),
		(long long)field_int(bulk, "matched", 0)));
}

static struct span skipped(struct cli *cli, yyjson_val *bulk)
{
	return span_of(skipped_of(cli, bulk));
}

static const struct column columns[] = {
	{"BULK", "id", .paint = PAINT_BOLD},
	{"CHANGE", "action", .paint = PAINT_NONE},
	{"STATE", "state", .kind = COLUMN_STATE},
	{"DONE", .make = how_far, .right = true},
	{"SKIPPED", .make = skipped, .shrinks = true, .rank = 1},
	{"AGE", "createdAt", COLUMN_AGE, .right = true, .rank = 2},
};

static const struct list_view bulks = {
	.path = "/api/bulk",
	.key = "bulks",
	.id = "id",
	VIEW_COLUMNS(columns),
	.none = "No bulk action.",
};

const struct verb verb_bulk_ls = {
	.name = "bulk ls",
	.gives = GIVES_JSON | GIVES_ROWS | GIVES_AGAIN,
	.brief = "those that run, and the last",
	.text = "Lists the bulk actions that run and the last ones that have ended: what each does, how many tasks it has changed of those "
		"that matched, and how many it could not change, by the reason.",
	.examples = "stint bulk ls\n",
	.list = &bulks,
};

static int run_show(struct cli *cli)
{
	const char *id = args_plain(&cli->args, 0);
	cleanup(reply_done) struct reply reply = server_get(cli, "/api/bulk/*", id);
	const struct bulk_words *words = bulk_words_of(field_text(reply.root, "action"));
	const char *skipped_text = skipped_of(cli, reply.root), *state = field_cstr(cli, reply.root, "state");

	if (cli->output == OUTPUT_JSON)
		return cli_put_json(cli, "bulk", reply.root);
	cli_put(cli, "%s %s: %.*s %s\n", id,
		strcmp(state, "running") == 0        ? "runs"
			: strcmp(state, "done") == 0 ? "has ended"
						     : "was stopped",
		SPAN_ARGS(how_far(cli, reply.root)), words ? words->done : "changed");
	if (skipped_text[0])
		cli_put(cli, "skipped: %s\n", skipped_text);
	return 0;
}

const struct verb verb_bulk_show = {
	.name = "bulk show",
	.arguments = "ID",
	.offer = OFFER_BULKS,
	.gives = GIVES_JSON,
	.brief = "how far it is",
	.text = "Shows one bulk action: how many tasks it has changed of those that matched, and how many it could not change, by the "
		"reason.",
	.examples = "stint bulk show b-7\n",
	.run = run_show,
};

const struct verb verb_bulk_stop = {
	.name = "bulk stop",
	.arguments = "ID...",
	.most = 100,
	.offer = OFFER_BULKS,
	.gives = GIVES_JSON,
	.brief = "stop it where it is",
	.text = "Stops bulk actions. What they have changed stays changed.",
	.examples = "stint bulk stop b-7\n",
	.change = &(const struct change){"bulk", "/api/bulk/*", .deletes = true,
		.done = "is stopped: what it has changed stays changed"},
};
