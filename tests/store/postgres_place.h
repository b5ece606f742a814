/*
 * A schema of its own for each test of a store in PostgreSQL, on the server that STINT_TEST_POSTGRES names
 * (tests/postgres/server.py starts one). Without that variable there are no such tests. Included after cmocka.h.
 */
#pragma once

#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "store/postgres.h"
#include "store/postgres/libpq.h"

static inline const char *postgres_server(void)
{
	return getenv("STINT_TEST_POSTGRES");
}

/* The URL of a schema that no other test has; its name is the part behind the last '='. */
static inline void postgres_place(char *url, size_t size)
{
	static int number;
	const char *server = postgres_server();

	assert_non_null(server);
	int len = snprintf(url, size, "%s%cschema=t_%d_%d", server, strchr(server, '?') ? '&' : '?',
		(int)getpid(), ++number);
	assert_true(len > 0 && (size_t)len < size);
}

/* One statement, by a session of its own. */
static inline void postgres_run(const char *sql)
{
	assert_int_equal(libpq_load(), 0);
	PGconn *link = pq.PQconnectdb(postgres_server());
	PGresult *result = pq.PQexec(link, sql);
	ExecStatusType status = pq.PQresultStatus(result);

	if (status != PGRES_COMMAND_OK && status != PGRES_TUPLES_OK)
		fail_msg("%s: %s", sql, pq.PQerrorMessage(link));
	pq.PQclear(result);
	pq.PQfinish(link);
}

static inline void postgres_remove(const char *url)
{
	char sql[200];

	snprintf(sql, sizeof sql,
		"SET client_min_messages = error; SET synchronous_commit = off; DROP SCHEMA IF EXISTS %s CASCADE",
		strrchr(url, '=') + 1);
	postgres_run(sql);
}

static inline struct backend *postgres_open_at(const char *url)
{
	struct postgres_options options = {.url = url};
	struct backend *backend = NULL;
	char *complaint = NULL;

	if (postgres_open(&options, &backend, &complaint) != 0)
		fail_msg("%s", complaint ? complaint : "no complaint");
	return backend;
}
