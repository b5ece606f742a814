/*
 * Events: the stream from a cursor, as pages or without end; and those of one task.
 *
 * A cursor is the number of the last event seen. One that lies before what is kept, or behind the last event
 * (the store was restored), is refused: skipping silently would be worse.
 */
#include "api/call.h"

#include <errno.h>
#include <stdio.h>
#include <strings.h>

#include "base/base36.h"
#include "base/take.h"

enum {
	EVENTS_DEFAULT = 100,
	EVENTS_MAX = 1000,
	SCANNED_MAX = 20000, /* events looked at for those of one task, before the caller must ask again */
	SCAN_STEP = 500,
};

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
	if (columns->attempt != 0)
		json_member_int(data, "attempt", columns->attempt);
	if (columns->fence != 0)
		json_member_decimal(data, "fence", columns->fence);
	if (columns->spent != 0)
		json_member_int(data, "spent", columns->spent);
	if (columns->crashes != 0)
		json_member_int(data, "crashes", columns->crashes);
	if (columns->code != CODE_NONE)
		json_member_cstr(data, "code", failure_code_name(columns->code));
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
	{FACT_TRIAL, "trial", true},
	{FACT_RETRY_AT, "retryAt", false},
	{FACT_GENERATION, "generation", false},
	{FACT_START, "start", false},
};

static void put_facts(struct json_object *data, const struct record *record)
{
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
	int64_t ended = record_has(record, FACT_REASON) ? record->fact[FACT_REASON] : 0;
	if (ended > WORKER_ENDED_NOT && ended <= WORKER_REPLACED)
		json_member_cstr(data, "ended", worker_end_name((enum worker_end)ended));
}

static bool is_about_slot(enum event_kind kind)
{
	return kind == EVENT_SLOT_QUARANTINED || kind == EVENT_SLOT_UNQUARANTINED;
}

static int put_data(struct buf *out, const struct record *record)
{
	struct json_object data;

	json_begin(&data, out);
	if (record->task != 0)
		put_change(&data, record);
	if (record->subject.len > 0)
		json_member_string(&data, is_about_slot(record->kind) ? "slot" : "queue", record->subject);
	put_facts(&data, record);
	json_members_raw(&data, record->note);
	return json_end(&data);
}

int api_put_event(struct buf *out, const struct record *record)
{
	struct json_object event;

	json_begin(&event, out);
	json_member_int(&event, "seq", record->seq);
	json_member_int(&event, "time", record->wall_ms);
	json_member_cstr(&event, "type", event_kind_name(record->kind));
	if (record->task != 0)
		put_task_id(&event, record);
	if (record->worker.len > 0)
		json_member_string(&event, "worker", record->worker);
	if (record->actor.len > 0)
		json_member_string(&event, "actor", record->actor);
	int r = event.fault < 0 ? event.fault : buf_printf(out, ",\"data\":");
	if (r == 0)
		r = put_data(out, record);
	return r < 0 ? r : buf_put_byte(out, '}');
}

/* ---- lists ------------------------------------------------------------------------------------------ */

struct event_listing {
	struct buf *out;
	const struct api_call *call;
	int64_t task; /* only those of this one; 0: all */
	int64_t next; /* the last one looked at */
	uint32_t put, limit;
};

static int list_event(void *context, const struct record *record)
{
	struct event_listing *listing = context;

	if (listing->put == listing->limit)
		return 0;
	if (listing->task == 0 ? api_sees_event(listing->call, record) : listing->task == record->task) {
		size_t before = listing->out->len;
		int r = listing->put > 0 ? buf_put_byte(listing->out, ',') : 0;
		if (r == 0)
			r = api_put_event(listing->out, record);
		if (r < 0) {
			listing->out->len = before;
			return r;
		}
		listing->put++;
	}
	listing->next = record->seq;
	return 0;
}

static bool sees_events_of(const struct api_call *call, int64_t task)
{
	const struct principal *who = &call->who;
	const struct api_reads *reads = call->reads;
	uint32_t queue;

	if (who->task_seq != 0)
		return task == who->task_seq;
	if (who->queues.count == 0)
		return true;
	if (task == 0 || reads->task_queue(reads->context, task, &queue) < 0)
		return false; /* of no queue, or of none that is known any more */
	return principal_serves(who, name_of(call, queue));
}

bool api_sees_event(const struct api_call *call, const struct record *record)
{
	return sees_events_of(call, record->task);
}

/* Where to begin, or refused. */
static bool read_after(struct api_call *call, const struct query_value *after, int64_t *ret_after)
{
	const struct api_reads *reads = call->reads;
	int64_t base = reads->event_base(reads->context);
	char members[64];

	if (query_int(after, 0, INT64_MAX, base, ret_after) < 0) {
		call_refuse_field(call, "after", "must be a cursor as it was given out");
		return false;
	}
	if (*ret_after >= base && *ret_after <= reads->last_event(reads->context))
		return true;
	int len = snprintf(members, sizeof members, "\"oldest\":\"%lld\"", (long long)base);
	call_refuse_with(call, REFUSED_CURSOR_GONE,
		"Events between that cursor and what is kept are gone, or the store was restored: read the tasks anew and start without a cursor.",
		(struct span){members, (size_t)len});
	return false;
}

