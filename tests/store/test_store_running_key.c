/*
 * Concurrency keys: perKey, keys with a number of their own, and sequential bind every new claim, within a turn too, and are counted
 * from the tasks; a claim gets what a person who looked at every task would choose.
 */
#include "base/rng.h"
#include "store_fixture.h"

static void create(struct world *world, const char *id, const char *key, int32_t priority)
{
	struct command command = say_create(id, "q");

	command.create.concurrency_key = span_of(key);
	command.create.priority = priority;
	assert_int_equal(world_run(world, &command)->refusal, REFUSED_NOTHING);
}

static struct command say_limits(uint32_t set, struct queue_limits wanted)
{
	return (struct command){
		.kind = COMMAND_QUEUE_LIMIT,
		.actor = SPAN("tester"),
		.oversees = true,
		.queue_limit = {.queue = SPAN("q"), .patch = {set, wanted}},
	};
}

static void per_key(struct world *world, uint32_t most)
{
	struct command command = say_limits(LIMITS_SET_PER_KEY, (struct queue_limits){.per_key = most});

	assert_int_equal(world_run(world, &command)->refusal, REFUSED_NOTHING);
}

static void sequential(struct world *world, bool is_on)
{
	struct command command =
		say_limits(LIMITS_SET_SEQUENTIAL, (struct queue_limits){.sequential = is_on});

	assert_int_equal(world_run(world, &command)->refusal, REFUSED_NOTHING);
}

static void fair(struct world *world, bool is_on)
{
	struct command command = say_limits(LIMITS_SET_FAIR, (struct queue_limits){.fair = is_on});

	assert_int_equal(world_run(world, &command)->refusal, REFUSED_NOTHING);
}

static const char *claim_one(struct world *world)
{
	struct command command = say_claim("w");
	struct result *result = world_run(world, &command);

	assert_int_equal(result->claim_count, 1);
	return result->claims[0].id.data;
}

static enum refusal cap(struct world *world, const char *key, uint32_t most)
{
	struct command command = say_limits(0, (struct queue_limits){0});
	struct command_key_cap one = {span_of(key), most};

	command.queue_limit.caps = &one;
	command.queue_limit.cap_count = 1;
	return world_run(world, &command)->refusal;
}

static uint32_t claim_many(struct world *world, const char *worker, uint32_t max)
{
	struct command command = say_claim(worker);

	command.claim.max = max;
	assert_int_equal(world_run(world, &command)->refusal, REFUSED_NOTHING);
	return world->result.claim_count;
}

static enum limit_kind refused_by(struct world *world, const char *id)
{
	struct command claim = say_claim("by-id");

	claim.kind = COMMAND_CLAIM;
	claim.task = span_of(id);
	assert_int_equal(world_run(world, &claim)->refusal, REFUSED_LIMITED);
	return world->result.limit;
}

static void end(struct world *world, const char *id, const char *worker)
{
	uint64_t fence = world_task(world, id).fence;

	assert_int_equal(world_report(world, COMMAND_COMPLETE, id, worker, fence), REFUSED_NOTHING);
}

static void create_six(struct world *world)
{
	create(world, "a1", "a", 0);
	create(world, "a2", "a", 0);
	create(world, "a3", "a", 0);
	create(world, "b1", "b", 0);
	create(world, "b2", "b", 0);
	create(world, "free", "", 0);
}

static void a_full_key_is_passed_over_and_the_next_one_is_taken(void **state)
{
	struct world *world = *state;

	create_six(world);
	per_key(world, 1);
	assert_int_equal(claim_many(world, "w", 10), 3);
	assert_int_equal(world_state(world, "a1"), TASK_CLAIMED);
	assert_int_equal(world_state(world, "b1"), TASK_CLAIMED);
	assert_int_equal(world_state(world, "free"), TASK_CLAIMED);
	assert_int_equal(refused_by(world, "a2"), LIMIT_PER_KEY);
	end(world, "a1", "w");
	assert_int_equal(claim_many(world, "w", 10), 1);
	assert_int_equal(world_state(world, "a2"), TASK_CLAIMED);
}

