/*
 * stint wait: until tasks have ended. The event stream tells; nothing is asked twice. The cursor is taken before the
 * tasks are looked at, so an end in between is not missed.
 */
#include <assert.h>
#include <errno.h>
#include <stdio.h>
#include <string.h>

#include "base/clock.h"
#include "base/take.h"
#include "cli/frame/spawn.h"
#include "cli/verb/group_view.h"
#include "cli/verb/task_view.h"

enum {
	IDLE_MS_MAX = 1000,
	NAMED_MAX = 10,
	TASKS_MAX = 1000,
	NOTICE_AFTER_MS = 10000, /* who waited that long is likely to look elsewhere */
};

static const struct flag flags[] = {
	{"timeout", 't', FLAG_DURATION, .value = "TIME",
		.text = "give up after that long, with exit status 8"},
	{"any", 0, FLAG_SWITCH, .text = "until one of them has ended"},
	{"group", 'g', FLAG_TEXT, OFFER_GROUPS, .value = "GROUP", .text = "until this group has ended"},
	{0},
};

struct waited {
	const char *id;
	struct span state;
	bool ended;
};

struct wait_state {
	struct cli *cli;
	struct waited *tasks;
	size_t count, ended;
	int64_t until_ms; /* monotonic; 0: for ever */
	int64_t began_ms; /* monotonic */
	int percent;      /* of the task that moved last; -1: not known */
	char note[200];
};

static void draw(struct wait_state *waiting)
{
	int part = waiting->count == 1 && waiting->percent >= 0 ? waiting->percent : 0;

	cli_progress(waiting->cli, (int)(waiting->ended * 100 / waiting->count) + part,
		cli_text(waiting->cli, "%zu/%zu", waiting->ended, waiting->count), waiting->note);
}

/* ---- what happens --------------------------------------------------------------------------------------------- */

static struct waited *find(struct wait_state *waiting, struct span id)
{
	for (size_t i = 0; i < waiting->count; i++) {
		if (span_equal(span_of(waiting->tasks[i].id), id))
			return &waiting->tasks[i];
	}
	return NULL;
}

static bool is_over(const struct wait_state *waiting)
{
	return waiting->ended == waiting->count ||
		(waiting->ended > 0 && args_has(&waiting->cli->args, "any"));
}

/* The task waits for a person, and that may be the person who runs this command. */
static void tell_stuck(struct wait_state *waiting, const struct waited *task)
{
	static const char *const states[] = {"pending", "asking", "review", "blocked"};
	struct cli *cli = waiting->cli;

	for (size_t i = 0; i < sizeof states / sizeof *states; i++) {
		if (!span_equal(task->state, span_of(states[i])))
			continue;
		cli_say(cli, "stint: %s is %s, and waits for a person; stint why %s says more", task->id,
			states[i], cli_quote(cli, task->id));
	}
}

static void note_state(struct wait_state *waiting, struct waited *task, struct span state)
{
	if (state.len == 0)
		return;
	bool changed = !span_equal(task->state, state);
	task->state = span_of(cli_text(waiting->cli, "%.*s", SPAN_ARGS(state)));
	if (changed)
		tell_stuck(waiting, task);
	bool ended = view_state_is_final(state);
	waiting->ended += (size_t)ended - (size_t)task->ended; /* a retry makes it open again */
	task->ended = ended;
}

static int on_event(void *context, yyjson_val *event)
{
	struct wait_state *waiting = context;
	struct waited *task = find(waiting, field_text(event, "task"));
	yyjson_val *data = field_get(event, "data");
	struct span note = field_text(data, "note");

	if (!task)
		return 0;
	note_state(waiting, task, field_text(data, "state"));
	double percent;
	if (json_number(field_get(data, "percent"), &percent) && percent >= 0 && percent <= 100)
		waiting->percent = (int)percent;
	snprintf(waiting->note, sizeof waiting->note, "%s %.*s%s%.*s", task->id, SPAN_ARGS(task->state),
		note.len > 0 ? ": " : "", SPAN_ARGS(note));
	draw(waiting);
	return is_over(waiting) ? FOLLOW_DONE : 0;
}

static int on_idle(void *context)
{
	const struct wait_state *waiting = context;

	return waiting->until_ms != 0 && clock_ms(CLOCK_MONOTONIC) >= waiting->until_ms ? EXIT_TIMED_OUT : 0;
}

