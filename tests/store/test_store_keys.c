/*
 * The keys that sign derived tokens, and the hash of the admin's token, in the store.
 */
#include "store_fixture.h"

#define DAY_MS (INT64_C(24) * 60 * 60 * 1000)

static void some_bytes(void *bytes, size_t count)
{
	static unsigned char next;

	for (size_t i = 0; i < count; i++)
		((unsigned char *)bytes)[i] = next++;
}

/* A start by a program that gives random bytes and an admin token. */
static void start(struct world *world, unsigned char admin)
{
	world->options.random = some_bytes;
	memset(world->options.admin_hash, admin, sizeof world->options.admin_hash);
	memset(world->options.admin_key, admin + 1, sizeof world->options.admin_key);
	world_crash(world);
}

static struct signing_keys keys(struct world *world)
{
	return *store_signing_keys(world->store);
}

static bool has_key(struct world *world, const struct signing_key *key)
{
	const struct signing_key *found =
		signing_keys_find(store_signing_keys(world->store), span_of(key->id));

	return found && memcmp(found->secret, key->secret, sizeof key->secret) == 0 &&
		found->made_ms == key->made_ms;
}

static void rotate(struct world *world)
{
	struct command command = {.kind = COMMAND_KEY_ROTATE, .actor = SPAN("admin")};

	assert_int_equal(world_run(world, &command)->refusal, REFUSED_NOTHING);
}

struct seen {
	uint32_t count[EVENT_KIND_COUNT];
	char subject[64];
};

static int see(void *context, const struct record *record)
{
	struct seen *seen = context;

	seen->count[record->kind]++;
	snprintf(seen->subject, sizeof seen->subject, "%.*s", SPAN_ARGS(record->subject));
	return 0;
}

static struct seen events_after(struct world *world, int64_t last)
{
	struct seen seen = {0};

	assert_int_equal(store_page_events(world->store, last, 1000, see, &seen), 0);
	return seen;
}

static void the_first_start_makes_a_key_and_the_next_one_keeps_it(void **state)
{
	struct world *world = *state;

	start(world, 7);
	struct signing_keys first = keys(world);
	assert_int_equal(first.count, 1);
	assert_int_equal(first.items[0].made_ms, world->now.wall_ms);
	assert_true(strncmp(first.items[0].id, "1-", 2) == 0); /* the generation */
	world_pass(world, DAY_MS);
	world_crash(world);
	assert_int_equal(keys(world).count, 1);
	assert_true(has_key(world, &first.items[0]));
	assert_int_equal(events_after(world, 0).count[EVENT_TOKEN_KEY_ROTATED], 0);
}

static void a_rotation_keeps_the_key_before_and_ends_the_one_before_that(void **state)
{
	struct world *world = *state;

	start(world, 7);
	struct signing_key first = keys(world).items[0];
	int64_t last = store_last_event(world->store);
	rotate(world);
	struct seen seen = events_after(world, last);
	assert_int_equal(seen.count[EVENT_TOKEN_KEY_ROTATED], 1);
	assert_string_equal(seen.subject, keys(world).items[0].id);
	assert_true(has_key(world, &first));
	struct signing_key second = keys(world).items[0];
	rotate(world);
	assert_false(has_key(world, &first));
	assert_true(has_key(world, &second));
	struct signing_key third = keys(world).items[0];
	world_crash(world);
	assert_false(has_key(world, &first));
	assert_true(has_key(world, &second));
	assert_string_equal(keys(world).items[0].id, third.id);
	assert_int_equal(keys(world).count, 2);
}

static void two_rotations_in_one_turn_are_two(void **state)
{
	struct world *world = *state;
	struct command twice[2] = {{.kind = COMMAND_KEY_ROTATE}, {.kind = COMMAND_KEY_ROTATE}};
	struct result results[2];

	start(world, 7);
	struct signing_key first = keys(world).items[0];
	assert_int_equal(store_turn(world->store, world->now, twice, 2, results), 0);
	assert_false(has_key(world, &first));
	struct signing_keys now = keys(world);
	world_crash(world);
	assert_true(has_key(world, &now.items[0]));
	assert_true(has_key(world, &now.items[1]));
}

static void after_90_days_a_sweep_makes_the_next_key(void **state)
{
	struct world *world = *state;

	start(world, 7);
	struct signing_key first = keys(world).items[0];
	world_pass(world, 90 * DAY_MS - 1);
	assert_int_equal(store_sweep(world->store, world->now), 0);
	assert_int_equal(keys(world).count, 1);
	world_pass(world, 1);
	int64_t last = store_last_event(world->store);
	assert_int_equal(store_sweep(world->store, world->now), 0);
	assert_int_equal(keys(world).count, 2);
	assert_true(has_key(world, &first));
	assert_int_equal(events_after(world, last).count[EVENT_TOKEN_KEY_ROTATED], 1);
	assert_int_equal(store_sweep(world->store, world->now), 0);
	assert_true(has_key(world, &first));
}

