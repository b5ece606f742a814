#include "api/flow/budgets.h"

#include <inttypes.h>
#include <stdio.h>
#include <string.h>

#include "base/take.h"

#define MICRO   1e6
#define USD_MAX 1000000 /* dollars in a day */

enum {
	NOTE_BYTES_MAX = 160,
};

/* ---- reading ------------------------------------------------------------------------------------------------------ */

static const char *const sizes[DAY_PARTS] = {
	[DAY_USD] = "a number of dollars above 0, at most 1000000, or null",
	[DAY_TOKENS] = "an integer from 1 on, or null",
	[DAY_TURNS] = "an integer from 1 on, or null",
	[DAY_TOOL_CALLS] = "an integer from 1 on, or null",
};

static bool read_part(enum day_part part, yyjson_val *value, int64_t *ret_most)
{
	double number;

	if (yyjson_is_null(value)) {
		*ret_most = 0;
		return true;
	}
	if (part != DAY_USD)
		return node_int(value, ret_most) == 0 && *ret_most >= 1 && *ret_most <= DAY_BUDGET_MAX;
	if (!json_number(value, &number) || !(number > 0) || number > USD_MAX)
		return false;
	*ret_most = (int64_t)(number * MICRO + 0.5);
	return *ret_most > 0;
}

static void take_part(struct form *form, struct span name, yyjson_val *value, void *into)
{
	struct day_budget_patch *patch = into;

	for (int i = 0; i < DAY_PARTS; i++) {
		if (!span_equal(name, span_of(day_part_name((enum day_part)i))))
			continue;
		if (!read_part((enum day_part)i, value, &patch->wanted[i]))
			form_wrong_as(form, "", sizes[i], value);
		patch->set |= 1u << i;
		return;
	}
	form_error(form, "", "is no part of a budget of a day: it has usd, tokens, turns and toolCalls");
}

bool budget_take_later(struct form *form, const struct field *field, yyjson_val *value, void *at)
{
	(void)form, (void)field, (void)value, (void)at;
	return true;
}

void budget_read_member(struct form *form, bool *ret_given, struct day_budget_patch *ret_patch)
{
	yyjson_val *value = yyjson_obj_get(form->root, "budget");

	*ret_given = value != NULL;
	*ret_patch = (struct day_budget_patch){0};
	if (!value)
		return;
	if (yyjson_is_null(value))
		ret_patch->set = (1u << DAY_PARTS) - 1;
	else if (!yyjson_is_obj(value) || yyjson_obj_size(value) == 0)
		form_wrong_as(
			form, "budget", "an object with usd, tokens, turns or toolCalls, or null", value);
	else
		form_each(form, "budget", value, take_part, ret_patch);
}

/* ---- writing ------------------------------------------------------------------------------------------------------ */

static void put_amount(struct json_object *object, enum day_part part, int64_t amount)
{
	if (part != DAY_USD)
		json_member_int(object, day_part_name(part), amount);
	else if (json_put_key(object, day_part_name(part)))
		buf_printf(object->buf, "%.12g", (double)amount / MICRO);
}

static void put_amounts(
	struct json_object *object, const char *name, const int64_t amounts[DAY_PARTS], bool with_nothing)
{
	struct json_object members;

	if (!json_put_key(object, name))
		return;
	json_begin(&members, object->buf);
	for (int i = 0; i < DAY_PARTS; i++) {
		if (with_nothing || amounts[i] != 0)
			put_amount(&members, (enum day_part)i, amounts[i]);
	}
	json_note(object, json_end(&members));
}

void budget_put_members(struct json_object *object, const struct day_budget *budget, int64_t wall_ms)
{
	struct day_budget now = day_budget_at(budget, wall_ms);

	if (day_budget_limits(&now))
		put_amounts(object, "budget", now.most, false);
	put_amounts(object, "spentToday", now.used, true);
}

/* ---- events ------------------------------------------------------------------------------------------------------- */

static enum day_part part_named(const char *name)
{
	int part = 0;

	while (part < DAY_PARTS - 1 &&
		!span_equal(span_of(name), span_of(day_part_name((enum day_part)part))))
		part++;
	return (enum day_part)part;
}

void budget_put_note(struct json_object *data, struct span note, struct span subject)
{
	const char *newline = note.len > 0 ? memchr(note.data, '\n', note.len) : NULL;
	size_t len = newline ? (size_t)(newline - note.data) : note.len;
	char text[NOTE_BYTES_MAX], noun[16], part[16];
	int64_t most[DAY_PARTS], limit, used;

	snprintf(text, sizeof text, "%.*s", (int)(len < sizeof text ? len : sizeof text - 1), note.data);
	if (sscanf(text, "%15s %" SCNd64 " %" SCNd64 " %" SCNd64 " %" SCNd64, noun, &most[0], &most[1],
		    &most[2], &most[3]) == 5) {
		json_member_string(data, noun, subject);
		put_amounts(data, "budget", most, false);
		if (newline)
			json_members_raw(data, (struct span){newline + 1, note.len - len - 1});
	} else if (sscanf(text, "%15s %15s %" SCNd64 " %" SCNd64, noun, part, &limit, &used) == 4) {
		json_member_string(data, noun, subject);
		json_member_cstr(data, "part", day_part_name(part_named(part)));
		if (json_put_key(data, "limit"))
			buf_printf(data->buf, "%.12g",
				part_named(part) == DAY_USD ? (double)limit / MICRO : (double)limit);
		if (json_put_key(data, "used"))
			buf_printf(data->buf, "%.12g",
				part_named(part) == DAY_USD ? (double)used / MICRO : (double)used);
	}
}

/* ---- accounts ----------------------------------------------------------------------------------------------------- */

struct account_body {
	struct span reason;
};

static const struct field account_fields[] = {
	{"budget", FIELD_BY, .by = budget_take_later},
	FIELD(account_body, reason, "reason", FIELD_TEXT, .max = 4096),
};

static int put_account(struct api_call *call)
{
	struct day_budget budget = {0};
	struct json_object object;

	store_find_budget(call->store, BUDGET_OF_ACCOUNT, call->params[0], &budget);
	json_begin(&object, call->body);
	json_member_string(&object, "name", call->params[0]);
	budget_put_members(&object, &budget, call->now.wall_ms);
	return json_end(&object);
}

void credential_set_begin(struct api_call *call)
{
	cleanup(form_done) struct form form = {0};
	struct day_budget_patch patch;
	struct account_body body = {0};
	bool given;

	if (!call_param_is_name(call, "name") || !form_open(&form, call, false))
		return;
	form_read(&form, form.root, FIELDS(account_fields), &body);
	budget_read_member(&form, &given, &patch);
	if (form.error_count == 0 && form.fault == 0 && !given)
		form_error(&form, "budget", "is required; null lifts it");
	if (!form_is_good(&form))
		return;
	struct command *command = call_command(call, COMMAND_BUDGET_SET);
	if (!command)
		return;
	command->budget.scope = BUDGET_OF_ACCOUNT;
	command->budget.name = call->params[0];
	command->budget.patch = patch;
	call_keep_note(call, "reason", body.reason, command);
}

void credential_set_finish(struct api_call *call, const struct result *results)
{
	(void)results;
	call_reply(call, 200, put_account(call));
}
