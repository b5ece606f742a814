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
#include <stdarg.h>
#include <stdio.h>
#include <string.h>

#include "base/buf.h"
#include "base/take.h"
#include "wire/json/json.h"

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

/* Where something stands, and how it is called. */
struct at {
	struct workflow_form *form;
	yyjson_val *key; /* a string in the text */
	char name[160];
};

__attribute__((format(printf, 2, 3))) static bool complain(const struct at *at, const char *format, ...)
{
	char text[512];
	va_list args;

	int len = snprintf(text, sizeof text, "%s ", at->name);
	va_start(args, format);
	vsnprintf(text + len, sizeof text - (size_t)len, format, args);
	va_end(args);
	at->form->complain(at->form->context, at->key, text);
	return false;
}

static struct at member_of(const struct at *outer, yyjson_val *key)
{
	struct at inner = {.form = outer->form, .key = key};

	snprintf(inner.name, sizeof inner.name, "%.100s.%.50s", outer->name, yyjson_get_str(key));
	return inner;
}

static char *keep(const struct at *at, struct span text)
{
	char *kept = arena_alloc(at->form->arena, text.len + 1);

	if (kept && text.len > 0)
		memcpy(kept, text.data, text.len);
	return kept;
}

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

static bool read_events(const struct at *at, yyjson_val *value, struct stage_rule *rule)
{
	cleanup(buf_done) struct buf text = {0};
	yyjson_val *item;
	size_t i, count;

	buf_init(&text, EVENTS_MAX * (EVENT_BYTES_MAX + 1));
	if (!yyjson_is_arr(value) || yyjson_arr_size(value) == 0 || yyjson_arr_size(value) > EVENTS_MAX)
		return complain(at, "must be a list of 1 to %d names of events", EVENTS_MAX);
	yyjson_arr_foreach(value, i, count, item)
	{
		struct span name = tiding_bare_name(json_text(item));
		if (!is_event_name(name))
			return complain(at,
				"[%zu] must be the name of an event, of letters, digits and . _ - : /, or *. and the end of one",
				i);
		if (i > 0)
			buf_put_byte(&text, ' ');
		buf_put_span(&text, name);
	}
	rule->events = buf_fault(&text) == 0 ? keep(at, buf_span(&text)) : NULL;
	return rule->events || complain(at, "is more than there is room for");
}

static bool read_stage(const struct at *at, yyjson_val *value, enum stage *ret_stage)
{
	*ret_stage = stage_from_name(json_text(value));
	return *ret_stage != STAGE_NONE || complain(at, "must be a stage: " STAGES_TOLD);
}

static bool read_from(const struct at *at, yyjson_val *value, struct stage_rule *rule)
{
	yyjson_val *item;
	size_t i, count;
	enum stage stage;

	if (!yyjson_is_arr(value) || yyjson_arr_size(value) == 0)
		return complain(at, "must be a list of stages");
	yyjson_arr_foreach(value, i, count, item)
	{
		if (!read_stage(at, item, &stage))
			return false;
		rule->from |= STAGE_BIT(stage);
	}
	return true;
}

static bool read_guards(const struct at *at, yyjson_val *value, struct stage_rule *rule)
{
	yyjson_val *item;
	size_t i, count;

	if (!yyjson_is_arr(value))
		return complain(at, "must be a list of guards");
	yyjson_arr_foreach(value, i, count, item)
	{
		unsigned bit = 0;
		while (bit < GUARD_WORDS && !yyjson_equals_str(item, guard_words[bit]))
			bit++;
		if (bit == GUARD_WORDS)
			return complain(at,
				"may have holder, review, unheld, failed, success, noPr, verdict and gated");
		rule->guards |= 1u << bit;
	}
	return true;
}

static bool read_action(const struct at *at, yyjson_val *value, struct stage_rule *rule)
{
	rule->action = action_from_name(json_text(value));
	return rule->action != ACTION_NONE || complain(at, "must be create_pr, validate, merge or verify");
}

static bool read_reports(const struct at *at, yyjson_val *value, struct stage_rule *rule)
{
	rule->reports = yyjson_is_true(value);
	return yyjson_is_bool(value) || complain(at, "must be true or false");
}

