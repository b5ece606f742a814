/*
 * Who writes. A row has the term of the leader, a random number that is never used twice; every turn asks for it (the fence), and
 * whoever takes over changes it. Clocks only decide how fast somebody takes over, never whether that is safe.
 *
 *	stands by ── nobody leads, or has said nothing for long ──▶ takes over ──▶ leads
 *	leads ── its session is lost ──▶ takes over from itself, looks at the turns ──▶ leads
 *	leads ── the term is another one ──▶ is stale, and writes no more
 */
#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/random.h>
#include <time.h>

#include "base/take.h"
#include "store/postgres/postgres_backend.h"

enum {
	LOOK_MS =
		50, /* between two looks at a lead that is taken, or for a database that is away; it grows … */
	LOOK_MS_MAX = 250,   /* … up to this */
	GONE_LOOKS = 2,      /* so often its session must be missing */
	TELL_AFTER_MS = 500, /* that another one leads: until then it may be one that was just killed */
	RECONNECT_MS = 50,
	TRIES_MAX = 20,
};

static void pause_ms(int64_t ms)
{
	struct timespec time = {ms / 1000, ms % 1000 * 1000000};

	nanosleep(&time, NULL);
}

static int64_t random_term(void)
{
	int64_t term = 0;

	while (term <= 0) {
		if (getrandom(&term, sizeof term, 0) != sizeof term)
			abort(); /* the kernel always has some by now */
		term &= INT64_MAX;
	}
	return term;
}

static int64_t number_at(const PGresult *result, int column)
{
	return strtoll(pq.PQgetvalue(result, 0, column), NULL, 10);
}

/* ---- the schema ------------------------------------------------------------------------------------------------ */

static int64_t count_of(struct postgres *store, const char *sql)
{
	const char *values[] = {store->schema};
	PGresult *result = link_run(store, sql, 1, values);
	int64_t count =
		pq.PQresultStatus(result) == PGRES_TUPLES_OK ? number_at(result, 0) : pg_fault(store, result);

	pq.PQclear(result);
	return count;
}

static int refuse_schema(struct postgres *store)
{
	return pg_complain(store, -EPROTO,
		"%s: the schema %s holds something that is not stint's; give stint one of its own: postgres://…?schema=NAME",
		store->shown, store->schema);
}

static int make_schema(struct postgres *store, bool is_there)
{
	char *name = pq.PQescapeIdentifier(store->link, store->schema, strlen(store->schema));
	char sql[3 * PG_NAME_MAX];

	if (!name)
		return -ENOMEM;
	snprintf(sql, sizeof sql, "CREATE SCHEMA %s", name);
	pq.PQfreemem(name);
	int r = link_do(store, "BEGIN");
	if (r == 0 && !is_there)
		r = link_do(store, sql);
	if (r == 0)
		r = link_do(store, pg_migrations[0]);
	if (r == 0)
		r = link_do(store, "COMMIT");
	if (r == 0 || !store->link)
		return r;
	char why[PG_COMPLAINT_MAX / 2];
	snprintf(why, sizeof why, "%.500s", store->complaint);
	if (pq.PQstatus(store->link) == CONNECTION_OK)
		link_do(store, "ROLLBACK");
	if (r != -EPERM)
		return pg_complain(store, r, "%s", why);
	return pg_complain(store, r,
		"%s; stint makes its tables in a schema of its own: as the owner of the database, CREATE SCHEMA %s AUTHORIZATION role",
		why, store->schema);
}

/* 1: the lead is there; 0: nothing is there, or an empty schema (*ret_is_there); or a fault. */
static int look_for_schema(struct postgres *store, bool *ret_is_there)
{
	int64_t schemas = count_of(store, "SELECT count(*) FROM pg_namespace WHERE nspname = $1");
	int64_t tables = count_of(store,
		"SELECT count(*) FROM pg_class AS c JOIN pg_namespace AS n ON n.oid = c.relnamespace WHERE n.nspname = $1");
	int64_t leads = count_of(store,
		"SELECT count(*) FROM pg_attribute AS a JOIN pg_class AS c ON c.oid = a.attrelid "
		"JOIN pg_namespace AS n ON n.oid = c.relnamespace "
		"WHERE n.nspname = $1 AND c.relname = 'lead' AND a.attname = 'schema_min'");

	if (schemas < 0 || tables < 0 || leads < 0)
		return (int)(schemas < 0 ? schemas : tables < 0 ? tables : leads);
	*ret_is_there = schemas > 0;
	if (leads > 0)
		return 1;
	return tables > 0 ? refuse_schema(store) : 0;
}

