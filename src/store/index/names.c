#include "store/index/names.h"

#include <assert.h>
#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "base/buf.h"

struct name {
	char *text;
	uint32_t len;
	uint32_t principal;
};

struct name_tally {
	uint32_t principal;
	uint32_t count;
};

static const char set_separator = '\x1f';

static uint64_t hash_of(void *context, uint32_t place)
{
	const struct names *names = context;
	const struct name *name = &names->items[place];

	return hash_bytes(&names->key, name->text, name->len);
}

static const struct map_ops map_ops = {.hash_of = hash_of};

static uint64_t principal_hash(void *context, uint32_t place)
{
	const struct names *names = context;

	return hash_u64(names->tallies[place].principal);
}

static const struct map_ops principal_ops = {.hash_of = principal_hash};

void names_init(struct names *names, struct hash_key key)
{
	*names = (struct names){.key = key};
	map_init(&names->by_text, &map_ops, names);
	map_init(&names->by_principal, &principal_ops, names);
}

void names_done(struct names *names)
{
	for (uint32_t i = 0; i < names->count; i++)
		free(names->items[i].text);
	free(names->items);
	free(names->tallies);
	map_done(&names->by_text);
	map_done(&names->by_principal);
	*names = (struct names){0};
}

uint32_t names_find(const struct names *names, struct span text)
{
	struct map_probe probe;

	if (text.len == 0)
		return 0;
	uint64_t hash = hash_bytes(&names->key, text.data, text.len);
	for (uint32_t place = map_first(&names->by_text, hash, &probe); place != MAP_NONE;
		place = map_next(&names->by_text, &probe)) {
		const struct name *name = &names->items[place];
		if (name->len == text.len && memcmp(name->text, text.data, text.len) == 0)
			return place + 1;
	}
	return 0;
}

static struct name_tally *find_tally(const struct names *names, uint32_t principal)
{
	struct map_probe probe;
	uint32_t place = map_first(&names->by_principal, hash_u64(principal), &probe);

	while (place != MAP_NONE && names->tallies[place].principal != principal)
		place = map_next(&names->by_principal, &probe);
	return place == MAP_NONE ? NULL : &names->tallies[place];
}

/* The tally of a principal, a new one at 0 if it has none. NULL: no memory. */
static struct name_tally *make_tally(struct names *names, uint32_t principal)
{
	struct name_tally *found = find_tally(names, principal);

	if (found)
		return found;
	if (names->tally_count == names->tally_cap) {
		uint32_t cap = names->tally_cap ? names->tally_cap * 2 : 16;
		struct name_tally *tallies = realloc(names->tallies, cap * sizeof *tallies);
		if (!tallies)
			return NULL;
		names->tallies = tallies;
		names->tally_cap = cap;
	}
	names->tallies[names->tally_count] = (struct name_tally){.principal = principal};
	if (map_insert(&names->by_principal, hash_u64(principal), names->tally_count) < 0)
		return NULL;
	return &names->tallies[names->tally_count++];
}

static int grow(struct names *names)
{
	if (names->count < names->cap)
		return 0;
	uint32_t cap = names->cap ? names->cap * 2 : 64;
	struct name *items = realloc(names->items, cap * sizeof *items);
	if (!items)
		return -ENOMEM;
	names->items = items;
	names->cap = cap;
	return 0;
}

static int append(struct names *names, struct span text, uint32_t principal, uint32_t *ret_id)
{
	struct name_tally *tally = make_tally(names, principal);
	int r = tally ? grow(names) : -ENOMEM;
	if (r < 0)
		return r;
	char *copy = malloc(text.len + 1);
	if (!copy)
		return -ENOMEM;
	memcpy(copy, text.data, text.len);
	copy[text.len] = 0;
	assert(names->count < names->cap);
	names->items[names->count] = (struct name){copy, (uint32_t)text.len, principal};
	r = map_insert(&names->by_text, hash_bytes(&names->key, text.data, text.len), names->count);
	if (r < 0) {
		free(copy);
		return r;
	}
	tally->count++;
	*ret_id = ++names->count;
	return 0;
}

int names_add(struct names *names, struct span text, uint32_t principal, uint32_t *ret_id)
{
	*ret_id = names_find(names, text);
	if (*ret_id != 0 || text.len == 0)
		return 0;
	if (names->count >= NAMES_MAX)
		return -E2BIG;
	return append(names, text, principal, ret_id);
}

static bool is_set(struct span text)
{
	return text.len > 0 && text.data[0] == set_separator;
}

/* The next member of the text of a set; false: no more members. */
static bool next_member(struct span *text, struct span *ret_member)
{
	if (text->len == 0)
		return false;
	const char *begin = text->data + 1, *end = text->data + text->len;
	const char *at = memchr(begin, set_separator, (size_t)(end - begin));
	if (!at)
		at = end;
	*ret_member = (struct span){begin, (size_t)(at - begin)};
	*text = (struct span){at, (size_t)(end - at)};
	return true;
}

