/*
 * Limits of queues: which of them are reached, counted from live claims.
 *
 * The committed count of a queue stands in its tally (index.h). Beside it stands what the open turn changes, in the entry of a queue
 * that has, or had, a limit; a queue without one costs nothing. Rejected: counting the tasks of the turn at each claim, which makes a
 * turn of many claims slow.
 */
#include <assert.h>
#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "store/command/commands.h"
#include "store/record/small.h"

static struct limited_queue *limited_at(const struct store *store, uint32_t number)
{
	return slab_at(&store->limited, number);
}

static uint64_t limited_hash(void *context, uint32_t number)
{
	return hash_u64(limited_at(context, number)->queue);
}

static const struct map_ops limited_ops = {.hash_of = limited_hash};

void limits_init(struct store *store)
{
	slab_init(&store->limited, sizeof(struct limited_queue));
	map_init(&store->limited_by_queue, &limited_ops, store);
}

void limits_done(struct store *store)
{
	for (uint32_t i = 0; i < slab_high(&store->limited); i++) /* none of them is ever freed */
		free(limited_at(store, i)->caps);
	map_done(&store->limited_by_queue);
	slab_done(&store->limited);
}

static struct limited_queue *limited_find(const struct store *store, uint32_t queue)
{
	struct map_probe probe;

	if (slab_used(&store->limited) == 0)
		return NULL;
	uint32_t number = map_first(&store->limited_by_queue, hash_u64(queue), &probe);
	while (number != MAP_NONE && limited_at(store, number)->queue != queue)
		number = map_next(&store->limited_by_queue, &probe);
	return number == MAP_NONE ? NULL : limited_at(store, number);
}

/* A new entry, without limits. NULL: no memory. */
static struct limited_queue *limited_make(struct store *store, uint32_t queue)
{
	uint32_t number;

	if (slab_alloc(&store->limited, &number) < 0)
		return NULL;
	limited_at(store, number)->queue = queue;
	if (map_insert(&store->limited_by_queue, hash_u64(queue), number) < 0) {
		slab_free(&store->limited, number);
		return NULL;
	}
	return limited_at(store, number);
}

int limits_load(struct store *store, uint32_t queue, const struct queue_limits *limits)
{
	struct limited_queue *limited = limited_make(store, queue);

	if (!limited)
		return -ENOMEM;
	running_keys_lift(store, queue);
	limited->limits = *limits;
	lanes_set_fair(&store->index.lanes, queue, limits->fair);
	running_keys_lower(store, queue);
	return 0;
}

/* ---- keys with a number of their own ------------------------------------------------------------------------------ */

static uint32_t cap_of(const struct key_caps *caps, uint64_t key)
{
	for (uint32_t i = 0; caps && i < caps->count; i++) {
		if (caps->items[i].key == key)
			return caps->items[i].most;
	}
	return 0;
}

/* Sets the number of a key; 0 takes it away. False: there are too many. */
static bool caps_set(struct key_caps *caps, struct span text, uint32_t most)
{
	uint64_t key = concurrency_key_number(text);
	uint32_t i = 0;

	assert(text.len <= COMMAND_NAME_MAX);
	while (i < caps->count && caps->items[i].key != key)
		i++;
	if (most == 0) {
		if (i < caps->count)
			caps->items[i] = caps->items[--caps->count];
		return true;
	}
	if (i == KEY_CAPS_MAX)
		return false;
	caps->count += i == caps->count;
	caps->items[i] = (struct key_cap){.key = key, .most = most};
	memcpy(caps->items[i].text, text.data, text.len);
	return true;
}

int limits_load_cap(struct store *store, uint32_t queue, struct span key, uint32_t most)
{
	struct limited_queue *limited = limited_find(store, queue);

	if (key.len == 0 || key.len > COMMAND_NAME_MAX || most == 0 || most > LIMIT_MAX)
		return -EPROTO;
	if (!limited)
		limited = limited_make(store, queue);
	if (limited && !limited->caps)
		limited->caps = calloc(1, sizeof *limited->caps);
	if (!limited || !limited->caps)
		return -ENOMEM;
	running_keys_lift(store, queue);
	bool fits = caps_set(limited->caps, key, most);
	running_keys_lower(store, queue);
	return fits ? 0 : -EPROTO;
}

