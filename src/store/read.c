/*
 * Reading from a store, between turns: one task, pages of tasks and events, and what is known in memory.
 */
#include <assert.h>
#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/base36.h"
#include "store/store.h"
#include "store/turn.h"

enum {
	QUEUES_TOLD_MAX = 1000,
	LOOKS_MAX = 50000, /* at tasks or workers, for figures: about a millisecond */
	QUEUES_TOLD_CELLS = 2048,
};

int store_load_task(struct store *store, int64_t seq, struct arena *arena, struct task *ret_task)
{
	struct task_row row;
	uint32_t slot = hot_find(&store->hot, seq);

	if (slot != MAP_NONE) {
		hot_get(&store->hot, slot, ret_task);
		return 0;
	}
	int r = store->backend->ops->get_task(store->backend, seq, arena, &row);
	if (r == 0) {
		*ret_task = row.task;
		ret_task->updated_ms = row.updated_ms;
	}
	return r;
}

/* The memory has everything about a live task but this: it is for people, and would cost each waiting task room. */
static int load_updated(struct store *store, struct arena *arena, struct task *task)
{
	struct task_row row;
	int r = task->updated_ms != 0 ? 0
				      : store->backend->ops->get_task(store->backend, task->seq, arena, &row);

	if (r == 0 && task->updated_ms == 0)
		task->updated_ms = row.updated_ms;
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
	r = store_load_task(store, seq, &arena, &task);
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

/* When, a space, and the session: see EXTRA_RECOVERED. */
static void take_moment(struct span kept, int64_t *ret_when_ms, struct span *ret_session)
{
	size_t at = 0;

	for (; at < kept.len && kept.data[at] >= '0' && kept.data[at] <= '9'; at++)
		*ret_when_ms = *ret_when_ms * 10 + (kept.data[at] - '0');
	if (at < kept.len)
		*ret_session = (struct span){kept.data + at + 1, kept.len - at - 1};
}

/* Only tasks with an owner have any. A failure counts as long as it is why the task is where it is; one that was lost
 * since then, and is in line again, is where it is because of that. */
static int read_moments(struct store *store, struct arena *arena, struct task_document *document)
{
	struct backend *backend = store->backend;
	const struct task *task = &document->task;
	struct span recovered = {0}, failed = {0};

	if (task->owner == 0)
		return 0;
	int r = backend->ops->get_extra(backend, task->seq, EXTRA_RECOVERED, 0, arena, &recovered);
	if (optional(r) < 0)
		return r;
	take_moment(recovered, &document->recovered_ms, &document->previous_session);
	if (task->code == CODE_NONE || (task->code == CODE_LEASE_LOST && task->state != TASK_FAILED))
		return 0;
	r = backend->ops->get_extra(backend, task->seq, EXTRA_FAILED, 0, arena, &failed);
	if (optional(r) < 0)
		return r;
	take_moment(failed, &document->failed_ms, &document->failed_session);
	return 0;
}

bool last_holder_is_shown(enum task_state state)
{
	return task_state_is_final(state) || state == TASK_REVIEW;
}

struct span last_holder_put(const struct last_holder *last, char text[LAST_HOLDER_BYTES_MAX])
{
	int len = snprintf(text, LAST_HOLDER_BYTES_MAX, "%lld %lld %.*s", (long long)last->claimed_ms,
		(long long)last->until_ms, SPAN_ARGS(last->worker));

	assert(len > 0 && len < LAST_HOLDER_BYTES_MAX);
	return (struct span){text, (size_t)len};
}

static int read_last_holder(
	struct store *store, const struct task *task, struct arena *arena, struct last_holder *ret_last)
{
	struct backend *backend = store->backend;
	long long claimed_ms, until_ms;
	struct span kept;
	char text[LAST_HOLDER_BYTES_MAX];
	int used;

	if (!last_holder_is_shown(task->state))
		return 0;
	int r = backend->ops->get_extra(backend, task->seq, EXTRA_LAST_HOLDER, 0, arena, &kept);
	if (r < 0)
		return optional(r);
	snprintf(text, sizeof text, "%.*s", SPAN_ARGS(kept));
	if (sscanf(text, "%lld %lld%n", &claimed_ms, &until_ms, &used) != 2 || text[used++] != ' ')
		return -EPROTO;
	*ret_last = (struct last_holder){{kept.data + used, kept.len - (size_t)used}, claimed_ms, until_ms};
	return 0;
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
		{EXTRA_EVIDENCE, &document->evidence},
		{EXTRA_SESSION, &document->session},
	};

	for (size_t i = 0; i < sizeof extras / sizeof *extras; i++) {
		int r = backend->ops->get_extra(backend, seq, extras[i].kind, 0, arena, extras[i].into);
		if (optional(r) < 0)
			return r;
	}
	int r = read_moments(store, arena, document);
	if (r < 0)
		return r;
	return document->task.claim.reported
		? backend->ops->get_extra(backend, seq, EXTRA_REPORT, 0, arena, &document->report)
		: 0;
}

