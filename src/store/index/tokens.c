#include "store/index/tokens.h"

#include <assert.h>
#include <errno.h>
#include <stdlib.h>
#include <string.h>

struct token *token_copy(const struct token *token)
{
	struct token *copy = malloc(sizeof *copy + token->id.len + token->name.len + token->gate.len +
		token->queues.len + token->created_by.len + token->revoked_by.len);

	if (!copy)
		return NULL;
	*copy = *token;
	char *at = (char *)(copy + 1);
	struct span *const texts[] = {
		&copy->id, &copy->name, &copy->gate, &copy->queues, &copy->created_by, &copy->revoked_by};
	for (size_t i = 0; i < sizeof texts / sizeof *texts; i++) {
		if (texts[i]->len > 0)
			memcpy(at, texts[i]->data, texts[i]->len);
		texts[i]->data = at;
		at += texts[i]->len;
	}
	return copy;
}

void tokens_done(struct tokens *tokens)
{
	for (uint32_t i = 0; i < tokens->count; i++)
		free(tokens->items[i]);
	free(tokens->items);
	*tokens = (struct tokens){0};
}

bool tokens_have_live(const struct tokens *tokens, uint32_t principal, int64_t wall_ms)
{
	bool lives = principal == PRINCIPAL_ADMIN;

	for (uint32_t i = 0; i < tokens->count && !lives; i++)
		lives = tokens->items[i]->principal == principal && token_is_live(tokens->items[i], wall_ms);
	return lives;
}

/* Where the id stands, or would stand. */
static uint32_t place_of(const struct tokens *tokens, struct span id, bool *ret_there)
{
	uint32_t low = 0, high = tokens->count;

	*ret_there = false;
	while (low < high) {
		uint32_t middle = low + (high - low) / 2;
		int order = span_compare(tokens->items[middle]->id, id);
		if (order == 0)
			*ret_there = true;
		if (order < 0)
			low = middle + 1;
		else
			high = middle;
	}
	return low;
}

struct token *tokens_at(const struct tokens *tokens, struct span id)
{
	bool there;
	uint32_t at = place_of(tokens, id, &there);

	return there ? tokens->items[at] : NULL;
}

const struct token *tokens_find(const struct tokens *tokens, struct span id)
{
	return tokens_at(tokens, id);
}

void tokens_settle(struct tokens *tokens, struct span id)
{
	struct token *token = tokens_at(tokens, id);

	if (!token || token->is_settled || token->more.old_ends_ms == 0)
		return;
	token->is_settled = true;
	tokens->unsettled++;
	tokens->changes++;
}

int tokens_reserve(struct tokens *tokens, uint32_t more)
{
	uint32_t cap = tokens->cap ? tokens->cap : 16;

	while (cap < tokens->count + more)
		cap *= 2;
	if (cap == tokens->cap)
		return 0;
	struct token **grown = realloc(tokens->items, cap * sizeof(struct token *));
	if (!grown)
		return -ENOMEM;
	tokens->items = grown;
	tokens->cap = cap;
	return 0;
}

void tokens_set(struct tokens *tokens, struct token *token)
{
	bool there;
	uint32_t at = place_of(tokens, token->id, &there);

	tokens->changes++;
	if (there) {
		tokens->unsettled -= tokens->items[at]->is_settled && !token->is_settled;
		free(tokens->items[at]);
		tokens->items[at] = token;
		return;
	}
	assert(tokens->count < tokens->cap); /* tokens_reserve() was called */
	memmove(&tokens->items[at + 1], &tokens->items[at], (tokens->count - at) * sizeof *tokens->items);
	tokens->items[at] = token;
	tokens->count++;
	/* in order of id, each once */
	assert(at == 0 || span_compare(tokens->items[at - 1]->id, token->id) < 0);
	assert(at + 1 == tokens->count || span_compare(token->id, tokens->items[at + 1]->id) < 0);
}

void tokens_drop(struct tokens *tokens, struct span id)
{
	bool there;
	uint32_t at = place_of(tokens, id, &there);

	if (!there)
		return;
	tokens->changes++;
	assert(tokens->count > 0);
	tokens->unsettled -= tokens->items[at]->is_settled;
	free(tokens->items[at]); /* `id` may have been its own: not looked at any more */
	tokens->count--;
	memmove(&tokens->items[at], &tokens->items[at + 1], (tokens->count - at) * sizeof *tokens->items);
}
