/*
 * One session with PostgreSQL. It has settings and prepared statements, so it must be a session of our own: whoever stands between
 * and gives each transaction another one (PgBouncer and its kin) is refused.
 */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

#include "base/take.h"
#include "store/postgres/postgres_backend.h"

enum {
	SERVER_VERSION_MIN = 130000,
	CONNECT_BYTES_MAX = 16 << 10,
};

int64_t pg_now_ms(void)
{
	struct timespec now;

	clock_gettime(CLOCK_BOOTTIME, &now);
	return (int64_t)now.tv_sec * 1000 + now.tv_nsec / 1000000;
}

/* What a role or a database has set must not end our session or change what a statement does. A stronger synchronous_commit than
 * `on` is the administrator's choice and stays. */
static const char settings[] =
	"SET synchronous_commit = on; SET statement_timeout = 0; SET lock_timeout = 0;"
	"SET idle_in_transaction_session_timeout = 0; SET idle_session_timeout = 0;"
	"SET default_transaction_isolation = 'read committed'; SET default_transaction_read_only = off;"
	"SET client_encoding = 'UTF8'; SET plan_cache_mode = force_generic_plan; SET enable_seqscan = off;"
	"SET enable_hashjoin = off; SET enable_mergejoin = off; SET jit = off;"
	"SET max_parallel_workers_per_gather = 0; SET client_min_messages = warning";

PGresult *link_run(struct postgres *store, const char *sql, int count, const char *const *values)
{
	return pq.PQexecParams(store->link, sql, count, NULL, values, NULL, NULL, 0);
}

static int verdict(struct postgres *store, PGresult *result)
{
	ExecStatusType status = pq.PQresultStatus(result);
	int r = status == PGRES_TUPLES_OK || status == PGRES_COMMAND_OK ? 0 : pg_fault(store, result);

	pq.PQclear(result);
	return r;
}

int link_do(struct postgres *store, const char *sql)
{
	if (!store->link)
		return pg_fault(store, NULL);
	return verdict(store, pq.PQexec(store->link, sql)); /* it may be several statements */
}

void link_close(struct postgres *store)
{
	if (store->link)
		pq.PQfinish(store->link);
	store->link = NULL;
}

/* ---- connecting ------------------------------------------------------------------------------------------------ */

/* Why a connection fails, by the words of the library: what helps, and whether waiting helps, too. */
static const struct link_reason {
	const char *words, *advice;
	int fault; /* -EACCES: a person has to change something first */
} reasons[] = {
	{"starting up", "PostgreSQL is starting", -ENOTCONN},
	{"shutting down", "PostgreSQL is stopping", -ENOTCONN},
	{"recovery mode", "PostgreSQL recovers from a crash", -ENOTCONN},
	{"database system is not", "PostgreSQL is not ready yet", -ENOTCONN},
	{"too many", "end sessions of others, or raise max_connections", -ENOTCONN},
	{"slots are reserved", "end sessions of others, or raise max_connections", -ENOTCONN},
	{"hot standby", "no host of the URL takes writes: promote one, or name the primary", -EROFS},
	{"session is read-only",
		"no host of the URL takes writes: set default_transaction_read_only off, or name the primary",
		-EROFS},
	{"SSL", "check sslmode and sslrootcert of the URL", -EACCES},
	{"certificate", "check sslmode and sslrootcert of the URL", -EACCES},
	{"password", "check the user and the password of the URL, or give it a password in ~/.pgpass",
		-EACCES},
	{"pg_hba.conf", "allow this user and address in pg_hba.conf", -EACCES},
	{"role", "create the role (createuser), or name another user in the URL", -EACCES},
	{"database", "create the database (createdb), or name another one in the URL", -EACCES},
	{"refused", "is PostgreSQL running there, and does it listen on that address?", -ENOTCONN},
	{"No such file", "is PostgreSQL running there, and is that the directory of its socket?", -ENOTCONN},
	{"translate host", "is the host's name right?", -ENOTCONN},
	{"invalid", "the URL is postgres://USER@HOST:PORT/DATABASE", -EACCES},
	{"", "is PostgreSQL reachable from here?", -ENOTCONN},
};

static const struct link_reason *reason_of(const char *words)
{
	const struct link_reason *reason = reasons;

	while (!strstr(words, reason->words))
		reason++;
	return reason;
}

static void add_default(char *text, const char *name, const char *value)
{
	size_t len = strlen(text);

	if (!strstr(text, name))
		snprintf(text + len, CONNECT_BYTES_MAX - len, "%c%s=%s", strchr(text, '?') ? '&' : '?', name,
			value);
}

