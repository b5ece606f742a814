#include "core/why.h"

#include <assert.h>

static const struct {
	const char *name;
	const char *text;
} rows[WHY_COUNT] = {
#define X(name, wire, text) [WHY_##name] = {wire, text},
	WHYS(X)
#undef X
};

/* The limit of its queue or of its key that keeps it from being claimed, with what counts of how many. */
static struct reason limit_reason(const struct task *task, const struct surroundings *around)
{
	const struct queue_limits *limits = &around->limits;
	enum limit_kind limit = limits_judge(limits, &around->load);
	struct reason reason = {.limit = limit};

	if (around->budget_until_ms != 0)
		return (struct reason){.limit = LIMIT_BUDGET, .until_ms = around->budget_until_ms};
	if (limit == LIMIT_NONE && task->concurrency_key != 0)
		reason.limit =
			limits_judge_key(limits, around->key_cap, &around->key_load, task_has_begun(task));
	if (reason.limit == LIMIT_NONE && around->rate_opens_ms != 0)
		reason.limit = LIMIT_RATE;
	switch (reason.limit) {
	case LIMIT_CONCURRENCY:
		reason.live = around->load.live;
		reason.most = limits->concurrency;
		break;
	case LIMIT_PER_KEY:
		reason.live = around->key_load.live;
		reason.most = around->key_cap != 0 ? around->key_cap : limits->per_key;
		break;
	case LIMIT_SEQUENTIAL:
		reason.live = around->key_load.begun;
		reason.most = 1;
		break;
	case LIMIT_RATE:
		reason.until_ms = around->rate_opens_ms;
		break;
	case LIMIT_REVIEW:
		reason.live = around->load.review;
		reason.most = limits->review;
		break;
	case LIMIT_NONE:
	case LIMIT_HOLD:
	case LIMIT_BUDGET:
	case LIMIT_KIND_COUNT:
		break;
	}
	return reason;
}

/* Are the accounts of all that could take it held? Then its host could not take it either. */
static bool are_all_held(const struct surroundings *around)
{
	return around->known && around->owning > 0 && around->free == 0;
}

/* A ready task that nobody takes: the first thing that is missing, seen from the queue inwards. */
static enum why why_ready(const struct task *task, const struct surroundings *around)
{
	if (around->queue == QUEUE_PAUSED)
		return WHY_PAUSED;
	if (around->disarmed)
		return WHY_DISARMED;
	if (around->opted_in && !task->autonomous)
		return WHY_NOT_AUTONOMOUS;
	if (around->read_only)
		return WHY_READ_ONLY;
	if (limit_reason(task, around).limit != LIMIT_NONE)
		return WHY_LIMITED;
	if (task->owner != 0 && around->owner_quarantined)
		return WHY_OWNER_QUARANTINED;
	if (around->held && around->free == 0) /* else another executor takes the place of its own */
		return WHY_HELD;
	if (task->resume_until_ms != 0 && !are_all_held(around))
		return WHY_KEPT_FOR_HOST;
	if (!around->known || (around->serving == 0 && around->asked_for))
		return WHY_READY_NOW;
	if (around->workers == 0)
		return WHY_NO_WORKER;
	if (around->serving == 0)
		return WHY_QUEUE_UNSERVED;
	if (around->capable == 0)
		return WHY_NO_CAPABILITY;
	if (around->executing == 0)
		return WHY_NO_EXECUTOR;
	if (task->owner != 0 && around->owning == 0)
		return WHY_OWNER_AWAY;
	if (around->free == 0)
		return WHY_HELD;
	if (around->idle == 0)
		return WHY_WORKERS_BUSY;
	if (around->pool_slot != 0) /* nobody knows how many places there are besides: those may be busy */
		return WHY_POOL_QUARANTINED;
	return WHY_READY_NOW;
}

static enum why why_held(const struct task *task, const struct given *given)
{
	if (task->claim.stopping)
		return WHY_STOPPING;
	if (task_must_stop(task, given))
		return WHY_OVERDUE;
	return task->state == TASK_CLAIMED ? WHY_UNCONFIRMED : WHY_RUNNING;
}

struct reason task_why(const struct task *task, const struct surroundings *around, const struct given *given)
{
	switch (task->state) {
	case TASK_PENDING:
		return (struct reason){.why = WHY_PARKED};
	case TASK_SCHEDULED:
		return (struct reason){.why = task->code == CODE_NONE ? WHY_SCHEDULED : WHY_BACKING_OFF,
			.until_ms = task->ready_at_ms,
			.code = task->code};
	case TASK_WAITING:
		return (struct reason){.why = task_awaits(task) ? WHY_CHILDREN
				: task->open_parents > 0        ? WHY_DEPENDENCY
				: task->predecessor != 0        ? WHY_PREDECESSOR
								: WHY_SCHEDULE};
	case TASK_READY: {
		enum why why = why_ready(task, around);
		bool shut = why == WHY_OWNER_QUARANTINED || why == WHY_POOL_QUARANTINED;
		struct reason limited = why == WHY_LIMITED ? limit_reason(task, around) : (struct reason){0};
		return (struct reason){.why = why,
			.limit = limited.limit,
			.live = limited.live,
			.most = limited.most,
			.slot = why == WHY_POOL_QUARANTINED ? around->pool_slot : 0,
			.refused = why == WHY_QUEUE_UNSERVED ? around->refused : 0,
			.workers = why == WHY_WORKERS_BUSY ? around->owning : 0,
			.unasked = why == WHY_READY_NOW && !around->known && !around->asked_for,
			.until_ms = shut                   ? around->trial_at_ms
				: why == WHY_LIMITED       ? limited.until_ms
				: why == WHY_HELD          ? around->held_until_ms
				: why == WHY_KEPT_FOR_HOST ? task->resume_until_ms
							   : 0};
	}
	case TASK_CLAIMED:
	case TASK_RUNNING:
		return (struct reason){.why = why_held(task, given)};
	case TASK_ASKING:
		return (struct reason){.why = task->claim.stopping ? WHY_STOPPING : WHY_ASKING};
	case TASK_REVIEW:
		return (struct reason){.why = WHY_REVIEW};
	case TASK_BLOCKED:
		return (struct reason){.why = WHY_BLOCKED, .code = task->code};
	case TASK_FAILED:
	case TASK_DONE:
	case TASK_CANCELLED:
		return (struct reason){.why = WHY_ENDED, .code = task->code};
	case TASK_NOWHERE:
	case TASK_STATE_COUNT:
		break;
	}
	assert(0 && "a task has a state");
	return (struct reason){.why = WHY_ENDED};
}

const char *why_name(enum why why)
{
	assert(why < WHY_COUNT);
	return rows[why].name;
}

const char *why_text(enum why why)
{
	assert(why < WHY_COUNT);
	return rows[why].text;
}
