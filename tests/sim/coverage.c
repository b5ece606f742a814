#include "sim/coverage.h"

#include <inttypes.h>
#include <stdio.h>

enum noun { NOUN_TASK, NOUN_WORKER, NOUN_QUEUE, NOUN_SLOT };

#define BIT(n)      (1u << (n))
#define ALL_TASKS   (BIT(TASK_STATE_COUNT) - 2)
#define WITH_ABSENT (BIT(TASK_STATE_COUNT) - 1)
#define ALL_WORKERS (BIT(WORKER_INACTIVE + 1) - 1)
#define ALL_QUEUES  (BIT(QUEUE_DRAINING + 1) - 1)
#define SLOT_STATES 3u /* free or on trial; quarantined */

/* Every operation, and the states of its object in which it can meet it. */
static const struct op_row {
	const char *name;
	enum noun noun;
	uint32_t reachable;
	const char *why_not; /* why the others are not */
} op_rows[COMMAND_KIND_COUNT] = {
	[COMMAND_CREATE] = {"create", NOUN_TASK, WITH_ABSENT, ""},
	[COMMAND_UPDATE] = {"update", NOUN_TASK, WITH_ABSENT, ""},
	[COMMAND_CANCEL] = {"cancel", NOUN_TASK, WITH_ABSENT, ""},
	[COMMAND_STOP] = {"stop", NOUN_TASK, WITH_ABSENT, ""},
	[COMMAND_RETRY] = {"retry", NOUN_TASK, WITH_ABSENT, ""},
	[COMMAND_PARK] = {"park", NOUN_TASK, WITH_ABSENT, ""},
	[COMMAND_UNPARK] = {"unpark", NOUN_TASK, WITH_ABSENT, ""},
	[COMMAND_ANSWER] = {"answer", NOUN_TASK, WITH_ABSENT, ""},
	[COMMAND_PASS] = {"pass", NOUN_TASK, WITH_ABSENT, ""},
	[COMMAND_REJECT] = {"reject", NOUN_TASK, WITH_ABSENT, ""},
	[COMMAND_EMIT] = {"emit", NOUN_TASK, WITH_ABSENT, ""},
	[COMMAND_PURGE] = {"purge", NOUN_TASK, 0, "retention does the same, and is simulated"},
	[COMMAND_TELL] = {"tell", NOUN_TASK, 0, "a note, as emit leaves one"},
	[COMMAND_HOLD_SET] = {"hold-set", NOUN_TASK, 0, "a hold touches no task"},
	[COMMAND_HOLD_LIFT] = {"hold-lift", NOUN_TASK, 0, "a hold touches no task"},
	[COMMAND_BUDGET_SET] = {"budget-set", NOUN_TASK, 0, "a budget touches no task"},
	[COMMAND_SCHEDULE_PUT] = {"schedule-put", NOUN_TASK, 0, "a schedule is no task; its tasks are"},
	[COMMAND_SCHEDULE_REMOVE] = {"schedule-remove", NOUN_TASK, 0, "a schedule is no task; its tasks are"},
	[COMMAND_SCHEDULE_RUN] = {"schedule-run", NOUN_TASK, 0, "a schedule is no task; its tasks are"},
	[COMMAND_SCHEDULE_PAUSE] = {"schedule-pause", NOUN_TASK, 0, "a schedule is no task; its tasks are"},
	[COMMAND_SCHEDULE_RESUME] = {"schedule-resume", NOUN_TASK, 0, "a schedule is no task; its tasks are"},
	[COMMAND_GROUP_CLOSE] = {"group-close", NOUN_TASK, 0, "a group touches no task"},
	[COMMAND_GROUP_REMOVE] = {"group-remove", NOUN_TASK, 0, "a group touches no task"},
	[COMMAND_BULK_START] = {"bulk-start", NOUN_TASK, 0, "its steps touch tasks"},
	[COMMAND_BULK_STOP] = {"bulk-stop", NOUN_TASK, 0, "its steps touch tasks"},
	[COMMAND_BULK_STEP] = {"bulk-step", NOUN_TASK, 0, "the commands in it are drawn by themselves too"},
	[COMMAND_QUEUE_SET] = {"queue-set", NOUN_QUEUE, ALL_QUEUES, ""},
	[COMMAND_QUEUE_LIMIT] = {"queue-limit", NOUN_TASK, 0, "a limit touches no task"},
	[COMMAND_CLAIM_NEXT] = {"claim-next", NOUN_WORKER, ALL_WORKERS, ""},
	[COMMAND_CLAIM] = {"claim", NOUN_TASK, WITH_ABSENT, ""},
	[COMMAND_PROGRESS] = {"progress", NOUN_TASK, ALL_TASKS, "a purged task had its last report long ago"},
	[COMMAND_COMPLETE] = {"complete", NOUN_TASK, ALL_TASKS, "a purged task had its last report long ago"},
	[COMMAND_FAIL] = {"fail", NOUN_TASK, ALL_TASKS, "a purged task had its last report long ago"},
	[COMMAND_REVIEW] = {"report", NOUN_TASK, ALL_TASKS, "a purged task had its last report long ago"},
	[COMMAND_BLOCK] = {"block", NOUN_TASK, ALL_TASKS, "a purged task had its last report long ago"},
	[COMMAND_ASK] = {"ask", NOUN_TASK, ALL_TASKS, "a purged task had its last report long ago"},
	[COMMAND_WAIT] = {"wait", NOUN_TASK, ALL_TASKS, "a purged task had its last report long ago"},
	[COMMAND_RELEASE] = {"release", NOUN_TASK, ALL_TASKS, "a purged task had its last report long ago"},
	[COMMAND_LOG] = {"log", NOUN_TASK, 0, "a log is no state"},
	[COMMAND_RETURN] = {"return", NOUN_TASK, BIT(TASK_CLAIMED) | BIT(TASK_RUNNING),
		"it follows the claim within one turn"},
	[COMMAND_REGISTER] = {"register", NOUN_WORKER, ALL_WORKERS, ""},
	[COMMAND_BEAT] = {"beat", NOUN_WORKER, ALL_WORKERS, ""},
	[COMMAND_QUIET] = {"quiet", NOUN_WORKER, ALL_WORKERS, ""},
	[COMMAND_TERMINATE] = {"terminate", NOUN_WORKER, ALL_WORKERS, ""},
	[COMMAND_LEAVE] = {"leave", NOUN_WORKER, ALL_WORKERS, ""},
	[COMMAND_SLOT_CRASH] = {"slot-crash", NOUN_SLOT, SLOT_STATES, ""},
	[COMMAND_SLOT_ENTER] = {"slot-enter", NOUN_SLOT, 0,
		"no pool runs here; registrations pass the same gate"},
	[COMMAND_SLOT_ASSIGN] = {"slot-assign", NOUN_TASK, 0, "assignments touch no task"},
	[COMMAND_TOKEN_PUT] = {"token-put", NOUN_TASK, 0, "credentials touch no task"},
	[COMMAND_TOKEN_REVOKE] = {"token-revoke", NOUN_TASK, 0, "credentials touch no task"},
	[COMMAND_ENROL] = {"enrol", NOUN_TASK, 0, "credentials touch no task"},
	[COMMAND_TOKEN_RENEW] = {"token-renew", NOUN_TASK, 0, "credentials touch no task"},
	[COMMAND_LOGIN_CODE] = {"login-code", NOUN_TASK, 0, "credentials touch no task"},
	[COMMAND_LOGIN] = {"login", NOUN_TASK, 0, "credentials touch no task"},
	[COMMAND_LOGOUT] = {"logout", NOUN_TASK, 0, "credentials touch no task"},
	[COMMAND_KEY_ROTATE] = {"key-rotate", NOUN_TASK, 0, "credentials touch no task"},
	[COMMAND_AUDIT] = {"audit", NOUN_TASK, 0, "a trace touches no task"},
	[COMMAND_VERDICT] = {"verdict", NOUN_TASK, WITH_ABSENT, ""},
	[COMMAND_EXECUTION_SET] = {"execution-set", NOUN_TASK, 0, "nobody disarms it here"},
	[COMMAND_UNQUARANTINE] = {"unquarantine", NOUN_SLOT, SLOT_STATES, ""},
};

