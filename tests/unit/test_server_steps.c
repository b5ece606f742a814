/*
 * Steps of bulk actions: a look that fails is tried again later, and the loop sleeps until then.
 */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "server/server.h"

/* One action that runs, and what the next looks find. */
static const struct bulk the_bulk = {.number = 7};
static const struct bulk_progress running = {.state = BULK_RUNNING};
static int found;
static uint32_t looks;

bool store_has_bulk(const struct store *store)
{
	(void)store;
	return true;
}

int store_read_bulk(const struct store *store, uint32_t number, struct bulk_document *ret_document)
{
	(void)store;
	*ret_document = (struct bulk_document){&the_bulk, &running};
	return number == the_bulk.number ? 0 : -ENOENT;
}

bool store_next_bulk(const struct store *store, uint32_t *number, struct bulk_document *ret_document)
{
	if (*number >= the_bulk.number)
		return false;
	*number = the_bulk.number;
	return store_read_bulk(store, *number, ret_document) == 0;
}

struct api_call host_call(
	struct server *server, const struct http_request *request, struct arena *arena, struct buf *body)
{
	(void)server;
	return (struct api_call){.request = request, .arena = arena, .body = body};
}

int api_look_for_step(struct api_call *call, struct bulk_look *look, struct command *ret_command)
{
	(void)call;
	(void)look;
	*ret_command = (struct command){.kind = COMMAND_BULK_STEP};
	looks++;
	return found;
}

static struct server *server_new(void)
{
	struct server *server = calloc(1, sizeof *server);

	server->now.lease_ms = 1000000;
	looks = 0;
	return server;
}

static void server_drop(struct server *server)
{
	steps_done(server);
	free(server);
}

static void a_look_that_fails_is_tried_again_later(void **state)
{
	struct server *server = server_new();

	(void)state;
	found = -EIO;
	steps_look(server);
	assert_int_equal(looks, 1);
	assert_false(steps_have_work(server)); /* the loop may sleep */
	steps_look(server);
	assert_int_equal(looks, 1);
	server->now.lease_ms += 60000;
	found = 1;
	assert_true(steps_have_work(server));
	steps_look(server);
	assert_int_equal(looks, 2);
	assert_true(server->steps.is_ready);
	server_drop(server);
}

static void a_look_that_finds_nothing_yet_goes_on_at_once(void **state)
{
	struct server *server = server_new();

	(void)state;
	found = 0;
	steps_look(server);
	assert_true(steps_have_work(server));
	steps_look(server);
	assert_int_equal(looks, 2);
	assert_false(server->steps.is_ready);
	server_drop(server);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(a_look_that_fails_is_tried_again_later),
		cmocka_unit_test(a_look_that_finds_nothing_yet_goes_on_at_once),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
