/*
 * The workflows that tasks may have, as data: the built-in ones and the configured ones.
 */
#include "api/call.h"

#include <errno.h>

#include "api/flow/workflow_form.h"

const struct workflows *call_workflows(const struct api_call *call)
{
	return call->store ? store_workflows(call->store) : &workflows_built_in;
}

static void put_lists(struct json_object *object, const struct stage_rule *rule)
{
	struct json_names names;

	json_names_begin(&names, object, "events");
	for (const char *at = rule->events; *at; at += strspn(at, " ")) {
		struct span name = {at, strcspn(at, " ")};
		json_names_put(&names, name);
		at += name.len;
	}
	json_names_end(&names, 0);
	json_names_begin(&names, object, "from");
	for (int stage = STAGE_NONE + 1; stage < STAGE_COUNT; stage++) {
		if (rule->from & STAGE_BIT(stage))
			json_names_put(&names, span_of(stage_name((enum stage)stage)));
	}
	json_names_end(&names, 0);
	json_names_begin(&names, object, "guards");
	for (unsigned bit = 0; bit < GUARD_WORDS; bit++) {
		if (rule->guards & 1u << bit)
			json_names_put(&names, span_of(guard_words[bit]));
	}
	json_names_end(&names, 0);
}

static void put_rule(struct buf *out, const struct stage_rule *rule)
{
	struct json_object object;

	json_begin(&object, out);
	put_lists(&object, rule);
	json_member_cstr(&object, "to", stage_name(rule->to));
	if (rule->action != ACTION_NONE)
		json_member_cstr(&object, "action", action_name(rule->action));
	if (rule->on_reject != STAGE_NONE)
		json_member_cstr(&object, "onReject", stage_name(rule->on_reject));
	json_member_true_if(&object, "reports", rule->reports);
	json_end(&object);
}

static int put_workflow(struct buf *out, uint32_t number, const struct workflow_plan *plan)
{
	struct json_object object;
	bool any = false;

	json_begin(&object, out);
	json_member_string(&object, "name", plan->name);
	json_member_cstr(&object, "text", plan->text);
	json_member_cstr(&object, "last", stage_name(plan->last));
	json_member_bool(&object, "builtIn", number < WORKFLOW_CONFIGURED);
	json_put_key(&object, "rules");
	buf_put_byte(out, '[');
	for (const struct stage_rule *rule = plan->rules; rule->events; rule++) {
		json_put_comma(out, &any);
		put_rule(out, rule);
	}
	buf_put_byte(out, ']');
	return json_end(&object);
}

void workflow_list_read(struct api_call *call)
{
	const struct workflows *all = call_workflows(call);
	struct call_list list;

	if (!call_list_begin(&list, call))
		return;
	for (uint32_t i = WORKFLOW_NONE + 1; i < WORKFLOW_MAX; i++) {
		const struct workflow_plan *plan = &all->plans[i];
		if (!plan->rules || !plan->rules->events)
			continue;
		call_list_next(&list);
		put_workflow(call->body, i, plan);
	}
	call_list_end(&list, 0);
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
