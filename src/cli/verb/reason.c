#include "cli/verb/reason.h"

#include <string.h>

#include "base/clock.h"
#include "base/suggest.h"
#include "cli/verb/task_view.h"

enum {
	PARENTS_LOOKED_AT_MAX = 50,
	EXECUTORS_NAMED_MAX = 20,
};

struct telling {
	struct cli *cli;
	yyjson_val *why, *task;
	const char *id, *queue, *worker, *text;
	struct answer_why told;
};

static void say_as_it_is(struct telling *t)
{
	t->told.sentence =
		cli_text(t->cli, "%s is %s: %s.", t->id, field_cstr(t->cli, t->why, "state"), t->text);
}

static const char *until(struct telling *t)
{
	int64_t until_ms = field_int(t->why, "until", 0);

	return until_ms == 0 ? "" : cli_text(t->cli, " (%.*s)", SPAN_ARGS(view_relative(t->cli, until_ms)));
}

/* When the quarantined slot gets its next trial. */
static const char *trial(struct telling *t)
{
	int64_t until_ms = field_int(t->why, "until", 0);

	return until_ms == 0
		? ""
		: cli_text(t->cli, "; a trial is due %.*s", SPAN_ARGS(view_relative(t->cli, until_ms)));
}

static const char *names_of(struct telling *t, const char *key)
{
	const char *names = "";
	size_t at, count;
	yyjson_val *name;

	yyjson_arr_foreach(field_get(t->task, key), at, count, name)
	{
		names = cli_text(t->cli, "%s%s%s", names, at > 0 ? ", " : "", yyjson_get_str(name));
	}
	return names;
}

/* ---- one function per reason that needs more than its sentence ---- */

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
static bool tell_busy_pool(struct telling *t)
{
	struct ask question = {.method = HTTP_METHOD_GET, .path = "/api/workers", .optional = true};
	const char *full = NULL, *whose = "";
	struct reply reply;
	size_t at, count;
	yyjson_val *worker;
	bool others = false, fits;

	if (server_ask(t->cli, &question, &reply) != 0)
		return false;
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
	reply_done(&reply);
	if (!full || others)
		return false;
	t->told.sentence = cli_text(t->cli,
		"%s is ready: all workers of pool %s of %s are busy; the first that is free takes it.", t->id,
		full, whose);
	t->told.fix = cli_text(t->cli, "stint worker show %s", cli_quote(t->cli, whose));
	return true;
}

static void tell_ready(struct telling *t)
{
	if (tell_busy_pool(t))
		return;
	t->told.sentence = cli_text(
		t->cli, "%s is ready: the next matching claim of queue %s takes it.", t->id, t->queue);
	t->told.fix = cli_text(t->cli, "stint claim --queues %s", cli_quote(t->cli, t->queue));
}

static void tell_parked(struct telling *t)
{
	say_as_it_is(t);
	t->told.fix = cli_text(t->cli, "stint unpark %s", t->id);
}

static void tell_timed(struct telling *t)
{
	const char *code = field_cstr(t->cli, t->why, "code");
	const char *message = code[0] ? field_cstr(t->cli, field_get(t->task, "error"), "message") : "";

	t->told.sentence = cli_text(t->cli, "%s is scheduled: %s%s%s%s%s%s.", t->id, t->text, until(t),
		code[0] ? "; the last one ended with " : "", code, message[0] ? ": " : "", message);
	t->told.fix = cli_text(t->cli, "stint wait %s", t->id);
}

/* The first parent that is not done, and what it is doing instead. */
static void tell_parents(struct telling *t)
{
	size_t at, count;
	yyjson_val *parent;

	say_as_it_is(t);
	yyjson_arr_foreach(field_get(t->task, "blockedBy"), at, count, parent)
	{
		struct reply reply;
		const char *id = yyjson_get_str(parent);
		struct ask question = {
			.method = HTTP_METHOD_GET, .path = "/api/tasks/*", .names = {id}, .optional = true};
		if (!id || at == PARENTS_LOOKED_AT_MAX)
			break;
		if (server_ask(t->cli, &question, &reply) != 0)
			continue;
		const char *state = field_cstr(t->cli, reply.root, "state");
		reply_done(&reply);
		if (strcmp(state, "done") == 0)
			continue;
		t->told.sentence = cli_text(t->cli, "%s is %s: it waits for %s, which is %s.", t->id,
			field_cstr(t->cli, t->why, "state"), id, state);
		t->told.fix = cli_text(t->cli, "stint why %s", id);
		return;
	}
}

