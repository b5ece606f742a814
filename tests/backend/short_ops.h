/*
 * A backend whose n-th operation of a turn fails: there is no memory for it. Transactions are left alone, so that the turn is
 * taken back like any other that cannot be finished.
 */
#pragma once

#include <stdbool.h>
#include <stdint.h>

#include "store/backend.h"

/* From now on the operation of that number, counted from 1, fails once. */
void short_ops_begin(struct backend *backend, uint32_t number);

/* All operations are the backend's own again. Has one failed? */
bool short_ops_end(struct backend *backend);
