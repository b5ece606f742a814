/*
 * Workers: registration, heartbeats with their deltas, goodbye.
 */
#include <assert.h>
#include <errno.h>

#include "base/take.h"
#include "store/command/commands.h"

void command_add_loss_facts(const struct turn *turn, struct record *record, const struct task *task)
{
	if (task->claim.named)
		record_fact(record, FACT_NAMED, 1);
	if (task->claim.named && turn->given.now.lease_ms >= task->claim.run_until_ms)
		record_fact(record, FACT_OVERDUE, 1);
}

/* What becomes of a task whose worker was lost. */
static void count_lost(struct turn *turn, const struct task_decision *decision)
{
	enum task_state to = decision->task.state;

	if (to == TASK_READY || to == TASK_SCHEDULED)
		turn->rescheduled++;
	else
		turn->unscheduled[to == TASK_FAILED ? RESCHEDULE_PERMANENT : RESCHEDULE_SKIPPED]++;
}

/* Everything the worker held, each task on its own. */
static int free_claims(struct turn *turn, const struct turn_worker *worker, bool lost)
{
	int64_t grace_end_ms = lease_end(&worker->worker.lease, &turn->given);
	struct held_tasks held;
	struct turn_task *view;

	int r = turn_held_by(turn, worker, &held);
	for (uint32_t i = 0; r == 0 && i < held.count; i++) {
		r = turn_task(turn, held.seqs[i], &view);
		if (r < 0)
			return r;
		struct task_decision decision =
			lost ? task_lose(&view->task, &turn->given) : task_return(&view->task, &turn->given);
		if (lost)
			count_lost(turn, &decision);
		struct record record = turn_record(turn, decision.event);
		if (lost && worker->worker.ended == WORKER_EXPIRED) {
			record_fact(&record, FACT_DEADLINE, worker->worker.lease.deadline_ms);
			record_fact(&record, FACT_GRANTED, worker->worker.lease.granted_ms);
			record_fact(&record, FACT_GRACE_END, grace_end_ms);
		}
		record_fact(&record, FACT_REASON, worker->worker.ended);
		if (lost)
			command_add_loss_facts(turn, &record, &view->task);
		if (r == 0)
			r = turn_write_task(turn, view, &decision, &record);
	}
	return r;
}

/* Its worker is gone, or another process than it was, and nobody had said goodbye. If its crash was told since it was last
 * heard that is this end, and it was counted. */
static int count_unclean_end(struct turn *turn, uint32_t name, const struct worker *worker)
{
	int64_t heard_ms = worker->lease.deadline_ms - worker->lease.granted_ms;
	struct slot view;

	if (name == 0)
		return 0;
	turn_slot(turn, name, &view);
	if (view.crashed_ms[0] != INT64_MIN && view.crashed_ms[0] > heard_ms)
		return 0;
	struct slot lost = slot_lost(&view);
	struct record none = turn_record(turn, EVENT_NONE);
	return turn_write_slot(turn, name, &lost, EVENT_NONE, &none);
}

int command_end_worker(struct turn *turn, struct turn_worker *view, const struct worker_decision *decision)
{
	struct record record = turn_record(turn, decision->event);
	record_fact(&record, FACT_REASON, decision->worker.ended);
	if (decision->worker.ended == WORKER_EXPIRED) {
		record_fact(&record, FACT_DEADLINE, decision->worker.lease.deadline_ms);
		record_fact(&record, FACT_GRACE_END, lease_end(&decision->worker.lease, &turn->given));
	}
	assert(!worker_is_alive(&decision->worker));
	assert(decision->worker.ended != WORKER_ENDED_NOT);
	int r = turn_write_worker(turn, view, decision, &record);
	if (r == 0 && (decision->worker.ended == WORKER_EXPIRED || decision->worker.ended == WORKER_REPLACED))
		r = count_unclean_end(turn, decision->worker.slot, &decision->worker);
	if (decision->worker.ended == WORKER_EXPIRED && !decision->frees_lost)
		turn->unscheduled[RESCHEDULE_SKIPPED] += view->worker.held;
	if (r == 0 && (decision->frees_lost || decision->frees_returned))
		r = free_claims(turn, view, decision->frees_lost);
	assert(r < 0 || view->worker.held == 0 ||
		!(decision->frees_lost || decision->frees_returned)); /* nothing is left with it */
	return r;
}

