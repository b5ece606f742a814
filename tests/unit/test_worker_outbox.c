/*
 * The outbox: what is in a file is sent once and then gone; what gives way to the word of the work is asked for first;
 * what the disk refuses is kept and written later. The server is a socket in the same loop that answers as it is told.
 */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "base/files.h"
#include "worker/outbox.h"

#define LETTER "{\"workerId\":\"w\",\"fence\":\"7\",\"result\":1}"

static char place[64];
static struct world {
	uv_loop_t loop;
	uv_pipe_t door, guest;
	char input[8192], heard[8192]; /* of one request; of all, by their first lines and bodies */
	size_t input_len;
	const char *task; /* what GET answers */
	char keys[256];   /* that came with what was posted */
	int away;         /* so many posts are taken, and the answer is lost */
	void (*on_get)(void);
	struct outbox *outbox;
	int dir_fd;
	int settled, status, turns, refusals;
} world;

/* ---- the server ---- */

static void allocate(uv_handle_t *handle, size_t wanted, uv_buf_t *buf)
{
	(void)handle;
	(void)wanted;
	*buf = uv_buf_init(
		world.input + world.input_len, (unsigned)(sizeof world.input - 1 - world.input_len));
}

static void answer(const char *status, const char *body)
{
	char text[4096];

	int len = snprintf(text, sizeof text,
		"HTTP/1.1 %s\r\nContent-Type: application/json\r\nContent-Length: %zu\r\n\r\n%s", status,
		strlen(body), body);
	uv_buf_t buf = uv_buf_init(text, (unsigned)len);
	assert_int_equal(uv_try_write((uv_stream_t *)&world.guest, &buf, 1), len);
}

static void on_read(uv_stream_t *stream, ssize_t got, const uv_buf_t *buf)
{
	(void)buf;
	if (got < 0) {
		uv_close((uv_handle_t *)stream, NULL);
		return;
	}
	world.input_len += (size_t)got;
	world.input[world.input_len] = 0;
	char *body = strstr(world.input, "\r\n\r\n"), *length = strcasestr(world.input, "content-length: ");
	if (!body || strlen(body + 4) < (length ? strtoul(length + 16, NULL, 10) : 0))
		return;
	size_t used = strlen(world.heard);
	snprintf(world.heard + used, sizeof world.heard - used, "%.*s %s\n",
		(int)strcspn(world.input, "\r") - 9, world.input, body + 4); /* without HTTP/1.1 */
	world.input_len = 0;
	bool get = strncmp(world.input, "GET", 3) == 0;
	const char *key = strcasestr(world.input, "idempotency-key: ");
	used = strlen(world.keys);
	if (!get && key)
		snprintf(world.keys + used, sizeof world.keys - used, "%.*s ", (int)strcspn(key + 17, "\r"),
			key + 17);
	if (!get && world.away-- > 0) {
		uv_close((uv_handle_t *)stream, NULL);
		return;
	}
	if (get && world.on_get)
		world.on_get();
	if (get && world.refusals-- > 0)
		answer("503 Service Unavailable", "{}");
	else
		answer("200 OK", get ? world.task : "{}");
}

static void on_guest(uv_stream_t *door, int status)
{
	assert_int_equal(status, 0);
	uv_pipe_init(&world.loop, &world.guest, 0);
	assert_int_equal(uv_accept(door, (uv_stream_t *)&world.guest), 0);
	uv_read_start((uv_stream_t *)&world.guest, allocate, on_read);
}

/* ---- the world ---- */

static void on_settled(void *context, const char *name, int status, struct span code, struct span body)
{
	(void)context;
	(void)name;
	(void)code;
	(void)body;
	world.status = status;
	world.settled++;
}

static int set_up(void **state)
{
	struct http_address address = {.local = true};

	(void)state;
	memset(&world, 0, sizeof world);
	strcpy(place, "/tmp/stint-outbox-XXXXXX");
	assert_non_null(mkdtemp(place));
	world.dir_fd = open(place, O_RDONLY | O_DIRECTORY | O_CLOEXEC);
	uv_loop_init(&world.loop);
	uv_pipe_init(&world.loop, &world.door, 0);
	snprintf(address.path, sizeof address.path, "%s.sock", place);
	assert_int_equal(uv_pipe_bind(&world.door, address.path), 0);
	assert_int_equal(uv_listen((uv_stream_t *)&world.door, 1, on_guest), 0);
	world.outbox = outbox_new(&world.loop, &address, (struct span){0}, world.dir_fd, on_settled, &world);
	assert_non_null(world.outbox);
	return 0;
}

