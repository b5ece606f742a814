#include "store/record/small.h"

#include <assert.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

enum {
	LIMITS_NUMBERS = 10,
};

static struct span put_numbers(const int64_t *numbers, uint32_t count, char text[SMALL_BYTES_MAX])
{
	size_t len = 0;

	assert(count <= SMALL_NUMBERS_MAX);
	for (uint32_t i = 0; i < count; i++) {
		const char *blank = i > 0 ? " " : "";
		int put = numbers[i] == INT64_MIN
			? snprintf(text + len, SMALL_BYTES_MAX - len, "%s-", blank)
			: snprintf(text + len, SMALL_BYTES_MAX - len, "%s%lld", blank, (long long)numbers[i]);
		len += (size_t)put;
	}
	assert(len < SMALL_BYTES_MAX); /* there is room for the longest numbers */
	return (struct span){text, len};
}

/* So many numbers and nothing else. */
static bool read_numbers(struct span data, int64_t *ret_numbers, uint32_t count)
{
	char text[SMALL_BYTES_MAX], *at = text;

	if (data.len == 0 || data.len >= sizeof text || memchr(data.data, 0, data.len))
		return false;
	memcpy(text, data.data, data.len);
	text[data.len] = 0;
	for (uint32_t i = 0; i < count; i++) {
		char *end = at;
		if (i > 0 && *at++ != ' ')
			return false;
		bool none = at[0] == '-' && (at[1] == ' ' || at[1] == 0);
		ret_numbers[i] = none ? INT64_MIN : strtoll(at, &end, 10);
		if (!none && end == at)
			return false;
		at = none ? at + 1 : end;
	}
	return *at == 0;
}

struct span small_queue_put(enum queue_state state, char text[SMALL_BYTES_MAX])
{
	return put_numbers(&(int64_t){state}, 1, text);
}

bool small_queue_read(struct span data, enum queue_state *ret_state)
{
	int64_t state;

	if (!read_numbers(data, &state, 1) || state < QUEUE_OPEN || state > QUEUE_DRAINING)
		return false;
	*ret_state = (enum queue_state)state;
	return true;
}

/* Newer numbers stand behind the older ones: a row of an older server has fewer. */
struct span small_limits_put(const struct queue_limits *limits, char text[SMALL_BYTES_MAX])
{
	const int64_t numbers[LIMITS_NUMBERS] = {limits->concurrency, limits->per_key, limits->sequential,
		limits->rate.count, limits->rate.per_ms, limits->rate.burst, limits->rate.per_key,
		limits->review, limits->fair, limits->max_open};
	uint32_t count = LIMITS_NUMBERS;

	while (count > 1 && numbers[count - 1] == 0)
		count--;
	return put_numbers(numbers, count, text);
}

static bool fits_u32(int64_t number)
{
	return number >= 0 && number <= UINT32_MAX;
}

bool small_limits_read(struct span data, struct queue_limits *ret_limits)
{
	int64_t numbers[LIMITS_NUMBERS] = {0};
	uint32_t count = 1;

	while (count <= LIMITS_NUMBERS && !read_numbers(data, numbers, count))
		count++;
	if (count > LIMITS_NUMBERS)
		return false;
	for (uint32_t i = count; i < LIMITS_NUMBERS; i++)
		numbers[i] = 0;
	if (!fits_u32(numbers[0]) || !fits_u32(numbers[1]) || numbers[2] < 0 || numbers[2] > 1 ||
		!fits_u32(numbers[3]) || !fits_u32(numbers[5]) || numbers[6] < 0 || numbers[6] > 1 ||
		!fits_u32(numbers[7]) || numbers[8] < 0 || numbers[8] > 1 || !fits_u32(numbers[9]))
		return false;
	*ret_limits = (struct queue_limits){.concurrency = (uint32_t)numbers[0],
		.per_key = (uint32_t)numbers[1],
		.sequential = numbers[2] == 1,
		.rate = {.count = (uint32_t)numbers[3],
			.per_ms = numbers[4],
			.burst = (uint32_t)numbers[5],
			.per_key = numbers[6] == 1},
		.review = (uint32_t)numbers[7],
		.fair = numbers[8] == 1,
		.max_open = (uint32_t)numbers[9]};
	return limits_are_sound(ret_limits) && !limits_are_none(ret_limits);
}

