/*
 * The tokens of a store in memory, in order of id: looked up with every request.
 */
#pragma once

#include "core/worker/token.h"

struct tokens {
	struct token **items;
	uint32_t count, cap;
	uint32_t unsettled; /* whose row does not say yet that the secret before has ended */
	uint64_t
		changes; /* rises when a token is added, replaced or dropped: pointers found before are invalid */
};

/* A copy in one piece with its texts, to be free()d; NULL: no memory. */
struct token *token_copy(const struct token *token);

void tokens_done(struct tokens *tokens);

/* Has the principal a live token, or is it the admin? Any other principal counts as gone, so that the names it used can be
 * taken by others. */
bool tokens_have_live(const struct tokens *tokens, uint32_t principal, int64_t wall_ms);

/* NULL: no such token. Valid until the next turn. */
const struct token *tokens_find(const struct tokens *tokens, struct span id);

/* The same, to be filled in. */
struct token *tokens_at(const struct tokens *tokens, struct span id);

/* The new secret of a renewed token was used: the one before is not valid any more. The row says so after the next sweep. */
void tokens_settle(struct tokens *tokens, struct span id);

/* Room for so many more; -ENOMEM. */
int tokens_reserve(struct tokens *tokens, uint32_t more);

/* Takes a copy over, for which there is room; it replaces the one of its id. */
void tokens_set(struct tokens *tokens, struct token *token);

void tokens_drop(struct tokens *tokens, struct span id);
