/*
 * Workflows of a configuration: read, checked, and completed with what every workflow has.
 *
 * A rule that would break a promise is refused here, and not when somebody's task comes to it: stages move forward,
 * nothing is merged that nobody validated, no word from outside ends a claim. Guards that a rule needs for that it gets by
 * itself. The rules that all workflows share (the report of a worker, the verdict of the gate, failures) stand behind its
 * own, so that its own come first.
 */
#include "api/flow/workflow_form.h"

#include <ctype.h>
#include <stdio.h>
#include <string.h>

#include "base/buf.h"
#include "base/take.h"
#include "wire/form/form.h"

#define S(name) STAGE_BIT(STAGE_##name)

enum {
	EVENTS_MAX = 32, /* of one rule */
	EVENT_BYTES_MAX = 128,
	TEXT_BYTES_MAX = 255,
	WORK = S(IN_PROGRESS) | S(BUILDING) | S(PR_CREATED),
	BEFORE_VERDICT = S(PR_CREATED) | S(REVIEWING),
	AFTER_VERDICT = S(VALIDATED) | S(MERGED) | S(DEPLOYING) | S(VERIFYING),
	LASTS = S(MERGED) | S(DEPLOYING) | S(VERIFYING) | S(COMPLETED),
};

#define STAGES_TOLD \
	"allocated, in_progress, building, pr_created, reviewing, validated, merged, deploying, verifying, completed or failed"

const char *const guard_words[GUARD_WORDS] = {
	"holder", "review", "unheld", "failed", "success", "noPr", "verdict", "gated"};

/* ---- the members of a rule ------------------------------------------------------------------------------- */

static bool is_name_byte(char byte, const char *others)
{
	return byte && (isalnum((unsigned char)byte) || strchr(others, byte));
}

/* Names have no blank in them; "*.x" is any that ends so. */
static bool is_event_name(struct span name)
{
	bool any = name.len > 2 && name.data[0] == '*' && name.data[1] == '.';

	for (size_t i = any ? 2 : 0; i < name.len; i++) {
		if (!is_name_byte(name.data[i], "._-:/"))
			return false;
	}
	return name.len > 0 && name.len <= EVENT_BYTES_MAX;
}

static bool take_events(struct form *form, const struct field *field, yyjson_val *value, void *at)
{
	cleanup(buf_done) struct buf text = {.max = EVENTS_MAX * (EVENT_BYTES_MAX + 1)};
	yyjson_val *item;
	size_t i, count;

	if (!yyjson_is_arr(value) || yyjson_arr_size(value) == 0 || yyjson_arr_size(value) > EVENTS_MAX)
		return form_wrong(form, field, value);
	yyjson_arr_foreach(value, i, count, item)
	{
		struct span name = outside_event_bare_name(json_text(item));
		if (!is_event_name(name))
			return form_wrong_item(form, field, i, item);
		if (i > 0)
			buf_put_byte(&text, ' ');
		buf_put_span(&text, name);
	}
	if (buf_fault(&text) < 0)
		return form_short(form, buf_fault(&text));
	const char *kept = form_keep(form, buf_span(&text));
	*(const char **)at = kept;
	return kept != NULL;
}

static bool take_stage(struct form *form, const struct field *field, yyjson_val *value, void *at)
{
	enum stage stage = stage_from_name(json_text(value));

	if (stage == STAGE_NONE)
		return form_wrong(form, field, value);
	*(enum stage *)at = stage;
	return true;
}

static bool take_from(struct form *form, const struct field *field, yyjson_val *value, void *at)
{
	struct stage_rule *rule = at;
	yyjson_val *item;
	size_t i, count;

	if (!yyjson_is_arr(value) || yyjson_arr_size(value) == 0)
		return form_wrong(form, field, value);
	yyjson_arr_foreach(value, i, count, item)
	{
		enum stage stage = stage_from_name(json_text(item));
		if (stage == STAGE_NONE)
			return form_wrong_item(form, field, i, item);
		rule->from |= STAGE_BIT(stage);
	}
	return true;
}

