/*
 * Who may come in: the Host must be ours, an Origin too if there is one, and the credential is compared by its
 * hash in constant time. A page in somebody's browser gets no further than this.
 */
#include <sodium.h>
#include <stdio.h>
#include <string.h>

#include "server/server.h"

static void allow_host(struct gate *gate, const char *host, uint16_t port)
{
	bool bare = strchr(host, ':') != NULL;

	snprintf(gate->hosts[gate->host_count++], sizeof gate->hosts[0], bare ? "[%s]:%u" : "%s:%u", host,
		port);
}

void gate_init(struct gate *gate, const struct options *options, uint16_t port, const char *admin_token)
{
	crypto_hash_sha256(gate->admin_hash, (const unsigned char *)admin_token, strlen(admin_token));
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

static struct principal principal_of(const struct gate *gate, struct span authorization)
{
	const size_t scheme = sizeof "Bearer " - 1;
	unsigned char hash[32];
	struct span token = {"", 0};

	if (authorization.len > scheme && memcmp(authorization.data, "Bearer ", scheme) == 0)
		token = (struct span){authorization.data + scheme, authorization.len - scheme};
	crypto_hash_sha256(hash, (const unsigned char *)token.data, token.len);
	if (sodium_memcmp(hash, gate->admin_hash, sizeof hash) == 0)
		return (struct principal){.name = SPAN("admin"), .scopes = SCOPE_BIT(SCOPE_COUNT) - 1};
	return (struct principal){0};
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

bool gate_pass(const struct gate *gate, struct exchange *exchange)
{
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
	exchange->call.who = principal_of(gate, request->authorization);
	return true;
}
