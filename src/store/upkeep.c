/*
 * Upkeep: a small step about once a second, between turns. Renewals that are worth writing, what is kept no longer,
 * old events folded into the baselines of their tasks, and coming back from a full disk.
 */
#include <assert.h>
#include <errno.h>
#include <string.h>

#include "store/command/keys.h"
#include "store/kept.h"
#include "store/read/sound.h"
#include "store/command/commands.h"
#include "store/turn/turn.h"

enum {
	DEGRADED_STEP = 100,
	WORKERS_FORGOTTEN_MAX = 64, /* by one sweep */
	RENEWALS_MAX = 500,         /* written by one sweep, each time further on among the workers */
	TOKENS_SETTLED_MAX = 100,   /* by one sweep */
	LEASES_CUT_MAX = 500,       /* by one sweep; the last holder's all */
};

/* How many rows one sweep looks at. On a full disk fewer: what a sweep writes must fit into the ballast. */
static uint32_t step_of(const struct store *store)
{
	return store->degraded && store->retention.step > DEGRADED_STEP ? DEGRADED_STEP
									: store->retention.step;
}

/* Renewals that moved the deadline far enough to be worth writing; at most so many, the next sweep goes on behind them. */
static int write_renewals(struct turn *turn)
{
	struct store *store = turn->store;
	const struct index *index = &store->index;
	uint32_t number = store->renewal_cursor, count = 0;
	int r = 0;

	while (r == 0 && count < RENEWALS_MAX && (number = index_next_holder(index, number)) != 0) {
		if (!index_holder(index, number)->stale_on_disk)
			continue;
		struct turn_worker *view = turn_worker_by_number(turn, number);
		r = view ? turn_store_worker(turn, view) : -ENOMEM;
		count++;
	}
	store->renewal_cursor = number;
	return r;
}

/* The principals whose token was revoked so lately that a lease beneath it may still run. */
struct revoked {
	uint32_t *principals;
	uint32_t count;
};

static int gather_revoked(struct turn *turn, struct revoked *revoked)
{
	const struct tokens *tokens = &turn->store->credentials;
	int64_t now_ms = turn->given.now.wall_ms, since_ms = now_ms - turn->given.rules->lease_max_ms;

	revoked->count = 0;
	revoked->principals = arena_alloc(&turn->arena, (tokens->count + 1) * sizeof *revoked->principals);
	if (!revoked->principals)
		return -ENOMEM;
	for (uint32_t i = 0; i < tokens->count; i++) {
		const struct token *token = tokens->items[i];
		if (token->revoked_ms > since_ms && !tokens_have_live(tokens, token->principal, now_ms))
			revoked->principals[revoked->count++] = token->principal;
	}
	return 0;
}

static bool was_revoked(const struct revoked *revoked, uint32_t principal)
{
	uint32_t i = 0;

	while (i < revoked->count && revoked->principals[i] != principal)
		i++;
	return i < revoked->count;
}

/* Of a task that the holder has: 1, its lease was cut. */
static int cut_claim(struct turn *turn, int64_t seq)
{
	struct turn_task *view;
	int r = turn_task(turn, seq, &view);

	if (r < 0)
		return r;
	struct task_decision decision = task_cut(&view->task, &turn->given);
	if (decision.event == EVENT_NONE)
		return 0;
	struct record record = turn_record(turn, decision.event);
	record_fact(&record, FACT_GRANTED, decision.task.claim.lease.granted_ms);
	r = turn_write_task(turn, view, &decision, &record);
	return r < 0 ? r : 1;
}

/* How many leases of the holder, and of its claims, were cut. */
static int cut_leases_of(struct turn *turn, uint32_t number)
{
	struct turn_worker *view = turn_worker_by_number(turn, number);
	struct held_tasks held;

	if (!view)
		return -ENOMEM;
	struct worker_decision decision = worker_cut(&view->worker, &turn->given);
	int count = decision.must_store;
	int r = count > 0 ? turn_write_worker(turn, view, &decision, NULL) : 0;
	if (r == 0)
		r = turn_held_by(turn, view, &held);
	for (uint32_t i = 0; r == 0 && i < held.count; i++) {
		int cut = cut_claim(turn, held.seqs[i]);
		count += cut > 0;
		r = cut < 0 ? cut : 0;
	}
	return r < 0 ? r : count;
}

