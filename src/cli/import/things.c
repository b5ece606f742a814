#include "cli/import/things.h"

enum {
	LIST_BYTES_MAX = 64 << 20,
	PARENTS_MAX = 100,
	DEPTH_MAX = 1000, /* of things that wait for each other */
};

void things_open(struct things *things, struct cli *cli, const char *noun)
{
	*things = (struct things){.cli = cli, .noun = noun};
	buf_init(&things->list, LIST_BYTES_MAX);
	ids_open(&things->ids);
}

void things_close(struct things *things)
{
	buf_done(&things->list);
	ids_close(&things->ids);
}

size_t things_count(const struct things *things)
{
	return things->list.len / sizeof(struct thing);
}

struct thing *things_at(const struct things *things, size_t i)
{
	return (struct thing *)(void *)things->list.data + i;
}

struct thing *things_named(const struct things *things, const char *id)
{
	int64_t found = ids_find(&things->ids, id);

	return found < 0 ? NULL : things_at(things, (size_t)found);
}

struct thing *things_add(struct things *things, yyjson_val *value, struct intake_place place)
{
	struct cli *cli = things->cli;
	struct thing thing = {.value = value, .place = place};

	if (!yyjson_is_obj(value))
		intake_die(cli, place, "every %s must be an object, as {\"id\":\"a-1\",\"title\":\"…\"}",
			things->noun);
	struct span id = intake_text(cli, place, value, "id");
	if (id.len == 0)
		intake_die(cli, place, "the %s has no \"id\"", things->noun);
	thing.id = cli_text(cli, "%.*s", SPAN_ARGS(id));
	struct thing *twin = things_named(things, thing.id);
	if (twin)
		intake_die(cli, place, "the %s %s is there twice: the first one is in line %u", things->noun,
			thing.id, twin->place.line);
	if (buf_put(&things->list, &thing, sizeof thing) < 0)
		cli_exit(cli, cli_fail_fault(cli, buf_fault(&things->list)));
	ids_add(&things->ids, cli, thing.id);
	return things_at(things, things_count(things) - 1);
}

/* ---- the order --------------------------------------------------------------------------------------------------- */

struct passing {
	struct things *things;
	void (*put)(void *context, const struct thing *thing);
	void *context;
};

static void pass_one(const struct passing *passing, struct thing *thing, unsigned depth)
{
	struct cli *cli = passing->things->cli;
	const char *id = NULL;

	if (thing->mark == THING_PASSED || thing->over)
		return;
	if (thing->mark == THING_UNDER_WAY)
		intake_die(cli, thing->place, "%s waits for itself: what it waits for goes round in a circle",
			thing->id);
	if (depth > DEPTH_MAX)
		intake_die(cli, thing->place, "more than %d %ss wait for each other in a row", DEPTH_MAX,
			passing->things->noun);
	thing->mark = THING_UNDER_WAY;
	for (size_t n = 0; passing->things->parent(cli, thing, n, &id); n++) {
		struct thing *parent = id ? things_named(passing->things, id) : NULL;
		if (id && !parent)
			cli_say(cli,
				"stint: %s waits for %s, which is not in %s: the task will not wait for it",
				thing->id, id, thing->place.file);
		if (parent)
			pass_one(passing, parent, depth + 1);
	}
	thing->mark = THING_PASSED;
	passing->put(passing->context, thing);
}

void things_pass(struct things *things, struct intake *intake,
	void (*put)(void *context, const struct thing *thing), void *context)
{
	struct passing passing = {things, put, context};

	for (size_t i = 0; i < things_count(things); i++) {
		struct thing *thing = things_at(things, i);
		pass_one(&passing, thing, 0);
		if (thing->over)
			intake_leave_out(intake, thing->id, field_text(thing->value, "title"), thing->over);
	}
}

void things_put_parents(const struct things *things, const struct thing *thing, struct json_object *task)
{
	const char *id = NULL;
	size_t count = 0;
	bool any = false;

	for (size_t n = 0; things->parent(things->cli, thing, n, &id); n++) {
		const struct thing *parent = id ? things_named(things, id) : NULL;
		if (!parent || parent->over)
			continue;
		if (++count > PARENTS_MAX)
			intake_die(things->cli, thing->place,
				"%s waits for more than %d %ss; a task waits for %d at most", thing->id,
				PARENTS_MAX, things->noun, PARENTS_MAX);
		if (!any) {
			json_put_key(task, "blockedBy");
			buf_put_byte(task->buf, '[');
		}
		json_put_comma(task->buf, &any);
		json_put_string(task->buf, span_of(id));
	}
	if (any)
		buf_put_byte(task->buf, ']');
}