/* The turn's own copy. NULL: no memory. */
static struct key_caps *caps_of_turn(struct limited_queue *limited)
{
	if (limited->next_caps != limited->caps)
		return limited->next_caps;
	struct key_caps *copy = calloc(1, sizeof *copy);
	if (copy && limited->caps)
		*copy = *limited->caps;
	if (copy)
		limited->next_caps = copy;
	return copy;
}

/* ---- as the turn has them ---------------------------------------------------------------------------------------- */

/* The turn changes something of it. -ENOMEM. */
static int limited_touch(struct turn *turn, struct limited_queue *limited)
{
	if (limited->turn == turn->number)
		return 0;
	int r = turn_grow((void **)&turn->limited, turn->limited_count, &turn->limited_cap,
		sizeof(struct limited_queue *));
	if (r < 0)
		return r;
	turn->limited[turn->limited_count++] = limited;
	limited->turn = turn->number;
	limited->next = limited->limits;
	limited->next_caps = limited->caps;
	limited->more_live = limited->more_review = limited->more_keyless = limited->more_open = 0;
	limited->keyless_served = 0;
	limited->opened = false;
	return 0;
}

static int count_live(struct turn *turn, uint32_t queue, bool keyless, int more)
{
	struct limited_queue *limited = limited_find(turn->store, queue);
	int r = limited ? limited_touch(turn, limited) : 0;

	if (!limited || r < 0)
		return r;
	limited->more_live += more;
	limited->more_keyless += keyless ? more : 0;
	limited->opened |= more < 0 && limited->limits.concurrency != 0;
	return 0;
}

static int count_review(struct turn *turn, uint32_t queue, int more)
{
	struct limited_queue *limited = limited_find(turn->store, queue);
	int r = limited ? limited_touch(turn, limited) : 0;

	if (!limited || r < 0)
		return r;
	limited->more_review += more;
	limited->opened |= more < 0 && limited->limits.review != 0;
	return 0;
}

static int follow_review(struct turn *turn, const struct task *before, const struct task *after)
{
	bool was = before->state == TASK_REVIEW, is = after->state == TASK_REVIEW;

	if (was == is && (!was || before->queue == after->queue))
		return 0;
	int r = was ? count_review(turn, before->queue, -1) : 0;
	return r == 0 && is ? count_review(turn, after->queue, 1) : r;
}

static bool is_open(const struct task *task)
{
	return task->state != TASK_NOWHERE && !task_state_is_final(task->state);
}

static int count_open(struct turn *turn, uint32_t queue, int more)
{
	struct limited_queue *limited = limited_find(turn->store, queue);
	int r = limited ? limited_touch(turn, limited) : 0;

	if (limited && r == 0)
		limited->more_open += more;
	return r;
}

static int follow_open(struct turn *turn, const struct task *before, const struct task *after)
{
	bool was = is_open(before), is = is_open(after);

	if (was == is && (!was || before->queue == after->queue))
		return 0;
	int r = was ? count_open(turn, before->queue, -1) : 0;
	return r == 0 && is ? count_open(turn, after->queue, 1) : r;
}

/* It is claimed anew and has no key: see struct fair_turn. */
static void serve_keyless(struct turn *turn, uint32_t queue)
{
	struct limited_queue *limited = limited_find(turn->store, queue);

	if (limited)
		limited->keyless_served = turn->store->index.lanes.sublanes.served_last + ++turn->served;
}

