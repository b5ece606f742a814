/*
 * A task document as a caller sends it, taken apart: columns into a create or an update, the rest as text.
 */
#pragma once

#include "api/form.h"

struct task_form {
	struct command_create create; /* the fields that rules look at; all other members are in its `body` */
	int64_t timeout_ms, max_attempts;
	enum task_status status;          /* PATCH: the new status */
	uint64_t given;                   /* bit per row of the table: the field was given and is not null */
	uint64_t cleared;                 /* bit per row of the table: the field was given as null */
	struct span warnings;             /* elements of a JSON list */
	struct span error;                /* PATCH into `blocked`: why, as JSON */
	bool says_failure, says_recovery; /* PATCH: see struct command_update */
	uint32_t tries;                   /* to merge a patch, when others change the text at the same time */
};

/* The bit of a field in `given` and `cleared`. */
uint64_t task_field_bit(const char *name);

/* A document for POST. What is wrong goes into the form. */
void task_form_create(struct form *form, yyjson_val *document, struct task_form *ret);

/* A document for PATCH: create.body has the members to merge into the task's body; empty: the body does not change. */
void task_form_patch(struct form *form, yyjson_val *document, struct task_form *ret);

/* The command of a valid form; of one for POST it is `create`. */
void task_form_to_update(const struct task_form *form, struct command_update *ret);

/* A priority: a number, or one of its words. */
field_take task_take_priority;

/* Does its metadata say that it may run on its own? */
bool task_is_autonomous(yyjson_val *metadata);

/* The members as an object; to be freed. NULL: there is no memory, and that is a fault of `out` (which may be NULL), so that
 * no reply leaves without them. */
yyjson_doc *task_body_read(struct span members, struct buf *out);

/* RFC 7396: `patch`, a JSON object, merged into `members`; -ENOMEM, -E2BIG, -EPROTO. */
int task_body_merge(struct arena *arena, struct span members, struct span patch, struct span *ret_members);

/* Sets the members of `object` in the metadata, replacing members of the same name; null is a value here. */
int task_body_put_metadata(
	struct arena *arena, struct span members, struct span object, struct span *ret_members);
