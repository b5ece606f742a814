/*
 * Why a task is where it is, as one sentence and the command that moves it: made here, so that every client says the same.
 *
 * Each reason has a function in the table at the end. A sentence has no full stop at its end and names the task not: clients
 * write "ID is STATE." before it. Its times are lengths, because the reader's clock may have another zone. Texts of others are
 * cut. A command is whole and quoted for a shell; it is left out where time alone moves the task, or all is well.
 */
#include "api/task/why.h"

#include <stdarg.h>
#include <string.h>

#include "api/task/form.h"
#include "api/task/view.h"
#include "base/duration.h"
#include "base/shell_word.h"
#include "base/suggest.h"
#include "base/take.h"

enum {
	TEXT_BYTES_MAX = 64 << 10,
	FOREIGN_BYTES_MAX = 500, /* of a text of somebody else */
	CHAIN_MAX = 4,           /* parents of parents that are named */
	EXECUTORS_NAMED_MAX = 20,
	POOLS_LOOKED_AT_MAX = 50, /* workers whose own words are read */
	PAGE_WORKERS = 100,
};

struct telling {
	const struct api_call *call;
	const struct task_document *document;
	struct reason reason;
	bool closer; /* also look at other tasks and at what workers say */
	struct buf text, try;
};

/* ---- words --------------------------------------------------------------------------------------------------- */

static void say(struct telling *t, const char *format, ...) __attribute__((format(printf, 2, 3)));

static void say(struct telling *t, const char *format, ...)
{
	va_list list;

	va_start(list, format);
	buf_vprintf(&t->text, format, list);
	va_end(list);
}

/* A command, and the last word of it, which is a name. */
static void try(struct telling *t, const char *command, struct span name)
{
	buf_clear(&t->try);
	buf_printf(&t->try, "%s ", command);
	shell_word_put(&t->try, name);
}

/* The word that people type for a state. */
static const char *state_word(enum task_state state)
{
	return state == TASK_PENDING ? "parked" : state == TASK_REVIEW ? "in review" : task_state_name(state);
}

static struct span id_of(const struct telling *t)
{
	return t->document->id;
}

static struct span name_in(const struct telling *t, uint32_t number)
{
	return name_of(t->call, number);
}

/* On one line, cut between two characters. */
static void say_cut(struct telling *t, struct span text)
{
	bool cut = text.len > FOREIGN_BYTES_MAX;

	if (cut)
		text.len = FOREIGN_BYTES_MAX;
	while (cut && text.len > 0 && ((unsigned char)text.data[text.len] & 0xc0) == 0x80)
		text.len--;
	for (size_t i = 0; i < text.len; i++) {
		unsigned char c = (unsigned char)text.data[i];
		buf_put_byte(&t->text, c == '\n' || c == '\r' || c == '\t' ? ' ' : c);
	}
	if (cut)
		say(t, "…");
}

/* A sentence of others, which stands within one of ours. */
static void say_foreign(struct telling *t, struct span text)
{
	while (text.len > 0 && (text.data[text.len - 1] == '\n' || text.data[text.len - 1] == '.'))
		text.len--;
	say_cut(t, text);
}

static void say_length(struct telling *t, int64_t ms)
{
	duration_put(&t->text, ms, 2);
}

static void say_since(struct telling *t, int64_t moment_ms)
{
	say_length(t, t->call->now.wall_ms - moment_ms);
	say(t, " ago");
}

/* " in 5 min", if there is such a moment and it is to come. */
static void say_until(struct telling *t, const char *before, const char *soon)
{
	int64_t left_ms = t->reason.until_ms - t->call->now.wall_ms;

	if (t->reason.until_ms == 0)
		return;
	say(t, "%s", before);
	if (left_ms < 1000) {
		say(t, "%s", soon);
		return;
	}
	say(t, "in ");
	say_length(t, left_ms);
}

/* What went wrong, by the word of the worker or, if it said nothing, of the server. */
static void say_failure(struct telling *t)
{
	const struct task *task = &t->document->task;
	yyjson_doc *own = task_error_read(task, t->document->error, &t->text);
	yyjson_val *message = yyjson_obj_get(yyjson_doc_get_root(own), "message");
	char room[TASK_FAILURE_BYTES];

	if (yyjson_is_str(message) && yyjson_get_len(message) > 0)
		say_foreign(t, json_text(message));
	else
		say_foreign(t, span_of(task_failure_text(t->call, task, room)));
	yyjson_doc_free(own);
}

