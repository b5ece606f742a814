/*
 * Opening a store, its turns as the caller sees them, its upkeep, and reading from it.
 *
 * When the disk is full the store gives its ballast back, refuses changes, lets retention make room, and
 * serves again once the ballast fits: nobody's lease runs out meanwhile. Any other fault of a transaction
 * means that what is on disk is not known; then the store is dead, and only a restart finds out.
 */
#include "store/store.h"

#include <assert.h>
#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/base36.h"
#include "store/commands.h"

enum {
	DEGRADED_STEP = 100,
};

#define DAY_MS (24 * 60 * 60 * INT64_C(1000))

struct store_options store_options_default(void)
{
	return (struct store_options){
		.rules = rules_default(),
		.retention =
			{
				.final_ms = 7 * DAY_MS,
				.finals_max = 1000000,
				.event_ms = 30 * DAY_MS,
				.events_max = 10000000,
				.idempotency_ms = DAY_MS,
				.dead_worker_ms = 7 * DAY_MS,
				.dead_workers_max = 100000,
				.ended_token_ms = 30 * DAY_MS,
				.step = 500,
			},
	};
}

uint64_t store_next_token(struct store *store)
{
	/* the number of the start stands above the counter: no token is ever issued twice */
	return store->starts << 40 | ++store->tokens;
}

static int64_t larger(int64_t a, int64_t b)
{
	return a > b ? a : b;
}

/* ---- opening -------------------------------------------------------------------------------------- */

struct opening {
	struct store *store;
	struct given given;
};

static int load_name(void *context, const struct name_row *row)
{
	struct opening *opening = context;

	return names_load(&opening->store->names, row->id, row->text, row->principal);
}

static int load_worker(void *context, const struct worker_row *row)
{
	struct opening *opening = context;
	struct hot *hot = &opening->store->hot;
	struct worker worker = row->worker;
	uint32_t number = hot_add_holder(hot, row->id);

	if (number == 0)
		return -ENOMEM;
	worker.handle = number;
	worker.held = 0;
	worker.heard_ms = INT64_MIN;
	worker.stored_deadline_ms = worker.lease.deadline_ms;
	/* renewals may have been heard and not written: it gets what it may have had, and a full lease to be heard in */
	worker.lease.deadline_ms = larger(worker.lease.deadline_ms + opening->given.rules->restart_grace_ms,
		opening->given.now.lease_ms + worker.lease.granted_ms);
	hot_holder(hot, number)->instance = row->instance;
	hot_set_worker(hot, &worker, row->metadata, &opening->given);
	hot_holder(hot, number)->ended_ms = row->ended_ms;
	return 0;
}

static int load_task(void *context, const struct task_row *row)
{
	struct opening *opening = context;
	struct hot *hot = &opening->store->hot;
	struct task task = row->task;

	task.claim.holder = 0;
	if (row->holder.len > 0) {
		task.claim.holder = hot_find_holder(hot, row->holder);
		if (task.claim.holder == 0) { /* it never registered: it belongs to whose claims it holds */
			task.claim.holder = hot_add_holder(hot, row->holder);
			if (task.claim.holder == 0)
				return -ENOMEM;
			hot_holder(hot, task.claim.holder)->worker.principal = task.claimant;
		}
		hot_holder(hot, task.claim.holder)->worker.held++;
	}
	task_check(&task);
	hot_set(hot, MAP_NONE, &task, &opening->given);
	return 0;
}

static int load_edge(void *context, const struct edge_row *row)
{
	struct hot *hot = &((struct opening *)context)->store->hot;
	uint32_t slot = hot_find(hot, row->parent);

	if (slot != MAP_NONE)
		hot_set_children(hot, row->parent, hot_children(hot, slot) + 1);
	return 0;
}

static int load_queue(void *context, const struct queue_row *row)
{
	struct store *store = ((struct opening *)context)->store;
	struct turn_queue *queues = realloc(store->queues, (store->queue_count + 1) * sizeof *queues);

	if (!queues)
		return -ENOMEM;
	store->queues = queues;
	store->queues[store->queue_count++] = (struct turn_queue){row->name, row->state};
	store->queue_cap = store->queue_count;
	return 0;
}

