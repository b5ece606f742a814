/*
 * Events: the stream from a cursor, as pages or without end; and those of one task.
 *
 * A cursor is the number of the last event seen; "now" is that of the last one there is. A cursor before the events that are
 * kept, or behind the last event (the store was restored), is refused: skipping silently would be worse.
 */
#include "api/flow/budgets.h"
#include "api/call.h"
#include "api/task/view.h"

#include <errno.h>
#include <stdio.h>

#include "base/base36.h"
#include "base/take.h"

enum {
	RESTORED_IDS_MAX = 200, /* of tokens, in one list of an event */
	EVENTS_DEFAULT = 100,
	EVENTS_MAX = 1000,
	SLICE_EVENTS = 100,
	SLICE_BYTES = 64 << 10,
	LIST_BYTES_MAX = 16 << 20,  /* of one reply, about */
	TRAIL_MAX = 20000,          /* events of one task that are followed back … */
	LOOKED_THROUGH_MAX = 20000, /* … or else so many of all, before the caller must ask again */
};

#define NO_CURSOR "must be a cursor as it was given out, or now"

/* ---- one event -------------------------------------------------------------------------------------- */

static void put_task_id(struct json_object *object, const struct record *record)
{
	char text[2 + BASE36_MAX] = "t-";

	if (record->id.len > 0) {
		json_member_string(object, "task", record->id);
		return;
	}
	size_t len = base36_encode((uint64_t)record->task, text + 2);
	json_member_string(object, "task", (struct span){text, len + 2});
}

static void put_change(struct json_object *data, const struct record *record)
{
	const struct task *columns = &record->columns;

	if (record->from != TASK_NOWHERE)
		json_member_cstr(data, "from", task_state_name(record->from));
	if (columns->state != TASK_NOWHERE)
		json_member_cstr(data, "state", task_state_name(columns->state));
	json_member_int_if_any(data, "attempt", columns->attempt);
	if (columns->fence != 0)
		json_member_decimal(data, "fence", columns->fence);
	json_member_int_if_any(data, "spent", columns->spent);
	json_member_int_if_any(data, "crashes", columns->crashes);
	if (columns->code != CODE_NONE)
		json_member_cstr(data, "code", failure_code_name(columns->code));
	if (columns->stage != STAGE_NONE)
		json_member_cstr(data, "stage", stage_name(columns->stage));
}

static void put_stage(struct json_object *data, const struct record *record)
{
	int64_t from = record_has(record, FACT_STAGE_FROM) ? record->fact[FACT_STAGE_FROM] : 0;
	int64_t action = record_has(record, FACT_ACTION) ? record->fact[FACT_ACTION] : 0;

	if (from > STAGE_NONE && from < STAGE_COUNT)
		json_member_cstr(data, "fromStage", stage_name((enum stage)from));
	if (action > ACTION_NONE && action < ACTION_COUNT)
		json_member_cstr(data, "action", action_name((enum action)action));
}

/* Facts that mean something to a reader; the others are of the lease clock. */
static const struct {
	enum fact fact;
	const char *name;
	bool is_flag;
} facts[] = {
	{FACT_GRANTED, "leaseMs", false},
	{FACT_NAME_ONLY, "nameOnly", true},
	{FACT_NAMED, "named", true},
	{FACT_MAX, "maxConcurrent", false},
	{FACT_STOPPING, "stopping", true},
	{FACT_REPORTED, "reported", true},
	{FACT_TRIAL, "trial", true},
	{FACT_OVERDUE, "overdue", true},
	{FACT_CONCURRENCY, "concurrency", false},
	{FACT_PER_KEY, "perKey", false},
	{FACT_SEQUENTIAL, "sequential", true},
	{FACT_KEY_CAPS, "keyCaps", false},
	{FACT_RATE, "rateCount", false},
	{FACT_RATE_MS, "ratePerMs", false},
	{FACT_BURST, "rateBurst", false},
	{FACT_RATE_PER_KEY, "ratePerKey", true},
	{FACT_REVIEW_MOST, "review", false},
	{FACT_FAIR, "fair", true},
	{FACT_MAX_OPEN, "maxOpen", false},
	{FACT_WAITING, "waiting", false},
	{FACT_RETRY_AT, "retryAt", false},
	{FACT_GENERATION, "generation", false},
	{FACT_START, "start", false},
	{FACT_DAMAGE, "damage", false},
	{FACT_WITHDRAWN, "withdrawn", true},
	{FACT_LATE, "late", true},
	{FACT_PLANNED_FROM, "from", false},
	{FACT_PLANNED_COUNT, "count", false},
	{FACT_STREAK, "inARow", false},
	{FACT_MATCHED, "matched", false},
	{FACT_DONE, "done", false},
	{FACT_SKIPPED, "skipped", false},
};

