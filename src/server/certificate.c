#include "server/certificate.h"

#include <fcntl.h>
#include <signal.h>
#include <stdio.h>
#include <string.h>

#include "base/files.h"
#include "base/iso_time.h"
#include "base/log.h"
#include "base/take.h"
#include "server/home.h"
#include "server/server.h"

enum {
	FILE_BYTES_MAX = 1 << 20,
	LOOK_MS = 10 * 1000,
	WARN_MS = 24 * 3600 * 1000, /* between two warnings … */
};

#define WARN_BEFORE_MS (INT64_C(14) * 24 * 3600 * 1000) /* … from so long before its end on */

/* ---- a newer one ---- */

static struct file_mark mark_of(const char *path)
{
	struct stat about;

	return stat(path, &about) < 0 ? (struct file_mark){0}
				      : (struct file_mark){about.st_ino, about.st_size, about.st_mtim};
}

static bool is_marked(const struct file_mark *mark, const char *path)
{
	struct file_mark now = mark_of(path);

	return mark->inode == now.inode && mark->bytes == now.bytes &&
		mark->changed.tv_sec == now.changed.tv_sec && mark->changed.tv_nsec == now.changed.tv_nsec;
}

static void note_end(struct server *server)
{
	struct certificate *certificate = &server->certificate;
	int64_t ends_ms = tls_identity_facts(certificate->identity)->ends_ms, now_ms = server->now.lease_ms;
	char when[ISO_TIME_BYTES + 1];

	if (ends_ms - server->now.wall_ms > WARN_BEFORE_MS ||
		(certificate->warned_ms != 0 && now_ms - certificate->warned_ms < WARN_MS))
		return;
	certificate->warned_ms = now_ms;
	iso_time_put(ends_ms, when);
	log_warn(
		"the TLS certificate ends soon, and clients will refuse this server: put a newer one in its place",
		log_cstr("file", server->options->tls_cert), log_cstr("ends", when));
}

/* For programs that find the server by its state directory. Without the file they need --ca. */
static void publish_authority(struct server *server)
{
	const struct options *options = server->options;
	cleanup(buf_done) struct buf text = {.max = FILE_BYTES_MAX};

	char path[OPTIONS_PATH_MAX + 16];
	struct stat ours, given;

	snprintf(path, sizeof path, "%s/ca.crt", options->home);
	bool is_there = stat(path, &ours) == 0 && stat(options->tls_ca, &given) == 0 &&
		ours.st_dev == given.st_dev && ours.st_ino == given.st_ino;
	if (!options->tls_ca[0] || is_there)
		return;
	int r = file_read(AT_FDCWD, options->tls_ca, &text);
	if (r == 0)
		r = buf_put_byte(&text, 0);
	if (r == 0)
		r = home_write(options->home, "ca.crt", text.data);
	server->certificate.is_published |= r == 0;
	if (r < 0)
		log_warn(
			"the authority's certificate cannot be put into the state directory: clients there need --ca",
			log_cstr("file", options->tls_ca), log_cstr("reason", strerror(-r)));
}

/* Codes of machines carry it, so that these know the server before they say anything. */
static void note_pin(struct server *server)
{
	struct certificate *certificate = &server->certificate;
	unsigned char hash[TLS_HASH_BYTES];

	certificate->pin[0] = 0;
	if (certificate->identity && certificate_hash(server->options, hash) == 0)
		mint_pin(hash, certificate->pin);
}

static void try_newer(struct server *server)
{
	struct certificate *certificate = &server->certificate;
	const struct options *options = server->options;
	char complaint[CERTIFICATE_COMPLAINT_BYTES] = "";
	struct tls_identity *newer;

	certificate->marks[0] = mark_of(options->tls_cert);
	certificate->marks[1] = mark_of(options->tls_key);
	if (certificate_load(options, server->now.wall_ms, &newer, complaint) == 0) {
		tls_identity_free(certificate->identity);
		certificate->identity = server->options->identity = newer;
		certificate->warned_ms = 0;
		note_pin(server);
		publish_authority(server);
		log_info("the TLS certificate was read anew: new connections get it",
			log_cstr("file", options->tls_cert));
	} else if (strcmp(complaint, certificate->complaint) != 0) {
		log_error("the newer TLS certificate is not used; the one before stays",
			log_cstr("reason", complaint));
	}
	memcpy(certificate->complaint, complaint, sizeof complaint);
}

void certificate_look(struct server *server)
{
	struct certificate *certificate = &server->certificate;
	const struct options *options = server->options;

	if (!certificate->identity || server->now.lease_ms - certificate->looked_ms < LOOK_MS)
		return;
	certificate->looked_ms = server->now.lease_ms;
	if (!is_marked(&certificate->marks[0], options->tls_cert) ||
		!is_marked(&certificate->marks[1], options->tls_key))
		try_newer(server);
	note_end(server);
}

static void on_hangup(uv_signal_t *signal, int number)
{
	struct server *server = signal->data;

	(void)number;
	clock_tick(server);
	try_newer(server);
}

void certificate_begin(struct server *server)
{
	struct certificate *certificate = &server->certificate;

	handshakes_init(&server->handshakes);
	uv_signal_init(&server->loop, &certificate->hangup);
	certificate->hangup.data = server;
	certificate->identity = server->options->identity;
	if (!certificate->identity)
		return;
	certificate->marks[0] = mark_of(server->options->tls_cert);
	certificate->marks[1] = mark_of(server->options->tls_key);
	certificate->looked_ms = server->now.lease_ms;
	note_pin(server);
	publish_authority(server);
	uv_signal_start(&certificate->hangup, on_hangup, SIGHUP);
	note_end(server);
}