struct name_count {
	struct telling *t;
	uint32_t count, bit, mask; /* of gates: the members that are left out */
	struct span first;
};

static int say_name(void *context, struct span name)
{
	struct name_count *names = context;
	bool hidden = (names->mask & names->bit) != 0;

	names->bit <<= 1;
	if (hidden)
		return 0;
	if (names->count++ == 0)
		names->first = name;
	say(names->t, "%s%.*s", names->count > 1 ? ", " : "", SPAN_ARGS(name));
	return 0;
}

static int count_name(void *context, struct span name)
{
	struct name_count *names = context;

	(void)name;
	names->count += (names->mask & names->bit) == 0;
	names->bit <<= 1;
	return 0;
}

/* ---- it waits ------------------------------------------------------------------------------------------------- */

static void tell_parked(struct telling *t)
{
	say(t, "Parked until somebody unparks it");
	try(t, "stint unpark", id_of(t));
}

static void tell_scheduled(struct telling *t)
{
	say_until(t, "Starts ", "now");
}

static void tell_back_off(struct telling *t)
{
	say_until(t, "Tries again ", "now");
	say(t, ". Last: ");
	say_failure(t);
}

static void why_tell(struct telling *t);

/* The sentence ends with the last task of the chain: what moves that one moves them all. */
static void try_of(struct telling *t, const struct task_document *last)
{
	struct telling other = {
		.call = t->call,
		.document = last,
		.reason = store_why(t->call->store, &last->task, t->call->now),
		.text = {.max = TEXT_BYTES_MAX},
		.try = {.max = TEXT_BYTES_MAX},
	};

	why_tell(&other);
	buf_clear(&t->try);
	buf_put_span(&t->try, buf_span(&other.try));
	buf_done(&other.text);
	buf_done(&other.try);
}

/* "After group nightly, which is open: 5 of 20 members have not ended". */
static void tell_group(struct telling *t, int64_t edge, bool first)
{
	const char *after = first ? "After" : ", which is after";
	struct group_document document;

	if (store_read_group_of_edge(t->call->store, edge, &document) < 0) {
		say(t, "%s a group that was removed", after);
		return;
	}
	const struct group_state *group = document.group;
	uint32_t open = group_open_members(group), all = group_members(group);
	say(t, "%s group %.*s", after, SPAN_ARGS(document.name));
	if (group_has_ended(group))
		say(t, ", of which %u members failed or were cancelled",
			group->count[TASK_FAILED] + group->count[TASK_CANCELLED]);
	else if (open > 0)
		say(t, ", of which %u of %u members have not ended", open, all);
	if (!group->closed)
		say(t, "%s", open > 0 ? "; it is not closed" : ", which is not closed");
	if (!group->closed && t->closer)
		try(t, "stint group close", document.name);
}

/* "After t-2, which is after t-1, which is asking". */
static void tell_parents(struct telling *t)
{
	const struct api_call *call = t->call;
	struct task_document parent;
	int64_t seq = t->document->task.seq;

	for (int depth = 0;; depth++) {
		bool dead = depth == 0 && t->document->task.state == TASK_BLOCKED;
		int r = store_first_parent(call->store, seq, dead, &seq);
		if (r == 0 && seq < 0) {
			tell_group(t, seq, depth == 0);
			return;
		}
		if (r == 0)
			r = store_read_task(call->store, seq, call->now, call->arena, &parent);
		if (r < 0 || !principal_sees(call, &parent.task)) {
			say(t, "%s", depth == 0 ? "After a task that is not done" : ", which waits");
			return;
		}
		say(t, "%s %.*s", depth == 0 ? "After" : ", which is after", SPAN_ARGS(parent.id));
		bool waits = parent.task.state == TASK_WAITING;
		if (!t->closer || !waits || depth == CHAIN_MAX)
			break;
	}
	say(t, ", which is %s", state_word(parent.task.state));
	if (t->closer)
		try_of(t, &parent);
}

/* ---- nobody takes it -------------------------------------------------------------------------------------------- */

/* Each live worker that the caller may see, until `look` has seen enough. */
static void look_at_workers(struct telling *t,
	int (*look)(void *context, struct span id, const struct worker *worker), void *context)
{
	uint32_t at = 0;
	int r = 0;

	do {
		r = store_page_workers(t->call->store, &at, PAGE_WORKERS, look, context);
	} while (r == 0 && at != 0);
}

