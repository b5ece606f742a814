#include "cli/frame/args.h"

#include <assert.h>
#include <errno.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <strings.h>

#include "base/suggest.h"
#include "cli/frame/when.h"
#include "wire/form/form.h"

struct args_reading {
	struct args *args;
	const struct verb *verb;
	int64_t now_ms;
	struct args_complaint *complaint;
};

/* stint alone is a verb without a name. */
static const char *blank_before(const struct verb *verb)
{
	return verb->name[0] ? " " : "";
}

__attribute__((format(printf, 2, 3))) static int complain(
	struct args_reading *reading, const char *format, ...)
{
	va_list list;

	va_start(list, format);
	vsnprintf(reading->complaint->text, sizeof reading->complaint->text, format, list);
	va_end(list);
	if (!reading->complaint->fix[0])
		snprintf(reading->complaint->fix, sizeof reading->complaint->fix, "stint help%s%s",
			blank_before(reading->verb), reading->verb->name);
	return -EINVAL;
}

/* ---- values ---------------------------------------------------------------------------------------------- */

int args_priority(const char *text, int64_t *ret_priority)
{
	static const struct {
		const char *word;
		int64_t priority;
	} words[] = {{"urgent", 100}, {"P0", 100}, {"high", 50}, {"P1", 50}, {"normal", 0}, {"P2", 0},
		{"low", -50}, {"P3", -50}};
	char *end;

	for (size_t i = 0; i < sizeof words / sizeof *words; i++) {
		if (strcasecmp(words[i].word, text) == 0) {
			*ret_priority = words[i].priority;
			return 0;
		}
	}
	errno = 0;
	long long number = strtoll(text, &end, 10);
	if (errno || end == text || *end || number < INT32_MIN || number > INT32_MAX)
		return -EINVAL;
	*ret_priority = number;
	return 0;
}

static void note_wrong(struct form *form, const char *name, const char *message)
{
	complain(form->context, "--%s %s", name, message);
}

/* A value of a kind that every program reads. */
static int take_field(struct args_reading *reading, const struct field *field, const char *text, void *into)
{
	struct form form;

	form_start(&form, NULL);
	form.note = note_wrong;
	form.context = reading;
	return form_take_word(&form, field, text, into) ? 0 : -EINVAL;
}

/* A value of a kind that only people type. */
static int judge(
	struct args_reading *reading, const struct flag *flag, const char *text, int r, const char *allowed)
{
	return r == 0 ? 0 : complain(reading, "--%s must be %s; it is \"%s\"", flag->name, allowed, text);
}

/* Where a name is wanted, nothing is a variable that was not set, and would mean every queue, or no parent. */
static int take_name(struct args_reading *reading, const struct flag *flag, const struct arg *arg)
{
	bool names = flag->kind == FLAG_NAMES ? !flag->may_be_empty
					      : flag->offer != OFFER_NOTHING && flag->offer != OFFER_FILES;

	if (names && arg->text[strspn(arg->text, ",")] == 0)
		return complain(reading, "--%s is empty; leave it out, or give %s", flag->name, flag->value);
	return 0;
}

static int take_value(struct args_reading *reading, const struct flag *flag, struct arg *arg)
{
	char forms[VERB_FORMS_BYTES];
	int choice = 0, r;

	switch (flag->kind) {
	case FLAG_TEXT:
	case FLAG_NAMES:
		return take_name(reading, flag, arg);
	case FLAG_SWITCH:
	case FLAG_JSON:
	case FLAG_FIELDS:
		return 0;
	case FLAG_NUMBER:
		return take_field(reading,
			&(struct field){flag->name, FIELD_INT, .min = flag->least, .max = flag->most},
			arg->text, &arg->number);
	case FLAG_CHOICE:
		verb_forms(reading->verb, forms);
		r = take_field(reading,
			&(struct field){flag->name, FIELD_CHOICE,
				.words = strcmp(flag->name, "output") == 0 ? forms : flag->value},
			arg->text, &choice);
		arg->number = choice;
		return r;
	case FLAG_DURATION:
		return judge(reading, flag, arg->text, when_duration(arg->text, &arg->number),
			"a duration such as 90s, 30m or 1h30m");
	case FLAG_MOMENT:
		return judge(reading, flag, arg->text, when_moment(arg->text, reading->now_ms, &arg->number),
			"a time such as 30m (from now), 22:00, 2026-12-31T18:00 or milliseconds since 1970");
	case FLAG_PRIORITY:
		return judge(reading, flag, arg->text, args_priority(arg->text, &arg->number),
			"a number, or one of urgent, high, normal, low, P0 to P3");
	}
	assert(0 && "a flag has a kind");
	return -EINVAL;
}

