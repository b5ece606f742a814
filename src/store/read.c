/*
 * Reading from a store, between turns: one task, pages of tasks and events, and what is known in memory.
 */
#include <assert.h>
#include <errno.h>
#include <string.h>

#include "base/base36.h"
#include "store/store.h"
#include "store/turn.h"

enum {
	QUEUES_TOLD_MAX = 1000,
};

/* A task as it was committed: from memory, or from disk if it is final. */
static int load_committed(struct store *store, int64_t seq, struct arena *arena, struct task *ret_task)
{
	struct task_row row;
	uint32_t slot = hot_find(&store->hot, seq);

	if (slot != MAP_NONE) {
		hot_get(&store->hot, slot, ret_task);
		return 0;
	}
	int r = store->backend->ops->get_task(store->backend, seq, arena, &row);
	if (r == 0)
		*ret_task = row.task;
	return r;
}

int store_find_task(struct store *store, struct span id, int64_t *ret_seq)
{
	struct backend *backend = store->backend;
	int64_t seq;
	bool generated = generated_id_seq(id, &seq) == 0;
	int r;

	if (!generated || store->shadow_ids > 0) {
		r = backend->ops->find_id(backend, id, ret_seq);
		if (r != -ENOENT || !generated)
			return r;
	}
	struct task task;
	struct arena arena;
	arena_init(&arena, 1 << 20);
	r = load_committed(store, seq, &arena, &task);
	arena_done(&arena);
	if (r == 0 && task.named_id)
		return -ENOENT;
	if (r == 0)
		*ret_seq = seq;
	return r;
}

static int optional(int fault)
{
	return fault == -ENOENT ? 0 : fault;
}

static int read_extras(struct store *store, int64_t seq, struct arena *arena, struct task_document *document)
{
	struct backend *backend = store->backend;
	const struct {
		enum extra_kind kind;
		struct span *into;
	} extras[] = {
		{EXTRA_RESULT, &document->result},
		{EXTRA_ERROR, &document->error},
		{EXTRA_CHECKPOINT, &document->checkpoint},
		{EXTRA_QUESTION, &document->question},
		{EXTRA_ANSWER, &document->answer},
	};

	for (size_t i = 0; i < sizeof extras / sizeof *extras; i++) {
		int r = backend->ops->get_extra(backend, seq, extras[i].kind, 0, arena, extras[i].into);
		if (optional(r) < 0)
			return r;
	}
	return 0;
}

int store_read_task(struct store *store, int64_t seq, struct moment now, struct arena *arena,
	struct task_document *ret_document)
{
	struct given given = {.rules = &store->rules, .now = now, .grace = store->grace};
	struct task_document document = {0};
	struct task *task = &document.task;

	int r = load_committed(store, seq, arena, task);
	if (r < 0)
		return r;
	r = store_task_id(store, task, arena, &document.id);
	if (r == 0 && task->claim.holder != 0) {
		const struct holder *holder = hot_holder(&store->hot, task->claim.holder);
		document.lease_ms = task_lease_remaining_ms(task, &holder->worker, &given);
		r = arena_copy(arena, holder_id(holder), &document.holder);
	}
	if (r == 0)
		r = store->backend->ops->get_body(store->backend, seq, arena, &document.body);
	if (r == 0)
		r = read_extras(store, seq, arena, &document);
	if (r == 0)
		*ret_document = document;
	return r;
}

int store_read_body(struct store *store, int64_t seq, struct arena *arena, struct span *ret_body)
{
	return store->backend->ops->get_body(store->backend, seq, arena, ret_body);
}

int store_each_member(
	const struct store *store, uint32_t set, int (*each)(void *context, struct span name), void *context)
{
	struct name_set members;
	int r = 0;

	names_set_members(&store->names, set, &members);
	for (uint32_t i = 0; r == 0 && i < members.count; i++)
		r = each(context, names_text(&store->names, members.ids[i]));
	return r;
}

struct page {
	struct store *store;
	int (*task)(void *context, const struct task *task, struct span holder);
	int (*event)(void *context, const struct record *record);
	void *context;
};

static int page_task(void *context, const struct task_row *row)
{
	const struct page *page = context;
	struct task task = row->task;

	if (row->holder.len > 0)
		task.claim.holder = hot_find_holder(&page->store->hot, row->holder);
	return page->task(page->context, &task, row->holder);
}