struct executors {
	struct telling *t;
	struct span names[EXECUTORS_NAMED_MAX];
	size_t count;
	struct suggestion like;
	char wanted[COMMAND_NAME_MAX + 1], room[EXECUTORS_NAMED_MAX][COMMAND_NAME_MAX + 1];
};

static int add_executor(void *context, struct span name)
{
	struct executors *found = context;

	if (found->count == EXECUTORS_NAMED_MAX || name.len > COMMAND_NAME_MAX)
		return 0;
	for (size_t i = 0; i < found->count; i++) {
		if (span_equal(found->names[i], name))
			return 0;
	}
	char *text = found->room[found->count];
	memcpy(text, name.data, name.len);
	text[name.len] = 0;
	suggest_consider(&found->like, found->wanted, text);
	found->names[found->count++] = name;
	return 0;
}

static int add_executors(void *context, struct span id, const struct worker *worker)
{
	struct executors *found = context;

	if (worker->state != WORKER_ACTIVE || !worker_is_visible(&found->t->call->who, id, worker))
		return 0;
	return store_each_member(found->t->call->store, worker->executors, add_executor, found);
}

/* Which executor is missing where, and what is there instead. */
static void tell_no_executor(struct telling *t)
{
	const struct task *task = &t->document->task;
	struct span wanted = name_in(t, task->executor);
	struct executors found = {.t = t};

	say(t, "No worker of queue %.*s runs %.*s", SPAN_ARGS(name_in(t, task->queue)), SPAN_ARGS(wanted));
	if (task->state == TASK_BLOCKED)
		try(t, "stint retry", id_of(t));
	else
		buf_printf(&t->try, "stint worker ls");
	if (!t->closer || wanted.len > COMMAND_NAME_MAX)
		return;
	memcpy(found.wanted, wanted.data, wanted.len);
	look_at_workers(t, add_executors, &found);
	for (size_t i = 0; i < found.count; i++)
		say(t, "%s%.*s", i == 0 ? "; workers run " : ", ", SPAN_ARGS(found.names[i]));
	if (found.like.word)
		say(t, ". Did you mean %s?", found.like.word);
}

static void tell_no_worker(struct telling *t)
{
	say(t, "No worker is alive");
	buf_printf(&t->try, "stint worker ls");
}

static void tell_unserved(struct telling *t)
{
	say(t, "No worker serves queue %.*s", SPAN_ARGS(name_in(t, t->document->task.queue)));
	if (t->reason.refused != 0)
		say(t, "; the claims of %.*s are refused, because its token is not for all queues that it asks for",
			SPAN_ARGS(store_worker_id(t->call->store, t->reason.refused)));
	buf_printf(&t->try, "stint worker ls");
}

static void tell_no_capability(struct telling *t)
{
	struct name_count names = {.t = t};

	say(t, "Needs ");
	store_each_member(t->call->store, t->document->task.requires, say_name, &names);
	say(t,
		names.count > 1 ? "; no worker that is alive has all of them"
				: "; no worker that is alive has it");
	buf_printf(&t->try, "stint worker ls");
}

static void tell_owner_away(struct telling *t)
{
	say(t, "Only slot %.*s may take it, and no worker is in that slot",
		SPAN_ARGS(name_in(t, t->document->task.owner)));
	buf_printf(&t->try, "stint worker ls");
}

static void tell_owner_quarantined(struct telling *t)
{
	struct span slot = name_in(t, t->document->task.owner);

	say(t, "Slot %.*s crashed too often and is quarantined", SPAN_ARGS(slot));
	say_until(t, "; a trial is due ", "now");
	try(t, "stint slot unquarantine", slot);
}

static void tell_pool_quarantined(struct telling *t)
{
	struct span slot = name_in(t, t->reason.slot);

	say(t, "Place %.*s of the pool that could take it crashed too often and is quarantined",
		SPAN_ARGS(slot));
	say_until(t, "; a trial is due ", "now");
	try(t, "stint slot unquarantine", slot);
}

