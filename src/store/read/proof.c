/*
 * Proofs: that the memory equals the rows, and that the events, folded, give the rows. Both read everything;
 * they are for stintd --check-store, for tests and for the simulator.
 */
#include <errno.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/slab.h"
#include "store/record/bulk.h"
#include "store/record/schedule.h"
#include "store/record/small.h"
#include "store/turn/turn.h"

enum {
	PAGE_ROWS = 1000,
	KEY_BYTES_MAX = 4096, /* memory to read a unique key */
};

struct check {
	struct store *store;
	char *complaint;
	size_t complaint_len;
	int64_t last;
	uint32_t rows, live, standing, tokens, tokens_more, logins, schedules;
	struct group_state *groups; /* members by state as the rows have them, by place in memory */
	uint32_t group_rows, bulk_rows;
	int64_t parent; /* of the edges at hand */
	uint32_t children;
	/* folds by task */
	struct slab folds;
	struct map by_seq;
};

static int complain(const struct check *check, const char *format, ...) __attribute__((format(printf, 2, 3)));

static int complain(const struct check *check, const char *format, ...)
{
	va_list args;

	va_start(args, format);
	vsnprintf(check->complaint, check->complaint_len, format, args);
	va_end(args);
	return -EPROTO;
}

/* ---- memory equals rows ------------------------------------------------------------------------------ */

static const char *task_difference(const struct task *a, const struct task *b)
{
	struct fold fold = {.task = *a};
	const char *column = fold_difference(&fold, b, (struct span){0});

	if (column)
		return column;
	if (a->claim.clock != b->claim.clock || a->claim.lease.deadline_ms != b->claim.lease.deadline_ms ||
		a->claim.lease.granted_ms != b->claim.lease.granted_ms ||
		a->claim.verify_at_ms != b->claim.verify_at_ms ||
		a->claim.run_until_ms != b->claim.run_until_ms ||
		a->claim.asked_at_ms != b->claim.asked_at_ms || a->claim.request != b->claim.request ||
		a->claim.named != b->claim.named || a->claim.stopping != b->claim.stopping ||
		a->claim.reported != b->claim.reported || a->claim.reissued != b->claim.reissued)
		return "claim";
	return NULL;
}

/* Does a task that holds its unique key have the row of the key, and one that it waits for, or that waits for it, know of it? */
static int check_unique(const struct check *check, const struct task *task)
{
	struct store *store = check->store;
	struct span key = {0};
	struct arena arena;
	int64_t holder = 0;
	int r = 0;

	if (task->keyed && task->superseded_by == 0 && !task_state_is_final(task->state)) {
		arena_init(&arena, KEY_BYTES_MAX);
		r = store_rows(store, get_extra, task->seq, EXTRA_KEY, 0, &arena, &key);
		if (r == 0)
			r = store_rows(store, find_key, key, &holder);
		arena_done(&arena);
		if (r < 0 && r != -ENOENT)
			return r;
		if (holder != task->seq)
			return complain(check, "task %ld does not hold its unique key", task->seq);
	}
	if (task->predecessor == 0 || task_state_is_final(task->state))
		return 0;
	uint32_t place = index_find(&store->index, task->predecessor);
	struct task before = {0};
	if (place != MAP_NONE)
		index_get(&store->index, place, &before);
	return before.superseded_by == task->seq && task_is_claimed(&before)
		? 0
		: complain(
			  check, "task %ld waits for the attempt of one that it does not succeed", task->seq);
}

/* A final task may have outlived its group. */
static int count_member(const struct check *check, const struct task *task)
{
	const struct groups *groups = &check->store->groups;
	const struct known_group *known = groups_find_number(groups, task->group);

	if (known)
		check->groups[groups_place(groups, known)].count[task->state] += task_counts_in_group(task);
	else if (!task_state_is_final(task->state))
		return complain(check, "task %ld is open, and there is no group %u", task->seq, task->group);
	return 0;
}