static void put_limit(struct json_object *data, const struct record *record)
{
	int64_t limit = record_has(record, FACT_LIMIT) ? record->fact[FACT_LIMIT] : LIMIT_NONE;

	if (limit > LIMIT_NONE && limit < LIMIT_KIND_COUNT)
		json_member_cstr(data, "limit", limit_kind_name((enum limit_kind)limit));
}

static void put_question(struct json_object *data, const struct record *record)
{
	char id[QUESTION_ID_BYTES];

	if (record_has(record, FACT_QUESTION) && record->fact[FACT_QUESTION] != 0)
		json_member_string(
			data, "questionId", question_id_put((uint32_t)record->fact[FACT_QUESTION], id));
}

static void put_facts(struct json_object *data, const struct record *record)
{
	put_question(data, record);
	for (size_t i = 0; i < sizeof facts / sizeof *facts; i++) {
		if (!record_has(record, facts[i].fact))
			continue;
		int64_t value = record->fact[facts[i].fact];
		if (!facts[i].is_flag)
			json_member_int(data, facts[i].name, value);
		else if (value != 0)
			json_member_bool(data, facts[i].name, true);
	}
	int64_t klass = record_has(record, FACT_CLASS) ? record->fact[FACT_CLASS] : 0;
	if (klass > FAILURE_CLASS_NONE && klass < FAILURE_CLASS_COUNT)
		json_member_cstr(data, "class", failure_class_name((enum failure_class)klass));
	if (klass == CLASS_CRASH && record->kind == EVENT_TASK_FAILED) /* the next attempt may go well */
		json_member_bool(data, "recoverable", record->columns.state != TASK_FAILED);
	if (record_has(record, FACT_PLANNED))
		json_member_int(data, record_has(record, FACT_PLANNED_FROM) ? "to" : "at",
			record->fact[FACT_PLANNED]);
	int64_t skip = record_has(record, FACT_SKIP) ? record->fact[FACT_SKIP] : 0;
	if (skip > SKIP_NOTHING && skip < SKIP_END)
		json_member_cstr(data, "reason", skip_name((enum skip)skip));
	int64_t stop = record_has(record, FACT_STOP) ? record->fact[FACT_STOP] : 0;
	if (stop > BULK_NOT_STOPPED && stop < BULK_STOP_COUNT)
		json_member_cstr(data, "reason", bulk_stop_name((enum bulk_stop)stop));
	int64_t ended = record_has(record, FACT_REASON) ? record->fact[FACT_REASON] : 0;
	if (ended > WORKER_ENDED_NOT && ended <= WORKER_REPLACED)
		json_member_cstr(data, "ended", worker_end_name((enum worker_end)ended));
}

/* What the subject of such an event is; of a worker's the slot that it fills. */
static const char *subject_name(enum event_kind kind)
{
	if (kind == EVENT_SLOT_QUARANTINED || kind == EVENT_SLOT_UNQUARANTINED ||
		kind == EVENT_SLOT_ASSIGNED ||
		(kind >= EVENT_WORKER_REGISTERED && kind <= EVENT_WORKER_INACTIVE))
		return "slot";
	if (kind >= EVENT_HOLD_OPENED && kind <= EVENT_HOLD_CLOSED)
		return "credential";
	if (kind == EVENT_TOKEN_KEY_ROTATED)
		return "key";
	if (kind >= EVENT_SCHEDULE_CREATED && kind <= EVENT_SCHEDULE_FAILING)
		return "schedule";
	if (kind >= EVENT_GROUP_CLOSED && kind <= EVENT_GROUP_REMOVED)
		return "group";
	if (kind == EVENT_BULK_STARTED || kind == EVENT_BULK_ENDED)
		return "bulk";
	if (kind == EVENT_GATE_OPENED || kind == EVENT_GATE_PASSED || kind == EVENT_GATE_REJECTED)
		return "gate";
	return "queue";
}

