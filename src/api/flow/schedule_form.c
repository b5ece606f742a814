/*
 * Reading the document of a schedule, and writing it again.
 *
 * The template is a task document, read by the table of tasks, but for its times: they count from the planned instant, and an
 * absolute time is refused, because it would be wrong from the second occurrence on.
 */
#include "api/flow/schedule_form.h"

#include <errno.h>
#include <stdio.h>
#include <string.h>

#include "base/duration.h"
#include "base/iso_time.h"
#include "base/take.h"

static field_take take_every, take_at;

struct body {
	struct span id, cron, tz;
	int64_t every_ms, at_ms, jitter_ms;
	int catch_up, overlap;
	bool paused;
	yyjson_val *task;
};

static const struct field fields[] = {
	FIELD_MUST_BE(body, id, "id", FIELD_ID, 0),
	FIELD(body, cron, "cron", FIELD_TEXT, .max = CRON_BYTES_MAX),
	FIELD(body, every_ms, "every", FIELD_BY, .by = take_every),
	FIELD(body, at_ms, "at", FIELD_BY, .by = take_at),
	FIELD(body, tz, "tz", FIELD_NAME, .max = ZONE_NAME_MAX),
	FIELD_MUST_BE(body, task, "task", FIELD_NODE, 0),
	FIELD(body, jitter_ms, "jitterMs", FIELD_INT, .max = SCHEDULE_JITTER_MAX_MS),
	FIELD(body, catch_up, "catchUp", FIELD_CHOICE, .words = "one|skip|all"),
	FIELD(body, overlap, "overlap", FIELD_CHOICE, .words = "skip|allow|queue|cancel"),
	FIELD(body, paused, "paused", FIELD_BOOL, 0),
};

/* ---- when ------------------------------------------------------------------------------------------------- */

static const struct {
	const char *name;
	int64_t ms;
} units[] = {{"ms", 1}, {"s", 1000}, {"min", 60000}, {"m", 60000}, {"h", 3600000}, {"d", 86400000},
	{"w", 7 * 86400000}};

static int64_t unit_ms(struct span *left)
{
	for (size_t i = 0; i < sizeof units / sizeof *units; i++) {
		size_t len = strlen(units[i].name);
		bool ends = left->len == len ||
			(left->len > len &&
				(left->data[len] == ' ' ||
					(left->data[len] >= '0' && left->data[len] <= '9')));
		if (ends && memcmp(left->data, units[i].name, len) == 0) {
			*left = (struct span){left->data + len, left->len - len};
			return units[i].ms;
		}
	}
	return 0;
}

static struct span skip_blanks(struct span text)
{
	while (text.len > 0 && text.data[0] == ' ')
		text = (struct span){text.data + 1, text.len - 1};
	return text;
}

/* "30s", "1h30m", "5 min"; 0: it is no such text. */
static int64_t read_duration(struct span text)
{
	int64_t sum = 0;

	for (text = skip_blanks(text); text.len > 0; text = skip_blanks(text)) {
		int64_t number = 0;
		size_t digits = 0;
		for (; digits < text.len && digits < 9 && text.data[digits] >= '0' &&
			text.data[digits] <= '9';
			digits++)
			number = number * 10 + (text.data[digits] - '0');
		text = skip_blanks((struct span){text.data + digits, text.len - digits});
		int64_t ms = digits > 0 ? unit_ms(&text) : 0;
		if (ms == 0)
			return 0;
		sum += number * ms;
	}
	return sum;
}

static bool take_every(struct form *form, const struct field *field, yyjson_val *value, void *at)
{
	int64_t ms = 0;

	if (yyjson_is_str(value))
		ms = read_duration(json_text(value));
	else if (node_int(value, &ms) < 0)
		ms = 0;
	if (ms < SCHEDULE_EVERY_MIN_MS || ms > SCHEDULE_EVERY_MAX_MS)
		return form_wrong_as(form, field->name,
			"a time from 1 s to 366 d: a number of milliseconds, or a text like \"30s\" or \"1h30m\"",
			value);
	*(int64_t *)at = ms;
	return true;
}

