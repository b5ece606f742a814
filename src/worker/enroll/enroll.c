#include "worker/enroll/enroll.h"

#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "base/files.h"
#include "base/iso_time.h"
#include "base/take.h"
#include "config/config.h"
#include "config/machine.h"
#include "wire/http/client.h"
#include "wire/json/json.h"
#include "wire/tls/tls.h"
#include "worker/settings/flags.h"

enum {
	CALL_MS = 30 * 1000,
	TRIES = 3,
	BODY_BYTES_MAX = 4096,
	HEAD_BYTES_MAX = 16 << 10,
	ANSWER_BYTES_MAX = 64 << 10,
	CA_BYTES_MAX = 1 << 20,
	HOST_BYTES = 65,
	STATUS_GONE = 4,
	STATUS_UNTRUSTED = 7,
};

struct enrolment {
	const struct enrol_request *request;
	struct join_code code;
	struct http_address address;
	struct tls_trust *trust;
	char dir[MACHINE_PATH_BYTES], file[MACHINE_PATH_BYTES];
	char token[MACHINE_TOKEN_BYTES], hash[MACHINE_HASH_BYTES];
	struct buf ca; /* the authority, in PEM; empty: the system's are trusted */
};

/* The status, after a complaint. */
#define fail(status, ...) (worker_complain(__VA_ARGS__), (int)(status))

/* ---- before anything is sent ---- */

static int read_code(struct enrolment *enrolment)
{
	const struct enrol_request *request = enrolment->request;
	const char *reason = "";

	if (!join_code_read(request->code, &enrolment->code))
		return fail(EXIT_USAGE,
			"this is not a whole join code: it begins with stint_join_ and has no blanks; stint worker invite prints one");
	if (http_address_parse(request->url, &enrolment->address, &reason) < 0)
		return fail(EXIT_USAGE, "\"%s\": %s", request->url, reason);
	if (!enrolment->address.secure && enrolment->code.pin[0])
		return fail(EXIT_USAGE,
			"this code is for an https server: the address must begin with https://, and is %s",
			request->url);
	if (!enrolment->address.secure && !http_address_is_loopback(&enrolment->address) && !request->plain)
		return fail(EXIT_USAGE,
			"%s is another computer, and http sends the code in the clear: anybody on the way can use it; use https://, or "
			"say --plain",
			request->url);
	return 0;
}

static bool is_named(void *context, const unsigned char hash[TLS_HASH_BYTES])
{
	return join_code_names(context, hash);
}

/* A file that was named must hold the authority that the code names. */
static int read_ca(struct enrolment *enrolment)
{
	const char *path = enrolment->request->ca;
	unsigned char hash[TLS_HASH_BYTES];
	int r = file_read(AT_FDCWD, path, &enrolment->ca);

	if (r < 0)
		return fail(EXIT_USAGE, "--ca: cannot read %s: %s", path, strerror(-r));
	if (!enrolment->code.pin[0])
		return 0;
	r = tls_hash(buf_span(&enrolment->ca), hash);
	if (r == 0 && join_code_names(&enrolment->code, hash))
		return 0;
	return fail(STATUS_UNTRUSTED, "--ca: %s is not the authority that the code names; nothing was sent",
		path);
}

static int find_trust(struct enrolment *enrolment)
{
	char why[TLS_COMPLAINT_BYTES];
	int status, r;

	if (!enrolment->address.secure)
		return 0;
	status = enrolment->request->ca ? read_ca(enrolment) : 0;
	if (status != 0)
		return status;
	if (enrolment->ca.len > 0)
		r = tls_trust_new(buf_span(&enrolment->ca), &enrolment->trust, why);
	else if (enrolment->code.pin[0])
		r = tls_trust_pinned(is_named, &enrolment->code, &enrolment->trust, why);
	else
		r = tls_trust_new((struct span){0}, &enrolment->trust, why);
	enrolment->address.trust = enrolment->trust;
	return r < 0 ? fail(EXIT_USAGE, "%s: %s", enrolment->request->url, why) : 0;
}

/* Its own directory, beside what a worker keeps. A server's state directory has a worker of its own. */
static int open_home(struct enrolment *enrolment)
{
	const char *home = enrolment->request->home;
	char path[MACHINE_PATH_BYTES];

	machine_path(home, MACHINE_TOKEN, enrolment->file);
	snprintf(enrolment->dir, sizeof enrolment->dir, "%s/%s", home, MACHINE_DIR);
	snprintf(path, sizeof path, "%s/admin.token", home);
	if (access(path, F_OK) == 0)
		return fail(EXIT_USAGE, "%s is the state directory of a server; name another one with --home",
			home);
	if (access(enrolment->file, F_OK) == 0)
		return fail(EXIT_USAGE,
			"this machine is enrolled already: its credential is %s; to enrol it anew, remove that file first",
			enrolment->file);
	int r = directory_make(enrolment->dir);
	return r < 0 ? fail(EXIT_CONFIG, "cannot make %s: %s", enrolment->dir, strerror(-r)) : 0;
}

