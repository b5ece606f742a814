/*
 * Turns of commands as clients, workers and operators would send them, drawn at random.
 */
#pragma once

#include "base/arena.h"
#include "base/rng.h"
#include "powerloss/model.h"

enum {
	SCRIPT_COMMANDS_MAX = 64,
};

/* Fills in up to SCRIPT_COMMANDS_MAX commands, whose spans live in the arena and the model; returns how many. */
uint32_t script_turn(struct model *model, struct moment now, struct rng *rng, struct arena *arena,
	struct command commands[SCRIPT_COMMANDS_MAX]);