static int load_slot(void *context, const struct slot_row *row)
{
	struct turn_slot slot = {row->name, row->slot};

	return store_set_slot(((struct opening *)context)->store, &slot);
}

static int load_token(void *context, const struct token *token)
{
	struct store *store = ((struct opening *)context)->store;
	struct token *copy = token_copy(token);
	int r = copy ? tokens_set(&store->credentials, copy) : -ENOMEM;

	if (r < 0)
		free(copy);
	return r;
}

/* The value, or what it is before it was ever written. */
static int meta(struct store *store, enum meta_key key, int64_t otherwise, int64_t *ret_value)
{
	int r = store->backend->ops->get_meta(store->backend, key, ret_value);

	if (r == -ENOENT) {
		*ret_value = otherwise;
		return 0;
	}
	return r;
}

static int load_facts(struct store *store, const struct backend_facts *facts)
{
	int64_t base = 0, floor = 0, generation = 1, starts = 0, restored = 0, boot_hi = 0, boot_lo = 0;
	int64_t principals = 0, execution = 0, execution_ms = 0;
	int r = meta(store, META_EVENT_BASE, 0, &base);

	if (r == 0)
		r = meta(store, META_TASK_FLOOR, 0, &floor);
	if (r == 0)
		r = meta(store, META_GENERATION, 1, &generation);
	if (r == 0)
		r = meta(store, META_STARTS, 0, &starts);
	if (r == 0)
		r = meta(store, META_RESTORED, 0, &restored);
	if (r == 0)
		r = meta(store, META_BOOT_HI, 0, &boot_hi);
	if (r == 0)
		r = meta(store, META_BOOT_LO, 0, &boot_lo);
	if (r == 0)
		r = meta(store, META_PRINCIPALS, PRINCIPAL_FIRST, &principals);
	if (r == 0)
		r = meta(store, META_EXECUTION, EXECUTION_UNTOUCHED, &execution);
	if (r == 0)
		r = meta(store, META_EXECUTION_MS, 0, &execution_ms);
	if (r < 0)
		return r;
	store->event_base = base;
	store->last_event = larger(facts->last_event, base);
	store->last_task = larger(facts->last_task, floor);
	store->last_principal = (uint32_t)principals;
	store->disarmed = !execution_is_armed(execution);
	store->execution_ms = execution_ms;
	store->shadow_ids = facts->shadow_ids;
	store->finals = (int64_t)facts->finals;
	store->generation = (uint32_t)generation;
	store->starts = (uint64_t)starts;
	store->restored = restored == RESTORED_NOT || restored == RESTORED ? (enum restored)restored
									   : RESTORED_OVER_DISARMED;
	store->rebooted =
		starts > 0 && ((uint64_t)boot_hi != store->boot_hi || (uint64_t)boot_lo != store->boot_lo);
	return 0;
}

/* Everything that lives in memory, from the rows. */
static int load_all(struct store *store, const struct store_options *options)
{
	const struct backend_ops *ops = store->backend->ops;
	struct backend_facts facts = {0};
	struct opening opening = {
		.store = store,
		.given = {.rules = &store->rules, .now = options->now, .grace = store->grace},
	};

	int r = ops->scan_names(store->backend, load_name, &opening);
	if (r == 0)
		r = ops->scan_workers(store->backend, load_worker, &opening);
	if (r == 0)
		r = ops->scan_live_tasks(store->backend, load_task, &opening, &facts);
	hot_index(&store->hot);
	if (r == 0)
		r = ops->scan_edges(store->backend, load_edge, &opening);
	if (r == 0)
		r = ops->scan_queues(store->backend, load_queue, &opening);
	if (r == 0)
		r = ops->scan_slots(store->backend, load_slot, &opening);
	if (r == 0)
		r = ops->scan_tokens(store->backend, load_token, &opening);
	if (r == 0)
		r = sessions_load(store);
	if (r == 0)
		r = workflows_load(store, options);
	if (r < 0)
		return r;
	hot_loaded(&store->hot);
	return load_facts(store, &facts);
}

