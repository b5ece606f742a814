/*
 * libpq, loaded when the first store of PostgreSQL is opened: stintd starts on machines that do not have it.
 */
#pragma once

#include <libpq-fe.h>

// clang-format off
#define LIBPQ_FUNCTIONS(X) \
	X(PQconnectdb) X(PQconninfoParse) X(PQconninfoFree) X(PQfreemem) X(PQfinish) X(PQstatus) X(PQsocket) X(PQerrorMessage) X(PQbackendPID) \
	X(PQserverVersion) X(PQtransactionStatus) X(PQsetNoticeReceiver) X(PQsetnonblocking) X(PQflush) X(PQconsumeInput) \
	X(PQisBusy) X(PQgetResult) X(PQexec) X(PQexecParams) X(PQsendPrepare) X(PQsendQueryPrepared) X(PQsendQueryParams) X(PQenterPipelineMode) \
	X(PQexitPipelineMode) X(PQpipelineSync) X(PQclear) X(PQresultStatus) X(PQresultErrorMessage) X(PQresultErrorField) \
	X(PQntuples) X(PQnfields) X(PQgetvalue) X(PQgetlength) X(PQgetisnull) X(PQcmdStatus) X(PQcmdTuples) X(PQescapeIdentifier) X(PQescapeLiteral)
// clang-format on

struct libpq {
#define X(name) __typeof__(name) *name;
	LIBPQ_FUNCTIONS(X)
#undef X
};

extern struct libpq pq;

/* 0, or -ENOTSUP: the library is not there, or is too old to know pipelines. */
int libpq_load(void);
