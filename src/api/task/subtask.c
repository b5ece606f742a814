/*
 * Subtasks: what the work on a task creates with the token of its claim, and what came of it.
 *
 * A subtask has no more rights than its parent. What the text of a task says of that is compared here: isolation, work dir, work
 * tree. What columns say is compared by the store, in the turn of the creation: core/task/subtask.c. The worker that claims the
 * subtask compares all of it once more.
 */
#include "api/task/subtask.h"

#include <errno.h>
#include <stdio.h>
#include <string.h>

#include "base/take.h"

enum {
	RESULTS_BYTES_MAX = 256 << 10, /* of all subtasks of one task */
	SUBTASK_BYTES_MAX = 8 << 20,   /* memory to read one of them */
};

#define LEVELS "process|sandbox|container|vm" /* the weakest first */

/* ---- what it may say ---- */

static int level_of(yyjson_val *level)
{
	return yyjson_is_str(level) ? words_find(LEVELS, json_text(level)) : 0;
}

/* Is the directory that one, or beneath it? Neither has links that the server could follow: the worker does. */
static bool is_beneath(struct span path, struct span top)
{
	while (top.len > 1 && top.data[top.len - 1] == '/')
		top.len--;
	for (size_t i = 0; i + 1 < path.len; i++) {
		bool whole = (i == 0 || path.data[i - 1] == '/') && path.data[i] == '.' &&
			path.data[i + 1] == '.' && (i + 2 == path.len || path.data[i + 2] == '/');
		if (whole)
			return false;
	}
	return path.len >= top.len && memcmp(path.data, top.data, top.len) == 0 &&
		(path.len == top.len || path.data[top.len] == '/' || span_equal(top, SPAN("/")));
}

static bool wants_tree(yyjson_val *worktree)
{
	return yyjson_is_true(worktree) || yyjson_is_obj(worktree);
}

static void check_text(struct form *form, yyjson_val *document, yyjson_val *parent)
{
	yyjson_val *level = yyjson_obj_get(document, "isolationLevel");
	yyjson_val *least = yyjson_obj_get(parent, "isolationLevel");
	struct span dir = json_text(yyjson_obj_get(document, "workingDir"));
	struct span top = json_text(yyjson_obj_get(parent, "workingDir"));

	if (yyjson_is_str(level) && level_of(level) < level_of(least))
		form_error(form, "isolationLevel",
			"is weaker than that of the parent, which is %s; a subtask may be as isolated, or more",
			yyjson_get_str(least));
	if (dir.len > 0 && top.len == 0)
		form_error(form, "workingDir",
			"must be left out: the parent has none, and a subtask works in the directory of its parent or beneath it");
	else if (dir.len > 0 && !is_beneath(dir, top))
		form_error(form, "workingDir",
			"must be %.*s, which is that of the parent, or a directory beneath it",
			SPAN_ARGS(top));
	if (wants_tree(yyjson_obj_get(parent, "worktree")) &&
		yyjson_is_false(yyjson_obj_get(document, "worktree")))
		form_error(form, "worktree",
			"must not be false: the parent works in a work tree of its own, and so do its subtasks");
}

/* ---- its budget ---- */

static const char *const budget_parts[] = {"usd", "minutes", "tokens", "turns", "toolCalls"};

enum {
	BUDGET_PARTS = SUBTASK_BUDGET_PARTS,
};

_Static_assert(sizeof budget_parts / sizeof *budget_parts == BUDGET_PARTS, "all parts of a budget");

/* What its attempts have used of each part. Minutes are known to workers alone. */
static void used_of(const struct usage *usage, double ret_used[BUDGET_PARTS])
{
	const int64_t *counts = usage->counts;
	const double used[BUDGET_PARTS] = {(double)counts[USAGE_MICRO_USD] / 1e6, 0,
		(double)(counts[USAGE_INPUT] + counts[USAGE_OUTPUT]), (double)counts[USAGE_TURNS],
		(double)counts[USAGE_TOOL_CALLS]};

	memcpy(ret_used, used, sizeof used);
}

