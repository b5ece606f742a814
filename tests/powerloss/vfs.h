/*
 * A disk as SQLite sees it: a VFS of its own, without locks and shared memory, because one connection owns
 * the file. It is also the source of every random number that SQLite draws, so that a seed replays.
 */
#pragma once

#include "powerloss/disk.h"

/* Registers the disk under that name, and as the default. The disk and the name are borrowed for good. */
void vfs_register(const char *name, struct disk *disk);

/* What SQLite draws from here on. */
void vfs_seed(uint64_t seed);
