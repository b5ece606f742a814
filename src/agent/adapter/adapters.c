#include "agent/adapter/adapter.h"

#include <ctype.h>
#include <stdlib.h>
#include <string.h>

const struct adapter *const adapters[] = {&adapter_claude, &adapter_codex, &adapter_gemini, &adapter_opencode,
	&adapter_openclaw, &adapter_acp, &adapter_custom, NULL};

const struct adapter *adapter_find(const char *name)
{
	for (size_t i = 0; adapters[i]; i++)
		if (strcmp(adapters[i]->name, name) == 0)
			return adapters[i];
	return NULL;
}

void words_add(struct adapter_words *words, const char *word)
{
	if (!word)
		return;
	if (words->count == ADAPTER_ARGV_MAX || !word[0])
		words->failed = true;
	else
		words->items[words->count++] = word;
}

void words_add_pair(struct adapter_words *words, const char *flag, const char *value)
{
	if (!value || !value[0])
		return;
	words_add(words, flag);
	words_add(words, value);
}

void words_add_all(struct adapter_words *words, const char *const *list)
{
	for (size_t i = 0; list && list[i]; i++)
		words_add(words, list[i]);
}

size_t adapter_version(struct span text, char *ret_version, size_t room)
{
	for (size_t at = 0; at < text.len; at++) {
		size_t len = 0;
		if (!isdigit((unsigned char)text.data[at]) ||
			(at > 0 && isalnum((unsigned char)text.data[at - 1])))
			continue;
		while (at + len < text.len && len + 1 < room &&
			(isalnum((unsigned char)text.data[at + len]) || text.data[at + len] == '.' ||
				text.data[at + len] == '-'))
			len++;
		if (!memchr(text.data + at, '.', len))
			continue;
		memcpy(ret_version, text.data + at, len);
		ret_version[len] = 0;
		return len;
	}
	return 0;
}

int version_compare(const char *a, const char *b)
{
	while (*a || *b) {
		char *a_end, *b_end;
		unsigned long one = strtoul(a, &a_end, 10), two = strtoul(b, &b_end, 10);
		if (one != two)
			return one < two ? -1 : 1;
		if (a_end == a && b_end == b)
			return strcmp(a, b);
		a = a_end + (*a_end == '.');
		b = b_end + (*b_end == '.');
	}
	return 0;
}

bool adapter_has_tried(const struct adapter *adapter, const char *version)
{
	return adapter->tried_from && version_compare(version, adapter->tried_from) >= 0 &&
		version_compare(version, adapter->tried_to) <= 0;
}
