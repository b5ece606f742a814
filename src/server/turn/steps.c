/*
 * Bulk actions in the server: between two turns a bounded look at the tasks that come next, and with the next turn the step that it
 * found. A turn of others takes the step along, so that it costs no sync of its own; without one the loop does not sleep. The step
 * comes first in its turn: what was looked at has not changed since, unless a timer was due.
 *
 * All actions that run take turns, so that a long one does not keep a short one waiting.
 */
#include <assert.h>

#include "server/server.h"

enum {
	LOOK_ARENA_MAX = 8 << 20,
	LOOK_BODY_MAX = 64 << 10,
	RETRY_MS = 1000,
};

bool steps_have_work(const struct server *server)
{
	return !server->stopping && store_has_bulk(server->store) &&
		server->now.lease_ms >= server->steps.not_before_ms;
}

/* The action that runs and comes next, round and round. */
static bool next_running(struct server *server, uint32_t *ret_number)
{
	struct bulk_document document;
	uint32_t number = server->steps.last;

	for (int round = 0; round < 2; round++, number = 0) {
		while (store_next_bulk(server->store, &number, &document)) {
			if (document.progress->state != BULK_RUNNING)
				continue;
			*ret_number = number;
			return true;
		}
	}
	return false;
}

static bool is_running(const struct server *server, uint32_t number)
{
	struct bulk_document document;

	return store_read_bulk(server->store, number, &document) == 0 &&
		document.progress->state == BULK_RUNNING;
}

/* No more run than there are places. */
static struct bulk_look *look_of(struct server *server, uint32_t number)
{
	struct bulk_look *looks = server->steps.looks, *free_one = NULL;

	for (int i = 0; i < BULKS_RUNNING_MAX; i++) {
		if (looks[i].number == number)
			return &looks[i];
		if (looks[i].number == 0 || !is_running(server, looks[i].number))
			free_one = &looks[i];
	}
	assert(free_one);
	*free_one = (struct bulk_look){.number = number};
	return free_one;
}

static void begin(struct server *server)
{
	struct bulk_steps *steps = &server->steps;

	if (steps->arena.max == 0) {
		arena_init(&steps->arena, LOOK_ARENA_MAX);
		buf_init(&steps->body, LOOK_BODY_MAX);
	}
	arena_reset(&steps->arena);
	buf_clear(&steps->body);
	steps->request = (struct http_request){.method = HTTP_METHOD_POST, .path = SPAN("/api/tasks/bulk")};
}

void steps_look(struct server *server)
{
	struct bulk_steps *steps = &server->steps;
	uint32_t number;

	if (steps->is_ready || !steps_have_work(server) || !next_running(server, &number))
		return;
	begin(server);
	steps->last = number;
	steps->stepping = look_of(server, number);
	struct api_call call = host_call(server, &steps->request, &steps->arena, &steps->body);
	int r = api_look_for_step(&call, steps->stepping, &steps->command);
	steps->is_ready = r > 0;
	if (r < 0) /* else the loop would do nothing but look */
		steps->not_before_ms = server->now.lease_ms + RETRY_MS;
}

uint32_t steps_take(struct server *server, struct command *commands)
{
	struct bulk_steps *steps = &server->steps;

	if (!steps->is_ready)
		return 0;
	commands[0] = steps->command;
	steps->is_ready = false;
	steps->is_taken = true;
	return 1;
}

/* A row of a task is damaged: which one is found by steps of one task. That one is passed over. */
static void pass_by_damage(struct bulk_look *look)
{
	look->passes_by = look->most == 1;
	look->most = 1;
}

void steps_finish(struct server *server, const struct result *result)
{
	struct bulk_steps *steps = &server->steps;

	if (!steps->is_taken)
		return;
	steps->is_taken = false;
	if (result->refusal == REFUSED_STORE_DAMAGED) {
		pass_by_damage(steps->stepping);
	} else if (result->refusal != REFUSED_NOTHING) {
		steps->not_before_ms = server->now.lease_ms + RETRY_MS;
	} else if (steps->stepping->passes_by) {
		steps->stepping->passes_by = false;
		steps->stepping->most = 0;
	}
}

void steps_done(struct server *server)
{
	if (server->steps.arena.max == 0)
		return;
	arena_done(&server->steps.arena);
	buf_done(&server->steps.body);
}
