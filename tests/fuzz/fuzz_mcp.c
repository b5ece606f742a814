/*
 * MCP: any message gets a reply in good form, or becomes commands that the turn can take; whatever the turn says is wrapped.
 *
 *	MCP-Protocol-Version
 *	Mcp-Method
 *	Mcp-Name
 *	the message
 */
#include <assert.h>
#include <string.h>

#include "base/take.h"
#include "fuzz/api_world.h"
#include "fuzz/fuzz.h"

static struct span next_line(struct span *rest)
{
	const char *end = rest->len > 0 ? memchr(rest->data, '\n', rest->len) : NULL;
	struct span line = {rest->data, end ? (size_t)(end - rest->data) : rest->len};
	size_t taken = end ? line.len + 1 : line.len;

	*rest = (struct span){rest->data + taken, rest->len - taken};
	return line.len > 0 ? line : (struct span){0};
}

static void answer(struct api_world *world, enum refusal refusal)
{
	const struct result result = {
		.refusal = refusal,
		.task = {.seq = 2, .queue = 1, .state = TASK_READY},
		.id = SPAN("t-2"),
		.worker = {.state = WORKER_ACTIVE},
		.event_seq = 9,
	};

	assert(world->call.command_count == 1); /* a tool is one command */
	api_finish(&world->call, &result);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
	static const enum refusal refusals[] = {REFUSED_NOTHING, REFUSED_STALE_CLAIM, REFUSED_UNAVAILABLE};
	struct span rest = {size > 0 ? (const char *)data : "", size};
	struct span version = next_line(&rest), method = next_line(&rest), name = next_line(&rest);
	struct span target = version.data ? SPAN("/mcp?admin=true") : SPAN("/mcp?admin=true&transport=stdio");

	for (size_t i = 0; i < sizeof refusals / sizeof *refusals; i++) {
		cleanup(world_done) struct api_world world;
		world_init(&world);
		world.request.mcp_version = version;
		world.request.mcp_method = method;
		world.request.mcp_name = name;
		if (world_ask(&world, HTTP_METHOD_POST, target, rest) == API_TURN)
			answer(&world, refusals[i]);
		world_expect_reply(&world);
	}
	return 0;
}