int limits_follow(struct turn *turn, const struct task *before, const struct task *after)
{
	bool was_keyless = before->concurrency_key == 0, is_keyless = after->concurrency_key == 0;
	bool was = task_is_claimed(before), is = task_is_claimed(after);

	if (before->concurrency_key != 0 || after->concurrency_key != 0) {
		int kept = running_keys_follow(turn, before, after);
		if (kept < 0)
			return kept;
	}
	if (slab_used(&turn->store->limited) == 0)
		return 0;
	int r = follow_review(turn, before, after);
	if (r == 0)
		r = follow_open(turn, before, after);
	if (r < 0 || (was == is && (!was || (before->queue == after->queue && was_keyless == is_keyless))))
		return r;
	r = was ? count_live(turn, before->queue, was_keyless, -1) : 0;
	if (r == 0 && is)
		r = count_live(turn, after->queue, is_keyless, 1);
	if (r == 0 && is && !was && is_keyless)
		serve_keyless(turn, after->queue);
	return r == 0 && is && !was ? rates_take(turn, after) : r;
}

/* The first limit of a queue comes in the middle of a turn: what the turn did before counts too. */
static int count_again(struct turn *turn, uint32_t queue)
{
	const struct index *index = &turn->store->index;
	struct task before;
	int r = 0;

	for (uint32_t i = 0; r == 0 && i < turn->task_count; i++) {
		const struct turn_task *view = turn->tasks[i];
		if (view->place != MAP_NONE)
			index_get(index, view->place, &before);
		if (view->place != MAP_NONE && before.queue == queue && task_is_claimed(&before))
			r = count_live(turn, queue, before.concurrency_key == 0, -1);
		if (r == 0 && view->place != MAP_NONE && before.queue == queue)
			r = count_open(turn, queue, -1);
		if (r == 0 && view->place != MAP_NONE && before.queue == queue && before.state == TASK_REVIEW)
			r = count_review(turn, queue, -1);
		if (r == 0 && !view->gone && view->task.queue == queue && view->task.state == TASK_REVIEW)
			r = count_review(turn, queue, 1);
		if (r == 0 && !view->gone && view->task.queue == queue && task_is_claimed(&view->task))
			r = count_live(turn, queue, view->task.concurrency_key == 0, 1);
		if (r == 0 && !view->gone && view->task.queue == queue && is_open(&view->task))
			r = count_open(turn, queue, 1);
	}
	return r;
}

/* How much of the queue counts, as far as it is committed. */
static struct queue_load load_of(const struct store *store, uint32_t queue)
{
	uint32_t tally = index_find_tally(&store->index, queue);

	if (tally == MAP_NONE)
		return (struct queue_load){0};
	return (struct queue_load){.live = index_tally(&store->index, tally)->live,
		.review = index_tally(&store->index, tally)->count[TASK_REVIEW]};
}

enum limit_kind turn_limit(const struct turn *turn, uint32_t queue)
{
	const struct limited_queue *limited = limited_find(turn->store, queue);

	if (!limited)
		return LIMIT_NONE;
	struct queue_load load = load_of(turn->store, queue);
	bool is_touched = limited->turn == turn->number;
	if (is_touched) {
		assert((int64_t)load.live + limited->more_live >= 0); /* a claim that ends was counted */
		assert((int64_t)load.review + limited->more_review >= 0);
		load.live = (uint32_t)((int64_t)load.live + limited->more_live);
		load.review = (uint32_t)((int64_t)load.review + limited->more_review);
	}
	enum limit_kind limit = limits_judge(is_touched ? &limited->next : &limited->limits, &load);
	if (limit == LIMIT_NONE && turn_rate_opens_ms(turn, queue, 0) != 0)
		limit = LIMIT_RATE;
	return limit;
}

bool turn_queue_is_full(const struct turn *turn, uint32_t queue)
{
	const struct limited_queue *limited = limited_find(turn->store, queue);
	bool is_touched = limited && limited->turn == turn->number;
	int64_t open = 0;

	if (!limited)
		return false;
	uint32_t at = index_find_tally(&turn->store->index, queue);
	for (int i = 0; at != MAP_NONE && i < TASK_STATE_COUNT; i++)
		open += index_tally(&turn->store->index, at)->count[i]; /* final ones are not counted */
	open += is_touched ? limited->more_open : 0;
	assert(open >= 0);
	return limits_are_full(is_touched ? &limited->next : &limited->limits, (uint64_t)open);
}

