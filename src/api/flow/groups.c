/*
 * Groups: what there is, closing and removing them. A group begins with the task that names it.
 */
#include "api/form.h"

#include <string.h>

enum {
	SLICE_GROUPS = 100,
};

/* A group belongs to no queue: whoever reads certain queues only sees its own groups. */
static bool group_is_visible(const struct principal *who, const struct group_document *document)
{
	return who->queues.count == 0 || who->number == document->group->principal;
}

static void put_counts(struct json_object *object, const struct group_state *group)
{
	struct json_object counts;

	if (!json_put_key(object, "counts"))
		return;
	json_begin(&counts, object->buf);
	for (int i = TASK_NOWHERE + 1; i < TASK_STATE_COUNT; i++)
		json_member_int(&counts, task_state_name((enum task_state)i), group->count[i]);
	json_note(object, json_end(&counts));
}

static int put_group(struct buf *out, const struct group_document *document)
{
	const struct group_state *group = document->group;
	struct json_object object;

	json_begin(&object, out);
	json_member_string(&object, "name", document->name);
	json_member_bool(&object, "closed", group->closed);
	json_member_bool(&object, "ended", group_has_ended(group));
	json_member_int(&object, "tasks", group_members(group));
	json_member_int(&object, "open", group_open_members(group));
	put_counts(&object, group);
	json_member_int(&object, "createdAt", group->created_ms);
	json_member_int_if_any(&object, "endedAt", group->ended_ms);
	return json_end(&object);
}

static bool find(struct api_call *call, struct group_document *ret_document)
{
	if (call_has_failed(call, store_read_group(call->store, call->params[0], ret_document)))
		return false;
	return group_is_visible(&call->who, ret_document) || api_refuse(call, REFUSED_NOT_FOUND, NULL);
}

void group_read(struct api_call *call)
{
	struct group_document document;

	if (query_read(call, NULL, 0) && find(call, &document))
		call_reply(call, 200, put_group(call->body, &document));
}

struct group_list {
	struct api_call *call;
	char after[COMMAND_NAME_MAX]; /* the last one that was looked at */
	size_t after_len;
	bool any;
};

static int put_listed(void *context, const struct group_document *document)
{
	struct group_list *list = context;

	memcpy(list->after, document->name.data, document->name.len);
	list->after_len = document->name.len;
	if (!group_is_visible(&list->call->who, document))
		return 0;
	json_put_comma(list->call->body, &list->any);
	return put_group(list->call->body, document);
}

void group_list_read(struct api_call *call)
{
	struct group_list *list = call->detail;
	bool more;

	if (!list) {
		list = query_read(call, NULL, 0) ? call_detail(call, sizeof *list) : NULL;
		if (!list)
			return;
		list->call = call;
		call_slices_begin(call, "[");
	}
	struct span after = {list->after, list->after_len};
	int r = store_page_groups(call->store, after, SLICE_GROUPS, &more, put_listed, list);
	call_slice(call, r, more, "]");
}

void group_begin(struct api_call *call)
{
	if (!form_read_body(call, NULL, 0, NULL) || !query_read(call, NULL, 0) ||
		!call_param_is_name(call, "name"))
		return;
	struct command *command = call_command(call, (enum command_kind)call->route->variant);
	if (command)
		command->group.name = call->params[0];
}

void group_close_finish(struct api_call *call, const struct result *results)
{
	struct group_document document;

	call->reply.event_seq = results[0].event_seq;
	int r = store_read_group(call->store, call->params[0], &document);
	call_reply(call, 200, r < 0 ? r : put_group(call->body, &document));
}

void group_remove_finish(struct api_call *call, const struct result *results)
{
	struct json_object object;

	call->reply.event_seq = results[0].event_seq;
	json_begin(&object, call->body);
	json_member_string(&object, "name", call->params[0]);
	call_reply(call, 200, json_end(&object));
}
