/*
 * A dialogue with the API: say a request, look at the commands or at the reply; give results, look at the reply.
 * What the server lends is a small world of one task, two workers and three events.
 */
#pragma once

// clang-format off
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <cmocka.h>
// clang-format on
#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "api/api.h"
#include "base/take.h"
#include "base/base36.h"
#include "api_store.h"
#include "wire/json/json.h"

#define EVERYTHING                                                                  \
	(SCOPE_BIT(SCOPE_READ) | SCOPE_BIT(SCOPE_PRODUCE) | SCOPE_BIT(SCOPE_WORK) | \
		SCOPE_BIT(SCOPE_OPERATE) | SCOPE_BIT(SCOPE_EMIT))

struct dialogue {
	struct arena arena;
	struct buf body;
	struct rules rules;
	struct api_services host;
	struct http_request request;
	struct api_call call;
	struct task task; /* the one task of the store */
	struct span task_body, task_error, task_result;
	struct span last_worker;        /* that held it */
	uint32_t task_count;            /* how many copies of it the lists have */
	int64_t ended;                  /* one of them that is final by now though its number is even */
	struct log_streams log_streams; /* of the pieces of its log that have as many bytes */
	uint32_t slices;                /* in which the last read was done */
	int64_t base, last;             /* of the events */
	int64_t every; /* every so manyth event is one of task 1, from the first on; 0: each of its own */
	int64_t audit_base;
	uint32_t reads_left; /* until the one that fails; 0: none does */
	bool keeps;          /* some of the events of task 1 that are no longer in the log */
	bool degraded, draining;
	struct result results[4];
};

/* ---- a store that has just this to read, in place of the real one ---- */

static struct dialogue *dialogue_of(const void *store)
{
	return (struct dialogue *)(uintptr_t)store;
}

/* With STINT_SHORT_READS every request is tried again and again before it is made: the first read of the store fails, then the second, and
 * so on. Each time the reply is 503, whatever was read before. */
#define SHORT(context)                                                 \
	do {                                                           \
		struct dialogue *asked = dialogue_of(context);         \
		if (asked->reads_left > 0 && --asked->reads_left == 0) \
			return -ENOMEM;                                \
	} while (0)

int store_find_task(struct store *context, struct span id, int64_t *ret_seq)
{
	SHORT(context);
	struct dialogue *d = dialogue_of(context);

	if (!span_equal(id, SPAN("t-1")))
		return -ENOENT;
	*ret_seq = d->task.seq;
	return 0;
}

/* Odd ones are final; priority is the number modulo 3. */
__attribute__((unused)) static struct task_outline outline_at(const struct dialogue *d, int64_t seq)
{
	return (struct task_outline){
		.seq = seq,
		.created_ms = d->task.created_ms,
		.queue = d->task.queue,
		.owner = d->task.owner,
		.priority = (int32_t)(seq % 3),
		.state = seq % 2 || seq == d->ended ? TASK_DONE : TASK_READY,
	};
}

int store_read_task(struct store *context, int64_t seq, struct moment now, struct arena *arena,
	struct task_document *ret_document)
{
	SHORT(context);
	(void)now;
	struct dialogue *d = dialogue_of(context);

	*ret_document = (struct task_document){
		.task = d->task,
		.id = SPAN("t-1"),
		.holder = d->task.claim.holder ? SPAN("w1") : (struct span){0},
		.body = d->task_body,
		.error = d->task_error,
		.result = d->task_result,
		.lease_ms = 1234,
	};
	ret_document->task.seq = seq;
	if (d->task_count > 0) {
		char id[2 + BASE36_MAX] = "t-";
		size_t len = base36_encode((uint64_t)seq, id + 2) + 2;
		ret_document->task.state = outline_at(d, seq).state;
		ret_document->task.priority = outline_at(d, seq).priority;
		return arena_copy(arena, (struct span){id, len}, &ret_document->id);
	}
	return 0;
}

/* "begin" at 0, "end" at 10. */
int store_read_log(struct store *context, int64_t seq, uint32_t attempt, int64_t after, uint32_t limit,
	struct arena *arena, struct log_piece *ret_piece)
{
	SHORT(context);
	(void)context;
	(void)seq;
	(void)arena;
	assert_true(limit >= 16);
	if (attempt > 1)
		return -ENOENT;
	*ret_piece = (struct log_piece){.attempt = 1, .length = 13};
	if (after < 5) {
		ret_piece->offset = after;
		ret_piece->data = (struct span){&"begin"[after], (size_t)(5 - after)};
	} else {
		ret_piece->offset = after < 10 ? 10 : 13;
		ret_piece->dropped = ret_piece->offset - after;
		ret_piece->data = after < 10 ? SPAN("end") : (struct span){0};
	}
	if (ret_piece->data.len == log_streams_bytes(&dialogue_of(context)->log_streams))
		ret_piece->streams = dialogue_of(context)->log_streams;
	return 0;
}

