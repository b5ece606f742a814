#include "exec/search.h"

#include <string.h>

/* FNV-1a: two that meet in one place only forget each other. */
static uint64_t mix(uint64_t hash, const char *text)
{
	for (; *text; text++)
		hash = (hash ^ (unsigned char)*text) * 0x100000001b3;
	return (hash ^ 0xff) * 0x100000001b3;
}

uint64_t search_key(const char *program, const char *const *env)
{
	uint64_t key = mix(0xcbf29ce484222325, program);

	if (strchr(program, '/'))
		return 0;
	while (*env && strncmp(*env, "PATH=", 5) != 0)
		env++;
	key = mix(key, *env ? *env : "");
	return key ? key : 1;
}

uint32_t search_index(const struct searches *searches, uint64_t key, int64_t now_ms)
{
	size_t at = key % SEARCHES_MAX;

	return key && searches->known[at].key == key && now_ms < searches->known[at].until_ms
		? searches->known[at].index
		: 0;
}

void search_found(struct searches *searches, uint64_t key, uint32_t index, int64_t now_ms)
{
	size_t at = key % SEARCHES_MAX;

	/* One that was found where it was expected is not kept any longer for it: somebody may have put one before it. */
	if (key == 0 || search_index(searches, key, now_ms) == index)
		return;
	searches->known[at].key = key;
	searches->known[at].index = index;
	searches->known[at].until_ms = now_ms + SEARCH_KEPT_MS;
}