/* ---- how often they come ---- */

/* Does it write a registration? Names of old doors register again as a matter of course. */
static bool is_registration(const struct command *command, const struct worker_decision *decision)
{
	return decision->refusal == REFUSED_NOTHING &&
		(decision->event == EVENT_WORKER_REGISTERED ||
			(command->kind == COMMAND_REGISTER && !command->beat.named));
}

/* One that dies as soon as it starts comes back at once, and again. */
static int count_registration(struct turn *turn, const struct command *command,
	const struct turn_worker *view, uint32_t slot, struct result *result)
{
	struct registrations *registrations = &turn->store->registrations;
	const struct rules *rules = turn->given.rules;
	int64_t now_ms = turn->given.now.lease_ms;
	struct pace *of_id = &index_holder(&turn->store->index, view->worker.handle)->registrations;
	struct pace *of_all = registrations_of(registrations, REGISTRAR_PRINCIPAL, command->principal);
	struct pace *of_slot = slot != 0 ? registrations_of(registrations, REGISTRAR_SLOT, slot) : of_id;

	struct account *account = turn_account(turn, command->principal);

	if (!of_all || !of_slot || !account)
		return -ENOMEM;
	bool is_new = !worker_is_alive(&view->worker);
	if (is_new && rules->principal_workers != 0 &&
		account->workers + account->more_workers >= rules->principal_workers) {
		turn->store->counts.registrations_refused++;
		result->workers_spent = true;
		return command_refuse(result, REFUSED_QUOTA_EXCEEDED);
	}
	int64_t id_ms = pace_wait_ms(of_id, rules->slot_registrations, now_ms);
	int64_t slot_ms = pace_wait_ms(of_slot, rules->slot_registrations, now_ms);
	int64_t all_ms = pace_wait_ms(of_all, rules->principal_registrations, now_ms);
	result->crash_loop = id_ms > 0 || slot_ms > 0;
	result->retry_ms = slot_ms > id_ms ? slot_ms : id_ms;
	if (all_ms > result->retry_ms)
		result->retry_ms = all_ms;
	if (result->retry_ms > 0) {
		turn->store->counts.registrations_refused++;
		return command_refuse(result, REFUSED_RATE_LIMITED);
	}
	int r = turn_pace(turn, of_id);
	if (r == 0)
		r = turn_pace(turn, of_slot);
	if (r == 0)
		r = turn_pace(turn, of_all);
	if (r < 0)
		return r;
	account->more_workers += is_new;
	pace_take(of_id, rules->slot_registrations, now_ms);
	if (of_slot != of_id)
		pace_take(of_slot, rules->slot_registrations, now_ms);
	pace_take(of_all, rules->principal_registrations, now_ms);
	return 0;
}

/* A worker that says goodbye did not crash. */
static int give_registration_back(struct turn *turn, const struct turn_worker *view)
{
	uint32_t per_minute = turn->given.rules->slot_registrations;
	struct pace *of_id = &index_holder(&turn->store->index, view->worker.handle)->registrations;
	struct pace *of_slot = view->worker.slot != 0
		? registrations_of(&turn->store->registrations, REGISTRAR_SLOT, view->worker.slot)
		: of_id;
	int r = of_slot ? turn_pace(turn, of_id) : -ENOMEM;

	if (r == 0)
		r = turn_pace(turn, of_slot);
	if (r < 0)
		return r;
	pace_give_back(of_id, per_minute);
	if (of_slot != of_id)
		pace_give_back(of_slot, per_minute);
	return 0;
}

/* ---- one worker per slot ---- */

/* The live worker in the way of the slot that is asked for, or NULL. */
static struct turn_worker *slot_rival(
	struct turn *turn, const struct turn_worker *view, const struct beat *beat)
{
	if (!beat->describes || beat->slot == 0 || beat->named)
		return NULL;
	if (worker_is_alive(&view->worker) && view->worker.slot == beat->slot)
		return NULL;
	return slot_filler(turn, beat->slot, view->worker.handle);
}