/* ---- words ----------------------------------------------------------------------------------------------- */

static int keep(struct args_reading *reading, const struct flag *flag, const char *text)
{
	struct args *args = reading->args;
	struct arg *arg = &args->items[args->count];

	if (args->count == ARGS_MAX)
		return complain(reading, "more than %d arguments", ARGS_MAX);
	for (size_t i = 0; flag && !flag->many && i < args->count; i++) {
		if (args->items[i].flag == flag && flag->kind != FLAG_SWITCH && flag->kind != FLAG_FIELDS)
			return complain(reading, "--%s is given twice; say which one you mean", flag->name);
	}
	*arg = (struct arg){.flag = flag, .text = text};
	int r = flag ? take_value(reading, flag, arg) : 0;
	if (r < 0)
		return r;
	args->count++;
	args->plain_count += flag == NULL;
	return 0;
}

static int unknown_flag(struct args_reading *reading, const char *word)
{
	struct suggestion best = {0};
	const struct flag *flag;
	char name[64];
	size_t at = 0;

	snprintf(name, sizeof name, "%.*s", (int)strcspn(word, "="), word);
	while ((flag = verb_each_flag(reading->verb, &at)))
		suggest_consider(&best, name + strspn(name, "-"), flag->name);
	if (best.word)
		return complain(reading, "%s is not a known flag of stint %s; did you mean --%s?", name,
			reading->verb->name, best.word);
	return complain(reading, "%s is not a known flag of stint%s%s", name, blank_before(reading->verb),
		reading->verb->name);
}

static bool wants_value(const struct flag *flag)
{
	return flag->kind != FLAG_SWITCH && flag->kind != FLAG_FIELDS;
}

/* --name, --name=value, --name value. *at moves over what was used. */
static int take_long(struct args_reading *reading, int count, char *const *words, int *at)
{
	const char *name = words[*at] + 2, *equals = strchr(name, '=');
	const struct flag *flag =
		verb_flag(reading->verb, name, equals ? (size_t)(equals - name) : strlen(name));
	const char *value = equals ? equals + 1 : NULL;

	if (!flag)
		return unknown_flag(reading, words[*at]);
	if (value && flag->kind == FLAG_SWITCH)
		return complain(reading, "--%s takes no value", flag->name);
	if (!value && wants_value(flag)) {
		if (*at + 1 == count)
			return complain(reading, "--%s needs a value: %s", flag->name, flag->value);
		value = words[++*at];
		if (strncmp(value, "--", 2) == 0 &&
			verb_flag(reading->verb, value + 2, strcspn(value + 2, "=")))
			return complain(reading, "--%s needs a value: %s; if it is %s, say --%s=%s",
				flag->name, flag->value, value, flag->name, value);
	}
	return keep(reading, flag, value);
}

/* -a, -ab, -fVALUE, -f VALUE */
static int take_letters(struct args_reading *reading, int count, char *const *words, int *at)
{
	for (const char *letter = words[*at] + 1; *letter; letter++) {
		const struct flag *flag = verb_letter(reading->verb, *letter);
		if (!flag)
			return unknown_flag(reading, words[*at]);
		if (!wants_value(flag)) {
			int r = keep(reading, flag, NULL);
			if (r < 0)
				return r;
			continue;
		}
		const char *value = letter[1] == '=' ? letter + 2 : letter + 1;
		if (!*value && *at + 1 == count)
			return complain(reading, "-%c needs a value: %s", *letter, flag->value);
		return keep(reading, flag, *value ? value : words[++*at]);
	}
	return 0;
}

static bool is_negative_number(const char *word)
{
	return word[0] == '-' && word[1] >= '0' && word[1] <= '9';
}

int args_read(struct args *args, const struct verb *verb, int count, char *const *words, int64_t now_ms,
	struct args_complaint *ret_complaint)
{
	struct args_reading reading = {args, verb, now_ms, ret_complaint};
	bool flags_over = false;
	int r = 0;