static bool take_at(struct form *form, const struct field *field, yyjson_val *value, void *at)
{
	int64_t now_ms = form_call(form)->now.wall_ms, ms = 0;
	bool read =
		yyjson_is_str(value) ? iso_time_read(json_text(value), &ms) == 0 : node_int(value, &ms) == 0;

	if (!read || ms < 0 || ms > INT64_C(253402300799999))
		return form_wrong_as(form, field->name,
			"a moment: milliseconds since 1970, or a text like \"2026-12-31T18:00:00Z\"", value);
	if (ms <= now_ms)
		return form_error(form, field->name, "has passed; it must lie ahead");
	*(int64_t *)at = ms;
	return true;
}

static void tell_cron(struct form *form, const struct cron_fault *fault)
{
	if (fault->field)
		form_error(form, "cron", "is wrong: the %s \"%.*s\" %s", fault->field,
			(int)(fault->at.len < 60 ? fault->at.len : 60), fault->at.data, fault->allowed);
	else
		form_error(form, "cron", "%s", fault->allowed);
}

/* Does it ever happen? What never does is a mistake of the writer. */
static void check_plan(struct form *form, const struct body *body, struct schedule *schedule)
{
	struct schedule_plan plan = {.kind = PLAN_CRON, .zone = &zone_utc};
	struct cron_fault fault;
	struct zone *zone = NULL;

	int r = body->tz.len > 0 ? zone_load(NULL, body->tz, &zone) : 0;
	if (r == -ENOMEM)
		form_short(form, r);
	else if (r < 0)
		form_error(form, "tz",
			"must be a time zone that this server's system has, like Europe/Berlin or UTC; \"%.*s\" is none",
			SPAN_ARGS(body->tz));
	if (zone)
		plan.zone = zone;
	if (schedule->kind == PLAN_CRON) {
		if (cron_read(body->cron, &plan.cron, &fault) < 0)
			tell_cron(form, &fault);
		else if (schedule_plan_next(&plan, form_call(form)->now.wall_ms) == INT64_MAX)
			form_error(form, "cron", "names a time that never comes: none within %d years",
				CRON_YEARS_MAX);
	}
	zone_free(zone);
}

static void read_plan(struct form *form, const struct body *body, uint64_t given, struct schedule *ret)
{
	bool cron = given & 2, every = given & 4, at = given & 8;
	/* one that was wrong has been told of already */
	bool any = yyjson_obj_get(form->root, "cron") || yyjson_obj_get(form->root, "every") ||
		yyjson_obj_get(form->root, "at");

	if (cron + every + at > 1)
		form_error(form, "", "must have one of \"cron\", \"every\" and \"at\", and has several");
	else if (cron + every + at == 0 && (!any || form->error_count == 0))
		form_error(form, "", "must have one of \"cron\", \"every\" and \"at\"");
	ret->kind = cron ? PLAN_CRON : every ? PLAN_EVERY : PLAN_AT;
	ret->cron = body->cron;
	ret->every_ms = body->every_ms;
	ret->at_ms = body->at_ms;
	ret->tz = body->tz;
	if (cron || body->tz.len > 0)
		check_plan(form, body, ret);
}

/* ---- the template -------------------------------------------------------------------------------------------- */

static const char *const times[] = {"notBefore", "startBy", "finishBy"};

static int64_t read_time(struct form *form, yyjson_val *task, const char *name)
{
	yyjson_val *value = yyjson_obj_get(task, name);
	int64_t ms = 0;

	if (!value || yyjson_is_null(value))
		return 0;
	if (node_int(value, &ms) < 0 || ms < 0) {
		form_wrong_as(form, name, "a number of milliseconds after the planned time", value);
		return 0;
	}
	if (ms > TASK_DELAY_MS_MAX) {
		form_error(form, name,
			"is an absolute time, and the second task would be late: times in a template are milliseconds after the "
			"planned time, at most 366 days");
		return 0;
	}
	return ms;
}