/* Where to begin and how many, or refused. */
static bool read_cursor(struct api_call *call, struct query_value *after, struct query_value *limit,
	int64_t *ret_after, uint32_t *ret_limit)
{
	int64_t count;

	if (!after->value.data && call->request->last_event_id.len > 0)
		after->value = call->request->last_event_id;
	if (query_int(limit, 1, EVENTS_MAX, EVENTS_DEFAULT, &count) < 0) {
		call_refuse_field(call, "limit", "must be from 1 to 1000");
		return false;
	}
	*ret_limit = (uint32_t)count;
	return read_after(call, after, ret_after);
}

/* A reply that is full ends the page early: the next one goes on from there. */
static void finish_listing(struct api_call *call, struct event_listing *listing, int fault)
{
	if (fault == -E2BIG && listing->put > 0)
		fault = 0;
	if (fault == 0)
		fault = buf_printf(call->body, "],\"next\":\"%lld\"}", (long long)listing->next);
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
	int r = buf_printf(
		out, "id: %lld\nevent: %s\ndata: ", (long long)record->seq, event_kind_name(record->kind));
	size_t data = out->len;

	if (r == 0)
		r = api_put_event(out, record);
	if (r == 0) {
		make_one_line(out->data + data, out->len - data);
		r = buf_put_span(out, SPAN("\n\n"));
	}
	if (r < 0)
		out->len = before;
	return r;
}

static bool wants_stream(const struct http_request *request)
{
	static const char type[] = "text/event-stream";
	const struct span accept = request->accept;
	const size_t len = sizeof type - 1;

	for (size_t at = 0; at + len <= accept.len; at++) {
		if (strncasecmp(accept.data + at, type, len) == 0)
			return true;
	}
	return false;
}

/* A browser that comes back asks for the same address as before, and says in a header how far it got: the header
 * counts. */
static void stream_read(struct api_call *call)
{
	struct query_value after = {.name = "after"};

	if (!query_read(call, &after, 1))
		return;
	if (call->request->last_event_id.len > 0)
		after.value = call->request->last_event_id;
	if (!read_after(call, &after, &call->stream_after))
		return;
	call->reply = (struct http_reply){
		.status = 200,
		.content_type = SPAN("text/event-stream"),
		.stream = true,
		.head = call->request->method == HTTP_METHOD_HEAD,
	};
	call->step = call->reply.head ? API_REPLY : API_STREAM;
}

/* The events of the page. Where some are left out more are looked at, but no more than a bounded part at a time. */
static int scan(struct api_call *call, struct event_listing *listing, bool filters)
{
	const struct api_reads *reads = call->reads;
	int64_t last = reads->last_event(reads->context), before;
	uint32_t step = filters ? SCAN_STEP : listing->limit, seen = 0;
	int r = buf_printf(call->body, "{\"events\":[");

	do {
		before = listing->next;
		if (r == 0)
			r = reads->page_events(reads->context, before, step, list_event, listing);
		seen += step;
	} while (r == 0 && filters && seen < SCANNED_MAX && listing->put < listing->limit &&
		listing->next != before && listing->next < last);
	return r;
}

/* ---- the routes ------------------------------------------------------------------------------------- */

void event_list_read(struct api_call *call)
{
	struct query_value values[] = {{.name = "after"}, {.name = "limit"}};
	struct event_listing listing = {.out = call->body, .call = call};

	if (wants_stream(call->request)) {
		stream_read(call);
		return;
	}
	if (!query_read(call, values, 2) ||
		!read_cursor(call, &values[0], &values[1], &listing.next, &listing.limit))
		return;
	finish_listing(call, &listing, scan(call, &listing, call->who.queues.count > 0));
}

/* Pages through the stream for now; a bounded part of it at a time. */
void task_events_read(struct api_call *call)
{
	const struct api_reads *reads = call->reads;
	struct query_value values[] = {{.name = "after"}, {.name = "limit"}};
	struct event_listing listing = {.out = call->body, .call = call};

	if (!query_read(call, values, 2) ||
		!read_cursor(call, &values[0], &values[1], &listing.next, &listing.limit))
		return;
	int r = reads->find_task(reads->context, call->params[0], &listing.task);
	if (r == 0 && !sees_events_of(call, listing.task))
		r = -ENOENT;
	if (r < 0) {
		call_refuse_fault(call, r);
		return;
	}
	finish_listing(call, &listing, scan(call, &listing, true));
}