/* Whoever shows a revoked token is nobody, but its work may go on until its lease ends: that end comes soon. Not on a full disk, where no
 * lease expires and what a sweep writes must leave room for retention. */
static int cut_leases(struct turn *turn)
{
	const struct index *index = &turn->store->index;
	uint32_t number = 0, count = 0;
	struct revoked revoked;

	int r = gather_revoked(turn, &revoked);
	if (r < 0 || revoked.count == 0)
		return r;
	while (count < LEASES_CUT_MAX && (number = index_next_holder(index, number)) != 0) {
		const struct holder *holder = index_holder(index, number);
		bool is_at_work = worker_is_alive(&holder->worker) || holder->worker.held > 0;
		if (!is_at_work || !was_revoked(&revoked, holder->worker.principal))
			continue;
		r = cut_leases_of(turn, number);
		if (r < 0)
			return r;
		count += (uint32_t)r;
	}
	return 0;
}

struct purge {
	struct turn *turn;
	int64_t *seqs;
	uint32_t count, seen;
	int64_t last;
	int64_t surplus; /* final tasks beyond the maximum */
};

static int purge_look(void *context, const struct task_row *row)
{
	struct purge *purge = context;
	const struct retention *retention = &purge->turn->store->retention;

	purge->seen++;
	purge->last = row->task.seq;
	if (!task_state_is_final(row->task.state))
		return 0;
	bool old = row->task.updated_ms <= purge->turn->given.now.wall_ms - retention->final_ms;
	if (old || (int64_t)purge->count < purge->surplus)
		purge->seqs[purge->count++] = row->task.seq;
	return 0;
}

/* Final tasks that are old, or too many: a few rows at a time, round and round. */
static int purge_tasks(struct turn *turn)
{
	struct store *store = turn->store;
	uint32_t step = step_of(store);
	struct purge purge = {
		.turn = turn, .surplus = store->facts.finals - (int64_t)store->retention.finals_max};
	struct turn_task *view;

	purge.seqs = arena_alloc(&turn->arena, step * sizeof *purge.seqs);
	if (!purge.seqs)
		return -ENOMEM;
	int r = store_rows(store, page_tasks, store->purge_cursor, step, purge_look, &purge);
	if (r < 0)
		return r;
	store->purge_cursor = purge.seen < step ? 0 : purge.last;
	for (uint32_t i = 0; r == 0 && i < purge.count; i++) {
		r = turn_task(turn, purge.seqs[i], &view);
		bool needed = false;
		if (r == 0)
			r = task_is_needed(turn, view, &needed);
		if (r < 0)
			return r;
		if (needed)
			continue;
		struct task_decision decision = task_purge(&view->task, &turn->given);
		struct record record = turn_record(turn, decision.event);
		r = turn_write_task(turn, view, &decision, &record);
	}
	if (r == 0 && purge.count > 0) /* no number is given out twice */
		r = turn_put(turn, put_meta, META_TASK_FLOOR, turn->facts.last_task);
	return r;
}

struct compaction {
	struct turn *turn;
	int64_t upto;
	uint32_t surplus;
};

/* Fold one old event into the baseline of its task. */
static int compact_event(void *context, int64_t seq, struct span data)
{
	struct compaction *compaction = context;
	struct turn *turn = compaction->turn;
	struct record record;
	struct fold fold = {0};
	struct span base;

	int r = record_decode(seq, data, &record);
	if (r < 0)
		return store_damaged(turn->store, "event", seq);
	bool old = record.wall_ms + turn->store->retention.event_ms <= turn->given.now.wall_ms;
	if (!old && compaction->surplus == 0)
		return 1;
	compaction->surplus -= compaction->surplus > 0;
	compaction->upto = seq;
	if (record.kind == EVENT_TASK_PURGED) { /* its baseline goes with it */
		keep_no_events(turn, record.task);
		return turn_put(turn, delete_base, record.task);
	}
	r = keep_event(turn, &record, data, old);
	if (r < 0 || record.task == 0)
		return r;
	r = store_rows(turn->store, get_base, record.task, &turn->arena, &base);
	if (r == 0 && fold_decode(record.task, base, &fold) < 0)
		return store_damaged(turn->store, "task_base", record.task);
	if (r < 0 && r != -ENOENT)
		return r;
	fold_apply(&fold, &record);
	buf_clear(&turn->record);
	r = fold_encode(&fold, &turn->record);
	return r < 0 ? r : turn_put(turn, put_base, record.task, buf_span(&turn->record));
}

