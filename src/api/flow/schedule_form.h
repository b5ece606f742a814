/*
 * A schedule as a caller writes it: cron, every or at, and the template of its tasks.
 */
#pragma once

#include "api/task/form.h"

struct schedule_form {
	struct schedule schedule;
	struct task_form task; /* the template */
	bool paused;
	uint32_t tries; /* PATCH: how often it was merged */
};

/* The document of a POST: ours, or that of OpenClaw's cron. What is wrong goes into the form. */
void schedule_form_read(struct form *form, yyjson_val *document, struct schedule_form *ret);

/* The members of a schedule that a caller may write, into an object that is open. */
void schedule_put_asked(struct json_object *object, const struct schedule_document *document);

/* "every day 13:30", "Mondays 09:00", "every 30 s"; a line that has no such words stays as it is. */
int schedule_put_words(struct buf *out, const struct schedule_document *document);
