/*
 * The keys that sign derived tokens, and the hash of the admin's token. Both are in the store, so that a worker or a child of before a
 * restart, or of another server on the same store, is still known. A backup has neither, and a restore drops the keys.
 *
 * The store gets its random bytes from the program. Without such a source (tests of other things) it makes no keys.
 */
#include <stdio.h>
#include <string.h>

#include "store/command/commands.h"
#include "store/command/keys.h"
#include "store/record/small.h"

static int put_key(struct turn *turn, const struct signing_key *key)
{
	char text[SMALL_BYTES_MAX];
	struct signing_key ended;

	if (signing_keys_add(&turn->facts.keys, key, &ended))
		turn_put(turn, delete_small, SMALL_SIGNING_KEY, span_of(ended.id));
	return turn_put(turn, put_small, SMALL_SIGNING_KEY, span_of(key->id), small_key_put(key, text));
}

static uint64_t next_number(const struct turn *turn)
{
	const struct signing_keys *keys = &turn->facts.keys;

	return keys->count > 0 ? keys->items[0].number + 1 : 1;
}

/* The id has the store's generation in it, and so every token that the key signs. */
static int make_key(struct turn *turn)
{
	const struct store *store = turn->store;
	struct signing_key key = {.number = next_number(turn), .made_ms = turn->given.now.wall_ms};
	uint32_t digits;

	store->random(&digits, sizeof digits);
	store->random(key.secret, sizeof key.secret);
	snprintf(key.id, sizeof key.id, "%u-%08x", store->generation, digits);
	return put_key(turn, &key);
}

static int take_key_of_admin(struct turn *turn)
{
	struct signing_key key = {.id = SIGNING_KEY_OF_ADMIN, .number = next_number(turn)};

	memcpy(key.secret, turn->store->admin.key, sizeof key.secret);
	return put_key(turn, &key);
}

static int drop_keys(struct turn *turn)
{
	struct signing_keys *keys = &turn->facts.keys;

	for (uint32_t i = 0; i < keys->count; i++)
		turn_put(turn, delete_small, SMALL_SIGNING_KEY, span_of(keys->items[i].id));
	*keys = (struct signing_keys){0};
	return turn->fault;
}

/* The event names the key that signs from now on. */
static int tell_key(struct turn *turn)
{
	struct record record = turn_record(turn, EVENT_TOKEN_KEY_ROTATED);

	record.subject = span_of(turn->facts.keys.items[0].id);
	return turn_write_event(turn, &record);
}

static int rotate(struct turn *turn)
{
	int r = make_key(turn);

	return r < 0 ? r : tell_key(turn);
}

/* The first start of this release signs with a key of its own, and still takes what was signed before. */
static int start_keys(struct turn *turn)
{
	struct store *store = turn->store;
	bool is_restored = store->restored != RESTORED_NOT, had_any = turn->facts.keys.count > 0;
	int r = is_restored ? drop_keys(turn) : 0;

	if (r == 0 && store->admin.has_signed)
		r = turn_put(turn, put_meta, META_KEY_OF_ADMIN, 0);
	if (r == 0 && store->admin.has_signed && !is_restored)
		r = take_key_of_admin(turn);
	if (r < 0)
		return r;
	if (had_any && !is_restored)
		return signing_keys_are_due(&turn->facts.keys, turn->given.now.wall_ms) ? rotate(turn) : 0;
	return make_key(turn); /* the event of the start, or of the restore, tells of it */
}

static int start_admin(struct turn *turn)
{
	const struct store_admin *admin = &turn->store->admin;
	char text[SMALL_BYTES_MAX];
	struct span hash = small_hash_put(admin->hash, text), before;
	int r = store_rows(turn->store, get_small, SMALL_ADMIN_HASH, SPAN("admin"), &turn->arena, &before);

	if (r == 0 && span_equal(before, hash))
		return 0;
	if (r < 0 && r != -ENOENT)
		return r;
	if (r == 0) {
		struct record record = turn_record(turn, EVENT_TOKEN_ADMIN_REPLACED);
		r = turn_write_event(turn, &record);
		if (r < 0)
			return r;
	}
	return turn_put(turn, put_small, SMALL_ADMIN_HASH, SPAN("admin"), hash);
}

int keys_start(struct turn *turn)
{
	if (!turn->store->random)
		return 0;
	int r = start_keys(turn);
	return r < 0 ? r : start_admin(turn);
}

int keys_sweep(struct turn *turn)
{
	bool is_due = turn->store->random && turn->store->started &&
		signing_keys_are_due(&turn->facts.keys, turn->given.now.wall_ms);

	return is_due ? rotate(turn) : 0;
}

int execute_key_rotate(struct turn *turn, const struct command *command, struct result *result)
{
	(void)command;
	return turn->store->random ? rotate(turn) : command_refuse(result, REFUSED_UNAVAILABLE);
}
