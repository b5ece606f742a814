/*
 * stint, alone: how things stand, in a few sentences, and the first thing that needs somebody. What stint ls lists is counted here,
 * too.
 */
#include "cli/verb/stand.h"

#include <string.h>
#include <time.h>

#include "base/take.h"
#include "cli/verb/task_view.h"
#include "cli/verb/verbs.h"

enum {
	ENDED_LOOKED_AT = 50,    /* for how many failed today */
	WAITING_LOOKED_AT = 200, /* for what most of them wait */
};

const char *const stand_states[STAND_GROUPS] = {
	[STAND_NEEDS] = "asking,review,blocked",
	[STAND_RUNNING] = "claimed,running",
	[STAND_WAITING] = "ready,waiting,scheduled,pending",
	[STAND_ENDED] = "failed,done,cancelled",
};

bool stand_is_listed(const char *list, const char *word, size_t len)
{
	for (; *list; list += strcspn(list, ",") + (list[strcspn(list, ",")] == ',')) {
		if (strcspn(list, ",") == len && strncmp(list, word, len) == 0)
			return true;
	}
	return false;
}

void stand_count_among(yyjson_val *queues, const char *queue, int64_t ret_counts[STAND_GROUPS])
{
	size_t at, count, member, members;
	yyjson_val *item, *name, *number;

	memset(ret_counts, 0, STAND_GROUPS * sizeof *ret_counts);
	yyjson_arr_foreach(queues, at, count, item)
	{
		if (queue && !span_equal(span_of(queue), field_text(item, "name")))
			continue;
		yyjson_obj_foreach(field_get(item, "tasks"), member, members, name, number)
		{
			for (size_t i = 0; i < STAND_GROUPS; i++) {
				if (stand_is_listed(
					    stand_states[i], yyjson_get_str(name), yyjson_get_len(name)))
					ret_counts[i] += yyjson_get_sint(number);
			}
		}
	}
}

bool stand_count(struct cli *cli, const char *queue, int64_t ret_counts[STAND_GROUPS])
{
	cleanup(reply_done) struct reply reply = server_try(cli, "/api/queues", NULL);

	stand_count_among(reply.root, queue, ret_counts);
	return reply.root != NULL;
}

static int64_t midnight_ms(int64_t now_ms)
{
	time_t now = (time_t)(now_ms / 1000);
	struct tm day;

	if (!localtime_r(&now, &day))
		return now_ms;
	day.tm_hour = day.tm_min = day.tm_sec = 0;
	day.tm_isdst = -1;
	return (int64_t)mktime(&day) * 1000;
}

const char *stand_failed_among(struct cli *cli, yyjson_val *ended, bool more)
{
	int64_t since_ms = midnight_ms(cli->now_ms), failed = 0;
	size_t at, count = 0;
	yyjson_val *task;

	yyjson_arr_foreach(ended, at, count, task)
	{
		failed += span_equal(field_text(task, "state"), SPAN("failed")) &&
			field_int(task, "updatedAt", 0) >= since_ms;
	}
	if (failed == 0)
		return "";
	return cli_text(cli, "%s%lld failed today", more && failed == (int64_t)count ? "at least " : "",
		(long long)failed);
}

const char *stand_failed_today(struct cli *cli, bool *ret_any)
{
	struct ask question = {.method = HTTP_METHOD_GET,
		.path = "/api/tasks",
		.query = span_of(cli_text(cli, "state=failed,done,cancelled&limit=%d", ENDED_LOOKED_AT)),
		.optional = true};
	cleanup(reply_done) struct reply reply = {0};

	*ret_any = false;
	if (server_ask(cli, &question, &reply) != 0)
		return "";
	*ret_any = yyjson_arr_size(reply.root) > 0;
	return stand_failed_among(cli, reply.root, reply.next.len > 0);
}

/* ---- the sentences ---------------------------------------------------------------------------------------------- */

