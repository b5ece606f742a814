/*
 * The credential that a supervisor works with.
 *
 * A supervisor that was given a token of a worker uses it. One that was given the token of an admin, as under `stint up`,
 * exchanges it once for a token of kind worker, so that its claims are not the admin's: the person may then approve what the
 * worker did. The token has the name of this host, does not expire, and is revoked as any other.
 *
 *	worker-ID.token   the worker's token that the admin's token ID was exchanged for; all supervisors of this state
 *	                  directory share it, because each takes over the claims of those that died
 *
 * A token that the server does not know when the supervisor starts (401) is replaced by a new one; later a revoked one stays
 * revoked. The file is locked while a token is made: of several supervisors that start together one makes it.
 */
#include "worker/supervisor/parts.h"

#include <assert.h>
#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <string.h>
#include <sys/file.h>
#include <unistd.h>

#include "attempt/retry.h"
#include "base/files.h"
#include "base/log.h"
#include "base/take.h"

enum {
	CALL_MS = 10 * 1000,
	AWAY_MS = 15 * 1000,
	LOCKED_MS = 100, /* another supervisor has the file */
	ONCE_RETRIES = 3,
	HOST_BYTES = 65,
	ID_BYTES_MAX = 64,
};

static const char admin_prefix[] = "stint_admin_";

/* The id of a token of kind admin; empty: the token is of another kind. */
static struct span admin_id(const char *token)
{
	size_t before = sizeof admin_prefix - 1;
	const char *id = token && strncmp(token, admin_prefix, before) == 0 ? token + before : NULL;
	const char *end = id ? strchr(id, '_') : NULL;
	bool is_name = end && end > id && end - id < ID_BYTES_MAX;

	for (const char *at = id; is_name && at < end; at++)
		is_name = (*at >= '0' && *at <= '9') || (*at >= 'a' && *at <= 'z');
	return is_name ? (struct span){id, (size_t)(end - id)} : (struct span){0};
}

static void use(struct supervisor *supervisor)
{
	close_at(&supervisor->credential_fd); /* and the lock is gone */
	if (supervisor->claim_failures > 0 && !supervisor->once)
		log_info("the server answers again");
	supervisor->claim_failures = 0;
	supervisor_serve(supervisor);
}

/* ---- the file ---- */

static int open_kept(struct supervisor *supervisor, struct span id)
{
	char path[sizeof supervisor->state_dir.home + ID_BYTES_MAX + sizeof "/worker-.token"];

	snprintf(path, sizeof path, "%s/worker-%.*s.token", supervisor->state_dir.home, SPAN_ARGS(id));
	if (supervisor->credential_fd < 0)
		supervisor->credential_fd = open(path, O_RDWR | O_CREAT | O_NOFOLLOW | O_CLOEXEC, 0600);
	return supervisor->credential_fd < 0 ? -errno : 0;
}

/* One line. Anything else is no token, and is replaced. */
static void read_kept(struct supervisor *supervisor)
{
	char *token = supervisor->token;
	ssize_t len = pread(supervisor->credential_fd, token, sizeof supervisor->token - 1, 0);

	token[len > 0 ? len : 0] = 0;
	token[strcspn(token, "\n")] = 0;
	for (const char *at = token; *at; at++) {
		if ((unsigned char)*at <= ' ' || (unsigned char)*at >= 127)
			token[0] = 0;
	}
}

/* Without the file the next supervisor makes a token of its own, and this one goes on. */
static void keep(struct supervisor *supervisor)
{
	struct span line = span_of(supervisor->token);
	int fd = supervisor->credential_fd;
	int r = ftruncate(fd, 0) < 0 || lseek(fd, 0, SEEK_SET) < 0 ? -errno : file_write_all(fd, line);

	if (r == 0 && fsync(fd) < 0)
		r = -errno;
	if (r < 0)
		log_warn("the worker's token cannot be kept; the next start makes another one",
			log_cstr("reason", strerror(-r)));
}

/* ---- the server ---- */

static void exchange(struct supervisor *supervisor);

static void on_again(uv_timer_t *timer)
{
	exchange(timer->data);
}

static void again(struct supervisor *supervisor, int64_t delay_ms)
{
	uv_timer_start(&supervisor->claim_timer, on_again, (uint64_t)delay_ms, 0);
}

static void put_off(struct supervisor *supervisor, int fault, const struct http_answer *answer)
{
	int status = fault == 0 ? http_answer_status(answer) : 0;
	const char *why = status > 0 ? "it cannot make a token for the worker now" : strerror(-fault);
	int64_t asked_ms = status > 0 ? retry_after_ms(answer) : 0;

	if (supervisor->once && supervisor->claim_failures >= ONCE_RETRIES) {
		supervisor_fail_unanswered(supervisor, why);
		return;
	}
	if (supervisor->claim_failures++ == 0 && !supervisor->once)
		log_warn("the server does not answer", log_cstr("url", supervisor->options->url),
			log_int("status", status), log_cstr("reason", why));
	again(supervisor,
		asked_ms > 0 ? asked_ms
			     : retry_delay_ms(supervisor->claim_failures, AWAY_MS, &supervisor->rng));
}

