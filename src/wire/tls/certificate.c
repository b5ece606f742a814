/*
 * Certificates: what stands in one, and what a client or a server makes of a file with some.
 */
#include "wire/tls/certificate.h"

#include <arpa/inet.h>
#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <strings.h>
#include <time.h>

#include "base/iso_time.h"

/* ---- reading ---- */

/* OpenSSL would ask the terminal for a passphrase. */
static int no_passphrase(char *text, int room, int writes, void *context)
{
	(void)text;
	(void)room;
	(void)writes;
	(void)context;
	return 0;
}

BIO *pem_open(const struct tls_library *library, struct span pem)
{
	return pem.len > 0 && pem.len <= PEM_BYTES_MAX ? library->BIO_new_mem_buf(pem.data, (int)pem.len)
						       : NULL;
}

X509 *pem_next_certificate(const struct tls_library *library, BIO *pem)
{
	return library->PEM_read_bio_X509(pem, NULL, no_passphrase, NULL);
}

X509 *pem_certificate(const struct tls_library *library, struct span pem)
{
	BIO *bio = pem_open(library, pem);
	X509 *certificate = bio ? pem_next_certificate(library, bio) : NULL;

	library->BIO_free(bio);
	return certificate;
}

EVP_PKEY *pem_key(const struct tls_library *library, struct span pem)
{
	BIO *bio = pem_open(library, pem);
	EVP_PKEY *key = bio ? library->PEM_read_bio_PrivateKey(bio, NULL, no_passphrase, NULL) : NULL;

	library->BIO_free(bio);
	return key;
}

/* ---- what stands in one ---- */

static int64_t ms_of(const struct tls_library *library, const ASN1_TIME *time)
{
	struct tm tm = {0};

	return library->ASN1_TIME_to_tm(time, &tm) == 1 ? (int64_t)timegm(&tm) * 1000 : 0;
}

static bool put_name(const struct tls_library *library, const GENERAL_NAME *name, char text[TLS_NAME_BYTES])
{
	const ASN1_STRING *value = name->type == GEN_DNS ? name->d.dNSName
		: name->type == GEN_IPADD                ? name->d.iPAddress
							 : NULL;
	int len = value ? library->ASN1_STRING_length(value) : 0;
	const unsigned char *data = value ? library->ASN1_STRING_get0_data(value) : NULL;

	if (!value)
		return false;
	if (name->type == GEN_IPADD)
		return (len == 4 || len == 16) &&
			inet_ntop(len == 4 ? AF_INET : AF_INET6, data, text, TLS_NAME_BYTES) != NULL;
	if (len <= 0 || len >= TLS_NAME_BYTES || memchr(data, 0, (size_t)len))
		return false;
	memcpy(text, data, (size_t)len);
	text[len] = 0;
	return true;
}

void certificate_facts(
	const struct tls_library *library, const X509 *certificate, struct tls_facts *ret_facts)
{
	struct tls_facts *facts = ret_facts;
	GENERAL_NAMES *names = library->X509_get_ext_d2i(certificate, NID_subject_alt_name, NULL, NULL);
	int count = names ? library->OPENSSL_sk_num((const OPENSSL_STACK *)names) : 0;

	facts->name_count = 0;
	facts->begins_ms = ms_of(library, library->X509_get0_notBefore(certificate));
	facts->ends_ms = ms_of(library, library->X509_get0_notAfter(certificate));
	for (int i = 0; i < count && facts->name_count < TLS_NAMES_MAX; i++) {
		const GENERAL_NAME *name = library->OPENSSL_sk_value((const OPENSSL_STACK *)names, i);
		facts->name_count += put_name(library, name, facts->names[facts->name_count]);
	}
	library->GENERAL_NAMES_free(names);
}

int tls_facts_read(struct span cert, struct tls_facts *ret_facts)
{
	const struct tls_library *library = tls_library();
	X509 *certificate = library ? pem_certificate(library, cert) : NULL;

	if (!certificate)
		return library ? -EINVAL : -ENOSYS;
	certificate_facts(library, certificate, ret_facts);
	library->X509_free(certificate);
	return 0;
}

