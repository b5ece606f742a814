#include "server/lead/standby.h"

#include <errno.h>
#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "base/service.h"
#include "base/take.h"
#include "server/server.h"
#include "server/watch/server_log.h"

enum {
	TICK_MS = 1000,
	SURE_OF_10 = 8,    /* tenths of the lease */
	SIGNS_OF_LIFE = 3, /* in each lease */
};

/* ---- the thread that opens the store --------------------------------------------------------------------------- */

static void note_found(struct standby *standby, const struct postgres_leader *leader)
{
	if (leader->name[0]) {
		standby->found = *leader;
		standby->found.away = NULL;
	}
	snprintf(standby->away, sizeof standby->away, "%s", leader->away ? leader->away : "");
	standby->has_found = true;
}

static int look_on(void *context, const struct postgres_leader *leader)
{
	struct standby *standby = context;

	uv_mutex_lock(&standby->lock);
	note_found(standby, leader);
	bool gives_up = standby->gives_up;
	uv_mutex_unlock(&standby->lock);
	uv_async_send(&standby->news);
	return gives_up ? -ECANCELED : 0;
}

static void open_store(void *context)
{
	struct standby *standby = context;
	struct backend *backend = NULL;
	char *complaint = NULL;

	int fault = postgres_open(&standby->options, &backend, &complaint);
	uv_mutex_lock(&standby->lock);
	standby->fault = fault;
	standby->backend = backend;
	standby->complaint = complaint;
	standby->is_done = true;
	uv_mutex_unlock(&standby->lock);
	uv_async_send(&standby->news);
}

/* ---- the loop ---------------------------------------------------------------------------------------------------- */

static void log_news(struct standby *standby, const struct postgres_leader *before, const char *away)
{
	const struct postgres_leader *now = &standby->leader;

	if (now->name[0] && (strcmp(now->name, before->name) != 0 || now->since_ms != before->since_ms))
		log_info("another stintd leads this store: standing by", log_cstr("leader", now->name),
			log_cstr("url", now->url), log_cstr("here", standby->url));
	if (away[0] && !standby->was_away)
		log_warn("PostgreSQL is away: waiting for it", log_cstr("reason", away));
	else if (!away[0] && standby->was_away)
		log_info("PostgreSQL is back");
	standby->was_away = away[0] != 0;
}

static void on_news(uv_async_t *async)
{
	struct server *server = async->data;
	struct standby *standby = &server->standby;
	struct postgres_leader before = standby->leader;
	char away[sizeof standby->away];

	uv_mutex_lock(&standby->lock);
	bool is_done = standby->is_done, has_found = standby->has_found;
	if (has_found)
		standby->leader = standby->found;
	memcpy(away, standby->away, sizeof away);
	uv_mutex_unlock(&standby->lock);
	if (is_done || !has_found)
		return;
	log_news(standby, &before, away);
	passing_turn_to(server, standby->leader.url);
}

static void on_tick(uv_timer_t *timer)
{
	struct server *server = timer->data;

	server->now = clock_now();
	connections_timeout(server);
	connections_flush(server);
	passing_sweep(server);
	journal_sweep();
	service_tell("WATCHDOG=1");
}

void standby_give_up(struct server *server)
{
	struct standby *standby = &server->standby;

	uv_mutex_lock(&standby->lock);
	standby->gives_up = true;
	uv_mutex_unlock(&standby->lock);
}

static void name_us(struct standby *standby)
{
	char host[65] = "";

	gethostname(host, sizeof host - 1);
	snprintf(standby->holder, sizeof standby->holder, "%s, process %d", host, (int)getpid());
}

static int start_thread(struct server *server, const char *store_url)
{
	struct standby *standby = &server->standby;

	name_us(standby);
	standby->options = (struct postgres_options){
		.url = store_url,
		.holder = standby->holder,
		.leader_url = standby->url,
		.look_away_ms = server->options->leader_lease_ms,
		.stand_by = look_on,
		.context = standby,
	};
	uv_async_init(&server->loop, &standby->news, on_news);
	uv_timer_init(&server->loop, &standby->tick);
	standby->news.data = standby->tick.data = server;
	uv_timer_start(&standby->tick, on_tick, TICK_MS, TICK_MS);
	int r = uv_mutex_init(&standby->lock);
	return r < 0 ? r : uv_thread_create(&standby->thread, open_store, standby);
}

/* Until the thread has ended. It ends soon after it was told to give up. */
static void run_until_done(struct server *server, void (*tell)(struct server *server))
{
	struct standby *standby = &server->standby;
	bool is_done = false;

	while (!is_done) {
		uv_run(&server->loop, UV_RUN_ONCE);
		uv_mutex_lock(&standby->lock);
		is_done = standby->is_done;
		bool is_long = standby->has_found && !standby->gives_up;
		uv_mutex_unlock(&standby->lock);
		if (!is_done && is_long && !standby->is_told) {
			standby->is_told = true;
			tell(server);
			service_tell("READY=1\nSTATUS=standing by");
		}
	}
	uv_thread_join(&standby->thread);
	uv_mutex_destroy(&standby->lock);
}