static void a_key_may_have_a_number_of_its_own(void **state)
{
	struct world *world = *state;

	create_six(world);
	per_key(world, 1);
	assert_int_equal(cap(world, "a", 2), REFUSED_NOTHING);
	assert_int_equal(claim_many(world, "w", 10), 4);
	assert_int_equal(world_state(world, "a2"), TASK_CLAIMED);
	assert_int_equal(world_state(world, "a3"), TASK_READY);
	assert_int_equal(world_state(world, "b2"), TASK_READY);
	world_crash(world);
	assert_int_equal(claim_many(world, "w", 10), 0);
	assert_int_equal(cap(world, "a", 3), REFUSED_NOTHING);
	assert_int_equal(claim_many(world, "w", 10), 1);
	assert_int_equal(cap(world, "b", 2), REFUSED_NOTHING);
	assert_int_equal(cap(world, "a", 0), REFUSED_NOTHING);
	assert_int_equal(claim_many(world, "w", 10), 1);
	assert_int_equal(world_state(world, "b2"), TASK_CLAIMED);
}

static void too_many_numbers_of_keys_are_refused_and_nothing_changes(void **state)
{
	struct world *world = *state;
	char key[16];

	for (int i = 0; i < KEY_CAPS_MAX; i++) {
		snprintf(key, sizeof key, "k%d", i);
		assert_int_equal(cap(world, key, 1), REFUSED_NOTHING);
	}
	assert_int_equal(cap(world, "one more", 1), REFUSED_TOO_LARGE);
	assert_int_equal(cap(world, "k7", 2), REFUSED_NOTHING);
	struct command lift = say_limits(0, (struct queue_limits){0});
	lift.queue_limit.lifts_caps = true;
	assert_int_equal(world_run(world, &lift)->refusal, REFUSED_NOTHING);
	world_crash(world);
	assert_int_equal(cap(world, "one more", 1), REFUSED_NOTHING);
}

static void the_next_of_a_sequential_key_waits_until_the_begun_one_is_final(void **state)
{
	struct world *world = *state;

	create_six(world);
	sequential(world, true);
	assert_int_equal(claim_many(world, "w", 10), 3);
	uint64_t fence = world_task(world, "a1").fence;
	assert_int_equal(world_report(world, COMMAND_FAIL, "a1", "w", fence), REFUSED_NOTHING);
	assert_int_equal(world_state(world, "a1"), TASK_SCHEDULED);
	assert_int_equal(claim_many(world, "w", 10), 0); /* it backs off, and its key waits for it */
	assert_int_equal(refused_by(world, "a2"), LIMIT_SEQUENTIAL);
	world_crash(world);
	assert_int_equal(refused_by(world, "a2"), LIMIT_SEQUENTIAL);
	world_pass(world, 60000);
	world_run(world, NULL);
	assert_int_equal(claim_many(world, "w", 10), 1);
	assert_int_equal(world_state(world, "a1"), TASK_CLAIMED);
	end(world, "a1", "w");
	assert_int_equal(claim_many(world, "w", 10), 1);
	assert_int_equal(world_state(world, "a2"), TASK_CLAIMED);
}

/* It was begun and goes on, although another of its key has a higher priority now. */
static void a_begun_task_of_a_sequential_key_goes_before_a_more_urgent_one(void **state)
{
	struct world *world = *state;

	create(world, "a1", "a", 0);
	sequential(world, true);
	assert_int_equal(claim_many(world, "w", 1), 1);
	create(world, "urgent", "a", 100);
	uint64_t fence = world_task(world, "a1").fence;
	assert_int_equal(world_report(world, COMMAND_RELEASE, "a1", "w", fence), REFUSED_NOTHING);
	assert_int_equal(claim_many(world, "w", 10), 1);
	assert_int_equal(world_state(world, "a1"), TASK_CLAIMED);
	assert_int_equal(world_state(world, "urgent"), TASK_READY);
}

