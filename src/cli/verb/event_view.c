/*
 * Each type of event has a text in the table. A $word in it is a member of the event or of its data; what stands in brackets is
 * left out where its word is missing. A type that is not in the table is shown as it came: a newer server may have it.
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
	{"claim.rebased", "keeps its claim[ by $worker] after a reboot"},
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
	{"execution.armed", "execution is armed[ by $actor][: $reason]"},
	{"execution.disarmed", "execution is disarmed[ by $actor][: $reason]"},
	{"server.started", "the server has started"},
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
	buf_put_span(out, type);
	if (yyjson_obj_size(data) > 0) {
		buf_put_byte(out, ' ');
		json_put_value(out, data);
	}
}
