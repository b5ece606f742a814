#include "pool/child.h"

#include <assert.h>
#include <stddef.h>

struct pool_rules pool_rules_default(void)
{
	return (struct pool_rules){
		.hello_ms = 10 * 1000,
		.silence_ms = 30 * 1000,
		.ready_ms = 10 * 1000,
		.grace_ms = 5 * 1000,
		.respawn_ms = 1000,
		.respawn_max_ms = 60 * 1000,
		.settled_ms = 60 * 1000,
		.ask_ms = 5 * 1000,
		.coming_ms = 5 * 1000,
	};
}

void pool_child_init(struct pool_child *worker, const struct pool_rules *rules)
{
	*worker = (struct pool_child){.rules = *rules, .state = POOL_OFF, .due_ms = INT64_MAX};
}

/* ---- its states ---- */

#define TO(state_) (1u << POOL_##state_)

enum { ONCE_GONE = TO(TELLING) | TO(WAITING) | TO(OFF) };

static const struct {
	const char *name;
	bool has_process;
	uint32_t next; /* bits of the states that may follow */
} states[] = {
	[POOL_OFF] = {"dead", false, TO(ENTERING)},
	[POOL_ENTERING] = {"starting", false, TO(QUARANTINED) | TO(WAITING) | TO(STARTING) | TO(OFF)},
	[POOL_QUARANTINED] = {"quarantined", false, TO(ENTERING) | TO(OFF)},
	[POOL_STARTING] = {"starting", true, TO(IDLE) | TO(LEAVING) | ONCE_GONE},
	[POOL_IDLE] = {"ready", true, TO(BUSY) | TO(LEAVING) | ONCE_GONE},
	[POOL_BUSY] = {"busy", true, TO(ANSWERED) | TO(IDLE) | TO(LEAVING) | ONCE_GONE},
	[POOL_ANSWERED] = {"busy", true, TO(IDLE) | TO(LEAVING) | ONCE_GONE},
	[POOL_LEAVING] = {"leaving", true, ONCE_GONE},
	[POOL_TELLING] = {"dead", false, TO(QUARANTINED) | TO(WAITING) | TO(OFF)},
	[POOL_WAITING] = {"dead", false, TO(ENTERING) | TO(OFF)},
};

static void become(struct pool_child *worker, enum pool_state state, int64_t due_ms)
{
	assert(states[worker->state].next >> state & 1);
	worker->state = state;
	worker->due_ms = due_ms;
	assert((state == POOL_BUSY) <= worker->has_task);
	assert(state != POOL_IDLE || !worker->has_task); /* the next task is given to nobody who has one */
	assert(state != POOL_ANSWERED || !worker->has_task); /* an attempt ends once */
	assert(states[state].has_process || !worker->has_task);
	assert(state == POOL_LEAVING || !states[state].has_process || !worker->killed);
	assert(state != POOL_WAITING || due_ms != INT64_MAX); /* or nobody would start it again */
	assert(state != POOL_QUARANTINED || due_ms != INT64_MAX);
	assert(state != POOL_STARTING || due_ms != INT64_MAX); /* a hello is not waited for without end */
	assert(state != POOL_ANSWERED || due_ms != INT64_MAX);
	assert(!worker->retiring || state != POOL_WAITING); /* it shall not be started again */
}

bool pool_child_has_process(const struct pool_child *worker)
{
	return states[worker->state].has_process;
}

bool pool_child_is_alive(const struct pool_child *worker)
{
	return worker->state == POOL_IDLE || worker->state == POOL_BUSY || worker->state == POOL_ANSWERED;
}

bool pool_child_is_coming(const struct pool_child *worker, int64_t now_ms)
{
	switch (worker->state) {
	case POOL_ENTERING:
	case POOL_STARTING:
	case POOL_TELLING:
		return true;
	case POOL_WAITING:
		return worker->due_ms - now_ms <= worker->rules.coming_ms;
	case POOL_LEAVING:
		return !worker->retiring;
	case POOL_OFF:
	case POOL_QUARANTINED:
	case POOL_IDLE:
	case POOL_BUSY:
	case POOL_ANSWERED:
		break;
	}
	return false;
}

