/*
 * What an operator does to items: change them, remove them, say which queues an agent works for.
 *
 * The original lets an admin write any status over any other. Here a status is reached by the moves that lead there,
 * each with its event: what is held is called off and opened again, what is over is opened again, what nobody holds is
 * parked. What only its holder can say (that it is done, that it is in progress) is refused.
 */
#include "api/task/form.h"
#include "api/door/workqueue/workqueue.h"

#include <errno.h>
#include <stdio.h>

#include "base/take.h"

enum {
	MOVES_MAX = 3,
	TRIES_MAX = 10, /* when others are faster */
	SLOTS_READ = 200,
};

/* ---- update -------------------------------------------------------------------------------------------------- */

struct updating {
	struct span item, status;
	struct span patch; /* of the text, as JSON; empty: it stays */
	bool set_priority;
	int64_t priority;
	uint32_t tries;
};

struct item_patch {
	struct span title, instructions, status;
	int64_t priority;
};

static const struct field patch_fields[] = {
	ITEM_TEXT(item_patch, title, "title", TITLE_BYTES_MAX),
	ITEM_TEXT(item_patch, instructions, "instructions", API_TEXT_MAX),
	ITEM_WHOLE(item_patch, priority, "priority", INT32_MIN, INT32_MAX),
	ITEM_TEXT(item_patch, status, "status", 32),
};

enum { GIVES_TITLE = 1 << 0, GIVES_INSTRUCTIONS = 1 << 1, GIVES_PRIORITY = 1 << 2 };

static void read_patch(struct form *form, yyjson_val *object, struct updating *updating)
{
	cleanup(buf_done) struct buf text = {.max = 4 * API_TEXT_MAX};
	struct item_patch patch = {0};
	struct json_object members;

	form->tolerant = true;
	uint64_t given = object ? form_read(form, object, FIELDS(patch_fields), &patch) : 0;
	json_begin(&members, &text);
	if (given & GIVES_TITLE)
		json_member_string(&members, "title", patch.title.len > 0 ? patch.title : SPAN("(untitled)"));
	if (given & GIVES_INSTRUCTIONS)
		json_member_string(&members, "instructions", patch.instructions);
	json_end(&members);
	if (given & (GIVES_TITLE | GIVES_INSTRUCTIONS))
		form_keep_text(form, &text, &updating->patch);
	updating->set_priority = given & GIVES_PRIORITY;
	updating->priority = patch.priority;
	updating->status = patch.status;
}

/* Is the request good, and does it name an item? False: the call was refused. */
static bool names_item(struct form *form, struct span id)
{
	if (!form_is_good(form))
		return false;
	if (id.len == 0)
		workqueue_missing(form_call(form), "itemId_required", "\"itemId\" says which item is meant");
	return id.len > 0;
}

void workqueue_update_begin(struct api_call *call)
{
	cleanup(form_done) struct form form = {0};
	struct updating *updating = call_detail(call, sizeof *updating);

	call->query_taken = true;
	if (!updating || !form_open(&form, call, false))
		return;
	yyjson_val *patch = yyjson_obj_get(form.root, "patch");
	updating->item = workqueue_text(&form, "itemId");
	if (patch && !yyjson_is_obj(patch))
		form_error(&form, "patch", "must be an object");
	else
		read_patch(&form, patch, updating);
	if (!names_item(&form, updating->item))
		return;
	if (updating->status.len > 0 && item_states(updating->status) == 0)
		workqueue_missing(call, "invalid_status",
			"\"status\" must be one of ready, pending, claimed, in_progress, done, failed");
	else
		call->step = API_READ;
}

static bool is_held(enum task_state state)
{
	return task_state_may_hold_claim(state) || state == TASK_REVIEW;
}