static int compact_events(struct turn *turn)
{
	struct store *store = turn->store;
	int64_t kept = store->facts.last_event - store->event_base;
	int64_t surplus = kept - (int64_t)store->retention.events_max;
	if (store->is_compaction_stuck)
		return 0;
	struct compaction compaction = {.turn = turn, .surplus = surplus > 0 ? (uint32_t)surplus : 0};

	int r = store_rows(store, page_events, store->event_base, step_of(store), compact_event, &compaction);
	if (r < 0 || compaction.upto == 0)
		return r < 0 ? r : 0;
	turn_put(turn, delete_events, compaction.upto);
	r = turn_put(turn, put_meta, META_EVENT_BASE, compaction.upto);
	return r < 0 ? r : (int)(compaction.upto - store->event_base);
}

/* Dead keys are remembered for a while, so that a worker that comes back under one is refused. */
static int forget_workers(struct turn *turn, uint32_t *ret_dropped, uint32_t limit, uint32_t *ret_count)
{
	struct store *store = turn->store;
	const struct index *index = &store->index;
	bool crowded = slab_used(&index->holders) - index->workers_alive > store->retention.dead_workers_max;
	int r = 0;

	*ret_count = 0;
	for (uint32_t number = index_next_holder(index, 0); r == 0 && number != 0;
		number = index_next_holder(index, number)) {
		const struct holder *holder = index_holder(index, number);
		bool gone = holder->worker.state == WORKER_INACTIVE && holder->worker.held == 0;
		bool old = holder->ended_ms + store->retention.dead_worker_ms <= turn->given.now.wall_ms;
		if (!gone || !(old || crowded) || *ret_count == limit)
			continue;
		r = turn_put(turn, delete_worker, holder_id(holder));
		ret_dropped[(*ret_count)++] = number;
	}
	return r;
}

/* One token that ended long ago, per sweep. */
static int forget_token(struct turn *turn, const struct token **ret_token)
{
	const struct store *store = turn->store;
	int64_t now_ms = turn->given.now.wall_ms;

	*ret_token = NULL;
	for (uint32_t i = 0; i < store->credentials.count && !*ret_token; i++) {
		const struct token *token = store->credentials.items[i];
		if (!token->is_settled &&
			token_ended_ms(token, now_ms) <= now_ms - store->retention.ended_token_ms)
			*ret_token = token;
	}
	if (!*ret_token)
		return 0;
	int r = turn_put(turn, delete_token, (*ret_token)->id);
	return r == 0 && token_has_more(*ret_token)
		? turn_put(turn, delete_small, SMALL_TOKEN, (*ret_token)->id)
		: r;
}

static int forget_requests(struct turn *turn)
{
	const struct retention *retention = &turn->store->retention;

	return turn_put(
		turn, delete_idems, turn->given.now.wall_ms - retention->idempotency_ms, retention->step);
}