/* "came ID ID", "went ID", "ended ID", "unknown": see stage_restored() in store/open.c. */
static void put_restored_line(struct json_object *tokens, struct span line)
{
	struct span words[RESTORED_IDS_MAX + 1];
	uint32_t count = 0;

	while (line.len > 0 && count <= RESTORED_IDS_MAX) {
		const char *blank = memchr(line.data, ' ', line.len);
		size_t len = blank ? (size_t)(blank - line.data) : line.len;
		words[count++] = (struct span){line.data, len};
		line = blank ? (struct span){blank + 1, line.len - len - 1} : (struct span){0};
	}
	char name[16];
	if (count == 0 || words[0].len >= sizeof name)
		return;
	snprintf(name, sizeof name, "%.*s", SPAN_ARGS(words[0]));
	if (strcmp(name, "unknown") == 0)
		json_member_bool(tokens, name, true);
	else if (json_put_key(tokens, name))
		json_put_strings(tokens->buf, words + 1, count - 1);
}

/* "lost 12", the last line, is about a failover: so many turns are gone, or nobody knows how many. */
static struct span take_lost(struct span *note)
{
	static const char word[] = "lost ";
	size_t at = note->len;

	while (at > 0 && (at == note->len || note->data[at - 1] != '\n'))
		at--;
	if (note->len - at < sizeof word || memcmp(note->data + at, word, sizeof word - 1) != 0)
		return (struct span){0};
	struct span lost = {note->data + at + sizeof word - 1, note->len - at - sizeof word};
	note->len = at;
	return lost;
}

static void put_restored(struct json_object *data, struct span note)
{
	struct json_object tokens;
	struct span lost = take_lost(&note);

	if (lost.len > 0 && span_is(lost, "unknown"))
		json_member_string(data, "lost", lost);
	else if (lost.len > 0)
		json_member_raw(data, "lost", lost);
	if (note.len == 0 || !json_put_key(data, "tokens"))
		return;
	json_begin(&tokens, data->buf);
	while (note.len > 0) {
		const char *end = memchr(note.data, '\n', note.len);
		size_t len = end ? (size_t)(end - note.data) : note.len;
		put_restored_line(&tokens, (struct span){note.data, len});
		note = end ? (struct span){end + 1, note.len - len - 1} : (struct span){0};
	}
	json_end(&tokens);
}

static void put_data(struct buf *out, const struct record *record)
{
	struct json_object data;

	json_begin(&data, out);
	if (record->task != 0)
		put_change(&data, record);
	bool of_budget = record->kind >= EVENT_BUDGET_NEAR && record->kind <= EVENT_BUDGET_UPDATED;
	if (of_budget)
		budget_put_note(&data, record->note, record->subject);
	else if (record->subject.len > 0 && !event_kind_is_of_session(record->kind))
		json_member_string(&data, subject_name(record->kind), record->subject);
	put_facts(&data, record);
	put_stage(&data, record);
	put_limit(&data, record);
	/* the name that worker connectors know it by */
	if (record->kind == EVENT_TASK_EXPIRED && record_has(record, FACT_NAMED))
		json_member_cstr(&data, "event", "worker.claim.expired");
	if (record->kind == EVENT_SERVER_RESTORED)
		put_restored(&data, record->note);
	else if (!of_budget)
		json_members_raw(&data, record->note);
	json_end(&data);
}

/* One event as JSON, for lists and streams. */
static int put_event(struct buf *out, const struct record *record)
{
	struct json_object event;

	json_begin(&event, out);
	json_member_int(&event, "seq", record->seq);
	json_member_int(&event, "time", record->wall_ms);
	json_member_cstr(&event, "type", event_kind_name(record->kind));
	if (record->task != 0 || record->kind == EVENT_SCHEDULE_FIRED)
		put_task_id(&event, record);
	json_member_string_if_any(&event, "worker", record->worker);
	if (event_kind_is_of_session(record->kind))
		json_member_string(&event, "session", record->subject);
	json_member_string_if_any(&event, "actor", record->actor);
	if (json_put_key(&event, "data"))
		put_data(out, record);
	return json_end(&event);
}

/* ---- lists ------------------------------------------------------------------------------------------ */

