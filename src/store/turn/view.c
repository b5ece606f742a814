/*
 * What a turn looks at: copies of tasks and workers, and names, queues, slots and tokens as the turn has them so far.
 */
#include <assert.h>
#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "base/base36.h"
#include "store/turn/parts.h"
#include "store/read/sound.h"

int turn_grow(void **items, uint32_t count, uint32_t *cap, size_t size)
{
	uint32_t wanted = *cap ? *cap : 256;

	if (count < *cap)
		return 0;
	while (wanted <= count)
		wanted *= 2;
	void *grown = realloc(*items, wanted * size);
	if (!grown)
		return -ENOMEM;
	*items = grown;
	*cap = wanted;
	return 0;
}

struct turn_task *turn_find_task(const struct turn *turn, int64_t seq)
{
	struct map_probe probe;
	uint32_t index = map_first(&turn->task_by_seq, hash_u64((uint64_t)seq), &probe);

	for (; index != MAP_NONE; index = map_next(&turn->task_by_seq, &probe)) {
		if (turn->tasks[index]->task.seq == seq)
			return turn->tasks[index];
	}
	return NULL;
}

int turn_add_view(struct turn *turn, int64_t seq, struct turn_task **ret_view)
{
	struct turn_task *view = arena_alloc(&turn->arena, sizeof *view);
	if (!view)
		return -ENOMEM;
	int r = turn_grow((void **)&turn->tasks, turn->task_count, &turn->task_cap, sizeof *turn->tasks);
	if (r < 0)
		return r;
	view->task.seq = seq;
	view->place = MAP_NONE;
	assert(seq > 0);
	turn->tasks[turn->task_count] = view;
	r = map_insert(&turn->task_by_seq, hash_u64((uint64_t)seq), turn->task_count);
	if (r < 0)
		return r;
	turn->task_count++;
	*ret_view = view;
	return 0;
}

/* A claim looks for tasks that this turn has not touched in the lanes, and for those it has touched here. */
int turn_list_ready(struct turn *turn, struct turn_task *view)
{
	struct lane_key lane;

	if (view->listed || !index_lane_of(&turn->store->index, &view->task, &lane))
		return 0;
	int r = turn_grow((void **)&turn->ready, turn->ready_count, &turn->ready_cap, sizeof *turn->ready);
	if (r < 0)
		return r;
	turn->ready[turn->ready_count++] = view;
	view->listed = true;
	return 0;
}

/* A task that is final, or not there at all. */
static int final_task(struct turn *turn, int64_t seq, struct turn_task **ret_task)
{
	struct task_row row;
	int r = store_get_final(turn->store, seq, &turn->arena, &row);

	if (r == 0)
		r = turn_add_view(turn, seq, ret_task);
	if (r < 0)
		return r;
	(*ret_task)->task = row.task;
	(*ret_task)->was_final = true;
	return 0;
}

int turn_task(struct turn *turn, int64_t seq, struct turn_task **ret_task)
{
	struct store *store = turn->store;
	struct turn_task *view = turn_find_task(turn, seq);

	if (view) {
		*ret_task = view;
		return view->gone ? -ENOENT : 0;
	}
	uint32_t place = index_find(&store->index, seq);
	if (place == MAP_NONE)
		return final_task(turn, seq, ret_task);
	int r = turn_add_view(turn, seq, &view);
	if (r < 0)
		return r;
	view->place = place;
	index_get(&store->index, place, &view->task);
	view->children = index_children(&store->index, place);
	*ret_task = view;
	return turn_list_ready(turn, view);
}

void turn_peek(const struct turn *turn, int64_t seq, struct task *ret_task)
{
	const struct turn_task *view = turn_find_task(turn, seq);

	if (view)
		*ret_task = view->task;
	else
		index_get(&turn->store->index, index_find(&turn->store->index, seq), ret_task);
}

int generated_id_seq(struct span id, int64_t *ret_seq)
{
	uint64_t seq;

	if (id.len < 3 || memcmp(id.data, "t-", 2) != 0)
		return -EINVAL;
	int r = base36_decode((struct span){id.data + 2, id.len - 2}, &seq);
	if (r < 0 || seq > INT64_MAX)
		return -EINVAL;
	*ret_seq = (int64_t)seq;
	return 0;
}