struct left {
	const struct api_call *call;
	double parts[BUDGET_PARTS];
};

/* An open subtask has its budget, one that has ended what it has used. */
static int take_off(void *context, int64_t seq)
{
	struct left *left = context;
	struct task_document document;
	double used[BUDGET_PARTS], part;
	struct arena arena;

	arena_init(&arena, SUBTASK_BYTES_MAX);
	int r = store_read_task(left->call->store, seq, left->call->now, &arena, &document);
	if (r == 0) {
		cleanup(yyjson_doc_free_at) yyjson_doc *doc = task_body_read(document.body, NULL);
		yyjson_val *budget = yyjson_obj_get(yyjson_doc_get_root(doc), "budget");
		bool ended = task_state_is_final(document.task.state);
		used_of(&document.usage, used);
		for (int i = 0; i < BUDGET_PARTS; i++) {
			bool known = json_number(yyjson_obj_get(budget, budget_parts[i]), &part);
			left->parts[i] -= ended ? used[i] : known ? part : 0;
		}
	}
	arena_done(&arena);
	return r == -ENOENT ? 0 : r;
}

/* Of each part that the parent's budget has, the subtask's comes out of what is left. The store compares them: it knows what others, of the
 * same moment, took, and whether the subtask is there already. */
static int fill_budget(struct api_call *call, yyjson_val *document, yyjson_val *parent,
	const struct task_document *own, struct command_create *create)
{
	yyjson_val *whole = yyjson_obj_get(parent, "budget"), *said = yyjson_obj_get(document, "budget");
	struct subtask_budget *budget =
		yyjson_is_obj(whole) ? arena_alloc(call->arena, sizeof *budget) : NULL;
	struct left left = {.call = call};
	double used[BUDGET_PARTS];

	if (!yyjson_is_obj(whole))
		return 0;
	if (!budget)
		return -ENOMEM;
	*budget = (struct subtask_budget){0};
	used_of(&own->usage, used);
	for (uint32_t i = 0; i < BUDGET_PARTS; i++) {
		if (json_number(yyjson_obj_get(whole, budget_parts[i]), &left.parts[i])) {
			budget->limited |= 1u << i;
			left.parts[i] -= used[i];
		}
		if (json_number(yyjson_obj_get(said, budget_parts[i]), &budget->wanted[i]))
			budget->said |= 1u << i;
	}
	int r = store_count_subtasks(call->store, own->task.seq, call->arena, &budget->seen);
	if (r == 0 && own->task.subtasks != SUBTASKS_NONE)
		r = store_each_subtask(call->store, own->task.seq, call->arena, take_off, &left);
	memcpy(budget->left, left.parts, sizeof budget->left);
	create->budget = budget;
	return r;
}

/* Fields that name what is not the work's to give. */
static void check_fields(struct form *form, yyjson_val *document, const struct principal *who)
{
	static const struct {
		const char *name, *why;
	} rows[] = {
		{"owner", "is not for subtasks: no slot is kept for them; leave it out"},
		{"workflow", "is not for subtasks; leave it out"},
		{"blockedByGroups",
			"is not for subtasks: they wait for tasks of their own tree; name these in blockedBy"},
	};
	yyjson_val *parent = yyjson_obj_get(document, "parent");

	for (size_t i = 0; i < sizeof rows / sizeof *rows; i++) {
		yyjson_val *said = yyjson_obj_get(document, rows[i].name);
		if (said && !yyjson_is_null(said))
			form_error(form, rows[i].name, "%s", rows[i].why);
	}
	if (parent && !yyjson_is_null(parent) && !span_equal(json_text(parent), who->task))
		form_error(form, "parent",
			"must be %.*s: the token of a claim creates subtasks of its own task",
			SPAN_ARGS(who->task));
}

/* ---- what it inherits ---- */

static bool says(yyjson_val *document, const char *name)
{
	yyjson_val *said = yyjson_obj_get(document, name);

	return said && !yyjson_is_null(said);
}

