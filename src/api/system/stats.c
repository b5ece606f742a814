/*
 * Figures over time: what ended, how long claims were waited for, and what was spent, in an hour, a day or a week.
 *
 * The rows are read in slices and added up into points of the length that the span has; the reply is written at the end.
 */
#include <errno.h>
#include <string.h>

#include "api/call.h"

enum {
	POINTS_MAX = 168,
	SPENT_TOLD_MAX = 200,
	SPENT_HOURS_MAX = 2048, /* of a week, all executors together */
	SLICE_ROWS = 200,
	HALF = 500,
	MOST = 950,
	STATS_MINUTE_MS = 60000,
	STATS_HOUR_MS = 60 * STATS_MINUTE_MS,
};

static const struct {
	const char *name;
	int64_t step_ms;
	uint32_t points;
	bool has_hours; /* what was spent is told by hour, too: a reader makes days of its own zone of them */
} spans[] = {
	{"1h", STATS_MINUTE_MS, 60, false},
	{"24h", 10 * STATS_MINUTE_MS, 144, false},
	{"7d", STATS_HOUR_MS, POINTS_MAX, true},
};

enum {
	SPANS = sizeof spans / sizeof *spans,
};

enum stats_step {
	STATS_OF_QUEUES,
	STATS_OF_SPENT,
};

struct spent_told {
	struct span executor;
	struct spent_counts counts;
};

struct spent_hour {
	uint32_t executor; /* in `spent` */
	int64_t hour;
	struct spent_counts counts;
};

struct stats_read {
	struct api_call *call;
	struct span queue; /* empty: all that may be seen */
	uint32_t span;     /* in `spans` */
	int64_t from_ms;   /* where the first point begins */
	enum stats_step step;
	struct stats_key key;
	struct stats_cell points[POINTS_MAX];
	struct stats_cell total;
	struct spent_told spent[SPENT_TOLD_MAX];
	uint32_t spent_count;
	struct spent_hour *hours; /* NULL: not asked for */
	uint32_t hour_count;
	int fault;
};

static bool is_wanted(const struct stats_read *read, struct span queue)
{
	const struct principal *who = &read->call->who;

	if (read->queue.data)
		return span_equal(queue, read->queue);
	return who->queues.count == 0 || principal_serves(who, queue);
}

static void add_cell(struct stats_read *read, int64_t at_ms, const struct stats_cell *cell)
{
	int64_t place = (at_ms - read->from_ms) / spans[read->span].step_ms;

	if (at_ms < read->from_ms || place >= spans[read->span].points)
		return;
	stats_add(&read->points[place], cell);
	stats_add(&read->total, cell);
}

static void add_row(
	void *context, int64_t hour, struct span queue, uint32_t step_minutes, const struct stats_cell *cells)
{
	struct stats_read *read = context;

	if (!is_wanted(read, queue))
		return;
	for (uint32_t i = 0; i * step_minutes < STATS_HOUR_MS / STATS_MINUTE_MS; i++)
		add_cell(read, hour * STATS_HOUR_MS + (int64_t)i * step_minutes * STATS_MINUTE_MS, &cells[i]);
}

static void add_fresh(void *context, int64_t minute, struct span queue, const struct stats_cell *cell)
{
	struct stats_read *read = context;

	if (is_wanted(read, queue))
		add_cell(read, minute * STATS_MINUTE_MS, cell);
}

static void add_counts(struct spent_counts *sum, const struct spent_counts *more)
{
	sum->micro_usd += more->micro_usd;
	sum->tokens += more->tokens;
	sum->attempts += more->attempts;
	sum->unpriced += more->unpriced;
}

/* Rows come in order of time, so that what belongs together is near the end. What finds no room is in the sum alone. */
static void add_hour(
	struct stats_read *read, uint32_t executor, int64_t hour, const struct spent_counts *counts)
{
	uint32_t i = read->hour_count;

