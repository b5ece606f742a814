/*
 * Making certificates: an authority of one's own, and what it signs. P-256, as small and quick as they come.
 *
 * The authority signs for servers alone and makes no other authority (pathlen:0). What it signs begins in 2020, so that a machine
 * whose clock is slow accepts it.
 */
#include <arpa/inet.h>
#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/random.h>

#include "wire/tls/certificate.h"

enum {
	NAMES_TEXT_MAX = 16 << 10,
};

#define BEGINS_S INT64_C(1577836800) /* 2020-01-01 */

struct tls_authority {
	const struct tls_library *library;
	X509 *certificate;
	EVP_PKEY *key;
};

void tls_authority_free(struct tls_authority *authority)
{
	if (!authority)
		return;
	authority->library->X509_free(authority->certificate);
	authority->library->EVP_PKEY_free(authority->key);
	free(authority);
}

static EVP_PKEY *new_key(const struct tls_library *library)
{
	return library->EVP_PKEY_Q_keygen(NULL, NULL, "EC", "P-256");
}

static bool add_extension(
	const struct tls_library *library, X509 *certificate, X509 *issuer, int what, const char *value)
{
	X509V3_CTX context;

	library->X509V3_set_ctx(&context, issuer, certificate, NULL, NULL, 0);
	X509_EXTENSION *extension = library->X509V3_EXT_conf_nid(NULL, &context, what, value);
	bool added = extension && library->X509_add_ext(certificate, extension, -1) == 1;
	library->X509_EXTENSION_free(extension);
	return added;
}

/* A certificate without extensions or signature; its issuer is itself when `issuer` is NULL. */
static X509 *new_certificate(
	const struct tls_library *library, const char *name, X509 *issuer, EVP_PKEY *key, int64_t ends_ms)
{
	X509 *certificate = library->X509_new();
	uint64_t serial;

	if (!certificate)
		return NULL;
	bool drawn = getrandom(&serial, sizeof serial, 0) == sizeof serial;
	X509_NAME *subject = library->X509_get_subject_name(certificate);
	bool good = drawn && library->X509_set_version(certificate, X509_VERSION_3) == 1 &&
		library->ASN1_INTEGER_set_uint64(
			library->X509_get_serialNumber(certificate), serial >> 1 | 1) == 1 &&
		library->ASN1_TIME_set(library->X509_getm_notBefore(certificate), BEGINS_S) &&
		library->ASN1_TIME_set(library->X509_getm_notAfter(certificate), ends_ms / 1000) &&
		library->X509_NAME_add_entry_by_txt(
			subject, "CN", MBSTRING_UTF8, (const unsigned char *)name, -1, -1, 0) == 1 &&
		library->X509_set_issuer_name(
			certificate, issuer ? library->X509_get_subject_name(issuer) : subject) == 1 &&
		library->X509_set_pubkey(certificate, key) == 1;
	if (good)
		return certificate;
	library->X509_free(certificate);
	return NULL;
}

static bool sign_authority(const struct tls_library *library, struct tls_authority *authority)
{
	X509 *certificate = authority->certificate;

	return add_extension(library, certificate, certificate, NID_basic_constraints,
		       "critical,CA:TRUE,pathlen:0") &&
		add_extension(
			library, certificate, certificate, NID_key_usage, "critical,keyCertSign,cRLSign") &&
		add_extension(library, certificate, certificate, NID_subject_key_identifier, "hash") &&
		library->X509_sign(certificate, authority->key, library->EVP_sha256()) > 0;
}

int tls_authority_new(const char *name, int64_t ends_ms, struct tls_authority **ret_authority)
{
	const struct tls_library *library = tls_library();
	struct tls_authority *authority = library ? calloc(1, sizeof *authority) : NULL;

	if (!authority)
		return library ? -ENOMEM : -ENOSYS;
	authority->library = library;
	authority->key = new_key(library);
	authority->certificate =
		authority->key ? new_certificate(library, name, NULL, authority->key, ends_ms) : NULL;
	if (authority->certificate && sign_authority(library, authority)) {
		*ret_authority = authority;
		return 0;
	}
	tls_authority_free(authority);
	return -ENOMEM;
}