/* Of two that start at the same moment one makes it: the other fails, and looks again. */
int lead_prepare(struct postgres *store)
{
	int r = 0;

	for (int tries = 0; tries < TRIES_MAX; tries++) {
		bool is_there = false;
		r = look_for_schema(store, &is_there);
		if (r != 0)
			return r < 0 ? r : 0;
		r = make_schema(store, is_there);
		if (r == 0 || !store->link || pq.PQstatus(store->link) != CONNECTION_OK)
			return r;
		pause_ms(LOOK_MS);
		if (look_for_schema(store, &is_there) == 0)
			return r; /* it is not there, so nobody else made it */
	}
	return r;
}

/* ---- taking over ---------------------------------------------------------------------------------------------------- */

/* The lead as another server sees it. */
struct lead {
	int64_t term, head;
	bool is_held, has_session;
	int schema, schema_min;
	char holder[LEADER_NAME_BYTES], url[LEADER_URL_BYTES];
	int64_t since_ms;
	struct lead_place place;
};

static int lead_read(struct postgres *store, struct lead *ret_lead)
{
	PGresult *result = link_run(store,
		"SELECT l.term, (SELECT max(turn) FROM turn), l.schema, l.schema_min, coalesce(l.holder, ''), "
		"EXISTS (SELECT FROM pg_stat_activity AS a WHERE a.pid = l.pid AND a.backend_start = l.started), "
		"coalesce(to_jsonb(l) ->> 'url', ''), coalesce((extract(epoch FROM l.since) * 1000)::int8, 0), "
		"coalesce(to_jsonb(l) ->> 'system', ''), coalesce(to_jsonb(l) ->> 'timeline', ''), "
		"coalesce(to_jsonb(l) ->> 'synchronous', '') FROM lead AS l",
		0, NULL); /* a lead of an older schema lacks some of these columns */
	int r = 0;

	if (pq.PQresultStatus(result) != PGRES_TUPLES_OK)
		r = pg_fault(store, result);
	else if (pq.PQntuples(result) != 1)
		r = refuse_schema(store);
	if (r == 0) {
		*ret_lead = (struct lead){.term = number_at(result, 0),
			.head = number_at(result, 1),
			.schema = (int)number_at(result, 2),
			.schema_min = (int)number_at(result, 3),
			.has_session = pq.PQgetvalue(result, 0, 5)[0] == 't',
			.since_ms = number_at(result, 7)};
		snprintf(ret_lead->holder, sizeof ret_lead->holder, "%s", pq.PQgetvalue(result, 0, 4));
		snprintf(ret_lead->url, sizeof ret_lead->url, "%s", pq.PQgetvalue(result, 0, 6));
		struct lead_place *place = &ret_lead->place;
		snprintf(place->system, sizeof place->system, "%s", pq.PQgetvalue(result, 0, 8));
		snprintf(place->timeline, sizeof place->timeline, "%s", pq.PQgetvalue(result, 0, 9));
		place->is_synchronous = pq.PQgetvalue(result, 0, 10)[0] == 't';
		ret_lead->is_held = ret_lead->holder[0] != 0;
	}
	pq.PQclear(result);
	return r;
}

/* A session that is stopped amid a turn holds the row of the lead: it is ended, and only it. */
static int end_holder(struct postgres *store)
{
	return link_do(store,
		"SELECT pg_terminate_backend(a.pid) FROM pg_stat_activity AS a, lead AS l "
		"WHERE a.pid = l.pid AND a.backend_start = l.started AND a.pid <> pg_backend_pid()");
}

