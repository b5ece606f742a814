#include "notify/feed.h"

#include <errno.h>
#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/clock.h"
#include "base/log.h"
#include "base/take.h"

enum {
	EVENT_BYTES_MAX = 16 << 20, /* the server's own limit is half of that */
	HEAD_BYTES_MAX = 64 << 10,
	BODY_BYTES_MAX = 64 << 10, /* of a reply, and of what is taken out of the stream at once */
	CALL_MS = 10000,
	LOOK_UP_MS = 2000,
	LABELS_MAX = 20,
	SILENT_MS = 60 * 1000, /* it says something every 15 s */
	AGAIN_MS = 200,
	AGAIN_MS_MAX = 10000,
};

/* ---- calls ------------------------------------------------------------------------------------------------------ */

int feed_open(struct feed *feed, const struct server_place *place, struct senders *senders)
{
	const struct http_answer_limits limits = {
		.head_bytes_max = HEAD_BYTES_MAX, .body_bytes_max = BODY_BYTES_MAX};

	*feed = (struct feed){
		.place = place, .senders = senders, .client = http_client_new(&place->address, &limits)};
	const struct http_answer_limits of_tasks = {
		.head_bytes_max = HEAD_BYTES_MAX, .body_bytes_max = EVENT_BYTES_MAX};
	feed->tasks = http_client_new(&place->address, &of_tasks);
	sse_init(&feed->sse, EVENT_BYTES_MAX);
	return feed->client && feed->tasks ? 0 : -ENOMEM;
}

static void hang_up(struct feed *feed)
{
	http_client_hang_up(feed->client);
	feed->step = FEED_WAITING;
	sse_restart(&feed->sse);
}

void feed_close(struct feed *feed)
{
	http_client_free(feed->client);
	http_client_free(feed->tasks);
	sse_done(&feed->sse);
}

static int call(struct feed *feed, enum feed_step step, const char *path)
{
	const char *token = feed->place->token;
	struct http_call request = {
		.method = HTTP_METHOD_GET,
		.target = span_of(path),
		.token = token[0] ? span_of(token) : (struct span){0},
		.accept = step == FEED_STREAM ? SPAN("text/event-stream") : SPAN("application/json"),
		.may_repeat = true,
		.timeout_ms = CALL_MS,
	};

	sse_restart(&feed->sse);
	feed->heard_ms = clock_ms(CLOCK_MONOTONIC);
	feed->step = step;
	return http_client_begin(feed->client, &request);
}

static int call_stream(struct feed *feed)
{
	char path[64];

	snprintf(path, sizeof path, "/api/events?after=%" PRId64, senders_begin_after(feed->senders));
	return call(feed, FEED_STREAM, path);
}

void feed_rewind(struct feed *feed, int64_t now_ms)
{
	if (feed->step != FEED_STREAM)
		return; /* it is about to begin anyway */
	hang_up(feed);
	feed->due_ms = now_ms;
}

/* ---- answers ---------------------------------------------------------------------------------------------------- */

/* Try again later. That the server is away is logged once. */
static void wait_again(struct feed *feed, const char *why, int64_t now_ms)
{
	int64_t pause = AGAIN_MS * (1 + (int64_t)feed->failures * feed->failures);

	hang_up(feed);
	feed->failures += feed->failures < 100;
	feed->due_ms = now_ms + (pause < AGAIN_MS_MAX ? pause : AGAIN_MS_MAX);
	if (!feed->away && feed->failures > 1) {
		feed->away = true;
		log_warn("the server is away, trying again", log_cstr("url", feed->place->url),
			log_cstr("error", why));
	}
}

/* A number, also one in a text; -1: not a number. */
static int64_t number_of(yyjson_val *root, const char *key)
{
	yyjson_val *value = yyjson_obj_get(root, key);
	char *end;

	if (yyjson_is_int(value))
		return yyjson_get_sint(value);
	if (!yyjson_is_str(value))
		return -1;
	long long number = strtoll(yyjson_get_str(value), &end, 10);
	return *end || end == yyjson_get_str(value) ? -1 : number;
}

static int64_t body_number(const struct feed *feed, const char *key)
{
	struct span body = http_answer_body(http_client_transfer(feed->client)->answer);
	struct json_complaint complaint;
	cleanup(yyjson_doc_free_at) yyjson_doc *doc = json_read(body, &complaint);

	return doc ? number_of(yyjson_doc_get_root(doc), key) : -1;
}