/* Has it shown that its rival for the slot is dead? */
static enum evidence evidence_of(
	const struct command_replaces *replaces, const struct turn_worker *rival, const struct beat *beat)
{
	struct worker_process dead = {.pid = replaces->pid, .start = replaces->start};

	if (replaces->worker.len == 0)
		return EVIDENCE_NONE;
	if (!span_equal(replaces->worker, rival->id))
		return EVIDENCE_OF_ANOTHER;
	return worker_judge(&rival->worker.process, &beat->process, &dead, replaces->seen_alive);
}

/* The worker without a slot that the newcomer, which has none either, has shown to be dead. NULL: none. */
static struct turn_worker *dead_predecessor(struct turn *turn, const struct command *command,
	const struct turn_worker *view, const struct beat *beat)
{
	const struct command_replaces *replaces = &command->beat.replaces;
	struct turn_worker *other = NULL;

	if (replaces->worker.len > 0 && beat->describes && beat->slot == 0)
		other = turn_worker(turn, replaces->worker, false);
	if (!other || other == view || !worker_is_alive(&other->worker) || other->worker.slot != 0 ||
		other->worker.named || !worker_belongs_to(&other->worker, command->principal))
		return NULL;
	return evidence_of(replaces, other, beat) == EVIDENCE_HOLDS ? other : NULL;
}

static int beat_of(struct turn *turn, const struct command_beat *from, bool inherits, struct beat *ret_beat)
{
	*ret_beat = (struct beat){
		.principal = turn->command->principal,
		.inherits = inherits,
		.has_token = from->has_token,
		.token = from->token,
		.lease_ms = from->lease_ms,
		/* A beat that lists every running task stores no row of the worker for it: each task whose
		 * binding changed is written. */
		.has_deltas = !from->tells_all && from->bound.count + from->unbound.count > 0,
		.registers = turn->command->kind == COMMAND_REGISTER,
		.describes = from->describes,
		.any_executor = from->any_executor,
		.max_concurrent = from->max_concurrent,
		.named = from->named,
	};
	if (!from->describes)
		return 0;
	ret_beat->process = (struct worker_process){
		.boot_hi = from->process.boot_hi,
		.boot_lo = from->process.boot_lo,
		.pid = from->process.pid,
		.start = from->process.start,
	};
	int r = turn_name(turn, from->slot, &ret_beat->slot);
	if (r == 0)
		r = turn_name(turn, from->process.host, &ret_beat->process.host);
	if (r == 0)
		r = turn_name(turn, from->version, &ret_beat->version);
	if (r == 0)
		r = turn_name_set(turn, from->capabilities, &ret_beat->capabilities);
	if (r == 0)
		r = turn_name_set(turn, from->executors, &ret_beat->executors);
	return r;
}

/* The session in which the worker runs what it has just bound. */
static int keep_session(struct turn *turn, const struct command_beat *beat, const struct turn_worker *view,
	const struct turn_task *task, enum claim_clock before)
{
	if (beat->session.len == 0 || (before == CLOCK_WORKER && !view->metadata.data))
		return 0;
	return turn_put(turn, put_extra, task->task.seq, EXTRA_SESSION, 0, beat->session);
}

/* 1: the list names the task, 0: it does not, or a fault. */
static int names_task(struct turn *turn, const struct name_list *ids, int64_t seq)
{
	struct turn_task *task;

	for (uint32_t i = 0; i < ids->count; i++) {
		int r = turn_task_by_id(turn, ids->items[i], &task);
		if (r < 0 && r != -ENOENT)
			return r;
		if (r == 0 && task->task.seq == seq)
			return 1;
	}
	return 0;
}

/* What it holds and did not name: it no longer runs that. */
static int unbind_rest(struct turn *turn, const struct command_beat *beat, const struct turn_worker *view)
{
	struct held_tasks held;
	struct turn_task *task;
	struct result ignored;

	int r = turn_held_by(turn, view, &held);
	for (uint32_t i = 0; r == 0 && i < held.count; i++) {
		int named = names_task(turn, &beat->bound, held.seqs[i]);
		if (named > 0)
			continue;
		r = named < 0 ? named : turn_task(turn, held.seqs[i], &task);
		if (r < 0)
			return r;
		ignored = (struct result){0};
		struct task_decision decision = task_unbind(&task->task, view->worker.handle, &turn->given);
		r = command_write(turn, task, &decision, &ignored);
	}
	return r;
}

