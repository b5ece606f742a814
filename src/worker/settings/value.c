/* Kinds of values that only settings have: paths, what tasks are granted, variables. */
#include "worker/settings/parts.h"

#include <ctype.h>
#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "exec/request/ancestors.h"

enum { LINE_BYTES = 8192 };

bool settings_is_variable(const char *name)
{
	size_t len = strspn(name, "abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ0123456789_");

	return len > 0 && name[len] == 0 && !isdigit((unsigned char)name[0]) &&
		strncmp(name, "STINT_", 6) != 0;
}

bool settings_is_task_variable(const char *name)
{
	return settings_is_variable(name) && strncmp(name, "LD_", 3) != 0;
}

bool settings_is_path(const char *text)
{
	return text[0] == '/' || (text[0] == '~' && text[1] == '/') || strcmp(text, "~") == 0;
}

/* NULL: there was an error. */
static const char *expanded(struct form *form, const char *name, const char *path)
{
	const char *home = getenv("HOME");
	char full[4096];

	if (path[0] != '~')
		return path;
	if (!home || home[0] != '/' ||
		(size_t)snprintf(full, sizeof full, "%s%s", home, path + 1) >= sizeof full) {
		form_error(form, name, "begins with ~, and $HOME does not say where that is");
		return NULL;
	}
	return form_keep(form, span_of(full));
}

bool settings_take_path(struct form *form, const struct field *field, yyjson_val *value, void *at)
{
	const struct field text = {.name = field->name,
		.kind = FIELD_STRING,
		.accepts = settings_is_path,
		.allowed = PATH_ALLOWED};
	const char *path = NULL;

	if (form_take(form, &text, value, &path))
		path = expanded(form, field->name, path);
	if (path)
		*(const char **)at = path;
	return path != NULL;
}

/* Looked up now: a link that a task makes later is not followed. */
bool settings_take_real_path(struct form *form, const struct field *field, yyjson_val *value, void *at)
{
	const char **path = at;
	char real[ANCESTORS_NAME_BYTES];

	if (!settings_take_path(form, field, value, path))
		return false;
	if (ancestors_real_name(*path, real))
		*path = form_keep(form, span_of(real));
	return *path != NULL;
}

const char *const *settings_read_paths(struct form *form, const char *name, yyjson_val *value, int64_t most)
{
	const struct field field = {.name = name,
		.kind = FIELD_STRINGS,
		.max = most,
		.accepts = settings_is_path,
		.allowed = "a list of absolute paths, or of paths that begin with ~/"};
	const char **list = NULL;

	form_take(form, &field, value, &list);
	for (size_t i = 0; list && list[i]; i++) {
		list[i] = expanded(form, name, list[i]);
		if (!list[i])
			return NULL;
	}
	return list;
}

static void complain_of_home(
	struct form *form, const char *name, const char *path, const char *home, enum lies lies)
{
	form_error(form, name,
		"has \"%.300s\", which %s the state directory %.300s: no task may see that; %s", path,
		lies == LIES_ABOVE ? "holds" : "lies in", home,
		lies == LIES_ABOVE
			? "name the directories in it that are needed, or keep the state elsewhere (--home, STINT_HOME)"
			: "put what tasks share elsewhere");
}

static bool is_apart(struct form *form, const char *name, const char *path)
{
	const char *home = config_of(form)->home.text;
	char here[4096], full[8192];

	if (!home[0])
		return true; /* that was complained about */
	if (home[0] != '/' && getcwd(here, sizeof here)) {
		snprintf(full, sizeof full, "%s/%.4000s", here, home);
		home = full;
	}
	enum lies lies = ancestors_compare(path, home);
	if (lies != LIES_APART)
		complain_of_home(form, name, path, home, lies);
	return lies == LIES_APART;
}

static void check_exists(struct form *form, const char *name, const char *path)
{
	if (access(path, F_OK) < 0 && (errno == ENOENT || errno == ENOTDIR || errno == EACCES))
		form_error(form, name, "names %.300s, which %s", path,
			errno == EACCES ? "the worker may not enter" : "does not exist");
}

