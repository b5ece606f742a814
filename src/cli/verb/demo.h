/*
 * Three tasks that show a new user how stint works, in plain shell: one that works, one whose process is killed in its first
 * attempt and which recovers, and one that asks a person.
 */
#pragma once

#include "cli/frame/cli.h"

/* To the server of this home, as its admin. False: not all of them could be added. */
bool demo_add(struct cli *cli, const char *home);
