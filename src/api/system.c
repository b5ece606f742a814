/*
 * Is it alive, is it ready, which one is it, how is it doing.
 */
#include "api/call.h"

void system_livez_begin(struct api_call *call)
{
	call_reply(call, 200, buf_printf(call->body, "{\"status\":\"ok\"}"));
}

void system_readyz_read(struct api_call *call)
{
	const struct api_reads *reads = call->reads;

	if (reads->is_degraded(reads->context))
		api_refuse(call, REFUSED_UNAVAILABLE,
			"The store cannot be written: changes are refused, reads go on.");
	else if (reads->is_draining(reads->context))
		api_refuse(call, REFUSED_UNAVAILABLE, "The server is stopping.");
	else
		call_reply(call, 200, buf_printf(call->body, "{\"status\":\"ready\"}"));
}

void system_version_begin(struct api_call *call)
{
	call_reply(
		call, 200, buf_printf(call->body, "{\"name\":\"stint\",\"version\":\"%s\"}", STINT_VERSION));
}

void system_metrics_read(struct api_call *call)
{
	const struct api_reads *reads = call->reads;

	if (!reads->put_metrics) {
		api_refuse(call, REFUSED_NOT_FOUND, NULL);
		return;
	}
	int r = reads->put_metrics(reads->context, call->body);
	call_reply(call, 200, r);
	if (r == 0)
		call->reply.content_type = SPAN("text/plain; version=0.0.4; charset=utf-8");
}
