/*
 * Workflows of a configuration. Whatever the text says, a workflow that is taken keeps the promises of all workflows:
 * stages move forward, nothing is merged that nobody validated, and no word from outside ends a claim.
 */
#include <assert.h>
#include <string.h>

#include "api/flow/workflow_form.h"
#include "base/take.h"
#include "fuzz/fuzz.h"
#include "wire/form/form.h"

enum {
	GATED = STAGE_BIT(STAGE_MERGED) | STAGE_BIT(STAGE_DEPLOYING) | STAGE_BIT(STAGE_VERIFYING) |
		STAGE_BIT(STAGE_COMPLETED),
};

static void expect_place(struct form *form, const char *name, const char *message)
{
	assert(yyjson_is_str(form->place));
	assert(strlen(name) > 0);
	assert(strlen(message) > 0);
}

static void expect_rule(const struct stage_rule *rule, enum stage last)
{
	bool lifts = rule->from == STAGE_BIT(STAGE_FAILED); /* the one that all of them share */

	assert(rule->from != 0);
	for (int stage = STAGE_NONE + 1; stage < STAGE_COUNT && !lifts; stage++)
		assert(!(rule->from & STAGE_BIT(stage)) || (int)rule->to >= stage);
	if (!lifts && (STAGE_BIT(rule->to) & GATED)) {
		assert(rule->to <= last);
		assert(rule->from >= STAGE_BIT(STAGE_VALIDATED));
		assert((rule->from & (STAGE_BIT(STAGE_VALIDATED) - 1)) == 0);
	}
	if (rule->to == STAGE_VALIDATED)
		assert(rule->guards & GUARD_VERDICT);
	if (rule->to == STAGE_FAILED)
		assert(rule->guards & (GUARD_HOLDER | GUARD_REVIEW | GUARD_UNHELD));
	if (rule->reports)
		assert(rule->guards & GUARD_HOLDER);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
	struct json_complaint complaint;
	cleanup(yyjson_doc_free_at) yyjson_doc *doc =
		json_read_config((struct span){(const char *)data, size}, &complaint);
	struct arena arena;
	struct form form;
	yyjson_obj_iter iter;
	yyjson_val *key;

	if (!doc || !yyjson_obj_iter_init(yyjson_doc_get_root(doc), &iter))
		return 0;
	arena_init(&arena, 16 << 20);
	struct workflow_form workflows = {0};
	form_start(&form, &arena);
	form.note = expect_place;
	while ((key = yyjson_obj_iter_next(&iter))) {
		form.place = key;
		workflow_form_take(&workflows, &form, json_text(key), yyjson_obj_iter_get_val(key));
	}
	for (uint32_t i = 0; i < workflows.count; i++) {
		const struct workflow_plan *plan = &workflows.plans[i];
		bool ends = false;
		assert(workflow_from_name(&workflows_built_in, plan->name) == WORKFLOW_NONE);
		for (const struct stage_rule *rule = plan->rules; rule->events; rule++) {
			expect_rule(rule, plan->last);
			ends |= rule->to == plan->last;
		}
		assert(ends);
	}
	arena_done(&arena);
	return 0;
}