/* ---- the end --------------------------------------------------------------------------------------------------- */

static int put_end(struct wait_state *waiting, const struct waited *task)
{
	struct cli *cli = waiting->cli;

	if (cli->output != OUTPUT_JSON && !cli->term.tty) {
		cli_put(cli, "%s  %.*s\n", task->id, SPAN_ARGS(task->state));
		return 0;
	}
	cleanup(reply_done) struct reply reply = server_get(cli, "/api/tasks/*", task->id);
	if (cli->output == OUTPUT_JSON)
		return cli_put_json(cli, "task", reply.root);
	struct state_mark mark = view_state_mark(cli, task->state);
	const char *error = field_cstr(cli, field_get(reply.root, "error"), "message");
	bool done = span_equal(task->state, SPAN("done"));
	cli_put_painted(cli, mark.paint, mark.text);
	cli_put_sentence(cli, text_width(mark.text) + 2 + strlen(task->id) + 2, "  %s  %s", task->id,
		done ? field_cstr(cli, reply.root, "title") : error);
	return 0;
}

/* The person may look at another window by now. */
static void tell_desktop(struct cli *cli, int64_t began_ms, const char *text)
{
	if (cli->term.talk_tty && !cli->quiet && clock_ms(CLOCK_MONOTONIC) - began_ms >= NOTICE_AFTER_MS)
		spawn_notice("stint", text);
}

/* "3 ended: 2 done, 1 failed" */
static const char *outcome_of(struct wait_state *waiting)
{
	static const char *const states[] = {"done", "failed", "cancelled"};
	struct cli *cli = waiting->cli;
	const char *text = "";

	for (size_t i = 0; i < sizeof states / sizeof *states; i++) {
		size_t count = 0;
		for (size_t j = 0; j < waiting->count; j++)
			count += waiting->tasks[j].ended &&
				span_equal(waiting->tasks[j].state, span_of(states[i]));
		if (count > 0)
			text = cli_text(cli, "%s%s%zu %s", text, text[0] ? ", " : "", count, states[i]);
	}
	return cli_text(cli, "%zu ended: %s", waiting->ended, text);
}

/* … "22 min" */
static void sum_up(struct wait_state *waiting)
{
	struct cli *cli = waiting->cli;

	cli_say(cli, "%s, %.*s", outcome_of(waiting),
		SPAN_ARGS(view_duration(cli, clock_ms(CLOCK_MONOTONIC) - waiting->began_ms)));
}

static int finish(struct wait_state *waiting)
{
	bool all_done = true;
	int r = 0;

	for (size_t i = 0; r == 0 && i < waiting->count; i++) {
		const struct waited *task = &waiting->tasks[i];
		if (!task->ended)
			continue;
		all_done = all_done && span_equal(task->state, SPAN("done"));
		r = put_end(waiting, task);
	}
	if (r == 0 && waiting->ended > 1 && waiting->cli->term.tty && waiting->cli->output != OUTPUT_JSON)
		sum_up(waiting);
	tell_desktop(waiting->cli, waiting->began_ms,
		waiting->count > 1 ? outcome_of(waiting)
				   : cli_text(waiting->cli, "%s is %.*s", waiting->tasks[0].id,
					     SPAN_ARGS(waiting->tasks[0].state)));
	return r != 0 ? r : all_done ? EXIT_GOOD : EXIT_UNSUCCESSFUL;
}

/* "t-1 is still ready, t-2 running": the first few tasks that have not ended. */
static int time_out(struct wait_state *waiting)
{
	struct cli *cli = waiting->cli;
	const struct waited *first = NULL;
	const char *open = "";
	size_t named = 0, left = waiting->count - waiting->ended;

	for (size_t i = 0; i < waiting->count && named < NAMED_MAX; i++) {
		const struct waited *task = &waiting->tasks[i];
		if (task->ended)
			continue;
		open = cli_text(cli, "%s%s%s %s%.*s", open, named > 0 ? ", " : "", task->id,
			named > 0 ? "" : "is still ", SPAN_ARGS(task->state));
		first = first ? first : task;
		named++;
	}
	assert(first);
	if (named < left)
		open = cli_text(cli, "%s and %zu more", open, left - named);
	return cli_fail(
		cli, EXIT_TIMED_OUT, "timed_out", cli_text(cli, "stint why %s", first->id), "%s", open);
}