static int take_last(struct feed *feed, int64_t last)
{
	int r = senders_meet(feed->senders, feed->generation, last, clock_ms(CLOCK_MONOTONIC));

	if (r < 0)
		return r;
	if (feed->away || !feed->met)
		log_info("connected", log_cstr("url", feed->place->url),
			log_int("generation", feed->generation));
	feed->away = false;
	feed->met = true;
	return call_stream(feed);
}

/* If that moved no sender the place lies behind the last event: the store is another one since we asked. */
static int take_gone(struct feed *feed, int64_t oldest)
{
	int64_t before = senders_begin_after(feed->senders);

	senders_skip(feed->senders, oldest);
	return senders_begin_after(feed->senders) == before ? 1 : call_stream(feed);
}

/* The answer of this step, and the next step. 1: it was none. */
static int take_answer(struct feed *feed, int status)
{
	int64_t number;

	switch (feed->step) {
	case FEED_VERSION:
		number = body_number(feed, "generation");
		if (status != 200 || number < 1)
			return 1;
		feed->generation = number;
		return call(feed, FEED_LAST, "/api/events?after=now&limit=1");
	case FEED_LAST:
		number = body_number(feed, "next");
		return status != 200 || number < 0 ? 1 : take_last(feed, number);
	case FEED_STREAM:
		number = body_number(feed, "oldest");
		return status != 410 || number < 0 ? 1 : take_gone(feed, number);
	case FEED_WAITING:
		break;
	}
	return 1;
}

static int finish(struct feed *feed, int64_t now_ms)
{
	const struct http_transfer *transfer = http_client_transfer(feed->client);
	int status = http_answer_status(transfer->answer), r = 1;
	char why[64];

	if (transfer->fault == 0 && (status == 401 || status == 403)) {
		log_error(
			"the server does not accept the token: it must be one that may read, as of kind viewer",
			log_cstr("url", feed->place->url), log_int("status", status));
		return -EACCES;
	}
	if (transfer->fault == 0)
		r = take_answer(feed, status);
	if (r != 1)
		return r;
	snprintf(why, sizeof why, "the answer was %d", status);
	wait_again(feed,
		transfer->fault < 0     ? http_client_complaint(feed->client)[0]
				    ? http_client_complaint(feed->client)
				    : strerror(-transfer->fault)
			    : status == 200 ? "it ended the stream"
					: why,
		now_ms);
	return 0;
}

/* ---- the stream ------------------------------------------------------------------------------------------------- */

static int put_about(struct buf *out, yyjson_val *task)
{
	yyjson_val *labels = yyjson_obj_get(task, "labels"), *label;
	struct span title = json_text(yyjson_obj_get(task, "title"));
	struct span names[LABELS_MAX];
	struct json_object about;
	size_t index, count;
	uint32_t found = 0;

	yyjson_arr_foreach(labels, index, count, label)
	{
		if (yyjson_is_str(label) && found < LABELS_MAX)
			names[found++] = json_text(label);
	}
	json_begin(&about, out);
	if (title.len > 0)
		json_member_string(&about, "title", title);
	json_member_string(&about, "queue", json_text(yyjson_obj_get(task, "queue")));
	if (found > 0 && json_put_key(&about, "labels"))
		json_put_strings(out, names, found);
	return json_end(&about);
}

/* Title, queue and labels of the task. -ENOENT: it is not there any more, or there was no answer. */
static int look_up(struct feed *feed, struct span id, struct buf *about)
{
	cleanup(buf_done) struct buf target = {0};
	cleanup(yyjson_doc_free_at) yyjson_doc *doc = NULL;
	struct http_answer *answer;
	enum http_reach reach;

	buf_init(&target, HEAD_BYTES_MAX);
	int r = http_put_path(&target, "/api/tasks/", id, "");
	struct http_call request = {
		.method = HTTP_METHOD_GET,
		.target = buf_span(&target),
		.token = feed->place->token[0] ? span_of(feed->place->token) : (struct span){0},
		.accept = SPAN("application/json"),
		.may_repeat = true,
		.timeout_ms = LOOK_UP_MS,
	};
	if (r == 0)
		r = http_client_call(feed->tasks, &request, &answer, &reach);
	if (r < 0 || http_answer_status(answer) != 200 || json_read_reply(http_answer_body(answer), &doc) < 0)
		return r == -ENOMEM ? r : -ENOENT;
	return put_about(about, yyjson_doc_get_root(doc));
}

