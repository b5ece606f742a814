/*
 * Backups while the server serves, and a backup put in the place of the store (restore.c).
 */
#pragma once

#include <uv.h>

#include "server/options.h"
#include "server/turn/exchange.h"

/* Of a store in PostgreSQL: by another thread, with a session of its own. */
struct backup_job;

/* A backup under way; its exchange waits for it. */
struct server_backup {
	struct exchange *exchange; /* NULL: no backup is under way */
	uv_idle_t step;            /* runs while a backup of a file is under way */
	struct backup_job *job;    /* it may be under way for longer than the exchange */
	char name[160];
	char path[OPTIONS_PATH_MAX + 200];
};

/* Remove what an earlier run left half done. */
void backups_prepare(struct server *server);
/* Make the backup that the exchange asks for and answer it; a few pages between one turn and the next. */
void backup_start(struct server *server, struct exchange *exchange);
void backup_abandon(struct server *server); /* its client is gone */
void backup_stop(struct server *server);

/* An exit status after one line that says what was done, or why not. */
int restore_run(const struct options *options);

/* --check-store: an exit status. */
int check_store_run(const struct options *options);

/* --new-store: the store that is there gets another name, which is logged. */
int store_set_aside(const struct options *options, char **ret_complaint);