/* Moves that the table allows and that no decision makes. */
static const struct unreachable {
	enum event_kind kind;
	enum task_state from, to;
	const char *why;
} unreachable_moves[] = {
	{EVENT_TASK_CREATED, TASK_NOWHERE, TASK_DONE, "only what comes from another system is over at once"},
	{EVENT_TASK_CREATED, TASK_NOWHERE, TASK_FAILED,
		"only what comes from another system is over at once"},
	{EVENT_TASK_RETRIED, TASK_DONE, TASK_WAITING, "what is done has no open parent"},
	{EVENT_SESSION_STARTED, TASK_ASKING, TASK_ASKING, "nobody puts a label onto what asks"},
	{EVENT_SESSION_OUTPUT, TASK_CLAIMED, TASK_CLAIMED, "nothing is printed here: a log is no state"},
	{EVENT_SESSION_USAGE, TASK_CLAIMED, TASK_CLAIMED, "no agent runs here: what it uses is no state"},
	{EVENT_SESSION_USAGE, TASK_RUNNING, TASK_RUNNING, "no agent runs here: what it uses is no state"},
	{EVENT_SESSION_USAGE, TASK_ASKING, TASK_ASKING, "no agent runs here: what it uses is no state"},
	{EVENT_SESSION_OUTPUT, TASK_RUNNING, TASK_RUNNING, "nothing is printed here: a log is no state"},
	{EVENT_SESSION_OUTPUT, TASK_ASKING, TASK_ASKING, "nothing is printed here: a log is no state"},
};