struct limited_queue *turn_fair_queue(const struct turn *turn, uint32_t queue)
{
	struct limited_queue *limited = limited_find(turn->store, queue);
	bool is_touched = limited && limited->turn == turn->number;

	return limited && (is_touched ? limited->next : limited->limits).fair ? limited : NULL;
}

struct fair_turn turn_fair_keyless(const struct turn *turn, uint32_t queue)
{
	const struct limited_queue *limited = limited_find(turn->store, queue);
	uint32_t at = index_find_tally(&turn->store->index, queue);
	struct fair_turn its = {0};

	if (at != MAP_NONE) {
		const struct queue_tally *tally = index_tally(&turn->store->index, at);
		its = (struct fair_turn){tally->live - tally->live_keyed, tally->keyless_served};
	}
	if (limited && limited->turn == turn->number) {
		assert((int64_t)its.live + limited->more_keyless >= 0);
		its.live = (uint32_t)((int64_t)its.live + limited->more_keyless);
		its.served = limited->keyless_served != 0 ? limited->keyless_served : its.served;
	}
	return its;
}

struct queue_limits turn_limits(const struct turn *turn, uint32_t queue, uint64_t key, uint32_t *ret_cap)
{
	const struct limited_queue *limited = limited_find(turn->store, queue);
	bool is_touched = limited && limited->turn == turn->number;

	*ret_cap = limited ? cap_of(is_touched ? limited->next_caps : limited->caps, key) : 0;
	if (!limited)
		return (struct queue_limits){0};
	return is_touched ? limited->next : limited->limits;
}

static bool rules_of_keys_differ(const struct limited_queue *limited)
{
	return limited->caps != limited->next_caps || limited->limits.per_key != limited->next.per_key ||
		limited->limits.sequential != limited->next.sequential ||
		limited->limits.fair != limited->next.fair;
}

void limits_apply(struct turn *turn)
{
	for (uint32_t i = 0; i < turn->limited_count; i++) {
		struct limited_queue *limited = turn->limited[i];
		bool differs = rules_of_keys_differ(limited);
		if (differs)
			running_keys_lift(turn->store, limited->queue);
		if (limited->limits.fair != limited->next.fair)
			lanes_set_fair(&turn->store->index.lanes, limited->queue, limited->next.fair);
		limited->limits = limited->next;
		if (limited->caps != limited->next_caps)
			free(limited->caps);
		limited->caps = limited->next_caps;
		if (differs)
			running_keys_lower(turn->store, limited->queue);
	}
}

void limits_forget(struct turn *turn)
{
	for (uint32_t i = 0; i < turn->limited_count; i++) {
		struct limited_queue *limited = turn->limited[i];
		if (limited->next_caps != limited->caps)
			free(limited->next_caps);
		limited->next_caps = limited->caps;
	}
}

/* ---- people ------------------------------------------------------------------------------------------------------ */

static int write_limits(struct turn *turn, struct limited_queue *limited, struct limits_decision decision)
{
	struct span name = names_text(&turn->store->names, limited->queue);
	char data[SMALL_BYTES_MAX];

	limited->next = decision.limits;
	return limits_are_none(&decision.limits)
		? turn_put(turn, delete_small, SMALL_LIMITS, name)
		: turn_put(turn, put_small, SMALL_LIMITS, name, small_limits_put(&decision.limits, data));
}

/* The queue, the character 31, and the key. */
static struct span cap_name(struct turn *turn, uint32_t queue, struct span key)
{
	struct span name = names_text(&turn->store->names, queue);
	char *text = arena_alloc(&turn->arena, name.len + 1 + key.len);

	if (!text)
		return (struct span){0};
	memcpy(text, name.data, name.len);
	text[name.len] = ASSIGNMENT_SEPARATOR;
	memcpy(text + name.len + 1, key.data, key.len);
	return (struct span){text, name.len + 1 + key.len};
}

