/*
 * Workflows as JSON: as a configuration says them, and as they are shown.
 */
#pragma once

#include "core/workflow.h"

struct form;
struct yyjson_val;

enum {
	WORKFLOW_FORMS_MAX = WORKFLOW_MAX - WORKFLOW_CONFIGURED,
	WORKFLOW_RULES_MAX = 64, /* of one workflow, without the rules common to all */
};

/* The workflows of a configuration. A later workflow of the same name replaces the earlier one. */
struct workflow_form {
	struct workflow_plan plans[WORKFLOW_FORMS_MAX];
	uint32_t count;
};

/* Reads { "NAME": { "text", "last", "rules": […] }, … } by the form, which keeps the texts. False: the key is not
 * "workflows". */
bool workflow_form_take(
	struct workflow_form *workflows, struct form *form, struct span key, struct yyjson_val *value);

/* The words for guards, by their bits. */
enum {
	GUARD_WORDS = 8,
};
extern const char *const guard_words[GUARD_WORDS];
