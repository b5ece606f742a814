/*
 * Opening a store: everything that lives in memory is made from the rows, and a turn of its own notes the start. After a
 * reboot that turn rebases the leases, after a restore it sets all claims free.
 */
#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "base/take.h"
#include "store/command/commands.h"
#include "store/command/keys.h"
#include "store/read/sound.h"
#include "store/record/bulk.h"
#include "store/record/schedule.h"
#include "store/record/small.h"
#include "store/turn/turn.h"

enum {
	RESTORED_LINE_BYTES = 2000, /* of the ids of tokens in an event: about a hundred */
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
				.audit_max = 1000000,
				.idempotency_ms = DAY_MS,
				.dead_worker_ms = 7 * DAY_MS,
				.dead_workers_max = 100000,
				.ended_token_ms = 30 * DAY_MS,
				.step = 500,
			},
	};
}

static int64_t larger(int64_t a, int64_t b)
{
	return a > b ? a : b;
}

struct opening {
	struct store *store;
	struct given given;
};

static int load_name(void *context, const struct name_row *row)
{
	struct store *store = ((struct opening *)context)->store;
	int r = names_load(&store->names, row->id, row->text, row->principal);

	return r == -EPROTO ? store_damaged(store, "name", row->id) : r;
}

static int load_worker(void *context, const struct worker_row *row)
{
	struct opening *opening = context;
	struct index *index = &opening->store->index;
	struct worker worker = row->worker;
	bool added;

	if (!worker_row_is_sound(&opening->store->names, row))
		return store_damaged(opening->store, "worker", row->instance);
	if (worker.state == WORKER_UNKNOWN)
		return 0; /* it is known by its claims alone */
	uint32_t number = index_make_holder(index, row->id, &added);
	if (number == 0)
		return -ENOMEM;
	worker.handle = number;
	worker.held = 0;
	worker.heard_ms = INT64_MIN;
	worker.stored_deadline_ms = worker.lease.deadline_ms;
	/* renewals may have been heard and not written: it gets what it may have had, and a full lease to be heard in */
	worker.lease.deadline_ms = larger(worker.lease.deadline_ms + opening->given.rules->restart_grace_ms,
		opening->given.now.lease_ms + worker.lease.granted_ms);
	int r = index_reserve(index, 1);
	if (r < 0)
		return r;
	char *metadata = row->metadata.data ? index_copy(row->metadata) : NULL;
	if (row->metadata.data && !metadata)
		return -ENOMEM;
	index_holder(index, number)->instance = row->instance;
	index_set_worker(index, &worker, (struct span){metadata, row->metadata.len}, &opening->given);
	index_holder(index, number)->ended_ms = row->ended_ms;
	return 0;
}

static int load_task(void *context, const struct task_row *row)
{
	struct opening *opening = context;
	struct index *index = &opening->store->index;
	struct task task = row->task;

	task.claim.holder = 0;
	if (row->holder.len > 0) {
		bool added;
		task.claim.holder = index_make_holder(index, row->holder, &added);
		if (task.claim.holder == 0)
			return -ENOMEM;
		struct worker *worker = &index_holder(index, task.claim.holder)->worker;
		if (added) /* it never registered: it belongs to whose claims it holds */
			worker->principal = task.claimant;
		worker->held++;
	}
	if (!task_row_is_sound(&opening->store->names, row, &task))
		return store_damaged(opening->store, "task", task.seq);
	struct lane *lane;
	int r = index_reserve(index, 1);
	if (r == 0)
		r = index_reserve_lane(index, MAP_NONE, &task, &lane);
	if (r == 0)
		index_set(index, MAP_NONE, &task, lane, &opening->given);
	return r;
}

static int load_group(void *context, struct span key, struct span data)
{
	struct store *store = ((struct opening *)context)->store;
	struct group_state group;

	if (key.len == 0 || key.len > COMMAND_NAME_MAX || !small_group_read(data, &group) ||
		groups_find_number(&store->groups, group.number))
		return store_damaged(store, "small", SMALL_GROUP);
	int r = groups_reserve(&store->groups, 1);
	char *name = r == 0 ? index_copy(key) : NULL;
	if (!name)
		return -ENOMEM;
	groups_add(&store->groups, group.number, (struct span){name, key.len})->group = group;
	return 0;
}

