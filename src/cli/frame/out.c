/*
 * Saying things: data on standard output, talk on standard error, every mistake with its cause and a way on.
 */
#include <errno.h>
#include <poll.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "base/files.h"
#include "base/shell_word.h"
#include "base/take.h"
#include "cli/frame/cli.h"
#include "cli/frame/spawn.h"
#include "cli/frame/text.h"

enum {
	TEXT_BYTES_MAX = 32 << 20,
	LINE_BYTES_MAX = 64 << 10,
	FLUSH_BYTES = 1 << 20,
	OUT_BYTES_MAX = 1 << 30,
	BAR_WIDTH_MAX = 24,
	NOTE_WIDTH_MAX = 40,
	PROSE_WIDTH = 78, /* of prose that goes to no terminal */
	PROSE_WIDTH_MIN = 60,
	PROSE_WIDTH_MAX = 100,
	SAY_INDENT = 2,  /* of the lines after the first */
	FAIL_INDENT = 7, /* behind "stint: " */
};

/* No memory, or more text than fits: ends the run. */
static _Noreturn void die(struct cli *cli, int fault)
{
	cli_exit(cli, cli_fail_fault(cli, fault));
}

_Noreturn void cli_exit(struct cli *cli, int status)
{
	cli_flush(cli);
	term_title_back();
	exit(status);
}

struct span cli_span(struct cli *cli, const struct buf *text)
{
	if (buf_fault(text))
		die(cli, buf_fault(text));
	return buf_span(text);
}

const char *cli_text(struct cli *cli, const char *format, ...)
{
	cleanup(buf_done) struct buf text = {0};
	struct span kept;
	va_list list;

	buf_init(&text, TEXT_BYTES_MAX);
	va_start(list, format);
	buf_vprintf(&text, format, list);
	va_end(list);
	int r = arena_copy(&cli->arena, cli_span(cli, &text), &kept);
	if (r < 0)
		die(cli, r);
	return kept.data;
}

const char *cli_path(struct cli *cli, const char *path)
{
	cleanup(free_at) char *here = path[0] == '/' ? NULL : getcwd(NULL, 0);

	while (path[0] == '.' && (path[1] == '/' || !path[1]))
		path += 1 + strspn(path + 1, "/");
	if (path[0] == '/')
		return path;
	return here ? cli_text(cli, "%s%s%s", here, path[0] ? "/" : "", path) : NULL;
}

const char *cli_quote(struct cli *cli, const char *name)
{
	cleanup(buf_done) struct buf text = {0};

	buf_init(&text, TEXT_BYTES_MAX);
	shell_word_put(&text, span_of(name));
	return cli_text(cli, "%.*s", SPAN_ARGS(cli_span(cli, &text)));
}

/* ---- progress -------------------------------------------------------------------------------------------- */

static void wipe_progress(struct cli *cli)
{
	if (cli->progress_drawn)
		fputs("\r\033[K", stderr);
	cli->progress_drawn = false;
}

static void put_title(struct cli *cli, const char *counts)
{
	cleanup(buf_done) struct buf clean = {0};

	buf_init(&clean, LINE_BYTES_MAX);
	if (text_clean(&clean, span_of(counts), cli->term.utf8, false) == 0)
		term_title(cli_text(cli, "%.*s", SPAN_ARGS(buf_span(&clean))));
}

/* On one line, whatever the terminal's width: the note gives way first, then the bar. */
void cli_progress(struct cli *cli, int percent, const char *counts, const char *note)
{
	const struct term *term = &cli->term;
	cleanup(buf_done) struct buf clean = {0}, cut = {0};
	int room = (int)term->talk_width - 1 - (int)strlen(counts);
	int bar = room - 1 < BAR_WIDTH_MAX ? room - 1 : BAR_WIDTH_MAX;
	int rest = room - (bar > 0 ? bar + 1 : 0) - 1;

	if (!term->talk_moves || cli->quiet)
		return;
	if (!cli->progress_drawn)
		term_wipe_at_signals();
	buf_init(&clean, LINE_BYTES_MAX);
	buf_init(&cut, LINE_BYTES_MAX);
	if (text_clean(&clean, span_of(note), term->utf8, false) < 0)
		buf_clear(&clean); /* the counts are shown without it */
	rest = rest < NOTE_WIDTH_MAX ? rest : NOTE_WIDTH_MAX;
	text_fit(&cut, buf_span(&clean), rest > 0 ? (size_t)rest : 0, term->utf8);
	fputs("\r\033[K", stderr);
	if (term->titles)
		put_title(cli, counts);
	for (int i = 0; i < bar; i++)
		fputs(i < percent * bar / 100 ? (term->utf8 ? "━" : "=") : (term->utf8 ? "─" : "-"), stderr);
	fprintf(stderr, "%s%s%s%.*s", bar > 0 ? " " : "", counts, cut.len > 0 ? " " : "",
		SPAN_ARGS(buf_span(&cut)));
	cli->progress_drawn = true;
}