/* How they stand now. */
static int look(struct wait_state *waiting)
{
	for (size_t i = 0; i < waiting->count; i++) {
		struct waited *task = &waiting->tasks[i];
		cleanup(reply_done) struct reply reply = {0};
		int r = server_ask(waiting->cli,
			&(const struct ask){HTTP_METHOD_GET, "/api/tasks/*", .names = {task->id}}, &reply);
		if (r != 0)
			return r;
		note_state(waiting, task, field_text(reply.root, "state"));
		snprintf(waiting->note, sizeof waiting->note, "%s %.*s", task->id, SPAN_ARGS(task->state));
	}
	return 0;
}

/* The cursor is read before the tasks: a task that ends in between is reported twice rather than not at all. */
static int look_from(void *context, struct span *ret_after)
{
	struct wait_state *waiting = context;
	int r = server_newest_cursor(waiting->cli, ret_after);

	if (r == 0)
		r = look(waiting);
	if (r != 0 || is_over(waiting))
		return r != 0 ? r : FOLLOW_DONE;
	draw(waiting);
	return 0;
}

/* ---- a group --------------------------------------------------------------------------------------------------- */

struct group_wait {
	struct cli *cli;
	const char *name;
	int64_t until_ms;     /* monotonic; 0: for ever */
	int64_t began_ms;     /* monotonic */
	int64_t ended_before; /* members, when the waiting began; -1: nobody has looked yet */
	bool told_open;
};

/* How it stands now. FOLLOW_DONE: it has ended. */
static int look_at_group(struct group_wait *waiting)
{
	struct cli *cli = waiting->cli;
	cleanup(reply_done) struct reply reply = {0};
	int r = server_ask(
		cli, &(const struct ask){HTTP_METHOD_GET, "/api/groups/*", .names = {waiting->name}}, &reply);

	if (r != 0)
		return r;
	if (field_bool(reply.root, "ended"))
		return FOLLOW_DONE;
	if (!field_bool(reply.root, "closed") && !waiting->told_open) {
		cli_say(cli, "stint: group %s is open: it ends after stint group close %s", waiting->name,
			cli_quote(cli, waiting->name));
		waiting->told_open = true;
	}
	int64_t tasks = field_int(reply.root, "tasks", 0), open = field_int(reply.root, "open", 0);
	if (waiting->ended_before < 0)
		waiting->ended_before = tasks - open;
	yyjson_val *counts = field_get(reply.root, "counts");
	int64_t failed = field_int(counts, "failed", 0) + field_int(counts, "cancelled", 0);
	const char *left = group_left(
		cli, reply.root, clock_ms(CLOCK_MONOTONIC) - waiting->began_ms, waiting->ended_before);
	cli_progress(cli, tasks > 0 ? (int)((tasks - open) * 100 / tasks) : 0,
		cli_text(cli, "%s %lld of %lld", waiting->name, (long long)(tasks - open), (long long)tasks),
		cli_text(cli, "%s%s%s", failed > 0 ? cli_text(cli, "%lld failed", (long long)failed) : "",
			failed > 0 && left ? ", " : "", left ? left : ""));
	return 0;
}

static int on_group_event(void *context, yyjson_val *event)
{
	struct group_wait *waiting = context;
	struct span group = field_text(field_get(event, "data"), "group");

	return span_equal(group, span_of(waiting->name)) ? look_at_group(waiting) : 0;
}

static int on_group_idle(void *context)
{
	struct group_wait *waiting = context;

	if (waiting->until_ms != 0 && clock_ms(CLOCK_MONOTONIC) >= waiting->until_ms)
		return EXIT_TIMED_OUT;
	return waiting->cli->term.tty ? look_at_group(waiting) : 0;
}

/* The cursor is read before the group: an end in between is seen twice rather than not at all. */
static int look_at_group_from(void *context, struct span *ret_after)
{
	struct group_wait *waiting = context;
	int r = server_newest_cursor(waiting->cli, ret_after);

	return r != 0 ? r : look_at_group(waiting);
}

