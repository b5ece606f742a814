/*
 * Memory that runs short while a test wants it to, put before the real allocator with LD_PRELOAD: as long as the file exists that
 * STINT_STARVE names, nobody gets STINT_STARVE_BYTES or more in one piece.
 *
 * Or it runs out once: the allocation whose number STINT_STARVE_AT says, the first being 1, fails, and all others are made. When
 * the program ends in an orderly way, the number of its allocations is written into the file that STINT_STARVE_COUNT names. The
 * programs that this one starts have all the memory they want.
 */
#include <errno.h>
#include <fcntl.h>
#include <stddef.h>
#include <stdio.h>
#include <stdlib.h>
#include <unistd.h>

void *__libc_malloc(size_t bytes);
void *__libc_calloc(size_t count, size_t bytes);
void *__libc_realloc(void *old, size_t bytes);

static const char *path;
static size_t least = (size_t)-1;
static long fails_at, made;

__attribute__((constructor)) static void look(void)
{
	const char *bytes = getenv("STINT_STARVE_BYTES");

	path = getenv("STINT_STARVE");
	if (path && bytes)
		least = strtoul(bytes, NULL, 10);
	if (getenv("STINT_STARVE_AT")) {
		fails_at = atol(getenv("STINT_STARVE_AT"));
		made = 0;
		unsetenv("LD_PRELOAD");
	}
}

__attribute__((destructor)) static void tell(void)
{
	const char *count = getenv("STINT_STARVE_COUNT");
	int fd = count ? open(count, O_WRONLY | O_CREAT | O_TRUNC | O_CLOEXEC, 0600) : -1;

	if (fd < 0)
		return;
	if (dprintf(fd, "%ld\n", made) < 0)
		abort();
	close(fd);
}

static int is_short_of(size_t bytes)
{
	if (++made != fails_at && (bytes < least || !path || access(path, F_OK) != 0))
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
