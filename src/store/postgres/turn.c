/*
 * The turn: what it changes goes to the server as one pipeline, which is one transaction: the fence, what is deleted, and an
 * array of rows for each table that is touched.
 *
 * Acknowledged is what the server says once the whole of it is done (ReadyForQuery), and nothing before: not the end of a
 * statement, and not a success that came with a warning (a wait for a standby that was cancelled ends so). When that word does not
 * come, the lead is taken over from ourselves first, which ends whatever the old session was doing, and then the turns are looked
 * at: ours is the last one, or it never was and is sent again.
 */
#include <endian.h>
#include <poll.h>
#include <stdlib.h>
#include <string.h>

#include "store/postgres/postgres_backend.h"

enum {
	TURN_BYTES_MAX = 1 << 30,
	TURN_ARENA_MAX = 512 << 20,
	TURN_COLUMN_BYTES_MAX = 1 << 30,
	RESENT_MAX = 3,
	SPILL_BYTES = 32 << 20,
};

int postgres_begin(struct backend *backend)
{
	struct postgres *store = postgres_of(backend);
	struct pg_turn *turn = &store->turn;

	assert(!turn->begun);         /* one transaction at a time */
	assert(turn->row_count == 0); /* the last one took all its rows, or forgot them */
	assert(turn->pack.len == 0);
	if (store->is_stale)
		return pg_is_stale(store);
	if (turn->arena.max == 0)
		arena_init(&turn->arena, TURN_ARENA_MAX);
	turn->begun = true;
	return 0;
}

/* ---- sending ---------------------------------------------------------------------------------------------- */

struct pipeline {
	struct postgres *store;
	int statements; /* whose results are to come */
	int fence;      /* place of the fence among them; -1: it was sent before */
	bool lost;      /* nothing more can be sent */
};

static void pipe_prepared(struct pipeline *pipe, int which, int count, const char *const *values,
	const int *lengths, const int *formats)
{
	char name[16];

	if (pipe->lost)
		return;
	snprintf(name, sizeof name, "s%d", which);
	pipe->lost = !pq.PQsendQueryPrepared(pipe->store->link, name, count, values, lengths, formats, 1);
	pipe->statements++;
}

static void pipe_numbers(struct pipeline *pipe, int which, int64_t first, int64_t second, int count)
{
	struct pg_parameter numbers[2] = {pg_int(first), pg_int(second)};
	const char *values[2] = {numbers[0].number, numbers[1].number};

	pipe_prepared(pipe, which, count, values, (int[]){8, 8}, (int[]){1, 1});
}

static void pipe_words(struct pipeline *pipe, const char *words)
{
	if (pipe->lost)
		return;
	pipe->lost = !pq.PQsendQueryParams(pipe->store->link, words, 0, NULL, NULL, NULL, NULL, 0);
	pipe->statements++;
}

/* An array of one dimension in PostgreSQL's binary form; elements are put behind it. */
static void begin_array(struct buf *array, char type, uint32_t count)
{
	enum { INT8 = 20, BYTEA = 17, INT4 = 23 };
	uint32_t head[] = {1, 1, type == 'l' ? INT8 : type == 'b' ? BYTEA : INT4, count, 1};

	for (size_t i = 0; i < sizeof head / sizeof *head; i++)
		head[i] = htobe32(head[i]);
	buf_clear(array);
	array->max = TURN_COLUMN_BYTES_MAX;
	buf_put(array, head, sizeof head);
}

static int pipe_arrays(struct pipeline *pipe, int which, int count)
{
	struct postgres *store = pipe->store;
	const char *values[PG_COLUMNS_MAX];
	int lengths[PG_COLUMNS_MAX], formats[PG_COLUMNS_MAX];

	for (int i = 0; i < count; i++) {
		if (buf_fault(&store->columns[i]))
			return buf_fault(&store->columns[i]);
		values[i] = store->columns[i].data;
		lengths[i] = (int)store->columns[i].len;
		formats[i] = 1;
	}
	pipe_prepared(pipe, which, count, values, lengths, formats);
	return 0;
}

static uint32_t count_unsent(const struct pg_turn *turn, enum pg_table table, bool gone)
{
	uint32_t count = 0;

	for (uint32_t i = 0; turn->of_table[table] > 0 && i < turn->row_count; i++) {
		const struct pg_row *row = turn->rows[i];
		count += row->table == table && row->gone == gone && !row->sent;
	}
	return count;
}