/* 1: the lead was one of the terms and is ours now; 0: it was another one; or a fault, after which nobody knows. */
static int change_term(struct postgres *store, int64_t term)
{
	char ours[24], before[PG_TERMS_MAX * 24] = "{", migrate[64];
	size_t len = 1;

	for (int i = 0; i < store->term_count; i++)
		len += (size_t)snprintf(
			before + len, sizeof before - len, "%s%" PRId64, i > 0 ? "," : "", store->terms[i]);
	snprintf(before + len, sizeof before - len, "}");
	snprintf(ours, sizeof ours, "%" PRId64, term);
	snprintf(migrate, sizeof migrate, "%d", PG_MIGRATION_COUNT);
	const char *values[] = {before, ours, store->holder};
	PGresult *result = link_run(store,
		"UPDATE lead SET epoch = epoch + 1, term = $2::int8, holder = $3, pid = pg_backend_pid(), since = now(), "
		"started = (SELECT backend_start FROM pg_stat_activity WHERE pid = pg_backend_pid()) "
		"WHERE term = ANY ($1::int8[]) RETURNING schema",
		3, values);
	int r = pq.PQresultStatus(result) == PGRES_TUPLES_OK ? pq.PQntuples(result)
		: pg_is_state(result, "55P03")               ? -EBUSY
							     : pg_fault(store, result);
	int schema = r == 1 ? (int)number_at(result, 0) : PG_MIGRATION_COUNT;
	pq.PQclear(result);
	for (; r == 1 && schema < PG_MIGRATION_COUNT; schema++) {
		int fault = link_do(store, pg_migrations[schema]);
		r = fault < 0 ? fault : 1;
	}
	return r;
}

/* What the tables are now, and where we are reached. A newer schema that this release may write to stays what it is. */
static int note_leader(struct postgres *store)
{
	char ours[16];

	snprintf(ours, sizeof ours, "%d", PG_MIGRATION_COUNT);
	const char *values[] = {ours, store->leader_url};
	PGresult *result = link_run(store,
		"UPDATE lead SET schema = greatest(schema, $1::int4), url = nullif($2, '') "
		"RETURNING (extract(epoch FROM since) * 1000)::int8",
		2, values);
	int r = pq.PQresultStatus(result) == PGRES_TUPLES_OK ? 0 : pg_fault(store, result);
	if (r == 0)
		store->since_ms = number_at(result, 0);
	pq.PQclear(result);
	return r;
}

/* One transaction: the term, and the schema of this release. */
static int try_term(struct postgres *store, int64_t term)
{
	int r = link_do(store, "BEGIN; SET LOCAL lock_timeout = '700ms'");

	if (r == 0)
		r = change_term(store, term);
	if (r == 1) {
		int fault = note_leader(store);
		store->has_notice = false;
		if (fault == 0)
			fault = link_do(store, "COMMIT");
		if (fault == 0 &&
			store->has_notice) /* a wait for a standby that was cancelled: is it there to stay? */
			fault = pg_complain(store, -ENOTCONN, "%s: PostgreSQL warns of a take-over (%s)",
				store->shown, store->notice);
		return fault < 0 ? fault : 1;
	}
	if (store->link && pq.PQstatus(store->link) == CONNECTION_OK)
		link_do(store, "ROLLBACK");
	return r;
}

/* A term that was tried may be the one that is there, even if we were not told. */
static void remember_term(struct postgres *store, int64_t term)
{
	if (store->term_count == PG_TERMS_MAX)
		store->term_count--;
	memmove(store->terms + 1, store->terms, (size_t)store->term_count * sizeof *store->terms);
	store->terms[0] = term;
	store->term_count++;
}

/* 1: we lead; 0: somebody was faster; or a fault. */
static int take_over(struct postgres *store)
{
	int64_t term = random_term();
	int r = -EBUSY;

	for (int tries = 0; r == -EBUSY && tries < TRIES_MAX; tries++) {
		if (tries > 0)
			r = end_holder(store);
		if (tries > 0 && r < 0)
			return r;
		r = try_term(store, term);
	}
	if (r == -EBUSY)
		return pg_complain(store, -EIO,
			"%s: somebody keeps the table lead locked; look into pg_locks", store->shown);
	if (r == 0)
		return 0;
	remember_term(store, term);
	if (r == 1) {
		store->term_count = 1;
		store->heard_ms = pg_now_ms();
	}
	return r;
}