static void tell_paused(struct telling *t)
{
	t->told.sentence = cli_text(t->cli, "%s is ready, but its queue %s is paused.", t->id, t->queue);
	t->told.fix = cli_text(t->cli, "stint queue resume %s", cli_quote(t->cli, t->queue));
}

static void tell_disarmed(struct telling *t)
{
	say_as_it_is(t);
	t->told.fix = "stint arm";
}

static void tell_not_autonomous(struct telling *t)
{
	say_as_it_is(t);
	t->told.fix = cli_text(t->cli,
		"stint show %s   (PATCH /api/tasks/%s {\"metadata\":{\"autonomous_execution\":true}} lets it run on its own)",
		t->id, t->id);
}

static void tell_no_worker(struct telling *t)
{
	t->told.sentence = cli_text(t->cli, "%s is ready: %s.", t->id, t->text);
	t->told.fix = cli_text(t->cli, "stint worker ls   (or take it yourself: stint claim --queues %s)",
		cli_quote(t->cli, t->queue));
}

static void tell_unserved(struct telling *t)
{
	t->told.sentence = cli_text(t->cli, "%s is ready: %s %s.", t->id, t->text, t->queue);
	t->told.fix = cli_text(t->cli, "stint worker run --queues %s", cli_quote(t->cli, t->queue));
}

