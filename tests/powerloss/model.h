/*
 * The model: what clients were told. After a restart the store must know at least as much.
 */
#pragma once

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "base/rng.h"
#include "powerloss/ledger.h"
#include "store/store.h"

enum {
	MODEL_WORKERS = 4,
	MODEL_QUEUES = 3,
	MODEL_ID_MAX = 40,
};

struct told_task {
	struct task task; /* as it was in the last reply about it */
	char id[MODEL_ID_MAX];
	char holder[MODEL_ID_MAX];
};

struct told_worker {
	char id[MODEL_ID_MAX];
	uint32_t instance;
	uint64_t token;
	bool is_registered; /* a reply said so */
};

struct model {
	struct told_task *tasks;
	uint32_t task_count, task_room;
	struct told_worker workers[MODEL_WORKERS];
	enum queue_state queues[MODEL_QUEUES];
	int64_t last_event;
	uint64_t names_given; /* so that no id is used twice */
	bool is_heavy;        /* bodies are long: the log soon is, too */
};

void model_init(struct model *model);
void model_done(struct model *model);

struct span model_queue(uint32_t queue);

/* A turn was acknowledged: these are its replies. */
void model_take(
	struct model *model, const struct command *commands, const struct result *results, uint32_t count);

/* The store was opened again: does it know what clients were told? 0, or -EPROTO with a sentence. */
int model_check(const struct model *model, struct store *store, struct moment now,
	const struct ledger *ledger, char *complaint, size_t len);

/* Start from what the store knows now: what it has found beyond the last reply is told by reading it. */
int model_learn(struct model *model, struct store *store);
