#include "cli/verb/redact.h"

#include <ctype.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "base/secret.h"
#include "base/take.h"

enum {
	KNOWN_BYTES_MIN = 8,
	TEXT_BYTES_MAX = 64 << 20,
	NAME_BYTES_MAX = 128,
};

#define REMOVED SPAN("[removed]")

/* ---- names that say that there is a secret ---------------------------------------------------------------------- */

/* Is it a part of the name? Case and what stands between the words count for nothing: apiKey, API_KEY. */
static bool name_has(struct span name, const char *part)
{
	char plain[NAME_BYTES_MAX];
	size_t len = 0;

	for (size_t i = 0; i < name.len && len < sizeof plain - 1; i++) {
		if (isalnum((unsigned char)name.data[i]))
			plain[len++] = (char)tolower((unsigned char)name.data[i]);
	}
	plain[len] = 0;
	return strstr(plain, part) != NULL;
}

static bool names_a_secret(struct span name)
{
	static const char *const parts[] = {"token", "secret", "password", "passwd", "passphrase",
		"authorization", "apikey", "privatekey", "accesskey", "cookie", "bearer", "pgpass", "dsn",
		"databaseurl"};
	static const char *const harmless[] = {
		"tokens", "inputtokens", "outputtokens", "tokenfile", "secretfile"};

	for (size_t i = 0; i < sizeof harmless / sizeof *harmless; i++) {
		size_t len = strlen(harmless[i]);
		if (name.len >= len && name_has((struct span){name.data + name.len - len, len}, harmless[i]))
			return false;
	}
	for (size_t i = 0; i < sizeof parts / sizeof *parts; i++) {
		if (name_has(name, parts[i]))
			return true;
	}
	return false;
}

/* ---- words that are secrets by their form ------------------------------------------------------------------------ */

static bool is_word(char byte)
{
	return isalnum((unsigned char)byte) || byte == '_' || byte == '-' || byte == '.' || byte == '+' ||
		byte == '/' || byte == '=';
}

/* How each kind begins, and how many bytes follow at least. */
static const struct {
	const char *begins;
	size_t more;
} forms[] = {
	{"stint_", 40},
	{"sk-", 16},
	{"sk_live_", 10},
	{"sk_test_", 10},
	{"rk_live_", 10},
	{"pk_live_", 10},
	{"ghp_", 20},
	{"gho_", 20},
	{"ghu_", 20},
	{"ghs_", 20},
	{"ghr_", 20},
	{"github_pat_", 20},
	{"glpat-", 16},
	{"xoxb-", 10},
	{"xoxa-", 10},
	{"xoxp-", 10},
	{"xoxs-", 10},
	{"xapp-", 10},
	{"AKIA", 16},
	{"ASIA", 16},
	{"AIza", 30},
	{"ya29.", 20},
	{"whsec_", 20},
	{"npm_", 30},
	{"pypi-", 20},
	{"hf_", 20},
	{"eyJ", 30},
	{"SG.", 30},
	{"dop_v1_", 30},
	{"xai-", 20},
	{"gsk_", 20},
	{"AGE-SECRET-KEY-", 20},
};

static size_t word_len(struct span text, size_t at)
{
	size_t end = at;

	while (end < text.len && is_word(text.data[end]))
		end++;
	return end - at;
}

static bool begins_at(struct span text, size_t at, const char *with)
{
	size_t len = strlen(with);

	return text.len - at >= len && memcmp(text.data + at, with, len) == 0;
}

/* A sentence that was cut ends so: what stands before the mark may be the first half of a secret. */
static bool is_cut_at(struct span text, size_t at)
{
	return begins_at(text, at, "…");
}

/* The length of the secret that begins there, or 0. */
static size_t form_at(struct span text, size_t at)
{
	if (at > 0 && (isalnum((unsigned char)text.data[at - 1]) || text.data[at - 1] == '_'))
		return 0;
	for (size_t i = 0; i < sizeof forms / sizeof *forms; i++) {
		if (!begins_at(text, at, forms[i].begins))
			continue;
		size_t len = word_len(text, at);
		size_t least = strlen(forms[i].begins);
		if (len >= least + forms[i].more || (len > least && is_cut_at(text, at + len)))
			return len;
	}
	return 0;
}

