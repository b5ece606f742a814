/*
 * Inside the SQLite backend: the mark beside a store. See mark.c.
 */
#pragma once

#include "store/sqlite/sqlite_backend.h"

struct mark {
	uint64_t id_hi, id_lo; /* of the store; 0: a release before marks made it */
	int64_t generation, starts;
	int64_t task, event; /* the last numbers given out */
	bool is_in_doubt; /* a sync failed: the last turn, of which nobody was told, may lie in the log in part */
};

/* Its own path, to be freed; NULL: no memory. */
char *mark_path(const char *store_path);

/* 0, -ENOENT: the store has none, -EBADMSG: it cannot be read as one; or a fault. */
int mark_read(const char *store_path, struct mark *ret_mark, char **ret_complaint);
int mark_write(const char *store_path, const struct mark *mark); /* synced */
/* A sync has failed, and the process ends: let the mark say so, as well as it can. */
void mark_doubt(const struct sqlite *store);
int mark_remove(const char *store_path); /* none there: 0 */

/* How far a store of any release is. Returns a result code of SQLite. */
int mark_of(sqlite3 *db, struct mark *ret_mark);

/* 0, or -EBADMSG: the store that was found is another one than the mark says, or has lost something since. */
int mark_compare(const char *path, const struct mark *mark, const struct mark *found, char **ret_complaint);
