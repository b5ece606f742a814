/*
 * Records: what was encoded is what is decoded; what was not encoded is refused; and folding the records of
 * a task gives the task.
 */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

#include <errno.h>

#include "base/buf.h"
#include "base/rng.h"
#include "base/take.h"
#include "store/record/record.h"

enum {
	BYTES_MAX = 1 << 20,
};

static const struct task nothing;

static struct span encoded(struct buf *buf, const struct record *record)
{
	buf_clear(buf);
	assert_int_equal(record_encode(record, buf), 0);
	return buf_span(buf);
}

static struct record decoded(int64_t seq, struct span data)
{
	struct record record;

	assert_int_equal(record_decode(seq, data, &record), 0);
	return record;
}

static void assert_same_span(struct span a, struct span b)
{
	assert_true(span_equal(a, b));
}

static void assert_same_columns(const struct record *a, const struct record *b)
{
	struct fold one = {0}, other = {0};

	assert_int_equal(a->changed, b->changed);
	assert_int_equal(a->from, b->from);
	fold_apply(&one, a);
	fold_apply(&other, b);
	const char *difference = fold_difference(&one, &other.task, span_of(other.holder));
	if (difference)
		fail_msg("%s is not what it was", difference);
}

static void assert_same_record(const struct record *a, const struct record *b)
{
	assert_true(a->seq == b->seq);
	assert_true(a->wall_ms == b->wall_ms);
	assert_true(a->lease_ms == b->lease_ms);
	assert_int_equal(a->kind, b->kind);
	assert_true(a->task == b->task);
	assert_true(a->previous == b->previous);
	assert_same_span(a->id, b->id);
	assert_same_span(a->worker, b->worker);
	assert_same_span(a->actor, b->actor);
	assert_same_span(a->subject, b->subject);
	assert_same_span(a->note, b->note);
	assert_int_equal(a->facts, b->facts);
	for (int fact = 0; fact < FACT_COUNT; fact++)
		if (record_has(a, (enum fact)fact))
			assert_true(a->fact[fact] == b->fact[fact]);
	assert_same_columns(a, b);
}

static void assert_round_trip(const struct record *record)
{
	cleanup(buf_done) struct buf buf;

	buf_init(&buf, BYTES_MAX);
	struct record back = decoded(record->seq, encoded(&buf, record));
	assert_same_record(&back, record);
}

/* ---- tasks and records to write down ------------------------------------------------------------ */

static struct task largest_task(void)
{
	return (struct task){.created_ms = INT64_MAX,
		.queue = UINT32_MAX,
		.owner = UINT32_MAX,
		.requires = UINT32_MAX,
		.executor = UINT32_MAX,
		.priority = INT32_MAX,
		.timeout_ms = UINT32_MAX,
		.max_attempts = UINT32_MAX,
		.start_by_ms = INT64_MAX,
		.finish_by_ms = INT64_MAX,
		.keyed = true,
		.has_parent = true,
		.named_id = true,
		.state = TASK_CANCELLED,
		.ready_at_ms = INT64_MAX,
		.attempt = UINT32_MAX,
		.spent = UINT32_MAX,
		.crashes = UINT32_MAX,
		.interruptions = UINT32_MAX,
		.open_parents = UINT32_MAX,
		.dead_parents = UINT32_MAX,
		.fence = UINT64_MAX,
		.ended = ENDED_LOST,
		.code = FAILURE_CODE_COUNT - 1,
		.claim = {.holder = UINT32_MAX}};
}

static struct task smallest_task(void)
{
	return (struct task){
		.created_ms = INT64_MIN,
		.priority = INT32_MIN,
		.start_by_ms = INT64_MIN,
		.finish_by_ms = INT64_MIN,
		.ready_at_ms = INT64_MIN,
		.fence = UINT64_C(1) << 63,
	};
}

static struct record record_about(const struct task *before, const struct task *after)
{
	struct record record = {
		.seq = 42, .kind = EVENT_TASK_CLAIMED, .task = 7, .previous = 41, .worker = SPAN("worker-3")};

	record_diff(&record, before, after);
	return record;
}

static struct record full_record(void)
{
	struct task task = largest_task();
	struct record record = record_about(&nothing, &task);

	record.wall_ms = 1700000000000;
	record.lease_ms = 1000000;
	record.id = SPAN("build-7");
	record.actor = SPAN("operator");
	record.subject = SPAN("default");
	record.note = SPAN("{\"why\":\"because\"}");
	for (int fact = 0; fact < FACT_COUNT; fact++)
		record_fact(&record, (enum fact)fact, fact * 1000);
	return record;
}

