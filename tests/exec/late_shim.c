/* A shim that comes to life late: it stops before it is the real one, and whoever wakes it decides when that is. */
#include <signal.h>
#include <string.h>
#include <unistd.h>

int main(int argc, char **argv)
{
	char beside[4096] = "";
	ssize_t len = readlink("/proc/self/exe", beside, sizeof beside - sizeof "stint-shim");
	char *slash = len > 0 ? strrchr(beside, '/') : NULL;

	(void)argc;
	raise(SIGSTOP);
	if (slash) { /* copied together, for an ordinary user */
		memcpy(slash + 1, "stint-shim", sizeof "stint-shim");
		execv(beside, argv);
	}
	execv(STINT_SHIM_PATH, argv);
	return 126;
}