static int apply_deltas(struct turn *turn, const struct command_beat *beat, const struct turn_worker *view,
	struct result *result)
{
	uint32_t holder = view->worker.handle;
	struct span *lost = arena_alloc(&turn->arena, (beat->bound.count + 1) * sizeof *lost);
	struct turn_task *task;
	struct result ignored;

	if (!lost)
		return -ENOMEM;
	result->lost = lost;
	for (uint32_t i = 0; i < beat->bound.count; i++) {
		ignored = (struct result){0};
		int r = turn_task_by_id(turn, beat->bound.items[i], &task);
		if (r < 0 && r != -ENOENT)
			return r;
		struct task_decision decision = {.refusal = REFUSED_NOT_FOUND};
		if (r == 0 && command_sees(turn, &task->task))
			decision = task_bind(&task->task, holder, &turn->given);
		if (decision.refusal != REFUSED_NOTHING) {
			assert(result->lost_count < beat->bound.count); /* each of them once */
			lost[result->lost_count++] = beat->bound.items[i];
			continue;
		}
		enum claim_clock before = task->task.claim.clock;
		r = command_write(turn, task, &decision, &ignored);
		if (r == 0)
			r = keep_session(turn, beat, view, task, before);
		if (r < 0)
			return r;
	}
	for (uint32_t i = 0; i < beat->unbound.count; i++) {
		ignored = (struct result){0};
		int r = turn_task_by_id(turn, beat->unbound.items[i], &task);
		if (r == -ENOENT || (r == 0 && !command_sees(turn, &task->task)))
			continue;
		if (r < 0)
			return r;
		struct task_decision decision = task_unbind(&task->task, holder, &turn->given);
		r = command_write(turn, task, &decision, &ignored);
		if (r < 0)
			return r;
	}
	return beat->tells_all ? unbind_rest(turn, beat, view) : 0;
}

/* A name says only that it lives: what it holds lives on with it, for as long as it was claimed for. */
static int renew_claims(struct turn *turn, const struct turn_worker *view)
{
	struct held_tasks held;
	struct turn_task *task;
	int r = view->worker.named ? turn_held_by(turn, view, &held) : 0;

	if (r < 0 || !view->worker.named)
		return r;
	for (uint32_t i = 0; r == 0 && i < held.count; i++) {
		r = turn_task(turn, held.seqs[i], &task);
		if (r < 0 || !task->task.claim.named)
			continue;
		struct task_decision decision = task_renew(&task->task, &turn->given);
		struct record record = turn_record(turn, decision.event);
		r = turn_write_task(turn, task, &decision, &record);
	}
	return r;
}

static bool has_orders(const struct turn *turn, int64_t seq)
{
	unset struct task task;

	turn_peek(turn, seq, &task);
	return task_must_stop(&task, &turn->given) || task_must_park(&task, &turn->given) ||
		task.claim.reported || turn_is_told(turn, seq);
}

/* What it holds and must stop or let wait without it, or has heard the last of. */
static int list_orders(struct turn *turn, const struct turn_worker *view, struct result *result)
{
	struct held_tasks held;
	struct turn_task *task;

	int r = turn_held_by(turn, view, &held);
	struct span *stop = NULL, *reported = NULL, *park = NULL, *tell = NULL;
	for (uint32_t i = 0; r == 0 && i < held.count; i++) {
		if (!has_orders(turn,
			    held.seqs[i])) /* usually there are no orders, and the beat touches no task */
			continue;
		if (!stop) {
			result->stop = stop = arena_alloc(&turn->arena, held.count * sizeof *stop);
			result->reported = reported =
				arena_alloc(&turn->arena, held.count * sizeof *reported);
			result->park = park = arena_alloc(&turn->arena, held.count * sizeof *park);
			result->tell = tell = arena_alloc(&turn->arena, held.count * sizeof *tell);
		}
		r = stop && reported && park && tell ? turn_task(turn, held.seqs[i], &task) : -ENOMEM;
		if (r == 0 && task_must_stop(&task->task, &turn->given))
			r = turn_id_text(turn, task, &stop[result->stop_count++]);
		else if (r == 0 && task_must_park(&task->task, &turn->given))
			r = turn_id_text(turn, task, &park[result->park_count++]);
		if (r == 0 && task->task.claim.reported)
			r = turn_id_text(turn, task, &reported[result->reported_count++]);
		if (r == 0 && turn_is_told(turn, held.seqs[i]))
			r = turn_id_text(turn, task, &tell[result->tell_count++]);
	}
	return r;
}