static void tell_busy(struct telling *t)
{
	const struct task *task = &t->document->task;
	uint32_t count = t->reason.workers;

	if (count == 1)
		say(t, "The one worker that ");
	else
		say(t, "All %u workers that ", count);
	if (task->executor != 0)
		say(t, "%s %.*s", count == 1 ? "runs" : "run", SPAN_ARGS(name_in(t, task->executor)));
	else
		say(t, "%s queue %.*s", count == 1 ? "serves" : "serve", SPAN_ARGS(name_in(t, task->queue)));
	say(t, count == 1 ? " is busy" : " are busy");
}

/* A supervisor claims no more than its pools can begin: it has room as far as the server knows, and its pool is full. */
struct full_pools {
	struct telling *t;
	uint32_t looked_at;
	bool others; /* somebody has room */
	struct span pool, worker;
};

static bool has_member(yyjson_val *pools, struct span name, yyjson_val **ret_pool)
{
	*ret_pool = yyjson_obj_getn(pools, name.data, name.len);
	return *ret_pool != NULL;
}

struct pool_look {
	struct full_pools *full;
	yyjson_val *pools;
	struct span worker;
	bool fits, has_room;
	struct span name;
};

static int look_at_pool(void *context, struct span executor)
{
	struct pool_look *look = context;
	struct telling *t = look->full->t;
	uint32_t wanted = t->document->task.executor;
	yyjson_val *pool;

	if (wanted != 0 && !span_equal(name_in(t, wanted), executor))
		return 0;
	look->fits = true;
	if (!has_member(look->pools, executor, &pool) ||
		yyjson_get_sint(yyjson_obj_get(pool, "busyWorkers")) <
			yyjson_get_sint(yyjson_obj_get(pool, "totalWorkers")))
		look->has_room = true;
	look->name = executor;
	return 0;
}

static int look_at_pools(void *context, struct span id, const struct worker *worker)
{
	struct full_pools *full = context;
	struct worker_document more;

	if (worker->state != WORKER_ACTIVE)
		return 0;
	if (!worker_is_visible(&full->t->call->who, id, worker) || worker->any_executor ||
		full->looked_at++ == POOLS_LOOKED_AT_MAX ||
		store_read_worker(full->t->call->store, id, &more) < 0) {
		full->others = true;
		return 1;
	}
	yyjson_doc *doc = yyjson_read(more.metadata.data, more.metadata.len, 0);
	struct pool_look look = {
		.full = full, .pools = yyjson_obj_get(yyjson_doc_get_root(doc), "pools"), .worker = id};
	store_each_member(full->t->call->store, worker->executors, look_at_pool, &look);
	yyjson_doc_free(doc);
	if (!look.fits)
		return 0;
	full->others |= look.has_room;
	if (full->pool.len == 0) {
		full->pool = look.name;
		full->worker = id;
	}
	return full->others;
}

static void tell_ready(struct telling *t)
{
	struct span queue = name_in(t, t->document->task.queue);
	struct full_pools full = {.t = t};

	if (t->reason.unasked) {
		say(t, "No worker has asked queue %.*s for work lately; the next one that does gets it",
			SPAN_ARGS(queue));
		buf_printf(&t->try, "stint worker ls");
		return;
	}
	if (t->closer)
		look_at_workers(t, look_at_pools, &full);
	if (full.pool.len > 0 && !full.others) {
		say(t, "All workers of pool %.*s of %.*s are busy; the first that is free takes it",
			SPAN_ARGS(full.pool), SPAN_ARGS(full.worker));
		return;
	}
	say(t, "The next worker that asks queue %.*s for work gets it", SPAN_ARGS(queue));
}

/* What holds it back is told as for parents: they are kept in the same way. */
static void tell_children(struct telling *t)
{
	const struct task *task = &t->document->task;
	uint32_t open = task->open_parents - task->dead_parents;

	say(t, open == 1 ? "Waits for 1 subtask. " : "Waits for %u subtasks. ", open);
	tell_parents(t);
}

/* It waits for the attempt of the task whose key it took. */
static void tell_predecessor(struct telling *t)
{
	struct task_document before;

	if (store_read_task(t->call->store, t->document->task.predecessor, t->call->now, t->call->arena,
		    &before) < 0) {
		say(t, "Waits for the end of the attempt of the task whose unique key it took");
		return;
	}
	say(t, "Takes the place of %.*s, which is %s: after the attempt of that has ended",
		SPAN_ARGS(before.id), state_word(before.task.state));
	try(t, "stint why", before.id);
}

