#include "core_fixture.h"

static struct beat beat_of(const struct worker *worker)
{
	return (struct beat){.has_token = true, .token = worker->token};
}

static struct worker_decision beat_at(struct world *w, const struct worker *worker, const struct beat *beat)
{
	w->given.next_token++;
	return worker_beat(worker, beat, false, &w->given);
}

static struct worker_decision beats(struct world *w, const struct worker *worker)
{
	struct beat beat = beat_of(worker);

	return beat_at(w, worker, &beat);
}

static void assert_same_worker(const struct worker *a, const struct worker *b)
{
	assert_int_equal(a->state, b->state);
	assert_int_equal(a->ended, b->ended);
	assert_int_equal(a->token, b->token);
	assert_int_equal(a->lease.deadline_ms, b->lease.deadline_ms);
	assert_int_equal(a->lease.granted_ms, b->lease.granted_ms);
	assert_int_equal(a->slot, b->slot);
	assert_int_equal(a->last_beat_ms, b->last_beat_ms);
}

static void assert_refused(struct worker_decision decision, const struct worker *before, enum refusal refusal)
{
	assert_int_equal(decision.refusal, refusal);
	assert_int_equal(decision.event, EVENT_NONE);
	assert_false(decision.must_store);
	assert_false(decision.store_soon);
	assert_false(decision.frees_lost);
	assert_false(decision.frees_returned);
	assert_same_worker(&decision.worker, before);
}

/* ---- registration ------------------------------------------------------------------------------- */

static void a_registration_is_durable_and_gives_the_first_token(void **state)
{
	struct world *w = *state;
	struct worker unknown = {.handle = 77};
	struct beat beat = {
		.describes = true, .slot = SLOT, .capabilities = 3, .executors = 4, .max_concurrent = 5};

	struct worker_decision decision = worker_register(&unknown, &beat, false, &w->given);
	assert_int_equal(decision.refusal, REFUSED_NOTHING);
	assert_int_equal(decision.event, EVENT_WORKER_REGISTERED);
	assert_true(decision.must_store);
	assert_int_equal(decision.worker.state, WORKER_ACTIVE);
	assert_int_equal(decision.worker.token, w->given.next_token);
	assert_int_equal(decision.worker.lease.deadline_ms, w->given.now.lease_ms + SECONDS(60));
	assert_int_equal(decision.worker.slot, SLOT);
	assert_int_equal(decision.worker.capabilities, 3);
	assert_int_equal(decision.worker.executors, 4);
	assert_int_equal(decision.worker.max_concurrent, 5);
	assert_int_equal(decision.worker.registered_ms, w->given.now.wall_ms);
}

static void the_first_beat_of_an_unknown_key_registers_it(void **state)
{
	struct world *w = *state;
	struct worker unknown = {.handle = 77};
	struct beat beat = {0};

	struct worker_decision decision = beat_at(w, &unknown, &beat);
	assert_int_equal(decision.event, EVENT_WORKER_REGISTERED);
	assert_true(decision.must_store);
	assert_int_equal(decision.worker.state, WORKER_ACTIVE);
	assert_true(decision.worker.any_executor);
}

static void an_unknown_key_with_a_token_is_inactive(void **state)
{
	struct world *w = *state;
	struct worker unknown = {.handle = 77};
	struct beat beat = {.has_token = true, .token = 5};

	assert_refused(beat_at(w, &unknown, &beat), &unknown, REFUSED_WORKER_INACTIVE);
	beat.token = 0;
	assert_refused(beat_at(w, &unknown, &beat), &unknown, REFUSED_WORKER_INACTIVE);
}

static void what_a_worker_says_anew_is_an_event_and_the_same_again_is_none(void **state)
{
	struct world *w = *state;
	struct beat beat = beat_of(&w->beater);

	beat.describes = true;
	beat.version = 5;
	beat.any_executor = true;
	struct worker_decision decision = beat_at(w, &w->beater, &beat);
	assert_int_equal(decision.event, EVENT_WORKER_UPDATED);
	assert_true(decision.must_store);
	assert_int_equal(decision.worker.version, 5);
	beat.token = decision.worker.token;
	beat.version = 0; /* not told again: it stays */
	decision = beat_at(w, &decision.worker, &beat);
	assert_int_equal(decision.event, EVENT_NONE);
	assert_false(decision.must_store);
	assert_int_equal(decision.worker.version, 5);
}

static void registering_again_while_alive_is_the_same_instance(void **state)
{
	struct world *w = *state;
	struct beat beat = {.lease_ms = MINUTES(5)};

	w->given.next_token++;
	struct worker_decision decision = worker_register(&w->beater, &beat, false, &w->given);
	assert_int_equal(decision.refusal, REFUSED_NOTHING);
	assert_int_equal(decision.event, EVENT_WORKER_UPDATED);
	assert_true(decision.must_store);
	assert_int_equal(decision.worker.handle, BEATER);
	assert_int_equal(decision.worker.token, w->given.next_token);
	assert_int_equal(decision.worker.lease.granted_ms, MINUTES(5));
}