/* Decide something about every claim that is alive. */
static int each_claim(
	struct turn *turn, struct task_decision (*decide)(const struct task *, const struct given *))
{
	const struct hot *hot = &turn->store->hot;
	struct held_tasks held;
	struct turn_task *view;
	struct record record;
	int r = 0;

	for (uint32_t number = hot_next_holder(hot, 0); r == 0 && number != 0;
		number = hot_next_holder(hot, number)) {
		struct turn_worker *worker = turn_worker_by_number(turn, number);
		r = worker ? turn_held_by(turn, worker, &held) : -ENOMEM;
		for (uint32_t i = 0; r == 0 && i < held.count; i++) {
			r = turn_task(turn, held.seqs[i], &view);
			if (r < 0)
				return r;
			struct task_decision decision = decide(&view->task, &turn->given);
			turn_record(turn, &record, decision.event);
			r = turn_stage_task(turn, view, &decision, &record);
		}
	}
	return r;
}

/* The lease clock began again: every lease is granted anew, once. */
static int rebase_all(struct turn *turn)
{
	const struct hot *hot = &turn->store->hot;
	struct record record;
	int r = each_claim(turn, task_rebase);

	for (uint32_t number = hot_next_holder(hot, 0); r == 0 && number != 0;
		number = hot_next_holder(hot, number)) {
		struct turn_worker *view = turn_worker_by_number(turn, number);
		if (!view)
			return -ENOMEM;
		struct worker_decision decision = worker_rebase(&view->worker, &turn->given);
		turn_record(turn, &record, decision.event);
		r = turn_stage_worker(turn, view, &decision, &record);
	}
	for (uint32_t i = 0; r == 0 && i < turn->store->slot_count; i++) {
		const struct turn_slot *slot = &turn->store->slots[i];
		struct slot rebased = slot_rebase(&slot->slot, &turn->given);
		turn_record(turn, &record, EVENT_NONE);
		r = turn_stage_slot(turn, slot->name, &rebased, EVENT_NONE, &record);
	}
	return r;
}

/* All claims, then those that held them: each of these has to stop what it runs and come back under another key. */
static int void_all(struct turn *turn)
{
	const struct hot *hot = &turn->store->hot;
	int r = each_claim(turn, task_void);

	for (uint32_t number = hot_next_holder(hot, 0); r == 0 && number != 0;
		number = hot_next_holder(hot, number)) {
		struct turn_worker *view = turn_worker_by_number(turn, number);
		if (!view)
			return -ENOMEM;
		struct worker_decision decision = worker_void(&view->worker);
		if (decision.event != EVENT_NONE)
			r = command_end_worker(turn, view, &decision);
	}
	return r;
}

/* An old backup knows nothing of why somebody pulled the brake since. */
static int stay_disarmed(struct turn *turn)
{
	struct execution_decision decision = execution_set(!turn->store->disarmed, false);
	struct record record;

	if (decision.event == EVENT_NONE)
		return 0;
	turn_record(turn, &record, decision.event);
	return turn_stage_execution(turn, decision.execution, &record);
}

static int stage_restored(struct turn *turn)
{
	struct record record;

	turn_record(turn, &record, EVENT_SERVER_RESTORED);
	record_fact(&record, FACT_GENERATION, turn->store->generation);
	int r = turn_stage_event(turn, &record);
	if (r == 0 && turn->store->restored == RESTORED_OVER_DISARMED)
		r = stay_disarmed(turn);
	return r < 0 ? r : void_all(turn);
}