static int load_edge(void *context, const struct edge_row *row)
{
	struct store *store = ((struct opening *)context)->store;
	struct index *index = &store->index;

	if (row->done)
		return 0;
	if (row->parent < 0) {
		struct known_group *group = groups_find_number(&store->groups, group_of_edge(row->parent));
		if (group)
			group->waiters++;
		return 0;
	}
	uint32_t place = index_find(index, row->parent);

	if (place == MAP_NONE)
		return 0;
	int r = index_reserve(index, 1);
	if (r == 0)
		index_set_children(index, row->parent, index_children(index, place) + 1);
	return r;
}

/* The name that a small record is about, or 0. */
static uint32_t small_name(const struct store *store, struct span key)
{
	uint32_t name = names_find(&store->names, key);

	return name != 0 && names_have(&store->names, name) ? name : 0;
}

static int load_queue(void *context, struct span key, struct span data)
{
	struct store *store = ((struct opening *)context)->store;
	struct turn_queue queue = {.name = small_name(store, key)};

	if (queue.name == 0 || !small_queue_read(data, &queue.state))
		return store_damaged(store, "small", SMALL_QUEUE);
	int r = turn_grow(
		(void **)&store->queues, store->queue_count, &store->queue_cap, sizeof *store->queues);
	if (r == 0)
		store->queues[store->queue_count++] = queue;
	return r;
}

static int load_limits(void *context, struct span key, struct span data)
{
	struct store *store = ((struct opening *)context)->store;
	uint32_t queue = small_name(store, key);
	struct queue_limits limits;

	if (queue == 0 || !small_limits_read(data, &limits))
		return store_damaged(store, "small", SMALL_LIMITS);
	return limits_load(store, queue, &limits);
}

static int load_cap(void *context, struct span key, struct span data)
{
	struct store *store = ((struct opening *)context)->store;
	const char *cut = memchr(key.data, ASSIGNMENT_SEPARATOR, key.len);
	struct span name = {key.data, cut ? (size_t)(cut - key.data) : 0};
	uint32_t queue = cut ? small_name(store, name) : 0, most;

	if (queue == 0 || !small_cap_read(data, &most))
		return store_damaged(store, "small", SMALL_KEY_CAP);
	int r = limits_load_cap(store, queue, (struct span){cut + 1, key.len - name.len - 1}, most);
	return r == -EPROTO ? store_damaged(store, "small", SMALL_KEY_CAP) : r;
}

static int load_bucket(void *context, struct span key, struct span data)
{
	struct store *store = ((struct opening *)context)->store;
	const char *cut = memchr(key.data, ASSIGNMENT_SEPARATOR, key.len);
	struct span name = {key.data, cut ? (size_t)(cut - key.data) : 0};
	uint32_t queue = cut ? small_name(store, name) : 0;
	uint64_t number = 0;
	int64_t due_ns;

	if (queue == 0 || key.len - name.len != 17 || !small_bucket_read(data, &due_ns))
		return store_damaged(store, "small", SMALL_BUCKET);
	for (int i = 1; i <= 16; i++) {
		int digit = hex_digit(cut[i]);
		if (digit < 0)
			return store_damaged(store, "small", SMALL_BUCKET);
		number = number << 4 | (uint64_t)digit;
	}
	return rates_load(store, queue, number, due_ns);
}

static int load_slot(void *context, struct span key, struct span data)
{
	struct store *store = ((struct opening *)context)->store;
	struct turn_slot slot = {.name = small_name(store, key)};

	if (slot.name == 0 || !small_slot_read(data, &slot.slot) || !slot_is_sound(&slot.slot))
		return store_damaged(store, "small", SMALL_SLOT);
	int r = store_reserve_slots(store, 1);
	if (r == 0)
		store_set_slot(store, &slot);
	return r;
}