int store_page_open(const struct store *context, uint32_t *at, uint32_t limit,
	int (*each)(void *, const struct task_outline *), void *each_context)
{
	struct dialogue *d = dialogue_of(context);
	int r = 0;

	for (; r == 0 && limit > 0 && *at < d->task_count; limit--) {
		struct task_outline outline = outline_at(d, ++*at);
		r = outline.state == TASK_READY ? each(each_context, &outline) : 0;
	}
	*at = *at < d->task_count ? *at : 0;
	return r;
}

int store_page_final(struct store *context, int64_t *before, uint32_t limit,
	int (*each)(void *, const struct task_outline *), void *each_context)
{
	SHORT(context);
	struct dialogue *d = dialogue_of(context);
	int r = 0;

	if (*before > d->task_count)
		*before = (int64_t)d->task_count + 1;
	for (; r == 0 && limit > 0 && *before > 1; limit--) {
		struct task_outline outline = outline_at(d, --*before);
		r = outline.state == TASK_DONE ? each(each_context, &outline) : 0;
	}
	*before = *before > 1 ? *before : 0;
	return r;
}

int store_page_events(struct store *context, int64_t after, uint32_t limit,
	int (*each)(void *, const struct record *), void *each_context)
{
	SHORT(context);
	struct dialogue *d = dialogue_of(context);
	int r = 0;

	if (after < d->base)
		return -ESTALE;
	for (int64_t seq = after + 1; r == 0 && seq <= d->last && seq <= after + limit; seq++) {
		struct record record = {
			.seq = seq,
			.wall_ms = 1000 + seq,
			.kind = seq == 2 ? EVENT_QUEUE_PAUSED : EVENT_TASK_CLAIMED,
			.task = seq == 2 ? 0 : seq,
			.actor = SPAN("alice"),
			.subject = seq == 2 ? SPAN("q") : (struct span){0},
			.note = seq == 1 ? SPAN("\"note\":\"half\"") : (struct span){0},
			.from = seq == 2 ? TASK_NOWHERE : TASK_READY,
		};
		record.columns.state = seq == 2 ? TASK_NOWHERE : TASK_CLAIMED;
		if (d->every > 0 && record.task != 0)
			record.task = seq % d->every == 1 ? 1 : 2;
		if (record.task == 1 && seq > d->every)
			record.previous = seq - d->every;
		record_fact(&record, FACT_GRANTED, 60000);
		r = each(each_context, &record);
	}
	return r;
}

struct reason store_why(struct store *context, const struct task *task, struct moment now)
{
	(void)now;
	(void)context;
	(void)task;
	return (struct reason){.why = WHY_NO_WORKER, .until_ms = 77, .code = CODE_STALLED};
}

/* Two workers, one to a page. */
int store_page_workers(const struct store *context, uint32_t *at, uint32_t limit,
	int (*each)(void *, struct span, const struct worker *), void *each_context)
{
	struct worker beats = {.state = WORKER_ACTIVE, .slot = 3, .max_concurrent = 2, .any_executor = true};
	struct worker plain = {.state = WORKER_UNKNOWN};

	(void)context;
	assert_true(limit > 0);
	*at = *at == 0;
	return *at == 1 ? each(each_context, SPAN("w1"), &beats) : each(each_context, SPAN("plain"), &plain);
}

bool store_offers(const struct store *context, int64_t seq, struct span worker, struct moment now)
{
	(void)context;
	(void)seq;
	(void)worker;
	(void)now;
	return true;
}

int store_read_worker(const struct store *context, struct span id, struct worker_document *ret_document)
{
	(void)context;
	if (!span_equal(id, SPAN("w1")) && !span_equal(id, SPAN("plain")))
		return -ENOENT;
	*ret_document = (struct worker_document){.id = id, .metadata = SPAN("{\"a\":1}"), .news_seq = 2};
	if (span_equal(id, SPAN("w1")))
		ret_document->worker = (struct worker){.state = WORKER_ACTIVE,
			.slot = 3,
			.held = 1,
			.registered_ms = 5,
			.last_beat_ms = 6,
			.process = {.host = 2,
				.boot_hi = 0x0123456789abcdef,
				.boot_lo = 0xfedcba9876543210,
				.pid = 7}};
	return 0;
}