static int stage_start(struct turn *turn)
{
	struct store *store = turn->store;
	struct backend *backend = store->backend;
	struct record record;

	int r = turn_write(turn);
	if (r == 0)
		r = backend->ops->put_meta(backend, META_STARTS, (int64_t)store->starts);
	if (r == 0)
		r = backend->ops->put_meta(backend, META_GENERATION, store->generation);
	if (r == 0)
		r = backend->ops->put_meta(backend, META_BOOT_HI, (int64_t)store->boot_hi);
	if (r == 0)
		r = backend->ops->put_meta(backend, META_BOOT_LO, (int64_t)store->boot_lo);
	if (r == 0)
		r = backend->ops->put_meta(backend, META_RESTORED, 0);
	if (r == 0)
		r = workflows_keep(turn);
	if (r == 0 && store->restored != RESTORED_NOT)
		r = stage_restored(turn);
	if (r == 0 && store->rebooted)
		r = rebase_all(turn);
	if (r < 0)
		return r;
	turn_record(turn, &record, EVENT_SERVER_STARTED);
	record_fact(&record, FACT_GENERATION, store->generation);
	record_fact(&record, FACT_START, (int64_t)store->starts);
	return turn_stage_event(turn, &record);
}

static int opening_turn(struct store *store, struct moment now)
{
	turn_begin(&store->turn, now);
	int r = stage_start(&store->turn);
	if (r < 0) {
		turn_abort(&store->turn);
		return r;
	}
	r = turn_commit(&store->turn);
	store->started = r == 0;
	return r;
}

static bool is_not_now(int fault)
{
	return fault == -ENOSPC || fault == -EDQUOT || fault == -EROFS;
}

static void degrade(struct store *store)
{
	store->degraded = true;
	store->grace.frozen = true;
	store->backend->ops->relieve(store->backend);
}

static uint64_t slot_hash(void *context, uint32_t index)
{
	return hash_u64(((const struct store *)context)->slots[index].name);
}

static const struct map_ops slot_ops = {.hash_of = slot_hash};

static struct store *store_new(struct backend *backend, const struct store_options *options)
{
	struct store *store = calloc(1, sizeof *store);
	if (!store)
		return NULL;
	store->backend = backend;
	store->rules = options->rules;
	store->retention = options->retention;
	store->opt_in_queues = options->opt_in_queues;
	store->boot_hi = options->boot_hi;
	store->boot_lo = options->boot_lo;
	store->grace = (struct grace){.started_ms = options->now.lease_ms, .woke_ms = INT64_MIN};
	rng_seed(&store->rng, options->seed);
	struct hash_key key = {rng_u64(&store->rng), rng_u64(&store->rng)};
	names_init(&store->names, key);
	hot_init(&store->hot, key, options->now.lease_ms);
	sessions_init(&store->sessions);
	map_init(&store->slot_by_name, &slot_ops, store);
	registrations_init(&store->registrations);
	turn_init(&store->turn, store);
	return store;
}

static void store_free(struct store *store)
{
	turn_done(&store->turn);
	hot_done(&store->hot);
	names_done(&store->names);
	free(store->queues);
	free(store->slots);
	map_done(&store->slot_by_name);
	registrations_done(&store->registrations);
	tokens_done(&store->credentials);
	sessions_done(&store->sessions);
	free(store);
}

int store_open(struct backend *backend, const struct store_options *options, struct store **ret_store)
{
	struct store *store = store_new(backend, options);
	if (!store)
		return -ENOMEM;
	int r = load_all(store, options);
	if (r == 0) {
		store->starts++;
		r = opening_turn(store, options->now);
		if (is_not_now(
			    r)) { /* a full disk: start with what the ballast gives, or wait for room and only read */
			degrade(store);
			r = opening_turn(store, options->now);
			r = is_not_now(r) ? 0 : r;
		}
	}
	if (r < 0) {
		store_free(store);
		return r;
	}
	*ret_store = store;
	return 0;
}

struct backend *store_abandon(struct store *store)
{
	struct backend *backend = store->backend;

	store_free(store);
	return backend;
}

void store_close(struct store *store)
{
	if (!store)
		return;
	struct backend *backend = store_abandon(store);
	backend->ops->close(backend);
}

/* ---- turns ---------------------------------------------------------------------------------------- */

/* A fault ended the turn; nothing of it happened. 0 if the store lives on. */
static int fail_turn(struct store *store, int fault)
{
	if (is_not_now(fault)) {
		degrade(store);
		return 0;
	}
	if (fault == -ENOMEM && !store->turn.in_commit)
		return 0; /* refused for now; after a commit has begun, what is on disk would be a guess */
	const char *why = store->backend->complaint;
	store->dead = true;
	snprintf(store->complaint, sizeof store->complaint,
		"the store failed (%s): nothing more is acknowledged", why ? why : strerror(-fault));
	return fault;
}

