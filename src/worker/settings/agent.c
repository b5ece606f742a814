/* What only executors of kind agent have. */
#include "worker/settings/parts.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "agent/find/find.h"
#include "agent/prompt/prompt.h"
#include "agent/settings.h"

enum {
	START_MS = 60 * 1000,
	STALL_MS = 5 * 60 * 1000,
	CHECK_MS = 10 * 60 * 1000,
};

#define DAY_MS (INT64_C(24) * 3600 * 1000)
#define UNCOUNTED \
	"cannot be enforced: this is counted for agents only; minutes, cpuSeconds, memoryBytes and outputBytes are"

/* ---- policy and checks -------------------------------------------------------------------------------------- */

static const struct field rule_fields[] = {
	FIELD(policy_rule, tool, "tool", FIELD_STRING, .min = 1, .max = 64),
	FIELD(policy_rule, match, "match", FIELD_STRING, .min = 1, .max = 1000),
	FIELD_MUST_BE(policy_rule, act, "do", FIELD_CHOICE, .words = "allow|ask|deny"),
};

static bool take_rules(struct form *form, const struct field *field, yyjson_val *value, void *at)
{
	struct policy *policy = at;
	size_t i, count = yyjson_arr_size(value);
	struct form_path path;
	yyjson_val *item;

	if (!yyjson_is_arr(value) || count > AGENT_RULES_MAX)
		return form_wrong(form, field, value);
	struct policy_rule *rules = arena_alloc(form->arena, (count + 1) * sizeof *rules);
	if (!rules)
		return form_short(form, -ENOMEM);
	yyjson_arr_foreach(value, i, count, item)
	{
		form_enter(form, &path, span_of(field->name), (int64_t)i);
		form_read(form, item, FIELDS(rule_fields), &rules[i]);
		form_leave(form);
	}
	policy->rules = rules;
	policy->count = count;
	return true;
}

static_assert(DELIVER_NONE == 0 && DELIVER_BRANCH == 1 && DELIVER_PR == 2, "the words of deliver");
static_assert(POLICY_ALLOW == 0 && POLICY_ASK == 1 && POLICY_DENY == 2, "the words of a policy");

static const struct field policy_fields[] = {
	FIELD(policy, otherwise, "default", FIELD_CHOICE, .words = "allow|ask|deny"),
	{"rules", FIELD_BY, .by = take_rules,
		.allowed = "a list of at most 100 objects with tool, match and do"},
};

static bool take_policy(struct form *form, const struct field *field, yyjson_val *value, void *at)
{
	struct policy policy = {.otherwise = POLICY_ASK};

	form_read_inner(form, field->name, value, FIELDS(policy_fields), &policy);
	*(struct policy *)at = policy;
	return true;
}

static void take_check(struct form *form, struct span name, yyjson_val *value, void *into)
{
	static const struct field argv = {
		.name = "", .kind = FIELD_STRINGS, .allowed = "a list of a program and its arguments"};
	struct agent_settings *agent = into;
	struct agent_check *check = (struct agent_check *)&agent->checks[agent->check_count];

	if (!text_is_id(name)) {
		form_wrong_as(form, "", "a list under a name of letters, digits and -._:", value);
		return;
	}
	check->name = form_keep(form, name);
	if (settings_take_program(form, &argv, value, &check->argv))
		agent->check_count++;
}

static bool take_checks(struct form *form, const struct field *field, yyjson_val *value, void *at)
{
	struct agent_settings *agent = at;
	size_t count = yyjson_obj_size(value);

	if (!yyjson_is_obj(value) || count > AGENT_CHECKS_MAX)
		return form_wrong(form, field, value);
	agent->checks = arena_alloc(form->arena, (count + 1) * sizeof *agent->checks);
	if (!agent->checks)
		return form_short(form, -ENOMEM);
	form_each(form, field->name, value, take_check, agent);
	return true;
}

/* ---- the other members -------------------------------------------------------------------------------------- */

static bool take_adapter(struct form *form, const struct field *field, yyjson_val *value, void *at)
{
	const struct adapter *adapter = yyjson_is_str(value) ? adapter_find(yyjson_get_str(value)) : NULL;

	*(const struct adapter **)at = adapter;
	return adapter || form_wrong(form, field, value);
}

static bool take_usd(struct form *form, const struct field *field, yyjson_val *value, void *at)
{
	double usd = 0;

	if (!json_number(value, &usd) || !(usd > 0) || usd > 1e6)
		return form_wrong(form, field, value);
	*(double *)at = usd;
	return true;
}

static bool take_prompt(struct form *form, const struct field *field, yyjson_val *value, void *at)
{
	const struct field text = {.name = field->name, .kind = FIELD_STRING, .min = 1, .max = 64 << 10};
	const char *prompt = NULL;
	char name[64];

	if (!form_take(form, &text, value, &prompt))
		return false;
	if (!prompt_is_template(prompt, name))
		return form_error(form, field->name,
			"has {%s}, which is not known; there are id title owner cwd description instructions steps "
			"deliverables parents before report",
			name);
	*(const char **)at = prompt;
	return true;
}

