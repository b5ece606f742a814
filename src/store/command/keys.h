/*
 * The keys of derived tokens and the hash of the admin's token: what a start, and a sweep, have to change of them.
 */
#pragma once

struct turn;

int keys_start(struct turn *turn);
int keys_sweep(struct turn *turn);