static void a_start_after_90_days_makes_the_next_key(void **state)
{
	struct world *world = *state;

	start(world, 7);
	struct signing_key first = keys(world).items[0];
	world_pass(world, 90 * DAY_MS);
	world_crash(world);
	assert_int_equal(keys(world).count, 2);
	assert_string_equal(keys(world).items[1].id, first.id);
}

/* As the migration leaves it. */
static void make_older(struct world *world)
{
	assert_int_equal(world->backend->ops->begin(world->backend), 0);
	assert_int_equal(world->backend->ops->put_meta(world->backend, META_KEY_OF_ADMIN, 1), 0);
	assert_int_equal(backend_commit(world->backend), 0);
}

static void a_store_of_before_takes_the_key_of_the_admin_token_over(void **state)
{
	struct world *world = *state;
	unsigned char of_admin[SIGNING_KEY_BYTES];

	make_older(world);
	start(world, 7);
	memset(of_admin, 8, sizeof of_admin);
	struct signing_keys two = keys(world);
	assert_int_equal(two.count, 2);
	assert_string_equal(two.items[1].id, SIGNING_KEY_OF_ADMIN);
	assert_memory_equal(two.items[1].secret, of_admin, sizeof of_admin);
	assert_memory_not_equal(two.items[0].secret, of_admin, sizeof of_admin);
	start(world, 20); /* with another admin token: what was taken over stays */
	assert_true(has_key(world, &two.items[0]));
	assert_true(has_key(world, &two.items[1]));
	assert_int_equal(keys(world).count, 2);
}

static void after_a_restore_no_key_of_before_is_valid(void **state)
{
	struct world *world = *state;

	start(world, 7);
	make_older(world); /* a backup of an older release */
	struct signing_key first = keys(world).items[0];
	assert_int_equal(world->backend->ops->begin(world->backend), 0);
	assert_int_equal(world->backend->ops->put_meta(world->backend, META_RESTORED, RESTORED), 0);
	assert_int_equal(world->backend->ops->put_meta(world->backend, META_GENERATION, 2), 0);
	assert_int_equal(backend_commit(world->backend), 0);
	world_crash(world);
	assert_int_equal(keys(world).count, 1);
	assert_false(has_key(world, &first));
	assert_true(strncmp(keys(world).items[0].id, "2-", 2) == 0);
	struct signing_key now = keys(world).items[0];
	world_crash(world);
	assert_int_equal(keys(world).count, 1);
	assert_true(has_key(world, &now));
}

static void another_admin_token_is_told_once_and_ends_no_key(void **state)
{
	struct world *world = *state;

	start(world, 7);
	struct signing_key first = keys(world).items[0];
	assert_int_equal(events_after(world, 0).count[EVENT_TOKEN_ADMIN_REPLACED], 0);
	start(world, 8);
	assert_int_equal(events_after(world, 0).count[EVENT_TOKEN_ADMIN_REPLACED], 1);
	assert_true(has_key(world, &first));
	start(world, 8);
	assert_int_equal(events_after(world, 0).count[EVENT_TOKEN_ADMIN_REPLACED], 1);
}

static void a_rotation_that_cannot_be_committed_changes_nothing(void **state)
{
	struct world *world = *state;
	struct command command = {.kind = COMMAND_KEY_ROTATE};

	start(world, 7);
	struct signing_keys before = keys(world), after;
	memory_set_full(world->backend, true);
	assert_int_equal(store_turn(world->store, world->now, &command, 1, &world->result), 0);
	assert_int_equal(world->result.refusal, REFUSED_UNAVAILABLE);
	after = keys(world);
	assert_int_equal(after.count, 1);
	assert_string_equal(after.items[0].id, before.items[0].id);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		ON_BOTH(the_first_start_makes_a_key_and_the_next_one_keeps_it),
		ON_BOTH(a_rotation_keeps_the_key_before_and_ends_the_one_before_that),
		ON_BOTH(two_rotations_in_one_turn_are_two),
		ON_BOTH(after_90_days_a_sweep_makes_the_next_key),
		ON_BOTH(a_start_after_90_days_makes_the_next_key),
		ON_BOTH(a_store_of_before_takes_the_key_of_the_admin_token_over),
		ON_BOTH(after_a_restore_no_key_of_before_is_valid),
		ON_BOTH(another_admin_token_is_told_once_and_ends_no_key),
		cmocka_unit_test_setup_teardown(
			a_rotation_that_cannot_be_committed_changes_nothing, on_memory, world_over),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