/* It waits for the oldest task of its schedule that has not ended. */
static void tell_schedule(struct telling *t)
{
	struct schedule_document schedule;
	struct span id, before;
	struct task_document open;
	int64_t at_ms;

	int r = store_schedule_of(t->call->store, &t->document->task, t->call->arena, &id, &at_ms);
	if (r == 0)
		r = store_read_schedule(t->call->store, id, &schedule);
	if (r < 0 || schedule.state->open_count == 0) {
		say(t, "Waits for the task before it of its schedule");
		return;
	}
	r = store_read_task(t->call->store, schedule.state->open[0], t->call->now, t->call->arena, &open);
	before = r == 0 ? open.id : SPAN("the task before it");
	say(t, "Schedule %.*s: after %.*s", SPAN_ARGS(id), SPAN_ARGS(before));
	if (r == 0) {
		say(t, ", which is %s", state_word(open.task.state));
		try(t, "stint why", before);
	}
}

static void tell_paused(struct telling *t)
{
	struct span queue = name_in(t, t->document->task.queue);

	say(t, "Queue %.*s is paused", SPAN_ARGS(queue));
	try(t, "stint queue resume", queue);
}

/* Its concurrency key, as the caller wrote it. */
static struct span key_of(struct telling *t)
{
	yyjson_doc *body = task_body_read(t->document->body, NULL);
	struct span key = {0};

	if (body &&
		arena_copy(t->call->arena,
			json_text(yyjson_obj_get(yyjson_doc_get_root(body), "concurrencyKey")), &key) < 0)
		key = (struct span){0};
	yyjson_doc_free(body);
	return key;
}

static void tell_limited(struct telling *t)
{
	struct span queue = name_in(t, t->document->task.queue);
	const struct reason *reason = &t->reason;

	if (reason->limit == LIMIT_SEQUENTIAL)
		say(t, "Queue %.*s takes the tasks of key %.*s one after the other, and one that has begun is not final yet",
			SPAN_ARGS(queue), SPAN_ARGS(key_of(t)));
	else if (reason->limit == LIMIT_PER_KEY)
		say(t, "Queue %.*s hands out %u of key %.*s at a time, and %u of them %s in work; one has to end first",
			SPAN_ARGS(queue), reason->most, SPAN_ARGS(key_of(t)), reason->live,
			reason->live == 1 ? "is" : "are");
	else if (reason->limit == LIMIT_BUDGET)
		say(t, "The budget of queue %.*s for today is used up; it hands out again when the next day of UTC begins",
			SPAN_ARGS(queue));
	else if (reason->limit == LIMIT_RATE)
		say(t, "The rate of queue %.*s is used up for now", SPAN_ARGS(queue));
	else if (reason->limit == LIMIT_REVIEW)
		say(t, "Queue %.*s hands out nothing while %u of its tasks are in review, and %u are; decide one of them",
			SPAN_ARGS(queue), reason->most, reason->live);
	else
		say(t, "Queue %.*s hands out %u at a time, and %u of its tasks %s in work; one has to end first",
			SPAN_ARGS(queue), reason->most, reason->live, reason->live == 1 ? "is" : "are");
	try(t, "stint queue show", queue);
}

static void tell_disarmed(struct telling *t)
{
	say(t, "Execution is disarmed: nothing is handed out until it is armed again");
	buf_printf(&t->try, "stint arm");
}

static void tell_not_autonomous(struct telling *t)
{
	say(t, "Queue %.*s hands out only tasks with metadata.autonomous_execution: true",
		SPAN_ARGS(name_in(t, t->document->task.queue)));
}

static void tell_read_only(struct telling *t)
{
	say(t, "The disk is full: nothing is handed out until there is room");
	buf_printf(&t->try, "stint doctor");
}

static void tell_held(struct telling *t)
{
	const struct task *task = &t->document->task;

	if (task->credential != 0)
		say(t, "Account %.*s is held", SPAN_ARGS(name_in(t, task->credential)));
	else
		say(t, "The accounts of all workers that could take it are held");
	if (t->reason.until_ms > t->call->now.wall_ms) {
		say(t, " for ");
		say_length(t, t->reason.until_ms - t->call->now.wall_ms);
		say(t, "; then one task tries");
	}
	buf_printf(&t->try, "stint hold ls");
}

