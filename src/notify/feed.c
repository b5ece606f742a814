#include "notify/feed.h"

#include <errno.h>
#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/clock.h"
#include "base/log.h"
#include "base/take.h"

CLEANUP_AT(yyjson_doc, yyjson_doc_free);

enum {
	EVENT_BYTES_MAX = 16 << 20, /* the server's own limit is half of that */
	BODY_BYTES_MAX = 64 << 10,
	CONNECT_MS = 5000,
	CALL_MS = 10000,
	SILENT_MS = 60 * 1000, /* it says something every 15 s */
	AGAIN_MS = 200,
	AGAIN_MS_MAX = 10000,
};

/* ---- bytes ------------------------------------------------------------------------------------------------------ */

static long status_of(const struct feed *feed)
{
	long status = 0;

	curl_easy_getinfo(feed->easy, CURLINFO_RESPONSE_CODE, &status);
	return status;
}

static int take_event(void *context, const struct sse_event *event)
{
	struct feed *feed = context;
	cleanup(yyjson_doc_free_at) yyjson_doc *doc = NULL;

	int r = json_read_reply(event->data, &doc);
	if (r < 0)
		return r;
	feed->fault = feed->events->event(feed->events->context, feed->generation, yyjson_doc_get_root(doc));
	return feed->fault;
}

static size_t take_bytes(char *data, size_t size, size_t count, void *context)
{
	struct feed *feed = context;
	struct span bytes = {data, size * count};
	bool streams = feed->step == FEED_STREAM && status_of(feed) == 200;

	feed->heard_ms = clock_ms(CLOCK_MONOTONIC);
	if (streams)
		feed->failures = 0;
	int r = streams ? sse_feed(&feed->sse, bytes, take_event, feed) : buf_put_span(&feed->body, bytes);
	return r < 0 ? 0 : bytes.len;
}

/* ---- calls ------------------------------------------------------------------------------------------------------ */

static struct curl_slist *headers_new(const struct server_place *place, const char *accept)
{
	char line[700];

	snprintf(line, sizeof line, "Authorization: Bearer %s", place->token);
	struct curl_slist *first = curl_slist_append(NULL, accept);
	if (!first || !place->token[0])
		return first;
	struct curl_slist *both = curl_slist_append(first, line);
	if (!both)
		curl_slist_free_all(first);
	return both;
}

int feed_open(
	struct feed *feed, const struct server_place *place, const struct feed_events *events, CURLM *multi)
{
	const struct http_address *to = &place->address;
	bool bare = strchr(to->host, ':') != NULL;

	*feed = (struct feed){.place = place, .events = events, .multi = multi, .easy = curl_easy_init()};
	buf_init(&feed->body, BODY_BYTES_MAX);
	sse_init(&feed->sse, EVENT_BYTES_MAX);
	if (to->local)
		snprintf(feed->base, sizeof feed->base, "http://localhost");
	else
		snprintf(feed->base, sizeof feed->base, bare ? "http://[%s]:%u%s" : "http://%s:%u%s",
			to->host, to->port, to->prefix);
	feed->headers = headers_new(place, "Accept: application/json");
	feed->stream_headers = headers_new(place, "Accept: text/event-stream");
	if (!feed->easy || !feed->headers || !feed->stream_headers ||
		(to->local && curl_easy_setopt(feed->easy, CURLOPT_UNIX_SOCKET_PATH, to->path) != CURLE_OK) ||
		curl_easy_setopt(feed->easy, CURLOPT_PROXY, "") != CURLE_OK ||
		curl_easy_setopt(feed->easy, CURLOPT_PROTOCOLS_STR, "http") != CURLE_OK)
		return -ENOMEM;
	curl_easy_setopt(feed->easy, CURLOPT_NOSIGNAL, 1L);
	curl_easy_setopt(feed->easy, CURLOPT_CONNECTTIMEOUT_MS, (long)CONNECT_MS);
	curl_easy_setopt(feed->easy, CURLOPT_WRITEFUNCTION, take_bytes);
	curl_easy_setopt(feed->easy, CURLOPT_WRITEDATA, feed);
	return 0;
}

static void hang_up(struct feed *feed)
{
	if (feed->step != FEED_WAITING)
		curl_multi_remove_handle(feed->multi, feed->easy);
	feed->step = FEED_WAITING;
	sse_restart(&feed->sse);
}