/* Each of the first columns of a row to the array of that column. */
static void put_columns(struct postgres *store, const struct pg_row *row, int count)
{
	struct row_columns columns = {row->bytes, row->bytes + row->len, false};

	for (int i = 0; i < count; i++) {
		const char *before = columns.at;
		column_span(&columns);
		buf_put(&store->columns[i], before, (size_t)(columns.at - before));
	}
	assert(!columns.broken);
}

/* The rows of one table that were put, or those that go. */
static int pipe_rows(struct pipeline *pipe, enum pg_table table, bool gone)
{
	const struct pg_table_form *form = &pg_tables[table];
	struct pg_turn *turn = &pipe->store->turn;
	int count = gone ? form->keys : (int)strlen(form->columns);
	uint32_t rows = count_unsent(turn, table, gone);

	if (rows == 0)
		return 0;
	for (int i = 0; i < count; i++)
		begin_array(&pipe->store->columns[i], form->columns[i], rows);
	for (uint32_t i = 0; i < turn->row_count; i++) {
		struct pg_row *row = turn->rows[i];
		if (row->table != table || row->gone != gone || row->sent)
			continue;
		put_columns(pipe->store, row, count);
		row->sent = true;
	}
	return pipe_arrays(pipe, gone ? form->remove : form->put, count);
}

static int pipe_drops(struct pipeline *pipe)
{
	static const enum pg_statement parts[] = {PG_DROP_TASKS, PG_DROP_BODIES, PG_DROP_EXTRAS,
		PG_DROP_EDGES_DOWN, PG_DROP_EDGES_UP, PG_DROP_IDS};
	struct pg_turn *turn = &pipe->store->turn;
	struct buf *seqs = &pipe->store->columns[0];
	int r = 0;

	if (turn->dropped_sent < turn->dropped_count) {
		begin_array(seqs, 'l', turn->dropped_count - turn->dropped_sent);
		for (; turn->dropped_sent < turn->dropped_count; turn->dropped_sent++) {
			uint32_t length = htobe32(8);
			struct pg_parameter seq = pg_int(turn->dropped[turn->dropped_sent]);
			buf_put(seqs, &length, sizeof length);
			buf_put(seqs, seq.number, sizeof seq.number);
		}
		for (size_t i = 0; r == 0 && i < sizeof parts / sizeof *parts; i++)
			r = pipe_arrays(pipe, parts[i], 1);
	}
	if (turn->drop_events > 0)
		pipe_numbers(pipe, PG_DROP_EVENTS, turn->drop_events, 0, 1);
	if (turn->drop_idems_limit > 0)
		pipe_numbers(pipe, PG_DROP_IDEMS, turn->drop_idems_before_ms, turn->drop_idems_limit, 2);
	return r;
}

/* Everything that was not sent yet, behind the fence. */
static int pipe_turn(struct pipeline *pipe)
{
	struct postgres *store = pipe->store;
	int r;

	pipe->fence = -1;
	if (!store->turn.open) {
		pipe->fence = pipe->statements;
		pipe_numbers(pipe, PG_FENCE, store->terms[0], store->head + 1, 2);
	}
	r = pipe_drops(pipe);
	for (int table = 0; r == 0 && table < PG_TABLE_COUNT; table++) {
		r = pipe_rows(pipe, (enum pg_table)table, true);
		if (r == 0)
			r = pipe_rows(pipe, (enum pg_table)table, false);
	}
	return r;
}

static int pipe_begin(struct pipeline *pipe)
{
	if (!pq.PQenterPipelineMode(pipe->store->link))
		return pg_fault(pipe->store, NULL);
	pipe->store->has_notice = false;
	return 0;
}

/* ---- what became of it ------------------------------------------------------------------------------------------ */

static int fault_of_statement(
	struct postgres *store, const struct pipeline *pipe, int at, const PGresult *result)
{
	/* the lead is not ours, or the predecessor is missing; or the number is taken: somebody else writes */
	if (at == pipe->fence && (pg_is_state(result, "23502") || pg_is_state(result, "23505"))) {
		store->is_stale = true;
		return pg_complain(store, -ESTALE,
			"%s: another stintd has taken this store over; this one writes no more",
			store->shown);
	}
	return pg_fault(store, result);
}