static int64_t any_number(struct rng *rng)
{
	return (int64_t)(rng_u64(rng) >> rng_below(rng, 64));
}

static uint32_t any_count(struct rng *rng)
{
	return rng_u32(rng) >> rng_below(rng, 32);
}

/* Change some columns of the task, at random. */
static void change(struct rng *rng, struct task *task)
{
	uint32_t *counts[] = {&task->queue, &task->owner, &task->requires, &task->executor, &task->timeout_ms,
		&task->max_attempts, &task->attempt, &task->spent, &task->crashes, &task->interruptions,
		&task->open_parents, &task->dead_parents};
	int64_t *numbers[] = {&task->created_ms, &task->start_by_ms, &task->finish_by_ms, &task->ready_at_ms};
	bool *flags[] = {&task->keyed, &task->has_parent, &task->named_id};

	for (uint32_t i = rng_below(rng, 4); i > 0; i--) {
		*counts[rng_below(rng, 12)] = any_count(rng);
		*numbers[rng_below(rng, 4)] = any_number(rng);
		*flags[rng_below(rng, 3)] = rng_chance(rng, 2);
		task->priority = (int32_t)any_count(rng);
		task->fence = (uint64_t)any_number(rng);
		task->ended = (enum claim_end)rng_below(rng, ENDED_WAIT + 1);
		task->code = (enum failure_code)rng_below(rng, FAILURE_CODE_COUNT);
	}
	task->state = (enum task_state)rng_between(rng, TASK_PENDING, TASK_STATE_COUNT - 1);
}

/* ---- there and back ----------------------------------------------------------------------------- */

static void the_shortest_record_is_an_event_about_no_task(void **state)
{
	cleanup(buf_done) struct buf buf;
	struct record record = {.seq = 1, .kind = EVENT_SERVER_STARTED};

	(void)state;
	buf_init(&buf, BYTES_MAX);
	assert_int_equal(encoded(&buf, &record).len, 4);
	assert_round_trip(&record);
}

static void every_part_of_a_record_comes_back(void **state)
{
	struct record record = full_record();

	(void)state;
	assert_round_trip(&record);
}

static void every_part_may_be_the_only_one(void **state)
{
	struct record full = full_record();

	(void)state;
	for (int part = 0; part < 6; part++) {
		struct record record = {.seq = 42, .kind = EVENT_QUEUE_PAUSED};

		record.id = part == 0 ? full.id : record.id;
		record.worker = part == 1 ? full.worker : record.worker;
		record.actor = part == 2 ? full.actor : record.actor;
		record.subject = part == 3 ? full.subject : record.subject;
		record.note = part == 4 ? full.note : record.note;
		if (part == 5)
			record_fact(&record, FACT_MAX, 5);
		assert_round_trip(&record);
	}
}

static void the_largest_and_smallest_numbers_come_back(void **state)
{
	struct task ends[] = {largest_task(), smallest_task()};

	(void)state;
	for (int i = 0; i < 2; i++) {
		struct record record = record_about(&ends[1 - i], &ends[i]);

		record.task = INT64_MAX;
		record.previous = INT64_MAX;
		record.wall_ms = i ? INT64_MIN : INT64_MAX;
		record.lease_ms = i ? INT64_MAX : INT64_MIN;
		for (int fact = 0; fact < FACT_COUNT; fact++)
			record_fact(&record, (enum fact)fact, i ? INT64_MIN : INT64_MAX);
		assert_round_trip(&record);
	}
}

static void texts_may_be_long_and_hold_any_byte(void **state)
{
	static char text[500000];
	struct record record = full_record();

	(void)state;
	for (size_t i = 0; i < sizeof text; i++)
		text[i] = (char)i;
	record.id = (struct span){text, 128};
	record.worker = (struct span){text + 1, 128}; /* folding takes it as a string: no zero byte */
	record.actor = (struct span){text, 255};
	record.subject = (struct span){text, 255};
	record.note = (struct span){text, sizeof text};
	for (int fact = 0; fact < FACT_COUNT; fact++)
		record_fact(&record, (enum fact)fact, INT64_MIN);
	assert_round_trip(&record);
}