static void a_finish_of_the_turn_opens_its_key_for_a_claim_of_the_turn(void **state)
{
	struct world *world = *state;
	struct result results[2];

	create_six(world);
	per_key(world, 1);
	assert_int_equal(claim_many(world, "w", 10), 3);
	struct command commands[] = {
		say_report(COMMAND_COMPLETE, "a1", "w", world_task(world, "a1").fence), say_claim("v")};
	commands[1].claim.max = 10;
	assert_int_equal(store_turn(world->store, world->now, commands, 2, results), 0);
	assert_int_equal(results[1].claim_count, 1);
	assert_int_equal(world_state(world, "a2"), TASK_CLAIMED);
	world_run(world, NULL);
}

static void a_limit_binds_claims_of_its_own_turn_and_lifting_it_too(void **state)
{
	struct world *world = *state;
	struct result results[3];
	struct command commands[] = {say_limits(LIMITS_SET_PER_KEY, (struct queue_limits){.per_key = 1}),
		say_claim("w"), say_limits(LIMITS_SET_PER_KEY, (struct queue_limits){.per_key = 2})};

	create_six(world);
	commands[1].claim.max = 10;
	assert_int_equal(store_turn(world->store, world->now, commands, 3, results), 0);
	assert_int_equal(results[1].claim_count, 3);
	commands[0].queue_limit.patch.wanted.per_key = 0;
	assert_int_equal(store_turn(world->store, world->now, commands, 2, results), 0);
	assert_int_equal(results[1].claim_count, 3);
	world_run(world, NULL);
}

static void a_task_that_is_moved_counts_where_it_stands(void **state)
{
	struct world *world = *state;
	struct command move = say_about(COMMAND_UPDATE, "a1");

	create_six(world);
	per_key(world, 1);
	assert_int_equal(claim_many(world, "w", 1), 1);
	move.update.patch.set_concurrency_key = true;
	move.update.concurrency_key = SPAN("c");
	assert_int_equal(world_run(world, &move)->refusal, REFUSED_NOTHING);
	assert_int_equal(claim_many(world, "w", 10), 3);
	assert_int_equal(world_state(world, "a2"), TASK_CLAIMED);
	create(world, "c1", "c", 0);
	assert_int_equal(refused_by(world, "c1"), LIMIT_PER_KEY);
}

static void the_same_key_in_another_queue_is_another_key(void **state)
{
	struct world *world = *state;
	struct command command = say_create("elsewhere", "other");

	create_six(world);
	command.create.concurrency_key = SPAN("a");
	assert_int_equal(world_run(world, &command)->refusal, REFUSED_NOTHING);
	per_key(world, 1);
	command = say_limits(LIMITS_SET_PER_KEY, (struct queue_limits){.per_key = 1});
	command.queue_limit.queue = SPAN("other");
	assert_int_equal(world_run(world, &command)->refusal, REFUSED_NOTHING);
	assert_int_equal(claim_many(world, "w", 10), 4);
	assert_int_equal(world_state(world, "elsewhere"), TASK_CLAIMED);
}

static void a_freed_key_wakes_exactly_one(void **state)
{
	struct world *world = *state;
	uint32_t queues[4];

	create_six(world);
	per_key(world, 1);
	assert_int_equal(claim_many(world, "w", 10), 3);
	assert_int_equal(store_ready_work(world->store, queues, 4).tasks, 0);
	end(world, "a1", "w");
	assert_int_equal(store_ready_work(world->store, queues, 4).tasks, 1);
	assert_int_equal(claim_many(world, "w", 10), 1);
	end(world, "free", "w");
	assert_int_equal(store_ready_work(world->store, queues, 4).tasks, 0);
	create(world, "c1", "c", 0);
	assert_int_equal(store_ready_work(world->store, queues, 4).tasks, 1);
	create(world, "a4", "a", 0);
	assert_int_equal(store_ready_work(world->store, queues, 4).tasks, 0);
}

