/* Workers that come and go: how often they may, what is told of it, and what became of what they held. */
#include <sys/stat.h>

#include "store_fixture.h"

static struct command say_process(const char *worker, uint32_t pid)
{
	struct command command = say_beat(worker, 0);

	command.kind = COMMAND_REGISTER;
	command.beat.describes = true;
	command.beat.slot = SPAN("slot-1");
	command.beat.process = (struct command_process){SPAN("host-a"), 1, 2, pid, 100};
	return command;
}

/* The next one finds its predecessor dead. */
static struct command say_successor(char id[16], char before[16], uint32_t number)
{
	snprintf(id, 16, "w%u", number);
	snprintf(before, 16, "w%u", number - 1);
	struct command command = say_process(id, 10 + number);
	if (number > 0)
		command.beat.replaces =
			(struct command_replaces){span_of(before), 10 + number - 1, 100, false};
	return command;
}

static uint64_t told(const struct world *world, enum event_kind kind)
{
	return store_counts(world->store)->events[kind];
}

/* It claims the task, and says that it runs it. The token of its next beat. */
static uint64_t bind_one(struct world *world, const char *worker, const char *task, uint64_t token)
{
	struct span id = span_of(task);
	struct command beat = say_beat(worker, token);

	world_create(world, task, "q");
	assert_int_not_equal(world_claim(world, worker), 0);
	beat.beat.bound = (struct name_list){&id, 1};
	world_run(world, &beat);
	assert_int_equal(world->result.lost_count, 0);
	return world->result.worker.token;
}

/* ---- many ---- */

static void a_lost_worker_frees_all_of_its_tasks_however_many(void **state)
{
	enum { TASKS = 250 };
	struct world *world = *state;
	struct command create = say_create(NULL, "q"), claim = say_claim("w"), beat = say_beat("w", 0);
	char texts[COMMAND_LIST_MAX][16];
	struct span ids[COMMAND_LIST_MAX];

	world_run(world, &beat);
	for (int i = 0; i < TASKS; i++)
		assert_int_equal(store_turn(world->store, world->now, &create, 1, &world->result), 0);
	claim.claim.max = COMMAND_LIST_MAX;
	for (int i = 0; i < 3; i++) {
		struct worker worker;
		assert_int_equal(store_turn(world->store, world->now, &claim, 1, &world->result), 0);
		uint32_t count = world->result.claim_count;
		for (uint32_t j = 0; j < count; j++) {
			struct span id = world->result.claims[j].id;
			snprintf(texts[j], sizeof texts[j], "%.*s", SPAN_ARGS(id));
			ids[j] = span_of(texts[j]);
		}
		assert_true(store_worker(world->store, SPAN("w"), &worker));
		beat = say_beat("w", worker.token);
		beat.beat.bound = (struct name_list){ids, count};
		assert_int_equal(store_turn(world->store, world->now, &beat, 1, &world->result), 0);
	}
	assert_int_equal(store_count(world->store, TASK_RUNNING), TASKS);
	world->now.lease_ms += 10 * 60 * 1000;
	world_run(world, NULL);
	assert_int_equal(store_count(world->store, TASK_RUNNING), 0);
	assert_int_equal(store_count(world->store, TASK_READY), TASKS);
}

static int count_behind(void *context, const struct worker_row *row)
{
	*(uint32_t *)context += row->worker.lease.deadline_ms < START_LEASE_MS + 10 * 60 * 1000;
	return 0;
}

static uint32_t renewals_not_written(const struct world *world)
{
	uint32_t count = 0;

	assert_int_equal(world->backend->ops->scan_workers(world->backend, count_behind, &count), 0);
	return count;
}

static void a_sweep_writes_so_many_renewals_and_the_next_goes_on(void **state)
{
	enum { WORKERS = 1200 };
	struct world *world = *state;
	uint64_t tokens[WORKERS];
	char id[16];

	for (uint32_t pass = 0; pass < 2; pass++) {
		for (uint32_t i = 0; i < WORKERS; i++) {
			snprintf(id, sizeof id, "w%u", i);
			struct command beat = say_beat(id, pass == 0 ? 0 : tokens[i]);
			beat.beat.lease_ms = 8 * 60 * 1000;
			assert_int_equal(store_turn(world->store, world->now, &beat, 1, &world->result), 0);
			assert_int_equal(world->result.refusal, REFUSED_NOTHING);
			tokens[i] = world->result.worker.token;
		}
		world_pass(world, 4 * 60 * 1000);
	}
	const uint32_t left[] = {WORKERS, WORKERS - 500, WORKERS - 1000, 0};
	for (int sweep = 0; sweep < 4; sweep++) {
		assert_int_equal(renewals_not_written(world), left[sweep]);
		assert_int_equal(store_sweep(world->store, world->now), 0);
	}
}