/* An address has several spellings; it is compared in the one of the certificate. */
static struct span settled(struct span host, char text[TLS_NAME_BYTES])
{
	unsigned char address[sizeof(struct in6_addr)];

	if (host.len >= TLS_NAME_BYTES)
		return host;
	snprintf(text, TLS_NAME_BYTES, "%.*s", SPAN_ARGS(host));
	if (inet_pton(AF_INET6, text, address) == 1)
		inet_ntop(AF_INET6, address, text, TLS_NAME_BYTES);
	return span_of(text);
}

static bool is_name(const char *name, struct span host)
{
	const char *dot = name[0] == '*' && name[1] == '.' ? memchr(host.data, '.', host.len) : NULL;

	if (dot && dot > host.data) { /* the star stands for the first part alone */
		name++;
		host = (struct span){dot, (size_t)(host.data + host.len - dot)};
	}
	return strlen(name) == host.len && strncasecmp(name, host.data, host.len) == 0;
}

bool tls_facts_name(const struct tls_facts *facts, struct span host)
{
	char text[TLS_NAME_BYTES];
	uint32_t i = 0;

	host = settled(host, text);
	while (i < facts->name_count && !is_name(facts->names[i], host))
		i++;
	return host.len > 0 && i < facts->name_count;
}

/* By the functions that allocate nothing: EVP_Digest() sets the library up at its first call, and crashes if there is no memory for that. */
int tls_sha256(struct span bytes, unsigned char ret_hash[TLS_HASH_BYTES])
{
	const struct tls_library *library = tls_library();
	SHA256_CTX sum;

	if (!library)
		return -ENOSYS;
	bool done = library->SHA256_Init(&sum) == 1 &&
		library->SHA256_Update(&sum, bytes.data, bytes.len) == 1 &&
		library->SHA256_Final(ret_hash, &sum) == 1;
	return done ? 0 : -EIO;
}

int tls_hash(struct span pem, unsigned char ret_hash[TLS_HASH_BYTES])
{
	const struct tls_library *library = tls_library();
	X509 *certificate = library ? pem_certificate(library, pem) : NULL;
	unsigned len = TLS_HASH_BYTES;

	if (!certificate)
		return library ? -EINVAL : -ENOSYS;
	int done = library->X509_digest(certificate, library->EVP_sha256(), ret_hash, &len);
	library->X509_free(certificate);
	return done == 1 ? 0 : -ENOMEM;
}

/* ---- a client's ---- */

const char *tls_missing =
	"https needs OpenSSL 3 (libssl.so.3), which is not installed here; fix: apt install libssl3";

/* A certificate that is not trusted is told by the words of the connection. */
static void explain(const struct tls_library *library, struct tls *tls, X509 *certificate, int error)
{
	static struct tls_facts facts; /* one thread of a client makes handshakes */
	char begins[ISO_TIME_BYTES + 1], ends[ISO_TIME_BYTES + 1], now[ISO_TIME_BYTES + 1];
	char *text = tls_complaint_room(tls);

	if (certificate)
		certificate_facts(library, certificate, &facts);
	switch (error) {
	case X509_V_ERR_CERT_HAS_EXPIRED:
	case X509_V_ERR_CERT_NOT_YET_VALID:
		iso_time_put(facts.begins_ms, begins);
		iso_time_put(facts.ends_ms, ends);
		iso_time_put((int64_t)time(NULL) * 1000, now);
		snprintf(text, TLS_COMPLAINT_BYTES,
			"its certificate is valid from %s to %s, and the clock of this machine says %s",
			begins, ends, now);
		break;
	case X509_V_ERR_HOSTNAME_MISMATCH:
	case X509_V_ERR_IP_ADDRESS_MISMATCH:
		snprintf(text, TLS_COMPLAINT_BYTES, "its certificate is for %s%s, not for %s",
			facts.name_count > 0 ? facts.names[0] : "no name",
			facts.name_count > 1 ? " and others" : "", tls_host(tls));
		break;
	case X509_V_ERR_DEPTH_ZERO_SELF_SIGNED_CERT:
	case X509_V_ERR_SELF_SIGNED_CERT_IN_CHAIN:
	case X509_V_ERR_UNABLE_TO_GET_ISSUER_CERT:
	case X509_V_ERR_UNABLE_TO_GET_ISSUER_CERT_LOCALLY:
	case X509_V_ERR_UNABLE_TO_VERIFY_LEAF_SIGNATURE:
		snprintf(text, TLS_COMPLAINT_BYTES,
			"no authority that is trusted here has signed its certificate");
		break;
	default:
		snprintf(text, TLS_COMPLAINT_BYTES, "its certificate is refused: %s",
			library->X509_verify_cert_error_string(error));
		break;
	}
}

