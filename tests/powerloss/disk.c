#include "powerloss/disk.h"

#include <assert.h>
#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "base/buf.h"

struct image {
	unsigned char *bytes;
	size_t len, room;
};

struct change {
	int64_t offset; /* of a truncation: the new size */
	size_t len;
	size_t data; /* where its bytes begin in `written` */
	bool truncates;
};

struct disk_file {
	struct image now, safe;
	struct change *changes; /* since the last sync, in order */
	uint32_t change_count, change_room;
	struct buf written;
	bool is_stale; /* a sync failed: `now` shows what `safe` may not have, though nothing is pending */
};

/* A name, the file behind it, and the file that would be behind it after a cut. */
struct entry {
	char name[DISK_NAME_MAX];
	struct disk_file *now, *safe;
};

struct disk {
	struct disk_make make;
	struct entry entries[DISK_FILES_MAX];
	uint32_t entry_count;
	uint64_t operations;
	uint64_t cut_at, full_at, sync_fault_at;
	bool full_for_overwrites;
	bool off, has_refused, sync_failed;
	struct rng grain; /* of partial writes and failed syncs */
};

/* ---- images ----------------------------------------------------------------------------------- */

static void *must(void *memory)
{
	if (!memory)
		abort();
	return memory;
}

static void image_reserve(struct image *image, size_t room)
{
	if (room <= image->room)
		return;
	size_t more = image->room ? image->room : 65536;
	while (more < room)
		more *= 2;
	image->bytes = must(realloc(image->bytes, more));
	image->room = more;
}

/* Bytes that nobody wrote are zero. */
static void image_resize(struct image *image, size_t len)
{
	image_reserve(image, len);
	if (len > image->len)
		memset(image->bytes + image->len, 0, len - image->len);
	image->len = len;
}

static void image_put(struct image *image, const void *from, size_t len, size_t offset)
{
	if (offset + len > image->len)
		image_resize(image, offset + len);
	memcpy(image->bytes + offset, from, len);
}

static void image_copy(struct image *to, const struct image *from)
{
	image_reserve(to, from->len);
	if (from->len)
		memcpy(to->bytes, from->bytes, from->len);
	to->len = from->len;
}

static void image_apply(struct image *image, const struct disk_file *file, const struct change *change)
{
	if (change->truncates)
		image_resize(image, (size_t)change->offset);
	else
		image_put(image, file->written.data + change->data, change->len, (size_t)change->offset);
}

/* ---- files and names -------------------------------------------------------------------------- */

static struct disk_file *file_new(void)
{
	struct disk_file *file = must(calloc(1, sizeof(*file)));

	buf_init(&file->written, (size_t)1 << 30);
	return file;
}

static void file_free(struct disk_file *file)
{
	if (!file)
		return;
	free(file->now.bytes);
	free(file->safe.bytes);
	free(file->changes);
	buf_done(&file->written);
	free(file);
}

static void file_forget_changes(struct disk_file *file)
{
	file->change_count = 0;
	buf_clear(&file->written);
}

static void file_note(struct disk_file *file, bool truncates, const void *from, size_t len, int64_t offset)
{
	if (file->change_count == file->change_room) {
		file->change_room = file->change_room ? 2 * file->change_room : 64;
		file->changes = must(realloc(file->changes, file->change_room * sizeof(*file->changes)));
	}
	struct change *change = &file->changes[file->change_count++];

	*change = (struct change){
		.offset = offset, .len = len, .data = file->written.len, .truncates = truncates};
	if (len && buf_put(&file->written, from, len) != 0)
		abort();
	image_apply(&file->now, file, change);
}

static struct entry *entry_find(const struct disk *disk, const char *name)
{
	for (uint32_t i = 0; i < disk->entry_count; i++)
		if (strcmp(disk->entries[i].name, name) == 0)
			return (struct entry *)&disk->entries[i];
	return NULL;
}

static struct entry *entry_make(struct disk *disk, const char *name)
{
	struct entry *entry = entry_find(disk, name);