static void tell_kept_for_host(struct telling *t)
{
	struct span id = id_of(t);
	bool has_session = t->document->task.session_host == t->document->task.resume_host;

	say(t, "%s; only host %.*s, where %s, may take it for ",
		has_session ? "Goes on in its session" : "Has its answer",
		SPAN_ARGS(name_in(t, t->document->task.resume_host)), has_session ? "that is" : "it asked");
	say_length(t, t->reason.until_ms - t->call->now.wall_ms);
	try(t, "stint park", id);
	buf_printf(&t->try, " && stint unpark ");
	shell_word_put(&t->try, id);
}

/* ---- somebody has it ---------------------------------------------------------------------------------------------- */

static void tell_claimed(struct telling *t)
{
	say(t, "Worker %.*s took it ", SPAN_ARGS(t->document->holder));
	say_since(t, t->document->task.claim.claimed_wall_ms);
	say(t, " and is starting it");
}

/* Its last words about how far it is. */
static bool say_progress(struct telling *t)
{
	cleanup(buf_done) struct buf object = {.max = TEXT_BYTES_MAX};
	struct span members = t->document->progress;
	size_t before = t->text.len;
	double percent;

	if (members.len == 0)
		return false;
	buf_printf(&object, "{%.*s}", SPAN_ARGS(members));
	yyjson_doc *doc = kept_read(buf_span(&object), &t->text);
	yyjson_val *note = yyjson_obj_get(yyjson_doc_get_root(doc), "note"),
		   *part = yyjson_obj_get(yyjson_doc_get_root(doc), "percent");
	if (part && json_number(part, &percent))
		say(t, "%.0f %%%s", percent, note ? ": " : "");
	if (note)
		say_foreign(t, json_text(note));
	yyjson_doc_free(doc);
	return t->text.len > before;
}

/* How long ago its holder was heard; -1: it sends no heartbeats. */
static int64_t beat_age_ms(const struct telling *t, struct worker *ret_worker)
{
	struct worker_document found;

	if (store_read_worker(t->call->store, t->document->holder, &found) < 0 ||
		found.worker.state == WORKER_UNKNOWN || found.worker.last_beat_ms == 0)
		return -1;
	*ret_worker = found.worker;
	int64_t age_ms = found.worker.heard_ms != INT64_MIN
		? t->call->now.lease_ms - found.worker.heard_ms
		: t->call->now.wall_ms - found.worker.last_beat_ms;
	return age_ms > 0 ? age_ms : 0;
}

/* Its worker may be dead already though its lease has not ended. */
static void say_silence(struct telling *t, int64_t age_ms)
{
	struct span holder = t->document->holder;

	say(t, "No word from %.*s for ", SPAN_ARGS(holder));
	say_length(t, age_ms);
	say(t, "; its lease runs out in ");
	duration_put_countdown(&t->text, t->document->lease_ms);
	try(t, "stint worker show", holder);
}

static void say_holder(struct telling *t)
{
	struct given given = {.rules = t->call->rules, .now = t->call->now};
	int64_t run_ms = task_run_remaining_ms(&t->document->task, &given);
	struct worker worker;
	int64_t age_ms = beat_age_ms(t, &worker);

	if (age_ms >= 0 && worker.lease.granted_ms > 0 && age_ms > worker.lease.granted_ms / 2) {
		say_silence(t, age_ms);
		return;
	}
	say(t, "%.*s has it", SPAN_ARGS(t->document->holder));
	if (age_ms >= 0) {
		say(t, ", beat ");
		duration_put(&t->text, age_ms, 1);
		say(t, " ago");
	}
	if (run_ms > 0) {
		say(t, "; stopped in ");
		say_length(t, run_ms);
		say(t, " if not done");
	}
}

static void tell_running(struct telling *t)
{
	bool said = say_progress(t);

	if (said && !t->closer)
		return;
	say(t, "%s", said ? ". " : "");
	say_holder(t);
}

static void tell_stopping(struct telling *t)
{
	say(t, "Cancelled; %.*s was told to stop and has not yet", SPAN_ARGS(t->document->holder));
}

static void tell_overdue(struct telling *t)
{
	say(t, "Past its time limit; %.*s was told to stop", SPAN_ARGS(t->document->holder));
}

/* ---- a person has to do something ------------------------------------------------------------------------------------ */