static void an_inactive_key_never_registers_again(void **state)
{
	struct world *w = *state;
	struct worker gone = worker_leave(&w->beater, WORKER_SHUTDOWN).worker;
	struct beat beat = {0};

	assert_refused(worker_register(&gone, &beat, false, &w->given), &gone, REFUSED_WORKER_INACTIVE);
}

static void a_name_that_registers_while_active_is_the_same_instance(void **state)
{
	struct world *w = *state;
	struct beat beat = {.named = true};

	struct worker_decision decision = worker_register(&w->named, &beat, false, &w->given);
	assert_int_equal(decision.refusal, REFUSED_NOTHING);
	assert_int_equal(decision.event, EVENT_NONE);
	assert_int_equal(decision.worker.handle, NAMED);
}

static void a_name_that_registers_after_its_end_is_a_new_instance(void **state)
{
	struct world *w = *state;
	struct beat beat = {.named = true};

	pass_time(w, SECONDS(60));
	struct worker gone = worker_expire(&w->named, &w->given).worker;
	w->given.next_token++;
	struct worker_decision decision = worker_register(&gone, &beat, false, &w->given);
	assert_int_equal(decision.event, EVENT_WORKER_REGISTERED);
	assert_int_equal(decision.worker.state, WORKER_ACTIVE);
	assert_int_equal(decision.worker.ended, WORKER_ENDED_NOT);
	assert_int_not_equal(decision.worker.token, gone.token);
	assert_int_equal(decision.worker.registered_ms, w->given.now.wall_ms);
}

static void the_first_beat_of_a_name_after_its_end_is_a_new_instance(void **state)
{
	struct world *w = *state;
	struct beat beat = {.named = true};

	pass_time(w, SECONDS(60));
	struct worker gone = worker_expire(&w->named, &w->given).worker;
	struct worker_decision decision = beat_at(w, &gone, &beat);
	assert_int_equal(decision.refusal, REFUSED_NOTHING);
	assert_int_equal(decision.event, EVENT_WORKER_REGISTERED);
}

static void a_name_does_not_come_back_into_a_slot_that_is_taken(void **state)
{
	struct world *w = *state;
	struct worker gone = worker_leave(&w->named, WORKER_SHUTDOWN).worker;
	struct beat beat = {.named = true, .describes = true, .slot = SLOT};

	assert_refused(worker_beat(&gone, &beat, true, &w->given), &gone, REFUSED_SLOT_TAKEN);
}

static void a_name_that_shows_a_token_must_show_the_last_one(void **state)
{
	struct world *w = *state;
	struct beat beat = {.named = true, .has_token = true, .token = w->named.token + 1};

	assert_refused(beat_at(w, &w->named, &beat), &w->named, REFUSED_TOKEN_MISMATCH);
	beat.token = w->named.token;
	assert_int_equal(beat_at(w, &w->named, &beat).refusal, REFUSED_NOTHING);
}

static void a_name_beats_without_a_token(void **state)
{
	struct world *w = *state;
	struct beat beat = {.named = true};

	pass_time(w, SECONDS(30));
	struct worker_decision decision = beat_at(w, &w->named, &beat);
	assert_int_equal(decision.refusal, REFUSED_NOTHING);
	assert_int_equal(decision.worker.lease.deadline_ms, w->given.now.lease_ms + SECONDS(60));
}

static void a_new_instance_of_a_name_starts_from_the_defaults(void **state)
{
	struct world *w = *state;
	struct beat first = {.named = true,
		.lease_ms = HOURS(12),
		.describes = true,
		.slot = SLOT,
		.capabilities = 3,
		.executors = 4,
		.max_concurrent = 5};
	struct beat second = {.named = true};

	struct worker named = worker_register(&w->named, &first, false, &w->given).worker;
	struct worker gone = worker_leave(&named, WORKER_SHUTDOWN).worker;
	struct worker again = worker_register(&gone, &second, false, &w->given).worker;
	assert_int_equal(again.handle, NAMED);
	assert_int_equal(again.lease.granted_ms, SECONDS(60));
	assert_int_equal(again.slot, 0);
	assert_int_equal(again.capabilities, 0);
	assert_int_equal(again.executors, 0);
	assert_int_equal(again.max_concurrent, 0);
	assert_true(again.any_executor);
}

static void a_second_worker_for_a_slot_is_refused(void **state)
{
	struct world *w = *state;
	struct worker unknown = {.handle = 77};
	struct beat beat = {.describes = true, .slot = SLOT}, later = beat_of(&w->beater);

	assert_refused(worker_register(&unknown, &beat, true, &w->given), &unknown, REFUSED_SLOT_TAKEN);
	assert_refused(worker_beat(&unknown, &beat, true, &w->given), &unknown, REFUSED_SLOT_TAKEN);
	later.describes = true;
	later.slot = SLOT;
	assert_refused(worker_beat(&w->beater, &later, true, &w->given), &w->beater, REFUSED_SLOT_TAKEN);
}