/* ---- how often ---- */

static void what_a_full_disk_refused_does_not_count_as_often(void **state)
{
	struct world *world = *state;

	world->options.rules.attempt_progress = 1;
	world_crash(world);
	world_create(world, "a", "q");
	uint64_t fence = world_claim(world, "w");
	memory_set_full(world->backend, true);
	assert_int_equal(world_report(world, COMMAND_PROGRESS, "a", "w", fence), REFUSED_UNAVAILABLE);
	memory_set_full(world->backend, false);
	assert_int_equal(store_sweep(world->store, world->now), 0);
	assert_int_equal(world_report(world, COMMAND_PROGRESS, "a", "w", fence), REFUSED_NOTHING);
	assert_int_equal(world_report(world, COMMAND_PROGRESS, "a", "w", fence), REFUSED_RATE_LIMITED);
}

static void whoever_dies_again_and_again_in_a_slot_has_to_wait(void **state)
{
	struct world *world = *state;
	char id[16], before[16];
	struct worker worker;
	uint32_t number = 0;

	for (; number < 20; number++) {
		struct command command = say_successor(id, before, number);
		assert_int_equal(world_run(world, &command)->refusal, REFUSED_NOTHING);
	}
	struct command command = say_successor(id, before, number);
	assert_int_equal(world_run(world, &command)->refusal, REFUSED_RATE_LIMITED);
	assert_true(world->result.crash_loop);
	assert_int_equal(world->result.retry_ms, 3000);
	assert_false(store_worker(world->store, span_of(id), &worker));
	assert_true(store_worker(world->store, span_of(before), &worker));
	assert_int_equal(worker.state, WORKER_ACTIVE); /* its word was not even heard */
	assert_int_equal(store_counts(world->store)->registrations_refused, 1);
	world_pass(world, 3000);
	assert_int_equal(world_run(world, &command)->refusal, REFUSED_NOTHING);
	assert_int_equal(told(world, EVENT_WORKER_REGISTERED), 21);
}

static void a_first_beat_counts_as_the_registration_that_it_is(void **state)
{
	struct world *world = *state;
	char id[16], before[16];

	for (uint32_t number = 0; number <= 20; number++) {
		struct command command = say_successor(id, before, number);
		command.kind = COMMAND_BEAT;
		assert_int_equal(world_run(world, &command)->refusal,
			number < 20 ? REFUSED_NOTHING : REFUSED_RATE_LIMITED);
	}
}

static void short_work_that_ends_with_a_goodbye_is_no_crash(void **state)
{
	struct world *world = *state;
	struct command leave = {.kind = COMMAND_LEAVE, .actor = SPAN("w"), .leave = WORKER_SHUTDOWN};
	char id[16];

	for (uint32_t number = 0; number < 100; number++) {
		snprintf(id, sizeof id, "w%u", number);
		struct command command = say_process(id, 10);
		leave.worker = span_of(id);
		assert_int_equal(world_run(world, &command)->refusal, REFUSED_NOTHING);
		assert_int_equal(world_run(world, &leave)->refusal, REFUSED_NOTHING);
	}
}

static void one_id_that_registers_again_and_again_has_to_wait(void **state)
{
	struct world *world = *state;
	struct command command = say_beat("w", 0);

	command.kind = COMMAND_REGISTER;
	for (uint32_t i = 0; i < 20; i++)
		assert_int_equal(world_run(world, &command)->refusal, REFUSED_NOTHING);
	uint64_t token = world->result.worker.token;
	assert_int_equal(world_run(world, &command)->refusal, REFUSED_RATE_LIMITED);
	assert_true(world->result.crash_loop);
	struct command beat = say_beat("w", token); /* nothing changed: the last token is still good */
	assert_int_equal(world_run(world, &beat)->refusal, REFUSED_NOTHING);
	struct command other = say_beat("v", 0);
	assert_int_equal(world_run(world, &other)->refusal, REFUSED_NOTHING);
}

static void a_name_of_an_old_door_registers_as_it_likes_while_it_lives(void **state)
{
	struct world *world = *state;
	struct command command = say_beat("agent", 0);

	command.kind = COMMAND_REGISTER;
	command.beat.named = true;
	for (uint32_t i = 0; i < 100; i++)
		assert_int_equal(world_run(world, &command)->refusal, REFUSED_NOTHING);
	assert_int_equal(told(world, EVENT_WORKER_UPDATED), 0);
}