/* Both lists are made in slices; what happens between two of them may be seen or not. */
struct event_list {
	struct buf *out;
	const struct api_call *call;
	int64_t task; /* only those of this one; 0: all */
	int64_t next; /* the last one looked at */
	uint32_t put, limit;
	uint32_t looked_through; /* in all slices */
	uint32_t looked_at;
	size_t slice_end; /* of `out`: what goes beyond it ends the slice */
	size_t bytes;     /* written by all slices */
	bool from_cursor; /* it was given: nothing behind it may be missing */
	bool audit;       /* only those that compaction spares */
	struct trail *trail;
};

enum {
	ENOUGH = 1, /* for this slice */
};

static int list_event(void *context, const struct record *record)
{
	struct event_list *list = context;

	list->looked_at++;
	bool is_wanted = !list->audit || event_kind_is_of_audit(record->kind);
	if (is_wanted &&
		(list->task == 0 ? api_sees_event(list->call, record) : list->task == record->task)) {
		size_t before = list->out->len;
		if (list->put > 0)
			buf_put_byte(list->out, ',');
		int r = put_event(list->out, record);
		if (r < 0) {
			buf_cut(list->out, before);
			return r;
		}
		list->put++;
		list->bytes += list->out->len - before;
	}
	list->next = record->seq;
	return list->put == list->limit || list->out->len > list->slice_end ? ENOUGH : 0;
}

/* A slice: events that follow the last one looked at. *ret_end: there are no more of them. */
static int list_slice(struct api_call *call, struct event_list *list, uint32_t count, bool *ret_end)
{
	list->looked_at = 0;
	list->slice_end = call->body->len + SLICE_BYTES;
	int r = store_page_events(call->store, list->next, count, list_event, list);
	*ret_end = r == 0 && list->looked_at < count;
	return r == ENOUGH ? 0 : r;
}

/* The same for the audit, which goes further back than the log. */
static int audit_slice(struct api_call *call, struct event_list *list, uint32_t count, bool *ret_end)
{
	int64_t base = store_event_base(call->store);

	if (list->next >= base)
		return list_slice(call, list, count, ret_end);
	list->looked_at = 0;
	list->slice_end = call->body->len + SLICE_BYTES;
	int r = store_page_audit(call->store, list->next, count, list_event, list);
	if (r == 0 && list->looked_at < count)
		list->next = base; /* the log goes on behind them */
	return r == ENOUGH ? 0 : r;
}

static bool is_full(const struct event_list *list)
{
	return list->put == list->limit || list->bytes > LIST_BYTES_MAX;
}

/* Returns false. */
static bool refuse_cursor(struct api_call *call, int64_t oldest)
{
	cleanup(buf_done) struct buf members = {.max = 64};

	buf_printf(&members, "\"oldest\":\"%lld\"", (long long)oldest);
	call_refuse_with(call, REFUSED_CURSOR_GONE,
		"Events between that cursor and what is kept are gone, or the store was restored: read the tasks anew and start without a cursor.",
		&members);
	return false;
}

/* Events that follow the cursor are lost: never a silent skip. */
static void refuse_lost(struct api_call *call, int64_t after)
{
	cleanup(buf_done) struct buf members = {.max = 64};

	buf_printf(&members, "\"next\":\"%lld\"", (long long)store_next_cursor(call->store, after));
	call_refuse_with(call, REFUSED_CURSOR_GONE,
		"Events behind that cursor are damaged in the store: read the tasks anew and go on with the cursor in next.",
		&members);
}

static bool sees_events_of(const struct api_call *call, int64_t task)
{
	const struct principal *who = &call->who;
	uint32_t queue;

	if (who->task_seq != 0)
		return task == who->task_seq;
	if (who->queues.count == 0)
		return true;
	if (task == 0 || store_task_queue(call->store, task, &queue) < 0)
		return false; /* of no queue, or of none that is known any more */
	return principal_serves(who, name_of(call, queue));
}

bool api_sees_event(const struct api_call *call, const struct record *record)
{
	return sees_events_of(call, record->task);
}

static bool is_now(const struct query_value *after)
{
	return span_equal(after->value, SPAN("now"));
}

/* Where to begin, or refused: not before `oldest`. */
static bool read_after(
	struct api_call *call, const struct query_value *after, int64_t oldest, int64_t *ret_after)
{
	if (is_now(after)) {
		*ret_after = store_last_event(call->store);
		return true;
	}
	if (!query_int(call, after, 0, INT64_MAX, oldest, ret_after, NO_CURSOR))
		return false;
	return (*ret_after >= oldest && *ret_after <= store_last_event(call->store)) ||
		refuse_cursor(call, oldest);
}