static bool is_readable(const char *text)
{
	return strcmp(text, "home") == 0 || settings_is_path(text);
}

/* Takes "home" out of the list. */
static const char *const *read_read(
	struct form *form, const struct field *field, yyjson_val *value, bool *ret_home)
{
	const struct field words = {.name = field->name,
		.kind = FIELD_STRINGS,
		.max = PATHS_MAX,
		.accepts = is_readable,
		.allowed = "a list of absolute paths, of paths that begin with ~/, and of the word \"home\""};
	const char **list = NULL;
	size_t kept = 0;

	form_take(form, &words, value, &list);
	for (size_t i = 0; list && list[i]; i++) {
		if (strcmp(list[i], "home") == 0) {
			*ret_home = true;
			continue;
		}
		list[kept] = expanded(form, field->name, list[i]);
		if (!list[kept++])
			return NULL;
	}
	if (list)
		list[kept] = NULL;
	return list;
}

static bool take_paths(struct form *form, const struct field *field, yyjson_val *value,
	const char *const *names, const struct settings_path **at)
{
	size_t bytes = (yyjson_arr_size(value) + 1) * sizeof(struct settings_path), i = 0;
	struct settings_path *list = names ? arena_alloc(form->arena, bytes) : NULL;
	char real[ANCESTORS_NAME_BYTES];

	if (names && !list)
		form_short(form, arena_fault(form->arena, bytes));
	for (; list && names[i]; i++) {
		if (is_apart(form, field->name, names[i]))
			check_exists(form, field->name, names[i]);
		list[i].name = names[i];
		list[i].real =
			ancestors_real_name(names[i], real) ? form_keep(form, span_of(real)) : names[i];
		if (!list[i].real)
			return false;
	}
	if (list)
		*at = list;
	return list != NULL;
}

bool settings_take_granted(struct form *form, const struct field *field, yyjson_val *value, void *at)
{
	return take_paths(form, field, value, settings_read_paths(form, field->name, value, PATHS_MAX), at);
}

bool settings_take_read(struct form *form, const struct field *field, yyjson_val *value, void *at)
{
	struct executor *executor = at;

	return take_paths(
		form, field, value, read_read(form, field, value, &executor->reads_home), &executor->read);
}

/* NULL: it was an error. */
static const char *variable(struct form *form, yyjson_val *key, yyjson_val *text)
{
	char line[LINE_BYTES];
	const char *name = yyjson_get_str(key), *said = yyjson_get_str(text);
	bool whole = strlen(name) == yyjson_get_len(key) && said && strlen(said) == yyjson_get_len(text);

	if (whole && settings_is_variable(name) &&
		(size_t)snprintf(line, sizeof line, "%s=%s", name, said) < sizeof line)
		return form_keep(form, span_of(line));
	form_wrong_as(form, name, "a string, under a name that does not begin with STINT_", text);
	return NULL;
}

bool settings_take_env(struct form *form, const struct field *field, yyjson_val *value, void *at)
{
	size_t i, count, bytes = (yyjson_obj_size(value) + 1) * sizeof(char *);
	yyjson_val *outer = form->place, *key, *text;
	struct form_path path;

	if (!yyjson_is_obj(value) || yyjson_obj_size(value) > ENV_MAX)
		return form_wrong(form, field, value);
	const char **list = arena_alloc(form->arena, bytes);
	if (!list)
		return form_short(form, arena_fault(form->arena, bytes));
	form_enter(form, &path, span_of(field->name), -1);
	bool good = true;
	yyjson_obj_foreach(value, i, count, key, text)
	{
		form->place = key;
		list[i] = good ? variable(form, key, text) : NULL;
		good = list[i] != NULL;
	}
	form_leave(form);
	form->place = outer;
	if (good)
		*(const char *const **)at = list;
	return good;
}