int store_page_tasks(struct store *store, int64_t after, uint32_t limit,
	int (*each)(void *context, const struct task *task, struct span holder), void *context)
{
	struct page page = {.store = store, .task = each, .context = context};

	return store->backend->ops->page_tasks(store->backend, after, limit, page_task, &page);
}

static int page_event(void *context, int64_t seq, struct span data)
{
	const struct page *page = context;
	struct record record;
	int r = record_decode(seq, data, &record);

	return r < 0 ? r : page->event(page->context, &record);
}

int store_page_events(struct store *store, int64_t after, uint32_t limit,
	int (*each)(void *context, const struct record *record), void *context)
{
	struct page page = {.store = store, .event = each, .context = context};

	if (after < store->event_base)
		return -ESTALE; /* never a silent skip */
	return store->backend->ops->page_events(store->backend, after, limit, page_event, &page);
}

int store_task_id(struct store *store, const struct task *task, struct arena *arena, struct span *ret_id)
{
	char text[2 + BASE36_MAX] = "t-";

	if (task->named_id)
		return store->backend->ops->get_extra(store->backend, task->seq, EXTRA_ID, 0, arena, ret_id);
	size_t len = base36_encode((uint64_t)task->seq, text + 2);
	return arena_copy(arena, (struct span){text, len + 2}, ret_id);
}

static bool knows(const uint32_t *queues, uint32_t count, uint32_t queue)
{
	for (uint32_t i = 0; i < count; i++) {
		if (queues[i] == queue)
			return true;
	}
	return false;
}

struct ready_work store_ready_work(const struct store *store, uint32_t *ret_queues, uint32_t max)
{
	const struct turn *turn = &store->turn;
	struct ready_work work = {0};

	for (uint32_t i = 0; i < turn->ready_count; i++) {
		const struct task *task = &turn->tasks[turn->ready[i]]->task;
		if (task->state != TASK_READY && task->state != TASK_PENDING)
			continue;
		work.tasks++;
		if (work.queue_count < max && !knows(ret_queues, work.queue_count, task->queue))
			ret_queues[work.queue_count++] = task->queue;
	}
	return work;
}

int64_t store_last_event(const struct store *store)
{
	return store->last_event;
}

uint64_t store_events_told(const struct store *store, enum event_kind kind)
{
	return store->told[kind];
}

int64_t store_event_base(const struct store *store)
{
	return store->event_base;
}

uint32_t store_generation(const struct store *store)
{
	return store->generation;
}

uint64_t store_starts(const struct store *store)
{
	return store->starts;
}

struct span store_name(const struct store *store, uint32_t number)
{
	return names_text(&store->names, number);
}

uint32_t store_count(const struct store *store, enum task_state state)
{
	assert(!task_state_is_final(state));
	return store->hot.count[state];
}

size_t store_timers(const struct store *store)
{
	return heap_count(&store->hot.wall_timers) + store->hot.lease_timers.count;
}

enum queue_state store_queue_state(const struct store *store, struct span queue)
{
	uint32_t name = names_find(&store->names, queue);

	for (uint32_t i = 0; i < store->queue_count; i++) {
		if (name != 0 && store->queues[i].name == name)
			return store->queues[i].state;
	}
	return QUEUE_OPEN;
}

bool store_worker(const struct store *store, struct span id, struct worker *ret_worker)
{
	uint32_t number = hot_find_holder(&store->hot, id);

	if (number == 0)
		return false;
	*ret_worker = hot_holder(&store->hot, number)->worker;
	return true;
}

struct span store_worker_id(const struct store *store, uint32_t handle)
{
	return holder_id(hot_holder(&store->hot, handle));
}

bool store_live_claim(const struct store *store, int64_t seq, struct task *ret_task, struct span *ret_holder)
{
	uint32_t slot = hot_find(&store->hot, seq);

	if (slot == MAP_NONE)
		return false;
	hot_get(&store->hot, slot, ret_task);
	if (!task_is_claimed(ret_task))
		return false;
	*ret_holder = store_worker_id(store, ret_task->claim.holder);
	return true;
}

int store_task_queue(struct store *store, int64_t seq, uint32_t *ret_queue)
{
	uint32_t slot = hot_find(&store->hot, seq);
	struct task_row row = {0};
	struct arena arena;
	int r = 0;

	if (slot != MAP_NONE) {
		hot_get(&store->hot, slot, &row.task);
	} else {
		arena_init(&arena, 4096);
		r = store->backend->ops->get_task(store->backend, seq, &arena, &row);
		arena_done(&arena);
	}
	if (r == 0)
		*ret_queue = row.task.queue;
	return r;
}