/* ---- coming ---- */

static uint32_t enter(struct pool_child *worker)
{
	become(worker, POOL_ENTERING, INT64_MAX);
	return POOL_DO_ENTER;
}

uint32_t pool_child_begin(struct pool_child *worker)
{
	worker->retiring = false;
	return worker->state == POOL_OFF ? enter(worker) : 0;
}

/* Asked again, soon at first: somebody may be about to lift it. */
static void be_quarantined(struct pool_child *worker, int64_t now_ms)
{
	int64_t wait_ms = worker->rules.respawn_ms << (worker->asked_in_row < 8 ? worker->asked_in_row : 8);

	worker->asked_in_row++;
	become(worker, POOL_QUARANTINED,
		now_ms + (wait_ms < worker->rules.ask_ms ? wait_ms : worker->rules.ask_ms));
}

uint32_t pool_child_entered(struct pool_child *worker, enum pool_entry entry, int64_t now_ms)
{
	if (worker->state != POOL_ENTERING)
		return 0;
	if (entry == POOL_ENTRY_QUARANTINED) {
		be_quarantined(worker, now_ms);
		return 0;
	}
	if (entry == POOL_ENTRY_UNKNOWN) {
		become(worker, POOL_WAITING, now_ms + worker->rules.ask_ms);
		return 0;
	}
	worker->asked_in_row = 0;
	worker->fault = POOL_FAULT_NONE;
	worker->planned = worker->has_task = worker->stop_task = worker->killed = worker->said_hello = false;
	worker->said_ready = false;
	worker->unknown_in_row = 0;
	worker->spawned_ms = worker->heard_ms = now_ms;
	worker->starts++;
	become(worker, POOL_STARTING, now_ms + worker->rules.hello_ms);
	return POOL_DO_SPAWN;
}

/* How long until the next start: at least so long after the last one. */
static int64_t respawn_at_ms(const struct pool_child *worker, int64_t now_ms)
{
	int64_t delay_ms = worker->rules.respawn_ms;
	int64_t apart_ms = worker->spawned_ms + worker->rules.respawn_ms;

	for (uint32_t i = 1; i < worker->crashes_in_row && delay_ms < worker->rules.respawn_max_ms; i++)
		delay_ms *= 2;
	if (delay_ms > worker->rules.respawn_max_ms)
		delay_ms = worker->rules.respawn_max_ms;
	if (worker->crashes_in_row > 0)
		return now_ms + delay_ms;
	return apart_ms > now_ms ? apart_ms : now_ms;
}

static uint32_t wait_or_rest(struct pool_child *worker, int64_t now_ms)
{
	if (worker->retiring)
		become(worker, POOL_OFF, INT64_MAX);
	else
		become(worker, POOL_WAITING, respawn_at_ms(worker, now_ms));
	return 0;
}

uint32_t pool_child_unspawned(struct pool_child *worker, int64_t now_ms)
{
	assert(worker->state == POOL_STARTING);
	worker->starts--;
	worker->crashes_in_row++; /* for the back-off alone */
	return wait_or_rest(worker, now_ms);
}

/* ---- going ---- */

/* It is asked to go: its input ends, and that is the sign. */
static uint32_t leave(struct pool_child *worker, int64_t now_ms)
{
	become(worker, POOL_LEAVING, now_ms + worker->rules.grace_ms);
	return POOL_DO_CLOSE;
}

/* It is not asked. */
static uint32_t kill_it(struct pool_child *worker, enum pool_fault fault)
{
	worker->fault = fault;
	worker->planned = false;
	worker->killed = true;
	become(worker, POOL_LEAVING, INT64_MAX);
	return POOL_DO_KILL;
}

