#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

#include <errno.h>

#include "base/heap.h"
#include "base/rng.h"
#include "base/take.h"

static void push(struct heap *heap, int64_t at, uint64_t what)
{
	assert_int_equal(heap_push(heap, (struct heap_entry){at, what}), 0);
}

static void assert_pops(struct heap *heap, int64_t at, uint64_t what)
{
	struct heap_entry entry = heap_pop(heap);

	assert_true(entry.at == at);
	assert_true(entry.what == what);
}

static void an_empty_heap_has_no_earliest_entry(void **state)
{
	cleanup(heap_done) struct heap heap;

	(void)state;
	heap_done(NULL);
	heap_init(&heap);
	assert_null(heap_peek(&heap));
	assert_int_equal(heap_count(&heap), 0);
}

static void the_earliest_entry_comes_first(void **state)
{
	cleanup(heap_done) struct heap heap;

	(void)state;
	heap_init(&heap);
	push(&heap, 30, 1);
	push(&heap, INT64_MIN, 2);
	push(&heap, INT64_MAX, 3);
	push(&heap, -5, 4);
	assert_pops(&heap, INT64_MIN, 2);
	assert_pops(&heap, -5, 4);
	assert_pops(&heap, 30, 1);
	assert_pops(&heap, INT64_MAX, 3);
	assert_null(heap_peek(&heap));
}

static void equal_times_come_in_the_order_of_what(void **state)
{
	cleanup(heap_done) struct heap heap;

	(void)state;
	heap_init(&heap);
	for (uint64_t i = 0; i < 100; i++)
		push(&heap, 7, i * 37 % 100);
	push(&heap, 7, UINT64_MAX);
	for (uint64_t i = 0; i < 100; i++)
		assert_pops(&heap, 7, i);
	assert_pops(&heap, 7, UINT64_MAX);
}

static void peeking_removes_nothing(void **state)
{
	cleanup(heap_done) struct heap heap;

	(void)state;
	heap_init(&heap);
	push(&heap, 2, 20);
	push(&heap, 1, 10);
	assert_int_equal(heap_peek(&heap)->at, 1);
	assert_int_equal(heap_peek(&heap)->what, 10);
	assert_int_equal(heap_count(&heap), 2);
}

static void equal_entries_are_both_kept(void **state)
{
	cleanup(heap_done) struct heap heap;

	(void)state;
	heap_init(&heap);
	push(&heap, 1, 1);
	push(&heap, 1, 1);
	assert_pops(&heap, 1, 1);
	assert_pops(&heap, 1, 1);
	assert_int_equal(heap_count(&heap), 0);
}

static void a_reserved_heap_does_not_move(void **state)
{
	cleanup(heap_done) struct heap heap;
	struct heap_entry *entries;

	(void)state;
	heap_init(&heap);
	push(&heap, 0, 0);
	assert_int_equal(heap_reserve(&heap, 10000), 0);
	entries = heap.entries;
	for (uint64_t i = 0; i < 10000; i++)
		push(&heap, 1, i);
	assert_ptr_equal(heap.entries, entries);
}

static void an_absurd_reservation_is_refused(void **state)
{
	cleanup(heap_done) struct heap heap;

	(void)state;
	heap_init(&heap);
	push(&heap, 1, 1);
	assert_int_equal(heap_reserve(&heap, SIZE_MAX), -ENOMEM);
	assert_int_equal(heap_reserve(&heap, SIZE_MAX / 32), -ENOMEM);
	assert_pops(&heap, 1, 1);
}

static size_t model_earliest(const struct heap_entry *model, size_t count)
{
	size_t best = 0;

	for (size_t i = 1; i < count; i++)
		if (model[i].at < model[best].at ||
			(model[i].at == model[best].at && model[i].what < model[best].what))
			best = i;
	return best;
}

static void random_operations_match_a_naive_model(void **state)
{
	cleanup(heap_done) struct heap heap;
	struct heap_entry model[500];
	size_t count = 0;
	struct rng rng;

	(void)state;
	rng_seed(&rng, 5);
	heap_init(&heap);
	for (int step = 0; step < 20000; step++) {
		if (count < 500 && (count == 0 || rng_below(&rng, 5) < 3)) {
			model[count] = (struct heap_entry){rng_between(&rng, -50, 50), rng_u64(&rng)};
			push(&heap, model[count].at, model[count].what);
			count++;
		} else {
			size_t best = model_earliest(model, count);

			assert_pops(&heap, model[best].at, model[best].what);
			model[best] = model[--count];
		}
		assert_int_equal(heap_count(&heap), count);
	}
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(an_empty_heap_has_no_earliest_entry),
		cmocka_unit_test(the_earliest_entry_comes_first),
		cmocka_unit_test(equal_times_come_in_the_order_of_what),
		cmocka_unit_test(peeking_removes_nothing),
		cmocka_unit_test(equal_entries_are_both_kept),
		cmocka_unit_test(a_reserved_heap_does_not_move),
		cmocka_unit_test(an_absurd_reservation_is_refused),
		cmocka_unit_test(random_operations_match_a_naive_model),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