static bool read_member(const struct at *at, yyjson_val *value, struct stage_rule *rule)
{
	if (yyjson_equals_str(at->key, "events"))
		return read_events(at, value, rule);
	if (yyjson_equals_str(at->key, "from"))
		return read_from(at, value, rule);
	if (yyjson_equals_str(at->key, "to"))
		return read_stage(at, value, &rule->to);
	if (yyjson_equals_str(at->key, "guards"))
		return read_guards(at, value, rule);
	if (yyjson_equals_str(at->key, "action"))
		return read_action(at, value, rule);
	if (yyjson_equals_str(at->key, "onReject"))
		return read_stage(at, value, &rule->on_reject);
	if (yyjson_equals_str(at->key, "reports"))
		return read_reports(at, value, rule);
	return complain(at,
		"is no key of a rule; here there may be events, from, to, guards, action, onReject and reports");
}

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
static bool check_failure(const struct at *at, struct stage_rule *rule)
{
	if (rule->on_reject == STAGE_NONE) {
		if (!(rule->guards & (GUARD_HOLDER | GUARD_REVIEW)))
			rule->guards |= GUARD_UNHELD;
		return true;
	}
	rule->guards |= GUARD_REVIEW;
	return rule->on_reject == STAGE_IN_PROGRESS ||
		complain(at, "has an onReject that is not in_progress, where every attempt begins");
}

static bool check_move(const struct at *at, enum stage last, struct stage_rule *rule)
{
	unsigned to = STAGE_BIT(rule->to);

	if (rule->from & S(ALLOCATED)) {
		rule->guards |= GUARD_UNHELD;
		return (rule->from == S(ALLOCATED) && rule->to == STAGE_IN_PROGRESS) ||
			complain(
				at, "leads from allocated, which leads to in_progress alone, and from there");
	}
	if (rule->reports) {
		rule->guards |= GUARD_HOLDER;
		return ((to & BEFORE_VERDICT) != 0 && (rule->from & ~(unsigned)WORK) == 0) ||
			complain(at,
				"reports: it must lead from in_progress, building or pr_created to pr_created or reviewing");
	}
	if (rule->to == STAGE_VALIDATED) {
		rule->guards |= GUARD_REVIEW | GUARD_VERDICT;
		return (rule->from & ~(unsigned)BEFORE_VERDICT) == 0 ||
			complain(at, "leads to validated: it must come from pr_created or reviewing");
	}
	if (to & LASTS) {
		rule->guards |= GUARD_REVIEW | (rule->from & S(VALIDATED) ? GUARD_GATED : 0);
		if (rule->to > last)
			return complain(at, "leads to a stage behind the last one, %s", stage_name(last));
		return (rule->from & ~(unsigned)AFTER_VERDICT) == 0 ||
			complain(at,
				"leads to %s: nothing comes there that was not validated, so it must come from validated or a later stage",
				stage_name(rule->to));
	}
	if (rule->to == STAGE_REVIEWING)
		rule->guards |= GUARD_REVIEW;
	return (rule->from & ~(unsigned)(WORK | S(REVIEWING))) == 0 ||
		complain(at, "leads nowhere from there");
}

static bool check_rule(const struct at *at, enum stage last, struct stage_rule *rule)
{
	if (!rule->events || rule->from == 0 || rule->to == STAGE_NONE)
		return complain(at, "must have events, from and to");
	if (rule->from & (S(FAILED) | S(COMPLETED)))
		return complain(at, "has failed or completed in from: nothing leads out of them");
	if (!leads_forward(rule) || rule->to == STAGE_ALLOCATED)
		return complain(at, "leads back: stages move forward within an attempt");
	if (rule->on_reject != STAGE_NONE && rule->to != STAGE_FAILED)
		return complain(at, "has onReject: then it must lead to failed");
	if ((rule->guards & GUARD_VERDICT) && rule->to != STAGE_VALIDATED)
		return complain(at, "has the guard verdict: then it must lead to validated");
	if ((rule->guards & GUARD_GATED) && !(STAGE_BIT(rule->to) & LASTS))
		return complain(at, "has the guard gated: then it must lead to merged or a later stage");
	if (rule->reports && rule->to == STAGE_FAILED)
		return complain(at, "reports: then it must not lead to failed");
	return rule->to == STAGE_FAILED ? check_failure(at, rule) : check_move(at, last, rule);
}

