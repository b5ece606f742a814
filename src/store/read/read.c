/*
 * Reading from a store, between turns: one task, pages of tasks and events, and what is known in memory.
 */
#include <assert.h>
#include <errno.h>
#include <stdio.h>
#include <string.h>

#include "base/base36.h"
#include "store/read/sound.h"
#include "store/store.h"
#include "store/turn/turn.h"

int store_load_task(struct store *store, int64_t seq, struct arena *arena, struct task *ret_task)
{
	struct task_row row;
	uint32_t place = index_find(&store->index, seq);

	if (place != MAP_NONE) {
		index_get(&store->index, place, ret_task);
		return 0;
	}
	int r = store_get_final(store, seq, arena, &row);
	if (r == 0)
		*ret_task = row.task;
	return r;
}

int64_t store_age_ms(const struct store *store)
{
	return store->rules.queue_age_ms;
}

/* The memory has everything about a live task but this: it is for people, and would cost each waiting task room. */
static int load_updated(struct store *store, struct arena *arena, struct task *task)
{
	struct task_row row;
	int r = task->updated_ms != 0 ? 0 : store_rows(store, get_task, task->seq, arena, &row);

	if (r == 0 && task->updated_ms == 0)
		task->updated_ms = row.task.updated_ms;
	return r;
}

int store_find_task(struct store *store, struct span id, int64_t *ret_seq)
{
	int64_t seq;
	bool generated = generated_id_seq(id, &seq) == 0;
	int r;

	if (!generated || store->facts.shadow_ids > 0) {
		r = store_rows(store, find_id, id, ret_seq);
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

int store_get_kept(
	struct store *store, int64_t seq, enum extra_kind kind, struct arena *arena, struct span *ret_data)
{
	*ret_data = (struct span){0};
	int r = store_rows(store, get_extra, seq, kind, 0, arena, ret_data);
	return r == -ENOENT ? 0 : r;
}

/* When, a space, and the session: see EXTRA_RECOVERED. */
static void take_moment(struct span kept, int64_t *ret_when_ms, struct span *ret_session)
{
	uint64_t when_ms = 0; /* a damaged row may hold any number of digits */
	size_t at = 0;

	for (; at < kept.len && kept.data[at] >= '0' && kept.data[at] <= '9'; at++)
		when_ms = when_ms * 10 + (uint64_t)(kept.data[at] - '0');
	*ret_when_ms = (int64_t)when_ms;
	if (at < kept.len)
		*ret_session = (struct span){kept.data + at + 1, kept.len - at - 1};
}

/* Only tasks with an owner have any. A failure counts as long as it is why the task is where it is; one that was lost
 * since then, and is in line again, is where it is because of that. */
static int read_moments(struct store *store, struct arena *arena, struct task_document *document)
{
	const struct task *task = &document->task;
	struct span recovered, failed;

	if (task->owner == 0)
		return 0;
	int r = store_get_kept(store, task->seq, EXTRA_RECOVERED, arena, &recovered);
	if (r < 0)
		return r;
	take_moment(recovered, &document->recovered_ms, &document->previous_session);
	if (task->code == CODE_NONE ||
		(failure_code_class(task->code) == CLASS_CRASH && task->state != TASK_FAILED))
		return 0;
	r = store_get_kept(store, task->seq, EXTRA_FAILED, arena, &failed);
	if (r == 0)
		take_moment(failed, &document->failed_ms, &document->failed_session);
	return r;
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
	long long claimed_ms, until_ms;
	struct span kept;
	char text[LAST_HOLDER_BYTES_MAX];
	int used;

	if (!last_holder_is_shown(task->state))
		return 0;
	int r = store_rows(store, get_extra, task->seq, EXTRA_LAST_HOLDER, 0, arena, &kept);
	if (r < 0)
		return r == -ENOENT ? 0 : r;
	snprintf(text, sizeof text, "%.*s", SPAN_ARGS(kept));
	if (sscanf(text, "%lld %lld%n", &claimed_ms, &until_ms, &used) != 2 || text[used++] != ' ')
		return store_damaged(store, "task_extra", task->seq);
	*ret_last = (struct last_holder){{kept.data + used, kept.len - (size_t)used}, claimed_ms, until_ms};
	return 0;
}

/* How far its attempt is. What an attempt before it said is over. */
static int read_progress(struct store *store, struct arena *arena, struct task_document *document)
{
	char fence[24]; /* 20 digits, a space */
	struct span kept;
	int r = store_get_kept(store, document->task.seq, EXTRA_PROGRESS, arena, &kept);

	if (r < 0)
		return r;
	size_t len = (size_t)snprintf(fence, sizeof fence, "%llu ", (unsigned long long)document->task.fence);
	if (kept.len > len && memcmp(kept.data, fence, len) == 0)
		document->progress = (struct span){kept.data + len, kept.len - len};
	return 0;
}

static int read_extras(struct store *store, int64_t seq, struct arena *arena, struct task_document *document)
{
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
		int r = store_get_kept(store, seq, extras[i].kind, arena, extras[i].into);
		if (r < 0)
			return r;
	}
	struct questions questions = {0};
	int r = document->question.len > 0 ? questions_read(store, seq, arena, &questions) : 0;
	document->question_number = questions.last;
	struct tellings tellings = {0};
	if (r == 0)
		r = tellings_list(
			store, seq, arena, &tellings, &document->tellings, &document->first_telling);
	if (r == 0 && document->task.attempt > 0)
		r = usage_read(store, seq, arena, &document->usage);
	document->last_telling = tellings.last;
	document->heard_telling = tellings.heard;
	if (r == 0)
		r = read_moments(store, arena, document);
	if (r < 0)
		return r;
	if (document->task.claim.holder != 0)
		r = read_progress(store, arena, document);
	if (r < 0 || !document->task.claim.reported)
		return r;
	r = store_rows(store, get_extra, seq, EXTRA_REPORT, 0, arena, &document->report);
	return store_must_find(store, r, seq);
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
		const struct holder *holder = index_holder(&store->index, task->claim.holder);
		document.lease_ms = task_lease_remaining_ms(task, &holder->worker, &given);
		r = arena_copy(arena, holder_id(holder), &document.holder);
	}
	if (r == 0)
		r = store_must_find(store, store_rows(store, get_body, seq, arena, &document.body), seq);
	if (r == 0)
		r = read_extras(store, seq, arena, &document);
	if (r == 0)
		*ret_document = document;
	return r;
}

