/*
 * A disk that may lose power.
 *
 * Each file has two images: what a program sees now, and what is safe. Between the two stands the list of
 * writes and truncations since the last sync. A cut keeps any of them, in any order, torn or whole, and drops
 * the rest; a sync makes everything before it safe. Names work alike: a file that was made or removed since
 * the directory was last synced may be back as it was.
 *
 * Every write, truncation, sync and removal is one operation. The plan names the operation at which the power
 * goes, at which the disk is full, or which sync fails; the same plan and the same random numbers give the
 * same disk.
 */
#pragma once

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "base/rng.h"

enum {
	DISK_NAME_MAX = 64,
	DISK_FILES_MAX = 16,
	DISK_SECTOR_BYTES = 512, /* the unit that is torn */
};

struct disk;
struct disk_file; /* one file, whatever its name is by now */

/*
 * What the device says about itself. A torn write never damages bytes beside it, whether promised or not:
 * SQLite pads its log where that is not promised, but goes on behind the last whole frame after a restart, in
 * the middle of a sector.
 */
struct disk_make {
	uint32_t sector_bytes; /* 512 or 4096 */
	bool powersafe;        /* promises that a torn write stays within its bounds */
};

struct disk *disk_new(void);
void disk_free(struct disk *disk); /* NULL is fine */

/* Empty, of that make, switched on, with no plan. */
void disk_wipe(struct disk *disk, struct disk_make make, uint64_t seed);

/* The same safe bytes on another disk, so that looking at them changes nothing. */
void disk_copy(struct disk *to, const struct disk *from);

/* ---- plans: operations are counted from 1; 0 is never ------------------------------------------ */

uint64_t disk_operations(const struct disk *disk);
void disk_plan_cut(struct disk *disk, uint64_t at);
void disk_plan_full(struct disk *disk, uint64_t at, bool overwrites_too);
void disk_plan_sync_fault(struct disk *disk, uint64_t at); /* the first sync from there on */
void disk_give_space(struct disk *disk);

bool disk_is_off(const struct disk *disk);
bool disk_is_full(const struct disk *disk);         /* and has refused a write */
bool disk_sync_has_failed(const struct disk *disk); /* since it was plugged in */

/* The program is gone at once: nothing it does from here on reaches the disk. */
void disk_unplug(struct disk *disk);

/* Power comes back, and only some of what was not synced is there. */
void disk_plug_after_cut(struct disk *disk, struct rng *rng);
void disk_plug_kept(struct disk *disk); /* only the program died: the system still has every write */

/* What a start does with a file before it trusts it (settle_log() in store/sqlite/open.c): it is synced, so that nothing is
 * built on what a power cut could still take away. */
void disk_settle(struct disk *disk, const char *name);
/* What the system believes to have written in a sync that failed is read from the disk again. */
void disk_drop_stale_cache(struct disk *disk);

/* ---- files: 0 or negative errno; -EIO when the power is off ------------------------------------- */

struct disk_make disk_make_of(const struct disk *disk);
int disk_open(struct disk *disk, const char *name, bool create, struct disk_file **ret_file);
int disk_remove(struct disk *disk, const char *name, bool sync_directory); /* -ENOENT */
bool disk_has(const struct disk *disk, const char *name);                  /* and it is not empty */

/* Returns how many bytes were there. */
int64_t disk_read(struct disk *disk, const struct disk_file *file, void *into, size_t len, int64_t offset);
int disk_write(struct disk *disk, struct disk_file *file, const void *from, size_t len, int64_t offset);
int disk_truncate(struct disk *disk, struct disk_file *file, int64_t size);
int disk_sync(struct disk *disk, struct disk_file *file, bool and_directory);
int64_t disk_size(const struct disk_file *file);
