/*
 * stint import clawhub: the tasks of slot workers, from the files that their bridge keeps.
 *
 * tasks.json has the tasks: a list, or an object with a list "tasks", in the words of either generation of the bridge. Next to it,
 * worker-heartbeats.json says which slot works on which task. Nothing about a worker is taken over, because only a heartbeat of its own
 * says that it lives; but a task in work is made ready for its slot, and its metadata says what the last session was, as a recovery of
 * the bridge would write it. A slot that has beaten a moment ago still works: the person is told.
 */
#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "base/clock.h"
#include "base/iso_time.h"
#include "base/take.h"
#include "cli/import/things.h"
#include "cli/verb/verbs.h"

enum {
	STALE_MS = 90 * 1000, /* of a heartbeat, there */
	WORKERS_MAX = 1000,
};

#define TASKS_FILE      "tasks.json"
#define HEARTBEATS_FILE "worker-heartbeats.json"

struct clawhub {
	struct cli *cli;
	struct things things;
	struct intake intake;
	const char *tasks_file, *heartbeats_file;
	yyjson_val *workers; /* of the heartbeats: a map, or a list; NULL: there is no such file */
};

/* ---- the files ------------------------------------------------------------------------------------------------- */

static void find_files(struct clawhub *hub)
{
	struct cli *cli = hub->cli;
	const char *given = args_plain(&cli->args, 0), *workspace = getenv("OPENCLAW_WORKSPACE"),
		   *home = getenv("HOME");
	const char *at = given;

	if (!at)
		at = workspace && workspace[0] ? workspace
					       : cli_text(cli, "%s/.openclaw/workspace", home ? home : "");
	const char *inner = cli_text(cli, "%s/.clawhub", at);
	if (access(inner, F_OK) == 0)
		at = inner;
	const char *tasks = cli_text(cli, "%s/" TASKS_FILE, at);
	const char *slash = strrchr(at, '/');
	bool is_file = access(tasks, F_OK) != 0 && given && errno == ENOTDIR;
	const char *directory = !is_file ? at : slash ? cli_text(cli, "%.*s", (int)(slash - at), at) : ".";
	hub->tasks_file = is_file ? at : tasks;
	hub->heartbeats_file = cli_text(cli, "%s/" HEARTBEATS_FILE, directory);
}

static void read_heartbeats(struct clawhub *hub)
{
	if (access(hub->heartbeats_file, F_OK) != 0)
		return;
	struct span text = intake_read_file(hub->cli, hub->heartbeats_file);
	yyjson_val *root = intake_read_value(hub->cli, hub->heartbeats_file, text, text);
	hub->workers = yyjson_is_arr(root) ? root : field_get(root, "workers");
	if (!yyjson_is_obj(hub->workers) && !yyjson_is_arr(hub->workers))
		intake_die(hub->cli, intake_place(hub->heartbeats_file, text, 0),
			"this must have \"workers\", an object or a list");
	if (yyjson_get_len(hub->workers) > WORKERS_MAX)
		intake_die(hub->cli, intake_place(hub->heartbeats_file, text, 0), "more than %d workers",
			WORKERS_MAX);
}

/* ---- workers ---------------------------------------------------------------------------------------------------- */

/* Walks the workers of either form. Start with *at = 0; NULL behind the last one. */
static yyjson_val *next_worker(const struct clawhub *hub, size_t *at, struct span *ret_slot)
{
	size_t i, limit;
	yyjson_val *key, *value, *worker = yyjson_arr_get(hub->workers, *at);

	*ret_slot = field_text(worker, "slot");
	if (worker && ret_slot->len == 0)
		*ret_slot = field_text(worker, "id");
	if (yyjson_is_obj(hub->workers)) {
		yyjson_obj_foreach(hub->workers, i, limit, key, value)
		{
			if (i != *at)
				continue;
			*ret_slot = json_text(key);
			worker = value;
		}
	}
	(*at)++;
	return worker;
}

/* When it beat last; 0: nobody knows. */
static int64_t beat_of(yyjson_val *worker)
{
	int64_t ms = field_int(worker, "lastUpdate", 0);
	struct span text = field_text(worker, "lastBeatAt");

	return ms > 0 || text.len == 0 || iso_time_read(text, &ms) == 0 ? ms : 0;
}

/* Who works on the task? NULL: nobody that the heartbeats know. */
static yyjson_val *worker_on(const struct clawhub *hub, const char *task)
{
	struct span slot;
	size_t at = 0;

	for (yyjson_val *worker; (worker = next_worker(hub, &at, &slot));) {
		if (span_is(field_text(worker, "task"), task))
			return worker;
	}
	return NULL;
}

