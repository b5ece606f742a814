/*
 * The types of events as messages have them. The rules have the same list with what each means (core/event.h), which clients
 * do not know; a test holds them together.
 */
#include "wire/event_types.h"

#include <stdio.h>
#include <string.h>

#include "base/suggest.h"

const char *const event_types[] = {
	"budget.near",
	"budget.spent",
	"budget.updated",
	"bulk.ended",
	"bulk.started",
	"claim.rebased",
	"claim.unconfirmed",
	"execution.armed",
	"execution.disarmed",
	"gate.opened",
	"gate.passed",
	"gate.rejected",
	"group.closed",
	"group.ended",
	"group.removed",
	"hold.closed",
	"hold.extended",
	"hold.opened",
	"hold.probing",
	"inbox.dropped",
	"inbox.refused",
	"queue.drained",
	"queue.draining",
	"queue.idle",
	"queue.limited",
	"queue.paused",
	"queue.resumed",
	"queue.updated",
	"schedule.created",
	"schedule.failing",
	"schedule.fired",
	"schedule.removed",
	"schedule.skipped",
	"schedule.updated",
	"server.audited",
	"server.degraded",
	"server.restored",
	"server.started",
	"session.ended",
	"session.gone",
	"session.output",
	"session.started",
	"session.usage",
	"slot.assigned",
	"slot.quarantined",
	"slot.unquarantined",
	"task.answered",
	"task.asked",
	"task.blocked",
	"task.cancelled",
	"task.claimed",
	"task.completed",
	"task.confirmed",
	"task.created",
	"task.expired",
	"task.failed",
	"task.noted",
	"task.orphan_result",
	"task.parked",
	"task.progressed",
	"task.purged",
	"task.released",
	"task.requeued",
	"task.retried",
	"task.reviewed",
	"task.stage_changed",
	"task.suspended",
	"task.unparked",
	"task.updated",
	"token.created",
	"token.revoked",
	"token.key_rotated",
	"token.renewed",
	"token.settled",
	"token.admin_replaced",
	"worker.inactive",
	"worker.quiet",
	"worker.registered",
	"worker.terminating",
	"worker.updated",
	NULL,
};

bool event_types_has(struct span pattern)
{
	bool all = pattern.len > 2 && memcmp(pattern.data + pattern.len - 2, ".*", 2) == 0;
	size_t len = all ? pattern.len - 2 : pattern.len;

	for (size_t i = 0; event_types[i]; i++) {
		const char *type = event_types[i];
		if (strncmp(type, pattern.data, len) == 0 && (type[len] == '.' || (type[len] == 0 && !all)))
			return true;
	}
	return false;
}

const char *event_types_like(const char *typed, char room[EVENT_TYPE_BYTES])
{
	size_t len = strlen(typed);
	bool all = len > 2 && strcmp(typed + len - 2, ".*") == 0;
	struct suggestion best = {0};

	for (size_t i = 0; event_types[i]; i++) {
		char candidate[EVENT_TYPE_BYTES];
		snprintf(candidate, sizeof candidate, all ? "%.*s.*" : "%.*s",
			all ? (int)strcspn(event_types[i], ".") : (int)strlen(event_types[i]),
			event_types[i]);
		suggest_consider(&best, typed, candidate);
		if (best.word == candidate)
			best.word = memcpy(room, candidate, sizeof candidate);
	}
	return best.word;
}
