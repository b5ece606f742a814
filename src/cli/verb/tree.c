#include "cli/verb/tree.h"

#include <string.h>

#include "base/take.h"
#include "cli/verb/task_view.h"

enum {
	LEVELS_MAX = 8, /* more than a tree may have */
};

static void add(
	struct cli *cli, struct buf *list, int *count, const char *parent, yyjson_val *children, int level);

/* One that was removed has its id and state in the list of its parent. */
static void add_one(
	struct cli *cli, struct buf *list, int *count, const char *parent, yyjson_val *child, int level)
{
	const char *id = field_cstr(cli, child, "id");
	cleanup(reply_done) struct reply reply = server_try(cli, "/api/tasks/*", id);
	yyjson_val *task = reply.root ? reply.root : child;
	struct json_object object;

	if (*count > 0)
		buf_put_byte(list, ',');
	++*count;
	json_begin(&object, list);
	json_member_string(&object, "id", span_of(id));
	json_member_string_if_any(&object, "title", field_text(task, "title"));
	json_member_string(&object, "state", field_text(task, "state"));
	json_member_string(&object, "parent", span_of(parent));
	json_member_int(&object, "level", level);
	json_end(&object);
	add(cli, list, count, id, field_get(reply.root, "children"), level + 1);
}

static void add(
	struct cli *cli, struct buf *list, int *count, const char *parent, yyjson_val *children, int level)
{
	size_t at, total;
	yyjson_val *child;

	if (level > LEVELS_MAX)
		return;
	yyjson_arr_foreach(children, at, total, child)
	{
		if (*count == TREE_SHOWN_MAX)
			return;
		add_one(cli, list, count, parent, child, level);
	}
}

void tree_read(struct cli *cli, yyjson_val *task, struct buf *list)
{
	int count = 0;

	buf_put_byte(list, '[');
	add(cli, list, &count, field_cstr(cli, task, "id"), field_get(task, "children"), 1);
	buf_put_byte(list, ']');
}

void tree_put(struct cli *cli, yyjson_val *list, size_t children)
{
	size_t at, count;
	yyjson_val *item;

	if (yyjson_arr_size(list) == 0)
		return;
	cli_put(cli, "\nSubtasks\n");
	yyjson_arr_foreach(list, at, count, item)
	{
		struct state_mark mark = view_state_mark(cli, field_text(item, "state"));
		cli_put(cli, "%*s", 2 * (int)field_int(item, "level", 1), "");
		cli_put_painted(cli, mark.paint, mark.text);
		cli_put_line(cli, "  %s  %s", field_cstr(cli, item, "id"), field_cstr(cli, item, "title"));
	}
	if (count == TREE_SHOWN_MAX)
		cli_put(cli, "  the first %d of them; the task itself has %zu\n", TREE_SHOWN_MAX, children);
	cli_put(cli, "\n");
}
