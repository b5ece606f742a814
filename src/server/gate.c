/*
 * Who may come in: the Host must be ours, an Origin too if there is one, and the credential is compared by its
 * hash in constant time. A page in somebody's browser gets no further than this.
 */
#include <errno.h>
#include <sodium.h>
#include <stdio.h>
#include <string.h>

#include "server/server.h"

enum caller { CALLER_UNKNOWN, CALLER_ADMIN, CALLER_TOKEN };

static void allow_host(struct gate *gate, const char *host, uint16_t port)
{
	bool bare = strchr(host, ':') != NULL;

	snprintf(gate->hosts[gate->host_count++], sizeof gate->hosts[0], bare ? "[%s]:%u" : "%s:%u", host,
		port);
}

void gate_init(struct gate *gate, const struct options *options, uint16_t port, const char *admin_token)
{
	struct span id = token_id(span_of(admin_token));

	crypto_hash_sha256(gate->admin_hash, (const unsigned char *)admin_token, strlen(admin_token));
	snprintf(gate->admin_id, sizeof gate->admin_id, "%.*s", SPAN_ARGS(id));
	randombytes_buf(gate->nobody_hash, sizeof gate->nobody_hash);
	gate->any_host = options->behind_proxy;
	allow_host(gate, "127.0.0.1", port);
	allow_host(gate, "localhost", port);
	allow_host(gate, "::1", port);
	if (strcmp(options->host, "127.0.0.1") != 0 && strcmp(options->host, "::1") != 0)
		allow_host(gate, options->host, port);
}

static bool host_is_ours(const struct gate *gate, struct span host)
{
	if (gate->any_host ||
		span_equal(host, SPAN("localhost"))) /* the latter over the socket, which has no port */
		return true;
	for (uint32_t i = 0; i < gate->host_count; i++) {
		if (span_equal(host, span_of(gate->hosts[i])))
			return true;
	}
	return false;
}

static bool origin_is_ours(const struct gate *gate, struct span origin)
{
	const size_t scheme = sizeof "http://" - 1;

	if (origin.len <= scheme || memcmp(origin.data, "http://", scheme) != 0)
		return false;
	struct span host = {origin.data + scheme, origin.len - scheme};
	for (uint32_t i = 0; i < gate->host_count; i++) {
		if (span_equal(host, span_of(gate->hosts[i])))
			return true;
	}
	return false;
}

/* Every credential, known or not, costs one look-up, one hash and two comparisons. */
static enum caller identify(
	const struct server *server, struct span authorization, const struct token **ret_token)
{
	const struct gate *gate = &server->gate;
	const size_t scheme = sizeof "Bearer " - 1;
	unsigned char hash[TOKEN_HASH_BYTES];
	struct span text = {"", 0};

	if (authorization.len > scheme && memcmp(authorization.data, "Bearer ", scheme) == 0)
		text = (struct span){authorization.data + scheme, authorization.len - scheme};
	const struct token *token = store_find_token(server->store, token_id(text));
	crypto_hash_sha256(hash, (const unsigned char *)text.data, text.len);
	bool is_admin = sodium_memcmp(hash, gate->admin_hash, sizeof hash) == 0;
	bool is_same = sodium_memcmp(hash, token ? token->hash : gate->nobody_hash, sizeof hash) == 0;
	if (is_admin)
		return CALLER_ADMIN;
	if (!token || !is_same || !token_is_live(token, clock_now().wall_ms))
		return CALLER_UNKNOWN;
	*ret_token = token;
	return CALLER_TOKEN;
}

/* The exchange may outlive the token: it gets copies. */
static int principal_from(const struct token *token, struct arena *arena, struct principal *ret_principal)
{
	const char *kind = token_kind_name(token->kind);
	size_t kind_len = strlen(kind), len = kind_len + 1 + token->name.len;
	struct span found[TOKEN_QUEUES_MAX];
	uint32_t count = token_queues(token, found);
	struct span *queues = arena_alloc(arena, (count + 1) * sizeof *queues);
	char *name = arena_alloc(arena, len);
	struct span id;

	if (!queues || !name || arena_copy(arena, token->id, &id) < 0)
		return -ENOMEM;
	memcpy(name, kind, kind_len);
	name[kind_len] = ':';
	memcpy(name + kind_len + 1, token->name.data, token->name.len);
	for (uint32_t i = 0; i < count; i++) {
		if (arena_copy(arena, found[i], &queues[i]) < 0)
			return -ENOMEM;
	}
	*ret_principal = (struct principal){
		.name = {name, len},
		.id = id,
		.number = token->principal,
		.scopes = api_scopes_of(token->kind),
		.queues = {queues, count},
	};
	return 0;
}

/* Without memory for it nobody is let in. */
static struct principal principal_of(const struct server *server, struct exchange *exchange)
{
	struct principal who = {0};
	const struct token *token = NULL;

	switch (identify(server, exchange->request.authorization, &token)) {
	case CALLER_ADMIN:
		return (struct principal){
			.name = SPAN("admin"),
			.id = SPAN("admin"),
			.number = PRINCIPAL_ADMIN,
			.scopes = api_scopes_of(TOKEN_ADMIN),
		};
	case CALLER_TOKEN:
		return principal_from(token, &exchange->arena, &who) < 0 ? (struct principal){0} : who;
	case CALLER_UNKNOWN:
		break;
	}
	return who;
}

bool gate_still_knows(const struct server *server, const struct exchange *exchange)
{
	const struct token *token;

	return identify(server, exchange->request.authorization, &token) != CALLER_UNKNOWN;
}

static bool refuse(
	struct exchange *exchange, int status, const char *code, const char *title, const char *detail)
{
	struct api_call *call = &exchange->call;

	buf_clear(&exchange->body);
	api_put_problem(&exchange->body, status, code, title, detail);
	call->step = API_REPLY;
	call->reply = (struct http_reply){
		.status = status,
		.content_type = SPAN("application/problem+json"),
		.body = buf_span(&exchange->body),
		.head = exchange->request.method == HTTP_METHOD_HEAD,
	};
	return false;
}

bool gate_pass(const struct server *server, struct exchange *exchange)
{
	const struct gate *gate = &server->gate;
	const struct http_request *request = &exchange->request;
	bool unsafe = request->method != HTTP_METHOD_GET && request->method != HTTP_METHOD_HEAD;

	if (!host_is_ours(gate, request->host))
		return refuse(exchange, 421, "wrong_host", "Not the right host",
			"the Host header names another server than this one");
	if (request->origin.data && !origin_is_ours(gate, request->origin))
		return refuse(
			exchange, 403, "forbidden", "Forbidden", "requests from that origin are not served");
	if (unsafe && span_equal(request->fetch_site, SPAN("cross-site")))
		return refuse(exchange, 403, "forbidden", "Forbidden",
			"a page of another site may change nothing here");
	exchange->call.who = principal_of(server, exchange);
	return true;
}
