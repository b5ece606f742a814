#include "pool/pool.h"

#include <assert.h>
#include <errno.h>
#include <stdlib.h>

#include "base/clock.h"
#include "base/log.h"
#include "base/take.h"
#include "pool/member.h"

struct pools *pools_new(const struct pools_site *site)
{
	struct pools *pools = calloc(1, sizeof *pools);
	uint32_t count = 0;

	for (uint32_t i = 0; i < site->executor_count; i++)
		count += (uint32_t)site->executors[i].size;
	if (pools) {
		pools->site = *site;
		pools->started_ms = clock_wall_ms();
		pools->members = calloc(count + 1, sizeof *pools->members);
	}
	if (!pools || !pools->members) {
		free(pools);
		return NULL;
	}
	uv_timer_init(site->loop, &pools->hold_timer);
	pools->hold_timer.data = pools;
	for (uint32_t i = 0; i < site->executor_count; i++) {
		for (int64_t n = 1; n <= site->executors[i].size; n++)
			pool_member_init(
				pools, &pools->members[pools->member_count++], &site->executors[i], n);
	}
	return pools;
}

void pools_free(struct pools *pools)
{
	if (!pools)
		return;
	for (uint32_t i = 0; i < pools->member_count; i++) {
		frame_reader_done(&pools->members[i].frames);
		buf_done(&pools->members[i].modules);
	}
	free(pools->members);
	free(pools);
}

struct pool_member *pools_next(
	const struct pools *pools, const struct executor *executor, const struct pool_member *member)
{
	uint32_t i = member ? (uint32_t)(member - pools->members) + 1 : 0;

	while (i < pools->member_count && pools->members[i].executor != executor)
		i++;
	return i < pools->member_count ? &pools->members[i] : NULL;
}

void pools_begin(struct pools *pools)
{
	for (uint32_t i = 0; i < pools->member_count && !pools->retiring; i++)
		pool_member_perform(&pools->members[i], pool_child_begin(&pools->members[i].worker), NULL);
}

uint32_t pools_room(const struct pools *pools, const struct executor *executor)
{
	uint32_t idle = 0, waiting = 0;
	bool alive = false, barred = false;

	POOL_EACH(member, pools, executor)
	{
		idle += member->worker.state == POOL_IDLE;
		alive |= pool_child_is_alive(&member->worker);
		barred |= member->barred[0] != 0;
	}
	if (barred && !alive)
		idle = 1; /* a task is claimed, so that it is refused with the reason */
	for (const struct pool_job *job = pools->waiting; job; job = job->next)
		waiting += job->executor == executor;
	return idle > waiting && !pools->retiring ? idle - waiting : 0;
}

void pools_submit(struct pools *pools, struct pool_job *job)
{
	struct pool_job **end = &pools->waiting;

	assert(job->executor->size > 0); /* a pool */
	assert(job->events->ended);
	job->member = NULL;
	job->next = NULL;
	job->waits = false;
	job->since_ms = pool_clock_ms();
	if (job->module && !pool_is_module(span_of(job->module))) {
		pool_job_refuse(pools, job, "EXECUTOR_NOT_FOUND",
			"the module must be a name: letters, digits, - and _");
		return;
	}
	struct pool_member *first = pools_next(pools, job->executor, NULL);
	if (pools->site.lazy && first) /* a pass has one task, and starts a worker when it has it */
		pool_member_perform(first, pool_child_begin(&first->worker), NULL);
	if (pool_job_place(pools, job))
		return;
	while (*end)
		end = &(*end)->next;
	*end = job;
	job->waits = true;
	pools_tell_changed(pools);
}

void pool_job_push(struct pool_job *job, const struct process_lease *lease)
{
	job->lease = *lease;
	if (job->member && process_lease(job->member->process, lease))
		log_warn("its shim had been stopped; it goes on", log_cstr("task", job->task));
}

bool pools_withdraw(struct pools *pools, struct pool_job *job, int64_t grace_ms)
{
	struct pool_member *member = job->member;

	if (!member) {
		pool_job_unlink(pools, job);
		return false;
	}
	pool_member_perform(member, pool_child_stop_task(&member->worker, grace_ms, pool_clock_ms()), NULL);
	return true;
}

void pools_retire(struct pools *pools)
{
	if (pools->retiring)
		return;
	pools->retiring = true;
	for (uint32_t i = 0; i < pools->member_count; i++)
		pool_member_perform(&pools->members[i],
			pool_child_retire(&pools->members[i].worker, pool_clock_ms()), NULL);
}

bool pools_are_gone(const struct pools *pools)
{
	for (uint32_t i = 0; i < pools->member_count; i++) {
		if (pools->members[i].worker.state != POOL_OFF || pools->members[i].leftover[0])
			return false;
	}
	return true;
}
