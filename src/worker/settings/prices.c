/* "prices": what a million tokens of a model cost, and since when that is so. */
#include "worker/settings/parts.h"

#include <errno.h>
#include <string.h>

struct price_table {
	const char *as_of;
	struct price *items;
	size_t count;
};

#define PRICE_MAX 1e6

static bool take_price_number(struct form *form, const struct field *field, yyjson_val *value, void *at)
{
	double number = 0;

	if (!json_number(value, &number) || number < 0 || number > PRICE_MAX)
		return form_wrong(form, field, value);
	*(double *)at = number;
	return true;
}

#define NUMBER(member, name)                                          \
	FIELD(price, member, name, FIELD_BY, .by = take_price_number, \
		.allowed = "dollars for a million tokens")
#define NUMBER_MUST_BE(member, name)                                          \
	FIELD_MUST_BE(price, member, name, FIELD_BY, .by = take_price_number, \
		.allowed = "dollars for a million tokens")

static const struct field price_fields[] = {
	NUMBER_MUST_BE(input, "input"),
	NUMBER_MUST_BE(output, "output"),
	NUMBER(cache_read, "cacheRead"),
	NUMBER(cache_write, "cacheWrite"),
};

/* What is read from a cache, or written into one, costs as much as other input where the table does not say. */
static void take_model(struct form *form, struct span name, yyjson_val *value, void *into)
{
	struct price_table *table = into;
	struct price price = {.cache_read = -1, .cache_write = -1};

	if (!yyjson_is_obj(value)) {
		form_wrong_as(form, "",
			"an object with input and output, under the name of a model or a pattern", value);
		return;
	}
	form_read(form, value, FIELDS(price_fields), &price);
	price.model = form_keep(form, name);
	price.cache_read = price.cache_read < 0 ? price.input : price.cache_read;
	price.cache_write = price.cache_write < 0 ? price.input : price.cache_write;
	if (price.model)
		table->items[table->count++] = price;
}

static bool take_models(struct form *form, const struct field *field, yyjson_val *value, void *at)
{
	struct price_table *table = at;
	size_t count = yyjson_obj_size(value);

	if (!yyjson_is_obj(value) || count == 0 || count > PRICES_MAX)
		return form_wrong(form, field, value);
	table->items = arena_alloc(form->arena, count * sizeof *table->items);
	if (!table->items)
		return form_short(form, -ENOMEM);
	form_each(form, field->name, value, take_model, table);
	return true;
}

/* 2026-11-01 */
static bool is_day(const char *text)
{
	static const char shape[] = "dddd-dd-dd";

	for (size_t i = 0; i < sizeof shape; i++)
		if (shape[i] == 'd' ? text[i] < '0' || text[i] > '9' : text[i] != shape[i])
			return false;
	return true;
}

static const struct field table_fields[] = {
	FIELD_MUST_BE(price_table, as_of, "asOf", FIELD_STRING, .accepts = is_day,
		.allowed = "the day that the prices were written down, as in \"2026-11-01\""),
	{"models", FIELD_BY, .by = take_models,
		.allowed =
			"an object of 1 to 200 models, each with input and output: dollars for a million tokens"},
};

bool settings_take_prices(struct form *form, const struct field *field, yyjson_val *value, void *at)
{
	struct settings *settings = at;
	struct price_table table = {0};

	form_read_inner(form, field->name, value, FIELDS(table_fields), &table);
	settings->prices = (struct prices){.as_of = table.as_of, .items = table.items, .count = table.count};
	return true;
}
