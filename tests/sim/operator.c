/*
 * Operators do anything to anything; in the end they clear up: answer, pass, let go, and call off what stays
 * blocked.
 */
#include "sim/sim.h"

enum {
	JUDGE = 999, /* who gives verdicts has held nothing */
};

/* A word about its workflow, or a verdict. */
static void tell(struct sim *sim, struct request *request)
{
	struct command *command = &request->command;

	command->principal = JUDGE;
	if (command->kind == COMMAND_EMIT) {
		command->told.event.type = word_events[rng_below(&sim->rng, WORD_EVENTS)];
		command->told.event.status = rng_chance(&sim->rng, 2) ? SPAN("failed") : SPAN("success");
		command->told.may_judge = rng_chance(&sim->rng, 2);
	} else {
		command->verdict.gate = rng_chance(&sim->rng, 3)
			? SPAN("review")
			: word_gates[rng_below(&sim->rng, WORD_GATES)];
		command->verdict.passes = !rng_chance(&sim->rng, 3);
	}
}

/* To the question that the operator has seen last; now and then it names none, or another one. */
static void answer(struct sim *sim, struct request *request, const struct model_task *task)
{
	request->command.data = SPAN("\"yes\"");
	request->command.answer.question = task->question;
	if (!sim->calm && rng_chance(&sim->rng, 4))
		request->command.answer.question = rng_below(&sim->rng, 3);
	request->command.answer.for_task = rng_chance(&sim->rng, 4);
}

static void about_task(
	struct sim *sim, struct actor *actor, enum command_kind kind, const struct model_task *task)
{
	uint32_t slot;
	struct request *request = network_request(sim, actor, kind, &slot);

	request->task = task->fold.task.seq;
	request->command.task = request_text(request, span_of(task->id));
	if (kind == COMMAND_ANSWER)
		answer(sim, request, task);
	if (kind == COMMAND_EMIT || kind == COMMAND_VERDICT)
		tell(sim, request);
	if (rng_chance(&sim->rng, 4))
		request->command.note = SPAN("because");
	network_send(sim, slot);
}

static void set_queue(struct sim *sim, struct actor *actor, uint32_t queue, enum queue_state state)
{
	uint32_t slot;
	struct request *request = network_request(sim, actor, COMMAND_QUEUE_SET, &slot);

	request->command.queue_set.queue = word_queues[queue];
	request->command.queue_set.state = state;
	network_send(sim, slot);
}

/* Some of its limits, together or one after another; each may be lifted again. What they hold back is to end all the same, so they stay
 * until the end. */
static void limit_queue(struct sim *sim, struct actor *actor, uint32_t queue)
{
	static const uint32_t which[] = {LIMITS_SET_CONCURRENCY, LIMITS_SET_PER_KEY, LIMITS_SET_SEQUENTIAL,
		LIMITS_SET_RATE, LIMITS_SET_REVIEW, LIMITS_SET_FAIR, LIMITS_SET_MAX_OPEN};
	uint32_t set = which[rng_below(&sim->rng, sizeof which / sizeof *which)];
	uint32_t slot;
	struct request *request = network_request(sim, actor, COMMAND_QUEUE_LIMIT, &slot);
	struct rate rate = {.count = rng_below(&sim->rng, 4)};

	for (size_t i = 0; i < sizeof which / sizeof *which; i++)
		set |= rng_chance(&sim->rng, 2) ? which[i] : 0;

	if (rate.count > 0)
		rate = (struct rate){rate.count, 1 + rng_below(&sim->rng, 3),
			sim_paced_between(sim, 2000, 20000), rng_chance(&sim->rng, 2)};

	request->command.queue_limit.queue = word_queues[queue];
	request->command.queue_limit.patch = (struct limits_patch){
		.set = set,
		.wanted = {.concurrency = rng_chance(&sim->rng, 2) ? 0 : 1 + rng_below(&sim->rng, 6),
			.per_key = rng_below(&sim->rng, 4),
			.sequential = rng_chance(&sim->rng, 2),
			.rate = rate,
			.review = rng_below(&sim->rng, 5),
			.fair = rng_chance(&sim->rng, 2),
			.max_open = rng_chance(&sim->rng, 2) ? 0 : 1 + rng_below(&sim->rng, 40)},
	};
	network_send(sim, slot);
}

