#include "worker/beat/beat.h"
#include "attempt/retry.h"

#include <assert.h>
#include <errno.h>
#include <string.h>

enum {
	RETRIES_QUICK = 3, /* after 1, 2 and 4 s */
	SHORTEST_MS = 100, /* between two beats of the shortest lease there is */
	STOP_BEFORE_MS_MIN = 2000,
	REFUSED_MS_MIN = 1000,
};

static int64_t least(int64_t a, int64_t b)
{
	return a < b ? a : b;
}

static int64_t most(int64_t a, int64_t b)
{
	return a > b ? a : b;
}

void beat_init(struct beat_state *beat, const struct beat_rules *rules, struct beat_task *tasks,
	uint32_t task_max, uint64_t seed, int64_t now_ms)
{
	*beat = (struct beat_state){.rules = *rules, .tasks = tasks, .task_max = task_max};
	rng_seed(&beat->rng, seed);
	beat_renew(beat, now_ms);
}

void beat_renew(struct beat_state *beat, int64_t now_ms)
{
	assert(!beat->under_way);
	beat->phase = BEAT_NEW;
	beat->standing = BEAT_ACTIVE;
	beat->token[0] = 0;
	beat->lapsed = beat->refused = beat->hurried = false;
	beat->lease_ms = 0;
	beat->next_ms = now_ms;
	beat->failures = beat->mismatches = 0;
	beat->task_count = 0;
}

/* What is true between two calls, whatever the server says. */
static void check(const struct beat_state *beat)
{
	assert(beat->task_count <= beat->task_max);
	assert(beat->phase != BEAT_ALIVE || beat->lease_ms > 0);
	assert(beat->phase != BEAT_OVER || beat->lease_ms == 0);
	assert(beat->phase != BEAT_OVER || !beat->under_way);
	for (uint32_t i = 0; i < beat->task_count; i++) {
		const struct beat_task *task = &beat->tasks[i];
		assert(task->id_len > 0);
		assert(task->sent == BEAT_SENT_NOTHING || beat->under_way);
		/* what is neither held nor known to the server is not kept */
		assert(task->held || task->known != BEAT_KNOWN_NOT || task->sent != BEAT_SENT_NOTHING);
	}
}

/* ---- what it holds ---- */

static struct beat_task *find(const struct beat_state *beat, struct span id)
{
	for (uint32_t i = 0; i < beat->task_count; i++) {
		struct beat_task *task = &beat->tasks[i];
		if (task->id_len == id.len && memcmp(task->id, id.data, id.len) == 0)
			return task;
	}
	return NULL;
}

static void drop(struct beat_state *beat, struct beat_task *task)
{
	*task = beat->tasks[--beat->task_count];
}

static bool differs(const struct beat_task *task)
{
	return task->known != (task->held ? BEAT_KNOWN_BOUND : BEAT_KNOWN_NOT);
}

static bool has_deltas(const struct beat_state *beat)
{
	for (uint32_t i = 0; i < beat->task_count; i++) {
		if (differs(&beat->tasks[i]))
			return true;
	}
	return false;
}

/* A difference waits a little for others; while the server is away it waits for the server. */
static void tell_soon(struct beat_state *beat, int64_t now_ms)
{
	if (beat->failures == 0 && !beat->refused)
		beat->next_ms = least(beat->next_ms, now_ms + BEAT_DELTA_DELAY_MS);
}

int beat_bind(struct beat_state *beat, struct span id, int64_t now_ms)
{
	struct beat_task *task = find(beat, id);

	if (id.len == 0 || id.len > BEAT_ID_BYTES_MAX)
		return -EINVAL;
	if (!task && beat->task_count == beat->task_max)
		return -ENOSPC;
	if (!task) {
		task = &beat->tasks[beat->task_count++];
		*task = (struct beat_task){.id_len = (uint8_t)id.len};
		memcpy(task->id, id.data, id.len);
	}
	task->held = true;
	tell_soon(beat, now_ms);
	check(beat);
	return 0;
}

void beat_unbind(struct beat_state *beat, struct span id, int64_t now_ms)
{
	struct beat_task *task = find(beat, id);

	if (!task)
		return;
	task->held = false;
	if (task->known == BEAT_KNOWN_NOT && task->sent == BEAT_SENT_NOTHING)
		drop(beat, task);
	else
		tell_soon(beat, now_ms);
	check(beat);
}

void beat_forget(struct beat_state *beat, struct span id)
{
	struct beat_task *task = find(beat, id);

	if (task)
		drop(beat, task);
}

bool beat_is_bound(const struct beat_state *beat, struct span id)
{
	const struct beat_task *task = find(beat, id);

	return task && task->known == BEAT_KNOWN_BOUND;
}

uint32_t beat_held(const struct beat_state *beat)
{
	uint32_t held = 0;

	for (uint32_t i = 0; i < beat->task_count; i++)
		held += beat->tasks[i].held;
	return held;
}

/* ---- when ---- */

static int64_t quarter_ms(const struct beat_state *beat)
{
	int64_t lease_ms = beat->lease_ms > 0 ? beat->lease_ms : beat->rules.lease_ms;

	return most(lease_ms / 4, SHORTEST_MS);
}