static void put_inherited(struct form *form, yyjson_val *document, yyjson_val *parent,
	const struct principal *who, struct command_create *create)
{
	cleanup(buf_done) struct buf text = {.max = 2 * API_TEXT_MAX};
	struct json_object body = {.buf = &text, .any = create->body.len > 0};
	yyjson_val *level = yyjson_obj_get(parent, "isolationLevel"),
		   *tree = yyjson_obj_get(parent, "worktree");

	buf_put_span(&text, create->body);
	if (!says(document, "parent"))
		json_member_string(&body, "parent", who->task);
	if (level && !says(document, "isolationLevel") && json_put_key(&body, "isolationLevel"))
		json_put_value(&text, level);
	if (wants_tree(tree) && says(document, "workingDir") && !says(document, "worktree") &&
		json_put_key(&body, "worktree"))
		json_put_value(&text, tree);
	form_keep_text(form, &text, &create->body);
}

/* Claims of one worker share its principal: the keys of one task are not those of another. */
static bool keep_key(struct api_call *call, struct command_create *create)
{
	cleanup(buf_done) struct buf key = {.max = IDEMPOTENCY_KEY_MAX + 32};

	if (create->idempotency_key.len == 0)
		return true;
	buf_printf(&key, "%lld/", (long long)call->who.task_seq);
	buf_put_span(&key, create->idempotency_key);
	return call_keep(call, &key, &create->idempotency_key) == 0;
}

bool subtask_fill(struct form *form, yyjson_val *document, struct command *command)
{
	struct api_call *call = form_call(form);
	const struct principal *who = &call->who;
	struct task_document own;

	int r = store_read_task(call->store, who->task_seq, call->now, call->arena, &own);
	if (call_has_failed(call, r))
		return false;
	cleanup(yyjson_doc_free_at) yyjson_doc *text = task_body_read(own.body, NULL);
	if (!text)
		return call_refuse_fault(call, -ENOMEM);
	yyjson_val *parent = yyjson_doc_get_root(text);
	check_fields(form, document, who);
	check_text(form, document, parent);
	if (call_has_failed(call, fill_budget(call, document, parent, &own, &command->create)))
		return false;
	if (form->error_count == 0 && form->fault == 0)
		put_inherited(form, document, parent, who, &command->create);
	command->task = who->task;
	command->worker = who->worker;
	command->fence = who->fence;
	command->create.subtask = true;
	if (!keep_key(call, &command->create))
		return false;
	command->create.says_priority = says(document, "priority");
	if (command->create.on_conflict == CONFLICT_REPLACE)
		form_error(form, "onConflict",
			"must not be \"replace\": a subtask cancels no other task; \"existing\" and \"reject\" are allowed");
	if (!says(document, "queue"))
		command->create.queue = (struct span){0};
	return form_is_good(form);
}

/* ---- what the store refused ---- */

