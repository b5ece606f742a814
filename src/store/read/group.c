/*
 * Reading groups between turns.
 */
#include <errno.h>

#include "store/turn/turn.h"

static struct group_document document_of(const struct known_group *known)
{
	return (struct group_document){known->name, &known->group};
}

int store_read_group(const struct store *store, struct span name, struct group_document *ret_document)
{
	const struct known_group *known = groups_find(&store->groups, name);

	if (!known)
		return -ENOENT;
	*ret_document = document_of(known);
	return 0;
}

int store_read_group_of_edge(const struct store *store, int64_t edge, struct group_document *ret_document)
{
	const struct known_group *known = groups_find_number(&store->groups, group_of_edge(edge));

	if (!known)
		return -ENOENT;
	*ret_document = document_of(known);
	return 0;
}

int store_page_groups(const struct store *store, struct span after, uint32_t limit, bool *ret_more,
	int (*each)(void *context, const struct group_document *document), void *context)
{
	uint32_t at = after.len > 0 ? groups_behind(&store->groups, after) : 0;
	const struct known_group *known;
	int r = 0;

	for (; r == 0 && limit > 0 && (known = groups_at(&store->groups, at)); at++, limit--) {
		struct group_document document = document_of(known);
		r = each(context, &document);
	}
	*ret_more = r == 0 && groups_at(&store->groups, at);
	return r;
}
