#include "server/disk.h"

#include <errno.h>
#include <string.h>
#include <sys/statvfs.h>

#include "base/log.h"
#include "server/server.h"

#define MIB UINT64_C(1048576)

enum {
	LOW_SHARE = 20, /* one part in so many: 5 % */
	LOW_LEAST_MIB = 16,
	LOW_MOST_MIB = 1024,
	OPEN_MORE_MIB = 32, /* above the mark, before things are begun again */
	SMALL_MIB = 64,     /* a file system smaller than this has no mark: it might never be open */
};

static uint64_t low_of(const struct options *options, uint64_t all_bytes)
{
	uint64_t low = all_bytes / LOW_SHARE;

	if (options->disk_low_bytes > 0)
		return options->disk_low_bytes;
	if (all_bytes < SMALL_MIB * MIB)
		return 0;
	return low < LOW_LEAST_MIB * MIB   ? LOW_LEAST_MIB * MIB
		: low > LOW_MOST_MIB * MIB ? LOW_MOST_MIB * MIB
					   : low;
}

/* False: the disk does not say; then nothing is refused on its account. */
static bool measure(const struct server *server, uint64_t *ret_all, uint64_t *ret_free)
{
	struct statvfs found;

	if (statvfs(server->options->store, &found) < 0)
		return false;
	*ret_all = (uint64_t)found.f_blocks * found.f_frsize;
	*ret_free = (uint64_t)found.f_bavail * found.f_frsize;
	return *ret_all > 0;
}

void disk_look(struct server *server)
{
	struct store_room before = *store_room(server->store), room = {0};
	uint64_t all_bytes;

	if (measure(server, &all_bytes, &room.free_bytes)) {
		room.low_bytes = low_of(server->options, all_bytes);
		room.open_bytes = room.low_bytes > 0 ? room.low_bytes + OPEN_MORE_MIB * MIB : 0;
		room.low = room.free_bytes < (before.low ? room.open_bytes : room.low_bytes);
	}
	store_set_room(server->store, &room);
	if (room.low && !before.low)
		log_warn(
			"the disk is nearly full: nothing new is begun until there is room; reports and operators go on",
			log_cstr("store", server->options->store),
			log_int("freeBytes", (int64_t)room.free_bytes),
			log_int("lowBytes", (int64_t)room.low_bytes),
			log_int("openBytes", (int64_t)room.open_bytes));
	else if (!room.low && before.low)
		log_info("there is room on the disk again", log_cstr("store", server->options->store),
			log_int("freeBytes", (int64_t)room.free_bytes));
}

void disk_begin(struct server *server)
{
	uint64_t all_bytes, free_bytes;

	if (measure(server, &all_bytes, &free_bytes) && low_of(server->options, all_bytes) == 0)
		log_warn(
			"the file system of the store is smaller than 64 MiB: it may be full before anything is refused; use a larger one",
			log_cstr("store", server->options->store), log_int("bytes", (int64_t)all_bytes));
	disk_look(server);
}