/* ---- talk ------------------------------------------------------------------------------------------------ */

/* Where prose is broken: only for people, and not wider than is read with ease. 0: nowhere. */
static size_t prose_width(bool tty, size_t width)
{
	if (!tty || width == 0)
		return 0;
	return width < PROSE_WIDTH_MAX ? width : PROSE_WIDTH_MAX;
}

static bool begins(struct span text, struct span with)
{
	return text.len >= with.len && memcmp(text.data, with.data, with.len) == 0;
}

/* Each line of the text is broken on its own, and hangs under its first word. The line of a hint stays whole. */
static void put_prose(struct buf *out, struct span text, size_t width)
{
	while (text.len > 0) {
		const char *end = memchr(text.data, '\n', text.len);
		struct span line = {text.data, end ? (size_t)(end - text.data) : text.len};
		size_t blanks = 0;
		while (blanks < line.len && line.data[blanks] == ' ')
			blanks++;
		bool hint = begins(line, SPAN("  try  "));
		size_t indent = blanks + (begins(line, SPAN("stint: ")) ? FAIL_INDENT : SAY_INDENT);
		text_wrap(out, line, hint ? 0 : width, 0, indent);
		text = (struct span){text.data + line.len, text.len - line.len};
		if (text.len > 0) {
			buf_put_byte(out, '\n');
			text = (struct span){text.data + 1, text.len - 1};
		}
	}
}

/* Without memory it is said as it stands. */
void cli_say(struct cli *cli, const char *format, ...)
{
	cleanup(buf_done) struct buf text = {0}, clean = {0}, broken = {0};
	size_t width = prose_width(cli->term.talk_tty, cli->term.talk_width);
	va_list list;

	if (cli->quiet)
		return;
	wipe_progress(cli);
	if (cli->term.tty && cli->term.talk_tty)
		cli_flush(cli); /* what was said of a list comes after it */
	buf_init(&text, TEXT_BYTES_MAX);
	buf_init(&clean, TEXT_BYTES_MAX);
	buf_init(&broken, TEXT_BYTES_MAX);
	va_start(list, format);
	int r = buf_vprintf(&text, format, list);
	/* names and messages come from others */
	if (r == 0 && cli->term.talk_tty)
		r = text_clean(&clean, buf_span(&text), cli->term.utf8, true);
	if (r == 0 && width > 0)
		put_prose(&broken, buf_span(&clean), width);
	va_end(list);
	va_start(list, format);
	if (broken.len > 0 && buf_fault(&broken) == 0)
		fprintf(stderr, "%.*s", SPAN_ARGS(buf_span(&broken)));
	else if (r == 0)
		fprintf(stderr, "%.*s", SPAN_ARGS(buf_span(clean.len > 0 ? &clean : &text)));
	else
		vfprintf(stderr, format, list);
	va_end(list);
	fputc('\n', stderr);
}

void cli_say_mark(struct cli *cli, enum paint paint, struct span mark, const char *text)
{
	const struct term *term = &cli->term;
	cleanup(buf_done) struct buf clean = {0}, broken = {0};
	size_t width = prose_width(term->talk_tty, term->talk_width), at = text_width(mark);

	if (cli->quiet)
		return;
	wipe_progress(cli);
	if (term->tty && term->talk_tty)
		cli_flush(cli);
	buf_init(&clean, TEXT_BYTES_MAX);
	buf_init(&broken, TEXT_BYTES_MAX);
	int r = text_clean(&clean, span_of(text), term->utf8, true);
	if (r == 0)
		r = text_wrap(&broken, buf_span(&clean), width, at, SAY_INDENT);
	fprintf(stderr, "%s%.*s%s%.*s\n", term_paint(term->talk_color, paint), SPAN_ARGS(mark),
		term_plain(term->talk_color, paint), SPAN_ARGS(r == 0 ? buf_span(&broken) : SPAN("")));
}

