#include "base/treap.h"

#include <assert.h>

#include "base/hash.h"

static struct treap_links *links(const struct treap *treap, uint32_t number)
{
	return treap->links(treap->context, number);
}

/* A parent has a higher rank than its children: mixed numbers keep the tree flat whatever order they come in. */
static uint64_t rank(uint32_t number)
{
	return hash_u64(number);
}

/* Everything before `number` to the left, everything behind it to the right. */
static void split(const struct treap *treap, uint32_t root, uint32_t number, uint32_t *left, uint32_t *right)
{
	while (root != TREAP_NONE) {
		struct treap_links *at = links(treap, root);
		if (treap->order(treap->context, root, number) < 0) {
			*left = root;
			left = &at->right;
			root = at->right;
		} else {
			*right = root;
			right = &at->left;
			root = at->left;
		}
	}
	*left = TREAP_NONE;
	*right = TREAP_NONE;
}

void treap_insert(const struct treap *treap, uint32_t *root, uint32_t number)
{
	struct treap_links *fresh = links(treap, number);

	while (*root != TREAP_NONE && rank(*root) > rank(number)) {
		struct treap_links *at = links(treap, *root);
		root = treap->order(treap->context, number, *root) < 0 ? &at->left : &at->right;
	}
	split(treap, *root, number, &fresh->left, &fresh->right);
	*root = number;
}

void treap_remove(const struct treap *treap, uint32_t *root, uint32_t number)
{
	while (*root != number) {
		assert(*root != TREAP_NONE); /* it is in the tree */
		struct treap_links *at = links(treap, *root);
		root = treap->order(treap->context, number, *root) < 0 ? &at->left : &at->right;
	}
	uint32_t left = links(treap, number)->left, right = links(treap, number)->right;
	while (left != TREAP_NONE && right != TREAP_NONE) {
		if (rank(left) > rank(right)) {
			*root = left;
			root = &links(treap, left)->right;
			left = *root;
		} else {
			*root = right;
			root = &links(treap, right)->left;
			right = *root;
		}
	}
	*root = left != TREAP_NONE ? left : right;
}

uint32_t treap_first(const struct treap *treap, uint32_t root)
{
	uint32_t first = TREAP_NONE;

	for (; root != TREAP_NONE; root = links(treap, root)->left)
		first = root;
	return first;
}

uint32_t treap_after(const struct treap *treap, uint32_t root, uint32_t number)
{
	uint32_t after = TREAP_NONE;

	while (root != TREAP_NONE) {
		if (treap->order(treap->context, number, root) < 0) {
			after = root;
			root = links(treap, root)->left;
		} else {
			root = links(treap, root)->right;
		}
	}
	return after;
}
