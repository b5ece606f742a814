/*
 * A treap keeps numbers in order without memory of its own: the links lie in the caller's items. Inserting and removing cost
 * the logarithm of the count and cannot fail.
 *
 * The order of two numbers must not change while both are in the tree: the caller takes a number out, changes what decides its
 * place, and puts it in again.
 */
#pragma once

#include <stdint.h>

#define TREAP_NONE UINT32_MAX

struct treap_links {
	uint32_t left, right;
};

struct treap {
	struct treap_links *(*links)(const void *context, uint32_t number);
	/* Negative: a stands before b. 0 for the same number alone. */
	int (*order)(const void *context, uint32_t a, uint32_t b);
	const void *context;
};

/* *root is TREAP_NONE for an empty tree. */
void treap_insert(const struct treap *treap, uint32_t *root, uint32_t number);

/* The number must be in the tree. */
void treap_remove(const struct treap *treap, uint32_t *root, uint32_t number);

/* The first number, and the one after `number`, which must be in the tree; TREAP_NONE: none. */
uint32_t treap_first(const struct treap *treap, uint32_t root);
uint32_t treap_after(const struct treap *treap, uint32_t root, uint32_t number);
