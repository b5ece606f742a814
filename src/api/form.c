#include "api/form.h"

#include <assert.h>
#include <errno.h>
#include <stdio.h>
#include <string.h>

#include "api/worker/beat_token.h"
#include "base/secret.h"
#include "base/take.h"

static_assert(
	(int)FORM_ID_MAX == (int)COMMAND_ID_MAX, "an id that a form accepts is one that a command may have");
static_assert((int)FORM_NAME_MAX == (int)COMMAND_NAME_MAX, "the same for names");
static_assert((int)FORM_LIST_MAX == (int)COMMAND_LIST_MAX, "and for lists");

void form_init(struct form *form, struct api_call *call)
{
	form_start(form, call->arena);
	form->context = call;
}

static bool refuse_text(struct api_call *call, const struct json_complaint *complaint)
{
	char detail[256];

	snprintf(detail, sizeof detail, "The body is not JSON that can be accepted: at byte %zu: %s",
		complaint->at, complaint->reason);
	return call_bad_request(call, detail);
}

/* What workers and their programs say is shown to all who read the task: a token of ours in it is made useless first. */
static int blank_secrets(struct api_call *call, struct span *body)
{
	const uint32_t of_work = SCOPE_BIT(SCOPE_WORK) | SCOPE_BIT(SCOPE_CLAIM) | SCOPE_BIT(SCOPE_EMIT);

	if (!call->route || (call->route->scopes & of_work) == 0 || !secret_may_be_in(*body))
		return 0;
	char *copy = arena_alloc(call->arena, body->len);
	if (!copy)
		return -ENOMEM;
	memcpy(copy, body->data, body->len);
	secret_blank(copy, body->len);
	body->data = copy;
	return 0;
}

bool form_open(struct form *form, struct api_call *call, bool list_too)
{
	struct span body = call->request->body;
	struct json_complaint complaint;

	form_init(form, call);
	if (blank_secrets(call, &body) < 0)
		return call_refuse_request(call, -ENOMEM);
	yyjson_doc *doc = json_read_in(call->arena, body.len == 0 ? SPAN("{}") : body, &complaint);
	if (!doc)
		return complaint.fault < 0 ? call_refuse_request(call, complaint.fault)
					   : refuse_text(call, &complaint);
	form->root = yyjson_doc_get_root(doc);
	if (yyjson_is_obj(form->root) || (list_too && yyjson_is_arr(form->root)))
		return true;
	return call_refuse_field(call, "", "The body must be a JSON object.");
}

bool form_is_good(struct form *form)
{
	cleanup(buf_done) struct buf members = {.max = 128 << 10};

	if (form->fault < 0)
		return call_refuse_request(form_call(form), form->fault);
	if (form->error_count == 0)
		return true;
	buf_put_span(&members, SPAN("\"errors\":["));
	buf_put_span(&members, buf_span(&form->errors));
	buf_put_byte(&members, ']');
	call_refuse_with(form_call(form), REFUSED_INVALID,
		form->error_count == 1 ? "One field cannot be accepted." : "Some fields cannot be accepted.",
		&members);
	return false;
}

void form_keep_text(struct form *form, const struct buf *text, struct span *ret_text)
{
	int r = buf_keep(text, form->arena, ret_text);

	if (r < 0)
		form->fault = r;
}

bool form_read_body(struct api_call *call, const struct field *fields, uint32_t count, void *into)
{
	cleanup(form_done) struct form form = {0};

	if (!form_open(&form, call, false))
		return false;
	form_read(&form, form.root, fields, count, into);
	return form_is_good(&form);
}

/* Any text: that it is not the last one given out is for the rules to say. */
bool form_take_token(struct form *form, const struct field *field, yyjson_val *value, void *at)
{
	if (!yyjson_is_str(value))
		return form_wrong(form, field, value);
	*(uint64_t *)at = beat_token_read(json_text(value));
	return yyjson_get_len(value) > 0;
}
