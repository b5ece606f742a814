/*
 * Every pair of commands that can meet in one turn, in both orders, in every situation of a task: one turn with both does what
 * two turns with one each do. Memory and disk agree after each, and the events fold to the rows (world_run() asks that).
 *
 *	test_store_pairs [PART PARTS]     every situation, or those of one part, so that parts can run beside each other
 */
#include <malloc.h>

#include "store/store_fixture.h"

enum {
	EVENTS_MAX = 64,
	STRANGER = 5, /* a principal that has held nothing */
#ifdef __SANITIZE_ADDRESS__
	PAIRS_STEP = 3, /* each situation asks for every third pair, the next one for the third beside it */
#else
	PAIRS_STEP = 1,
#endif
};

/* ---- situations ---------------------------------------------------------------------------------------- */

static struct command say_register(const char *worker)
{
	struct command command = say_beat(worker, 0);

	command.kind = COMMAND_REGISTER;
	command.beat.describes = true;
	command.beat.any_executor = true;
	return command;
}

static void run(struct world *world, struct command command)
{
	assert_int_equal(world_run(world, &command)->refusal, REFUSED_NOTHING);
}

static uint64_t fence_of(struct world *world)
{
	return world_task(world, "t").fence;
}

static uint64_t token_of(struct world *world)
{
	struct worker worker = {0};

	store_worker(world->store, SPAN("w"), &worker);
	return worker.token;
}

static void make_ready(struct world *world)
{
	run(world, say_create("t", "q"));
}

static void make_claimed(struct world *world)
{
	make_ready(world);
	assert_int_not_equal(world_claim(world, "w"), 0);
}

static void make_running(struct world *world)
{
	static const struct span task = {"t", 1};

	run(world, say_register("w"));
	make_claimed(world);
	struct command beat = say_beat("w", token_of(world));
	beat.beat.bound = (struct name_list){&task, 1};
	run(world, beat);
	assert_int_equal(world_state(world, "t"), TASK_RUNNING);
}

static void report(struct world *world, enum command_kind kind)
{
	assert_int_equal(world_report(world, kind, "t", "w", fence_of(world)), REFUSED_NOTHING);
}

static void make_asking(struct world *world)
{
	make_running(world);
	report(world, COMMAND_ASK);
}

static void make_parked_question(struct world *world)
{
	make_asking(world);
	report(world, COMMAND_RELEASE);
}

static void make_review(struct world *world)
{
	make_claimed(world);
	report(world, COMMAND_REVIEW);
}

static void make_done(struct world *world)
{
	make_claimed(world);
	report(world, COMMAND_COMPLETE);
}

static void make_failed(struct world *world)
{
	struct command create = say_create("t", "q");

	create.create.max_attempts = 1;
	run(world, create);
	world_claim(world, "w");
	report(world, COMMAND_FAIL);
}

static void make_blocked(struct world *world)
{
	make_claimed(world);
	report(world, COMMAND_BLOCK);
}

static void make_cancelled(struct world *world)
{
	make_ready(world);
	run(world, say_about(COMMAND_CANCEL, "t"));
}

static void make_stopping(struct world *world)
{
	make_running(world);
	run(world, say_about(COMMAND_CANCEL, "t"));
	assert_int_equal(world_state(world, "t"), TASK_RUNNING);
}

static void make_parked(struct world *world)
{
	struct command create = say_create("t", "q");

	create.create.parked = true;
	run(world, create);
}

static void make_scheduled(struct world *world)
{
	struct command create = say_create("t", "q");

	create.create.not_before_ms = START_WALL_MS + 1000000;
	run(world, create);
}

static void make_waiting(struct world *world)
{
	static const struct span parent = {"p", 1};
	struct command create = say_create("t", "q");

	run(world, say_create("p", "elsewhere"));
	create.create.parents = (struct name_list){&parent, 1};
	run(world, create);
}

static void make_paused(struct world *world)
{
	struct command pause = {.kind = COMMAND_QUEUE_SET, .queue_set = {SPAN("q"), QUEUE_PAUSED}};

	make_ready(world);
	run(world, pause);
}

static void make_disarmed(struct world *world)
{
	make_claimed(world);
	run(world, (struct command){.kind = COMMAND_EXECUTION_SET, .armed = false});
}

static void make_quarantined(struct world *world)
{
	make_ready(world);
	for (int i = 0; i < 3; i++)
		run(world, (struct command){.kind = COMMAND_SLOT_CRASH, .slot = SPAN("s")});
}

static void make_nothing(struct world *world)
{
	(void)world;
}

