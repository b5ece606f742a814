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
	[TOKEN_JOIN] = "join",
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

/* ---- machines ---- */

bool token_has_more(const struct token *token)
{
	const struct token_more *more = &token->more;

	return more->join[0] || more->lives_ms != 0 || more->renewed_ms != 0 || more->uses != 0;
}

bool token_has_old(const struct token *token, int64_t wall_ms)
{
	return token->more.old_ends_ms > wall_ms && !token->is_settled;
}

bool token_is_sound(const struct token *token)
{
	const struct token_more *more = &token->more;
	bool is_code = token->kind == TOKEN_JOIN;

	return more->lives_ms >= 0 && more->renewed_ms >= 0 && more->old_ends_ms >= 0 && more->used_ms >= 0 &&
		(more->old_ends_ms == 0 || more->renewed_ms > 0) && (more->uses > 0) == is_code &&
		more->uses <= TOKEN_USES_MAX && more->used <= more->uses &&
		(more->used_ms > 0) == (more->used > 0) && (!more->join[0] || token->kind == TOKEN_WORKER);
}

static bool is_same(const unsigned char one[TOKEN_HASH_BYTES], const unsigned char other[TOKEN_HASH_BYTES])
{
	return memcmp(one, other, TOKEN_HASH_BYTES) == 0;
}

/* The secret that was valid alone stays valid for a day. One that is replaced before it was ever used is gone at once, and does not
 * give the old one more time. */
static void keep_old(struct token *token, int64_t wall_ms)
{
	struct token_more *more = &token->more;
	int64_t ends_ms = wall_ms + TOKEN_OLD_LIVES_MS;

	memcpy(more->old_hash, token->hash, sizeof more->old_hash);
	more->old_ends_ms =
		token->expires_ms != 0 && token->expires_ms < ends_ms ? token->expires_ms : ends_ms;
}

enum token_renewal token_renew(const struct token *token, const unsigned char shown[TOKEN_HASH_BYTES],
	const unsigned char fresh[TOKEN_HASH_BYTES], int64_t wall_ms, struct token *ret_token)
{
	const struct token_more *more = &token->more;
	bool is_current = is_same(shown, token->hash);
	bool is_old = token_has_old(token, wall_ms) && is_same(shown, more->old_hash);

	if (!token_is_live(token, wall_ms) || (!is_current && !is_old))
		return RENEWAL_WRONG;
	if (more->renewed_ms != 0 && is_same(fresh, token->hash))
		return RENEWAL_REPEATED;
	if (is_same(fresh, token->hash) || (more->renewed_ms != 0 && is_same(fresh, more->old_hash)))
		return RENEWAL_SAME;
	if (more->renewed_ms != 0 && wall_ms >= more->renewed_ms &&
		wall_ms < more->renewed_ms + TOKEN_RENEW_AGAIN_MS)
		return RENEWAL_EARLY;
	*ret_token = *token;
	ret_token->is_settled = false;
	if (is_current)
		keep_old(ret_token, wall_ms);
	memcpy(ret_token->hash, fresh, TOKEN_HASH_BYTES);
	ret_token->more.renewed_ms = wall_ms;
	if (more->lives_ms > 0)
		ret_token->expires_ms = wall_ms + more->lives_ms;
	return RENEWAL_DONE;
}

enum token_enrolment token_enrol(const struct token *code, const unsigned char shown[TOKEN_HASH_BYTES],
	const struct token *there, const unsigned char fresh[TOKEN_HASH_BYTES], int64_t wall_ms,
	struct token *ret_code)
{
	if (!code || code->kind != TOKEN_JOIN || !is_same(shown, code->hash) || code->revoked_ms != 0)
		return ENROLMENT_GONE;
	if (there && span_equal(span_of(there->more.join), code->id) && is_same(there->hash, fresh) &&
		token_is_live(there, wall_ms) && wall_ms < there->created_ms + TOKEN_REPEAT_MS)
		return ENROLMENT_REPEATED;
	if (there || !token_is_live(code, wall_ms) || code->more.used >= code->more.uses)
		return ENROLMENT_GONE;
	*ret_code = *code;
	ret_code->more.used++;
	ret_code->more.used_ms = wall_ms;
	return ENROLMENT_DONE;
}
