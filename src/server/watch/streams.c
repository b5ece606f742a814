/*
 * Streams of events: their positions, and what each gets next.
 *
 * A stream is the exchange of its request, which never comes to an end; it stays the current one of its connection
 * and stands in `server->streams.open`. It has nothing but its position: there is no queue per reader. A page of events
 * behind that position is read from the store when, and only when, the reader's output has room for it. So a reader
 * that is stuck costs one full output and nothing else, and the connection's write timeout ends it. A reader whose
 * next events are already deleted is disconnected: when it comes back, 410 tells it so. A reader whose credential was
 * revoked or has expired is disconnected, too.
 *
 * Readers that keep up all stand at the same position: the last page read is kept for the next of them.
 */
#include <assert.h>
#include <errno.h>

#include "server/server.h"
#include "server/watch/server_log.h"

enum {
	RETRY_AFTER_S = 5,
	STREAMS_MAX = 2000,
	OUTPUT_BYTES_MAX = 256 << 10,
	PAGE_BYTES_MAX = 64 << 10, /* unless one event alone is larger */
	PAGE_EVENTS_MAX = 500,
	SIFTED_EVENTS_MAX = 100, /* where each must be asked for its queue */
	PAGES_MAX = 8,           /* read for all streams together in one tick of the loop */
	EVENT_BYTES_MAX = 8 << 20,
	COMMENT_MS = 15000,
};

/* ---- beginning and end --------------------------------------------------------------------------------- */

bool stream_begin(struct server *server, struct exchange *exchange)
{
	struct api_call *call = &exchange->call;

	assert(call->step == API_STREAM);
	if (server->stopping) {
		api_refuse(call, REFUSED_UNAVAILABLE, "The server is stopping; come back in a moment.");
		return false;
	}
	if (server->streams.open.count >= STREAMS_MAX) {
		api_refuse(call, REFUSED_RATE_LIMITED, "As many streams are open as this server feeds.");
		call->reply.retry_after_s = RETRY_AFTER_S;
		return false;
	}
	if (exchange_list_count_of(&server->streams.open, call->who.number) >= server->options->streams_max) {
		api_refuse(call, REFUSED_RATE_LIMITED, "This credential has as many streams open as it may.");
		call->reply.retry_after_s = RETRY_AFTER_S;
		return false;
	}
	if (arena_copy(&exchange->arena, call->who.name, &call->who.name) < 0) {
		api_refuse(call, REFUSED_UNAVAILABLE, "There is no room for another stream.");
		return false;
	}
	assert(exchange->connection);
	exchange_move(exchange, EXCHANGE_STREAMING);
	exchange->last_sent_ms = server->now.lease_ms;
	exchange_list_add(&server->streams.open, exchange);
	server->streams.has_work = true;
	journal_reply(exchange);
	connection_begin_stream(exchange->connection); /* which may have been its end */
	return true;
}

void streams_stop(struct server *server)
{
	while (server->streams.open.first)
		connection_end_stream(server->streams.open.first->connection);
}

/* ---- pages ----------------------------------------------------------------------------------------------- */

static int put_event(void *context, const struct record *record)
{
	struct stream_page *page = context;
	size_t before = page->bytes.len;

	assert(record->seq > page->last);
	if (page->only && !api_sees_event(&page->only->call, record)) {
		page->last = record->seq;
		return 0;
	}
	int r = api_put_stream_event(&page->bytes, record);
	if (r < 0)
		return r;
	if (before > 0 && page->bytes.len > PAGE_BYTES_MAX) { /* it begins the next page */
		buf_cut(&page->bytes, before);
		return -ENOBUFS;
	}
	page->last = record->seq;
	return 0;
}

/* Of those who see everything all see the same. */
static const struct exchange *reader_of(const struct exchange *stream)
{
	return stream->call.who.queues.count > 0 ? stream : NULL;
}

