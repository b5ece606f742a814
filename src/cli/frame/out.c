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

#include "base/take.h"
#include "cli/frame/cli.h"
#include "cli/frame/text.h"

enum {
	TEXT_BYTES_MAX = 32 << 20,
	LINE_BYTES_MAX = 64 << 10,
	FLUSH_BYTES = 1 << 20,
	OUT_BYTES_MAX = 1 << 30,
};

static _Noreturn void die(int fault)
{
	fprintf(stderr, "stint: %s\n",
		fault == -E2BIG ? "there is more of it than fits here" : strerror(-fault));
	exit(EXIT_FAILED);
}

const char *cli_text(struct cli *cli, const char *format, ...)
{
	cleanup(buf_done) struct buf text = {0};
	struct span kept;
	va_list list;

	buf_init(&text, TEXT_BYTES_MAX);
	va_start(list, format);
	int r = buf_vprintf(&text, format, list);
	va_end(list);
	if (r == 0)
		r = arena_copy(&cli->arena, buf_span(&text), &kept);
	if (r < 0)
		die(r);
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
	int r = text_quote(&text, span_of(name));
	if (r < 0)
		die(r);
	return cli_text(cli, "%.*s", SPAN_ARGS(buf_span(&text)));
}

/* ---- talk ------------------------------------------------------------------------------------------------ */

void cli_say(struct cli *cli, const char *format, ...)
{
	va_list list;

	if (cli->quiet)
		return;
	if (cli->term.tty && cli->term.talk_tty)
		cli_flush(cli); /* what was said of a list comes after it */
	va_start(list, format);
	vfprintf(stderr, format, list);
	va_end(list);
	fputc('\n', stderr);
}

/* The same, for whoever reads JSON. */
static void put_error(
	struct cli *cli, enum exit_status status, const char *code, const char *fix, const char *message)
{
	struct json_object object, error;
	cleanup(buf_done) struct buf inner = {0};

	buf_init(&inner, 4 * LINE_BYTES_MAX);
	json_begin(&error, &inner);
	json_member_string(&error, "code", span_of(code));
	json_member_string(&error, "message", span_of(message));
	json_member_bool(&error, "retryable", status == EXIT_UNREACHABLE || status == EXIT_TIMED_OUT);
	if (fix)
		json_member_string(&error, "fix", span_of(fix));
	json_end(&error);
	json_begin(&object, &cli->out);
	json_member_int(&object, "schema", 1);
	json_member_bool(&object, "ok", false);
	json_member_buf(&object, "error", &inner);
	json_end(&object);
	buf_put_byte(&cli->out, '\n');
}

int cli_fail(
	struct cli *cli, enum exit_status status, const char *code, const char *fix, const char *format, ...)
{
	const struct term *term = &cli->term;
	cleanup(buf_done) struct buf clean = {0};
	char message[LINE_BYTES_MAX];
	va_list list;

	va_start(list, format);
	vsnprintf(message, sizeof message, format, list);
	va_end(list);
	buf_init(&clean, 16 * LINE_BYTES_MAX);
	if (text_clean(&clean, span_of(message), term->utf8, true) < 0)
		buf_clear(&clean); /* the code is still said */
	if (cli->verb && cli->verb->stands_in) {
		fprintf(stderr, "%.*s\n", SPAN_ARGS(buf_span(&clean)));
		buf_clear(&cli->out); /* nothing of it has gone out yet, or all of it has */
		return EXIT_FAILED;
	}
	fprintf(stderr, "%sstint:%s %.*s (%s)\n", term_paint(term->talk_color, PAINT_RED),
		term_plain(term->talk_color, PAINT_RED), SPAN_ARGS(buf_span(&clean)), code);
	if (fix) {
		buf_clear(&clean);
		if (text_clean(&clean, span_of(fix), term->utf8, false) < 0)
			buf_clear(&clean);
		fprintf(stderr, "  try: %.*s\n", SPAN_ARGS(buf_span(&clean)));
	}
	if (buf_fault(&cli->out))
		buf_clear(&cli->out); /* of an answer that does not fit nothing is shown */
	if (cli->form == FORM_JSON)
		put_error(cli, status, code, fix, message);
	return (int)status;
}

