/*
 * A lost tail: PostgreSQL has fewer turns than were acknowledged, because it failed over to a copy that was behind, or was
 * restored. That is a restore of the store: a new generation, so that fences of before are refused, and numbers far behind those that
 * may have been given out. The next start frees every claim and tells of it.
 *
 * Whoever acknowledged the turns knows how many are gone. When that server has gone with its database nobody does: then a change of
 * the timeline, or of the whole system, means that some may be, unless every commit waited for a standby.
 */
#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

#include "core/flow/execution.h"
#include "store/postgres/postgres_backend.h"

#define CLOCK_BEGINS_S   INT64_C(1767225600) /* 2026, as in sqlite/restore.c */
#define TASKS_PER_MINUTE INT64_C(1000000)
#define TASKS_PER_TURN   INT64_C(1024)

enum { NUMBER_MAX = (1 << 24) - 1 };

static int64_t larger(int64_t a, int64_t b)
{
	return a > b ? a : b;
}

/* More generations, and more starts, than there can have been. */
static int64_t minutes_by_now(void)
{
	int64_t minutes = larger(((int64_t)time(NULL) - CLOCK_BEGINS_S) / 60, 0);

	return minutes < NUMBER_MAX ? minutes : 0;
}

static int get_number(struct postgres *store, enum meta_key key, int64_t otherwise, int64_t *ret_value)
{
	int r = postgres_get_meta(&store->backend, key, ret_value);

	if (r == -ENOENT)
		*ret_value = otherwise;
	return r == -ENOENT ? 0 : r;
}

static int last_task(struct postgres *store, int64_t *ret_seq)
{
	PGresult *result = link_run(store, "SELECT coalesce(max(seq), 0) FROM task", 0, NULL);
	int r = pq.PQresultStatus(result) == PGRES_TUPLES_OK ? 0 : pg_fault(store, result);

	if (r == 0)
		*ret_seq = strtoll(pq.PQgetvalue(result, 0, 0), NULL, 10);
	pq.PQclear(result);
	return r;
}

struct numbers {
	int64_t generation, starts, floor;
};

static int raise_numbers(struct postgres *store, int64_t lost, struct numbers *ret_numbers)
{
	int64_t minutes = minutes_by_now(), generation, starts, floor, seq = 0;
	int r = get_number(store, META_GENERATION, 1, &generation);

	if (r == 0)
		r = get_number(store, META_STARTS, 0, &starts);
	if (r == 0)
		r = get_number(store, META_TASK_FLOOR, 0, &floor);
	if (r == 0)
		r = last_task(store, &seq);
	if (r < 0)
		return r;
	int64_t given_out = lost >= 0 ? lost * TASKS_PER_TURN : minutes * TASKS_PER_MINUTE;
	*ret_numbers = (struct numbers){1 + larger(generation, minutes), larger(starts, minutes),
		larger(larger(floor, seq) + (lost >= 0 ? given_out : 0), lost >= 0 ? 0 : given_out) +
			TASKS_PER_MINUTE};
	return 0;
}

/* What a turn sends before it is committed; the rest of the transaction is not rows of ours. */
static int put_numbers(struct postgres *store, const struct numbers *numbers, int64_t lost)
{
	struct backend *backend = &store->backend;
	bool is_disarmed = store->has_execution && !execution_is_armed(store->execution);
	char text[24] = "unknown";

	if (lost >= 0)
		snprintf(text, sizeof text, "%" PRId64, lost);
	int r = postgres_put_meta(backend, META_GENERATION, numbers->generation);
	if (r == 0)
		r = postgres_put_meta(backend, META_STARTS, numbers->starts);
	if (r == 0)
		r = postgres_put_meta(backend, META_TASK_FLOOR, numbers->floor);
	if (r == 0)
		r = postgres_put_meta(
			backend, META_RESTORED, is_disarmed ? RESTORED_OVER_DISARMED : RESTORED);
	if (r == 0)
		r = postgres_put_meta(backend, META_KEY_OF_ADMIN, 0);
	if (r == 0)
		r = postgres_put_small(backend, SMALL_LOST, SPAN("turns"), span_of(text));
	return r;
}

int lost_note_place(struct postgres *store)
{
	const char *values[] = {store->system, store->timeline, store->is_synchronous ? "t" : "f"};
	PGresult *result = link_run(
		store, "UPDATE lead SET system = $1, timeline = $2, synchronous = $3::boolean", 3, values);
	int r = pq.PQresultStatus(result) == PGRES_COMMAND_OK ? 0 : pg_fault(store, result);

	pq.PQclear(result);
	return r;
}

static int mark(struct postgres *store, int64_t lost)
{
	struct numbers numbers;
	char sql[100];
	int r = raise_numbers(store, lost, &numbers);

	if (r == 0)
		r = put_numbers(store, &numbers, lost);
	if (r == 0)
		r = turn_flush(store); /* the fence and these rows: the transaction is open */
	snprintf(sql, sizeof sql, "DELETE FROM small WHERE kind = %d; DELETE FROM secret", SMALL_LOGIN);
	if (r == 0)
		r = link_do(store, sql);
	return r == 0 ? lost_note_place(store) : r;
}

int lost_mark(struct postgres *store, int64_t lost)
{
	int r = postgres_begin(&store->backend);

	if (r == 0)
		r = mark(store, lost);
	if (r == 0)
		r = postgres_send(&store->backend);
	else
		postgres_rollback(&store->backend);
	kept_clear(store);
	return r;
}

bool lost_may_be(const struct postgres *store, const struct lead_place *before)
{
	if (!before->system[0] || before->is_synchronous)
		return false; /* nobody has led yet; or no commit was acknowledged that a standby did not have */
	return strcmp(before->system, store->system) != 0 || strcmp(before->timeline, store->timeline) != 0;
}

/* Is it noted that commits wait for a standby, and do they still? Asked from time to time: a failover believes it. */
int lost_look(struct postgres *store)
{
	PGresult *result =
		link_run(store, "SELECT current_setting('synchronous_standby_names') <> ''", 0, NULL);
	int r = pq.PQresultStatus(result) == PGRES_TUPLES_OK ? 0 : pg_fault(store, result);
	bool is_synchronous = r == 0 && pq.PQgetvalue(result, 0, 0)[0] == 't';

	pq.PQclear(result);
	if (r < 0 || is_synchronous == store->is_synchronous)
		return r;
	store->is_synchronous = is_synchronous;
	return lost_note_place(store);
}