/* Why it waits, or most of them do, behind "5 wait". */
static const struct {
	const char *reason, *one, *many;
} because[] = {
	{"workers_busy", "because every worker that could take it is busy",
		"because every worker that could take them is busy"},
	{"no_worker", "because no worker is alive", "because no worker is alive"},
	{"queue_unserved", "because no worker serves its queue", "because no worker serves their queue"},
	{"no_executor", "because no worker runs its executor", "because no worker runs their executor"},
	{"no_capability", "because no worker has what it needs", "because no worker has what they need"},
	{"queue_paused", "because its queue is paused", "because their queue is paused"},
	{"execution_disarmed", "because execution is disarmed", "because execution is disarmed"},
	{"owner_away", "because its slot is empty", "because their slot is empty"},
	{"dependency", "for other tasks", "for other tasks"},
	{"scheduled", "for its time", "for their time"},
	{"back_off", "for its next attempt", "for their next attempt"},
	{"parked", "because somebody parked it", "because somebody parked them"},
};

enum { REASONS = sizeof because / sizeof *because };

static size_t find_reason(struct span reason)
{
	size_t i = 0;

	while (i < REASONS && !span_equal(span_of(because[i].reason), reason))
		i++;
	return i;
}

/* " for its time", ", most for other tasks" if more than half of them do, or "". */
static const char *why_they_wait(struct cli *cli, yyjson_val *tasks)
{
	size_t tally[REASONS + 1] = {0}, at, count = 0, most = 0;
	yyjson_val *task;

	yyjson_arr_foreach(tasks, at, count, task) tally[find_reason(field_text(task, "reason"))]++;
	for (size_t i = 1; i < REASONS; i++)
		most = tally[i] > tally[most] ? i : most;
	if (tally[most] * 2 <= count)
		return "";
	return count == 1 ? cli_text(cli, " %s", because[most].one)
			  : cli_text(cli, "%s%s", tally[most] < count ? ", most " : " ", because[most].many);
}

/* "10 tasks run on 3 workers", "1 task runs on w1". */
static const char *what_runs(struct cli *cli, int64_t running, yyjson_val *workers)
{
	size_t at, count, busy = 0;
	yyjson_val *worker;
	const char *name = "";

	yyjson_arr_foreach(workers, at, count, worker)
	{
		if (yyjson_arr_size(field_get(worker, "tasks")) == 0)
			continue;
		busy++;
		name = field_cstr(cli, worker, "workerId");
	}
	const char *tasks =
		cli_text(cli, "%lld task%s", (long long)running, running == 1 ? " runs" : "s run");
	if (busy == 0)
		return tasks;
	return busy == 1 ? cli_text(cli, "%s on %s", tasks, name)
			 : cli_text(cli, "%s on %zu workers", tasks, busy);
}

const char *stand_sentences(struct cli *cli, const int64_t counts[STAND_GROUPS], const char *failed,
	yyjson_val *workers, yyjson_val *tasks_waiting)
{
	int64_t needs = counts[STAND_NEEDS], running = counts[STAND_RUNNING], waiting = counts[STAND_WAITING];
	const char *text = needs == 0
		? "Nothing needs you."
		: cli_text(cli, "%lld %s you.", (long long)needs, needs == 1 ? "needs" : "need");

	if (running > 0)
		text = cli_text(cli, "%s %s", text, what_runs(cli, running, workers));
	if (waiting > 0)
		text = cli_text(cli, "%s%s%lld%s %s%s", text, running > 0 ? " and " : " ", (long long)waiting,
			running > 0            ? ""
				: waiting == 1 ? " task"
					       : " tasks",
			waiting == 1 ? "waits" : "wait", why_they_wait(cli, tasks_waiting));
	if (running + waiting > 0)
		text = cli_text(cli, "%s.", text);
	return failed[0] ? cli_text(cli, "%s %s.", text, failed) : text;
}