static bool read_rule(const struct at *at, yyjson_val *value, enum stage last, struct stage_rule *rule)
{
	yyjson_val *key, *member;
	size_t i, count;

	if (!yyjson_is_obj(value))
		return complain(at, "must be an object");
	yyjson_obj_foreach(value, i, count, key, member)
	{
		struct at inner = member_of(at, key);
		if (!read_member(&inner, member, rule))
			return false;
	}
	return check_rule(at, last, rule);
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
static struct at rule_at(const struct at *at, size_t number, yyjson_val *rule)
{
	yyjson_obj_iter iter;
	struct at inner = {.form = at->form, .key = at->key};

	if (yyjson_obj_iter_init(rule, &iter) && yyjson_obj_iter_has_next(&iter))
		inner.key = yyjson_obj_iter_next(&iter);
	snprintf(inner.name, sizeof inner.name, "%.130s[%zu]", at->name, number);
	return inner;
}

static bool read_rules(const struct at *at, yyjson_val *value, struct workflow_plan *plan)
{
	size_t count = yyjson_arr_size(value), i, max;
	yyjson_val *item;
	bool ends = false;

	if (!yyjson_is_arr(value) || count == 0 || count > WORKFLOW_RULES_MAX)
		return complain(at, "must be a list of 1 to %d rules", WORKFLOW_RULES_MAX);
	struct stage_rule *rules =
		arena_alloc(at->form->arena, (count + common_rules(NULL) + 1) * sizeof *rules);
	if (!rules)
		return complain(at, "is more than there is room for");
	yyjson_arr_foreach(value, i, max, item)
	{
		struct at inner = rule_at(at, i, item);
		if (!read_rule(&inner, item, plan->last, &rules[i]))
			return false;
		ends |= rules[i].to == plan->last;
	}
	common_rules(rules + count);
	plan->rules = rules;
	return ends || complain(at, "has no rule that leads to the last stage, %s", stage_name(plan->last));
}

static bool read_last(const struct at *at, yyjson_val *value, struct workflow_plan *plan)
{
	plan->last = stage_from_name(json_text(value));
	return (plan->last != STAGE_NONE && (STAGE_BIT(plan->last) & LASTS) != 0) ||
		complain(at, "must be the stage that is done: merged, deploying, verifying or completed");
}

static bool read_text(const struct at *at, yyjson_val *value, struct workflow_plan *plan)
{
	struct span text = json_text(value);

	if (!text.data || text.len > TEXT_BYTES_MAX || memchr(text.data, 0, text.len))
		return complain(at, "must be a text of up to %d bytes", TEXT_BYTES_MAX);
	plan->text = keep(at, text);
	return plan->text || complain(at, "is more than there is room for");
}

static bool read_plan(const struct at *at, yyjson_val *value, struct workflow_plan *plan)
{
	yyjson_val *key, *member, *rules_key = NULL, *rules = NULL;
	size_t i, count;
	bool good = true;

	if (!yyjson_is_obj(value))
		return complain(at, "must be an object: { \"last\": STAGE, \"rules\": [ … ] }");
	yyjson_obj_foreach(value, i, count, key, member)
	{
		struct at inner = member_of(at, key);
		if (yyjson_equals_str(key, "last"))
			good &= read_last(&inner, member, plan);
		else if (yyjson_equals_str(key, "text"))
			good &= read_text(&inner, member, plan);
		else if (yyjson_equals_str(key, "rules"))
			rules_key = key, rules = member;
		else
			good &= complain(
				&inner, "is no key of a workflow; here there may be last, text and rules");
	}
	if (plan->last == STAGE_NONE || !rules)
		return good && complain(at, "must have last and rules");
	struct at inner = member_of(at, rules_key);
	return good && read_rules(&inner, rules, plan);
}

static bool is_workflow_name(struct span name)
{
	for (size_t i = 0; i < name.len; i++) {
		if (!is_name_byte(name.data[i], i > 0 ? "._-" : ""))
			return false;
	}
	return name.len > 0 && name.len <= WORKFLOW_NAME_MAX;
}

static struct workflow_plan *place_of(struct workflow_form *form, struct span name)
{
	uint32_t i = 0;

	while (i < form->count && !span_equal(form->plans[i].name, name))
		i++;
	if (i == WORKFLOW_FORMS_MAX)
		return NULL;
	form->count += i == form->count;
	return &form->plans[i];
}

static void take_plan(const struct at *at, yyjson_val *value)
{
	struct span name = json_text(at->key);
	struct workflow_plan plan = {.text = ""};

	if (!is_workflow_name(name)) {
		complain(at,
			"must be called by up to %d letters, digits and . _ -, the first a letter or digit",
			WORKFLOW_NAME_MAX);
		return;
	}
	if (workflow_from_name(&workflows_built_in, name) != WORKFLOW_NONE) {
		complain(at, "is built in; choose another name");
		return;
	}
	if (!read_plan(at, value, &plan))
		return;
	plan.name = (struct span){keep(at, name), name.len};
	struct workflow_plan *place = plan.name.data ? place_of(at->form, plan.name) : NULL;
	if (place)
		*place = plan;
	else
		complain(at, "is one too many: there may be %d", WORKFLOW_FORMS_MAX);
}

bool workflow_form_take(struct workflow_form *form, struct yyjson_val *key, struct yyjson_val *value)
{
	struct at at = {.form = form, .key = key, .name = "workflows"};
	yyjson_val *name, *plan;
	size_t i, count;

	if (!yyjson_equals_str(key, "workflows"))
		return false;
	if (!yyjson_is_obj(value)) {
		complain(&at, "must be an object: { \"NAME\": { \"last\": STAGE, \"rules\": [ … ] } }");
		return true;
	}
	yyjson_obj_foreach(value, i, count, name, plan)
	{
		struct at inner = member_of(&at, name);
		take_plan(&inner, plan);
	}
	return true;
}
