/*
 * Workflows as JSON: as a configuration says them, and as they are shown.
 */
#pragma once

#include "base/arena.h"
#include "core/workflow.h"

struct yyjson_val;

enum {
	WORKFLOW_FORMS_MAX = WORKFLOW_MAX - WORKFLOW_CONFIGURED,
	WORKFLOW_RULES_MAX = 64, /* of one workflow, without those that all have */
};

/* Reads { "NAME": { "text", "last", "rules": […] }, … }. What is wrong is told with the key or the text that is. */
struct workflow_form {
	struct arena *arena; /* for what is kept of it */
	void (*complain)(void *context, struct yyjson_val *at, const char *text);
	void *context;
	/* A name that comes again takes the place of the other. */
	struct workflow_plan plans[WORKFLOW_FORMS_MAX];
	uint32_t count;
};

/* True: the key is "workflows", and what it says was read or complained about. */
bool workflow_form_take(struct workflow_form *form, struct yyjson_val *key, struct yyjson_val *value);

/* The words for guards, by their bits. */
enum {
	GUARD_WORDS = 8,
};
extern const char *const guard_words[GUARD_WORDS];
