#include "worker/outbox.h"

#include <assert.h>
#include <errno.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "base/buf.h"
#include "base/log.h"
#include "base/take.h"
#include "wire/json.h"
#include "worker/beat.h"
#include "worker/beat_text.h"
#include "worker/files.h"
#include "worker/line.h"

CLEANUP_AT(yyjson_doc, yyjson_doc_free);

enum {
	LETTERS_MAX = 20000,
	NAME_BYTES = 100,
	TEXT_BYTES_MAX = 2 << 20,
	TIMEOUT_MS = 30 * 1000,
	AWAY_MS = 15 * 1000,
	TOKEN_BYTES_MAX = 512,
};

struct letter {
	struct letter *next;
	char name[NAME_BYTES];
	bool held;
	struct buf text; /* empty: in the file */
};

struct outbox {
	struct letter *first, **end;
	uint32_t count;
	struct letter *sending;
	struct buf text; /* of the one that is being sent */
	struct line *line;
	uv_timer_t timer;
	uint32_t failures;
	struct rng rng;
	int dir_fd;
	char token[TOKEN_BYTES_MAX + 1];
	outbox_settled settled;
	void *context;
	bool stopped;
};

static void send_next(struct outbox *outbox);

/* ---- letters ---- */

static struct letter *add(struct outbox *outbox, const char *name, bool held)
{
	struct letter *letter = outbox->count < LETTERS_MAX ? calloc(1, sizeof *letter) : NULL;

	if (!letter || strlen(name) >= sizeof letter->name) {
		free(letter);
		return NULL;
	}
	strcpy(letter->name, name);
	letter->held = held;
	buf_init(&letter->text, TEXT_BYTES_MAX);
	*outbox->end = letter;
	outbox->end = &letter->next;
	outbox->count++;
	return letter;
}

static void take_out(struct outbox *outbox, struct letter *letter)
{
	struct letter **at = &outbox->first;

	while (*at != letter)
		at = &(*at)->next;
	*at = letter->next;
	if (!*at)
		outbox->end = at;
	outbox->count--;
	buf_done(&letter->text);
	free(letter);
}

static void on_again(uv_timer_t *timer)
{
	send_next(timer->data);
}

static void send_after(struct outbox *outbox, int64_t delay_ms)
{
	if (!outbox->stopped)
		uv_timer_start(&outbox->timer, on_again, (uint64_t)delay_ms, 0);
}

/* ---- answers ---- */

static struct span code_of(yyjson_doc *doc)
{
	yyjson_val *code = yyjson_obj_get(yyjson_doc_get_root(doc), "code");

	return yyjson_is_str(code) ? (struct span){yyjson_get_str(code), yyjson_get_len(code)}
				   : (struct span){0};
}

/* Is that the last word? A credential that is not known today may be put right. */
static bool is_final(int status)
{
	return (status >= 200 && status < 300) ||
		(status >= 400 && status < 500 && status != 401 && status != 408 && status != 421 &&
			status != 429);
}

static void settle(struct outbox *outbox, int status, const struct http_answer *answer)
{
	struct letter *letter = outbox->sending;
	struct json_complaint complaint;
	char name[NAME_BYTES];
	cleanup(yyjson_doc_free_at) yyjson_doc *doc =
		status >= 300 ? json_read(http_answer_body(answer), &complaint) : NULL;

	strcpy(name, letter->name);
	outbox->sending = NULL;
	outbox->failures = 0;
	unlinkat(outbox->dir_fd, name, 0);
	take_out(outbox, letter);
	outbox->settled(outbox->context, name, status, code_of(doc), http_answer_body(answer));
}

static void on_answer(void *context, int fault, enum http_reach reach, const struct http_answer *answer)
{
	struct outbox *outbox = context;
	int status = fault == 0 ? http_answer_status(answer) : 0;

	(void)reach;
	if (fault == 0 && is_final(status)) {
		settle(outbox, status, answer);
		send_after(outbox, 0);
		return;
	}
	int64_t asked_ms = fault == 0 ? retry_after_ms(answer) : 0;
	int64_t delay_ms = retry_delay_ms(++outbox->failures, AWAY_MS, &outbox->rng);
	if (outbox->failures == 1)
		log_info("a report is not taken; trying again", log_cstr("run", outbox->sending->name),
			log_int("status", status), log_cstr("reason", fault < 0 ? strerror(-fault) : ""));
	outbox->sending = NULL;
	send_after(outbox, asked_ms > 0 && asked_ms < 60 * 1000 ? asked_ms : delay_ms);
}

/* ---- sending ---- */

static int load(struct outbox *outbox, const struct letter *letter)
{
	buf_clear(&outbox->text);
	return letter->text.len > 0 ? buf_put_span(&outbox->text, buf_span(&letter->text))
				    : file_read(outbox->dir_fd, letter->name, &outbox->text);
}

