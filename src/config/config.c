/*
 * Reading in order of rank, the lowest first: later ones override.
 */
#include "config/config.h"

#include <assert.h>
#include <errno.h>
#include <fcntl.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/take.h"
#include "config/reading.h"
#include "wire/form/form.h"

enum {
	ARENA_BYTES_MAX = 4 << 20,
	PATH_BYTES = 4096,
	PROBLEM_BYTES = 1024,
};

static const struct config_origin by_default = {.source = CONFIG_DEFAULT, .name = "default"};
static const char no_memory[] = "there is no memory for the configuration";

/* ---- small things ------------------------------------------------------------------------------------- */

const char *config_keep(struct config *config, const char *text)
{
	struct span kept;

	if (arena_copy(&config->arena, span_of(text), &kept) == 0)
		return kept.data;
	/* a program must not go on with a text that is not in the configuration: as any other problem, this keeps it from starting */
	if (config->problem_count < CONFIG_PROBLEMS_MAX)
		config->problems[config->problem_count] = (struct config_problem){by_default, no_memory};
	config->problem_count++;
	return no_memory;
}

/* Keys and values come from files: an error message must not carry their control characters to a terminal. */
static void replace_controls(char *text)
{
	for (; *text; text++)
		if ((unsigned char)*text < ' ' || *text == 0x7f)
			*text = '?';
}

void config_note_problem(struct config *config, struct config_origin where, const char *format, ...)
{
	char what[PROBLEM_BYTES];
	va_list args;

	va_start(args, format);
	vsnprintf(what, sizeof what, format, args);
	va_end(args);
	replace_controls(what);
	const char *kept = config_keep(config, what);
	if (config->problem_count < CONFIG_PROBLEMS_MAX)
		config->problems[config->problem_count] = (struct config_problem){where, kept};
	config->problem_count++;
}

void config_note_unknown(struct config *config, struct config_origin where, const char *name)
{
	/* A file that has unknown keys alone must not cost a search for each. */
	const char *like = config->problem_count < CONFIG_PROBLEMS_MAX ? config_key_like(name) : NULL;

	config_note_problem(config, where, "%.200s is not a known key; %s%s%s", name,
		like ? "did you mean " : "stintd --help lists the keys", like ? like : "", like ? "?" : "");
}

/* The configuration that a value is read for, and where the value comes from. */
struct value_source {
	struct config *config;
	struct config_origin origin;
};

static void note_value(struct form *form, const char *name, const char *message)
{
	const struct value_source *source = form->context;

	config_note_problem(source->config, source->origin, "%s %s", name, message);
}

void config_set(struct config *config, enum config_key key, const char *word, yyjson_val *value,
	struct config_origin origin)
{
	struct value_source source = {config, origin};
	char digits[32];
	struct form form;
	int64_t number = 0;

	form_start(&form, NULL);
	form.note = note_value;
	form.context = &source;
	if (!config_key_take(key, &form, word, value, &number))
		return;
	snprintf(digits, sizeof digits, "%lld", (long long)number);
	const char *text = word         ? word
		: yyjson_is_str(value)  ? yyjson_get_str(value)
		: yyjson_is_bool(value) ? (number ? "true" : "false")
					: digits;
	config->values[key] = (struct config_value){number, config_keep(config, text), origin};
}

int64_t config_number(const struct config *config, enum config_key key)
{
	assert(config_keys[key].type == CONFIG_NUMBER || config_keys[key].type == CONFIG_CHOICE);
	return config->values[key].number;
}

bool config_bool(const struct config *config, enum config_key key)
{
	assert(config_keys[key].type == CONFIG_BOOL);
	return config->values[key].number != 0;
}

const char *config_text(const struct config *config, enum config_key key)
{
	assert(config_keys[key].type == CONFIG_TEXT);
	return config->values[key].text;
}

void config_fall_back(struct config *config, enum config_key key, const char *text)
{
	if (config->values[key].origin.source == CONFIG_DEFAULT)
		config->values[key].text = config_keep(config, text);
}

/* ---- sources, in order of rank -------------------------------------------------------------------------- */

static void read_defaults(struct config *config)
{
	for (int i = 0; i < CONFIG_KEY_COUNT; i++) {
		enum config_key key = (enum config_key)i;
		struct config_value *value = &config->values[key];
		*value = (struct config_value){.text = config_keys[key].fallback, .origin = by_default};
		bool good = config_key_parse(key, value->text, &value->number);
		assert(good || value->text[0] == 0);
	}
}

const char *config_variable(const char *name)
{
	const char *value = getenv(name);

	return value && value[0] ? value : NULL;
}

int config_read_line(const char *path, char *ret_line, size_t room)
{
	cleanup(close_at) int fd = open(path, O_RDONLY | O_CLOEXEC);
	if (fd < 0)
		return -errno;
	ssize_t got = read(fd, ret_line, room - 1);
	if (got < 0)
		return -errno;
	ret_line[got] = 0;
	ret_line[strcspn(ret_line, "\r\n")] = 0;
	return ret_line[0] ? 0 : -ENODATA;
}

/* A directory of the XDG conventions: relative ones are to be ignored. */
static const char *xdg(const char *name)
{
	const char *value = config_variable(name);

	return value && value[0] == '/' ? value : NULL;
}