static const struct situation {
	const char *name;
	void (*make)(struct world *world);
} situations[] = {
	{"no task", make_nothing},
	{"ready", make_ready},
	{"claimed", make_claimed},
	{"running", make_running},
	{"asking", make_asking},
	{"asking, released", make_parked_question},
	{"in review", make_review},
	{"done", make_done},
	{"failed", make_failed},
	{"blocked", make_blocked},
	{"cancelled", make_cancelled},
	{"stopping", make_stopping},
	{"parked", make_parked},
	{"scheduled", make_scheduled},
	{"waiting", make_waiting},
	{"in a paused queue", make_paused},
	{"disarmed", make_disarmed},
	{"beside a quarantined slot", make_quarantined},
};

/* ---- commands ------------------------------------------------------------------------------------------ */

/* Task t, as the step of a bulk action has seen it. */
static const struct bulk_item *bulk_items(struct world *world)
{
	static struct bulk_item item;
	struct task task = world_task(world, "t");

	item = (struct bulk_item){.seq = task.seq, .version = task.version};
	return &item;
}

/* A command of that kind about task t, worker w, queue q or slot s. What its caller knows is what was true before the turn. */
static struct command say(struct world *world, enum command_kind kind, uint64_t fence)
{
	static const struct command_create template = {.queue = {"q", 1}, .body = {"{}", 2}};
	static const struct span task = {"t", 1};
	struct command command = {
		.kind = kind,
		.actor = SPAN("tester"),
		.oversees = true,
		.task = task,
		.worker = SPAN("w"),
		.fence = fence,
	};

	switch (kind) {
	case COMMAND_CREATE:
		command.create = (struct command_create){.id = SPAN("t"),
			.queue = SPAN("q"),
			.body = SPAN("{}"),
			.unique_key = SPAN("k"),
			.group = SPAN("g")};
		break;
	case COMMAND_UPDATE:
		command.update = (struct command_update){
			.patch = {.set_priority = true, .priority = 7}, .set_body = true, .body = SPAN("{}")};
		break;
	case COMMAND_TELL:
		command.data = SPAN("told");
		break;
	case COMMAND_INBOX_KEEP:
	case COMMAND_INBOX_DROP:
		command.inbox.id = 1;
		command.inbox.queue = SPAN("q");
		break;
	case COMMAND_GROUP_CLOSE:
	case COMMAND_GROUP_REMOVE:
		command.group.name = SPAN("g");
		break;
	case COMMAND_BULK_START:
	case COMMAND_BULK_STOP:
		command.bulk.bulk =
			(struct bulk){.number = 1, .action = BULK_PARK, .filter = SPAN("{\"queue\":\"q\"}")};
		break;
	case COMMAND_BULK_STEP:
		command.bulk.bulk.number = 1;
		command.bulk.to = 1;
		command.bulk.items = bulk_items(world);
		command.bulk.item_count = 1;
		break;
	case COMMAND_HOLD_SET:
	case COMMAND_HOLD_LIFT:
		command.hold.credential = SPAN("account");
		break;
	case COMMAND_BUDGET_SET:
		command.budget.scope = BUDGET_OF_ACCOUNT;
		command.budget.name = SPAN("account");
		command.budget.patch = (struct day_budget_patch){.set = 1, .wanted = {1000000}};
		break;
	case COMMAND_SCHEDULE_PUT:
		command.schedule = (struct command_schedule){.schedule = {.id = SPAN("s"),
								     .kind = PLAN_EVERY,
								     .every_ms = 60000,
								     .task = SPAN("{}")},
			.create = &template};
		break;
	case COMMAND_SCHEDULE_REMOVE:
	case COMMAND_SCHEDULE_RUN:
	case COMMAND_SCHEDULE_PAUSE:
	case COMMAND_SCHEDULE_RESUME:
		command.schedule.schedule.id = SPAN("s");
		break;
	case COMMAND_QUEUE_SET:
		command.queue_set.queue = SPAN("q");
		command.queue_set.state = QUEUE_PAUSED;
		break;
	case COMMAND_QUEUE_LIMIT:
		command.queue_limit.queue = SPAN("q");
		command.queue_limit.patch = (struct limits_patch){LIMITS_SET_CONCURRENCY, {.concurrency = 1}};
		break;
	case COMMAND_EXECUTION_SET:
		command.armed = false;
		break;
	case COMMAND_CLAIM_NEXT:
	case COMMAND_CLAIM:
		command.claim = (struct command_claim){.max = 1, .any_executor = true, .takes_ready = true};
		break;
	case COMMAND_FAIL:
	case COMMAND_BLOCK:
		command.failure = (struct failure){.code = CODE_EXECUTION_ERROR, .klass = CLASS_TASK};
		break;
	case COMMAND_VERDICT:
		command.principal = STRANGER;
		command.verdict = (struct command_verdict){.gate = SPAN("review"), .passes = false};
		break;
	case COMMAND_REGISTER:
		command = say_register("w");
		break;
	case COMMAND_BEAT:
		command = say_beat("w", token_of(world));
		command.beat.bound = (struct name_list){&task, 1};
		break;
	case COMMAND_LEAVE:
		command.leave = WORKER_SHUTDOWN;
		break;
	case COMMAND_SLOT_CRASH:
	case COMMAND_UNQUARANTINE:
	case COMMAND_SLOT_ENTER:
		command.slot = SPAN("s");
		break;
	case COMMAND_SLOT_ASSIGN:
		command.assign.slot = SPAN("s");
		command.assign.queues = (struct name_list){&task, 1};
		break;
	case COMMAND_TOKEN_PUT:
	case COMMAND_TOKEN_REVOKE:
	case COMMAND_KEY_ROTATE:
		command.token = (struct command_token){
			.id = SPAN("tok"), .kind = TOKEN_WORKER, .name = SPAN("n"), .hash = {1}};
		break;
	case COMMAND_ENROL:
		command.token = (struct command_token){.id = SPAN("new"),
			.kind = TOKEN_WORKER,
			.name = SPAN("n"),
			.code = SPAN("tok"),
			.shown = {1},
			.hash = {2}};
		break;
	case COMMAND_TOKEN_RENEW:
		command.token = (struct command_token){.id = SPAN("tok"), .shown = {1}, .hash = {3}};
		break;
	case COMMAND_LOGIN_CODE:
	case COMMAND_LOGIN:
	case COMMAND_LOGOUT:
		command.login = (struct command_login){.id = SPAN("00aa"),
			.role = TOKEN_VIEWER,
			.maker = SPAN("admin"),
			.name = SPAN("n"),
			.code_hash = {1}};
		break;
	case COMMAND_LOG:
		command.data = SPAN("output");
		break;
	case COMMAND_ASK:
		command.data = SPAN("{}");
		break;
	case COMMAND_EMIT:
		command.emit = (struct command_emit){.id = SPAN("e"), .digest = 9};
		break;
	case COMMAND_RETURN:
		command.version = world_task(world, "t").version;
		break;
	case COMMAND_CANCEL:
	case COMMAND_STOP:
	case COMMAND_RETRY:
	case COMMAND_PARK:
	case COMMAND_UNPARK:
	case COMMAND_ANSWER:
	case COMMAND_PASS:
	case COMMAND_REJECT:
	case COMMAND_PURGE:
	case COMMAND_PROGRESS:
	case COMMAND_COMPLETE:
	case COMMAND_REVIEW:
	case COMMAND_WAIT:
	case COMMAND_RELEASE:
	case COMMAND_QUIET:
	case COMMAND_TERMINATE:
	case COMMAND_AUDIT:
	case COMMAND_KIND_COUNT:
		break;
	}
	return command;
}

