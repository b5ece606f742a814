/*
 * Prints every route: verb, path, scope, bytes of the body. tests/e2e/test_tokens.py asks for each of them with every
 * credential; tools/openapi-check compares them with the contract.
 */
#include <stdio.h>

#include "api/call.h"

static const char *const scopes[SCOPE_COUNT] = {
	[SCOPE_PUBLIC] = "public",
	[SCOPE_ANY] = "any",
	[SCOPE_READ] = "read",
	[SCOPE_PRODUCE] = "produce",
	[SCOPE_WORK] = "work",
	[SCOPE_OPERATE] = "operate",
	[SCOPE_ADMIN] = "admin",
	[SCOPE_METRICS] = "metrics",
	[SCOPE_EMIT] = "emit",
};

int main(void)
{
	for (uint32_t i = 0; i < route_count; i++)
		printf("%s %s %s %zu\n", http_method_name(routes[i].method), routes[i].pattern,
			scopes[routes[i].scope], routes[i].body_bytes_max);
	return 0;
}