/* A browser that comes back asks for the same address as before, and says in a header how far it got: the header
 * counts. What stands in the address must be a cursor all the same. */
static bool take_header(struct api_call *call, struct query_value *after)
{
	int64_t cursor;

	if (!is_now(after) && !query_int(call, after, 0, INT64_MAX, 0, &cursor, NO_CURSOR))
		return false;
	if (call->request->last_event_id.len > 0)
		after->value = call->request->last_event_id;
	return true;
}

/* Where to begin and how many, or refused. */
static bool read_cursor(struct api_call *call, struct query_value *after, struct query_value *limit,
	int64_t oldest, int64_t *ret_after, uint32_t *ret_limit)
{
	int64_t count;

	if (!query_int(call, limit, 1, EVENTS_MAX, EVENTS_DEFAULT, &count, "must be from 1 to 1000"))
		return false;
	*ret_limit = (uint32_t)count;
	return take_header(call, after) && read_after(call, after, oldest, ret_after);
}

/* A reply that is full ends the page early, and so does compaction behind a slow reader: the next request goes on from
 * there, or is refused because its cursor is gone. */
static void finish_list(struct api_call *call, struct event_list *list, int fault)
{
	if ((fault == -E2BIG || fault == -ESTALE || fault == -EBADMSG) && list->put > 0)
		fault = 0;
	if (fault == -EBADMSG) {
		refuse_lost(call, list->next);
		return;
	}
	if (fault == 0)
		fault = buf_printf(call->body, "],\"next\":\"%lld\"}", (long long)list->next);
	call_reply(call, 200, fault);
}

/* ---- streams ---------------------------------------------------------------------------------------- */

int api_put_stream_start(struct buf *out)
{
	return buf_put_span(out, SPAN("retry: 2000\n\n"));
}

int api_put_stream_comment(struct buf *out)
{
	return buf_put_span(out, SPAN(":\n\n"));
}

/* A line end would end the field. In JSON it can only stand between tokens, where a blank does as well. */
static void make_one_line(char *text, size_t len)
{
	for (size_t i = 0; i < len; i++) {
		if (text[i] == '\n' || text[i] == '\r')
			text[i] = ' ';
	}
}

int api_put_stream_event(struct buf *out, const struct record *record)
{
	size_t before = out->len;

	buf_printf(out, "id: %lld\nevent: %s\ndata: ", (long long)record->seq, event_kind_name(record->kind));
	size_t data = out->len;
	if (put_event(out, record) == 0)
		make_one_line(out->data + data, out->len - data);
	int r = buf_put_span(out, SPAN("\n\n"));
	if (r < 0)
		buf_cut(out, before);
	return r;
}

static int ignore_event(void *context, const struct record *record)
{
	(void)context;
	(void)record;
	return 0;
}

static void stream_read(struct api_call *call)
{
	struct query_value after = {.name = "after"};

	if (!query_read(call, &after, 1) || !take_header(call, &after) ||
		!read_after(call, &after, store_event_base(call->store), &call->stream_after))
		return;
	int r = store_page_events(call->store, call->stream_after, 1, ignore_event, NULL);
	if (r == -EBADMSG)
		refuse_lost(call, call->stream_after);
	if (r == -EBADMSG || call_has_failed(call, r))
		return;
	call->reply = (struct http_reply){
		.status = 200,
		.content_type = SPAN("text/event-stream"),
		.stream = true,
		.head = call->request->method == HTTP_METHOD_HEAD,
	};
	call->step = call->reply.head ? API_REPLY : API_STREAM;
}

/* ---- the routes ------------------------------------------------------------------------------------- */

/* The oldest cursor of such a list. Of a task what is kept with it says later whether something is missing. False: refused. */
static bool find_oldest(
	struct api_call *call, const struct event_list *list, bool of_task, int64_t *ret_oldest)
{
	int r = 0;

	*ret_oldest = of_task ? 0 : store_event_base(call->store);
	if (list->audit)
		r = store_audit_base(call->store, ret_oldest);
	if (r < 0)
		call_refuse_fault(call, r);
	return r == 0;
}