/* ---- beats -------------------------------------------------------------------------------------- */

static void a_beat_extends_the_lease_from_the_servers_now(void **state)
{
	struct world *w = *state;

	pass_time(w, SECONDS(45));
	struct worker_decision decision = beats(w, &w->beater);
	assert_int_equal(decision.refusal, REFUSED_NOTHING);
	assert_int_equal(decision.event, EVENT_NONE);
	assert_int_equal(decision.worker.lease.deadline_ms, w->given.now.lease_ms + SECONDS(60));
	assert_int_equal(decision.worker.last_beat_ms, w->given.now.wall_ms);
}

static void every_accepted_beat_gets_a_new_token(void **state)
{
	struct world *w = *state;
	struct worker worker = w->beater;

	for (int i = 0; i < 5; i++) {
		struct worker after = beats(w, &worker).worker;

		assert_int_not_equal(after.token, worker.token);
		worker = after;
	}
}

static void a_wrong_token_extends_nothing(void **state)
{
	struct world *w = *state;
	struct beat beat = beat_of(&w->beater);

	pass_time(w, SECONDS(30));
	beat.token++;
	beat.has_deltas = true;
	beat.describes = true;
	beat.slot = SLOT;
	assert_refused(beat_at(w, &w->beater, &beat), &w->beater, REFUSED_TOKEN_MISMATCH);
}

static void a_used_token_is_wrong(void **state)
{
	struct world *w = *state;
	struct beat old = beat_of(&w->beater);
	struct worker after = beats(w, &w->beater).worker;

	struct worker_decision decision = beat_at(w, &after, &old);
	assert_refused(decision, &after, REFUSED_TOKEN_MISMATCH);
	assert_int_equal(decision.worker.token, after.token); /* which the reply tells */
}

static void a_known_key_without_a_token_is_a_mismatch(void **state)
{
	struct world *w = *state;
	struct beat beat = {0};

	assert_refused(beat_at(w, &w->beater, &beat), &w->beater, REFUSED_TOKEN_MISMATCH);
}

static void an_inactive_worker_stays_inactive_whatever_it_shows(void **state)
{
	struct world *w = *state;
	struct worker gone = worker_leave(&w->beater, WORKER_SHUTDOWN).worker;
	struct beat beat = beat_of(&gone), none = {0};

	assert_refused(beat_at(w, &gone, &beat), &gone, REFUSED_WORKER_INACTIVE);
	assert_refused(beat_at(w, &gone, &none), &gone, REFUSED_WORKER_INACTIVE);
	beat.token++;
	assert_refused(beat_at(w, &gone, &beat), &gone, REFUSED_WORKER_INACTIVE);
}

static uint32_t granted(struct world *w, int64_t asked_ms)
{
	struct beat beat = beat_of(&w->beater);

	beat.lease_ms = asked_ms;
	return beat_at(w, &w->beater, &beat).worker.lease.granted_ms;
}

static void a_worker_lease_is_clamped_to_five_seconds_and_a_day(void **state)
{
	struct world *w = *state;

	assert_int_equal(granted(w, 1), SECONDS(5));
	assert_int_equal(granted(w, SECONDS(5)), SECONDS(5));
	assert_int_equal(granted(w, SECONDS(90)), SECONDS(90));
	assert_int_equal(granted(w, HOURS(24)), HOURS(24));
	assert_int_equal(granted(w, HOURS(24) + 1), HOURS(24));
	assert_int_equal(granted(w, INT64_MAX), HOURS(24));
	assert_int_equal(granted(w, 0), SECONDS(60));
}

static void a_beat_without_a_length_keeps_the_granted_one(void **state)
{
	struct world *w = *state;
	struct beat beat = beat_of(&w->beater);

	beat.lease_ms = MINUTES(5);
	struct worker worker = beat_at(w, &w->beater, &beat).worker;
	assert_int_equal(beats(w, &worker).worker.lease.granted_ms, MINUTES(5));
}

static void a_plain_renewal_waits_for_no_disk(void **state)
{
	struct world *w = *state;

	w->beater.stored_deadline_ms = w->beater.lease.deadline_ms;
	pass_time(w, SECONDS(15));
	struct worker_decision decision = beats(w, &w->beater);
	assert_false(decision.must_store);
	assert_false(decision.store_soon);
}

static void a_renewal_is_written_exactly_when_it_moves_the_stored_deadline_by_more_than_the_grace(
	void **state)
{
	struct world *w = *state;

	w->beater.stored_deadline_ms = w->beater.lease.deadline_ms;
	pass_time(w, SECONDS(60));
	assert_false(beats(w, &w->beater).store_soon);
	pass_time(w, 1);
	struct worker_decision decision = beats(w, &w->beater);
	assert_true(decision.store_soon);
	assert_false(decision.must_store);
}