/* A renewal lives in memory alone, so a full disk does not stop it. */
static bool needs_no_disk(const struct store *store, const struct command *command)
{
	const struct command_beat *beat = &command->beat;

	if (!store->started) /* a token must not be given out before its start is on disk */
		return false;
	if (command->kind != COMMAND_BEAT || beat->describes || beat->bound.count + beat->unbound.count > 0)
		return false;
	uint32_t number = hot_find_holder(&store->hot, command->worker);
	return number != 0 && worker_is_alive(&hot_holder(&store->hot, number)->worker);
}

static void refuse_all(struct result *results, uint32_t count)
{
	for (uint32_t i = 0; i < count; i++)
		results[i] = (struct result){.refusal = REFUSED_UNAVAILABLE};
}

static int run_commands(
	struct turn *turn, const struct command *commands, uint32_t count, struct result *ret_results)
{
	for (uint32_t i = 0; i < count; i++) {
		if (turn->memory_only && !needs_no_disk(turn->store, &commands[i])) {
			ret_results[i] = (struct result){.refusal = REFUSED_UNAVAILABLE};
			continue;
		}
		int r = command_run(turn, &commands[i], &ret_results[i]);
		if (r < 0)
			return r;
	}
	return 0;
}

int store_turn(struct store *store, struct moment now, const struct command *commands, uint32_t count,
	struct result *ret_results)
{
	struct turn *turn = &store->turn;

	assert(count <= STORE_COMMANDS_MAX);
	if (store->dead)
		return -EIO;
	turn_begin(turn, now);
	turn->memory_only = store->degraded;
	int r = store->degraded ? 0 : timers_run(turn);
	if (r == 0)
		r = run_commands(turn, commands, count, ret_results);
	if (r < 0)
		turn_abort(turn);
	else
		r = turn_commit(turn);
	turn->memory_only = false;
	if (r == 0)
		return 0;
	refuse_all(ret_results, count);
	return fail_turn(store, r);
}

int64_t store_idle_ms(const struct store *store, struct moment now)
{
	const struct heap_entry *next = heap_peek(&store->hot.wall_timers);
	int64_t lease_idle_ms = wheel_idle_ms(&store->hot.lease_timers, now.lease_ms);
	int64_t wall_idle_ms = INT64_MAX;

	if (store->degraded)
		return INT64_MAX; /* nothing happens by itself until there is room again */
	if (next)
		wall_idle_ms = larger(0, next->at - now.wall_ms);
	return lease_idle_ms < wall_idle_ms ? lease_idle_ms : wall_idle_ms;
}

void store_woke(struct store *store, struct moment now)
{
	store->grace.woke_ms = now.lease_ms;
}

bool store_is_degraded(const struct store *store)
{
	return store->degraded;
}

bool store_is_dead(const struct store *store)
{
	return store->dead;
}

const char *store_complaint(const struct store *store)
{
	return store->dead ? store->complaint : store->backend->complaint;
}

/* ---- upkeep --------------------------------------------------------------------------------------- */

/* How many rows one sweep looks at. On a full disk fewer: what a sweep writes must fit into the ballast. */
static uint32_t step_of(const struct store *store)
{
	return store->degraded && store->retention.step > DEGRADED_STEP ? DEGRADED_STEP
									: store->retention.step;
}

/* Renewals that moved the deadline far enough to be worth writing. */
static int write_renewals(struct turn *turn)
{
	const struct hot *hot = &turn->store->hot;
	int r = 0;

	for (uint32_t number = hot_next_holder(hot, 0); r == 0 && number != 0;
		number = hot_next_holder(hot, number)) {
		if (!hot_holder(hot, number)->stale_on_disk)
			continue;
		struct turn_worker *view = turn_worker_by_number(turn, number);
		r = view ? turn_store_worker(turn, view) : -ENOMEM;
	}
	return r;
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
	bool old = row->updated_ms + retention->final_ms <= purge->turn->given.now.wall_ms;
	if (old || (int64_t)purge->count < purge->surplus)
		purge->seqs[purge->count++] = row->task.seq;
	return 0;
}

