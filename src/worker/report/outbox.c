#include "worker/report/outbox.h"

#include <assert.h>
#include <errno.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "base/buf.h"
#include "base/files.h"
#include "base/log.h"
#include "base/take.h"
#include "wire/json/json.h"
#include "worker/beat/beat.h"
#include "worker/beat/text.h"
#include "worker/report/report_file.h"
#include "worker/api_client.h"
#include "attempt/retry.h"

enum {
	SENDERS_MAX = 32,
	RIDERS_MAX = 100, /* as many as the server takes with one claim */
	TIMEOUT_MS = 30 * 1000,
	AWAY_MS = 15 * 1000,
	SAVE_AGAIN_MS = 1000,
	TOKEN_BYTES_MAX = 512,
	KEPT_BYTES_MAX = 16 << 10, /* longer ones are read from their files again when they are sent */
};

enum report_state {
	REPORT_RESERVED, /* its owner has nothing to tell yet */
	REPORT_NEW,      /* in memory: the disk was not asked yet */
	REPORT_REFUSED,  /* in memory: the disk did not take it */
	REPORT_SAVED,
};

struct pending_report {
	struct pending_report *next;
	char name[REPORT_NAME_BYTES];
	void *owner;
	enum report_state state;
	int fault;   /* of the disk */
	bool untold; /* its owner has not heard yet what the disk said */
	bool held;
	bool rides;                   /* it is on its way with a claim */
	bool alone;                   /* a claim that it rode with was refused */
	struct report_sender *sender; /* NULL: it is not on its way by itself */
	struct buf text;              /* empty: what is in its file */
};

/* A connection, and the report that is on its way by it. */
struct report_sender {
	struct outbox *outbox;
	struct api_client *client; /* NULL: none was needed yet */
	struct pending_report *report;
};

struct outbox {
	struct pending_report *first, **end;
	uint32_t count, reserved; /* all reports; reports that were not put yet */
	bool cut;                 /* there are more reports on disk than could be loaded */
	bool taken;               /* the server has taken a report since then */
	struct report_sender senders[SENDERS_MAX];
	struct buf file; /* what was read last */
	struct pending_report *riders[RIDERS_MAX];
	uint32_t rider_count;
	uv_loop_t *loop;
	struct http_address address;
	uv_idle_t turn;   /* runs while reports are to be saved, or owners to be called about that */
	uv_timer_t timer; /* there may be something to send */
	uv_timer_t saver; /* runs while the disk refuses something */
	int open_handles;
	bool save_again;
	bool away; /* nothing is sent before the timer is due */
	uint32_t failures;
	struct rng rng;
	int dir_fd;
	char token[TOKEN_BYTES_MAX + 1];
	const struct outbox_events *events;
	void *context;
	bool stopped;
};

static void send_more(struct outbox *outbox);

/* ---- reports ---- */

/* What is true of a report, whatever the server and the disk do. */
static void check(const struct outbox *outbox, const struct pending_report *report)
{
	bool under_way = report->rides || report->sender;

	assert(outbox->reserved <= outbox->count);
	assert(outbox->count <= OUTBOX_REPORTS_MAX);
	assert(!report->rides || report->owner);   /* those of others have other workers */
	assert(!report->rides || !report->sender); /* one way at a time */
	assert(!under_way || !report->held);
	assert(!under_way || report->state == REPORT_SAVED || report->state == REPORT_REFUSED);
	assert(!report->sender || report->sender->report == report);
	assert(report->state != REPORT_REFUSED || report->text.len > 0); /* it is nowhere else */
	assert(report->state != REPORT_NEW || report->text.len > 0);
	assert(report->state != REPORT_RESERVED || !report->held);
	assert(outbox->rider_count <= RIDERS_MAX);
}

static struct pending_report *add(struct outbox *outbox, const char *name, enum report_state state)
{
	struct pending_report *report = outbox->count < OUTBOX_REPORTS_MAX ? calloc(1, sizeof *report) : NULL;

	if (!report || strlen(name) >= sizeof report->name) {
		free(report);
		return NULL;
	}
	strcpy(report->name, name);
	report->state = state;
	buf_init(&report->text, REPORT_BYTES_MAX);
	*outbox->end = report;
	outbox->end = &report->next;
	outbox->count++;
	outbox->reserved += state == REPORT_RESERVED;
	return report;
}