/* What was asked for; its state comes with the rows of the other kind. */
static int load_schedule(void *context, struct span key, struct span data)
{
	struct store *store = ((struct opening *)context)->store;
	static const struct schedule_state none;
	struct definition *definition;
	struct command_create template;
	struct schedule schedule;
	struct arena arena;

	arena_init(&arena, 1 << 20);
	int r = schedule_read(data, &schedule);
	if (r == 0)
		r = template_read(schedule.template, &arena, &template);
	arena_done(&arena);
	schedule.id = key;
	if (r == 0 && (key.len == 0 || key.len > COMMAND_ID_MAX))
		r = -EPROTO;
	if (r == 0)
		r = schedules_reserve(&store->schedules, 1);
	if (r == 0)
		r = definition_new(&store->schedules, &schedule, &definition);
	if (r == 0)
		schedules_set(&store->schedules, definition, &none);
	return r == -EPROTO ? store_damaged(store, "small", SMALL_SCHEDULE) : r;
}

static int load_schedule_state(void *context, struct span key, struct span data)
{
	struct store *store = ((struct opening *)context)->store;
	struct known_schedule *known = schedules_find(&store->schedules, key);
	struct schedule_state state;

	if (!known || known->state.version != 0 || schedule_state_read(data, &state) < 0 ||
		state.version <= 0)
		return store_damaged(store, "small", SMALL_SCHEDULE_STATE);
	schedules_set(&store->schedules, definition_use(known->definition), &state);
	return 0;
}

static int load_schedules(struct store *store, struct opening *opening)
{
	const struct span first = {0};
	int r = store_rows(store, page_small, SMALL_SCHEDULE, first, UINT32_MAX, load_schedule, opening);

	if (r == 0)
		r = store_rows(store, page_small, SMALL_SCHEDULE_STATE, first, UINT32_MAX,
			load_schedule_state, opening);
	for (uint32_t i = 0; r == 0 && i < store->schedules.count; i++) {
		if (store->schedules.items[i]->state.version == 0)
			r = store_damaged(store, "small", SMALL_SCHEDULE_STATE);
	}
	return r;
}

/* What was asked for; how far it is comes with the rows of the other kind. */
static int load_bulk(void *context, struct span key, struct span data)
{
	struct store *store = context;
	struct known_bulk *known;
	struct arena arena;
	struct bulk bulk;

	arena_init(&arena, 1 << 20);
	int r = bulk_row_read(data, &arena, &bulk);
	bulk.number = bulk_id_read(key);
	if (r == 0 && (bulk.number == 0 || store->bulks.count == BULKS_KEPT_MAX))
		r = -EPROTO;
	if (r == 0)
		r = bulk_new(&bulk, &known);
	arena_done(&arena);
	if (r == 0)
		bulks_add(&store->bulks, known);
	return r == -EPROTO ? store_damaged(store, "small", SMALL_BULK) : r;
}

static int load_bulk_state(void *context, struct span key, struct span data)
{
	struct store *store = context;
	struct known_bulk *known = bulks_find(&store->bulks, bulk_id_read(key));

	if (!known || known->progress.state != 0 || bulk_progress_read(data, &known->progress) < 0)
		return store_damaged(store, "small", SMALL_BULK_STATE);
	return 0;
}

static int load_bulks(struct store *store)
{
	const struct span first = {0};
	int r = store_rows(store, page_small, SMALL_BULK, first, UINT32_MAX, load_bulk, store);

	if (r == 0)
		r = store_rows(
			store, page_small, SMALL_BULK_STATE, first, UINT32_MAX, load_bulk_state, store);
	for (uint32_t i = 0; r == 0 && i < store->bulks.count; i++) {
		if (store->bulks.items[i]->progress.state == 0)
			r = store_damaged(store, "small", SMALL_BULK_STATE);
	}
	return r;
}

static int load_hold(void *context, struct span key, struct span data)
{
	struct store *store = ((struct opening *)context)->store;
	struct turn_hold hold = {.credential = small_name(store, key)};

	if (hold.credential == 0 || !small_hold_read(data, &hold.hold))
		return store_damaged(store, "small", SMALL_HOLD);
	int r = turn_grow(
		(void **)&store->holds, store->hold_count + 1, &store->hold_cap, sizeof *store->holds);
	if (r == 0)
		store->holds[store->hold_count++] = hold;
	return r;
}

