/*
 * stint import beads: the issues of a beads tracker become tasks.
 *
 * The tracker keeps a file with one issue in a line. An issue that is not closed becomes a task of the same id; what it says to be blocked
 * by becomes `blockedBy`, unless that is closed already. A task can wait only for tasks that exist, so an issue is added behind the issues
 * that block it; a circle of issues is a mistake in the file.
 */
#include <string.h>
#include <unistd.h>

#include "base/take.h"
#include "cli/import/things.h"
#include "cli/verb/verbs.h"

struct beads {
	struct cli *cli;
	struct things things;
	struct intake intake;
	const char *file;
};

/* ---- the file -------------------------------------------------------------------------------------------------- */

static const char *const names[] = {
	".beads/issues.jsonl", ".beads/beads.jsonl", "issues.jsonl", "beads.jsonl"};

/* The tracker's file in this directory; NULL: it has none. */
static const char *file_in(struct cli *cli, const char *directory)
{
	for (size_t i = 0; i < sizeof names / sizeof *names; i++) {
		const char *path = cli_text(cli, "%s/%s", directory, names[i]);
		if (access(path, F_OK) == 0)
			return path;
	}
	return NULL;
}

/* What was named, or the tracker of this directory or one above it. */
static const char *find_file(struct cli *cli)
{
	const char *given = args_plain(&cli->args, 0), *found = NULL;

	if (given) {
		found = file_in(cli, given);
		return found ? found : given;
	}
	const char *at = cli_path(cli, ".");
	for (size_t len = at ? strlen(at) : 0; !found && len > 0;) {
		found = file_in(cli, cli_text(cli, "%.*s", (int)len, at));
		while (len > 0 && at[len - 1] != '/')
			len--;
		len -= len > 0;
	}
	if (!found)
		cli_die(cli, EXIT_NOT_FOUND, "not_found", "stint help import beads",
			"there is no .beads/issues.jsonl in this directory or above it");
	return found;
}

/* NULL: it becomes a task. */
static const char *why_over(struct cli *cli, const struct thing *thing)
{
	static const struct {
		const char *status, *why;
	} known[] = {{"open", NULL}, {"in_progress", NULL}, {"blocked", NULL}, {"deferred", NULL},
		{"hooked", NULL}, {"pinned", "it is pinned, and no work"}, {"closed", "it is closed"},
		{"tombstone", "it was deleted"}};
	struct span status = intake_text(cli, thing->place, thing->value, "status");

	for (size_t i = 0; i < sizeof known / sizeof *known; i++) {
		if (status.len == 0 || span_is(status, known[i].status))
			return known[i].why;
	}
	intake_die(cli, thing->place,
		"\"status\" of %s must be open, in_progress, blocked, deferred, hooked, pinned, closed or tombstone; it is %.*s",
		thing->id, SPAN_ARGS(status));
}

static void read_line(struct beads *beads, struct span text, struct span line, uint32_t number)
{
	struct intake_place place = {beads->file, number, 1};
	yyjson_val *value = intake_read_value(beads->cli, beads->file, text, line);
	struct thing *thing = things_add(&beads->things, value, place);

	thing->over = why_over(beads->cli, thing);
}

static void read_file(struct beads *beads)
{
	struct span text = intake_read_file(beads->cli, beads->file);
	uint32_t number = 0;

	for (size_t at = 0, end; at < text.len; at = end + 1) {
		const char *newline = memchr(text.data + at, '\n', text.len - at);
		end = newline ? (size_t)(newline - text.data) : text.len;
		struct span line = {text.data + at, end - at};
		number++;
		while (line.len > 0 && strchr(" \t\r", line.data[line.len - 1]))
			line.len--;
		if (line.len > 0)
			read_line(beads, text, line, number);
	}
}

/* ---- an issue as a task ------------------------------------------------------------------------------------------- */

/* 0, the most urgent, to 4. */
static int64_t priority_of(const struct beads *beads, const struct thing *bead)
{
	static const int64_t priorities[] = {100, 50, 0, -50, -100};
	yyjson_val *value = field_get(bead->value, "priority");
	int64_t given = field_int(bead->value, "priority", -1);

	if (!value || yyjson_is_null(value))
		return 0;
	if (given < 0 || given > 4)
		intake_die(
			beads->cli, bead->place, "\"priority\" of %s must be a number from 0 to 4", bead->id);
	return priorities[given];
}

/* Only some kinds of dependency mean waiting; "related" does not. */
static bool parent_of(struct cli *cli, const struct thing *thing, size_t n, const char **ret_id)
{
	yyjson_val *dependency = yyjson_arr_get(field_get(thing->value, "dependencies"), n);
	struct span type = intake_text(cli, thing->place, dependency, "type");
	struct span from = intake_text(cli, thing->place, dependency, "issue_id");
	struct span on = intake_text(cli, thing->place, dependency, "depends_on_id");
	bool waits =
		span_is(type, "blocks") || span_is(type, "conditional-blocks") || span_is(type, "waits-for");

	if (waits && on.len == 0)
		intake_die(cli, thing->place, "a dependency of %s has no \"depends_on_id\"", thing->id);
	waits = waits && (from.len == 0 || span_is(from, thing->id));
	*ret_id = waits ? cli_text(cli, "%.*s", SPAN_ARGS(on)) : NULL;
	return dependency != NULL;
}