	if (entry)
		return entry;
	assert(disk->entry_count < DISK_FILES_MAX);
	assert(strlen(name) < DISK_NAME_MAX);
	entry = &disk->entries[disk->entry_count++];
	*entry = (struct entry){0};
	memcpy(entry->name, name, strlen(name) + 1);
	return entry;
}

/* A file without a name goes, as soon as no cut could bring its name back. */
static void entry_set_safe(struct entry *entry, struct disk_file *file)
{
	if (entry->safe != file && entry->safe != entry->now)
		file_free(entry->safe);
	entry->safe = file;
}

static void directory_sync(struct disk *disk)
{
	for (uint32_t i = 0; i < disk->entry_count; i++)
		entry_set_safe(&disk->entries[i], disk->entries[i].now);
}

/* ---- the disk --------------------------------------------------------------------------------- */

struct disk *disk_new(void)
{
	return must(calloc(1, sizeof(struct disk)));
}

static void disk_clear(struct disk *disk)
{
	for (uint32_t i = 0; i < disk->entry_count; i++) {
		struct entry *entry = &disk->entries[i];

		if (entry->safe != entry->now)
			file_free(entry->safe);
		file_free(entry->now);
	}
	*disk = (struct disk){0};
}

void disk_free(struct disk *disk)
{
	if (!disk)
		return;
	disk_clear(disk);
	free(disk);
}

void disk_wipe(struct disk *disk, struct disk_make make, uint64_t seed)
{
	disk_clear(disk);
	disk->make = make;
	rng_seed(&disk->grain, seed);
}

void disk_copy(struct disk *to, const struct disk *from)
{
	disk_wipe(to, from->make, 0);
	for (uint32_t i = 0; i < from->entry_count; i++) {
		const struct entry *entry = &from->entries[i];

		if (!entry->safe)
			continue;
		struct entry *copy = entry_make(to, entry->name);

		copy->now = copy->safe = file_new();
		image_copy(&copy->now->now, &entry->safe->safe);
		image_copy(&copy->now->safe, &entry->safe->safe);
	}
}

uint64_t disk_operations(const struct disk *disk)
{
	return disk->operations;
}

void disk_plan_cut(struct disk *disk, uint64_t at)
{
	disk->cut_at = at;
}

void disk_plan_full(struct disk *disk, uint64_t at, bool overwrites_too)
{
	disk->full_at = at;
	disk->full_for_overwrites = overwrites_too;
}

void disk_plan_sync_fault(struct disk *disk, uint64_t at)
{
	disk->sync_fault_at = at;
}

void disk_give_space(struct disk *disk)
{
	disk->full_at = 0;
	disk->has_refused = false;
}

bool disk_is_off(const struct disk *disk)
{
	return disk->off;
}

bool disk_is_full(const struct disk *disk)
{
	return disk->has_refused;
}

bool disk_sync_has_failed(const struct disk *disk)
{
	return disk->sync_failed;
}

void disk_unplug(struct disk *disk)
{
	disk->off = true;
}

struct disk_make disk_make_of(const struct disk *disk)
{
	return disk->make;
}

/* One more operation. The one at which the power goes is under way: it may still leave a trace. */
static void disk_step(struct disk *disk)
{
	disk->operations++;
	if (disk->operations == disk->cut_at)
		disk->off = true;
}

/* ---- what is left after a cut ----------------------------------------------------------------- */

static void scribble(struct image *image, size_t from, size_t to, struct rng *rng)
{
	bool zeroes = rng_chance(rng, 3);

	if (to > image->len)
		to = image->len;
	for (size_t i = from; i < to; i++)
		image->bytes[i] = zeroes ? 0 : (unsigned char)rng_u32(rng);
}

static size_t sector_end(size_t offset)
{
	return (offset / DISK_SECTOR_BYTES + 1) * DISK_SECTOR_BYTES;
}

/* Sectors of one write go to disk one by one: a first part of them, or any of them. */
static void apply_torn(
	struct image *image, const struct disk_file *file, const struct change *change, struct rng *rng)
{
	const char *data = file->written.data + change->data;
	size_t begin = (size_t)change->offset, end = begin + change->len;
	bool prefix = rng_chance(rng, 2), stopped = false;