static void the_end_of_what_is_in_review_wakes_the_next_of_a_sequential_key(void **state)
{
	struct world *world = *state;
	uint32_t queues[4];

	create(world, "a1", "a", 0);
	create(world, "a2", "a", 0);
	sequential(world, true);
	assert_int_equal(claim_many(world, "w", 10), 1);
	assert_int_equal(world_report(world, COMMAND_REVIEW, "a1", "w", world_task(world, "a1").fence),
		REFUSED_NOTHING);
	assert_int_equal(claim_many(world, "v", 10), 0);
	struct command cancel = say_about(COMMAND_CANCEL, "a1");
	assert_int_equal(world_run(world, &cancel)->refusal, REFUSED_NOTHING);
	assert_int_equal(store_ready_work(world->store, queues, 4).tasks, 1);
	assert_int_equal(claim_many(world, "w", 10), 1);
}

static void why_names_the_limit_of_the_key(void **state)
{
	struct world *world = *state;

	create_six(world);
	per_key(world, 1);
	claim_many(world, "w", 10);
	struct task task = world_task(world, "a2");
	struct reason reason = store_why(world->store, &task, world->now);
	assert_int_equal(reason.why, WHY_LIMITED);
	assert_int_equal(reason.limit, LIMIT_PER_KEY);
	assert_int_equal(reason.most, 1);
	assert_int_equal(reason.live, 1);
}

static void create_crowd(struct world *world, const char *key, int count)
{
	char id[32];

	for (int i = 0; i < count; i++) {
		snprintf(id, sizeof id, "%s%d", key[0] ? key : "none", i);
		create(world, id, key, 0);
	}
}

static void a_crowd_of_one_key_does_not_starve_another_with_three(void **state)
{
	struct world *world = *state;

	create_crowd(world, "big", 200);
	create_crowd(world, "small", 3);
	fair(world, true);
	assert_int_equal(claim_many(world, "w", 6), 6);
	for (int i = 0; i < 3; i++) {
		char id[32];
		snprintf(id, sizeof id, "small%d", i);
		assert_int_equal(world_state(world, id), TASK_CLAIMED);
		snprintf(id, sizeof id, "big%d", i);
		assert_int_equal(world_state(world, id), TASK_CLAIMED);
	}
}

static void keys_without_live_claims_come_in_turn(void **state)
{
	struct world *world = *state;
	static const char *const turns[] = {"big0", "small0", "none0", "big1", "small1", "none1", "big2"};

	create_crowd(world, "big", 5);
	create_crowd(world, "small", 2);
	create_crowd(world, "", 2); /* tasks without a key are one key */
	fair(world, true);
	for (size_t i = 0; i < sizeof turns / sizeof *turns; i++) {
		assert_string_equal(claim_one(world), turns[i]);
		end(world, turns[i], "w");
	}
}

/* It was forgotten when its task ended, and does not come first for that. */
static void a_key_that_brings_one_task_after_the_other_waits_for_its_turn(void **state)
{
	struct world *world = *state;

	create_crowd(world, "big", 5);
	create(world, "eager0", "eager", 0);
	fair(world, true);
	assert_string_equal(claim_one(world), "big0");
	end(world, "big0", "w");
	assert_string_equal(claim_one(world), "eager0");
	end(world, "eager0", "w");
	create(world, "eager1", "eager", 0);
	assert_string_equal(claim_one(world), "big1");
	end(world, "big1", "w");
	assert_string_equal(claim_one(world), "eager1");
}

static void priority_goes_before_the_turn_of_a_key(void **state)
{
	struct world *world = *state;

	create_crowd(world, "big", 2);
	create(world, "small0", "small", 0);
	create(world, "urgent", "big", 100);
	fair(world, true);
	assert_string_equal(claim_one(world), "urgent");
	create(world, "urgent2", "big", 100);
	create(world, "urgent3", "big", 100);
	struct command command = say_claim("w");
	command.claim.max = 4;
	struct result *result = world_run(world, &command);
	assert_string_equal(result->claims[0].id.data, "urgent2");
	assert_string_equal(result->claims[1].id.data, "urgent3");
	assert_string_equal(result->claims[2].id.data, "small0");
	assert_string_equal(result->claims[3].id.data, "big0");
}