static const struct field agent_fields[] = {
	FIELD(agent_settings, adapter, "adapter", FIELD_BY, .by = take_adapter,
		.allowed = "claude, codex, gemini, opencode, openclaw, acp or custom"),
	FIELD(agent_settings, model, "model", FIELD_STRING, .min = 1, .max = 200),
	FIELD(agent_settings, credential, "credential", FIELD_STRING, .accepts = settings_is_name,
		.allowed = "a name of letters, digits and -._:"),
	FIELD(agent_settings, fallback, "fallback", FIELD_STRINGS, .max = AGENT_FALLBACK_MAX,
		.accepts = settings_is_name, .allowed = "a list of at most 8 executors of kind \"agent\""),
	FIELD(agent_settings, prompt, "prompt", FIELD_BY, .by = take_prompt),
	FIELD(agent_settings, policy, "policy", FIELD_BY, .by = take_policy),
	FIELD(agent_settings, deliver, "deliver", FIELD_CHOICE, .words = "none|branch|pr"),
	{"checks", FIELD_BY, .by = take_checks,
		.allowed = "an object of names and lists of a program and its arguments"},
	FIELD(agent_settings, asks_at_budget, "onBudget", FIELD_CHOICE, .words = "stop|ask"),
	FIELD(agent_settings, tool_ms, "toolMs", FIELD_INT, .min = 1, .max = DAY_MS, .unit = "ms"),
	FIELD(agent_settings, check_ms, "checkMs", FIELD_INT, .min = 1, .max = DAY_MS, .unit = "ms"),
	FIELD(agent_settings, usd_max, "usd", FIELD_BY, .by = take_usd,
		.allowed = "a number of dollars above 0"),
	FIELD(agent_settings, tokens_max, "tokens", FIELD_INT, .min = 1, .max = INT64_C(1) << 50),
	FIELD(agent_settings, turns_max, "turns", FIELD_INT, .min = 1, .max = 1000000),
	FIELD(agent_settings, tool_calls_max, "toolCalls", FIELD_INT, .min = 1, .max = 1000000),
};

bool settings_take_agent(struct form *form, const struct field *field, yyjson_val *value, void *at)
{
	struct executor *executor = at;

	if (!executor->agent) {
		executor->agent = arena_alloc(form->arena, sizeof *executor->agent);
		if (!executor->agent)
			return form_short(form, -ENOMEM);
		executor->agent->check_ms = CHECK_MS;
	}
	return form_take_member(form, FIELDS(agent_fields), span_of(field->name), value, executor->agent);
}

/* ---- what an agent is where nothing is said ----------------------------------------------------------------- */

/* Where an error of that member stands. */
static bool has_member(struct form *form, yyjson_val *object, const char *name)
{
	yyjson_val *key, *value;
	size_t at, count;

	yyjson_obj_foreach(object, at, count, key, value)
	{
		if (yyjson_equals_str(key, name)) {
			form->place = key;
			return true;
		}
	}
	return false;
}

static void refuse_members(struct form *form, yyjson_val *value)
{
	static const char *const own[] = {"adapter", "model", "credential", "fallback", "prompt", "policy",
		"deliver", "checks", "onBudget", "toolMs", "checkMs"};
	static const char *const budgets[] = {"usd", "tokens", "turns", "toolCalls"};
	yyjson_val *budget = yyjson_obj_get(value, "budget"), *outer = form->place;
	struct form_path path;

	for (size_t i = 0; i < sizeof own / sizeof *own; i++)
		if (has_member(form, value, own[i]))
			form_error(form, own[i], "is only for executors of kind \"agent\"");
	form_enter(form, &path, SPAN("budget"), -1);
	for (size_t i = 0; i < sizeof budgets / sizeof *budgets; i++)
		if (has_member(form, budget, budgets[i]))
			form_error(form, budgets[i], UNCOUNTED);
	form_leave(form);
	form->place = outer;
}

/* A policy or a budget that the agent's protocol cannot carry is a mistake, and not a silent nothing. */
static void check_carried(struct form *form, yyjson_val *value, struct agent_settings *agent)
{
	bool is_given = yyjson_obj_get(value, "policy") != NULL;

	if (agent->adapter->asking && (!is_given || policy_asks(&agent->policy)))
		agent->adapter = agent->adapter->asking;
	const struct adapter *adapter = agent->adapter;
	if (!is_given)
		agent->policy = adapter->asks ? policy_default : policy_open;
	else if (!adapter->asks && policy_asks(&agent->policy))
		form_error(form, "policy",
			"cannot be carried by adapter %s: it never asks for permission; adapters claude, codex and acp can, and with %s "
			"\"policy\": {\"default\": \"allow\"} is all there is",
			adapter->name, adapter->name);
	if (agent->tokens_max > 0 && !adapter->counts_tokens)
		form_error(form, "budget.tokens", "cannot be metered: %s says none", adapter->name);
	if (agent->tool_calls_max > 0 && !adapter->counts_tools)
		form_error(form, "budget.toolCalls", "cannot be metered: %s does not tell its tool calls",
			adapter->name);
}