static int load_budget(void *context, struct span key, struct span data)
{
	struct store *store = ((struct opening *)context)->store;
	struct day_budget budget;
	bool is_known = key.len > 1 && (key.data[0] == 'q' || key.data[0] == 'a');
	uint32_t name = is_known ? small_name(store, (struct span){key.data + 1, key.len - 1}) : 0;

	if (name == 0 || !small_day_budget_read(data, &budget))
		return store_damaged(store, "small", SMALL_DAY_BUDGET);
	return budgets_load(store, key, &budget, name);
}

static int load_telling(void *context, struct span key, struct span data)
{
	(void)data;
	return telling_load(((struct opening *)context)->store, key);
}

/* In the order of their ids: the newest one has the highest number. */
static int load_key(void *context, struct span id, struct span data)
{
	struct store *store = ((struct opening *)context)->store;
	struct signing_keys *keys = &store->facts.keys;
	struct signing_key key;

	if (keys->count == SIGNING_KEYS_MAX || !small_key_read(id, data, &key))
		return store_damaged(store, "secret", SMALL_SIGNING_KEY);
	uint32_t place = keys->count > 0 && keys->items[0].number > key.number ? 1 : 0;
	if (place == 0)
		keys->items[1] = keys->items[0];
	keys->items[place] = key;
	keys->count++;
	return 0;
}

static int load_token(void *context, const struct token *token)
{
	struct store *store = ((struct opening *)context)->store;
	int r = tokens_reserve(&store->credentials, 1);
	struct token *copy = r == 0 ? token_copy(token) : NULL;

	if (!copy)
		return -ENOMEM;
	tokens_set(&store->credentials, copy);
	return 0;
}

/* Beside the row of its token. */
static int load_token_more(void *context, struct span id, struct span data)
{
	struct store *store = ((struct opening *)context)->store;
	struct token *token = tokens_at(&store->credentials, id);

	if (!token || !small_token_read(data, &token->more) || !token_is_sound(token))
		return store_damaged(store, "small", SMALL_TOKEN);
	return 0;
}

static int load_login(void *context, struct span key, struct span data)
{
	struct store *store = ((struct opening *)context)->store;
	struct browser_login login;

	if (!small_login_read(key, data, &login))
		return store_damaged(store, "small", SMALL_LOGIN);
	int r = logins_reserve(&store->logins, 1);
	if (r == 0)
		logins_set(&store->logins, &login);
	return r;
}

/* The facts: what each is before it was ever written, and what it may be. */
static const struct fact_range {
	int64_t otherwise, least, most;
} fact_ranges[META_KEY_COUNT] = {
	[META_GENERATION] = {1, 1, STORE_GENERATION_MAX},
	[META_STARTS] = {0, 0, STORE_STARTS_MAX},
	[META_TASK_FLOOR] = {0, 0, SOUND_NUMBER_MAX},
	[META_EVENT_BASE] = {0, 0, SOUND_NUMBER_MAX},
	[META_RESTORED] = {0, INT64_MIN, INT64_MAX},
	[META_BOOT_HI] = {0, INT64_MIN, INT64_MAX},
	[META_BOOT_LO] = {0, INT64_MIN, INT64_MAX},
	[META_PRINCIPALS] = {PRINCIPAL_FIRST, PRINCIPAL_FIRST, UINT32_MAX - 1},
	[META_EXECUTION] = {EXECUTION_UNTOUCHED, INT64_MIN, INT64_MAX},
	[META_EXECUTION_MS] = {0, -SOUND_NUMBER_MAX, SOUND_NUMBER_MAX},
	[META_STORE_HI] = {0, INT64_MIN, INT64_MAX},
	[META_STORE_LO] = {0, INT64_MIN, INT64_MAX},
	[META_UNSEALED_TASK] = {-1, -1, SOUND_NUMBER_MAX},
	[META_UNSEALED_EVENT] = {-1, -1, SOUND_NUMBER_MAX},
	[META_KEY_OF_ADMIN] = {0, 0, 1},
	[META_GROUPS] = {0, 0, UINT32_MAX - 1},
	[META_BULKS] = {0, 0, UINT32_MAX / 2},
};