/* Final tasks that are old, or too many: a few rows at a time, round and round. */
static int purge_tasks(struct turn *turn)
{
	struct store *store = turn->store;
	struct backend *backend = store->backend;
	uint32_t step = step_of(store);
	struct purge purge = {.turn = turn, .surplus = store->finals - (int64_t)store->retention.finals_max};
	struct turn_task *view;
	struct record record;

	purge.seqs = arena_alloc(&turn->arena, step * sizeof *purge.seqs);
	if (!purge.seqs)
		return -ENOMEM;
	int r = backend->ops->page_tasks(backend, store->purge_cursor, step, purge_look, &purge);
	if (r < 0)
		return r;
	store->purge_cursor = purge.seen < step ? 0 : purge.last;
	for (uint32_t i = 0; r == 0 && i < purge.count; i++) {
		r = turn_task(turn, purge.seqs[i], &view);
		if (r < 0)
			return r;
		struct task_decision decision = task_purge(&view->task, &turn->given);
		turn_record(turn, &record, decision.event);
		r = turn_stage_task(turn, view, &decision, &record);
	}
	if (r == 0 && purge.count > 0) /* no number is given out twice */
		r = backend->ops->put_meta(backend, META_TASK_FLOOR, turn->last_task);
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
	struct backend *backend = turn->store->backend;
	struct record record;
	struct fold fold = {0};
	struct span base;

	int r = record_decode(seq, data, &record);
	if (r < 0)
		return r;
	bool old = record.wall_ms + turn->store->retention.event_ms <= turn->given.now.wall_ms;
	if (!old && compaction->surplus == 0)
		return 1;
	compaction->surplus -= compaction->surplus > 0;
	compaction->upto = seq;
	if (record.task == 0)
		return 0;
	r = turn_write(turn);
	if (r < 0)
		return r;
	if (record.kind == EVENT_TASK_PURGED) /* its baseline goes with it */
		return backend->ops->delete_base(backend, record.task);
	r = backend->ops->get_base(backend, record.task, &turn->arena, &base);
	if (r == 0)
		r = fold_decode(record.task, base, &fold);
	if (r < 0 && r != -ENOENT)
		return r;
	fold_apply(&fold, &record);
	buf_clear(&turn->record);
	r = fold_encode(&fold, &turn->record);
	return r < 0 ? r : backend->ops->put_base(backend, record.task, buf_span(&turn->record));
}

static int compact_events(struct turn *turn)
{
	struct store *store = turn->store;
	struct backend *backend = store->backend;
	int64_t kept = store->last_event - store->event_base;
	int64_t surplus = kept - (int64_t)store->retention.events_max;
	struct compaction compaction = {.turn = turn, .surplus = surplus > 0 ? (uint32_t)surplus : 0};

	int r = backend->ops->page_events(
		backend, store->event_base, step_of(store), compact_event, &compaction);
	if (r < 0 || compaction.upto == 0)
		return r < 0 ? r : 0;
	r = turn_write(turn);
	if (r == 0)
		r = backend->ops->delete_events(backend, compaction.upto);
	if (r == 0)
		r = backend->ops->put_meta(backend, META_EVENT_BASE, compaction.upto);
	return r < 0 ? r : (int)(compaction.upto - store->event_base);
}