/* -----BEGIN … PRIVATE KEY----- to its end; or to the end of the text, if it was cut. */
static size_t key_at(struct span text, size_t at)
{
	static const char end[] = "PRIVATE KEY-----";
	struct span rest = {text.data + at, text.len - at};

	if (at == 0) {
		/* The end of a key without its beginning: the text was cut in the middle of one. */
		const char *begin = memmem(text.data, text.len, "-----BEGIN ", 11);
		const char *stop = memmem(text.data, text.len, end, sizeof end - 1);
		if (stop && (!begin || stop < begin))
			return (size_t)(stop - text.data) + sizeof end - 1;
	}
	if (!begins_at(text, at, "-----BEGIN "))
		return 0;
	const char *first = memmem(rest.data, rest.len < 80 ? rest.len : 80, end, sizeof end - 1);
	if (!first)
		return 0;
	size_t from = (size_t)(first - rest.data) + sizeof end - 1;
	const char *last = memmem(rest.data + from, rest.len - from, end, sizeof end - 1);
	return last ? (size_t)(last - rest.data) + sizeof end - 1 : rest.len;
}

/* Is it the value of NAME=…, NAME: … or --name …, where the name says that this is a secret? Then the length of the value. */
static size_t value_at(struct span text, size_t at)
{
	size_t end = at, name, value = at;

	while (end > 0 && strchr(" \t\"'", text.data[end - 1]))
		end--;
	if (end == 0 || !strchr("=:", text.data[end - 1]) ||
		(end == at && at < text.len && text.data[at] == '='))
		return 0;
	end--;
	while (end > 0 && strchr(" \t\"'", text.data[end - 1]))
		end--;
	name = end;
	while (name > 0 && (isalnum((unsigned char)text.data[name - 1]) || strchr("_-", text.data[name - 1])))
		name--;
	if (name == end || !names_a_secret((struct span){text.data + name, end - name}))
		return 0;
	if (begins_at(text, value, "Bearer ") || begins_at(text, value, "Basic "))
		value += text.data[value + 1] == 'e' ? 7 : 6;
	while (value < text.len && !strchr(" \t\r\n\"',;&)}]", text.data[value]))
		value++;
	return value - at;
}

/* "//user:password@": the part between the colon and the at sign. */
static size_t password_at(struct span text, size_t at)
{
	size_t begin = at, end = at;

	if (at == 0 || text.data[at - 1] != ':')
		return 0;
	begin--;
	while (begin > 0 && !strchr("/ \t\r\n@\"'", text.data[begin - 1]))
		begin--;
	if (begin < 2 || text.data[begin - 1] != '/' || text.data[begin - 2] != '/')
		return 0;
	while (end < text.len && !strchr("/ \t\r\n@\"'", text.data[end]))
		end++;
	return end < text.len && text.data[end] == '@' ? end - at : 0;
}

static size_t bearer_at(struct span text, size_t at)
{
	static const char bearer[] = "Bearer ";
	size_t len = sizeof bearer - 1;

	return at >= len && memcmp(text.data + at - len, bearer, len) == 0 &&
			word_len(text, at) >= KNOWN_BYTES_MIN
		? word_len(text, at)
		: 0;
}

/* ---- what is known --------------------------------------------------------------------------------------------------- */

static size_t known_at(const struct redactor *redactor, struct span text, size_t at)
{
	size_t longest = 0;

	for (size_t i = 0; i < redactor->known_count; i++) {
		struct span known = redactor->known[i];
		if (known.len > longest && text.len - at >= known.len &&
			memcmp(text.data + at, known.data, known.len) == 0)
			longest = known.len;
		for (size_t len = KNOWN_BYTES_MIN; longest == 0 && len < known.len && text.len - at > len;
			len++) {
			if (memcmp(text.data + at, known.data, len) != 0)
				break;
			if (is_cut_at(text, at + len))
				longest = len;
		}
	}
	return longest;
}

void redact_know(struct redactor *redactor, struct span secret)
{
	if (secret.len >= KNOWN_BYTES_MIN && redactor->known_count < REDACT_KNOWN_MAX)
		redactor->known[redactor->known_count++] = secret;
}