static void a_renewal_is_measured_against_what_is_stored_not_against_the_last_beat(void **state)
{
	struct world *w = *state;
	struct worker worker = w->beater;

	worker.stored_deadline_ms = worker.lease.deadline_ms;
	for (int i = 1; i <= 5; i++) {
		pass_time(w, SECONDS(15));
		struct worker_decision decision = beats(w, &worker);

		assert_int_equal(decision.store_soon, i == 5);
		worker = decision.worker;
	}
}

static void deltas_and_descriptions_are_durable(void **state)
{
	struct world *w = *state;
	struct beat deltas = beat_of(&w->beater), describes = deltas;

	deltas.has_deltas = true;
	assert_true(beat_at(w, &w->beater, &deltas).must_store);
	describes.describes = true;
	describes.capabilities = 9;
	struct worker_decision decision = beat_at(w, &w->beater, &describes);
	assert_true(decision.must_store);
	assert_int_equal(decision.worker.capabilities, 9);
}

static void a_beat_that_describes_nothing_forgets_nothing(void **state)
{
	struct world *w = *state;
	struct beat beat = beat_of(&w->beater);

	beat.describes = true;
	beat.slot = SLOT;
	beat.max_concurrent = 4;
	struct worker worker = beat_at(w, &w->beater, &beat).worker;
	worker = beats(w, &worker).worker;
	assert_int_equal(worker.slot, SLOT);
	assert_int_equal(worker.max_concurrent, 4);
}

/* ---- commands ----------------------------------------------------------------------------------- */

static void quiet_and_terminate_move_only_forward(void **state)
{
	struct world *w = *state;
	struct worker_decision quiet = worker_quiet(&w->beater);
	struct worker_decision terminating = worker_terminate(&quiet.worker);

	assert_int_equal(quiet.event, EVENT_WORKER_QUIET);
	assert_true(quiet.must_store);
	assert_int_equal(quiet.worker.state, WORKER_QUIET);
	assert_int_equal(worker_quiet(&quiet.worker).event, EVENT_NONE);
	assert_int_equal(terminating.event, EVENT_WORKER_TERMINATING);
	assert_int_equal(terminating.worker.state, WORKER_TERMINATING);
	struct worker_decision back = worker_quiet(&terminating.worker);
	assert_int_equal(back.refusal, REFUSED_NOTHING);
	assert_int_equal(back.event, EVENT_NONE);
	assert_int_equal(back.worker.state, WORKER_TERMINATING);
}

static void an_active_worker_may_be_terminated_directly(void **state)
{
	struct world *w = *state;

	assert_int_equal(worker_terminate(&w->beater).worker.state, WORKER_TERMINATING);
}

static void a_quiet_worker_beats_on_and_stays_quiet(void **state)
{
	struct world *w = *state;
	struct worker quiet = worker_quiet(&w->beater).worker;
	struct worker_decision decision = beats(w, &quiet);

	assert_int_equal(decision.refusal, REFUSED_NOTHING);
	assert_int_equal(decision.worker.state, WORKER_QUIET);
}

static void commands_to_workers_that_are_not_there_are_refused(void **state)
{
	struct world *w = *state;
	struct worker gone = worker_leave(&w->beater, WORKER_SHUTDOWN).worker;

	assert_refused(worker_quiet(&w->plain), &w->plain, REFUSED_NOT_FOUND);
	assert_refused(worker_terminate(&w->plain), &w->plain, REFUSED_NOT_FOUND);
	assert_refused(worker_leave(&w->plain, WORKER_SHUTDOWN), &w->plain, REFUSED_NOT_FOUND);
	assert_refused(worker_quiet(&gone), &gone, REFUSED_WORKER_INACTIVE);
	assert_refused(worker_terminate(&gone), &gone, REFUSED_WORKER_INACTIVE);
}

/* ---- the end ------------------------------------------------------------------------------------ */

static void every_live_state_expires(void **state)
{
	struct world *w = *state;
	struct worker workers[] = {
		w->beater, worker_quiet(&w->beater).worker, worker_terminate(&w->beater).worker};

	pass_time(w, SECONDS(60));
	for (int i = 0; i < 3; i++) {
		struct worker_decision decision = worker_expire(&workers[i], &w->given);

		assert_int_equal(decision.event, EVENT_WORKER_INACTIVE);
		assert_int_equal(decision.worker.state, WORKER_INACTIVE);
		assert_int_equal(decision.worker.ended, WORKER_EXPIRED);
		assert_true(decision.must_store);
	}
}

static void what_is_not_alive_does_not_expire(void **state)
{
	struct world *w = *state;
	struct worker gone = worker_leave(&w->beater, WORKER_SHUTDOWN).worker;

	pass_time(w, HOURS(24 * 7));
	assert_int_equal(worker_expire(&gone, &w->given).event, EVENT_NONE);
	assert_int_equal(worker_expire(&w->plain, &w->given).event, EVENT_NONE);
}