/* slot-1 has crashed too often. */
int store_each_slot(
	const struct store *context, int (*each)(void *, const struct slot_document *), void *each_context)
{
	struct slot_document slot = {.name = SPAN("slot-1")};

	(void)context;
	slot_init(&slot.slot);
	slot.slot.state = SLOT_QUARANTINED;
	return each(each_context, &slot);
}

int store_read_slot(const struct store *context, struct span name, struct slot_document *ret_slot)
{
	(void)context;
	if (!span_equal(name, SPAN("slot-1")))
		return -ENOENT;
	*ret_slot = (struct slot_document){.name = name};
	slot_init(&ret_slot->slot);
	ret_slot->slot.state = SLOT_QUARANTINED;
	return 0;
}

struct span store_name(const struct store *context, uint32_t number)
{
	static const struct span names[] = {{0}, {"q", 1}, {"shell", 5}, {"slot-1", 6}};

	(void)context;
	assert_true(number < 4);
	return names[number];
}

struct stats_key stats_first_key(int64_t hour)
{
	(void)hour;
	return (struct stats_key){.len = 0};
}

int store_each_queue(const struct store *context,
	int (*each)(void *, struct span, enum queue_state, uint32_t), void *each_context)
{
	(void)context;
	int r = each(each_context, SPAN("q"), QUEUE_OPEN, 7);
	return r < 0 ? r : each(each_context, SPAN("later"), QUEUE_PAUSED, 0);
}

int store_read_queue(struct store *context, struct span name, struct queue_document *ret_queue)
{
	(void)context;
	*ret_queue = (struct queue_document){
		.state = span_equal(name, SPAN("later")) ? QUEUE_PAUSED : QUEUE_OPEN,
		.count = {[TASK_READY] = 7, [TASK_RUNNING] = 2},
		.workers = 3,
	};
	return 0;
}

bool store_next_cap(const struct store *context, uint32_t queue, uint32_t *at, struct key_cap *ret_cap)
{
	(void)context;
	(void)queue;
	(void)at;
	(void)ret_cap;
	return false;
}

int store_read_last(struct store *context, struct arena *arena, struct task_document *document)
{
	SHORT(context);
	(void)arena;
	document->words = SPAN("half");
	document->last.worker = dialogue_of(context)->last_worker;
	return 0;
}

int store_page_rows(struct store *context, bool oldest_first, int64_t *at, uint32_t limit,
	int (*each)(void *, const struct task_outline *), void *each_context)
{
	SHORT(context);
	struct dialogue *d = dialogue_of(context);
	int64_t count = d->task_count > 0 ? d->task_count : 1;
	int r = 0;

	if (!oldest_first && *at > count + 1)
		*at = count + 1;
	for (; r == 0 && limit > 0 && (oldest_first ? *at < count : *at > 1); limit--) {
		*at += oldest_first ? 1 : -1;
		struct task_outline outline = outline_at(d, *at);
		if (d->task_count == 0)
			outline.state = d->task.state;
		r = each(each_context, &outline);
	}
	if (r == 0 && limit > 0)
		*at = oldest_first ? INT64_MAX : 0;
	return r;
}

/* dev-3 works for two queues, one of them twice. */
int store_assignment(struct store *context, struct span slot, struct arena *arena, struct span *ret_queues)
{
	SHORT(context);
	(void)context;
	return span_equal(slot, SPAN("dev-3")) ? arena_copy(arena, SPAN("\x1fq\x1flater\x1fq"), ret_queues)
					       : -ENOENT;
}

int store_page_assignments(struct store *context, int64_t *after, uint32_t limit,
	int (*each)(void *, struct span, struct span), void *each_context)
{
	SHORT(context);
	(void)context;
	(void)limit;
	int r = *after == 0 ? each(each_context, SPAN("dev-3"), SPAN("\x1fq\x1flater\x1fq"))
			    : each(each_context, SPAN("dev-4"), SPAN("\x1fq"));
	*after = *after == 0 ? 1 : 0;
	return r;
}

__attribute__((unused)) static const char *default_queues(void *context)
{
	return ((struct dialogue *)context)->degraded ? "" : " q ,,r";
}

int64_t store_last_event(const struct store *context)
{
	return ((struct dialogue *)context)->last;
}