uint32_t pool_child_retire(struct pool_child *worker, int64_t now_ms)
{
	worker->retiring = true;
	switch (worker->state) {
	case POOL_STARTING:
	case POOL_IDLE:
	case POOL_ANSWERED:
		worker->planned = true;
		return leave(worker, now_ms);
	case POOL_BUSY: /* when its task has ended */
	case POOL_LEAVING:
	case POOL_OFF:
		return 0;
	case POOL_ENTERING:
	case POOL_QUARANTINED:
	case POOL_TELLING: /* the word of the crash is on its way without us */
	case POOL_WAITING:
		break;
	}
	become(worker, POOL_OFF, INT64_MAX);
	return 0;
}

uint32_t pool_child_stop_task(struct pool_child *worker, int64_t grace_ms, int64_t now_ms)
{
	bool leaving = worker->state == POOL_LEAVING;

	if (!worker->has_task)
		return 0;
	worker->stop_task = true;
	worker->stop_grace_ms = grace_ms < worker->rules.grace_ms ? grace_ms : worker->rules.grace_ms;
	if (leaving) /* it is going already: perhaps not fast enough */
		return worker->killed ? 0 : POOL_DO_TERM;
	worker->planned = true;
	become(worker, POOL_LEAVING, now_ms + worker->stop_grace_ms);
	return POOL_DO_CLOSE | POOL_DO_TERM;
}

uint32_t pool_child_break(struct pool_child *worker, enum pool_fault fault)
{
	if (!pool_child_has_process(worker) || worker->killed)
		return 0;
	if (worker->state == POOL_LEAVING) { /* half a word on the way out */
		worker->killed = true;
		return POOL_DO_KILL;
	}
	return kill_it(worker, fault);
}

/* ---- what it says ---- */

void pool_child_assign(struct pool_child *worker, int64_t now_ms)
{
	assert(worker->state == POOL_IDLE);
	worker->has_task = true;
	worker->stop_task = worker->spoke = false;
	worker->assigned_ms = now_ms;
	become(worker, POOL_BUSY, INT64_MAX);
}

static uint32_t be_free(struct pool_child *worker, int64_t now_ms)
{
	become(worker, POOL_IDLE, INT64_MAX);
	return worker->retiring ? pool_child_retire(worker, now_ms) : POOL_DO_WORK;
}

static uint32_t hear_answer(struct pool_child *worker, const struct pool_message *message, int64_t now_ms)
{
	bool good = message->kind == POOL_RESULT && message->success;

	worker->has_task = false;
	worker->completed += good;
	worker->failed += !good;
	worker->crashes_in_row = 0;
	if (worker->state == POOL_LEAVING) { /* on its way out it may still answer */
		worker->planned = true;
		return POOL_DO_END;
	}
	become(worker, POOL_ANSWERED, now_ms + worker->rules.ready_ms);
	return POOL_DO_END | (worker->retiring ? pool_child_retire(worker, now_ms) : 0);
}

/* With a task it believes that it has answered. But one that says so twice, or after its hello too, may have said it before it
 * read its task: that is no end, because it would work on it all the same. What it says of the task shows that it has, and
 * so does time: the ready of an answer would have come too late. That of a hello comes when what it needs is loaded. */
static uint32_t hear_ready(struct pool_child *worker, int64_t now_ms)
{
	bool first = !worker->said_ready;

	worker->said_ready = true;
	if (worker->state == POOL_ANSWERED)
		return be_free(worker, now_ms);
	if (worker->state != POOL_BUSY)
		return 0;
	if (!worker->spoke && (first || now_ms - worker->assigned_ms < worker->rules.ready_ms))
		return 0;
	worker->has_task = false;
	worker->failed++;
	return POOL_DO_END | be_free(worker, now_ms);
}

static uint32_t hear_shutdown(struct pool_child *worker, int64_t now_ms)
{
	if (worker->state == POOL_LEAVING)
		return 0;
	/* with nothing to do it may go; with a task it leaves that behind, and before its hello it never came to life */
	worker->planned = worker->said_hello && !worker->has_task;
	if (!worker->planned)
		worker->fault = POOL_FAULT_LEFT;
	return leave(worker, now_ms);
}

