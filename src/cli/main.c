/*
 * stint: the command line and nothing else. Find the verb, read its flags, run it (run.c).
 */
#include <fcntl.h>
#include <stdbool.h>

#include "cli/frame/exit.h"
#include "cli/frame/run.h"

/* Without one of the three standard descriptors the next file that is opened, the connection, would take its place. So
 * /dev/null takes it, open for reading only: a write to it fails. */
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