int cli_fail_fault(struct cli *cli, int fault)
{
	if (fault == -E2BIG)
		return cli_fail(cli, EXIT_FAILED, "too_large", NULL, "there is more of it than fits here");
	return cli_fail(cli, EXIT_FAILED, "failed", NULL, "%s", strerror(-fault));
}

/* ---- data ------------------------------------------------------------------------------------------------- */

static void check(struct cli *cli, int fault)
{
	if (fault < 0)
		die(fault);
	if (cli->out.len >= FLUSH_BYTES)
		cli_flush(cli);
}

void cli_put(struct cli *cli, const char *format, ...)
{
	va_list list;

	va_start(list, format);
	int r = buf_vprintf(&cli->out, format, list);
	va_end(list);
	check(cli, r);
}

void cli_put_clean(struct cli *cli, struct span text)
{
	check(cli, text_clean(&cli->out, text, cli->term.utf8, false));
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

void cli_put_painted(struct cli *cli, enum paint paint, struct span text)
{
	cli_put(cli, "%s", term_paint(cli->term.color, paint));
	cli_put_clean(cli, text);
	cli_put(cli, "%s", term_plain(cli->term.color, paint));
}

/* Strings come from others. Not in a pipe: whoever reads that wants what was sent. */
static void make_harmless(struct cli *cli)
{
	struct buf out = {0};

	buf_init(&out, OUT_BYTES_MAX);
	int r = text_clean_json(&out, buf_span(&cli->out));
	if (r < 0)
		die(r);
	buf_done(&cli->out);
	cli->out = out;
}

int cli_flush(struct cli *cli)
{
	if (buf_fault(&cli->out))
		die(buf_fault(&cli->out));
	if (cli->term.tty && (cli->form == FORM_JSON || cli->form == FORM_JSONL))
		make_harmless(cli);

	struct span left = buf_span(&cli->out);

	while (left.len > 0) {
		ssize_t wrote = write(STDOUT_FILENO, left.data, left.len);
		if (wrote < 0 && errno == EINTR)
			continue;
		if (wrote < 0) {
			if (errno != EPIPE) /* whoever read us has seen enough */
				fprintf(stderr, "stint: cannot write the output: %s\n", strerror(errno));
			buf_clear(&cli->out);
			return EXIT_FAILED;
		}
		left.data += wrote;
		left.len -= (size_t)wrote;
	}
	buf_clear(&cli->out);
	return 0;
}

bool cli_reader_is_gone(void)
{
	struct pollfd out = {.fd = STDOUT_FILENO};

	return poll(&out, 1, 0) > 0 && out.revents & (POLLERR | POLLHUP);
}

/* ---- JSON ------------------------------------------------------------------------------------------------- */

static void put_picked(struct cli *cli, yyjson_val *object)
{
	const char *name = cli->fields;
	struct json_object picked;

	json_begin(&picked, &cli->out);
	while (*name) {
		size_t len = strcspn(name, ",");
		yyjson_val *value = yyjson_obj_getn(object, name, len);
		cleanup(buf_done) struct buf text = {0};
		buf_init(&text, 64 << 20);
		if (len > 0) { /* nothing that stays: events are picked from for days */
			check(cli, buf_printf(&text, "\"%.*s\":", (int)len, name));
			check(cli, value ? json_put_value(&text, value) : buf_printf(&text, "null"));
			json_members_raw(&picked, buf_span(&text));
		}
		name += len + (name[len] == ',');
	}
	check(cli, json_end(&picked));
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
		check(cli, value ? json_put_value(&cli->out, value) : buf_printf(&cli->out, "null"));
	}
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

int cli_put_json_text(struct cli *cli, bool ok, const char *key, struct span json)
{
	struct json_complaint complaint;
	yyjson_doc *doc = json_read_to(json, JSON_REPLY_DEPTH_MAX, &complaint);

	if (!doc)
		return cli_fail_fault(cli, -ENOMEM);
	put_envelope(cli, ok, key, yyjson_doc_get_root(doc));
	yyjson_doc_free(doc);
	return 0;
}