uint32_t pool_child_hear(struct pool_child *worker, const struct pool_message *message,
	enum pool_subject subject, int64_t now_ms)
{
	if (!pool_child_has_process(worker))
		return 0;
	worker->heard_ms = now_ms;
	worker->unknown_in_row = 0;
	switch (message->kind) {
	case POOL_HELLO:
		worker->said_hello = true;
		return worker->state == POOL_STARTING ? be_free(worker, now_ms) : 0;
	case POOL_READY:
		return hear_ready(worker, now_ms);
	case POOL_HEARTBEAT:
		return 0;
	case POOL_SHUTDOWN:
		return hear_shutdown(worker, now_ms);
	case POOL_PROGRESS:
	case POOL_RESULT:
	case POOL_FAILURE:
		break;
	}
	worker->spoke |= subject != POOL_OF_THE_LAST;
	/* twice, of another task, or after its time */
	if (subject != POOL_OF_ITS_TASK || !worker->has_task || worker->stop_task || worker->killed) {
		worker->strays++;
		return 0;
	}
	if (message->kind == POOL_PROGRESS)
		return POOL_DO_NOTE;
	return hear_answer(worker, message, now_ms);
}

uint32_t pool_child_hear_unknown(struct pool_child *worker, bool of_itself)
{
	if (!pool_child_has_process(worker))
		return 0;
	worker->spoke |= !of_itself;
	worker->unknown++;
	if (++worker->unknown_in_row < POOL_UNKNOWN_MAX)
		return 0;
	return pool_child_break(worker, POOL_FAULT_UNKNOWN);
}

uint32_t pool_child_hear_end(struct pool_child *worker, bool within_frame, int64_t now_ms)
{
	if (!pool_child_has_process(worker) || worker->state == POOL_LEAVING)
		return 0;
	/* most often it has just ended, and how we shall know in a moment; one that starts may not even have begun */
	worker->fault = within_frame ? POOL_FAULT_HALF : POOL_FAULT_MUTE;
	if (worker->state != POOL_STARTING)
		return leave(worker, now_ms);
	if (worker->due_ms > now_ms + worker->rules.grace_ms)
		worker->due_ms = now_ms + worker->rules.grace_ms;
	return 0;
}

/* ---- time ---- */

int64_t pool_child_due_ms(const struct pool_child *worker)
{
	int64_t silent_ms =
		pool_child_is_alive(worker) ? worker->heard_ms + worker->rules.silence_ms : INT64_MAX;

	return silent_ms < worker->due_ms ? silent_ms : worker->due_ms;
}

uint32_t pool_child_look(struct pool_child *worker, int64_t now_ms)
{
	if (now_ms < pool_child_due_ms(worker))
		return 0;
	switch (worker->state) {
	case POOL_WAITING:
	case POOL_QUARANTINED:
		return enter(worker);
	case POOL_STARTING:
		return kill_it(
			worker, worker->fault == POOL_FAULT_NONE ? POOL_FAULT_NO_HELLO : worker->fault);
	case POOL_ANSWERED:
		return kill_it(worker, now_ms >= worker->due_ms ? POOL_FAULT_NOT_READY : POOL_FAULT_SILENT);
	case POOL_IDLE:
	case POOL_BUSY:
		return kill_it(worker, POOL_FAULT_SILENT);
	case POOL_LEAVING:
		worker->killed = true;
		worker->due_ms = INT64_MAX;
		return POOL_DO_KILL;
	case POOL_OFF:
	case POOL_ENTERING:
	case POOL_TELLING:
		break;
	}
	return 0;
}

/* ---- its end ---- */

void pool_child_lapse(struct pool_child *worker)
{
	worker->planned = worker->stop_task = true;
}

void pool_child_excuse(struct pool_child *worker)
{
	worker->planned = true;
}