/* A group closes; now and then it is removed before its time, which is refused. */
static void about_group(struct sim *sim, struct actor *actor, enum command_kind kind, uint32_t which)
{
	uint32_t slot;
	struct request *request = network_request(sim, actor, kind, &slot);

	request->command.group.name = word_groups[which];
	network_send(sim, slot);
}

static void about_hold(struct sim *sim, struct actor *actor, enum command_kind kind, uint32_t which)
{
	uint32_t slot;
	struct request *request = network_request(sim, actor, kind, &slot);

	request->command.hold.credential = word_accounts[which];
	if (kind == COMMAND_HOLD_SET && !rng_chance(&sim->rng, 4))
		request->command.hold.until_ms =
			clocks_now(&sim->clock).wall_ms + sim_paced_between(sim, 1000, 120000);
	network_send(sim, slot);
}

static void about_slot(struct sim *sim, struct actor *actor, enum command_kind kind, uint32_t which)
{
	uint32_t slot;
	struct request *request = network_request(sim, actor, kind, &slot);

	request->command.slot = word_slots[which];
	network_send(sim, slot);
}

static void about_worker(struct sim *sim, struct actor *actor)
{
	static const enum command_kind kinds[] = {COMMAND_QUIET, COMMAND_TERMINATE, COMMAND_LEAVE};
	const struct model *model = &sim->model;
	enum command_kind kind = kinds[rng_below(&sim->rng, 3)];
	uint32_t slot;

	if (model->worker_count == 0)
		return;
	uint32_t recent = model->worker_count < 16 ? model->worker_count : 16;
	const struct model_worker *worker =
		&model->workers[model->worker_count - 1 - rng_below(&sim->rng, recent)];
	struct request *request = network_request(sim, actor, kind, &slot);
	bool stranger = rng_chance(&sim->rng, 10);
	request->command.worker = stranger ? SPAN("nobody") : request_text(request, span_of(worker->id));
	request->command.leave = WORKER_TERMINATED;
	network_send(sim, slot);
}

/* A few schedules come and go. Their tasks are made by the store itself, in whatever weather there is. */
static void about_schedule(struct sim *sim, struct actor *actor, enum command_kind kind, uint32_t which)
{
	static struct command_create
		templates[WORD_QUEUES]; /* always the same, so that requests may point there */
	static const struct span ids[] = {{"s0", 2}, {"s1", 2}, {"s2", 2}, {"s3", 2}};
	uint32_t slot;
	struct request *request = network_request(sim, actor, kind, &slot);
	struct command_schedule *schedule = &request->command.schedule;

	schedule->schedule.id = ids[which];
	if (kind == COMMAND_SCHEDULE_PUT) {
		uint32_t queue = rng_below(&sim->rng, WORD_QUEUES);
		templates[queue] = (struct command_create){
			.queue = word_queues[queue], .body = SPAN("\"title\":\"again\""), .max_attempts = 2};
		schedule->create = &templates[queue];
		schedule->schedule.task = SPAN("{}");
		schedule->schedule.kind = PLAN_EVERY;
		schedule->schedule.every_ms = rng_between(&sim->rng, 5000, 120000);
		schedule->schedule.overlap = (enum overlap)which;
		schedule->schedule.catch_up = (enum catch_up)rng_below(&sim->rng, 3);
		schedule->changes = rng_chance(&sim->rng, 3);
	}
	network_send(sim, slot);
}

static void some_schedule(struct sim *sim, struct actor *actor)
{
	static const enum command_kind kinds[] = {COMMAND_SCHEDULE_PUT, COMMAND_SCHEDULE_PUT,
		COMMAND_SCHEDULE_RUN, COMMAND_SCHEDULE_PAUSE, COMMAND_SCHEDULE_RESUME,
		COMMAND_SCHEDULE_REMOVE};

	about_schedule(sim, actor, kinds[rng_below(&sim->rng, sizeof kinds / sizeof *kinds)],
		rng_below(&sim->rng, 4));
}