int turn_task_by_id(struct turn *turn, struct span id, struct turn_task **ret_task)
{
	int64_t seq;
	bool generated = generated_id_seq(id, &seq) == 0;
	int r;

	/* callers may choose ids that look like ours; while none has, ours need no look-up */
	if (!generated || turn->facts.shadow_ids > 0) {
		int64_t own_seq;
		r = store_rows(turn->store, find_id, id, &own_seq);
		if (r == 0) {
			r = turn_task(turn, own_seq, ret_task);
			if (r == 0)
				(*ret_task)->own_id = id;
			return r;
		}
		if (r != -ENOENT || !generated)
			return r;
	}
	r = turn_task(turn, seq, ret_task);
	if (r == 0 && (*ret_task)->task.named_id)
		return -ENOENT; /* it has a name of its own and answers to that alone */
	return r;
}

int turn_own_id(struct turn *turn, struct turn_task *view)
{
	if (!view->task.named_id || view->own_id.len > 0)
		return 0;
	int r = store_rows(turn->store, get_extra, view->task.seq, EXTRA_ID, 0, &turn->arena, &view->own_id);
	return store_must_find(turn->store, r, view->task.seq);
}

int turn_id_text(struct turn *turn, struct turn_task *view, struct span *ret_id)
{
	int r = turn_own_id(turn, view);

	if (r == 0 && view->task.named_id)
		*ret_id = view->own_id;
	return r < 0 || view->task.named_id ? r
					    : store_task_id(turn->store, &view->task, &turn->arena, ret_id);
}

struct turn_worker *turn_worker_by_number(struct turn *turn, uint32_t number)
{
	struct holder *holder = index_holder(&turn->store->index, number);

	assert(holder->worker.handle == number); /* the holder is there */
	if (holder->view_turn == turn->number) {
		assert(holder->view_index < turn->worker_count);
		return turn->workers[holder->view_index];
	}
	struct turn_worker *view = arena_alloc(&turn->arena, sizeof *view);
	if (!view ||
		turn_grow((void **)&turn->workers, turn->worker_count, &turn->worker_cap,
			sizeof *turn->workers) < 0) {
		turn->fault = turn->fault < 0 ? turn->fault : -ENOMEM; /* callers may take it for nobody */
		return NULL;
	}
	view->worker = holder->worker;
	view->id = holder_id(holder);
	view->instance = holder->instance;
	view->stale_on_disk = holder->stale_on_disk;
	holder->view_turn = turn->number;
	holder->view_index = turn->worker_count;
	turn->workers[turn->worker_count++] = view;
	return view;
}

struct turn_worker *turn_worker(struct turn *turn, struct span id, bool make)
{
	struct index *index = &turn->store->index;
	bool added = false;
	uint32_t number = make ? index_make_holder(index, id, &added) : index_find_holder(index, id);

	if (number == 0 && make)
		turn->fault = turn->fault < 0 ? turn->fault : -ENOMEM;
	if (number == 0)
		return NULL;
	struct turn_worker *view = turn_worker_by_number(turn, number);
	if (!view && added)
		index_drop_holder(index, number);
	if (view && added)
		view->added = true;
	return view;
}

int turn_pace(struct turn *turn, struct pace *pace)
{
	int r = turn_grow((void **)&turn->paces, turn->pace_count, &turn->pace_cap, sizeof *turn->paces);

	if (r == 0)
		turn->paces[turn->pace_count++] = (struct turn_pace){pace, *pace};
	return r;
}

struct account *turn_account(struct turn *turn, uint32_t principal)
{
	struct account *account = index_account(&turn->store->index, principal);

	if (account && account->turn != turn->number) {
		account->more_tasks = account->more_workers = 0;
		account->more_kib = 0;
		account->turn = turn->number;
	}
	return account;
}

int turn_name(struct turn *turn, struct span text, uint32_t *ret_id)
{
	struct names *names = &turn->store->names;
	const struct command *command = turn->command;

	*ret_id = names_find(names, text);
	if (*ret_id != 0 || text.len == 0)
		return 0;
	if (!command->oversees && names_of_principal(names, command->principal) >= NAMES_PER_PRINCIPAL_MAX) {
		turn->names_spent = true;
		return -E2BIG;
	}
	return names_add(names, text, command->principal, ret_id);
}

int turn_keep_names(struct turn *turn, uint32_t count)
{
	const struct names *names = &turn->store->names;
	int r = 0;

	for (uint32_t id = count + 1; r == 0 && id <= names->count; id++) {
		struct name_row row = {id, names_principal(names, id), names_text(names, id)};
		r = turn_put(turn, put_name, &row);
	}
	return r;
}

int turn_name_set(struct turn *turn, struct name_list members, uint32_t *ret_id)
{
	struct buf text;
	uint32_t member;
	int r = 0;

	*ret_id = 0;
	for (uint32_t i = 0; i < members.count && r == 0; i++)
		r = turn_name(turn, members.items[i], &member);
	if (r < 0 || members.count == 0)
		return r;
	buf_init(&text, NAME_SET_MAX * (COMMAND_NAME_MAX + 1));
	r = names_set_text(members, &text);
	if (r == 0)
		r = turn_name(turn, buf_span(&text), ret_id);
	buf_done(&text);
	return r;
}