static int64_t interval_ms(const struct beat_state *beat)
{
	bool works = beat_held(beat) > 0;
	int64_t asked_ms = works ? beat->rules.working_ms : beat->rules.idle_ms;
	int64_t interval_ms = works ? quarter_ms(beat) : most(beat->lease_ms / 3, SHORTEST_MS);

	return asked_ms > 0 ? least(interval_ms, asked_ms) : interval_ms;
}

int64_t beat_lease_end_ms(const struct beat_state *beat)
{
	return beat->lease_ms > 0 ? beat->leased_ms + beat->lease_ms : INT64_MAX;
}

int64_t lease_spare_ms(int64_t lease_ms)
{
	return least(most(lease_ms / 10, STOP_BEFORE_MS_MIN), lease_ms / 2);
}

static int64_t stop_at_ms(const struct beat_state *beat)
{
	if (beat->lease_ms == 0 || beat->lapsed || beat_held(beat) == 0 ||
		(beat->rules.same_host && !beat->refused))
		return INT64_MAX;
	return beat_lease_end_ms(beat) - lease_spare_ms(beat->lease_ms);
}

int64_t beat_due_ms(const struct beat_state *beat)
{
	int64_t next_ms = beat->under_way || beat->phase == BEAT_OVER ? INT64_MAX : beat->next_ms;

	return least(next_ms, stop_at_ms(beat));
}

bool beat_lapses(struct beat_state *beat, int64_t now_ms)
{
	if (now_ms < stop_at_ms(beat))
		return false;
	beat->lapsed = true;
	return true;
}

void beat_hurry(struct beat_state *beat, int64_t now_ms)
{
	beat->hurried = beat->under_way;
	beat->next_ms = least(beat->next_ms, now_ms);
}

/* The server is away: how long until the next try? With work it is asked in every quarter of the lease. Beside the server twice
 * as often: there each try is the word to go on (go_on()), and it may take a quarter of the lease to fail. */
static int64_t away_ms(struct beat_state *beat, int64_t now_ms)
{
	bool late = beat->lease_ms == 0 || now_ms >= beat_lease_end_ms(beat);
	uint32_t n = ++beat->failures;

	/* without work nothing hurries: it comes back after as long again as the server was away, and at most 5 minutes */
	if (late && beat_held(beat) == 0)
		return retry_delay_ms(n, BEAT_IDLE_AWAY_MS, &beat->rng);
	int64_t delay_ms = n > RETRIES_QUICK ? BEAT_AWAY_MS : retry_delay_ms(n, BEAT_AWAY_MS, &beat->rng);
	return least(delay_ms, beat->rules.same_host ? quarter_ms(beat) / 2 : quarter_ms(beat));
}

/* ---- what ---- */

static void put_delta(struct beat_task *task, struct beat_request *request)
{
	struct span id = {task->id, task->id_len};

	if (task->held)
		request->bound[request->bound_count++] = id;
	else
		request->unbound[request->unbound_count++] = id;
	task->sent = task->held ? BEAT_SENT_BIND : BEAT_SENT_UNBIND;
}

bool beat_send(struct beat_state *beat, int64_t now_ms, struct beat_request *ret_request)
{
	if (beat->under_way || beat->phase == BEAT_OVER || now_ms < beat->next_ms)
		return false;
	*ret_request = (struct beat_request){
		.registers = beat->phase == BEAT_NEW,
		.token = span_of(beat->token),
		.lease_ms = beat->rules.lease_ms,
	};
	for (uint32_t i = 0; i < beat->task_count && beat->phase == BEAT_ALIVE; i++) {
		struct beat_task *task = &beat->tasks[i];
		if (differs(task) && ret_request->bound_count + ret_request->unbound_count < BEAT_DELTAS_MAX)
			put_delta(task, ret_request);
	}
	beat->under_way = true;
	beat->hurried = false;
	beat->sent_ms = now_ms;
	check(beat);
	return true;
}

/* ---- what the answer means ---- */

static void take_token(struct beat_state *beat, struct span token)
{
	size_t len = token.len <= BEAT_TOKEN_BYTES_MAX ? token.len : 0; /* no server of ours: it will tell */

	memcpy(beat->token, token.data ? token.data : "", len);
	beat->token[len] = 0;
}

/* What was under way has arrived (`acknowledged`), has not, or nobody knows. */
static void settle(struct beat_state *beat, bool acknowledged, bool perhaps)
{
	for (uint32_t i = 0; i < beat->task_count; i++) {
		struct beat_task *task = &beat->tasks[i];
		if (task->sent != BEAT_SENT_NOTHING && acknowledged)
			task->known = task->sent == BEAT_SENT_BIND ? BEAT_KNOWN_BOUND : BEAT_KNOWN_NOT;
		else if (task->sent != BEAT_SENT_NOTHING && perhaps)
			task->known = BEAT_KNOWN_PERHAPS;
		task->sent = BEAT_SENT_NOTHING;
	}
	for (uint32_t i = beat->task_count; i > 0; i--) {
		struct beat_task *task = &beat->tasks[i - 1];
		if (!task->held && task->known == BEAT_KNOWN_NOT)
			drop(beat, task);
	}
}