void coverage_op(struct coverage *coverage, enum command_kind op, uint32_t state, uint32_t weather)
{
	coverage->ops[op][state][weather]++;
}

void coverage_event(struct coverage *coverage, enum event_kind kind, enum task_state from, enum task_state to)
{
	coverage->kinds[kind]++;
	coverage->moves[kind][from][to]++;
}

void coverage_flow(struct coverage *coverage, uint32_t flows)
{
	for (int a = 0; a < FLOW_COUNT; a++) {
		for (int b = 0; b < FLOW_COUNT; b++)
			coverage->flows[a][b] += (flows & BIT(a)) && (flows & BIT(b));
	}
}

static const char *weather_name(uint32_t weather)
{
	return weather == COVERAGE_REPEAT ? "repeated" : fault_name((enum fault)weather);
}

static const char *state_name(enum noun noun, uint32_t state)
{
	switch (noun) {
	case NOUN_TASK:
		return state == TASK_NOWHERE ? "absent" : task_state_name((enum task_state)state);
	case NOUN_WORKER:
		return worker_state_name((enum worker_state)state);
	case NOUN_QUEUE:
		return queue_state_name((enum queue_state)state);
	case NOUN_SLOT:
		return state == 0 ? "free" : "quarantined";
	}
	return "";
}

/* A backup is no weather: nothing is different while it lasts. */
static bool is_weather(uint32_t weather)
{
	return weather != FAULT_BACKUP;
}

/* What the server tells itself does not come over the network. */
static bool is_reachable(uint32_t op, uint32_t weather)
{
	return op != COMMAND_RETURN || weather != COVERAGE_REPEAT;
}

static uint32_t print_cell(const struct coverage *coverage, uint32_t op, uint32_t state, bool thorough)
{
	const struct op_row *row = &op_rows[op];
	uint64_t total = 0;
	uint32_t empty = 0;

	printf("  %-13s %-11s", row->name, state_name(row->noun, state));
	for (uint32_t weather = 0; weather < COVERAGE_WEATHERS; weather++) {
		uint64_t count = coverage->ops[op][state][weather];
		if (!is_weather(weather))
			continue;
		printf(" %9" PRIu64, count);
		total += count;
		empty += count == 0 && is_reachable(op, weather);
	}
	printf("\n");
	return thorough ? empty : total == 0;
}

static uint32_t print_ops(const struct coverage *coverage, bool thorough)
{
	uint32_t empty = 0;

	printf("coverage: operation, state it met, then counts by weather\n  %-25s", "");
	for (uint32_t weather = 0; weather < COVERAGE_WEATHERS; weather++) {
		if (is_weather(weather))
			printf(" %9.9s", weather_name(weather));
	}
	printf("\n");
	for (uint32_t op = COMMAND_CREATE; op < COMMAND_KIND_COUNT; op++) {
		for (uint32_t state = 0; state < COVERAGE_STATES; state++) {
			if (op_rows[op].reachable & BIT(state))
				empty += print_cell(coverage, op, state, thorough);
		}
	}
	return empty;
}

static bool is_unreachable(enum event_kind kind, enum task_state from, enum task_state to)
{
	for (size_t i = 0; i < sizeof unreachable_moves / sizeof *unreachable_moves; i++) {
		const struct unreachable *row = &unreachable_moves[i];
		if (row->kind == kind && row->from == from && row->to == to)
			return true;
	}
	return false;
}

