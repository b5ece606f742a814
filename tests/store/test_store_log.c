/*
 * Logs in a store: appended once, read in pieces, bounded, and gone with the task.
 */
#include "store_fixture.h"

#include "core/task/log.h"

static enum refusal say_log(
	struct world *world, const char *task, uint64_t fence, int64_t offset, struct span data)
{
	struct command command = say_about(COMMAND_LOG, task);

	command.worker = SPAN("w");
	command.fence = fence;
	command.data = data;
	command.log.offset = offset;
	world_pass(world, 1000); /* in no hurry */
	return world_run(world, &command)->refusal;
}

struct reading {
	struct arena arena;
	struct log_piece piece;
};

static struct log_piece *read_from(
	struct world *world, struct reading *reading, uint32_t attempt, int64_t after, uint32_t limit)
{
	int64_t seq;

	arena_init(&reading->arena, 64 << 20);
	assert_int_equal(store_find_task(world->store, SPAN("a"), &seq), 0);
	assert_int_equal(
		store_read_log(world->store, seq, attempt, after, limit, &reading->arena, &reading->piece),
		0);
	return &reading->piece;
}

static void has_text(struct world *world, uint32_t attempt, const char *text)
{
	struct reading reading;
	struct log_piece *piece = read_from(world, &reading, attempt, 0, 1 << 20);

	assert_int_equal(piece->data.len, strlen(text));
	assert_memory_equal(piece->data.data, text, strlen(text));
	assert_int_equal(piece->length, strlen(text));
	assert_int_equal(piece->dropped, 0);
	arena_done(&reading.arena);
}

static void what_was_appended_is_there_after_a_crash_and_writes_no_event(void **state)
{
	struct world *world = *state;

	world_create(world, "a", "q");
	uint64_t fence = world_claim(world, "w");
	int64_t last = store_last_event(world->store);
	assert_int_equal(say_log(world, "a", fence, 0, SPAN("hello ")), REFUSED_NOTHING);
	assert_int_equal(say_log(world, "a", fence, 6, SPAN("world")), REFUSED_NOTHING);
	assert_int_equal(store_last_event(world->store), last);
	world_crash(world);
	has_text(world, 0, "hello world");
	assert_int_equal(say_log(world, "a", fence, 11, SPAN("!")), REFUSED_NOTHING);
	has_text(world, 1, "hello world!");
}

static void a_repeat_is_answered_again_and_other_bytes_are_refused(void **state)
{
	struct world *world = *state;

	world_create(world, "a", "q");
	uint64_t fence = world_claim(world, "w");
	say_log(world, "a", fence, 0, SPAN("hello "));
	assert_int_equal(say_log(world, "a", fence, 0, SPAN("hello ")), REFUSED_NOTHING);
	assert_true(world->result.repeated);
	assert_int_equal(say_log(world, "a", fence, 3, SPAN("lo world")), REFUSED_NOTHING);
	assert_int_equal(say_log(world, "a", fence, 3, SPAN("LO")), REFUSED_BAD_OFFSET);
	assert_int_equal(world->result.log_length, 11);
	assert_int_equal(say_log(world, "a", fence, 12, SPAN("x")), REFUSED_BAD_OFFSET);
	assert_int_equal(say_log(world, "a", fence, 10, SPAN("d\x80")), REFUSED_BAD_OFFSET);
	has_text(world, 0, "hello world");
}

#define SECRET "abcdefghijklmnopqrstuvwxyz0123456789ABCDEFG"
#define STARS  "*******************************************"

static void a_token_that_comes_in_parts_is_blanked(void **state)
{
	struct world *world = *state;
	const char *text = "see stint_worker_1_" SECRET " there";
	int64_t len = (int64_t)strlen(text);

	world_create(world, "a", "q");
	for (uint32_t attempt = 1; attempt <= 3; attempt++) {
		uint64_t fence = world_claim(world, "w");
		int64_t part = attempt == 1 ? 1 : attempt == 2 ? 7 : 40;
		for (int64_t at = 0; at < len; at += part) {
			struct span data = {text + at, (size_t)(at + part < len ? part : len - at)};
			assert_int_equal(say_log(world, "a", fence, at, data), REFUSED_NOTHING);
			assert_int_equal(say_log(world, "a", fence, at, data), REFUSED_NOTHING);
			assert_true(world->result.repeated);
		}
		has_text(world, attempt, "see stint_worker_1_" STARS " there");
		struct command progress = say_report(COMMAND_PROGRESS, "a", "w", fence);
		world_run(world, &progress); /* or it is interrupted too often */
		world_report(world, COMMAND_RELEASE, "a", "w", fence);
	}
}