static void every_kind_of_event_and_every_state_comes_back(void **state)
{
	(void)state;
	for (int kind = EVENT_NONE + 1; kind < EVENT_KIND_COUNT; kind++) {
		if (!event_kind_is_known((enum event_kind)kind))
			continue;
		for (int s = TASK_NOWHERE; s < TASK_STATE_COUNT; s++) {
			struct task before = {.state = (enum task_state)s}, after = {.state = TASK_READY};
			struct record record = record_about(&before, &after);

			record.kind = (enum event_kind)kind;
			assert_round_trip(&record);
			record_diff(&record, &after, &before);
			assert_round_trip(&record);
		}
	}
}

static void only_what_changed_is_written(void **state)
{
	cleanup(buf_done) struct buf buf;
	struct task before = largest_task(), after = before;

	(void)state;
	buf_init(&buf, BYTES_MAX);
	after.state = TASK_READY;
	struct record record = record_about(&before, &after);
	struct record back = decoded(42, encoded(&buf, &record));
	assert_int_equal(back.columns.state, TASK_READY);
	assert_true(back.columns.fence == 0);
	assert_int_equal(back.columns.queue, 0);
	assert_int_equal(back.from, TASK_CANCELLED);
	assert_true(buf.len < 24);
}

static void a_record_that_does_not_fit_leaves_the_buffer_as_it_was(void **state)
{
	cleanup(buf_done) struct buf buf;
	struct record record = full_record();

	(void)state;
	buf_init(&buf, 100);
	assert_int_equal(buf_put_span(&buf, SPAN("before")), 0);
	assert_int_equal(record_encode(&record, &buf), -E2BIG);
	buf_cut(&buf, 6); /* nothing of it came behind what was there */
	assert_same_span(buf_span(&buf), SPAN("before"));
}

static void facts_are_there_only_when_they_were_said(void **state)
{
	struct record record = {0};

	(void)state;
	for (int fact = 0; fact < FACT_COUNT; fact++)
		assert_false(record_has(&record, (enum fact)fact));
	record_fact(&record, FACT_GRANTED, 0);
	assert_true(record_has(&record, FACT_GRANTED));
	assert_false(record_has(&record, FACT_DEADLINE));
	record_fact(&record, FACT_GRANTED, -5);
	assert_int_equal(record.fact[FACT_GRANTED], -5);
}

/* ---- what is not a record ----------------------------------------------------------------------- */

static void assert_no_record(struct span data)
{
	struct record record = {.seq = 99}, before = record;

	assert_int_equal(record_decode(1, data, &record), -EPROTO);
	assert_memory_equal(&record, &before, sizeof record);
}

/* A copy of exactly that length, so that a sanitizer sees a read beyond it. */
static void assert_no_record_in_copy(struct span data, size_t len)
{
	char *copy = malloc(len ? len : 1);

	assert_non_null(copy);
	memcpy(copy, data.data, len);
	assert_no_record((struct span){copy, len});
	free(copy);
}

static void a_record_cut_short_anywhere_is_refused(void **state)
{
	cleanup(buf_done) struct buf buf;
	struct record record = full_record();

	(void)state;
	buf_init(&buf, BYTES_MAX);
	struct span data = encoded(&buf, &record);
	for (size_t len = 0; len < data.len; len++)
		assert_no_record_in_copy(data, len);
	assert_int_equal(buf_put_byte(&buf, 0), 0);
	assert_no_record(buf_span(&buf));
}

static void unknown_kinds_states_and_facts_are_refused(void **state)
{
	cleanup(buf_done) struct buf buf;
	struct record records[] = {full_record(), full_record(), full_record(), full_record(), full_record()};

	(void)state;
	buf_init(&buf, BYTES_MAX);
	records[0].kind = EVENT_NONE;
	records[1].kind = EVENT_KIND_COUNT;
	records[2].from = TASK_STATE_COUNT;
	records[3].columns.state = TASK_STATE_COUNT;
	records[4].facts |= UINT64_C(1) << FACT_COUNT;
	for (int i = 0; i < 5; i++)
		assert_no_record(encoded(&buf, &records[i]));
}

static void assert_inside(struct span part, struct span data)
{
	if (part.len == 0)
		return;
	assert_true(part.data >= data.data);
	assert_true(part.data + part.len <= data.data + data.len);
}