/* -E2BIG: too many keys. */
static int write_cap(struct turn *turn, struct limited_queue *limited, struct span key, uint32_t most)
{
	struct key_caps *caps = caps_of_turn(limited);
	struct span name = cap_name(turn, limited->queue, key);
	char data[SMALL_BYTES_MAX];

	if (!caps || name.len == 0)
		return -ENOMEM;
	if (!caps_set(caps, key, most))
		return -E2BIG;
	return most == 0 ? turn_put(turn, delete_small, SMALL_KEY_CAP, name)
			 : turn_put(turn, put_small, SMALL_KEY_CAP, name, small_cap_put(most, data));
}

static int lift_caps(struct turn *turn, struct limited_queue *limited)
{
	int r = 0;

	while (r == 0 && limited->next_caps && limited->next_caps->count > 0)
		r = write_cap(turn, limited, span_of(limited->next_caps->items[0].text), 0);
	return r;
}

static bool changes_a_cap(const struct limited_queue *limited, const struct command_queue_limit *wanted)
{
	bool changes = wanted->lifts_caps && limited->next_caps && limited->next_caps->count > 0;

	for (uint32_t i = 0; !changes && i < wanted->cap_count; i++)
		changes = cap_of(limited->next_caps, concurrency_key_number(wanted->caps[i].key)) !=
			wanted->caps[i].most;
	return changes;
}

static uint32_t caps_after(const struct limited_queue *limited, const struct command_queue_limit *wanted)
{
	uint32_t count = limited->next_caps && !wanted->lifts_caps ? limited->next_caps->count : 0;

	for (uint32_t i = 0; i < wanted->cap_count; i++) {
		uint32_t before = wanted->lifts_caps
			? 0
			: cap_of(limited->next_caps, concurrency_key_number(wanted->caps[i].key));
		count += (uint32_t)(wanted->caps[i].most != 0) - (uint32_t)(before != 0);
	}
	return count;
}

static int write_caps(
	struct turn *turn, struct limited_queue *limited, const struct command_queue_limit *wanted)
{
	int r = wanted->lifts_caps ? lift_caps(turn, limited) : 0;

	for (uint32_t i = 0; r == 0 && i < wanted->cap_count; i++)
		r = write_cap(turn, limited, wanted->caps[i].key, wanted->caps[i].most);
	return r;
}

static bool rates_equal(const struct rate *a, const struct rate *b)
{
	return a->count == b->count && a->per_ms == b->per_ms && a->burst == b->burst &&
		a->per_key == b->per_key;
}

/* The event has all limits of the queue as they are after it. */
static int tell_limits(struct turn *turn, const struct limited_queue *limited)
{
	struct record record = turn_record(turn, EVENT_QUEUE_UPDATED);
	const struct queue_limits *limits = &limited->next;

	record.subject = names_text(&turn->store->names, limited->queue);
	if (limits->concurrency != 0)
		record_fact(&record, FACT_CONCURRENCY, limits->concurrency);
	if (limits->per_key != 0)
		record_fact(&record, FACT_PER_KEY, limits->per_key);
	if (limits->sequential)
		record_fact(&record, FACT_SEQUENTIAL, 1);
	if (limits->rate.count != 0) {
		record_fact(&record, FACT_RATE, limits->rate.count);
		record_fact(&record, FACT_RATE_MS, limits->rate.per_ms);
		record_fact(&record, FACT_BURST, limits->rate.burst);
	}
	if (limits->rate.per_key)
		record_fact(&record, FACT_RATE_PER_KEY, 1);
	if (limits->review != 0)
		record_fact(&record, FACT_REVIEW_MOST, limits->review);
	if (limits->fair)
		record_fact(&record, FACT_FAIR, 1);
	if (limits->max_open != 0)
		record_fact(&record, FACT_MAX_OPEN, limits->max_open);
	if (limited->next_caps && limited->next_caps->count > 0)
		record_fact(&record, FACT_KEY_CAPS, limited->next_caps->count);
	return turn_write_event(turn, &record);
}