static int on_verified(int good, X509_STORE_CTX *context)
{
	const struct tls_library *library = tls_library();

	if (good)
		return 1;
	SSL *ssl =
		library->X509_STORE_CTX_get_ex_data(context, library->SSL_get_ex_data_X509_STORE_CTX_idx());
	explain(library, library->SSL_get_ex_data(ssl, 0), library->X509_STORE_CTX_get_current_cert(context),
		library->X509_STORE_CTX_get_error(context));
	return 0;
}

static int add_certificates(const struct tls_library *library, X509_STORE *store, struct span pem)
{
	BIO *bio = pem_open(library, pem);
	int added = 0, r = bio ? 0 : -EINVAL;
	X509 *certificate;

	while (r == 0 && (certificate = pem_next_certificate(library, bio))) {
		r = library->X509_STORE_add_cert(store, certificate) == 1 ? 0 : -ENOMEM;
		library->X509_free(certificate);
		added++;
	}
	library->ERR_clear_error();
	library->BIO_free(bio);
	return r == 0 && added == 0 ? -EINVAL : r;
}

/* The hashed directory: a hundredth of the time that the file with all certificates takes. */
static int fill_trust(const struct tls_library *library, SSL_CTX *context, struct span pem)
{
	static const unsigned char protocols[] = "\x08http/1.1";

	library->SSL_CTX_ctrl(context, SSL_CTRL_SET_MIN_PROTO_VERSION, TLS1_2_VERSION, NULL);
	library->SSL_CTX_ctrl(context, SSL_CTRL_SET_SESS_CACHE_MODE, SSL_SESS_CACHE_OFF, NULL);
	library->SSL_CTX_ctrl(context, SSL_CTRL_MODE, SSL_MODE_RELEASE_BUFFERS, NULL);
	library->SSL_CTX_set_options(context, SSL_OP_NO_COMPRESSION | SSL_OP_NO_RENEGOTIATION);
	library->SSL_CTX_set_verify(context, SSL_VERIFY_PEER, on_verified);
	if (library->SSL_CTX_set_alpn_protos(context, protocols, sizeof protocols - 1) != 0)
		return -ENOMEM;
	if (!pem.data)
		return library->SSL_CTX_set_default_verify_dir(context) == 1 ? 0 : -ENOMEM;
	return add_certificates(library, library->SSL_CTX_get_cert_store(context), pem);
}

int tls_trust_new(struct span pem, struct tls_trust **ret_trust, char complaint[TLS_COMPLAINT_BYTES])
{
	const struct tls_library *library = tls_library();
	struct tls_trust *trust = library ? calloc(1, sizeof *trust) : NULL;
	SSL_CTX *context = trust ? library->SSL_CTX_new(library->TLS_client_method()) : NULL;
	int r = context ? fill_trust(library, context, pem) : library ? -ENOMEM : -ENOSYS;

	if (r == 0) {
		*trust = (struct tls_trust){.library = library, .context = context};
		*ret_trust = trust;
		return 0;
	}
	snprintf(complaint, TLS_COMPLAINT_BYTES, "%s",
		r == -ENOSYS           ? tls_missing
			: r == -EINVAL ? "there is no certificate in it (\"-----BEGIN CERTIFICATE-----\" …)"
				       : "no memory");
	if (context)
		library->SSL_CTX_free(context);
	free(trust);
	return r;
}

