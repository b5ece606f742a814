/*
 * A store on its way from PostgreSQL into a file, and back: by rows, because the two have nothing else in common. Both block for as long as
 * they take.
 */
#pragma once

#include "store/copy.h"
#include "store/sqlite.h"

/* What there is now, as a backup at that path, which is free: it has its name only when it is whole and on disk. On failure *ret_complaint
 * is a sentence for people that the caller frees. */
int moved_to_file(const char *url, const char *path, const struct copy_options *options,
	struct copied *ret_copied, char **ret_complaint);

/* A backup into a schema that holds no store. `home`: where there is room for a copy of the backup. As every restore, it is a new
 * generation. */
int moved_to_postgres(const char *backup, const char *url, const char *home,
	const struct restore_teller *teller, struct copied *ret_copied, char **ret_complaint);

/* What moved_to_file() leaves behind when it is killed ends so. */
extern const char moved_half[];
void moved_clear(const char *directory);
