/*
 * Comparing borrowed bytes. The length is looked at before memcmp is called:
 * an empty span may have no address, and memcmp wants one even for 0 bytes.
 */
#include "base/span.h"

bool span_equal(struct span a, struct span b)
{
	if (a.len != b.len)
		return false;
	return a.len == 0 || memcmp(a.data, b.data, a.len) == 0;
}

int span_compare(struct span a, struct span b)
{
	size_t common = a.len < b.len ? a.len : b.len;
	int order = common ? memcmp(a.data, b.data, common) : 0;

	if (order != 0)
		return order;
	return (a.len > b.len) - (a.len < b.len);
}