/* The secret of a try before is used again, so that a reply that was lost can be asked for. */
static int make_secret(struct enrolment *enrolment)
{
	struct span token;
	int r = machine_read_next(enrolment->file, enrolment->token);

	token = span_of(r == 0 ? enrolment->token : "");
	if (r < 0 || machine_token_id(token).len != MACHINE_ID_BYTES - 1) {
		r = machine_mint((struct span){0}, enrolment->token);
		if (r == 0)
			r = machine_keep_next(enrolment->file, enrolment->token);
	}
	if (r == 0)
		r = machine_hash(span_of(enrolment->token), enrolment->hash);
	if (r == -ENOSYS)
		return fail(EXIT_CONFIG,
			"an enrolment needs OpenSSL 3 (libssl.so.3), which is not installed here; try apt install libssl3");
	return r < 0 ? fail(EXIT_CONFIG, "cannot keep a secret in %s: %s", enrolment->dir, strerror(-r)) : 0;
}

/* ---- the server ---- */

static int put_body(const struct enrolment *enrolment, struct buf *body)
{
	char host[HOST_BYTES] = "";
	struct json_object object;
	const char *name = enrolment->request->name;

	gethostname(host, sizeof host - 1);
	name = name ? name : host;
	json_begin(&object, body);
	json_member_string(&object, "code", span_of(enrolment->request->code));
	json_member_string(&object, "id", machine_token_id(span_of(enrolment->token)));
	json_member_string(&object, "hash", span_of(enrolment->hash));
	if (settings_is_name(name))
		json_member_string(&object, "host", span_of(name));
	return json_end(&object);
}

static int tell_unreached(const struct enrolment *enrolment, const struct http_client *client, int fault)
{
	const char *url = enrolment->request->url;

	if (fault == -EKEYREJECTED)
		return fail(STATUS_UNTRUSTED,
			"the server at %s is not the one that made this code, and nothing was sent: %s", url,
			http_client_complaint(client));
	if (fault == -EPROTO && http_client_complaint(client)[0])
		return fail(
			STATUS_UNTRUSTED, "no https is spoken at %s: %s", url, http_client_complaint(client));
	return fail(EXIT_UNAVAILABLE, "%s does not answer: %s; the same command can be repeated", url,
		strerror(-fault));
}

static int tell_refused(const struct enrolment *enrolment, const struct http_answer *answer)
{
	cleanup(yyjson_doc_free_at) yyjson_doc *doc = NULL;
	int status = http_answer_status(answer);
	char detail[512];

	json_read_reply(http_answer_body(answer), &doc);
	struct span text = json_text(yyjson_obj_get(yyjson_doc_get_root(doc), "detail"));
	snprintf(detail, sizeof detail, "%.*s", SPAN_ARGS(text));
	if (status == 410) {
		machine_drop_next(enrolment->file);
		return fail(STATUS_GONE, "%s", detail);
	}
	return fail(status >= 500 || status == 429 ? EXIT_UNAVAILABLE : 1,
		"the server refused the enrolment: %s", detail);
}

/* ---- afterwards ---- */

/* Root makes this for the service's user, whose directory it is. */
static void give_away(const struct enrolment *enrolment)
{
	static const char *const names[] = {MACHINE_URL, MACHINE_TOKEN, MACHINE_CA};
	const struct enrol_request *request = enrolment->request;
	char path[MACHINE_PATH_BYTES];
	struct stat about;

	if (geteuid() != 0 || stat(request->home, &about) < 0 || about.st_uid == 0)
		return;
	for (size_t i = 0; i < sizeof names / sizeof *names; i++) {
		machine_path(request->home, names[i], path);
		if (lchown(path, about.st_uid, about.st_gid) < 0 && errno != ENOENT)
			worker_complain("cannot give %s to the owner of %s: %s", path, request->home,
				strerror(errno));
	}
	if (lchown(enrolment->dir, about.st_uid, about.st_gid) < 0)
		worker_complain("cannot give %s to the owner of %s: %s", enrolment->dir, request->home,
			strerror(errno));
}

