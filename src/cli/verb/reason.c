/*
 * Each reason has a sentence and the command that moves the task on, in one table at the end. A $word in them stands for
 * what the server says of the task; in a command it is quoted for a shell. A reason that takes a second look, at parents,
 * workers or gates, has a function in the table that may say something better.
 */
#include "cli/verb/reason.h"

#include <string.h>

#include "base/clock.h"
#include "base/suggest.h"
#include "base/take.h"
#include "cli/verb/task_view.h"

enum {
	PARENTS_LOOKED_AT_MAX = 50,
	EXECUTORS_NAMED_MAX = 20,
	SENTENCE_BYTES_MAX = 1 << 20,
};

struct telling {
	struct cli *cli;
	yyjson_val *why, *task;
	struct answer_why told;
};

/* ---- words --------------------------------------------------------------------------------------------------- */

static const char *lease(struct telling *t)
{
	return view_duration(t->cli, field_int(t->task, "leaseMs", 0)).data;
}

/* "in 5m" with the texts around it, if there is such a moment. */
static const char *moment(struct telling *t, const char *before, const char *after)
{
	int64_t until_ms = field_int(t->why, "until", 0);

	return until_ms == 0
		? ""
		: cli_text(t->cli, "%s%s%s", before, view_relative(t->cli, until_ms).data, after);
}

static const char *until(struct telling *t)
{
	return moment(t, " (", ")");
}

/* When the quarantined slot gets its next trial. */
static const char *trial(struct telling *t)
{
	return moment(t, "; a trial is due ", "");
}

/* How the attempt before ended. */
static const char *last(struct telling *t)
{
	const char *code = field_cstr(t->cli, t->why, "code");
	const char *message = field_cstr(t->cli, field_get(t->task, "error"), "message");

	return code[0]
		? cli_text(t->cli, "; the last one ended with %s%s%s", code, message[0] ? ": " : "", message)
		: "";
}

static const char *minutes(struct telling *t)
{
	int64_t left_ms = field_int(t->why, "until", 0) - clock_wall_ms();
	int64_t count = left_ms > 0 ? (left_ms + 59999) / 60000 : 1;

	return cli_text(t->cli, "%lld more minute%s", (long long)count, count == 1 ? "" : "s");
}

static const char *needs(struct telling *t)
{
	return cli_join(t->cli, field_get(t->task, "requires"), ", ");
}

static const char *asked(struct telling *t)
{
	return view_question(t->cli, field_get(t->task, "question"));
}

/* The worker may be dead already though its lease has not ended. */
static const char *silence(struct telling *t)
{
	cleanup(reply_done) struct reply reply =
		server_try(t->cli, "/api/workers/*", field_cstr(t->cli, t->task, "workerId"));

	if (!view_worker_is_silent(reply.root))
		return "";
	return cli_text(t->cli, ", but was last heard %.*s ago",
		SPAN_ARGS(view_duration(t->cli, field_int(reply.root, "heartbeatAgeMs", 0))));
}

/* How long the attempt may still run. */
static const char *left(struct telling *t)
{
	int64_t left_ms = field_int(t->task, "runMs", 0);

	return left_ms > 0 ? cli_text(t->cli, "; it may run for %s more", view_duration(t->cli, left_ms).data)
			   : "";
}

/* Words that are made; any other word is a member of the error, of what the server says, or of the task. */
static const struct reason_word {
	const char *name;
	const char *(*make)(struct telling *t);
} words[] = {
	{"lease", lease},
	{"until", until},
	{"trial", trial},
	{"last", last},
	{"minutes", minutes},
	{"requires", needs},
	{"question", asked},
	{"silence", silence},
	{"left", left},
};

static const char *word_value(struct telling *t, const char *name, size_t len)
{
	yyjson_val *const objects[] = {field_get(t->task, "error"), t->why, t->task};

	for (size_t i = 0; i < sizeof words / sizeof *words; i++) {
		if (strlen(words[i].name) == len && strncmp(words[i].name, name, len) == 0)
			return words[i].make(t);
	}
	for (size_t i = 0; i < sizeof objects / sizeof *objects; i++) {
		struct span text = json_text(yyjson_obj_getn(objects[i], name, len));
		if (text.len > 0)
			return cli_text(t->cli, "%.*s", SPAN_ARGS(text));
	}
	return "";
}