void redact_init(struct redactor *redactor)
{
	const char *home = getenv("HOME");

	*redactor = (struct redactor){.home = home && home[0] == '/' && home[1] ? home : NULL};
	for (char **at = environ; *at; at++) {
		const char *sign = strchr(*at, '=');
		if (!sign)
			continue;
		if (names_a_secret((struct span){*at, (size_t)(sign - *at)}) || strstr(*at, "_KEY=") ||
			strstr(*at, "_PASS="))
			redact_know(redactor, span_of(sign + 1));
	}
}

/* ---- texts and values --------------------------------------------------------------------------------------------- */

static size_t secret_at(const struct redactor *redactor, struct span text, size_t at)
{
	size_t len = known_at(redactor, text, at);

	len = len ? len : key_at(text, at);
	len = len ? len : form_at(text, at);
	len = len ? len : bearer_at(text, at);
	len = len ? len : password_at(text, at);
	return len ? len : value_at(text, at);
}

void redact_text(struct redactor *redactor, struct buf *out, struct span text)
{
	size_t home_len = redactor->home ? strlen(redactor->home) : 0, from = 0;

	for (size_t at = 0; at < text.len;) {
		size_t len = secret_at(redactor, text, at);
		bool is_home = len == 0 && home_len > 0 && begins_at(text, at, redactor->home) &&
			(at + home_len == text.len || !isalnum((unsigned char)text.data[at + home_len]));
		if (len == 0 && !is_home) {
			at++;
			continue;
		}
		buf_put(out, text.data + from, at - from);
		buf_put_span(out, is_home ? SPAN("~") : REMOVED);
		redactor->removed += !is_home;
		at += is_home ? home_len : len;
		from = at;
	}
	if (text.len > from)
		buf_put(out, text.data + from, text.len - from);
}

static void put_text(struct redactor *redactor, struct buf *out, struct span text)
{
	cleanup(buf_done) struct buf clean = {.max = TEXT_BYTES_MAX};

	redact_text(redactor, &clean, text);
	buf_fail(out, buf_fault(&clean));
	json_put_string(out, buf_span(&clean));
}

/* All that is in it, whatever its form. */
static void put_removed(struct redactor *redactor, struct buf *out, yyjson_val *value)
{
	if (yyjson_is_null(value) || yyjson_is_bool(value)) {
		json_put_value(out, value);
		return;
	}
	redactor->removed++;
	json_put_string(out, REMOVED);
}

/* Of variables every value is removed: which ones a task has says enough. */
static void put_object(struct redactor *redactor, struct buf *out, yyjson_val *object, bool are_variables)
{
	size_t i, limit;
	yyjson_val *key, *value;
	bool any = false;

	buf_put_byte(out, '{');
	yyjson_obj_foreach(object, i, limit, key, value)
	{
		json_put_comma(out, &any);
		put_text(redactor, out, json_text(key));
		buf_put_byte(out, ':');
		if (are_variables)
			put_removed(redactor, out, value);
		else
			redact_value(redactor, out, yyjson_get_str(key), value);
	}
	buf_put_byte(out, '}');
}

void redact_value(struct redactor *redactor, struct buf *out, const char *key, yyjson_val *value)
{
	static const char *const inputs[] = {"stdin", "stdinBase64"};
	size_t i, limit;
	yyjson_val *item;
	bool any = false;

	if (key && strcmp(key, "env") == 0 && yyjson_is_obj(value)) {
		put_object(redactor, out, value, true);
		return;
	}
	for (i = 0; key && i < sizeof inputs / sizeof *inputs; i++) {
		if (strcmp(key, inputs[i]) == 0) {
			put_removed(redactor, out, value);
			return;
		}
	}
	if (key && names_a_secret(span_of(key)) && (yyjson_is_str(value) || yyjson_is_arr(value))) {
		put_removed(redactor, out, value);
		return;
	}
	if (yyjson_is_str(value))
		put_text(redactor, out, json_text(value));
	else if (yyjson_is_obj(value))
		put_object(redactor, out, value, false);
	else if (yyjson_is_arr(value)) {
		buf_put_byte(out, '[');
		yyjson_arr_foreach(value, i, limit, item)
		{
			json_put_comma(out, &any);
			redact_value(redactor, out, NULL, item);
		}
		buf_put_byte(out, ']');
	} else
		json_put_value(out, value);
}
