/*
 * Each type of event has a text in the table. A $word in it is a member of the event or of its data; what stands in brackets is
 * left out where its word is missing. A type that is not in the table is shown by its words and numbers: a newer server may
 * have it.
 */
#include "cli/verb/event_view.h"

#include <string.h>

#include "base/take.h"
#include "cli/verb/task_view.h"

static const struct event_text {
	const char *type, *text;
} texts[] = {
	{"task.created", "is created[ by $actor]"},
	{"task.updated", "is changed[ by $actor]"},
	{"task.claimed", "attempt $attempt begins[ on $worker]"},
	{"task.confirmed", "is confirmed[ by $worker]"},
	{"task.progressed", "goes on[, $percent %][: $note]"},
	{"task.asked", "asks a question"},
	{"task.answered", "has its answer[ from $actor]"},
	{"task.reviewed", "is reported[ by $worker] and needs a verdict"},
	{"task.completed", "is done[ by $worker]"},
	{"task.failed", "has failed[: $message][ ($code)]"},
	{"task.blocked", "is blocked[: $message][ ($code)]"},
	{"task.released", "is given back[ by $worker][: $reason]"},
	{"task.suspended", "waits for its subtasks"},
	{"task.expired", "is lost: the lease[ of $worker] ran out"},
	{"task.requeued", "is in line again"},
	{"task.cancelled", "is cancelled[ by $actor][: $reason]"},
	{"task.retried", "is opened again[ by $actor][: $reason]"},
	{"task.parked", "is parked[ by $actor][: $reason]"},
	{"task.unparked", "is unparked[ by $actor][: $reason]"},
	{"task.orphan_result", "has a result[ of $worker] that came too late and is kept apart"},
	{"task.purged", "is removed: it ended long ago"},
	{"task.stage_changed", "comes to stage $stage[ from $fromStage]"},
	{"claim.unconfirmed", "is taken back[ from $worker]: nobody confirmed the claim"},
	{"claim.rebased",
		"has a new lease[ of $worker][, $leaseMs ms]: the machine rebooted, or the token was revoked"},
	{"gate.opened", "needs a verdict on gate $gate"},
	{"gate.passed", "has passed gate $gate[ by $actor][: $reason]"},
	{"gate.rejected", "is rejected at gate $gate[ by $actor][: $reason]"},
	{"worker.registered", "worker $worker is here"},
	{"worker.updated", "worker $worker says something new of itself"},
	{"worker.quiet", "worker $worker takes nothing new[: told by $actor]"},
	{"worker.terminating", "worker $worker must end[: asked by $actor]"},
	{"worker.inactive", "worker $worker is gone[: $ended]"},
	{"queue.paused", "queue $queue is paused[ by $actor]"},
	{"queue.resumed", "queue $queue is open[: set by $actor]"},
	{"queue.draining", "queue $queue takes no new tasks[: set by $actor]"},
	{"queue.limited", "a limit of queue $queue ($limit) holds back $waiting ready tasks"},
	{"queue.idle", "queue $queue is idle: none of its tasks is ready or in work"},
	{"queue.drained", "queue $queue has drained: no task in it is open"},
	{"queue.updated", "queue $queue has other limits[: set by $actor]"},
	{"group.closed", "group $group is closed[ by $actor]"},
	{"group.ended", "group $group has ended: every member is final"},
	{"group.removed", "group $group is removed[ by $actor]"},
	{"bulk.started", "bulk action $bulk begins: $change $matched tasks[, by $actor]"},
	{"bulk.ended",
		"bulk action $bulk has ended: $done of $matched tasks changed[, $skipped skipped][: $reason]"},
	{"schedule.created", "schedule $schedule is created[ by $actor]"},
	{"schedule.updated", "schedule $schedule is changed[ by $actor]"},
	{"schedule.removed", "schedule $schedule is removed[ by $actor]"},
	{"schedule.fired", "is made by schedule $schedule"},
	{"schedule.skipped", "schedule $schedule made no task[, $count times][: $reason]"},
	{"schedule.failing", "schedule $schedule is failing: three failures or skips in a row"},
	{"budget.near",
		"most of today's budget of [queue $queue][account $credential] is used: $used of $limit $part"},
	{"budget.spent",
		"today's budget of [queue $queue][account $credential] is used up: $used of $limit $part"},
	{"budget.updated",
		"[queue $queue][account $credential] has another budget for a day[: set by $actor]"},
	{"inbox.refused", "row $inbox of the inbox cannot become a task of $queue[: $detail]"},
	{"inbox.dropped", "row $inbox of the inbox is removed[ by $actor]"},
	{"execution.armed", "execution is armed[ by $actor][: $reason]"},
	{"execution.disarmed", "execution is disarmed[ by $actor][: $reason]"},
	{"server.started", "the server has started"},
	{"server.restored", "the store is restored from a backup[: generation $generation]"},
	{"server.degraded", "the store is damaged or cannot be written"},
	{"server.audited", "$actor used $route"},
	{"token.created", "token[ $name] is made[: of kind $kind][, by $actor]"},
	{"token.revoked", "token[ $object] is revoked[ by $actor]"},
	{"token.renewed", "token $object has a new secret"},
	{"token.settled", "the secret before of token $object is no longer valid"},
	{"token.key_rotated", "a new key signs tokens from now on"},
	{"token.admin_replaced", "the admin token is another one now"},
	{"task.noted", "gets an event from outside[: $event][, by $actor]"},
	{"session.started", "begins a session"},
	{"session.gone", "has lost its session"},
	{"session.ended", "ends its session"},
	{"session.output", "prints something"},
	{"session.usage", "a turn has ended"},
	{"slot.quarantined", "slot $slot is quarantined: it crashed too often"},
	{"slot.unquarantined", "slot $slot may run again[: set by $actor]"},
	{"slot.assigned", "slot $slot has other queues[: set by $actor]"},
};