static void a_token_at_the_border_of_two_chunks_is_blanked_in_both(void **state)
{
	struct world *world = *state;
	static char block[LOG_CHUNK_MAX + 1];
	static const char begin[] = "stint_worker_1_abcdefghijklmnopqrstuvwxyz";
	struct span end = SPAN("0123456789ABCDEFG there");

	memset(block, ' ', sizeof block - 1);
	memcpy(block + sizeof block - sizeof begin, begin, sizeof begin);
	world_create(world, "a", "q");
	uint64_t fence = world_claim(world, "w");
	assert_int_equal(say_log(world, "a", fence, 0, span_of(block)), REFUSED_NOTHING);
	assert_int_equal(say_log(world, "a", fence, LOG_CHUNK_MAX, end), REFUSED_NOTHING);
	memset(strstr(block, "abc"), '*', 26);
	struct reading reading;
	struct log_piece *piece = read_from(world, &reading, 0, 0, 1 << 20);
	assert_int_equal(piece->data.len, LOG_CHUNK_MAX + end.len);
	assert_memory_equal(piece->data.data, block, LOG_CHUNK_MAX);
	assert_memory_equal(piece->data.data + LOG_CHUNK_MAX, "***************** there", end.len);
	arena_done(&reading.arena);
	assert_int_equal(say_log(world, "a", fence, LOG_CHUNK_MAX, end), REFUSED_NOTHING);
	assert_true(world->result.repeated);
}

/* Part by part: the second one begins a chunk, and only the third one makes the token whole. */
static void a_token_in_three_parts_is_blanked_in_the_chunk_before(void **state)
{
	struct world *world = *state;
	static char block[LOG_CHUNK_MAX + 1];
	static const char begin[] = "stint_worker_1_abcdefghijklmnopqrstuvwxyz";
	struct span middle = SPAN("0123456789"), end = SPAN("ABCDEFG there");
	struct reading reading;

	memset(block, ' ', sizeof block - 1);
	memcpy(block + sizeof block - sizeof begin, begin, sizeof begin);
	world_create(world, "a", "q");
	uint64_t fence = world_claim(world, "w");
	assert_int_equal(say_log(world, "a", fence, 0, span_of(block)), REFUSED_NOTHING);
	assert_int_equal(say_log(world, "a", fence, LOG_CHUNK_MAX, middle), REFUSED_NOTHING);
	assert_int_equal(
		say_log(world, "a", fence, LOG_CHUNK_MAX + (int64_t)middle.len, end), REFUSED_NOTHING);
	memset(strstr(block, "abc"), '*', 26);
	struct log_piece *piece = read_from(world, &reading, 0, 0, 1 << 20);
	assert_int_equal(piece->data.len, LOG_CHUNK_MAX + middle.len + end.len);
	assert_memory_equal(piece->data.data, block, LOG_CHUNK_MAX);
	assert_memory_equal(
		piece->data.data + LOG_CHUNK_MAX, "***************** there", middle.len + end.len);
	arena_done(&reading.arena);
}

static void only_the_holder_of_the_live_claim_appends(void **state)
{
	struct world *world = *state;

	world_create(world, "a", "q");
	assert_int_equal(say_log(world, "a", 1, 0, SPAN("x")), REFUSED_STALE_CLAIM);
	uint64_t fence = world_claim(world, "w");
	assert_int_equal(say_log(world, "a", fence + 1, 0, SPAN("x")), REFUSED_STALE_CLAIM);
	assert_int_equal(say_log(world, "b", fence, 0, SPAN("x")), REFUSED_NOT_FOUND);
	world_report(world, COMMAND_COMPLETE, "a", "w", fence);
	assert_int_equal(say_log(world, "a", fence, 0, SPAN("x")), REFUSED_STALE_CLAIM);
	has_text(world, 1, "");
}

