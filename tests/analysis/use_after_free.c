/* Planted: the list is read after it was given back. `tools/analyze --self-test` expects that this is found. */
#include <stdlib.h>

struct node {
	struct node *next;
};

void nodes_free(struct node *first);

void nodes_free(struct node *first)
{
	for (struct node *node = first; node; node = node->next)
		free(node);
}