static void put_sentences(struct cli *cli, const int64_t counts[STAND_GROUPS], const char *failed)
{
	struct ask question = {.method = HTTP_METHOD_GET,
		.path = "/api/tasks",
		.query = span_of(cli_text(cli, "state=%s&include=why&limit=%d", stand_states[STAND_WAITING],
			WAITING_LOOKED_AT)),
		.optional = true};
	cleanup(reply_done) struct reply workers = {0}, waiting = {0};

	if (counts[STAND_RUNNING] > 0)
		workers = server_try(cli, "/api/workers", NULL);
	if (counts[STAND_WAITING] > 0 && server_ask(cli, &question, &waiting) != 0)
		waiting = (struct reply){0};
	cli_put_sentence(cli, 0, "%s", stand_sentences(cli, counts, failed, workers.root, waiting.root));
}

/* The first that needs somebody, and what to do then. */
static void put_first(struct cli *cli, int64_t needs)
{
	struct ask question = {.method = HTTP_METHOD_GET,
		.path = "/api/tasks",
		.query = span_of(cli_text(cli, "state=%s&include=why&limit=1", stand_states[STAND_NEEDS])),
		.optional = true};
	cleanup(reply_done) struct reply reply = {0};

	if (needs == 0 || server_ask(cli, &question, &reply) != 0)
		return;
	yyjson_val *task = yyjson_arr_get_first(reply.root), *why = field_get(task, "why");
	if (!task)
		return;
	struct state_mark mark = view_state_mark(cli, field_text(task, "state"));
	size_t sign = strcspn(mark.text.data, " ");
	const char *id = field_cstr(cli, task, "id"), *command = field_cstr(cli, why, "try");
	cli_put(cli, "  ");
	cli_put_painted(cli, mark.paint, (struct span){mark.text.data, sign});
	cli_put_sentence(cli, 2 + 2 + strlen(id) + 2, " %s  %s", id, field_cstr(cli, why, "text"));
	cli_hint(cli, needs == 1 && command[0] ? command : "stint inbox");
}

static int put_json(struct cli *cli, const int64_t counts[STAND_GROUPS])
{
	struct json_object object, inner;

	json_begin(&object, &cli->out);
	json_member_int(&object, "schema", 1);
	json_member_bool(&object, "ok", true);
	json_put_key(&object, "tasks");
	json_begin(&inner, &cli->out);
	json_member_int(&inner, "needYou", counts[STAND_NEEDS]);
	json_member_int(&inner, "running", counts[STAND_RUNNING]);
	json_member_int(&inner, "waiting", counts[STAND_WAITING]);
	json_end(&inner);
	json_end(&object);
	cli_put(cli, "\n");
	return 0;
}

static int run(struct cli *cli)
{
	const struct ask question = {.method = HTTP_METHOD_GET, .path = "/api/version"};
	cleanup(reply_done) struct reply reply = {0};
	int64_t counts[STAND_GROUPS];
	bool any_ended;

	int r = server_ask(cli, &question, &reply);
	if (r != 0) {
		cli_hint(cli, "stint help");
		return r;
	}
	if (!stand_count(cli, NULL, counts))
		memset(counts, 0, sizeof counts);
	if (cli->output == OUTPUT_JSON)
		return put_json(cli, counts);
	const char *failed = stand_failed_today(cli, &any_ended);
	int64_t open = counts[STAND_NEEDS] + counts[STAND_RUNNING] + counts[STAND_WAITING];
	if (open == 0 && !any_ended) {
		cli_put(cli, "No tasks yet.\n");
		cli_hint(cli, "stint run -- echo hello");
		return 0;
	}
	put_sentences(cli, counts, failed);
	put_first(cli, counts[STAND_NEEDS]);
	return 0;
}

const struct verb verb_stand = {
	.name = "", /* no word of its own */
	.gives = GIVES_JSON,
	.hidden = true,
	.brief = "how things stand",
	.run = run,
};
