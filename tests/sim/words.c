#include "sim/words.h"

const struct span word_queues[WORD_QUEUES] = {SPAN("default"), SPAN("high"), SPAN("low"), SPAN("night")};
const struct span word_keys[WORD_KEYS] = {
	SPAN("acme"), SPAN("bell"), SPAN("coop"), SPAN("dow"), SPAN("east")};
const struct span word_groups[WORD_GROUPS] = {SPAN("fan"), SPAN("nightly"), SPAN("west")};
const struct span word_accounts[WORD_ACCOUNTS] = {SPAN("team"), SPAN("mara")};
const struct span word_slots[WORD_SLOTS] = {SPAN("slot-1"), SPAN("slot-2"), SPAN("slot-3"), SPAN("slot-4")};
const struct span word_capabilities[WORD_CAPABILITIES] = {SPAN("gpu"), SPAN("net"), SPAN("big")};
const struct span word_executors[WORD_EXECUTORS] = {SPAN("shell"), SPAN("agent")};
const struct span word_hosts[WORD_HOSTS] = {SPAN("host-a"), SPAN("host-b")};

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

struct span word_host_of(struct span worker)
{
	uint32_t sum = 0;

	while (worker.len > 0 && worker.data[worker.len - 1] != '-')
		worker.len--;
	for (size_t i = 0; i < worker.len; i++)
		sum += (unsigned char)worker.data[i];
	return word_hosts[sum % WORD_HOSTS];
}

int word_find(const struct span *words, int count, struct span text)
{
	for (int i = 0; i < count; i++) {
		if (span_equal(words[i], text))
			return i;
	}
	return -1;
}