static int read_facts(struct store *store, int64_t ret_values[META_KEY_COUNT])
{
	for (int key = 1; key < META_KEY_COUNT; key++) {
		const struct fact_range *range = &fact_ranges[key];
		int r = store_rows(store, get_meta, (enum meta_key)key, &ret_values[key]);
		if (r == -ENOENT)
			ret_values[key] = range->otherwise;
		else if (r < 0)
			return r;
		if (ret_values[key] < range->least || ret_values[key] > range->most)
			return store_damaged(store, "meta", key);
	}
	return 0;
}

static int load_facts(struct store *store, const struct backend_facts *facts)
{
	int64_t values[META_KEY_COUNT];
	int r = read_facts(store, values);

	if (r < 0)
		return r;
	if (facts->last_event < 0 || facts->last_event > SOUND_NUMBER_MAX)
		return store_damaged(store, "event", facts->last_event);
	if (facts->last_task < 0 || facts->last_task > SOUND_NUMBER_MAX)
		return store_damaged(store, "task", facts->last_task);
	int64_t restored = values[META_RESTORED], starts = values[META_STARTS];
	store->event_base = values[META_EVENT_BASE];
	store->facts.last_event = larger(facts->last_event, store->event_base);
	store->facts.last_task = larger(facts->last_task, values[META_TASK_FLOOR]);
	store->facts.last_principal = (uint32_t)values[META_PRINCIPALS];
	store->facts.last_group = (uint32_t)values[META_GROUPS];
	store->facts.last_bulk = (uint32_t)values[META_BULKS];
	store->facts.disarmed = !execution_is_armed(values[META_EXECUTION]);
	store->facts.execution_ms = values[META_EXECUTION_MS];
	store->facts.shadow_ids = facts->shadow_ids;
	store->facts.finals = (int64_t)facts->finals;
	store->generation = (uint32_t)values[META_GENERATION];
	store->starts = (uint64_t)starts;
	store->admin.has_signed = values[META_KEY_OF_ADMIN] != 0;
	store->id_hi = (uint64_t)values[META_STORE_HI];
	store->id_lo = (uint64_t)values[META_STORE_LO];
	store->restored = restored == RESTORED_NOT || restored == RESTORED ? (enum restored)restored
									   : RESTORED_OVER_DISARMED;
	store->rebooted = starts > 0 &&
		((uint64_t)values[META_BOOT_HI] != store->boot_hi ||
			(uint64_t)values[META_BOOT_LO] != store->boot_lo);
	return 0;
}

/* Everything that lives in memory, from the rows. */
static int load_all(struct store *store, const struct store_options *options)
{
	const struct backend_ops *ops = store->backend->ops;
	const struct span first = {0};
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
	if (r == 0)
		r = index_build(&store->index);
	if (r == 0)
		r = ops->page_small(store->backend, SMALL_GROUP, first, UINT32_MAX, load_group, &opening);
	if (r == 0)
		r = ops->scan_edges(store->backend, load_edge, &opening);
	if (r == 0)
		r = ops->page_small(store->backend, SMALL_QUEUE, first, UINT32_MAX, load_queue, &opening);
	if (r == 0)
		r = ops->page_small(store->backend, SMALL_LIMITS, first, UINT32_MAX, load_limits, &opening);
	if (r == 0)
		r = ops->page_small(store->backend, SMALL_KEY_CAP, first, UINT32_MAX, load_cap, &opening);
	store->rates_ms = options->now.wall_ms;
	if (r == 0)
		r = ops->page_small(store->backend, SMALL_BUCKET, first, UINT32_MAX, load_bucket, &opening);
	if (r == 0)
		r = ops->page_small(store->backend, SMALL_SLOT, first, UINT32_MAX, load_slot, &opening);
	if (r == 0)
		r = ops->page_small(store->backend, SMALL_LOGIN, first, UINT32_MAX, load_login, &opening);
	if (r == 0)
		r = load_schedules(store, &opening);
	if (r == 0)
		r = load_bulks(store);
	if (r == 0)
		r = ops->page_small(store->backend, SMALL_HOLD, first, UINT32_MAX, load_hold, &opening);
	store->budgets_ms = options->now.wall_ms;
	if (r == 0)
		r = ops->page_small(
			store->backend, SMALL_DAY_BUDGET, first, UINT32_MAX, load_budget, &opening);
	if (r == 0)
		r = ops->page_small(store->backend, SMALL_TOLD, first, UINT32_MAX, load_telling, &opening);
	if (r == 0)
		r = ops->scan_tokens(store->backend, load_token, &opening);
	if (r == 0)
		r = ops->page_small(
			store->backend, SMALL_TOKEN, first, UINT32_MAX, load_token_more, &opening);
	for (uint32_t i = 0; r == 0 && i < store->credentials.count; i++) {
		if (!token_is_sound(store->credentials.items[i])) /* a join code without its row */
			r = store_damaged(store, "small", SMALL_TOKEN);
	}
	if (r == 0)
		r = ops->page_small(store->backend, SMALL_SIGNING_KEY, first, UINT32_MAX, load_key, &opening);
	if (r == 0)
		r = sessions_load(store);
	if (r == 0)
		r = workflows_load(store, options);
	if (r < 0)
		return r;
	r = index_loaded(&store->index);
	if (r == 0)
		r = load_facts(store, &facts);
	for (uint32_t number = 0; r == 0 && (number = index_next_holder(&store->index, number));)
		index_holder(&store->index, number)->notified_seq =
			store->facts.last_event; /* which events each worker knows is not kept */
	return r;
}

