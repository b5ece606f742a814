#include "core/worker/worker.h"

#include <assert.h>

static struct worker_decision refuse(const struct worker *worker, enum refusal refusal)
{
	return (struct worker_decision){.refusal = refusal, .worker = *worker};
}

static struct worker_decision decide(const struct worker *worker)
{
	return (struct worker_decision){.worker = *worker};
}

/* What is true of every worker, always. A decision that breaks one of these is a bug; a row that does is a damaged row. */
// clang-format off
#define WORKER_INVARIANTS(X) \
	X(worker->state <= WORKER_INACTIVE) \
	X(worker->ended <= WORKER_REPLACED) \
	X((worker->ended != WORKER_ENDED_NOT) == (worker->state == WORKER_INACTIVE)) \
	X((worker->token != 0) == (worker->state != WORKER_UNKNOWN)) \
	X(worker->state == WORKER_UNKNOWN || worker->lease.granted_ms > 0)
// clang-format on

static void check(const struct worker *worker)
{
	assert(worker->handle != 0);
#define X(invariant) assert(invariant);
	WORKER_INVARIANTS(X)
#undef X
}

bool worker_is_sound(const struct worker *worker)
{
#define X(invariant)      \
	if (!(invariant)) \
		return false;
	WORKER_INVARIANTS(X)
#undef X
	return true;
}

static struct worker_decision decided(struct worker_decision decision)
{
	check(&decision.worker);
	return decision;
}

static bool process_equal(const struct worker_process *a, const struct worker_process *b)
{
	return a->host == b->host && a->boot_hi == b->boot_hi && a->boot_lo == b->boot_lo &&
		a->pid == b->pid && a->start == b->start;
}

static bool process_is_told(const struct worker_process *process)
{
	return process->host != 0 || process->boot_hi != 0 || process->boot_lo != 0 || process->pid != 0 ||
		process->start != 0;
}

static bool differ(uint64_t old, uint64_t now)
{
	return old != 0 && now != 0 && old != now;
}

/* By what both said of themselves. */
static bool process_is_another(const struct worker_process *old, const struct worker_process *now)
{
	return differ(old->pid, now->pid) || differ(old->start, now->start) || differ(old->host, now->host) ||
		differ(old->boot_hi, now->boot_hi) || differ(old->boot_lo, now->boot_lo);
}

enum evidence worker_judge(const struct worker_process *old, const struct worker_process *newcomer,
	const struct worker_process *dead, bool seen_alive)
{
	if (old->host == 0 || (old->boot_hi | old->boot_lo) == 0 || old->pid == 0 || old->start == 0)
		return EVIDENCE_UNCHECKED;
	if (newcomer->host != old->host || newcomer->boot_hi != old->boot_hi ||
		newcomer->boot_lo != old->boot_lo)
		return EVIDENCE_FROM_AFAR;
	if (dead->pid != old->pid || dead->start != old->start)
		return EVIDENCE_OTHER_PROCESS;
	return seen_alive ? EVIDENCE_REFUTED : EVIDENCE_HOLDS;
}

/* Take the description over; false if it says nothing new. */
static bool describe(struct worker *worker, const struct beat *beat)
{
	if (!beat->describes)
		return false;
	bool same = worker->slot == beat->slot && worker->capabilities == beat->capabilities &&
		worker->executors == beat->executors && worker->any_executor == beat->any_executor &&
		worker->max_concurrent == beat->max_concurrent;
	/* a process does not become another one: what is not told again stays */
	if (process_is_told(&beat->process)) {
		same &= process_equal(&worker->process, &beat->process);
		worker->process = beat->process;
	}
	if (beat->version != 0) {
		same &= worker->version == beat->version;
		worker->version = beat->version;
	}
	worker->slot = beat->slot;
	worker->capabilities = beat->capabilities;
	worker->executors = beat->executors;
	worker->any_executor = beat->any_executor;
	worker->max_concurrent = beat->max_concurrent;
	return !same;
}

/* Extend the lease and give out the next token. */
static void accept(struct worker_decision *decision, const struct beat *beat, const struct given *given)
{
	struct worker *worker = &decision->worker;
	const struct rules *rules = given->rules;
	uint32_t fallback = worker->lease.granted_ms > 0 ? worker->lease.granted_ms : rules->worker_lease_ms;

	worker->lease = lease_grant(lease_clamp(rules, beat->lease_ms, fallback), given);
	worker->last_beat_ms = given->now.wall_ms;
	worker->heard_ms = given->now.lease_ms;
	worker->token = given->next_token;
	if (describe(worker, beat))
		decision->event = EVENT_WORKER_UPDATED;
	decision->must_store = decision->event != EVENT_NONE || beat->has_deltas;
}

