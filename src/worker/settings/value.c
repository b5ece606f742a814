/* Values of the configuration, and what is said of those that are wrong. */
#include "worker/settings/parts.h"

#include <ctype.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "base/suggest.h"
#include "exec/request/above.h"

enum { KEY_BYTES_MAX = 64 };

struct at at_member(const struct at *outer, yyjson_val *key)
{
	struct at inner = {.settings = outer->settings, .file = outer->file, .key = key};

	snprintf(inner.name, sizeof inner.name, "%.150s.%.140s", outer->name, yyjson_get_str(key));
	return inner;
}

void at_complain(const struct at *at, yyjson_val *value, const char *must_be)
{
	struct config_origin where = config_file_origin(at->file, at->key);
	char given[256];

	config_describe(value, given, sizeof given);
	config_note_problem(at->settings->config, where, "%s must be %s; it is %s", at->name, must_be, given);
}

/* The nearest word of the list, if one is near. The very word may stand there too: to say where else it belongs. */
static struct suggestion nearest(const char *typed, const char *known, char room[KEY_BYTES_MAX])
{
	struct suggestion best = {0};
	char word[KEY_BYTES_MAX];

	for (const char *at = known; *at; at += strspn(at, ", ")) {
		size_t len = strcspn(at, ", ");
		snprintf(word, sizeof word, "%.*s", (int)len, at);
		if (len > 3 && strcmp(word, "pool") != 0) /* the rest stands between keys */
			suggest_consider(&best, typed, word);
		if (best.word == word)
			best.word = memcpy(room, word, sizeof word);
		at += len;
	}
	return best.word && best.distance > 0 ? best : (struct suggestion){0};
}

void at_complain_unknown(const struct at *at, const char *known)
{
	char room[KEY_BYTES_MAX];
	struct suggestion like = nearest(yyjson_get_str(at->key), known, room);

	config_note_problem(at->settings->config, config_file_origin(at->file, at->key),
		like.word ? "there is no key %s; did you mean %s?"
			  : "there is no key %s; here there may be %s",
		at->name, like.word ? like.word : known);
}

const char *at_text(yyjson_val *value)
{
	const char *text = yyjson_get_str(value);

	return text && text[0] && strlen(text) == yyjson_get_len(value) ? text : NULL;
}

const char *at_keep(const struct at *at, const char *text)
{
	return config_keep(at->settings->config, text);
}

int64_t at_number(const struct at *at, yyjson_val *value, int64_t least, int64_t most)
{
	char must_be[100];

	if (yyjson_is_int(value) && yyjson_get_sint(value) >= least && yyjson_get_sint(value) <= most &&
		!(yyjson_is_uint(value) && yyjson_get_uint(value) > INT64_MAX))
		return yyjson_get_sint(value);
	snprintf(must_be, sizeof must_be, "a whole number from %lld to %lld", (long long)least,
		(long long)most);
	at_complain(at, value, must_be);
	return least;
}

static const char **new_list(const struct at *at, size_t count)
{
	return arena_alloc(&at->settings->config->arena, (count + 1) * sizeof(char *));
}

const char *const *at_texts(const struct at *at, yyjson_val *value, size_t least, size_t most,
	bool (*accepts)(const char *text), const char *must_be)
{
	size_t index, count = yyjson_arr_size(value);
	const char **list = yyjson_is_arr(value) ? new_list(at, count) : NULL;
	yyjson_val *item;

	if (!list || count < least || count > most) {
		at_complain(at, value, must_be);
		return NULL;
	}
	yyjson_arr_foreach(value, index, count, item)
	{
		const char *text = yyjson_is_str(item) && yyjson_get_len(item) == 0 ? "" : at_text(item);
		if (!text || !accepts(text)) {
			at_complain(at, text ? item : value, must_be);
			return NULL;
		}
		list[index] = at_keep(at, text);
	}
	return list;
}

bool settings_is_any(const char *text)
{
	(void)text;
	return true;
}

bool settings_is_variable(const char *name)
{
	size_t len = strspn(name, "abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ0123456789_");

	return len > 0 && name[len] == 0 && !isdigit((unsigned char)name[0]) &&
		strncmp(name, "STINT_", 6) != 0;
}