	if (end > image->len && rng_chance(rng, 2)) { /* the size is kept before the data is there */
		size_t old = image->len;
		image_resize(image, end);
		scribble(image, old, end, rng);
	}
	for (size_t at = begin; at < end && !stopped; at = sector_end(at)) {
		size_t stop = sector_end(at) < end ? sector_end(at) : end;

		if (!rng_chance(rng, 3)) {
			image_put(image, data + (at - begin), stop - at, at);
			continue;
		}
		if (rng_chance(rng, 3))
			scribble(image, at, stop, rng); /* the one that was being written */
		stopped = prefix;
	}
}

static void shuffle(uint32_t *order, uint32_t count, struct rng *rng)
{
	for (uint32_t i = count; i > 1; i--) {
		uint32_t other = rng_below(rng, i), kept = order[i - 1];

		order[i - 1] = order[other];
		order[other] = kept;
	}
}

/* How the changes of one file fare: each is kept with one chance, torn with another, else dropped. */
struct fate {
	uint32_t keep_percent, tear_percent;
	bool in_order;
	bool stops; /* at the first that is not kept */
};

static struct fate fate_draw(struct rng *rng)
{
	switch (rng_below(rng, 6)) {
	case 0:
		return (struct fate){.in_order = true}; /* nothing reached the disk */
	case 1:
		return (struct fate){.keep_percent = 100, .in_order = true};
	case 2:
		return (struct fate){.keep_percent = 90, .tear_percent = 10, .in_order = true, .stops = true};
	case 3:
		return (struct fate){.keep_percent = 97, .tear_percent = 3};
	case 4:
		return (struct fate){.keep_percent = 50, .tear_percent = 25, .in_order = true};
	}
	return (struct fate){.keep_percent = 40, .tear_percent = 30};
}

static void file_lose(struct disk_file *file, struct rng *rng)
{
	struct fate fate = fate_draw(rng);
	uint32_t *order = must(malloc((file->change_count + 1) * sizeof(*order)));

	for (uint32_t i = 0; i < file->change_count; i++)
		order[i] = i;
	if (!fate.in_order)
		shuffle(order, file->change_count, rng);
	for (uint32_t i = 0; i < file->change_count; i++) {
		const struct change *change = &file->changes[order[i]];
		uint32_t draw = rng_below(rng, 100);

		if (draw < fate.keep_percent)
			image_apply(&file->safe, file, change);
		else if (draw < fate.keep_percent + fate.tear_percent && !change->truncates)
			apply_torn(&file->safe, file, change, rng);
		else if (fate.stops)
			break;
	}
	free(order);
	file_forget_changes(file);
}

/* Which of the files that the name had stands behind it now. */
static void entry_lose(struct entry *entry, struct rng *rng)
{
	struct disk_file *found = rng_chance(rng, 2) ? entry->now : entry->safe;

	if (entry->now == entry->safe)
		return;
	if (entry->now && entry->safe && rng_chance(rng, 4)) /* removed, and not yet made again */
		found = NULL;
	if (entry->now != found)
		file_free(entry->now);
	if (entry->safe != found)
		file_free(entry->safe);
	entry->now = entry->safe = found;
}

static void disk_plug(struct disk *disk)
{
	disk->off = false;
	disk->has_refused = false;
	disk->sync_failed = false;
	disk->operations = 0;
	disk->cut_at = disk->full_at = disk->sync_fault_at = 0;
}

void disk_plug_after_cut(struct disk *disk, struct rng *rng)
{
	for (uint32_t i = 0; i < disk->entry_count; i++) {
		struct entry *entry = &disk->entries[i];

		entry_lose(entry, rng);
		if (!entry->now)
			continue;
		file_lose(entry->now, rng);
		image_copy(&entry->now->now, &entry->now->safe);
		entry->now->is_stale = false;
	}
	disk_plug(disk);
}

void disk_plug_kept(struct disk *disk)
{
	disk_plug(disk);
}

static void file_sync(struct disk_file *file)
{
	for (uint32_t i = 0; i < file->change_count; i++)
		image_apply(&file->safe, file, &file->changes[i]);
	file_forget_changes(file);
}

