#include "exec/search.h"

#include <string.h>

#include "exec/request/confine.h"

/* FNV-1a: two that meet in one place only forget each other. */
static uint64_t mix(uint64_t hash, const char *text)
{
	for (; *text; text++)
		hash = (hash ^ (unsigned char)*text) * 0x100000001b3;
	return (hash ^ 0xff) * 0x100000001b3;
}

static const char *find_path(const char *const *env)
{
	while (*env && strncmp(*env, "PATH=", 5) != 0)
		env++;
	return *env ? *env + 5 : "";
}

/* By name: `dir` is `len` bytes of PATH. */
static bool is_of_system(const char *dir, size_t len)
{
	if (memmem(dir, len, "..", 2))
		return false;
	for (size_t i = 0; i < grants_system_count; i++) {
		const char *path = grants_system[i].path;
		size_t path_len = strlen(path);

		if (len >= path_len && memcmp(dir, path, path_len) == 0 &&
			(len == path_len || dir[path_len] == '/'))
			return true;
	}
	return false;
}

uint32_t search_common(const char *const *env)
{
	const char *at = find_path(env);
	uint32_t count = 0;

	for (;; count++) {
		size_t len = strcspn(at, ":");

		if (!is_of_system(at, len) || at[len] == '\0')
			return count;
		at += len + 1;
	}
}

uint64_t search_key(const char *program, const char *const *env)
{
	uint64_t key = mix(0xcbf29ce484222325, program);

	if (strchr(program, '/'))
		return 0;
	key = mix(key, find_path(env));
	return key ? key : 1;
}

uint32_t search_index(const struct searches *searches, uint64_t key, int64_t now_ms)
{
	size_t at = key % SEARCHES_MAX;

	return key && searches->known[at].key == key && now_ms < searches->known[at].until_ms
		? searches->known[at].index
		: 0;
}

void search_found(struct searches *searches, uint64_t key, uint32_t common, uint32_t index, int64_t now_ms)
{
	size_t at = key % SEARCHES_MAX;

	/* One that was found where it was expected is not kept any longer for it: somebody may have put one before it. */
	if (key == 0 || index > common || search_index(searches, key, now_ms) == index)
		return;
	searches->known[at].key = key;
	searches->known[at].index = index;
	searches->known[at].until_ms = now_ms + SEARCH_KEPT_MS;
}
