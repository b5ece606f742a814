/*
 * Is it alive, is it ready, which one is it, how is it doing, what does it understand.
 */
#include "api/call.h"

#include "api/openapi_text.h"
#include <string.h>

enum {
	API_VERSION = 1, /* rises when a client of before would misunderstand an answer */
};

void system_livez_begin(struct api_call *call)
{
	call_reply(call, 200, buf_printf(call->body, "{\"status\":\"ok\"}"));
}

void system_readyz_read(struct api_call *call)
{
	const struct api_services *host = call->host;

	if (store_is_degraded(call->store))
		api_refuse(call, REFUSED_UNAVAILABLE,
			"The store cannot be written: changes are refused, reads go on.");
	else if (host->is_draining(host->context))
		api_refuse(call, REFUSED_UNAVAILABLE, "The server is stopping.");
	else
		call_reply(call, 200, buf_printf(call->body, "{\"status\":\"ready\"}"));
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
		json_member_bool(&object, "armed", about.armed);
	}
	call_reply(call, 200, json_end(&object));
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

void system_metrics_read(struct api_call *call)
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