enum queue_state turn_queue(const struct turn *turn, uint32_t name)
{
	const struct store *store = turn->store;

	for (uint32_t i = 0; i < turn->queue_count; i++) {
		if (turn->queues[i].name == name)
			return turn->queues[i].state;
	}
	for (uint32_t i = 0; i < store->queue_count; i++) {
		if (store->queues[i].name == name)
			return store->queues[i].state;
	}
	return QUEUE_OPEN;
}

void turn_slot(const struct turn *turn, uint32_t name, struct slot *ret_slot)
{
	const struct store *store = turn->store;

	slot_init(ret_slot);
	for (uint32_t i = 0; i < turn->slot_count; i++) {
		if (turn->slots[i].name == name) {
			*ret_slot = turn->slots[i].slot;
			return;
		}
	}
	const struct slot *known = store_find_slot(store, name);
	if (known)
		*ret_slot = *known;
}

int turn_new_principal(struct turn *turn, uint32_t *ret_principal)
{
	int r = turn_put(turn, put_meta, META_PRINCIPALS, turn->facts.last_principal + 1);

	if (r == 0)
		*ret_principal = ++turn->facts.last_principal;
	return r;
}

const struct browser_login *turn_login(const struct turn *turn, struct span id)
{
	for (uint32_t i = 0; i < turn->login_count; i++) {
		if (span_equal(span_of(turn->logins[i].login.id), id))
			return turn->logins[i].gone ? NULL : &turn->logins[i].login;
	}
	return logins_find(&turn->store->logins, id);
}

const struct token *turn_token(const struct turn *turn, struct span id)
{
	for (uint32_t i = turn->token_count; i > 0; i--) {
		if (span_equal(turn->tokens[i - 1]->id, id))
			return turn->tokens[i - 1];
	}
	return tokens_find(&turn->store->credentials, id);
}

/* What it held when the turn began and still holds, and what it took in this turn. */
int turn_held_by(struct turn *turn, const struct turn_worker *worker, struct held_tasks *ret_held)
{
	const struct index *index = &turn->store->index;
	const struct holder *holder = index_holder(index, worker->worker.handle);
	uint32_t limit = worker->worker.held, count = 0;
	int64_t seq = 0;

	*ret_held = (struct held_tasks){0};
	if (limit == 0)
		return 0;
	int64_t *seqs = arena_alloc(&turn->arena, limit * sizeof *seqs);
	if (!seqs)
		return -ENOMEM;
	for (uint32_t at = index_next_claim(index, holder, MAP_NONE, &seq); at != MAP_NONE;
		at = index_next_claim(index, holder, at, &seq)) {
		if (!turn_find_task(turn, seq))
			seqs[count++] = seq;
	}
	for (uint32_t i = 0; i < turn->task_count; i++) {
		if (turn->tasks[i]->task.claim.holder == worker->worker.handle)
			seqs[count++] = turn->tasks[i]->task.seq;
	}
	assert(count == limit);
	*ret_held = (struct held_tasks){seqs, count};
	return 0;
}

/* ---- schedules -------------------------------------------------------------------------------------------- */

int turn_add_schedule(struct turn *turn, struct definition *definition, struct turn_schedule **ret_view)
{
	int r = turn_grow((void **)&turn->schedules, turn->schedule_count, &turn->schedule_cap,
		sizeof *turn->schedules);
	struct turn_schedule *view = r == 0 ? arena_alloc(&turn->arena, sizeof *view) : NULL;

	if (!view) {
		definition_free(definition);
		return -ENOMEM;
	}
	*view = (struct turn_schedule){.definition = definition};
	turn->schedules[turn->schedule_count++] = view;
	*ret_view = view;
	return 0;
}

int turn_schedule(struct turn *turn, struct span id, struct turn_schedule **ret_view)
{
	*ret_view = NULL;
	for (uint32_t i = turn->schedule_count; i-- > 0;) { /* the last one counts: it may be back again */
		if (span_equal(turn->schedules[i]->definition->schedule.id, id)) {
			*ret_view = turn->schedules[i]->gone ? NULL : turn->schedules[i];
			return 0;
		}
	}
	const struct known_schedule *known = schedules_find(&turn->store->schedules, id);
	if (!known)
		return 0;
	int r = turn_add_schedule(turn, definition_use(known->definition), ret_view);
	if (r == 0)
		(*ret_view)->state = known->state;
	return r;
}
