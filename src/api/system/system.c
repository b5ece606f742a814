/*
 * Is it alive, is it ready, which one is it, how is it doing, what does it understand.
 */
#include "api/call.h"

#include "api/openapi_text.h"
#include <string.h>

enum {
	PLACES_MAX = 100, /* damaged places that are named */
	API_VERSION = 1,  /* rises when a client of before would misunderstand an answer */
};

void api_reply_live(struct api_call *call)
{
	call_reply(call, 200, buf_printf(call->body, "{\"status\":\"ok\"}"));
}

void system_livez_begin(struct api_call *call)
{
	api_reply_live(call);
}

#define PAGE_POLICY                                                                                     \
	"default-src 'none'; script-src 'self'; style-src 'self'; img-src 'self'; connect-src 'self'; " \
	"frame-ancestors 'none'; base-uri 'none'; form-action 'self'"

static void reply_file(struct api_call *call, const struct site_file *file)
{
	call_reply(call, 200, 0);
	call->reply.content_type = file->type;
	call->reply.encoding = file->encoding;
	call->reply.immutable = file->immutable;
	call->reply.policy = SPAN(PAGE_POLICY);
	call->reply.body = file->bytes;
}

/* A server without the dashboard: it was built where there was nothing to build the page with. No style, no script. */
static void reply_without_site(struct api_call *call)
{
	const struct api_services *host = call->host;

	int r = buf_printf(call->body,
		"<!DOCTYPE html>\n"
		"<html lang=\"en\">\n"
		"<head><meta charset=\"utf-8\"><meta name=\"viewport\" content=\"width=device-width\"><title>stint</title></head>\n"
		"<body>\n"
		"<h1>stint " STINT_VERSION " runs here</h1>\n"
		"<p>The dashboard is not part of this build: %s. The command <code>stint</code> shows the same from a terminal:</p>\n"
		"<pre>\n"
		"stint ls                      what waits, runs and failed\n"
		"stint inbox                   questions and approvals that wait for you\n"
		"stint run -- echo hello       run a command\n"
		"stint doctor                  is everything as it should be?\n"
		"</pre>\n"
		"<p>Programs talk to this address with a token (<code>Authorization: Bearer \342\200\246</code>); "
		"<code>stint token create</code> makes one, and <code>GET /api/openapi.json</code> describes every request. "
		"<a href=\"/livez\">/livez</a> and <a href=\"/readyz\">/readyz</a> need no token.</p>\n"
		"</body>\n"
		"</html>\n",
		host->no_site ? host->no_site(host->context) : "it was left out");
	call_reply(call, 200, r);
	call->reply.content_type = SPAN("text/html; charset=utf-8");
	call->reply.policy =
		SPAN("default-src 'none'; base-uri 'none'; form-action 'none'; frame-ancestors 'none'");
}

void system_page_begin(struct api_call *call)
{
	const struct api_services *host = call->host;
	struct site_file file;

	if (host->site_file && host->site_file(host->context, SPAN("index.html"), call->arena, &file))
		reply_file(call, &file);
	else
		reply_without_site(call);
}

bool system_asset_begin(struct api_call *call)
{
	static const char prefix[] = "/assets/";
	const size_t len = sizeof prefix - 1;
	const struct api_services *host = call->host;
	struct span path = call->request->path;
	struct site_file file;

	if (path.len <= len || memcmp(path.data, prefix, len) != 0 || !host->site_file ||
		!host->site_file(
			host->context, (struct span){path.data + len, path.len - len}, call->arena, &file))
		return false;
	reply_file(call, &file);
	return true;
}

/* Where it is only operators are told. */
static void put_leader_facts(struct json_object *object, const struct api_leader *facts)
{
	struct json_object leader;

	if (!json_put_key(object, "leader"))
		return;
	json_begin(&leader, object->buf);
	json_member_cstr(&leader, "name", facts->name);
	if (facts->url[0])
		json_member_cstr(&leader, "url", facts->url);
	json_member_int(&leader, "since", facts->since_ms);
	json_member_bool(&leader, "here", facts->is_here);
	json_member_int(&leader, "turn", facts->turn);
	json_member_bool(&leader, "synchronous", facts->is_synchronous);
	json_end(&leader);
}

/* Where several servers may share a store. */
static void put_leader(struct json_object *object, struct api_call *call)
{
	const struct api_services *host = call->host;
	struct api_leader facts;

	if (host->leader && host->leader(host->context, &facts))
		put_leader_facts(object, &facts);
}

/* Its end is no secret: whoever connects sees it. Only operators are told which file is wrong. */
static void put_certificate(struct json_object *object, struct api_call *call)
{
	const struct api_services *host = call->host;
	struct api_certificate facts;
	struct json_object certificate;

	if (!host->certificate || !host->certificate(host->context, &facts) ||
		!json_put_key(object, "certificate"))
		return;
	json_begin(&certificate, object->buf);
	json_member_int(&certificate, "endsAt", facts.ends_ms);
	if (facts.problem[0])
		json_member_bool(&certificate, "stale", true);
	if (facts.problem[0] && call->who.scopes & SCOPE_BIT(SCOPE_OPERATE))
		json_member_cstr(&certificate, "problem", facts.problem);
	json_end(&certificate);
}

void api_reply_standby(struct api_call *call, const struct api_leader *facts)
{
	struct json_object object;

	json_begin(&object, call->body);
	json_member_cstr(&object, "status", "standby");
	put_leader_facts(&object, facts);
	call_reply(call, 200, json_end(&object));
}