static bool read_only(struct api_call *call, struct event_list *list, const struct query_value *only)
{
	list->audit = span_equal(only->value, SPAN("audit"));
	return !only->value.data || list->audit || call_refuse_field(call, "only", "must be audit");
}

/* NULL: it was refused. */
static struct event_list *list_new(struct api_call *call, bool of_task)
{
	struct query_value values[] = {{.name = "after"}, {.name = "limit"}, {.name = "only"}};
	struct event_list *list = call_detail(call, sizeof *list);
	int64_t oldest;

	if (!list)
		return NULL;
	list->out = call->body;
	list->call = call;
	if (!query_read(call, values, of_task ? 2 : 3) || !read_only(call, list, &values[2]) ||
		!find_oldest(call, list, of_task, &oldest) ||
		!read_cursor(call, &values[0], &values[1], oldest, &list->next, &list->limit))
		return NULL;
	list->from_cursor = values[0].value.data != NULL;
	return list;
}

static int begin_list(struct api_call *call)
{
	call_reply_begin(call);
	return buf_printf(call->body, "{\"events\":[");
}

void event_list_read(struct api_call *call)
{
	struct event_list *list = call->detail;
	bool end = false;
	int r = 0;

	if (!list) {
		if (http_accepts(call->request->accept, "text/event-stream")) {
			stream_read(call);
			return;
		}
		list = list_new(call, false);
		if (!list)
			return;
		r = begin_list(call);
	}
	uint32_t left = list->limit - list->put, count = left < SLICE_EVENTS ? left : SLICE_EVENTS;
	if (r == 0)
		r = list->audit ? audit_slice(call, list, SLICE_EVENTS, &end)
				: list_slice(call, list, count, &end);
	list->looked_through += list->looked_at;
	end |= list->looked_through >= LOOKED_THROUGH_MAX; /* some may not be for these eyes */
	if (r == 0 && !end && !is_full(list))
		call_again(call);
	else
		finish_list(call, list, r);
}

/* ---- the events of one task --------------------------------------------------------------------------- */

/*
 * Each event of a task names the one before it, so its history is followed from its end back to the cursor. The oldest
 * event found is written first; while following the trail only the last ones found are remembered, as many as the page
 * has room for. A history that is very long is not followed to its beginning for every page of it: then the events of
 * all tasks are looked through from the cursor on, a bounded number of them, and the reply may have few or none.
 */
struct trail {
	int64_t at;     /* the event to look at next; 0: the beginning was reached */
	int64_t cursor; /* 0: none was given */
	int64_t after;  /* the cursor, or where the log begins, if that is later */
	int64_t last;   /* event of all, when the trail was begun */
	int64_t kept;   /* the last one told of those that were kept with the task; 0: none was */
	int64_t *seqs;  /* the last `limit` ones that were found, round and round */
	uint32_t found, told;
	bool is_followed;
};

static int step_back(void *context, const struct record *record)
{
	*(int64_t *)context = record->previous;
	return 0;
}

/* A slice of following. */
static int follow_trail(struct api_call *call, struct event_list *list)
{
	struct trail *trail = list->trail;

	for (uint32_t i = 0; i < SLICE_EVENTS && trail->found < TRAIL_MAX; i++) {
		trail->is_followed = trail->at <= trail->after;
		if (trail->is_followed)
			return 0;
		int64_t seq = trail->at;
		trail->seqs[trail->found++ % list->limit] = seq;
		trail->at = 0;
		int r = store_page_events(call->store, seq - 1, 1, step_back, &trail->at);
		if (r < 0)
			return r;
	}
	return 0;
}

/* The log begins behind the cursor, perhaps since a moment ago: what is missing was kept with the task, or is gone. */
static void shorten_trail(struct api_call *call, struct event_list *list)
{
	int64_t base = store_event_base(call->store);

	if (list->trail->after < base)
		list->next = list->trail->after = base;
}

struct kept_list {
	struct event_list *list;
	int64_t last; /* the last one looked at */
};

static int list_kept(void *context, const struct record *record)
{
	struct kept_list *kept = context;
	const struct trail *trail = kept->list->trail;

	if (kept->last == 0 && kept->list->from_cursor && record->previous > trail->cursor)
		return -ESTALE;
	kept->last = record->seq;
	return record->seq > trail->cursor ? list_event(kept->list, record) : 0;
}

