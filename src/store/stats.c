#include "store/stats.h"

#include <assert.h>
#include <errno.h>
#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/take.h"
#include "store/record/stats_row.h"
#include "store/turn/turn.h"

enum {
	HOURS_BY_MINUTE = 2,       /* hours before this one whose cells are minutes; … */
	HOURS_BY_TEN_MINUTES = 25, /* … ten minutes; the others are whole hours */
	HOURS_KEPT = 7 * 24 + 1,
	QUEUES_WRITTEN_MAX = 1000, /* in one minute; the others count together, without a name */
	AGED_STEP = 50,            /* rows that one sweep looks at */
	SPENT_BYTES_MAX = 4 * 21,
};

static int64_t hour_of_minute(int64_t minute)
{
	return minute / HOUR_MINUTES;
}

void stats_begin(struct store_stats *stats, struct moment now)
{
	*stats = (struct store_stats){.minute = now.wall_ms / MINUTE_MS};
}

/* ---- counting ------------------------------------------------------------------------------------ */

static void add_counts(struct spent_counts *to, const struct spent_counts *more)
{
	to->micro_usd += more->micro_usd;
	to->tokens += more->tokens;
	to->attempts += more->attempts;
	to->unpriced += more->unpriced;
}

static void add_spent(struct spent_list *list, uint32_t executor, const struct spent_counts *more)
{
	uint32_t i = 0;

	while (i < list->count && list->items[i].executor != executor)
		i++;
	if (i == SPENT_MAX) {
		i = 0; /* the first place is for those that have none of their own */
		list->items[i].executor = 0;
	} else if (i == list->count) {
		list->items[list->count++] = (struct spent){.executor = executor};
	}
	add_counts(&list->items[i].counts, more);
}

static uint64_t tokens_of(const struct usage *usage)
{
	int64_t sum = usage->counts[USAGE_INPUT] + usage->counts[USAGE_OUTPUT] +
		usage->counts[USAGE_CACHE_READ] + usage->counts[USAGE_CACHE_WRITE];

	return sum > 0 ? (uint64_t)sum : 0;
}

void stats_note_spent(struct turn *turn, const struct task *task, const struct usage *before,
	const struct usage *after, bool is_first)
{
	bool was_priced = before->is_reported && !before->price_is_unknown;
	bool is_priced = after->is_reported && !after->price_is_unknown;
	int64_t micro_usd = (is_priced ? after->counts[USAGE_MICRO_USD] : 0) -
		(was_priced ? before->counts[USAGE_MICRO_USD] : 0);
	uint64_t tokens = tokens_of(after), told = tokens_of(before);

	add_spent(&turn->spent, task->executor,
		&(struct spent_counts){
			.micro_usd = micro_usd > 0 ? (uint64_t)micro_usd : 0,
			.tokens = tokens > told ? tokens - told : 0,
			.attempts = is_first,
			.unpriced = after->price_is_unknown && (is_first || !before->price_is_unknown),
		});
}

void stats_apply_spent(struct turn *turn)
{
	struct store_stats *stats = &turn->store->stats;

	for (uint32_t i = 0; i < turn->spent.count; i++) {
		const struct spent *more = &turn->spent.items[i];
		add_spent(&stats->spent, more->executor, &more->counts);
		add_spent(&stats->since_start, more->executor, &more->counts);
	}
}

/* ---- rows of money -------------------------------------------------------------------------------- */

static bool spent_read(struct span data, struct spent_counts *ret_counts)
{
	uint64_t *const numbers[] = {
		&ret_counts->micro_usd, &ret_counts->tokens, &ret_counts->attempts, &ret_counts->unpriced};
	char text[SPENT_BYTES_MAX + 1], *at = text;

	*ret_counts = (struct spent_counts){0};
	if (data.len >= sizeof text)
		return false;
	if (data.len > 0)
		memcpy(text, data.data, data.len);
	text[data.len] = 0;
	for (size_t i = 0; i < sizeof numbers / sizeof *numbers; i++) {
		char *end;
		*numbers[i] = strtoull(at, &end, 10);
		if (end == at)
			return false;
		at = end;
	}
	return *at == 0;
}