static void a_goodbye_gives_work_back_and_a_replacement_loses_it(void **state)
{
	struct world *w = *state;
	struct worker_decision shutdown = worker_leave(&w->beater, WORKER_SHUTDOWN);
	struct worker_decision terminated = worker_leave(&w->beater, WORKER_TERMINATED);
	struct worker_decision replaced = worker_leave(&w->beater, WORKER_REPLACED);

	assert_int_equal(shutdown.event, EVENT_WORKER_INACTIVE);
	assert_int_equal(shutdown.worker.ended, WORKER_SHUTDOWN);
	assert_true(shutdown.frees_returned);
	assert_false(shutdown.frees_lost);
	assert_true(terminated.frees_returned);
	assert_true(replaced.frees_lost);
	assert_false(replaced.frees_returned);
}

static void a_second_goodbye_changes_nothing(void **state)
{
	struct world *w = *state;
	struct worker gone = worker_leave(&w->beater, WORKER_SHUTDOWN).worker;
	struct worker_decision again = worker_leave(&gone, WORKER_TERMINATED);

	assert_int_equal(again.refusal, REFUSED_NOTHING);
	assert_int_equal(again.event, EVENT_NONE);
	assert_false(again.frees_returned);
	assert_false(again.frees_lost);
	assert_same_worker(&again.worker, &gone);
}

static void a_reboot_grants_a_live_worker_its_length_once_more(void **state)
{
	struct world *w = *state;
	struct worker gone = worker_leave(&w->rival, WORKER_SHUTDOWN).worker;

	w->given.now.lease_ms = SECONDS(9);
	struct worker_decision decision = worker_rebase(&w->beater, &w->given);
	assert_int_equal(decision.worker.lease.deadline_ms, SECONDS(9) + SECONDS(60));
	assert_int_equal(decision.worker.token, w->beater.token);
	assert_true(decision.must_store);
	decision = worker_rebase(&gone, &w->given);
	assert_false(decision.must_store);
	assert_same_worker(&decision.worker, &gone);
}

static void a_restore_ends_whoever_beats_and_no_name(void **state)
{
	struct world *w = *state;
	struct worker gone = worker_leave(&w->beater, WORKER_SHUTDOWN).worker, named = w->beater;
	struct worker_decision decision = worker_void(&w->beater);

	assert_int_equal(decision.event, EVENT_WORKER_INACTIVE);
	assert_int_equal(decision.worker.ended, WORKER_TERMINATED);
	assert_false(decision.frees_lost); /* what it held is void already */
	assert_false(decision.frees_returned);
	named.named = true;
	assert_int_equal(worker_void(&named).event, EVENT_NONE);
	assert_int_equal(worker_void(&gone).event, EVENT_NONE);
}

static void who_is_alive_who_beats_and_who_may_claim(void **state)
{
	struct world *w = *state;
	struct worker quiet = worker_quiet(&w->beater).worker;
	struct worker gone = worker_leave(&w->beater, WORKER_SHUTDOWN).worker;

	assert_true(worker_is_alive(&w->beater));
	assert_true(worker_is_alive(&quiet));
	assert_false(worker_is_alive(&gone));
	assert_false(worker_is_alive(&w->plain));
	assert_true(worker_beats(&w->beater));
	assert_false(worker_beats(&w->named));
	assert_false(worker_beats(&w->plain));
	assert_int_equal(worker_may_claim(&w->plain), REFUSED_NOTHING);
	assert_int_equal(worker_may_claim(&quiet), REFUSED_FORBIDDEN);
	assert_int_equal(worker_may_claim(&gone), REFUSED_WORKER_INACTIVE);
}

static void states_and_ends_have_the_names_of_the_contract(void **state)
{
	(void)state;
	assert_string_equal(worker_state_name(WORKER_UNKNOWN), "unknown");
	assert_string_equal(worker_state_name(WORKER_ACTIVE), "active");
	assert_string_equal(worker_state_name(WORKER_QUIET), "quiet");
	assert_string_equal(worker_state_name(WORKER_TERMINATING), "terminating");
	assert_string_equal(worker_state_name(WORKER_INACTIVE), "inactive");
	assert_string_equal(worker_end_name(WORKER_ENDED_NOT), "");
	assert_string_equal(worker_end_name(WORKER_EXPIRED), "expired");
	assert_string_equal(worker_end_name(WORKER_SHUTDOWN), "shutdown");
	assert_string_equal(worker_end_name(WORKER_TERMINATED), "terminated");
	assert_string_equal(worker_end_name(WORKER_REPLACED), "replaced");
}

/* ---- a newcomer's word that the worker in its slot is dead -------------------------------------------- */

