/*
 * The outbox: what is in a file is sent once and then gone, by itself or with a claim; what the disk refuses is kept and
 * written later. The server is a socket in the same loop that answers as it is told.
 */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/ioctl.h>
#include <sys/stat.h>
#include <unistd.h>

#include "base/files.h"
#include "wire/json/json.h"
#include "worker/report/report_file.h"
#include "worker/report/outbox.h"

#define REPORT "{\"workerId\":\"w\",\"fence\":\"7\",\"result\":1}"

enum {
	PADDING_MAX = 8 << 20,
};

struct guest;
static char place[64];
static struct world {
	uv_loop_t loop;
	uv_pipe_t door;
	char heard[8192];             /* of all requests, first lines and bodies */
	size_t padding;               /* bytes of blanks behind what is answered */
	char keys[256];               /* that came with what was posted */
	int guests;                   /* that are here now; and so many at a time there were */
	int guests_most, guests_back; /* when an answer was not lost for the first time */
	int posts, waits;             /* the answers to so many posts wait for each other */
	int away;                     /* so many posts are taken, and the answer is lost */
	struct outbox *outbox;
	int dir_fd;
	struct guest *last; /* that came */
	int unread;         /* when it was last synced */
	int saved, fault;
	char code[40];
	int settled, status, turns;
	bool claims; /* reports may ride */
	int riders;  /* that did */
	char list[4096];
} world;

/* A connection. */
struct guest {
	uv_pipe_t pipe;
	struct guest *next; /* of those that wait for their answer */
	char input[8192];
	size_t len;
};

static struct guest *waiting;
static int syncs;

int __real_fsync(int fd);
int __wrap_fsync(int fd);

/* What was written to the server and not read by it yet. */
static int unread(void)
{
	uv_os_fd_t fd;
	int bytes = 0;

	if (world.last && uv_fileno((uv_handle_t *)&world.last->pipe, &fd) == 0)
		ioctl(fd, FIONREAD, &bytes);
	return bytes;
}

int __wrap_fsync(int fd)
{
	syncs++;
	world.unread = unread();
	return __real_fsync(fd);
}

static bool is_on_disk(const char *name)
{
	return faccessat(world.dir_fd, name, F_OK, 0) == 0;
}

/* ---- the server ---- */

static void allocate(uv_handle_t *handle, size_t wanted, uv_buf_t *buf)
{
	struct guest *guest = handle->data;

	(void)wanted;
	*buf = uv_buf_init(guest->input + guest->len, (unsigned)(sizeof guest->input - 1 - guest->len));
}

static void on_padded(uv_write_t *write, int status)
{
	(void)status; /* whoever has read enough hangs up */
	free(write);
}

static void pad(struct guest *guest)
{
	static char blanks[PADDING_MAX];
	uv_write_t *write = calloc(1, sizeof *write);
	uv_buf_t buf = uv_buf_init(blanks, (unsigned)world.padding);

	assert_non_null(write);
	memset(blanks, ' ', sizeof blanks);
	assert_int_equal(uv_write(write, (uv_stream_t *)&guest->pipe, &buf, 1, on_padded), 0);
}

static void answer(struct guest *guest, const char *status, const char *body)
{
	char text[4096];

	int len = snprintf(text, sizeof text,
		"HTTP/1.1 %s\r\nContent-Type: application/json\r\nContent-Length: %zu\r\n\r\n%s", status,
		strlen(body) + world.padding, body);
	uv_buf_t buf = uv_buf_init(text, (unsigned)len);
	assert_int_equal(uv_try_write((uv_stream_t *)&guest->pipe, &buf, 1), len);
	if (world.padding > 0)
		pad(guest);
}

static void on_guest_closed(uv_handle_t *handle)
{
	if (world.last == handle->data)
		world.last = NULL;
	free(handle->data);
	world.guests--;
}

static void answer_all(void)
{
	while (waiting) {
		struct guest *guest = waiting;
		waiting = guest->next;
		answer(guest, "200 OK", "{}");
	}
}