	*args = (struct args){.verb = verb, .items = calloc(ARGS_MAX, sizeof *args->items)};
	if (!args->items)
		return -ENOMEM;
	ret_complaint->fix[0] = 0;
	for (int i = 0; r == 0 && i < count; i++) {
		const char *word = words[i];
		if (flags_over || word[0] != '-' || word[1] == 0 || is_negative_number(word))
			r = keep(&reading, NULL, word);
		else if (strcmp(word, "--") == 0) {
			flags_over = true;
			args->before_dashes = args->plain_count;
		} else if (word[1] == '-')
			r = take_long(&reading, count, words, &i);
		else
			r = take_letters(&reading, count, words, &i);
	}
	if (!flags_over)
		args->before_dashes = args->plain_count;
	if (r < 0 || args_has(args, "help"))
		return r;
	if (args->plain_count < verb_least(verb))
		return complain(&reading, "stint %s needs %s", verb->name, verb->arguments);
	uint32_t most = verb_most_before_dashes(verb);
	if (args->before_dashes > most || args->plain_count > verb_most(verb))
		return complain(&reading, "stint %s does not take \"%s\"%s", verb->name,
			args_plain(args, args->before_dashes > most ? most : verb_most(verb)),
			most > 0 ? "; put quotes around a text of several words" : "");
	return 0;
}

static bool is_word_of_switch(const char *word)
{
	return strcmp(word, "true") == 0 || strcmp(word, "false") == 0;
}

/* The value of the flag at `*at`, which moves over it; NULL: the flag has no value. */
static const char *loose_value(const struct flag *flag, int count, char *const *words, int *at)
{
	const char *equals = strchr(words[*at], '='), *next = *at + 1 < count ? words[*at + 1] : NULL;

	if (equals)
		return equals + 1;
	if (!next || strncmp(next, "--", 2) == 0)
		return NULL;
	if (flag && !wants_value(flag) && !is_word_of_switch(next))
		return NULL; /* a switch of ours does not swallow the id behind it */
	return words[++*at];
}

int args_read_loosely(
	struct args *args, const struct verb *verb, int count, char *const *words, const char **ret_unknown)
{
	bool flags_over = false;

	*ret_unknown = NULL;
	*args = (struct args){.verb = verb, .items = calloc(ARGS_MAX, sizeof *args->items)};
	if (!args->items)
		return -ENOMEM;
	for (int i = 0; i < count && args->count < ARGS_MAX; i++) {
		const char *word = words[i];
		if (!flags_over && strcmp(word, "--") == 0) {
			flags_over = true;
			continue;
		}
		bool is_flag = !flags_over && strncmp(word, "--", 2) == 0;
		const struct flag *flag = is_flag ? verb_flag(verb, word + 2, strcspn(word + 2, "=")) : NULL;
		const char *text = is_flag ? loose_value(flag, count, words, &i) : word;
		if (is_flag && !flag && !*ret_unknown)
			*ret_unknown = word;
		if ((is_flag && !flag) || (flag && !wants_value(flag) && text && strcmp(text, "false") == 0))
			continue;
		args->items[args->count++] = (struct arg){.flag = flag, .text = text};
		args->plain_count += !is_flag;
	}
	return 0;
}

void args_done(struct args *args)
{
	free(args->items);
	*args = (struct args){0};
}

/* ---- what was said --------------------------------------------------------------------------------------- */

static const struct arg *last_of(const struct args *args, const char *name)
{
	for (size_t i = args->count; i-- > 0;) {
		if (args->items[i].flag && strcmp(args->items[i].flag->name, name) == 0)
			return &args->items[i];
	}
	return NULL;
}

bool args_has(const struct args *args, const char *name)
{
	return last_of(args, name) != NULL;
}

const char *args_text(const struct args *args, const char *name)
{
	const struct arg *arg = last_of(args, name);

	return arg ? arg->text : NULL;
}

int64_t args_number(const struct args *args, const char *name, int64_t otherwise)
{
	const struct arg *arg = last_of(args, name);

	return arg ? arg->number : otherwise;
}

const char *args_each(const struct args *args, const char *name, size_t *at)
{
	while (*at < args->count) {
		const struct arg *arg = &args->items[(*at)++];
		if (arg->flag && strcmp(arg->flag->name, name) == 0)
			return arg->text;
	}
	return NULL;
}

bool args_each_name(const struct args *args, const char *name, struct args_names *walk, struct span *ret_name)
{
	size_t len = 0;

	while (len == 0) {
		if (!walk->rest || !*walk->rest)
			walk->rest = args_each(args, name, &walk->at);
		if (!walk->rest)
			return false;
		len = strcspn(walk->rest, ",");
		*ret_name = (struct span){walk->rest, len};
		walk->rest += len + (walk->rest[len] == ',');
	}
	return true;
}

const char *args_plain(const struct args *args, size_t n)
{
	for (size_t i = 0; i < args->count; i++) {
		if (!args->items[i].flag && n-- == 0)
			return args->items[i].text;
	}
	return NULL;
}