static int read_head(struct postgres *store, int64_t *ret_head, int64_t *ret_term)
{
	PGresult *result = link_run(store, "SELECT turn, term FROM turn ORDER BY turn DESC LIMIT 1", 0, NULL);
	int r = 0;

	if (pq.PQresultStatus(result) != PGRES_TUPLES_OK)
		r = pg_fault(store, result);
	else if (pq.PQntuples(result) != 1)
		r = refuse_schema(store);
	if (r == 0) {
		*ret_head = number_at(result, 0);
		*ret_term = number_at(result, 1);
	}
	pq.PQclear(result);
	return r;
}

/* A statement that fails on the way to pipelines is a fault of the whole session. */
static int prepare_statements(struct postgres *store)
{
	char name[16];
	int fault = 0;

	if (!pq.PQenterPipelineMode(store->link))
		return pg_fault(store, NULL);
	for (int i = 0; i < PG_STATEMENT_COUNT; i++) {
		snprintf(name, sizeof name, "s%d", i);
		if (!pq.PQsendPrepare(store->link, name, pg_statements[i], 0, NULL))
			return pg_fault(store, NULL);
	}
	if (!pq.PQpipelineSync(store->link))
		return pg_fault(store, NULL);
	for (bool done = false; !done;) {
		PGresult *result = pg_next_result(store);
		ExecStatusType status = pq.PQresultStatus(result); /* of NULL it is a fatal error */
		if (result && status == PGRES_FATAL_ERROR && fault == 0)
			fault = pg_fault(store, result);
		done = status == PGRES_PIPELINE_SYNC || pq.PQstatus(store->link) != CONNECTION_OK;
		pq.PQclear(result);
	}
	if (!pq.PQexitPipelineMode(store->link) && fault == 0)
		fault = pg_fault(store, NULL);
	return fault;
}

/* From here on the session is used without waiting in the library. */
static int ready(struct postgres *store)
{
	if (pq.PQsetnonblocking(store->link, 1) != 0)
		return pg_fault(store, NULL);
	return prepare_statements(store);
}

/* ---- standing by ------------------------------------------------------------------------------------------------ */

/* What was seen of a lead that another server has. */
struct lead_watch {
	struct lead seen;
	int64_t moved_ms; /* when its last turn was seen to be new */
	int64_t most;     /* the last turn that was ever seen */
	int missing;      /* looks in a row without its session */
};

static bool may_take(struct postgres *store, struct lead_watch *watch, const struct lead *now)
{
	if (now->term != watch->seen.term || now->head != watch->seen.head)
		watch->moved_ms = pg_now_ms();
	watch->missing = now->has_session ? 0 : watch->missing + 1;
	watch->seen = *now;
	return !now->is_held || watch->missing >= GONE_LOOKS ||
		pg_now_ms() - watch->moved_ms > (int64_t)store->look_away_ms;
}

static int refuse_newer(struct postgres *store, const struct lead *lead)
{
	return pg_complain(store, -EPROTO,
		"%s: the schema %s was written by a newer stintd (schema %d, this one knows up to %d); install that release",
		store->shown, store->schema, lead->schema, PG_MIGRATION_COUNT);
}

/* Standing by: what was seen, and for how long. */
struct lead_wait {
	struct postgres *store;
	const struct postgres_options *options;
	struct lead_watch watch;
	int64_t began_ms, wait_ms;
	bool has_looked; /* PostgreSQL has let us in before: what keeps us out now may pass */
};

/* Between two looks. `fault`: of the last one, which found PostgreSQL away. */
static int rest(struct lead_wait *standing, int fault)
{
	struct postgres *store = standing->store;
	const struct postgres_options *options = standing->options;
	const struct lead *seen = &standing->watch.seen;
	struct postgres_leader leader = {.since_ms = seen->since_ms,
		.turn = seen->head,
		.term = seen->term,
		.is_synchronous = seen->place.is_synchronous,
		.away = fault < 0 ? store->complaint : NULL};
	int r = 0;

	snprintf(leader.name, sizeof leader.name, "%s", seen->holder);
	snprintf(leader.url, sizeof leader.url, "%s", seen->url);
	if (options->stand_by && (fault < 0 || pg_now_ms() - standing->began_ms >= TELL_AFTER_MS))
		r = options->stand_by(options->context, &leader);
	if (r != 0)
		return fault < 0 ? r /* the complaint says why it is away */
				 : pg_complain(store, r, "%s is led by another stintd (%s)", store->shown,
					   seen->holder);
	pause_ms(standing->wait_ms);
	if (standing->wait_ms < LOOK_MS_MAX)
		standing->wait_ms += LOOK_MS;
	return 0;
}

