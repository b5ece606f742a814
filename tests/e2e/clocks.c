/*
 * Clocks that a test can set, put before the real ones with LD_PRELOAD. The file that STINT_CLOCKS names holds three
 * numbers of 64 bits: what to add to the wall clock, to the clock that counts from boot and to CLOCK_MONOTONIC, in
 * milliseconds. They may change at any time. A jump of the second alone is what a suspend looks like; one of all three
 * is what a process sees that was stopped.
 */
#include <fcntl.h>
#include <stdint.h>
#include <stdlib.h>
#include <sys/mman.h>
#include <sys/syscall.h>
#include <time.h>
#include <unistd.h>

static const volatile int64_t *shifts;

__attribute__((constructor)) static void look(void)
{
	const char *path = getenv("STINT_CLOCKS");
	int fd = path ? open(path, O_RDONLY | O_CLOEXEC) : -1;

	if (fd < 0)
		abort();
	void *at = mmap(NULL, 3 * sizeof *shifts, PROT_READ, MAP_SHARED, fd, 0);
	if (at == MAP_FAILED)
		abort();
	shifts = at;
	close(fd);
}

int clock_gettime(clockid_t clock, struct timespec *ret_at)
{
	if (syscall(SYS_clock_gettime, clock, ret_at) < 0)
		return -1;
	int64_t shift_ms = 0;
	if (shifts && clock == CLOCK_REALTIME)
		shift_ms = shifts[0];
	if (shifts && clock == CLOCK_BOOTTIME)
		shift_ms = shifts[1];
	if (shifts && (clock == CLOCK_MONOTONIC || clock == CLOCK_MONOTONIC_COARSE))
		shift_ms = shifts[2];
	int64_t ns = (int64_t)ret_at->tv_nsec + shift_ms % 1000 * 1000000;
	ret_at->tv_sec += shift_ms / 1000;
	if (ns < 0) {
		ret_at->tv_sec--;
		ns += 1000000000;
	} else if (ns >= 1000000000) {
		ret_at->tv_sec++;
		ns -= 1000000000;
	}
	ret_at->tv_nsec = (long)ns;
	return 0;
}
