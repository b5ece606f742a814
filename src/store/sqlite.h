/*
 * The SQLite backend. One connection in one process owns the file: exclusive lock, WAL, synchronous FULL.
 */
#pragma once

#include "store/backend.h"

struct sqlite_options {
	const char *path;
	const char *vfs;           /* NULL: the system's */
	const char *synchronous;   /* NULL: "FULL"; tests show what "NORMAL" loses */
	bool no_ballast;           /* tests of other things */
	uint64_t ballast_bytes;    /* 0: 8 MiB */
	uint64_t boot_hi, boot_lo; /* of the machine; 0: the caller does not know */
	bool look_only;            /* for sqlite_check(): nothing is changed, an older schema is refused */
	bool accept_loss; /* open what is left of a store that has lost something: a new generation */
};

/* 0, or -EBUSY: another process has it open; -EPROTO: not a store of ours, or of a newer release; -EBADMSG: it is missing,
 * empty, another one or older than its mark, or its log is damaged: the complaint names the choices; other faults. On failure *ret_complaint, if given, is a sentence for people that the caller frees. */
int sqlite_open(const struct sqlite_options *options, struct backend **ret_backend, char **ret_complaint);

/* Put a backup in the place of a store that nobody has open: a new generation, ids far ahead, every claim to
 * be set free at the next start. Revocations, quarantines and disarming of the store that was there stay; no key of derived tokens
 * does. Refuses to overwrite a store that is open. The store that was there gets the name
 * kept_path, which must be free, where the file system has two names for a file; NULL: it is not kept. `teller` may be NULL. */
/* What a restore tells of: each token that it brought back or took away. */
struct restore_teller {
	void (*token)(void *context, enum restored_token what, struct span id, struct span name);
	void *context;
};

int sqlite_restore(const char *backup_path, const char *store_path, const char *kept_path,
	const struct restore_teller *teller, char **ret_complaint);

/* Give a store that nobody has open, with its log, the name kept_path, which must be free; what it gave out stays in the mark, so
 * that the next store at store_path goes on behind it. None there: 0. */
int sqlite_set_aside(const char *store_path, const char *kept_path, char **ret_complaint);

/* Something that is wrong with a store. */
struct finding {
	const char *table; /* NULL: of the file as a whole */
	int64_t row;       /* 0: no single one, or it has no number */
	const char *what;
	const char *key; /* of a row without a number; NULL: none */
};

/* Ask SQLite about every page and index, and read every row that has a checksum. 0, or what a callback returned, or a fault. */
int sqlite_check(
	struct backend *backend, int (*each)(void *context, const struct finding *finding), void *context);