/* The events between the cursor and the log that were kept with the task. -ESTALE: some are gone, and a cursor was given. */
static int tell_kept(struct api_call *call, struct event_list *list)
{
	struct kept_list kept = {.list = list};
	const struct trail *trail = list->trail;

	if (trail->at <= trail->cursor) /* nothing of the task lies between them */
		return 0;
	int64_t next = list->next;
	list->slice_end = SIZE_MAX;
	int r = store_each_kept(call->store, list->task, list_kept, &kept);
	if (r < 0)
		return r;
	if (r == 0)
		list->next = next;
	list->trail->kept = kept.last;
	bool is_whole = r == ENOUGH || kept.last == trail->at;
	return is_whole || !list->from_cursor ? 0 : -ESTALE;
}

/* A slice of telling: what was found, the oldest first. */
static int tell_trail(struct api_call *call, struct event_list *list, bool *ret_end)
{
	struct trail *trail = list->trail;
	uint32_t count = trail->found < list->limit ? trail->found : list->limit;
	int r = 0;

	list->slice_end = call->body->len + SLICE_BYTES;
	for (uint32_t i = 0; r == 0 && i < SLICE_EVENTS && trail->told < count; i++) {
		int64_t seq = trail->seqs[(trail->found - 1 - trail->told) % list->limit];
		trail->told++;
		if (seq <= trail->kept) /* taken out of the log since it was found */
			continue;
		list->next = seq - 1;
		r = store_page_events(call->store, seq - 1, 1, list_event, list);
		if (r >= 0 && list->next != seq)
			r = -ESTALE;
	}
	*ret_end = trail->told == count;
	if (*ret_end && trail->found <= list->limit)
		list->next = trail->last; /* that was all */
	return r == ENOUGH ? 0 : r;
}

/* A slice of looking through the events of all. */
static int look_through(struct api_call *call, struct event_list *list, bool *ret_end)
{
	int r = list_slice(call, list, SLICE_EVENTS, ret_end);

	list->looked_through += list->looked_at;
	*ret_end |= list->looked_through >= LOOKED_THROUGH_MAX;
	return r;
}

/* NULL: it was refused. */
static struct event_list *trail_new(struct api_call *call)
{
	struct event_list *list = list_new(call, true);
	struct trail *trail = arena_alloc(call->arena, sizeof *trail);
	struct task_document document;

	if (!list)
		return NULL;
	list->trail = trail;
	int r = trail ? store_find_task(call->store, call->params[0], &list->task) : -ENOMEM;
	if (r == 0 && !sees_events_of(call, list->task))
		r = -ENOENT;
	if (r == 0)
		r = store_read_task(call->store, list->task, call->now, call->arena, &document);
	if (r == 0) {
		trail->seqs = arena_alloc(call->arena, list->limit * sizeof *trail->seqs);
		r = trail->seqs ? 0 : -ENOMEM;
	}
	if (r < 0) {
		call_refuse_fault(call, r);
		return NULL;
	}
	trail->at = document.task.version;
	trail->cursor = trail->after = list->next;
	trail->last = store_last_event(call->store);
	return list;
}

static int trail_slice(struct api_call *call, struct event_list *list, bool *ret_end)
{
	struct trail *trail = list->trail;
	bool was_followed = trail->is_followed || trail->found == TRAIL_MAX;

	if (was_followed)
		return trail->is_followed ? tell_trail(call, list, ret_end)
					  : look_through(call, list, ret_end);
	shorten_trail(call, list);
	int r = follow_trail(call, list);
	if (r == 0 && trail->is_followed) {
		r = begin_list(call);
		return r == 0 ? tell_kept(call, list) : r;
	}
	if (r == 0 && trail->found == TRAIL_MAX)
		r = list->from_cursor && trail->cursor < trail->after ? -ESTALE : begin_list(call);
	return r;
}

void task_events_read(struct api_call *call)
{
	struct event_list *list = call->detail ? call->detail : trail_new(call);
	bool end = false;

	if (!list)
		return;
	int r = trail_slice(call, list, &end);
	if (r == -ESTALE && list->put == 0)
		refuse_cursor(call, store_event_base(call->store));
	else if (r == 0 && !end && !is_full(list))
		call_again(call);
	else
		finish_list(call, list, r);
}