struct first_parent {
	bool dead;
	int64_t parent; /* 0: none yet */
};

enum {
	FOUND = 1,
};

static int take_parent(void *context, const struct edge_row *row)
{
	struct first_parent *first = context;

	if (row->done || (first->dead && !row->dead))
		return 0;
	first->parent = row->parent;
	return FOUND;
}

int store_first_parent(struct store *store, int64_t seq, bool dead, int64_t *ret_parent)
{
	struct first_parent first = {.dead = dead};
	int r = store_rows(store, parents, seq, take_parent, &first);

	if (r < 0)
		return r;
	if (first.parent == 0)
		return -ENOENT;
	*ret_parent = first.parent;
	return 0;
}

int store_read_last(struct store *store, struct arena *arena, struct task_document *document)
{
	int r = store_get_kept(store, document->task.seq, EXTRA_WORDS, arena, &document->words);

	return r < 0 ? r : read_last_holder(store, &document->task, arena, &document->last);
}

int store_read_columns(struct store *store, int64_t seq, struct arena *arena, struct task *ret_task)
{
	return store_load_task(store, seq, arena, ret_task);
}

int store_read_body(struct store *store, int64_t seq, struct arena *arena, struct span *ret_body)
{
	return store_rows(store, get_body, seq, arena, ret_body);
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
	const struct index *index = &store->index;
	uint32_t place = *at, end = places_end(at, limit, index_places(index));
	struct task_outline outline;
	int r = 0;

	for (; r == 0 && place < end; place++) {
		if (index_outline(index, place, &outline))
			r = each(context, &outline);
	}
	return r;
}

/* A page of rows, final or not. */
struct row_page {
	const struct store *store;
	int (*each)(void *context, const struct task_outline *outline);
	void *context;
	bool final_only;
	uint32_t looked_at;
	int64_t last;
};

static int look_at_outline(void *context, const struct task_outline *outline)
{
	struct row_page *page = context;

	page->looked_at++;
	page->last = outline->seq;
	if (!outline_is_sound(&page->store->names, outline))
		return store_damaged(page->store, "task", outline->seq);
	bool shown = !page->final_only || task_state_is_final(outline->state);
	return shown ? page->each(page->context, outline) : 0;
}

static int look_at_task(void *context, const struct task_row *row)
{
	struct task_outline outline = task_outline_of(&row->task);

	return look_at_outline(context, &outline);
}