/* One transaction of housekeeping. Each part is small and starts where the last sweep ended. */
static int keep_house(struct store *store, struct moment now)
{
	struct turn *turn = &store->turn;
	uint32_t dropped[WORKERS_FORGOTTEN_MAX], dropped_count = 0, news_count = 0;
	struct queue_news news[QUEUE_NEWS_MAX];
	int64_t cursor = store->purge_cursor;
	const struct token *token = NULL;

	turn_begin(turn, now);
	int r = write_renewals(turn);
	if (r == 0 && !store->degraded)
		r = cut_leases(turn);
	if (r == 0)
		r = purge_tasks(turn);
	if (r == 0 && store->groups.count > 0)
		r = groups_sweep(turn, step_of(store));
	if (r == 0)
		r = rates_sweep(turn, step_of(store));
	if (r == 0)
		r = executors_sweep(turn, step_of(store));
	if (r == 0 && !store->degraded)
		r = queues_sweep(turn, news, &news_count);
	int compacted = r == 0 ? compact_events(turn) : r;
	if (compacted >= 0)
		r = forget_workers(turn, dropped, WORKERS_FORGOTTEN_MAX, &dropped_count);
	else
		r = compacted;
	if (r == 0)
		r = tokens_settle_rows(turn, TOKENS_SETTLED_MAX);
	if (r == 0)
		r = forget_token(turn, &token);
	if (r == 0)
		r = keys_sweep(turn);
	if (r == 0 && !store->degraded)
		r = stats_write(turn, false);
	if (r == 0 && turn->begun)
		r = forget_requests(turn);
	if (r < 0) {
		turn_abort(turn);
		store->purge_cursor = cursor;
		return r;
	}
	r = turn_commit(turn);
	if (r < 0)
		return r;
	store->event_base += compacted;
	assert(store->event_base <= store->facts.last_event); /* only what was told is folded */
	if (!store->degraded)
		stats_forget(turn);
	for (uint32_t i = 0; i < dropped_count; i++)
		index_drop_holder(&store->index, dropped[i]);
	for (uint32_t i = 0; i < news_count; i++)
		index_note_news(&store->index, &news[i]);
	if (token)
		tokens_drop(&store->credentials, token->id);
	return 0;
}

/* History that cannot be read is not tidied up: what can be read behind it still is. */
static int pass_by_damage(struct store *store)
{
	const struct damage *damage = &store->backend->last_damage;

	if (!damage_is_of_history(store, damage))
		return -EBADMSG;
	if (strcmp(damage->table, "task") == 0)
		store->purge_cursor = damage->row;
	else
		store->is_compaction_stuck = true;
	return 0;
}

/* Each place is told once. */
static int tell_damage(struct store *store, struct moment now)
{
	struct turn *turn = &store->turn;
	int r = 0;

	if (store->degraded || store->damages_told == store->backend->damage_count)
		return 0;
	turn_begin(turn, now);
	uint32_t told = store->damages_told;
	while (r == 0 && told < store->backend->damage_count) {
		struct record record = turn_record(turn, EVENT_SERVER_DEGRADED);
		record_fact(&record, FACT_DAMAGE, ++told);
		r = turn_write_event(turn, &record);
	}
	if (r < 0)
		turn_abort(turn);
	else
		r = turn_commit(turn);
	if (r == 0)
		store->damages_told = told;
	return r;
}

/* There is room again: say so, and give everyone time to be heard. */
static int come_back(struct store *store, struct moment now)
{
	struct turn *turn = &store->turn;

	int r = store->started ? 0 : store_start(store, now);
	if (r < 0)
		return r;
	turn_begin(turn, now);
	struct record record = turn_record(turn, EVENT_SERVER_DEGRADED);
	r = turn_write_event(turn, &record);
	if (r < 0)
		turn_abort(turn);
	else
		r = turn_commit(turn);
	if (r < 0)
		return r;
	store->degraded = false;
	store->grace.frozen = false;
	store->grace.woke_ms = now.lease_ms;
	return 0;
}

int store_rest(struct store *store, struct moment now)
{
	struct turn *turn = &store->turn;

	if (store->dead || store->degraded || !store->started)
		return 0;
	turn_begin(turn, now);
	int r = stats_write(turn, true);
	if (r < 0) {
		turn_abort(turn);
		return r;
	}
	r = turn_commit(turn);
	if (r == 0)
		stats_forget(turn);
	return r;
}

bool store_has_chores(const struct store *store)
{
	int64_t kept = store->facts.last_event - store->event_base;

	return !store->degraded &&
		(store->facts.finals > (int64_t)store->retention.finals_max ||
			kept > (int64_t)store->retention.events_max);
}

int store_sweep(struct store *store, struct moment now)
{
	if (store->dead)
		return -EIO;
	store->backend->complaint = NULL;
	int r = keep_house(store, now);
	if (r == -EBADMSG)
		r = pass_by_damage(store);
	if (r == 0)
		r = tell_damage(store, now);
	if (r == 0)
		r = store_rows(store, checkpoint, true);
	if (r == 0 && store->degraded) {
		r = store_rows(store, reserve);
		if (r == 0)
			r = come_back(store, now);
	}
	return r < 0 ? store_fail(store, r) : 0;
}