/* Many at once, of one queue; the steps are the server's. */
static void about_many(struct sim *sim, struct actor *actor)
{
	static const enum bulk_action actions[] = {
		BULK_RETRY, BULK_CANCEL, BULK_PARK, BULK_UNPARK, BULK_MOVE, BULK_PRIORITY, BULK_PURGE};
	bool stops = rng_chance(&sim->rng, 6);
	uint32_t slot;
	struct request *request =
		network_request(sim, actor, stops ? COMMAND_BULK_STOP : COMMAND_BULK_START, &slot);
	struct bulk *bulk = &request->command.bulk.bulk;

	bulk->number = 1 + rng_below(&sim->rng, 40);
	bulk->action = actions[rng_below(&sim->rng, sizeof actions / sizeof *actions)];
	bulk->filter = word_queues[rng_below(&sim->rng, WORD_QUEUES)];
	if (bulk->action == BULK_MOVE)
		bulk->queue = word_queues[rng_below(&sim->rng, WORD_QUEUES)];
	bulk->priority = (int32_t)rng_below(&sim->rng, 5);
	network_send(sim, slot);
}

/* Queues are mostly open, slots mostly free to run: else nothing would happen. */
static void about_flow(struct sim *sim, struct actor *actor)
{
	static const enum queue_state states[] = {QUEUE_OPEN, QUEUE_OPEN, QUEUE_PAUSED, QUEUE_DRAINING};
	uint32_t queue = rng_below(&sim->rng, WORD_QUEUES);

	switch (rng_below(&sim->rng, 10)) {
	case 8:
		about_group(sim, actor, rng_chance(&sim->rng, 4) ? COMMAND_GROUP_REMOVE : COMMAND_GROUP_CLOSE,
			rng_below(&sim->rng, WORD_GROUPS));
		return;
	case 9:
		about_hold(sim, actor, rng_chance(&sim->rng, 2) ? COMMAND_HOLD_SET : COMMAND_HOLD_LIFT,
			rng_below(&sim->rng, WORD_ACCOUNTS));
		return;
	case 5:
		about_many(sim, actor);
		return;
	case 6:
		limit_queue(sim, actor, queue);
		return;
	case 4:
		some_schedule(sim, actor);
		return;
	case 0:
		about_slot(sim, actor, COMMAND_SLOT_CRASH, rng_below(&sim->rng, WORD_SLOTS));
		return;
	case 1:
		about_slot(sim, actor, COMMAND_UNQUARANTINE, rng_below(&sim->rng, WORD_SLOTS));
		return;
	default:
		set_queue(sim, actor, queue, states[rng_below(&sim->rng, 4)]);
	}
}

/* What the state asks for, or anything at all. */
static enum command_kind some_task_command(struct sim *sim, enum task_state state)
{
	static const enum command_kind any[] = {COMMAND_CANCEL, COMMAND_RETRY, COMMAND_PARK, COMMAND_UNPARK,
		COMMAND_ANSWER, COMMAND_PASS, COMMAND_REJECT, COMMAND_EMIT, COMMAND_EMIT, COMMAND_VERDICT,
		COMMAND_STOP};

	if (rng_chance(&sim->rng, 2))
		return any[rng_below(&sim->rng, sizeof any / sizeof *any)];
	switch (state) {
	case TASK_PENDING:
		return COMMAND_UNPARK;
	case TASK_ASKING:
		return COMMAND_ANSWER;
	case TASK_REVIEW:
		if (rng_chance(&sim->rng, 2))
			return rng_chance(&sim->rng, 3) ? COMMAND_EMIT : COMMAND_VERDICT;
		return rng_chance(&sim->rng, 2) ? COMMAND_PASS : COMMAND_REJECT;
	case TASK_BLOCKED:
	case TASK_FAILED:
		return COMMAND_RETRY;
	default:
		return rng_chance(&sim->rng, 2) ? COMMAND_PARK : COMMAND_CANCEL;
	}
}

/* Look for somebody who waits for a person. */
static const struct model_task *needy_task(struct sim *sim)
{
	const struct model *model = &sim->model;

	for (uint32_t tries = 0; tries < 6 && model->live_count > 0; tries++) {
		const struct model_task *task =
			&model->tasks[model->live[rng_below(&sim->rng, model->live_count)]];
		enum task_state state = task->fold.task.state;
		if (state == TASK_ASKING || state == TASK_REVIEW || state == TASK_BLOCKED ||
			state == TASK_PENDING)
			return task;
	}
	return some_task(sim);
}