static void a_principal_registers_so_many_a_minute(void **state)
{
	struct world *world = *state;
	struct command command = say_beat("", 0);
	char id[16];

	world->options.rules.principal_registrations = 5;
	world_crash(world);
	for (uint32_t i = 0; i <= 5; i++) {
		snprintf(id, sizeof id, "w%u", i);
		command.worker = span_of(id);
		assert_int_equal(
			world_run(world, &command)->refusal, i < 5 ? REFUSED_NOTHING : REFUSED_RATE_LIMITED);
	}
	assert_false(world->result.crash_loop);
	assert_int_equal(world->result.retry_ms, 12000);
	command.principal = 7;
	assert_int_equal(world_run(world, &command)->refusal, REFUSED_NOTHING);
}

static void ten_thousand_may_start_at_once(void **state)
{
	enum { EACH = 1000 };
	static struct command commands[EACH];
	static struct result results[EACH];
	static char ids[EACH][16], slots[EACH][16];
	struct world *world = *state;

	for (int batch = 0; batch < 10; batch++) {
		for (int i = 0; i < EACH; i++) {
			snprintf(ids[i], sizeof ids[i], "w%d", batch * EACH + i);
			snprintf(slots[i], sizeof slots[i], "s%d", batch * EACH + i);
			commands[i] = say_process(ids[i], 10);
			commands[i].beat.slot = span_of(slots[i]);
		}
		assert_int_equal(store_turn(world->store, world->now, commands, EACH, results), 0);
		for (int i = 0; i < EACH; i++)
			assert_int_equal(results[i].refusal, REFUSED_NOTHING);
	}
	assert_int_equal(store_workers(world->store, WORKER_ACTIVE), 10000);
	world_run(world, NULL);
}

/* ---- renewals ---- */

/* When SQLite last wrote: every write moves it. */
static struct timespec written(const struct world *world)
{
	struct stat stat_buf;
	char path[sizeof world->path + 8];

	snprintf(path, sizeof path, "%s-wal", world->path);
	assert_int_equal(stat(path, &stat_buf), 0);
	return stat_buf.st_mtim;
}

static bool same_time(struct timespec a, struct timespec b)
{
	return a.tv_sec == b.tv_sec && a.tv_nsec == b.tv_nsec;
}

static void a_beat_without_deltas_writes_nothing(void **state)
{
	struct world *world = *state;
	struct command beat = say_beat("w", 0);

	beat.beat.token = world_run(world, &beat)->worker.token;
	beat.beat.has_token = true;
	struct timespec before = written(world);
	for (int i = 0; i < 100; i++) {
		world_pass(world, 15000);
		beat.beat.token = world_run(world, &beat)->worker.token;
		assert_int_equal(world->result.refusal, REFUSED_NOTHING);
	}
	assert_true(same_time(before, written(world)));
	bind_one(world, "w", "a", beat.beat.token);
	assert_false(same_time(before, written(world)));
}

/* ---- who they are ---- */

static void what_changes_about_a_worker_is_told_once(void **state)
{
	struct world *world = *state;
	struct command first = say_process("w", 10);

	uint64_t token = world_run(world, &first)->worker.token;
	struct command beat = say_process("w", 10);
	beat.kind = COMMAND_BEAT;
	beat.beat.has_token = true;
	beat.beat.token = token;
	beat.beat.token = world_run(world, &beat)->worker.token; /* as before */
	assert_int_equal(told(world, EVENT_WORKER_UPDATED), 0);
	beat.beat.version = SPAN("1.2");
	beat.beat.token = world_run(world, &beat)->worker.token;
	assert_int_equal(told(world, EVENT_WORKER_UPDATED), 1);
	beat.beat.token = world_run(world, &beat)->worker.token;
	assert_int_equal(told(world, EVENT_WORKER_UPDATED), 1);
	beat.beat.metadata = SPAN("{\"rack\":7}");
	beat.beat.token = world_run(world, &beat)->worker.token;
	beat.beat.slot = SPAN("slot-2");
	beat.beat.token = world_run(world, &beat)->worker.token;
	assert_int_equal(told(world, EVENT_WORKER_UPDATED), 3);
	world_crash(world);
	struct worker_document document;
	assert_int_equal(store_read_worker(world->store, SPAN("w"), &document), 0);
	assert_true(span_equal(store_name(world->store, document.worker.version), SPAN("1.2")));
	assert_int_equal(document.instance, 1);
}