static void a_dead_process_is_believed_from_its_own_machine_alone(void **state)
{
	const struct worker_process old = {.host = 1, .boot_hi = 2, .boot_lo = 3, .pid = 4, .start = 5};
	const struct worker_process dead = {.pid = 4, .start = 5};
	struct worker_process newcomer = {.host = 1, .boot_hi = 2, .boot_lo = 3, .pid = 40, .start = 50};

	(void)state;
	assert_int_equal(worker_judge(&old, &newcomer, &dead, false), EVIDENCE_HOLDS);
	assert_int_equal(worker_judge(&old, &newcomer, &dead, true), EVIDENCE_REFUTED);
	newcomer.host = 9;
	assert_int_equal(worker_judge(&old, &newcomer, &dead, false), EVIDENCE_FROM_AFAR);
	newcomer.host = 1;
	newcomer.boot_lo = 9;
	assert_int_equal(worker_judge(&old, &newcomer, &dead, false), EVIDENCE_FROM_AFAR);
	newcomer = (struct worker_process){.host = 1, .boot_hi = 9, .boot_lo = 3};
	assert_int_equal(worker_judge(&old, &newcomer, &dead, false), EVIDENCE_FROM_AFAR);
}

static void the_dead_process_must_be_the_one_that_fills_the_slot(void **state)
{
	const struct worker_process whole = {.host = 1, .boot_hi = 2, .boot_lo = 3, .pid = 4, .start = 5};
	struct worker_process dead = {.pid = 4, .start = 6}, old;

	(void)state;
	assert_int_equal(worker_judge(&whole, &whole, &dead, false), EVIDENCE_OTHER_PROCESS);
	dead = (struct worker_process){.pid = 5, .start = 5};
	assert_int_equal(worker_judge(&whole, &whole, &dead, false), EVIDENCE_OTHER_PROCESS);
	dead.pid = 4;
	old = whole, old.pid = 0;
	assert_int_equal(worker_judge(&old, &whole, &dead, false), EVIDENCE_UNCHECKED);
	old = whole, old.start = 0;
	assert_int_equal(worker_judge(&old, &whole, &dead, false), EVIDENCE_UNCHECKED);
	old = whole, old.host = 0;
	assert_int_equal(worker_judge(&old, &old, &dead, false), EVIDENCE_UNCHECKED);
	old = whole, old.boot_hi = old.boot_lo = 0;
	assert_int_equal(worker_judge(&old, &old, &dead, false), EVIDENCE_UNCHECKED);
}

static void a_description_without_a_process_forgets_none(void **state)
{
	struct world *w = *state;
	struct worker worker = w->beater;
	struct beat beat = beat_of(&worker);

	beat.describes = true;
	beat.process = (struct worker_process){.host = 1, .boot_hi = 2, .boot_lo = 3, .pid = 4, .start = 5};
	struct worker_decision told = beat_at(w, &worker, &beat);
	assert_true(told.must_store);
	assert_int_equal(told.worker.process.pid, 4);
	beat = beat_of(&told.worker);
	beat.describes = true;
	assert_int_equal(beat_at(w, &told.worker, &beat).worker.process.pid, 4);
}

/* ---- whose it is --------------------------------------------------------------------------------- */

static void another_principal_may_neither_register_nor_beat(void **state)
{
	struct world *w = *state;
	struct worker unknown = {.handle = 77};
	struct beat mine = {.principal = 7}, other = {.principal = 8};

	struct worker worker = worker_register(&unknown, &mine, false, &w->given).worker;
	assert_int_equal(worker.principal, 7);
	other.token = worker.token;
	assert_refused(worker_register(&worker, &other, false, &w->given), &worker, REFUSED_FORBIDDEN);
	other.has_token = true;
	assert_refused(worker_beat(&worker, &other, false, &w->given), &worker, REFUSED_FORBIDDEN);
	other.inherits = true; /* not while it lives */
	assert_refused(worker_beat(&worker, &other, false, &w->given), &worker, REFUSED_FORBIDDEN);
	struct worker dead = worker_leave(&worker, WORKER_SHUTDOWN).worker;
	other.inherits = false;
	assert_refused(worker_beat(&dead, &other, false, &w->given), &dead, REFUSED_FORBIDDEN);
}

static void a_claimant_without_claims_is_nobodys(void **state)
{
	struct worker plain = {.handle = 77, .principal = 7, .held = 1};

	(void)state;
	assert_true(worker_belongs_to(&plain, 7));
	assert_false(worker_belongs_to(&plain, 8));
	plain.held = 0;
	assert_true(worker_belongs_to(&plain, 8));
}

static void a_name_that_ended_may_be_inherited(void **state)
{
	struct world *w = *state;
	struct worker unknown = {.handle = 77};
	struct beat mine = {.principal = 7, .named = true}, heir = {.principal = 8, .named = true};

	struct worker worker = worker_register(&unknown, &mine, false, &w->given).worker;
	worker = worker_leave(&worker, WORKER_SHUTDOWN).worker;
	assert_refused(worker_register(&worker, &heir, false, &w->given), &worker, REFUSED_FORBIDDEN);
	heir.inherits = true;
	struct worker_decision decision = worker_register(&worker, &heir, false, &w->given);
	assert_int_equal(decision.event, EVENT_WORKER_REGISTERED);
	assert_int_equal(decision.worker.principal, 8);
}