static int check_row(void *context, const struct task_row *row)
{
	struct check *check = context;
	int r = row->task.group != 0 ? count_member(check, &row->task) : 0;
	if (r == 0 && (row->task.keyed || row->task.predecessor != 0))
		r = check_unique(check, &row->task);

	const struct index *index = &check->store->index;
	uint32_t place = index_find(index, row->task.seq);
	struct task task;

	if (r < 0)
		return r;
	check->last = row->task.seq;
	check->rows++;
	if (task_state_is_final(row->task.state))
		return place == MAP_NONE
			? 0
			: complain(check, "task %ld is final and still in memory", row->task.seq);
	if (place == MAP_NONE)
		return complain(check, "task %ld is not in memory", row->task.seq);
	index_get(index, place, &task);
	const char *column = task_difference(&task, &row->task);
	if (column)
		return complain(check, "task %ld: %s in memory differs from the row", row->task.seq, column);
	struct span holder = {0};
	if (task.claim.holder != 0)
		holder = holder_id(index_holder(index, task.claim.holder));
	if (!span_equal(holder, row->holder))
		return complain(check, "task %ld: holder in memory differs from the row", row->task.seq);
	check->live++;
	check->standing += row->task.state == TASK_READY || row->task.state == TASK_PENDING;
	return 0;
}

/* The sublanes of a lane on one side, in order, each where the limits of its key want it. */
static int check_side(const struct check *check, const struct lane *lane, bool shut, uint32_t *standing)
{
	const struct index *index = &check->store->index;
	const struct sublanes *sublanes = &index->lanes.sublanes;
	uint32_t root = shut ? lane->sides.shut : lane->sides.open, task, before, ahead = MAP_NONE;

	for (uint32_t at = sublanes_first(sublanes, root); at != MAP_NONE;
		at = sublanes_after(sublanes, root, at)) {
		const struct sublane *sublane = sublane_at(sublanes, at);
		const struct running_key *key = sublanes_key(sublanes, sublane->key);
		if (sublane->shut != shut ||
			(sublanes->is_open &&
				sublanes->is_open(sublanes->judge, key, sublane->begun) == shut))
			return complain(
				check, "a concurrency key is open that should be shut, or the reverse");
		if (ahead != MAP_NONE && sublanes->order_of_sublanes.order(sublanes, ahead, at) >= 0)
			return complain(check, "the concurrency keys of a lane are out of order");
		ahead = at;
		before = MAP_NONE;
		for (task = sublane_first(sublanes, sublane); task != MAP_NONE;
			task = sublane_after(sublanes, sublane, task)) {
			if (before != MAP_NONE && index_order(index, before, task) >= 0)
				return complain(check, "the tasks of a concurrency key are out of order");
			before = task;
			(*standing)++;
		}
	}
	return 0;
}

/* The tasks of each concurrency key, counted again: in all, what the keys have is what the tasks are. */
static int check_keys(const struct check *check)
{
	const struct index *index = &check->store->index;
	const struct sublanes *sublanes = &index->lanes.sublanes;
	int64_t live = 0, begun = 0, waiting = 0, keyed = 0;
	struct task_outline outline;
	struct task task;

	for (uint32_t place = 0; place < index_places(index); place++) {
		if (!index_outline(index, place, &outline))
			continue;
		index_get(index, place, &task);
		if (task.concurrency_key == 0)
			continue;
		uint32_t number = sublanes_find(sublanes, task.queue, task.concurrency_key);
		bool stands = task.state == TASK_READY || task.state == TASK_PENDING;
		if (number == MAP_NONE && (stands || task_has_begun(&task)))
			return complain(check, "task %ld: its concurrency key is not counted", task.seq);
		live += task_is_claimed(&task);
		begun += task_has_begun(&task);
		waiting += stands;
	}
	for (uint32_t i = 0; index_tally(index, i); i++)
		keyed += index_tally(index, i)->live_keyed;
	if (keyed != live)
		return complain(check, "queues count live claims with a concurrency key that are not there");
	for (uint32_t place = 0; place < slab_high(&sublanes->keys); place++) {
		const struct running_key *key = sublanes_key(sublanes, place);
		bool is_used = key->begun > 0 || key->first != SLAB_NONE; /* a free place has neither */
		live -= is_used ? key->live : 0;
		begun -= is_used ? key->begun : 0;
		waiting -= is_used ? key->waiting : 0;
	}
	return live == 0 && begun == 0 && waiting == 0
		? 0
		: complain(check, "concurrency keys count tasks that are not there");
}