static void a_slot_is_told_with_who_fills_it(void **state)
{
	struct world *world = *state;
	struct command worker = say_process("w1", 10), named = say_beat("agent", 0);
	struct command crash = {.kind = COMMAND_SLOT_CRASH, .slot = SPAN("other")};
	struct slot_document slot;

	assert_int_equal(store_read_slot(world->store, SPAN("slot-1"), &slot), -ENOENT);
	world_run(world, &worker);
	named.beat = (struct command_beat){.describes = true, .named = true, .slot = SPAN("slot-1")};
	world_run(world, &named); /* two of an old door may share one */
	assert_int_equal(store_read_slot(world->store, SPAN("slot-1"), &slot), 0);
	assert_non_null(slot.filler);
	struct command leave = {.kind = COMMAND_LEAVE, .worker = SPAN("agent"), .leave = WORKER_SHUTDOWN};
	world_run(world, &leave);
	assert_int_equal(store_read_slot(world->store, SPAN("slot-1"), &slot), 0);
	assert_true(span_equal(slot.worker, SPAN("w1")));
	world_run(world, &crash);
	assert_int_equal(store_read_slot(world->store, SPAN("other"), &slot), 0);
	assert_null(slot.filler);
	assert_int_equal(slot.slot.restarts, 1);
}

static void the_oldest_heartbeat_is_known(void **state)
{
	struct world *world = *state;
	struct command a = say_beat("a", 0), b = say_beat("b", 0);

	assert_int_equal(store_heartbeat_age_max_ms(world->store, world->now), 0);
	a.beat.token = world_run(world, &a)->worker.token;
	world_pass(world, 7000);
	b.beat.token = world_run(world, &b)->worker.token;
	assert_int_equal(store_heartbeat_age_max_ms(world->store, world->now), 7000);
	a.beat.has_token = b.beat.has_token = true;
	world_run(world, &a);
	world_pass(world, 2000);
	assert_int_equal(store_heartbeat_age_max_ms(world->store, world->now), 2000);
	world_run(world, &b);
	world->now.wall_ms -= 3600 * 1000; /* whatever people's clock says */
	assert_int_equal(store_heartbeat_age_max_ms(world->store, world->now), 2000);
}

/* ---- what became of what they held ---- */

static void the_tasks_of_lost_workers_are_counted(void **state)
{
	struct world *world = *state;
	struct command beat = say_beat("w", 0);

	uint64_t token = world_run(world, &beat)->worker.token;
	token = bind_one(world, "w", "a", token);
	token = bind_one(world, "w", "b", token);
	struct command cancel = say_about(COMMAND_CANCEL, "b");
	world_run(world, &cancel);
	world_pass(world, 120 * 1000);
	world_run(world, NULL);
	assert_int_equal(world_state(world, "a"), TASK_READY);
	assert_int_equal(world_state(world, "b"), TASK_CANCELLED);
	assert_int_equal(store_counts(world->store)->rescheduled, 1);
	assert_int_equal(store_counts(world->store)->unscheduled[RESCHEDULE_SKIPPED], 1);
	assert_int_equal(store_counts(world->store)->unscheduled[RESCHEDULE_PERMANENT], 0);
}

static void a_task_that_loses_every_worker_is_not_rescheduled_for_ever(void **state)
{
	struct world *world = *state;
	char id[16];

	world_create(world, "a", "q");
	for (int i = 0; i < 3; i++) {
		snprintf(id, sizeof id, "w%d", i);
		struct span task = SPAN("a");
		struct command beat = say_beat(id, 0);
		beat.beat.token = world_run(world, &beat)->worker.token;
		beat.beat.has_token = true;
		beat.beat.bound = (struct name_list){&task, 1};
		world_claim(world, id);
		world_run(world, &beat);
		for (int minutes = 0; minutes < 10 && world_state(world, "a") == TASK_RUNNING; minutes++) {
			world_pass(world, 60 * 1000);
			world_run(world, NULL);
		}
		world_pass(world, 60 * 1000); /* the back-off */
		world_run(world, NULL);
	}
	assert_int_equal(world_state(world, "a"), TASK_FAILED);
	assert_int_equal(store_counts(world->store)->rescheduled, 2);
	assert_int_equal(store_counts(world->store)->unscheduled[RESCHEDULE_PERMANENT], 1);
}