bool settings_is_path(const char *text)
{
	return text[0] == '/' || (text[0] == '~' && text[1] == '/') || strcmp(text, "~") == 0;
}

const char *at_expanded(const struct at *at, const char *path)
{
	const char *home = getenv("HOME");
	char full[4096];

	if (path[0] != '~')
		return path;
	if (!home || home[0] != '/' ||
		(size_t)snprintf(full, sizeof full, "%s%s", home, path + 1) >= sizeof full) {
		config_note_problem(at->settings->config, config_file_origin(at->file, at->key),
			"%s begins with ~, and $HOME does not say where that is", at->name);
		return "/nonexistent";
	}
	return at_keep(at, full);
}

const char *const *at_paths(const struct at *at, yyjson_val *value, size_t most)
{
	const char **list = (const char **)at_texts(
		at, value, 0, most, settings_is_path, "a list of absolute paths, or such that begin with ~/");

	for (size_t i = 0; list && list[i]; i++)
		list[i] = at_expanded(at, list[i]);
	return list;
}

static void complain_of_home(const struct at *at, const char *path, const char *home, enum lies lies)
{
	config_note_problem(at->settings->config, config_file_origin(at->file, at->key),
		"%s: \"%.300s\" %s the state directory %.300s, which no task may see; %s", at->name, path,
		lies == LIES_ABOVE ? "holds" : "lies in", home,
		lies == LIES_ABOVE
			? "name the directories in it that are needed, or keep the state elsewhere (--home, STINT_HOME)"
			: "put what tasks shall share elsewhere");
}

static void check_home(const struct at *at, const char *path)
{
	const char *home = at->settings->config->home.text;
	char here[4096], full[8192];

	if (!home[0])
		return; /* that was complained about */
	if (home[0] != '/' && getcwd(here, sizeof here)) {
		snprintf(full, sizeof full, "%s/%.4000s", here, home);
		home = full;
	}
	enum lies lies = above_compare(path, home);
	if (lies != LIES_APART)
		complain_of_home(at, path, home, lies);
}

const struct settings_path *at_granted(const struct at *at, yyjson_val *value)
{
	const char *const *names = at_paths(at, value, PATHS_MAX);
	struct settings_path *list = names
		? arena_alloc(&at->settings->config->arena, (yyjson_arr_size(value) + 1) * sizeof *list)
		: NULL;
	char real[ABOVE_NAME_BYTES];
	size_t count = 0;

	for (; list && names[count]; count++) {
		check_home(at, names[count]);
		list[count].name = names[count];
		list[count].real = above_real_name(names[count], real) ? at_keep(at, real) : names[count];
	}
	if (list)
		list[count] = (struct settings_path){0};
	return list;
}

void at_members(const struct at *at, yyjson_val *value,
	void (*take)(const struct at *at, yyjson_val *value, void *into), void *into)
{
	size_t index, count;
	yyjson_val *key, *member;

	yyjson_obj_foreach(value, index, count, key, member)
	{
		struct at inner = at_member(at, key);
		take(&inner, member, into);
	}
}

const char *const *at_env(const struct at *at, yyjson_val *value)
{
	const char *must_be = "an object of variables and texts; names that begin with STINT_ are ours";
	const char **list = yyjson_is_obj(value) ? new_list(at, yyjson_obj_size(value)) : NULL;
	size_t index, count;
	yyjson_val *key, *text;
	char line[8192];

	if (!list || yyjson_obj_size(value) > ENV_MAX) {
		at_complain(at, value, must_be);
		return NULL;
	}
	yyjson_obj_foreach(value, index, count, key, text)
	{
		struct at inner = at_member(at, key);
		const char *said = yyjson_is_str(text) && yyjson_get_len(text) == 0 ? "" : at_text(text);
		if (!settings_is_variable(yyjson_get_str(key)) || !said ||
			(size_t)snprintf(line, sizeof line, "%s=%s", yyjson_get_str(key), said) >=
				sizeof line) {
			at_complain(&inner, text, "a text; names that begin with STINT_ are ours");
			return NULL;
		}
		list[index] = at_keep(at, line);
	}
	return list;
}
