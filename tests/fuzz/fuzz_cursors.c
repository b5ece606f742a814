/*
 * Cursors: of the list of tasks, of events, and of a stream that comes back. Whatever a client sends in place of one is
 * taken only in the one spelling in which it is given out, or refused; and a list that goes on from it comes to its
 * end.
 */
#include <assert.h>
#include <string.h>

#include "api/task/keys.h"
#include "base/take.h"
#include "fuzz/api_world.h"
#include "fuzz/fuzz.h"

enum {
	PAGES_MAX = 100,
	TARGET_BYTES_MAX = 64 << 20,
};

/* "PATH?after=" and the text, every byte of it encoded. */
static void put_target(struct buf *target, const char *start, struct span text)
{
	buf_clear(target);
	assert(buf_printf(target, "%s", start) == 0);
	for (size_t i = 0; i < text.len; i++)
		assert(buf_printf(target, "%%%02x", (unsigned char)text.data[i]) == 0);
}

static void expect_one_spelling(struct span text)
{
	cleanup(buf_done) struct buf again;
	struct task_key key;

	buf_init(&again, 4096);
	if (task_key_read(text, &key) < 0)
		return;
	assert(key.seq > 0);
	assert(task_key_put(&again, &key) == 0);
	assert(span_equal(buf_span(&again), text));
}

/* The target of Link, copied; false: there is none. */
static bool take_link(const struct http_reply *reply, struct buf *target)
{
	static const char end[] = ">; rel=\"next\"";
	size_t end_len = sizeof end - 1;

	buf_clear(target);
	if (reply->link.len == 0)
		return false;
	assert(reply->link.len > end_len + 1);
	assert(memcmp(reply->link.data + reply->link.len - end_len, end, end_len) == 0);
	assert(buf_put(target, reply->link.data + 1, reply->link.len - end_len - 1) == 0);
	return true;
}

static void list_tasks(struct api_world *world, struct buf *target, struct span text)
{
	bool more = true;

	put_target(target, "/api/tasks?limit=3&after=", text);
	for (uint32_t pages = 0; more; pages++) {
		assert(pages < PAGES_MAX);
		world_ask(world, HTTP_METHOD_GET, buf_span(target), (struct span){0});
		world_expect_reply(world);
		int status = world->call.reply.status;
		assert(status == 200 || (pages == 0 && status == 422));
		more = take_link(&world->call.reply, target);
	}
}

static void expect_events(struct api_world *world)
{
	int status = world->call.reply.status;

	world_expect_reply(world);
	assert(status == 200 || status == 410 || status == 422);
}

static void list_events(struct api_world *world, struct buf *target, struct span text)
{
	static const char *const starts[] = {"/api/events?after=", "/api/tasks/t-1/events?limit=2&after="};

	for (size_t i = 0; i < sizeof starts / sizeof *starts; i++) {
		put_target(target, starts[i], text);
		world_ask(world, HTTP_METHOD_GET, buf_span(target), (struct span){0});
		expect_events(world);
	}
}

static void come_back(struct api_world *world, struct span text)
{
	world->request.last_event_id = text;
	world_ask(world, HTTP_METHOD_GET, SPAN("/api/events"), (struct span){0});
	expect_events(world);
	world->request.accept = SPAN("text/event-stream");
	if (world_ask(world, HTTP_METHOD_GET, SPAN("/api/events?after=11"), (struct span){0}) == API_STREAM) {
		assert(world->call.stream_after >= WORLD_EVENT_BASE);
		assert(world->call.stream_after <= WORLD_LAST_EVENT);
	} else {
		expect_events(world);
	}
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
	struct span text = {(const char *)data, size};
	cleanup(world_done) struct api_world world;
	cleanup(buf_done) struct buf target;

	buf_init(&target, TARGET_BYTES_MAX);
	world_init(&world);
	expect_one_spelling(text);
	list_tasks(&world, &target, text);
	list_events(&world, &target, text);
	come_back(&world, text);
	return 0;
}