static void note(const char *text, char *list, size_t room)
{
	size_t used = strlen(list);

	snprintf(list + used, room - used, "%s", text);
}

static void hear_post(struct guest *guest)
{
	const char *key = strcasestr(guest->input, "idempotency-key: ");
	char name[64] = "";

	if (key)
		snprintf(name, sizeof name, "%.*s ", (int)strcspn(key + 17, "\r"), key + 17);
	note(name, world.keys, sizeof world.keys);
	if (world.away-- > 0) {
		uv_close((uv_handle_t *)&guest->pipe, on_guest_closed);
		return;
	}
	if (world.guests_back == 0)
		world.guests_back = world.guests;
	guest->next = waiting;
	waiting = guest;
	if (++world.posts >= world.waits)
		answer_all();
}

static void on_read(uv_stream_t *stream, ssize_t got, const uv_buf_t *buf)
{
	struct guest *guest = stream->data;
	char line[4096];

	(void)buf;
	if (got < 0) {
		uv_close((uv_handle_t *)stream, on_guest_closed);
		return;
	}
	guest->len += (size_t)got;
	guest->input[guest->len] = 0;
	char *body = strstr(guest->input, "\r\n\r\n"), *length = strcasestr(guest->input, "content-length: ");
	if (!body || strlen(body + 4) < (length ? strtoul(length + 16, NULL, 10) : 0))
		return;
	snprintf(line, sizeof line, "%.*s %s\n", (int)strcspn(guest->input, "\r") - 9, guest->input,
		body + 4); /* without HTTP/1.1 */
	note(line, world.heard, sizeof world.heard);
	guest->len = 0;
	hear_post(guest);
}

static void on_guest(uv_stream_t *door, int status)
{
	struct guest *guest = calloc(1, sizeof *guest);

	assert_int_equal(status, 0);
	assert_non_null(guest);
	uv_pipe_init(&world.loop, &guest->pipe, 0);
	guest->pipe.data = guest;
	assert_int_equal(uv_accept(door, (uv_stream_t *)&guest->pipe), 0);
	uv_read_start((uv_stream_t *)&guest->pipe, allocate, on_read);
	world.guests++;
	world.last = guest;
	if (world.guests > world.guests_most)
		world.guests_most = world.guests;
}

/* ---- the world ---- */

static void on_saved(void *context, void *owner, int fault)
{
	(void)context;
	if (owner)
		assert_int_equal(is_on_disk(owner), fault == 0);
	world.saved += fault == 0;
	world.fault = fault;
}

static void on_settled(void *context, void *owner, const char *name, const struct outbox_answer *answer)
{
	(void)context;
	(void)owner;
	(void)name;
	world.status = answer->status;
	snprintf(world.code, sizeof world.code, "%.*s", SPAN_ARGS(answer->code));
	world.settled++;
}

/* A claim is made with what can ride, if the test wants one. */
static void on_ready(void *context)
{
	struct buf list;

	(void)context;
	if (!world.claims)
		return;
	buf_init(&list, sizeof world.list - 1);
	world.riders += (int)outbox_send_with_claim(world.outbox, SPAN("w"), &list);
	snprintf(world.list, sizeof world.list, "%.*s", SPAN_ARGS(buf_span(&list)));
	buf_done(&list);
}

static const struct outbox_events events = {.saved = on_saved, .settled = on_settled, .ready = on_ready};

static int set_up(void **state)
{
	struct http_address address = {.local = true};

	(void)state;
	memset(&world, 0, sizeof world);
	waiting = NULL;
	strcpy(place, "/tmp/stint-outbox-XXXXXX");
	assert_non_null(mkdtemp(place));
	world.dir_fd = open(place, O_RDONLY | O_DIRECTORY | O_CLOEXEC);
	uv_loop_init(&world.loop);
	uv_pipe_init(&world.loop, &world.door, 0);
	snprintf(address.path, sizeof address.path, "%s.sock", place);
	assert_int_equal(uv_pipe_bind(&world.door, address.path), 0);
	assert_int_equal(uv_listen((uv_stream_t *)&world.door, 128, on_guest), 0);
	world.outbox = outbox_new(&world.loop, &address, (struct span){0}, world.dir_fd, &events, &world);
	assert_non_null(world.outbox);
	return 0;
}

