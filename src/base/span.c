#include "base/span.h"

int span_compare(struct span a, struct span b)
{
	size_t common = a.len < b.len ? a.len : b.len;
	int order = common ? memcmp(a.data, b.data, common) : 0;

	if (order != 0)
		return order;
	return (a.len > b.len) - (a.len < b.len);
}
