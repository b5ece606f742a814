/*
 * Tasks that want a worker of a pool: each waits for a member whose worker has its module, or is refused with a reason.
 */
#include "pool/member.h"

#include <assert.h>
#include <errno.h>
#include <stdio.h>
#include <string.h>
#include <sys/random.h>

#include "base/clock.h"
#include "base/log.h"
#include "base/take.h"

enum {
	MODULES_LISTED_BYTES = 500, /* in a sentence */
	HOLD_MS = 1000,
	AWAY_FIRST_MS = 2 * 1000,
	AWAY_STEP_MS = 500,
	AWAY_MOST_MS = 60 * 1000,
};

void pool_job_unlink(struct pools *pools, struct pool_job *job)
{
	struct pool_job **at = &pools->waiting;

	while (job->waits && *at != job) {
		assert(*at); /* one that waits is in the list */
		at = &(*at)->next;
	}
	if (job->waits)
		*at = job->next;
	job->waits = false;
}

void pool_job_refuse(struct pools *pools, struct pool_job *job, const char *code, const char *message)
{
	cleanup(buf_done) struct buf report = {0};

	assert(!job->member); /* one that a worker has is ended by it */
	pool_job_unlink(pools, job);
	buf_init(&report, REPORT_BYTES_MAX);
	if (failure_put_refused(&report, code, message, clock_wall_ms()) < 0)
		buf_clear(&report);
	struct pool_job_end end = {.verb = REPORT_FAIL, .report = buf_span(&report)};
	job->events->ended(job->context, &end);
}

/* None lives, and none will soon: until when, what to do about it, and what was wrong. */
static void refuse_dead(struct pools *pools, struct pool_job *job)
{
	const struct pool_member *quarantined = NULL, *last = pool_last_troubled(pools, job->executor);
	int64_t due_ms = INT64_MAX, now_ms = pool_clock_ms();
	char message[1000], until[MEMBER_SLOT_BYTES + 100] = "";

	POOL_EACH(member, pools, job->executor)
	{
		if (member->worker.state == POOL_QUARANTINED && !quarantined)
			quarantined = member;
		if (member->worker.state == POOL_WAITING && pool_child_due_ms(&member->worker) < due_ms)
			due_ms = pool_child_due_ms(&member->worker);
	}
	if (due_ms < INT64_MAX)
		snprintf(until, sizeof until, "; the next one is started in %lld s",
			(long long)(due_ms > now_ms ? (due_ms - now_ms + 999) / 1000 : 0));
	else if (quarantined)
		snprintf(until, sizeof until, "; mended: stint slot unquarantine %s", quarantined->slot);
	snprintf(message, sizeof message, "no worker of the pool \"%.100s\" runs%s%s%s%s%s",
		job->executor->name, until, last ? "; " : "", last ? last->name : "", last ? ": " : "",
		last ? last->trouble : "");
	pool_job_refuse(pools, job, "WORKER_INIT_FAILED", message);
}

/* Has a member before this one the module, too? */
static bool is_listed(const struct pools *pools, const struct pool_member *member, const char *module)
{
	POOL_EACH(at, pools, member->executor)
	{
		if (at == member || (pool_child_is_alive(&at->worker) && pool_member_module(at, module)))
			return at != member;
	}
	return false;
}

/* " a, b": the modules of the live workers, as far as there is room. */
static void list_modules(const struct pools *pools, const struct executor *executor, char *out, size_t room)
{
	size_t used = (size_t)snprintf(out, room, " none");
	const char *comma = "";

	POOL_EACH(member, pools, executor)
	{
		const char *module = member->modules.data;
		if (!pool_child_is_alive(&member->worker))
			continue;
		for (uint32_t i = 0; i < member->module_count; i++, module += strlen(module) + 1) {
			if (is_listed(pools, member, module))
				continue;
			if (!comma[0])
				used = 0;
			if (used + strlen(module) + sizeof ", …" > room) {
				snprintf(out + used, room - used, " …");
				return;
			}
			used += (size_t)snprintf(out + used, room - used, "%s %s", comma, module);
			comma = ",";
		}
	}
}