static void assert_usable(const struct record *record, struct span data)
{
	struct span texts[] = {record->id, record->worker, record->actor, record->subject, record->note};

	assert_true(strlen(event_kind_name(record->kind)) > 0);
	assert_in_range(record->from, TASK_NOWHERE, TASK_STATE_COUNT - 1);
	assert_in_range(record->columns.state, TASK_NOWHERE, TASK_STATE_COUNT - 1);
	for (int i = 0; i < 5; i++)
		assert_inside(texts[i], data);
}

/* Whatever the bytes are: a refusal, or a record that can be used and written again. */
static bool decodes_safely(struct span data)
{
	cleanup(buf_done) struct buf buf;
	struct record record;

	buf_init(&buf, BYTES_MAX);
	int r = record_decode(5, data, &record);
	if (r == -EPROTO)
		return false;
	assert_int_equal(r, 0);
	assert_usable(&record, data);
	struct record again = decoded(5, encoded(&buf, &record));
	assert_int_equal(again.kind, record.kind);
	assert_same_span(again.note, record.note);
	return true;
}

static void random_bytes_are_refused_or_make_a_record(void **state)
{
	unsigned char bytes[120];
	struct rng rng;

	(void)state;
	rng_seed(&rng, 1);
	for (int i = 0; i < 200000; i++) {
		size_t len = rng_below(&rng, sizeof bytes + 1);
		uint32_t mask = rng_chance(&rng, 2) ? 0xff : 0x0f; /* small numbers get further */

		for (size_t j = 0; j < len; j++)
			bytes[j] = (unsigned char)(rng_u32(&rng) & mask);
		struct fold fold;
		decodes_safely((struct span){(const char *)bytes, len});
		int r = fold_decode(rng_below(&rng, 16), (struct span){(const char *)bytes, len}, &fold);
		assert_true(r == 0 || r == -EPROTO);
	}
}

static void records_with_wrong_bytes_are_refused_or_make_a_record(void **state)
{
	cleanup(buf_done) struct buf buf;
	struct record record = full_record();
	struct rng rng;
	int accepted = 0;

	(void)state;
	rng_seed(&rng, 2);
	buf_init(&buf, BYTES_MAX);
	for (int i = 0; i < 100000; i++) {
		struct span data = encoded(&buf, &record);

		for (uint32_t wrong = 1 + rng_below(&rng, 3); wrong > 0; wrong--)
			buf.data[rng_below(&rng, (uint32_t)data.len)] = (char)rng_u32(&rng);
		accepted += decodes_safely(data);
	}
	assert_in_range(accepted, 1000, 99000);
}

/* ---- folds -------------------------------------------------------------------------------------- */

/* One event of a task, through its encoding, into the fold. */
static void fold_in(struct fold *fold, struct record *record)
{
	cleanup(buf_done) struct buf buf;

	buf_init(&buf, BYTES_MAX);
	struct record back = decoded(record->seq, encoded(&buf, record));
	fold_apply(fold, &back);
}

static void assert_folded(const struct fold *fold, const struct task *task, const char *holder)
{
	const char *difference = fold_difference(fold, task, span_of(holder));

	if (difference)
		fail_msg("%s differs at version %lld", difference, (long long)task->version);
	assert_true(fold->task.seq == task->seq);
}

struct life {
	struct rng rng;
	struct task task;
	struct fold fold;
	char holder[129];
};

static void live_on(struct life *life)
{
	struct task before = life->task;
	struct record record = {.kind = EVENT_TASK_UPDATED, .task = 7, .previous = before.version};

	life->task.version++;
	change(&life->rng, &life->task);
	if (rng_chance(&life->rng, 3)) {
		life->task.claim.holder = 1 + rng_below(&life->rng, 3);
		snprintf(life->holder, sizeof life->holder, "worker-%u", life->task.claim.holder);
		record.kind = EVENT_TASK_CLAIMED;
		record.worker = span_of(life->holder);
	} else if (rng_chance(&life->rng, 3)) {
		life->task.claim.holder = 0;
		life->holder[0] = 0;
	}
	record.seq = life->task.version;
	record_diff(&record, &before, &life->task);
	fold_in(&life->fold, &record);
	assert_folded(&life->fold, &life->task, life->holder);
}

static void folding_the_records_of_a_task_gives_the_task(void **state)
{
	(void)state;
	for (uint64_t seed = 0; seed < 50; seed++) {
		struct life life = {.task = {.seq = 7, .version = (int64_t)seed}};

		rng_seed(&life.rng, seed);
		for (int i = 0; i < 200; i++)
			live_on(&life);
	}
}

