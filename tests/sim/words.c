#include "sim/words.h"

const struct span word_queues[WORD_QUEUES] = {SPAN("default"), SPAN("high"), SPAN("low"), SPAN("night")};
const struct span word_slots[WORD_SLOTS] = {SPAN("slot-1"), SPAN("slot-2"), SPAN("slot-3"), SPAN("slot-4")};
const struct span word_capabilities[WORD_CAPABILITIES] = {SPAN("gpu"), SPAN("net"), SPAN("big")};
const struct span word_executors[WORD_EXECUTORS] = {SPAN("shell"), SPAN("agent")};

const struct span word_gates[WORD_GATES] = {SPAN("validate"), SPAN("security")};
const struct span word_events[WORD_EVENTS] = {
	SPAN("vtid.lifecycle.started"),
	SPAN("worker.execution.started"),
	SPAN("worker.building"),
	SPAN("worker.building"),
	SPAN("worker.pr.created"),
	SPAN("worker.pr.created"),
	SPAN("worker.execution.completed"),
	SPAN("ci.passed"),
	SPAN("validator.passed"),
	SPAN("validator.failed"),
	SPAN("github.merge.success"),
	SPAN("deploy.gateway.started"),
	SPAN("deploy.gateway.success"),
	SPAN("verification.passed"),
	SPAN("worker.execution.failed"),
	SPAN("cicd.lint.failed"),
	SPAN("vtid.lifecycle.terminalized"),
	SPAN("something.else"),
};

int word_find(const struct span *words, int count, struct span text)
{
	for (int i = 0; i < count; i++) {
		if (span_equal(words[i], text))
			return i;
	}
	return -1;
}