struct span small_cap_put(uint32_t most, char text[SMALL_BYTES_MAX])
{
	return put_numbers(&(int64_t){most}, 1, text);
}

bool small_cap_read(struct span data, uint32_t *ret_most)
{
	int64_t most;

	if (!read_numbers(data, &most, 1) || most < 1 || most > LIMIT_MAX)
		return false;
	*ret_most = (uint32_t)most;
	return true;
}

struct span small_bucket_put(int64_t due_ns, char text[SMALL_BYTES_MAX])
{
	return put_numbers(&due_ns, 1, text);
}

bool small_bucket_read(struct span data, int64_t *ret_due_ns)
{
	return read_numbers(data, ret_due_ns, 1) && *ret_due_ns > 0;
}

struct span small_slot_put(const struct slot *slot, char text[SMALL_BYTES_MAX])
{
	int64_t numbers[SMALL_SLOT_NUMBERS] = {
		slot->state, slot->since_ms, slot->restarts, (int64_t)slot->trial_by};

	memcpy(numbers + 4, slot->crashed_ms, sizeof slot->crashed_ms);
	return put_numbers(numbers, SMALL_SLOT_NUMBERS, text);
}

bool small_slot_read(struct span data, struct slot *ret_slot)
{
	int64_t numbers[SMALL_SLOT_NUMBERS];

	if (!read_numbers(data, numbers, SMALL_SLOT_NUMBERS) || numbers[0] < SLOT_FREE_TO_RUN ||
		numbers[0] > SLOT_ON_TRIAL || numbers[2] < 0 || numbers[2] > UINT32_MAX)
		return false;
	*ret_slot = (struct slot){.state = (enum slot_state)numbers[0],
		.since_ms = numbers[1],
		.restarts = (uint32_t)numbers[2],
		.trial_by = (uint64_t)numbers[3]};
	memcpy(ret_slot->crashed_ms, numbers + 4, sizeof ret_slot->crashed_ms);
	return true;
}

static void put_hash(const unsigned char hash[TOKEN_HASH_BYTES], char text[2 * TOKEN_HASH_BYTES + 1])
{
	for (int i = 0; i < TOKEN_HASH_BYTES; i++)
		snprintf(text + 2 * i, 3, "%02x", hash[i]);
}

static bool read_hash(const char *text, unsigned char ret_hash[TOKEN_HASH_BYTES])
{
	for (int i = 0; i < TOKEN_HASH_BYTES; i++) {
		int high = hex_digit(text[2 * i]), low = high < 0 ? -1 : hex_digit(text[2 * i + 1]);
		if (low < 0)
			return false;
		ret_hash[i] = (unsigned char)(high << 4 | low);
	}
	return text[2 * TOKEN_HASH_BYTES] == 0;
}

struct span small_token_put(const struct token_more *more, char text[SMALL_BYTES_MAX])
{
	char old[2 * TOKEN_HASH_BYTES + 1];

	put_hash(more->old_hash, old);
	int len = snprintf(text, SMALL_BYTES_MAX, "%s %lld %lld %lld %s %u %u %lld",
		more->join[0] ? more->join : "-", (long long)more->lives_ms, (long long)more->renewed_ms,
		(long long)more->old_ends_ms, old, more->uses, more->used, (long long)more->used_ms);
	assert(len > 0);
	assert(len < SMALL_BYTES_MAX);
	return (struct span){text, (size_t)len};
}

