/*
 * Inside the ledger: ledger.c keeps transactions, ledger_watch.c feeds it, ledger_match.c compares.
 */
#pragma once

#include "powerloss/ledger.h"
#include "powerloss/ledger_rows.h"

struct entry_change {
	uint32_t row;
	uint64_t before;
};

enum transaction_state {
	TRANSACTION_OPEN = 1,
	TRANSACTION_IN_DOUBT, /* its commit was asked for and has not returned 0 */
	TRANSACTION_OWED,
};

struct transaction {
	enum transaction_state state;
	uint32_t first; /* of its changes */
	int64_t last_event_before;
	bool acknowledged;
};

struct ghost_change {
	uint32_t row;
	uint64_t after;
};

/* A transaction that was in doubt and was not found. Its frames may still lie in the log, all but the first;
 * if the next transaction begins with the same page, one torn write brings it back. Until a commit has
 * returned 0 it may yet be found, wholly. */
struct ghost {
	struct ghost_change *changes;
	uint32_t change_count;
	int64_t last_event;
};

enum {
	GHOSTS_MAX = 16,
};

struct ledger {
	struct rows rows; /* as they are after all transactions below */
	struct entry_change *changes;
	uint32_t change_count, change_room;
	struct transaction *transactions;
	uint32_t transaction_count, transaction_room;
	uint64_t commits;
	int64_t last_event;
	struct ghost ghosts[GHOSTS_MAX];
	uint32_t ghost_count;
	bool adopted; /* the facts that come with a new file are known */
};

void book_begin(struct ledger *ledger);
void book_put(struct ledger *ledger, const struct row_key *key, uint64_t digest);
void book_forget_task(struct ledger *ledger, int64_t seq); /* and all that hangs on it */
void book_forget_events(struct ledger *ledger, int64_t upto);
void book_commit_begins(struct ledger *ledger);
void book_commit_ended(struct ledger *ledger, int fault);
void book_rollback(struct ledger *ledger);

/* 0 if the backend has exactly these rows, else -EPROTO with a sentence, or a fault of the backend. */
int book_match(const struct ledger *ledger, struct backend *backend, char *complaint, size_t len);