static void a_turn_knows_whom_it_has_served_itself(void **state)
{
	struct world *world = *state;
	struct result results[3];

	create_crowd(world, "big", 4);
	create_crowd(world, "small", 3);
	fair(world, true);
	assert_string_equal(claim_one(world), "big0");
	assert_string_equal(claim_one(world), "small0");
	struct command commands[] = {say_claim("w"),
		say_report(COMMAND_COMPLETE, "big0", "w", world_task(world, "big0").fence), say_claim("w")};
	assert_int_equal(store_turn(world->store, world->now, commands, 3, results), 0);
	assert_string_equal(results[0].claims[0].id.data, "big1");
	assert_string_equal(results[2].claims[0].id.data, "small1");
	world_run(world, NULL);
}

/* The count of live claims is that of the tasks, so a restart changes nothing. */
static void the_fewest_live_claims_are_counted_after_a_crash_too(void **state)
{
	struct world *world = *state;

	create_crowd(world, "big", 4);
	assert_int_equal(claim_many(world, "w", 2), 2);
	create_crowd(world, "small", 3);
	fair(world, true);
	world_crash(world);
	assert_string_equal(claim_one(world), "small0");
	assert_string_equal(claim_one(world), "small1");
	assert_int_equal(claim_many(world, "w", 2), 2);
	assert_int_equal(world_state(world, "small2"), TASK_CLAIMED);
	assert_int_equal(world_state(world, "big2"), TASK_CLAIMED);
	fair(world, false);
	assert_string_equal(claim_one(world), "big3");
}

static void a_fair_queue_puts_its_next_task_forward_among_others(void **state)
{
	struct world *world = *state;
	struct command command = say_create("old", "other");

	create(world, "big0", "big", 0);
	assert_int_equal(world_run(world, &command)->refusal, REFUSED_NOTHING);
	create(world, "small0", "small", 0);
	create(world, "big1", "big", 0);
	fair(world, true);
	assert_string_equal(claim_one(world), "big0");
	/* the turn is small's, whose task is younger than the one of the other queue */
	assert_string_equal(claim_one(world), "old");
	assert_string_equal(claim_one(world), "small0");
}

static void a_queue_with_as_many_open_tasks_as_it_may_have_takes_no_new_one(void **state)
{
	struct world *world = *state;
	struct command full = say_limits(LIMITS_SET_MAX_OPEN, (struct queue_limits){.max_open = 2});
	struct command commands[] = {say_create("two", "q"), say_create("three", "q")};
	struct command elsewhere = say_create("elsewhere", "other"),
		       move = say_about(COMMAND_UPDATE, "elsewhere");
	struct result results[2];

	create(world, "one", "", 0);
	assert_int_equal(world_run(world, &full)->refusal, REFUSED_NOTHING);
	assert_int_equal(store_turn(world->store, world->now, commands, 2, results), 0);
	assert_int_equal(results[0].refusal, REFUSED_NOTHING);
	assert_int_equal(results[1].refusal, REFUSED_QUEUE_FULL); /* both of one turn count */
	world_crash(world);
	assert_int_equal(world_create(world, "three", "q"), REFUSED_QUEUE_FULL);
	assert_int_equal(world_run(world, &elsewhere)->refusal, REFUSED_NOTHING);
	move.update.patch.set_queue = true;
	move.update.queue = SPAN("q");
	assert_int_equal(world_run(world, &move)->refusal, REFUSED_QUEUE_FULL);
	assert_int_equal(claim_many(world, "w", 1), 1);
	assert_int_equal(world_create(world, "three", "q"), REFUSED_QUEUE_FULL); /* in work is open, too */
	end(world, "one", "w");
	assert_int_equal(world_create(world, "three", "q"), REFUSED_NOTHING);
}

/* ---- against a model ------------------------------------------------------------------------------------------------ */

