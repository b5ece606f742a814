#include "api/form.h"

#include <errno.h>
#include <stdarg.h>
#include <stdio.h>

#include "api/worker/beat_token.h"
#include "base/take.h"

static bool is_alnum(unsigned char c)
{
	return (c >= '0' && c <= '9') || (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z');
}

bool text_is_id(struct span text)
{
	if (text.len == 0 || text.len > COMMAND_ID_MAX || !is_alnum((unsigned char)text.data[0]))
		return false;
	for (size_t i = 1; i < text.len; i++) {
		if (!is_alnum((unsigned char)text.data[i]) && !memchr("._:-", text.data[i], 4))
			return false;
	}
	return true;
}

bool text_is_name(struct span text, size_t max)
{
	if (text.len == 0 || text.len > max)
		return false;
	for (size_t i = 0; i < text.len; i++) {
		unsigned char c = (unsigned char)text.data[i];
		if (c < 0x20 || c == 0x7f)
			return false;
		/* U+0080 to U+009F: control characters, too, and some terminals act on them */
		if (c == 0xc2 && i + 1 < text.len && (unsigned char)text.data[i + 1] < 0xa0)
			return false;
	}
	return true;
}

void form_init(struct form *form, struct api_call *call)
{
	*form = (struct form){.call = call};
	buf_init(&form->errors, 64 << 10);
}

void form_done(struct form *form)
{
	buf_done(&form->errors);
}

static void refuse_text(struct api_call *call, const struct json_complaint *complaint)
{
	char detail[256];

	if (complaint->fault < 0) {
		call_refuse_request(call, complaint->fault);
		return;
	}
	snprintf(detail, sizeof detail, "The body is not JSON that can be accepted: at byte %zu: %s",
		complaint->at, complaint->reason);
	call_bad_request(call, detail);
}

bool form_open(struct form *form, struct api_call *call, bool list_too)
{
	struct span body = call->request->body;
	struct json_complaint complaint;

	form_init(form, call);
	yyjson_doc *doc = json_read_in(call->arena, body.len == 0 ? SPAN("{}") : body, &complaint);
	if (!doc) {
		refuse_text(call, &complaint);
		return false;
	}
	form->root = yyjson_doc_get_root(doc);
	if (yyjson_is_obj(form->root) || (list_too && yyjson_is_arr(form->root)))
		return true;
	call_refuse_field(call, "", "The body must be a JSON object.");
	return false;
}

void form_error(struct form *form, const char *field, const char *format, ...)
{
	char name[320], message[320];
	struct json_object error;
	va_list args;

	if (form->error_count++ >= FORM_ERRORS_MAX)
		return;
	va_start(args, format);
	vsnprintf(message, sizeof message, format, args);
	va_end(args);
	int len = snprintf(name, sizeof name, "%s%s", form->prefix, field);
	if (field[0] == 0 && len > 0)
		name[len - 1] = 0; /* the thing itself: no dot */
	size_t before = form->errors.len;
	int r = form->error_count > 1 ? buf_put_byte(&form->errors, ',') : 0;
	json_begin(&error, &form->errors);
	json_member_cstr(&error, "field", name);
	json_member_cstr(&error, "message", message);
	if (r < 0 || json_end(&error) < 0)
		buf_cut(&form->errors, before); /* there are more than enough */
}

bool form_is_good(struct form *form)
{
	cleanup(buf_done) struct buf members = {0};

	if (form->fault < 0) {
		call_refuse_request(form->call, form->fault);
		return false;
	}
	if (form->error_count == 0)
		return true;
	buf_init(&members, 128 << 10);
	int r = buf_printf(&members, "\"errors\":[");
	if (r == 0)
		r = buf_put_span(&members, buf_span(&form->errors));
	if (r == 0)
		r = buf_put_byte(&members, ']');
	call_refuse_with(form->call, REFUSED_INVALID,
		form->error_count == 1 ? "One field cannot be accepted." : "Some fields cannot be accepted.",
		r < 0 ? (struct span){0} : buf_span(&members));
	return false;
}

/* ---- one value ------------------------------------------------------------------------------------ */

static bool take_text(struct form *form, const struct field *field, yyjson_val *value, struct span *into)
{
	size_t max = field->max > 0 ? (size_t)field->max : COMMAND_NAME_MAX;
	struct span text = json_text(value);

	if (!yyjson_is_str(value)) {
		form_error(form, field->name, "must be a string");
		return false;
	}
	if (field->kind == FIELD_ID && !text_is_id(text)) {
		form_error(form, field->name,
			"must be 1 to %d letters, digits, '.', '_', ':' or '-', and begin with a letter or digit",
			COMMAND_ID_MAX);
		return false;
	}
	if (field->kind == FIELD_NAME && !text_is_name(text, max)) {
		form_error(form, field->name, "must be 1 to %zu bytes without control characters", max);
		return false;
	}
	if (field->kind == FIELD_TEXT && text.len > max) {
		form_error(form, field->name, "has %zu bytes; at most %zu are allowed", text.len, max);
		return false;
	}
	*into = text;
	return true;
}

int node_int(yyjson_val *value, int64_t *ret_number)
{
	const double exact = 9007199254740992.0; /* 2^53: beyond it a double does not have every integer */
	double real;

	if (yyjson_is_int(value)) {
		if (yyjson_is_uint(value) && yyjson_get_uint(value) > INT64_MAX)
			return -ERANGE;
		*ret_number = yyjson_get_sint(value);
		return 0;
	}
	if (!json_number(value, &real))
		return -EINVAL;
	if (real < -exact || real > exact)
		return -ERANGE;
	if (real != (double)(int64_t)real)
		return -EINVAL;
	*ret_number = (int64_t)real;
	return 0;
}

static bool take_int(struct form *form, const struct field *field, yyjson_val *value, int64_t *into)
{
	int64_t number = 0;
	int r = node_int(value, &number);

	if (r == -EINVAL) {
		form_error(form, field->name, "must be an integer");
		return false;
	}
	if (r < 0 || number < field->min || number > field->max) {
		form_error(form, field->name, "must be from %lld to %lld", (long long)field->min,
			(long long)field->max);
		return false;
	}
	*into = number;
	return true;
}

static bool take_decimal(struct form *form, const struct field *field, yyjson_val *value, uint64_t *into)
{
	struct span text = json_text(value);
	uint64_t number = 0;
	bool good = yyjson_is_str(value) && text.len > 0 && text.len <= 20;

	for (size_t i = 0; good && i < text.len; i++) {
		uint64_t digit = (uint64_t)(text.data[i] - '0');
		good = text.data[i] >= '0' && text.data[i] <= '9' && number <= (UINT64_MAX - digit) / 10;
		number = number * 10 + digit;
	}
	if (!good) {
		form_error(form, field->name, "must be the string of digits that was given out");
		return false;
	}
	*into = number;
	return true;
}

/* Whatever text it is: that it is not the last one given out is for the rules to say. */
static bool take_token(struct form *form, const struct field *field, yyjson_val *value, uint64_t *into)
{
	if (!yyjson_is_str(value)) {
		form_error(form, field->name, "must be the string that was given out");
		return false;
	}
	*into = beat_token_read(json_text(value));
	return yyjson_get_len(value) > 0;
}

static bool take_names(
	struct form *form, const struct field *field, yyjson_val *value, struct name_list *into)
{
	size_t max = field->max > 0 ? (size_t)field->max : COMMAND_NAME_MAX;
	size_t count = yyjson_arr_size(value), i, limit;
	yyjson_val *item;

	if (!yyjson_is_arr(value) || count > COMMAND_LIST_MAX) {
		form_error(form, field->name, "must be a list of at most %d strings", COMMAND_LIST_MAX);
		return false;
	}
	struct span *items = arena_alloc(form->call->arena, (count + 1) * sizeof *items);
	if (!items) {
		form->fault = -ENOMEM;
		return false;
	}
	yyjson_arr_foreach(value, i, limit, item)
	{
		if (!yyjson_is_str(item) || !text_is_name(json_text(item), max)) {
			form_error(form, field->name,
				"has at [%zu] what is no string of 1 to %zu bytes without control characters",
				i, max);
			return false;
		}
		items[i] = json_text(item);
	}
	*into = (struct name_list){items, (uint32_t)count};
	return true;
}

static bool take_json(struct form *form, const struct field *field, yyjson_val *value, struct span *into)
{
	cleanup(buf_done) struct buf text = {0};

	if (field->kind == FIELD_OBJECT && !yyjson_is_obj(value)) {
		form_error(form, field->name, "must be an object");
		return false;
	}
	if (field->kind == FIELD_LIST &&
		(!yyjson_is_arr(value) || yyjson_arr_size(value) > COMMAND_LIST_MAX)) {
		form_error(form, field->name, "must be a list of at most %d values", COMMAND_LIST_MAX);
		return false;
	}
	buf_init(&text, 2 * API_TEXT_MAX);
	int r = json_put_value(&text, value);
	if (r == 0)
		r = arena_copy(form->call->arena, buf_span(&text), into);
	if (r < 0)
		form->fault = r;
	return r == 0;
}

bool form_take(struct form *form, const struct field *field, yyjson_val *value, void *into)
{
	void *at = (char *)into + field->at;

	switch (field->kind) {
	case FIELD_ID:
	case FIELD_NAME:
	case FIELD_TEXT:
		return take_text(form, field, value, at);
	case FIELD_INT:
		return take_int(form, field, value, at);
	case FIELD_BOOL:
		if (!yyjson_is_bool(value)) {
			form_error(form, field->name, "must be true or false");
			return false;
		}
		*(bool *)at = yyjson_get_bool(value);
		return true;
	case FIELD_NAMES:
		return take_names(form, field, value, at);
	case FIELD_DECIMAL:
		return take_decimal(form, field, value, at);
	case FIELD_TOKEN:
		return take_token(form, field, value, at);
	case FIELD_VALUE:
	case FIELD_OBJECT:
	case FIELD_LIST:
		return take_json(form, field, value, at);
	case FIELD_NODE:
		*(yyjson_val **)at = value;
		return true;
	}
	return false;
}

/* ---- an object ------------------------------------------------------------------------------------ */

static int field_index(const struct field *fields, uint32_t count, struct span name)
{
	for (uint32_t i = 0; i < count; i++) {
		if (span_is(name, fields[i].name))
			return (int)i;
	}
	return -1;
}

static void tell_unknown(struct form *form, struct span name)
{
	char text[256];

	snprintf(text, sizeof text, "%.*s", (int)(name.len < 200 ? name.len : 200), name.data);
	form_error(form, text, "is not a field of this request");
}

uint64_t form_read(
	struct form *form, yyjson_val *object, const struct field *fields, uint32_t count, void *into)
{
	uint64_t given = 0, seen = 0;
	size_t i, limit;
	yyjson_val *key, *value;

	yyjson_obj_foreach(object, i, limit, key, value)
	{
		int index = field_index(fields, count, json_text(key));
		if (index < 0) {
			if (!form->tolerant)
				tell_unknown(form, json_text(key));
			continue;
		}
		if (yyjson_is_null(value) && fields[index].kind != FIELD_VALUE)
			continue;
		seen |= UINT64_C(1) << index;
		if (form_take(form, &fields[index], value, into))
			given |= UINT64_C(1) << index;
	}
	for (uint32_t f = 0; f < count; f++) {
		if (fields[f].required && !(seen & UINT64_C(1) << f))
			form_error(form, fields[f].name, "is required");
	}
	return given;
}

bool form_read_body(
	struct api_call *call, const struct field *fields, uint32_t count, void *into, uint64_t *ret_given)
{
	cleanup(form_done) struct form form = {0};

	if (!form_open(&form, call, false))
		return false;
	*ret_given = form_read(&form, form.root, fields, count, into);
	return form_is_good(&form);
}