int store_page_final(struct store *store, int64_t *before, uint32_t limit,
	int (*each)(void *context, const struct task_outline *outline), void *context)
{
	struct row_page page = {.store = store, .each = each, .context = context, .final_only = true};
	int r = store_rows(store, page_outlines, *before, limit, look_at_outline, &page);

	*before = r == 0 && page.looked_at < limit ? 0 : page.last;
	return r;
}

int store_page_rows(struct store *store, bool oldest_first, int64_t *at, uint32_t limit,
	int (*each)(void *context, const struct task_outline *outline), void *context)
{
	struct row_page page = {.store = store, .each = each, .context = context};
	int r = oldest_first ? store_rows(store, page_tasks, *at, limit, look_at_task, &page)
			     : store_rows(store, page_outlines, *at, limit, look_at_outline, &page);

	*at = r == 0 && page.looked_at < limit ? (oldest_first ? INT64_MAX : 0) : page.last;
	return r;
}

int store_assignment(struct store *store, struct span slot, struct arena *arena, struct span *ret_queues)
{
	return store_rows(store, get_small, SMALL_ASSIGNMENT, slot, arena, ret_queues);
}

struct assignment_page {
	const struct store *store;
	int (*each)(void *context, struct span slot, struct span queues);
	void *context;
	uint32_t looked_at;
	int64_t last;
};

static int page_assignment(void *context, struct span slot, struct span queues)
{
	struct assignment_page *page = context;

	page->looked_at++;
	page->last = names_find(&page->store->names, slot);
	return page->last != 0 ? page->each(page->context, slot, queues)
			       : store_damaged(page->store, "small", SMALL_ASSIGNMENT);
}

int store_page_assignments(struct store *store, int64_t *after, uint32_t limit,
	int (*each)(void *context, struct span slot, struct span queues), void *context)
{
	struct assignment_page page = {.store = store, .each = each, .context = context};
	struct span behind = names_text(&store->names, (uint32_t)*after);
	int r = store_rows(store, page_small, SMALL_ASSIGNMENT, behind, limit, page_assignment, &page);

	*after = r == 0 && page.looked_at < limit ? 0 : page.last;
	return r;
}

enum {
	NEXT_TRIES_MAX = 1000, /* packs in a row that are damaged */
};

struct event_page {
	const struct store *store;
	int64_t next;  /* the number that has to come */
	bool is_ended; /* by the caller */
	int (*each)(void *context, const struct record *record);
	void *context;
};

static int page_event(void *context, int64_t seq, struct span data)
{
	struct event_page *page = context;
	struct record record;
	int r = record_decode(seq, data, &record);

	if (r < 0 || seq != page->next)
		return store_damaged(page->store, "event", r < 0 ? seq : page->next);
	page->next++;
	r = page->each(page->context, &record);
	page->is_ended = r != 0;
	return r;
}

int store_page_events(struct store *store, int64_t after, uint32_t limit,
	int (*each)(void *context, const struct record *record), void *context)
{
	struct event_page page = {.store = store, .next = after + 1, .each = each, .context = context};

	if (after < store->event_base)
		return -ESTALE; /* never a silent skip */
	int r = store_rows(store, page_events, after, limit, page_event, &page);
	bool is_short = r == 0 && !page.is_ended && page.next - after - 1 < limit;
	return is_short && page.next <= store->facts.last_event ? store_damaged(store, "event", page.next)
								: r;
}

static int note_seq(void *context, int64_t seq, struct span data)
{
	(void)data;
	*(int64_t *)context = seq;
	return 1;
}

int64_t store_next_cursor(struct store *store, int64_t after)
{
	for (int i = 0; i < NEXT_TRIES_MAX; i++) {
		int64_t seq = 0;
		int r = store_rows(store, page_events, after, 1, note_seq, &seq);
		const struct damage *damage = &store->backend->last_damage;
		if (r == 1)
			return seq - 1;
		if (r != -EBADMSG || damage->row <= after)
			break;
		after = damage->row; /* of the pack: its last event */
	}
	return store->facts.last_event;
}

int store_task_id(struct store *store, const struct task *task, struct arena *arena, struct span *ret_id)
{
	char text[2 + BASE36_MAX] = "t-";

	if (task->named_id) {
		int r = store_rows(store, get_extra, task->seq, EXTRA_ID, 0, arena, ret_id);
		return store_must_find(store, r, task->seq);
	}
	size_t len = base36_encode((uint64_t)task->seq, text + 2);
	return arena_copy(arena, (struct span){text, len + 2}, ret_id);
}