enum {
	MODEL_TASKS = 400,
	MODEL_KEYS = 6,
	MODEL_STEPS = 700,
};

struct model_task {
	char id[16];
	int key; /* MODEL_KEYS: none */
	int32_t priority;
	int64_t created_ms;
	bool ready, claimed, final;
	uint32_t attempt;
};

struct model {
	struct world *world;
	struct rng rng;
	struct model_task tasks[MODEL_TASKS];
	uint32_t count;
	struct queue_limits limits;
	uint32_t caps[MODEL_KEYS];
	uint32_t served[MODEL_KEYS + 1], served_last;
};

static const char *const model_keys[] = {"k0", "k1", "k2", "k3", "k4", "k5", ""};

static bool model_lets(const struct model *model, const struct model_task *task)
{
	uint32_t live = 0, begun = 0, all = 0;

	for (uint32_t i = 0; i < model->count; i++) {
		const struct model_task *other = &model->tasks[i];
		all += other->claimed;
		if (other->key == task->key && !other->final) {
			live += other->claimed;
			begun += other->attempt > 0;
		}
	}
	if (model->limits.concurrency != 0 && all >= model->limits.concurrency)
		return false;
	if (task->key == MODEL_KEYS)
		return true;
	uint32_t most = model->caps[task->key] != 0 ? model->caps[task->key] : model->limits.per_key;
	if (most != 0 && live >= most)
		return false;
	return !model->limits.sequential || (task->attempt > 0 ? live : begun) == 0;
}

static uint32_t model_live(const struct model *model, int key)
{
	uint32_t live = 0;

	for (uint32_t i = 0; i < model->count; i++)
		live += model->tasks[i].claimed && model->tasks[i].key == key;
	return live;
}

static bool model_goes_before(
	const struct model *model, const struct model_task *a, const struct model_task *b)
{
	int64_t age_ms = model->limits.fair ? 0 : model->world->options.rules.queue_age_ms;

	if (age_ms != 0 && a->priority != b->priority) {
		int64_t sooner =
			(a->created_ms - a->priority * age_ms) - (b->created_ms - b->priority * age_ms);
		return sooner != 0 ? sooner < 0 : a < b;
	}
	if (a->priority != b->priority)
		return a->priority > b->priority;
	if (!model->limits.fair)
		return a < b;
	uint32_t live_a = model_live(model, a->key), live_b = model_live(model, b->key);
	if (live_a != live_b)
		return live_a < live_b;
	if (model->served[a->key] != model->served[b->key])
		return model->served[a->key] < model->served[b->key];
	return a < b;
}

/* The next one by priority, in a fair queue by the turn of its key, and by age, looking at every task. */
static struct model_task *model_next(struct model *model)
{
	struct model_task *best = NULL;

	for (uint32_t i = 0; i < model->count; i++) {
		struct model_task *task = &model->tasks[i];
		if (task->ready && model_lets(model, task) && (!best || model_goes_before(model, task, best)))
			best = task;
	}
	return best;
}

static void model_create(struct model *model)
{
	struct model_task *task = &model->tasks[model->count];

	if (model->count == MODEL_TASKS)
		return;
	*task = (struct model_task){.key = (int)rng_below(&model->rng, MODEL_KEYS + 1),
		.priority = (int32_t)rng_below(&model->rng, 3),
		.created_ms = model->world->now.wall_ms,
		.ready = true};
	snprintf(task->id, sizeof task->id, "m%u", model->count++);
	create(model->world, task->id, model_keys[task->key], task->priority);
}

static void model_claim(struct model *model)
{
	struct command command = say_claim("w");

	command.claim.max = 1 + (uint32_t)rng_below(&model->rng, 4);
	struct result *result = world_run(model->world, &command);
	for (uint32_t i = 0; i < command.claim.max; i++) {
		struct model_task *task = model_next(model);
		if (!task) {
			assert_int_equal(result->claim_count, i);
			return;
		}
		assert_true(i < result->claim_count);
		assert_string_equal(task->id, result->claims[i].id.data);
		task->ready = false;
		task->claimed = true;
		task->attempt++;
		model->served[task->key] = ++model->served_last;
	}
	assert_int_equal(result->claim_count, command.claim.max);
}