static bool take_guards(struct form *form, const struct field *field, yyjson_val *value, void *at)
{
	struct stage_rule *rule = at;
	yyjson_val *item;
	size_t i, count;

	if (!yyjson_is_arr(value))
		return form_wrong(form, field, value);
	yyjson_arr_foreach(value, i, count, item)
	{
		unsigned bit = 0;
		while (bit < GUARD_WORDS && !yyjson_equals_str(item, guard_words[bit]))
			bit++;
		if (bit == GUARD_WORDS)
			return form_wrong_item(form, field, i, item);
		rule->guards |= 1u << bit;
	}
	return true;
}

static bool take_action(struct form *form, const struct field *field, yyjson_val *value, void *at)
{
	struct stage_rule *rule = at;

	rule->action = action_from_name(json_text(value));
	return rule->action != ACTION_NONE || form_wrong(form, field, value);
}

static const struct field rule_fields[] = {
	FIELD(stage_rule, events, "events", FIELD_BY, .by = take_events,
		.allowed =
			"a list of 1 to 32 names of events, of letters, digits and . _ - : /, or *. and the end of one"),
	{"from", FIELD_BY, .by = take_from, .allowed = "a list of stages: " STAGES_TOLD},
	FIELD(stage_rule, to, "to", FIELD_BY, .by = take_stage, .allowed = "a stage: " STAGES_TOLD),
	{"guards", FIELD_BY, .by = take_guards,
		.allowed =
			"a list of guards: holder, review, unheld, failed, success, noPr, verdict and gated"},
	{"action", FIELD_BY, .by = take_action, .allowed = "create_pr, validate, merge or verify"},
	FIELD(stage_rule, on_reject, "onReject", FIELD_BY, .by = take_stage,
		.allowed = "a stage: " STAGES_TOLD),
	FIELD(stage_rule, reports, "reports", FIELD_BOOL),
};

/* ---- what a rule may do ---------------------------------------------------------------------------------- */

static bool leads_forward(const struct stage_rule *rule)
{
	for (int stage = STAGE_NONE + 1; stage < STAGE_COUNT; stage++) {
		if ((rule->from & STAGE_BIT(stage)) && (int)rule->to < stage)
			return false;
	}
	return true;
}

/* What fails a task, or rejects its attempt. */
static bool check_failure(struct form *form, struct stage_rule *rule)
{
	if (rule->on_reject == STAGE_NONE) {
		if (!(rule->guards & (GUARD_HOLDER | GUARD_REVIEW)))
			rule->guards |= GUARD_UNHELD;
		return true;
	}
	rule->guards |= GUARD_REVIEW;
	return rule->on_reject == STAGE_IN_PROGRESS ||
		form_error(form, "", "has an onReject that is not in_progress, where every attempt begins");
}

static bool check_move(struct form *form, enum stage last, struct stage_rule *rule)
{
	unsigned to = STAGE_BIT(rule->to);

	if (rule->from & S(ALLOCATED)) {
		rule->guards |= GUARD_UNHELD;
		return (rule->from == S(ALLOCATED) && rule->to == STAGE_IN_PROGRESS) ||
			form_error(form, "",
				"leads from allocated: the only way from there is to in_progress, in a rule of its own");
	}
	if (rule->reports) {
		rule->guards |= GUARD_HOLDER;
		return ((to & BEFORE_VERDICT) != 0 && (rule->from & ~(unsigned)WORK) == 0) ||
			form_error(form, "",
				"has reports: it must lead from in_progress, building or pr_created to pr_created or reviewing");
	}
	if (rule->to == STAGE_VALIDATED) {
		rule->guards |= GUARD_REVIEW | GUARD_VERDICT;
		return (rule->from & ~(unsigned)BEFORE_VERDICT) == 0 ||
			form_error(form, "", "leads to validated: it must come from pr_created or reviewing");
	}
	if (to & LASTS) {
		rule->guards |= GUARD_REVIEW | (rule->from & S(VALIDATED) ? GUARD_GATED : 0);
		if (rule->to > last)
			return form_error(
				form, "", "leads to a stage behind the last one, %s", stage_name(last));
		return (rule->from & ~(unsigned)AFTER_VERDICT) == 0 ||
			form_error(form, "",
				"leads to %s: nothing comes there that was not validated, so it must come from validated or a later stage",
				stage_name(rule->to));
	}
	if (rule->to == STAGE_REVIEWING)
		rule->guards |= GUARD_REVIEW;
	return (rule->from & ~(unsigned)(WORK | S(REVIEWING))) == 0 ||
		form_error(form, "", "must come from in_progress, building, pr_created or reviewing");
}