static uint32_t print_moves(const struct coverage *coverage)
{
	uint32_t empty = 0, seen = 0;

	for (int kind = EVENT_NONE + 1; kind < EVENT_KIND_COUNT; kind++) {
		for (int cell = 0; cell < TASK_STATE_COUNT * TASK_STATE_COUNT; cell++) {
			enum task_state from = (enum task_state)(cell / TASK_STATE_COUNT);
			enum task_state to = (enum task_state)(cell % TASK_STATE_COUNT);
			if (!transition_is_legal((enum event_kind)kind, from, to) ||
				is_unreachable((enum event_kind)kind, from, to))
				continue;
			seen += coverage->moves[kind][from][to] > 0;
			if (coverage->moves[kind][from][to] > 0)
				continue;
			empty++;
			printf("  never: %s from %s to %s\n", event_kind_name((enum event_kind)kind),
				state_name(NOUN_TASK, from), state_name(NOUN_TASK, to));
		}
	}
	printf("moves: %u of %u\n", seen, seen + empty);
	return empty;
}

/* Pairs that cannot meet in one task. */
static bool flows_exclude(int a, int b)
{
	/* a subtask has nobody's place, no account but its parent's, and no group of others to wait for; what a schedule makes has a plain
	 * template here */
	static const uint32_t no_subtask = BIT(FLOW_SUCCESSOR) | BIT(FLOW_UNIQUE) | BIT(FLOW_WAITED) |
		BIT(FLOW_SCHEDULE) | BIT(FLOW_MEMBER) | BIT(FLOW_PARENTS),
			      no_schedule = BIT(FLOW_SUCCESSOR) | BIT(FLOW_UNIQUE) | BIT(FLOW_WAITED) |
		BIT(FLOW_HOLD) | BIT(FLOW_MEMBER) | BIT(FLOW_PARENTS) | BIT(FLOW_PER_KEY) |
		BIT(FLOW_SEQUENTIAL);

	return (a == FLOW_SUBTASK && (no_subtask & BIT(b))) || (a == FLOW_SCHEDULE && (no_schedule & BIT(b)));
}

static uint32_t print_flows(const struct coverage *coverage)
{
	static const char *const names[] = {
#define X(name, word) word,
		FLOWS(X)
#undef X
	};
	uint32_t met = 0, empty = 0;

	for (int a = 0; a < FLOW_COUNT; a++) {
		for (int b = 0; b < a; b++) {
			met += coverage->flows[a][b] > 0;
			if (coverage->flows[a][b] > 0 || flows_exclude(a, b) || flows_exclude(b, a))
				continue;
			empty++;
			printf("  never met: %s and %s\n", names[a], names[b]);
		}
	}
	printf("pairs of flow control that met in a claim: %u of %u\n", met, met + empty);
	return empty;
}

static void print_kinds(const struct coverage *coverage)
{
	printf("events:");
	for (int kind = EVENT_NONE + 1; kind < EVENT_KIND_COUNT; kind++) {
		if (!event_kind_is_known((enum event_kind)kind))
			continue;
		printf(" %s %" PRIu64, event_kind_name((enum event_kind)kind), coverage->kinds[kind]);
	}
	printf("\nrefusals:");
	for (int refusal = REFUSED_NOTHING + 1; refusal < REFUSAL_COUNT; refusal++)
		printf(" %s %" PRIu64, refusal_code((enum refusal)refusal), coverage->refusals[refusal]);
	printf("\n");
}

static void print_unreachable(void)
{
	for (uint32_t op = COMMAND_CREATE; op < COMMAND_KIND_COUNT; op++) {
		if (op_rows[op].why_not[0] != 0)
			printf("  not reachable: other states of %s: %s\n", op_rows[op].name,
				op_rows[op].why_not);
	}
	printf("  not reachable: a repeated return: the server sends it to itself\n");
	for (size_t i = 0; i < sizeof unreachable_moves / sizeof *unreachable_moves; i++)
		printf("  not reachable: %s from %s to %s: %s\n", event_kind_name(unreachable_moves[i].kind),
			state_name(NOUN_TASK, unreachable_moves[i].from),
			state_name(NOUN_TASK, unreachable_moves[i].to), unreachable_moves[i].why);
}

uint32_t coverage_print(const struct coverage *coverage, bool thorough)
{
	uint32_t empty = print_ops(coverage, thorough);

	print_kinds(coverage);
	empty += print_moves(coverage);
	uint32_t apart = print_flows(coverage);
	empty += thorough ? apart : 0;
	print_unreachable();
	return empty;
}