/* The results of what was sent, up to the word that all of it is done. 0: it is; a fault: nothing of it is; -ENOTCONN: not known. */
static int collect(struct pipeline *pipe)
{
	struct postgres *store = pipe->store;
	int fault = 0, at = 0;
	bool done = false;

	while (!done) {
		PGresult *result = pg_next_result(store);
		if (!result) { /* between two statements */
			if (pq.PQstatus(store->link) != CONNECTION_OK)
				return pg_fault(store, NULL);
			continue;
		}
		ExecStatusType status = pq.PQresultStatus(result);
		bool good = status == PGRES_COMMAND_OK || status == PGRES_TUPLES_OK;
		if (good && strcmp(pq.PQcmdStatus(result), "ROLLBACK") == 0 && fault == 0)
			fault = pg_complain(store, -EIO, "%s: PostgreSQL rolled the turn back", store->shown);
		if (status == PGRES_FATAL_ERROR && (fault == 0 || fault == -ENOTCONN))
			fault = fault_of_statement(store, pipe, at, result);
		done = status == PGRES_PIPELINE_SYNC;
		at++;
		pq.PQclear(result);
		if (!done && pq.PQstatus(store->link) != CONNECTION_OK)
			return pg_fault(store, NULL);
	}
	if (!pq.PQexitPipelineMode(store->link))
		return pg_fault(store, NULL);
	if (fault == 0 && store->has_notice)
		fault = pg_complain(store, -ENOTCONN,
			"%s: PostgreSQL warns of a turn, so it is looked at (%s)", store->shown,
			store->notice);
	return fault;
}

static int sync_pipe(struct pipeline *pipe)
{
	if (!pipe->lost)
		pipe->lost = !pq.PQpipelineSync(pipe->store->link);
	if (pipe->lost) /* nothing is done without the word that ends a pipeline, which was not sent */
		return pg_fault(pipe->store, NULL);
	pq.PQflush(pipe->store->link); /* the rest goes out while the results are waited for */
	return 0;
}

/* A pipeline that could not be put together is given up with its session: half of it may lie in a buffer. */
static int give_up_pipe(struct postgres *store, int fault)
{
	link_close(store);
	store->turn.open = false;
	return fault == -ENOTCONN ? fault
				  : pg_complain(store, fault, "%s: no memory for a turn", store->shown);
}

/* The session is lost with an open transaction: nothing of the turn is done. */
static int give_up_open(struct postgres *store)
{
	bool happened;

	store->turn.open = false;
	int r = lead_again(store, false, &happened);
	if (r < 0 && r != -ENOTCONN)
		return r;
	return pg_complain(
		store, -EROFS, "%s: the session was lost amid a turn, which was given up", store->shown);
}

int turn_flush(struct postgres *store)
{
	struct pipeline pipe = {.store = store};

	if (store->is_stale)
		return -ESTALE;
	if (!store->turn.begun)
		return 0;
	int r = pack_close(store);
	if (r == 0 && !store->link) {
		bool happened;
		r = lead_again(store, false, &happened);
		if (r == -ENOTCONN)
			return -EROFS;
	}
	if (r == 0)
		r = pipe_begin(&pipe);
	if (r < 0)
		return r == -ENOTCONN ? give_up_open(store) : r;
	if (!store->turn.open)
		pipe_words(&pipe, "BEGIN");
	r = pipe_turn(&pipe);
	store->turn.open = true;
	store->turn.drop_events = 0;
	store->turn.drop_idems_limit = 0;
	if (r == 0)
		r = sync_pipe(&pipe);
	if (r < 0)
		return give_up_pipe(store, r) == -ENOTCONN ? give_up_open(store) : r;
	r = collect(&pipe);
	return r == -ENOTCONN ? give_up_open(store) : r;
}

/* Whatever is looked up after this is found at the server, in the transaction that is open there. */
int postgres_spill(struct backend *backend)
{
	struct postgres *store = postgres_of(backend);

	if (store->turn.arena.held < SPILL_BYTES)
		return 0;
	int r = turn_flush(store);
	if (r == 0)
		turn_forget_rows(store);
	return r;
}

static bool hides(const struct pg_turn *turn, enum pg_table table)
{
	bool drops_tasks = turn->dropped_sent < turn->dropped_count;

	if (count_unsent(turn, table, false) > 0 || count_unsent(turn, table, true) > 0)
		return true;
	if (table == PG_EVENT)
		return turn->pack.len > 0 || turn->drop_events > 0;
	if (table == PG_IDEM)
		return turn->drop_idems_limit > 0;
	return drops_tasks && (table == PG_TASK || table == PG_BODY || table == PG_EXTRA || table == PG_EDGE);
}

int turn_show(struct postgres *store, enum pg_table table)
{
	return store->turn.begun && hides(&store->turn, table) ? turn_flush(store) : 0;
}

/* ---- the commit ---------------------------------------------------------------------------------------------------- */