int tls_authority_read(struct span cert, struct span key, struct tls_authority **ret_authority)
{
	const struct tls_library *library = tls_library();
	struct tls_authority *authority = library ? calloc(1, sizeof *authority) : NULL;

	if (!authority)
		return library ? -ENOMEM : -ENOSYS;
	authority->library = library;
	authority->certificate = pem_certificate(library, cert);
	authority->key = pem_key(library, key);
	library->ERR_clear_error();
	if (authority->certificate && authority->key) {
		*ret_authority = authority;
		return 0;
	}
	tls_authority_free(authority);
	return -EINVAL;
}

static int put_bio(const struct tls_library *library, BIO *bio, struct buf *out)
{
	char *data = NULL;
	long len = library->BIO_ctrl(bio, BIO_CTRL_INFO, 0, &data);

	return buf_put(out, data, len > 0 ? (size_t)len : 0);
}

static int put_pem(const struct tls_library *library, X509 *certificate, EVP_PKEY *key, struct buf *out)
{
	BIO *bio = library->BIO_new(library->BIO_s_mem());
	int put = !bio ? 0
		: key  ? library->PEM_write_bio_PrivateKey(bio, key, NULL, NULL, 0, NULL, NULL)
		       : library->PEM_write_bio_X509(bio, certificate);
	int r = put == 1 ? put_bio(library, bio, out) : -ENOMEM;

	library->BIO_free(bio);
	return r;
}

int tls_authority_put(const struct tls_authority *authority, struct buf *cert, struct buf *key)
{
	int r = put_pem(authority->library, authority->certificate, NULL, cert);

	return r < 0 ? r : put_pem(authority->library, NULL, authority->key, key);
}

/* ---- for a server ---- */

static bool is_host(const char *host)
{
	size_t len = strlen(host);
	const char *rest = strncmp(host, "*.", 2) == 0 ? host + 2 : host;

	return len < TLS_NAME_BYTES && rest[0] && rest[0] != '.' && rest[0] != '-' &&
		strspn(rest, "abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ0123456789-.") ==
		strlen(rest);
}

/* DNS:a.example,IP:10.0.0.1 */
static int put_hosts(const char *const *hosts, size_t count, struct buf *out)
{
	unsigned char address[sizeof(struct in6_addr)];

	for (size_t i = 0; i < count; i++) {
		bool number = inet_pton(AF_INET, hosts[i], address) == 1 ||
			inet_pton(AF_INET6, hosts[i], address) == 1;
		if (!number && !is_host(hosts[i]))
			return -EINVAL;
		buf_printf(out, "%s%s:%s", i > 0 ? "," : "", number ? "IP" : "DNS", hosts[i]);
	}
	return buf_put_byte(out, 0);
}

static bool sign_server(const struct tls_authority *authority, X509 *certificate, const char *hosts)
{
	const struct tls_library *library = authority->library;
	X509 *issuer = authority->certificate;

	return add_extension(library, certificate, issuer, NID_basic_constraints, "critical,CA:FALSE") &&
		add_extension(library, certificate, issuer, NID_key_usage, "critical,digitalSignature") &&
		add_extension(library, certificate, issuer, NID_ext_key_usage, "serverAuth") &&
		add_extension(library, certificate, issuer, NID_subject_key_identifier, "hash") &&
		add_extension(library, certificate, issuer, NID_authority_key_identifier, "keyid:always") &&
		add_extension(library, certificate, issuer, NID_subject_alt_name, hosts) &&
		library->X509_sign(certificate, authority->key, library->EVP_sha256()) > 0;
}

int tls_authority_issue(const struct tls_authority *authority, const char *const *hosts, size_t host_count,
	int64_t ends_ms, struct buf *cert, struct buf *key)
{
	const struct tls_library *library = authority->library;
	struct buf names = {.max = NAMES_TEXT_MAX};
	EVP_PKEY *own = NULL;
	X509 *certificate = NULL;
	int r = host_count > 0 ? put_hosts(hosts, host_count, &names) : -EINVAL;

	if (r == 0) {
		own = new_key(library);
		certificate = own
			? new_certificate(library, "stint server", authority->certificate, own, ends_ms)
			: NULL;
		r = certificate && sign_server(authority, certificate, names.data) ? 0 : -ENOMEM;
	}
	if (r == 0)
		r = put_pem(library, certificate, NULL, cert);
	if (r == 0)
		r = put_pem(library, NULL, own, key);
	library->ERR_clear_error();
	library->X509_free(certificate);
	library->EVP_PKEY_free(own);
	buf_done(&names);
	return r;
}