static struct worker_decision bring_to_life(
	const struct worker *worker, const struct beat *beat, const struct given *given)
{
	struct worker_decision decision = {
		.worker =
			{
				.handle = worker->handle,
				.principal = beat->principal,
				.held = worker->held,
				.state = WORKER_ACTIVE,
				.named = beat->named,
				.registered_ms = given->now.wall_ms,
				.any_executor = true,
			},
	};

	accept(&decision, beat, given);
	decision.event = EVENT_WORKER_REGISTERED;
	decision.must_store = true;
	return decided(decision);
}

/* A key never comes back; a name does, as a new instance. */
static bool is_gone_for_good(const struct worker *worker, const struct beat *beat)
{
	return worker->state == WORKER_INACTIVE && !(worker->named && beat->named);
}

bool worker_belongs_to(const struct worker *worker, uint32_t principal)
{
	return worker->principal == principal || (worker->state == WORKER_UNKNOWN && worker->held == 0);
}

static bool may_beat(const struct worker *worker, const struct beat *beat)
{
	return worker_belongs_to(worker, beat->principal) ||
		(beat->inherits && worker->state == WORKER_INACTIVE);
}

struct worker_decision worker_register(
	const struct worker *worker, const struct beat *beat, bool slot_taken, const struct given *given)
{
	if (!may_beat(worker, beat))
		return refuse(worker, REFUSED_FORBIDDEN);
	if (is_gone_for_good(worker, beat))
		return refuse(worker, REFUSED_WORKER_INACTIVE);
	if (slot_taken)
		return refuse(worker, REFUSED_SLOT_TAKEN);

	struct worker_decision decision;

	if (worker->state == WORKER_INACTIVE || worker->state == WORKER_UNKNOWN) {
		decision = bring_to_life(worker, beat, given);
	} else { /* registered again while alive: the same instance */
		decision = decide(worker);
		accept(&decision, beat, given);
		decision.must_store = true;
		if (!beat->named) /* names of old doors do so as a matter of course */
			decision.event = EVENT_WORKER_UPDATED;
	}
	decision.worker.credential = decision.worker.token; /* a former one ends with that */
	return decided(decision);
}

struct worker_decision worker_beat(
	const struct worker *worker, const struct beat *beat, bool slot_taken, const struct given *given)
{
	if (!may_beat(worker, beat))
		return refuse(worker, REFUSED_FORBIDDEN);
	if (is_gone_for_good(worker, beat))
		return refuse(worker, REFUSED_WORKER_INACTIVE);
	if (worker->state == WORKER_INACTIVE) /* a name comes back as a new instance */
		return slot_taken ? refuse(worker, REFUSED_SLOT_TAKEN) : bring_to_life(worker, beat, given);
	if (worker->state == WORKER_UNKNOWN) {
		if (beat->has_token) /* it knew us, we do not know it: whatever it held is no longer its own */
			return refuse(worker, REFUSED_WORKER_INACTIVE);
		return slot_taken ? refuse(worker, REFUSED_SLOT_TAKEN) : bring_to_life(worker, beat, given);
	}
	/* our last reply was lost: tell the worker where it stands, change nothing. Old doors know no tokens. */
	bool knows_tokens = beat->has_token || !beat->named || !worker->named;
	if (knows_tokens && beat->token != worker->token)
		return refuse(worker, REFUSED_TOKEN_MISMATCH);
	if (slot_taken)
		return refuse(worker, REFUSED_SLOT_TAKEN);

	struct worker_decision decision = decide(worker);

	accept(&decision, beat, given);
	int64_t moved_ms = decision.worker.lease.deadline_ms - worker->stored_deadline_ms;
	decision.store_soon = moved_ms > given->rules->restart_grace_ms;
	return decided(decision);
}

bool worker_is_restarted(const struct worker *worker, const struct beat *beat)
{
	if (!worker_is_alive(worker) || !beat->describes || worker->process.pid == 0 ||
		beat->process.pid == 0)
		return false;
	if (beat->named)
		return worker->process.pid != beat->process.pid;
	return beat->registers && process_is_another(&worker->process, &beat->process);
}

struct worker_decision worker_renew(const struct worker *worker, const struct given *given)
{
	struct worker_decision decision = decide(worker);

	if (!worker_is_alive(worker) || !worker->named)
		return decision;
	decision.worker.lease = lease_grant(worker->lease.granted_ms, given);
	decision.worker.last_beat_ms = given->now.wall_ms;
	decision.worker.heard_ms = given->now.lease_ms;
	int64_t moved_ms = decision.worker.lease.deadline_ms - worker->stored_deadline_ms;
	decision.store_soon = moved_ms > given->rules->restart_grace_ms;
	return decided(decision);
}

