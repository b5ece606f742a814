#include "api/task/keys.h"

#include <assert.h>
#include <errno.h>
#include <string.h>

#include "base/base36.h"

enum {
	ROOM_FIRST = 64,
	CURSOR_PARTS = 3,
};

#define SIGN_BIT (UINT32_C(1) << 31) /* flipped, so that a priority is a number without a sign */

struct task_key task_key_of(const struct task_outline *outline, int64_t age_ms)
{
	if (task_state_is_final(outline->state))
		return (struct task_key){.seq = outline->seq, .final = true};
	return (struct task_key){.created_ms = task_line_ms(outline->priority, outline->created_ms, age_ms),
		.seq = outline->seq,
		.priority = age_ms != 0 ? 0 : outline->priority};
}

int task_key_order(const struct task_key *a, const struct task_key *b)
{
	if (a->final != b->final)
		return a->final ? 1 : -1;
	if (a->final)
		return a->seq > b->seq ? -1 : a->seq < b->seq;
	if (a->priority != b->priority)
		return a->priority > b->priority ? -1 : 1;
	if (a->created_ms != b->created_ms)
		return a->created_ms < b->created_ms ? -1 : 1;
	return a->seq < b->seq ? -1 : a->seq > b->seq;
}

/* ---- cursors ------------------------------------------------------------------------------------------ */

int task_key_put(struct buf *out, const struct task_key *key)
{
	char priority[BASE36_MAX], created[BASE36_MAX], seq[BASE36_MAX];

	base36_encode((uint64_t)key->seq, seq);
	if (key->final)
		return buf_printf(out, "f-%s", seq);
	bool before = key->created_ms < 0;
	base36_encode((uint32_t)key->priority ^ SIGN_BIT, priority);
	base36_encode((uint64_t)(before ? -key->created_ms : key->created_ms), created);
	return buf_printf(out, "%s-%s-%s-%s", before ? "b" : "o", priority, created, seq);
}

/* Reads exactly `count` numbers separated by dashes; otherwise -EINVAL. */
static int read_parts(struct span text, uint32_t count, uint64_t *ret_parts)
{
	for (uint32_t i = 0; i < count; i++) {
		const char *dash = i + 1 < count ? memchr(text.data, '-', text.len) : NULL;
		if (!dash && i + 1 < count)
			return -EINVAL;
		struct span part = {text.data, dash ? (size_t)(dash - text.data) : text.len};
		if (base36_decode(part, &ret_parts[i]) < 0)
			return -EINVAL;
		if (dash)
			text = (struct span){dash + 1, text.len - part.len - 1};
	}
	return 0;
}

int task_key_read(struct span text, struct task_key *ret_key)
{
	uint64_t parts[CURSOR_PARTS] = {0};

	if (text.len < 3 || !memchr("obf", text.data[0], 3) || text.data[1] != '-')
		return -EINVAL;
	bool final = text.data[0] == 'f', before = text.data[0] == 'b';
	if (read_parts((struct span){text.data + 2, text.len - 2}, final ? 1 : CURSOR_PARTS, parts) < 0)
		return -EINVAL;
	uint64_t seq = parts[final ? 0 : 2];
	if (seq == 0 || seq > INT64_MAX || (!final && (parts[0] > UINT32_MAX || parts[1] > INT64_MAX)) ||
		(before && parts[1] == 0))
		return -EINVAL;
	*ret_key = (struct task_key){.seq = (int64_t)seq, .final = final};
	if (!final) {
		ret_key->priority = (int32_t)((uint32_t)parts[0] ^ SIGN_BIT);
		ret_key->created_ms = before ? -(int64_t)parts[1] : (int64_t)parts[1];
	}
	return 0;
}

/* ---- gathering ---------------------------------------------------------------------------------------- */

void task_keys_init(struct task_keys *keys, struct arena *arena, uint32_t max)
{
	assert(max > 0);
	*keys = (struct task_keys){.arena = arena, .max = max};
}

/* What it grows out of stays in the arena: so it grows in few steps. */
static int make_room(struct task_keys *keys)
{
	uint32_t room = keys->room == 0 ? ROOM_FIRST : 4 * keys->room;

	if (keys->count < keys->room)
		return 0;
	if (room > keys->max)
		room = keys->max;
	struct task_key *items = arena_alloc(keys->arena, room * sizeof *items);
	if (!items)
		return -ENOMEM;
	if (keys->count > 0)
		memcpy(items, keys->items, keys->count * sizeof *items);
	keys->items = items;
	keys->room = room;
	return 0;
}

static void swap(struct task_key *a, struct task_key *b)
{
	struct task_key kept = *a;

	*a = *b;
	*b = kept;
}

static void sift_up(struct task_key *items, uint32_t at)
{
	while (at > 0 && task_key_order(&items[(at - 1) / 2], &items[at]) < 0) {
		swap(&items[(at - 1) / 2], &items[at]);
		at = (at - 1) / 2;
	}
}

static void sift_down(struct task_key *items, uint32_t count)
{
	uint32_t at = 0, child;

	while ((child = 2 * at + 1) < count) {
		if (child + 1 < count && task_key_order(&items[child], &items[child + 1]) < 0)
			child++;
		if (task_key_order(&items[at], &items[child]) >= 0)
			return;
		swap(&items[at], &items[child]);
		at = child;
	}
}

int task_keys_add(struct task_keys *keys, const struct task_key *key)
{
	assert(keys->heaped == keys->count);
	if (keys->count == keys->max) {
		if (task_key_order(key, &keys->items[0]) < 0) {
			keys->items[0] = *key;
			sift_down(keys->items, keys->count);
		}
		return 0;
	}
	int r = make_room(keys);
	if (r < 0)
		return r;
	keys->items[keys->count] = *key;
	sift_up(keys->items, keys->count);
	keys->heaped = ++keys->count;
	return 0;
}

bool task_keys_sort(struct task_keys *keys, uint32_t steps)
{
	for (; keys->heaped > 0 && steps > 0; steps--) {
		keys->heaped--;
		swap(&keys->items[0], &keys->items[keys->heaped]);
		sift_down(keys->items, keys->heaped);
	}
	return keys->heaped == 0;
}

int task_keys_append(struct task_keys *keys, const struct task_key *key)
{
	assert(keys->heaped == 0);
	assert(keys->count < keys->max);
	int r = make_room(keys);
	if (r == 0)
		keys->items[keys->count++] = *key;
	return r;
}

bool task_keys_have(const struct task_keys *keys, const struct task_key *key)
{
	uint32_t low = 0, high = keys->count;

	assert(keys->heaped == 0);
	while (low < high) {
		uint32_t middle = low + (high - low) / 2;
		if (task_key_order(&keys->items[middle], key) < 0)
			low = middle + 1;
		else
			high = middle;
	}
	return low < keys->count && task_key_order(&keys->items[low], key) == 0;
}
