/*
 * Subtasks in the API: what comes with the token of a claim.
 */
#pragma once

#include "api/task/form.h"
#include "api/task/view.h"

/* The document is that of a subtask of the caller's own task: what its text may say is checked here, and the members that it
 * inherits are added. What is wrong goes into the form. False: the call was refused. */
bool subtask_fill(struct form *form, yyjson_val *document, struct command *command);

/* The store refused the subtask: the field, and what is wrong with it. */
const char *subtask_complaint(
	const struct api_call *call, const struct result *result, const char **ret_field, char message[256]);

/* "parent":{…} of a claim: what the parent may do, for a worker that compares. */
void subtask_put_parent(const struct api_call *call, struct json_object *object, const struct task *task);

/* "children":[{"id","state","result"}]: what the task has created since an operator last retried it. */
void subtasks_put(const struct api_call *call, struct json_object *object, const struct task *task);
