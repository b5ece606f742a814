#include "checker/names.h"

#include <assert.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

void *ck_must_realloc(void *old, size_t count, size_t size)
{
	void *memory = reallocarray(old, count, size);

	if (!memory) {
		fputs("checker: out of memory\n", stderr);
		abort();
	}
	return memory;
}

void ck_names_init(struct names *names)
{
	*names = (struct names){0};
}

void ck_names_done(struct names *names)
{
	for (uint32_t i = 0; i < names->count; i++)
		free(names->texts[i]);
	free(names->texts);
	free(names->slots);
}

static uint32_t hash_of(const char *text, size_t len)
{
	uint64_t hash = 0xcbf29ce484222325u;

	for (size_t i = 0; i < len; i++)
		hash = (hash ^ (unsigned char)text[i]) * 0x100000001b3u;
	return (uint32_t)(hash ^ (hash >> 32));
}

/* Where that text stands, or the free place where it would. */
static uint32_t *slot_of(const struct names *names, const char *text, size_t len)
{
	uint32_t mask = names->slot_count - 1;

	for (uint32_t at = hash_of(text, len) & mask;; at = (at + 1) & mask) {
		uint32_t *slot = &names->slots[at];
		if (*slot == 0)
			return slot;
		const char *known = names->texts[*slot - 1];
		if (strncmp(known, text, len) == 0 && known[len] == '\0')
			return slot;
	}
}

static void grow(struct names *names)
{
	names->slot_count = names->slot_count ? names->slot_count * 2 : 256;
	names->room = names->slot_count / 2;
	names->texts = ck_must_realloc(names->texts, names->room, sizeof *names->texts);
	names->slots = ck_must_realloc(names->slots, names->slot_count, sizeof *names->slots);
	memset(names->slots, 0, names->slot_count * sizeof *names->slots);
	for (uint32_t i = 0; i < names->count; i++)
		*slot_of(names, names->texts[i], strlen(names->texts[i])) = i + 1;
}

uint32_t ck_names_find(const struct names *names, const char *text, size_t len)
{
	if (names->slot_count == 0)
		return NAME_ABSENT;
	uint32_t slot = *slot_of(names, text, len);
	return slot == 0 ? NAME_ABSENT : slot - 1;
}

uint32_t ck_names_number(struct names *names, const char *text, size_t len)
{
	uint32_t number = ck_names_find(names, text, len);

	if (number != NAME_ABSENT)
		return number;
	if (names->count == names->room)
		grow(names);
	char *copy = ck_must_realloc(NULL, len + 1, 1);
	memcpy(copy, text, len);
	copy[len] = '\0';
	number = names->count++;
	names->texts[number] = copy;
	*slot_of(names, text, len) = number + 1;
	return number;
}

const char *ck_names_text(const struct names *names, uint32_t number)
{
	assert(number < names->count);
	return names->texts[number];
}