/* The template without its times, as a document that lives as long as the call. NULL: no memory. */
static yyjson_val *without_times(struct form *form, yyjson_val *task)
{
	struct json_complaint complaint;
	yyjson_mut_doc *doc = yyjson_mut_doc_new(NULL);
	yyjson_mut_val *copy = doc ? yyjson_val_mut_copy(doc, task) : NULL;
	size_t len = 0;

	for (size_t i = 0; copy && i < sizeof times / sizeof *times; i++)
		yyjson_mut_obj_remove_key(copy, times[i]);
	char *text = copy ? yyjson_mut_val_write(copy, 0, &len) : NULL;
	yyjson_doc *read = text ? json_read_in(form->arena, (struct span){text, len}, &complaint) : NULL;
	free(text);
	yyjson_mut_doc_free(doc);
	if (!read)
		form_short(form, -ENOMEM);
	return yyjson_doc_get_root(read);
}

static void read_template(struct form *form, yyjson_val *task, struct schedule_form *ret)
{
	struct command_create *create = &ret->task.create;
	cleanup(buf_done) struct buf text = {.max = API_TEXT_MAX};
	struct form_path path;

	if (!yyjson_is_obj(task)) {
		form_wrong_as(form, "task", "an object: the task that is made each time", task);
		return;
	}
	yyjson_val *plain = without_times(form, task);
	if (!plain)
		return;
	form_enter(form, &path, SPAN("task"), -1);
	int64_t not_before_ms = read_time(form, task, "notBefore");
	int64_t start_by_ms = read_time(form, task, "startBy");
	int64_t finish_by_ms = read_time(form, task, "finishBy");
	task_form_create(form, plain, &ret->task);
	if (create->id.len > 0)
		form_error(
			form, "id", "cannot be the same for every task: leave it out, and each gets its own");
	create->not_before_ms = not_before_ms;
	create->start_by_ms = start_by_ms;
	create->finish_by_ms = finish_by_ms;
	form_leave(form);
	json_put_value(&text, task);
	form_keep_text(form, &text, &ret->schedule.task);
}

/* ---- the form of OpenClaw's cron ------------------------------------------------------------------------------- */

/* Letters, digits and ._:- stay; the rest becomes a dash. */
static void put_id(struct buf *out, struct span name)
{
	buf_put_byte(out, '"');
	for (size_t i = 0, put = 0; i < name.len && put < COMMAND_ID_MAX; i++) {
		char byte = name.data[i], lower = (char)(byte | 32);
		bool letter = (lower >= 'a' && lower <= 'z') || (byte >= '0' && byte <= '9');
		bool plain = letter || byte == '.' || byte == '_' || byte == ':' || byte == '-';
		if (put == 0 && !letter)
			continue;
		buf_put_byte(out, plain ? (unsigned char)byte : '-');
		put++;
	}
	buf_put_byte(out, '"');
}

static void put_foreign_task(struct json_object *object, yyjson_val *document)
{
	yyjson_val *payload = yyjson_obj_get(document, "payload");
	yyjson_val *message = yyjson_obj_get(payload, "message");
	yyjson_val *target = yyjson_obj_get(document, "sessionTarget");
	struct json_object task, metadata;

	if (!json_put_key(object, "task"))
		return;
	json_begin(&task, object->buf);
	json_member_string(&task, "title", json_text(yyjson_obj_get(document, "name")));
	if (!yyjson_is_str(message))
		message = yyjson_obj_get(payload, "text");
	if (yyjson_is_str(message))
		json_member_string(&task, "instructions", json_text(message));
	if (payload && json_put_key(&task, "payload"))
		json_put_value(task.buf, payload);
	if (yyjson_is_str(target) && json_put_key(&task, "metadata")) {
		json_begin(&metadata, task.buf);
		json_member_string(&metadata, "sessionTarget", json_text(target));
		json_note(&task, json_end(&metadata));
	}
	json_note(object, json_end(&task));
}

