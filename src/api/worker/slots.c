/*
 * Slots: the worker in each, entering one, reporting a crash, and ending a quarantine.
 */
#include "api/form.h"

#include <errno.h>

/* In words: what fills it, or why nothing may. */
static const char *slot_standing(const struct slot_document *slot, const struct given *given)
{
	enum slot_state state = slot_state_now(&slot->slot, given);

	if (state != SLOT_FREE_TO_RUN)
		return slot_state_name(state);
	return slot->filler ? "filled" : "empty";
}

/* A moment of the lease clock as people's time; exact as long as nobody sets the clock. */
static int64_t wall_of(const struct given *given, int64_t lease_ms)
{
	return given->now.wall_ms - (given->now.lease_ms - lease_ms);
}

static uint32_t crashes_in_window(const struct slot *slot, const struct given *given)
{
	uint32_t count = 0;

	while (count < SLOT_CRASHES_KEPT && slot->crashed_ms[count] != INT64_MIN &&
		given->now.lease_ms - slot->crashed_ms[count] <= given->rules->quarantine_window_ms)
		count++;
	return count;
}

static void put_slot_times(
	struct json_object *object, const struct slot_document *slot, const struct given *given)
{
	enum slot_state state = slot_state_now(&slot->slot, given);
	int64_t since_ms = state != SLOT_FREE_TO_RUN ? wall_of(given, slot->slot.since_ms) : 0;

	if (state == SLOT_FREE_TO_RUN && slot->filler)
		since_ms = slot->filler->registered_ms;
	json_member_int_or_null(object, "since", since_ms);
	if (state == SLOT_QUARANTINED)
		json_member_int_or_null(object, "trialAt",
			given->rules->quarantine_trial_ms > 0 ? since_ms + given->rules->quarantine_trial_ms
							      : 0);
}

static int put_slot(struct api_call *call, const struct slot_document *slot)
{
	struct given given = {.rules = call->rules, .now = call->now};
	struct json_object object;

	json_begin(&object, call->body);
	json_member_string(&object, "name", slot->name);
	json_member_cstr(&object, "state", slot_standing(slot, &given));
	json_member_string_or_null(&object, "workerId", slot->worker);
	put_slot_times(&object, slot, &given);
	json_member_int(&object, "crashes", crashes_in_window(&slot->slot, &given));
	json_member_int(&object, "restarts", slot->slot.restarts);
	return json_end(&object);
}

static int list_slot(void *context, const struct slot_document *slot)
{
	struct call_list *list = context;

	call_list_next(list);
	return put_slot(list->call, slot);
}

/* Like workers they are of no certain queue. */
void slot_list_read(struct api_call *call)
{
	struct call_list list;

	if (call_list_begin(&list, call))
		call_list_end(&list,
			call->who.queues.count == 0 ? store_each_slot(call->store, list_slot, &list) : 0);
}

struct enter_body {
	struct span worker;
};

static const struct field enter_fields[] = {
	FIELD_MUST_BE(enter_body, worker, "workerId", FIELD_NAME, .max = COMMAND_ID_MAX),
};

void slot_begin(struct api_call *call)
{
	enum command_kind kind = (enum command_kind)call->route->variant;
	bool enters = kind == COMMAND_SLOT_ENTER;
	struct enter_body body = {0};

	if (!form_read_body(call, enters ? enter_fields : NULL, enters ? 1 : 0, &body) ||
		!call_param_is_name(call, "slot"))
		return;
	struct command *command = call_command(call, kind);
	if (!command)
		return;
	command->slot = call->params[0];
	command->worker = body.worker;
}

void slot_crash_begin(struct api_call *call)
{
	if (!call_key_is_good(call))
		return;
	slot_begin(call);
	if (call->command_count == 0 || !call->request->idempotency_key.data)
		return;
	call->commands[0].crash_key = call->request->idempotency_key;
	digest_request(call->request, call->commands[0].crash_fingerprint);
}

/* As it is now: the sender of a crash learns whether it may start another worker. */
void slot_finish(struct api_call *call, const struct result *results)
{
	struct slot_document slot = {.name = call->params[0]};

	(void)results;
	int r = store_read_slot(call->store, call->params[0], &slot);
	if (r == -ENOENT) /* nothing ever happened there */
		slot_init(&slot.slot);
	call_reply(call, 200, r == 0 || r == -ENOENT ? put_slot(call, &slot) : r);
}