/* Decide something about every claim that is alive. */
static int each_claim(
	struct turn *turn, struct task_decision (*decide)(const struct task *, const struct given *))
{
	const struct index *index = &turn->store->index;
	struct held_tasks held;
	struct turn_task *view;
	int r = 0;

	for (uint32_t number = 0; r == 0 && (number = index_next_holder(index, number)) != 0;) {
		struct turn_worker *worker = turn_worker_by_number(turn, number);
		r = worker ? turn_held_by(turn, worker, &held) : -ENOMEM;
		for (uint32_t i = 0; r == 0 && i < held.count; i++) {
			r = turn_task(turn, held.seqs[i], &view);
			if (r < 0)
				return r;
			struct task_decision decision = decide(&view->task, &turn->given);
			struct record record = turn_record(turn, decision.event);
			r = turn_write_task(turn, view, &decision, &record);
		}
	}
	return r;
}

/* The lease clock began again: every lease is granted anew, once. */
static int rebase_all(struct turn *turn)
{
	const struct index *index = &turn->store->index;
	int r = each_claim(turn, task_rebase);

	for (uint32_t number = 0; r == 0 && (number = index_next_holder(index, number)) != 0;) {
		struct turn_worker *view = turn_worker_by_number(turn, number);
		if (!view)
			return -ENOMEM;
		struct worker_decision decision = worker_rebase(&view->worker, &turn->given);
		struct record record = turn_record(turn, decision.event);
		r = turn_write_worker(turn, view, &decision, &record);
	}
	for (uint32_t i = 0; r == 0 && i < turn->store->slot_count; i++) {
		const struct turn_slot *slot = &turn->store->slots[i];
		struct slot rebased = slot_rebase(&slot->slot, &turn->given);
		struct record record = turn_record(turn, EVENT_NONE);
		r = turn_write_slot(turn, slot->name, &rebased, EVENT_NONE, &record);
	}
	return r;
}