/* The last four events of task 1 that are no longer in the log. */
int store_each_kept(
	struct store *context, int64_t task, int (*each)(void *, const struct record *), void *each_context)
{
	SHORT(context);
	struct dialogue *d = dialogue_of(context);
	int r = 0;

	for (int64_t at = 3; r == 0 && task == 1 && d->keeps && at >= 0; at--) {
		int64_t last = d->base - (d->base - 1) % d->every;
		struct record record = {.seq = last - at * d->every,
			.kind = EVENT_TASK_CLAIMED,
			.task = 1,
			.previous = last - (at + 1) * d->every};
		r = record.seq > 0 ? each(each_context, &record) : 0;
	}
	return r;
}

int store_audit_base(struct store *context, int64_t *ret_base)
{
	SHORT(context);
	*ret_base = dialogue_of(context)->audit_base;
	return 0;
}

/* Every tenth event. */
int store_page_audit(struct store *context, int64_t after, uint32_t limit,
	int (*each)(void *, const struct record *), void *each_context)
{
	SHORT(context);
	struct dialogue *d = dialogue_of(context);
	int r = 0;

	for (int64_t seq = after - after % 10 + 10; r == 0 && limit > 0 && seq <= d->base;
		seq += 10, limit--) {
		struct record record = {.seq = seq, .kind = EVENT_TOKEN_CREATED};
		r = each(each_context, &record);
	}
	return r;
}

int64_t store_event_base(const struct store *context)
{
	return ((struct dialogue *)context)->base;
}

int64_t store_age_ms(const struct store *context)
{
	(void)context;
	return 0;
}

const struct store_room *store_room(const struct store *context)
{
	static const struct store_room room;

	(void)context;
	return &room;
}

bool store_is_degraded(const struct store *context)
{
	return ((struct dialogue *)context)->degraded;
}

__attribute__((unused)) static bool is_draining(void *context)
{
	return ((struct dialogue *)context)->draining;
}

/* ---- the dialogue ---- */

/* ---- what no test looks at ---- */

int store_read_body(struct store *context, int64_t seq, struct arena *arena, struct span *ret_body)
{
	SHORT(context);
	(void)context;
	(void)seq;
	(void)arena;
	*ret_body = (struct span){0};
	return 0;
}

int store_each_member(
	const struct store *context, uint32_t set, int (*each)(void *, struct span), void *each_context)
{
	SHORT(context);
	(void)context;
	(void)set;
	(void)each;
	(void)each_context;
	return 0;
}

int store_task_queue(struct store *context, int64_t seq, uint32_t *ret_queue)
{
	SHORT(context);
	(void)context;
	(void)seq;
	(void)ret_queue;
	return -ENOENT;
}

/* One session, of the one task. */
int store_find_session(struct store *context, struct span label, int64_t *ret_seq)
{
	SHORT(context);
	*ret_seq = dialogue_of(context)->task.seq;
	return span_equal(label, SPAN("s 1")) ? 0 : -ENOENT;
}

int store_read_session(
	struct store *context, int64_t seq, struct arena *arena, struct session_document *ret_session)
{
	SHORT(context);
	(void)context;
	(void)seq;
	(void)arena;
	*ret_session = (struct session_document){.label = SPAN("s 1"),
		.spec = SPAN("{\"channel\":\"internal\",\"model\":\"big\",\"prompt\":\"do it\"}")};
	return 0;
}

int store_page_sessions(const struct store *context, uint32_t *at, uint32_t limit,
	int (*each)(void *, int64_t, int64_t), void *each_context)
{
	(void)limit;
	*at = 0;
	return each(each_context, dialogue_of(context)->task.seq, 0);
}

const struct browser_login *store_find_login(const struct store *context, struct span id)
{
	(void)context;
	(void)id;
	return NULL;
}

int store_each_login(
	const struct store *context, int (*each)(void *, const struct browser_login *), void *each_context)
{
	(void)context;
	(void)each;
	(void)each_context;
	return 0;
}

#ifndef FIXTURE_WITHOUT_TOKENS
const struct token *store_find_token(const struct store *context, struct span id)
{
	(void)context;
	(void)id;
	return NULL;
}

int store_each_token(
	const struct store *context, int (*each)(void *, const struct token *), void *each_context)
{
	(void)context;
	(void)each;
	(void)each_context;
	return 0;
}
#endif

