/*
 * Prints every route: verb, path, scopes that will do, bytes of the body. tests/e2e/test_tokens.py asks for each of them with every
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
	[SCOPE_CLAIM] = "claim",
	[SCOPE_OPERATE] = "operate",
	[SCOPE_APPROVE] = "approve",
	[SCOPE_GATE] = "gate",
	[SCOPE_EMIT] = "emit",
	[SCOPE_ADMIN] = "admin",
	[SCOPE_METRICS] = "metrics",
};

int main(void)
{
	for (uint32_t i = 0; i < route_count; i++) {
		printf("%s %s ", http_method_name(routes[i].method), routes[i].pattern);
		for (int scope = SCOPE_PUBLIC, any = 0; scope < SCOPE_COUNT; scope++) {
			if (routes[i].scopes & SCOPE_BIT(scope))
				printf("%s%s", any++ ? "|" : "", scopes[scope]);
		}
		printf(" %zu\n", routes[i].body_bytes_max);
	}
	return 0;
}