/* The text with its words filled in. */
static const char *fill(struct telling *t, const char *text, bool quotes)
{
	cleanup(buf_done) struct buf filled = {0};

	buf_init(&filled, SENTENCE_BYTES_MAX);
	while (*text) {
		size_t len = strcspn(text, "$");
		buf_put(&filled, text, len);
		text += len;
		if (!*text)
			break;
		len = strspn(++text, "abcdefghijklmnopqrstuvwxyzI"); /* workerId has the one capital */
		const char *value = word_value(t, text, len);
		buf_printf(&filled, "%s", quotes ? cli_quote(t->cli, value) : value);
		text += len;
	}
	return cli_text(t->cli, "%.*s", SPAN_ARGS(cli_span(t->cli, &filled)));
}

static void tell(struct telling *t, const char *sentence, const char *fix)
{
	t->told = (struct answer_why){fill(t, sentence, false), fill(t, fix, true)};
}

/* ---- a second look ------------------------------------------------------------------------------------------- */

/* Could it run the task, and is all that could a pool whose workers are busy? The name of the pool, NULL: no. */
static const char *full_pool(struct telling *t, yyjson_val *worker, bool *ret_fits)
{
	yyjson_val *pools = field_get(field_get(worker, "metadata"), "pools"), *name;
	const char *wanted = field_cstr(t->cli, t->task, "executor"), *full = NULL;
	size_t at, count;

	*ret_fits = !yyjson_is_arr(field_get(worker, "executors"));
	yyjson_arr_foreach(field_get(worker, "executors"), at, count, name)
	{
		const char *executor = cli_text(t->cli, "%.*s", SPAN_ARGS(json_text(name)));
		yyjson_val *pool = yyjson_obj_get(pools, executor);
		if (wanted[0] && strcmp(wanted, executor) != 0)
			continue;
		*ret_fits = true;
		if (!pool || field_int(pool, "busyWorkers", 0) < field_int(pool, "totalWorkers", 1))
			return NULL;
		full = executor;
	}
	return full;
}

/* A supervisor claims no more than its pools can begin: the server believes that the worker has room, and its pool is full. */
static void tell_busy_pool(struct telling *t)
{
	cleanup(reply_done) struct reply reply = server_try(t->cli, "/api/workers", NULL);
	const char *full = NULL, *whose = "";
	size_t at, count;
	yyjson_val *worker;
	bool others = false, fits;

	yyjson_arr_foreach(reply.root, at, count, worker)
	{
		if (!span_equal(field_text(worker, "state"), SPAN("active")))
			continue;
		const char *pool = full_pool(t, worker, &fits);
		others |= fits && !pool;
		if (pool && !full) {
			full = pool;
			whose = field_cstr(t->cli, worker, "workerId");
		}
	}
	if (!full || others)
		return;
	t->told.sentence = cli_text(t->cli,
		"%s is ready: all workers of pool %s of %s are busy; the first that is free takes it.",
		field_cstr(t->cli, t->why, "id"), full, whose);
	t->told.fix = cli_text(t->cli, "stint worker show %s", cli_quote(t->cli, whose));
}

/* The first parent that is not done, and what it is doing instead. */
static void tell_parents(struct telling *t)
{
	size_t at, count;
	yyjson_val *parent;

	yyjson_arr_foreach(field_get(t->task, "blockedBy"), at, count, parent)
	{
		const char *id = yyjson_get_str(parent);
		if (!id || at == PARENTS_LOOKED_AT_MAX)
			break;
		cleanup(reply_done) struct reply reply = server_try(t->cli, "/api/tasks/*", id);
		const char *state = field_cstr(t->cli, reply.root, "state");
		if (!state[0] || strcmp(state, "done") == 0)
			continue;
		t->told.sentence = cli_text(t->cli, "%s waits for %s, which is %s.",
			fill(t, "$id is $state: it", false), id, state);
		t->told.fix = cli_text(t->cli, "stint why %s", cli_quote(t->cli, id));
		return;
	}
}

