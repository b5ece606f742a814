/*
 * The token of a machine renews itself: when half of its life is over, the supervisor gives it another secret.
 *
 *	ask ──in so many ms──▶ WAIT ──▶ make a secret, in FILE.next ──▶ show its hash ──▶ FILE.next becomes FILE ──▶ ask, with it
 *	                                                                  └──no answer──▶ later, with the same secret
 *
 * The server says how long there is, so that a wrong clock on this machine does no harm. Several supervisors may share the file:
 * one renews, under a lock, and the others read the file again when they are refused. A token that the server does not renew, or
 * that came without a file, is left alone.
 */
#include "worker/supervisor/parts.h"

#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <string.h>
#include <sys/file.h>
#include <unistd.h>

#include "attempt/retry.h"
#include "base/log.h"
#include "base/take.h"
#include "config/config.h"
#include "config/machine.h"

enum {
	CALL_MS = 10 * 1000,
	AWAY_MS = 5 * 60 * 1000,
	ASK_AGAIN_MS = 3600 * 1000, /* at the latest: a timer stands still while a machine sleeps */
	LOCKED_MS = 60 * 1000,      /* another supervisor renews */
	BODY_BYTES_MAX = 200,
};

static void ask(struct supervisor *supervisor);
static void show(struct supervisor *supervisor);

static void adopt(struct supervisor *supervisor, const char *token)
{
	snprintf(supervisor->token, sizeof supervisor->token, "%s", token);
	supervisor->has_fresh_token = true;
	outbox_set_token(supervisor->outbox, span_of(supervisor->token));
	if (supervisor->heartbeat)
		heartbeat_set_token(supervisor->heartbeat, span_of(supervisor->token));
}

/* ---- the lock ---- */

static bool lock(struct supervisor *supervisor)
{
	char path[MACHINE_PATH_BYTES];
	int len = snprintf(path, sizeof path, "%s.lock", supervisor->options->token_file);

	if (supervisor->renewal_fd >= 0)
		return true;
	if (len > 0 && (size_t)len < sizeof path)
		supervisor->renewal_fd = open(path, O_RDWR | O_CREAT | O_NOFOLLOW | O_CLOEXEC, 0600);
	if (supervisor->renewal_fd < 0 || flock(supervisor->renewal_fd, LOCK_EX | LOCK_NB) == 0)
		return supervisor->renewal_fd >= 0;
	close_at(&supervisor->renewal_fd);
	return false;
}

/* ---- later ---- */

static void on_ask(uv_timer_t *timer)
{
	ask(timer->data);
}

static void on_due(uv_timer_t *timer)
{
	show(timer->data);
}

static void later(struct supervisor *supervisor, uv_timer_cb then, int64_t delay_ms)
{
	close_at(&supervisor->renewal_fd);
	if (supervisor->step == SUPERVISOR_SERVING)
		uv_timer_start(&supervisor->renewal_timer, then, (uint64_t)delay_ms, 0);
}

static void put_off(struct supervisor *supervisor, uv_timer_cb then, const struct http_answer *answer)
{
	int64_t asked_ms = answer ? retry_after_ms(answer) : 0;

	later(supervisor, then,
		asked_ms > 0 ? asked_ms
			     : retry_delay_ms(++supervisor->renewal_failures, AWAY_MS, &supervisor->rng));
}

/* ---- how long is there? ---- */

static void on_asked(void *context, int fault, const struct http_answer *answer)
{
	struct supervisor *supervisor = context;
	cleanup(yyjson_doc_free_at) yyjson_doc *doc = NULL;
	int status = fault == 0 ? http_answer_status(answer) : 0;

	if (status == 401 && supervisor_reread_token(supervisor)) {
		later(supervisor, on_ask, 0);
		return;
	}
	if (status != 200) {
		if (status == 0 || status == 429 || status >= 500)
			put_off(supervisor, on_ask, fault == 0 ? answer : NULL);
		return; /* an older server, or a token that nobody renews */
	}
	supervisor->renewal_failures = 0;
	json_read_reply(http_answer_body(answer), &doc);
	yyjson_val *due = yyjson_obj_get(yyjson_doc_get_root(doc), "renewInMs");
	int64_t due_ms = yyjson_get_sint(due);
	if (!yyjson_is_int(due))
		return;
	if (due_ms > ASK_AGAIN_MS)
		later(supervisor, on_ask, ASK_AGAIN_MS);
	else
		later(supervisor, on_due, due_ms);
}

static void ask(struct supervisor *supervisor)
{
	if (api_client_post(supervisor->renewals, SPAN("/api/renew"), SPAN("{}"), span_of(supervisor->token),
		    CALL_MS, on_asked, supervisor) < 0)
		put_off(supervisor, on_ask, NULL);
}

/* ---- a new secret ---- */

