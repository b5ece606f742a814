/*
 * The certificate that stintd shows: `tls.cert` and `tls.key`, looked at every ten seconds and on SIGHUP. A new pair is used for
 * new connections once it is whole: both read, belonging together, valid now, the key closed to others. Until then the old one
 * stays, and the log, /readyz and the metrics say why.
 */
#pragma once

#include <sys/stat.h>
#include <uv.h>

#include "server/certificate_file.h"
#include "server/mint.h"

struct server;

/* What tells whether a file is another one than before. */
struct file_mark {
	ino_t inode;
	off_t bytes;
	struct timespec changed;
};

struct certificate {
	struct tls_identity *identity; /* NULL: the server speaks no TLS */
	struct file_mark marks[2];     /* of both files, when they were last tried */
	int64_t looked_ms, warned_ms;  /* lease clock */
	uv_signal_t hangup;
	char pin[TOKEN_PIN_BYTES_MAX]; /* of the authority in `tls.ca`, for codes of machines; "": there is none */
	bool is_published;             /* the state directory has our copy of `tls.ca` */
	char complaint[CERTIFICATE_COMPLAINT_BYTES]; /* why a newer pair is not used; "" */
};

/* Uses what the options have loaded, and begins to look. */
void certificate_begin(struct server *server);

/* Once a second; looks every ten. */
void certificate_look(struct server *server);