/* The event with "about". NULL: as it was. */
static yyjson_doc *explained(struct feed *feed, struct span event, yyjson_val *root)
{
	cleanup(buf_done) struct buf text = {0}, about = {0};
	struct span task = json_text(yyjson_obj_get(root, "task"));
	yyjson_doc *doc = NULL;

	if (task.len == 0 || event.len < 2 || !senders_want(feed->senders, root))
		return NULL;
	buf_init(&text, 2 * EVENT_BYTES_MAX);
	buf_init(&about, EVENT_BYTES_MAX);
	if (look_up(feed, task, &about) < 0)
		return NULL;
	buf_put_span(&text, SPAN("{\"about\":"));
	buf_put_span(&text, buf_span(&about));
	buf_put_byte(&text, ',');
	buf_put(&text, event.data + 1, event.len - 1);
	return buf_fault(&text) == 0 && json_read_reply(buf_span(&text), &doc) == 0 ? doc : NULL;
}

static int take_event(void *context, const struct sse_event *event)
{
	struct feed *feed = context;
	cleanup(yyjson_doc_free_at) yyjson_doc *doc = NULL, *more = NULL;

	int r = json_read_reply(event->data, &doc);
	if (r < 0)
		return r;
	more = explained(feed, event->data, yyjson_doc_get_root(doc));
	feed->fault = senders_offer(feed->senders, feed->generation, yyjson_doc_get_root(more ? more : doc));
	return feed->fault;
}

static int take_stream(struct feed *feed, struct http_answer *answer, int64_t now_ms)
{
	struct span bytes = http_answer_body(answer);

	if (bytes.len == 0)
		return 0;
	feed->heard_ms = now_ms;
	feed->failures = 0;
	int r = sse_feed(&feed->sse, bytes, take_event, feed);
	http_answer_take(answer, bytes.len);
	if (r < 0 && feed->fault == 0)
		wait_again(feed, "its stream cannot be read", now_ms);
	return feed->fault;
}

/* ---- steps ------------------------------------------------------------------------------------------------------ */

/* What has come of the call that is under way. */
static int look(struct feed *feed, int64_t now_ms)
{
	const struct http_transfer *transfer = http_client_transfer(feed->client);

	http_client_step(feed->client);
	if (http_transfer_is_under_way(transfer))
		return 0;
	bool streams = feed->step == FEED_STREAM && http_answer_status(transfer->answer) == 200;
	int r = streams ? take_stream(feed, transfer->answer, now_ms) : 0;
	if (r < 0 || feed->step == FEED_WAITING || transfer->state == HTTP_TRANSFER_STREAM)
		return r;
	return finish(feed, now_ms);
}

struct pollfd feed_poll(const struct feed *feed)
{
	struct pollfd wanted = {.fd = -1};

	if (feed->step != FEED_WAITING)
		http_client_wait(feed->client, &wanted);
	return wanted;
}

/* A stream must not be silent for ever, and a call has its own time. */
static int64_t due_ms(const struct feed *feed)
{
	struct pollfd wanted;

	return feed->step == FEED_WAITING ? feed->due_ms
		: feed->step == FEED_STREAM && !http_transfer_is_under_way(http_client_transfer(feed->client))
		? feed->heard_ms + SILENT_MS
		: http_client_wait(feed->client, &wanted);
}

int feed_step(struct feed *feed, int64_t now_ms, int64_t *next_ms)
{
	int r = feed->step == FEED_WAITING ? 0 : look(feed, now_ms);

	if (r == 0 && feed->step == FEED_STREAM && feed->heard_ms + SILENT_MS <= now_ms)
		wait_again(feed, "it has fallen silent", now_ms);
	if (r == 0 && feed->step == FEED_WAITING && feed->due_ms <= now_ms)
		r = call(feed, FEED_VERSION, "/api/version");
	if (due_ms(feed) < *next_ms)
		*next_ms = due_ms(feed);
	return r;
}