struct parent_page {
	int (*each)(void *context, int64_t parent, bool done);
	void *context;
};

static int look_at_edge(void *context, const struct edge_row *row)
{
	const struct parent_page *page = context;

	/* below 0: a group */
	return row->parent < 0 ? 0 : page->each(page->context, row->parent, row->done);
}

int store_each_parent(struct store *store, int64_t seq, int (*each)(void *context, int64_t parent, bool done),
	void *context)
{
	struct parent_page page = {each, context};

	return store_rows(store, parents, seq, look_at_edge, &page);
}

static bool knows(const uint32_t *queues, uint32_t count, uint32_t queue)
{
	for (uint32_t i = 0; i < count; i++) {
		if (queues[i] == queue)
			return true;
	}
	return false;
}

static uint32_t tasks_in_lanes(const struct store *store, uint32_t queue)
{
	uint32_t at = index_find_tally(&store->index, queue);
	const struct queue_tally *tally = at != MAP_NONE ? index_tally(&store->index, at) : NULL;

	return tally ? tally->count[TASK_READY] + tally->count[TASK_PENDING] : 0;
}

/* What has stood in a queue that opens. */
static void add_stood(
	struct ready_work *work, uint32_t queue, uint32_t stood, uint32_t *ret_queues, uint32_t max)
{
	work->tasks += stood;
	if (stood > 0 && work->queue_count < max && !knows(ret_queues, work->queue_count, queue))
		ret_queues[work->queue_count++] = queue;
}

/* Of the keys that have limits, as many tasks as there is room for. Where the queue itself opens, it says how many. */
static void add_keys(const struct store *store, struct ready_work *work, uint32_t *ret_queues, uint32_t max)
{
	const struct turn *turn = &store->turn;
	struct queue_load load;
	uint32_t queue;

	for (uint32_t i = 0; slab_used(&store->limited) > 0 && i < turn->key_count; i++) {
		uint32_t tasks = running_key_room(store, i, &queue);
		struct queue_limits limits = store_limits(store, queue, &load);
		uint32_t room = limits_room(&limits, &load);
		if (store_queue_state(store, names_text(&store->names, queue)) != QUEUE_PAUSED &&
			(room == UINT32_MAX || !limits_has_opened(store, queue)))
			add_stood(work, queue, tasks < room ? tasks : room, ret_queues, max);
	}
}

struct ready_work store_ready_work(const struct store *store, uint32_t *ret_queues, uint32_t max)
{
	const struct turn *turn = &store->turn;
	struct ready_work work = {0};
	uint32_t at = 0, opened, room;

	for (uint32_t i = 0; i < turn->ready_count; i++) {
		const struct task *task = &turn->ready[i]->task;
		if (task->state != TASK_READY && task->state != TASK_PENDING)
			continue;
		if (store_task_limit(store, task) != LIMIT_NONE)
			continue; /* whoever frees a place, or lifts the limit, wakes them */
		if (running_key_counts(store, task))
			continue; /* add_keys() */
		work.tasks++;
		if (work.queue_count < max && !knows(ret_queues, work.queue_count, task->queue))
			ret_queues[work.queue_count++] = task->queue;
	}
	for (uint32_t i = 0; i < turn->queue_count; i++) {
		uint32_t queue = turn->queues[i].name;
		uint32_t stood = turn->queues[i].state != QUEUE_PAUSED ? tasks_in_lanes(store, queue) : 0;
		add_stood(&work, queue, stood, ret_queues, max);
	}
	add_keys(store, &work, ret_queues, max);
	for (uint32_t i = 0; i < turn->refilled_count; i++) {
		uint32_t queue = turn->refilled[i];
		bool open = store_limit(store, queue) == LIMIT_NONE &&
			store_queue_state(store, names_text(&store->names, queue)) != QUEUE_PAUSED;
		add_stood(&work, queue, open && tasks_in_lanes(store, queue) > 0 ? 1 : 0, ret_queues, max);
	}
	while (limits_next_opened(store, &at, &opened, &room)) {
		uint32_t stood = store_queue_state(store, names_text(&store->names, opened)) != QUEUE_PAUSED
			? tasks_in_lanes(store, opened)
			: 0;
		add_stood(&work, opened, stood < room ? stood : room, ret_queues, max);
	}
	return work;
}