static void put_text(struct beads *beads, const struct thing *bead, struct json_object *task)
{
	static const struct {
		const char *key, *heading;
	} parts[] = {{"description", NULL}, {"design", "Design"},
		{"acceptance_criteria", "Acceptance criteria"}, {"notes", "Notes"}};
	cleanup(buf_done) struct buf text = {.max = 8 << 20};

	for (size_t i = 0; i < sizeof parts / sizeof *parts; i++) {
		struct span part = intake_text(beads->cli, bead->place, bead->value, parts[i].key);
		if (part.len == 0)
			continue;
		if (text.len > 0)
			buf_put_span(&text, SPAN("\n\n"));
		if (parts[i].heading)
			buf_printf(&text, "## %s\n\n", parts[i].heading);
		buf_put_span(&text, part);
	}
	if (cli_span(beads->cli, &text).len > 0)
		json_member_string(task, "instructions", buf_span(&text));
}

static void put_labels(struct beads *beads, const struct thing *bead, struct json_object *task)
{
	yyjson_val *list = field_get(bead->value, "labels"), *label;
	size_t i, limit;
	bool any = false;

	json_put_key(task, "labels");
	buf_put_byte(task->buf, '[');
	yyjson_arr_foreach(list, i, limit, label)
	{
		if (!yyjson_is_str(label))
			intake_die(beads->cli, bead->place, "\"labels\" of %s must be a list of texts",
				bead->id);
		json_put_comma(task->buf, &any);
		json_put_string(task->buf, json_text(label));
	}
	json_put_comma(task->buf, &any);
	json_put_string(task->buf, SPAN("beads"));
	buf_put_byte(task->buf, ']');
}

static void put_origin(struct beads *beads, const struct thing *bead, struct json_object *task)
{
	static const char *const kept[] = {"status", "issue_type", "assignee", "created_at", "external_ref"};
	struct json_object metadata, origin;

	intake_begin_origin(task, &metadata, &origin, "beads");
	for (size_t i = 0; i < sizeof kept / sizeof *kept; i++)
		json_member_string_if_any(
			&origin, kept[i], intake_text(beads->cli, bead->place, bead->value, kept[i]));
	intake_end_origin(&metadata, &origin);
}

static void put_task(void *context, const struct thing *bead)
{
	struct beads *beads = context;
	struct span status = field_text(bead->value, "status");
	struct span title = intake_text(beads->cli, bead->place, bead->value, "title");
	struct json_object *task = intake_begin(&beads->intake, bead->id, title, bead->place);

	put_text(beads, bead, task);
	json_member_int(task, "priority", priority_of(beads, bead));
	if (span_is(status, "deferred") || span_is(status, "blocked"))
		json_member_string(task, "state", SPAN("pending"));
	things_put_parents(&beads->things, bead, task);
	put_labels(beads, bead, task);
	put_origin(beads, bead, task);
	cli_member_flags(beads->cli, task);
	intake_end(&beads->intake);
}

static int run_beads(struct cli *cli)
{
	struct beads beads = {.cli = cli, .file = find_file(cli)};

	things_open(&beads.things, cli, "issue");
	beads.things.parent = parent_of;
	intake_open(&beads.intake, cli, "issue");
	read_file(&beads);
	things_pass(&beads.things, &beads.intake, put_task, &beads);
	int r = intake_finish(&beads.intake);
	intake_close(&beads.intake);
	things_close(&beads.things);
	return r;
}

static const struct flag flags[] = {
	INTAKE_DRY_RUN,
	{"queue", 'Q', FLAG_TEXT, OFFER_QUEUES, .value = "NAME",
		.text = "the queue of the tasks (default \"default\")", .member = "queue"},
	{"executor", 'x', FLAG_TEXT, .value = "NAME",
		.text = "the executor that runs them (default: the worker chooses)", .member = "executor"},
	{0},
};

const struct verb verb_import_beads = {
	.name = "import beads",
	.arguments = "[PATH]",
	.offer = OFFER_FILES,
	.gives = GIVES_JSON,
	.brief = "issues of a beads tracker",
	.text = "Takes over the issues of a beads tracker: PATH is its file of JSON lines, or a directory that has one (.beads/issues.jsonl); "
		"without PATH it is looked for in this directory and above. Everything is checked before anything is changed.\n"
		"\n"
		"Every issue that is not closed becomes a task of the same id, with its texts, labels and priority; the task waits for the issues "
		"that block it. An issue in progress is ready here, because no claim made elsewhere can be proved; one that is deferred or "
		"blocked by hand is parked. A task that is there already stays as it is: the import may be repeated.",
	.flags = flags,
	.examples = "stint import beads --dry-run\n"
		    "stint import beads ~/work/app/.beads/issues.jsonl --queue app\n",
	.run = run_beads,
};