/* $NAME/LEAF or, without it, $HOME/BESIDE/LEAF; false: neither is known. */
static bool xdg_path(char *path, size_t room, const char *name, const char *beside, const char *leaf)
{
	const char *base = xdg(name), *home = config_variable("HOME");

	if (!base && !home)
		return false;
	int len = base ? snprintf(path, room, "%s/%s", base, leaf)
		       : snprintf(path, room, "%s/%s/%s", home, beside, leaf);
	return (size_t)len < room;
}

bool config_usual_home(char *ret_path, size_t room)
{
	return xdg_path(ret_path, room, "XDG_STATE_HOME", ".local/state", "stint");
}

bool config_user_file(char *ret_path, size_t room)
{
	return xdg_path(ret_path, room, "XDG_CONFIG_HOME", ".config", "stint/config.json");
}

static void find_home(struct config *config, const struct config_request *request)
{
	char path[PATH_BYTES];
	const char *given = request->home ? request->home : config_variable("STINT_HOME");
	struct config_origin origin = by_default;

	if (request->home)
		origin = (struct config_origin){.source = CONFIG_FLAG, .name = "--home"};
	else if (given)
		origin = (struct config_origin){.source = CONFIG_VARIABLE, .name = "STINT_HOME"};
	config->home = (struct config_value){.text = "", .origin = origin};
	if (given && given[0] && strlen(given) <= CONFIG_TEXT_MAX)
		config->home.text = config_keep(config, given);
	else if (given)
		config_note_problem(config, origin, "the state directory must be a path of 1 to %d bytes",
			CONFIG_TEXT_MAX);
	else if (config_usual_home(path, sizeof path) && strlen(path) <= CONFIG_TEXT_MAX)
		config->home.text = config_keep(config, path);
	else
		config_note_problem(config, origin,
			"there is no state directory, because HOME is not set: use --home DIR or STINT_HOME");
}

static void read_files(struct config *config, const struct config_request *request)
{
	char path[PATH_BYTES];

	if (request->file) {
		config_read_file(config, request->file, true);
		return;
	}
	config_read_file(
		config, request->system_file ? request->system_file : "/etc/stint/config.json", false);
	if (config_user_file(path, sizeof path))
		config_read_file(config, path, false);
	if (config->home.text[0]) {
		snprintf(path, sizeof path, "%s/config.json", config->home.text);
		config_read_file(config, path, false);
	}
}

static void read_variables(struct config *config)
{
	for (int i = 0; i < CONFIG_KEY_COUNT; i++) {
		enum config_key key = (enum config_key)i;
		const struct config_key_row *row = &config_keys[key];
		bool may_be_empty = row->type == CONFIG_TEXT && row->least == 0;
		const char *name = row->variable,
			   *value = may_be_empty ? getenv(name) : config_variable(name);
		if (value)
			config_set(config, key, value, NULL,
				(struct config_origin){.source = CONFIG_VARIABLE, .name = name});
	}
}

int config_sets_add(struct config_sets *sets, const char *flag, const char *key, const char *value)
{
	if (sets->count == CONFIG_SETS_MAX)
		return -E2BIG;
	sets->flags[sets->count++] = (struct config_flag){flag, key, value};
	return 0;
}

int config_sets_take(struct config_sets *sets, const char *text)
{
	const char *equals = strchr(text, '=');
	size_t len = equals ? (size_t)(equals - text) : 0;

	if (len == 0 || len >= CONFIG_NAME_MAX)
		return -EINVAL;
	if (sets->count == CONFIG_SETS_MAX)
		return -E2BIG;
	char *key = sets->keys[sets->count];
	memcpy(key, text, len);
	key[len] = 0;
	return config_sets_add(sets, "--set", key, equals + 1);
}

static bool take_fault(struct form *form, const struct field *field, yyjson_val *value, int fault)
{
	if (fault == -E2BIG)
		form_error(form, field->flag, "is one too many: the command line may have %d settings",
			CONFIG_SETS_MAX);
	else if (fault < 0)
		form_wrong(form, field, value);
	return fault == 0;
}

bool config_take_set(struct form *form, const struct field *field, yyjson_val *value, void *at)
{
	return take_fault(form, field, value, config_sets_take(at, yyjson_get_str(value)));
}

bool config_take_flag(struct form *form, const struct field *field, yyjson_val *value, void *at)
{
	return take_fault(
		form, field, value, config_sets_add(at, field->flag, field->name, yyjson_get_str(value)));
}

static void read_flag(struct config *config, const struct config_flag *flag)
{
	struct config_origin origin = {.source = CONFIG_FLAG, .name = flag->flag};
	enum config_key key = config_key_find(flag->key);
	const char *owner = config_key_owner(flag->key);

	if (key != CONFIG_KEY_COUNT)
		config_set(config, key, flag->value, NULL, origin);
	else if (config_key_is_group(flag->key))
		config_note_problem(
			config, origin, "%s is a group of keys, as in %s.NAME=VALUE", flag->key, flag->key);
	else if (owner)
		config_note_problem(config, origin, "%s is read by %s from a file; a flag cannot set it",
			flag->key, owner);
	else
		config_note_unknown(config, origin, flag->key);
}

void config_read(struct config *config, const struct config_request *request)
{
	memset(config, 0, sizeof *config);
	arena_init(&config->arena, ARENA_BYTES_MAX);
	config->foreign_read = request->foreign_read;
	config->foreign_context = request->foreign_context;
	read_defaults(config);
	find_home(config, request);
	read_files(config, request);
	read_variables(config);
	for (uint32_t i = 0; i < request->flag_count; i++)
		read_flag(config, &request->flags[i]);
}

void config_done(struct config *config)
{
	if (config)
		arena_done(&config->arena);
}
