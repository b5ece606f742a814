/*
 * The workflows that tasks may have, as data: those that are built in, and those of the configuration.
 */
#include "api/call.h"

#include <errno.h>

#include "api/flow/workflow_form.h"
#include "base/take.h"

enum {
	WORKFLOW_BYTES_MAX = 1 << 20,
};

const struct workflows *call_workflows(const struct api_call *call)
{
	return call->store ? store_workflows(call->store) : &workflows_built_in;
}

/* Words in a list. */
struct words {
	struct buf *out;
	bool any;
};

static void words_begin(struct words *words, struct buf *out)
{
	*words = (struct words){.out = out};
	buf_put_byte(out, '[');
}

static void words_add(struct words *words, struct span word)
{
	json_put_comma(words->out, &words->any);
	json_put_string(words->out, word);
}

static void put_words(struct json_object *object, const char *key, struct words *words)
{
	buf_put_byte(words->out, ']');
	json_member_buf(object, key, words->out);
	buf_clear(words->out);
}

static void put_lists(struct json_object *object, const struct stage_rule *rule)
{
	cleanup(buf_done) struct buf text = {0};
	struct words words;

	buf_init(&text, 64 << 10);
	words_begin(&words, &text);
	for (const char *at = rule->events; *at; at += strspn(at, " ")) {
		struct span name = {at, strcspn(at, " ")};
		words_add(&words, name);
		at += name.len;
	}
	put_words(object, "events", &words);
	words_begin(&words, &text);
	for (int stage = STAGE_NONE + 1; stage < STAGE_COUNT; stage++) {
		if (rule->from & STAGE_BIT(stage))
			words_add(&words, span_of(stage_name((enum stage)stage)));
	}
	put_words(object, "from", &words);
	words_begin(&words, &text);
	for (unsigned bit = 0; bit < GUARD_WORDS; bit++) {
		if (rule->guards & 1u << bit)
			words_add(&words, span_of(guard_words[bit]));
	}
	put_words(object, "guards", &words);
}

static int put_rule(struct buf *out, const struct stage_rule *rule)
{
	struct json_object object;

	json_begin(&object, out);
	put_lists(&object, rule);
	json_member_cstr(&object, "to", stage_name(rule->to));
	if (rule->action != ACTION_NONE)
		json_member_cstr(&object, "action", action_name(rule->action));
	if (rule->on_reject != STAGE_NONE)
		json_member_cstr(&object, "onReject", stage_name(rule->on_reject));
	if (rule->reports)
		json_member_bool(&object, "reports", true);
	return json_end(&object);
}

static int put_workflow(struct buf *out, uint32_t number, const struct workflow_plan *plan)
{
	cleanup(buf_done) struct buf rules = {0};
	struct json_object object;
	int r;

	buf_init(&rules, WORKFLOW_BYTES_MAX);
	r = buf_put_byte(&rules, '[');
	for (const struct stage_rule *rule = plan->rules; r == 0 && rule->events; rule++) {
		r = rule > plan->rules ? buf_put_byte(&rules, ',') : 0;
		if (r == 0)
			r = put_rule(&rules, rule);
	}
	if (r == 0)
		r = buf_put_byte(&rules, ']');
	json_begin(&object, out);
	json_member_string(&object, "name", plan->name);
	json_member_cstr(&object, "text", plan->text);
	json_member_cstr(&object, "last", stage_name(plan->last));
	json_member_bool(&object, "builtIn", number < WORKFLOW_CONFIGURED);
	json_member_buf(&object, "rules", &rules);
	return r < 0 ? r : json_end(&object);
}

void workflow_list_read(struct api_call *call)
{
	const struct workflows *all = call_workflows(call);
	bool any = false;

	if (!query_read(call, NULL, 0))
		return;
	int r = buf_put_byte(call->body, '[');
	for (uint32_t i = WORKFLOW_NONE + 1; r == 0 && i < WORKFLOW_MAX; i++) {
		const struct workflow_plan *plan = &all->plans[i];
		if (!plan->rules || !plan->rules->events)
			continue;
		r = json_put_comma(call->body, &any);
		if (r == 0)
			r = put_workflow(call->body, i, plan);
	}
	call_reply(call, 200, r < 0 ? r : buf_put_byte(call->body, ']'));
}

void workflow_read(struct api_call *call)
{
	const struct workflows *all = call_workflows(call);
	enum workflow number = workflow_from_name(all, call->params[0]);

	if (!query_read(call, NULL, 0))
		return;
	if (number == WORKFLOW_NONE)
		call_refuse_fault(call, -ENOENT);
	else
		call_reply(call, 200, put_workflow(call->body, number, &all->plans[number]));
}
