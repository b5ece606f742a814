#include "exec/request/search.h"

#include <errno.h>
#include <stdbool.h>
#include <stdio.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

const char *search_path_of(const char *const *env)
{
	for (; *env; env++)
		if (strncmp(*env, "PATH=", 5) == 0)
			return *env + 5;
	return "/usr/local/bin:/usr/bin:/bin";
}

static bool is_program(const char *file)
{
	struct stat stat_;

	return access(file, X_OK) == 0 && stat(file, &stat_) == 0 && S_ISREG(stat_.st_mode);
}

int search_program(const char *path, const char *name, char ret_program[SEARCH_PATH_BYTES])
{
	char file[SEARCH_PATH_BYTES];
	const char *end;

	for (const char *dir = path; dir; dir = *end ? end + 1 : NULL) {
		end = strchrnul(dir, ':');
		int len = snprintf(file, sizeof file, "%.*s/%s", (int)(end - dir), dir, name);
		if (dir[0] != '/' || len >= (int)sizeof file)
			continue; /* it would be beneath the work dir, which is the task's */
		if (is_program(file)) {
			memcpy(ret_program, file, (size_t)len + 1);
			return 0;
		}
	}
	return -ENOENT;
}
