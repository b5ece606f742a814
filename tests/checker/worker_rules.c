/*
 * Workers, slots and the server itself: A4 and A5 of workers, B7 of their leases, C3, D7.
 */
#include <string.h>

#include "checker/fold.h"

static int register_worker(struct checker *checker, const struct record *event, struct worker *worker)
{
	const char *name = ck_text(checker, event->worker);
	bool named = record_gives(event, KEY_NAMED) && event->value[KEY_NAMED] == 1;
	uint32_t slot = record_gives(event, KEY_SLOT) ? (uint32_t)event->value[KEY_SLOT] : WORD_NONE;

	if (worker->life == WORKER_GONE && !named)
		return ck_complain(checker, "A4", WORD_NONE, "%s was inactive for good and comes back", name);
	if (worker->life != WORKER_GONE && worker->life != WORKER_STRANGE)
		return ck_complain(checker, "A5", WORD_NONE, "%s is registered already", name);
	if (ck_slot_is_quarantined(checker, slot))
		return ck_complain(checker, "C3", WORD_NONE, "%s enters a quarantined slot", name);
	worker->life = WORKER_ALIVE;
	worker->lease_ran_out = false;
	worker->max = record_gives(event, KEY_MAX) ? event->value[KEY_MAX] : 0;
	worker->slot = slot;
	return CHECKER_OK;
}

static int check_worker_expiry(struct checker *checker, const struct record *event)
{
	const char *name = ck_text(checker, event->worker);

	if (!record_gives(event, KEY_DEADLINE))
		return ck_complain(
			checker, "B7", WORD_NONE, "%s expired; it is not said when its lease ended", name);
	if (event->lease_ms < event->value[KEY_DEADLINE])
		return ck_complain(checker, "B7", WORD_NONE, "%s expired before its deadline", name);
	if (record_gives(event, KEY_GRACE_END) && event->lease_ms < event->value[KEY_GRACE_END])
		return ck_complain(checker, "B7", WORD_NONE, "%s expired within the grace", name);
	if (ck_before_restart_grace(checker, event))
		return ck_complain(checker, "B7", WORD_NONE, "%s expired within the grace of a start", name);
	return ck_lease_is_kept(checker, event->worker);
}

/* A worker's life goes one way. */
static int advance_worker(
	struct checker *checker, const struct record *event, struct worker *worker, enum worker_life to)
{
	const char *name = ck_text(checker, event->worker);

	if (worker->life == WORKER_GONE)
		return ck_complain(checker, "A4", WORD_NONE, "%s was inactive for good", name);
	if (worker->life == WORKER_STRANGE && !checker->partial)
		return ck_complain(checker, "A5", WORD_NONE, "%s was never registered", name);
	if (worker->life >= to)
		return ck_complain(checker, "A5", WORD_NONE, "%s was that already, or more", name);
	worker->life = to;
	return CHECKER_OK;
}

/* It says something else of itself, and lives on. */
static int update_worker(struct checker *checker, const struct record *event, struct worker *worker)
{
	const char *name = ck_text(checker, event->worker);

	if (worker->life == WORKER_GONE)
		return ck_complain(checker, "A4", WORD_NONE, "%s was inactive for good", name);
	if (worker->life == WORKER_STRANGE && !checker->partial)
		return ck_complain(checker, "A5", WORD_NONE, "%s was never registered", name);
	worker->max = record_gives(event, KEY_MAX) ? event->value[KEY_MAX] : 0;
	worker->slot = record_gives(event, KEY_SLOT) ? (uint32_t)event->value[KEY_SLOT] : WORD_NONE;
	return CHECKER_OK;
}

int ck_worker_event(struct checker *checker, const struct record *event)
{
	if (event->worker == WORD_NONE)
		return ck_complain(checker, "A3", WORD_NONE, "an event of no worker");
	struct worker *worker = ck_worker_named(checker, event->worker);

	switch (event->kind) {
	case WORD_WORKER_REGISTERED:
		return register_worker(checker, event, worker);
	case WORD_WORKER_UPDATED:
		return update_worker(checker, event, worker);
	case WORD_WORKER_QUIET:
		return advance_worker(checker, event, worker, WORKER_QUIET);
	case WORD_WORKER_TERMINATING:
		return advance_worker(checker, event, worker, WORKER_TERMINATING);
	case WORD_WORKER_INACTIVE:
		if (advance_worker(checker, event, worker, WORKER_GONE))
			return checker->verdict;
		worker->lease_ran_out =
			record_gives(event, KEY_REASON) && event->value[KEY_REASON] == WORD_EXPIRED;
		worker->ran_out_ms = event->lease_ms;
		return worker->lease_ran_out ? check_worker_expiry(checker, event) : CHECKER_OK;
	default:
		return ck_complain(
			checker, "A3", WORD_NONE, "no such event: %s", ck_text(checker, event->kind));
	}
}

int ck_slot_event(struct checker *checker, const struct record *event)
{
	uint32_t slot = record_gives(event, KEY_SLOT) ? (uint32_t)event->value[KEY_SLOT] : WORD_NONE;
	bool quarantines = event->kind == WORD_SLOT_QUARANTINED;

	if (slot == WORD_NONE)
		return ck_complain(checker, "A3", WORD_NONE, "an event of no slot");
	if (slot >= checker->quarantined_room) {
		uint32_t room = slot * 2;
		checker->quarantined = ck_must_realloc(checker->quarantined, room, sizeof(bool));
		memset(checker->quarantined + checker->quarantined_room, 0, room - checker->quarantined_room);
		checker->quarantined_room = room;
	}
	if (quarantines && checker->quarantined[slot])
		return ck_complain(
			checker, "A5", WORD_NONE, "%s was quarantined already", ck_text(checker, slot));
	checker->quarantined[slot] = quarantines;
	return CHECKER_OK;
}

/* D7: a restore raises the generation; a start finds the one that was left. */
int ck_server_event(struct checker *checker, const struct record *event)
{
	bool restored = event->kind == WORD_SERVER_RESTORED;

	if (event->kind == WORD_SERVER_STARTED && record_gives(event, KEY_START)) {
		checker->start_known = true;
		checker->start_boot = event->boot;
		checker->start_ms = event->value[KEY_START];
	}
	if (!record_gives(event, KEY_GENERATION))
		return CHECKER_OK;
	int64_t generation = event->value[KEY_GENERATION];
	if (checker->generation_known && restored && generation <= checker->generation)
		return ck_complain(checker, "D7", WORD_NONE, "a restore that raises no generation");
	if (checker->generation_known && !restored && generation != checker->generation)
		return ck_complain(checker, "D7", WORD_NONE, "a generation without a restore");
	checker->generation_known = true;
	checker->generation = generation;
	return CHECKER_OK;
}