/* Is it a text that we would have written after the names loaded so far? */
static bool may_follow(const struct names *names, struct span text)
{
	struct span rest = text, member;
	uint32_t count = 0;

	if (text.len == 0 || names_find(names, text) != 0)
		return false;
	if (!is_set(text))
		return !memchr(text.data, set_separator, text.len);
	while (next_member(&rest, &member)) {
		if (++count > NAME_SET_MAX || names_find(names, member) == 0)
			return false;
	}
	return true;
}

int names_load(struct names *names, uint32_t id, struct span text, uint32_t principal)
{
	uint32_t appended;

	if (id != names->count + 1 || !may_follow(names, text))
		return -EPROTO;
	int r = append(names, text, principal, &appended);
	if (r == 0)
		names->committed = names->count;
	return r;
}

struct span names_text(const struct names *names, uint32_t id)
{
	if (id == 0)
		return (struct span){0};
	assert(id <= names->count);
	return (struct span){names->items[id - 1].text, names->items[id - 1].len};
}

bool names_have(const struct names *names, uint32_t id)
{
	return id == 0 || (id <= names->count && !is_set(names_text(names, id)));
}

bool names_have_set(const struct names *names, uint32_t id)
{
	return id == 0 || (id <= names->count && is_set(names_text(names, id)));
}

uint32_t names_principal(const struct names *names, uint32_t id)
{
	assert(id > 0);
	assert(id <= names->count);
	return names->items[id - 1].principal;
}

uint32_t names_of_principal(const struct names *names, uint32_t principal)
{
	const struct name_tally *tally = find_tally(names, principal);

	return tally ? tally->count : 0;
}

static int compare_spans(const void *a, const void *b)
{
	return span_compare(*(const struct span *)a, *(const struct span *)b);
}

int names_set_text(struct name_list members, struct buf *text)
{
	struct span sorted[NAME_SET_MAX];

	assert(members.count <= NAME_SET_MAX);
	if (members.count == 0)
		return 0;
	memcpy(sorted, members.items, members.count * sizeof *sorted);
	qsort(sorted, members.count, sizeof *sorted, compare_spans);
	for (uint32_t i = 0; i < members.count; i++) {
		if (i > 0 && span_equal(sorted[i], sorted[i - 1]))
			continue;
		assert(sorted[i].len > 0);
		assert(!memchr(sorted[i].data, set_separator, sorted[i].len));
		int r = buf_put(text, &set_separator, 1);
		if (r == 0)
			r = buf_put_span(text, sorted[i]);
		if (r < 0)
			return r;
	}
	return 0;
}

static int compare_ids(const void *a, const void *b)
{
	uint32_t left = *(const uint32_t *)a, right = *(const uint32_t *)b;

	return left < right ? -1 : left > right;
}

void names_set_members(const struct names *names, uint32_t set, struct name_set *ret_set)
{
	struct span rest = names_text(names, set), member; /* the empty set has no text */

	assert(rest.len == 0 || is_set(rest)); /* the number of a plain name is never taken for a set */
	ret_set->count = 0;
	while (next_member(&rest, &member)) {
		uint32_t id = names_find(names, member);
		assert(id != 0); /* members are added, and loaded, before their set */
		assert(ret_set->count < NAME_SET_MAX);
		ret_set->ids[ret_set->count++] = id;
	}
	if (ret_set->count > 1)
		qsort(ret_set->ids, ret_set->count, sizeof *ret_set->ids, compare_ids);
}

void names_resolve(const struct names *names, struct name_list list, struct name_set *ret_set)
{
	assert(list.count <= NAME_SET_MAX);
	ret_set->count = 0;
	for (uint32_t i = 0; i < list.count; i++) {
		uint32_t id = names_find(names, list.items[i]);
		if (id != 0)
			ret_set->ids[ret_set->count++] = id;
	}
	if (ret_set->count > 1)
		qsort(ret_set->ids, ret_set->count, sizeof *ret_set->ids, compare_ids);
}

bool name_set_contains(const struct name_set *set, uint32_t id)
{
	for (uint32_t i = 0; i < set->count; i++) {
		if (set->ids[i] == id)
			return true;
	}
	return false;
}

bool name_set_covers(const struct name_set *set, const struct name_set *needed)
{
	for (uint32_t i = 0; i < needed->count; i++) {
		if (!name_set_contains(set, needed->ids[i]))
			return false;
	}
	return true;
}

void names_commit(struct names *names)
{
	assert(names->committed <= names->count); /* a committed name is for ever */
	names->committed = names->count;
}

void names_forget(struct names *names)
{
	names_rewind(names, names->committed);
}

void names_rewind(struct names *names, uint32_t count)
{
	assert(count >= names->committed);
	while (names->count > count) {
		uint32_t place = names->count - 1;
		struct name *name = &names->items[place];
		map_remove(&names->by_text, hash_bytes(&names->key, name->text, name->len), place);
		struct name_tally *tally = find_tally(names, name->principal);
		assert(tally); /* who brought a name in is counted */
		assert(tally->count > 0);
		tally->count--;
		free(name->text);
		names->count--;
	}
}