void tls_trust_free(struct tls_trust *trust)
{
	if (trust) {
		trust->library->SSL_CTX_free(trust->context);
		buf_done(&trust->found);
	}
	free(trust);
}

/* ---- … that knows one hash ---- */

static X509 *find_pinned(const struct tls_trust *trust, const OPENSSL_STACK *shown)
{
	const struct tls_library *library = trust->library;
	unsigned char hash[TLS_HASH_BYTES];
	int count = shown ? library->OPENSSL_sk_num(shown) : 0;

	for (int i = 0; i < count; i++) {
		X509 *certificate = library->OPENSSL_sk_value(shown, i);
		unsigned len = sizeof hash;
		if (library->X509_digest(certificate, library->EVP_sha256(), hash, &len) == 1 &&
			trust->is_it(trust->is_it_context, hash))
			return certificate;
	}
	return NULL;
}

/* As a file of an authority has it. */
static int keep_found(struct tls_trust *trust, X509 *certificate)
{
	const struct tls_library *library = trust->library;
	BIO *bio = library->BIO_new(library->BIO_s_mem());
	char *data = NULL;
	int r = bio && library->PEM_write_bio_X509(bio, certificate) == 1 ? 0 : -ENOMEM;
	long len = r == 0 ? library->BIO_ctrl(bio, BIO_CTRL_INFO, 0, &data) : 0;

	buf_clear(&trust->found);
	if (r == 0)
		r = buf_put(&trust->found, data, (size_t)len);
	library->BIO_free(bio);
	return r;
}

/* The one that has the hash is trusted, as if it stood in a file; everything else is judged as always. */
static int verify_pinned(X509_STORE_CTX *context, void *pinned)
{
	struct tls_trust *trust = pinned;
	const struct tls_library *library = trust->library;
	SSL *ssl =
		library->X509_STORE_CTX_get_ex_data(context, library->SSL_get_ex_data_X509_STORE_CTX_idx());
	X509 *authority =
		find_pinned(trust, (const OPENSSL_STACK *)library->X509_STORE_CTX_get0_untrusted(context));
	OPENSSL_STACK *trusted = authority ? library->OPENSSL_sk_new_null() : NULL;

	if (!authority)
		snprintf(tls_complaint_room(library->SSL_get_ex_data(ssl, 0)), TLS_COMPLAINT_BYTES,
			"it does not show the authority that the code names");
	if (!trusted || library->OPENSSL_sk_push(trusted, authority) != 1) {
		library->OPENSSL_sk_free(trusted);
		return 0;
	}
	library->X509_STORE_CTX_set0_trusted_stack(context, (STACK_OF(X509) *)trusted);
	int good = library->X509_verify_cert(context) == 1 && keep_found(trust, authority) == 0;
	library->OPENSSL_sk_free(trusted);
	return good;
}

int tls_trust_pinned(
	tls_is_it is_it, void *context, struct tls_trust **ret_trust, char complaint[TLS_COMPLAINT_BYTES])
{
	struct tls_trust *trust;
	int r = tls_trust_new((struct span){0}, &trust, complaint);

	if (r < 0)
		return r;
	trust->is_it = is_it;
	trust->is_it_context = context;
	trust->found.max = PEM_BYTES_MAX;
	trust->library->SSL_CTX_set_cert_verify_callback(trust->context, verify_pinned, trust);
	*ret_trust = trust;
	return 0;
}

struct span tls_trust_found(const struct tls_trust *trust)
{
	return trust->found.len > 0 ? buf_span(&trust->found) : (struct span){0};
}

