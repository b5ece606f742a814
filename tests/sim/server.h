/*
 * The simulated server process: what stintd does around a store, with nothing of the network.
 */
#pragma once

#include <stdbool.h>
#include <stdint.h>

#include "sim/model.h"
#include "sim/wire.h"
#include "backend/memory.h"
#include "store/store.h"

struct sim;

enum {
	SERVER_INBOX_MAX = 512,
	SERVER_BATCH_MAX = 26, /* requests, claims whose claimant hung up, and steps of bulk actions */
	SERVER_STEP_MAX = 12,  /* tasks that one step looks at */
	SERVER_RETURNS_MAX = 8,
	SERVER_MOVES_MAX = 1024,
};

/* A claim whose socket closed before its reply was written. */
struct returned {
	char worker[ID_MAX];
	char task[ID_MAX];
	uint64_t fence;
};

/* Who held a task under which fence just before an event of the turn at hand. */
struct move {
	int64_t event, task;
	uint64_t fence;
	char holder[ID_MAX];
};

struct server {
	struct store *store;     /* NULL: the process is not there */
	struct backend *backend; /* the disk; the store's while one is open */
	bool away;               /* suspended or stalled: what arrives waits */
	bool full;               /* the disk is */
	bool dies_after_commit;
	int64_t started_ms, woke_ms; /* lease clock */
	int64_t started_true_ms;
	bool degraded, was_degraded; /* after and before the turn at hand */
	uint32_t inbox[SERVER_INBOX_MAX];
	uint32_t inbox_count;
	struct returned returns[SERVER_RETURNS_MAX];
	uint32_t return_count;
	int64_t turn_at_ms, back_at_ms; /* true time; INT64_MAX = not planned */
	uint64_t audited_step, folded_step;
	uint32_t last_bulk; /* whose step came last */
	struct bulk_item items[SERVER_STEP_MAX];

	/* the turn at hand */
	struct command commands[SERVER_BATCH_MAX];
	struct result results[SERVER_BATCH_MAX];
	uint32_t slots[SERVER_BATCH_MAX]; /* of the requests; SLAB_NONE: the server's own command */
	struct wire_call calls[SERVER_BATCH_MAX];
	struct returned returning[SERVER_RETURNS_MAX];
	uint32_t count;
	int64_t before; /* the last event before it */
	struct move moves[SERVER_MOVES_MAX];
	uint32_t move_count;
	bool scenery_moved; /* a queue, slot or worker changed in it */

	/* an earlier copy of everything, as a backup would be */
	struct backend *backup;
	struct model backup_model;
	size_t backup_history; /* bytes of it */
};

void server_init(struct sim *sim);
void server_done(struct sim *sim);

/* Open the store, as a start of the process does. */
void server_start(struct sim *sim);

/* The process is gone at once; it comes back after that time. */
void server_crash(struct sim *sim, int64_t down_ms);

/* A request has arrived; false: nobody is there. */
bool server_receive(struct sim *sim, uint32_t slot);

/* Plan a turn. */
void server_want_turn(struct sim *sim, int64_t true_ms);

/* Entries of the agenda. */
void server_turn(struct sim *sim);
void server_sweep(struct sim *sim);
void server_back(struct sim *sim);

void server_backup(struct sim *sim);
void server_restore(struct sim *sim);
