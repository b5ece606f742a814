/*
 * The configuration, told: for people, for programs, and what was wrong.
 */
#include <string.h>

#include "config/config.h"
#include "wire/json/json.h"

void config_put_origin(struct buf *out, const struct config_origin *origin)
{
	if (origin->line > 0)
		buf_printf(out, "%s:%u:%u", origin->name, origin->line, origin->column);
	else
		buf_printf(out, "%s", origin->name);
}

static uint32_t kept_problems(const struct config *config)
{
	return config->problem_count < CONFIG_PROBLEMS_MAX ? config->problem_count : CONFIG_PROBLEMS_MAX;
}

int config_put_problems(struct buf *out, const struct config *config, const char *prefix)
{
	uint32_t kept = kept_problems(config);

	for (uint32_t i = 0; i < kept; i++) {
		buf_printf(out, "%s", prefix);
		config_put_origin(out, &config->problems[i].where);
		buf_printf(out, ": %s\n", config->problems[i].what);
	}
	if (config->problem_count > kept)
		buf_printf(out, "%sand %u more\n", prefix, config->problem_count - kept);
	return buf_fault(out);
}

/* ---- for people ---------------------------------------------------------------------------------------- */

static void put_row(struct buf *out, const char *name, const char *text, const char *more,
	const struct config_origin *origin)
{
	buf_printf(out, "%-26s  %s%-*s  ", name, text, 30 - (int)strlen(text), more);
	config_put_origin(out, origin);
	buf_put_byte(out, '\n');
}

int config_put_table(struct buf *out, const struct config *config)
{
	buf_printf(out, "%-26s  %-30s  %s\n", "KEY", "VALUE", "ORIGIN");
	put_row(out, "home", "", config->home.text, &config->home.origin);
	for (int i = 0; i < CONFIG_KEY_COUNT; i++)
		put_row(out, config_keys[i].name, "", config->values[i].text, &config->values[i].origin);
	for (uint32_t i = 0; i < config->foreign_count; i++)
		put_row(out, config->foreign[i].name, "is left to ", config->foreign[i].program,
			&config->foreign[i].where);
	return buf_fault(out);
}

int config_put_keys(struct buf *out)
{
	for (int i = 0; i < CONFIG_KEY_COUNT; i++) {
		const struct config_key_row *row = &config_keys[i];
		buf_printf(out, "  %-26s %s", row->name, row->help);
		if (row->fallback[0])
			buf_printf(out, " [%s]", row->fallback);
		buf_put_byte(out, '\n');
	}
	return buf_fault(out);
}

/* ---- for programs -------------------------------------------------------------------------------------- */

static const char *const source_names[] = {
	[CONFIG_DEFAULT] = "default",
	[CONFIG_FILE] = "file",
	[CONFIG_VARIABLE] = "environment",
	[CONFIG_FLAG] = "flag",
};

static void member_origin(struct json_object *object, const struct config_origin *origin)
{
	json_member_string(object, "source", span_of(source_names[origin->source]));
	if (origin->source != CONFIG_DEFAULT)
		json_member_string(object, "origin", span_of(origin->name));
	if (origin->line > 0) {
		json_member_int(object, "line", origin->line);
		json_member_int(object, "column", origin->column);
	}
}

/* A list of objects: `put` writes the members of the object with that number. */
static void member_list(struct json_object *object, const char *name, const struct config *config,
	uint32_t count, void (*put)(struct json_object *, const struct config *, uint32_t))
{
	struct json_object inner;

	json_member_raw(object, name, SPAN("["));
	for (uint32_t i = 0; i < count; i++) {
		if (i > 0)
			buf_put_byte(object->buf, ',');
		json_begin(&inner, object->buf);
		put(&inner, config, i);
		json_end(&inner);
	}
	buf_put_byte(object->buf, ']');
}

static void put_value(struct json_object *object, const struct config *config, uint32_t key)
{
	const struct config_value *value = &config->values[key];

	json_member_string(object, "key", span_of(config_keys[key].name));
	switch (config_keys[key].type) {
	case CONFIG_NUMBER:
		json_member_int(object, "value", value->number);
		break;
	case CONFIG_BOOL:
		json_member_bool(object, "value", value->number != 0);
		break;
	case CONFIG_TEXT:
	case CONFIG_CHOICE:
		json_member_string(object, "value", span_of(value->text));
		break;
	}
	member_origin(object, &value->origin);
}

static void put_ignored(struct json_object *object, const struct config *config, uint32_t i)
{
	json_member_string(object, "key", span_of(config->foreign[i].name));
	json_member_string(object, "program", span_of(config->foreign[i].program));
	if (config->foreign[i].names[0])
		json_member_string(object, "names", span_of(config->foreign[i].names));
	member_origin(object, &config->foreign[i].where);
}

static void put_problem(struct json_object *object, const struct config *config, uint32_t i)
{
	json_member_string(object, "message", span_of(config->problems[i].what));
	member_origin(object, &config->problems[i].where);
}

int config_put_json(struct buf *out, const struct config *config)
{
	struct json_object object;

	json_begin(&object, out);
	json_member_int(&object, "schema", 1);
	json_member_string(&object, "home", span_of(config->home.text));
	member_list(&object, "keys", config, CONFIG_KEY_COUNT, put_value);
	member_list(&object, "ignored", config, config->foreign_count, put_ignored);
	member_list(&object, "problems", config, kept_problems(config), put_problem);
	json_end(&object);
	buf_put_byte(out, '\n');
	return buf_fault(out);
}