static bool check_rule(struct form *form, enum stage last, struct stage_rule *rule)
{
	if (!rule->events || rule->from == 0 || rule->to == STAGE_NONE)
		return form_error(form, "", "must have events, from and to");
	if (rule->from & (S(FAILED) | S(COMPLETED)))
		return form_error(form, "", "has failed or completed in from: nothing leads out of them");
	if (!leads_forward(rule) || rule->to == STAGE_ALLOCATED)
		return form_error(form, "", "leads back: stages move forward within an attempt");
	if (rule->on_reject != STAGE_NONE && rule->to != STAGE_FAILED)
		return form_error(form, "", "has onReject: then it must lead to failed");
	if ((rule->guards & GUARD_VERDICT) && rule->to != STAGE_VALIDATED)
		return form_error(form, "", "has the guard verdict: then it must lead to validated");
	if ((rule->guards & GUARD_GATED) && !(STAGE_BIT(rule->to) & LASTS))
		return form_error(
			form, "", "has the guard gated: then it must lead to merged or a later stage");
	if (rule->reports && rule->to == STAGE_FAILED)
		return form_error(form, "", "has reports: then it must not lead to failed");
	return rule->to == STAGE_FAILED ? check_failure(form, rule) : check_move(form, last, rule);
}

static bool read_rule(struct form *form, yyjson_val *value, enum stage last, struct stage_rule *rule)
{
	uint32_t errors = form->error_count;

	if (!yyjson_is_obj(value))
		return form_wrong_as(form, "", "an object", value);
	form_read(form, value, FIELDS(rule_fields), rule);
	return form->error_count == errors && form->fault == 0 && check_rule(form, last, rule);
}

/* ---- a workflow ------------------------------------------------------------------------------------------ */

static uint32_t common_rules(struct stage_rule *ret_rules)
{
	uint32_t count = 0;

	for (const struct stage_rule *rule = workflow_rules; rule->events; rule++) {
		if (!stage_rule_is_common(rule))
			continue;
		if (ret_rules)
			ret_rules[count] = *rule;
		count++;
	}
	return count;
}

/* A complaint about a rule stands at its first key. */
static yyjson_val *first_key(yyjson_val *rule)
{
	yyjson_obj_iter iter;

	return yyjson_obj_iter_init(rule, &iter) && yyjson_obj_iter_has_next(&iter)
		? yyjson_obj_iter_next(&iter)
		: NULL;
}

static bool read_rules(
	struct form *form, yyjson_val *value, struct workflow_plan *plan, struct stage_rule *rules)
{
	yyjson_val *item, *outer = form->place, *key;
	struct form_path path;
	bool good = true;
	size_t i, max;

	yyjson_arr_foreach(value, i, max, item)
	{
		form_enter(form, &path, SPAN("rules"), (int64_t)i);
		key = first_key(item);
		form->place = key ? key : outer;
		good = good && read_rule(form, item, plan->last, &rules[i]);
		form->place = outer;
		form_leave(form);
	}
	return good;
}

static bool take_rules(struct form *form, yyjson_val *value, struct workflow_plan *plan)
{
	size_t count = yyjson_arr_size(value);
	bool ends = false;

	if (!yyjson_is_arr(value) || count == 0 || count > WORKFLOW_RULES_MAX)
		return form_error(form, "rules", "must be a list of 1 to %d rules", WORKFLOW_RULES_MAX);
	size_t bytes = (count + common_rules(NULL) + 1) * sizeof(struct stage_rule);
	struct stage_rule *rules = arena_alloc(form->arena, bytes);
	if (!rules)
		return form_short(form, arena_fault(form->arena, bytes));
	if (!read_rules(form, value, plan, rules))
		return false;
	for (size_t i = 0; i < count; i++)
		ends |= rules[i].to == plan->last;
	if (!ends)
		form_error(form, "rules", "has no rule that leads to the last stage, %s",
			stage_name(plan->last));
	common_rules(rules + count);
	plan->rules = rules;
	return ends;
}