static int finish_group(struct group_wait *waiting)
{
	struct cli *cli = waiting->cli;
	cleanup(reply_done) struct reply reply = server_get(cli, "/api/groups/*", waiting->name);
	yyjson_val *counts = field_get(reply.root, "counts");
	bool all_done = field_int(counts, "failed", 0) + field_int(counts, "cancelled", 0) == 0;
	int r = 0;

	if (cli->output == OUTPUT_JSON)
		r = cli_put_json(cli, "group", reply.root);
	if (cli->output != OUTPUT_JSON && !all_done && cli->term.tty)
		group_put_failed(cli, waiting->name);
	if (cli->output != OUTPUT_JSON)
		cli_put(cli, "%s ended: %s, %.*s\n", waiting->name, group_counts(cli, reply.root),
			SPAN_ARGS(view_duration(cli, clock_ms(CLOCK_MONOTONIC) - waiting->began_ms)));
	tell_desktop(cli, waiting->began_ms,
		cli_text(cli, "%s ended: %s", waiting->name, group_counts(cli, reply.root)));
	return r != 0 ? r : all_done ? EXIT_GOOD : EXIT_UNSUCCESSFUL;
}

static int run_group(struct cli *cli, const char *name)
{
	struct group_wait waiting = {
		.cli = cli, .name = name, .began_ms = clock_ms(CLOCK_MONOTONIC), .ended_before = -1};
	struct follow follow = {.each = on_group_event,
		.idle = on_group_idle,
		.idle_ms = IDLE_MS_MAX,
		.lost = look_at_group_from,
		.context = &waiting};

	if (args_has(&cli->args, "timeout"))
		waiting.until_ms = waiting.began_ms + args_number(&cli->args, "timeout", 0);
	int r = look_at_group_from(&waiting, &follow.after);
	if (r == 0)
		r = server_follow(cli, &follow);
	if (r == FOLLOW_DONE)
		return finish_group(&waiting);
	if (r == EXIT_TIMED_OUT)
		return cli_fail(cli, EXIT_TIMED_OUT, "timed_out",
			cli_text(cli, "stint ls --group %s", cli_quote(cli, name)), "group %s has not ended",
			name);
	return r;
}

static int run(struct cli *cli)
{
	const char *group = args_text(&cli->args, "group");

	if ((group != NULL) == (cli->args.plain_count > 0))
		return cli_fail(cli, EXIT_USAGE, "usage", "stint help wait",
			"name the tasks to wait for, or one group with --group");
	if (group)
		return run_group(cli, group);

	struct wait_state waiting = {.cli = cli, .percent = -1, .began_ms = clock_ms(CLOCK_MONOTONIC)};
	struct follow follow = {.each = on_event, .idle = on_idle, .lost = look_from, .context = &waiting};

	if (args_has(&cli->args, "timeout")) {
		int64_t timeout_ms = args_number(&cli->args, "timeout", 0);
		waiting.until_ms = clock_ms(CLOCK_MONOTONIC) + timeout_ms;
		follow.idle_ms = timeout_ms / 10 + 1 < IDLE_MS_MAX ? timeout_ms / 10 + 1 : IDLE_MS_MAX;
	}
	waiting.tasks = arena_alloc(&cli->arena, cli->args.plain_count * sizeof *waiting.tasks);
	if (!waiting.tasks)
		return cli_fail_fault(cli, -ENOMEM);
	for (size_t i = 0; i < cli->args.plain_count; i++) {
		const char *id = args_plain(&cli->args, i);
		if (!find(&waiting, span_of(id)))
			waiting.tasks[waiting.count++].id = id;
	}
	int r = look_from(&waiting, &follow.after);
	if (r == 0)
		r = server_follow(cli, &follow);
	if (r == FOLLOW_DONE)
		return finish(&waiting);
	if (r == EXIT_TIMED_OUT)
		return time_out(&waiting);
	return r;
}

const struct verb verb_wait = {
	.name = "wait",
	.arguments = "[ID...]",
	.most = TASKS_MAX,
	.offer = OFFER_TASKS,
	.gives = GIVES_JSON,
	.brief = "until tasks have ended",
	.text = "Waits until all the tasks have ended and prints how. Exit status 0: all are done; 9: one of them failed or "
		"was cancelled; 8: the time was up. With --json, one object per task. With --group: until the group is closed and every task of it has "
		"ended; the same exit status.",
	.flags = flags,
	.examples = "stint wait t-7k3 && echo shipped\n"
		    "stint wait --timeout 10m t-1 t-2 t-3\n"
		    "stint wait --group nightly\n"
		    "stint wait $(stint add \"build\" --queue ci)\n",
	.run = run,
};