__attribute__((unused)) static int dialogue_begin(void **state)
{
	struct dialogue *d = calloc(1, sizeof *d);

	if (!d)
		return -1;
	arena_init(&d->arena, 64 << 20);
	buf_init(&d->body, 64 << 20);
	d->rules = rules_default();
	d->last = 3;
	d->task = (struct task){.seq = 1,
		.queue = 1,
		.state = TASK_READY,
		.created_ms = 5,
		.updated_ms = 6,
		.version = 3,
		.timeout_ms = 1800000,
		.max_attempts = 3};
	d->task_body = SPAN("\"title\":\"old\",\"metadata\":{\"a\":1,\"b\":2}");
	d->host = (struct api_services){
		.context = d,
		.default_queues = default_queues,
		.is_draining = is_draining,
	};
	d->request.content_type = SPAN("application/json");
	d->call.who = (struct principal){.name = SPAN("alice"), .scopes = EVERYTHING};
	*state = d;
	return 0;
}

__attribute__((unused)) static int dialogue_end(void **state)
{
	struct dialogue *d = *state;

	buf_done(&d->body);
	arena_done(&d->arena);
	free(d);
	return 0;
}

__attribute__((unused)) static void record_headers(
	struct json_object *headers, const struct http_reply *reply)
{
	const struct {
		const char *name;
		struct span value;
	} texts[] = {{"Content-Type", reply->content_type}, {"Location", reply->location},
		{"ETag", reply->etag}, {"Allow", reply->allow}, {"Link", reply->link},
		{"WWW-Authenticate", reply->authenticate}};

	for (size_t i = 0; i < sizeof texts / sizeof *texts; i++) {
		if (texts[i].value.len > 0)
			json_member_string(headers, texts[i].name, texts[i].value);
	}
	if (reply->retry_after_s > 0)
		json_member_int(headers, "Retry-After", reply->retry_after_s);
	if (reply->event_seq > 0)
		json_member_int(headers, "Stint-Seq", reply->event_seq);
}

/* Every reply as a line of JSON into the file that $STINT_REPLIES names, if it does: tests/e2e/test_openapi.py compares
 * them with the contract. */
__attribute__((unused)) static void record_reply(struct dialogue *d)
{
	const struct http_reply *reply = &d->call.reply;
	const char *path = getenv("STINT_REPLIES");
	struct json_object line, headers;
	cleanup(buf_done) struct buf text = {0}, url = {0}, heads = {0};

	if (!path || d->call.step != API_REPLY)
		return;
	buf_init(&text, 64 << 20);
	buf_init(&url, 64 << 10);
	buf_init(&heads, 64 << 10);
	assert_int_equal(buf_put_span(&url, d->request.path), 0);
	if (d->request.query.data) {
		assert_int_equal(buf_put_byte(&url, '?'), 0);
		assert_int_equal(buf_put_span(&url, d->request.query), 0);
	}
	json_begin(&headers, &heads);
	record_headers(&headers, reply);
	assert_int_equal(json_end(&headers), 0);
	json_begin(&line, &text);
	json_member_string(&line, "method", span_of(http_method_name(d->request.method)));
	json_member_string(&line, "url", buf_span(&url));
	json_member_int(&line, "status", reply->status);
	json_member_raw(&line, "headers", buf_span(&heads));
	json_member_string(&line, "body", reply->head ? (struct span){0} : reply->body);
	json_member_string(&line, "sent", d->request.body);
	assert_int_equal(json_end(&line), 0);
	FILE *file = fopen(path, "a");
	assert_non_null(file);
	fprintf(file, "%.*s\n", SPAN_ARGS(buf_span(&text)));
	fclose(file);
}

/* Method, path with its query, body. A read is left to be done. */
__attribute__((unused)) static enum api_step begin(
	struct dialogue *d, enum http_method method, const char *url, const char *body)
{
	const char *query = strchr(url, '?');
	struct principal who = d->call.who;

	d->request.method = method;
	d->request.path = query ? (struct span){url, (size_t)(query - url)} : span_of(url);
	d->request.query = query ? span_of(query + 1) : (struct span){0};
	d->request.body = span_of(body);
	buf_clear(&d->body);
	d->call = (struct api_call){
		.request = &d->request,
		.who = who,
		.arena = &d->arena,
		.body = &d->body,
		.rules = &d->rules,
		.now = {.wall_ms = 1000000, .lease_ms = 500},
		.store = (struct store *)d,
		.host = &d->host,
	};
	api_begin(&d->call);
	return d->call.step;
}

