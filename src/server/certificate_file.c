#include "server/certificate_file.h"

#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "base/buf.h"
#include "base/take.h"
#include "server/options.h"

enum {
	FILE_BYTES_MAX = 1 << 20,
};

static int read_all(int fd, struct buf *out)
{
	char block[4096];
	ssize_t got;

	while ((got = read(fd, block, sizeof block)) > 0)
		buf_put(out, block, (size_t)got);
	explicit_bzero(block, sizeof block);
	return got < 0 ? -errno : buf_fault(out);
}

/* Only its owner, who is root or the server's user, may have it; root may let a group read it. */
static bool is_shut(const struct stat *about)
{
	mode_t open_to = about->st_uid == 0 ? S_IRWXO | S_IWGRP | S_IXGRP : S_IRWXO | S_IRWXG;

	return (about->st_uid == 0 || about->st_uid == geteuid()) && (about->st_mode & open_to) == 0;
}

static int read_file(const char *path, const char *what, bool secret, struct buf *out, char *complaint)
{
	cleanup(close_at) int fd = open(path, O_RDONLY | O_CLOEXEC | O_NONBLOCK);
	struct stat about;
	int r = fd < 0 || fstat(fd, &about) < 0 ? -errno : !S_ISREG(about.st_mode) ? -EINVAL : 0;

	if (r == 0 && secret && !is_shut(&about)) {
		snprintf(complaint, CERTIFICATE_COMPLAINT_BYTES,
			"%s: %.250s belongs to another user, or others may read it; fix: chown it and chmod 600",
			what, path);
		return -EACCES;
	}
	if (r == 0)
		r = read_all(fd, out);
	if (r < 0)
		snprintf(complaint, CERTIFICATE_COMPLAINT_BYTES, "%s: cannot read %.250s: %s", what, path,
			strerror(-r));
	return r;
}

int certificate_load(const struct options *options, int64_t wall_ms, struct tls_identity **ret_identity,
	char complaint[CERTIFICATE_COMPLAINT_BYTES])
{
	struct buf cert = {.max = FILE_BYTES_MAX}, key = {.max = FILE_BYTES_MAX},
		   ca = {.max = FILE_BYTES_MAX};
	char why[TLS_COMPLAINT_BYTES];

	int r = read_file(options->tls_cert, "tls.cert", false, &cert, complaint);
	if (r == 0)
		r = read_file(options->tls_key, "tls.key", true, &key, complaint);
	if (r == 0)
		r = options->tls_ca[0] ? read_file(options->tls_ca, "tls.ca", false, &ca, complaint) : 0;
	if (r == 0) {
		r = tls_identity_new(
			buf_span(&cert), buf_span(&key), buf_span(&ca), wall_ms, ret_identity, why);
		if (r < 0)
			snprintf(complaint, CERTIFICATE_COMPLAINT_BYTES,
				"tls.cert %.150s with tls.key %.100s: %s", options->tls_cert,
				options->tls_key, why);
	}
	if (key.data)
		explicit_bzero(key.data, key.len);
	buf_done(&cert);
	buf_done(&key);
	buf_done(&ca);
	return r;
}

int certificate_hash(const struct options *options, unsigned char ret_hash[TLS_HASH_BYTES])
{
	char complaint[CERTIFICATE_COMPLAINT_BYTES];
	struct buf pem = {.max = FILE_BYTES_MAX};
	int r = options->tls_ca[0] ? read_file(options->tls_ca, "tls.ca", false, &pem, complaint) : -ENOENT;

	if (r == 0)
		r = tls_hash(buf_span(&pem), ret_hash);
	buf_done(&pem);
	return r;
}

int certificate_authority(const struct options *options, struct tls_facts *ret_facts,
	char complaint[CERTIFICATE_COMPLAINT_BYTES])
{
	struct buf pem = {.max = FILE_BYTES_MAX};
	int r = read_file(options->tls_ca, "tls.ca", false, &pem, complaint);

	if (r == 0) {
		r = tls_facts_read(buf_span(&pem), ret_facts);
		if (r < 0)
			snprintf(complaint, CERTIFICATE_COMPLAINT_BYTES,
				"tls.ca: %.250s is not a certificate in PEM", options->tls_ca);
	}
	buf_done(&pem);
	return r;
}
