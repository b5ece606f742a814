#include "exec/wall/short_link.h"

#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <inttypes.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/random.h>
#include <sys/stat.h>
#include <unistd.h>

#include "base/take.h"

#define SHORT_LINK_PREFIX "stint-way-"

enum { LOOKED_AT_MAX = 4096 }; /* entries of the directory, for what others have left */

static const char *short_link_place(void)
{
	const char *own = getenv("XDG_RUNTIME_DIR");
	size_t room = SHORT_LINK_BYTES - sizeof "/" SHORT_LINK_PREFIX "0123456789";

	return own && own[0] == '/' && strlen(own) <= room && access(own, W_OK | X_OK) == 0 ? own : "/tmp";
}

static void closedir_at(DIR **dir)
{
	if (*dir)
		closedir(*dir);
}

/* Of somebody who was killed: it is ours, and leads nowhere. */
static bool is_left(int dir_fd, const char *name)
{
	struct stat link, target;

	return strncmp(name, SHORT_LINK_PREFIX, strlen(SHORT_LINK_PREFIX)) == 0 &&
		fstatat(dir_fd, name, &link, AT_SYMLINK_NOFOLLOW) == 0 && S_ISLNK(link.st_mode) &&
		link.st_uid == geteuid() && fstatat(dir_fd, name, &target, 0) < 0 && errno == ENOENT;
}

static void remove_left(const char *place)
{
	cleanup(closedir_at) DIR *dir = opendir(place);
	const struct dirent *entry;

	for (int i = 0; dir && i < LOOKED_AT_MAX && (entry = readdir(dir)); i++)
		if (is_left(dirfd(dir), entry->d_name))
			unlinkat(dirfd(dir), entry->d_name, 0);
}

int short_link_make(const char *path, char ret_link[SHORT_LINK_BYTES])
{
	const char *place = short_link_place();
	uint32_t random;

	remove_left(place);
	if (getrandom(&random, sizeof random, 0) != sizeof random)
		return -EIO;
	snprintf(ret_link, SHORT_LINK_BYTES, "%s/" SHORT_LINK_PREFIX "%08" PRIx32, place, random);
	if (symlink(path, ret_link) == 0)
		return 0;
	int fault = -errno;
	ret_link[0] = 0; /* it is somebody else's */
	return fault;
}

void short_link_remove(char short_link[SHORT_LINK_BYTES])
{
	if (short_link[0])
		unlink(short_link);
	short_link[0] = 0;
}