/* ---- what came of them --------------------------------------------------------------------------------- */

struct outcome {
	enum command_kind kinds[2];
	enum refusal refusals[2];
	bool repeated[2];
	enum task_state states[2]; /* as each result says */
	uint32_t claims[2];
	struct task task;
	struct worker worker;
	bool knows_worker;
	struct ready_work ready; /* of the last turn */
	enum event_kind events[EVENTS_MAX];
	uint32_t event_count;
};

static int note_event(void *context, const struct record *record)
{
	struct outcome *outcome = context;

	assert_true(outcome->event_count < EVENTS_MAX);
	outcome->events[outcome->event_count++] = record->kind;
	return 0;
}

static void note_result(struct outcome *outcome, int at, const struct result *result)
{
	outcome->refusals[at] = result->refusal;
	outcome->repeated[at] = result->repeated;
	outcome->states[at] = result->task.state;
	outcome->claims[at] = result->claim_count;
}

static void look(struct world *world, struct outcome *outcome)
{
	outcome->task = world_task(world, "t");
	outcome->knows_worker = store_worker(world->store, SPAN("w"), &outcome->worker);
	assert_int_equal(store_page_events(world->store, 0, EVENTS_MAX, note_event, outcome), 0);
}

static void judge(struct world *world, const char *when)
{
	char complaint[256] = "";

	if (store_check_memory(world->store, complaint, sizeof complaint) < 0)
		fail_msg("%s: memory: %s", when, complaint);
	if (store_check_fold(world->store, complaint, sizeof complaint) < 0)
		fail_msg("%s: fold: %s", when, complaint);
}