/* We were apart: it may be another server by now, or one with an older memory. Say everything again. */
static void doubt(struct beat_state *beat)
{
	for (uint32_t i = 0; i < beat->task_count; i++) {
		if (beat->tasks[i].known == BEAT_KNOWN_BOUND)
			beat->tasks[i].known = BEAT_KNOWN_PERHAPS;
	}
}

/* Only what this beat said: a task that has ended since is not lost, nor is one that was claimed again. */
static void hear_lost(struct beat_state *beat, struct beat_answer *answer)
{
	uint32_t kept = 0;

	for (uint32_t i = 0; i < answer->lost_count; i++) {
		struct beat_task *task = find(beat, answer->lost[i]);
		if (!task || task->sent != BEAT_SENT_BIND)
			continue;
		drop(beat, task);
		answer->lost[kept++] = answer->lost[i];
	}
	answer->lost_count = kept;
}

static void vouch(struct beat_state *beat, int64_t from_ms, struct beat_effects *news)
{
	beat->vouched_ms = from_ms;
	news->vouched = true;
}

/* The server is away. On its own host work goes on, because a server that is down gives the work to nobody else. The lease
 * counts from the request and not from now: we may have been stopped since, and the server may have heard us. */
static void go_on(struct beat_state *beat, struct beat_effects *news)
{
	if (beat->rules.same_host && beat->lease_ms > 0)
		vouch(beat, beat->sent_ms, news);
}

static void hear_accepted(
	struct beat_state *beat, int64_t now_ms, struct beat_answer *answer, struct beat_effects *news)
{
	bool apart = beat->failures > 0 || beat->refused;

	hear_lost(beat, answer);
	settle(beat, true, false);
	if (apart)
		doubt(beat);
	news->standing = answer->standing != beat->standing;
	beat->phase = BEAT_ALIVE;
	beat->standing = answer->standing;
	take_token(beat, answer->token);
	beat->lease_ms = answer->lease_ms;
	beat->leased_ms = beat->sent_ms;
	vouch(beat, beat->sent_ms, news);
	beat->failures = beat->mismatches = 0;
	beat->lapsed = false;
	int64_t interval = interval_ms(beat);
	beat->next_ms = beat->sent_ms + interval - rng_between(&beat->rng, 0, interval / 10);
	if (has_deltas(beat) || beat->hurried)
		beat->next_ms = now_ms;
}

/* The last answer was lost; nothing of this beat was applied, of the one before it perhaps. */
static void hear_mismatch(struct beat_state *beat, int64_t now_ms, const struct beat_answer *answer)
{
	settle(beat, false, true);
	doubt(beat);
	take_token(beat, answer->token);
	beat->next_ms = ++beat->mismatches <= BEAT_MISMATCHES_MAX ? now_ms : now_ms + away_ms(beat, now_ms);
}

static void hear_inactive(struct beat_state *beat, struct beat_effects *news)
{
	beat->phase = BEAT_OVER;
	beat->lease_ms = 0;
	beat->task_count = 0;
	news->over = true;
}

static void hear_busy(struct beat_state *beat, int64_t now_ms, int64_t retry_after_ms)
{
	int64_t limit_ms = beat_held(beat) > 0 ? quarter_ms(beat) : BEAT_IDLE_AWAY_MS;

	settle(beat, false, false);
	beat->failures++;
	beat->next_ms = now_ms + least(retry_after_ms, limit_ms);
}

void beat_hear(
	struct beat_state *beat, int64_t now_ms, struct beat_answer *answer, struct beat_effects *ret_news)
{
	assert(beat->under_way);
	assert(beat->phase != BEAT_OVER);
	assert(answer->outcome != BEAT_ACCEPTED || answer->lease_ms > 0);
	assert(!answer->unsent || answer->outcome == BEAT_UNANSWERED);
	*ret_news = (struct beat_effects){0};
	beat->under_way = false;
	switch (answer->outcome) {
	case BEAT_ACCEPTED:
		hear_accepted(beat, now_ms, answer, ret_news);
		break;
	case BEAT_TOKEN_MISMATCH:
		hear_mismatch(beat, now_ms, answer);
		break;
	case BEAT_WORKER_INACTIVE:
		hear_inactive(beat, ret_news);
		break;
	case BEAT_REFUSED:
		settle(beat, false, false);
		beat->next_ms = now_ms + most(REFUSED_MS_MIN, least(BEAT_AWAY_MS, quarter_ms(beat)));
		break;
	case BEAT_BUSY:
		hear_busy(beat, now_ms, answer->retry_after_ms);
		go_on(beat, ret_news);
		break;
	case BEAT_UNANSWERED:
		settle(beat, false, true);
		beat->next_ms = now_ms + away_ms(beat, now_ms);
		if (!answer->unsent) /* else it may be there, and will give to others what we have */
			go_on(beat, ret_news);
		break;
	}
	beat->refused = answer->outcome == BEAT_REFUSED || answer->unsent;
	check(beat);
}
