/*
 * The kill switch: is work handed out, and shall it be?
 */
#include "api/form.h"

enum {
	REASON_MAX = 4096,
};

struct execution_body {
	struct span reason;
	bool armed;
};

static const struct field execution_fields[] = {
	FIELD_MUST_BE(execution_body, armed, "armed", FIELD_BOOL, .max = 0),
	FIELD(execution_body, reason, "reason", FIELD_TEXT, .max = REASON_MAX),
};

/* Every operator may disarm execution. Arming it needs a token, so that the event names who did it. */
void execution_set_begin(struct api_call *call)
{
	struct execution_body body = {0};

	if (!form_read_body(call, FIELDS(execution_fields), &body) ||
		!call_require(call, !body.armed || call->who.number != PRINCIPAL_OPEN, REFUSED_FORBIDDEN,
			"Arming needs a token; disarming does not."))
		return;
	struct command *command = call_command(call, COMMAND_EXECUTION_SET);
	if (!command)
		return;
	command->armed = body.armed;
	call_keep_note(call, "reason", body.reason, command);
}

bool call_is_armed(const struct api_call *call, int64_t *ret_since_ms)
{
	const struct api_services *host = call->host;
	struct about about = host->about ? host->about(host->context) : (struct about){0};

	if (ret_since_ms)
		*ret_since_ms = about.armed_ms;
	return about.armed;
}

static void put_execution(struct api_call *call)
{
	struct json_object object;
	int64_t since_ms;
	bool armed = call_is_armed(call, &since_ms);

	json_begin(&object, call->body);
	json_member_bool(&object, "armed", armed);
	json_member_int_or_null(&object, "since", since_ms);
	call_reply(call, 200, json_end(&object));
}

void execution_set_finish(struct api_call *call, const struct result *results)
{
	(void)results;
	put_execution(call);
}

void execution_read(struct api_call *call)
{
	if (query_read(call, NULL, 0))
		put_execution(call);
}