static int connect_link(struct postgres *store)
{
	char text[CONNECT_BYTES_MAX], words[PG_COMPLAINT_MAX / 2];

	int len = snprintf(text, sizeof text / 2, "%s", store->url);
	if (len < 0 || (size_t)len >= sizeof text / 2)
		return pg_complain(store, -EINVAL, "the URL of the store is too long");
	add_default(text, "connect_timeout", "3");
	add_default(text, "application_name", "stint");
	add_default(text, "tcp_user_timeout", "10000");
	add_default(text, "keepalives_idle", "5");
	add_default(text, "keepalives_interval", "2");
	if (strchr(store->url, ',')) /* several hosts: the one that takes writes */
		add_default(text, "target_session_attrs", "read-write");
	link_close(store);
	store->link = pq.PQconnectdb(text);
	if (!store->link)
		return pg_complain(store, -ENOMEM, "no memory for a connection");
	if (pq.PQstatus(store->link) == CONNECTION_OK)
		return 0;
	pg_last_words(store, words, sizeof words);
	link_close(store);
	return pg_complain(store, reason_of(words)->fault, "cannot connect to %s: %s; %s", store->shown,
		words, reason_of(words)->advice);
}

/* ---- looking it over ---------------------------------------------------------------------------------------------- */

static bool is_text(const PGresult *result, int column, const char *text)
{
	return strcmp(pq.PQgetvalue(result, 0, column), text) == 0;
}

static int judge(struct postgres *store, const PGresult *result)
{
	if (is_text(result, 0, "off") || is_text(result, 1, "off"))
		return pg_complain(store, -EPERM,
			"%s: %s is off, so PostgreSQL may lose what it has acknowledged; set it on in postgresql.conf and reload",
			store->shown, is_text(result, 0, "off") ? "fsync" : "full_page_writes");
	if (is_text(result, 2, "t"))
		return pg_complain(store, -EROFS,
			"%s: PostgreSQL is a standby or still recovering, and takes no writes; name the primary, or all hosts: postgres://HOST1,HOST2/DATABASE",
			store->shown);
	snprintf(store->system, sizeof store->system, "%s", pq.PQgetvalue(result, 0, 5));
	snprintf(store->timeline, sizeof store->timeline, "%s", pq.PQgetvalue(result, 0, 6));
	store->is_synchronous = is_text(result, 7, "t");
	store->pid = atoi(pq.PQgetvalue(result, 0, 3));
	if (store->pid != pq.PQbackendPID(store->link))
		return pg_complain(store, -EPERM,
			"%s: a pooler stands between stint and PostgreSQL (PgBouncer or the like), and stint needs a session of its own; name PostgreSQL's own address",
			store->shown);
	return 0;
}

static int look_over(struct postgres *store)
{
	if (pq.PQserverVersion(store->link) < SERVER_VERSION_MIN)
		return pg_complain(store, -ENOTSUP, "%s: PostgreSQL %d is too old; stint needs 13 or newer",
			store->shown, pq.PQserverVersion(store->link) / 10000);
	PGresult *result = link_run(store,
		"SELECT current_setting('fsync'), current_setting('full_page_writes'), pg_is_in_recovery(), pg_backend_pid(), "
		"current_setting('synchronous_commit'), (SELECT system_identifier FROM pg_control_system()), "
		"CASE WHEN NOT pg_is_in_recovery() THEN left(pg_walfile_name(pg_current_wal_insert_lsn()), 8) END, "
		"current_setting('synchronous_standby_names') <> ''",
		0, NULL);
	int r = pq.PQresultStatus(result) == PGRES_TUPLES_OK ? judge(store, result) : pg_fault(store, result);
	bool is_stronger = r == 0 && is_text(result, 4, "remote_apply");
	pq.PQclear(result);
	if (r == 0)
		r = link_do(store, settings);
	if (r == 0 && is_stronger)
		r = link_do(store, "SET synchronous_commit = remote_apply");
	return r;
}

static int choose_schema(struct postgres *store)
{
	char *name = pq.PQescapeIdentifier(store->link, store->schema, strlen(store->schema));
	char sql[3 * PG_NAME_MAX];

	if (!name)
		return -ENOMEM;
	snprintf(sql, sizeof sql, "SET search_path = %s, pg_catalog", name);
	pq.PQfreemem(name);
	return link_do(store, sql);
}

int link_open(struct postgres *store)
{
	int r = connect_link(store);

	if (r < 0)
		return r;
	pq.PQsetNoticeReceiver(store->link, pg_take_notice, store);
	r = look_over(store);
	if (r == 0)
		r = choose_schema(store);
	if (r < 0)
		link_close(store);
	return r;
}