static void take_metadata(struct turn *turn, const struct command_beat *from, struct turn_worker *view,
	struct worker_decision *decision)
{
	const struct holder *holder = index_holder(&turn->store->index, view->worker.handle);
	struct span old = {holder->metadata, holder->metadata_len};

	if (!from->describes || from->metadata.len == 0 || span_equal(old, from->metadata))
		return;
	view->metadata = from->metadata;
	decision->must_store = true;
	if (decision->event == EVENT_NONE)
		decision->event = EVENT_WORKER_UPDATED;
}

static int stage_beat(struct turn *turn, struct turn_worker *view, const struct worker_decision *decision)
{
	if (decision->event == EVENT_NONE) /* most beats are not told */
		return turn_write_worker(turn, view, decision, NULL);
	struct record record = turn_record(turn, decision->event);
	record_fact(&record, FACT_MAX, decision->worker.max_concurrent);
	record_fact(&record, FACT_NAMED, decision->worker.named);
	return turn_write_worker(turn, view, decision, &record);
}

/* The beat was accepted. A predecessor that was shown to be dead ends first. */
static int accept_beat(struct turn *turn, const struct command *command, struct turn_worker *view,
	struct turn_worker *rival, struct worker_decision *decision, bool restarted, struct result *result)
{
	int r = restarted ? count_unclean_end(turn, view->worker.slot, &view->worker) : 0;

	if (r == 0 && rival) {
		struct worker_decision gone = worker_leave(&rival->worker, WORKER_REPLACED);
		r = command_end_worker(turn, rival, &gone);
	}
	take_metadata(turn, &command->beat, view, decision);
	if (r == 0)
		r = stage_beat(turn, view, decision);
	if (r == 0 && restarted &&
		!view->worker.named) /* a process knows nothing of what the one before it ran */
		r = unbind_rest(turn, &command->beat, view);
	bool has_deltas = command->beat.bound.count + command->beat.unbound.count > 0;
	if (r == 0 && (has_deltas || command->beat.tells_all))
		r = apply_deltas(turn, &command->beat, view, result);
	if (r == 0 && !command->beat.tells_all) /* who tells all it runs keeps what it named */
		r = renew_claims(turn, view);
	if (r == 0)
		r = list_orders(turn, view, result);
	result->worker = view->worker;
	return r;
}

static enum refusal beat_refusal(
	struct turn *turn, const struct command *command, const struct turn_worker *view, bool inherits)
{
	const struct command_beat *from = &command->beat;
	struct beat bare = {
		.principal = command->principal,
		.inherits = inherits,
		.has_token = from->has_token,
		.token = from->token,
		.named = from->named,
	};

	turn->given.next_token = UINT64_MAX; /* thrown away */
	return command->kind == COMMAND_REGISTER
		? worker_register(&view->worker, &bare, false, &turn->given).refusal
		: worker_beat(&view->worker, &bare, false, &turn->given).refusal;
}

/* Only the worker's owner gets its current state with the refusal. */
static int refuse_beat(const struct turn_worker *view, enum refusal refusal, struct result *result)
{
	result->not_yours = refusal == REFUSED_FORBIDDEN;
	if (!result->not_yours)
		result->worker = view->worker;
	return command_refuse(result, refusal);
}

/* A worker that comes, or comes again, or moves to another slot, is held against the quarantine of that slot and, if it
 * registers, counted. What stays where it is only beats. The result may be a refusal. */
static int pass_entries(struct turn *turn, const struct command *command, const struct turn_worker *view,
	const struct worker_decision *decision, struct result *result)
{
	bool registers = is_registration(command, decision);
	int r = 0;

	if (decision->refusal != REFUSED_NOTHING ||
		(!registers && decision->worker.slot == view->worker.slot))
		return 0;
	struct slot_entry entry = slot_entry_of(turn, decision->worker.slot, command->worker);
	if (entry.decision.refusal != REFUSED_NOTHING)
		return command_refuse(result, entry.decision.refusal);
	if (registers)
		r = count_registration(turn, command, view, decision->worker.slot, result);
	return r < 0 || result->refusal != REFUSED_NOTHING ? r : slot_entry_pass(turn, &entry);
}