/* The server has it, or has ended the one before: either way it is the better one. */
static void use_next(struct supervisor *supervisor)
{
	int r = machine_take_next(supervisor->options->token_file);

	if (r < 0) {
		log_error(
			"the new secret of this machine cannot take the place of the one before; it is in FILE.next",
			log_cstr("file", supervisor->options->token_file), log_cstr("reason", strerror(-r)));
		put_off(supervisor, on_due, NULL);
		return;
	}
	adopt(supervisor, supervisor->next_token);
	later(supervisor, on_ask, 0); /* with it: the server then ends the one before */
}

static void on_shown(void *context, int fault, const struct http_answer *answer)
{
	struct supervisor *supervisor = context;
	int status = fault == 0 ? http_answer_status(answer) : 0;

	if (status == 200)
		log_info("the credential of this machine was renewed",
			log_cstr("file", supervisor->options->token_file));
	if (status == 200 || status == 401) {
		use_next(supervisor);
		return;
	}
	if (status == 422) /* it has had that secret before */
		machine_drop_next(supervisor->options->token_file);
	if (supervisor->renewal_failures == 0)
		log_warn("the credential of this machine is not renewed yet", log_int("status", status),
			log_cstr("reason", fault < 0 ? strerror(-fault) : ""));
	put_off(supervisor, on_due, fault == 0 ? answer : NULL);
}

/* One that waits is shown again. */
static int make_next(struct supervisor *supervisor)
{
	const char *file = supervisor->options->token_file;
	int r = machine_read_next(file, supervisor->next_token);

	if (r == 0 &&
		span_equal(machine_token_id(span_of(supervisor->next_token)),
			machine_token_id(span_of(supervisor->token))))
		return 0;
	r = machine_mint(span_of(supervisor->token), supervisor->next_token);
	return r == 0 ? machine_keep_next(file, supervisor->next_token) : r;
}

static int show_next(struct supervisor *supervisor)
{
	cleanup(buf_done) struct buf body = {.max = BODY_BYTES_MAX};
	char hash[MACHINE_HASH_BYTES];

	int r = make_next(supervisor);
	if (r == 0)
		r = machine_hash(span_of(supervisor->next_token), hash);
	if (r == 0)
		r = buf_printf(&body, "{\"hash\":\"%s\"}", hash);
	return r < 0 ? r
		     : api_client_post(supervisor->renewals, SPAN("/api/renew"), buf_span(&body),
			       span_of(supervisor->token), CALL_MS, on_shown, supervisor);
}

static void show(struct supervisor *supervisor)
{
	if (!lock(supervisor)) {
		later(supervisor, on_ask, LOCKED_MS);
		return;
	}
	if (supervisor_reread_file(supervisor)) { /* another supervisor has renewed it */
		later(supervisor, on_ask, 0);
		return;
	}
	int r = show_next(supervisor);
	if (r == 0)
		return;
	if (supervisor->renewal_failures == 0)
		log_warn("the credential of this machine cannot be renewed, and will end",
			log_cstr("file", supervisor->options->token_file), log_cstr("reason", strerror(-r)));
	put_off(supervisor, on_due, NULL);
}

/* ---- from outside ---- */

bool supervisor_reread_file(struct supervisor *supervisor)
{
	char token[SUPERVISOR_TOKEN_BYTES_MAX + 1];
	const char *file = supervisor->options->token_file;

	if (!file || config_read_line(file, token, sizeof token) < 0 ||
		strcmp(token, supervisor->token) == 0 ||
		!span_equal(machine_token_id(span_of(token)), machine_token_id(span_of(supervisor->token))))
		return false;
	adopt(supervisor, token);
	return true;
}

bool supervisor_reread_token(struct supervisor *supervisor)
{
	const char *file = supervisor->options->token_file;
	char token[MACHINE_TOKEN_BYTES];
	bool is_fresh = supervisor->has_fresh_token;

	supervisor->has_fresh_token = false;
	if (is_fresh || supervisor_reread_file(supervisor))
		return true;
	if (!file || machine_read_next(file, token) < 0 || strcmp(token, supervisor->refused_token) == 0 ||
		!span_equal(machine_token_id(span_of(token)), machine_token_id(span_of(supervisor->token))) ||
		machine_take_next(file) < 0)
		return false;
	snprintf(supervisor->refused_token, sizeof supervisor->refused_token, "%s", token); /* one try */
	adopt(supervisor, token);
	return true;
}

void supervisor_begin_renewals(struct supervisor *supervisor)
{
	const struct supervisor_options *options = supervisor->options;

	if (!options->token_file || supervisor->once || supervisor->renewals ||
		strcmp(supervisor->token, options->token ? options->token : "") != 0)
		return; /* no file, or one of an admin, which was exchanged */
	supervisor->renewals = api_client_new(supervisor->loop, &options->address, NULL);
	if (!supervisor->renewals)
		return;
	if (machine_read_next(options->token_file, supervisor->next_token) == 0)
		later(supervisor, on_due, 0); /* of a renewal whose end nobody knows */
	else
		later(supervisor, on_ask, 0);
}

void supervisor_end_renewals(struct supervisor *supervisor)
{
	uv_timer_stop(&supervisor->renewal_timer);
	close_at(&supervisor->renewal_fd);
	api_client_free(supervisor->renewals);
	supervisor->renewals = NULL;
}
