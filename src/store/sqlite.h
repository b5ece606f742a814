/*
 * The SQLite backend. One connection in one process owns the file: exclusive lock, WAL, synchronous FULL.
 */
#pragma once

#include "store/backend.h"

struct sqlite_options {
	const char *path;
	const char *vfs;         /* NULL: the system's */
	const char *synchronous; /* NULL: "FULL"; tests show what "NORMAL" loses */
	bool no_ballast;         /* tests of other things */
	uint64_t ballast_bytes;  /* 0: 8 MiB */
};

/* 0, or -EBUSY: another process has it open; -EPROTO: not a store of ours, or of a newer release; other
 * faults. On failure *ret_complaint, if given, is a sentence for people that the caller frees. */
int sqlite_open(const struct sqlite_options *options, struct backend **ret_backend, char **ret_complaint);

/* Put a backup in the place of a store that nobody has open: a new generation, ids far ahead, every claim to
 * be set free at the next start. Refuses to overwrite a store that is open. The store that was there gets the name
 * kept_path, which must be free, where the file system has two names for a file; NULL: it is not kept. */
int sqlite_restore(
	const char *backup_path, const char *store_path, const char *kept_path, char **ret_complaint);
