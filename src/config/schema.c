/*
 * The keys as a JSON Schema, for editors: what a file may say, in a form that they check while it is written.
 */
#include <stdio.h>
#include <string.h>

#include "config/config.h"
#include "wire/json/json.h"

enum {
	HELP_BYTES = 512, /* of a key, with its unit */
};

static void put_words(struct buf *out, const char *words)
{
	bool any = false;

	buf_put_byte(out, '[');
	for (size_t len; (len = strcspn(words, " ")) > 0; words += len + (words[len] == ' ')) {
		json_put_comma(out, &any);
		json_put_string(out, (struct span){words, len});
	}
	buf_put_byte(out, ']');
}

static void put_bounds(struct json_object *value, const struct config_key_row *row)
{
	switch (row->type) {
	case CONFIG_NUMBER:
		json_member_string(value, "type", SPAN("integer"));
		json_member_int(value, "minimum", row->least);
		json_member_int(value, "maximum", row->most);
		break;
	case CONFIG_BOOL:
		json_member_string(value, "type", SPAN("boolean"));
		break;
	case CONFIG_TEXT:
		json_member_string(value, "type", SPAN("string"));
		json_member_int(value, "minLength", row->least);
		json_member_int(value, "maxLength", row->most);
		break;
	case CONFIG_CHOICE:
		if (json_put_key(value, "enum"))
			put_words(value->buf, row->of);
		break;
	}
}

static void put_default(struct json_object *value, const struct config_key_row *row)
{
	if (row->fallback[0] == 0)
		return;
	if (row->type == CONFIG_NUMBER || row->type == CONFIG_BOOL)
		json_member_raw(value, "default", span_of(row->fallback));
	else
		json_member_string(value, "default", span_of(row->fallback));
}

static void put_key(struct json_object *properties, const char *name, const struct config_key_row *row)
{
	bool has_unit = row->of[0] && row->type == CONFIG_NUMBER;
	struct json_object value;
	char help[HELP_BYTES];

	snprintf(help, sizeof help, has_unit ? "%s (%s)" : "%s", row->help, row->of);
	if (!json_put_key(properties, name))
		return;
	json_begin(&value, properties->buf);
	json_member_string(&value, "description", span_of(help));
	put_bounds(&value, row);
	put_default(&value, row);
	json_end(&value);
}

static size_t group_len(const char *name)
{
	const char *dot = strchr(name, '.');

	return dot ? (size_t)(dot - name) : 0;
}

static bool is_in_group(const char *name, const char *group, size_t len)
{
	return group_len(name) == len && strncmp(name, group, len) == 0;
}

/* {"type":"object","properties":{ … what comes until the end */
static void begin_properties(struct json_object *object, struct json_object *ret_properties)
{
	json_member_string(object, "type", SPAN("object"));
	if (json_put_key(object, "properties"))
		json_begin(ret_properties, object->buf);
}

/* … },"additionalProperties":false} */
static int end_properties(struct json_object *object, struct json_object *properties)
{
	json_end(properties);
	json_member_bool(object, "additionalProperties", false);
	return json_end(object);
}

/* The group that begins with this key: its keys stand together in the table. The key behind them. */
static int put_group(struct json_object *properties, int key)
{
	struct json_object group, members = {.buf = properties->buf};
	const char *first = config_keys[key].name;
	size_t len = group_len(first);
	char name[CONFIG_NAME_MAX] = "";

	memcpy(name, first, len);
	json_put_key(properties, name);
	json_begin(&group, properties->buf);
	begin_properties(&group, &members);
	for (; key < CONFIG_KEY_COUNT && is_in_group(config_keys[key].name, first, len); key++)
		put_key(&members, config_keys[key].name + len + 1, &config_keys[key]);
	end_properties(&group, &members);
	return key;
}

int config_put_schema(struct buf *out)
{
	struct json_object schema, properties = {.buf = out};
	const char *name;

	json_begin(&schema, out);
	json_member_string(&schema, "$schema", SPAN("https://json-schema.org/draft/2020-12/schema"));
	json_member_string(&schema, "title", SPAN("stint configuration"));
	begin_properties(&schema, &properties);
	for (int key = 0; key < CONFIG_KEY_COUNT;) {
		if (group_len(config_keys[key].name) > 0) {
			key = put_group(&properties, key);
		} else {
			put_key(&properties, config_keys[key].name, &config_keys[key]);
			key++;
		}
	}
	for (uint32_t i = 0; (name = config_foreign_key(i)); i++)
		json_member_raw(&properties, name, SPAN("true")); /* others know what it may be */
	return end_properties(&schema, &properties);
}
