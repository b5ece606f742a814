#include <assert.h>
#include <errno.h>

#include "server/server.h"

enum {
	LOOK_MS = 100, /* between two looks at an inbox that was empty */
	PAGE_ROWS = 32,
};

static void look_in(struct server *server, uint64_t ms);

/* ---- a row as an exchange ------------------------------------------------------------------------------------------ */

static int copy_row(struct exchange *exchange, const struct inbox_row *row)
{
	struct inbox_row *copy = arena_alloc(&exchange->arena, sizeof *copy);
	struct http_request *request = arena_alloc(&exchange->arena, sizeof *request);

	if (!copy || !request)
		return -ENOMEM;
	*copy = (struct inbox_row){.id = row->id};
	int r = arena_copy(&exchange->arena, row->queue, &copy->queue);
	if (r == 0)
		r = arena_copy(&exchange->arena, row->role, &copy->role);
	if (r == 0)
		r = arena_copy(&exchange->arena, row->task, &copy->task);
	*request = (struct http_request){.method = HTTP_METHOD_POST,
		.path = SPAN("/api/tasks"),
		.content_type = SPAN("application/json"),
		.body = copy->task};
	exchange->request = request;
	exchange->inbox_row = copy;
	return r;
}

static int add_row(void *context, const struct inbox_row *row)
{
	struct server *server = context;
	struct exchange *exchange = exchange_new(server);

	if (!exchange)
		return -ENOMEM;
	server->inbox.after = row->id;
	server->inbox.seen++;
	int r = copy_row(exchange, row);
	if (r == 0) {
		exchange->call = host_call(server, exchange->request, &exchange->arena, &exchange->body);
		api_begin_inbox(&exchange->call, exchange->inbox_row);
	}
	if (r < 0 || exchange->call.step != API_TURN) {
		exchange_free(server, exchange); /* later */
		return r;
	}
	server->inbox.under_way++;
	exchange_want_turn(server, exchange);
	return 0;
}

void inbox_finish(struct server *server, struct exchange *exchange, const struct result *results)
{
	struct inbox *inbox = &server->inbox;

	exchange->call.now = server->now;
	if (!api_finish_inbox(&exchange->call, exchange->inbox_row, results)) {
		exchange_want_turn(server, exchange);
		return;
	}
	assert(inbox->under_way > 0);
	inbox->under_way--;
	exchange_free(server, exchange);
	if (inbox->under_way == 0 && inbox->seen == PAGE_ROWS && !server->stopping)
		look_in(server, 0);
}

/* ---- looking ------------------------------------------------------------------------------------------------------- */

static void on_look(uv_timer_t *timer)
{
	struct server *server = timer->data;
	struct inbox *inbox = &server->inbox;

	look_in(server, LOOK_MS);
	if (server->stopping || inbox->under_way > 0)
		return;
	clock_tick(server);
	inbox->seen = 0;
	int r = store_page_inbox(server->store, inbox->after, PAGE_ROWS, add_row, server);
	/* what a look finds out about the lead is as true as what a turn finds out */
	if (r < 0 && r != -ENOMEM && r != -EROFS)
		server_die(server, r);
	/* at the end it begins anew: rows that had to wait, and those of transactions that took long, have lower numbers */
	if (inbox->seen < PAGE_ROWS)
		inbox->after = 0;
}

static void look_in(struct server *server, uint64_t ms)
{
	uv_timer_start(&server->inbox.look, on_look, ms, 0);
}

void inbox_begin(struct server *server)
{
	if (!server->options->store_url)
		return;
	uv_timer_init(&server->loop, &server->inbox.look);
	server->inbox.look.data = server;
	look_in(server, LOOK_MS);
}
