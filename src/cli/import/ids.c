#include "cli/import/ids.h"

#include <string.h>

#include "base/hash.h"

enum {
	TEXTS_BYTES_MAX = 64 << 20,
};

/* Ids come from a file of the person who imports it: a key that is not secret does. */
static uint64_t hash_text(const char *id)
{
	static const struct hash_key key = {0};

	return hash_bytes(&key, id, strlen(id));
}

static const char *text_at(const struct ids *ids, uint32_t slot)
{
	return ((const char *const *)(const void *)ids->texts.data)[slot];
}

static uint64_t hash_of(void *context, uint32_t slot)
{
	return hash_text(text_at(context, slot));
}

void ids_open(struct ids *ids)
{
	static const struct map_ops ops = {.hash_of = hash_of};

	buf_init(&ids->texts, TEXTS_BYTES_MAX);
	map_init(&ids->map, &ops, ids);
}

void ids_close(struct ids *ids)
{
	map_done(&ids->map);
	buf_done(&ids->texts);
}

void ids_add(struct ids *ids, struct cli *cli, const char *id)
{
	uint32_t slot = (uint32_t)(ids->texts.len / sizeof id);

	int r = buf_put(&ids->texts, &id, sizeof id);
	if (r == 0)
		r = map_insert(&ids->map, hash_text(id), slot);
	if (r < 0)
		cli_exit(cli, cli_fail_fault(cli, r));
}

int64_t ids_find(const struct ids *ids, const char *id)
{
	struct map_probe probe;
	uint32_t at = map_first(&ids->map, hash_text(id), &probe), found = MAP_NONE;

	for (; at != MAP_NONE; at = map_next(&ids->map, &probe)) {
		if (strcmp(text_at(ids, at), id) == 0 && (found == MAP_NONE || at < found))
			found = at;
	}
	return found == MAP_NONE ? -1 : (int64_t)found;
}