static void reply_with_leader(struct api_call *call, const char *status, bool with_certificate)
{
	struct json_object object;

	json_begin(&object, call->body);
	json_member_cstr(&object, "status", status);
	put_leader(&object, call);
	if (with_certificate)
		put_certificate(&object, call);
	call_reply(call, 200, json_end(&object));
}

/* For load balancers: 200 from the one server that leads. */
void system_leader_read(struct api_call *call)
{
	const struct api_services *host = call->host;

	if (host->is_draining(host->context))
		api_refuse(call, REFUSED_UNAVAILABLE, "The server is stopping.");
	else
		reply_with_leader(call, "leader", false);
}

static void reply_damaged(struct api_call *call)
{
	struct span places[PLACES_MAX];
	char(*texts)[DAMAGE_TEXT_BYTES] = arena_alloc(call->arena, PLACES_MAX * sizeof *texts);
	uint32_t count = 0;
	struct json_object object;

	json_begin(&object, call->body);
	json_member_cstr(&object, "status", "ready");
	put_leader(&object, call);
	put_certificate(&object, call);
	json_member_int(&object, "damage", store_damages(call->store));
	if (texts && call->who.scopes & SCOPE_BIT(SCOPE_OPERATE) && json_put_key(&object, "places")) {
		while (count < PLACES_MAX && store_damage_place(call->store, count, texts[count])) {
			places[count] = span_of(texts[count]);
			count++;
		}
		json_put_strings(call->body, places, count);
	}
	call_reply(call, 200, json_end(&object));
}

void system_readyz_read(struct api_call *call)
{
	const struct api_services *host = call->host;

	if (store_is_degraded(call->store))
		api_refuse(call, REFUSED_UNAVAILABLE,
			"The store cannot be written: changes are refused, reads go on.");
	else if (host->is_draining(host->context))
		api_refuse(call, REFUSED_UNAVAILABLE, "The server is stopping.");
	else if (store_damages(call->store) > 0)
		reply_damaged(call);
	else
		reply_with_leader(call, "ready", true);
}

int api_put_finding(
	struct buf *out, const char *file, const char *table, int64_t row, const char *key, const char *what)
{
	struct json_object object;

	json_begin(&object, out);
	json_member_string(&object, "file", span_of(file));
	if (table)
		json_member_string(&object, "table", span_of(table));
	if (row != 0)
		json_member_int(&object, "row", row);
	if (key && *key)
		json_member_string(&object, "key", span_of(key));
	json_member_string(&object, "what", span_of(what));
	return json_end(&object);
}

void system_version_read(struct api_call *call)
{
	const struct api_services *host = call->host;
	struct json_object object;

	if (!query_read(call, NULL, 0))
		return;
	json_begin(&object, call->body);
	json_member_cstr(&object, "name", "stint");
	json_member_cstr(&object, "version", STINT_VERSION);
	json_member_int(&object, "api", API_VERSION);
	if (host->about) {
		struct about about = host->about(host->context);
		json_member_cstr(&object, "store", about.store);
		json_member_int(&object, "schema", about.schema);
		json_member_int(&object, "generation", about.generation);
		json_member_int(&object, "starts", (int64_t)about.starts);
		json_member_int(&object, "startedAt", about.started_ms);
		json_member_int(&object, "uptimeMs", about.up_ms);
		json_member_int(&object, "now", call->now.wall_ms);
		json_member_bool(&object, "armed", about.armed);
	}
	call_reply(call, 200, json_end(&object));
}

void system_config_read(struct api_call *call)
{
	const struct api_services *host = call->host;

	if (!query_read(call, NULL, 0))
		return;
	if (!host->put_config) {
		api_refuse(call, REFUSED_NOT_FOUND, NULL);
		return;
	}
	call_reply(call, 200, host->put_config(host->context, call->body));
}

/* A client that can read OpenMetrics says so in Accept, and gets it. */
static bool accepts_open_metrics(struct span accept)
{
	static const char type[] = "application/openmetrics-text";

	return memmem(accept.data ? accept.data : "", accept.len, type, sizeof type - 1) != NULL;
}

/* The contract as it stood when this server was built: openapi.S has it in the program. */
extern const char openapi_json[], openapi_json_end[];

void system_openapi_begin(struct api_call *call)
{
	struct span known = call->request->if_none_match, etag = SPAN(OPENAPI_ETAG);
	bool is_same = known.len > 0 &&
		(span_equal(known, SPAN("*")) || memmem(known.data, known.len, etag.data, etag.len));

	call_reply(call, is_same ? 304 : 200, 0);
	call->reply.etag = etag;
	call->reply.revalidate = true;
	if (is_same)
		call->reply.content_type = (struct span){0};
	else
		call->reply.body = (struct span){openapi_json, (size_t)(openapi_json_end - openapi_json)};
}

void api_reply_metrics(struct api_call *call)
{
	const struct api_services *host = call->host;

	if (!host->put_metrics) {
		api_refuse(call, REFUSED_NOT_FOUND, NULL);
		return;
	}
	bool open = accepts_open_metrics(call->request->accept);
	int r = host->put_metrics(host->context, open, call->body);
	call_reply(call, 200, r);
	if (r == 0)
		call->reply.content_type = open
			? SPAN("application/openmetrics-text; version=1.0.0; charset=utf-8")
			: SPAN("text/plain; version=0.0.4; charset=utf-8");
}

void system_metrics_read(struct api_call *call)
{
	api_reply_metrics(call);
}