/* Dead keys are remembered for a while, so that whoever comes back under one is told. */
static int forget_workers(struct turn *turn, uint32_t *ret_dropped, uint32_t limit, uint32_t *ret_count)
{
	struct store *store = turn->store;
	const struct hot *hot = &store->hot;
	bool crowded = pool_used(&hot->holders) - hot->workers_alive > store->retention.dead_workers_max;
	int r = 0;

	*ret_count = 0;
	for (uint32_t number = hot_next_holder(hot, 0); r == 0 && number != 0;
		number = hot_next_holder(hot, number)) {
		const struct holder *holder = hot_holder(hot, number);
		bool gone = holder->worker.state == WORKER_INACTIVE && holder->worker.held == 0;
		bool old = holder->ended_ms + store->retention.dead_worker_ms <= turn->given.now.wall_ms;
		if (!gone || !(old || crowded) || *ret_count == limit)
			continue;
		r = turn_write(turn);
		if (r == 0)
			r = store->backend->ops->delete_worker(store->backend, holder_id(holder));
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
		if (token_ended_ms(token, now_ms) <= now_ms - store->retention.ended_token_ms)
			*ret_token = token;
	}
	if (!*ret_token)
		return 0;
	int r = turn_write(turn);
	return r < 0 ? r : store->backend->ops->delete_token(store->backend, (*ret_token)->id);
}

static int forget_requests(struct turn *turn)
{
	struct store *store = turn->store;
	int64_t before_ms = turn->given.now.wall_ms - store->retention.idempotency_ms;
	int r = turn->begun ? 0 : turn_write(turn);

	return r < 0 ? r
		     : store->backend->ops->delete_idems(store->backend, before_ms, store->retention.step);
}

/* One transaction of housekeeping. Each part is small and starts where the last sweep ended. */
static int keep_house(struct store *store, struct moment now)
{
	struct turn *turn = &store->turn;
	uint32_t dropped[64], dropped_count = 0;
	int64_t cursor = store->purge_cursor;
	const struct token *token = NULL;

	turn_begin(turn, now);
	int r = write_renewals(turn);
	if (r == 0)
		r = purge_tasks(turn);
	if (r == 0)
		r = missing_sweep(turn, step_of(store));
	int compacted = r == 0 ? compact_events(turn) : r;
	if (compacted >= 0)
		r = forget_workers(turn, dropped, 64, &dropped_count);
	else
		r = compacted;
	if (r == 0)
		r = forget_token(turn, &token);
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
	for (uint32_t i = 0; i < dropped_count; i++)
		hot_drop_holder(&store->hot, dropped[i]);
	if (token)
		tokens_drop(&store->credentials, token->id);
	return 0;
}

/* There is room again: say so, and give everyone time to be heard. */
static int come_back(struct store *store, struct moment now)
{
	struct turn *turn = &store->turn;
	struct record record;

	int r = store->started ? 0 : opening_turn(store, now);
	if (r < 0)
		return r;
	turn_begin(turn, now);
	turn_record(turn, &record, EVENT_SERVER_DEGRADED);
	r = turn_stage_event(turn, &record);
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

bool store_has_chores(const struct store *store)
{
	int64_t kept = store->last_event - store->event_base;

	return !store->degraded &&
		(store->finals > (int64_t)store->retention.finals_max ||
			kept > (int64_t)store->retention.events_max);
}

int store_sweep(struct store *store, struct moment now)
{
	if (store->dead)
		return -EIO;
	int r = keep_house(store, now);
	if (r == 0)
		r = store->backend->ops->checkpoint(store->backend, true);
	if (r == 0 && store->degraded) {
		r = store->backend->ops->reserve(store->backend);
		if (r == 0)
			r = come_back(store, now);
	}
	return r < 0 ? fail_turn(store, r) : 0;
}

int store_checkpoint(struct store *store)
{
	if (store->dead)
		return -EIO;
	int r = store->backend->ops->checkpoint(store->backend, false);
	return r < 0 ? fail_turn(store, r) : 0;
}

/* ---- backup ---------------------------------------------------------------------------------------- */

int store_backup_begin(struct store *store, const char *path)
{
	if (store->backing_up)
		return -EALREADY;
	int r = store->backend->ops->backup_begin(store->backend, path);
	store->backing_up = r == 0;
	return r;
}

int store_backup_step(struct store *store, uint32_t pages, uint32_t *ret_remaining)
{
	assert(store->backing_up);
	return store->backend->ops->backup_step(store->backend, pages, ret_remaining);
}

void store_backup_end(struct store *store)
{
	if (store->backing_up)
		store->backend->ops->backup_end(store->backend);
	store->backing_up = false;
}