static void tell_no_capability(struct telling *t)
{
	t->told.sentence = cli_text(t->cli, "%s is ready: no live worker has all it requires (%s).", t->id,
		names_of(t, "requires"));
	t->told.fix = "stint worker ls -o wide";
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
	struct executors found = {0};
	struct reply reply;
	size_t at, count, index, max;
	yyjson_val *worker, *name;

	struct ask question = {.method = HTTP_METHOD_GET, .path = "/api/workers", .optional = true};

	if (server_ask(t->cli, &question, &reply) != 0)
		return found;
	found.known = true;
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
	reply_done(&reply);
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

/* Which one is missing where, and what is there instead. `then`: what else it takes to move the task on. */
static void tell_executor(struct telling *t, const char *state, const char *then)
{
	const char *wanted = field_cstr(t->cli, t->task, "executor");
	struct executors found = look_for_executors(t);

	t->told.sentence = cli_text(t->cli, "%s is %s: no live worker of queue %s has its executor %s%s%s",
		t->id, state, t->queue, wanted, what_is_there(t, &found), found.like.word ? "" : ".");
	t->told.fix = cli_text(t->cli,
		"stint worker run --queues %s   (with an executor %s in its configuration%s)",
		cli_quote(t->cli, t->queue), cli_quote(t->cli, wanted), then);
}

static void tell_no_executor(struct telling *t)
{
	tell_executor(t, "ready", "");
}

static void tell_owner_away(struct telling *t)
{
	t->told.sentence =
		cli_text(t->cli, "%s is ready: it is for slot %s, and no live worker has that slot.", t->id,
			field_cstr(t->cli, t->task, "owner"));
	t->told.fix = "stint worker ls";
}

static void tell_workers_busy(struct telling *t)
{
	t->told.sentence =
		cli_text(t->cli, "%s is ready: %s; the first that has room takes it.", t->id, t->text);
	t->told.fix = "stint worker ls";
}

static void tell_owner_quarantined(struct telling *t)
{
	const char *slot = field_cstr(t->cli, t->task, "owner");

	t->told.sentence = cli_text(t->cli,
		"%s is ready: its slot %s crashed too often and is quarantined%s.", t->id, slot, trial(t));
	t->told.fix = cli_text(t->cli, "stint slot unquarantine %s", cli_quote(t->cli, slot));
}

static void tell_pool_quarantined(struct telling *t)
{
	const char *slot = field_cstr(t->cli, t->why, "slot");

	t->told.sentence = cli_text(t->cli,
		"%s is ready, but place %s of the pool that could take it crashed too often and is quarantined%s.",
		t->id, slot, trial(t));
	t->told.fix = cli_text(t->cli, "stint slot unquarantine %s   (stint worker show says what was wrong)",
		cli_quote(t->cli, slot));
}

static void tell_kept_for_host(struct telling *t)
{
	int64_t left_ms = field_int(t->why, "until", 0) - clock_wall_ms();
	int64_t minutes = left_ms > 0 ? (left_ms + 59999) / 60000 : 1;

	t->told.sentence = cli_text(t->cli,
		"%s is ready and has its answer: for %lld more minute%s only host %s, where it asked, may claim it.",
		t->id, (long long)minutes, minutes == 1 ? "" : "s", field_cstr(t->cli, t->why, "host"));
	t->told.fix = cli_text(t->cli,
		"stint park %s && stint unpark %s   (then any worker may claim it, with a cold start)", t->id,
		t->id);
}

static void tell_store(struct telling *t)
{
	say_as_it_is(t);
	t->told.fix = "stint doctor";
}

static void tell_held(struct telling *t)
{
	t->told.sentence = cli_text(t->cli, "%s is %s: %s (%s, lease %.*s).", t->id,
		field_cstr(t->cli, t->why, "state"), t->text, t->worker,
		SPAN_ARGS(view_duration(t->cli, field_int(t->task, "leaseMs", 0))));
	t->told.fix = cli_text(t->cli, "stint show %s", t->id);
}

/* The worker may be dead already though its lease has not ended. */
static const char *silence(struct telling *t)
{
	struct ask question = {
		.method = HTTP_METHOD_GET, .path = "/api/workers/*", .names = {t->worker}, .optional = true};
	const char *told = "";
	struct reply reply;

	if (server_ask(t->cli, &question, &reply) != 0)
		return told;
	if (view_worker_is_silent(reply.root))
		told = cli_text(t->cli, ", but was last heard %.*s ago",
			SPAN_ARGS(view_duration(t->cli, field_int(reply.root, "heartbeatAgeMs", 0))));
	reply_done(&reply);
	return told;
}

/* Who has it, and which of its clocks will be heard next: that of its worker, or its own. */
static void tell_running(struct telling *t)
{
	int64_t left_ms = field_int(t->task, "runMs", 0);
	const char *clock = left_ms > 0
		? cli_text(t->cli, "; it may run for %.*s more", SPAN_ARGS(view_duration(t->cli, left_ms)))
		: "";

	t->told.sentence = cli_text(t->cli, "%s is running: %s holds it, with a lease of %.*s%s%s.", t->id,
		t->worker, SPAN_ARGS(view_duration(t->cli, field_int(t->task, "leaseMs", 0))), silence(t),
		clock);
	t->told.fix = cli_text(t->cli, "stint logs --follow %s", t->id);
}

static void tell_stopping(struct telling *t)
{
	t->told.sentence = cli_text(t->cli, "%s is %s: %s (%s, lease %.*s).", t->id,
		field_cstr(t->cli, t->why, "state"), t->text, t->worker,
		SPAN_ARGS(view_duration(t->cli, field_int(t->task, "leaseMs", 0))));
	t->told.fix = cli_text(t->cli, "stint worker show %s", cli_quote(t->cli, t->worker));
}

static void tell_asking(struct telling *t)
{
	t->told.sentence =
		cli_text(t->cli, "%s asks: %s", t->id, view_question(t->cli, field_get(t->task, "question")));
	t->told.fix = cli_text(t->cli, "stint answer %s TEXT", t->id);
}

static bool has_passed(struct telling *t, struct span gate)
{
	size_t at, count;
	yyjson_val *passed;

	yyjson_arr_foreach(field_get(t->task, "gatesPassed"), at, count, passed)
	{
		if (span_equal(json_text(passed), gate))
			return true;
	}
	return false;
}

/* The gates that it has not passed yet; or else what its workflow is waiting for. */
static void tell_review(struct telling *t)
{
	const char *names = "";
	size_t at, count, left = 0;
	yyjson_val *gate;

	yyjson_arr_foreach(field_get(t->task, "gates"), at, count, gate)
	{
		if (!has_passed(t, json_text(gate)))
			names = cli_text(t->cli, "%s%s%.*s", names, left++ > 0 ? ", " : "",
				SPAN_ARGS(json_text(gate)));
	}
	say_as_it_is(t);
	t->told.fix = cli_text(t->cli, "stint approve %s", t->id);
	const char *workflow = field_cstr(t->cli, t->task, "workflow");
	if (left > 0) {
		t->told.sentence = cli_text(t->cli, "%s was reported, and waits for a verdict at %s %s.",
			t->id, left > 1 ? "gates" : "gate", names);
	} else if (workflow[0]) {
		t->told.sentence =
			cli_text(t->cli, "%s was reported, and waits at stage %s for its next event.", t->id,
				field_cstr(t->cli, t->task, "stage"));
		t->told.fix = cli_text(t->cli, "stint workflow show %s   (then POST /api/tasks/%s/events)",
			cli_quote(t->cli, workflow), t->id);
	}
}

static void tell_blocked(struct telling *t)
{
	yyjson_val *error = field_get(t->task, "error");

	if (strcmp(field_cstr(t->cli, t->why, "code"), "DEPENDENCY_FAILED") == 0) {
		tell_parents(t);
		if (t->told.fix)
			return;
	}
	/* the server said so, and not a worker that looked into the task */
	if (strncmp(field_cstr(t->cli, error, "message"), "no active worker of queue ", 26) == 0) {
		tell_executor(t, "blocked", cli_text(t->cli, "; then stint retry %s", t->id));
		return;
	}
	t->told.sentence = cli_text(t->cli, "%s is blocked: %s (%s: %s).", t->id, t->text,
		field_cstr(t->cli, error, "code"), field_cstr(t->cli, error, "message"));
	t->told.fix = cli_text(t->cli, "stint retry %s", t->id);
}

static void tell_ended(struct telling *t)
{
	yyjson_val *error = field_get(t->task, "error");
	const char *state = field_cstr(t->cli, t->why, "state");

	if (strcmp(state, "failed") == 0)
		t->told.sentence = cli_text(t->cli, "%s has failed: %s: %s.", t->id,
			field_cstr(t->cli, error, "code"), field_cstr(t->cli, error, "message"));
	else
		t->told.sentence = cli_text(t->cli, "%s is %s; that is final.", t->id, state);
	t->told.fix = cli_text(t->cli, "stint retry %s", t->id);
}

static const struct {
	const char *reason;
	void (*tell)(struct telling *t);
} tellers[] = {
	{"ready", tell_ready},
	{"parked", tell_parked},
	{"scheduled", tell_timed},
	{"back_off", tell_timed},
	{"dependency", tell_parents},
	{"queue_paused", tell_paused},
	{"execution_disarmed", tell_disarmed},
	{"not_autonomous", tell_not_autonomous},
	{"no_worker", tell_no_worker},
	{"queue_unserved", tell_unserved},
	{"no_capability", tell_no_capability},
	{"no_executor", tell_no_executor},
	{"owner_away", tell_owner_away},
	{"owner_quarantined", tell_owner_quarantined},
	{"kept_for_host", tell_kept_for_host},
	{"workers_busy", tell_workers_busy},
	{"pool_quarantined", tell_pool_quarantined},
	{"store_read_only", tell_store},
	{"unconfirmed", tell_held},
	{"running", tell_running},
	{"stopping", tell_stopping},
	{"overdue", tell_stopping},
	{"asking", tell_asking},
	{"review", tell_review},
	{"blocked", tell_blocked},
	{"ended", tell_ended},
};

struct answer_why reason_tell(struct cli *cli, yyjson_val *why, yyjson_val *task)
{
	struct telling t = {
		.cli = cli,
		.why = why,
		.task = task,
		.id = field_cstr(cli, why, "id"),
		.queue = field_cstr(cli, task, "queue"),
		.worker = field_cstr(cli, task, "workerId"),
		.text = field_cstr(cli, why, "text"),
	};
	struct span reason = field_text(why, "reason");

	for (size_t i = 0; i < sizeof tellers / sizeof *tellers; i++) {
		if (span_equal(span_of(tellers[i].reason), reason)) {
			tellers[i].tell(&t);
			return t.told;
		}
	}
	say_as_it_is(&t); /* a reason of a newer server: its own sentence */
	return t.told;
}
