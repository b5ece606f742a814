#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

#include <string.h>

#include "base/slab.h"
#include "base/rng.h"
#include "base/take.h"

struct record {
	uint64_t number;
	char rest[12];
};

static uint32_t record_new(struct slab *pool, uint64_t number)
{
	static const struct record zero;
	struct record *record;
	uint32_t slot;

	assert_int_equal(slab_alloc(pool, &slot), 0);
	record = slab_at(pool, slot);
	assert_memory_equal(record, &zero, sizeof(zero));
	memset(record, 0xaa, sizeof(*record));
	record->number = number;
	return slot;
}

static uint64_t record_number(const struct slab *pool, uint32_t slot)
{
	const struct record *record = slab_at(pool, slot);

	return record->number;
}

static void slots_count_up_from_zero(void **state)
{
	cleanup(slab_done) struct slab pool;

	(void)state;
	slab_init(&pool, sizeof(struct record));
	for (uint32_t i = 0; i < 5000; i++)
		assert_int_equal(record_new(&pool, i), i);
	assert_int_equal(slab_used(&pool), 5000);
	assert_int_equal(slab_high(&pool), 5000);
	for (uint32_t i = 0; i < 5000; i++)
		assert_int_equal(record_number(&pool, i), i);
}

static void items_are_aligned_for_any_number(void **state)
{
	cleanup(slab_done) struct slab pool;
	uint32_t slot;

	(void)state;
	slab_init(&pool, 13);
	for (int i = 0; i < 100; i++) {
		assert_int_equal(slab_alloc(&pool, &slot), 0);
		assert_int_equal((uintptr_t)slab_at(&pool, slot) % 8, 0);
	}
}

static void an_item_smaller_than_a_slot_number_is_held(void **state)
{
	cleanup(slab_done) struct slab pool;
	uint32_t slot;

	(void)state;
	slab_init(&pool, 1);
	assert_int_equal(slab_alloc(&pool, &slot), 0);
	assert_int_equal(slab_alloc(&pool, &slot), 0);
	slab_free(&pool, 0);
	slab_free(&pool, 1);
	assert_int_equal(slab_alloc(&pool, &slot), 0);
	assert_int_equal(slot, 1);
	assert_int_equal(*(char *)slab_at(&pool, slot), 0);
}

static void addresses_hold_while_the_pool_grows(void **state)
{
	cleanup(slab_done) struct slab pool;
	const void *first;

	(void)state;
	slab_init(&pool, sizeof(struct record));
	first = slab_at(&pool, record_new(&pool, 42));
	for (uint32_t i = 0; i < 50000; i++)
		record_new(&pool, i);
	assert_ptr_equal(slab_at(&pool, 0), first);
	assert_int_equal(record_number(&pool, 0), 42);
}

static void the_last_freed_slot_is_reused_first(void **state)
{
	cleanup(slab_done) struct slab pool;

	(void)state;
	slab_init(&pool, sizeof(struct record));
	for (uint32_t i = 0; i < 10; i++)
		record_new(&pool, i);
	slab_free(&pool, 3);
	slab_free(&pool, 7);
	assert_int_equal(slab_used(&pool), 8);
	assert_int_equal(record_new(&pool, 0), 7);
	assert_int_equal(record_new(&pool, 0), 3);
	assert_int_equal(record_new(&pool, 0), 10);
	assert_int_equal(slab_high(&pool), 11);
}

static void reserved_slots_need_no_more_chunks(void **state)
{
	cleanup(slab_done) struct slab pool;
	uint32_t chunks;

	(void)state;
	slab_init(&pool, sizeof(struct record));
	for (uint32_t i = 0; i < 100; i++)
		record_new(&pool, i);
	for (uint32_t i = 0; i < 50; i++)
		slab_free(&pool, i);
	assert_int_equal(slab_reserve(&pool, 10000), 0);
	chunks = pool.chunk_count;
	for (uint32_t i = 0; i < 10000; i++)
		record_new(&pool, i);
	assert_int_equal(pool.chunk_count, chunks);
	assert_int_equal(slab_used(&pool), 10050);
}

static void a_done_pool_may_be_used_again(void **state)
{
	struct slab pool;

	(void)state;
	slab_done(NULL);
	slab_init(&pool, sizeof(struct record));
	record_new(&pool, 1);
	slab_done(&pool);
	assert_int_equal(slab_high(&pool), 0);
	assert_int_equal(record_new(&pool, 2), 0);
	slab_done(&pool);
}

static void random_turnover_keeps_every_record(void **state)
{
	cleanup(slab_done) struct slab pool;
	uint32_t slots[3000];
	uint32_t count = 0;
	struct rng rng;

	(void)state;
	rng_seed(&rng, 11);
	slab_init(&pool, sizeof(struct record));
	for (int step = 0; step < 50000; step++) {
		if (count < 3000 && (count == 0 || rng_chance(&rng, 2))) {
			slots[count] = record_new(&pool, 0);
			*(uint64_t *)slab_at(&pool, slots[count]) = slots[count];
			count++;
			continue;
		}
		uint32_t pick = rng_below(&rng, count);
		assert_int_equal(record_number(&pool, slots[pick]), slots[pick]);
		slab_free(&pool, slots[pick]);
		slots[pick] = slots[--count];
		assert_int_equal(slab_used(&pool), count);
	}
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(slots_count_up_from_zero),
		cmocka_unit_test(items_are_aligned_for_any_number),
		cmocka_unit_test(an_item_smaller_than_a_slot_number_is_held),
		cmocka_unit_test(addresses_hold_while_the_pool_grows),
		cmocka_unit_test(the_last_freed_slot_is_reused_first),
		cmocka_unit_test(reserved_slots_need_no_more_chunks),
		cmocka_unit_test(a_done_pool_may_be_used_again),
		cmocka_unit_test(random_turnover_keeps_every_record),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
