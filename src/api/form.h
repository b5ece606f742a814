/*
 * The body of a request, read by a table of fields (wire/form/form.h), and its refusal with everything that is wrong.
 */
#pragma once

#include "api/call.h"
#include "wire/form/form.h"

/* The call whose body is read. */
static inline struct api_call *form_call(const struct form *form)
{
	return form->context;
}

/* Reads the body of the request; no body is an empty object. False: the body is not JSON, or not an object, or there is
 * no memory for it, and the call was refused. Always form_done(). `list_too`: a list is accepted as well. */
bool form_open(struct form *form, struct api_call *call, bool list_too);
void form_init(struct form *form, struct api_call *call); /* for values that come from elsewhere */

/* Nothing was wrong; else the call was refused with all errors, or because memory is missing. */
bool form_is_good(struct form *form);

/* What was written for a field, into the arena of the form; without room for it the form has a fault. */
void form_keep_text(struct form *form, const struct buf *text, struct span *ret_text);

/* open, read by the table, judge, done */
bool form_read_body(struct api_call *call, const struct field *fields, uint32_t count, void *into);

/* FIELD_BY of a uint64_t: the token of a heartbeat, 0 if the text is not one of ours; "" counts as null. */
field_take form_take_token;