/* What the workers that are there can run, as far as they say so. */
struct executors {
	const char *names[EXECUTORS_NAMED_MAX];
	size_t count, workers;
	bool known;
	struct suggestion like;
};

static void add_executor(struct telling *t, const char *name, struct executors *found)
{
	for (size_t i = 0; i < found->count; i++) {
		if (strcmp(found->names[i], name) == 0)
			return;
	}
	suggest_consider(&found->like, field_cstr(t->cli, t->task, "executor"), name);
	if (found->count < EXECUTORS_NAMED_MAX)
		found->names[found->count++] = name;
}

static struct executors look_for_executors(struct telling *t)
{
	cleanup(reply_done) struct reply reply = server_try(t->cli, "/api/workers", NULL);
	struct executors found = {.known = reply.root};
	size_t at, count, index, max;
	yyjson_val *worker, *name;

	yyjson_arr_foreach(reply.root, at, count, worker)
	{
		if (!span_equal(field_text(worker, "state"), SPAN("active")))
			continue;
		found.workers++;
		yyjson_arr_foreach(field_get(worker, "executors"), index, max, name)
		{
			add_executor(t, cli_text(t->cli, "%.*s", SPAN_ARGS(json_text(name))), &found);
		}
	}
	return found;
}

static const char *what_is_there(struct telling *t, const struct executors *found)
{
	const char *names = "";

	if (!found->known)
		return "";
	if (found->workers == 0)
		return "; no worker is alive";
	if (found->count == 0)
		return "; no live worker has an executor";
	for (size_t i = 0; i < found->count; i++)
		names = cli_text(t->cli, "%s%s%s", names, i > 0 ? ", " : "", found->names[i]);
	return cli_text(t->cli,
		found->like.word ? "; live workers have %s: did you mean %s?" : "; live workers have %s",
		names, found->like.word);
}

/* Which executor is missing where, and what is there instead. */
static void tell_executor(struct telling *t)
{
	struct executors found = look_for_executors(t);
	bool blocked = span_equal(field_text(t->why, "state"), SPAN("blocked"));

	t->told.sentence = cli_text(t->cli, "%s%s%s",
		fill(t, "$id is $state: no live worker of queue $queue has its executor $executor", false),
		what_is_there(t, &found), found.like.word ? "" : ".");
	t->told.fix = fill(t,
		blocked ? "stint worker run --queues $queue   # with an executor $executor in its configuration; then stint retry $id"
			: "stint worker run --queues $queue   # with an executor $executor in its configuration",
		true);
}

/* The gates that it has not passed yet; or else what its workflow is waiting for. */
static void tell_review(struct telling *t)
{
	const char *one;
	size_t count;
	const char *names = view_open_gates(t->cli, t->task, &count, &one);

	if (count > 0)
		t->told.sentence = cli_text(t->cli, "%s waits for a verdict at %s %s.",
			fill(t, "$id was reported, and", false), count > 1 ? "gates" : "gate", names);
	if (count > 1)
		t->told.fix = cli_text(t->cli, "%s --gate %s", t->told.fix, cli_quote(t->cli, one));
	else if (count == 0 && field_text(t->task, "workflow").len > 0)
		tell(t, "$id was reported, and waits at stage $stage for its next event.",
			"stint workflow show $workflow   # then POST /api/tasks/$id/events");
}

static void tell_blocked(struct telling *t)
{
	const char *message = field_cstr(t->cli, field_get(t->task, "error"), "message");

	if (strcmp(field_cstr(t->cli, t->why, "code"), "DEPENDENCY_FAILED") == 0)
		tell_parents(t);
	else if (strncmp(message, "no active worker of queue ", 26) == 0)
		tell_executor(t); /* the server said so, and not a worker that looked into the task */
}

static void tell_ended(struct telling *t)
{
	struct span state = field_text(t->why, "state");

	if (span_equal(state, SPAN("failed")))
		tell(t, "$id has failed: $code: $message.", "stint retry $id");
	else if (span_equal(state, SPAN("done")))
		t->told.fix = NULL; /* finished work needs no command */
}