/* ---- a server's ---- */

/* One protocol; a client that offers others alone is told so by an alert. */
static int choose_protocol(SSL *ssl, const unsigned char **ret_name, unsigned char *ret_len,
	const unsigned char *offered, unsigned len, void *context)
{
	static const unsigned char name[] = "http/1.1";

	(void)ssl;
	(void)context;
	for (unsigned at = 0; at < len; at += 1u + offered[at]) {
		if (offered[at] == sizeof name - 1 && at + offered[at] < len &&
			memcmp(offered + at + 1, name, sizeof name - 1) == 0) {
			*ret_name = offered + at + 1;
			*ret_len = offered[at];
			return SSL_TLSEXT_ERR_OK;
		}
	}
	return SSL_TLSEXT_ERR_ALERT_FATAL;
}

/* TLS 1.2 with forward secrecy or 1.3; no renegotiation, compression, early data (which would repeat creates) or cache of sessions. */
static int fill_identity(const struct tls_library *library, SSL_CTX *context)
{
	library->SSL_CTX_ctrl(context, SSL_CTRL_SET_MIN_PROTO_VERSION, TLS1_2_VERSION, NULL);
	library->SSL_CTX_ctrl(context, SSL_CTRL_SET_SESS_CACHE_MODE, SSL_SESS_CACHE_OFF, NULL);
	library->SSL_CTX_ctrl(context, SSL_CTRL_MODE, SSL_MODE_RELEASE_BUFFERS, NULL);
	library->SSL_CTX_set_options(
		context, SSL_OP_NO_COMPRESSION | SSL_OP_NO_RENEGOTIATION | SSL_OP_CIPHER_SERVER_PREFERENCE);
	library->SSL_CTX_set_alpn_select_cb(context, choose_protocol, NULL);
	if (library->SSL_CTX_set_num_tickets(context, 1) != 1 ||
		library->SSL_CTX_set_cipher_list(context, "ECDHE+AESGCM:ECDHE+CHACHA20") != 1)
		return -ENOMEM;
	return 0;
}

__attribute__((format(printf, 2, 3))) static int complain(
	char complaint[TLS_COMPLAINT_BYTES], const char *format, ...)
{
	va_list list;

	va_start(list, format);
	vsnprintf(complaint, TLS_COMPLAINT_BYTES, format, list);
	va_end(list);
	return -EINVAL;
}

static int use_certificates(
	struct tls_identity *identity, struct span cert, int64_t wall_ms, char complaint[TLS_COMPLAINT_BYTES])
{
	const struct tls_library *library = identity->library;
	BIO *bio = pem_open(library, cert);
	X509 *certificate = bio ? pem_next_certificate(library, bio) : NULL;
	char begins[ISO_TIME_BYTES + 1], ends[ISO_TIME_BYTES + 1], now[ISO_TIME_BYTES + 1];
	int r = 0;

	if (!certificate)
		r = complain(complaint,
			"the certificate cannot be read: it is not PEM (\"-----BEGIN CERTIFICATE-----\" …)");
	else if (library->SSL_CTX_use_certificate(identity->context, certificate) != 1)
		r = complain(complaint, "OpenSSL does not take the certificate");
	else
		certificate_facts(library, certificate, &identity->facts);
	library->X509_free(certificate);
	while (r == 0 && (certificate = pem_next_certificate(library, bio))) {
		if (library->SSL_CTX_ctrl(identity->context, SSL_CTRL_CHAIN_CERT, 1, certificate) != 1)
			r = complain(complaint, "a certificate behind the first one is not taken");
		library->X509_free(certificate);
	}
	library->ERR_clear_error();
	library->BIO_free(bio);
	if (r == 0 && (wall_ms < identity->facts.begins_ms || wall_ms >= identity->facts.ends_ms)) {
		iso_time_put(identity->facts.begins_ms, begins);
		iso_time_put(identity->facts.ends_ms, ends);
		iso_time_put(wall_ms, now);
		r = complain(complaint,
			"the certificate is valid from %s to %s, and the clock of this machine says %s",
			begins, ends, now);
	}
	return r;
}