static void every_attempt_has_a_log_of_its_own_and_the_oldest_give_way(void **state)
{
	struct world *world = *state;
	struct reading reading;
	char text[32];
	int64_t seq;

	world_create(world, "a", "q");
	for (uint32_t attempt = 1; attempt <= LOG_ATTEMPTS_MAX + 2; attempt++) {
		uint64_t fence = world_claim(world, "w");
		struct command progress = say_report(COMMAND_PROGRESS, "a", "w", fence);
		world_run(world, &progress); /* or it is interrupted too often */
		snprintf(text, sizeof text, "attempt %u", attempt);
		assert_int_equal(say_log(world, "a", fence, 0, span_of(text)), REFUSED_NOTHING);
		world_report(world, COMMAND_RELEASE, "a", "w", fence);
	}
	has_text(world, 0, text);
	has_text(world, 3, "attempt 3");
	has_text(world, 2, ""); /* no longer kept */
	arena_init(&reading.arena, 1 << 20);
	store_find_task(world->store, SPAN("a"), &seq);
	assert_int_equal(store_read_log(world->store, seq, LOG_ATTEMPTS_MAX + 3, 0, 100, &reading.arena,
				 &reading.piece),
		-ENOENT);
	arena_done(&reading.arena);
}

static void a_long_log_keeps_its_ends_and_says_what_is_missing(void **state)
{
	struct world *world = *state;
	static char block[LOG_APPEND_MAX];
	struct reading reading;
	int64_t length = 0, seen = 0, missing = 0;
	struct log_piece *piece;

	world_create(world, "a", "q");
	struct command claim = say_claim("w");
	claim.claim.lease_ms = 3600 * 1000;
	uint64_t fence = world_run(world, &claim)->claims[0].task.fence;
	for (int i = 0; i < 40; i++, length += LOG_APPEND_MAX) {
		memset(block, 'a' + i % 26, sizeof block);
		assert_int_equal(say_log(world, "a", fence, length, (struct span){block, sizeof block}),
			REFUSED_NOTHING);
	}
	for (int64_t at = 0; at < length; at = piece->offset + (int64_t)piece->data.len) {
		piece = read_from(world, &reading, 0, at, 100000);
		assert_int_equal(piece->offset, at + piece->dropped);
		for (size_t i = 0; i < piece->data.len; i += 999)
			assert_int_equal(piece->data.data[i],
				'a' + (piece->offset + (int64_t)i) / LOG_APPEND_MAX % 26);
		seen += (int64_t)piece->data.len;
		missing += piece->dropped;
		arena_done(&reading.arena);
	}
	assert_int_equal(seen + missing, length);
	assert_int_equal(seen, 1 << 20);
}

static void a_piece_begins_and_ends_between_characters(void **state)
{
	struct world *world = *state;
	struct reading reading;

	world_create(world, "a", "q");
	uint64_t fence = world_claim(world, "w");
	say_log(world, "a", fence, 0, SPAN("x\xe2\x82\xac\xe2\x82\xacy")); /* x€€y */
	struct log_piece *piece = read_from(world, &reading, 0, 0, 6);
	assert_int_equal(piece->data.len, 4);
	arena_done(&reading.arena);
	piece = read_from(world, &reading, 0, 2, 100);
	assert_int_equal(piece->offset, 4);
	assert_int_equal(piece->data.len, 4);
	arena_done(&reading.arena);
}

static enum refusal say_lengths(struct world *world, uint64_t fence, int64_t offset, struct span data,
	uint32_t count, uint32_t *lengths)
{
	struct command command = say_about(COMMAND_LOG, "a");

	command.worker = SPAN("w");
	command.fence = fence;
	command.data = data;
	command.log.offset = offset;
	command.log.streams = (struct log_streams){.count = count, .max = count, .lengths = lengths};
	world_pass(world, 1000);
	return world_run(world, &command)->refusal;
}

static enum refusal say_streams(
	struct world *world, uint64_t fence, int64_t offset, struct span data, uint32_t out, uint32_t err)
{
	return say_lengths(world, fence, offset, data, 2, (uint32_t[]){out, err});
}

static void has_streams(struct world *world, int64_t after, uint32_t limit, const char *text, uint32_t count,
	const uint32_t *lengths)
{
	struct reading reading;
	struct log_piece *piece = read_from(world, &reading, 1, after, limit);

	assert_int_equal(piece->data.len, strlen(text));
	assert_memory_equal(piece->data.data, text, strlen(text));
	assert_int_equal(piece->streams.count, count);
	for (uint32_t i = 0; i < count; i++)
		assert_int_equal(piece->streams.lengths[i], lengths[i]);
	arena_done(&reading.arena);
}

