/*
 * The state of the pools as JSON, for the server, which shows it.
 */
#include "pool/pool.h"

#include "pool/member.h"

struct tally {
	int64_t total, active, idle, busy, completed, failed, crashes, dropped, starts, up_ms;
};

const struct pool_member *pool_last_troubled(const struct pools *pools, const struct executor *executor)
{
	const struct pool_member *last = NULL;

	POOL_EACH(member, pools, executor)
	{
		if (member->trouble[0] && (!last || member->trouble_ms >= last->trouble_ms))
			last = member;
	}
	return last;
}

static void count_member(struct tally *tally, const struct pool_child *worker)
{
	tally->total++;
	tally->active += pool_child_has_process(worker);
	tally->idle += worker->state == POOL_IDLE;
	tally->busy += worker->state == POOL_BUSY || worker->state == POOL_ANSWERED;
	tally->completed += (int64_t)worker->completed;
	tally->failed += (int64_t)worker->failed;
	tally->crashes += (int64_t)worker->crashes;
	tally->dropped += (int64_t)(worker->unknown + worker->strays);
	tally->starts += (int64_t)worker->starts;
	tally->up_ms += worker->up_ms;
	if (pool_child_has_process(worker))
		tally->up_ms += pool_clock_ms() - worker->spawned_ms;
}

static void put_tally(struct json_object *object, const struct tally *tally, int64_t started_ms)
{
	json_member_int(object, "totalWorkers", tally->total);
	json_member_int(object, "activeWorkers", tally->active);
	json_member_int(object, "idleWorkers", tally->idle);
	json_member_int(object, "busyWorkers", tally->busy);
	json_member_int(object, "tasksCompleted", tally->completed);
	json_member_int(object, "tasksFailed", tally->failed);
	json_member_int(object, "workerCrashes", tally->crashes);
	json_member_int(object, "framesDropped", tally->dropped);
	json_member_int(
		object, "averageWorkerUptimeMs", tally->starts > 0 ? tally->up_ms / tally->starts : 0);
	json_member_int(object, "startedAt", started_ms);
}

/* Only one of them: most often all have the same, and how long the snapshot may be is limited. */
static int put_trouble(struct buf *out, const struct pool_member *member)
{
	struct json_object object;

	json_begin(&object, out);
	json_member_string(&object, "worker", span_of(member->name));
	json_member_int(&object, "at", member->trouble_ms);
	json_member_string(&object, "reason", span_of(member->trouble));
	return json_end(&object);
}

static int put_members(struct buf *out, const struct pools *pools, const struct executor *executor)
{
	buf_put_byte(out, '[');
	bool any = false;

	POOL_EACH(member, pools, executor)
	{
		struct json_object object;
		json_put_comma(out, &any);
		json_begin(&object, out);
		json_member_string(&object, "id", span_of(member->name));
		json_member_string(&object, "slot", span_of(member->slot));
		json_member_string(&object, "state", span_of(pool_state_name(&member->worker)));
		if (member->job)
			json_member_string(&object, "task", span_of(member->job->task));
		json_end(&object);
	}
	buf_put_byte(out, ']');
	return buf_fault(out);
}

int pools_put(struct buf *out, const struct pools *pools)
{
	struct json_object all, one;

	json_begin(&all, out);
	for (uint32_t i = 0; i < pools->site.executor_count; i++) {
		const struct executor *executor = &pools->site.executors[i];
		struct tally tally = {0};
		if (executor->size == 0 || !json_put_key(&all, executor->name))
			continue;
		POOL_EACH(member, pools, executor)
		{
			count_member(&tally, &member->worker);
		}
		json_begin(&one, out);
		put_tally(&one, &tally, pools->started_ms);
		const struct pool_member *troubled = pool_last_troubled(pools, executor);
		if (troubled && json_put_key(&one, "lastTrouble"))
			json_note(&one, put_trouble(out, troubled));
		if (json_put_key(&one, "workers"))
			json_note(&one, put_members(out, pools, executor));
		json_note(&all, json_end(&one));
	}
	return json_end(&all);
}
