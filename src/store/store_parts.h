/*
 * What open.c, store.c and upkeep.c share. Only they include this.
 */
#pragma once

#include "store/turn/turn.h"

/* Is it a fault that ends by itself, once there is room again or the disk may be written? */
bool fault_will_pass(int fault);

/* Refuse changes and let nobody expire, until upkeep finds room. */
void store_degrade(struct store *store);

/* A fault ended the turn; nothing of it happened. 0 if the store lives on. */
int store_fail(struct store *store, int fault);

/* The turn that notes the start; on a full disk it may have to wait. */
int store_start(struct store *store, struct moment now);