/* Nobody here can do it, now or soon: why. */
static void refuse_homeless(struct pools *pools, struct pool_job *job, bool alive)
{
	char message[900], modules[MODULES_LISTED_BYTES];

	if (!alive) {
		refuse_dead(pools, job);
		return;
	}
	list_modules(pools, job->executor, modules, sizeof modules);
	if (job->module)
		snprintf(message, sizeof message,
			"no worker of the pool \"%.100s\" has the module \"%.128s\"; they have%s",
			job->executor->name, job->module, modules);
	else
		snprintf(message, sizeof message,
			"the task names no module, and the workers of the pool \"%.100s\" have more than one, or none: they have%s",
			job->executor->name, modules);
	pool_job_refuse(pools, job, "EXECUTOR_NOT_FOUND", message);
}

/* A worker with these modules began another task: its workers are not as slow as it seemed. */
static void expect_more(struct pools *pools, const struct pool_member *member)
{
	for (struct pool_away *away = pools->away; away < pools->away + POOL_AWAY_MAX; away++) {
		if (away->executor == member->executor &&
			pool_member_module(member, away->module[0] ? away->module : NULL))
			away->count = 0;
	}
}

/* Hand it to the worker. False: it was not taken, and waits for another one. */
static bool assign(struct pool_member *member, struct pool_job *job)
{
	cleanup(buf_done) struct buf frame = {0};
	struct json_complaint complaint;
	cleanup(yyjson_doc_free_at) yyjson_doc *doc =
		json_read_to(job->text, JSON_REPLY_DEPTH_MAX, &complaint);
	uint64_t random[2] = {0};
	char id[UUID_CHARS + 1];

	assert(!member->job);
	assert(!job->member);
	assert(member->process);
	struct pool_order order = {
		.id = id,
		.worker = member->name,
		.module = pool_member_module(member, job->module),
		.level = wall_level_name(member->executor->wall.level),
		.wall_ms = clock_wall_ms(),
		.deadline_ms = job->deadline_ms,
	};

	if (getrandom(random, sizeof random, 0) < 0)
		random[0] = (uint64_t)order.wall_ms; /* it tells messages apart, no more */
	pool_text_uuid(random, id);
	buf_init(&frame, FRAME_HEAD_BYTES + FRAME_BYTES_MAX);
	int r = pool_text_execute(&frame, &order, yyjson_doc_get_root(doc));
	if (r == -EMSGSIZE) {
		pool_job_refuse(
			member->pools, job, "EXECUTION_ERROR", "the task is too long for a frame of 1 MiB");
		return true;
	}
	process_work(member->process, &job->lease); /* with a whole budget for each task */
	if (r == 0)
		r = process_write(member->process, buf_span(&frame));
	if (r < 0) {
		pool_member_perform(member, pool_child_break(&member->worker, POOL_FAULT_DEAF), NULL);
		return false;
	}
	pool_job_unlink(member->pools, job);
	expect_more(member->pools, member);
	member->job = job;
	job->member = member;
	member->dropped[0] = 0;
	member->words_from = process_output(member->process, STREAM_ERR)->end;
	pool_child_assign(&member->worker, pool_clock_ms());
	log_info("started", log_cstr("task", job->task), log_cstr("executor", job->executor->name),
		log_cstr("poolWorker", member->name), log_cstr("module", order.module));
	assert(member->worker.has_task);
	assert(!job->waits);
	job->events->started(job->context);
	return true;
}

/* Gives the task back: all workers that could run it are busy, and nobody knows for how long. */
static void give_back(struct pools *pools, struct pool_job *job, int64_t delay_ms)
{
	cleanup(buf_done) struct buf report = {0};
	char reason[200];

	snprintf(reason, sizeof reason, "all workers of the pool \"%.100s\" that %s are busy",
		job->executor->name, delay_ms > 0 ? "have its module" : "run");
	pool_job_unlink(pools, job);
	buf_init(&report, REPORT_BYTES_MAX);
	if (release_put(&report, reason, delay_ms) < 0)
		buf_clear(&report);
	struct pool_job_end end = {.verb = REPORT_RELEASE, .report = buf_span(&report)};
	job->events->ended(job->context, &end);
}

/* How the members of its pool stand to a job. */
struct prospects {
	bool alive; /* a worker lives */
	bool soon;  /* a worker will soon be free, or its modules will soon be known */
	bool later; /* a worker that could run it is busy */
	bool idle;  /* a worker that cannot run it is idle */
	const struct pool_member *barred;
};

static void look_at_member(struct prospects *prospects, const struct pool_member *member, const char *module)
{
	const struct pool_child *worker = &member->worker;
	bool alive = pool_child_is_alive(worker), able = alive && pool_member_module(member, module);

	prospects->alive |= alive;
	prospects->soon |=
		pool_child_is_coming(worker, pool_clock_ms()) || (able && worker->state == POOL_ANSWERED);
	prospects->later |= able;
	prospects->idle |= worker->state == POOL_IDLE;
	if (member->barred[0])
		prospects->barred = member;
}

