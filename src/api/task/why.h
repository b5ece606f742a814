/*
 * Why a task is where it is, for people.
 */
#pragma once

#include "api/call.h"

/* Appends "reason", "text" (a sentence without its full stop) and, if a command moves the task, "try". `closer` also looks at the
 * parents of its parents and at what workers say of themselves: for one task, not for a list. */
void why_put(const struct api_call *call, struct json_object *object, const struct task_document *document,
	struct reason reason, bool closer);

/* The same as a member "why" of the task's document. */
void why_put_member(const struct api_call *call, struct json_object *object,
	const struct task_document *document, struct reason reason);

/* Does ?include= name what there is to include? False: the call was refused. */
bool why_is_wanted(struct api_call *call, const struct query_value *include);
