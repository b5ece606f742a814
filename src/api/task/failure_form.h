/*
 * An error as a worker reports it: {"code","message","class","retryAt","retry":false,"credential","details"}.
 */
#pragma once

#include "api/form.h"

/* Takes it apart, and keeps it as JSON with the class that it got. What is wrong goes into the form. */
void failure_read(struct form *form, yyjson_val *error, struct failure *ret_failure, struct span *ret_json);