static void with_rescheduling_off_a_lost_worker_is_only_marked(void **state)
{
	struct world *world = *state;
	struct command beat = say_beat("w", 0);
	struct worker worker;

	world->options.rules.reschedule_on_expiry = false;
	world_crash(world);
	uint64_t token = world_run(world, &beat)->worker.token;
	bind_one(world, "w", "a", token);
	world_pass(world, 3600 * 1000);
	world_run(world, NULL);
	assert_true(store_worker(world->store, SPAN("w"), &worker));
	assert_int_equal(worker.ended, WORKER_EXPIRED);
	assert_int_equal(world_state(world, "a"), TASK_RUNNING);
	assert_int_equal(store_counts(world->store)->rescheduled, 0);
	assert_int_equal(store_counts(world->store)->unscheduled[RESCHEDULE_SKIPPED], 1);
}

static void run_beats(struct world *world, const char *worker, uint64_t token, int minutes)
{
	for (int i = 0; i < 2 * minutes; i++) {
		struct command beat = say_beat(worker, token);
		world_pass(world, 30 * 1000);
		assert_int_equal(world_run(world, &beat)->refusal, REFUSED_NOTHING);
		token = world->result.worker.token;
	}
}

static void what_a_process_held_is_not_its_successors_under_the_same_id(void **state)
{
	struct world *world = *state;
	struct command old = say_process("w1", 10), fresh = say_process("w1", 20);
	struct slot_document slot;

	world_run(world, &old);
	bind_one(world, "w1", "job", world->result.worker.token);
	assert_int_equal(world_run(world, &fresh)->refusal,
		REFUSED_NOTHING); /* it was started again, and knows nothing */
	assert_int_equal(world_state(world, "job"), TASK_RUNNING); /* it may say that it runs it */
	run_beats(world, "w1", world->result.worker.token, 3);
	assert_int_equal(world_state(world, "job"), TASK_READY);
	assert_int_equal(store_read_slot(world->store, SPAN("slot-1"), &slot), 0);
	assert_int_equal(slot.slot.restarts, 1);
}

static void a_process_that_registers_again_keeps_what_it_holds(void **state)
{
	struct world *world = *state;
	struct command worker = say_process("w1", 10);

	world_run(world, &worker);
	bind_one(world, "w1", "job", world->result.worker.token);
	assert_int_equal(world_run(world, &worker)->refusal, REFUSED_NOTHING);
	run_beats(world, "w1", world->result.worker.token, 3);
	assert_int_equal(world_state(world, "job"), TASK_RUNNING);
}

static void what_a_successor_binds_again_stays_its_own(void **state)
{
	struct world *world = *state;
	struct command old = say_process("w1", 10), fresh = say_process("w1", 20);
	struct span job = SPAN("job");

	world_run(world, &old);
	bind_one(world, "w1", "job", world->result.worker.token);
	world_run(world, &fresh);
	struct command beat = say_beat("w1", world->result.worker.token);
	beat.beat.bound = (struct name_list){&job, 1};
	world_run(world, &beat);
	assert_int_equal(world->result.lost_count, 0);
	run_beats(world, "w1", world->result.worker.token, 3);
	assert_int_equal(world_state(world, "job"), TASK_RUNNING);
}

/* ---- who is to hear of it ---- */

/* Has the last turn told that one, and nobody else? */
static bool only_told(const struct world *world, const char *worker)
{
	uint32_t count;
	const struct span *news = store_notified(world->store, &count);

	return count == 1 && span_equal(news[0], span_of(worker));
}

static bool nobody_told(const struct world *world)
{
	uint32_t count;

	store_notified(world->store, &count);
	return count == 0;
}

static int64_t news_seq(const struct world *world, const char *worker)
{
	struct worker_document found;

	assert_int_equal(store_read_worker(world->store, span_of(worker), &found), 0);
	return found.news_seq;
}

static void what_others_do_to_what_it_holds_is_news_for_a_worker(void **state)
{
	struct world *world = *state;
	struct command first = say_beat("w1", 0), cancel = say_about(COMMAND_CANCEL, "a");

	world_run(world, &first);
	assert_true(nobody_told(world));
	uint64_t token = bind_one(world, "w1", "a", world->result.worker.token);
	assert_true(nobody_told(world));
	assert_int_equal(news_seq(world, "w1"), 0);
	world_run(world, &cancel);
	assert_true(only_told(world, "w1"));
	assert_int_equal(news_seq(world, "w1"), store_last_event(world->store));
	world_run(world, &cancel);
	assert_true(nobody_told(world)); /* it is stopping already */
	struct command beat = say_beat("w1", token);
	world_run(world, &beat);
	assert_int_equal(world->result.stop_count, 1);
	assert_true(nobody_told(world));
}