/* It ended by itself, unless we know better. */
static void settle_fault(struct pool_child *worker, bool within_frame)
{
	bool mute = worker->fault == POOL_FAULT_MUTE && !worker->killed;

	if (within_frame && (mute || worker->fault == POOL_FAULT_NONE || worker->fault == POOL_FAULT_SILENT))
		worker->fault = POOL_FAULT_HALF;
	else if (mute || worker->fault == POOL_FAULT_NONE)
		worker->fault = POOL_FAULT_ENDED;
}

uint32_t pool_child_gone(struct pool_child *worker, bool within_frame, int64_t now_ms)
{
	uint32_t todo = worker->has_task ? POOL_DO_END : 0;
	bool lived = now_ms - worker->spawned_ms >= worker->rules.settled_ms;

	assert(pool_child_has_process(worker));
	worker->up_ms += now_ms - worker->spawned_ms;
	if (worker->has_task && !worker->stop_task)
		worker->failed++;
	if (lived)
		worker->crashes_in_row = 0;
	if (worker->planned) {
		worker->has_task = false;
		/* one that says goodbye again and again is not started again and again */
		worker->crashes_in_row += !worker->stop_task && !worker->retiring && !lived;
		wait_or_rest(worker, now_ms);
		return todo;
	}
	settle_fault(worker, within_frame);
	worker->has_task = false;
	worker->crashes++;
	worker->crashes_in_row++;
	become(worker, POOL_TELLING, INT64_MAX);
	if (worker->retiring)
		become(worker, POOL_OFF, INT64_MAX);
	return todo | POOL_DO_TELL;
}

uint32_t pool_child_told(struct pool_child *worker, enum pool_entry entry, int64_t now_ms)
{
	if (worker->state != POOL_TELLING)
		return 0;
	if (entry == POOL_ENTRY_QUARANTINED)
		be_quarantined(worker, now_ms);
	else
		wait_or_rest(worker, now_ms);
	return 0;
}

/* ---- words ---- */

static const struct {
	bool of_protocol; /* what it wrote is not what spec/stdio.md says */
	const char *text;
} faults[] = {
	[POOL_FAULT_NONE] = {false, "it ended"},
	[POOL_FAULT_ENDED] = {false, "it ended"},
	[POOL_FAULT_SILENT] = {false, "it was silent for too long (silenceMs)"},
	[POOL_FAULT_LENGTH] = {true,
		"its standard output is not frames, or one is longer than 1 MiB; logs belong on standard error"},
	[POOL_FAULT_HALF] = {true, "its standard output ended within a frame"},
	[POOL_FAULT_UNKNOWN] = {true, "100 frames in a row were not understood"},
	[POOL_FAULT_NO_HELLO] = {false, "no worker.hello came in time (startMs)"},
	[POOL_FAULT_NOT_READY] = {false, "no worker.ready came in time after its answer"},
	[POOL_FAULT_DEAF] = {false, "it reads its standard input no more"},
	[POOL_FAULT_MUTE] = {false, "it closed its standard output, and did not end"},
	[POOL_FAULT_LEFT] = {false, "it said worker.shutdown while it had a task"},
};

const char *pool_fault_code(const struct pool_child *worker)
{
	return faults[worker->fault].of_protocol                             ? "PROTOCOL_ERROR"
		: worker->said_hello && worker->fault != POOL_FAULT_NO_HELLO ? "WORKER_CRASHED"
									     : "WORKER_INIT_FAILED";
}

const char *pool_fault_text(const struct pool_child *worker)
{
	return worker->fault == POOL_FAULT_LEFT && !worker->said_hello
		? "it said worker.shutdown before its worker.hello"
		: faults[worker->fault].text;
}

const char *pool_state_name(const struct pool_child *worker)
{
	return worker->state == POOL_LEAVING && worker->fault == POOL_FAULT_SILENT
		? "unresponsive"
		: states[worker->state].name;
}
