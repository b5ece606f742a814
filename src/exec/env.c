#include "exec/env.h"

#include <errno.h>
#include <stdbool.h>
#include <string.h>
#include <unistd.h>

/* Length of the name in NAME=value; 0 if it has none. */
static size_t name_length(const char *entry)
{
	const char *equals = strchr(entry, '=');

	return equals ? (size_t)(equals - entry) : 0;
}

static const char *find(const char *const *list, size_t count, const char *name, size_t len)
{
	for (size_t i = 0; i < count; i++)
		if (strncmp(list[i], name, len) == 0 && list[i][len] == '=')
			return list[i];
	return NULL;
}

static size_t own_count(void)
{
	size_t count = 0;

	while (environ && environ[count])
		count++;
	return count;
}

/* The marker comes first, so that a search for it need not read the rest. */
int env_build(const struct process_spec *spec, const char *marker, const char **ret_env, size_t room)
{
	static const char *const none[] = {NULL};
	const char *const *given = spec->env ? spec->env : none,
			  *const *allowed = spec->env_allow ? spec->env_allow : none;
	size_t count = 0, own = own_count();

	ret_env[count++] = marker;
	for (; *given; given++) {
		size_t len = name_length(*given);
		if (len == 0 || find(ret_env, count, *given, len))
			return -EINVAL;
		if (count + 1 >= room)
			return -E2BIG;
		ret_env[count++] = *given;
	}
	for (; *allowed; allowed++) {
		size_t len = strlen(*allowed);
		const char *entry = find((const char *const *)environ, own, *allowed, len);
		if (len == 0 || strchr(*allowed, '='))
			return -EINVAL;
		if (!entry || find(ret_env, count, *allowed, len))
			continue;
		if (count + 1 >= room)
			return -E2BIG;
		ret_env[count++] = entry;
	}
	ret_env[count] = NULL;
	return 0;
}