/* A row that is damaged begins anew: figures are no reason to stop. */
static int find_row(struct turn *turn, enum small_kind kind, struct span key, struct span *ret_data)
{
	int r = store_rows(turn->store, get_small, kind, key, &turn->arena, ret_data);

	if (r == -ENOENT || r == -EBADMSG) {
		*ret_data = (struct span){0};
		return 0;
	}
	return r;
}

static int write_spent(struct turn *turn, const struct spent *spent, int64_t hour)
{
	cleanup(buf_done) struct buf key = {.max = STATS_KEY_BYTES_MAX};
	char text[SPENT_BYTES_MAX];
	struct spent_counts sum;
	struct span kept;

	stats_key_put(hour, names_text(&turn->store->names, spent->executor), &key);
	int r = buf_fault(&key);
	if (r == 0)
		r = find_row(turn, SMALL_SPENT, buf_span(&key), &kept);
	if (r < 0)
		return r;
	if (!spent_read(kept, &sum))
		sum = (struct spent_counts){0};
	add_counts(&sum, &spent->counts);
	int len = snprintf(text, sizeof text, "%" PRIu64 " %" PRIu64 " %" PRIu64 " %" PRIu64, sum.micro_usd,
		sum.tokens, sum.attempts, sum.unpriced);
	return turn_put(turn, put_small, SMALL_SPENT, buf_span(&key), (struct span){text, (size_t)len});
}

/* ---- rows of queues -------------------------------------------------------------------------------- */

static int put_row(struct turn *turn, struct span key, const struct stats_row *row)
{
	buf_clear(&turn->record);
	stats_row_put(row, &turn->record);
	int r = buf_fault(&turn->record);

	return r < 0 ? r : turn_put(turn, put_small, SMALL_STATS, key, buf_span(&turn->record));
}

static int write_cell(struct turn *turn, struct span queue, const struct stats_cell *cell)
{
	cleanup(buf_done) struct buf key = {.max = STATS_KEY_BYTES_MAX};
	int64_t minute = turn->store->stats.minute;
	struct stats_row row;
	struct span kept;

	stats_key_put(hour_of_minute(minute), queue, &key);
	int r = buf_fault(&key);
	if (r == 0)
		r = find_row(turn, SMALL_STATS, buf_span(&key), &kept);
	if (r < 0)
		return r;
	if (!stats_row_read(kept, &row))
		row = (struct stats_row){.step = 1};
	stats_add(&row.cells[minute % HOUR_MINUTES / row.step], cell);
	return put_row(turn, buf_span(&key), &row);
}

static int write_queues(struct turn *turn)
{
	const struct index *index = &turn->store->index;
	const struct queue_tally *tally;
	struct stats_cell others = {0};
	uint32_t written = 0;
	int r = 0;

	for (uint32_t i = 0; r == 0 && (tally = index_tally(index, i)); i++) {
		if (stats_are_none(&tally->fresh))
			continue;
		if (written == QUEUES_WRITTEN_MAX) {
			stats_add(&others, &tally->fresh);
			continue;
		}
		written++;
		r = write_cell(turn, names_text(&turn->store->names, tally->queue), &tally->fresh);
	}
	return r < 0 || stats_are_none(&others) ? r : write_cell(turn, (struct span){"", 0}, &others);
}

/* ---- growing old ------------------------------------------------------------------------------------ */

struct aged_row {
	struct span key, data;
};

struct aging {
	struct arena *arena;
	struct aged_row rows[AGED_STEP];
	uint32_t count;
};

static int keep_row(void *context, struct span key, struct span data)
{
	struct aging *aging = context;
	struct aged_row *row = &aging->rows[aging->count];

	assert(aging->count < AGED_STEP);
	int r = arena_copy(aging->arena, key, &row->key);
	if (r == 0)
		r = arena_copy(aging->arena, data, &row->data);
	aging->count += r == 0;
	return r;
}

/* The length of the cells of a row that is so many hours old. */
static uint32_t step_of_age(int64_t hours)
{
	if (hours <= HOURS_BY_MINUTE)
		return 1;
	return hours <= HOURS_BY_TEN_MINUTES ? 10 : HOUR_MINUTES;
}