static void the_streams_of_a_log_stay_apart_over_appends_repeats_and_a_crash(void **state)
{
	struct world *world = *state;

	world_create(world, "a", "q");
	uint64_t fence = world_claim(world, "w");
	say_log(world, "a", fence, 0, SPAN("out "));
	assert_int_equal(say_streams(world, fence, 4, SPAN("o2 err "), 3, 4), REFUSED_NOTHING);
	assert_int_equal(say_streams(world, fence, 4, SPAN("o2 err e2 "), 3, 7), REFUSED_NOTHING);
	assert_int_equal(say_streams(world, fence, 7, SPAN("err e2 "), 0, 7), REFUSED_NOTHING);
	say_log(world, "a", fence, 14, SPAN("end"));
	world_crash(world);
	has_streams(world, 0, 100, "out o2 err e2 end", 3, (uint32_t[]){7, 7, 3});
	has_streams(world, 8, 16, "rr e2 end", 3, (uint32_t[]){0, 6, 3});
	has_streams(world, 14, 16, "end", 0, NULL);
}

static void streams_that_change_all_the_time_come_in_more_pieces(void **state)
{
	struct world *world = *state;
	uint32_t lengths[1000];
	char text[1000];
	int64_t after = 0;

	world_create(world, "a", "q");
	uint64_t fence = world_claim(world, "w");
	for (int64_t i = 0; i < 1000; i++)
		lengths[i] = 1;
	memset(text, 'x', sizeof text);
	for (int64_t i = 0; i < 6; i++)
		assert_int_equal(
			say_lengths(world, fence, 1000 * i, (struct span){text, 1000}, 1000, lengths),
			REFUSED_NOTHING);
	for (int pieces = 0; after < 6000; pieces++) {
		struct reading reading;
		struct log_piece *piece = read_from(world, &reading, 1, after, 1 << 18);
		assert_true(pieces < 2);
		assert_int_equal(
			piece->data.len, pieces == 0 ? LOG_PIECE_STREAMS_MAX : 6000 - LOG_PIECE_STREAMS_MAX);
		assert_int_equal(piece->streams.count, piece->data.len);
		after = piece->offset + (int64_t)piece->data.len;
		arena_done(&reading.arena);
	}
}

static void a_log_goes_with_its_task(void **state)
{
	struct world *world = *state;
	struct arena arena;
	struct span data;

	world_create(world, "a", "q");
	uint64_t fence = world_claim(world, "w");
	int64_t seq = world->result.claims[0].task.seq;
	say_log(world, "a", fence, 0, SPAN("hello"));
	world_report(world, COMMAND_COMPLETE, "a", "w", fence);
	world_pass(world, INT64_C(8) * 24 * 3600 * 1000);
	for (int i = 0; i < 100 && world_state(world, "a") != TASK_NOWHERE; i++)
		assert_int_equal(store_sweep(world->store, world->now), 0);
	arena_init(&arena, 1 << 20);
	assert_int_equal(
		world->backend->ops->get_extra(world->backend, seq, EXTRA_LOG, 0, &arena, &data), -ENOENT);
	assert_int_equal(
		world->backend->ops->get_extra(world->backend, seq, EXTRA_LOG, 1, &arena, &data), -ENOENT);
	assert_int_equal(world->backend->ops->get_extra(
				 world->backend, seq, EXTRA_LOG_CHUNK, LOG_LENGTH_MAX, &arena, &data),
		-ENOENT);
	arena_done(&arena);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		ON_BOTH(what_was_appended_is_there_after_a_crash_and_writes_no_event),
		ON_BOTH(a_repeat_is_answered_again_and_other_bytes_are_refused),
		ON_BOTH(a_token_that_comes_in_parts_is_blanked),
		ON_BOTH(a_token_at_the_border_of_two_chunks_is_blanked_in_both),
		ON_BOTH(a_token_in_three_parts_is_blanked_in_the_chunk_before),
		ON_BOTH(only_the_holder_of_the_live_claim_appends),
		ON_BOTH(every_attempt_has_a_log_of_its_own_and_the_oldest_give_way),
		ON_BOTH(a_long_log_keeps_its_ends_and_says_what_is_missing),
		ON_BOTH(a_piece_begins_and_ends_between_characters),
		ON_BOTH(the_streams_of_a_log_stay_apart_over_appends_repeats_and_a_crash),
		ON_BOTH(streams_that_change_all_the_time_come_in_more_pieces),
		ON_BOTH(a_log_goes_with_its_task),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