/* Every row once more, for a session that has heard of none. */
static void send_all_again(struct postgres *store)
{
	struct pg_turn *turn = &store->turn;

	turn->dropped_sent = 0;
	for (uint32_t i = 0; i < turn->row_count; i++)
		turn->rows[i]->sent = false;
}

/* A session that has ended is mostly known to be so before anything is sent, and then nothing is in doubt. */
static bool is_alive(struct postgres *store)
{
	/* twice: the end may stand behind a last message */
	return pq.PQconsumeInput(store->link) && pq.PQconsumeInput(store->link) &&
		pq.PQstatus(store->link) == CONNECTION_OK;
}

/* 0, with the turn under way; a fault: it is not done; -ENOTCONN: not known, and the session is over. */
static int send_turn(struct postgres *store, struct pipeline *pipe)
{
	bool was_open = store->turn.open;
	int r = -ENOTCONN;

	if (is_alive(store))
		r = pipe_begin(pipe);
	else
		pg_fault(store, NULL);

	if (r < 0)
		return r;
	r = pipe_turn(pipe);
	if (was_open)
		pipe_words(pipe, "COMMIT");
	store->turn.in_doubt = true;
	if (r == 0)
		r = sync_pipe(pipe);
	if (r == 0)
		return 0;
	store->turn.in_doubt = false; /* without its end the server does nothing of it */
	return give_up_pipe(store, r);
}

/* With the term that it was sent with, which may be that of a session before this one. */
static void committed(struct postgres *store, int64_t term)
{
	store->head++;
	store->head_term = term;
	store->heard_ms = pg_now_ms();
	turn_keep(store);
	turn_forget(store);
}

/* The session was lost, or its word cannot be trusted. A transaction that was open for longer than one round trip is not done again,
 * because what it deleted depended on what was there. */
static bool is_empty(const struct pg_turn *turn)
{
	return turn->row_count == 0 && turn->dropped_count == 0 && turn->drop_events == 0 &&
		turn->drop_idems_limit == 0;
}

/* PostgreSQL cannot be reached. A turn with rows that may be committed is a fault that ends the server; of one without rows it is enough
 * to know later. */
static int give_up_waiting(struct postgres *store, int64_t term, bool was_open)
{
	struct pg_turn *turn = &store->turn;

	if (turn->in_doubt && (was_open || !is_empty(turn)))
		return -EIO;
	if (turn->in_doubt)
		store->maybe_term = term;
	return -EROFS;
}

static int find_out(struct postgres *store, bool *ret_again)
{
	struct pg_turn *turn = &store->turn;
	bool was_open = turn->open, happened = false;
	int64_t term = store->terms[0];

	*ret_again = false;
	link_close(store);
	turn->open = false;
	int r = lead_again(store, turn->in_doubt, &happened);
	if (r == -ENOTCONN)
		return give_up_waiting(store, term, was_open);
	if (r < 0)
		return r;
	if (happened) {
		committed(store, term);
		return 0;
	}
	turn->in_doubt = false;
	if (was_open)
		return pg_complain(store, -EROFS, "%s: the session was lost amid a turn, which was given up",
			store->shown);
	send_all_again(store);
	*ret_again = true;
	return 0;
}

static int run_turn(struct postgres *store)
{
	struct pipeline pipe;
	bool again = true;
	int r = 0;

	for (int tries = 0; again && tries < RESENT_MAX; tries++) {
		again = false;
		pipe = (struct pipeline){.store = store};
		r = store->link ? send_turn(store, &pipe) : -ENOTCONN;
		if (r == 0)
			r = collect(&pipe);
		if (r == 0)
			committed(store, store->terms[0]);
		else if (r == -ENOTCONN)
			r = find_out(store, &again);
	}
	return again ? pg_complain(store, -EROFS, "%s: the connection was lost %d times in a row",
			       store->shown, RESENT_MAX)
		     : r;
}

int postgres_send(struct backend *backend)
{
	struct postgres *store = postgres_of(backend);

	assert(store->turn.begun);
	if (store->is_stale) {
		postgres_rollback(backend);
		return -ESTALE;
	}
	int r = pack_close(store);
	if (r == 0)
		r = run_turn(store);
	if (r < 0)
		postgres_rollback(backend);
	return r;
}

int postgres_settle(struct backend *backend)
{
	assert(!postgres_of(backend)->turn.begun); /* send() has ended the transaction */
	return 0;
}

void postgres_rollback(struct backend *backend)
{
	struct postgres *store = postgres_of(backend);

	if (store->turn.open && link_do(store, "ROLLBACK") < 0)
		link_close(store); /* with its session it is rolled back as well */
	turn_forget(store);
}