static void model_end(struct model *model)
{
	struct model_task *task = model->count ? &model->tasks[rng_below(&model->rng, model->count)] : NULL;

	if (!task || !task->claimed)
		return;
	bool completes = rng_below(&model->rng, 2) == 0;
	struct command report = say_report(completes ? COMMAND_COMPLETE : COMMAND_RELEASE, task->id, "w",
		world_task(model->world, task->id).fence);
	struct command commands[] = {report, say_claim("w")};
	struct result results[2];
	/* sometimes with a claim in the same turn */
	bool with_claim = rng_below(&model->rng, 2) == 0;
	assert_int_equal(
		store_turn(model->world->store, model->world->now, commands, with_claim ? 2 : 1, results), 0);
	assert_int_equal(results[0].refusal, REFUSED_NOTHING);
	task->claimed = false;
	task->final = completes;
	task->ready = !completes;
	struct model_task *next = with_claim ? model_next(model) : NULL;
	assert_int_equal(with_claim ? results[1].claim_count : 0, next != NULL);
	if (next) {
		assert_string_equal(next->id, results[1].claims[0].id.data);
		next->ready = false;
		next->claimed = true;
		next->attempt++;
		model->served[next->key] = ++model->served_last;
	}
	world_run(model->world, NULL);
}

static void model_limit(struct model *model)
{
	struct queue_limits *limits = &model->limits;

	switch (rng_below(&model->rng, 5)) {
	case 3:
		limits->fair = !limits->fair;
		fair(model->world, limits->fair);
		break;
	case 0:
		limits->per_key = (uint32_t)rng_below(&model->rng, 3);
		per_key(model->world, limits->per_key);
		break;
	case 1:
		limits->sequential = !limits->sequential;
		sequential(model->world, limits->sequential);
		break;
	case 2: {
		uint32_t key = (uint32_t)rng_below(&model->rng, MODEL_KEYS);
		model->caps[key] = (uint32_t)rng_below(&model->rng, 4);
		assert_int_equal(cap(model->world, model_keys[key], model->caps[key]), REFUSED_NOTHING);
		break;
	}
	default:
		limits->concurrency = (uint32_t)rng_below(&model->rng, 8);
		struct command command = say_limits(LIMITS_SET_CONCURRENCY, *limits);
		assert_int_equal(world_run(model->world, &command)->refusal, REFUSED_NOTHING);
	}
}

static void model_patch(struct model *model)
{
	struct model_task *task = model->count ? &model->tasks[rng_below(&model->rng, model->count)] : NULL;

	if (!task || task->final)
		return;
	struct command command = say_about(COMMAND_UPDATE, task->id);
	task->key = (int)rng_below(&model->rng, MODEL_KEYS + 1);
	task->priority = (int32_t)rng_below(&model->rng, 3);
	command.update.patch.set_concurrency_key = command.update.patch.set_priority = true;
	command.update.concurrency_key = span_of(model_keys[task->key]);
	command.update.patch.priority = task->priority;
	assert_int_equal(world_run(model->world, &command)->refusal, REFUSED_NOTHING);
}

/* When a key was served last is known in memory only. */
static void model_crash(struct model *model)
{
	world_crash(model->world);
	memset(model->served, 0, sizeof model->served);
}

static void play_with_model(struct world *world)
{
	struct model *model = calloc(1, sizeof *model);

	model->world = world;
	rng_seed(&model->rng, world->on_disk ? 11 : 12);
	for (int step = 0; step < MODEL_STEPS; step++) {
		switch (rng_below(&model->rng, 16)) {
		case 0:
			model_limit(model);
			break;
		case 1:
			model_patch(model);
			break;
		case 2:
			if (rng_below(&model->rng, 8) == 0)
				model_crash(model);
			break;
		case 3:
		case 4:
		case 5:
		case 6:
		case 7:
			model_create(model);
			break;
		case 8:
		case 9:
		case 10:
			model_claim(model);
			break;
		default:
			model_end(model);
		}
		world->now.wall_ms += rng_below(&model->rng, 3);
	}
	free(model);
}

