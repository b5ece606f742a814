/*
 * Prints the tables of the code as spec/ and docs/ show them, each between the markers that tools/spec-check looks for.
 */
#include <inttypes.h>
#include <stdbool.h>
#include <stdio.h>

#include "config/key.h"
#include "wire/form/form.h"
#include "core/event.h"
#include "core/task/failure.h"
#include "core/task/given.h"
#include "core/refusal.h"
#include "core/task/state.h"
#include "core/why.h"
#include "print.h"

/* The sentences of the tables, which nothing but the documents shows. */
static const char *const state_texts[] = {
#define X(name, number, wire, status, text) [number] = text,
	TASK_STATES(X)
#undef X
};

static const char *const event_texts[] = {
#define X(name, number, wire, text) [number] = text,
	EVENT_KINDS(X)
#undef X
};

static const char *const class_texts[] = {
#define X(name, wire, text) [CLASS_##name] = text,
	FAILURE_CLASSES(X)
#undef X
};

static const int exit_statuses[] = {
#define X(name, code, status, exit_status, text) [REFUSED_##name] = exit_status,
	REFUSALS(X)
#undef X
};

static void table_begin(const char *name)
{
	printf("<!-- table: %s -->\n", name);
}

static void table_end(void)
{
	puts("<!-- end -->");
}

static void print_states_of(unsigned bits)
{
	const char *separator = "";

	for (int state = TASK_NOWHERE; state < TASK_STATE_COUNT; state++) {
		if (!(bits >> state & 1))
			continue;
		if (state == TASK_NOWHERE)
			printf("%snowhere", separator);
		else
			printf("%s`%s`", separator, task_state_name((enum task_state)state));
		separator = " ";
	}
}

static void print_states(void)
{
	table_begin("states");
	puts("| state | number | status | meaning |\n| --- | --- | --- | --- |");
	for (int i = TASK_PENDING; i < TASK_STATE_COUNT; i++) {
		enum task_state state = (enum task_state)i;
		printf("| `%s` | %d | `%s` | %s |\n", task_state_name(state), i, task_state_status(state),
			state_texts[state]);
	}
	table_end();
}

static void print_transitions(void)
{
	table_begin("transitions");
	puts("| event | from | to |\n| --- | --- | --- |");
	for (const struct transition *row = task_transitions; row->kind != EVENT_NONE; row++) {
		printf("| `%s` | ", event_kind_name(row->kind));
		print_states_of(row->from);
		printf(" | ");
		print_states_of(row->to);
		puts(" |");
	}
	table_end();
}

static void print_notes(void)
{
	table_begin("notes");
	puts("| event | in |\n| --- | --- |");
	for (const struct transition *row = task_notes; row->kind != EVENT_NONE; row++) {
		printf("| `%s` | ", event_kind_name(row->kind));
		print_states_of(row->from);
		puts(" |");
	}
	table_end();
}

/* The moves of one kind, one after the other. */
static void print_links(enum event_kind kind)
{
	bool any = false;

	for (const struct transition *row = task_transitions; row->kind != EVENT_NONE; row++) {
		if (row->kind != kind)
			continue;
		printf("%s", any ? "; " : "");
		print_states_of(row->from);
		printf(" → ");
		print_states_of(row->to);
		any = true;
	}
	for (const struct transition *row = task_notes; row->kind != EVENT_NONE; row++) {
		if (row->kind != kind)
			continue;
		printf("%snote in ", any ? "; " : "");
		print_states_of(row->from);
		any = true;
	}
	if (!any)
		printf("–");
}

static void print_events(void)
{
	table_begin("events");
	puts("| event | number | written when | links |\n| --- | --- | --- | --- |");
	for (int i = EVENT_NONE + 1; i < EVENT_KIND_COUNT; i++) {
		enum event_kind kind = (enum event_kind)i;
		if (!event_kind_is_known(kind))
			continue;
		printf("| `%s` | %d | %s | ", event_kind_name(kind), i, event_texts[kind]);
		print_links(kind);
		puts(" |");
	}
	table_end();
}

static void print_failure_classes(void)
{
	table_begin("failure-classes");
	puts("| class | meaning |\n| --- | --- |");
	for (int i = FAILURE_CLASS_NONE + 1; i < FAILURE_CLASS_COUNT; i++)
		printf("| `%s` | %s |\n", failure_class_name((enum failure_class)i), class_texts[i]);
	table_end();
}

static void print_failure_codes(void)
{
	table_begin("failure-codes");
	puts("| code | number | class |\n| --- | --- | --- |");
	for (int i = CODE_NONE + 1; i < FAILURE_CODE_COUNT; i++) {
		enum failure_code code = (enum failure_code)i;
		printf("| `%s` | %d | `%s` |\n", failure_code_name(code), i,
			failure_class_name(failure_code_class(code)));
	}
	table_end();
}

static void print_refusals(void)
{
	table_begin("refusals");
	puts("| code | HTTP status | exit status | meaning |\n| --- | --- | --- | --- |");
	for (int i = REFUSED_NOTHING + 1; i < REFUSAL_COUNT; i++) {
		enum refusal refusal = (enum refusal)i;
		printf("| `%s` | %d | %d | %s |\n", refusal_code(refusal), refusal_http_status(refusal),
			exit_statuses[refusal], refusal_text(refusal));
	}
	table_end();
}

static void print_whys(void)
{
	table_begin("whys");
	puts("| reason | meaning |\n| --- | --- |");
	for (int i = 0; i < WHY_COUNT; i++)
		printf("| `%s` | %s |\n", why_name((enum why)i), why_text((enum why)i));
	table_end();
}