/* All claims, then their holders: each worker has to stop what it runs and come back under another key. */
static int void_all(struct turn *turn)
{
	const struct index *index = &turn->store->index;
	int r = each_claim(turn, task_void);

	for (uint32_t number = 0; r == 0 && (number = index_next_holder(index, number)) != 0;) {
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
	struct execution_decision decision = execution_set(!turn->store->facts.disarmed, false);

	if (decision.event == EVENT_NONE)
		return 0;
	struct record record = turn_record(turn, decision.event);
	return turn_write_execution(turn, decision.execution, &record);
}

/* Which tokens came back and which are gone, in words: "came ID ID", "went ID", "ended ID", "unknown", each on a line. */
struct restored_tokens {
	struct turn *turn;
	struct buf lines[RESTORED_TOKEN_ENDED + 1];
};

static int note_token(void *context, struct span id, struct span data)
{
	static const char *const words[] = {"unknown", "came", "went", "ended"};
	struct restored_tokens *tokens = context;
	int what = data.len > 0 ? data.data[0] - '0' : -1;

	if (what < RESTORED_TOKEN_UNKNOWN || what > RESTORED_TOKEN_ENDED)
		return store_damaged(tokens->turn->store, "small", SMALL_RESTORED);
	struct buf *line = &tokens->lines[what];
	if (line->len == 0)
		buf_put(line, words[what], strlen(words[what]));
	if (id.len > 0 && line->len + 1 + id.len < line->max) { /* a longer list is cut */
		buf_put_byte(line, ' ');
		buf_put(line, id.data, id.len);
	}
	return buf_fault(line);
}

static int forget_restored(void *context, struct span id, struct span data)
{
	struct restored_tokens *tokens = context;
	struct buf *ids = &tokens->lines[0];

	(void)data;
	buf_put_bytes(ids, id);
	return buf_fault(ids);
}

/* A record that was told is not told again. They are deleted behind the scan that finds them. */
static int drop_restored(struct turn *turn)
{
	struct restored_tokens tokens = {.turn = turn};
	struct reader reader;

	buf_init(&tokens.lines[0], STORE_TOKENS_MAX * 2 * (COMMAND_ID_MAX + 4));
	int r = store_rows(turn->store, page_small, SMALL_RESTORED, (struct span){"", 0}, UINT32_MAX,
		forget_restored, &tokens);
	reader_init(&reader, buf_span(&tokens.lines[0]));
	while (r == 0 && reader.at < reader.end) {
		struct span id = reader_bytes(&reader);
		r = turn_put(turn, delete_small, SMALL_RESTORED, id);
	}
	buf_done(&tokens.lines[0]);
	return r;
}

static int tell_restored(struct turn *turn, struct buf *note)
{
	struct restored_tokens tokens = {.turn = turn};

	for (int i = 0; i <= RESTORED_TOKEN_ENDED; i++)
		buf_init(&tokens.lines[i], RESTORED_LINE_BYTES);
	int r = store_rows(turn->store, page_small, SMALL_RESTORED, (struct span){"", 0}, UINT32_MAX,
		note_token, &tokens);
	for (int i = 0; i <= RESTORED_TOKEN_ENDED; i++) {
		if (r == 0 && tokens.lines[i].len > 0) {
			buf_put(note, tokens.lines[i].data, tokens.lines[i].len);
			buf_put_byte(note, '\n');
		}
		buf_done(&tokens.lines[i]);
	}
	return r < 0 ? r : buf_fault(note);
}

/* A failover of the database has lost turns: how many. */
static int tell_lost(struct turn *turn, struct buf *note)
{
	struct span lost;
	int r = store_rows(turn->store, get_small, SMALL_LOST, SPAN("turns"), &turn->arena, &lost);

	if (r < 0)
		return r == -ENOENT ? 0 : r;
	buf_printf(note, "lost %.*s\n", SPAN_ARGS(lost));
	return turn_put(turn, delete_small, SMALL_LOST, SPAN("turns"));
}

static int stage_restored(struct turn *turn)
{
	struct record record = turn_record(turn, EVENT_SERVER_RESTORED);
	cleanup(buf_done) struct buf note = {.max = (RESTORED_TOKEN_ENDED + 2) * (RESTORED_LINE_BYTES + 1)};

	record_fact(&record, FACT_GENERATION, turn->store->generation);
	int r = tell_restored(turn, &note);
	if (r == 0)
		r = tell_lost(turn, &note);
	record.note = buf_span(&note);
	if (r == 0)
		r = turn_write_event(turn, &record);
	if (r == 0)
		r = drop_restored(turn);
	if (r == 0 && turn->store->restored == RESTORED_OVER_DISARMED)
		r = stay_disarmed(turn);
	if (r == 0)
		r = schedules_begin_again(turn);
	if (r == 0)
		r = bulks_stop_all(turn);
	return r < 0 ? r : void_all(turn);
}

static int stage_start(struct turn *turn)
{
	struct store *store = turn->store;

	turn_put(turn, put_meta, META_STARTS, (int64_t)store->starts);
	turn_put(turn, put_meta, META_GENERATION, store->generation);
	turn_put(turn, put_meta, META_BOOT_HI, (int64_t)store->boot_hi);
	turn_put(turn, put_meta, META_BOOT_LO, (int64_t)store->boot_lo);
	turn_put(turn, put_meta, META_RESTORED, 0);
	if (store->id_hi == 0 && store->id_lo == 0) {
		store->id_hi = rng_u64(&store->rng);
		store->id_lo = rng_u64(&store->rng) | 1;
	}
	turn_put(turn, put_meta, META_STORE_HI, (int64_t)store->id_hi);
	turn_put(turn, put_meta, META_STORE_LO, (int64_t)store->id_lo);
	int r = workflows_keep(turn);
	if (r == 0 && store->restored != RESTORED_NOT)
		r = stage_restored(turn);
	if (r == 0)
		r = keys_start(turn);
	if (r == 0 && store->rebooted)
		r = rebase_all(turn);
	if (r < 0)
		return r;
	struct record record = turn_record(turn, EVENT_SERVER_STARTED);
	record_fact(&record, FACT_GENERATION, store->generation);
	record_fact(&record, FACT_START, (int64_t)store->starts);
	return turn_write_event(turn, &record);
}

int store_start(struct store *store, struct moment now)
{
	turn_begin(&store->turn, now);
	int r = stage_start(&store->turn);
	if (r < 0) {
		turn_abort(&store->turn);
		return r;
	}
	r = turn_commit(&store->turn);
	store->started = r == 0;
	if (r == 0)
		r = store_rows(store, mark);
	return fault_will_pass(r) && store->started ? 0 : r;
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
	store->actions = options->actions;
	store->boot_hi = options->boot_hi;
	store->boot_lo = options->boot_lo;
	store->random = options->random;
	memcpy(store->admin.hash, options->admin_hash, sizeof store->admin.hash);
	memcpy(store->admin.key, options->admin_key, sizeof store->admin.key);
	store->grace = (struct grace){.started_ms = options->now.lease_ms, .woke_ms = INT64_MIN};
	rng_seed(&store->rng, options->seed);
	struct hash_key key = {rng_u64(&store->rng), rng_u64(&store->rng)};
	names_init(&store->names, key);
	index_init(&store->index, key, options->now.lease_ms);
	store->index.age_ms = store->rules.queue_age_ms;
	sessions_init(&store->sessions);
	schedules_init(&store->schedules);
	groups_init(&store->groups);
	map_init(&store->slot_by_name, &slot_ops, store);
	limits_init(store);
	running_keys_init(store);
	rates_init(store);
	registrations_init(&store->registrations);
	stats_begin(&store->stats, options->now);
	turn_init(&store->turn, store);
	return store;
}

static void store_free(struct store *store)
{
	turn_done(&store->turn);
	index_done(&store->index);
	names_done(&store->names);
	free(store->queues);
	free(store->slots);
	free(store->holds);
	free(store->day_budgets);
	free(store->told_tasks);
	map_done(&store->slot_by_name);
	limits_done(store);
	rates_done(store);
	registrations_done(&store->registrations);
	tokens_done(&store->credentials);
	logins_done(&store->logins);
	sessions_done(&store->sessions);
	schedules_done(&store->schedules);
	bulks_done(&store->bulks);
	groups_done(&store->groups);
	free(store);
}

int store_open(struct backend *backend, const struct store_options *options, struct store **ret_store)
{
	struct store *store = store_new(backend, options);
	if (!store)
		return -ENOMEM;
	int r = load_all(store, options);
	if (r == 0 && !options->look_only) {
		store->starts++;
		r = store_start(store, options->now);
		if (fault_will_pass(r)) {
			/* a full disk: start with what the ballast gives, or wait for room and only read */
			store_degrade(store, r);
			r = store_start(store, options->now);
			r = fault_will_pass(r) ? 0 : r;
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