static void take_out(struct outbox *outbox, struct pending_report *report)
{
	struct pending_report **at = &outbox->first;

	assert(outbox->count > 0);
	assert(report->state != REPORT_RESERVED || outbox->reserved > 0);
	while (*at != report)
		at = &(*at)->next;
	*at = report->next;
	if (!*at)
		outbox->end = at;
	outbox->count--;
	outbox->reserved -= report->state == REPORT_RESERVED;
	buf_done(&report->text);
	free(report);
}

static void on_again(uv_timer_t *timer)
{
	struct outbox *outbox = timer->data;

	outbox->away = false;
	send_more(outbox);
}

static void send_after(struct outbox *outbox, int64_t delay_ms)
{
	if (!outbox->stopped)
		uv_timer_start(&outbox->timer, on_again, (uint64_t)delay_ms, 0);
}

/* There may be something to send. */
static void wake(struct outbox *outbox)
{
	if (!outbox->away)
		send_after(outbox, 0);
}

/* ---- to disk ---- */

static void on_save_again(uv_timer_t *timer)
{
	outbox_save(timer->data);
}

/* Some reports that are not on disk. True: now they are. */
static bool save_some(struct outbox *outbox, struct pending_report *const *reports, size_t count)
{
	struct report_file files[REPORTS_TOGETHER_MAX];
	bool all = true;

	assert(count <= REPORTS_TOGETHER_MAX);
	for (size_t i = 0; i < count; i++) {
		check(outbox, reports[i]);
		assert(reports[i]->state == REPORT_NEW || reports[i]->state == REPORT_REFUSED);
		files[i] = (struct report_file){reports[i]->name, buf_span(&reports[i]->text), 0};
	}
	reports_write(outbox->dir_fd, files, count);
	for (size_t i = 0; i < count; i++) {
		reports[i]->fault = files[i].fault;
		reports[i]->state = files[i].fault < 0 ? REPORT_REFUSED : REPORT_SAVED;
		reports[i]->untold = true;
		if (files[i].fault == 0 && reports[i]->text.len > KEPT_BYTES_MAX)
			buf_done(&reports[i]->text);
		all &= files[i].fault == 0;
	}
	return all;
}

static bool save_all(struct outbox *outbox)
{
	struct pending_report *some[REPORTS_TOGETHER_MAX];
	size_t count = 0;
	bool all = true;

	for (struct pending_report *report = outbox->first; report; report = report->next) {
		if (report->state == REPORT_SAVED || report->state == REPORT_RESERVED)
			continue;
		some[count++] = report;
		if (count == REPORTS_TOGETHER_MAX) {
			all &= save_some(outbox, some, count);
			count = 0;
		}
	}
	return (count == 0 || save_some(outbox, some, count)) && all;
}

static void tell_saved(struct outbox *outbox)
{
	for (struct pending_report *report = outbox->first; report; report = report->next) {
		if (!report->untold)
			continue;
		report->untold = false;
		outbox->events->saved(outbox->context, report->owner, report->fault);
	}
}

/* Runs after all input of this iteration of the loop was handled and the requests that follow from it were sent: they travel
 * while the disk syncs. Owners get saved() one iteration later: they remove files then, and the reports go first. */
static void on_save_idle(uv_idle_t *turn)
{
	struct outbox *outbox = turn->data;

	tell_saved(outbox);
	bool save = outbox->save_again;
	for (struct pending_report *report = outbox->first; report && !save; report = report->next)
		save = report->state == REPORT_NEW;
	if (!save) {
		uv_idle_stop(turn);
		return;
	}
	outbox->save_again = false;
	if (save_all(outbox))
		uv_timer_stop(&outbox->saver);
	else
		uv_timer_start(&outbox->saver, on_save_again, SAVE_AGAIN_MS, 0);
	send_more(outbox);
}

void outbox_save(struct outbox *outbox)
{
	outbox->save_again = true;
	uv_idle_start(&outbox->turn, on_save_idle);
}

/* ---- answers ---- */

/* Is that the last word? A credential that is not known today may be put right. */
static bool is_final(int status)
{
	return (status >= 200 && status < 300) ||
		(status >= 400 && status < 500 && status != 401 && status != 408 && status != 421 &&
			status != 429);
}