static int age_row(struct turn *turn, const struct aged_row *aged, int64_t this_hour)
{
	struct stats_row row;
	struct span queue;
	int64_t hour;

	if (!stats_key_read(aged->key, &hour, &queue) || this_hour - hour > HOURS_KEPT)
		return turn_put(turn, delete_small, SMALL_STATS, aged->key);
	uint32_t step = step_of_age(this_hour - hour);
	if (!stats_row_read(aged->data, &row) || row.step >= step)
		return 0;
	stats_row_fold(&row, step);
	return put_row(turn, aged->key, &row);
}

/* Rows are few hours old at the end, so the walk goes over all of them once an hour. */
static int age_rows(struct turn *turn, int64_t this_hour)
{
	struct store_stats *stats = &turn->store->stats;
	struct aging *aging = arena_alloc(&turn->arena, sizeof *aging);

	if (!aging)
		return -ENOMEM;
	*aging = (struct aging){.arena = &turn->arena};
	struct span after = {stats->aged_to, stats->aged_to_len};
	int r = store_rows(turn->store, page_small, SMALL_STATS, after, AGED_STEP, keep_row, aging);
	if (r < 0)
		return r == -EBADMSG ? 0 : r; /* nothing behind it grows old before the next hour */
	for (uint32_t i = 0; r == 0 && i < aging->count; i++)
		r = age_row(turn, &aging->rows[i], this_hour);
	stats->is_aging = aging->count == AGED_STEP;
	if (aging->count > 0) {
		struct span last = aging->rows[aging->count - 1].key;
		stats->aged_to_len = last.len;
		memcpy(stats->aged_to, last.data, last.len);
	}
	return r;
}

/* There are few of them: at most as many an hour as executors. */
static int age_spent(struct turn *turn, int64_t this_hour)
{
	struct aging *aging = arena_alloc(&turn->arena, sizeof *aging);
	struct span executor;
	int64_t hour;

	if (!aging)
		return -ENOMEM;
	*aging = (struct aging){.arena = &turn->arena};
	int r = store_rows(
		turn->store, page_small, SMALL_SPENT, (struct span){"", 0}, AGED_STEP, keep_row, aging);
	for (uint32_t i = 0; r == 0 && i < aging->count; i++) {
		struct span key = aging->rows[i].key;
		if (!stats_key_read(key, &hour, &executor) || this_hour - hour > HOURS_KEPT)
			r = turn_put(turn, delete_small, SMALL_SPENT, key);
	}
	return r == -EBADMSG ? 0 : r;
}

static int grow_old(struct turn *turn, int64_t this_hour)
{
	struct store_stats *stats = &turn->store->stats;

	if (stats->aged_hour != this_hour) {
		stats->aged_hour = this_hour;
		stats->is_aging = true;
		stats->aged_to_len = 0;
		int r = age_spent(turn, this_hour);
		if (r < 0)
			return r;
	}
	return stats->is_aging ? age_rows(turn, this_hour) : 0;
}

/* ---- the sweep ---------------------------------------------------------------------------------------- */

int stats_write(struct turn *turn, bool all)
{
	struct store_stats *stats = &turn->store->stats;
	int64_t minute = turn->given.now.wall_ms / MINUTE_MS;
	int r = 0;

	if (minute <= 0) /* the clock is not set */
		return 0;
	if (stats->minute == 0)
		stats->minute = minute;
	if (stats->minute != minute || all) {
		r = write_queues(turn);
		for (uint32_t i = 0; r == 0 && i < stats->spent.count; i++)
			r = write_spent(turn, &stats->spent.items[i], hour_of_minute(stats->minute));
		turn->wrote_stats = true;
	}
	return r < 0 ? r : grow_old(turn, hour_of_minute(minute));
}

void stats_forget(struct turn *turn)
{
	struct store_stats *stats = &turn->store->stats;
	struct index *index = &turn->store->index;

	if (!turn->wrote_stats)
		return;
	for (uint32_t i = 0; index_tally(index, i); i++)
		index_forget_fresh(index, i);
	stats->spent.count = 0;
	stats->minute = turn->given.now.wall_ms / MINUTE_MS;
}

