/*
 * Budgets of a day, of a queue or an account: {"usd": 5, "tokens": 2000000, "turns": 100, "toolCalls": 500}; a null lifts a part, and null in
 * place of the object lifts all.
 */
#pragma once

#include "api/form.h"

/* For a table of fields: the member is read by the next function, which sees a null, too. */
field_take budget_take_later;

/* The member "budget" of the body, if it has one: *ret_given. What is wrong goes into the form. */
void budget_read_member(struct form *form, bool *ret_given, struct day_budget_patch *ret_patch);

/* Members "budget" and "spentToday", as far as there are any. */
void budget_put_members(struct json_object *object, const struct day_budget *budget, int64_t wall_ms);

/* "queue usd 5000000 4100000", as the store writes it of an event, as members. */
void budget_put_note(struct json_object *data, struct span note, struct span subject);
