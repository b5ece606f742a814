#include "base/suggest.h"

#include <ctype.h>
#include <stdbool.h>
#include <string.h>

enum {
	WORD_MAX = 64, /* longer ones are no verbs, no flags and no keys */
};

static size_t least(size_t a, size_t b)
{
	return a < b ? a : b;
}

static bool same(char a, char b)
{
	return tolower((unsigned char)a) == tolower((unsigned char)b);
}

size_t suggest_distance(const char *a, const char *b)
{
	size_t rows[3][WORD_MAX + 1];
	size_t a_len = strlen(a), b_len = strlen(b);
	size_t *before = rows[0], *last = rows[1], *row = rows[2];

	if (a_len > WORD_MAX || b_len > WORD_MAX)
		return WORD_MAX;
	for (size_t j = 0; j <= b_len; j++)
		last[j] = j;
	for (size_t i = 1; i <= a_len; i++) {
		row[0] = i;
		for (size_t j = 1; j <= b_len; j++) {
			row[j] = last[j - 1] + !same(a[i - 1], b[j - 1]);
			row[j] = least(row[j], least(last[j], row[j - 1]) + 1);
			if (i > 1 && j > 1 && same(a[i - 1], b[j - 2]) && same(a[i - 2], b[j - 1]))
				row[j] = least(row[j], before[j - 2] + 1);
		}
		size_t *oldest = before;
		before = last;
		last = row;
		row = oldest;
	}
	return last[b_len];
}

void suggest_consider(struct suggestion *best, const char *typed, const char *candidate)
{
	size_t typed_len = strlen(typed), distance = suggest_distance(typed, candidate);
	size_t near = typed_len < 5 ? 1 : typed_len < 8 ? 2 : 3;

	/* the beginning of a word is near it, however much is missing */
	if (typed_len >= 2 && strncmp(typed, candidate, typed_len) == 0)
		distance = distance > 0 ? 1 : 0;
	if (distance > near || distance >= typed_len)
		return;
	if (!best->word || distance < best->distance)
		*best = (struct suggestion){candidate, distance};
}