/* A field of another kind of plan is not used, and a wrong value in it is still a mistake of the writer. */
static void check_foreign_plan(struct form *form, yyjson_val *schedule)
{
	yyjson_val *every = yyjson_obj_get(schedule, "everyMs"), *expr = yyjson_obj_get(schedule, "expr");
	yyjson_val *tz = yyjson_obj_get(schedule, "tz");
	int64_t ms;

	if (every && node_int(every, &ms) < 0)
		form_wrong_as(form, "schedule.everyMs", "a number of milliseconds", every);
	if (expr && !yyjson_is_str(expr))
		form_wrong_as(form, "schedule.expr", "a cron line", expr);
	if (tz && !yyjson_is_str(tz))
		form_wrong_as(form, "schedule.tz", "the name of a time zone, like Europe/Berlin", tz);
}

static void put_foreign_plan(struct form *form, struct json_object *object, yyjson_val *schedule)
{
	static const struct {
		const char *kind, *from, *to;
	} plans[] = {{"every", "everyMs", "every"}, {"cron", "expr", "cron"}, {"at", "at", "at"}};
	struct span kind = json_text(yyjson_obj_get(schedule, "kind"));

	check_foreign_plan(form, schedule);
	for (size_t i = 0; i < sizeof plans / sizeof *plans; i++) {
		yyjson_val *value = yyjson_obj_get(schedule, plans[i].from);
		if (!span_is(kind, plans[i].kind))
			continue;
		if (!value)
			form_error(form, "schedule", "of kind \"%s\" must have \"%s\"", plans[i].kind,
				plans[i].from);
		else if (json_put_key(object, plans[i].to))
			json_put_value(object->buf, value);
		value = yyjson_obj_get(schedule, "tz");
		if (value && json_put_key(object, "tz"))
			json_put_value(object->buf, value);
		return;
	}
	form_error(form, "schedule", "must have the kind every, cron or at");
}

/* {name, schedule{kind, everyMs | expr}, payload, sessionTarget, enabled} as a document of ours. NULL: it cannot be. */
static yyjson_val *translate(struct form *form, yyjson_val *document)
{
	cleanup(buf_done) struct buf text = {.max = 2 * API_TEXT_MAX}, id = {.max = 2 * COMMAND_ID_MAX};
	yyjson_val *enabled = yyjson_obj_get(document, "enabled"), *name = yyjson_obj_get(document, "name");
	yyjson_val *target = yyjson_obj_get(document, "sessionTarget");
	yyjson_val *payload = yyjson_obj_get(document, "payload");
	struct json_complaint complaint;
	struct json_object object;

	if (!yyjson_is_str(name) || yyjson_get_len(name) == 0) {
		form_error(form, "name", "must be the name of the schedule");
		return NULL;
	}
	if (enabled && !yyjson_is_bool(enabled))
		form_error(form, "enabled", "must be true or false");
	if (payload && !yyjson_is_obj(payload))
		form_error(form, "payload", "must be an object");
	if (target && !yyjson_is_str(target))
		form_error(form, "sessionTarget", "must be a text");
	json_begin(&object, &text);
	put_id(&id, json_text(name));
	json_member_raw(&object, "id", buf_span(&id));
	put_foreign_plan(form, &object, yyjson_obj_get(document, "schedule"));
	put_foreign_task(&object, document);
	if (yyjson_is_false(enabled))
		json_member_bool(&object, "paused", true);
	int r = json_end(&object);
	yyjson_doc *read = r == 0 && form->error_count == 0
		? json_read_in(form->arena, buf_span(&text), &complaint)
		: NULL;
	if (!read && form->error_count == 0)
		form_short(form, r < 0 ? r : -ENOMEM);
	return yyjson_doc_get_root(read);
}

