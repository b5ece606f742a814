/*
 * The keys as a JSON Schema, for editors: what a file may say, in a form that they check while it is written.
 */
#include <string.h>

#include "base/take.h"
#include "config/config.h"
#include "wire/json/json.h"

enum {
	SCHEMA_BYTES_MAX = 1 << 20,
};

static int put_words(struct buf *out, const char *words)
{
	int r = buf_put_byte(out, '[');

	for (const char *at = words; r == 0 && *at; at += strspn(at, " ")) {
		size_t len = strcspn(at, " ");
		r = at > words ? buf_put_byte(out, ',') : 0;
		if (r == 0)
			r = json_put_string(out, (struct span){at, len});
		at += len;
	}
	return r < 0 ? r : buf_put_byte(out, ']');
}

static void put_bounds(struct json_object *value, const struct config_key_row *row)
{
	cleanup(buf_done) struct buf words = {0};

	buf_init(&words, SCHEMA_BYTES_MAX);
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
		if (put_words(&words, row->of) == 0)
			json_member_raw(value, "enum", buf_span(&words));
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
	cleanup(buf_done) struct buf text = {0}, help = {0};
	struct json_object value;

	buf_init(&text, SCHEMA_BYTES_MAX);
	buf_init(&help, SCHEMA_BYTES_MAX);
	json_begin(&value, &text);
	bool has_unit = row->of[0] && row->type == CONFIG_NUMBER;
	buf_printf(&help, "%s%s%s%s", row->help, has_unit ? " (" : "", has_unit ? row->of : "",
		has_unit ? ")" : "");
	if (buf_fault(&help))
		json_note(&value, buf_fault(&help));
	else
		json_member_string(&value, "description", buf_span(&help));
	put_bounds(&value, row);
	put_default(&value, row);
	json_end(&value);
	json_member_buf(properties, name, &text);
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

/* {"type":"object","properties":{…},"additionalProperties":false} */
static int put_object(struct json_object *object, const struct buf *properties)
{
	json_member_string(object, "type", SPAN("object"));
	json_member_buf(object, "properties", properties);
	json_member_bool(object, "additionalProperties", false);
	return json_end(object);
}

static void put_group(struct json_object *properties, const char *first, size_t len)
{
	cleanup(buf_done) struct buf text = {0}, inner = {0};
	struct json_object members, group;
	char name[CONFIG_NAME_MAX] = "";

	buf_init(&text, SCHEMA_BYTES_MAX);
	buf_init(&inner, SCHEMA_BYTES_MAX);
	json_begin(&members, &inner);
	for (int key = 0; key < CONFIG_KEY_COUNT; key++) {
		if (is_in_group(config_keys[key].name, first, len))
			put_key(&members, config_keys[key].name + len + 1, &config_keys[key]);
	}
	json_end(&members);
	json_begin(&group, &text);
	put_object(&group, &inner);
	memcpy(name, first, len);
	json_member_buf(properties, name, &text);
}

static bool is_first_of_group(int key, size_t len)
{
	for (int before = 0; before < key; before++) {
		if (is_in_group(config_keys[before].name, config_keys[key].name, len))
			return false;
	}
	return true;
}

int config_put_schema(struct buf *out)
{
	cleanup(buf_done) struct buf inner = {0};
	struct json_object properties, schema;
	const char *name;

	buf_init(&inner, SCHEMA_BYTES_MAX);
	json_begin(&properties, &inner);
	for (int key = 0; key < CONFIG_KEY_COUNT; key++) {
		size_t len = group_len(config_keys[key].name);
		if (len == 0)
			put_key(&properties, config_keys[key].name, &config_keys[key]);
		else if (is_first_of_group(key, len))
			put_group(&properties, config_keys[key].name, len);
	}
	for (uint32_t i = 0; (name = config_foreign_key(i)); i++)
		json_member_raw(&properties, name, SPAN("true")); /* others know what it may be */
	json_end(&properties);
	json_begin(&schema, out);
	json_member_string(&schema, "$schema", SPAN("https://json-schema.org/draft/2020-12/schema"));
	json_member_string(&schema, "title", SPAN("stint configuration"));
	return put_object(&schema, &inner);
}