/* How many lines of a diff go, and how many come. */
static void say_diff(struct telling *t, struct span diff)
{
	size_t gone = 0, come = 0;
	bool begins = true;

	for (size_t i = 0; i < diff.len; i++) {
		bool head = diff.len - i >= 3 &&
			(memcmp(diff.data + i, "+++", 3) == 0 || memcmp(diff.data + i, "---", 3) == 0);
		if (begins && !head) {
			gone += diff.data[i] == '-';
			come += diff.data[i] == '+';
		}
		begins = diff.data[i] == '\n';
	}
	if (gone + come > 0)
		say(t, " +%zu −%zu", come, gone);
}

/* What a tool wants to do, by the members of its input that most tools have. False: those say nothing. */
static bool say_wish(struct telling *t, yyjson_val *question)
{
	static const struct {
		const char *member, *words;
	} wishes[] = {
		{"command", "Wants to run "},
		{"file_path", "Wants to edit "},
		{"path", "Wants to edit "},
		{"url", "Wants to open "},
	};
	yyjson_val *tool = yyjson_obj_get(question, "tool"), *input = yyjson_obj_get(question, "input");

	if (!yyjson_is_str(tool))
		return false;
	for (size_t i = 0; i < sizeof wishes / sizeof *wishes; i++) {
		yyjson_val *value = yyjson_obj_get(input, wishes[i].member);
		if (!yyjson_is_str(value))
			continue;
		say(t, "%s", wishes[i].words);
		say_cut(t, json_text(value)); /* every letter of it counts */
		say_diff(t, json_text(yyjson_obj_get(question, "diff")));
		return true;
	}
	say(t, "Wants to use ");
	say_foreign(t, json_text(tool));
	say(t, ": ");
	say_foreign(t, json_text(yyjson_obj_get(question, "text")));
	return true;
}

static void tell_asking(struct telling *t)
{
	yyjson_doc *doc = kept_read(t->document->question, &t->text);
	yyjson_val *root = yyjson_doc_get_root(doc), *options = yyjson_obj_get(root, "options"), *option;
	size_t at, count;

	if (say_wish(t, root)) {
		try(t, "stint approve", id_of(t));
		yyjson_doc_free(doc);
		return;
	}
	say(t, "Asks: ");
	yyjson_val *text = yyjson_obj_get(root, "text");
	say_foreign(t, json_text(text ? text : yyjson_obj_get(root, "question"))); /* of an older server */
	yyjson_arr_foreach(options, at, count, option)
	{
		say(t, "%s", at == 0 ? " (" : ", ");
		say_foreign(t, json_text(option));
	}
	say(t, "%s", yyjson_arr_size(options) > 0 ? ")" : "");
	option = yyjson_arr_get_first(options);
	if (option) {
		try(t, "stint answer", id_of(t));
		buf_put_byte(&t->try, ' ');
		shell_word_put(&t->try, json_text(option));
	} else {
		try(t, "stint show", id_of(t));
	}
	yyjson_doc_free(doc);
}

/* The gates that it has not passed yet; or else what its workflow is waiting for. */
static void tell_review(struct telling *t)
{
	const struct task *task = &t->document->task;
	struct name_count names = {.t = t, .bit = 1, .mask = task->gates_passed}, all = names;

	store_each_member(t->call->store, task->gates, count_name, &all);
	if (all.count == 0 && task->workflow != WORKFLOW_NONE) {
		struct span workflow = workflow_plan_of(call_workflows(t->call), task->workflow)->name;
		say(t, "Waits at stage %s of its workflow for the next event", stage_name(task->stage));
		try(t, "stint workflow show", workflow);
		return;
	}
	say(t,
		all.count == 0           ? "Needs a verdict"
			: all.count == 1 ? "Needs a verdict on gate "
					 : "Needs verdicts on gates ");
	store_each_member(t->call->store, task->gates, say_name, &names);
	try(t, "stint approve", id_of(t));
	if (all.count > 1) {
		buf_printf(&t->try, " --gate ");
		shell_word_put(&t->try, names.first);
	}
}

static void tell_blocked(struct telling *t)
{
	const struct task *task = &t->document->task;
	yyjson_doc *own = task_error_read(task, t->document->error, &t->text);
	bool by_server = !own;

	yyjson_doc_free(own);
	if (task->code == CODE_DEPENDENCY_FAILED) {
		tell_parents(t);
	} else if (task->code == CODE_EXECUTOR_NOT_FOUND && task->executor != 0 && by_server) {
		tell_no_executor(t);
	} else {
		say_failure(t);
		try(t, "stint retry", id_of(t));
	}
}