/* The events that follow the stream's position; at least one is looked at. A fault: they cannot be had. */
static int read_page(struct server *server, const struct exchange *stream)
{
	struct stream_page *page = &server->streams.page;
	int64_t after = stream->call.stream_after;

	buf_clear(&page->bytes);
	buf_set_max(&page->bytes, EVENT_BYTES_MAX);
	page->after = page->last = after;
	page->only = reader_of(stream);
	int r = store_page_events(
		server->store, after, page->only ? SIFTED_EVENTS_MAX : PAGE_EVENTS_MAX, put_event, page);
	if (page->last > after)
		return 0;
	return r < 0 ? r : -ENOENT;
}

static bool has_room(const struct exchange *stream, size_t bytes)
{
	size_t unsent = connection_unsent(stream->connection);

	return unsent == 0 || unsent + bytes <= OUTPUT_BYTES_MAX;
}

enum feeding {
	FED,
	FULL,  /* it has to read first */
	ENDED, /* its credential, or what it needs, is gone */
	LATER, /* enough was read for one tick of the loop */
};

/* Give it the page that follows its position. */
static enum feeding feed(struct server *server, struct exchange *stream, uint32_t *pages)
{
	struct stream_page *page = &server->streams.page;

	if (!has_room(stream, PAGE_BYTES_MAX))
		return FULL;
	if (!admission_is_still_good(server, stream))
		return ENDED;
	if (page->after != stream->call.stream_after || page->only != reader_of(stream)) {
		if (*pages == PAGES_MAX)
			return LATER;
		++*pages;
		if (read_page(server, stream) < 0)
			return ENDED;
	}
	if (!has_room(stream, page->bytes.len))
		return FULL;
	if (buf_put_span(connection_output(stream->connection), buf_span(&page->bytes)) < 0)
		return ENDED;
	assert(page->after == stream->call.stream_after); /* neither a gap nor a repetition */
	assert(page->last > page->after);
	stream->call.stream_after = page->last;
	stream->last_sent_ms = server->now.lease_ms;
	return FED;
}

/* Each reader that is behind and has room gets one page. When the time is over, the others come first in the next call.
 * True: some reader could take more at once. */
static bool feed_all(struct server *server, int64_t last)
{
	uint32_t pages = 0;
	bool more = false;

	server->streams.page.after = -1; /* of no stream */
	for (uint32_t left = server->streams.open.count; left > 0; left--) {
		struct exchange *stream = server->streams.open.first;
		if (stream->call.stream_after < last) {
			enum feeding feeding = feed(server, stream, &pages);
			if (feeding == LATER)
				return true;
			if (feeding == ENDED) {
				connection_end_stream(stream->connection);
				continue;
			}
			more |= feeding == FED && stream->call.stream_after < last;
		}
		exchange_list_remove(stream);
		exchange_list_add(&server->streams.open, stream);
	}
	return more;
}

void streams_feed(struct server *server)
{
	int64_t last = store_last_event(server->store);

	if (last == server->streams.last && !server->streams.has_work)
		return;
	server->streams.last = last;
	server->streams.has_work = server->streams.open.first && feed_all(server, last);
	connections_flush(server);
}

/* A comment now and then, so that a proxy does not take the stream for dead. False: there is no room for it. */
static bool keep_alive(struct server *server, struct exchange *stream)
{
	if (server->now.lease_ms - stream->last_sent_ms < COMMENT_MS ||
		connection_unsent(stream->connection) > 0)
		return true;
	stream->last_sent_ms = server->now.lease_ms;
	return api_put_stream_comment(connection_output(stream->connection)) == 0;
}

void streams_sweep(struct server *server)
{
	struct exchange *next;

	for (struct exchange *stream = server->streams.open.first; stream; stream = next) {
		next = stream->next;
		if (!admission_is_still_good(server, stream) || !keep_alive(server, stream))
			connection_end_stream(stream->connection);
	}
}

void streams_done(struct server *server)
{
	assert(!server->streams.open.first);
	buf_done(&server->streams.page.bytes);
}