void cli_put_errors(struct cli *cli, struct span text)
{
	wipe_progress(cli);
	cli_flush(cli);
	fwrite(text.data, 1, text.len, stderr);
}

/* The line with the command that helps: nothing in it is broken, so that it can be pasted. */
static void put_hint(struct cli *cli, const char *command)
{
	const struct term *term = &cli->term;
	cleanup(buf_done) struct buf clean = {0};

	buf_init(&clean, 16 * LINE_BYTES_MAX);
	if (text_clean(&clean, span_of(command), term->utf8, false) < 0)
		buf_clear(&clean);
	fprintf(stderr, "  %stry%s  %.*s\n", term_paint(term->talk_color, PAINT_DIM),
		term_plain(term->talk_color, PAINT_DIM), SPAN_ARGS(buf_span(&clean)));
}

void cli_hint(struct cli *cli, const char *command)
{
	if (!command || cli->quiet || !cli->term.tty || cli->output == OUTPUT_JSON)
		return;
	wipe_progress(cli);
	if (cli->term.talk_tty)
		cli_flush(cli);
	put_hint(cli, command);
}

/* Of standard output only whole lines stay. A document of JSON is one line: half of one is worse than none. */
static void drop_half_line(struct cli *cli)
{
	const char *end = cli->out.len > 0 ? memrchr(cli->out.data, '\n', cli->out.len) : NULL;

	buf_cut(&cli->out, end ? (size_t)(end - cli->out.data) + 1 : 0);
}

/* What went wrong, as JSON: the last line on standard error. False: there is no memory for it. */
static bool put_error(enum exit_status status, const char *code, const char *fix, const char *message)
{
	struct json_object object, error;
	cleanup(buf_done) struct buf text = {0};

	buf_init(&text, 16 * LINE_BYTES_MAX);
	json_begin(&object, &text);
	json_member_int(&object, "schema", 1);
	json_member_bool(&object, "ok", false);
	json_put_key(&object, "error");
	json_begin(&error, &text);
	json_member_string(&error, "code", span_of(code));
	json_member_string(&error, "message", span_of(message));
	if (fix)
		json_member_string(&error, "try", span_of(fix));
	json_member_int(&error, "exit", status);
	json_member_bool(&error, "retryable", status == EXIT_UNREACHABLE || status == EXIT_TIMED_OUT);
	json_end(&error);
	json_end(&object);
	if (buf_fault(&text) < 0)
		return false;
	fprintf(stderr, "%.*s\n", SPAN_ARGS(buf_span(&text)));
	return true;
}

int cli_fail(
	struct cli *cli, enum exit_status status, const char *code, const char *fix, const char *format, ...)
{
	const struct term *term = &cli->term;
	cleanup(buf_done) struct buf clean = {0}, broken = {0};
	char message[LINE_BYTES_MAX];
	va_list list;

	va_start(list, format);
	vsnprintf(message, sizeof message, format, list);
	va_end(list);
	wipe_progress(cli);
	buf_init(&clean, 16 * LINE_BYTES_MAX);
	buf_init(&broken, 16 * LINE_BYTES_MAX);
	if (text_clean(&clean, span_of(message), term->utf8, true) < 0)
		buf_clear(&clean); /* the code is still said */
	if (cli->verb && cli->verb->stands_in) {
		fprintf(stderr, "%.*s\n", SPAN_ARGS(buf_span(&clean)));
		buf_clear(&cli->out); /* the original prints nothing when it fails */
		return EXIT_FAILED;
	}
	if (cli->output == OUTPUT_JSON || buf_fault(&cli->out))
		drop_half_line(cli);
	if (cli->output == OUTPUT_JSON && put_error(status, code, fix, message))
		return (int)status;
	buf_printf(&clean, " (%s)", code);
	if (text_wrap(&broken, buf_span(&clean), prose_width(term->talk_tty, term->talk_width), FAIL_INDENT,
		    FAIL_INDENT) < 0)
		buf_clear(&broken);
	fprintf(stderr, "%sstint:%s %.*s\n", term_paint(term->talk_color, PAINT_RED),
		term_plain(term->talk_color, PAINT_RED),
		SPAN_ARGS(buf_span(broken.len > 0 ? &broken : &clean)));
	if (fix)
		put_hint(cli, fix);
	return (int)status;
}