static void tell_ended(struct telling *t)
{
	const struct task *task = &t->document->task;

	if (task->state == TASK_FAILED) {
		if (task->spent >= task->max_attempts)
			say(t, "%u of %u failures spent. Last: ", task->spent, task->max_attempts);
		else if (task->spent > 0)
			say(t, "Not tried again after failure %u of %u: ", task->spent, task->max_attempts);
		say_failure(t);
		try(t, task->attempt > 0 ? "stint logs" : "stint retry", id_of(t));
		return;
	}
	say(t, "%s ", task->state == TASK_DONE ? "Finished" : "Cancelled");
	say_since(t, task->updated_ms);
	if (task->state == TASK_DONE && task->attempt > 1)
		say(t, ", on attempt %u", task->attempt);
}

/* ---- the table -------------------------------------------------------------------------------------------------------- */

static void (*const tellers[WHY_COUNT])(struct telling *t) = {
	[WHY_READY_NOW] = tell_ready,
	[WHY_PARKED] = tell_parked,
	[WHY_SCHEDULED] = tell_scheduled,
	[WHY_BACKING_OFF] = tell_back_off,
	[WHY_DEPENDENCY] = tell_parents,
	[WHY_CHILDREN] = tell_children,
	[WHY_PREDECESSOR] = tell_predecessor,
	[WHY_SCHEDULE] = tell_schedule,
	[WHY_PAUSED] = tell_paused,
	[WHY_LIMITED] = tell_limited,
	[WHY_DISARMED] = tell_disarmed,
	[WHY_NOT_AUTONOMOUS] = tell_not_autonomous,
	[WHY_READ_ONLY] = tell_read_only,
	[WHY_KEPT_FOR_HOST] = tell_kept_for_host,
	[WHY_HELD] = tell_held,
	[WHY_NO_WORKER] = tell_no_worker,
	[WHY_QUEUE_UNSERVED] = tell_unserved,
	[WHY_NO_CAPABILITY] = tell_no_capability,
	[WHY_NO_EXECUTOR] = tell_no_executor,
	[WHY_OWNER_AWAY] = tell_owner_away,
	[WHY_OWNER_QUARANTINED] = tell_owner_quarantined,
	[WHY_WORKERS_BUSY] = tell_busy,
	[WHY_POOL_QUARANTINED] = tell_pool_quarantined,
	[WHY_UNCONFIRMED] = tell_claimed,
	[WHY_RUNNING] = tell_running,
	[WHY_STOPPING] = tell_stopping,
	[WHY_OVERDUE] = tell_overdue,
	[WHY_ASKING] = tell_asking,
	[WHY_REVIEW] = tell_review,
	[WHY_BLOCKED] = tell_blocked,
	[WHY_ENDED] = tell_ended,
};

static void why_tell(struct telling *t)
{
	tellers[t->reason.why](t);
}

void why_put(const struct api_call *call, struct json_object *object, const struct task_document *document,
	struct reason reason, bool closer)
{
	struct telling t = {
		.call = call,
		.document = document,
		.reason = reason,
		.closer = closer,
		.text = {.max = TEXT_BYTES_MAX},
		.try = {.max = TEXT_BYTES_MAX},
	};

	why_tell(&t);
	json_member_cstr(object, "reason", why_name(reason.why));
	json_member_string(object, "text", buf_span(&t.text));
	json_member_string_if_any(object, "try", buf_span(&t.try));
	json_note(object, buf_fault(&t.text));
	json_note(object, buf_fault(&t.try));
	buf_done(&t.text);
	buf_done(&t.try);
}

void why_put_member(const struct api_call *call, struct json_object *object,
	const struct task_document *document, struct reason reason)
{
	struct json_object why;

	if (!json_put_key(object, "why"))
		return;
	json_begin(&why, object->buf);
	why_put(call, &why, document, reason, false);
	json_note(object, json_end(&why));
}

bool why_is_wanted(struct api_call *call, const struct query_value *include)
{
	return call_require_field(call, !include->value.data || span_equal(include->value, SPAN("why")),
		"include", "must be \"why\"");
}