static struct outcome meet(const struct situation *situation, enum command_kind a, enum command_kind b,
	bool together, bool next_fence)
{
	struct world *world = world_new(false);
	struct outcome outcome = {.kinds = {a, b}};
	struct result results[2] = {0};

	situation->make(world);
	uint64_t fence = fence_of(world) > 0 ? fence_of(world) : FENCE_GENERATION_STEP;
	struct command commands[2] = {say(world, a, fence + next_fence), say(world, b, fence + next_fence)};
	assert_int_equal(store_turn(world->store, world->now, commands, together ? 2 : 1, results), 0);
	note_result(&outcome, 0, &results[0]);
	if (!together) {
		judge(world, "between");
		assert_int_equal(store_turn(world->store, world->now, &commands[1], 1, &results[1]), 0);
	}
	note_result(&outcome, 1, &results[1]);
	judge(world, situation->name);
	look(world, &outcome);
	if (together) { /* and the same after a crash */
		world_crash(world);
		judge(world, "after a crash");
	}
	world_free(world);
	return outcome;
}

static char where[128]; /* for whoever looks why it failed */

static int tell_where(void **state)
{
	(void)state;
	if (where[0])
		print_message("the last pair was %s\n", where);
	return 0;
}

/* Times apart: a lease is counted from the turn, and the jitter is drawn by the turn. */
static void expect_same(const struct outcome *one, const struct outcome *two)
{
	for (int i = 0; i < 2; i++) {
		if (one->kinds[i] ==
			COMMAND_RETURN) /* nobody is answered: a claimant that is forgotten by then is no refusal */
			continue;
		assert_int_equal(one->refusals[i], two->refusals[i]);
		assert_int_equal(one->repeated[i], two->repeated[i]);
		assert_int_equal(one->states[i], two->states[i]);
		assert_int_equal(one->claims[i], two->claims[i]);
	}
	assert_int_equal(one->task.state, two->task.state);
	assert_int_equal(one->task.fence, two->task.fence);
	assert_int_equal(one->task.attempt, two->task.attempt);
	assert_int_equal(one->task.spent, two->task.spent);
	assert_int_equal(one->task.crashes, two->task.crashes);
	assert_int_equal(one->task.interruptions, two->task.interruptions);
	assert_int_equal(one->task.code, two->task.code);
	assert_int_equal(one->task.priority, two->task.priority);
	assert_int_equal(one->task.version, two->task.version);
	assert_int_equal(one->task.claim.stopping, two->task.claim.stopping);
	assert_int_equal(one->task.claim.clock, two->task.claim.clock);
	assert_int_equal(one->task.claim.holder != 0, two->task.claim.holder != 0);
	assert_int_equal(one->knows_worker, two->knows_worker);
	assert_int_equal(one->worker.state, two->worker.state);
	assert_int_equal(one->worker.held, two->worker.held);
	assert_int_equal(one->event_count, two->event_count);
	assert_memory_equal(one->events, two->events, sizeof one->events);
}

static bool shows_fence(enum command_kind kind)
{
	return kind >= COMMAND_PROGRESS && kind <= COMMAND_RETURN;
}

static void pairs_in(const struct situation *situation)
{
	int shift = (int)(situation - situations);

	for (int a = COMMAND_CREATE; a < COMMAND_KIND_COUNT; a++) {
		for (int b = COMMAND_CREATE; b < COMMAND_KIND_COUNT; b++) {
			if ((a + b + shift) % PAIRS_STEP != 0)
				continue;
			for (int next = 0; next < 1 + (shows_fence(a) || shows_fence(b)); next++) {
				struct outcome one = meet(situation, a, b, true, next);
				struct outcome two = meet(situation, a, b, false, next);
				snprintf(where, sizeof where, "%s: command %d, then %d", situation->name, a,
					b);
				expect_same(&one, &two);
			}
		}
	}
}

static size_t part = 0, parts = 1;

static void two_commands_in_one_turn_do_what_two_turns_do(void **state)
{
	(void)state;
	for (size_t i = part; i < sizeof situations / sizeof *situations; i += parts)
		pairs_in(&situations[i]);
	where[0] = 0;
}

int main(int argc, char **argv)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test_teardown(two_commands_in_one_turn_do_what_two_turns_do, tell_where),
	};

	if (argc == 3) {
		part = strtoul(argv[1], NULL, 10);
		parts = strtoul(argv[2], NULL, 10);
		assert_in_range(part, 0, parts - 1);
	}
	/* fifty thousand stores are opened: their memory is kept for the next one */
	mallopt(M_MMAP_THRESHOLD, 1 << 30);
	mallopt(M_TRIM_THRESHOLD, 1 << 30);
	return cmocka_run_group_tests(tests, NULL, NULL);
}