/* Towards the end of its workflow: the verdicts that it needs, then the next word. */
static void clear_up_review(struct sim *sim, struct actor *actor, const struct model_task *task)
{
	static const char *const words[STAGE_COUNT] = {
		[STAGE_VALIDATED] = "merge.success",
		[STAGE_MERGED] = "deploy.started",
		[STAGE_DEPLOYING] = "deploy.succeeded",
		[STAGE_VERIFYING] = "verification.passed",
	};
	const struct task *stands = &task->fold.task;
	bool judged = stands->gates_passed == task_gates_all(stands);
	uint32_t slot;
	struct request *request = network_request(sim, actor, judged ? COMMAND_EMIT : COMMAND_VERDICT, &slot);

	request->task = stands->seq;
	request->command.task = request_text(request, span_of(task->id));
	request->command.principal = JUDGE;
	if (judged && words[stands->stage])
		request->command.told.event.type = span_of(words[stands->stage]);
	/* whichever gate it is that is left, it is tried soon */
	if (!judged)
		request->command.verdict =
			(struct command_verdict){word_gates[rng_below(&sim->rng, WORD_GATES)], true};
	network_send(sim, slot);
}

static void clear_up_task(struct sim *sim, struct actor *actor, const struct model_task *task)
{
	switch (task->fold.task.state) {
	case TASK_PENDING:
		about_task(sim, actor, COMMAND_UNPARK, task);
		return;
	case TASK_ASKING:
		about_task(sim, actor, COMMAND_ANSWER, task);
		return;
	case TASK_REVIEW:
		if (task->fold.task.workflow != WORKFLOW_NONE || task->fold.task.gates != 0)
			clear_up_review(sim, actor, task);
		else
			about_task(sim, actor, COMMAND_PASS, task);
		return;
	case TASK_BLOCKED:
		about_task(sim, actor, COMMAND_CANCEL, task);
		return;
	default:
		return;
	}
}

static void clear_up(struct sim *sim, struct actor *actor)
{
	const struct model *model = &sim->model;

	for (uint32_t i = 0; i < WORD_QUEUES; i++) {
		if (model->queues[i] != QUEUE_OPEN)
			set_queue(sim, actor, i, QUEUE_OPEN);
	}
	for (uint32_t i = 0; i < WORD_SLOTS; i++) {
		if (model->quarantined[i])
			about_slot(sim, actor, COMMAND_UNQUARANTINE, i);
	}
	for (uint32_t i = 0; i < 4; i++)
		about_schedule(sim, actor, COMMAND_SCHEDULE_REMOVE, i); /* what they have made is to end */
	for (uint32_t i = 0; i < WORD_GROUPS; i++)
		about_group(sim, actor, COMMAND_GROUP_CLOSE, i);
	for (uint32_t i = 0; i < WORD_ACCOUNTS; i++) {
		if (model->holds[i].state == MODEL_HELD)
			about_hold(sim, actor, COMMAND_HOLD_LIFT, i);
	}
	for (uint32_t i = 0; i < model->live_count; i++)
		clear_up_task(sim, actor, &model->tasks[model->live[i]]);
	actor_wake_in(sim, actor, sim_paced_between(sim, 5000, 10000));
}

void operator_act(struct sim *sim, struct actor *actor)
{
	if (sim->calm) {
		clear_up(sim, actor);
		return;
	}
	if (actor->numbers++ == 0) { /* most queues have limits from the beginning, so that they meet */
		for (uint32_t i = 0; i < WORD_QUEUES; i++) {
			if (!rng_chance(&sim->rng, 4))
				limit_queue(sim, actor, i);
		}
	}
	const struct model_task *task = rng_chance(&sim->rng, 2) ? needy_task(sim) : some_rare_task(sim);
	uint32_t choice = rng_below(&sim->rng, 10);

	if (choice <= 1)
		about_worker(sim, actor);
	else if (choice <= 3)
		about_flow(sim, actor);
	else if (task)
		about_task(sim, actor, some_task_command(sim, task->fold.task.state), task);
	actor_wake_in(sim, actor, sim_paced_between(sim, 2000, 24000));
}
