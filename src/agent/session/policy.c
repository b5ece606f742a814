#include "agent/session/policy.h"

#include <fnmatch.h>
#include <stdio.h>
#include <string.h>

enum { COMMAND_BYTES = 4096 };

static const struct policy_rule usual[] = {
	{"Bash", "git push*", POLICY_ASK},
	{"Bash", "git -* push*", POLICY_ASK},
	{"Bash", "gh pr create*", POLICY_ASK},
	{"Bash", "gh pr merge*", POLICY_ASK},
	{"Bash", "gh release*", POLICY_ASK},
	{"Bash", "npm publish*", POLICY_ASK},
	{"Bash", "cargo publish*", POLICY_ASK},
	{"Bash", "twine upload*", POLICY_ASK},
	{"Bash", "docker push*", POLICY_ASK},
};

const struct policy policy_default = {POLICY_ALLOW, usual, sizeof usual / sizeof *usual};
const struct policy policy_open = {POLICY_ALLOW, NULL, 0};

/* Is this tool one whose subject is a line for a shell? */
static bool is_shell(const char *tool)
{
	static const char *const names[] = {"Bash", "bash", "shell", "execute", "run_shell_command", "exec",
		"command_execution", "terminal"};

	for (size_t i = 0; i < sizeof names / sizeof *names; i++)
		if (strcmp(names[i], tool) == 0)
			return true;
	return false;
}

/* "Bash" of a rule is every agent's tool that runs commands, whatever that agent calls it. */
static bool is_for(const struct policy_rule *rule, const char *tool)
{
	return !rule->tool || fnmatch(rule->tool, tool, 0) == 0 ||
		(strcmp(rule->tool, "Bash") == 0 && is_shell(tool));
}

static enum policy_act decide(
	const struct policy *policy, const char *tool, const char *subject, const char **ret_rule)
{
	for (size_t i = 0; i < policy->count; i++) {
		const struct policy_rule *rule = &policy->rules[i];
		if (!is_for(rule, tool))
			continue;
		if (rule->match && fnmatch(rule->match, subject, 0) != 0)
			continue;
		*ret_rule = rule->match ? rule->match : rule->tool;
		return (enum policy_act)rule->act;
	}
	*ret_rule = NULL;
	return (enum policy_act)policy->otherwise;
}

/* Text that a shell would run although it is no simple command: a substitution, or another shell. */
static bool hides_commands(const char *command)
{
	static const char *const words[] = {"eval ", "sh -c", "bash -c", "zsh -c", "sh -lc", "bash -lc",
		"zsh -lc", "xargs ", "env ", "sudo ", "exec "};

	if (strstr(command, "$(") || strchr(command, '`') || strstr(command, "<(") || strstr(command, ">("))
		return true;
	for (size_t i = 0; i < sizeof words / sizeof *words; i++) {
		const char *at = strstr(command, words[i]);
		if (at && (at == command || strchr(" \t/;&|(", at[-1])))
			return true;
	}
	return false;
}

/* The next simple command of a line, with single blanks; the rest stays in *at. False: there is no more. */
static bool next_command(const char **at, const char *end, char command[COMMAND_BYTES], bool *ret_whole)
{
	size_t len = 0;
	char quote = 0;

	while (*at < end && strchr(" \t\n;&|()", **at))
		++*at;
	if (*at == end)
		return false;
	for (; *at < end && (quote || !strchr("\n;&|", **at)); ++*at) {
		char byte = **at;
		if (quote ? byte == quote : byte == '\'' || byte == '"')
			quote = quote ? 0 : byte;
		bool blank = !quote && (byte == ' ' || byte == '\t');
		if (blank && len > 0 && command[len - 1] == ' ')
			continue;
		if (len + 1 < COMMAND_BYTES)
			command[len++] = blank ? ' ' : byte;
		else
			*ret_whole = false;
	}
	while (len > 0 && strchr(" )", command[len - 1]))
		len--;
	command[len] = 0;
	*ret_whole &= quote == 0;
	return true;
}

static bool is_strict_about(const struct policy *policy, const char *tool)
{
	for (size_t i = 0; i < policy->count; i++)
		if (policy->rules[i].act != POLICY_ALLOW && is_for(&policy->rules[i], tool))
			return true;
	return false;
}

enum policy_act policy_decide(
	const struct policy *policy, const char *tool, struct span subject, const char **ret_rule)
{
	char command[COMMAND_BYTES];
	const char *at = subject.data ? subject.data : "", *end = at + subject.len, *rule = NULL, *one;
	enum policy_act act = POLICY_ALLOW;
	bool whole = true, any = false;

	if (!is_shell(tool)) {
		snprintf(command, sizeof command, "%.*s", SPAN_ARGS(subject));
		act = decide(policy, tool, command, &rule);
		any = true;
	}
	while (!any && next_command(&at, end, command, &whole)) {
		enum policy_act this_act = decide(policy, tool, command, &one);
		if (hides_commands(command) && this_act == POLICY_ALLOW && is_strict_about(policy, tool)) {
			this_act = POLICY_ASK; /* what runs in there no rule has seen */
			one = "a command that contains another";
		}
		if (this_act > act || !rule) {
			rule = one;
			act = this_act > act ? this_act : act;
		}
	}
	if (!whole && act == POLICY_ALLOW && is_strict_about(policy, tool)) {
		act = POLICY_ASK;
		rule = "a command that cannot be split";
	}
	if (!any && subject.len == 0)
		act = decide(policy, tool, "", &rule);
	if (ret_rule)
		*ret_rule = rule;
	return act;
}

bool policy_asks(const struct policy *policy)
{
	if (policy->otherwise != POLICY_ALLOW)
		return true;
	for (size_t i = 0; i < policy->count; i++)
		if (policy->rules[i].act != POLICY_ALLOW)
			return true;
	return false;
}
