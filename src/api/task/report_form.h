/*
 * The end of a claim as an element of a list, the error of a report, and the statuses that a claim takes.
 */
#pragma once

#include "api/form.h"

/* {"id","fence","outcome":"complete"} and the fields that a report of that outcome has. What is wrong goes into the form;
 * who reports is left to the caller. */
void report_read_finish(struct form *form, yyjson_val *item, struct command *command);

/* "ready", "pending": what a claim takes. What is wrong goes into the form. */
void claim_read_statuses(struct form *form, const struct name_list *statuses, struct command_claim *claim);

/* An error as a worker reports it: {"code","message","class","retryAt","retry":false,"credential","details"}. Takes it apart, and
 * keeps it as JSON with the class that it got; the account that it names also by itself. What is wrong goes into the form. */
void failure_read(struct form *form, yyjson_val *error, struct failure *ret_failure, struct span *ret_json,
	struct span *ret_account);