/* The moves from that state to the status; -1: no moves lead there. */
static int moves_to(enum task_state from, struct span status, enum command_kind ret_moves[MOVES_MAX])
{
	bool parks = span_equal(status, SPAN("pending"));
	int count = 0;

	if (span_equal(span_of(item_status(from)), status) && from != TASK_BLOCKED)
		return 0;
	if (span_equal(status, SPAN("failed"))) {
		ret_moves[count++] = COMMAND_CANCEL;
		return from == TASK_DONE ? -1 : count;
	}
	if (!parks && !span_equal(status, SPAN("ready")))
		return -1;
	if (is_held(from))
		ret_moves[count++] = COMMAND_CANCEL;
	if (is_held(from) || from == TASK_BLOCKED || task_state_is_final(from))
		ret_moves[count++] = COMMAND_RETRY;
	if (parks)
		ret_moves[count++] = COMMAND_PARK;
	else if (from == TASK_PENDING)
		ret_moves[count++] = COMMAND_UNPARK;
	return count > 0 ? count : -1; /* it becomes ready by itself, or not at all */
}

static void fill_update(const struct updating *updating, const struct task_document *document,
	struct span body, struct command *command)
{
	command->kind = COMMAND_UPDATE;
	command->task = updating->item;
	command->update.patch.set_priority = updating->set_priority;
	command->update.patch.priority = (int32_t)updating->priority;
	if (updating->patch.len == 0)
		return;
	command->update.set_body = true;
	command->update.body = body;
	command->update.body_version = document->task.version;
}

static void refuse_move(struct api_call *call, enum task_state from, struct span status)
{
	char text[256];

	snprintf(text, sizeof text,
		"the item is %s, and an operator cannot make it %.*s: claim-next claims it, and the agent that holds it reports how it goes",
		item_status(from), SPAN_ARGS(status));
	api_refuse(call, REFUSED_BAD_TRANSITION, text);
}

void workqueue_update_read(struct api_call *call)
{
	const struct updating *updating = call->detail;
	enum command_kind moves[MOVES_MAX];
	struct task_document document;
	struct span body = {0};
	int count = 0;

	if (!workqueue_find(call, updating->item, &document))
		return;
	if (updating->status.len > 0)
		count = moves_to(document.task.state, updating->status, moves);
	if (count < 0) {
		refuse_move(call, document.task.state, updating->status);
		return;
	}
	int r = updating->patch.len > 0 ? task_body_merge(call->arena, document.body, updating->patch, &body)
					: 0;
	if (call_has_failed(call, r))
		return;
	bool changes = updating->set_priority || updating->patch.len > 0;
	if (!changes && count == 0) {
		item_reply_document(call, &document);
		return;
	}
	if (!call_commands(call, (uint32_t)count + changes))
		return;
	if (changes)
		fill_update(updating, &document, body, &call->commands[0]);
	for (int i = 0; i < count; i++) {
		struct command *command = &call->commands[i + changes];
		command->kind = moves[i];
		command->task = updating->item;
		command->note = SPAN("\"operator\":true");
	}
}

void workqueue_update_finish(struct api_call *call, const struct result *results)
{
	struct updating *updating = call->detail;
	uint32_t last = call->command_count - 1;

	if (results[0].refusal == REFUSED_VERSION_MISMATCH && updating->tries++ < TRIES_MAX) {
		workqueue_update_read(call);
		return;
	}
	for (uint32_t i = 0; i <= last; i++) {
		if (call_is_refused(call, &results[i]))
			return;
	}
	item_reply(call, &results[last], false, (struct span){0});
}

/* ---- delete --------------------------------------------------------------------------------------------------- */

struct deleting {
	struct span item;
	struct span shown; /* as it was: the answer */
};

void workqueue_delete_begin(struct api_call *call)
{
	cleanup(form_done) struct form form = {0};
	struct deleting *deleting = call_detail(call, sizeof *deleting);

	call->query_taken = true;
	if (!deleting || !form_open(&form, call, false))
		return;
	deleting->item = workqueue_text(&form, "itemId");
	if (names_item(&form, deleting->item))
		call->step = API_READ;
}

/* An item that has not ended is cancelled first, so that tasks that wait for it learn of its end. */
void workqueue_delete_read(struct api_call *call)
{
	struct deleting *deleting = call->detail;
	cleanup(buf_done) struct buf shown = {.max = 16 * API_TEXT_MAX};
	struct task_document document;

	if (!workqueue_find(call, deleting->item, &document))
		return;
	int r = item_put(call, &shown, &document, false);
	if (r == 0)
		r = buf_keep(&shown, call->arena, &deleting->shown);
	if (call_has_failed(call, r))
		return;
	bool open = !task_state_is_final(document.task.state);
	if (!call_commands(call, open ? 2 : 1))
		return;
	for (uint32_t i = 0; i < call->command_count; i++) {
		call->commands[i].kind = open && i == 0 ? COMMAND_CANCEL : COMMAND_PURGE;
		call->commands[i].task = deleting->item;
	}
}