static int check_lanes(const struct check *check)
{
	const struct index *index = &check->store->index;
	const struct lane_group *group = NULL;
	uint32_t standing = 0;

	while ((group = lanes_next_stand(&index->lanes, group))) {
		for (struct lane *lane = lanes_first(&index->lanes, group); lane;
			lane = lanes_next(&index->lanes, lane)) {
			uint32_t place, before = MAP_NONE;
			if (lane->key.keyed) {
				int r = check_side(check, lane, false, &standing);
				r = r < 0 ? r : check_side(check, lane, true, &standing);
				if (r < 0)
					return r;
				continue;
			}
			lane->cursor_turn =
				0; /* look from the front, and let no turn rely on where we stopped */
			while ((place = lane_peek(lane, UINT64_MAX)) != MAP_NONE) {
				if (before != MAP_NONE && index_order(index, before, place) >= 0)
					return complain(check, "a lane is out of order");
				before = place;
				standing++;
				lane_skip(lane);
			}
			lane->cursor_turn = 0;
		}
	}
	if (standing != check->standing)
		return complain(check, "%u tasks stand in lanes, %u should", standing, check->standing);
	return 0;
}

/* Every live task stands in one tally, under its queue and state: seen from the tasks, which were compared with the
 * rows, and from the sums. */
static int check_tallies(const struct check *check)
{
	const struct index *index = &check->store->index;
	uint32_t sums[TASK_STATE_COUNT] = {0}, live = 0;
	const struct queue_tally *tally;

	for (uint32_t i = 0; (tally = index_tally(index, i)); i++) {
		uint32_t standing = 0;
		const struct lane_group *group = NULL;
		while ((group = lanes_next_stand(&index->lanes, group))) {
			for (struct lane *lane = lanes_first(&index->lanes, group);
				lane && group->queue == tally->queue; lane = lanes_next(&index->lanes, lane))
				standing += lane->total;
		}
		if (standing != tally->count[TASK_READY] + tally->count[TASK_PENDING])
			return complain(
				check, "a queue has %u tasks in its lanes and counts others", standing);
		for (int state = 0; state < TASK_STATE_COUNT; state++)
			sums[state] += tally->count[state];
		live += tally->live;
	}
	if (live != slab_used(&index->claims))
		return complain(
			check, "tallies give %u live claims, there are %u", live, slab_used(&index->claims));
	for (int state = 0; state < TASK_STATE_COUNT; state++) {
		if (sums[state] != index->count[state])
			return complain(check, "tallies give %u tasks of state %d, there are %u", sums[state],
				state, index->count[state]);
	}
	return 0;
}

static int check_holders(const struct check *check)
{
	const struct index *index = &check->store->index;

	for (uint32_t number = index_next_holder(index, 0); number != 0;
		number = index_next_holder(index, number)) {
		const struct holder *holder = index_holder(index, number);
		uint32_t held = 0;
		int64_t seq;
		for (uint32_t at = index_next_claim(index, holder, MAP_NONE, &seq); at != MAP_NONE;
			at = index_next_claim(index, holder, at, &seq))
			held++;
		if (held != holder->worker.held)
			return complain(check, "worker %s holds %u and counts %u", holder->id, held,
				holder->worker.held);
		if (holder->worker.state == WORKER_UNKNOWN && held == 0)
			return complain(check, "claimant %s is remembered for nothing", holder->id);
	}
	return 0;
}

static bool is_in_its_slot(const struct index *index, const struct holder *holder)
{
	uint32_t number = index_first_in_slot(index, holder->worker.slot);

	while (number != 0 && number != holder->worker.handle)
		number = index_next_in_slot(index, number);
	return number != 0;
}

