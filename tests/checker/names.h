/*
 * Names as numbers: each different text gets the next number, beginning with 0.
 */
#pragma once

#include <stddef.h>
#include <stdint.h>

enum {
	NAME_ABSENT = UINT32_MAX,
};

struct names {
	char **texts; /* owned */
	uint32_t count;
	uint32_t room;
	uint32_t *slots; /* hash table of numbers + 1; 0 = free */
	uint32_t slot_count;
};

void ck_names_init(struct names *names);
void ck_names_done(struct names *names);

/* The number of that text, given out now if it is new. */
uint32_t ck_names_number(struct names *names, const char *text, size_t len);

/* The number of that text, or NAME_ABSENT. */
uint32_t ck_names_find(const struct names *names, const char *text, size_t len);

const char *ck_names_text(const struct names *names, uint32_t number);

/* Memory or the end: a checker that cannot remember cannot judge. */
void *ck_must_realloc(void *old, size_t count, size_t size);