/* Each slot by the command that fills it; and a warning about those that still work there. */
static void say_slots(const struct clawhub *hub)
{
	struct cli *cli = hub->cli;
	struct span slot;
	size_t at = 0;

	for (yyjson_val *worker; (worker = next_worker(hub, &at, &slot));) {
		int64_t age_ms = cli->now_ms - beat_of(worker);
		const char *name = cli_text(cli, "%.*s", SPAN_ARGS(slot));
		bool lives = !span_is(field_text(worker, "status"), "offline") && age_ms < STALE_MS;
		if (lives)
			cli_say(cli,
				"stint: %s beat %lld s ago: stop that worker before one of stint takes its tasks, or both do the same work",
				cli_quote(cli, name), (long long)(age_ms > 0 ? age_ms / 1000 : 0));
		cli_say(cli, "%s: stint worker --slot %s", name, cli_quote(cli, name));
	}
}

/* ---- a task ------------------------------------------------------------------------------------------------------ */

enum lane { LANE_READY, LANE_WORKING, LANE_PARKED, LANE_OVER, LANE_UNKNOWN };

/* The words of both generations. What waits for a person's look there is parked here: no worker gets it by itself. */
static enum lane lane_of(struct span status)
{
	static const struct {
		const char *word;
		enum lane lane;
	} words[] = {{"todo", LANE_READY}, {"queued", LANE_READY}, {"in-progress", LANE_WORKING},
		{"development", LANE_WORKING}, {"proposed", LANE_PARKED}, {"review", LANE_PARKED},
		{"blocked", LANE_PARKED}, {"done", LANE_OVER}};

	for (size_t i = 0; i < sizeof words / sizeof *words; i++) {
		if (span_is(status, words[i].word))
			return words[i].lane;
	}
	return status.len == 0 ? LANE_READY : LANE_UNKNOWN;
}

static bool parent_of(struct cli *cli, const struct thing *thing, size_t n, const char **ret_id)
{
	yyjson_val *list = field_get(thing->value, "blockedBy");

	if (!yyjson_is_arr(list))
		list = field_get(thing->value, "dependsOn");
	yyjson_val *id = yyjson_arr_get(list, n);
	if (id && !yyjson_is_str(id))
		intake_die(cli, thing->place, "what %s depends on must be a list of ids", thing->id);
	*ret_id = id ? yyjson_get_str(id) : NULL;
	return id != NULL;
}

static void put_priority(const struct clawhub *hub, const struct thing *thing, struct json_object *task)
{
	yyjson_val *value = field_get(thing->value, "priority");
	const char *word = yyjson_get_str(value);
	double number = 0;
	int64_t priority = 0;

	if (!value || yyjson_is_null(value))
		return;
	if (json_number(value, &number) && number >= INT32_MIN && number <= INT32_MAX)
		priority = (int64_t)(number < 0 ? number - 0.5 : number + 0.5);
	else if (!word || args_priority(word, &priority) < 0)
		intake_die(hub->cli, thing->place,
			"\"priority\" of %s must be a number, P0 to P3, or urgent, high, normal or low",
			thing->id);
	json_member_int(task, "priority", priority);
}

/* Members that a task has too are taken as they are; the server says what is wrong with one. */
static void put_members(const struct thing *thing, struct json_object *task)
{
	static const char *const same[] = {"description", "instructions", "deliverables", "steps", "model",
		"thinking", "workingDir", "timeoutMs"};

	for (size_t i = 0; i < sizeof same / sizeof *same; i++) {
		yyjson_val *value = field_get(thing->value, same[i]);
		if (value && !yyjson_is_null(value)) {
			json_put_key(task, same[i]);
			json_put_value(task->buf, value);
		}
	}
	yyjson_val *tags = field_get(thing->value, "tags");
	if (yyjson_is_arr(tags) && yyjson_arr_size(tags) > 0) {
		json_put_key(task, "labels");
		json_put_value(task->buf, tags);
	}
}

/* What the task had there, what a recovery of the bridge would add, and where it comes from. */
static void put_metadata(const struct clawhub *hub, const struct thing *thing, struct json_object *task)
{
	yyjson_val *worker = worker_on(hub, thing->id), *metadata = field_get(thing->value, "metadata"), *key,
		   *value;
	static const char *const kept[] = {"status", "createdAt", "updatedAt", "statusHistory", "comments"};
	struct json_object all, origin;
	size_t i, limit;

	json_put_key(task, "metadata");
	json_begin(&all, task->buf);
	yyjson_obj_foreach(metadata, i, limit, key, value)
	{
		if (!yyjson_equals_str(key, "importedFrom") && !yyjson_equals_str(key, "crashRecovery") &&
			!yyjson_equals_str(key, "previousSession") && !yyjson_equals_str(key, "recoveredAt"))
			json_member_node(&all, key, value);
	}
	if (lane_of(field_text(thing->value, "status")) == LANE_WORKING) {
		json_member_bool(&all, "crashRecovery", true);
		json_member_string_if_any(&all, "previousSession", field_text(worker, "sessionId"));
		json_member_int(&all, "recoveredAt", hub->cli->now_ms);
	}
	json_put_key(&all, "importedFrom");
	json_begin(&origin, task->buf);
	json_member_string(&origin, "system", SPAN("clawhub"));
	for (i = 0; i < sizeof kept / sizeof *kept; i++) {
		value = field_get(thing->value, kept[i]);
		if (value) {
			json_put_key(&origin, kept[i]);
			json_put_value(task->buf, value);
		}
	}
	json_end(&origin);
	json_end(&all);
}

