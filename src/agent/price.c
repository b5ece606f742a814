#include "agent/price.h"

#include <fnmatch.h>

const struct price *price_find(const struct prices *prices, const char *model)
{
	for (size_t i = 0; model && model[0] && i < prices->count; i++)
		if (fnmatch(prices->items[i].model, model, 0) == 0)
			return &prices->items[i];
	return NULL;
}

double price_of(const struct price *price, const struct session_usage *usage, bool input_has_cache)
{
	int64_t fresh = usage->input_tokens;

	if (input_has_cache)
		fresh = fresh > usage->cache_read_tokens ? fresh - usage->cache_read_tokens : 0;
	return ((double)fresh * price->input + (double)usage->output_tokens * price->output +
		       (double)usage->cache_read_tokens * price->cache_read +
		       (double)usage->cache_write_tokens * price->cache_write) /
		1e6;
}