static void refuse(struct supervisor *supervisor, int status, yyjson_val *root)
{
	if (supervisor->once) {
		supervisor_fail_refused(supervisor, root);
		return;
	}
	log_error("the worker is not registered: the server makes no token for it", log_int("status", status),
		log_span("code", json_text(yyjson_obj_get(root, "code"))),
		log_span("reason", json_text(yyjson_obj_get(root, "detail"))));
	supervisor_stop(supervisor, status == 401 || status == 403 ? EXIT_NO_PERMISSION : EXIT_CONFIG);
}

static void on_made(void *context, int fault, const struct http_answer *answer)
{
	struct supervisor *supervisor = context;
	int status = fault == 0 ? http_answer_status(answer) : 0;
	cleanup(yyjson_doc_free_at) yyjson_doc *doc = NULL;

	if (status == 0 || status >= 500 || status == 429 || status == 408) {
		put_off(supervisor, fault, answer);
		return;
	}
	json_read_reply(http_answer_body(answer), &doc);
	yyjson_val *root = yyjson_doc_get_root(doc);
	struct span token = json_text(yyjson_obj_get(root, "token"));
	if (status != 201 || token.len == 0 || token.len >= sizeof supervisor->token) {
		refuse(supervisor, status, root);
		return;
	}
	memcpy(supervisor->token, token.data, token.len);
	supervisor->token[token.len] = 0;
	keep(supervisor);
	supervisor->credential_proved = true;
	if (!supervisor->once)
		log_info("the admin's token was exchanged for one of a worker",
			log_span("token", json_text(yyjson_obj_get(root, "id"))),
			log_span("name", json_text(yyjson_obj_get(root, "name"))));
	use(supervisor);
}

static int make(struct supervisor *supervisor)
{
	char host[HOST_BYTES] = "";
	struct json_object object;

	gethostname(host, sizeof host - 1);
	buf_clear(&supervisor->body);
	json_begin(&object, &supervisor->body);
	json_member_word(&object, "kind", "worker");
	json_member_string(&object, "name", span_of(settings_is_name(host) ? host : "worker"));
	json_member_int(&object, "expiresInMs", 0); /* never: the admin's does not, either */
	int r = json_end(&object);
	struct http_call call = {
		.method = HTTP_METHOD_POST,
		.target = SPAN("/api/tokens"),
		.body = buf_span(&supervisor->body),
		.token = span_of(supervisor->options->token),
		.timeout_ms = CALL_MS,
	};
	return r < 0 ? r : api_client_call(supervisor->claims, &call, on_made, supervisor);
}

/* A token that the server has not refused: is it in the file? */
static bool find_kept(struct supervisor *supervisor)
{
	read_kept(supervisor);
	return supervisor->token[0] && strcmp(supervisor->token, supervisor->refused_token) != 0;
}

static void fail_to_keep(struct supervisor *supervisor, int fault)
{
	static const char what[] = "the worker's token cannot be kept in the state directory";

	log_error("not started", log_cstr("reason", what), log_cstr("fault", strerror(-fault)));
	if (supervisor->once)
		once_failed(supervisor->once, "failed", what);
	else
		supervisor_stop(supervisor, EXIT_TEMPORARY);
}

static void exchange(struct supervisor *supervisor)
{
	int r = open_kept(supervisor, admin_id(supervisor->options->token));

	if (r < 0) {
		fail_to_keep(supervisor, r);
		return;
	}
	if (find_kept(supervisor)) {
		use(supervisor);
		return;
	}
	if (flock(supervisor->credential_fd, LOCK_EX | LOCK_NB) < 0) {
		again(supervisor, LOCKED_MS);
		return;
	}
	if (find_kept(supervisor)) { /* by a supervisor that had the lock until now */
		use(supervisor);
		return;
	}
	r = make(supervisor);
	if (r < 0)
		put_off(supervisor, r, NULL);
}

bool supervisor_renew_credential(struct supervisor *supervisor)
{
	if (supervisor->credential_proved || admin_id(supervisor->options->token).len == 0 ||
		supervisor->step != SUPERVISOR_SERVING)
		return false;
	strcpy(supervisor->refused_token, supervisor->token);
	supervisor->credential_proved = true; /* one try */
	api_client_drop(supervisor->claims);
	again(supervisor, 0); /* we may have been called by what is about to be replaced */
	return true;
}

void supervisor_find_credential(struct supervisor *supervisor)
{
	const char *given = supervisor->options->token;

	if (admin_id(given).len > 0) {
		if (supervisor->once)
			once_begin(supervisor->once);
		exchange(supervisor);
		return;
	}
	snprintf(supervisor->token, sizeof supervisor->token, "%s", given ? given : "");
	use(supervisor);
}