/* ---- reading -------------------------------------------------------------------------------------------- */

struct stats_key stats_first_key(int64_t hour)
{
	struct stats_key key = {.len = STATS_KEY_HOUR_BYTES};

	snprintf(key.text, sizeof key.text, "%07d", (int)hour);
	key.len--; /* the key is behind what it is given as: the last digit is left out, and earlier hours are passed over */
	return key;
}

struct stats_page {
	struct stats_key *key;
	uint32_t count;
	void (*each_stats)(void *context, int64_t hour, struct span queue, uint32_t step,
		const struct stats_cell *cells);
	void (*each_spent)(
		void *context, int64_t hour, struct span executor, const struct spent_counts *counts);
	void *context;
};

static void move_key(struct stats_page *page, struct span key)
{
	page->count++;
	page->key->len = key.len < sizeof page->key->text ? key.len : sizeof page->key->text;
	memcpy(page->key->text, key.data, page->key->len);
}

static int page_stats(void *context, struct span key, struct span data)
{
	struct stats_page *page = context;
	struct stats_row row;
	struct span queue;
	int64_t hour;

	move_key(page, key);
	if (stats_key_read(key, &hour, &queue) && stats_row_read(data, &row))
		page->each_stats(page->context, hour, queue, row.step, row.cells);
	return 0;
}

static int page_spent(void *context, struct span key, struct span data)
{
	struct stats_page *page = context;
	struct spent_counts counts;
	struct span executor;
	int64_t hour;

	move_key(page, key);
	if (stats_key_read(key, &hour, &executor) && spent_read(data, &counts))
		page->each_spent(page->context, hour, executor, &counts);
	return 0;
}

int store_page_stats(struct store *store, struct stats_key *key, uint32_t limit, bool *ret_more,
	void (*each)(void *context, int64_t hour, struct span queue, uint32_t step,
		const struct stats_cell *cells),
	void *context)
{
	struct stats_page page = {.key = key, .each_stats = each, .context = context};
	struct stats_key after = *key;
	int r = store_rows(store, page_small, SMALL_STATS, (struct span){after.text, after.len}, limit,
		page_stats, &page);

	*ret_more = page.count == limit;
	return r;
}

int store_page_spent(struct store *store, struct stats_key *key, uint32_t limit, bool *ret_more,
	void (*each)(void *context, int64_t hour, struct span executor, const struct spent_counts *counts),
	void *context)
{
	struct stats_page page = {.key = key, .each_spent = each, .context = context};
	struct stats_key after = *key;
	int r = store_rows(store, page_small, SMALL_SPENT, (struct span){after.text, after.len}, limit,
		page_spent, &page);

	*ret_more = page.count == limit;
	return r;
}

void store_each_fresh_stats(const struct store *store,
	void (*each)(void *context, int64_t minute, struct span queue, const struct stats_cell *cell),
	void *context)
{
	const struct queue_tally *tally;

	for (uint32_t i = 0; store->stats.minute > 0 && (tally = index_tally(&store->index, i)); i++) {
		if (!stats_are_none(&tally->fresh))
			each(context, store->stats.minute, names_text(&store->names, tally->queue),
				&tally->fresh);
	}
}

void store_each_fresh_spent(const struct store *store,
	void (*each)(void *context, int64_t minute, struct span executor, const struct spent_counts *counts),
	void *context)
{
	const struct store_stats *stats = &store->stats;

	for (uint32_t i = 0; stats->minute > 0 && i < stats->spent.count; i++)
		each(context, stats->minute, names_text(&store->names, stats->spent.items[i].executor),
			&stats->spent.items[i].counts);
}

void store_each_spent_since_start(const struct store *store,
	void (*each)(void *context, struct span executor, const struct spent_counts *counts), void *context)
{
	const struct spent_list *list = &store->stats.since_start;

	for (uint32_t i = 0; i < list->count; i++)
		each(context, names_text(&store->names, list->items[i].executor), &list->items[i].counts);
}