static void say_short(struct dialogue *d, enum http_method method, const char *url, const char *body)
{
	bool failed = getenv("STINT_SHORT_READS") != NULL;

	for (uint32_t number = 1; failed && number < 100; number++) {
		d->reads_left = number;
		begin(d, method, url, body);
		while (d->call.step == API_READ)
			api_read(&d->call);
		failed = d->reads_left == 0;
		d->reads_left = 0;
		if (failed && (d->call.step != API_REPLY || d->call.reply.status != 503))
			fail_msg("read %u of %s failed: step %d, status %d", number, url, d->call.step,
				d->call.reply.status);
	}
}

__attribute__((unused)) static enum api_step say(
	struct dialogue *d, enum http_method method, const char *url, const char *body)
{
	say_short(d, method, url, body);
	begin(d, method, url, body);
	for (d->slices = 0; d->call.step == API_READ; d->slices++)
		api_read(&d->call);
	record_reply(d);
	return d->call.step;
}

__attribute__((unused)) static enum api_step post(struct dialogue *d, const char *url, const char *body)
{
	return say(d, HTTP_METHOD_POST, url, body);
}

__attribute__((unused)) static int get(struct dialogue *d, const char *url)
{
	assert_int_equal(say(d, HTTP_METHOD_GET, url, NULL), API_REPLY);
	return d->call.reply.status;
}

/* The one command that the request became. */
__attribute__((unused)) static const struct command *becomes(struct dialogue *d, enum command_kind kind)
{
	if (d->call.step != API_TURN)
		fail_msg("answered at once: %d %.*s", d->call.reply.status, SPAN_ARGS(d->call.reply.body));
	assert_int_equal(d->call.command_count, 1);
	assert_int_equal(d->call.commands[0].kind, kind);
	assert_string_equal(d->call.commands[0].actor.data, "alice");
	return d->call.commands;
}

/* Every reply is JSON. */
__attribute__((unused)) static void reply_is(struct dialogue *d, int status)
{
	struct json_complaint complaint;
	struct span body = d->call.reply.body;

	assert_int_equal(d->call.step, API_REPLY);
	if (d->call.reply.status != status)
		fail_msg("%d instead of %d: %.*s", d->call.reply.status, status, SPAN_ARGS(body));
	yyjson_doc *doc = json_read(body, &complaint);
	if (!doc)
		fail_msg("%s: %.*s", complaint.reason, SPAN_ARGS(body));
	yyjson_doc_free(doc);
}

__attribute__((unused)) static bool reply_has(struct dialogue *d, const char *part)
{
	struct span body = d->call.reply.body;

	return memmem(body.data, body.len, part, strlen(part)) != NULL;
}

__attribute__((unused)) static void reply_says(struct dialogue *d, const char *part)
{
	if (!reply_has(d, part))
		fail_msg("no %s in %.*s", part, SPAN_ARGS(d->call.reply.body));
}

__attribute__((unused)) static void reply_hides(struct dialogue *d, const char *part)
{
	if (reply_has(d, part))
		fail_msg("%s is in %.*s", part, SPAN_ARGS(d->call.reply.body));
}

/* A complete refusal with that status and code. */
__attribute__((unused)) static void refused_with(struct dialogue *d, int status, const char *code)
{
	char member[96];

	reply_is(d, status);
	snprintf(member, sizeof member, "\"code\":\"%s\"", code);
	reply_says(d, member);
	assert_true(span_equal(d->call.reply.content_type, SPAN("application/problem+json")));
}

/* 422 that names the field. */
__attribute__((unused)) static void refuses_field(struct dialogue *d, const char *field)
{
	char member[96];

	refused_with(d, 422, "invalid");
	snprintf(member, sizeof member, "{\"field\":\"%s\",\"message\":", field);
	reply_says(d, member);
}

/* The turn gave these results. */
__attribute__((unused)) static void finish(struct dialogue *d)
{
	api_finish(&d->call, d->results);
	record_reply(d);
}

__attribute__((unused)) static void finish_refused(struct dialogue *d, enum refusal refusal)
{
	d->results[0] = (struct result){.refusal = refusal, .task = d->task, .id = SPAN("t-1")};
	finish(d);
}

__attribute__((unused)) static void finish_task(struct dialogue *d, enum task_state state)
{
	d->task.state = state;
	d->results[0] = (struct result){.task = d->task, .id = SPAN("t-1"), .event_seq = 9};
	finish(d);
}

__attribute__((unused)) static bool is(struct span text, const char *expected)
{
	return span_equal(text, span_of(expected));
}

#define DIALOGUE(test) cmocka_unit_test_setup_teardown(test, dialogue_begin, dialogue_end)
