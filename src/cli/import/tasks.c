/*
 * stint import tasks: the lines of stint export become tasks again, of the same ids.
 *
 * A task can wait only for tasks that exist, so each is added behind those of the file that it waits for. What its attempts did does not
 * come along: a claim of another server cannot be proved here. What a person had to look at is parked, so that nothing starts by itself.
 */
#include <string.h>

#include "base/take.h"
#include "cli/import/things.h"
#include "cli/verb/verbs.h"

struct tasks {
	struct cli *cli;
	struct things things;
	struct intake intake;
	const char *file;
};

/* What a task is given when it is made; all else of a document is the server's. */
static const char *const taken[] = {"queue", "payload", "description", "instructions", "steps",
	"deliverables", "workingDir", "model", "thinking", "owner", "requires", "priority", "executor",
	"module", "isolationLevel", "group", "blockedByGroups", "onParentFailure", "notBefore", "startBy",
	"finishBy", "timeoutMs", "maxAttempts", "uniqueKey", "onConflict", "uniqueForMs", "concurrencyKey",
	"credential", "budget", "labels", "workflow", "gates", "worktree", "env", "traceparent", "metadata"};

static const char *why_over(struct cli *cli, const struct thing *thing)
{
	struct span state = intake_text(cli, thing->place, thing->value, "state");
	static const struct {
		const char *state, *why;
	} finals[] = {{"done", "it is done"}, {"failed", "it has failed"}, {"cancelled", "it was cancelled"}};

	for (size_t i = 0; i < sizeof finals / sizeof *finals; i++) {
		if (span_is(state, finals[i].state))
			return finals[i].why;
	}
	if (intake_text(cli, thing->place, thing->value, "parent").len > 0)
		return "it is a subtask: the work on its parent makes it again";
	return NULL;
}

static void read_file(struct tasks *tasks)
{
	struct span text = intake_read_file(tasks->cli, tasks->file);
	uint32_t number = 0;

	for (size_t at = 0, end; at < text.len; at = end + 1) {
		const char *newline = memchr(text.data + at, '\n', text.len - at);
		end = newline ? (size_t)(newline - text.data) : text.len;
		struct span line = {text.data + at, end - at};
		number++;
		while (line.len > 0 && strchr(" \t\r", line.data[line.len - 1]))
			line.len--;
		if (line.len == 0)
			continue;
		struct intake_place place = {tasks->file, number, 1};
		struct thing *thing = things_add(
			&tasks->things, intake_read_value(tasks->cli, tasks->file, text, line), place);
		thing->over = why_over(tasks->cli, thing);
	}
}

static bool parent_of(struct cli *cli, const struct thing *thing, size_t n, const char **ret_id)
{
	yyjson_val *id = yyjson_arr_get(field_get(thing->value, "blockedBy"), n);

	*ret_id = yyjson_is_str(id) ? cli_text(cli, "%.*s", SPAN_ARGS(json_text(id))) : NULL;
	return id != NULL;
}

/* Those that still hold it back. One that is over and did not end well is left out, and the task is parked: a person decides. */
static bool put_parents(struct tasks *tasks, const struct thing *thing, struct json_object *task)
{
	bool any = false, parks = false;
	const char *id;

	if (yyjson_arr_size(field_get(thing->value, "blockedBy")) == 0)
		return false;
	json_put_key(task, "blockedBy");
	buf_put_byte(task->buf, '[');
	for (size_t n = 0; parent_of(tasks->cli, thing, n, &id); n++) {
		const struct thing *parent = id ? things_named(&tasks->things, id) : NULL;
		bool is_over = parent && parent->over;
		parks = parks || (is_over && !span_is(field_text(parent->value, "state"), "done"));
		if (!id || is_over)
			continue;
		json_put_comma(task->buf, &any);
		json_put_string(task->buf, span_of(id));
	}
	buf_put_byte(task->buf, ']');
	return parks;
}

static void put_task(void *context, const struct thing *thing)
{
	struct tasks *tasks = context;
	struct span state = field_text(thing->value, "state");
	struct json_object *task = intake_begin(&tasks->intake, thing->id,
		intake_text(tasks->cli, thing->place, thing->value, "title"), thing->place);
	size_t at, count;
	yyjson_val *key, *value;

	yyjson_obj_foreach(thing->value, at, count, key, value)
	{
		for (size_t i = 0; i < sizeof taken / sizeof *taken && !yyjson_is_null(value); i++) {
			if (yyjson_equals_str(key, taken[i]))
				json_member_node(task, key, value);
		}
	}
	bool parks = put_parents(tasks, thing, task);
	if (parks || span_is(state, "pending") || span_is(state, "blocked") || span_is(state, "review"))
		json_member_string(task, "state", SPAN("pending"));
	intake_end(&tasks->intake);
}

static int run_tasks(struct cli *cli)
{
	struct tasks tasks = {.cli = cli, .file = args_plain(&cli->args, 0)};

	things_open(&tasks.things, cli, "task");
	tasks.things.parent = parent_of;
	intake_open(&tasks.intake, cli, "task");
	read_file(&tasks);
	things_pass(&tasks.things, &tasks.intake, put_task, &tasks);
	int r = intake_finish(&tasks.intake);
	intake_close(&tasks.intake);
	things_close(&tasks.things);
	return r;
}

static const struct flag flags[] = {
	INTAKE_DRY_RUN,
	{0},
};

const struct verb verb_import_tasks = {
	.name = "import tasks",
	.arguments = "FILE",
	.offer = OFFER_FILES,
	.gives = GIVES_JSON,
	.brief = "what stint export printed",
	.text = "Makes tasks of the lines of FILE, each the document of a task as stint export prints it, with the same ids. Everything is checked before anything is "
		"changed. A task that is there already stays as it is: the import may be repeated, and goes on where it was cut off.\n"
		"\n"
		"Finished tasks are left out, and so are subtasks, which the work on their parent makes again. What was in work is ready here, because no claim "
		"of another server can be proved. What was blocked or in review, or waited for a task that failed, is parked: stint unpark lets it go on.",
	.flags = flags,
	.examples = "stint import tasks tasks.jsonl --dry-run\n"
		    "stint import tasks tasks.jsonl\n",
	.run = run_tasks,
};