/* The token last: with it the machine is enrolled. */
static int keep(const struct enrolment *enrolment)
{
	struct span found = enrolment->trust ? tls_trust_found(enrolment->trust) : (struct span){0};
	struct span ca = found.len > 0 ? found : buf_span(&enrolment->ca);
	cleanup(close_at) int dir_fd = open(enrolment->dir, O_RDONLY | O_DIRECTORY | O_CLOEXEC);
	cleanup(buf_done) struct buf line = {.max = BODY_BYTES_MAX};
	int r = dir_fd < 0 ? -errno : buf_printf(&line, "%s\n", enrolment->request->url);

	if (r == 0)
		r = file_write(dir_fd, MACHINE_URL, buf_span(&line), true);
	if (r == 0 && ca.len > 0)
		r = file_write(dir_fd, MACHINE_CA, ca, true);
	else if (r == 0)
		unlinkat(dir_fd, MACHINE_CA, 0); /* of an enrolment before */
	if (r == 0)
		r = machine_take_next(enrolment->file);
	if (r == 0)
		give_away(enrolment);
	return r < 0
		? fail(EXIT_CONFIG, "cannot keep the credential in %s: %s; the same command can be repeated",
			  enrolment->dir, strerror(-r))
		: 0;
}

static int tell_done(const struct enrolment *enrolment, const struct http_answer *answer)
{
	cleanup(yyjson_doc_free_at) yyjson_doc *doc = NULL;
	cleanup(buf_done) struct buf out = {.max = BODY_BYTES_MAX};
	char until[ISO_TIME_BYTES + 1];
	struct json_object object;

	json_read_reply(http_answer_body(answer), &doc);
	yyjson_val *root = yyjson_doc_get_root(doc);
	struct span name = json_text(yyjson_obj_get(root, "name")),
		    id = json_text(yyjson_obj_get(root, "id"));
	int64_t expires_ms = json_int(root, "expiresAt");
	iso_time_put(expires_ms, until);
	if (!enrolment->request->json) {
		printf("enrolled  %.*s at %s, token %.*s, which renews itself (now until %s)\nkept in   %s\n",
			SPAN_ARGS(name), enrolment->request->url, SPAN_ARGS(id), until, enrolment->dir);
		return 0;
	}
	json_begin(&object, &out);
	json_member_string(&object, "id", id);
	json_member_string(&object, "name", name);
	json_member_string(&object, "url", span_of(enrolment->request->url));
	json_member_string(&object, "home", span_of(enrolment->request->home));
	json_member_int(&object, "expiresAt", expires_ms);
	json_end(&object);
	printf("%.*s\n", SPAN_ARGS(buf_span(&out)));
	return 0;
}

static int ask(struct enrolment *enrolment)
{
	cleanup(buf_done) struct buf body = {.max = BODY_BYTES_MAX};
	static const struct http_answer_limits limits = {
		.head_bytes_max = HEAD_BYTES_MAX, .body_bytes_max = ANSWER_BYTES_MAX};
	struct http_client *client = http_client_new(&enrolment->address, &limits);
	int r = client ? put_body(enrolment, &body) : -ENOMEM, status;
	struct http_call call = {
		.method = HTTP_METHOD_POST,
		.target = SPAN("/api/enroll"),
		.body = buf_span(&body),
		.may_repeat = true, /* the server recognises code and hash */
		.timeout_ms = CALL_MS,
	};
	struct http_answer *answer = NULL;
	enum http_reach reach;

	if (r < 0)
		return fail(EXIT_UNAVAILABLE, "%s", strerror(-r));
	r = http_client_call(client, &call, &answer, &reach);
	for (int i = 1; r < 0 && reach == HTTP_REACH_UNKNOWN && i < TRIES; i++)
		r = http_client_call(client, &call, &answer, &reach);
	if (r < 0)
		status = tell_unreached(enrolment, client, r);
	else if (http_answer_status(answer) != 200)
		status = tell_refused(enrolment, answer);
	else
		status = keep(enrolment);
	if (status == 0)
		status = tell_done(enrolment, answer);
	http_client_free(client);
	return status;
}

int enrol_run(const struct enrol_request *request)
{
	static struct enrolment enrolment;

	enrolment = (struct enrolment){.request = request, .ca = {.max = CA_BYTES_MAX}};
	int status = read_code(&enrolment);
	if (status == 0)
		status = open_home(&enrolment);
	if (status == 0)
		status = find_trust(&enrolment);
	if (status == 0)
		status = make_secret(&enrolment);
	if (status == 0)
		status = ask(&enrolment);
	explicit_bzero(enrolment.token, sizeof enrolment.token);
	tls_trust_free(enrolment.trust);
	buf_done(&enrolment.ca);
	return status;
}