static void close_walked(uv_handle_t *handle, void *context)
{
	(void)context;
	if (!uv_is_closing(handle))
		uv_close(handle, handle->type == UV_NAMED_PIPE && handle->data ? on_guest_closed : NULL);
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

static void until_saved(int count)
{
	while (world.saved < count)
		assert_true(turn());
}

/* As a worker that died left it. */
static void inherit(const char *text)
{
	assert_int_equal(file_write(world.dir_fd, "run", span_of(text), false), 0);
	assert_int_equal(outbox_load(world.outbox), 1);
	until_settled(1);
	assert_false(is_on_disk("run"));
}

/* ---- tests ---- */

/* Its owner is its name. */
static struct pending_report *put(const char *name, bool held)
{
	struct pending_report *report = outbox_reserve(world.outbox, name, (void *)name);

	assert_non_null(report);
	assert_int_equal(report_put(outbox_text(report), SPAN("/api/tasks/t/complete"), SPAN(REPORT)), 0);
	outbox_put(world.outbox, report, held);
	return report;
}

static void a_report_is_a_file_before_it_is_sent_and_until_the_server_has_it(void **state)
{
	(void)state;
	world.waits = 2; /* no answer yet */
	put("run", false);
	while (!world.heard[0])
		assert_true(turn());
	assert_int_equal(world.saved, 1);
	assert_true(is_on_disk("run"));
	answer_all();
	until_settled(1);
	assert_false(is_on_disk("run"));
	assert_string_equal(world.heard, "POST /api/tasks/t/complete " REPORT "\n");
}

/* A task has a text, a checkpoint, a question, an answer and the word of its work, each as long as a request. */
static void however_long_the_reply_is_the_report_is_settled(void **state)
{
	(void)state;
	world.padding = PADDING_MAX;
	put("run", false);
	until_settled(1);
	assert_int_equal(world.status, 200);
	assert_false(is_on_disk("run"));
}

/* Not even when there is a connection, and something else to send. */
static void nothing_is_sent_before_it_is_on_disk(void **state)
{
	(void)state;
	put("first", false);
	until_settled(1);
	struct pending_report *second = put("run", true);
	outbox_release(world.outbox, second); /* whoever wakes it: it looks for what can be sent */
	until_settled(2);
	assert_non_null(world.last);
	assert_int_equal(world.unread, 0);
}

static char names[20][16];
static struct pending_report *many[20];

static void put_many(int count, bool held)
{
	for (int i = 0; i < count; i++) {
		snprintf(names[i], sizeof names[i], "run-%d", i);
		many[i] = put(names[i], held);
	}
}

static void many_at_once_are_synced_once_and_sent_together(void **state)
{
	int before = syncs;

	(void)state;
	world.waits = 20; /* nobody is answered before all are there */
	put_many(20, false);
	until_settled(20);
	assert_int_equal(syncs - before, 2); /* of the file, and of the directory */
	assert_int_equal(world.guests_most, 20);
	assert_int_equal(outbox_waiting(world.outbox), 0);
	while (world.guests > 1)
		assert_true(turn());
}

static void of_many_at_once_each_is_there_until_the_server_has_it(void **state)
{
	(void)state;
	put_many(3, true);
	until_saved(3);
	outbox_release(world.outbox, many[1]);
	until_settled(1);
	assert_string_equal(world.keys, "run-1 ");
	assert_true(is_on_disk("run-0"));
	assert_false(is_on_disk("run-1"));
	assert_true(is_on_disk("run-2"));
	outbox_release(world.outbox, many[0]);
	outbox_release(world.outbox, many[2]);
	until_settled(3);
}

static void what_a_dead_worker_wrote_together_is_sent_one_by_one(void **state)
{
	struct report_file reports[] = {
		{"a", SPAN("/api/tasks/a/complete\n{\"fence\":\"1\"}"), 0},
		{"b", SPAN("/api/tasks/b/fail\n{\"fence\":\"2\",\"error\":\"\n*c 9\n\"}"), 0},
		{"c", SPAN("/api/tasks/c/release\n{}"), 0},
	};

	(void)state;
	reports_write(world.dir_fd, reports, 3);
	assert_int_equal(reports[0].fault | reports[1].fault | reports[2].fault, 0);
	assert_int_equal(outbox_load(world.outbox), 3);
	until_settled(3);
	assert_non_null(strstr(world.heard, "POST /api/tasks/a/complete {\"fence\":\"1\"}\n"));
	assert_non_null(
		strstr(world.heard, "POST /api/tasks/b/fail {\"fence\":\"2\",\"error\":\"\n*c 9\n\"}\n"));
	assert_non_null(strstr(world.heard, "POST /api/tasks/c/release {}\n"));
}

/* A name that is taken cannot become a link; neither can any on a file system without them. */
static void what_cannot_be_linked_is_written_one_by_one(void **state)
{
	int before = syncs;

	(void)state;
	assert_int_equal(file_write(world.dir_fd, "run-1", SPAN("old"), false), 0);
	put_many(3, false);
	until_settled(3);
	assert_int_equal(syncs - before, 1 + 3 * 2);
	assert_false(is_on_disk("run-1"));
}

/* The others do not ask while one is refused: the server would hear them all again and again. */
static void a_server_that_is_away_is_asked_with_one(void **state)
{
	(void)state;
	world.away = 3;
	put_many(3, false);
	until_settled(3);
	assert_int_equal(strlen(world.keys), 6 * strlen("run-0 "));
	assert_int_equal(world.guests_back, 1);
}

static void what_is_sent_again_has_the_same_key(void **state)
{
	(void)state;
	world.away = 1;
	assert_int_equal(outbox_post(world.outbox, "w1-crash", SPAN("/api/slots/s/crash"), SPAN("{}")), 0);
	until_settled(1);
	assert_string_equal(world.keys, "w1-crash w1-crash ");
}

/* Nothing can be made in a directory that is not there any more. */
static void what_the_disk_refuses_is_sent_all_the_same(void **state)
{
	(void)state;
	assert_int_equal(rmdir(place), 0);
	put("run", false);
	until_settled(1);
	assert_int_equal(world.fault, -ENOENT);
	assert_string_equal(world.heard, "POST /api/tasks/t/complete " REPORT "\n");
}

static void what_is_no_report_is_left_out_and_told(void **state)
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

static void what_cannot_be_read_keeps_nobody_waiting(void **state)
{
	(void)state;
	assert_int_equal(mkdirat(world.dir_fd, "run", 0700), 0);
	assert_int_equal(outbox_load(world.outbox), 1);
	put("next", false);
	until_settled(2);
	assert_int_equal(world.posts, 1);
	assert_false(is_on_disk("next"));
	assert_int_equal(unlinkat(world.dir_fd, "run", AT_REMOVEDIR), 0);
}

/* Whoever reserved before the work began tells its end, however full it is by then. */
static void what_is_reserved_can_be_put_when_the_outbox_is_full(void **state)
{
	struct pending_report *report = outbox_reserve(world.outbox, "run", (void *)"run");
	char name[16];

	(void)state;
	assert_non_null(report);
	assert_int_equal(outbox_room(world.outbox), OUTBOX_REPORTS_MAX - 1);
	for (uint32_t i = 1; i < OUTBOX_REPORTS_MAX; i++) {
		snprintf(name, sizeof name, "r-%u", i);
		assert_non_null(outbox_reserve(world.outbox, name, NULL));
	}
	assert_int_equal(outbox_room(world.outbox), 0);
	assert_null(outbox_reserve(world.outbox, "more", NULL));
	assert_int_equal(outbox_waiting(world.outbox), 0);
	assert_int_equal(report_put(outbox_text(report), SPAN("/api/tasks/t/complete"), SPAN(REPORT)), 0);
	outbox_put(world.outbox, report, false);
	until_settled(1);
	assert_string_equal(world.heard, "POST /api/tasks/t/complete " REPORT "\n");
	assert_int_equal(outbox_room(world.outbox), 1);
}

static void what_is_given_back_leaves_nothing(void **state)
{
	(void)state;
	outbox_give_back(world.outbox, outbox_reserve(world.outbox, "run", NULL));
	assert_int_equal(outbox_room(world.outbox), OUTBOX_REPORTS_MAX);
	assert_false(is_on_disk("run"));
}

/* Nothing of a dead worker waits for another start. */
static void what_does_not_fit_is_loaded_when_the_rest_is_sent(void **state)
{
	char name[16];

	(void)state;
	for (uint32_t i = 2; i < OUTBOX_REPORTS_MAX; i++) {
		snprintf(name, sizeof name, "r-%u", i);
		assert_non_null(outbox_reserve(world.outbox, name, NULL));
	}
	for (int i = 0; i < 5; i++) {
		snprintf(name, sizeof name, "left-%d", i);
		assert_int_equal(file_write(world.dir_fd, name, SPAN("/api/tasks/t/fail\n{}"), false), 0);
	}
	assert_int_equal(outbox_load(world.outbox), 2);
	until_settled(5);
	assert_int_equal(outbox_waiting(world.outbox), 0);
}

static void until_riding(int count)
{
	while (world.riders < count)
		assert_true(turn());
}

static void arrive(const char *finished)
{
	struct json_complaint complaint;
	yyjson_doc *doc = json_read(span_of(finished), &complaint);

	outbox_claim_answered(world.outbox, yyjson_doc_get_root(doc));
	yyjson_doc_free(doc);
}

static void what_rides_with_a_claim_is_on_disk_until_the_answer_says_finished(void **state)
{
	(void)state;
	world.claims = true;
	put("run", false);
	until_riding(1);
	assert_string_equal(
		world.list, "{\"id\":\"t\",\"outcome\":\"complete\",\"fence\":\"7\",\"result\":1}");
	assert_int_equal(world.saved, 0); /* its owner hears of it later: it is on its way first */
	assert_true(is_on_disk("run"));
	arrive("[{\"id\":\"t\",\"ok\":true,\"state\":\"done\"}]");
	assert_int_equal(world.settled, 1);
	assert_int_equal(world.status, 200);
	assert_false(is_on_disk("run"));
	assert_string_equal(world.heard, "");
}

static void the_claim_after_an_answered_one_has_riders_of_its_own(void **state)
{
	(void)state;
	world.claims = true;
	put("first", false);
	until_riding(1);
	arrive("[{\"id\":\"t\",\"ok\":true}]");
	put("run", false);
	until_riding(2);
	assert_string_equal(
		world.list, "{\"id\":\"t\",\"outcome\":\"complete\",\"fence\":\"7\",\"result\":1}");
	arrive("[{\"id\":\"t\",\"ok\":true}]");
	assert_int_equal(world.settled, 2);
	assert_int_equal(outbox_waiting(world.outbox), 0);
}

static void one_that_is_stale_does_not_stop_the_others(void **state)
{
	(void)state;
	world.claims = true;
	put_many(3, true);
	until_saved(3);
	for (int i = 0; i < 3; i++)
		outbox_release(world.outbox, many[i]);
	until_riding(3);
	arrive("[{\"id\":\"t\",\"ok\":true},{\"id\":\"t\",\"ok\":false,\"code\":\"stale_fence\"},{\"id\":\"t\",\"ok\":true}]");
	assert_int_equal(world.settled, 3);
	assert_string_equal(world.code, "");
	assert_int_equal(outbox_waiting(world.outbox), 0);
	for (int i = 0; i < 3; i++)
		assert_false(is_on_disk(names[i]));
}

static void a_stale_one_is_told_with_its_code(void **state)
{
	(void)state;
	world.claims = true;
	put("run", false);
	until_riding(1);
	arrive("[{\"id\":\"t\",\"ok\":false,\"code\":\"stale_fence\"}]");
	assert_int_equal(world.status, 409);
	assert_string_equal(world.code, "stale_fence");
}

/* The reply was lost: the same report goes with the next claim. */
static void what_fell_off_rides_again(void **state)
{
	(void)state;
	world.claims = true;
	put("run", false);
	until_riding(1);
	outbox_claim_failed(world.outbox, false);
	until_riding(2);
	assert_true(is_on_disk("run"));
	arrive("[{\"id\":\"t\",\"ok\":true}]");
	assert_int_equal(world.settled, 1);
}

/* The server took nothing of the request: one of its reports may be to blame, and the others do not suffer for it. */
static void after_a_refusal_each_goes_alone(void **state)
{
	(void)state;
	world.claims = true;
	put_many(2, true);
	until_saved(2);
	outbox_release(world.outbox, many[0]);
	outbox_release(world.outbox, many[1]);
	until_riding(2);
	outbox_claim_failed(world.outbox, true);
	until_settled(2);
	assert_int_equal(world.riders, 2);
	assert_string_equal(world.keys, "run-0 run-1 ");
}

/* Its fence is another worker's: the server would not know it. */
static void what_a_dead_worker_left_goes_alone(void **state)
{
	(void)state;
	world.claims = true;
	inherit("/api/tasks/t/complete\n" REPORT);
	assert_int_equal(world.riders, 0);
	assert_string_equal(world.heard, "POST /api/tasks/t/complete " REPORT "\n");
}

static void the_report_of_an_older_worker_gives_way_to_the_report_of_the_work(void **state)
{
	(void)state;
	inherit("?word\n/api/tasks/t/complete\n" REPORT);
	assert_string_equal(world.heard,
		"POST /api/tasks/t/complete {\"byReport\":true,\"workerId\":\"w\",\"fence\":\"7\",\"result\":1}\n");
}

static void what_is_held_waits_for_its_log(void **state)
{
	struct pending_report *report = put("run", true);

	(void)state;
	assert_int_equal(outbox_post(world.outbox, "other", SPAN("/api/tasks/u/fail"), SPAN("{}")), 0);
	until_settled(1);
	assert_string_equal(world.heard, "POST /api/tasks/u/fail {}\n");
	assert_true(is_on_disk("run"));
	outbox_release(world.outbox, report);
	until_settled(2);
}

int main(void)
{
#define T(name) cmocka_unit_test_setup_teardown(name, set_up, tear_down)
	const struct CMUnitTest tests[] = {
		T(what_rides_with_a_claim_is_on_disk_until_the_answer_says_finished),
		T(the_claim_after_an_answered_one_has_riders_of_its_own),
		T(one_that_is_stale_does_not_stop_the_others),
		T(a_stale_one_is_told_with_its_code),
		T(what_fell_off_rides_again),
		T(after_a_refusal_each_goes_alone),
		T(what_a_dead_worker_left_goes_alone),
		T(the_report_of_an_older_worker_gives_way_to_the_report_of_the_work),
		T(what_is_held_waits_for_its_log),
		T(what_is_reserved_can_be_put_when_the_outbox_is_full),
		T(what_is_given_back_leaves_nothing),
		T(what_does_not_fit_is_loaded_when_the_rest_is_sent),
		T(a_report_is_a_file_before_it_is_sent_and_until_the_server_has_it),
		T(however_long_the_reply_is_the_report_is_settled),
		T(nothing_is_sent_before_it_is_on_disk),
		T(many_at_once_are_synced_once_and_sent_together),
		T(of_many_at_once_each_is_there_until_the_server_has_it),
		T(what_a_dead_worker_wrote_together_is_sent_one_by_one),
		T(what_cannot_be_linked_is_written_one_by_one),
		T(a_server_that_is_away_is_asked_with_one),
		T(what_is_sent_again_has_the_same_key),
		T(what_is_no_report_is_left_out_and_told),
		T(what_cannot_be_read_keeps_nobody_waiting),
		T(what_the_disk_refuses_is_sent_all_the_same),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
