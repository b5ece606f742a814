/*
 * Statements that give rows, and waiting for the server.
 *
 * A session that was lost while nothing was under way is looked for again, with the lead, and the statement is asked once more: there
 * is nothing in it that could happen twice.
 */
#include <endian.h>
#include <poll.h>
#include <string.h>

#include "store/postgres/postgres_backend.h"

enum { ASKED_PARAMETERS_MAX = 4 };

struct pg_parameter pg_int(int64_t value)
{
	struct pg_parameter parameter = {.len = sizeof parameter.number};
	uint64_t packed = htobe64((uint64_t)value);

	memcpy(parameter.number, &packed, sizeof packed);
	return parameter;
}

struct pg_parameter pg_bytes(struct span value)
{
	return (struct pg_parameter){.data = value.data ? value.data : "", .len = (int)value.len};
}

/* Write what is to be written, and read what there is, until a result is whole or the session is lost. */
static bool wait_for_result(struct postgres *store)
{
	for (;;) {
		int unsent = pq.PQflush(store->link);
		if (unsent < 0)
			return false;
		if (unsent == 0 && !pq.PQisBusy(store->link))
			return true;
		struct pollfd poll_fd = {
			.fd = pq.PQsocket(store->link), .events = POLLIN | (unsent ? POLLOUT : 0)};
		poll(&poll_fd, 1, -1);
		if (poll_fd.revents & (POLLIN | POLLERR | POLLHUP | POLLNVAL) &&
			pq.PQconsumeInput(store->link) == 0)
			return false;
	}
}

PGresult *pg_next_result(struct postgres *store)
{
	wait_for_result(
		store); /* of a session that is lost PQgetResult() says so itself, and then that there is no more */
	return pq.PQgetResult(store->link);
}

static int send_question(
	struct postgres *store, enum pg_statement which, int count, const struct pg_parameter *parameters)
{
	const char *values[ASKED_PARAMETERS_MAX];
	int lengths[ASKED_PARAMETERS_MAX], formats[ASKED_PARAMETERS_MAX];
	char name[16];

	assert(count <= ASKED_PARAMETERS_MAX);
	for (int i = 0; i < count; i++) {
		values[i] = parameters[i].data ? parameters[i].data : parameters[i].number;
		lengths[i] = parameters[i].len;
		formats[i] = 1;
	}
	snprintf(name, sizeof name, "s%d", (int)which);
	return pq.PQsendQueryPrepared(store->link, name, count, values, lengths, formats, 1) ? 0 : -ENOTCONN;
}

static int ask_once(struct postgres *store, enum pg_statement which, int count,
	const struct pg_parameter *parameters, PGresult **ret_result)
{
	PGresult *result = NULL, *next;
	int r = send_question(store, which, count, parameters);

	if (r < 0)
		return pg_fault(store, NULL);
	while ((next = pg_next_result(store))) {
		pq.PQclear(result);
		result = next;
	}
	ExecStatusType status = pq.PQresultStatus(result);
	r = status == PGRES_TUPLES_OK || status == PGRES_COMMAND_OK ? 0 : pg_fault(store, result);
	if (r == 0)
		*ret_result = result;
	else
		pq.PQclear(result);
	store->round_trips++;
	return r;
}

int pg_ask(struct postgres *store, enum pg_statement which, int count, struct pg_parameter *parameters,
	PGresult **ret_result)
{
	bool happened;

	if (store->is_stale)
		return pg_is_stale(store);
	int r = ask_once(store, which, count, parameters, ret_result);
	if (r != -ENOTCONN || store->only_looks) /* a snapshot does not outlive its session */
		return r;
	bool was_open = store->turn.open; /* it is gone with its session */
	r = lead_again(store, false, &happened);
	if (r == 0 && !was_open)
		r = ask_once(store, which, count, parameters, ret_result);
	else if (r == 0)
		r = pg_complain(store, -EROFS,
			"the session with PostgreSQL was lost amid a turn, which was given up");
	return r == -ENOTCONN ? -EROFS : r;
}
