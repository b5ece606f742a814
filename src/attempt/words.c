/*
 * Programs say what went wrong in the last line that they write, or above it when something follows of itself: the banner of an
 * interpreter, the frames of a stack, a hint what to type. The lines are judged from the last one upwards:
 *
 *	Error: boom                                 said: the first line that is neither of those
 *	    at Object.<anonymous> (/srv/job.js:1:7) a frame
 *	Node.js v20.20.2                            a banner
 *
 * Two lines are taken wherever they stand in the tail, because prose follows them: git's "fatal:" and Go's "panic:".
 */
#include "attempt/words.h"

#include <stdbool.h>
#include <stdio.h>
#include <string.h>

#include "base/take.h"
#include "base/utf8.h"
#include "wire/json/json.h"

enum {
	LINES_MAX = 60, /* that are judged, from the end */
	TAKEN_MAX = 12, /* how far above the end fatal: may stand */
};

static bool begins(struct span line, const char *with)
{
	size_t len = strlen(with);

	return line.len >= len && memcmp(line.data, with, len) == 0;
}

static bool ends(struct span line, const char *with)
{
	size_t len = strlen(with);

	return line.len >= len && memcmp(line.data + line.len - len, with, len) == 0;
}

static bool is_blank(char byte)
{
	return byte == ' ' || byte == '\t' || byte == '\r';
}

static struct span trim(struct span line)
{
	while (line.len > 0 && is_blank(line.data[line.len - 1]))
		line.len--;
	while (line.len > 0 && is_blank(line.data[0])) {
		line.data++;
		line.len--;
	}
	return line;
}

/* Takes the last line off the text. */
static struct span take_last(struct span *text)
{
	const char *newline = text->len > 0 ? memrchr(text->data, '\n', text->len) : NULL;
	size_t from = newline ? (size_t)(newline + 1 - text->data) : 0;
	struct span line = {text->data + from, text->len - from};

	text->len = newline ? from - 1 : 0;
	return line;
}

/* ---- what says nothing ---- */

static bool is_banner(struct span line)
{
	static const char *const heads[] = {"Node.js v", "Bun v", "Deno ", "npm ERR! A complete log",
		"npm error A complete log", "npm notice", "note: run with `RUST_BACKTRACE",
		"For more information about this error", "exit status ", "goroutine "};

	for (size_t i = 0; i < sizeof heads / sizeof *heads; i++) {
		if (begins(line, heads[i]))
			return true;
	}
	/* "make: *** [Makefile:2: test] Error 1" says that something went wrong, and not what */
	return begins(line, "make") && memmem(line.data, line.len, ": *** [", 7) != NULL;
}

/* "  try: stint up", "hint: Updates were rejected" */
static bool is_hint(struct span line, bool indented)
{
	return begins(line, "hint:") || (indented && (begins(line, "try ") || begins(line, "try: ")));
}

/* "at f (file:1:2)", "File "x", line 1", "^^^^", "}", "[cause]: ..." */
static bool is_frame(struct span line, bool indented)
{
	size_t signs = 0;

	if (indented && (begins(line, "at ") || begins(line, "File \"") || begins(line, "... ")))
		return true;
	while (signs < line.len && strchr("^~-=|{}[]();,", line.data[signs]))
		signs++;
	return signs == line.len;
}

/* ---- JSON ---- */

static struct span text_of(yyjson_val *value)
{
	return yyjson_is_str(value) ? (struct span){yyjson_get_str(value), yyjson_get_len(value)}
				    : (struct span){0};
}

/* The member that says what went wrong; empty: it has none. */
static struct span said_by(yyjson_val *object)
{
	yyjson_val *error = yyjson_obj_get(object, "error");
	struct span said = yyjson_is_obj(error) ? text_of(yyjson_obj_get(error, "message")) : text_of(error);

	if (said.len == 0)
		said = text_of(yyjson_obj_get(object, "result"));
	return said.len > 0 ? said : text_of(yyjson_obj_get(object, "message"));
}

/* ---- the words ---- */

/* Without the colours. */
static size_t put_plain(struct span line, char *out, size_t room)
{
	size_t used = 0, i;

	for (i = 0; i < line.len && used + 1 < room; i++) {
		if (line.data[i] == '\033' && i + 1 < line.len && line.data[i + 1] == '[') {
			for (i += 2; i < line.len && (line.data[i] < '@' || line.data[i] > '~'); i++)
				;
			continue;
		}
		out[used++] = line.data[i] == '\n' ? ' ' : line.data[i];
	}
	out[used] =
		i < line.len ? line.data[i] : 0; /* whether a character is cut is seen by the byte behind */
	return utf8_cut((struct span){out, used + 1}, used).len;
}

static size_t put_words(struct span line, char ret_words[WORDS_BYTES])
{
	struct span all = {ret_words, put_plain(trim(line), ret_words, WORDS_BYTES)};

	all = trim(all);
	if (ends(all, ".") && !ends(all, ".."))
		all.len--; /* the sentence that has these words ends by itself */
	memmove(ret_words, all.data, all.len);
	ret_words[all.len] = 0;
	return all.len;
}

/* The words of the line, if they say what went wrong. 0: they do not. */
static size_t put_if_said(struct span line, char ret_words[WORDS_BYTES])
{
	bool indented = line.len > 0 && is_blank(line.data[0]);
	struct span bare = trim(line);
	struct json_complaint complaint;

	if (bare.len == 0 || is_banner(bare) || is_hint(bare, indented) || is_frame(bare, indented))
		return 0;
	if (bare.data[0] != '{')
		return put_words(bare, ret_words);
	cleanup(yyjson_doc_free_at) yyjson_doc *doc = json_read_to(bare, JSON_DEPTH_MAX - 1, &complaint);
	if (!doc)
		return put_words(bare, ret_words);
	return put_words(said_by(yyjson_doc_get_root(doc)), ret_words);
}

static bool is_taken(struct span line)
{
	return begins(line, "fatal: ") || begins(line, "panic: ");
}

size_t last_words(struct span text, char ret_words[WORDS_BYTES])
{
	struct span last = {0}, rest = text;
	bool in_object = false; /* "  code: 'EACCES',", below the error that has these members */
	size_t used = 0;

	ret_words[0] = 0;
	for (int i = 0; i < LINES_MAX && rest.len > 0; i++) {
		struct span line = take_last(&rest), bare = trim(line);
		bool indented = line.len > 0 && is_blank(line.data[0]);
		if (bare.len == 0)
			continue;
		if (last.len == 0)
			last = line;
		if (i < TAKEN_MAX && is_taken(bare))
			return put_words(bare, ret_words);
		in_object = (in_object && indented) || (!indented && bare.len == 1 && bare.data[0] == '}');
		if (used == 0 && !in_object)
			used = put_if_said(line, ret_words);
		if (used > 0 && i >= TAKEN_MAX)
			return used;
	}
	return used > 0 ? used : put_words(last, ret_words);
}