/* Every live worker stands in the line of its slot, and those that beat in that of all, as they were heard. */
static int check_lists(const struct check *check)
{
	const struct index *index = &check->store->index;
	uint32_t workers[WORKER_INACTIVE + 1] = {0}, beating = 0, heard = 0;
	int64_t heard_ms = INT64_MIN;

	for (uint32_t number = index_next_holder(index, 0); number != 0;
		number = index_next_holder(index, number)) {
		const struct holder *holder = index_holder(index, number);
		bool is_in_slot = worker_is_alive(&holder->worker) && holder->worker.slot != 0;
		workers[holder->worker.state]++;
		beating += worker_beats(&holder->worker);
		if (holder->worker.slot != 0 && is_in_slot != is_in_its_slot(index, holder))
			return complain(check, "worker %s is not in its slot, or in one it left", holder->id);
	}
	for (uint32_t number = index->heard_first; number != 0;
		number = index_holder(index, number)->heard_next) {
		const struct worker *worker = &index_holder(index, number)->worker;
		if (worker->heard_ms < heard_ms || !worker_beats(worker))
			return complain(check, "worker %s stands in the wrong place",
				index_holder(index, number)->id);
		heard_ms = worker->heard_ms;
		heard++;
	}
	if (heard != beating || memcmp(workers, index->workers, sizeof workers) != 0)
		return complain(
			check, "%u workers beat, %u are in line; or they are counted wrong", beating, heard);
	return 0;
}

static int check_worker_row(void *context, const struct worker_row *row)
{
	struct check *check = context;
	const struct index *index = &check->store->index;
	uint32_t number = index_find_holder(index, row->id);

	if (number == 0)
		return complain(check, "worker %.*s is not in memory", SPAN_ARGS(row->id));
	const struct holder *holder = index_holder(index, number);
	if (holder->worker.principal != row->worker.principal || holder->worker.state != row->worker.state ||
		holder->worker.slot != row->worker.slot || holder->instance != row->instance)
		return complain(check, "worker %.*s in memory differs from the row", SPAN_ARGS(row->id));
	return 0;
}

/* The edges come by parent: when the next one begins, the last is counted. One too many costs a look on disk; one too
 * few, and a child is forgotten. */
static int check_children(struct check *check)
{
	const struct index *index = &check->store->index;
	const struct known_group *group = check->parent < 0
		? groups_find_number(&check->store->groups, group_of_edge(check->parent))
		: NULL;

	if (group && group->waiters < check->children)
		return complain(check, "group %.*s blocks %u and counts %u", SPAN_ARGS(group->name),
			check->children, group->waiters);
	if (check->parent < 0)
		return 0;
	uint32_t place = check->parent != 0 ? index_find(index, check->parent) : MAP_NONE;

	if (place != MAP_NONE && index_children(index, place) < check->children)
		return complain(check, "task %ld blocks %u and counts %u", check->parent, check->children,
			index_children(index, place));
	return 0;
}

static int check_edge_row(void *context, const struct edge_row *row)
{
	struct check *check = context;
	if (row->done)
		return 0; /* it blocks nobody */
	int r = row->parent == check->parent ? 0 : check_children(check);

	check->children = row->parent == check->parent ? check->children + 1 : 1;
	check->parent = row->parent;
	return r;
}

static int check_edges(struct check *check)
{
	struct backend *backend = check->store->backend;
	int r = backend->ops->scan_edges(backend, check_edge_row, check);

	return r < 0 ? r : check_children(check);
}

static int check_token_row(void *context, const struct token *row)
{
	struct check *check = context;
	const struct token *token = tokens_find(&check->store->credentials, row->id);

	check->tokens++;
	if (!token || token->kind != row->kind || token->revoked_ms != row->revoked_ms ||
		token->expires_ms != row->expires_ms || !span_equal(token->queues, row->queues) ||
		memcmp(token->hash, row->hash, sizeof token->hash) != 0)
		return complain(check, "token %.*s in memory differs from the row", SPAN_ARGS(row->id));
	check->tokens_more += token_has_more(token);
	return 0;
}

