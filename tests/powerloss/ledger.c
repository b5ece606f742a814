#include "powerloss/ledger.h"

#include <assert.h>
#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "powerloss/ledger_book.h"

struct ledger *ledger_new(void)
{
	struct ledger *ledger = calloc(1, sizeof(*ledger));

	if (!ledger)
		abort();
	rows_init(&ledger->rows);
	return ledger;
}

static void forget_ghosts(struct ledger *ledger)
{
	while (ledger->ghost_count > 0)
		free(ledger->ghosts[--ledger->ghost_count].changes);
}

void ledger_clear(struct ledger *ledger)
{
	forget_ghosts(ledger);
	rows_done(&ledger->rows);
	free(ledger->changes);
	free(ledger->transactions);
	*ledger = (struct ledger){0};
	rows_init(&ledger->rows);
}

void ledger_free(struct ledger *ledger)
{
	if (!ledger)
		return;
	ledger_clear(ledger);
	free(ledger);
}

bool ledger_is_empty(const struct ledger *ledger)
{
	return ledger->commits == 0;
}

uint64_t ledger_commits(const struct ledger *ledger)
{
	return ledger->commits;
}

int64_t ledger_last_event(const struct ledger *ledger)
{
	return ledger->last_event;
}

static bool has_row(const struct ledger *ledger, const struct row_key *key)
{
	struct rows *rows = (struct rows *)&ledger->rows; /* a row that is asked for is made, empty */

	return rows->rows[rows_at(rows, key)].digest != 0;
}

bool ledger_has_task(const struct ledger *ledger, int64_t seq)
{
	return has_row(ledger, &(struct row_key){.table = ROW_TASK, .a = seq});
}

bool ledger_has_worker(const struct ledger *ledger, struct span id)
{
	return has_row(ledger, &(struct row_key){.table = ROW_WORKER, .text = id});
}

/* ---- transactions ----------------------------------------------------------------------------- */

static struct transaction *last_transaction(struct ledger *ledger)
{
	return ledger->transaction_count ? &ledger->transactions[ledger->transaction_count - 1] : NULL;
}

static bool is_open(struct ledger *ledger)
{
	struct transaction *last = last_transaction(ledger);

	return last && last->state == TRANSACTION_OPEN;
}

void book_begin(struct ledger *ledger)
{
	assert(!is_open(ledger));
	if (ledger->transaction_count == ledger->transaction_room) {
		ledger->transaction_room = ledger->transaction_room ? 2 * ledger->transaction_room : 64;
		ledger->transactions = realloc(
			ledger->transactions, ledger->transaction_room * sizeof(*ledger->transactions));
		if (!ledger->transactions)
			abort();
	}
	ledger->transactions[ledger->transaction_count++] = (struct transaction){
		.state = TRANSACTION_OPEN,
		.first = ledger->change_count,
		.last_event_before = ledger->last_event,
	};
}

static void put_at(struct ledger *ledger, uint32_t row, uint64_t digest)
{
	assert(is_open(ledger));
	if (ledger->change_count == ledger->change_room) {
		ledger->change_room = ledger->change_room ? 2 * ledger->change_room : 256;
		ledger->changes = realloc(ledger->changes, ledger->change_room * sizeof(*ledger->changes));
		if (!ledger->changes)
			abort();
	}
	ledger->changes[ledger->change_count++] =
		(struct entry_change){.row = row, .before = ledger->rows.rows[row].digest};
	rows_set(&ledger->rows, row, digest);
}

void book_put(struct ledger *ledger, const struct row_key *key, uint64_t digest)
{
	put_at(ledger, rows_at(&ledger->rows, key), digest);
	if (key->table == ROW_EVENT && digest)
		ledger->last_event = key->a;
}

static bool hangs_on_task(const struct row *row, int64_t seq)
{
	switch (row->table) {
	case ROW_TASK:
	case ROW_BODY:
	case ROW_EXTRA:
		return row->a == seq;
	case ROW_EDGE:
		return row->a == seq || row->b == seq;
	case ROW_ID:
		return row->digest == digest_number(seq);
	case ROW_BASE:
	case ROW_EVENT:
	case ROW_NAME:
	case ROW_KEY:
	case ROW_WORKER:
	case ROW_SMALL:
	case ROW_IDEM:
	case ROW_META:
	case ROW_TOKEN:
	case ROW_TABLE_COUNT:
		return false;
	}
	return false;
}

void book_forget_task(struct ledger *ledger, int64_t seq)
{
	for (uint32_t i = 0; i < ledger->rows.count; i++)
		if (ledger->rows.rows[i].digest && hangs_on_task(&ledger->rows.rows[i], seq))
			put_at(ledger, i, 0);
}

void book_forget_events(struct ledger *ledger, int64_t upto)
{
	for (uint32_t i = 0; i < ledger->rows.count; i++) {
		const struct row *row = &ledger->rows.rows[i];

		if (row->digest && row->table == ROW_EVENT && row->a <= upto)
			put_at(ledger, i, 0);
	}
}

