/*
 * stint slot: who fills the slots, and letting one work again.
 */
#include <string.h>

#include "cli/verb/task_view.h"

enum { S_NAME, S_STATE, S_WORKER, S_RESTARTS, S_UNTIL, S_SINCE, S_COUNT };

static const struct column slot_columns[S_COUNT] = {
	[S_NAME] = {.name = "SLOT", .shrinks = true},
	[S_STATE] = {.name = "STATE"},
	[S_WORKER] = {.name = "WORKER", .shrinks = true, .rank = 1},
	[S_RESTARTS] = {.name = "CRASHES", .right = true, .rank = 2},
	[S_UNTIL] = {.name = "TRIAL", .right = true, .rank = 3},
	[S_SINCE] = {.name = "SINCE", .right = true, .rank = 4},
};

/* No registered worker fills a place in a pool: only its supervisor knows whether something runs there. */
static bool is_in_pool(struct span name)
{
	return name.len > 0 && memchr(name.data, '/', name.len);
}

static void add_slot(struct cli *cli, struct table *table, yyjson_val *slot)
{
	struct span name = field_text(slot, "name"), state = field_text(slot, "state");

	if (is_in_pool(name) && span_equal(state, SPAN("empty")))
		state = SPAN("open");
	table_row(table);
	table_cell(table, S_NAME, name, PAINT_BOLD);
	table_cell(table, S_STATE, state, view_state_paint(state));
	table_cell(table, S_WORKER, view_or_dash(field_text(slot, "workerId")), PAINT_NONE);
	table_cell(table, S_RESTARTS, view_number(cli, field_int(slot, "crashes", 0)), PAINT_NONE);
	table_cell(table, S_UNTIL, view_relative(cli, field_int(slot, "trialAt", 0)), PAINT_NONE);
	table_cell(table, S_SINCE, view_relative(cli, field_int(slot, "since", 0)), PAINT_NONE);
}

static int run_slots(struct cli *cli)
{
	static const struct list_view view = {
		.path = "/api/slots",
		.key = "slots",
		.id = "name",
		.columns = slot_columns,
		.column_count = S_COUNT,
		.add = add_slot,
		.none = "no slots",
	};

	return view_put_list(cli, &view);
}

static int run_unquarantine(struct cli *cli)
{
	return server_change_each(cli, "slot", "/api/slots/*/unquarantine", "may work again");
}

const struct verb verb_slot_ls = {
	.name = "slot ls",
	.group = GROUP_WORKERS,
	.arguments = "",
	.gives = GIVES_JSON | GIVES_ROWS | GIVES_AGAIN,
	.brief = "the slots",
	.text = "Lists the slots: who fills them, how often they crashed lately, and which are quarantined, since when and until a "
		"trial is due. Places in pools are listed once something crashed there: one that is not quarantined is open, and "
		"stint worker show says what runs in it.",
	.examples = "stint slot ls\n",
	.run = run_slots,
};

const struct verb verb_slot_unquarantine = {
	.name = "slot unquarantine",
	.group = GROUP_WORKERS,
	.arguments = "SLOT",
	.least = 1,
	.most = 1,
	.offer = OFFER_SLOTS,
	.gives = GIVES_JSON,
	.brief = "let it work again",
	.text = "Lets a slot that crashed too often work again.",
	.examples = "stint slot unquarantine slot-1\n",
	.run = run_unquarantine,
};
