/*
 * The ledger: what the store has put into its backend, transaction by transaction, as digests of rows.
 *
 * It stands between the store and a backend and writes down every row that passes. After a cut it is held
 * against what the backend found again: that must be the rows of all transactions up to some point and of
 * none after it. A transaction whose commit returned 0 is owed; one that was under way when the power went
 * may be there wholly or not at all.
 */
#pragma once

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "store/backend.h"

struct ledger;

struct ledger *ledger_new(void);
void ledger_free(struct ledger *ledger); /* NULL is fine */
void ledger_clear(struct ledger *ledger);

/* A backend that passes everything on to `inner`, which it owns, and writes it down. */
struct backend *ledger_watch(struct ledger *ledger, struct backend *inner);

/* The backend is gone: what had not reached its commit never happened. */
void ledger_stop(struct ledger *ledger);

/* What came back. */
struct found {
	uint32_t lost_commits; /* of those that were owed */
	uint32_t lost_turns;   /* of those, the ones that were acknowledged */
	bool in_doubt_is_there;
	char complaint[256];
};

/* 0, and the ledger goes on from the transactions that were found; -EPROTO with a complaint if the rows are
 * those of no point in the order of commits. `safe`: power was cut, so what is there now will stay. */
int ledger_settle(struct ledger *ledger, struct backend *backend, bool safe, struct found *ret_found);

/* Everything committed so far belongs to turns that were acknowledged. */
void ledger_acknowledge(struct ledger *ledger);

bool ledger_is_empty(const struct ledger *ledger); /* no transaction was ever owed */
uint64_t ledger_commits(const struct ledger *ledger);
int64_t ledger_last_event(const struct ledger *ledger); /* of those that were committed */
bool ledger_has_task(const struct ledger *ledger, int64_t seq);
bool ledger_has_worker(const struct ledger *ledger, struct span id);
