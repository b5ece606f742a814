/*
 * Signs of life, and what this backend has no use for: PostgreSQL has its own log, its own disk and its own backups.
 */
#include <stdio.h>

#include "store/postgres/postgres_backend.h"

enum {
	SIGNS_OF_LIFE = 3, /* within the time after which another server takes us for gone */
	LOOK_MS = 1000,    /* between two looks at what the next failover needs to know */
	TURNS_KEPT = 4096,
	PRUNE_EVERY = 1024,
};

/* A turn without rows: those who stand by see that we are here, and we see that we still lead. */
static int show_life(struct backend *backend)
{
	int r = postgres_begin(backend);

	return r < 0 ? r : postgres_send(backend);
}

int postgres_confirm(struct backend *backend, uint32_t ms)
{
	struct postgres *store = postgres_of(backend);

	if (backend->ops != &postgres_ops || pg_now_ms() - store->heard_ms < ms)
		return 0;
	return store->is_stale ? -ESTALE : show_life(backend);
}

static int prune(struct postgres *store)
{
	PGresult *result;
	int r = ASK(store, PG_PRUNE_TURNS, &result, pg_int(store->head - TURNS_KEPT));

	if (r == 0)
		pq.PQclear(result);
	return r;
}

int postgres_checkpoint(struct backend *backend, bool idle)
{
	struct postgres *store = postgres_of(backend);
	int r = 0;

	if (store->is_stale)
		return -ESTALE;
	if (idle && pg_now_ms() - store->heard_ms >= store->look_away_ms / SIGNS_OF_LIFE)
		r = show_life(backend);
	if (r == 0 && store->link && pg_now_ms() - store->looked_ms >= LOOK_MS) {
		store->looked_ms = pg_now_ms();
		r = lost_look(store);
		r = r == -ENOTCONN ? 0 : r; /* the next turn finds out */
	}
	if (r == 0 && idle && store->head - store->pruned >= PRUNE_EVERY) {
		store->pruned = store->head;
		r = prune(store);
	}
	return r;
}

int postgres_mark(struct backend *backend)
{
	(void)backend;
	return 0;
}

int postgres_relieve(struct backend *backend)
{
	(void)backend;
	return 0;
}

/* May turns be tried again? */
int postgres_reserve(struct backend *backend)
{
	return show_life(backend);
}

int postgres_query(struct backend *backend, struct admin_query *question)
{
	(void)backend;
	snprintf(question->complaint, sizeof question->complaint,
		"a store in PostgreSQL is asked with psql; its tables are in the schema of the store's URL");
	return -ENOTSUP;
}

int postgres_backup_begin(struct backend *backend, const char *path)
{
	struct postgres *store = postgres_of(backend);

	(void)path;
	return pg_complain(store, -ENOTSUP,
		"a store in PostgreSQL is backed up with PostgreSQL's own tools, as in pg_dump --schema=%s",
		store->schema);
}

int postgres_backup_step(struct backend *backend, uint32_t pages, uint32_t *ret_remaining)
{
	(void)backend;
	(void)pages;
	(void)ret_remaining;
	return -ENOTSUP;
}

void postgres_backup_end(struct backend *backend)
{
	(void)backend;
}
