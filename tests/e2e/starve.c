/*
 * Memory that runs short while a test wants it to, put before the real allocator with LD_PRELOAD: as long as the file exists that
 * STINT_STARVE names, nobody gets STINT_STARVE_BYTES or more in one piece.
 */
#include <errno.h>
#include <stddef.h>
#include <stdlib.h>
#include <unistd.h>

void *__libc_malloc(size_t bytes);
void *__libc_calloc(size_t count, size_t bytes);
void *__libc_realloc(void *old, size_t bytes);

static const char *path;
static size_t least = (size_t)-1;

__attribute__((constructor)) static void look(void)
{
	const char *bytes = getenv("STINT_STARVE_BYTES");

	path = getenv("STINT_STARVE");
	if (path && bytes)
		least = strtoul(bytes, NULL, 10);
}

static int is_short_of(size_t bytes)
{
	if (bytes < least || !path || access(path, F_OK) != 0)
		return 0;
	errno = ENOMEM;
	return 1;
}

void *malloc(size_t bytes)
{
	return is_short_of(bytes) ? NULL : __libc_malloc(bytes);
}

void *calloc(size_t count, size_t bytes)
{
	return count > 0 && is_short_of(count * bytes) ? NULL : __libc_calloc(count, bytes);
}

void *realloc(void *old, size_t bytes)
{
	return is_short_of(bytes) ? NULL : __libc_realloc(old, bytes);
}
