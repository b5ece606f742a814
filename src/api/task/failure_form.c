#include "api/task/report_form.h"

#include "base/take.h"

struct failure_body {
	struct span code, message, klass, credential, details;
	int64_t retry_at_ms;
	bool retry;
};

static const struct field fields[] = {
	FIELD(failure_body, code, "code", FIELD_NAME, .max = 64),
	FIELD(failure_body, message, "message", FIELD_TEXT, .max = 64 << 10),
	FIELD(failure_body, klass, "class", FIELD_NAME, .max = 16),
	FIELD(failure_body, retry_at_ms, "retryAt", FIELD_INT, .max = INT64_C(253402300799999)),
	FIELD(failure_body, retry, "retry", FIELD_BOOL, .max = 0),
	FIELD(failure_body, credential, "credential", FIELD_NAME, .max = 0),
	FIELD(failure_body, details, "details", FIELD_VALUE, .max = 0),
};

static enum failure_code code_known(struct span name)
{
	return failure_code_from_name(name.data ? name.data : "", name.len);
}

/* Only the server gives these verdicts. From a worker they count as an unknown code and are kept as OTHER: a task that
 * shows the code of a verdict has had that verdict. */
static bool is_verdict(struct span name)
{
	return failure_code_class(code_known(name)) == CLASS_FINAL;
}

static enum failure_code code_named(struct span name)
{
	return is_verdict(name) ? CODE_OTHER : code_known(name);
}

static enum failure_class class_of(enum failure_code code, struct span name)
{
	enum failure_class klass = FAILURE_CLASS_NONE;

	if (code != CODE_OTHER)
		return failure_code_class(code);
	if (name.len > 0)
		klass = failure_class_from_name(name.data, name.len);
	return klass == FAILURE_CLASS_NONE ? CLASS_TASK : klass;
}

static int put_failure(struct buf *text, const struct failure_body *body, const struct failure *failure)
{
	struct json_object object;

	json_begin(&object, text);
	if (body->code.len > 0 && !is_verdict(body->code))
		json_member_string(&object, "code", body->code);
	else
		json_member_cstr(&object, "code", failure_code_name(failure->code));
	json_member_string(&object, "message", body->message);
	json_member_cstr(&object, "class", failure_class_name(failure->klass));
	json_member_int_if_any(&object, "retryAt", failure->retry_at_ms);
	if (failure->no_retry)
		json_member_bool(&object, "retry", false);
	json_member_string_if_any(&object, "credential", body->credential);
	json_member_raw_if_any(&object, "details", body->details);
	return json_end(&object);
}

void failure_read(struct form *form, yyjson_val *error, struct failure *ret_failure, struct span *ret_json,
	struct span *ret_account)
{
	struct failure_body body = {.retry = true};
	cleanup(buf_done) struct buf text = {.max = 4 * API_TEXT_MAX};

	if (!yyjson_is_obj(error)) {
		form_wrong_as(form, "error", "an object with code and message", error);
		return;
	}
	form_read_inner(form, "error", error, FIELDS(fields), &body);
	ret_failure->code = code_named(body.code);
	ret_failure->klass = class_of(ret_failure->code, body.klass);
	ret_failure->retry_at_ms = body.retry_at_ms;
	ret_failure->no_retry = !body.retry;
	*ret_account = body.credential;
	put_failure(&text, &body, ret_failure);
	form_keep_text(form, &text, ret_json);
}