int cli_fail_fault(struct cli *cli, int fault)
{
	if (fault == -E2BIG)
		return cli_fail(cli, EXIT_FAILED, "too_large", NULL,
			"the output is larger than fits into memory here");
	return cli_fail(cli, EXIT_FAILED, "failed", NULL, "%s", strerror(-fault));
}

/* ---- data ------------------------------------------------------------------------------------------------- */

/* Not amid a document of JSON: cli_fail() may take half of one back. */
static void flush_if_long(struct cli *cli)
{
	if (cli->out.len >= FLUSH_BYTES &&
		(cli->output != OUTPUT_JSON || cli->out.data[cli->out.len - 1] == '\n'))
		cli_flush(cli);
}

void cli_put(struct cli *cli, const char *format, ...)
{
	va_list list;

	va_start(list, format);
	buf_vprintf(&cli->out, format, list);
	va_end(list);
	flush_if_long(cli);
}

void cli_put_clean(struct cli *cli, struct span text)
{
	text_clean(&cli->out, text, cli->term.utf8, false);
}

void cli_put_line(struct cli *cli, const char *format, ...)
{
	cleanup(buf_done) struct buf text = {0};
	va_list list;

	buf_init(&text, TEXT_BYTES_MAX);
	va_start(list, format);
	buf_vprintf(&text, format, list);
	va_end(list);
	cli_put_clean(cli, cli_span(cli, &text));
	cli_put(cli, "\n");
}

void cli_put_sentence(struct cli *cli, size_t indent, const char *format, ...)
{
	cleanup(buf_done) struct buf text = {0}, clean = {0};
	va_list list;

	buf_init(&text, TEXT_BYTES_MAX);
	buf_init(&clean, TEXT_BYTES_MAX);
	va_start(list, format);
	buf_vprintf(&text, format, list);
	va_end(list);
	text_clean(&clean, cli_span(cli, &text), cli->term.utf8, false);
	text_wrap(&cli->out, cli_span(cli, &clean), prose_width(cli->term.tty, cli->term.width), 0, indent);
	cli_put(cli, "\n");
}

/* Every line with something before it. */
void cli_put_lines(struct cli *cli, struct span text, const char *indent)
{
	while (text.len > 0 && text.data[text.len - 1] == '\n')
		text.len--;
	while (text.len > 0) {
		const char *end = memchr(text.data, '\n', text.len);
		size_t len = end ? (size_t)(end - text.data) : text.len;
		cli_put(cli, "%s", indent);
		cli_put_clean(cli, (struct span){text.data, len});
		cli_put(cli, "\n");
		text = end ? (struct span){end + 1, text.len - len - 1} : (struct span){0};
	}
}

static size_t help_width(const struct cli *cli)
{
	size_t width = cli->term.width;

	if (width == 0)
		return PROSE_WIDTH;
	return width < PROSE_WIDTH_MIN ? PROSE_WIDTH_MIN : width > PROSE_WIDTH_MAX ? PROSE_WIDTH_MAX : width;
}

void cli_put_wrapped(struct cli *cli, const char *text, size_t indent)
{
	cleanup(buf_done) struct buf clean = {0};

	buf_init(&clean, TEXT_BYTES_MAX);
	text_clean(&clean, span_of(text), cli->term.utf8, true);
	text_wrap(&cli->out, cli_span(cli, &clean), help_width(cli), indent, indent);
	cli_put(cli, "\n");
}

void cli_put_painted(struct cli *cli, enum paint paint, struct span text)
{
	cli_put(cli, "%s", term_paint(cli->term.color, paint));
	cli_put_clean(cli, text);
	cli_put(cli, "%s", term_plain(cli->term.color, paint));
}

/* Strings come from others and may hold escapes for the terminal. Into a pipe they go as they are. */
static void make_harmless(struct cli *cli)
{
	struct buf out = {0};

	buf_init(&out, OUT_BYTES_MAX);
	text_clean_json(&out, buf_span(&cli->out));
	if (buf_fault(&out)) {
		int fault = buf_fault(&out);
		buf_done(&out);
		buf_clear(&cli->out); /* nothing of it may be shown as it is */
		die(cli, fault);
	}
	buf_done(&cli->out);
	cli->out = out;
}

