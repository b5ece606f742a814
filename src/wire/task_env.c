#include "wire/task_env.h"

#include <errno.h>
#include <stdbool.h>
#include <stdio.h>
#include <string.h>

enum { NAME_SHOWN_MAX = 80 };

static bool is_name(struct span name)
{
	for (size_t i = 0; i < name.len; i++) {
		char c = name.data[i];
		bool letter = (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z') || c == '_';
		if (!letter && (i == 0 || c < '0' || c > '9'))
			return false;
	}
	return name.len > 0;
}

static bool begins(struct span name, const char *with)
{
	return name.len >= strlen(with) && memcmp(name.data, with, strlen(with)) == 0;
}

/* What is wrong with one of them; NULL: nothing. */
static const char *wrong_with(struct span name, yyjson_val *value)
{
	if (!is_name(name))
		return "is not the name of a variable: letters, digits and _, and no digit first";
	if (begins(name, "STINT_"))
		return "belongs to stint: a task cannot set variables that begin with STINT_";
	if (begins(name, "LD_"))
		return "steers the loader of programs: a task cannot set variables that begin with LD_";
	if (!yyjson_is_str(value) || memchr(yyjson_get_str(value), 0, yyjson_get_len(value)))
		return "must be a text without zero bytes";
	return NULL;
}

int task_env_check(yyjson_val *env, char ret_wrong[TASK_ENV_WRONG_BYTES])
{
	size_t i, count, bytes = 0;
	yyjson_val *key, *value;

	if (!yyjson_is_obj(env)) {
		snprintf(ret_wrong, TASK_ENV_WRONG_BYTES,
			"must be an object of variables and texts, as {\"CI\":\"1\"}");
		return -EINVAL;
	}
	yyjson_obj_foreach(env, i, count, key, value)
	{
		struct span name = {yyjson_get_str(key), yyjson_get_len(key)};
		const char *wrong = wrong_with(name, value);
		if (wrong) {
			snprintf(ret_wrong, TASK_ENV_WRONG_BYTES, "has \"%.*s\", which %s",
				(int)(name.len < NAME_SHOWN_MAX ? name.len : NAME_SHOWN_MAX), name.data,
				wrong);
			return -EINVAL;
		}
		bytes += name.len + yyjson_get_len(value);
	}
	if (yyjson_obj_size(env) <= TASK_ENV_NAMES_MAX && bytes <= TASK_ENV_BYTES_MAX)
		return 0;
	snprintf(ret_wrong, TASK_ENV_WRONG_BYTES,
		"has %zu variables of %zu bytes; %d variables and %d bytes are the most",
		yyjson_obj_size(env), bytes, TASK_ENV_NAMES_MAX, TASK_ENV_BYTES_MAX);
	return -EINVAL;
}