/* ---- the document ------------------------------------------------------------------------------------------------ */

void schedule_form_read(struct form *form, yyjson_val *document, struct schedule_form *ret)
{
	struct body body = {0};

	if (yyjson_is_obj(yyjson_obj_get(document, "schedule"))) {
		document = translate(form, document);
		if (!document)
			return;
	}
	form->root = document;
	uint64_t given = form_read(form, document, FIELDS(fields), &body);
	ret->schedule.id = body.id;
	ret->schedule.jitter_ms = body.jitter_ms;
	ret->schedule.catch_up = (enum catch_up)body.catch_up;
	ret->schedule.overlap = (enum overlap)body.overlap;
	ret->paused = body.paused;
	read_plan(form, &body, given, &ret->schedule);
	if (body.task)
		read_template(form, body.task, ret);
}

void schedule_put_asked(struct json_object *object, const struct schedule_document *document)
{
	static const char *const catch_ups[] = {"one", "skip", "all"};
	static const char *const overlaps[] = {"skip", "allow", "queue", "cancel"};
	const struct schedule *schedule = document->schedule;

	json_member_string(object, "id", schedule->id);
	switch (schedule->kind) {
	case PLAN_CRON:
		json_member_string(object, "cron", schedule->cron);
		break;
	case PLAN_EVERY:
		json_member_int(object, "every", schedule->every_ms);
		break;
	case PLAN_AT:
		json_member_int(object, "at", schedule->at_ms);
		break;
	}
	json_member_string(object, "tz", schedule->tz.len > 0 ? schedule->tz : SPAN("UTC"));
	json_member_raw(object, "task", schedule->task);
	json_member_int(object, "jitterMs", schedule->jitter_ms);
	json_member_cstr(object, "catchUp", catch_ups[schedule->catch_up]);
	json_member_cstr(object, "overlap", overlaps[schedule->overlap]);
	json_member_bool(object, "paused", document->state->paused);
}

/* ---- words --------------------------------------------------------------------------------------------------------- */

static bool is_one(uint64_t mask)
{
	return mask != 0 && (mask & (mask - 1)) == 0;
}

static int put_cron_words(struct buf *out, const struct cron *cron, struct span line)
{
	static const char *const weekdays[] = {
		"Sundays", "Mondays", "Tuesdays", "Wednesdays", "Thursdays", "Fridays", "Saturdays"};
	bool one_time = cron->seconds == 1 && is_one(cron->minutes) && is_one(cron->hours);
	bool all_months = cron->months == 0x1ffe, nth = false;

	for (int i = 0; i < 7; i++)
		nth |= cron->nth[i] != 0;
	if (!one_time || !all_months || !cron->any_day || nth ||
		!(cron->any_weekday || is_one(cron->weekdays) || cron->weekdays == 0x3e))
		return buf_put_span(out, line);
	const char *days = cron->any_weekday ? "every day"
		: cron->weekdays == 0x3e     ? "Mon to Fri"
					     : weekdays[__builtin_ctz(cron->weekdays)];
	return buf_printf(
		out, "%s %02d:%02d", days, __builtin_ctz(cron->hours), __builtin_ctzll(cron->minutes));
}

int schedule_put_words(struct buf *out, const struct schedule_document *document)
{
	const struct schedule *schedule = document->schedule;
	char text[ISO_TIME_BYTES + 1];

	switch (schedule->kind) {
	case PLAN_CRON:
		return put_cron_words(out, &document->plan->cron, schedule->cron);
	case PLAN_EVERY:
		buf_put_span(out, SPAN("every "));
		return duration_put(out, schedule->every_ms, 2);
	case PLAN_AT:
		iso_time_put(schedule->at_ms, text);
		return buf_printf(out, "once at %.16sZ", text);
	}
	return 0;
}
