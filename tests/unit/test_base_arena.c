#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

#include <errno.h>

#include "base/arena.h"
#include "base/rng.h"
#include "base/take.h"

static void assert_zeroed(const char *data, size_t bytes)
{
	for (size_t i = 0; i < bytes; i++)
		assert_int_equal(data[i], 0);
}

static void memory_is_aligned_and_zeroed(void **state)
{
	cleanup(arena_done) struct arena arena;

	(void)state;
	arena_init(&arena, 1 << 20);
	for (size_t bytes = 0; bytes < 600; bytes++) {
		char *data = arena_alloc(&arena, bytes);

		assert_non_null(data);
		assert_int_equal((uintptr_t)data % ARENA_ALIGN, 0);
		assert_zeroed(data, bytes);
		memset(data, 0xaa, bytes);
	}
}

static void pieces_do_not_overlap(void **state)
{
	cleanup(arena_done) struct arena arena;
	char *pieces[300];
	struct rng rng;

	(void)state;
	rng_seed(&rng, 7);
	arena_init(&arena, 4 << 20);
	for (int i = 0; i < 300; i++) {
		size_t bytes = 4 + rng_below(&rng, rng_chance(&rng, 20) ? 50000 : 200);

		pieces[i] = arena_alloc(&arena, bytes);
		assert_non_null(pieces[i]);
		assert_zeroed(pieces[i], bytes);
		memset(pieces[i], 0xee, bytes);
		memcpy(pieces[i], &i, sizeof(i));
	}
	for (int i = 0; i < 300; i++)
		assert_memory_equal(pieces[i], &i, sizeof(i));
}

static void an_arena_gives_its_maximum_and_no_more(void **state)
{
	cleanup(arena_done) struct arena arena;

	(void)state;
	arena_init(&arena, 1000);
	assert_null(arena_alloc(&arena, 1001));
	for (int i = 0; i < 62; i++)
		assert_non_null(arena_alloc(&arena, 16));
	assert_null(arena_alloc(&arena, 1));
	assert_true(arena.held <= 1000);
}

static void an_absurd_request_is_refused(void **state)
{
	cleanup(arena_done) struct arena arena;

	(void)state;
	arena_init(&arena, SIZE_MAX);
	assert_null(arena_alloc(&arena, SIZE_MAX));
	assert_null(arena_alloc(&arena, SIZE_MAX - ARENA_ALIGN));
	assert_int_equal(arena_copy(&arena, (struct span){"", SIZE_MAX}, NULL), -E2BIG);
}

static void what_is_held_never_passes_the_maximum(void **state)
{
	cleanup(arena_done) struct arena arena;
	struct rng rng;

	(void)state;
	rng_seed(&rng, 3);
	arena_init(&arena, 100000);
	for (int i = 0; i < 2000; i++) {
		arena_alloc(&arena, rng_below(&rng, 9000));
		assert_true(arena.held <= 100000);
		if (rng_chance(&rng, 50))
			arena_reset(&arena);
	}
}

static void a_large_piece_leaves_the_current_chunk_in_use(void **state)
{
	cleanup(arena_done) struct arena arena;
	char *before, *after;

	(void)state;
	arena_init(&arena, 1 << 20);
	before = arena_alloc(&arena, 16);
	assert_non_null(arena_alloc(&arena, 100000));
	after = arena_alloc(&arena, 16);
	assert_ptr_equal(after, before + 16);
}

static void a_reset_arena_reuses_its_first_chunk_zeroed(void **state)
{
	cleanup(arena_done) struct arena arena;
	char *first;

	(void)state;
	arena_init(&arena, 1 << 20);
	first = arena_alloc(&arena, 100);
	memset(first, 0xaa, 100);
	assert_non_null(arena_alloc(&arena, 100000));
	arena_reset(&arena);
	assert_true(arena.held < 100000);
	assert_ptr_equal(arena_alloc(&arena, 100), first);
	assert_zeroed(first, 100);
}

static void an_arena_may_be_made_to_measure(void **state)
{
	cleanup(arena_done) struct arena arena;

	(void)state;
	arena_init(&arena, 4096);
	assert_int_equal(arena_reserve(&arena, 3 * ARENA_ALIGN), 0);
	for (int i = 0; i < 3; i++)
		assert_non_null(arena_alloc(&arena, i == 1 ? 1 : ARENA_ALIGN));
	assert_int_equal(arena.held, 3 * ARENA_ALIGN);
	assert_non_null(arena_alloc(&arena, 1)); /* and then it grows as ever */
	arena_done(&arena);
	assert_int_equal(arena_reserve(&arena, 8192), -ENOMEM);
}

static void a_fresh_arena_may_be_reset_and_done(void **state)
{
	struct arena arena;

	(void)state;
	arena_done(NULL);
	arena_init(&arena, 100);
	arena_reset(&arena);
	arena_done(&arena);
	assert_non_null(arena_alloc(&arena, 50));
	arena_done(&arena);
	arena_done(&arena);
}

static void a_copy_is_separate_and_ends_in_nul(void **state)
{
	cleanup(arena_done) struct arena arena;
	char text[] = "stint";
	struct span copy;

	(void)state;
	arena_init(&arena, 100);
	assert_int_equal(arena_copy(&arena, span_of(text), &copy), 0);
	text[0] = 'x';
	assert_true(span_equal(copy, SPAN("stint")));
	assert_int_equal(copy.data[copy.len], 0);
	assert_int_equal(arena_copy(&arena, span_of(NULL), &copy), 0);
	assert_string_equal(copy.data, "");
}

static void a_failed_copy_leaves_the_result_untouched(void **state)
{
	cleanup(arena_done) struct arena arena;
	struct span copy = SPAN("before");

	(void)state;
	arena_init(&arena, 16);
	assert_int_equal(arena_copy(&arena, SPAN("sixteen letters!"), &copy), -E2BIG);
	assert_true(span_equal(copy, SPAN("before")));
}

static void a_text_by_a_format_is_whole_or_empty(void **state)
{
	struct arena arena;

	(void)state;
	arena_init(&arena, 4096);
	const char *text = arena_text(&arena, "%s/%d", "runs", 7);
	assert_string_equal(text, "runs/7");
	assert_string_equal(arena_text(&arena, "%s", ""), "");
	assert_string_equal(arena_text(&arena, "%05000d", 1), "");
	assert_string_equal(text, "runs/7");
	arena_done(&arena);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(memory_is_aligned_and_zeroed),
		cmocka_unit_test(pieces_do_not_overlap),
		cmocka_unit_test(an_arena_gives_its_maximum_and_no_more),
		cmocka_unit_test(an_absurd_request_is_refused),
		cmocka_unit_test(what_is_held_never_passes_the_maximum),
		cmocka_unit_test(a_large_piece_leaves_the_current_chunk_in_use),
		cmocka_unit_test(a_reset_arena_reuses_its_first_chunk_zeroed),
		cmocka_unit_test(an_arena_may_be_made_to_measure),
		cmocka_unit_test(a_fresh_arena_may_be_reset_and_done),
		cmocka_unit_test(a_copy_is_separate_and_ends_in_nul),
		cmocka_unit_test(a_failed_copy_leaves_the_result_untouched),
		cmocka_unit_test(a_text_by_a_format_is_whole_or_empty),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