static void put_task(void *context, const struct thing *thing)
{
	struct clawhub *hub = context;
	struct span owner = intake_text(hub->cli, thing->place, thing->value, "owner");
	struct json_object *task = intake_begin(&hub->intake, thing->id,
		intake_text(hub->cli, thing->place, thing->value, "title"), thing->place);

	put_members(thing, task);
	put_priority(hub, thing, task);
	json_member_string_if_any(task, "owner", owner);
	if (lane_of(field_text(thing->value, "status")) == LANE_PARKED)
		json_member_string(task, "state", SPAN("pending"));
	things_put_parents(&hub->things, thing, task);
	put_metadata(hub, thing, task);
	cli_member_flags(hub->cli, task);
	intake_end(&hub->intake);
}

/* ---- all of it ---------------------------------------------------------------------------------------------------- */

static int64_t created_ms(const struct thing *thing)
{
	struct span text = field_text(thing->value, "createdAt");
	int64_t ms = field_int(thing->value, "createdAt", 0);

	return text.len == 0 || iso_time_read(text, &ms) == 0 ? ms : 0;
}

/* The older one first: among equals that is the order of claims, there and here. */
static int compare(const void *a, const void *b)
{
	const struct thing *first = a, *second = b;
	int64_t one = created_ms(first), other = created_ms(second);

	if (one != other)
		return one < other ? -1 : 1;
	return first->place.line != second->place.line
		? (first->place.line < second->place.line ? -1 : 1)
		: (first->place.column < second->place.column ? -1 : 1);
}

static void read_tasks(struct clawhub *hub)
{
	struct cli *cli = hub->cli;
	struct span text = intake_read_file(cli, hub->tasks_file);
	struct intake_walk walk;
	struct intake_place place;
	struct things in_file;

	if (!intake_walk_open(&walk, cli, hub->tasks_file, text, "tasks"))
		intake_die(cli, intake_place(hub->tasks_file, text, 0),
			"this must be a list of tasks, or have \"tasks\"");
	things_open(&in_file, cli, "task");
	for (yyjson_val *value; (value = intake_walk_next(&walk, &place));)
		things_add(&in_file, value, place);
	if (things_count(&in_file) > 0)
		qsort(in_file.list.data, things_count(&in_file), sizeof(struct thing), compare);
	for (size_t i = 0; i < things_count(&in_file); i++) {
		const struct thing *found = things_at(&in_file, i);
		struct thing *thing = things_add(&hub->things, found->value, found->place);
		struct span status = intake_text(cli, thing->place, thing->value, "status");
		enum lane lane = lane_of(status);
		if (lane == LANE_UNKNOWN)
			intake_die(cli, thing->place,
				"\"status\" of %s must be todo, in-progress, review, blocked, done, proposed, queued or development; "
				"it is %.*s",
				thing->id, SPAN_ARGS(status));
		thing->over = lane == LANE_OVER ? "it is done" : NULL;
	}
	things_close(&in_file);
}

static int run_clawhub(struct cli *cli)
{
	struct clawhub hub = {.cli = cli};

	find_files(&hub);
	things_open(&hub.things, cli, "task");
	hub.things.parent = parent_of;
	intake_open(&hub.intake, cli, "task");
	read_heartbeats(&hub);
	read_tasks(&hub);
	things_pass(&hub.things, &hub.intake, put_task, &hub);
	int r = intake_finish(&hub.intake);
	say_slots(&hub);
	intake_close(&hub.intake);
	things_close(&hub.things);
	return r;
}

static const struct flag flags[] = {
	INTAKE_DRY_RUN,
	{"queue", 'Q', FLAG_TEXT, OFFER_QUEUES, .value = "NAME",
		.text = "the queue of the tasks (default \"default\")", .member = "queue"},
	{0},
};

const struct verb verb_import_clawhub = {
	.name = "import clawhub",
	.arguments = "[PATH]",
	.offer = OFFER_FILES,
	.gives = GIVES_JSON,
	.brief = "tasks of slot workers",
	.text = "Takes over the tasks of slot workers: tasks.json and worker-heartbeats.json in PATH, in PATH/.clawhub, or in .clawhub of "
		"${OPENCLAW_WORKSPACE:-~/.openclaw/workspace}; or PATH is the file of tasks. Everything is checked before anything is changed.\n"
		"\n"
		"A task that is not done becomes a task of the same id for the same slot, the older first. todo, queued, in-progress and "
		"development are ready: no claim of theirs can be proved; the metadata of one that was in work says which session had it. proposed, "
		"review and blocked are parked until stint unpark. Of the heartbeats nothing is taken over: each slot is printed with the command "
		"that starts a worker of stint in it. A task that is there already stays as it is: the import may be repeated.",
	.flags = flags,
	.examples = "stint import clawhub --dry-run\n"
		    "stint import clawhub ~/.openclaw/workspace/.clawhub\n",
	.run = run_clawhub,
};