static bool is_same(const struct tls_library *library, const X509 *one, const X509 *other)
{
	unsigned char hashes[2][TLS_HASH_BYTES] = {{0}};
	unsigned len = TLS_HASH_BYTES;

	return library->X509_digest(one, library->EVP_sha256(), hashes[0], &len) == 1 &&
		library->X509_digest(other, library->EVP_sha256(), hashes[1], &len) == 1 &&
		memcmp(hashes[0], hashes[1], TLS_HASH_BYTES) == 0;
}

/* Does it stand in that file, too? */
static bool is_among(const struct tls_library *library, const X509 *certificate, struct span pem)
{
	BIO *bio = pem_open(library, pem);
	bool found = false;
	X509 *one;

	while (!found && bio && (one = pem_next_certificate(library, bio))) {
		found = is_same(library, one, certificate);
		library->X509_free(one);
	}
	library->ERR_clear_error();
	library->BIO_free(bio);
	return found;
}

/* Clients that trust it do not need it, and ignore it. A new machine knows only its hash. */
static int show_authority(
	struct tls_identity *identity, struct span cert, struct span ca, char complaint[TLS_COMPLAINT_BYTES])
{
	const struct tls_library *library = identity->library;
	X509 *authority = ca.len > 0 ? pem_certificate(library, ca) : NULL;
	int r = 0;

	library->ERR_clear_error();
	if (authority && !is_among(library, authority, cert) &&
		library->SSL_CTX_ctrl(identity->context, SSL_CTRL_CHAIN_CERT, 1, authority) != 1)
		r = complain(complaint, "OpenSSL does not take the certificate of the authority");
	library->X509_free(authority);
	return r;
}

static int use_key(struct tls_identity *identity, struct span pem, char complaint[TLS_COMPLAINT_BYTES])
{
	const struct tls_library *library = identity->library;
	EVP_PKEY *key = pem_key(library, pem);
	int r = 0;

	if (!key)
		r = complain(complaint,
			"the key cannot be read: it is not PEM, or a passphrase protects it, which nobody could type here");
	else if (library->SSL_CTX_use_PrivateKey(identity->context, key) != 1 ||
		library->SSL_CTX_check_private_key(identity->context) != 1)
		r = complain(complaint, "the key and the certificate do not belong together");
	library->EVP_PKEY_free(key);
	library->ERR_clear_error();
	return r;
}

int tls_identity_new(struct span cert, struct span key, struct span ca, int64_t wall_ms,
	struct tls_identity **ret_identity, char complaint[TLS_COMPLAINT_BYTES])
{
	const struct tls_library *library = tls_library();
	struct tls_identity *identity = library ? calloc(1, sizeof *identity) : NULL;
	SSL_CTX *context = identity ? library->SSL_CTX_new(library->TLS_server_method()) : NULL;
	int r = context ? fill_identity(library, context) : library ? -ENOMEM : -ENOSYS;

	if (r < 0)
		snprintf(complaint, TLS_COMPLAINT_BYTES, "%s", r == -ENOSYS ? tls_missing : "no memory");
	if (identity)
		*identity = (struct tls_identity){.library = library, .context = context};
	if (r == 0)
		r = use_certificates(identity, cert, wall_ms, complaint);
	if (r == 0)
		r = show_authority(identity, cert, ca, complaint);
	if (r == 0)
		r = use_key(identity, key, complaint);
	if (r == 0)
		*ret_identity = identity;
	else
		tls_identity_free(identity);
	return r;
}

void tls_identity_free(struct tls_identity *identity)
{
	if (identity && identity->context)
		identity->library->SSL_CTX_free(identity->context);
	free(identity);
}

const struct tls_facts *tls_identity_facts(const struct tls_identity *identity)
{
	return &identity->facts;
}