int store_read_task(struct store *store, int64_t seq, struct moment now, struct arena *arena,
	struct task_document *ret_document)
{
	struct given given = {.rules = &store->rules, .now = now, .grace = store->grace};
	struct task_document document = {0};
	struct task *task = &document.task;

	int r = store_load_task(store, seq, arena, task);
	if (r < 0)
		return r;
	r = load_updated(store, arena, task);
	if (r == 0)
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

int store_read_last(struct store *store, struct arena *arena, struct task_document *document)
{
	struct backend *backend = store->backend;
	int r = backend->ops->get_extra(backend, document->task.seq, EXTRA_WORDS, 0, arena, &document->words);

	return optional(r) < 0 ? r : read_last_holder(store, &document->task, arena, &document->last);
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

	task.updated_ms = row->updated_ms;
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

/* The places of a page: from `*at` on. The position moves to their end, or to 0 behind the last one. */
static uint32_t places_end(uint32_t *at, uint32_t limit, uint32_t high)
{
	uint32_t end = *at < high && high - *at > limit ? *at + limit : high;

	*at = end < high ? end : 0;
	return end;
}

int store_page_open(const struct store *store, uint32_t *at, uint32_t limit,
	int (*each)(void *context, const struct task_outline *outline), void *context)
{
	const struct hot *hot = &store->hot;
	uint32_t slot = *at, end = places_end(at, limit, hot_slots(hot));
	struct task_outline outline;
	int r = 0;

	for (; r == 0 && slot < end; slot++) {
		if (hot_outline(hot, slot, &outline))
			r = each(context, &outline);
	}
	return r;
}

struct final_page {
	int (*each)(void *context, const struct task_outline *outline);
	void *context;
	uint32_t looked_at;
	int64_t before;
};

static int look_at_outline(void *context, const struct task_outline *outline)
{
	struct final_page *page = context;

	page->looked_at++;
	page->before = outline->seq;
	return task_state_is_final(outline->state) ? page->each(page->context, outline) : 0;
}

int store_page_final(struct store *store, int64_t *before, uint32_t limit,
	int (*each)(void *context, const struct task_outline *outline), void *context)
{
	struct final_page page = {.each = each, .context = context};
	struct backend *backend = store->backend;

	int r = backend->ops->page_outlines(backend, *before, limit, look_at_outline, &page);
	*before = r == 0 && page.looked_at < limit ? 0 : page.before;
	return r;
}

struct row_page {
	int (*each)(void *context, const struct task_outline *outline);
	void *context;
	uint32_t looked_at;
	int64_t last;
};

static int look_at_row(void *context, const struct task_outline *outline)
{
	struct row_page *page = context;

	page->looked_at++;
	page->last = outline->seq;
	return page->each(page->context, outline);
}

static int look_at_task(void *context, const struct task_row *row)
{
	const struct task *task = &row->task;
	struct task_outline outline = {
		task->seq, task->created_ms, task->queue, task->owner, task->priority, task->state};

	return look_at_row(context, &outline);
}

int store_page_rows(struct store *store, bool oldest_first, int64_t *at, uint32_t limit,
	int (*each)(void *context, const struct task_outline *outline), void *context)
{
	struct row_page page = {.each = each, .context = context};
	struct backend *backend = store->backend;
	int r = oldest_first ? backend->ops->page_tasks(backend, *at, limit, look_at_task, &page)
			     : backend->ops->page_outlines(backend, *at, limit, look_at_row, &page);

	*at = r == 0 && page.looked_at < limit ? (oldest_first ? INT64_MAX : 0) : page.last;
	return r;
}

int store_assignment(struct store *store, struct span slot, struct arena *arena, struct span *ret_queues)
{
	uint32_t name = names_find(&store->names, slot);

	return name == 0 ? -ENOENT
			 : store->backend->ops->get_assignment(store->backend, name, arena, ret_queues);
}

struct assignment_page {
	const struct store *store;
	int (*each)(void *context, struct span slot, struct span queues);
	void *context;
	uint32_t looked_at;
	int64_t last;
};

static int page_assignment(void *context, int64_t slot, struct span queues)
{
	struct assignment_page *page = context;

	page->looked_at++;
	page->last = slot;
	return page->each(page->context, names_text(&page->store->names, (uint32_t)slot), queues);
}

int store_page_assignments(struct store *store, int64_t *after, uint32_t limit,
	int (*each)(void *context, struct span slot, struct span queues), void *context)
{
	struct assignment_page page = {.store = store, .each = each, .context = context};
	int r = store->backend->ops->page_assignments(store->backend, *after, limit, page_assignment, &page);

	*after = r == 0 && page.looked_at < limit ? 0 : page.last;
	return r;
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

uint64_t store_worker_changes(const struct store *store)
{
	return store->worker_changes;
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

bool store_opts_in(const struct store *store, uint32_t queue)
{
	const char *at = store->opt_in_queues ? store->opt_in_queues : "";
	struct span name = names_text(&store->names, queue);

	for (; *at; at += strspn(at, " ")) {
		struct span opted = {at, strcspn(at, " ")};
		if (span_equal(opted, name) || span_equal(opted, SPAN("*")))
			return true;
		at += opted.len;
	}
	return false;
}

bool store_is_armed(const struct store *store, int64_t *ret_since_ms)
{
	if (ret_since_ms)
		*ret_since_ms = store->execution_ms;
	return !store->disarmed;
}

uint32_t store_generation(const struct store *store)
{
	return store->generation;
}

const char *store_kind(const struct store *store)
{
	return store->backend->ops->name;
}

uint32_t store_schema(const struct store *store)
{
	return store->backend->schema;
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

int store_page_workers(const struct store *store, uint32_t *at, uint32_t limit,
	int (*each)(void *context, struct span id, const struct worker *worker), void *context)
{
	const struct hot *hot = &store->hot;
	uint32_t before = *at, end = places_end(at, limit, pool_high(&hot->holders));
	int r = 0;

	for (uint32_t number = before + 1; r == 0 && number <= end; number++) {
		const struct holder *holder = hot_holder(hot, number);
		if (holder->worker.handle == number) /* not free */
			r = each(context, holder_id(holder), &holder->worker);
	}
	return r;
}

int store_read_worker(const struct store *store, struct span id, struct worker_document *ret_document)
{
	uint32_t number = hot_find_holder(&store->hot, id);

	if (number == 0)
		return -ENOENT;
	const struct holder *holder = hot_holder(&store->hot, number);
	const struct slot *slot = store_find_slot(store, holder->worker.slot);
	*ret_document = (struct worker_document){
		.id = holder_id(holder),
		.worker = holder->worker,
		.metadata = {holder->metadata, holder->metadata_len},
		.instance = holder->instance,
		.restarts = slot ? slot->restarts : 0,
		.ended_ms = holder->worker.state == WORKER_INACTIVE ? holder->ended_ms : 0,
	};
	return 0;
}

int store_each_held(
	struct store *store, struct span worker, int (*each)(void *context, struct span id), void *context)
{
	const struct hot *hot = &store->hot;
	uint32_t number = hot_find_holder(hot, worker), at = MAP_NONE;
	struct arena arena;
	struct task task;
	struct span id;
	int64_t seq;
	int r = number == 0 ? -ENOENT : 0;

	arena_init(&arena, 1 << 20);
	while (r == 0 && (at = hot_next_claim(hot, hot_holder(hot, number), at, &seq)) != MAP_NONE) {
		hot_get(hot, hot_find(hot, seq), &task);
		r = store_task_id(store, &task, &arena, &id);
		if (r == 0)
			r = each(context, id);
		arena_reset(&arena);
	}
	arena_done(&arena);
	return r;
}

int store_each_worker(const struct store *store,
	int (*each)(void *context, struct span id, const struct worker *worker), void *context)
{
	uint32_t at = 0;

	return store_page_workers(store, &at, UINT32_MAX, each, context);
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

/* A slot that somebody fills (a number of a holder), or that has a history (an entry of store->slots), or both. */
struct known_slot {
	struct span name;
	uint32_t holder;
	const struct slot *slot;
};

static int by_name(const void *a, const void *b)
{
	return span_compare(((const struct known_slot *)a)->name, ((const struct known_slot *)b)->name);
}

static uint32_t gather_slots(const struct store *store, struct known_slot *known)
{
	const struct hot *hot = &store->hot;
	uint32_t count = 0;

	for (uint32_t i = 0; i < store->slot_count; i++)
		known[count++] = (struct known_slot){
			names_text(&store->names, store->slots[i].name), 0, &store->slots[i].slot};
	for (uint32_t number = hot_next_holder(hot, 0); number != 0; number = hot_next_holder(hot, number)) {
		const struct worker *worker = &hot_holder(hot, number)->worker;
		if (worker->slot != 0 && worker_is_alive(worker))
			known[count++] =
				(struct known_slot){names_text(&store->names, worker->slot), number, NULL};
	}
	qsort(known, count, sizeof *known, by_name);
	return count;
}

/* All entries of one name are one slot; how many there are of it. */
static uint32_t join_slot(const struct store *store, const struct known_slot *known, uint32_t count,
	struct slot_document *ret_slot)
{
	uint32_t i = 0;

	*ret_slot = (struct slot_document){.name = known[0].name};
	slot_init(&ret_slot->slot);
	for (; i < count && span_equal(known[i].name, known[0].name); i++) {
		if (known[i].slot)
			ret_slot->slot = *known[i].slot;
		if (known[i].holder != 0) {
			const struct holder *holder = hot_holder(&store->hot, known[i].holder);
			ret_slot->worker = holder_id(holder);
			ret_slot->filler = &holder->worker;
		}
	}
	return i;
}

int store_each_slot(const struct store *store, int (*each)(void *context, const struct slot_document *slot),
	void *context)
{
	struct known_slot *known = calloc(store->slot_count + store->hot.workers_alive + 1, sizeof *known);
	struct slot_document slot;
	int r = 0;

	if (!known)
		return -ENOMEM;
	uint32_t count = gather_slots(store, known);
	for (uint32_t i = 0; r == 0 && i < count;) {
		i += join_slot(store, &known[i], count - i, &slot);
		r = each(context, &slot);
	}
	free(known);
	return r;
}

bool store_slot(const struct store *store, struct span name, struct slot *ret_slot)
{
	uint32_t number = names_find(&store->names, name);
	const struct slot *slot = number != 0 ? store_find_slot(store, number) : NULL;

	if (slot)
		*ret_slot = *slot;
	return slot != NULL;
}

int store_read_slot(const struct store *store, struct span name, struct slot_document *ret_slot)
{
	uint32_t number = names_find(&store->names, name);
	uint32_t filler = number != 0 ? hot_first_in_slot(&store->hot, number) : 0;
	struct slot_document document = {.name = name};

	slot_init(&document.slot);
	if (!store_slot(store, name, &document.slot) && filler == 0)
		return -ENOENT;
	if (filler != 0) {
		document.worker = holder_id(hot_holder(&store->hot, filler));
		document.filler = &hot_holder(&store->hot, filler)->worker;
	}
	*ret_slot = document;
	return 0;
}

int store_query(struct store *store, struct question *question)
{
	return store->backend->ops->query(store->backend, question);
}

/* ---- why ------------------------------------------------------------------------------------------- */

static void look_at_worker(const struct store *store, const struct task *task, const struct name_set *needed,
	const struct holder *holder, struct surroundings *around)
{
	const struct worker *worker = &holder->worker;
	struct name_set has;

	around->known = around->known || worker->state != WORKER_UNKNOWN;
	if (worker->state != WORKER_ACTIVE)
		return;
	around->workers++;
	if (!hot_may_serve(holder, task->queue))
		return;
	around->serving++;
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

/* Quarantined, and not just before its trial: then the next one is let in. */
static bool is_shut(const struct slot *slot, const struct given *given, int64_t *ret_trial_at_ms)
{
	uint32_t trial_ms = given->rules->quarantine_trial_ms;
	int64_t left_ms = slot->since_ms + trial_ms - given->now.lease_ms;

	if (slot_state_now(slot, given) != SLOT_QUARANTINED || (trial_ms > 0 && left_ms <= 0))
		return false;
	*ret_trial_at_ms = trial_ms > 0 ? given->now.wall_ms + left_ms : 0;
	return true;
}

static void look_at_owner(const struct store *store, const struct task *task, const struct given *given,
	struct surroundings *around)
{
	const struct slot *slot = task->owner != 0 ? store_find_slot(store, task->owner) : NULL;

	around->owner_quarantined = slot && is_shut(slot, given, &around->trial_at_ms);
}

/* Is it the supervisor whose places are called so: by its slot, or by the name in front of its id? */
static bool is_called(const struct store *store, const struct holder *holder, struct span name)
{
	struct span id = holder_id(holder);

	if (holder->worker.slot != 0)
		return span_equal(names_text(&store->names, holder->worker.slot), name);
	return id.len > name.len + 1 && memcmp(id.data, name.data, name.len) == 0 &&
		id.data[name.len] == '-' && !memchr(id.data + name.len + 1, '-', id.len - name.len - 1);
}

/* A live worker that takes work of its queue, and has places of that name. */
static bool stands_behind(const struct store *store, const struct task *task, struct span name)
{
	const struct hot *hot = &store->hot;

	for (uint32_t number = hot_next_holder(hot, 0); number != 0; number = hot_next_holder(hot, number)) {
		const struct holder *holder = hot_holder(hot, number);
		if (holder->worker.state == WORKER_ACTIVE && hot_may_serve(holder, task->queue) &&
			is_called(store, holder, name))
			return true;
	}
	return false;
}

/* A worker does not claim what its pool cannot begin. The server knows of such a pool the places that are quarantined, if the task
 * names no executor of every pool that may be meant. */
static void look_at_pools(const struct store *store, const struct task *task, const struct given *given,
	struct surroundings *around)
{
	struct span wanted =
		task->executor != 0 ? names_text(&store->names, task->executor) : (struct span){0};
	struct span worker, executor;

	for (uint32_t i = 0; store->quarantined > 0 && i < store->slot_count && around->pool_slot == 0; i++) {
		const struct turn_slot *slot = &store->slots[i];
		if (slot->slot.state == SLOT_QUARANTINED &&
			slot_split_pool(names_text(&store->names, slot->name), &worker, &executor) &&
			(wanted.len == 0 || span_equal(executor, wanted)) &&
			is_shut(&slot->slot, given, &around->trial_at_ms) &&
			stands_behind(store, task, worker))
			around->pool_slot = slot->name;
	}
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
		around.disarmed = store->disarmed;
		around.opted_in = store_opts_in(store, task->queue);
		around.read_only = store->degraded;
		around.asked_for = served_lately(&store->served, task->queue, now.lease_ms);
		look_at_owner(store, task, &given, &around);
		for (uint32_t number = hot_next_holder(hot, 0); number != 0;
			number = hot_next_holder(hot, number))
			look_at_worker(store, task, &needed, hot_holder(hot, number), &around);
		if (around.idle > 0)
			look_at_pools(store, task, &given, &around);
	}
	return task_why(task, &around, &given);
}

/* ---- figures --------------------------------------------------------------------------------------- */

uint64_t store_rescheduled(const struct store *store)
{
	return store->rescheduled;
}

uint64_t store_reschedule_errors(const struct store *store, enum reschedule_error type)
{
	return store->unscheduled[type];
}

uint64_t store_registrations_refused(const struct store *store)
{
	return store->registrations_refused;
}

uint32_t store_workers(const struct store *store, enum worker_state state)
{
	return store->hot.workers[state];
}

uint32_t store_slots_quarantined(const struct store *store)
{
	return store->quarantined;
}

/* Whoever has not been heard since the start is as old as people's clock says. */
int64_t store_heartbeat_age_max_ms(const struct store *store, struct moment now)
{
	uint32_t number = hot_longest_unheard(&store->hot);
	int64_t age_ms = 0;

	if (number != 0) {
		const struct worker *worker = &hot_holder(&store->hot, number)->worker;
		age_ms = worker->heard_ms != INT64_MIN ? now.lease_ms - worker->heard_ms
						       : now.wall_ms - worker->last_beat_ms;
	}
	return age_ms > 0 ? age_ms : 0;
}

const struct times *store_wait_times(const struct store *store)
{
	return &store->wait_times;
}

const struct times *store_run_times(const struct store *store)
{
	return &store->run_times;
}

/* Since when the longest waiting task of each tally is ready. */
static void find_oldest(const struct store *store, int64_t oldest_ms[QUEUES_TOLD_MAX])
{
	const struct lanes *lanes = &store->hot.lanes;
	const struct stand *stand = NULL;
	uint32_t looks = LOOKS_MAX;

	for (uint32_t i = 0; i < QUEUES_TOLD_MAX; i++)
		oldest_ms[i] = INT64_MAX;
	while ((stand = lanes_next_stand(lanes, stand))) {
		uint32_t at = hot_find_tally(&store->hot, stand->queue);
		if (at >= QUEUES_TOLD_MAX)
			continue;
		for (struct lane *lane = lanes_first(lanes, stand); lane; lane = lanes_next(lanes, lane)) {
			int64_t ready_ms = lane->key.pending ? INT64_MAX
							     : hot_oldest_ready_ms(&store->hot, lane, &looks);
			if (ready_ms < oldest_ms[at])
				oldest_ms[at] = ready_ms;
		}
	}
}

int store_each_queue_figures(const struct store *store,
	int (*each)(void *context, const struct queue_figures *figures), void *context)
{
	const struct queue_tally *tally;
	int64_t oldest_ms[QUEUES_TOLD_MAX];
	int r = 0;

	find_oldest(store, oldest_ms);
	for (uint32_t i = 0; r == 0 && i < QUEUES_TOLD_MAX && (tally = hot_tally(&store->hot, i)); i++) {
		struct queue_figures figures = {
			.name = names_text(&store->names, tally->queue),
			.count = tally->count,
			.came = tally->came,
			.oldest_ready_ms = oldest_ms[i],
		};
		r = each(context, &figures);
	}
	return r;
}

/* The ready tasks of a lane have one reason in common, and its first one is asked for it. */
static uint32_t count_ready_reasons(struct store *store, struct moment now, uint32_t *counts)
{
	const struct lanes *lanes = &store->hot.lanes;
	const struct stand *stand = NULL;
	uint32_t asked = 0, unasked = 0, count;
	struct task task;

	while ((stand = lanes_next_stand(lanes, stand))) {
		for (struct lane *lane = lanes_first(lanes, stand); lane; lane = lanes_next(lanes, lane)) {
			if (lane->key.pending || lane->total == 0)
				continue;
			asked += 1 + store->hot.workers_alive;
			if (asked > LOOKS_MAX) {
				unasked += lane->total;
				continue;
			}
			hot_get(&store->hot, lane_piece(lane, 0, &count)[0], &task);
			counts[store_why(store, &task, now).why] += lane->total;
		}
	}
	return unasked;
}

uint32_t store_count_reasons(struct store *store, struct moment now, uint32_t ret_counts[WHY_COUNT])
{
	const struct hot *hot = &store->hot;

	memset(ret_counts, 0, WHY_COUNT * sizeof *ret_counts);
	ret_counts[WHY_PARKED] = hot->count[TASK_PENDING];
	ret_counts[WHY_SCHEDULED] = hot->count[TASK_SCHEDULED] - hot->backing_off;
	ret_counts[WHY_BACKING_OFF] = hot->backing_off;
	ret_counts[WHY_DEPENDENCY] = hot->count[TASK_WAITING];
	ret_counts[WHY_ASKING] = hot->count[TASK_ASKING] - hot->asking_to_stop;
	ret_counts[WHY_REVIEW] = hot->count[TASK_REVIEW];
	ret_counts[WHY_BLOCKED] = hot->count[TASK_BLOCKED];
	return count_ready_reasons(store, now, ret_counts);
}

/* Queues as they were met, and cells that find them by their number: there may be many more stands than queues. */
struct queue_board {
	struct {
		uint32_t name, waiting;
		enum queue_state state;
	} rows[QUEUES_TOLD_MAX];
	uint32_t count;
	uint16_t cells[QUEUES_TOLD_CELLS]; /* 1 + row; 0: empty */
};

/* The row of that queue; QUEUES_TOLD_MAX: there is no room for another. */
static uint32_t board_row(struct queue_board *board, uint32_t name)
{
	uint32_t cell = (uint32_t)hash_u64(name) % QUEUES_TOLD_CELLS;

	while (board->cells[cell] != 0 && board->rows[board->cells[cell] - 1].name != name)
		cell = (cell + 1) % QUEUES_TOLD_CELLS;
	if (board->cells[cell] != 0)
		return board->cells[cell] - 1u;
	if (board->count == QUEUES_TOLD_MAX)
		return QUEUES_TOLD_MAX;
	board->rows[board->count].name = name;
	board->rows[board->count].state = QUEUE_OPEN;
	board->cells[cell] = (uint16_t)++board->count;
	return board->count - 1;
}

static void board_waiting(struct queue_board *board, const struct lanes *lanes)
{
	const struct stand *stand = NULL;

	while ((stand = lanes_next_stand(lanes, stand))) {
		uint32_t row = board_row(board, stand->queue);
		if (row == QUEUES_TOLD_MAX)
			continue;
		for (struct lane *lane = lanes_first(lanes, stand); lane; lane = lanes_next(lanes, lane))
			board->rows[row].waiting += lane->key.pending ? 0 : lane->total;
	}
}

int store_each_queue(const struct store *store,
	int (*each)(void *context, struct span name, enum queue_state state, uint32_t waiting), void *context)
{
	struct queue_board board = {.count = 0};
	int r = 0;

	board_waiting(&board, &store->hot.lanes);
	for (uint32_t i = 0; i < store->queue_count; i++) {
		uint32_t row = board_row(&board, store->queues[i].name);
		if (row < QUEUES_TOLD_MAX)
			board.rows[row].state = store->queues[i].state;
	}
	for (uint32_t i = 0; r == 0 && i < board.count; i++)
		r = each(context, names_text(&store->names, board.rows[i].name), board.rows[i].state,
			board.rows[i].waiting);
	return r;
}
