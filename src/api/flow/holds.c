/*
 * Holds: accounts whose tasks are passed over, and the accounts that workers announce.
 */
#include "api/flow/accounts.h"
#include "api/flow/budgets.h"

#include <errno.h>

#include "base/take.h"

enum {
	REASON_MAX = 4096,
};

#define TIME_MAX INT64_C(253402300799999)

/* ---- what workers announce --------------------------------------------------------------------------------------- */

#define CREDENTIALS_FORM \
	"must be an object of executors, each with the name of an account or a list of names; at most 100 accounts"

static bool add_account(struct api_call *call, struct command_account *items, uint32_t *count,
	yyjson_val *executor, yyjson_val *account)
{
	struct span name = json_text(account);

	if (*count == COMMAND_LIST_MAX || !yyjson_is_str(account) || !text_is_name(name, COMMAND_NAME_MAX))
		return false;
	struct command_account *one = &items[(*count)++];
	return arena_copy(call->arena, json_text(executor), &one->executor) == 0 &&
		arena_copy(call->arena, name, &one->account) == 0;
}

void accounts_read(
	struct form *form, const char *field, yyjson_val *credentials, struct command_accounts *ret_accounts)
{
	struct api_call *call = form_call(form);
	yyjson_val *executor, *said, *account;
	size_t at, limit, i, n;
	uint32_t count = 0;

	*ret_accounts = (struct command_accounts){0};
	if (!credentials)
		return;
	struct command_account *items = arena_alloc(call->arena, COMMAND_LIST_MAX * sizeof *items);
	bool good = items && yyjson_is_obj(credentials) && yyjson_obj_size(credentials) <= COMMAND_LIST_MAX;
	yyjson_obj_foreach(credentials, at, limit, executor, said)
	{
		good = good && text_is_name(json_text(executor), COMMAND_NAME_MAX);
		if (good && !yyjson_is_arr(said))
			good = add_account(call, items, &count, executor, said);
		yyjson_arr_foreach(said, i, n, account)
		{
			good = good && add_account(call, items, &count, executor, account);
		}
	}
	if (!good) {
		form_error(form, field, CREDENTIALS_FORM);
		return;
	}
	*ret_accounts = (struct command_accounts){.given = true, .count = count, .items = items};
}

/* ---- looking ----------------------------------------------------------------------------------------------------- */

static int put_hold(struct buf *out, struct span name, const struct hold *hold, uint32_t tasks)
{
	struct json_object object;

	json_begin(&object, out);
	json_member_string(&object, "credential", name);
	json_member_cstr(&object, "state", hold_state_name(hold->state));
	if (hold->state == HOLD_HELD)
		json_member_int_or_null(&object, "until", hold->until_ms);
	json_member_int(&object, "since", hold->since_ms);
	if (hold->code != CODE_NONE)
		json_member_cstr(&object, "code", failure_code_name(hold->code));
	json_member_int(&object, "tasks", tasks);
	return json_end(&object);
}

void hold_list_read(struct api_call *call)
{
	struct hold_document hold;
	struct call_list list;
	uint32_t at = 0;
	int r = 0;

	if (!call_list_begin(&list, call))
		return;
	while (r == 0 && store_next_hold(call->store, &at, &hold)) {
		call_list_next(&list);
		r = put_hold(call->body, hold.name, &hold.hold, hold.tasks);
	}
	call_list_end(&list, r);
}

static void put_account(struct api_call *call, struct span name, struct span executor, struct span worker,
	const struct day_budget *budget)
{
	struct json_object object;

	json_begin(&object, call->body);
	json_member_string(&object, "name", name);
	json_member_string_or_null(&object, "executor", executor);
	json_member_string_or_null(&object, "worker", worker);
	if (budget)
		budget_put_members(&object, budget, call->now.wall_ms);
	json_end(&object);
}

static bool is_announced(const struct api_call *call, struct span name)
{
	struct account_cursor at = {0};
	struct account_document account;

	while (store_next_account(call->store, &at, &account)) {
		if (span_equal(account.name, name))
			return true;
	}
	return false;
}

/* Those that live workers announce, and then those that only have a budget or have used something today. */
void credential_list_read(struct api_call *call)
{
	struct account_cursor at = {0};
	struct account_document account;
	struct budget_document one;
	struct day_budget budget;
	struct call_list list;
	uint32_t next = 0;

	if (!call_list_begin(&list, call))
		return;
	while (store_next_account(call->store, &at, &account)) {
		bool counted = store_find_budget(call->store, BUDGET_OF_ACCOUNT, account.name, &budget);
		call_list_next(&list);
		put_account(call, account.name, account.executor, account.worker, counted ? &budget : NULL);
	}
	while (store_next_budget(call->store, &next, &one)) {
		if (one.scope != BUDGET_OF_ACCOUNT || is_announced(call, one.name))
			continue;
		call_list_next(&list);
		put_account(call, one.name, (struct span){0}, (struct span){0}, &one.budget);
	}
	call_list_end(&list, 0);
}

/* ---- people ------------------------------------------------------------------------------------------------------ */

struct hold_body {
	struct span credential, reason;
	int64_t until_ms;
};

static const struct field hold_fields[] = {
	FIELD_MUST_BE(hold_body, credential, "credential", FIELD_NAME, .max = COMMAND_NAME_MAX),
	FIELD(hold_body, until_ms, "until", FIELD_INT, .max = TIME_MAX),
	FIELD(hold_body, reason, "reason", FIELD_TEXT, .max = REASON_MAX),
};

void hold_set_begin(struct api_call *call)
{
	struct hold_body body = {0};

	if (!form_read_body(call, FIELDS(hold_fields), &body) ||
		!call_require_field(call, body.until_ms == 0 || body.until_ms > call->now.wall_ms, "until",
			"must be a time to come; without it the account is held until a person lifts the hold"))
		return;
	struct command *command = call_command(call, COMMAND_HOLD_SET);
	if (!command)
		return;
	command->hold.credential = body.credential;
	command->hold.until_ms = body.until_ms;
	call_keep_note(call, "reason", body.reason, command);
}

/* The account as it is now. */
void hold_set_finish(struct api_call *call, const struct result *results)
{
	struct hold_document hold;
	uint32_t at = 0;

	(void)results;
	while (store_next_hold(call->store, &at, &hold)) {
		if (span_equal(hold.name, call->commands[0].hold.credential)) {
			call_reply(call, 201, put_hold(call->body, hold.name, &hold.hold, hold.tasks));
			return;
		}
	}
	call_reply(call, 201, -ENOENT); /* it was lifted by another command of the same turn */
}

void hold_lift_begin(struct api_call *call)
{
	if (!form_read_body(call, NULL, 0, NULL) || !query_read(call, NULL, 0) ||
		!call_param_is_name(call, "credential"))
		return;
	struct command *command = call_command(call, COMMAND_HOLD_LIFT);
	if (command)
		command->hold.credential = call->params[0];
}

void hold_lift_finish(struct api_call *call, const struct result *results)
{
	struct json_object object;

	(void)results;
	json_begin(&object, call->body);
	json_member_string(&object, "credential", call->params[0]);
	json_member_cstr(&object, "state", hold_state_name(HOLD_NONE));
	call_reply(call, 200, json_end(&object));
}
