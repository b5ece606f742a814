/*
 * The accounts that a worker announces: {"EXECUTOR":"ACCOUNT"} or {"EXECUTOR":["ACCOUNT",…]}.
 * The executors that subtasks may name have the same form: {"EXECUTOR":["OTHER",…]}.
 */
#pragma once

#include "api/form.h"

/* NULL: it says nothing of them. What is wrong goes into the form, as "credentials". */
void accounts_read(
	struct form *form, const char *field, yyjson_val *credentials, struct command_accounts *ret_accounts);