int execute_queue_limit(struct turn *turn, const struct command *command, struct result *result)
{
	const struct command_queue_limit *wanted = &command->queue_limit;
	uint32_t queue;
	int r = turn_name(turn, wanted->queue, &queue);

	if (r < 0)
		return r == -E2BIG ? command_refuse(result, REFUSED_TOO_LARGE) : r;
	struct limited_queue *limited = limited_find(turn->store, queue);
	bool is_new = !limited;
	if (is_new && slab_used(&turn->store->limited) >= LIMITED_QUEUES_MAX)
		return command_refuse(result, REFUSED_TOO_LARGE);
	if (is_new)
		limited = limited_make(turn->store, queue);
	r = limited ? limited_touch(turn, limited) : -ENOMEM;
	if (r == 0 && is_new)
		r = count_again(turn, queue);
	if (r == 0)
		r = running_keys_touch(turn, queue);
	if (r < 0)
		return r;
	struct limits_decision decision = limits_change(&limited->next, &wanted->patch);
	bool changes_caps = changes_a_cap(limited, wanted);
	result->repeated = decision.event == EVENT_NONE && !changes_caps;
	if (result->repeated)
		return 0;
	if (caps_after(limited, wanted) > KEY_CAPS_MAX)
		return command_refuse(result, REFUSED_TOO_LARGE);
	limited->opened = true;
	struct rate before = limited->next.rate;
	if (decision.event != EVENT_NONE)
		r = write_limits(turn, limited, decision);
	if (r == 0 && !rates_equal(&before, &limited->next.rate))
		r = rates_fill(turn, queue);
	if (r == 0 && changes_caps)
		r = write_caps(turn, limited, wanted);
	return r < 0 ? r : tell_limits(turn, limited);
}

/* ---- looking: what is committed ---------------------------------------------------------------------------------- */

struct queue_limits store_limits(const struct store *store, uint32_t queue, struct queue_load *ret_load)
{
	const struct limited_queue *limited = limited_find(store, queue);

	*ret_load = load_of(store, queue);
	return limited ? limited->limits : (struct queue_limits){0};
}

struct queue_limits store_key_limits(
	const struct store *store, uint32_t queue, uint64_t key, uint32_t *ret_cap, bool *ret_any)
{
	const struct limited_queue *limited = limited_find(store, queue);

	*ret_any = limited != NULL;
	*ret_cap = limited ? cap_of(limited->caps, key) : 0;
	return limited ? limited->limits : (struct queue_limits){0};
}

uint32_t store_count_caps(const struct store *store, uint32_t queue)
{
	const struct limited_queue *limited = limited_find(store, queue);

	return limited && limited->caps ? limited->caps->count : 0;
}

bool store_next_cap(const struct store *store, uint32_t queue, uint32_t *at, struct key_cap *ret_cap)
{
	const struct limited_queue *limited = limited_find(store, queue);

	if (!limited || !limited->caps || *at >= limited->caps->count)
		return false;
	*ret_cap = limited->caps->items[(*at)++];
	return true;
}

enum limit_kind store_limit(const struct store *store, uint32_t queue)
{
	struct queue_load load;
	struct queue_limits limits = store_limits(store, queue, &load);
	enum limit_kind limit = limits_judge(&limits, &load);

	return limit == LIMIT_NONE && store_rate_opens_ms(store, queue, 0) != 0 ? LIMIT_RATE : limit;
}

bool limits_has_opened(const struct store *store, uint32_t queue)
{
	const struct limited_queue *limited = limited_find(store, queue);

	return limited && limited->turn == store->turn.number && limited->opened;
}

bool limits_next_opened(const struct store *store, uint32_t *at, uint32_t *ret_queue, uint32_t *ret_room)
{
	const struct turn *turn = &store->turn;
	struct queue_load load;

	while (*at < turn->limited_count) {
		const struct limited_queue *limited = turn->limited[(*at)++];
		struct queue_limits limits = store_limits(store, limited->queue, &load);
		*ret_queue = limited->queue;
		*ret_room = limited->opened ? limits_room(&limits, &load) : 0;
		if (*ret_room > 0)
			return true;
	}
	return false;
}