static void what_a_worker_does_itself_is_no_news_for_it(void **state)
{
	struct world *world = *state;

	world_create(world, "a", "q");
	uint64_t fence = world_claim(world, "w1");
	assert_int_equal(world_report(world, COMMAND_COMPLETE, "a", "w1", fence), REFUSED_NOTHING);
	assert_true(nobody_told(world));
}

static void a_claimant_that_is_forgotten_with_its_claim_is_told_too(void **state)
{
	struct world *world = *state;
	struct command cancel = say_about(COMMAND_CANCEL, "a");
	struct worker worker;

	world_create(world, "a", "q");
	assert_int_not_equal(world_claim(world, "w1"), 0);
	world_run(world, &cancel);
	assert_true(only_told(world, "w1"));
	assert_false(store_worker(world->store, SPAN("w1"), &worker));
}

static void a_worker_that_is_sent_away_or_given_up_is_told_once(void **state)
{
	struct world *world = *state;
	struct command first = say_beat("w1", 0);
	struct command quiet = {.kind = COMMAND_QUIET, .worker = SPAN("w1"), .oversees = true};

	world_run(world, &first);
	uint64_t token = bind_one(world, "w1", "a", world->result.worker.token);
	bind_one(world, "w1", "b", token);
	world_run(world, &quiet);
	assert_true(only_told(world, "w1"));
	world_run(world, &quiet);
	assert_true(nobody_told(world));
	world_pass(world, 10 * 60 * 1000);
	world_run(world, NULL);
	assert_int_not_equal(world_state(world, "b"), TASK_RUNNING);
	assert_true(only_told(world, "w1"));
}

static void after_a_start_nobody_knows_who_has_heard_what(void **state)
{
	struct world *world = *state;
	struct command first = say_beat("w1", 0);

	world_run(world, &first);
	bind_one(world, "w1", "a", world->result.worker.token);
	int64_t last = store_last_event(world->store);
	world_crash(world);
	assert_int_equal(news_seq(world, "w1"), last);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		ON_BOTH(a_lost_worker_frees_all_of_its_tasks_however_many),
		ON_BOTH(a_sweep_writes_so_many_renewals_and_the_next_goes_on),
		{"what_a_full_disk_refused_does_not_count_as_often (memory)",
			what_a_full_disk_refused_does_not_count_as_often, on_memory, world_over, NULL},
		ON_BOTH(whoever_dies_again_and_again_in_a_slot_has_to_wait),
		ON_BOTH(a_first_beat_counts_as_the_registration_that_it_is),
		ON_BOTH(short_work_that_ends_with_a_goodbye_is_no_crash),
		ON_BOTH(one_id_that_registers_again_and_again_has_to_wait),
		ON_BOTH(a_name_of_an_old_door_registers_as_it_likes_while_it_lives),
		ON_BOTH(a_principal_registers_so_many_a_minute),
		ON_BOTH(ten_thousand_may_start_at_once),
		{"a_beat_without_deltas_writes_nothing (sqlite)", a_beat_without_deltas_writes_nothing,
			on_sqlite, world_over, NULL},
		ON_BOTH(what_changes_about_a_worker_is_told_once),
		ON_BOTH(a_slot_is_told_with_who_fills_it),
		ON_BOTH(what_a_process_held_is_not_its_successors_under_the_same_id),
		ON_BOTH(a_process_that_registers_again_keeps_what_it_holds),
		ON_BOTH(what_a_successor_binds_again_stays_its_own),
		ON_BOTH(the_oldest_heartbeat_is_known),
		ON_BOTH(the_tasks_of_lost_workers_are_counted),
		ON_BOTH(a_task_that_loses_every_worker_is_not_rescheduled_for_ever),
		ON_BOTH(with_rescheduling_off_a_lost_worker_is_only_marked),
		ON_BOTH(what_others_do_to_what_it_holds_is_news_for_a_worker),
		ON_BOTH(what_a_worker_does_itself_is_no_news_for_it),
		ON_BOTH(a_claimant_that_is_forgotten_with_its_claim_is_told_too),
		ON_BOTH(a_worker_that_is_sent_away_or_given_up_is_told_once),
		ON_BOTH(after_a_start_nobody_knows_who_has_heard_what),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