int store_each_worker(const struct store *store,
	int (*each)(void *context, struct span id, const struct worker *worker), void *context)
{
	const struct hot *hot = &store->hot;
	int r = 0;

	for (uint32_t number = hot_next_holder(hot, 0); r == 0 && number != 0;
		number = hot_next_holder(hot, number)) {
		const struct holder *holder = hot_holder(hot, number);
		r = each(context, holder_id(holder), &holder->worker);
	}
	return r;
}

const struct token *store_find_token(const struct store *store, struct span id)
{
	return tokens_find(&store->credentials, id);
}

int store_each_token(
	const struct store *store, int (*each)(void *context, const struct token *token), void *context)
{
	int r = 0;

	for (uint32_t i = 0; r == 0 && i < store->credentials.count; i++)
		r = each(context, store->credentials.items[i]);
	return r;
}

bool store_slot(const struct store *store, struct span name, struct slot *ret_slot)
{
	uint32_t number = names_find(&store->names, name);

	for (uint32_t i = 0; i < store->slot_count; i++) {
		if (number != 0 && store->slots[i].name == number) {
			*ret_slot = store->slots[i].slot;
			return true;
		}
	}
	return false;
}

/* ---- why ------------------------------------------------------------------------------------------- */

static void look_at_worker(const struct store *store, const struct task *task, const struct name_set *needed,
	const struct worker *worker, struct surroundings *around)
{
	struct name_set has;

	if (worker->state != WORKER_ACTIVE)
		return;
	around->known = true;
	around->workers++;
	names_set_members(&store->names, worker->capabilities, &has);
	if (!name_set_covers(&has, needed))
		return;
	around->capable++;
	names_set_members(&store->names, worker->executors, &has);
	if (task->executor != 0 && !worker->any_executor && !name_set_contains(&has, task->executor))
		return;
	around->executing++;
	if (task->owner != 0 && task->owner != worker->slot)
		return;
	around->owning++;
	around->idle += worker_may_claim(worker) == REFUSED_NOTHING;
}

struct reason store_why(struct store *store, const struct task *task, struct moment now)
{
	const struct hot *hot = &store->hot;
	struct given given = {.rules = &store->rules, .now = now, .grace = store->grace};
	struct surroundings around = {
		.queue = store_queue_state(store, names_text(&store->names, task->queue))};
	struct name_set needed;

	names_set_members(&store->names, task->requires, &needed);
	if (task->state == TASK_READY) {
		for (uint32_t number = hot_next_holder(hot, 0); number != 0;
			number = hot_next_holder(hot, number))
			look_at_worker(store, task, &needed, &hot_holder(hot, number)->worker, &around);
	}
	return task_why(task, &around, &given);
}

int store_each_queue(const struct store *store,
	int (*each)(void *context, struct span name, enum queue_state state, uint32_t waiting), void *context)
{
	const struct lanes *lanes = &store->hot.lanes;
	const struct stand *stand = NULL;
	struct {
		uint32_t name, waiting;
	} rows[QUEUES_TOLD_MAX];
	uint32_t count = 0;
	int r = 0;

	while ((stand = lanes_next_stand(lanes, stand))) {
		uint32_t i = 0;
		while (i < count && rows[i].name != stand->queue)
			i++;
		if (i == QUEUES_TOLD_MAX)
			continue;
		if (i == count) {
			rows[i].name = stand->queue;
			rows[count++].waiting = 0;
		}
		for (struct lane *lane = lanes_first(lanes, stand); lane; lane = lanes_next(lanes, lane))
			rows[i].waiting += lane->key.pending ? 0 : lane->total;
	}
	for (uint32_t j = 0; j < store->queue_count; j++) {
		uint32_t i = 0;
		while (i < count && rows[i].name != store->queues[j].name)
			i++;
		if (i == count && count < QUEUES_TOLD_MAX) {
			rows[i].name = store->queues[j].name;
			rows[count++].waiting = 0;
		}
	}
	for (uint32_t i = 0; r == 0 && i < count; i++) {
		struct span name = names_text(&store->names, rows[i].name);
		r = each(context, name, store_queue_state(store, name), rows[i].waiting);
	}
	return r;
}