bool small_token_read(struct span data, struct token_more *ret_more)
{
	char text[SMALL_BYTES_MAX], old[66];
	long long lives, renewed, old_ends, used_at;
	struct token_more more = {0};
	int end = 0;

	if (data.len == 0 || data.len >= sizeof text || memchr(data.data, 0, data.len))
		return false;
	memcpy(text, data.data, data.len);
	text[data.len] = 0;
	if (sscanf(text, "%16s %lld %lld %lld %65s %u %u %lld%n", more.join, &lives, &renewed, &old_ends, old,
		    &more.uses, &more.used, &used_at, &end) != 8 ||
		(size_t)end != data.len || !read_hash(old, more.old_hash))
		return false;
	if (strcmp(more.join, "-") == 0)
		more.join[0] = 0;
	more.lives_ms = lives;
	more.renewed_ms = renewed;
	more.old_ends_ms = old_ends;
	more.used_ms = used_at;
	*ret_more = more;
	return true;
}

struct span small_login_put(const struct browser_login *login, char text[SMALL_LOGIN_BYTES_MAX])
{
	char code[2 * TOKEN_HASH_BYTES + 1], cookie[sizeof code], key[sizeof code];

	put_hash(login->code_hash, code);
	put_hash(login->cookie_hash, cookie);
	put_hash(login->key_hash, key);
	int len =
		snprintf(text, SMALL_LOGIN_BYTES_MAX, "%d %d %u %lld %lld %lld %s %s %s %s %s", login->state,
			login->role, login->principal, (long long)login->made_ms, (long long)login->used_ms,
			(long long)login->ended_ms, code, cookie, key, login->maker, login->name);
	assert(len > 0);
	assert(len < SMALL_LOGIN_BYTES_MAX);
	return (struct span){text, (size_t)len};
}

bool small_login_read(struct span key, struct span data, struct browser_login *ret_login)
{
	char text[SMALL_LOGIN_BYTES_MAX], code[66], cookie[66], page[66];
	long long made, used, ended;
	unsigned principal;
	int state, role, name_at = 0;
	struct browser_login login = {0};

	if (data.len == 0 || data.len >= sizeof text || memchr(data.data, 0, data.len) ||
		key.len >= sizeof login.id)
		return false;
	memcpy(text, data.data, data.len);
	text[data.len] = 0;
	if (sscanf(text, "%d %d %u %lld %lld %lld %65s %65s %65s %16s %n", &state, &role, &principal, &made,
		    &used, &ended, code, cookie, page, login.maker, &name_at) != 10 ||
		name_at == 0 || data.len - (size_t)name_at >= sizeof login.name ||
		!read_hash(code, login.code_hash) || !read_hash(cookie, login.cookie_hash) ||
		!read_hash(page, login.key_hash))
		return false;
	memcpy(login.id, key.data, key.len);
	memcpy(login.name, text + name_at, data.len - (size_t)name_at);
	login.state = (enum login_state)state;
	login.role = (enum token_kind)role;
	login.principal = principal;
	login.made_ms = made;
	login.used_ms = used;
	login.ended_ms = ended;
	*ret_login = login;
	return login_is_sound(&login);
}

struct span small_hold_put(const struct hold *hold, char text[SMALL_BYTES_MAX])
{
	const int64_t numbers[SMALL_HOLD_NUMBERS] = {hold->state, hold->code, hold->in_row, hold->since_ms,
		hold->until_ms, hold->probe_task, (int64_t)hold->probe_fence, hold->next_ms};

	return put_numbers(numbers, SMALL_HOLD_NUMBERS, text);
}

bool small_hold_read(struct span data, struct hold *ret_hold)
{
	int64_t numbers[SMALL_HOLD_NUMBERS];

	if (!read_numbers(data, numbers, SMALL_HOLD_NUMBERS) || numbers[0] < HOLD_HELD ||
		numbers[0] > HOLD_RELEASING || numbers[1] < CODE_NONE || numbers[1] >= FAILURE_CODE_COUNT ||
		numbers[2] < 0 || numbers[2] > UINT32_MAX)
		return false;
	*ret_hold = (struct hold){.state = (enum hold_state)numbers[0],
		.code = (enum failure_code)numbers[1],
		.in_row = (uint32_t)numbers[2],
		.since_ms = numbers[3],
		.until_ms = numbers[4],
		.probe_task = numbers[5],
		.probe_fence = (uint64_t)numbers[6],
		.next_ms = numbers[7]};
	return hold_is_sound(ret_hold);
}

