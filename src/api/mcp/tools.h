/*
 * The tools that an agent gets by MCP. A tool has no rule of its own: it names a route of the API, and its arguments become the
 * request to that route, which parses, permits and refuses as it does for every client.
 */
#pragma once

#include "api/call.h"

struct tool;

/* The token decides the profile. The token of a claim is a worker's: its own task and no other. Every other is an operator's. */
bool tool_is_offered(const struct tool *tool, const struct principal *who);

/* NULL: there is no such tool, or none for this caller. */
const struct tool *tool_find(struct span name, const struct principal *who);

/* The list of tools of the caller, as JSON. */
void tools_put(struct buf *out, const struct principal *who);

/* The request that the call of a tool is. `arguments` is an object, or NULL. 0: the request is complete, in the arena. -EINVAL: the
 * complaint says what is wrong with the arguments. Or a fault. */
int tool_request(const struct tool *tool, const struct api_call *call, yyjson_val *arguments,
	struct http_request *ret_request, struct buf *complaint);

/* Is the reply a question that is still open? */
bool tool_is_pending(const struct tool *tool, yyjson_val *reply);