bool store_next_widened(const struct store *store, uint32_t *at, struct span *ret_worker)
{
	const struct turn *turn = &store->turn;

	while (turn->any_widened && *at < turn->worker_count) {
		const struct turn_worker *view = turn->workers[(*at)++];
		if (!view->widened)
			continue;
		*ret_worker = view->id;
		return true;
	}
	return false;
}

bool store_next_opened_slot(const struct store *store, uint32_t *at, struct span *ret_slot)
{
	const struct turn *turn = &store->turn;

	while (*at < turn->slot_count) {
		const struct turn_slot *view = &turn->slots[(*at)++];
		if (view->slot.state == SLOT_QUARANTINED)
			continue;
		*ret_slot = names_text(&store->names, view->name);
		return true;
	}
	return false;
}

const struct span *store_notified(const struct store *store, uint32_t *ret_count)
{
	*ret_count = store->turn.notified_count;
	return store->turn.notified;
}

uint64_t store_worker_changes(const struct store *store)
{
	return store->worker_changes;
}

int64_t store_last_event(const struct store *store)
{
	return store->facts.last_event;
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
		*ret_since_ms = store->facts.execution_ms;
	return !store->facts.disarmed;
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
	return store->index.count[state];
}

size_t store_timers(const struct store *store)
{
	return heap_count(&store->index.wall_timers) + store->index.lease_timers.count;
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

bool store_live_claim(const struct store *store, int64_t seq, struct task *ret_task, struct span *ret_holder)
{
	uint32_t place = index_find(&store->index, seq);

	if (place == MAP_NONE)
		return false;
	index_get(&store->index, place, ret_task);
	if (!task_is_claimed(ret_task))
		return false;
	*ret_holder = store_worker_id(store, ret_task->claim.holder);
	return true;
}

int store_task_queue(struct store *store, int64_t seq, uint32_t *ret_queue)
{
	struct arena arena;
	struct task task;

	arena_init(&arena, 4096);
	int r = store_load_task(store, seq, &arena, &task);
	arena_done(&arena);
	if (r == 0)
		*ret_queue = task.queue;
	return r;
}

int store_page_workers(const struct store *store, uint32_t *at, uint32_t limit,
	int (*each)(void *context, struct span id, const struct worker *worker), void *context)
{
	const struct index *index = &store->index;
	uint32_t before = *at, end = places_end(at, limit, slab_high(&index->holders));
	int r = 0;

	for (uint32_t number = before + 1; r == 0 && number <= end; number++) {
		const struct holder *holder = index_holder(index, number);
		if (holder->worker.handle == number) /* not free */
			r = each(context, holder_id(holder), &holder->worker);
	}
	return r;
}

const struct browser_login *store_find_login(const struct store *store, struct span id)
{
	return logins_find(&store->logins, id);
}

int store_each_login(const struct store *store, int (*each)(void *context, const struct browser_login *login),
	void *context)
{
	int r = 0;

	for (uint32_t i = 0; r == 0 && i < store->logins.count; i++)
		r = each(context, &store->logins.items[i]);
	return r;
}

void store_see_secret(struct store *store, struct span token)
{
	tokens_settle(&store->credentials, token);
}

void store_see_login(struct store *store, struct span id, int64_t lease_ms)
{
	struct browser_login *login = logins_find(&store->logins, id);

	if (login)
		login->seen_ms = lease_ms;
}

const struct signing_keys *store_signing_keys(const struct store *store)
{
	return &store->facts.keys;
}

bool store_signing_key(const struct store *store, uint32_t place, struct span *ret_id, int64_t *ret_made_ms)
{
	const struct signing_keys *keys = &store->facts.keys;

	if (place >= keys->count)
		return false;
	*ret_id = span_of(keys->items[place].id);
	*ret_made_ms = keys->items[place].made_ms;
	return true;
}

const struct token *store_find_token(const struct store *store, struct span id)
{
	return tokens_find(&store->credentials, id);
}

uint64_t store_token_changes(const struct store *store)
{
	return store->credentials.changes;
}

int store_each_token(
	const struct store *store, int (*each)(void *context, const struct token *token), void *context)
{
	int r = 0;

	for (uint32_t i = 0; r == 0 && i < store->credentials.count; i++)
		r = each(context, store->credentials.items[i]);
	return r;
}

int store_query(struct store *store, struct admin_query *question)
{
	return store_rows(store, query, question);
}