/* From now on there is no such report. */
static void end_report(
	struct outbox *outbox, struct pending_report *report, const struct outbox_answer *answer)
{
	void *owner = report->owner;
	char name[REPORT_NAME_BYTES];

	check(outbox, report);
	assert(report->state != REPORT_RESERVED);
	assert(!report->rides);
	assert(!report->sender);
	strcpy(name, report->name);
	take_out(outbox, report);
	if (outbox->cut && outbox->taken && outbox->count == outbox->reserved)
		outbox_load(outbox);
	outbox->events->settled(outbox->context, owner, name, answer);
	wake(outbox);
}

/* The server has answered, for good: the file goes first. */
static void end_answered(
	struct outbox *outbox, struct pending_report *report, const struct outbox_answer *answer)
{
	assert(answer->status >= 200); /* nothing is forgotten before its answer */
	outbox->failures = 0;
	outbox->taken = true;
	unlinkat(outbox->dir_fd, report->name, 0);
	end_report(outbox, report, answer);
}

/* It has come back. */
static struct pending_report *take_report(struct report_sender *sender)
{
	struct pending_report *report = sender->report;

	report->sender = NULL;
	sender->report = NULL;
	return report;
}

static void settle(struct report_sender *sender, int status, const struct http_answer *answer)
{
	struct outbox *outbox = sender->outbox;
	struct pending_report *report = take_report(sender);
	cleanup(yyjson_doc_free_at) yyjson_doc *doc = NULL;

	json_read_reply(http_answer_body(answer), &doc);
	yyjson_val *root = yyjson_doc_get_root(doc);
	struct span code = status >= 300 ? json_text(yyjson_obj_get(root, "code")) : (struct span){0};
	struct span state = json_text(yyjson_obj_get(root, "state"));

	end_answered(outbox, report, &(struct outbox_answer){status, code, http_answer_body(answer), state});
}

/* The server is away, or wants to be asked later. Of several that come back the first counts. */
static void put_off(struct report_sender *sender, int fault, const struct http_answer *answer)
{
	struct outbox *outbox = sender->outbox;
	struct pending_report *report = take_report(sender);

	if (outbox->away)
		return;
	int64_t asked_ms = fault == 0 ? retry_after_ms(answer) : 0;
	int64_t delay_ms = retry_delay_ms(++outbox->failures, AWAY_MS, &outbox->rng);
	if (outbox->failures == 1)
		log_info("a report is not taken; trying again", log_cstr("run", report->name),
			log_int("status", fault == 0 ? http_answer_status(answer) : 0),
			log_cstr("reason", fault < 0 ? strerror(-fault) : ""));
	outbox->away = true;
	send_after(outbox, asked_ms > 0 && asked_ms < 60 * 1000 ? asked_ms : delay_ms);
}

static void on_answer(void *context, int fault, const struct http_answer *answer)
{
	int status = fault == 0 ? http_answer_status(answer) : 0;

	if (fault == 0 && is_final(status))
		settle(context, status, answer);
	else
		put_off(context, fault, answer);
}

/* ---- sending ---- */

/* The body of an old report with what its first line means. */
static int put_by_report(struct buf *body, const struct report_text *text)
{
	if (text->body.len < 2)
		return -EINVAL;
	int r = buf_put_span(body, SPAN("{\"byReport\":true,"));
	return r < 0 ? r : buf_put(body, text->body.data + 1, text->body.len - 1);
}

static int post(struct report_sender *sender, const struct report_text *text)
{
	struct outbox *outbox = sender->outbox;
	cleanup(buf_done) struct buf body = {0};
	struct http_call call = {
		.method = HTTP_METHOD_POST,
		.target = text->target,
		.body = text->body,
		.token = span_of(outbox->token),
		.idempotency_key = span_of(sender->report->name), /* for what has no fence to be known by */
		.may_repeat = true, /* the same outcome again is answered as the first time */
		.timeout_ms = TIMEOUT_MS,
	};

	buf_init(&body, REPORT_BYTES_MAX);
	int r = text->by_report ? put_by_report(&body, text) : 0;
	if (text->by_report)
		call.body = buf_span(&body);
	return r < 0 ? r : api_client_call(sender->client, &call, on_answer, sender);
}

/* ---- senders ---- */