_Static_assert(GROUP_STATES + 1 == TASK_STATE_COUNT, "a row of a group counts every state");

struct span small_group_put(const struct group_state *group, char text[SMALL_BYTES_MAX])
{
	int64_t numbers[SMALL_GROUP_NUMBERS] = {
		group->number, group->principal, group->closed, group->created_ms, group->ended_ms};

	for (int i = 0; i < GROUP_STATES; i++) {
		numbers[5 + 2 * i] = group->count[i + 1];
		numbers[6 + 2 * i] = group->purged[i + 1];
	}
	return put_numbers(numbers, SMALL_GROUP_NUMBERS, text);
}

bool small_group_read(struct span data, struct group_state *ret_group)
{
	int64_t numbers[SMALL_GROUP_NUMBERS];

	if (!read_numbers(data, numbers, SMALL_GROUP_NUMBERS) || !fits_u32(numbers[0]) ||
		!fits_u32(numbers[1]) || numbers[2] < 0 || numbers[2] > 1)
		return false;
	*ret_group = (struct group_state){.number = (uint32_t)numbers[0],
		.principal = (uint32_t)numbers[1],
		.closed = numbers[2] == 1,
		.created_ms = numbers[3],
		.ended_ms = numbers[4]};
	for (int i = 0; i < GROUP_STATES; i++) {
		if (!fits_u32(numbers[5 + 2 * i]) || !fits_u32(numbers[6 + 2 * i]))
			return false;
		ret_group->count[i + 1] = (uint32_t)numbers[5 + 2 * i];
		ret_group->purged[i + 1] = (uint32_t)numbers[6 + 2 * i];
	}
	return group_is_sound(ret_group);
}

static void put_digits(const unsigned char *bytes, size_t count, char *text)
{
	static const char digits[] = "0123456789abcdef";

	for (size_t i = 0; i < count; i++) {
		text[2 * i] = digits[bytes[i] >> 4];
		text[2 * i + 1] = digits[bytes[i] & 15];
	}
}

struct span small_hash_put(const unsigned char hash[TOKEN_HASH_BYTES], char text[SMALL_BYTES_MAX])
{
	put_digits(hash, TOKEN_HASH_BYTES, text);
	return (struct span){text, (size_t)2 * TOKEN_HASH_BYTES};
}

/* Two numbers, and the secret in hexadecimal digits. */
struct span small_key_put(const struct signing_key *key, char text[SMALL_BYTES_MAX])
{
	size_t len = put_numbers((const int64_t[]){(int64_t)key->number, key->made_ms}, 2, text).len;

	text[len++] = ' ';
	put_digits(key->secret, sizeof key->secret, text + len);
	return (struct span){text, len + 2 * sizeof key->secret};
}

bool small_key_read(struct span id, struct span data, struct signing_key *ret_key)
{
	const size_t digits = 2 * sizeof ret_key->secret;
	struct signing_key key = {0};
	int64_t numbers[2];

	if (id.len == 0 || id.len >= sizeof key.id || data.len <= digits + 1)
		return false;
	const char *secret = data.data + data.len - digits;
	if (secret[-1] != ' ' || !read_numbers((struct span){data.data, data.len - digits - 1}, numbers, 2) ||
		numbers[0] < 1)
		return false;
	for (size_t i = 0; i < sizeof key.secret; i++) {
		int high = hex_digit(secret[2 * i]), low = hex_digit(secret[2 * i + 1]);
		if (high < 0 || low < 0)
			return false;
		key.secret[i] = (unsigned char)(high << 4 | low);
	}
	memcpy(key.id, id.data, id.len);
	key.number = (uint64_t)numbers[0];
	key.made_ms = numbers[1];
	*ret_key = key;
	return true;
}