/* Is PostgreSQL only away? What keeps a program out that was let in before may pass, too. */
static bool may_pass(const struct lead_wait *standing, int fault)
{
	return standing->options->stand_by &&
		(fault == -ENOTCONN || fault == -EROFS || (fault == -EACCES && standing->has_looked));
}

/* 1: we lead; 0: another one does; or a fault. */
static int look(struct lead_wait *standing)
{
	struct postgres *store = standing->store;
	struct lead now;
	int r = 0;

	if (!store->link) {
		r = link_open(store);
		if (r == 0)
			r = lead_prepare(store);
	}
	if (r == 0)
		r = lead_read(store, &now);
	if (r < 0)
		return r;
	standing->has_looked = true;
	bool is_behind = now.head < standing->watch.most;
	if (!is_behind)
		standing->watch.most = now.head;
	if (now.schema_min > PG_MIGRATION_COUNT)
		return refuse_newer(store, &now);
	if (!may_take(store, &standing->watch, &now))
		return 0;
	store->terms[0] = now.term;
	store->term_count = 1;
	r = take_over(store);
	if (r == 1) {
		int fault = read_head(store, &store->head, &store->head_term);
		if (fault == 0)
			fault = ready(store);
		if (fault == 0)
			fault = is_behind || lost_may_be(store, &now.place) ? lost_mark(store, -1)
									    : lost_note_place(store);
		r = fault < 0 ? fault : 1;
	}
	return r;
}

int lead_take(struct postgres *store, const struct postgres_options *options)
{
	struct lead_wait standing = {
		.store = store, .options = options, .began_ms = pg_now_ms(), .wait_ms = LOOK_MS};
	int r = 0;

	standing.watch = (struct lead_watch){.moved_ms = standing.began_ms, .seen = {.term = -1}};
	while (r == 0) {
		r = look(&standing);
		if (r == 1)
			return 0;
		if (r < 0 && !may_pass(&standing, r))
			return r;
		if (r < 0)
			link_close(store);
		r = rest(&standing, r);
	}
	return r;
}

/* ---- from ourselves --------------------------------------------------------------------------------------------- */

/* PostgreSQL has other turns than we have acknowledged. Its rows are marked as those of a store that was restored, and this process,
 * which remembers what is gone, ends. */
static int give_up_memory(struct postgres *store, int64_t head, int64_t head_term, int64_t lost)
{
	turn_forget(store);
	store->head = head;
	store->head_term = head_term;
	int r = ready(store);
	if (r == 0)
		r = lost_mark(store, lost);
	if (r < 0)
		return r;
	/* also if a read has found it out, whose caller goes on: what is in memory is another store */
	store->is_stale = true;
	if (lost < 0)
		return pg_complain(store, -EIO,
			"%s: PostgreSQL has other turns than this server knows: it was restored. The store is treated as one that was restored from a backup; start again",
			store->shown);
	return pg_complain(store, -EIO,
		"%s: PostgreSQL has lost %" PRId64
		" turns that were acknowledged: it failed over to a copy that was behind. The store is treated as one that was restored from a backup; start again",
		store->shown, lost);
}

/* The turns, now that nobody else can write any. */
static int compare_head(struct postgres *store, int64_t term, bool was_sent, bool *ret_happened)
{
	int64_t head = 0, head_term = 0;
	int r = read_head(store, &head, &head_term);

	if (r < 0)
		return r;
	if (store->maybe_term != 0 && head == store->head + 1 && head_term == store->maybe_term) {
		store->head = head; /* it had no rows: nothing else has to follow it */
		store->head_term = head_term;
	}
	store->maybe_term = 0;
	*ret_happened = was_sent && head == store->head + 1 && head_term == term;
	if (!*ret_happened && (head != store->head || head_term != store->head_term))
		return give_up_memory(store, head, head_term, head < store->head ? store->head - head : -1);
	r = lost_note_place(store); /* of a failover that lost nothing */
	return r < 0 ? r : ready(store);
}

/* 1: the last turn that was acknowledged is there, or was pruned long ago; 0: it is gone, *ret_kept is the last one of our term that is
 * there, 0: none; or a fault. */