static int post(struct outbox *outbox)
{
	struct span text = buf_span(&outbox->text);
	const char *newline = text.len > 0 ? memchr(text.data, '\n', text.len) : NULL;

	if (!newline || text.data[0] != '/')
		return -EINVAL;
	size_t target_len = (size_t)(newline - text.data);
	struct http_call call = {
		.method = HTTP_METHOD_POST,
		.target = {text.data, target_len},
		.body = {newline + 1, text.len - target_len - 1},
		.token = outbox->token[0] ? span_of(outbox->token) : (struct span){0},
		.may_repeat = true, /* the same outcome again is answered as the first time */
		.timeout_ms = TIMEOUT_MS,
	};
	return line_call(outbox->line, &call, on_answer, outbox);
}

static void send_next(struct outbox *outbox)
{
	struct letter *letter = outbox->first;

	while (letter && letter->held)
		letter = letter->next;
	if (!letter || outbox->sending || outbox->stopped)
		return;
	int r = load(outbox, letter);
	if (r == 0) {
		outbox->sending = letter;
		r = post(outbox);
	}
	if (r == 0)
		return;
	outbox->sending = NULL;
	if (r == -ENOMEM) {
		send_after(outbox, AWAY_MS);
		return;
	}
	log_error("a report cannot be read and is left out", log_cstr("run", letter->name),
		log_cstr("reason", strerror(-r)));
	take_out(outbox, letter);
	send_after(outbox, 0);
}

/* ---- for the owner ---- */

int outbox_put_text(struct buf *out, struct span target, struct span body)
{
	int r = buf_put_span(out, target);

	if (r == 0)
		r = buf_put_byte(out, '\n');
	return r < 0 ? r : buf_put_span(out, body);
}

int outbox_put(struct outbox *outbox, const char *name, struct span target, struct span body, bool held)
{
	struct letter *letter = add(outbox, name, held);

	if (!letter)
		return -ENOMEM;
	int r = outbox_put_text(&letter->text, target, body);
	if (r == 0)
		r = file_write(outbox->dir_fd, name, buf_span(&letter->text), true);
	if (r == 0)
		buf_done(&letter->text); /* the file has it */
	if (!held && outbox->failures == 0)
		send_after(outbox, 0);
	return r;
}

int outbox_replace(struct outbox *outbox, const char *name, struct span target, struct span body)
{
	cleanup(buf_done) struct buf text = {0};
	struct letter *letter = outbox->first;

	while (letter && strcmp(letter->name, name) != 0)
		letter = letter->next;
	if (!letter)
		return -ENOENT;
	assert(letter->held);
	buf_init(&text, TEXT_BYTES_MAX);
	int r = outbox_put_text(&text, target, body);
	if (r == 0)
		r = file_write(outbox->dir_fd, name, buf_span(&text), true);
	if (r == 0)
		buf_done(&letter->text);
	return r;
}

void outbox_release(struct outbox *outbox, const char *name)
{
	for (struct letter *letter = outbox->first; letter; letter = letter->next) {
		if (strcmp(letter->name, name) == 0)
			letter->held = false;
	}
	if (outbox->failures == 0)
		send_after(outbox, 0);
}

uint32_t outbox_waiting(const struct outbox *outbox)
{
	return outbox->count;
}

static int load_name(void *context, const char *name)
{
	return add(context, name, false) ? 0 : -ENOMEM;
}

int outbox_load(struct outbox *outbox)
{
	int r = file_each(outbox->dir_fd, LETTERS_MAX, load_name, outbox);

	send_after(outbox, 0);
	return r < 0 ? r : (int)outbox->count;
}

struct outbox *outbox_new(uv_loop_t *loop, const struct http_address *address, struct span token, int dir_fd,
	outbox_settled settled, void *context)
{
	struct http_answer_limits limits = {.head_bytes_max = 64 << 10, .body_bytes_max = 4 << 20};
	struct outbox *outbox = token.len <= TOKEN_BYTES_MAX ? calloc(1, sizeof *outbox) : NULL;

	if (!outbox)
		return NULL;
	outbox->line = line_new(loop, address, &limits);
	if (!outbox->line) {
		free(outbox);
		return NULL;
	}
	outbox->end = &outbox->first;
	outbox->dir_fd = dir_fd;
	outbox->settled = settled;
	outbox->context = context;
	if (token.len > 0)
		memcpy(outbox->token, token.data, token.len);
	buf_init(&outbox->text, TEXT_BYTES_MAX);
	rng_seed(&outbox->rng, (uint64_t)uv_hrtime());
	uv_timer_init(loop, &outbox->timer);
	outbox->timer.data = outbox;
	return outbox;
}

static void on_closed(uv_handle_t *handle)
{
	struct outbox *outbox = handle->data;

	while (outbox->first)
		take_out(outbox, outbox->first);
	buf_done(&outbox->text);
	free(outbox);
}

void outbox_free(struct outbox *outbox)
{
	if (!outbox)
		return;
	outbox->stopped = true;
	line_free(outbox->line);
	uv_close((uv_handle_t *)&outbox->timer, on_closed);
}