/* The last transaction never happened. */
static void undo(struct ledger *ledger)
{
	struct transaction *last = last_transaction(ledger);

	while (ledger->change_count > last->first) {
		const struct entry_change *change = &ledger->changes[--ledger->change_count];

		rows_set(&ledger->rows, change->row, change->before);
	}
	ledger->last_event = last->last_event_before;
	ledger->transaction_count--;
}

void book_commit_begins(struct ledger *ledger)
{
	assert(is_open(ledger));
	last_transaction(ledger)->state = TRANSACTION_IN_DOUBT;
}

void book_commit_ended(struct ledger *ledger, int fault)
{
	if (fault == 0) {
		last_transaction(ledger)->state = TRANSACTION_OWED;
		ledger->commits++;
		forget_ghosts(ledger);
	} else if (fault == -ENOSPC || fault == -EDQUOT || fault == -EROFS) {
		undo(ledger); /* the backend promises that it is as if it had not been */
	}
}

void book_rollback(struct ledger *ledger)
{
	if (is_open(ledger))
		undo(ledger);
}

void ledger_stop(struct ledger *ledger)
{
	book_rollback(ledger);
}

void ledger_acknowledge(struct ledger *ledger)
{
	for (uint32_t i = ledger->transaction_count; i > 0; i--) {
		struct transaction *transaction = &ledger->transactions[i - 1];

		if (transaction->acknowledged)
			break;
		transaction->acknowledged = transaction->state == TRANSACTION_OWED;
	}
}

/* ---- what came back --------------------------------------------------------------------------- */

/* A new file comes with a few facts of its own. */
static void adopt(struct ledger *ledger, struct backend *backend)
{
	for (int64_t key = META_GENERATION; key <= META_BOOT_LO; key++) {
		struct row_key row = {.table = ROW_META, .a = key};
		int64_t value;

		if (backend->ops->get_meta(backend, (enum meta_key)key, &value) == 0)
			rows_set(&ledger->rows, rows_at(&ledger->rows, &row), digest_number(value));
	}
	ledger->adopted = true;
}

static void remember_ghost(struct ledger *ledger, const struct transaction *transaction)
{
	uint32_t count = ledger->change_count - transaction->first;

	if (ledger->ghost_count == GHOSTS_MAX || count == 0)
		return;
	struct ghost *ghost = &ledger->ghosts[ledger->ghost_count++];

	*ghost = (struct ghost){.change_count = count, .last_event = ledger->last_event};
	ghost->changes = malloc(count * sizeof(*ghost->changes));
	if (!ghost->changes)
		abort();
	for (uint32_t i = 0; i < count; i++) {
		uint32_t row = ledger->changes[transaction->first + i].row;

		ghost->changes[i] = (struct ghost_change){row, ledger->rows.rows[row].digest};
	}
}

static void raise_ghost(struct ledger *ledger, const struct ghost *ghost)
{
	book_begin(ledger);
	for (uint32_t i = 0; i < ghost->change_count; i++)
		put_at(ledger, ghost->changes[i].row, ghost->changes[i].after);
	ledger->last_event = ghost->last_event;
	book_commit_begins(ledger);
}

/* Is it one of those that were in doubt before? */
static int match_ghosts(struct ledger *ledger, struct backend *backend)
{
	char complaint[sizeof(((struct found *)0)->complaint)];
	int fault = -EPROTO;

	for (uint32_t i = 0; i < ledger->ghost_count && fault == -EPROTO; i++) {
		raise_ghost(ledger, &ledger->ghosts[i]);
		fault = book_match(ledger, backend, complaint, sizeof(complaint));
		if (fault)
			undo(ledger);
	}
	return fault;
}

static void undo_last(struct ledger *ledger, struct found *found)
{
	const struct transaction *last = last_transaction(ledger);

	if (last->state == TRANSACTION_IN_DOUBT)
		remember_ghost(ledger, last);
	found->lost_commits += last->state == TRANSACTION_OWED;
	found->lost_turns += last->acknowledged;
	undo(ledger);
}

/* With everything; without what was in doubt; with what was in doubt earlier; and only then with less than
 * what is owed. */
static int match_some(struct ledger *ledger, struct backend *backend, struct found *found)
{
	int fault = book_match(ledger, backend, found->complaint, sizeof(found->complaint));
	char other[sizeof(found->complaint)];

	while (fault == -EPROTO) {
		const struct transaction *last = last_transaction(ledger);

		if (!last || last->state == TRANSACTION_OWED)
			fault = match_ghosts(ledger, backend);
		if (fault != -EPROTO || !last)
			break;
		undo_last(ledger, found);
		fault = book_match(ledger, backend, other, sizeof(other));
	}
	return fault;
}

int ledger_settle(struct ledger *ledger, struct backend *backend, bool safe, struct found *ret_found)
{
	struct found found = {0};
	int fault;

	book_rollback(ledger);
	if (!ledger->adopted && ledger_is_empty(ledger) && ledger->transaction_count == 0)
		adopt(ledger, backend);
	fault = match_some(ledger, backend, &found);
	found.in_doubt_is_there = fault == 0 && ledger->transaction_count &&
		last_transaction(ledger)->state == TRANSACTION_IN_DOUBT;
	if (fault == 0 && safe) {
		ledger->transaction_count = 0;
		ledger->change_count = 0;
	}
	*ret_found = found;
	return fault;
}