/* The spans live until the next one is loaded. */
static int load(struct outbox *outbox, const struct pending_report *report, struct report_text *ret_text)
{
	struct span text = buf_span(&report->text);
	int r = text.len > 0 ? 0 : report_load(outbox->dir_fd, report->name, &outbox->file, &text);

	return r < 0 ? r : report_read(text, ret_text);
}

/* A server that was away is asked with one report whether it is back. */
static struct report_sender *find_sender(struct outbox *outbox)
{
	for (uint32_t i = 0; i < (outbox->failures > 0 ? 1 : SENDERS_MAX); i++) {
		if (!outbox->senders[i].report)
			return &outbox->senders[i];
	}
	return NULL;
}

static int begin(struct report_sender *sender, struct pending_report *report)
{
	struct report_text text;

	if (!sender->client)
		sender->client = api_client_new(sender->outbox->loop, &sender->outbox->address, NULL);
	int r = sender->client ? load(sender->outbox, report, &text) : -ENOMEM;
	if (r < 0)
		return r;
	sender->report = report;
	report->sender = sender;
	check(sender->outbox, report);
	r = post(sender, &text);
	if (r < 0)
		take_report(sender);
	return r;
}

/* One is always ready; of the others there are no more than reports. */
static void dismiss_idle(struct outbox *outbox)
{
	for (uint32_t i = outbox->count > 0 ? outbox->count : 1; i < SENDERS_MAX; i++) {
		struct report_sender *sender = &outbox->senders[i];
		if (sender->report)
			continue;
		api_client_free(sender->client);
		sender->client = NULL;
	}
	buf_done(&outbox->file);
}

/* It is no report, or it is gone: nothing will ever come of it. */
static void leave_out(struct outbox *outbox, struct pending_report *report, int fault)
{
	log_error("a report cannot be read and is left out", log_cstr("run", report->name),
		log_cstr("reason", strerror(-fault)));
	end_report(outbox, report, &(struct outbox_answer){0});
}

/* Not even if it is tried again; and the others do not wait for it. What is on disk stays there for the next worker. */
static bool will_never_be_read(int fault)
{
	return fault == -EINVAL || fault == -ENOENT || fault == -E2BIG || fault == -EIO || fault == -EISDIR ||
		fault == -EACCES || fault == -ELOOP;
}

static bool can_be_sent(const struct pending_report *report)
{
	return (report->state == REPORT_SAVED || report->state == REPORT_REFUSED) && !report->held &&
		!report->rides && !report->sender;
}

static struct pending_report *next_report(struct outbox *outbox)
{
	for (struct pending_report *report = outbox->first; report; report = report->next) {
		if (can_be_sent(report))
			return report;
	}
	return NULL;
}

/* False: no more can be sent now. */
static bool send_one(struct outbox *outbox)
{
	struct report_sender *sender = outbox->stopped || outbox->away ? NULL : find_sender(outbox);
	struct pending_report *report = sender ? next_report(outbox) : NULL;

	if (!report)
		return false;
	int r = begin(sender, report);
	if (will_never_be_read(r)) {
		leave_out(outbox, report, r);
		return false; /* its owner may have done anything in the callback; the timer runs */
	}
	if (r < 0) { /* short of memory or descriptors: that passes */
		outbox->away = true;
		send_after(outbox, retry_delay_ms(++outbox->failures, AWAY_MS, &outbox->rng));
	}
	return r == 0;
}

static void send_more(struct outbox *outbox)
{
	if (!outbox->stopped && !outbox->away && next_report(outbox))
		outbox->events->ready(outbox->context);
	while (send_one(outbox))
		;
	if (!outbox->stopped)
		dismiss_idle(outbox);
}

/* ---- riding with a claim ---- */

/* "/api/tasks/ID/VERB" */
static bool read_target(struct span target, struct buf *id, struct span *ret_verb)
{
	static const struct span start = SPAN("/api/tasks/");
	const char *slash = memrchr(target.data, '/', target.len);
	const char *from = target.data + start.len;

	if (target.len < start.len || memcmp(target.data, start.data, start.len) != 0 || slash <= from)
		return false;
	*ret_verb = (struct span){slash + 1, target.len - (size_t)(slash + 1 - target.data)};
	return http_decode((struct span){from, (size_t)(slash - from)}, false, id) == 0;
}