static void close_walked(uv_handle_t *handle, void *context)
{
	(void)context;
	if (!uv_is_closing(handle))
		uv_close(handle, NULL);
}

static int tear_down(void **state)
{
	char path[80];

	(void)state;
	outbox_free(world.outbox);
	uv_walk(&world.loop, close_walked, NULL);
	uv_run(&world.loop, UV_RUN_DEFAULT);
	assert_int_equal(uv_loop_close(&world.loop), 0);
	close(world.dir_fd);
	rmdir(place);
	snprintf(path, sizeof path, "%s.sock", place);
	unlink(path);
	return 0;
}

/* One turn of the loop; false after ten seconds of them. */
static bool turn(void)
{
	static const useconds_t pause_us = 500;

	uv_run(&world.loop, UV_RUN_NOWAIT);
	usleep(pause_us);
	return ++world.turns < 20000;
}

static void until_settled(int count)
{
	while (world.settled < count)
		assert_true(turn());
}

static bool is_on_disk(const char *name)
{
	return faccessat(world.dir_fd, name, F_OK, 0) == 0;
}

/* As a worker that died left it. */
static void inherit(enum yields_to to)
{
	struct buf text;

	buf_init(&text, 4096);
	assert_int_equal(outbox_put_text(&text, to, SPAN("/api/tasks/t/complete"), SPAN(LETTER)), 0);
	assert_int_equal(file_write(world.dir_fd, "run", buf_span(&text), false), 0);
	buf_done(&text);
	assert_int_equal(outbox_load(world.outbox), 1);
	until_settled(1);
	assert_false(is_on_disk("run"));
}

/* ---- tests ---- */

static void a_letter_is_a_file_until_the_server_has_it(void **state)
{
	(void)state;
	assert_int_equal(outbox_put(world.outbox, "run", YIELDS_TO_NOTHING, SPAN("/api/tasks/t/complete"),
				 SPAN(LETTER), false),
		0);
	assert_true(is_on_disk("run"));
	until_settled(1);
	assert_false(is_on_disk("run"));
	assert_string_equal(world.heard, "POST /api/tasks/t/complete " LETTER "\n");
}

static void what_a_dead_worker_left_asks_for_the_word_of_the_work(void **state)
{
	(void)state;
	world.task = "{\"fence\":\"7\",\"report\":{\"outcome\":\"review\",\"result\":2}}";
	inherit(YIELDS_TO_QUESTION);
	assert_string_equal(world.heard,
		"GET /api/tasks/t \n"
		"POST /api/tasks/t/review {\"workerId\":\"w\",\"fence\":\"7\",\"result\":2}\n");
}

static void without_a_word_it_is_sent_as_it_is(void **state)
{
	(void)state;
	world.task = "{\"fence\":\"7\",\"state\":\"running\"}";
	inherit(YIELDS_TO_WORD);
	assert_string_equal(world.heard, "GET /api/tasks/t \nPOST /api/tasks/t/complete " LETTER "\n");
}

static void a_crash_gives_way_to_a_failure_alone(void **state)
{
	(void)state;
	world.task = "{\"fence\":\"7\",\"report\":{\"outcome\":\"complete\"}}";
	inherit(YIELDS_TO_FAILURE);
	assert_string_equal(world.heard, "GET /api/tasks/t \nPOST /api/tasks/t/complete " LETTER "\n");
}

static void what_is_sent_again_has_the_same_key(void **state)
{
	(void)state;
	world.away = 1;
	outbox_put(
		world.outbox, "w1-crash", YIELDS_TO_NOTHING, SPAN("/api/slots/s/crash"), SPAN("{}"), false);
	until_settled(1);
	assert_string_equal(world.keys, "w1-crash w1-crash ");
}

static void what_gives_way_to_nothing_is_not_asked_for(void **state)
{
	(void)state;
	inherit(YIELDS_TO_NOTHING);
	assert_string_equal(world.heard, "POST /api/tasks/t/complete " LETTER "\n");
}