int execute_beat(struct turn *turn, const struct command *command, struct result *result)
{
	if (command->beat.metadata.len > WORKER_METADATA_MAX)
		return command_refuse(result, REFUSED_TOO_LARGE);
	struct turn_worker *view = turn_worker(turn, command->worker, true);
	unset struct beat beat;

	if (!view)
		return -ENOMEM;
	bool inherits = !worker_belongs_to(&view->worker, command->principal) &&
		!tokens_have_live(&turn->store->credentials, view->worker.principal, turn->given.now.wall_ms);
	if (command->beat.describes) { /* what will be refused needs no names */
		enum refusal refusal = beat_refusal(turn, command, view, inherits);
		if (refusal != REFUSED_NOTHING)
			return refuse_beat(view, refusal, result);
	}
	int r = beat_of(turn, &command->beat, inherits, &beat);
	if (r < 0)
		return r == -E2BIG ? command_refuse(result, REFUSED_TOO_LARGE) : r;
	turn->given.next_token = store_next_token(turn->store);
	struct turn_worker *rival = slot_rival(turn, view, &beat);
	result->slot_not_yours =
		!rival && beat.slot != 0 && slot_is_foreign(turn, command, command->beat.slot);
	if (result->slot_not_yours)
		return command_refuse(result, REFUSED_FORBIDDEN);
	if (rival)
		result->evidence = evidence_of(&command->beat.replaces, rival, &beat);
	/* nobody shows that a stranger's worker is dead */
	bool taken = rival &&
		!(result->evidence == EVIDENCE_HOLDS &&
			worker_belongs_to(&rival->worker, command->principal));
	struct worker_decision decision = command->kind == COMMAND_REGISTER
		? worker_register(&view->worker, &beat, taken, &turn->given)
		: worker_beat(&view->worker, &beat, taken, &turn->given);
	r = pass_entries(turn, command, view, &decision, result);
	if (r == 0 && result->refusal == REFUSED_NOTHING && decision.refusal == REFUSED_NOTHING)
		r = holder_announce(turn, view->worker.handle, &command->beat.announced);
	if (r < 0 || result->refusal != REFUSED_NOTHING)
		return r;
	if (decision.refusal == REFUSED_NOTHING)
		return accept_beat(turn, command, view,
			rival ? rival : dead_predecessor(turn, command, view, &beat), &decision,
			worker_is_restarted(&view->worker, &beat), result);
	if (decision.refusal == REFUSED_SLOT_TAKEN &&
		(command->oversees || worker_belongs_to(&rival->worker, command->principal)))
		result->slot_holder = rival->id;
	return refuse_beat(view, decision.refusal, result);
}

int execute_worker_command(struct turn *turn, const struct command *command, struct result *result)
{
	struct turn_worker *view = turn_worker(turn, command->worker, false);
	struct worker_decision decision;

	if (!view || !(command->oversees || worker_belongs_to(&view->worker, command->principal)))
		return command_refuse(result, REFUSED_NOT_FOUND);
	if (command->kind == COMMAND_LEAVE)
		decision = worker_leave(&view->worker, command->leave);
	else
		decision = command->kind == COMMAND_QUIET ? worker_quiet(&view->worker)
							  : worker_terminate(&view->worker);
	result->worker = view->worker;
	if (decision.refusal != REFUSED_NOTHING)
		return command_refuse(result, decision.refusal);
	if (decision.event == EVENT_NONE) {
		result->repeated = true;
		return 0;
	}
	int r;
	if (command->kind == COMMAND_LEAVE) {
		r = command->leave == WORKER_SHUTDOWN ? give_registration_back(turn, view) : 0;
		if (r == 0)
			r = command_end_worker(turn, view, &decision);
	} else {
		struct record record = turn_record(turn, decision.event);
		r = turn_write_worker(turn, view, &decision, &record);
	}
	result->worker = view->worker;
	return r;
}