int standby_wait(struct server *server, const char *store_url, void (*tell)(struct server *server),
	struct backend **ret_backend, char **ret_complaint)
{
	struct standby *standby = &server->standby;

	standby->is_on = true;
	int r = start_thread(server, store_url);
	if (r < 0)
		return r;
	run_until_done(server, tell);
	standby->is_on = false;
	passing_end_all(server);
	passing_turn_to(server, "");
	uv_close((uv_handle_t *)&standby->tick, NULL);
	uv_close((uv_handle_t *)&standby->news, NULL);
	*ret_complaint = standby->complaint;
	if (standby->fault == 0 && server->stopping) {
		standby->backend->ops->close(standby->backend);
		return -ECANCELED;
	}
	*ret_backend = standby->backend;
	return standby->fault;
}

static bool confirm(struct server *server, uint32_t ms)
{
	int r = postgres_confirm(server->backend, ms);

	if (r < 0 && r != -EROFS && r != -ENOSPC)
		server_die(server, r);
	return r != -EROFS;
}

bool lead_is_sure(struct server *server)
{
	return !server->options->store_url ||
		confirm(server, server->options->leader_lease_ms * SURE_OF_10 / 10);
}

static void on_life(uv_timer_t *timer)
{
	struct server *server = timer->data;

	if (!server->stopping)
		confirm(server, server->options->leader_lease_ms / SIGNS_OF_LIFE);
}

void lead_begin(struct server *server)
{
	uint64_t every_ms = server->options->leader_lease_ms / SIGNS_OF_LIFE / 2;

	if (!server->options->store_url)
		return;
	uv_timer_init(&server->loop, &server->standby.life);
	server->standby.life.data = server;
	uv_timer_start(&server->standby.life, on_life, every_ms, every_ms);
}

/* ---- replies ---------------------------------------------------------------------------------------------------- */

/* In one sentence, for people. What PostgreSQL says stays in the log: anybody may ask. */
static void put_sentence(const struct standby *standby, char *text, size_t size)
{
	const struct postgres_leader *leader = &standby->leader;

	if (!standby->is_on)
		snprintf(text, size,
			"This request was passed on to the leader of before: the lead has changed hands. Ask again.");
	else if (standby->was_away)
		snprintf(text, size,
			"This server waits for PostgreSQL, which cannot be reached from here; its log says why.");
	else if (!leader->name[0])
		snprintf(text, size, "This server starts: it has not seen yet who leads the store.");
	else
		snprintf(text, size, "This server stands by: the store is led by %s%s%s.", leader->name,
			leader->url[0] ? " at " : ", which does not say where it is reached", leader->url);
}

static void refuse(struct server *server, struct api_call *call)
{
	struct standby *standby = &server->standby;
	char text[LEADER_NAME_BYTES + LEADER_URL_BYTES + 120];

	put_sentence(standby, text, sizeof text);
	api_refuse(call, REFUSED_NOT_LEADER, text);
	call->reply.leader = span_of(standby->is_on ? standby->leader.url : standby->url);
	call->reply.close = true; /* the next request may be passed on */
}

void standby_put_refusal(struct server *server, struct span path, struct buf *out)
{
	struct http_request request = {.path = path};
	cleanup(buf_done) struct buf body = {.max = 8192};
	struct api_call call = {.request = &request, .body = &body};

	refuse(server, &call);
	metrics_count_reply(&server->metrics, call.reply.status);
	http_put_reply(out, &call.reply);
}

static bool is_path(const struct exchange *exchange, const char *path)
{
	return span_is(exchange->request->path, path);
}

void standby_answer(struct server *server, struct exchange *exchange)
{
	const struct standby *standby = &server->standby;
	const struct postgres_leader *leader = &standby->leader;
	struct api_leader facts = {
		leader->name, leader->url, leader->since_ms, false, leader->turn, leader->is_synchronous};
	enum http_method method = exchange->request->method;
	bool is_get = method == HTTP_METHOD_GET || method == HTTP_METHOD_HEAD;
	bool knows = leader->name[0] && !standby->was_away;

	if (is_get && is_path(exchange, "/livez"))
		api_reply_live(&exchange->call);
	else if (is_get && knows && (is_path(exchange, "/readyz") || is_path(exchange, "/healthz")))
		api_reply_standby(&exchange->call, &facts);
	else if (is_get && is_path(exchange, "/metrics"))
		api_reply_metrics(&exchange->call);
	else
		refuse(server, &exchange->call);
	exchange->closes = true; /* what comes next may be passed on */
	exchange_answer(server, exchange);
}