/* Its word is asked for while its log goes to the server. */
static void one_that_is_held_is_asked_for_and_waits(void **state)
{
	(void)state;
	world.task = "{\"fence\":\"7\"}";
	assert_int_equal(outbox_put(world.outbox, "run", YIELDS_TO_QUESTION, SPAN("/api/tasks/t/complete"),
				 SPAN(LETTER), true),
		0);
	while (!world.heard[0])
		assert_true(turn());
	assert_int_equal(outbox_put(world.outbox, "other", YIELDS_TO_NOTHING, SPAN("/api/tasks/u/fail"),
				 SPAN("{}"), false),
		0);
	until_settled(1);
	assert_string_equal(world.heard, "GET /api/tasks/t \nPOST /api/tasks/u/fail {}\n");
	assert_true(is_on_disk("run"));
	outbox_release(world.outbox, "run");
	until_settled(2);
	assert_string_equal(world.heard,
		"GET /api/tasks/t \nPOST /api/tasks/u/fail {}\nPOST /api/tasks/t/complete " LETTER "\n");
}

/* That the word was hard to get holds up nothing afterwards. */
static void one_that_is_released_after_trouble_is_sent(void **state)
{
	(void)state;
	world.task = "{\"fence\":\"7\"}";
	world.refusals = 1;
	assert_int_equal(outbox_put(world.outbox, "run", YIELDS_TO_WORD, SPAN("/api/tasks/t/complete"),
				 SPAN(LETTER), true),
		0);
	while (strcmp(world.heard, "GET /api/tasks/t \nGET /api/tasks/t \n") != 0)
		assert_true(turn());
	for (int i = 0; i < 100; i++) /* the answer is heard */
		assert_true(turn());
	outbox_release(world.outbox, "run");
	until_settled(1);
}

/* Nothing can be made in a directory that is not there any more. */
static void what_the_disk_refuses_is_sent_all_the_same(void **state)
{
	(void)state;
	assert_int_equal(rmdir(place), 0);
	assert_int_not_equal(outbox_put(world.outbox, "run", YIELDS_TO_NOTHING, SPAN("/api/tasks/t/complete"),
				     SPAN(LETTER), false),
		0);
	until_settled(1);
	assert_string_equal(world.heard, "POST /api/tasks/t/complete " LETTER "\n");
}

static void remove_place(void)
{
	assert_int_equal(unlinkat(world.dir_fd, "run", 0), 0);
	assert_int_equal(rmdir(place), 0);
}

static void a_word_that_the_disk_refuses_takes_its_place_all_the_same(void **state)
{
	(void)state;
	world.task = "{\"fence\":\"7\",\"report\":{\"outcome\":\"review\",\"result\":2}}";
	assert_int_equal(outbox_put(world.outbox, "run", YIELDS_TO_WORD, SPAN("/api/tasks/t/complete"),
				 SPAN(LETTER), true),
		0);
	outbox_release(world.outbox, "run");
	world.on_get = remove_place;
	until_settled(1);
	assert_int_equal(access(place, F_OK), -1);
	assert_string_equal(world.heard,
		"GET /api/tasks/t \n"
		"POST /api/tasks/t/review {\"workerId\":\"w\",\"fence\":\"7\",\"result\":2}\n");
}

static void what_is_no_letter_is_left_out_and_told(void **state)
{
	(void)state;
	assert_int_equal(file_write(world.dir_fd, "run", SPAN("half a lett"), false), 0);
	assert_int_equal(outbox_load(world.outbox), 1);
	until_settled(1);
	assert_int_equal(world.status, 0);
	assert_int_equal(outbox_waiting(world.outbox), 0);
	assert_string_equal(world.heard, "");
	assert_int_equal(unlinkat(world.dir_fd, "run", 0), 0);
}

int main(void)
{
#define T(name) cmocka_unit_test_setup_teardown(name, set_up, tear_down)
	const struct CMUnitTest tests[] = {
		T(a_letter_is_a_file_until_the_server_has_it),
		T(what_a_dead_worker_left_asks_for_the_word_of_the_work),
		T(without_a_word_it_is_sent_as_it_is),
		T(a_crash_gives_way_to_a_failure_alone),
		T(what_is_sent_again_has_the_same_key),
		T(what_gives_way_to_nothing_is_not_asked_for),
		T(one_that_is_held_is_asked_for_and_waits),
		T(one_that_is_released_after_trouble_is_sent),
		T(what_is_no_letter_is_left_out_and_told),
		T(what_the_disk_refuses_is_sent_all_the_same),
		T(a_word_that_the_disk_refuses_takes_its_place_all_the_same),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