void feed_close(struct feed *feed)
{
	hang_up(feed);
	curl_easy_cleanup(feed->easy);
	curl_slist_free_all(feed->headers);
	curl_slist_free_all(feed->stream_headers);
	buf_done(&feed->body);
	sse_done(&feed->sse);
}

static int call(struct feed *feed, enum feed_step step, const char *path)
{
	bool stream = step == FEED_STREAM;
	char url[800];

	hang_up(feed);
	buf_clear(&feed->body);
	snprintf(url, sizeof url, "%s%s", feed->base, path);
	if (curl_easy_setopt(feed->easy, CURLOPT_URL, url) != CURLE_OK)
		return -ENOMEM;
	curl_easy_setopt(feed->easy, CURLOPT_HTTPHEADER, stream ? feed->stream_headers : feed->headers);
	curl_easy_setopt(feed->easy, CURLOPT_TIMEOUT_MS, stream ? 0L : (long)CALL_MS);
	if (curl_multi_add_handle(feed->multi, feed->easy) != CURLM_OK)
		return -ENOMEM;
	feed->heard_ms = clock_ms(CLOCK_MONOTONIC);
	feed->step = step;
	return 0;
}

static int call_stream(struct feed *feed)
{
	char path[64];

	snprintf(path, sizeof path, "/api/events?after=%" PRId64,
		feed->events->begins_after(feed->events->context));
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

/* Later. What is away is told once. */
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

/* Nothing is due while something is under way, but that a stream must not be silent for ever. */
static int64_t due_ms(const struct feed *feed)
{
	return feed->step == FEED_WAITING   ? feed->due_ms
		: feed->step == FEED_STREAM ? feed->heard_ms + SILENT_MS
					    : INT64_MAX;
}

int feed_step(struct feed *feed, int64_t now_ms, int64_t *ret_next_ms)
{
	if (feed->step == FEED_STREAM && due_ms(feed) <= now_ms)
		wait_again(feed, "it has fallen silent", now_ms);
	int r = due_ms(feed) <= now_ms ? call(feed, FEED_VERSION, "/api/version") : 0;
	if (due_ms(feed) < *ret_next_ms)
		*ret_next_ms = due_ms(feed);
	return r;
}

/* A number, or one in a text; -1: there is none. */
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
	struct json_complaint complaint;
	cleanup(yyjson_doc_free_at) yyjson_doc *doc = json_read(buf_span(&feed->body), &complaint);

	return doc ? number_of(yyjson_doc_get_root(doc), key) : -1;
}

static int take_last(struct feed *feed, int64_t last)
{
	int r = feed->events->met(feed->events->context, feed->generation, last);

	if (r < 0)
		return r;
	if (feed->away || !feed->met)
		log_info("connected", log_cstr("url", feed->place->url),
			log_int("generation", feed->generation));
	feed->away = false;
	feed->met = true;
	return call_stream(feed);
}

/* If that moved nobody the place lies behind the last event: the store is another one since we asked. */
static int take_gone(struct feed *feed, int64_t oldest)
{
	int64_t before = feed->events->begins_after(feed->events->context);

	feed->events->gone(feed->events->context, oldest);
	return feed->events->begins_after(feed->events->context) == before ? 1 : call_stream(feed);
}

/* The answer of this step, and the next step. 1: it was none. */
static int take_answer(struct feed *feed, long status)
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

int feed_finish(struct feed *feed, CURLcode code, int64_t now_ms)
{
	long status = status_of(feed);
	char why[64];

	if (feed->fault < 0)
		return feed->fault;
	if (code == CURLE_OK && (status == 401 || status == 403)) {
		log_error(
			"the server does not accept the token: it must be one that may read, as of kind viewer",
			log_cstr("url", feed->place->url), log_int("status", status));
		return -EACCES;
	}
	int r = code == CURLE_OK ? take_answer(feed, status) : 1;
	if (r != 1)
		return r;
	snprintf(why, sizeof why, "the answer was %ld", status);
	wait_again(feed,
		code != CURLE_OK        ? curl_easy_strerror(code)
			: status == 200 ? "it ended the stream"
					: why,
		now_ms);
	return 0;
}
