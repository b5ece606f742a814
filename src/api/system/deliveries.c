/*
 * The last deliveries of those who send webhooks: told by the sender (stint-notify), target by target, for the page of settings.
 *
 * Nothing is decided by it and it is no state of the store: the server keeps the texts in memory, and a sender tells them again when
 * it meets a server. So a token that may read may tell; what one token told, another cannot replace.
 */
#include "api/form.h"

enum {
	LAST_MAX = 50,
	DELIVERY_ID_MAX = 128,
	DELIVERY_TYPE_MAX = 64,
	DELIVERY_TEXT_MAX = 256,
	DELIVERY_TRIES_MAX = 1000,
	STATUS_MAX = 999,
	URL_MAX = 300,
};

struct delivery_body {
	struct span id, type, task, error;
	const char *outcome;
	int64_t at_ms, again_ms, status, tries;
};

#define COUNT_MAX  INT64_C(1000000000000000)
#define MOMENT_MAX INT64_C(253402300799999)

static const struct field delivery_fields[] = {
	FIELD_MUST_BE(delivery_body, id, "id", FIELD_NAME, .max = DELIVERY_ID_MAX),
	FIELD_MUST_BE(delivery_body, type, "type", FIELD_NAME, .max = DELIVERY_TYPE_MAX),
	FIELD(delivery_body, task, "task", FIELD_ID, .max = 0),
	FIELD_MUST_BE(delivery_body, at_ms, "at", FIELD_INT, .max = MOMENT_MAX),
	FIELD_MUST_BE(
		delivery_body, outcome, "outcome", FIELD_STRING, .words = "delivered|retrying|given-up"),
	FIELD_MUST_BE(delivery_body, tries, "tries", FIELD_INT, .min = 1, .max = DELIVERY_TRIES_MAX),
	FIELD(delivery_body, status, "status", FIELD_INT, .max = STATUS_MAX),
	FIELD(delivery_body, error, "error", FIELD_TEXT, .max = DELIVERY_TEXT_MAX),
	FIELD(delivery_body, again_ms, "againAt", FIELD_INT, .max = MOMENT_MAX),
};

struct deliveries_body {
	struct span target, url;
	int64_t delivered, given_up, missed, waiting;
	yyjson_val *last;
};

static const struct field deliveries_fields[] = {
	FIELD_MUST_BE(deliveries_body, target, "target", FIELD_ID, .max = 0),
	FIELD(deliveries_body, url, "url", FIELD_NAME, .max = URL_MAX),
	FIELD(deliveries_body, delivered, "delivered", FIELD_INT, .max = COUNT_MAX),
	FIELD(deliveries_body, given_up, "givenUp", FIELD_INT, .max = COUNT_MAX),
	FIELD(deliveries_body, missed, "missed", FIELD_INT, .max = COUNT_MAX),
	FIELD(deliveries_body, waiting, "waiting", FIELD_INT, .max = COUNT_MAX),
	FIELD_MUST_BE(deliveries_body, last, "last", FIELD_NODE, .max = 0),
};

static void put_delivery(struct buf *out, const struct delivery_body *one)
{
	struct json_object object;

	json_begin(&object, out);
	json_member_string(&object, "id", one->id);
	json_member_string(&object, "type", one->type);
	if (one->task.len > 0)
		json_member_string(&object, "task", one->task);
	json_member_int(&object, "at", one->at_ms);
	json_member_cstr(&object, "outcome", one->outcome);
	json_member_int(&object, "tries", one->tries);
	json_member_int_if_any(&object, "status", one->status);
	if (one->error.len > 0)
		json_member_string(&object, "error", one->error);
	json_member_int_if_any(&object, "againAt", one->again_ms);
	json_end(&object);
}

/* Reads the list and writes it again, with nothing in it that the table does not know. */
static void put_last(struct form *form, yyjson_val *last, struct buf *out)
{
	struct form_path path;
	size_t i, count;
	yyjson_val *item;
	bool any = false;

	if (!yyjson_is_arr(last) || yyjson_arr_size(last) > LAST_MAX) {
		form_error(form, "last", "must be a list of at most %d", LAST_MAX);
		return;
	}
	yyjson_arr_foreach(last, i, count, item)
	{
		struct delivery_body one = {0};
		form_enter(form, &path, SPAN("last"), (int64_t)i);
		if (yyjson_is_obj(item))
			form_read(form, item, FIELDS(delivery_fields), &one);
		else
			form_wrong_as(form, "", "an object", item);
		form_leave(form);
		if (form->error_count > 0)
			continue;
		json_put_comma(out, &any);
		put_delivery(out, &one);
	}
}

static void put_target(
	struct api_call *call, struct form *form, struct deliveries_body *body, struct buf *out)
{
	struct json_object object;

	form_read(form, form->root, FIELDS(deliveries_fields), body);
	json_begin(&object, out);
	json_member_string(&object, "target", body->target);
	json_member_string(&object, "by", call->who.name);
	json_member_int(&object, "toldAt", call->now.wall_ms);
	if (body->url.len > 0)
		json_member_string(&object, "url", body->url);
	json_member_int(&object, "delivered", body->delivered);
	json_member_int(&object, "givenUp", body->given_up);
	json_member_int(&object, "missed", body->missed);
	json_member_int(&object, "waiting", body->waiting);
	if (json_put_key(&object, "last")) {
		buf_put_byte(out, '[');
		if (body->last)
			put_last(form, body->last, out);
		buf_put_byte(out, ']');
	}
	json_end(&object);
}

void delivery_tell_begin(struct api_call *call)
{
	const struct api_services *host = call->host;
	struct deliveries_body body = {0};
	struct form form;

	if (!call_require(call, call->who.login.len == 0, REFUSED_FORBIDDEN,
		    "A browser session tells of no deliveries.") ||
		!form_open(&form, call, false))
		return;
	put_target(call, &form, &body, call->body);
	bool is_good = form_is_good(&form);
	form_done(&form);
	if (!is_good)
		return;
	int r = buf_fault(call->body);
	if (r == 0 && host->keep_deliveries)
		r = host->keep_deliveries(host->context, call->who.id, body.target, buf_span(call->body));
	call_reply(call, 200, r);
}

/* A credential for certain queues sees what it told itself: an event of any queue may stand in what others tell. */
void delivery_list_read(struct api_call *call)
{
	const struct api_services *host = call->host;

	if (!query_read(call, NULL, 0))
		return;
	buf_put_byte(call->body, '[');
	if (host->put_deliveries)
		host->put_deliveries(host->context,
			call->who.queues.count > 0 ? call->who.id : (struct span){0}, call->body);
	buf_put_byte(call->body, ']');
	call_reply(call, 200, buf_fault(call->body));
}