static void tell_asking(struct telling *t)
{
	t->told.fix = view_answer_command(t->cli, t->task);
}

/* ---- the table ----------------------------------------------------------------------------------------------- */

#define AS_IT_IS "$id is $state: $text."
#define HELD     "$id is $state: $text (worker $workerId, lease $lease)."

static const struct reason_row {
	const char *reason, *sentence, *fix;
	void (*look)(struct telling *t);
} reasons[] = {
	{"ready", "$id is ready: the next worker that asks queue $queue for work gets it.",
		"stint claim --queues $queue", tell_busy_pool},
	{"parked", AS_IT_IS, "stint unpark $id", NULL},
	{"scheduled", "$id is scheduled: $text$until$last.", "stint wait $id", NULL},
	{"back_off", "$id is scheduled: $text$until$last.", "stint wait $id", NULL},
	{"dependency", AS_IT_IS, "stint show $id", tell_parents},
	{"queue_paused", "$id is ready, but its queue $queue is paused.", "stint queue resume $queue", NULL},
	{"execution_disarmed", AS_IT_IS, "stint arm", NULL},
	{"not_autonomous", AS_IT_IS,
		"stint show $id   # PATCH /api/tasks/$id {\"metadata\":{\"autonomous_execution\":true}} lets it run on its own",
		NULL},
	{"no_worker", "$id is ready: $text.",
		"stint worker ls   # or take it yourself: stint claim --queues $queue", NULL},
	{"queue_unserved", "$id is ready: no registered worker serves its queue $queue.",
		"stint worker run --queues $queue   # with an executor for it in its configuration: docs/worker.md",
		NULL},
	{"no_capability", "$id is ready: no live worker has all it requires ($requires).",
		"stint worker ls -o wide", NULL},
	{"no_executor", AS_IT_IS, "stint worker ls -o wide", tell_executor},
	{"owner_away", "$id is ready: it is for slot $owner, and no live worker has that slot.",
		"stint worker ls", NULL},
	{"owner_quarantined", "$id is ready: its slot $owner crashed too often and is quarantined$trial.",
		"stint slot unquarantine $owner", NULL},
	{"kept_for_host",
		"$id is ready and has its answer: for $minutes only host $host, where it asked, may claim it.",
		"stint park $id && stint unpark $id   # then any worker may claim it, with a cold start",
		NULL},
	{"workers_busy", "$id is ready: $text; the first that has room takes it.", "stint worker ls", NULL},
	{"pool_quarantined",
		"$id is ready, but place $slot of the pool that could take it crashed too often and is quarantined$trial.",
		"stint slot unquarantine $slot   # stint worker show says what was wrong", NULL},
	{"store_read_only", AS_IT_IS, "stint doctor", NULL},
	{"unconfirmed",
		"$id is $state: worker $workerId has claimed it and has not reported a start yet (lease $lease).",
		"stint show $id", NULL},
	{"running", "$id is running: worker $workerId holds it, with a lease of $lease$silence$left.",
		"stint logs --follow $id", NULL},
	{"stopping", HELD, "stint worker show $workerId", NULL},
	{"overdue", HELD, "stint worker show $workerId", NULL},
	{"asking", "$id asks: $question", "stint show $id", tell_asking},
	{"review", AS_IT_IS, "stint approve $id", tell_review},
	{"blocked", "$id is blocked: $text ($code: $message).", "stint retry $id   # after that",
		tell_blocked},
	{"ended", "$id is $state; that is final.", "stint retry $id", tell_ended},
};

struct answer_why reason_tell(struct cli *cli, yyjson_val *why, yyjson_val *task)
{
	struct telling t = {.cli = cli, .why = why, .task = task};
	struct span reason = field_text(why, "reason");

	for (size_t i = 0; i < sizeof reasons / sizeof *reasons; i++) {
		if (!span_equal(span_of(reasons[i].reason), reason))
			continue;
		tell(&t, reasons[i].sentence, reasons[i].fix);
		if (reasons[i].look)
			reasons[i].look(&t);
		return t.told;
	}
	t.told.sentence = fill(&t, AS_IT_IS, false); /* a reason of a newer server: its own sentence */
	return t.told;
}