static void a_name_without_a_token_does_not_speak_for_a_key(void **state)
{
	struct world *w = *state;
	struct beat beat = {.named = true};

	assert_refused(beat_at(w, &w->beater, &beat), &w->beater, REFUSED_TOKEN_MISMATCH);
}

static void a_name_that_beats_as_another_process_was_restarted(void **state)
{
	struct world *w = *state;
	struct beat beat = {.named = true, .describes = true, .process.pid = 7};

	assert_false(worker_is_restarted(&w->named, &beat)); /* it had not said which one it was */
	w->named.process.pid = 7;
	assert_false(worker_is_restarted(&w->named, &beat));
	beat.process.pid = 8;
	assert_true(worker_is_restarted(&w->named, &beat));
	beat.named = false;
	assert_false(worker_is_restarted(&w->named, &beat)); /* a key is one process … */
	beat.registers = true;                               /* … until another one registers under it */
	assert_true(worker_is_restarted(&w->named, &beat));
	beat.process = w->named.process;
	assert_false(worker_is_restarted(&w->named, &beat));
	beat.process.pid = 8;
	beat.named = true;
	struct worker gone = worker_leave(&w->named, WORKER_SHUTDOWN).worker;
	assert_false(worker_is_restarted(&gone, &beat));
}

static struct worker_decision described(struct world *w, struct worker *worker, struct beat beat)
{
	beat.has_token = beat.describes = true;
	beat.token = worker->token;
	struct worker_decision decision = worker_beat(worker, &beat, false, &w->given);
	assert_int_equal(decision.refusal, REFUSED_NOTHING);
	w->given.next_token++;
	*worker = decision.worker;
	return decision;
}

/* Whatever part of its description changes, it is stored. */
static void each_part_of_a_description_counts(void **state)
{
	static const struct beat beats[] = {
		{.executors = 5},
		{.executors = 5, .any_executor = true},
		{.executors = 5, .any_executor = true, .max_concurrent = 2},
		{.executors = 5, .any_executor = true, .max_concurrent = 2, .process = {.host = HOST}},
		{.executors = 5,
			.any_executor = true,
			.max_concurrent = 2,
			.process = {.host = HOST, .boot_hi = 1}},
		{.executors = 5,
			.any_executor = true,
			.max_concurrent = 2,
			.process = {.host = HOST, .boot_hi = 1, .boot_lo = 2}},
		{.executors = 5,
			.any_executor = true,
			.max_concurrent = 2,
			.process = {.host = HOST, .boot_hi = 1, .boot_lo = 2, .pid = 3}},
		{.executors = 5,
			.any_executor = true,
			.max_concurrent = 2,
			.process = {.host = HOST, .boot_hi = 1, .boot_lo = 2, .pid = 3, .start = 4}},
	};
	struct world *w = *state;

	for (size_t i = 0; i < sizeof beats / sizeof *beats; i++) {
		assert_true(described(w, &w->beater, beats[i]).must_store);
		assert_false(described(w, &w->beater, beats[i]).must_store);
	}
	/* each part of a process alone says that there is one */
	for (size_t i = 0; i < 4; i++) {
		struct beat beat = {0};
		uint64_t *parts[] = {&beat.process.boot_hi, &beat.process.boot_lo, &beat.process.start};
		if (i < 3)
			*parts[i] = 9;
		else
			beat.process.pid = 9;
		described(w, &w->rival, beat);
	}
	assert_int_equal(w->rival.process.pid, 9);
}

static bool restarts(struct worker_process old, struct worker_process now, bool named)
{
	struct worker worker = {.handle = 1, .state = WORKER_ACTIVE, .process = old};
	struct beat beat = {.describes = true, .registers = true, .named = named, .process = now};

	return worker_is_restarted(&worker, &beat);
}

static void a_process_is_another_by_any_part_that_both_told(void **state)
{
	struct worker_process old = {.pid = 1, .start = 2, .host = 3, .boot_hi = 4, .boot_lo = 5};

	(void)state;
	assert_false(restarts(old, old, false));
	assert_true(restarts(old, (struct worker_process){.pid = 9}, false));
	assert_true(restarts(old, (struct worker_process){.pid = 1, .start = 9}, false));
	assert_true(restarts(old, (struct worker_process){.pid = 1, .host = 9}, false));
	assert_true(restarts(old, (struct worker_process){.pid = 1, .boot_hi = 9}, false));
	assert_true(restarts(old, (struct worker_process){.pid = 1, .boot_lo = 9}, false));
	assert_false(restarts(old, (struct worker_process){.pid = 1}, false));
	assert_false(restarts(
		(struct worker_process){.pid = 1}, (struct worker_process){.pid = 1, .start = 9}, false));
	assert_false(restarts(old, (struct worker_process){.start = 9}, true));
	assert_true(restarts(old, (struct worker_process){.pid = 9}, true));
}