void cli_put_change(struct cli *cli, size_t count, const char *name, const char *sentence)
{
	if (!cli->term.tty)
		cli_put(cli, "%s\n", name);
	else if (count <= CHANGES_TOLD)
		cli_put_line(cli, "%s", sentence);
}

/* Is it more than the screen has lines, for a person who can turn pages? */
static bool is_long(const struct cli *cli)
{
	bool people = cli->output == OUTPUT_AUTO || cli->output == OUTPUT_TABLE || cli->output == OUTPUT_WIDE;
	size_t lines = 0;

	if (!cli->pages || !people || !cli->term.moves || cli->term.height == 0 || !isatty(STDIN_FILENO))
		return false;
	for (size_t i = 0; i < cli->out.len && lines < cli->term.height; i++)
		lines += cli->out.data[i] == '\n';
	return lines >= cli->term.height;
}

int cli_flush(struct cli *cli)
{
	wipe_progress(cli);
	if (buf_fault(&cli->out))
		die(cli, buf_fault(&cli->out));
	if (cli->term.tty && (cli->output == OUTPUT_JSON || cli->output == OUTPUT_JSONL))
		make_harmless(cli);

	if (is_long(cli)) {
		cli->pages = false;
		if (spawn_pager(buf_span(&cli->out)) == 0)
			buf_clear(&cli->out);
	}
	int r = file_write_all(STDOUT_FILENO, buf_span(&cli->out));
	if (r < 0 && r != -EPIPE) /* the reader has closed its end: no error */
		fprintf(stderr, "stint: cannot write the output: %s\n", strerror(-r));
	buf_clear(&cli->out);
	return r < 0 ? EXIT_FAILED : 0;
}

bool cli_reader_is_gone(void)
{
	struct pollfd out = {.fd = STDOUT_FILENO};

	return poll(&out, 1, 0) > 0 && out.revents & (POLLERR | POLLHUP);
}

/* ---- JSON ------------------------------------------------------------------------------------------------- */

static void json_put_value_or_null(struct buf *out, yyjson_val *value)
{
	if (value)
		json_put_value(out, value);
	else
		buf_put_span(out, SPAN("null"));
}

static void put_picked(struct cli *cli, yyjson_val *object)
{
	const char *name = cli->fields;
	struct json_object picked;

	json_begin(&picked, &cli->out);
	while (*name) {
		size_t len = strcspn(name, ",");
		yyjson_val *value = yyjson_obj_getn(object, name, len);
		if (len > 0) {
			json_put_comma(&cli->out, &picked.any);
			buf_printf(&cli->out, "\"%.*s\":", (int)len, name);
			json_put_value_or_null(&cli->out, value);
		}
		name += len + (name[len] == ',');
	}
	json_end(&picked);
}

void cli_put_value(struct cli *cli, yyjson_val *value)
{
	size_t at, count;
	yyjson_val *item;
	bool any = false;

	if (cli->fields && yyjson_is_obj(value)) {
		put_picked(cli, value);
	} else if (cli->fields && yyjson_is_arr(value)) {
		cli_put(cli, "[");
		yyjson_arr_foreach(value, at, count, item)
		{
			cli_put(cli, "%s", any ? "," : "");
			any = true;
			cli_put_value(cli, item);
		}
		cli_put(cli, "]");
	} else {
		json_put_value_or_null(&cli->out, value);
	}
}

yyjson_doc *cli_read_made(struct cli *cli, const struct buf *json)
{
	yyjson_doc *doc;
	int r = json_read_reply(cli_span(cli, json), &doc);

	if (r < 0)
		die(cli, r);
	return doc;
}

static void put_envelope(struct cli *cli, bool ok, const char *key, yyjson_val *value)
{
	cli_put(cli, "{\"schema\":1,\"ok\":%s,\"%s\":", ok ? "true" : "false", key);
	cli_put_value(cli, value);
	cli_put(cli, "}\n");
}

int cli_put_json(struct cli *cli, const char *key, yyjson_val *value)
{
	put_envelope(cli, true, key, value);
	return 0;
}

int cli_put_json_buf(struct cli *cli, bool ok, const char *key, const struct buf *json)
{
	yyjson_doc *doc = cli_read_made(cli, json);

	put_envelope(cli, ok, key, yyjson_doc_get_root(doc));
	yyjson_doc_free(doc);
	return 0;
}