static int look_for_ours(struct postgres *store, int64_t *ret_kept)
{
	char turn[24], term[24];

	snprintf(turn, sizeof turn, "%" PRId64, store->head);
	snprintf(term, sizeof term, "%" PRId64, store->head_term);
	const char *values[] = {turn, term};
	PGresult *result = link_run(store,
		"SELECT EXISTS (SELECT FROM turn WHERE turn = $1::int8 AND term = $2::int8) "
		"OR (SELECT min(turn) FROM turn) > $1::int8, "
		"coalesce((SELECT max(turn) FROM turn WHERE term = $2::int8), 0)",
		2, values);
	int r = pq.PQresultStatus(result) == PGRES_TUPLES_OK ? pq.PQgetvalue(result, 0, 0)[0] == 't'
							     : pg_fault(store, result);

	if (r == 0)
		*ret_kept = number_at(result, 1);
	pq.PQclear(result);
	return r;
}

/* The lead is somebody else's. Our last turn must be there: a failover may have gone back to before we led, and whoever leads now cannot
 * know what is gone. Then the lead is taken, and it is told. */
static int leave_to_another(struct postgres *store)
{
	int64_t kept = 0, head, head_term;
	struct lead now;
	int r = look_for_ours(store, &kept);

	if (r == 0)
		r = lead_read(store, &now);
	if (r == 0) {
		store->terms[0] = now.term;
		store->term_count = 1;
		r = take_over(store);
		if (r == 0) /* once more, when this is asked again */
			return pg_complain(store, -ENOTCONN, "%s: the lead changes hands", store->shown);
		if (r == 1)
			r = read_head(store, &head, &head_term);
		return r < 0 ? r : give_up_memory(store, head, head_term, kept > 0 ? store->head - kept : -1);
	}
	if (r < 0)
		return r;
	store->is_stale = true;
	return pg_complain(store, -ESTALE,
		"%s: another stintd has taken this store over; this one writes no more", store->shown);
}

static int take_again(struct postgres *store, int64_t term, bool was_sent, bool *ret_happened)
{
	int r = link_open(store);

	if (r == 0)
		r = take_over(store);
	if (r == 0)
		return leave_to_another(store);
	return r == 1 ? compare_head(store, term, was_sent, ret_happened) : r;
}

int lead_again(struct postgres *store, bool was_sent, bool *ret_happened)
{
	int64_t by_ms = pg_now_ms() + (store->is_away ? 0 : store->patience_ms), term = store->terms[0];
	int r;

	*ret_happened = false;
	for (;;) {
		/* a server that recovers or takes no writes may be on its way to be the primary, and one that does not know us may
		 * be told of us */
		r = take_again(store, term, was_sent, ret_happened);
		if (r != -ENOTCONN && r != -EROFS && r != -EACCES)
			break;
		link_close(store);
		store->is_away = pg_now_ms() >= by_ms;
		if (store->is_away)
			return -ENOTCONN;
		pause_ms(RECONNECT_MS);
	}
	store->is_away = false;
	if (r < 0)
		link_close(store);
	return r;
}

int lead_look_only(struct postgres *store)
{
	struct lead lead;
	bool is_there;
	int r = look_for_schema(store, &is_there);

	if (r == 0)
		return pg_complain(store, -ENOENT, "%s: there is no store in the schema %s", store->shown,
			store->schema);
	if (r == 1)
		r = link_do(store, "BEGIN ISOLATION LEVEL REPEATABLE READ READ ONLY");
	if (r == 0)
		r = lead_read(store, &lead);
	if (r < 0)
		return r;
	if (lead.schema_min > PG_MIGRATION_COUNT || lead.schema > PG_MIGRATION_COUNT)
		return refuse_newer(store, &lead);
	if (lead.schema < PG_MIGRATION_COUNT)
		return pg_complain(store, -EPROTO,
			"%s: the schema %s is of an older stintd (schema %d, this one has %d); start this release on it first",
			store->shown, store->schema, lead.schema, PG_MIGRATION_COUNT);
	return ready(store);
}

void lead_resign(struct postgres *store)
{
	PGresult *result;

	if (store->link && !store->is_stale && !store->only_looks &&
		ASK(store, PG_RESIGN, &result, pg_int(store->terms[0])) == 0)
		pq.PQclear(result);
}