/* Its element of "finish": the body, without the worker, which is that of the claim. -ENOENT: it cannot ride. */
static int put_element(struct buf *list, struct span worker_id, const struct report_text *text)
{
	cleanup(buf_done) struct buf id = {0};
	struct json_complaint complaint;
	cleanup(yyjson_doc_free_at) yyjson_doc *doc = json_read(text->body, &complaint);
	yyjson_val *body = yyjson_doc_get_root(doc), *key, *value;
	yyjson_val *worker = yyjson_obj_get(body, "workerId");
	struct json_object object;
	struct span verb;
	size_t index, count;

	buf_init(&id, REPORT_BYTES_MAX);
	if (!read_target(text->target, &id, &verb) || text->by_report || !yyjson_is_str(worker) ||
		!span_equal(json_text(worker), worker_id))
		return -ENOENT;
	int r = list->len > 0 ? buf_put_byte(list, ',') : 0;
	json_begin(&object, list);
	json_note(&object, r);
	json_member_string(&object, "id", buf_span(&id));
	json_member_string(&object, "outcome", verb);
	yyjson_obj_foreach(body, index, count, key, value)
	{
		if (value != worker && json_put_key(&object, yyjson_get_str(key)))
			json_note(&object, json_put_value(list, value));
	}
	return json_end(&object);
}

static int put_on(
	struct outbox *outbox, struct span worker_id, struct pending_report *report, struct buf *list)
{
	struct report_text text;

	int r = load(outbox, report, &text);
	return r < 0 ? r : put_element(list, worker_id, &text);
}

uint32_t outbox_send_with_claim(struct outbox *outbox, struct span worker_id, struct buf *list)
{
	uint32_t count = 0;

	assert(outbox->rider_count == 0); /* a rider belongs to one claim, and there is one at a time */
	for (struct pending_report *report = outbox->first; report && count < RIDERS_MAX;
		report = report->next) {
		size_t before = list->len;
		if (!can_be_sent(report) || !report->owner || report->alone || outbox->away)
			continue;
		report->rides = put_on(outbox, worker_id, report, list) == 0;
		report->alone = !report->rides;
		check(outbox, report);
		if (report->rides)
			outbox->riders[count++] = report;
		else
			buf_cut(list, before);
	}
	outbox->rider_count = count;
	return count;
}

bool outbox_is_with_claim(const struct pending_report *report)
{
	return report->rides;
}

void outbox_claim_answered(struct outbox *outbox, struct yyjson_val *finished)
{
	struct pending_report *riders[RIDERS_MAX];
	uint32_t count = outbox->rider_count;

	memcpy(riders, outbox->riders, sizeof riders);
	outbox->rider_count = 0;
	for (uint32_t i = 0; i < count; i++) {
		yyjson_val *one = yyjson_arr_get(finished, i), *ok = yyjson_obj_get(one, "ok");
		struct pending_report *report = riders[i];
		assert(report->rides);
		report->rides = false;
		if (!yyjson_is_bool(ok)) {
			report->alone = true;
			continue;
		}
		end_answered(outbox, report,
			&(struct outbox_answer){.status = yyjson_get_bool(ok) ? 200 : 409,
				.code = json_text(yyjson_obj_get(one, "code")),
				.state = json_text(yyjson_obj_get(one, "state"))});
	}
	wake(outbox);
}

void outbox_claim_failed(struct outbox *outbox, bool refused)
{
	uint32_t count = outbox->rider_count;

	outbox->rider_count = 0;
	for (uint32_t i = 0; i < count; i++) {
		assert(outbox->riders[i]->rides);
		outbox->riders[i]->rides = false;
		outbox->riders[i]->alone = refused;
	}
	if (count > 0)
		wake(outbox);
}

/* ---- for the owner ---- */

struct pending_report *outbox_reserve(struct outbox *outbox, const char *name, void *owner)
{
	struct pending_report *report = add(outbox, name, REPORT_RESERVED);

	if (!report)
		return NULL;
	report->owner = owner;
	if (buf_reserve(&report->text, OUTBOX_RESERVED_BYTES) < 0) {
		take_out(outbox, report);
		return NULL;
	}
	return report;
}

void outbox_give_back(struct outbox *outbox, struct pending_report *report)
{
	assert(report->state == REPORT_RESERVED);
	take_out(outbox, report);
}