/* Of its kind; a new one takes the place of the one that was longest ago. */
static struct pool_away *find_away(struct pools *pools, const struct pool_job *job)
{
	const char *module = job->module ? job->module : "";
	struct pool_away *oldest = pools->away;

	for (struct pool_away *away = pools->away; away < pools->away + POOL_AWAY_MAX; away++) {
		if (away->executor == job->executor && strcmp(away->module, module) == 0)
			return away;
		if (away->last_ms < oldest->last_ms)
			oldest = away;
	}
	*oldest = (struct pool_away){.executor = job->executor};
	snprintf(oldest->module, sizeof oldest->module, "%s", module);
	return oldest;
}

/*
 * A claim cannot ask for a module: given back at once, the task would be claimed again for the idle workers. So it is given back with a
 * delay, a longer one the more such tasks there are, so that the tasks behind them are claimed. Not for long: another host may be free.
 */
static void send_away(struct pools *pools, struct pool_job *job, struct pool_away *away)
{
	int64_t delay_ms = AWAY_FIRST_MS + away->count++ * (int64_t)AWAY_STEP_MS;

	away->last_ms = pool_clock_ms();
	pools->site.owner->claim_later(pools->site.context);
	give_back(pools, job, delay_ms < AWAY_MOST_MS ? delay_ms : AWAY_MOST_MS);
}

static void on_held(uv_timer_t *timer)
{
	struct pools *pools = timer->data;

	for (uint32_t i = 0; i < pools->site.executor_count; i++)
		pool_jobs_place(pools, &pools->site.executors[i]);
}

/* The workers that could run it are busy, and others are idle. True: it was sent away. While its workers are quick it stays: they
 * would have nothing to do until it comes back. */
static bool hold(struct pools *pools, struct pool_job *job)
{
	struct pool_away *away = find_away(pools, job);
	int64_t now_ms = pool_clock_ms(), left_ms = job->since_ms + HOLD_MS - now_ms;

	if (now_ms - away->last_ms > AWAY_MOST_MS) /* all are back */
		away->count = 0;
	if (left_ms <= 0 || away->count > 0) {
		send_away(pools, job, away);
		return true;
	}
	if (!uv_is_active((uv_handle_t *)&pools->hold_timer))
		uv_timer_start(&pools->hold_timer, on_held, (uint64_t)left_ms, 0);
	return false;
}

bool pool_job_place(struct pools *pools, struct pool_job *job)
{
	struct prospects prospects = {0};

	POOL_EACH(member, pools, job->executor)
	{
		if (member->worker.state == POOL_IDLE && pool_member_module(member, job->module) &&
			!pools->retiring && assign(member, job)) {
			pool_member_perform(member, 0, NULL);
			return true;
		}
		look_at_member(&prospects, member, job->module);
	}
	if (pools->retiring)
		return false;
	if (prospects.barred && !prospects.alive)
		pool_job_refuse(pools, job, prospects.barred->barred_code, prospects.barred->barred);
	else if (prospects.soon)
		return false;
	else if (prospects.later && prospects.idle)
		return hold(pools, job);
	else if (prospects.later)
		give_back(pools, job, 0);
	else
		refuse_homeless(pools, job, prospects.alive);
	return true;
}

/* In the order in which they came. A callback may call this function again, so after each one the list is read from its
 * beginning. */
void pool_jobs_place(struct pools *pools, const struct executor *executor)
{
	struct pool_job *job = pools->waiting;

	while (job)
		job = job->executor == executor && pool_job_place(pools, job) ? pools->waiting : job->next;
}

void pool_jobs_give_up(struct pool_member *member)
{
	struct pools *pools = member->pools;
	char message[MEMBER_END_BYTES + 200], how[MEMBER_END_BYTES];

	POOL_EACH(other, pools, member->executor)
	{
		if (pool_child_is_alive(&other->worker))
			return;
	}
	pool_end_describe(member, how, sizeof how);
	snprintf(message, sizeof message, "a worker of the pool \"%.100s\" did not start: %s",
		member->executor->name, how);
	for (struct pool_job *job = pools->waiting; job;) {
		bool told = job->executor == member->executor;
		if (told)
			pool_job_refuse(pools, job, "WORKER_INIT_FAILED", message);
		job = told ? pools->waiting : job->next; /* as above */
	}
}
