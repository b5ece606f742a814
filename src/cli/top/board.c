#include "cli/top/board.h"

#include <stdio.h>
#include <string.h>

#include "cli/top/draw.h"
#include "cli/verb/task_view.h"

/* ---- which rows there are ------------------------------------------------------------------------------------- */

const struct board_view board_views[TAB_COUNT] = {
	[TAB_TASKS] = {"Tasks", "id", {"Needs you", "Running", "Waiting", NULL}},
	[TAB_INBOX] = {"Inbox", "id", {"Needs you", NULL}},
	[TAB_WORKERS] = {"Workers", "workerId", {"Look here", "Here", NULL}},
	[TAB_QUEUES] = {"Queues", "name", {"Held back", "Flowing", NULL}},
};

/* The lists that a tab looks at, and the group of an item; STAND_GROUPS: it is not shown. */
static yyjson_val *list_of(const struct board *board, size_t index)
{
	switch (board->tab) {
	case TAB_TASKS:
		return index < STAND_ENDED ? board->tasks[index] : NULL;
	case TAB_INBOX:
		return index == 0 ? board->tasks[STAND_NEEDS] : NULL;
	case TAB_WORKERS:
		return index == 0 ? board->workers : NULL;
	case TAB_QUEUES:
		return index == 0 ? board->queues : NULL;
	case TAB_COUNT:
		break;
	}
	return NULL;
}

bool board_is_held_back(yyjson_val *queue)
{
	yyjson_val *why = field_get(queue, "why");
	bool flows = !why || (span_equal(field_text(why, "reason"), SPAN("ready")) && !field_get(why, "try"));

	return !flows || !span_equal(field_text(queue, "state"), SPAN("open"));
}

static size_t group_of(const struct board *board, size_t list, yyjson_val *item)
{
	struct span state = field_text(item, "state");

	switch (board->tab) {
	case TAB_TASKS:
	case TAB_INBOX:
		return list;
	case TAB_WORKERS:
		if (span_equal(state, SPAN("inactive")))
			return STAND_GROUPS;
		return view_worker_is_silent(item) || !span_equal(state, SPAN("active")) ? 0 : 1;
	case TAB_QUEUES:
		return board_is_held_back(item) ? 0 : 1;
	case TAB_COUNT:
		break;
	}
	return STAND_GROUPS;
}

static struct span id_of(const struct board *board, yyjson_val *item)
{
	return field_text(item, board_views[board->tab].key);
}

static struct board_row *find_row(struct board *board, struct span id)
{
	for (size_t i = 0; i < board->row_count; i++) {
		if (span_equal(span_of(board->rows[i].id), id))
			return &board->rows[i];
	}
	return NULL;
}

static void add_row(struct board *board, size_t group, yyjson_val *item)
{
	struct span id = id_of(board, item);
	struct board_row *row = &board->rows[board->row_count];

	if (board->row_count == BOARD_ROWS_MAX || id.len == 0 || id.len >= sizeof row->id)
		return;
	snprintf(row->id, sizeof row->id, "%.*s", SPAN_ARGS(id));
	row->group = (uint8_t)group;
	row->item = item;
	board->row_count++;
}

/* All rows of the tab, group by group. */
static void fill(struct board *board)
{
	size_t at, count;
	yyjson_val *item;

	board->row_count = 0;
	for (size_t group = 0; group < STAND_ENDED; group++) {
		for (size_t list = 0; list < STAND_ENDED; list++) {
			yyjson_arr_foreach(list_of(board, list), at, count, item)
			{
				if (group_of(board, list, item) == group)
					add_row(board, group, item);
			}
		}
	}
}

/* The rows that are there, with what the server says of them now. */
static void renew(struct board *board)
{
	size_t at, count, kept = 0;
	yyjson_val *item;

	for (size_t i = 0; i < board->row_count; i++)
		board->rows[i].item = NULL;
	for (size_t list = 0; list < STAND_ENDED; list++) {
		yyjson_arr_foreach(list_of(board, list), at, count, item)
		{
			size_t group = group_of(board, list, item);
			struct board_row *row = find_row(board, id_of(board, item));
			if (group == STAND_GROUPS)
				continue;
			if (!row || row->item)
				board->fresh += !row;
			else
				board->moved += row->group != group;
			if (row)
				row->item = item;
		}
	}
	/* what has ended is shown once more where it stood */
	yyjson_arr_foreach(board->tasks[STAND_ENDED], at, count, item)
	{
		bool tasks = board->tab == TAB_TASKS || board->tab == TAB_INBOX;
		struct board_row *row = tasks ? find_row(board, id_of(board, item)) : NULL;
		if (row && !row->item) {
			row->item = item;
			board->moved++;
		}
	}
	for (size_t i = 0; i < board->row_count; i++) {
		if (board->rows[i].item)
			board->rows[kept++] = board->rows[i];
	}
	board->row_count = kept;
}

bool board_arrange(struct board *board, bool adopt)
{
	const struct board_row *focus = board_focus(board);
	char id[BOARD_ID_BYTES] = "";

	if (focus)
		memcpy(id, focus->id, sizeof id);
	board->fresh = board->moved = 0;
	if (adopt || board->row_count == 0)
		fill(board);
	else
		renew(board);
	struct board_row *same = id[0] ? find_row(board, span_of(id)) : NULL;
	if (same)
		board->focus = (size_t)(same - board->rows);
	else if (board->focus >= board->row_count)
		board->focus = board->row_count > 0 ? board->row_count - 1 : 0;
	return !same;
}

const struct board_row *board_focus(const struct board *board)
{
	return board->focus < board->row_count ? &board->rows[board->focus] : NULL;
}

void board_move_focus(struct board *board, int64_t by)
{
	int64_t to = (int64_t)board->focus + by, last = (int64_t)board->row_count - 1;

	board->focus = (size_t)(to < 0 || last < 0 ? 0 : to > last ? last : to);
}

bool board_has_tasks(const struct board *board)
{
	return board->tab == TAB_TASKS || board->tab == TAB_INBOX;
}

/* ---- what may be done ------------------------------------------------------------------------------------------ */

bool board_may_retry(yyjson_val *task)
{
	struct span state = field_text(task, "state");

	return span_equal(state, SPAN("blocked")) || view_state_is_final(state);
}

bool board_may_cancel(yyjson_val *task)
{
	return !view_state_is_final(field_text(task, "state"));
}

bool board_is_asking(yyjson_val *task)
{
	return span_equal(field_text(task, "state"), SPAN("asking"));
}

bool board_is_in_review(yyjson_val *task)
{
	return span_equal(field_text(task, "state"), SPAN("review"));
}