static struct worker_decision command(
	const struct worker *worker, enum worker_state wanted, enum event_kind event)
{
	if (worker->state == WORKER_UNKNOWN)
		return refuse(worker, REFUSED_NOT_FOUND);
	if (worker->state == WORKER_INACTIVE)
		return refuse(worker, REFUSED_WORKER_INACTIVE);

	struct worker_decision decision = decide(worker);

	if (worker->state < wanted) { /* states only move forward */
		decision.worker.state = wanted;
		decision.event = event;
		decision.must_store = true;
	}
	return decided(decision);
}

struct worker_decision worker_quiet(const struct worker *worker)
{
	return command(worker, WORKER_QUIET, EVENT_WORKER_QUIET);
}

struct worker_decision worker_terminate(const struct worker *worker)
{
	return command(worker, WORKER_TERMINATING, EVENT_WORKER_TERMINATING);
}

static struct worker_decision end(const struct worker *worker, enum worker_end how)
{
	struct worker_decision decision = decide(worker);

	decision.worker.state = WORKER_INACTIVE;
	decision.worker.ended = how;
	decision.event = EVENT_WORKER_INACTIVE;
	decision.must_store = true;
	return decision;
}

struct worker_decision worker_expire(const struct worker *worker, const struct given *given)
{
	if (!worker_is_alive(worker) || !lease_is_expired(&worker->lease, given))
		return decide(worker);

	struct worker_decision decision = end(worker, WORKER_EXPIRED);

	decision.frees_lost = given->rules->reschedule_on_expiry;
	return decided(decision);
}

struct worker_decision worker_leave(const struct worker *worker, enum worker_end how)
{
	if (worker->state == WORKER_UNKNOWN)
		return refuse(worker, REFUSED_NOT_FOUND);
	if (worker->state == WORKER_INACTIVE)
		return decide(worker); /* already gone */

	struct worker_decision decision = end(worker, how);

	/* a goodbye gives work back; a predecessor that was found dead had lost it */
	decision.frees_lost = how == WORKER_REPLACED;
	decision.frees_returned = how != WORKER_REPLACED;
	return decided(decision);
}

struct worker_decision worker_void(const struct worker *worker)
{
	return worker_beats(worker) ? decided(end(worker, WORKER_TERMINATED)) : decide(worker);
}

struct worker_decision worker_rebase(const struct worker *worker, const struct given *given)
{
	struct worker_decision decision = decide(worker);

	if (!worker_is_alive(worker))
		return decision;
	decision.worker.lease = lease_grant(worker->lease.granted_ms, given);
	decision.worker.heard_ms = INT64_MIN;
	decision.must_store = true;
	return decided(decision);
}

struct worker_decision worker_cut(const struct worker *worker, const struct given *given)
{
	struct worker_decision decision = decide(worker);

	decision.must_store = worker_is_alive(worker) && lease_cut(&decision.worker.lease, given);
	return decided(decision);
}

bool worker_is_alive(const struct worker *worker)
{
	return worker->state == WORKER_ACTIVE || worker->state == WORKER_QUIET ||
		worker->state == WORKER_TERMINATING;
}

bool worker_beats(const struct worker *worker)
{
	return worker_is_alive(worker) && !worker->named;
}

bool worker_is_full(const struct worker *worker)
{
	uint32_t most = worker->max_concurrent != 0 ? worker->max_concurrent : WORKER_HELD_MAX;

	return worker->held >= most || worker->held >= WORKER_HELD_MAX;
}

bool worker_takes_other(const struct worker *before, const struct worker *after)
{
	return before->state != after->state || before->slot != after->slot ||
		before->capabilities != after->capabilities || before->executors != after->executors ||
		before->any_executor != after->any_executor ||
		before->max_concurrent != after->max_concurrent ||
		before->process.host != after->process.host;
}

enum refusal worker_may_claim(const struct worker *worker)
{
	if (worker->state == WORKER_INACTIVE)
		return REFUSED_WORKER_INACTIVE;
	if (worker->state == WORKER_QUIET || worker->state == WORKER_TERMINATING)
		return REFUSED_FORBIDDEN;
	return worker_is_full(worker) ? REFUSED_WORKER_FULL : REFUSED_NOTHING;
}

const char *worker_state_name(enum worker_state state)
{
	switch (state) {
	case WORKER_UNKNOWN:
		return "unknown";
	case WORKER_ACTIVE:
		return "active";
	case WORKER_QUIET:
		return "quiet";
	case WORKER_TERMINATING:
		return "terminating";
	case WORKER_INACTIVE:
		return "inactive";
	}
	assert(0 && "a worker has a state");
	return "";
}

const char *worker_end_name(enum worker_end ended)
{
	switch (ended) {
	case WORKER_ENDED_NOT:
		return "";
	case WORKER_EXPIRED:
		return "expired";
	case WORKER_SHUTDOWN:
		return "shutdown";
	case WORKER_TERMINATED:
		return "terminated";
	case WORKER_REPLACED:
		return "replaced";
	}
	assert(0 && "a worker ends in one of these ways");
	return "";
}
