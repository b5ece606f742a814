/*
 * What clients were told: every acknowledgement is explained by an event (D1), none was given to a stale
 * fence (B3), and each fence has one outcome (E5). A worker whose beat was answered keeps what it bound as long as
 * that answer said (B7); what it is told to be lost, itself included, was lost (D1).
 *
 * A client's line may stand before the event that explains it, so an unexplained one waits until the end of
 * the history, unless an event already contradicts it.
 */
#include <stdlib.h>
#include <string.h>

#include "checker/fold.h"

static uint32_t claim_hash(uint32_t task, int64_t fence)
{
	uint64_t mixed = ((uint64_t)task << 32 ^ (uint64_t)fence) * 0x9e3779b97f4a7c15u;

	return (uint32_t)(mixed >> 32);
}

/* Where that claim stands, or the free place where it would. */
static struct claim *claim_slot(const struct checker *checker, uint32_t task, int64_t fence)
{
	uint32_t mask = checker->claims_room - 1;

	for (uint32_t at = claim_hash(task, fence) & mask;; at = (at + 1) & mask) {
		struct claim *claim = &checker->claims[at];
		if (claim->fence == 0 || (claim->task == task && claim->fence == fence))
			return claim;
	}
}

static void claims_grow(struct checker *checker)
{
	struct claim *old = checker->claims;
	uint32_t old_room = checker->claims_room;

	checker->claims_room = old_room ? old_room * 2 : 256;
	checker->claims = ck_must_realloc(NULL, checker->claims_room, sizeof *checker->claims);
	memset(checker->claims, 0, checker->claims_room * sizeof *checker->claims);
	for (uint32_t i = 0; i < old_room; i++) {
		if (old[i].fence != 0)
			*claim_slot(checker, old[i].task, old[i].fence) = old[i];
	}
	free(old);
}

struct claim *ck_claim_find(struct checker *checker, uint32_t task, int64_t fence)
{
	if (checker->claims_room == 0 || fence == 0)
		return NULL;
	struct claim *claim = claim_slot(checker, task, fence);
	return claim->fence != 0 ? claim : NULL;
}

/* A fence that occurs again belongs to a new task under the id of a purged one. */
void ck_claim_begin(struct checker *checker, uint32_t task, int64_t fence, uint32_t worker)
{
	if (checker->claims_count * 2 >= checker->claims_room)
		claims_grow(checker);
	struct claim *claim = claim_slot(checker, task, fence);
	checker->claims_count += claim->fence == 0;
	*claim = (struct claim){.task = task, .fence = fence, .worker = worker};
}

void ck_claim_end(struct checker *checker, uint32_t task, int64_t fence, uint32_t outcome)
{
	struct claim *claim = ck_claim_find(checker, task, fence);

	if (!claim)
		return;
	claim->outcome = outcome;
	claim->taken_alive =
		outcome == WORD_LOST && ck_worker_named(checker, claim->worker)->life != WORKER_GONE;
}

/* The server counts from when it hears the beat, which is not before it was sent: there is no tolerance. */
int ck_lease_is_kept(struct checker *checker, uint32_t worker)
{
	const struct worker *view = ck_worker_named(checker, worker);

	if (!view->lease_ran_out || view->ran_out_ms >= view->renewed_until_ms)
		return CHECKER_OK;
	return ck_complain(checker, "B7", WORD_NONE,
		"%s expired at %lld and was told that it lives until %lld", ck_text(checker, worker),
		(long long)view->ran_out_ms, (long long)view->renewed_until_ms);
}

enum sense { EXPLAINED, NOT_YET, STALE, OTHER_OUTCOME, OTHER_WORKER, TAKEN };

static enum sense explain_progress(struct claim *claim)
{
	if (claim->progress_acked < claim->progressed) {
		claim->progress_acked++;
		return EXPLAINED;
	}
	return claim->outcome == WORD_NONE ? NOT_YET : STALE;
}

static enum sense explain_with_fence(
	struct checker *checker, const struct record *ack, const struct task *task)
{
	int64_t fence = ack->value[KEY_FENCE];
	struct claim *claim = ck_claim_find(checker, ack->task, fence);
	uint32_t worker = record_gives(ack, KEY_WORKER) ? (uint32_t)ack->value[KEY_WORKER] : WORD_NONE;

	if (!claim)
		return fence <= task->baseline_fence ? EXPLAINED : NOT_YET;
	if (worker == WORD_NONE && (ack->op == WORD_CLAIM || ack->op == WORD_BIND || ack->op == WORD_LOST))
		worker = ack->worker;
	if (worker != WORD_NONE && worker != claim->worker)
		return OTHER_WORKER;
	if (ack->op == WORD_BIND && claim->taken_alive && !claim->unbinds)
		return TAKEN;
	if (ack->op == WORD_CLAIM || ack->op == WORD_BIND || ack->op == claim->outcome)
		return EXPLAINED;
	if (ack->op == WORD_LOST)
		return claim->outcome == WORD_NONE ? NOT_YET : EXPLAINED;
	if (ack->op == WORD_PROGRESS)
		return explain_progress(claim);
	if (claim->outcome == WORD_NONE)
		return NOT_YET;
	return claim->outcome == WORD_LOST || claim->outcome == WORD_SUPERSEDED ? STALE : OTHER_OUTCOME;
}

