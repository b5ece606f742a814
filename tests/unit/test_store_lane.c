/*
 * Lanes against one sorted array per key. A slot stands in at most one lane; its rank decides its place.
 */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

#include "base/rng.h"
#include "store/index/lane.h"

enum {
	SLOTS = 3000,
	KEYS = 16,
};

static int64_t ranks[SLOTS];

static int by_rank(const void *context, uint32_t a, uint32_t b)
{
	assert_ptr_equal(context, ranks);
	if (ranks[a] != ranks[b])
		return ranks[a] < ranks[b] ? -1 : 1;
	return a < b ? -1 : a > b;
}

struct model {
	struct lanes lanes;
	uint32_t sorted[KEYS][SLOTS];
	uint32_t count[KEYS];
	int key_of[SLOTS]; /* -1: in no lane */
	uint64_t turn;
	struct rng rng;
};

/* Each bit of the number says one thing about the key. */
static struct lane_key key_at(int number)
{
	return (struct lane_key){
		.queue = 1 + (uint32_t)(number & 1),
		.owner = number & 2 ? 9 : 0,
		.requires = number & 4 ? 5 : 0,
		.executor = 3,
		.pending = (number & 8) != 0,
	};
}

static int model_setup(void **state)
{
	static struct model model;

	memset(&model, 0, sizeof model);
	memset(model.key_of, 0xff, sizeof model.key_of);
	for (uint32_t slot = 0; slot < SLOTS; slot++)
		ranks[slot] = slot;
	lanes_init(&model.lanes, by_rank, ranks);
	*state = &model;
	return 0;
}

static int model_teardown(void **state)
{
	struct model *m = *state;

	lanes_done(&m->lanes);
	return 0;
}

#define TEST(name) cmocka_unit_test_setup_teardown(name, model_setup, model_teardown)

static uint32_t place_of(const struct model *m, int number, uint32_t slot)
{
	uint32_t place = 0;

	while (place < m->count[number] && by_rank(ranks, m->sorted[number][place], slot) < 0)
		place++;
	return place;
}

static void insert(struct model *m, int number, uint32_t slot)
{
	struct lane_key key = key_at(number);
	uint32_t *sorted = m->sorted[number], place = place_of(m, number, slot);
	struct lane *lane;

	assert_int_equal(m->key_of[slot], -1);
	assert_int_equal(lanes_reserve(&m->lanes, &key, &lane), 0);
	assert_true(lane_key_equal(&lane->key, &key));
	lanes_insert(&m->lanes, lane, slot);
	memmove(&sorted[place + 1], &sorted[place], (m->count[number] - place) * sizeof *sorted);
	sorted[place] = slot;
	m->count[number]++;
	m->key_of[slot] = number;
}

static void take_out(struct model *m, uint32_t slot)
{
	int number = m->key_of[slot];
	struct lane_key key = key_at(number);
	uint32_t *sorted = m->sorted[number], place = place_of(m, number, slot);

	lanes_remove(&m->lanes, &key, slot);
	assert_int_equal(sorted[place], slot);
	m->count[number]--;
	memmove(&sorted[place], &sorted[place + 1], (m->count[number] - place) * sizeof *sorted);
	m->key_of[slot] = -1;
}

static struct lane *lane_of(const struct model *m, int number)
{
	struct lane_key key = key_at(number);
	const struct lane_group *group = lanes_stand(&m->lanes, key.queue, key.owner);

	for (struct lane *lane = group ? lanes_first(&m->lanes, group) : NULL; lane;
		lane = lanes_next(&m->lanes, lane))
		if (lane_key_equal(&lane->key, &key))
			return lane;
	return NULL;
}

/* Look at the first `limit` of a lane in a turn of their own. */
static void check_lane(struct model *m, int number, uint32_t limit)
{
	struct lane *lane = lane_of(m, number);
	uint32_t count = m->count[number];

	assert_int_equal(lane != NULL, count > 0);
	if (!lane)
		return;
	assert_int_equal(lane->total, count);
	m->turn++;
	for (uint32_t i = 0; i < count && i < limit; i++) {
		assert_int_equal(lane_peek(lane, m->turn), m->sorted[number][i]);
		lane_skip(lane);
	}
	assert_int_equal(lane_peek(lane, m->turn), count <= limit ? MAP_NONE : m->sorted[number][limit]);
}

static uint32_t lanes_of_model(const struct model *m)
{
	uint32_t lanes = 0;

	for (int number = 0; number < KEYS; number++)
		lanes += m->count[number] > 0;
	return lanes;
}

/* Every lane is reached from its stand, once, and there is none that is empty. */
static void check_stands(const struct model *m)
{
	const struct lane_group *group = NULL;
	uint32_t lanes = 0;

	while ((group = lanes_next_stand(&m->lanes, group))) {
		assert_ptr_equal(lanes_stand(&m->lanes, group->queue, group->owner), group);
		assert_non_null(lanes_first(&m->lanes, group));
		for (const struct lane *lane = lanes_first(&m->lanes, group); lane;
			lane = lanes_next(&m->lanes, lane)) {
			assert_int_equal(lane->key.queue, group->queue);
			assert_int_equal(lane->key.owner, group->owner);
			assert_true(lane->total > 0);
			lanes++;
		}
	}
	assert_int_equal(lanes, lanes_of_model(m));
	assert_int_equal(slab_used(&m->lanes.lanes), lanes);
}