const char *subtask_complaint(
	const struct api_call *call, const struct result *result, const char **ret_field, char message[256])
{
	const struct rules *rules = call->rules;
	const char *field = "parent";

	message[0] = 0;
	switch (result->excess) {
	case EXCESS_NONE:
		return NULL;
	case EXCESS_CHILDREN:
		snprintf(message, 256,
			"has %u subtasks already, which is as many as one task may create (task.childrenMax)",
			rules->task_children);
		break;
	case EXCESS_LEVELS:
		snprintf(message, 256, "is on the last of %d levels: a task so deep in its tree creates none",
			SUBTASK_LEVELS_MAX);
		break;
	case EXCESS_TREE:
		snprintf(message, 256,
			"is of a tree that has %u tasks already, which is as many as a tree may have (task.treeMax)",
			rules->task_tree);
		break;
	case EXCESS_PRIORITY:
		field = "priority";
		snprintf(message, 256, "must not be higher than that of the parent");
		break;
	case EXCESS_EXECUTOR:
		field = "executor";
		snprintf(message, 256,
			"must be that of the parent, or one that \"subtasks\" of the parent's executor names in the configuration of its worker");
		break;
	case EXCESS_CREDENTIAL:
		field = "credential";
		snprintf(message, 256, "must be that of the parent; leave it out to inherit it");
		break;
	case EXCESS_QUEUE:
		field = "queue";
		snprintf(message, 256,
			"must be that of the parent: neither names an executor, and another queue may have another one");
		break;
	case EXCESS_GROUP:
		field = "group";
		snprintf(message, 256, "must be that of the parent, or be left out");
		break;
	case EXCESS_PARENTS:
		field = "blockedBy";
		snprintf(message, 256, "names %.*s, which is not a task of its own tree",
			SPAN_ARGS(result->id));
		break;
	case EXCESS_KEY:
		field = "concurrencyKey";
		snprintf(message, 256,
			"is that of %.*s, above it, and the queue takes the tasks of a key one after the other (sequential): it would wait for itself; leave it out or name another",
			SPAN_ARGS(result->id));
		break;
	case EXCESS_BUDGET:
		field = "budget";
		if (result->budget_left <= 0)
			snprintf(message, 256, "is out of that of the parent, which has no %s left",
				budget_parts[result->budget_part]);
		else
			snprintf(message, 256, "must have %s, at most %.6g: that is what the parent has left",
				budget_parts[result->budget_part], result->budget_left);
		break;
	}
	*ret_field = field;
	return message;
}

/* ---- what came of them ---- */

struct shown {
	const struct api_call *call;
	struct json_object *object;
	size_t left; /* bytes for results */
	bool any;
};

static int put_one(void *context, int64_t seq)
{
	struct shown *shown = context;
	struct task_document document;
	struct json_object one;
	struct arena arena;

	arena_init(&arena, SUBTASK_BYTES_MAX);
	int r = store_read_task(shown->call->store, seq, shown->call->now, &arena, &document);
	if (r == 0) {
		json_put_comma(shown->object->buf, &shown->any);
		json_begin(&one, shown->object->buf);
		json_member_string(&one, "id", document.id);
		json_member_cstr(&one, "state", task_state_name(document.task.state));
		result_put_cut(&one, task_result(&document), &shown->left);
		r = json_end(&one);
	}
	arena_done(&arena);
	return r == -ENOENT ? 0 : r; /* it was removed */
}

void subtasks_put(const struct api_call *call, struct json_object *object, const struct task *task)
{
	struct shown shown = {.call = call, .object = object, .left = RESULTS_BYTES_MAX};

	if (!json_put_key(object, "children"))
		return;
	buf_put_byte(object->buf, '[');
	if (task->subtasks != SUBTASKS_NONE)
		json_note(object, store_each_subtask(call->store, task->seq, call->arena, put_one, &shown));
	buf_put_byte(object->buf, ']');
}

static void put_text_of(struct json_object *object, const char *key, yyjson_val *text)
{
	yyjson_val *value = yyjson_obj_get(text, key);

	if (value && json_put_key(object, key))
		json_put_value(object->buf, value);
}

/* A parent that was removed said nothing more: its subtasks run on their own. */
void subtask_put_parent(const struct api_call *call, struct json_object *object, const struct task *task)
{
	struct task_document parent;
	struct json_object said;
	int r = store_read_task(call->store, task->subtask_of, call->now, call->arena, &parent);

	if (r < 0 || !json_put_key(object, "parent")) {
		json_note(object, r == -ENOENT ? 0 : r);
		return;
	}
	cleanup(yyjson_doc_free_at) yyjson_doc *doc = task_body_read(parent.body, object->buf);
	yyjson_val *text = yyjson_doc_get_root(doc);
	json_begin(&said, object->buf);
	json_member_string(&said, "id", parent.id);
	json_member_string(&said, "queue", name_of(call, parent.task.queue));
	if (parent.task.executor != 0)
		json_member_string(&said, "executor", name_of(call, parent.task.executor));
	put_text_of(&said, "isolationLevel", text);
	put_text_of(&said, "workingDir", text);
	json_note(object, json_end(&said));
}