static enum sense explain(struct checker *checker, const struct record *ack)
{
	const struct task *task = ck_task_named(checker, ack->task);

	if (!task->was_created)
		return NOT_YET;
	if (ack->op == WORD_ENQUEUE)
		return EXPLAINED;
	if (ack->op == WORD_CANCEL)
		return task->was_called_off ? EXPLAINED : NOT_YET;
	if (record_gives(ack, KEY_FENCE))
		return explain_with_fence(checker, ack, task);
	if (ack->op == WORD_PROGRESS)
		return task->progressed > 0 ? EXPLAINED : NOT_YET;
	return task->outcomes >> ack->op & 1 ? EXPLAINED : NOT_YET;
}

static int judge_ack(struct checker *checker, const struct record *ack, enum sense sense)
{
	const char *op = ck_text(checker, ack->op);

	switch (sense) {
	case EXPLAINED:
		break;
	case STALE:
		return ck_complain(checker, "B3", ack->task, "%s was acknowledged under a stale fence", op);
	case OTHER_OUTCOME:
		return ck_complain(
			checker, "E5", ack->task, "%s was acknowledged, another outcome recorded", op);
	case OTHER_WORKER:
		return ck_complain(checker, "D1", ack->task, "%s was acknowledged to another worker", op);
	case TAKEN:
		return ck_complain(checker, "B7", ack->task, "taken from %s, who lives and had bound it",
			ck_text(checker, ack->worker));
	case NOT_YET:
		return ck_complain(checker, "D1", ack->task, "%s was acknowledged and is not there", op);
	}
	return CHECKER_OK;
}

static void defer(struct checker *checker, const struct record *ack)
{
	if (checker->acks_count == checker->acks_room) {
		checker->acks_room = checker->acks_room ? checker->acks_room * 2 : 64;
		checker->acks = ck_must_realloc(checker->acks, checker->acks_room, sizeof *checker->acks);
	}
	char *line = ck_must_realloc(NULL, checker->line_len + 1, 1);
	memcpy(line, checker->line, checker->line_len);
	line[checker->line_len] = '\0';
	checker->acks[checker->acks_count++] = (struct ack){*ack, line};
}

/* A beat that was answered, or refused because the worker is not there any more. */
static int beat_record(struct checker *checker, const struct record *record)
{
	struct worker *worker = ck_worker_named(checker, record->worker);

	if (record->phase == WORD_FAIL)
		defer(checker, record);
	if (record->phase != WORD_OK || !record_gives(record, KEY_LEASE))
		return CHECKER_OK;
	int64_t until_ms = record->lease_ms + record->value[KEY_LEASE];
	if (worker->renewed_until_ms < until_ms)
		worker->renewed_until_ms = until_ms;
	return ck_lease_is_kept(checker, record->worker);
}

int ck_client_record(struct checker *checker, const struct record *record)
{
	uint32_t op = record->op;

	if (op == WORD_BEAT)
		return beat_record(checker, record);
	/* an unbind that was not answered may have been heard; whether a bind held is known at the end */
	if (op == WORD_UNBIND || (record->phase == WORD_OK && (op == WORD_BIND || op == WORD_LOST))) {
		defer(checker, record);
		return CHECKER_OK;
	}
	bool known = op == WORD_ENQUEUE || op == WORD_CLAIM || op == WORD_PROGRESS || op == WORD_COMPLETE ||
		op == WORD_FAIL || op == WORD_RELEASE || op == WORD_CANCEL || op == WORD_REVIEW ||
		op == WORD_BLOCK || op == WORD_WAIT;

	if (record->phase != WORD_OK || !known)
		return CHECKER_OK;
	enum sense sense = explain(checker, record);
	if (sense == NOT_YET) {
		defer(checker, record);
		return CHECKER_OK;
	}
	return judge_ack(checker, record, sense);
}

static int finish_ack(struct checker *checker, const struct record *ack)
{
	switch (ack->op) {
	case WORD_UNBIND:
		return CHECKER_OK;
	case WORD_BEAT:
		if (ck_worker_named(checker, ack->worker)->life == WORKER_GONE)
			return CHECKER_OK;
		return ck_complain(checker, "D1", WORD_NONE, "%s was told that it is inactive, and is not",
			ck_text(checker, ack->worker));
	default:
		return judge_ack(checker, ack, explain(checker, ack));
	}
}

static void note_unbinds(struct checker *checker)
{
	for (uint32_t i = 0; i < checker->acks_count; i++) {
		const struct record *ack = &checker->acks[i].record;
		struct claim *claim = ck_claim_find(checker, ack->task, ack->value[KEY_FENCE]);
		if (ack->op == WORD_UNBIND && claim)
			claim->unbinds = true;
	}
}

int ck_client_finish(struct checker *checker)
{
	note_unbinds(checker);
	for (uint32_t i = 0; i < checker->acks_count; i++) {
		const struct record *ack = &checker->acks[i].record;
		checker->line = checker->acks[i].line;
		checker->line_len = strlen(checker->line);
		if (finish_ack(checker, ack) != CHECKER_OK)
			break;
	}
	checker->line = NULL;
	return checker->verdict;
}