uint32_t outbox_room(const struct outbox *outbox)
{
	return OUTBOX_REPORTS_MAX - outbox->count;
}

struct buf *outbox_text(struct pending_report *report)
{
	assert(report->state == REPORT_RESERVED);
	buf_clear(&report->text);
	return &report->text;
}

void outbox_put(struct outbox *outbox, struct pending_report *report, bool held)
{
	assert(report->state == REPORT_RESERVED);
	assert(buf_fault(&report->text) == 0); /* what was cut short never leaves */
	report->state = REPORT_NEW;
	outbox->reserved--;
	report->held = held;
	check(outbox, report);
	uv_idle_start(&outbox->turn, on_save_idle);
}

int outbox_post(struct outbox *outbox, const char *name, struct span target, struct span body)
{
	struct pending_report *report = outbox_reserve(outbox, name, NULL);

	if (!report)
		return -ENOMEM;
	int r = report_put(outbox_text(report), target, body);
	if (r < 0)
		outbox_give_back(outbox, report);
	else
		outbox_put(outbox, report, false);
	return r;
}

void outbox_release(struct outbox *outbox, struct pending_report *report)
{
	assert(report->held);
	assert(report->state != REPORT_RESERVED);
	report->held = false;
	wake(outbox);
}

uint32_t outbox_waiting(const struct outbox *outbox)
{
	return outbox->count - outbox->reserved;
}

bool outbox_server_is_away(const struct outbox *outbox)
{
	return outbox->failures > 0;
}

static int load_name(void *context, const char *name)
{
	struct outbox *outbox = context;

	outbox->cut = !add(outbox, name, REPORT_SAVED);
	return outbox->cut ? -ENOBUFS : 0;
}

/* Reports beyond the maximum are loaded when all others are settled. */
int outbox_load(struct outbox *outbox)
{
	outbox->cut = outbox->taken = false;
	int r = file_each(outbox->dir_fd, OUTBOX_REPORTS_MAX + 1, load_name, outbox);
	send_after(outbox, 0);
	return r < 0 && r != -ENOBUFS ? r : (int)outbox_waiting(outbox);
}

void outbox_set_token(struct outbox *outbox, struct span token)
{
	assert(token.len <= TOKEN_BYTES_MAX);
	if (token.len > 0)
		memcpy(outbox->token, token.data, token.len);
	outbox->token[token.len] = 0;
}

struct outbox *outbox_new(uv_loop_t *loop, const struct http_address *address, struct span token, int dir_fd,
	const struct outbox_events *events, void *context)
{
	struct outbox *outbox = token.len <= TOKEN_BYTES_MAX ? calloc(1, sizeof *outbox) : NULL;

	if (!outbox)
		return NULL;
	outbox->end = &outbox->first;
	outbox->loop = loop;
	outbox->address = *address;
	outbox->dir_fd = dir_fd;
	outbox->events = events;
	outbox->context = context;
	outbox_set_token(outbox, token);
	for (uint32_t i = 0; i < SENDERS_MAX; i++)
		outbox->senders[i].outbox = outbox;
	buf_init(&outbox->file, REPORT_BYTES_MAX);
	rng_seed(&outbox->rng, (uint64_t)uv_hrtime());
	uv_idle_init(loop, &outbox->turn);
	uv_timer_init(loop, &outbox->timer);
	uv_timer_init(loop, &outbox->saver);
	outbox->turn.data = outbox->timer.data = outbox->saver.data = outbox;
	outbox->open_handles = 3;
	return outbox;
}

static void on_closed(uv_handle_t *handle)
{
	struct outbox *outbox = handle->data;

	if (--outbox->open_handles > 0)
		return;
	while (outbox->first)
		take_out(outbox, outbox->first);
	free(outbox);
}

void outbox_free(struct outbox *outbox)
{
	if (!outbox)
		return;
	save_all(outbox);
	outbox->stopped = true;
	for (uint32_t i = 0; i < SENDERS_MAX; i++)
		api_client_free(outbox->senders[i].client);
	buf_done(&outbox->file);
	uv_close((uv_handle_t *)&outbox->turn, on_closed);
	uv_close((uv_handle_t *)&outbox->timer, on_closed);
	uv_close((uv_handle_t *)&outbox->saver, on_closed);
}