static bool take_last(struct form *form, const struct field *field, yyjson_val *value, void *at)
{
	enum stage last = stage_from_name(json_text(value));

	if (last == STAGE_NONE || (STAGE_BIT(last) & LASTS) == 0)
		return form_wrong(form, field, value);
	*(enum stage *)at = last;
	return true;
}

/* A workflow as it is written. */
struct plan_form {
	struct workflow_plan plan;
	yyjson_val *rules;
};

static const struct field plan_fields[] = {
	FIELD(plan_form, plan.last, "last", FIELD_BY, .by = take_last,
		.allowed = "the stage that is done: merged, deploying, verifying or completed"),
	FIELD(plan_form, plan.text, "text", FIELD_STRING, .max = TEXT_BYTES_MAX),
	FIELD(plan_form, rules, "rules", FIELD_NODE),
};

/* Where the errors of rules stand that have no key of their own. */
static yyjson_val *rules_key(yyjson_val *plan)
{
	yyjson_val *key, *value;
	size_t i, count;

	yyjson_obj_foreach(plan, i, count, key, value)
	{
		if (yyjson_equals_str(key, "rules"))
			return key;
	}
	return NULL;
}

static bool read_plan(struct form *form, yyjson_val *value, struct workflow_plan *ret_plan)
{
	struct plan_form read = {.plan.text = ""};
	uint32_t errors = form->error_count;
	yyjson_val *outer = form->place;

	if (!yyjson_is_obj(value))
		return form_wrong_as(form, "", "an object: { \"last\": STAGE, \"rules\": [ … ] }", value);
	form_read(form, value, FIELDS(plan_fields), &read);
	if (form->error_count > errors || form->fault < 0)
		return false;
	if (read.plan.last == STAGE_NONE || !read.rules)
		return form_error(form, "", "must have last and rules");
	form->place = rules_key(value);
	bool good = take_rules(form, read.rules, &read.plan);
	form->place = outer;
	*ret_plan = read.plan;
	return good;
}

static bool is_workflow_name(struct span name)
{
	for (size_t i = 0; i < name.len; i++) {
		if (!is_name_byte(name.data[i], i > 0 ? "._-" : ""))
			return false;
	}
	return name.len > 0 && name.len <= WORKFLOW_NAME_MAX;
}

static struct workflow_plan *place_of(struct workflow_form *workflows, struct span name)
{
	uint32_t i = 0;

	while (i < workflows->count && !span_equal(workflows->plans[i].name, name))
		i++;
	if (i == WORKFLOW_FORMS_MAX)
		return NULL;
	workflows->count += i == workflows->count;
	return &workflows->plans[i];
}

static void take_plan(struct form *form, struct span name, yyjson_val *value, void *into)
{
	struct workflow_plan plan;

	if (!is_workflow_name(name)) {
		form_error(form, "",
			"must have a name of up to %d letters, digits and . _ -, the first a letter or digit",
			WORKFLOW_NAME_MAX);
		return;
	}
	if (workflow_from_name(&workflows_built_in, name) != WORKFLOW_NONE) {
		form_error(form, "", "is built in; choose another name");
		return;
	}
	if (!read_plan(form, value, &plan))
		return;
	plan.name = (struct span){form_keep(form, name), name.len};
	struct workflow_plan *place = plan.name.data ? place_of(into, plan.name) : NULL;
	if (place)
		*place = plan;
	else if (plan.name.data)
		form_error(form, "", "is one too many: there may be %d", WORKFLOW_FORMS_MAX);
}

bool workflow_form_take(
	struct workflow_form *workflows, struct form *form, struct span key, struct yyjson_val *value)
{
	if (!span_is(key, "workflows"))
		return false;
	form_each(form, "workflows", value, take_plan, workflows);
	return true;
}