static struct fold fold_of(const struct task *task, const char *holder)
{
	struct fold fold = {.task = *task};

	fold.task.seq = 7;
	fold.task.version = 12345;
	fold.task.claim.holder = holder[0] != 0;
	snprintf(fold.holder, sizeof fold.holder, "%s", holder);
	return fold;
}

static void a_fold_comes_back_from_its_baseline(void **state)
{
	cleanup(buf_done) struct buf buf;
	struct task tasks[] = {largest_task(), smallest_task()};
	char longest[129] = {0};

	(void)state;
	memset(longest, 'w', 128);
	const char *holders[] = {"", "w", longest};
	buf_init(&buf, BYTES_MAX);
	for (int i = 0; i < 6; i++) {
		struct fold fold = fold_of(&tasks[i % 2], holders[i / 2]), back;

		buf_clear(&buf);
		assert_int_equal(fold_encode(&fold, &buf), 0);
		assert_int_equal(fold_decode(7, buf_span(&buf), &back), 0);
		assert_folded(&back, &fold.task, fold.holder);
	}
}

static void a_baseline_of_another_task_is_refused(void **state)
{
	cleanup(buf_done) struct buf buf;
	struct task task = largest_task();
	struct fold fold = fold_of(&task, "w"), back;

	(void)state;
	buf_init(&buf, BYTES_MAX);
	assert_int_equal(fold_encode(&fold, &buf), 0);
	assert_int_equal(fold_decode(8, buf_span(&buf), &back), -EPROTO);
	buf.len--;
	assert_int_equal(fold_decode(7, buf_span(&buf), &back), -EPROTO);
}

static void folding_goes_on_from_a_baseline(void **state)
{
	cleanup(buf_done) struct buf buf;
	struct life life = {.task = {.seq = 7}};

	(void)state;
	buf_init(&buf, BYTES_MAX);
	rng_seed(&life.rng, 9);
	for (int i = 0; i < 500; i++) {
		live_on(&life);
		buf_clear(&buf);
		assert_int_equal(fold_encode(&life.fold, &buf), 0);
		assert_int_equal(fold_decode(7, buf_span(&buf), &life.fold), 0);
		assert_folded(&life.fold, &life.task, life.holder);
	}
}

static void a_difference_is_named_by_its_column(void **state)
{
	struct task task = largest_task();
	struct fold fold = fold_of(&task, "w");

	(void)state;
	task = fold.task;
	assert_null(fold_difference(&fold, &task, SPAN("w")));
	assert_string_equal(fold_difference(&fold, &task, SPAN("v")), "holder");
	task.version++;
	assert_string_equal(fold_difference(&fold, &task, SPAN("w")), "version");
	task = fold.task;
	task.finish_by_ms--;
	assert_string_equal(fold_difference(&fold, &task, SPAN("w")), "finish_by_ms");
	task = fold.task;
	task.fence--;
	assert_string_equal(fold_difference(&fold, &task, SPAN("w")), "fence");
	task = fold.task;
	task.state = TASK_READY;
	assert_string_equal(fold_difference(&fold, &task, SPAN("w")), "state");
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(the_shortest_record_is_an_event_about_no_task),
		cmocka_unit_test(every_part_of_a_record_comes_back),
		cmocka_unit_test(every_part_may_be_the_only_one),
		cmocka_unit_test(the_largest_and_smallest_numbers_come_back),
		cmocka_unit_test(texts_may_be_long_and_hold_any_byte),
		cmocka_unit_test(every_kind_of_event_and_every_state_comes_back),
		cmocka_unit_test(only_what_changed_is_written),
		cmocka_unit_test(a_record_that_does_not_fit_leaves_the_buffer_as_it_was),
		cmocka_unit_test(facts_are_there_only_when_they_were_said),
		cmocka_unit_test(a_record_cut_short_anywhere_is_refused),
		cmocka_unit_test(unknown_kinds_states_and_facts_are_refused),
		cmocka_unit_test(random_bytes_are_refused_or_make_a_record),
		cmocka_unit_test(records_with_wrong_bytes_are_refused_or_make_a_record),
		cmocka_unit_test(folding_the_records_of_a_task_gives_the_task),
		cmocka_unit_test(a_fold_comes_back_from_its_baseline),
		cmocka_unit_test(a_baseline_of_another_task_is_refused),
		cmocka_unit_test(folding_goes_on_from_a_baseline),
		cmocka_unit_test(a_difference_is_named_by_its_column),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