static const char *const *default_argv(struct arena *arena, const struct adapter *adapter)
{
	const char **argv = arena_alloc(arena, 2 * sizeof *argv);
	const char *home = getenv("HOME"), *found;

	if (!argv || !adapter->program)
		return NULL;
	found = agent_find(arena, adapter->program, getenv("PATH"), home);
	argv[0] = found && home && strncmp(found, home, strlen(home)) == 0 ? found : adapter->program;
	return argv;
}

static void fill_clocks(struct executor *executor)
{
	if (executor->start_ms == 0)
		executor->start_ms = START_MS;
	if (executor->stall_ms == 0)
		executor->stall_ms = STALL_MS;
}

/* Its model is elsewhere: in a sandbox it reaches the hosts of its adapter, unless the configuration says more. */
static void fill_network(struct executor *executor)
{
	if (executor->wall.level == WALL_SANDBOX && executor->agent->adapter->hosts)
		executor->hosts = executor->agent->adapter->hosts;
	else
		executor->wall.network = true;
}

void settings_finish_agent(struct form *form, yyjson_val *value, struct executor *executor)
{
	static const char *const nothing[] = {"agent", NULL};

	if (strcmp(executor->kind, "agent") != 0) {
		if (executor->agent)
			refuse_members(form, value);
		executor->agent = NULL;
		return;
	}
	if (!executor->agent || !executor->agent->adapter) {
		if (!yyjson_obj_get(value, "adapter"))
			form_error(form, "adapter",
				"is missing, as in {\"kind\": \"agent\", \"adapter\": \"claude\"}");
		executor->agent = NULL;
		executor->argv = nothing; /* it is an error already, and no second one */
		return;
	}
	if (yyjson_equals_str(yyjson_obj_get(value, "argv"), "payload"))
		form_error(form, "argv", "must be the agent's program: a task does not bring one");
	if (!executor->argv)
		executor->argv = default_argv(form->arena, executor->agent->adapter);
	if (!executor->argv) {
		form_error(form, "argv",
			"is missing: adapter %s has no program of its own, as in [\"my-agent\", \"--json\"]",
			executor->agent->adapter->name);
		executor->argv = nothing;
	}
	if (executor->offline)
		form_error(
			form, "network", "is false, and an agent needs its model: leave it out, or say true");
	check_carried(form, value, executor->agent);
	fill_clocks(executor);
	if (!yyjson_obj_get(value, "network"))
		fill_network(executor);
}

/* The login of this person on this machine, as an account that can be held. NULL: it has no name. */
static const char *own_account(struct arena *arena, const struct adapter *adapter)
{
	char host[65] = "";

	gethostname(host, sizeof host - 1);
	const char *name = arena_text(arena, "%s-%s", adapter->name, host);
	return settings_is_name(name) ? name : NULL;
}

void settings_add_agents(struct settings *settings, struct config *config)
{
	for (size_t i = 0; adapters[i]; i++) {
		const struct adapter *adapter = adapters[i]->asking ? adapters[i]->asking : adapters[i];
		if (!adapter->program ||
			!agent_find(&config->arena, adapter->program, getenv("PATH"), getenv("HOME")))
			continue;
		struct executor *executor = settings_add_executor(settings, adapter->name);
		struct agent_settings *agent = executor ? arena_alloc(&config->arena, sizeof *agent) : NULL;
		if (!agent)
			continue;
		*agent = (struct agent_settings){.adapter = adapter,
			.policy = adapter->asks ? policy_default : policy_open,
			.credential = own_account(&config->arena, adapter),
			.check_ms = CHECK_MS};
		executor->kind = "agent";
		executor->agent = agent;
		executor->argv = default_argv(&config->arena, adapter);
		fill_clocks(executor);
		fill_network(executor);
	}
}

/* ---- taking the place of another ------------------------------------------------------------------------------ */

/* What keeps the executor of that name from taking the place of the other one. NULL: nothing. */
static const char *unfit_to_replace(
	const struct settings *settings, const struct executor *executor, const char *name)
{
	const struct executor *other = settings_executor(settings, name);

	if (!other || !other->agent)
		return "is no executor of kind \"agent\"";
	if (other == executor)
		return "is the executor itself";
	return other->agent->credential ? NULL : "has no \"credential\": name its account";
}

void settings_check_fallback(const struct settings *settings, struct config *config)
{
	for (uint32_t i = 0; i < settings->executor_count; i++) {
		const struct executor *executor = &settings->executors[i];
		const char *const *list = executor->agent ? executor->agent->fallback : NULL;
		if (list && list[0] && !executor->agent->credential)
			config_note_problem(config, settings->executor_origins[i],
				"executors.%s.fallback serves while the executor's account is held: name the account, as in "
				"\"credential\": \"team\"",
				executor->name);
		for (size_t at = 0; list && list[at]; at++) {
			const char *unfit = unfit_to_replace(settings, executor, list[at]);
			if (unfit)
				config_note_problem(config, settings->executor_origins[i],
					"executors.%s.fallback: %s %s", executor->name, list[at], unfit);
		}
	}
}