static void nobody_holds_more_than_a_worker_may(void **state)
{
	struct world *w = *state;

	w->beater.max_concurrent = 0;
	w->beater.held = WORKER_HELD_MAX;
	assert_int_equal(worker_may_claim(&w->beater), REFUSED_WORKER_FULL);
	w->beater.max_concurrent = 2;
	w->beater.held = 2;
	assert_int_equal(worker_may_claim(&w->beater), REFUSED_WORKER_FULL);
	w->beater.max_concurrent = WORKER_HELD_MAX + 1;
	w->beater.held = WORKER_HELD_MAX;
	assert_int_equal(worker_may_claim(&w->beater), REFUSED_WORKER_FULL);
	w->beater.held = 1;
	assert_int_equal(worker_may_claim(&w->beater), REFUSED_NOTHING);
}

static void a_name_does_not_come_back_by_the_beat_of_a_key(void **state)
{
	struct world *w = *state;
	struct worker gone = worker_leave(&w->named, WORKER_SHUTDOWN).worker;
	struct beat beat = {.has_token = true, .token = gone.token};

	assert_int_equal(worker_beat(&gone, &beat, false, &w->given).refusal, REFUSED_WORKER_INACTIVE);
	beat.named = true;
	beat.describes = false;
	w->named.process.pid = 7;
	assert_false(worker_is_restarted(&w->named, &beat)); /* it says nothing of itself */
	beat.describes = true;
	assert_false(worker_is_restarted(&w->named, &beat)); /* … or not which process it is */
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		TEST(a_registration_is_durable_and_gives_the_first_token),
		TEST(the_first_beat_of_an_unknown_key_registers_it),
		TEST(an_unknown_key_with_a_token_is_inactive),
		TEST(what_a_worker_says_anew_is_an_event_and_the_same_again_is_none),
		TEST(registering_again_while_alive_is_the_same_instance),
		TEST(an_inactive_key_never_registers_again),
		TEST(another_principal_may_neither_register_nor_beat),
		TEST(a_claimant_without_claims_is_nobodys),
		TEST(a_name_that_ended_may_be_inherited),
		TEST(a_name_that_registers_while_active_is_the_same_instance),
		TEST(a_name_that_registers_after_its_end_is_a_new_instance),
		TEST(the_first_beat_of_a_name_after_its_end_is_a_new_instance),
		TEST(a_name_does_not_come_back_into_a_slot_that_is_taken),
		TEST(a_name_that_shows_a_token_must_show_the_last_one),
		TEST(a_name_beats_without_a_token),
		TEST(a_new_instance_of_a_name_starts_from_the_defaults),
		TEST(a_second_worker_for_a_slot_is_refused),
		TEST(a_beat_extends_the_lease_from_the_servers_now),
		TEST(every_accepted_beat_gets_a_new_token),
		TEST(a_wrong_token_extends_nothing),
		TEST(a_used_token_is_wrong),
		TEST(a_known_key_without_a_token_is_a_mismatch),
		TEST(an_inactive_worker_stays_inactive_whatever_it_shows),
		TEST(a_worker_lease_is_clamped_to_five_seconds_and_a_day),
		TEST(a_beat_without_a_length_keeps_the_granted_one),
		TEST(a_plain_renewal_waits_for_no_disk),
		TEST(a_renewal_is_written_exactly_when_it_moves_the_stored_deadline_by_more_than_the_grace),
		TEST(a_renewal_is_measured_against_what_is_stored_not_against_the_last_beat),
		TEST(deltas_and_descriptions_are_durable),
		TEST(a_beat_that_describes_nothing_forgets_nothing),
		TEST(a_dead_process_is_believed_from_its_own_machine_alone),
		TEST(the_dead_process_must_be_the_one_that_fills_the_slot),
		TEST(a_description_without_a_process_forgets_none),
		TEST(quiet_and_terminate_move_only_forward),
		TEST(an_active_worker_may_be_terminated_directly),
		TEST(a_quiet_worker_beats_on_and_stays_quiet),
		TEST(commands_to_workers_that_are_not_there_are_refused),
		TEST(every_live_state_expires),
		TEST(what_is_not_alive_does_not_expire),
		TEST(a_goodbye_gives_work_back_and_a_replacement_loses_it),
		TEST(a_second_goodbye_changes_nothing),
		TEST(a_reboot_grants_a_live_worker_its_length_once_more),
		TEST(a_restore_ends_whoever_beats_and_no_name),
		TEST(who_is_alive_who_beats_and_who_may_claim),
		TEST(states_and_ends_have_the_names_of_the_contract),
		TEST(a_name_without_a_token_does_not_speak_for_a_key),
		TEST(a_name_that_beats_as_another_process_was_restarted),
		TEST(each_part_of_a_description_counts),
		TEST(a_process_is_another_by_any_part_that_both_told),
		TEST(nobody_holds_more_than_a_worker_may),
		TEST(a_name_does_not_come_back_by_the_beat_of_a_key),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
