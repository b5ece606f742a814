/*
 * stint slot: who fills the slots, and letting one work again.
 */
#include <string.h>

#include "cli/verb/task_view.h"

/* No registered worker fills a place in a pool: only its supervisor knows whether something runs there. */
static struct span state_of(struct cli *cli, yyjson_val *slot)
{
	struct span name = field_text(slot, "name"), state = field_text(slot, "state");
	bool is_in_pool = name.len > 0 && memchr(name.data, '/', name.len);

	(void)cli;
	return is_in_pool && span_equal(state, SPAN("empty")) ? SPAN("open") : state;
}

static const struct column columns[] = {
	{"SLOT", "name", .paint = PAINT_BOLD, .shrinks = true},
	{"STATE", .make = state_of, .kind = COLUMN_STATE},
	{"WORKER", "workerId", COLUMN_DASH, .shrinks = true, .rank = 1},
	{"CRASHES", "crashes", COLUMN_NUMBER, .right = true, .rank = 2},
	{"TRIAL", "trialAt", COLUMN_MOMENT, .right = true, .rank = 3},
	{"SINCE", "since", COLUMN_MOMENT, .right = true, .rank = 4},
};

static const struct list_view slots = {
	.path = "/api/slots",
	.key = "slots",
	.id = "name",
	VIEW_COLUMNS(columns),
	.none = "No slots.",
};

const struct verb verb_slot_ls = {
	.name = "slot ls",
	.gives = GIVES_JSON | GIVES_ROWS | GIVES_AGAIN,
	.brief = "the slots",
	.text = "Lists the slots: the worker in each, how often they crashed lately, and which are quarantined, since when and until a "
		"trial is due. Places in pools are listed once something crashed there: one that is not quarantined is open, and "
		"stint worker show says what runs in it.",
	.examples = "stint slot ls\n",
	.list = &slots,
};

const struct verb verb_slot_unquarantine = {
	.name = "slot unquarantine",
	.arguments = "SLOT",
	.offer = OFFER_SLOTS,
	.gives = GIVES_JSON,
	.brief = "let it work again",
	.text = "Lets a slot that crashed too often work again.",
	.examples = "stint slot unquarantine slot-1\n",
	.change = &(const struct change){"slot", "/api/slots/*/unquarantine", .done = "may work again"},
};