static void print_time(const char *key, const char *meaning, uint32_t ms)
{
	if (ms != 0 && ms % 60000 == 0)
		printf("| %s | %" PRIu32 " min | %s |\n", key, ms / 60000, meaning);
	else
		printf("| %s | %" PRIu32 " s | %s |\n", key, ms / 1000, meaning);
}

static void print_count(const char *key, const char *meaning, uint32_t count)
{
	printf("| %s | %" PRIu32 " | %s |\n", key, count, meaning);
}

static void print_rules(void)
{
	struct rules rules = rules_default();

	table_begin("rules");
	puts("| key | default | meaning |\n| --- | --- | --- |");
	print_time("`worker.leaseMinMs`", "the shortest lease", rules.lease_min_ms);
	print_time("–", "the longest lease", rules.lease_max_ms);
	print_time("–", "the lease of a worker that asks for none", rules.worker_lease_ms);
	print_time("–", "the first lease of a claim by a worker that beats", rules.claim_lease_ms);
	print_time("–", "the first lease of any other claim", rules.claim_lease_plain_ms);
	print_time("`claim.verifyAfterMs`", "a claim not confirmed by then is taken back",
		rules.verify_after_ms);
	print_time("`restart.graceMs`", "after a start nobody expires earlier", rules.restart_grace_ms);
	print_time("–", "the same after suspend, stall or full disk, if the lease is not shorter",
		rules.resume_grace_ms);
	printf("| `worker.rescheduleOnExpiry` | %s | an expired worker's tasks are set free |\n",
		rules.reschedule_on_expiry ? "true" : "false");
	print_time("`retry.baseMs`", "the first step of the back-off", rules.retry_base_ms);
	print_time("`retry.maxMs`", "the longest step of the back-off, before jitter", rules.retry_max_ms);
	print_count("`task.crashBudget`", "crashes in a row that end a task", rules.crash_budget);
	print_count("–", "interruptions in a row that block a task", rules.interruption_budget);
	print_time("`task.timeoutMs`", "`timeoutMs` of a task that asks for none", rules.timeout_ms);
	print_time("`task.timeoutMaxMs`", "the longest `timeoutMs`", rules.timeout_max_ms);
	print_count("–", "`maxAttempts` of a task that asks for none", rules.max_attempts);
	print_count("–", "crashes of a slot that quarantine it …", rules.quarantine_crashes);
	print_time("–", "… within this time", rules.quarantine_window_ms);
	print_time("`quarantine.trialAfterMs`", "then one trial is let through; 0 = never",
		rules.quarantine_trial_ms);
	print_time(
		"`ask.parkMs`", "a process waits that long for an answer; 0 = for ever", rules.ask_park_ms);
	print_time("–", "after the answer it is kept for the host that asked", rules.ask_resume_ms);
	table_end();
}

static void print_config_keys(void)
{
	char room[CONFIG_ALLOWED_BYTES], allowed[CONFIG_ALLOWED_BYTES];

	table_begin("config-keys");
	puts("| key | value | default | variable | what it does |\n| --- | --- | --- | --- | --- |");
	for (int i = 0; i < CONFIG_KEY_COUNT; i++) {
		const struct config_key_row *row = &config_keys[i];
		const struct field field = config_key_field((enum config_key)i, room);
		field_describe(&field, allowed, sizeof allowed);
		printf("| `%s` | %s | %s%s%s | `%s` | %s |\n", row->name, allowed,
			row->fallback[0] ? "`" : "–", row->fallback, row->fallback[0] ? "`" : "",
			row->variable, row->help);
	}
	table_end();
}

static void print_workflows(void)
{
	table_begin("workflows");
	puts("| workflow | last stage | |\n| --- | --- | --- |");
	for (int i = WORKFLOW_NONE + 1; i < WORKFLOW_COUNT; i++) {
		const struct workflow_plan *plan = &workflows_built_in.plans[i];
		printf("| `%.*s` | `%s` | %s |\n", SPAN_ARGS(plan->name), stage_name(plan->last), plan->text);
	}
	table_end();
}

static void print_stages_of(unsigned bits)
{
	const char *separator = "";

	for (int stage = STAGE_NONE + 1; stage < STAGE_COUNT; stage++) {
		if (!(bits >> stage & 1))
			continue;
		printf("%s`%s`", separator, stage_name((enum stage)stage));
		separator = " ";
	}
}

static void print_guards(unsigned guards)
{
	static const char *const names[] = {
		"holder", "review", "unheld", "failed", "success", "no pr", "verdict", "gated"};
	const char *separator = "";

	for (unsigned i = 0; i < sizeof names / sizeof *names; i++) {
		if (guards >> i & 1) {
			printf("%s%s", separator, names[i]);
			separator = ", ";
		}
	}
}

static void print_stage_rules(void)
{
	table_begin("stage-rules");
	puts("| names | from | to | guards | action | on reject | reports |\n| --- | --- | --- | --- | --- | --- | --- |");
	for (const struct stage_rule *rule = workflow_rules; rule->events; rule++) {
		printf("| `%s` | ", rule->events);
		print_stages_of(rule->from);
		printf(" | `%s` | ", stage_name(rule->to));
		print_guards(rule->guards);
		printf(" | %s | %s | %s |\n", rule->action ? action_name(rule->action) : "",
			rule->on_reject ? stage_name(rule->on_reject) : "", rule->reports ? "yes" : "");
	}
	table_end();
}

int main(void)
{
	print_states();
	print_transitions();
	print_notes();
	print_failure_classes();
	print_failure_codes();
	print_whys();
	print_rules();
	print_events();
	print_refusals();
	print_cli();
	print_config_keys();
	print_workflows();
	print_stage_rules();
	return 0;
}