static int check_token_more(void *context, struct span id, struct span data)
{
	struct check *check = context;
	const struct token *token = tokens_find(&check->store->credentials, id);
	char text[SMALL_BYTES_MAX];

	check->tokens_more--;
	if (!token || !token_has_more(token) || !span_equal(small_token_put(&token->more, text), data))
		return complain(
			check, "what is known of token %.*s in memory differs from the row", SPAN_ARGS(id));
	return 0;
}

static int check_tokens(struct check *check)
{
	struct backend *backend = check->store->backend;
	int r = backend->ops->scan_tokens(backend, check_token_row, check);

	if (r == 0 && check->tokens != check->store->credentials.count)
		return complain(check, "%u tokens in memory, %u rows", check->store->credentials.count,
			check->tokens);
	if (r == 0)
		r = backend->ops->page_small(
			backend, SMALL_TOKEN, SPAN(""), UINT32_MAX, check_token_more, check);
	if (r == 0 && check->tokens_more != 0)
		return complain(
			check, "rows of join codes and machines differ in number from those in memory");
	return r;
}

static int check_login_row(void *context, struct span key, struct span data)
{
	struct check *check = context;
	const struct browser_login *login = logins_find(&check->store->logins, key);
	char text[SMALL_LOGIN_BYTES_MAX];

	check->logins++;
	if (!login || !span_equal(small_login_put(login, text), data))
		return complain(check, "login %.*s in memory differs from the row", SPAN_ARGS(key));
	return 0;
}

static int check_logins(struct check *check)
{
	struct backend *backend = check->store->backend;
	int r = backend->ops->page_small(backend, SMALL_LOGIN, SPAN(""), UINT32_MAX, check_login_row, check);

	if (r == 0 && check->logins != check->store->logins.count)
		return complain(
			check, "%u logins in memory, %u rows", check->store->logins.count, check->logins);
	return r;
}

/* The state of each schedule, and the tasks that it calls open. */
static int check_schedule_row(void *context, struct span key, struct span data)
{
	struct check *check = context;
	const struct known_schedule *known = schedules_find(&check->store->schedules, key);
	struct buf kept = {.max = 1 << 20};

	check->schedules++;
	int r = known ? schedule_state_put(&known->state, &kept) : -EPROTO;
	bool same = r == 0 && span_equal(buf_span(&kept), data);
	buf_done(&kept);
	if (!same)
		return complain(check, "schedule %.*s in memory differs from the row", SPAN_ARGS(key));
	for (uint32_t i = 0; i < known->state.open_count; i++) {
		if (index_find(&check->store->index, known->state.open[i]) == MAP_NONE)
			return complain(check, "schedule %.*s calls task %ld open, and it is final",
				SPAN_ARGS(key), known->state.open[i]);
	}
	return 0;
}

static int check_schedules(struct check *check)
{
	const struct span first = {0};
	int r = store_rows(
		check->store, page_small, SMALL_SCHEDULE_STATE, first, UINT32_MAX, check_schedule_row, check);

	if (r == 0 && check->schedules != check->store->schedules.count)
		return complain(check, "%u schedules in memory, %u rows", check->store->schedules.count,
			check->schedules);
	return r;
}

/* The row of each group, and its counts: members that are kept, and those that were removed. */
static int check_group_row(void *context, struct span key, struct span data)
{
	struct check *check = context;
	const struct groups *groups = &check->store->groups;
	const struct known_group *known = groups_find(groups, key);
	char text[SMALL_BYTES_MAX];

	check->group_rows++;
	if (!known || !span_equal(small_group_put(&known->group, text), data))
		return complain(check, "group %.*s in memory differs from the row", SPAN_ARGS(key));
	for (int i = TASK_NOWHERE + 1; i < TASK_STATE_COUNT; i++) {
		uint32_t kept = check->groups[groups_place(groups, known)].count[i];
		if (known->group.count[i] != kept + known->group.purged[i])
			return complain(check,
				"group %.*s counts %u members that are %s, %u of them removed; %u are there",
				SPAN_ARGS(key), known->group.count[i], task_state_name((enum task_state)i),
				known->group.purged[i], kept);
	}
	return 0;
}

