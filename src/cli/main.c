/*
 * stint: the command line and nothing else. Find the verb, read its flags, run it (run.c).
 */
#include <fcntl.h>
#include <stdbool.h>

#include "cli/frame/exit.h"
#include "cli/frame/run.h"

/* Whoever starts us without one of the three would have the next file in its place, and that is the connection. A file
 * that cannot be written says so to whoever writes. */
static bool have_standard_files(void)
{
	bool have = true;

	for (int fd = 0; have && fd <= 2; fd++)
		have = fcntl(fd, F_GETFD) >= 0 || open("/dev/null", O_RDONLY) == fd;
	return have;
}

int main(int argc, char **argv)
{
	return have_standard_files() ? cli_run(argc, argv) : EXIT_FAILED;
}