void workqueue_delete_finish(struct api_call *call, const struct result *results)
{
	const struct deleting *deleting = call->detail;
	const struct result *last = &results[call->command_count - 1];
	bool is_stopping = last->refusal == REFUSED_BAD_TRANSITION && last->task.claim.stopping;

	if (!call_require(call, !is_stopping, REFUSED_BAD_TRANSITION,
		    "its worker was told to stop; delete it again when it has, or when its lease has ended") ||
		call_is_refused(call, last))
		return;
	buf_put_span(call->body, SPAN("{\"ok\":true,\"item\":"));
	buf_put_span(call->body, deleting->shown);
	buf_put_byte(call->body, '}');
	call->reply.event_seq = last->event_seq;
	call_reply(call, 200, 0);
}

/* ---- assignments ------------------------------------------------------------------------------------------------ */

static void fill_assign(struct api_call *call, struct span agent, struct name_list queues)
{
	cleanup(buf_done) struct buf note = {.max = 8 * COMMAND_LIST_MAX * COMMAND_NAME_MAX};

	struct command *command = call_command(call, COMMAND_SLOT_ASSIGN);
	if (!command)
		return;
	command->assign.slot = agent;
	command->assign.queues = queues;
	buf_put_span(&note, SPAN("\"queues\":"));
	json_put_strings(&note, queues.items, queues.count);
	call_keep(call, &note, &command->note);
}

void workqueue_assign_begin(struct api_call *call)
{
	cleanup(form_done) struct form form = {0};

	call->query_taken = true;
	if (!form_open(&form, call, false))
		return;
	struct span agent = workqueue_text(&form, "agentId");
	struct name_list queues = field_queues(&form, form.root, "queues");
	if (form.error_count == 0 && !text_is_name(agent, COMMAND_ID_MAX))
		form_error(&form, "agentId", "is required: 1 to %d bytes without control characters",
			COMMAND_ID_MAX);
	if (form.error_count == 0 && queues.count == 0)
		form_error(&form, "queues", "is required: a list of at least one queue");
	if (form_is_good(&form))
		fill_assign(call, agent, queues);
}

void workqueue_assign_finish(struct api_call *call, const struct result *results)
{
	const struct command *command = &call->commands[0];

	(void)results;
	buf_put_span(call->body, SPAN("{\"ok\":true,\"agentId\":"));
	json_put_string(call->body, command->assign.slot);
	buf_put_span(call->body, SPAN(",\"queues\":"));
	json_put_strings(call->body, command->assign.queues.items, command->assign.queues.count);
	buf_put_byte(call->body, '}');
	call_reply(call, 200, 0);
}

struct assignments {
	struct api_call *call;
	int64_t after;
	bool any;
};

/* "agent":["a","b"] */
static int put_assigned(void *context, struct span slot, struct span queues)
{
	struct assignments *assignments = context;
	struct buf *body = assignments->call->body;
	struct span queue;
	bool any = false;

	json_put_comma(body, &assignments->any);
	json_put_string(body, slot);
	buf_put_span(body, SPAN(":["));
	while (assigned_next(&queues, &queue)) {
		json_put_comma(body, &any);
		json_put_string(body, queue);
	}
	return buf_put_byte(body, ']');
}

void workqueue_assignments_read(struct api_call *call)
{
	struct assignments *assignments = call_detail(call, sizeof *assignments);

	call->query_taken = true;
	if (!assignments)
		return;
	if (!assignments->call)
		call_slices_begin(call, "{\"ok\":true,\"assignments\":{");
	assignments->call = call;
	int r = store_page_assignments(
		call->store, &assignments->after, SLOTS_READ, put_assigned, assignments);
	call_slice(call, r, assignments->after != 0, "}}");
}