void disk_settle(struct disk *disk, const char *name)
{
	struct entry *entry = entry_find(disk, name);

	if (entry && entry->now)
		file_sync(entry->now);
}

void disk_drop_stale_cache(struct disk *disk)
{
	for (uint32_t i = 0; i < disk->entry_count; i++) {
		struct disk_file *file = disk->entries[i].now;

		if (!file || !file->is_stale)
			continue;
		file_sync(file);
		image_copy(&file->now, &file->safe);
		file->is_stale = false;
	}
}

/* ---- operations ------------------------------------------------------------------------------- */

int disk_open(struct disk *disk, const char *name, bool create, struct disk_file **ret_file)
{
	struct entry *entry = entry_find(disk, name);

	if (disk->off)
		return -EIO;
	if (!(entry && entry->now) && !create)
		return -ENOENT;
	entry = entry_make(disk, name);
	if (!entry->now)
		entry->now = file_new();
	*ret_file = entry->now;
	return 0;
}

int disk_remove(struct disk *disk, const char *name, bool sync_directory)
{
	struct entry *entry = entry_find(disk, name);

	if (disk->off)
		return -EIO;
	if (!(entry && entry->now))
		return -ENOENT;
	disk_step(disk);
	if (entry->now != entry->safe)
		file_free(entry->now);
	entry->now = NULL;
	if (disk->off)
		return -EIO;
	if (sync_directory)
		directory_sync(disk);
	return 0;
}

bool disk_has(const struct disk *disk, const char *name)
{
	const struct entry *entry = entry_find(disk, name);

	return entry && entry->now && entry->now->now.len > 0;
}

int64_t disk_read(struct disk *disk, const struct disk_file *file, void *into, size_t len, int64_t offset)
{
	size_t from = (size_t)offset, there = 0;

	if (disk->off)
		return -EIO;
	if (from < file->now.len)
		there = file->now.len - from < len ? file->now.len - from : len;
	if (there)
		memcpy(into, file->now.bytes + from, there);
	return (int64_t)there;
}

/* A full disk takes what lies inside the file, unless its blocks have to be found anew; of the rest it may
 * take a first part. */
static bool disk_takes(
	struct disk *disk, struct disk_file *file, const void *from, size_t len, int64_t offset)
{
	bool extends = (size_t)offset + len > file->now.len;

	if (disk->full_at == 0 || disk->operations < disk->full_at)
		return true;
	if (!extends && !disk->full_for_overwrites)
		return true;
	disk->has_refused = true;
	if (len > DISK_SECTOR_BYTES && rng_chance(&disk->grain, 2))
		file_note(file, false, from, DISK_SECTOR_BYTES, offset);
	return false;
}

int disk_write(struct disk *disk, struct disk_file *file, const void *from, size_t len, int64_t offset)
{
	if (disk->off)
		return -EIO;
	disk_step(disk);
	if (!disk_takes(disk, file, from, len, offset))
		return disk->off ? -EIO : -ENOSPC;
	file_note(file, false, from, len, offset);
	return disk->off ? -EIO : 0;
}

int disk_truncate(struct disk *disk, struct disk_file *file, int64_t size)
{
	if (disk->off)
		return -EIO;
	disk_step(disk);
	file_note(file, true, NULL, 0, size);
	return disk->off ? -EIO : 0;
}

/* After a failed sync the system believes that everything was written, and nobody will write it again. */
static int sync_fails(struct disk *disk, struct disk_file *file)
{
	file_lose(file, &disk->grain);
	file->is_stale = true;
	disk->sync_fault_at = 0;
	disk->sync_failed = true;
	return -EIO;
}

int disk_sync(struct disk *disk, struct disk_file *file, bool and_directory)
{
	if (disk->off)
		return -EIO;
	disk_step(disk);
	if (disk->off)
		return -EIO;
	if (disk->sync_fault_at && disk->operations >= disk->sync_fault_at)
		return sync_fails(disk, file);
	file_sync(file);
	if (and_directory)
		directory_sync(disk);
	return 0;
}

int64_t disk_size(const struct disk_file *file)
{
	return (int64_t)file->now.len;
}