static int check_groups(struct check *check)
{
	const struct span first = {0};
	int r = store_rows(check->store, page_small, SMALL_GROUP, first, UINT32_MAX, check_group_row, check);

	if (r == 0 && check->group_rows != check->store->groups.count)
		return complain(
			check, "%u groups in memory, %u rows", check->store->groups.count, check->group_rows);
	return r;
}

/* How far each bulk action is. */
static int check_bulk_row(void *context, struct span key, struct span data)
{
	struct check *check = context;
	const struct known_bulk *known = bulks_find(&check->store->bulks, bulk_id_read(key));
	struct buf kept = {.max = 1 << 16};

	check->bulk_rows++;
	int r = known ? bulk_progress_put(&known->progress, &kept) : -EPROTO;
	bool same = r == 0 && span_equal(buf_span(&kept), data);
	buf_done(&kept);
	return same ? 0 : complain(check, "bulk action %.*s in memory differs from the row", SPAN_ARGS(key));
}

static int check_bulks(struct check *check)
{
	const struct span first = {0};
	int r = store_rows(
		check->store, page_small, SMALL_BULK_STATE, first, UINT32_MAX, check_bulk_row, check);

	if (r == 0 && check->bulk_rows != check->store->bulks.count)
		return complain(check, "%u bulk actions in memory, %u rows", check->store->bulks.count,
			check->bulk_rows);
	return r;
}

static int check_memory(struct check *check);

int store_check_memory(struct store *store, char *complaint, size_t len)
{
	struct check check = {.store = store, .complaint = complaint, .complaint_len = len};

	check.groups = calloc(slab_high(&store->groups.all) + 1, sizeof *check.groups);
	if (!check.groups)
		return -ENOMEM;
	int r = check_memory(&check);
	free(check.groups);
	return r;
}

static int check_memory(struct check *check)
{
	struct store *store = check->store;
	const struct backend_ops *ops = store->backend->ops;
	uint32_t seen;
	int r;

	do {
		seen = check->rows;
		r = ops->page_tasks(store->backend, check->last, PAGE_ROWS, check_row, check);
		if (r < 0)
			return r;
	} while (check->rows - seen == PAGE_ROWS);
	if (check->live != slab_used(&store->index.tasks))
		return complain(check, "%u tasks in memory, %u live rows", slab_used(&store->index.tasks),
			check->live);
	r = check_lanes(check);
	if (r == 0)
		r = check_keys(check);
	if (r == 0)
		r = check_tallies(check);
	if (r == 0)
		r = check_holders(check);
	if (r == 0)
		r = check_edges(check);
	if (r == 0)
		r = check_lists(check);
	if (r == 0)
		r = check_tokens(check);
	if (r == 0)
		r = check_logins(check);
	if (r == 0)
		r = check_schedules(check);
	if (r == 0)
		r = check_groups(check);
	if (r == 0)
		r = check_bulks(check);
	return r < 0 ? r : ops->scan_workers(store->backend, check_worker_row, check);
}

/* ---- events give rows -------------------------------------------------------------------------------- */

static uint64_t fold_hash(void *context, uint32_t slot)
{
	const struct check *check = context;
	const struct fold *fold = slab_at(&check->folds, slot);

	return hash_u64((uint64_t)fold->task.seq);
}

static const struct map_ops fold_ops = {.hash_of = fold_hash};

static struct fold *find_fold(const struct check *check, int64_t seq)
{
	struct map_probe probe;
	uint32_t slot = map_first(&check->by_seq, hash_u64((uint64_t)seq), &probe);

	for (; slot != MAP_NONE; slot = map_next(&check->by_seq, &probe)) {
		struct fold *fold = slab_at(&check->folds, slot);
		if (fold->task.seq == seq)
			return fold;
	}
	return NULL;
}

