#include "core/worker/token.h"

#include <assert.h>
#include <string.h>

enum {
	QUEUE_MARK = 31, /* stands before each queue */
};

static const char *const names[TOKEN_KIND_COUNT] = {
	[TOKEN_ADMIN] = "admin",
	[TOKEN_OPERATOR] = "operator",
	[TOKEN_PRODUCER] = "producer",
	[TOKEN_WORKER] = "worker",
	[TOKEN_VIEWER] = "viewer",
	[TOKEN_METRICS] = "metrics",
	[TOKEN_APPROVER] = "approver",
	[TOKEN_GATE] = "gate",
	[TOKEN_EMIT] = "emit",
};

const char *token_kind_name(enum token_kind kind)
{
	assert(kind >= TOKEN_ADMIN);
	assert(kind < TOKEN_KIND_COUNT);
	return names[kind];
}

enum token_kind token_kind_find(struct span name)
{
	for (int kind = TOKEN_ADMIN; kind < TOKEN_KIND_COUNT; kind++) {
		if (span_equal(name, span_of(names[kind])))
			return (enum token_kind)kind;
	}
	return 0;
}

bool token_kind_has_queues(enum token_kind kind)
{
	return kind != TOKEN_ADMIN && kind != TOKEN_OPERATOR && kind != TOKEN_METRICS;
}

int64_t token_ended_ms(const struct token *token, int64_t wall_ms)
{
	if (token->revoked_ms != 0)
		return token->revoked_ms;
	return token->expires_ms != 0 && token->expires_ms <= wall_ms ? token->expires_ms : INT64_MAX;
}

bool token_is_live(const struct token *token, int64_t wall_ms)
{
	return token_ended_ms(token, wall_ms) == INT64_MAX;
}

uint32_t token_queues(const struct token *token, struct span ret_queues[TOKEN_QUEUES_MAX])
{
	const char *at = token->queues.data, *end = at + token->queues.len;
	uint32_t count = 0;

	while (token->queues.len > 0 && at < end) {
		assert(*at == QUEUE_MARK);
		assert(count < TOKEN_QUEUES_MAX);
		const char *next = memchr(at + 1, QUEUE_MARK, (size_t)(end - at - 1));
		if (!next)
			next = end;
		ret_queues[count++] = (struct span){at + 1, (size_t)(next - at - 1)};
		at = next;
	}
	return count;
}