static void put_value(struct buf *out, yyjson_val *value)
{
	if (yyjson_is_str(value))
		buf_put_span(out, json_text(value));
	else
		json_put_value(out, value);
}

/* A part of a text; false: a word of it is missing. */
static bool put_part(struct buf *out, const char *part, size_t len, yyjson_val *event)
{
	yyjson_val *data = field_get(event, "data");

	for (size_t at = 0; at < len;) {
		if (part[at] != '$') {
			buf_put_byte(out, (unsigned char)part[at++]);
			continue;
		}
		const char *word = part + at + 1;
		size_t letters =
			strspn(word, "abcdefghijklmnopqrstuvwxyzS"); /* fromStage has the one capital */
		yyjson_val *value = yyjson_obj_getn(event, word, letters);
		value = value ? value : yyjson_obj_getn(data, word, letters);
		if (!value || yyjson_is_null(value))
			return false;
		put_value(out, value);
		at += 1 + letters;
	}
	return true;
}

void event_put_text(struct buf *out, const char *text, yyjson_val *event)
{
	while (*text) {
		bool optional = *text == '[';
		size_t len = strcspn(text + optional, optional ? "]" : "["), before = out->len;
		if (!put_part(out, text + optional, len, event) && optional)
			buf_cut(out, before);
		text += len + (optional ? 2 : 0);
	}
}

/* "hold opened: credential team, model opus" */
static void put_unknown(struct buf *out, struct span type, yyjson_val *data)
{
	const char *before = ": ";
	size_t at, count;
	yyjson_val *name, *value;

	for (size_t i = 0; i < type.len; i++)
		buf_put_byte(
			out, type.data[i] == '.' || type.data[i] == '_' ? ' ' : (unsigned char)type.data[i]);
	yyjson_obj_foreach(data, at, count, name, value)
	{
		if (yyjson_is_ctn(value) || yyjson_is_null(value))
			continue;
		buf_printf(out, "%s%.*s ", before, SPAN_ARGS(json_text(name)));
		put_value(out, value);
		before = ", ";
	}
}

void event_put(struct buf *out, yyjson_val *event)
{
	struct span type = field_text(event, "type");
	yyjson_val *data = field_get(event, "data");

	for (size_t i = 0; i < sizeof texts / sizeof *texts; i++) {
		if (span_equal(span_of(texts[i].type), type)) {
			event_put_text(out, texts[i].text, event);
			return;
		}
	}
	put_unknown(out, type, data);
}
