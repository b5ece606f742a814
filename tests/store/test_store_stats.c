/*
 * Figures over time in the store: they follow what is committed, are written by the sweep, grow coarser and are removed; a crash
 * costs the open minute and nothing else.
 */
#include "base/take.h"
#include "store/record/stats_row.h"
#include "store_fixture.h"

static const int64_t minute_ms = MINUTE_MS, hour_ms = HOUR_MS;

struct seen {
	struct stats_cell total;
	uint32_t rows, cells, step;
};

static void see_row(
	void *context, int64_t hour, struct span queue, uint32_t step, const struct stats_cell *cells)
{
	struct seen *seen = context;

	(void)hour;
	if (!span_equal(queue, SPAN("q")))
		return;
	seen->rows++;
	seen->step = step;
	for (uint32_t i = 0; i < HOUR_MINUTES / step; i++) {
		seen->cells += !stats_are_none(&cells[i]);
		stats_add(&seen->total, &cells[i]);
	}
}

static void see_fresh(void *context, int64_t minute, struct span queue, const struct stats_cell *cell)
{
	struct seen *seen = context;

	assert_true(minute > 0);
	if (span_equal(queue, SPAN("q")))
		stats_add(&seen->total, cell);
}

/* What is in rows; `fresh` too: and what is in none yet. */
static struct seen look(struct world *world, bool fresh)
{
	struct stats_key key = stats_first_key(0);
	struct seen seen = {0};
	bool more = true;

	while (more)
		assert_int_equal(store_page_stats(world->store, &key, 2, &more, see_row, &seen), 0);
	if (fresh)
		store_each_fresh_stats(world->store, see_fresh, &seen);
	return seen;
}

static uint64_t waited(struct world *world, bool fresh)
{
	struct seen seen = look(world, fresh);

	return stats_waited(&seen.total);
}

static void sweep(struct world *world)
{
	assert_int_equal(store_sweep(world->store, world->now), 0);
}

static void live_once(struct world *world, const char *id, enum command_kind end)
{
	assert_int_equal(world_create(world, id, "q"), REFUSED_NOTHING);
	uint64_t fence = world_claim(world, "w");
	assert_int_equal(world_report(world, end, id, "w", fence), REFUSED_NOTHING);
}

static void an_end_counts_at_once_and_is_in_a_row_when_its_minute_is_over(void **state)
{
	struct world *world = *state;

	sweep(world);
	live_once(world, "a", COMMAND_COMPLETE);
	assert_int_equal(look(world, false).rows, 0);
	assert_int_equal(look(world, true).total.done, 1);
	assert_int_equal(waited(world, true), 1);
	world_pass(world, minute_ms);
	sweep(world);
	assert_int_equal(look(world, false).total.done, 1);
	assert_int_equal(look(world, true).total.done, 1); /* and once only */
	sweep(world);
	assert_int_equal(look(world, true).total.done, 1);
}

static void a_second_minute_is_another_cell_of_the_same_row_or_of_the_next(void **state)
{
	struct world *world = *state;

	sweep(world);
	live_once(world, "a", COMMAND_COMPLETE);
	world_pass(world, minute_ms);
	sweep(world);
	live_once(world, "b", COMMAND_COMPLETE);
	world_pass(world, minute_ms);
	sweep(world);
	assert_int_equal(look(world, false).cells, 2);
	assert_int_equal(look(world, false).total.done, 2);
}

static void rows_outlive_a_crash_and_the_open_minute_does_not(void **state)
{
	struct world *world = *state;

	sweep(world);
	live_once(world, "a", COMMAND_COMPLETE);
	world_pass(world, minute_ms);
	sweep(world);
	live_once(world, "b", COMMAND_COMPLETE);
	world_crash(world);
	assert_int_equal(look(world, true).total.done, 1);
	sweep(world);
	live_once(world, "c", COMMAND_COMPLETE);
	world_pass(world, minute_ms);
	sweep(world);
	assert_int_equal(look(world, false).total.done, 2);
}

static void an_orderly_end_loses_nothing(void **state)
{
	struct world *world = *state;

	sweep(world);
	live_once(world, "a", COMMAND_COMPLETE);
	assert_int_equal(store_rest(world->store, world->now), 0);
	world_crash(world);
	assert_int_equal(look(world, true).total.done, 1);
}

static void rows_grow_coarser_keep_their_counts_and_are_removed_after_a_week(void **state)
{
	struct world *world = *state;
	static const struct {
		int64_t hours;
		uint32_t step;
	} ages[] = {{3, 10}, {23, HOUR_MINUTES}, {5 * 24, HOUR_MINUTES}};

	sweep(world);
	live_once(world, "a", COMMAND_COMPLETE);
	world_pass(world, minute_ms);
	sweep(world);
	assert_int_equal(look(world, false).step, 1);
	for (size_t i = 0; i < sizeof ages / sizeof *ages; i++) {
		world_pass(world, ages[i].hours * hour_ms);
		sweep(world);
		assert_int_equal(look(world, false).step, ages[i].step);
		assert_int_equal(look(world, false).total.done, 1);
		assert_int_equal(waited(world, false), 1);
	}
	world_pass(world, 48 * hour_ms);
	sweep(world);
	assert_int_equal(look(world, true).rows, 0);
}

static void a_row_reads_back_as_it_was_and_nothing_else_is_taken(void **state)
{
	static const char *const wrong[] = {"", "2", "1;60 0 0 0", "1;0 1 2", "1;0 1 2 3 32:1",
		"1;0 1 2 3 4:", "1;0 1 2 3x", "60;1 1 1 1", "1;0 4294967296 0 0", ";0 1 2 3"};
	cleanup(buf_done) struct buf text = {.max = STATS_ROW_BYTES_MAX};
	struct stats_row row = {.step = 10}, back;

	(void)state;
	row.cells[0] = (struct stats_cell){.done = UINT32_MAX, .waits = {[0] = 1, [31] = 2}};
	row.cells[5] = (struct stats_cell){.failed = 3, .cancelled = 4};
	stats_row_put(&row, &text);
	assert_int_equal(buf_fault(&text), 0);
	assert_true(stats_row_read(buf_span(&text), &back));
	assert_memory_equal(&back, &row, sizeof row);
	for (size_t i = 0; i < sizeof wrong / sizeof *wrong; i++)
		assert_false(stats_row_read(span_of(wrong[i]), &back));
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		ON_BOTH(an_end_counts_at_once_and_is_in_a_row_when_its_minute_is_over),
		ON_BOTH(a_second_minute_is_another_cell_of_the_same_row_or_of_the_next),
		ON_BOTH(rows_outlive_a_crash_and_the_open_minute_does_not),
		ON_BOTH(an_orderly_end_loses_nothing),
		ON_BOTH(rows_grow_coarser_keep_their_counts_and_are_removed_after_a_week),
		cmocka_unit_test(a_row_reads_back_as_it_was_and_nothing_else_is_taken),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
