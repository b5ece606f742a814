#include "worker/outbox.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "base/buf.h"
#include "base/files.h"
#include "base/log.h"
#include "base/take.h"
#include "wire/json.h"
#include "worker/beat.h"
#include "worker/beat_text.h"
#include "worker/line.h"

CLEANUP_AT(yyjson_doc, yyjson_doc_free);

enum {
	LETTERS_MAX = 20000,
	NAME_BYTES = 100,
	TEXT_BYTES_MAX = 2 << 20,
	TIMEOUT_MS = 30 * 1000,
	AWAY_MS = 15 * 1000,
	SAVE_AGAIN_MS = 1000,
	TOKEN_BYTES_MAX = 512,
};

static const char *const yields_names[] = {
	[YIELDS_TO_NOTHING] = "",
	[YIELDS_TO_FAILURE] = "?failure",
	[YIELDS_TO_WORD] = "?word",
	[YIELDS_TO_QUESTION] = "?question",
};

struct letter {
	struct letter *next;
	char name[NAME_BYTES];
	bool held, asked;
	struct buf text; /* empty: in the file */
};

struct outbox {
	struct letter *first, **end;
	uint32_t count;
	struct letter *sending;
	struct buf text; /* of the one that is being sent */
	struct line *line;
	uv_timer_t timer;
	uv_timer_t saver; /* runs while the disk refuses something */
	int open_handles;
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

static void on_save_again(uv_timer_t *timer)
{
	outbox_save(timer->data);
}

/* Into its file; in memory if the disk does not take it. Takes the text. */
static int set_text(struct outbox *outbox, struct letter *letter, struct buf *text)
{
	int r = file_write(outbox->dir_fd, letter->name, buf_span(text), true);

	buf_done(&letter->text);
	if (r < 0) {
		letter->text = *text;
		*text = (struct buf){0};
		uv_timer_start(&outbox->saver, on_save_again, SAVE_AGAIN_MS, SAVE_AGAIN_MS);
	}
	return r;
}

int outbox_save(struct outbox *outbox)
{
	int fault = 0;

	for (struct letter *letter = outbox->first; letter && fault == 0; letter = letter->next) {
		if (letter->text.len > 0)
			fault = file_write(outbox->dir_fd, letter->name, buf_span(&letter->text), true);
		if (fault == 0)
			buf_done(&letter->text);
	}
	if (fault == 0)
		uv_timer_stop(&outbox->saver);
	return fault;
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

/* There may be something to send. If the timer runs, the server is away or wants to be asked later. */
static void wake(struct outbox *outbox)
{
	if (!uv_is_active((uv_handle_t *)&outbox->timer))
		send_after(outbox, 0);
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

/* The server is away, or wants to be asked later. */
static void put_off(struct outbox *outbox, int fault, const struct http_answer *answer)
{
	int status = fault == 0 ? http_answer_status(answer) : 0;
	int64_t asked_ms = fault == 0 ? retry_after_ms(answer) : 0;
	int64_t delay_ms = retry_delay_ms(++outbox->failures, AWAY_MS, &outbox->rng);
	if (outbox->failures == 1)
		log_info("a report is not taken; trying again", log_cstr("run", outbox->sending->name),
			log_int("status", status), log_cstr("reason", fault < 0 ? strerror(-fault) : ""));
	outbox->sending = NULL;
	send_after(outbox, asked_ms > 0 && asked_ms < 60 * 1000 ? asked_ms : delay_ms);
}

static void on_answer(void *context, int fault, enum http_reach reach, const struct http_answer *answer)
{
	struct outbox *outbox = context;
	int status = fault == 0 ? http_answer_status(answer) : 0;

	(void)reach;
	if (fault == 0 && is_final(status)) {
		settle(outbox, status, answer);
		send_after(outbox, 0);
	} else {
		put_off(outbox, fault, answer);
	}
}

/* ---- sending ---- */

static int load(struct outbox *outbox, const struct letter *letter)
{
	buf_clear(&outbox->text);
	return letter->text.len > 0 ? buf_put_span(&outbox->text, buf_span(&letter->text))
				    : file_read(outbox->dir_fd, letter->name, &outbox->text);
}

/* A letter as it is read. */
struct reading {
	enum yields_to to;
	struct span target, body;
};

static struct span take_line(struct span *text)
{
	const char *newline = text->len > 0 ? memchr(text->data, '\n', text->len) : NULL;
	struct span line = {text->data, newline ? (size_t)(newline - text->data) : text->len};
	size_t used = line.len + (newline != NULL);

	*text = (struct span){text->data + used, text->len - used};
	return line;
}

static int read_text(struct span text, struct reading *ret_reading)
{
	struct reading reading = {.to = YIELDS_TO_NOTHING};
	struct span line = take_line(&text);

	if (line.len > 0 && line.data[0] == '?') {
		for (reading.to = YIELDS_TO_QUESTION; reading.to > YIELDS_TO_NOTHING; reading.to--)
			if (span_equal(line, span_of(yields_names[reading.to])))
				break;
		line = take_line(&text);
	}
	if (line.len == 0 || line.data[0] != '/')
		return -EINVAL;
	reading.target = line;
	reading.body = text;
	*ret_reading = reading;
	return 0;
}

/* "/api/tasks/ID" of "/api/tasks/ID/complete". */
static struct span task_target(struct span target)
{
	const char *slash = memrchr(target.data, '/', target.len);

	return (struct span){target.data, (size_t)(slash - target.data)};
}

static struct http_call call_of(const struct outbox *outbox)
{
	return (struct http_call){
		.token = outbox->token[0] ? span_of(outbox->token) : (struct span){0},
		.may_repeat = true, /* the same outcome again is answered as the first time */
		.timeout_ms = TIMEOUT_MS,
	};
}

static int post(struct outbox *outbox, const struct reading *reading)
{
	struct http_call call = call_of(outbox);

	call.method = HTTP_METHOD_POST;
	call.target = reading->target;
	call.body = reading->body;
	call.idempotency_key = span_of(outbox->sending->name); /* for what has no fence to be known by */
	return line_call(outbox->line, &call, on_answer, outbox);
}

/* ---- the word of the work ---- */

/* The letter with the end that the work told, in place of the verdict. */
static int reword(const struct reading *reading, yyjson_val *task, struct buf *out)
{
	struct json_complaint complaint;
	cleanup(buf_done) struct buf members = {0}, body = {0}, target = {0};
	cleanup(yyjson_doc_free_at) yyjson_doc *doc = json_read(reading->body, &complaint);
	yyjson_val *root = yyjson_doc_get_root(doc), *fence = yyjson_obj_get(root, "fence");
	struct json_object object;
	enum report_verb verb;

	buf_init(&members, TEXT_BYTES_MAX);
	buf_init(&body, TEXT_BYTES_MAX);
	buf_init(&target, TEXT_BYTES_MAX);
	if (!yyjson_is_str(fence) || !yyjson_is_str(yyjson_obj_get(root, "workerId")))
		return -EINVAL;
	struct span its_fence = {yyjson_get_str(fence), yyjson_get_len(fence)};
	if (!verdict_yields(reading->to, its_fence, task, &verb, &members))
		return -ENOENT;
	json_begin(&object, &body);
	json_member_string(&object, "workerId", span_of(yyjson_get_str(yyjson_obj_get(root, "workerId"))));
	json_member_string(&object, "fence", its_fence);
	if (members.len > 0)
		json_members_raw(&object, buf_span(&members));
	int r = json_end(&object);
	if (r == 0)
		r = buf_put_span(&target, task_target(reading->target));
	if (r == 0)
		r = buf_printf(&target, "/%s", report_verb_name(verb));
	return r < 0 ? r : outbox_put_text(out, YIELDS_TO_NOTHING, buf_span(&target), buf_span(&body));
}

static void hear_word(struct outbox *outbox, struct letter *letter, const struct http_answer *answer)
{
	struct json_complaint complaint;
	cleanup(buf_done) struct buf text = {0};
	cleanup(yyjson_doc_free_at) yyjson_doc *doc = json_read(http_answer_body(answer), &complaint);
	struct reading reading;

	buf_init(&text, TEXT_BYTES_MAX);
	if (doc && read_text(buf_span(&outbox->text), &reading) == 0 &&
		reword(&reading, yyjson_doc_get_root(doc), &text) == 0)
		set_text(outbox, letter, &text);
}

static void on_word(void *context, int fault, enum http_reach reach, const struct http_answer *answer)
{
	struct outbox *outbox = context;
	int status = fault == 0 ? http_answer_status(answer) : 0;

	(void)reach;
	if (fault < 0 || !is_final(status)) {
		put_off(outbox, fault, answer);
		return;
	}
	if (status == 200)
		hear_word(outbox, outbox->sending, answer);
	outbox->sending->asked = true;
	outbox->sending = NULL;
	outbox->failures = 0;
	send_after(outbox, 0);
}

static int ask(struct outbox *outbox, const struct reading *reading)
{
	struct http_call call = call_of(outbox);

	call.method = HTTP_METHOD_GET;
	call.target = task_target(reading->target);
	return line_call(outbox->line, &call, on_word, outbox);
}

/* ---- one after the other ---- */

/* It is no letter, or it is gone: nothing will ever come of it. */
static void leave_out(struct outbox *outbox, struct letter *letter, int fault)
{
	char name[NAME_BYTES];

	strcpy(name, letter->name);
	log_error("a report cannot be read and is left out", log_cstr("run", name),
		log_cstr("reason", strerror(-fault)));
	take_out(outbox, letter);
	send_after(outbox, 0);
	outbox->settled(outbox->context, name, 0, (struct span){0}, (struct span){0});
}

/* First what can be sent; then what may have to say something else. */
static struct letter *next_letter(struct outbox *outbox)
{
	struct letter *unasked = NULL;

	for (struct letter *letter = outbox->first; letter; letter = letter->next) {
		if (!letter->held && letter->asked)
			return letter;
		if (!letter->asked && !unasked)
			unasked = letter;
	}
	return unasked;
}

static void send_next(struct outbox *outbox)
{
	struct letter *letter = outbox->sending || outbox->stopped ? NULL : next_letter(outbox);

	if (!letter)
		return;
	struct reading reading;
	int r = load(outbox, letter);
	if (r == 0)
		r = read_text(buf_span(&outbox->text), &reading);
	if (r == 0) {
		outbox->sending = letter;
		r = reading.to != YIELDS_TO_NOTHING && !letter->asked ? ask(outbox, &reading)
								      : post(outbox, &reading);
	}
	if (r == 0)
		return;
	outbox->sending = NULL;
	if (r == -EINVAL || r == -ENOENT || r == -E2BIG)
		leave_out(outbox, letter, r);
	else /* short of memory or descriptors: that passes */
		send_after(outbox, retry_delay_ms(++outbox->failures, AWAY_MS, &outbox->rng));
}

/* ---- for the owner ---- */

int outbox_put_text(struct buf *out, enum yields_to to, struct span target, struct span body)
{
	int r = to == YIELDS_TO_NOTHING ? 0 : buf_printf(out, "%s\n", yields_names[to]);

	if (r == 0)
		r = buf_put_span(out, target);
	if (r == 0)
		r = buf_put_byte(out, '\n');
	return r < 0 ? r : buf_put_span(out, body);
}

int outbox_put(struct outbox *outbox, const char *name, enum yields_to to, struct span target,
	struct span body, bool held)
{
	struct letter *letter = add(outbox, name, held);

	if (!letter)
		return -ENOMEM;
	cleanup(buf_done) struct buf text = {0};
	buf_init(&text, TEXT_BYTES_MAX);
	int r = outbox_put_text(&text, to, target, body);
	if (r == 0)
		r = set_text(outbox, letter, &text);
	letter->asked = to == YIELDS_TO_NOTHING;
	wake(outbox);
	return r;
}

void outbox_release(struct outbox *outbox, const char *name)
{
	for (struct letter *letter = outbox->first; letter; letter = letter->next) {
		if (strcmp(letter->name, name) == 0)
			letter->held = false;
	}
	wake(outbox);
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
	uv_timer_init(loop, &outbox->saver);
	outbox->timer.data = outbox->saver.data = outbox;
	outbox->open_handles = 2;
	return outbox;
}

static void on_closed(uv_handle_t *handle)
{
	struct outbox *outbox = handle->data;

	if (--outbox->open_handles > 0)
		return;
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
	uv_close((uv_handle_t *)&outbox->saver, on_closed);
}
