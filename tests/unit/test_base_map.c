#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

#include <errno.h>
#include <string.h>

#include "base/hash.h"
#include "base/map.h"
#include "base/rng.h"
#include "base/take.h"

/* Records for the map to point to: the slot is the index, the key is a number. */
#define RECORDS 3000

struct table {
	struct map map;
	uint64_t keys[RECORDS];
	bool present[RECORDS];
	uint64_t hash_mask; /* few bits: many collisions */
};

static uint64_t table_hash(const struct table *table, uint64_t key)
{
	return hash_u64(key) & table->hash_mask;
}

static uint64_t table_hash_of(void *context, uint32_t slot)
{
	struct table *table = context;

	assert_true(table->present[slot]);
	return table_hash(table, table->keys[slot]);
}

static const struct map_ops table_ops = {.hash_of = table_hash_of};

static void table_init(struct table *table, uint64_t hash_mask)
{
	memset(table, 0, sizeof(*table));
	table->hash_mask = hash_mask;
	map_init(&table->map, &table_ops, table);
}

static void table_done(struct table *table)
{
	map_done(&table->map);
}

static void table_add(struct table *table, uint32_t slot, uint64_t key)
{
	assert_false(table->present[slot]);
	table->keys[slot] = key;
	assert_int_equal(map_insert(&table->map, table_hash(table, key), slot), 0);
	table->present[slot] = true;
}

static void table_drop(struct table *table, uint32_t slot)
{
	table->present[slot] = false;
	map_remove(&table->map, table_hash(table, table->keys[slot]), slot);
}

static uint32_t table_find(const struct table *table, uint64_t key)
{
	struct map_probe probe;
	uint32_t slot = map_first(&table->map, table_hash(table, key), &probe);

	while (slot != MAP_NONE && table->keys[slot] != key)
		slot = map_next(&table->map, &probe);
	return slot;
}

/* Key i is always in slot i here, so the model is the array `present`. */
static void table_check(const struct table *table)
{
	uint32_t used = 0;

	for (uint32_t i = 0; i < RECORDS; i++) {
		assert_int_equal(table_find(table, i), table->present[i] ? i : MAP_NONE);
		used += table->present[i];
	}
	assert_int_equal(table->map.used, used);
}

static void an_empty_map_finds_nothing(void **state)
{
	cleanup(table_done) struct table table;

	(void)state;
	table_init(&table, UINT64_MAX);
	assert_int_equal(table_find(&table, 7), MAP_NONE);
	map_done(NULL);
}

static void an_inserted_slot_is_found(void **state)
{
	cleanup(table_done) struct table table;

	(void)state;
	table_init(&table, UINT64_MAX);
	table_add(&table, 5, 500);
	assert_int_equal(table_find(&table, 500), 5);
	assert_int_equal(table_find(&table, 501), MAP_NONE);
}

static void a_removed_slot_is_not_found_again(void **state)
{
	cleanup(table_done) struct table table;

	(void)state;
	table_init(&table, UINT64_MAX);
	table_add(&table, 5, 500);
	table_drop(&table, 5);
	assert_int_equal(table_find(&table, 500), MAP_NONE);
	assert_int_equal(table.map.used, 0);
}

static void slots_with_one_hash_are_told_apart_by_key(void **state)
{
	cleanup(table_done) struct table table;

	(void)state;
	table_init(&table, 0);
	for (uint32_t i = 0; i < 100; i++)
		table_add(&table, i, i);
	for (uint32_t i = 0; i < 100; i += 2)
		table_drop(&table, i);
	table_check(&table);
}

static void a_run_that_wraps_around_the_end_survives_removal(void **state)
{
	cleanup(table_done) struct table table;

	(void)state;
	table_init(&table, UINT64_MAX);
	for (uint32_t i = 0, added = 0; added < 8; i++) {
		if ((hash_u64(i) & 15) < 14 && (hash_u64(i) & 15) > 1)
			continue;
		table_add(&table, i, i); /* homes 14, 15, 0 and 1 of 16 cells */
		added++;
	}
	assert_int_equal(table.map.mask, 15);
	for (uint32_t i = 0; i < RECORDS; i++) {
		if (!table.present[i])
			continue;
		table_drop(&table, i);
		table_check(&table);
	}
}

static void the_map_stays_between_three_eighths_and_three_quarters_full(void **state)
{
	cleanup(table_done) struct table table;

	(void)state;
	table_init(&table, UINT64_MAX);
	for (uint32_t i = 0; i < RECORDS; i++) {
		table_add(&table, i, i);
		assert_true(table.map.used * 4ull <= (table.map.mask + 1ull) * 3);
	}
	assert_true(table.map.used * 8ull > (table.map.mask + 1ull) * 3);
	table_check(&table);
}

static void a_reserved_map_does_not_move(void **state)
{
	cleanup(table_done) struct table table;
	uint32_t *cells;

	(void)state;
	table_init(&table, UINT64_MAX);
	table_add(&table, 0, 0);
	assert_int_equal(map_reserve(&table.map, RECORDS), 0);
	cells = table.map.cells;
	for (uint32_t i = 1; i < RECORDS; i++)
		table_add(&table, i, i);
	assert_ptr_equal(table.map.cells, cells);
	table_check(&table);
}

static void more_than_a_map_can_hold_is_refused(void **state)
{
	cleanup(table_done) struct table table;

	(void)state;
	table_init(&table, UINT64_MAX);
	table_add(&table, 1, 1);
	assert_int_equal(map_reserve(&table.map, UINT32_MAX), -ENOMEM);
	table_check(&table);
}

static void run_against_model(uint64_t seed, uint64_t hash_mask, uint32_t slots, int steps)
{
	cleanup(table_done) struct table table;
	struct rng rng;

	rng_seed(&rng, seed);
	table_init(&table, hash_mask);
	for (int step = 0; step < steps; step++) {
		uint32_t slot = rng_below(&rng, slots);

		assert_int_equal(table_find(&table, slot), table.present[slot] ? slot : MAP_NONE);
		if (table.present[slot])
			table_drop(&table, slot);
		else
			table_add(&table, slot, slot);
		if (rng_chance(&rng, 100))
			table_check(&table);
	}
	table_check(&table);
}

static void random_operations_match_a_naive_model(void **state)
{
	(void)state;
	for (uint64_t seed = 0; seed < 20; seed++) {
		run_against_model(seed, UINT64_MAX, 12, 500);
		run_against_model(seed, UINT64_MAX, RECORDS, 5000);
		run_against_model(seed, 0x1f, 100, 1000);
	}
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(an_empty_map_finds_nothing),
		cmocka_unit_test(an_inserted_slot_is_found),
		cmocka_unit_test(a_removed_slot_is_not_found_again),
		cmocka_unit_test(slots_with_one_hash_are_told_apart_by_key),
		cmocka_unit_test(a_run_that_wraps_around_the_end_survives_removal),
		cmocka_unit_test(the_map_stays_between_three_eighths_and_three_quarters_full),
		cmocka_unit_test(a_reserved_map_does_not_move),
		cmocka_unit_test(more_than_a_map_can_hold_is_refused),
		cmocka_unit_test(random_operations_match_a_naive_model),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