static void check_all(struct model *m)
{
	check_stands(m);
	for (int number = 0; number < KEYS; number++)
		check_lane(m, number, UINT32_MAX);
}

static void without_tasks_there_is_no_lane(void **state)
{
	struct model *m = *state;

	assert_null(lanes_stand(&m->lanes, 1, 0));
	assert_null(lanes_next_stand(&m->lanes, NULL));
}

static void tasks_appended_come_in_their_order(void **state)
{
	struct model *m = *state;

	for (uint32_t slot = 0; slot < SLOTS; slot++)
		insert(m, 0, slot);
	check_all(m);
	assert_true(lane_of(m, 0)->chunk_count <= SLOTS / 100); /* whole chunks, not halves */
	for (uint32_t slot = 0; slot < SLOTS; slot++) {
		m->turn++;
		assert_int_equal(lane_peek(lane_of(m, 0), m->turn), slot);
		take_out(m, slot);
	}
	check_all(m);
}

static void tasks_put_in_front_come_in_their_order(void **state)
{
	struct model *m = *state;

	for (uint32_t slot = SLOTS; slot-- > 0;)
		insert(m, 0, slot);
	check_all(m);
	for (uint32_t slot = SLOTS; slot-- > 0;)
		take_out(m, slot);
	check_all(m);
}

static void tasks_of_one_rank_come_in_the_order_of_their_slots(void **state)
{
	struct model *m = *state;

	memset(ranks, 0, sizeof ranks);
	for (uint32_t i = 0; i < SLOTS; i++)
		insert(m, 0, i * 1009 % SLOTS);
	for (uint32_t i = 0; i < SLOTS; i++)
		assert_int_equal(m->sorted[0][i], i);
	check_all(m);
}

static void every_difference_in_the_key_is_a_lane_of_its_own(void **state)
{
	struct model *m = *state;

	for (int number = 0; number < KEYS; number++)
		insert(m, number, (uint32_t)number);
	check_all(m);
	struct lane_key a = key_at(0), b = a;
	assert_true(lane_key_equal(&a, &b));
	b.executor++;
	assert_false(lane_key_equal(&a, &b));
	b = a;
	b.host++;
	assert_false(lane_key_equal(&a, &b));
	assert_int_equal(slab_used(&m->lanes.groups), 4);
}

static void an_empty_lane_goes_and_takes_its_stand_along(void **state)
{
	struct model *m = *state;

	insert(m, 0, 10);
	insert(m, 4, 11);
	take_out(m, 10);
	assert_null(lane_of(m, 0));
	assert_non_null(lane_of(m, 4));
	take_out(m, 11);
	assert_null(lanes_stand(&m->lanes, 1, 0));
	assert_int_equal(slab_used(&m->lanes.lanes), 0);
	assert_int_equal(slab_used(&m->lanes.groups), 0);
	insert(m, 0, 10);
	check_all(m);
}

static void a_turn_remembers_how_far_it_looked_and_the_next_one_begins_again(void **state)
{
	struct model *m = *state;

	for (uint32_t slot = 0; slot < 300; slot++)
		insert(m, 0, slot);
	struct lane *lane = lane_of(m, 0);
	for (uint32_t slot = 0; slot < 200; slot++) {
		assert_int_equal(lane_peek(lane, 1), slot);
		assert_int_equal(lane_peek(lane, 1), slot);
		lane_skip(lane);
	}
	assert_int_equal(lane_peek(lane, 2), 0);
	lane_skip(lane);
	assert_int_equal(lane_peek(lane, 2), 1);
}

/* ---- random operations -------------------------------------------------------------------------- */

static void step(struct model *m, int keys)
{
	uint32_t slot = rng_below(&m->rng, SLOTS);
	int number = (int)rng_below(&m->rng, (uint32_t)keys);

	if (m->key_of[slot] >= 0) {
		take_out(m, slot);
	} else {
		ranks[slot] = rng_between(&m->rng, 0, 1000);
		insert(m, number, slot);
	}
	check_lane(m, number, rng_below(&m->rng, 4));
}

static void run_against_model(struct model *m, uint64_t seed, int keys, int steps)
{
	rng_seed(&m->rng, seed);
	for (int i = 0; i < steps; i++) {
		step(m, keys);
		if (i % 500 == 0)
			check_all(m);
	}
	check_all(m);
	for (uint32_t slot = 0; slot < SLOTS; slot++)
		if (m->key_of[slot] >= 0)
			take_out(m, slot);
	check_all(m);
}

static void random_operations_match_sorted_arrays(void **state)
{
	for (uint64_t seed = 0; seed < 4; seed++) {
		run_against_model(*state, seed, 1, 10000);
		run_against_model(*state, seed, KEYS, 10000);
	}
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		TEST(without_tasks_there_is_no_lane),
		TEST(tasks_appended_come_in_their_order),
		TEST(tasks_put_in_front_come_in_their_order),
		TEST(tasks_of_one_rank_come_in_the_order_of_their_slots),
		TEST(every_difference_in_the_key_is_a_lane_of_its_own),
		TEST(an_empty_lane_goes_and_takes_its_stand_along),
		TEST(a_turn_remembers_how_far_it_looked_and_the_next_one_begins_again),
		TEST(random_operations_match_sorted_arrays),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