static struct fold *make_fold(struct check *check, int64_t seq)
{
	struct fold *fold = find_fold(check, seq);
	uint32_t slot;

	if (fold)
		return fold;
	if (slab_alloc(&check->folds, &slot) < 0)
		return NULL;
	fold = slab_at(&check->folds, slot);
	fold->task.seq = seq;
	return map_insert(&check->by_seq, hash_u64((uint64_t)seq), slot) < 0 ? NULL : fold;
}

static int fold_base(void *context, int64_t seq, struct span data)
{
	struct check *check = context;
	struct fold *fold = make_fold(check, seq);

	check->last = seq;
	check->rows++;
	if (!fold)
		return -ENOMEM;
	return fold_decode(seq, data, fold) < 0
		? complain(check, "the baseline of task %ld cannot be read", seq)
		: 0;
}

static int fold_event(void *context, int64_t seq, struct span data)
{
	struct check *check = context;
	struct record record;

	if (seq != check->last + 1)
		return complain(check, "event %ld follows event %ld", seq, check->last);
	check->last = seq;
	check->rows++;
	if (record_decode(seq, data, &record) < 0)
		return complain(check, "event %ld cannot be read", seq);
	if (record.task == 0)
		return 0;
	struct fold *fold = make_fold(check, record.task);
	if (!fold)
		return -ENOMEM;
	if (fold->task.version != record.previous)
		return complain(check, "event %ld of task %ld follows %ld, not %ld", seq, record.task,
			fold->task.version, record.previous);
	if (fold->task.state != record.from)
		return complain(check, "event %ld of task %ld starts from another state", seq, record.task);
	fold_apply(fold, &record);
	return 0;
}

static int compare_row(void *context, const struct task_row *row)
{
	struct check *check = context;
	struct fold *fold = find_fold(check, row->task.seq);

	check->last = row->task.seq;
	check->rows++;
	if (!fold)
		return complain(check, "task %ld has no events", row->task.seq);
	const char *column = fold_difference(fold, &row->task, row->holder);
	if (column)
		return complain(check, "task %ld: %s is not what its events say", row->task.seq, column);
	fold->task.state = TASK_NOWHERE; /* found */
	return 0;
}

static int check_leftovers(const struct check *check)
{
	for (uint32_t slot = 0; slot < slab_high(&check->folds); slot++) {
		const struct fold *fold = slab_at(&check->folds, slot);
		if (fold->task.state != TASK_NOWHERE)
			return complain(check, "task %ld has events and no row", fold->task.seq);
	}
	return 0;
}

static int fold_all(struct check *check)
{
	struct store *store = check->store;
	const struct backend_ops *ops = store->backend->ops;
	uint32_t seen;
	int r;

	do {
		seen = check->rows;
		r = ops->page_bases(store->backend, check->last, PAGE_ROWS, fold_base, check);
	} while (r == 0 && check->rows - seen == PAGE_ROWS);
	check->last = store->event_base;
	do {
		seen = check->rows;
		r = r < 0 ? r : ops->page_events(store->backend, check->last, PAGE_ROWS, fold_event, check);
	} while (r == 0 && check->rows - seen == PAGE_ROWS);
	if (r == 0 && check->last != store->facts.last_event)
		return complain(
			check, "the last event is %ld, not %ld", check->last, store->facts.last_event);
	check->last = 0;
	do {
		seen = check->rows;
		r = r < 0 ? r : ops->page_tasks(store->backend, check->last, PAGE_ROWS, compare_row, check);
	} while (r == 0 && check->rows - seen == PAGE_ROWS);
	return r < 0 ? r : check_leftovers(check);
}

int store_check_fold(struct store *store, char *complaint, size_t len)
{
	struct check check = {.store = store, .complaint = complaint, .complaint_len = len};

	slab_init(&check.folds, sizeof(struct fold));
	map_init(&check.by_seq, &fold_ops, &check);
	int r = fold_all(&check);
	map_done(&check.by_seq);
	slab_done(&check.folds);
	return r;
}