	while (i > 0 && read->hours[i - 1].hour >= hour) {
		i--;
		if (read->hours[i].hour == hour && read->hours[i].executor == executor) {
			add_counts(&read->hours[i].counts, counts);
			return;
		}
	}
	if (read->hour_count < SPENT_HOURS_MAX)
		read->hours[read->hour_count++] = (struct spent_hour){executor, hour, *counts};
}

/* An hour counts when it ends within the span. */
static void add_spent(void *context, int64_t hour, struct span executor, const struct spent_counts *counts)
{
	struct stats_read *read = context;
	uint32_t i = 0;

	if ((hour + 1) * STATS_HOUR_MS <= read->from_ms)
		return;
	while (i < read->spent_count && !span_equal(read->spent[i].executor, executor))
		i++;
	if (i == SPENT_TOLD_MAX)
		return;
	struct spent_told *told = &read->spent[i];
	if (i == read->spent_count) {
		int r = arena_copy(read->call->arena, executor, &told->executor);
		read->fault = r < 0 ? r : read->fault;
		read->spent_count += r == 0;
	}
	add_counts(&told->counts, counts);
	if (read->hours && i < read->spent_count)
		add_hour(read, i, hour, counts);
}

static void add_fresh_spent(
	void *context, int64_t minute, struct span executor, const struct spent_counts *counts)
{
	add_spent(context, minute * STATS_MINUTE_MS / STATS_HOUR_MS, executor, counts);
}

/* ---- the reply ------------------------------------------------------------------------------------ */

static void put_cell(struct json_object *object, const struct stats_cell *cell)
{
	json_member_int(object, "done", cell->done);
	json_member_int(object, "failed", cell->failed);
	json_member_int(object, "cancelled", cell->cancelled);
	json_member_int(object, "claims", (int64_t)stats_waited(cell));
	if (stats_waited(cell) == 0)
		return;
	json_member_int(object, "waitHalfMs", stats_wait_ms(cell, HALF));
	json_member_int(object, "waitMostMs", stats_wait_ms(cell, MOST));
}

static void put_points(struct json_object *object, const struct stats_read *read)
{
	struct buf *out = object->buf;
	struct json_object point;
	bool any = false;

	if (!json_put_key(object, "points"))
		return;
	buf_put_byte(out, '[');
	for (uint32_t i = 0; i < spans[read->span].points; i++) {
		if (stats_are_none(&read->points[i]))
			continue;
		json_put_comma(out, &any);
		json_begin(&point, out);
		json_member_int(&point, "at", read->from_ms + (int64_t)i * spans[read->span].step_ms);
		put_cell(&point, &read->points[i]);
		json_note(object, json_end(&point));
	}
	buf_put_byte(out, ']');
}

static void put_counts(struct json_object *object, const struct spent_counts *counts)
{
	json_member_int(object, "attempts", (int64_t)counts->attempts);
	json_member_int(object, "tokens", (int64_t)counts->tokens);
	if (json_put_key(object, "usd"))
		buf_printf(object->buf, "%llu.%06llu", (unsigned long long)(counts->micro_usd / 1000000),
			(unsigned long long)(counts->micro_usd % 1000000));
	json_member_int(object, "unpriced", (int64_t)counts->unpriced);
}

static void put_hours(struct json_object *object, const struct stats_read *read, uint32_t executor)
{
	struct buf *out = object->buf;
	struct json_object hour;
	bool any = false;

	if (!read->hours || !json_put_key(object, "hours"))
		return;
	buf_put_byte(out, '[');
	for (uint32_t i = 0; i < read->hour_count; i++) {
		if (read->hours[i].executor != executor)
			continue;
		json_put_comma(out, &any);
		json_begin(&hour, out);
		json_member_int(&hour, "at", read->hours[i].hour * STATS_HOUR_MS);
		put_counts(&hour, &read->hours[i].counts);
		json_end(&hour);
	}
	buf_put_byte(out, ']');
}