static void claims_get_what_looking_at_every_task_would_give(void **state)
{
	play_with_model(*state);
}

static void with_ageing_too(void **state)
{
	struct world *world = *state;

	world->options.rules.queue_age_ms = 40;
	world_crash(world);
	play_with_model(world);
}

static void a_task_of_low_priority_is_claimed_in_the_end(void **state)
{
	struct world *world = *state;

	world->options.rules.queue_age_ms = 1000;
	world_crash(world);
	create(world, "low", "", 0);
	for (int i = 0; i < 3; i++) {
		world->now.wall_ms += 25000;
		create(world, (const char *[]){"one", "two", "three"}[i], "", 50);
	}
	assert_string_equal(claim_one(world), "one");
	assert_string_equal(claim_one(world),
		"low"); /* 50 steps of priority are 50 s: as long in line as the second, and created first */
	assert_string_equal(claim_one(world), "two");
	assert_string_equal(claim_one(world), "three");
}

static void a_fair_queue_does_not_age_and_its_next_task_does(void **state)
{
	struct world *world = *state;

	world->options.rules.queue_age_ms = 1000;
	world_crash(world);
	fair(world, true);
	create(world, "low", "k", 0);
	world->now.wall_ms += 100000;
	create(world, "high", "k", 50);
	assert_string_equal(claim_one(world), "high"); /* of two in the fair queue the more urgent one */
	struct command other = say_create("other", "p");
	other.create.priority = 50;
	assert_int_equal(world_run(world, &other)->refusal, REFUSED_NOTHING);
	assert_string_equal(
		claim_one(world), "low"); /* of the heads of two queues that which stands in line longer */
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		ON_BOTH(a_full_key_is_passed_over_and_the_next_one_is_taken),
		ON_BOTH(a_key_may_have_a_number_of_its_own),
		ON_BOTH(too_many_numbers_of_keys_are_refused_and_nothing_changes),
		ON_BOTH(the_next_of_a_sequential_key_waits_until_the_begun_one_is_final),
		ON_BOTH(a_begun_task_of_a_sequential_key_goes_before_a_more_urgent_one),
		ON_BOTH(a_finish_of_the_turn_opens_its_key_for_a_claim_of_the_turn),
		ON_BOTH(a_limit_binds_claims_of_its_own_turn_and_lifting_it_too),
		ON_BOTH(a_task_that_is_moved_counts_where_it_stands),
		ON_BOTH(the_same_key_in_another_queue_is_another_key),
		ON_BOTH(a_freed_key_wakes_exactly_one),
		ON_BOTH(the_end_of_what_is_in_review_wakes_the_next_of_a_sequential_key),
		ON_BOTH(why_names_the_limit_of_the_key),
		ON_BOTH(a_crowd_of_one_key_does_not_starve_another_with_three),
		ON_BOTH(keys_without_live_claims_come_in_turn),
		ON_BOTH(a_key_that_brings_one_task_after_the_other_waits_for_its_turn),
		ON_BOTH(priority_goes_before_the_turn_of_a_key),
		ON_BOTH(a_turn_knows_whom_it_has_served_itself),
		ON_BOTH(the_fewest_live_claims_are_counted_after_a_crash_too),
		ON_BOTH(a_fair_queue_puts_its_next_task_forward_among_others),
		ON_BOTH(a_queue_with_as_many_open_tasks_as_it_may_have_takes_no_new_one),
		ON_BOTH(claims_get_what_looking_at_every_task_would_give),
		ON_BOTH(with_ageing_too),
		ON_BOTH(a_task_of_low_priority_is_claimed_in_the_end),
		ON_BOTH(a_fair_queue_does_not_age_and_its_next_task_does),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
