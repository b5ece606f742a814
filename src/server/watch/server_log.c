/*
 * What the server logs while it runs, and how often. Requests are logged at level debug only, without query, body and
 * credential. Lines that a stranger can provoke are limited to a few per second; the others are counted.
 */

#include "server/server.h"
#include "server/watch/server_log.h"

enum {
	PATH_BYTES_MAX = 512, /* of a request's path */
	LINES_PER_SECOND = 5,
};

/* What strangers can provoke, and turns that may all be slow. */
static struct log_limit bad_credential = {LEVEL_WARN, "credential refused", LINES_PER_SECOND, 0, 0, 0};
static struct log_limit bad_connection = {LEVEL_WARN, "connection refused", LINES_PER_SECOND, 0, 0, 0};
static struct log_limit bad_request = {LEVEL_INFO, "not a request", LINES_PER_SECOND, 0, 0, 0};
static struct log_limit slow_turn = {LEVEL_WARN, "slow turn", LINES_PER_SECOND, 0, 0, 0};

void journal_listening(const struct server *server, struct span url)
{
	const struct options *options = server->options;
	uint32_t tasks = 0;

	for (int i = TASK_NOWHERE + 1; i < TASK_STATE_COUNT; i++)
		if (!task_state_is_final((enum task_state)i))
			tasks += store_count(server->store, (enum task_state)i);
	log_info("listening", log_span("url", url), log_cstr("home", options->home),
		log_cstr("store", options->store), log_cstr("version", STINT_VERSION),
		log_int("generation", store_generation(server->store)),
		log_int("starts", (int64_t)store_starts(server->store)), log_int("tasks", tasks));
}

void journal_store(struct server *server)
{
	bool degraded = store_is_degraded(server->store);
	uint32_t damages = store_damages(server->store);

	char place[DAMAGE_TEXT_BYTES];
	while (server->damages_logged < damages &&
		store_damage_place(server->store, server->damages_logged, place)) {
		server->damages_logged++;
		log_error(
			"the store is damaged: what is lost is refused, the rest is served; stop the server and run stintd --check-store",
			log_cstr("store", server->options->store), log_cstr("place", place),
			log_int("damage", server->damages_logged));
	}
	server->damages_logged = damages;
	if (degraded == server->was_degraded)
		return;
	server->was_degraded = degraded;
	if (degraded)
		log_error("the store cannot be written: changes are refused until there is room",
			log_cstr("store", server->options->store),
			log_cstr("reason", store_complaint(server->store)));
	else
		log_info("the store can be written again", log_cstr("store", server->options->store));
}

void journal_turn(const struct server *server, uint32_t commands, uint64_t ns)
{
	if (ns > server->options->slow_turn_ms * 1000000)
		log_limited(
			&slow_turn, log_int("ms", (int64_t)(ns / 1000000)), log_int("commands", commands));
}

static struct span path_of(const struct exchange *exchange)
{
	struct span path = exchange->request->path;

	if (!path.data) /* it waited, and has but its route */
		path = span_of(api_route_of(&exchange->call));

	return path.len <= PATH_BYTES_MAX ? path : (struct span){path.data, PATH_BYTES_MAX};
}

void journal_reply(const struct exchange *exchange)
{
	const struct api_call *call = &exchange->call;
	const struct http_request *request = exchange->request;
	int status = call->reply.status;

	if (status == 401 && (request->authorization.len > 0 || exchange->is_compact))
		log_limited(&bad_credential, log_cstr("method", http_method_name(request->method)),
			log_span("path", path_of(exchange)));
	if (api_is_admin_action(call))
		log_info("admin action", log_span("actor", call->who.name),
			log_cstr("method", http_method_name(request->method)),
			log_span("path", path_of(exchange)), log_int("status", status));
	log_debug("request", log_span("actor", call->who.name),
		log_cstr("method", http_method_name(request->method)), log_span("path", path_of(exchange)),
		log_int("status", status), log_int("us", (int64_t)(uv_hrtime() - exchange->began_ns) / 1000));
}

void journal_refused_connection(const char *reason)
{
	log_limited(&bad_connection, log_cstr("reason", reason));
}

void journal_refused_payer(struct span who, const char *reason)
{
	log_limited(&bad_connection, log_span("actor", who), log_cstr("reason", reason));
}

void journal_refused_request(const struct http_complaint *complaint)
{
	log_limited(
		&bad_request, log_int("status", complaint->status), log_cstr("reason", complaint->reason));
}

void journal_sweep(void)
{
	log_limit_settle(&bad_credential);
	log_limit_settle(&bad_connection);
	log_limit_settle(&bad_request);
	log_limit_settle(&slow_turn);
}