static void put_spent(struct json_object *object, const struct stats_read *read)
{
	struct buf *out = object->buf;
	struct json_object spent;
	bool any = false;

	if (!json_put_key(object, "spent"))
		return;
	buf_put_byte(out, '[');
	for (uint32_t i = 0; i < read->spent_count; i++) {
		const struct spent_told *told = &read->spent[i];
		json_put_comma(out, &any);
		json_begin(&spent, out);
		json_member_string(&spent, "executor", told->executor);
		put_counts(&spent, &told->counts);
		put_hours(&spent, read, i);
		json_note(object, json_end(&spent));
	}
	buf_put_byte(out, ']');
}

static int put_stats(struct buf *out, const struct stats_read *read)
{
	struct json_object object, total;

	json_begin(&object, out);
	json_member_cstr(&object, "span", spans[read->span].name);
	json_member_int(&object, "from", read->from_ms);
	json_member_int(&object, "stepMs", spans[read->span].step_ms);
	json_member_int(&object, "steps", spans[read->span].points);
	put_points(&object, read);
	if (json_put_key(&object, "total")) {
		json_begin(&total, out);
		put_cell(&total, &read->total);
		json_note(&object, json_end(&total));
	}
	if (read->call->who.queues.count == 0) /* money is counted by executor, not by queue */
		put_spent(&object, read);
	return json_end(&object);
}

/* ---- the route --------------------------------------------------------------------------------------- */

static bool take_span(struct api_call *call, struct span wanted, uint32_t *ret_span)
{
	*ret_span = 0;
	if (!wanted.data)
		return true;
	for (uint32_t i = 0; i < SPANS; i++) {
		if (span_is(wanted, spans[i].name)) {
			*ret_span = i;
			return true;
		}
	}
	return call_refuse_field(call, "span", "must be 1h, 24h or 7d");
}

/* NULL: it was refused. */
static struct stats_read *read_new(struct api_call *call)
{
	struct query_value values[] = {{.name = "span"}, {.name = "queue"}};
	uint32_t span;

	if (!query_read(call, values, 2) || !take_span(call, values[0].value, &span) ||
		!call_require(call, !values[1].value.data || principal_serves(&call->who, values[1].value),
			REFUSED_FORBIDDEN, "This credential does not see that queue."))
		return NULL;
	struct stats_read *read = call_detail(call, sizeof *read);
	if (!read)
		return NULL;
	if (spans[span].has_hours && call->who.queues.count == 0) {
		read->hours = arena_take(call->arena, SPENT_HOURS_MAX * sizeof *read->hours);
		if (!read->hours) {
			call_refuse_request(call, -ENOMEM);
			return NULL;
		}
	}
	int64_t step_ms = spans[span].step_ms;
	read->call = call;
	read->span = span;
	read->queue = values[1].value;
	read->from_ms = (call->now.wall_ms / step_ms - (spans[span].points - 1)) * step_ms;
	read->key = stats_first_key(read->from_ms / STATS_HOUR_MS);
	return read;
}

/* What is in no row yet, at the end: in the same slice as the last row, so that nothing is counted twice. */
static int read_slice(struct stats_read *read, bool *ret_more)
{
	struct store *store = read->call->store;
	int r;

	*ret_more = true;
	if (read->step == STATS_OF_QUEUES) {
		bool more;
		r = store_page_stats(store, &read->key, SLICE_ROWS, &more, add_row, read);
		if (r < 0 || more)
			return r;
		store_each_fresh_stats(store, add_fresh, read);
		read->step = STATS_OF_SPENT;
		read->key = stats_first_key(read->from_ms / STATS_HOUR_MS);
		return 0;
	}
	r = store_page_spent(store, &read->key, SLICE_ROWS, ret_more, add_spent, read);
	if (r == 0 && !*ret_more)
		store_each_fresh_spent(store, add_fresh_spent, read);
	return r < 0 ? r : read->fault;
}

void stats_read_all(struct api_call *call)
{
	struct stats_read *read = call->detail ? call->detail : read_new(call);
	bool more;

	if (!read)
		return;
	int r = read_slice(read, &more);
	if (r == 0 && more) {
		call_again(call);
		return;
	}
	call_reply_begin(call);
	call_reply(call, 200, r < 0 ? r : put_stats(call->body, read));
}
