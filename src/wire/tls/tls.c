#include "wire/tls/tls.h"

#include <arpa/inet.h>
#include <assert.h>
#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "wire/tls/certificate.h"

struct tls {
	const struct tls_library *library;
	SSL *ssl;
	BIO *in, *out; /* the ssl's */
	bool is_open;
	const char *host; /* of a client; its copy stands behind the struct */
	char complaint[TLS_COMPLAINT_BYTES];
};

char *tls_complaint_room(struct tls *tls)
{
	return tls->complaint;
}

const char *tls_complaint(const struct tls *tls)
{
	return tls->complaint;
}

const char *tls_host(const struct tls *tls)
{
	return tls->host;
}

bool tls_is_open(const struct tls *tls)
{
	return tls->is_open;
}

/* ---- life ---- */

static struct tls *new_end(const struct tls_library *library, SSL_CTX *context, const char *host)
{
	size_t len = strlen(host) + 1;
	struct tls *tls = calloc(1, sizeof *tls + len);

	if (!tls)
		return NULL;
	tls->library = library;
	tls->host = memcpy(tls + 1, host, len);
	tls->ssl = library->SSL_new(context);
	tls->in = library->BIO_new(library->BIO_s_mem());
	tls->out = library->BIO_new(library->BIO_s_mem());
	if (tls->ssl && tls->in && tls->out && library->SSL_set_ex_data(tls->ssl, 0, tls) == 1) {
		library->SSL_set0_rbio(tls->ssl, tls->in);
		library->SSL_set0_wbio(tls->ssl, tls->out);
		return tls;
	}
	library->BIO_free(tls->in);
	library->BIO_free(tls->out);
	library->SSL_free(tls->ssl);
	free(tls);
	return NULL;
}

void tls_free(struct tls *tls)
{
	if (tls)
		tls->library->SSL_free(tls->ssl); /* with both BIOs */
	free(tls);
}

static bool is_address(const char *host)
{
	unsigned char address[sizeof(struct in6_addr)];

	return inet_pton(AF_INET, host, address) == 1 || inet_pton(AF_INET6, host, address) == 1;
}

/* Addresses have no name to be told to the server (RFC 6066). */
static bool expect_host(const struct tls *tls)
{
	const struct tls_library *library = tls->library;
	X509_VERIFY_PARAM *expected = library->SSL_get0_param(tls->ssl);

	if (is_address(tls->host))
		return library->X509_VERIFY_PARAM_set1_ip_asc(expected, tls->host) == 1;
	library->X509_VERIFY_PARAM_set_hostflags(
		expected, X509_CHECK_FLAG_NO_PARTIAL_WILDCARDS | X509_CHECK_FLAG_NEVER_CHECK_SUBJECT);
	return library->X509_VERIFY_PARAM_set1_host(expected, tls->host, strlen(tls->host)) == 1 &&
		library->SSL_ctrl(tls->ssl, SSL_CTRL_SET_TLSEXT_HOSTNAME, TLSEXT_NAMETYPE_host_name,
			(void *)tls->host) == 1;
}

struct tls *tls_client_new(const struct tls_trust *trust, const char *host)
{
	struct tls *tls = new_end(trust->library, trust->context, host);

	if (tls && !expect_host(tls)) {
		tls_free(tls);
		return NULL;
	}
	if (tls)
		tls->library->SSL_set_connect_state(tls->ssl);
	return tls;
}

struct tls *tls_server_new(const struct tls_identity *identity)
{
	struct tls *tls = new_end(identity->library, identity->context, "");

	if (tls)
		tls->library->SSL_set_accept_state(tls->ssl);
	return tls;
}

/* ---- bytes ---- */

int tls_hear(struct tls *tls, struct span bytes)
{
	assert(bytes.len <= INT32_MAX);
	if (bytes.len == 0)
		return 0;
	return tls->library->BIO_write(tls->in, bytes.data, (int)bytes.len) == (int)bytes.len ? 0 : -ENOMEM;
}

struct span tls_output(const struct tls *tls)
{
	char *data = NULL;
	long len = tls->library->BIO_ctrl(tls->out, BIO_CTRL_INFO, 0, &data);

	return len > 0 ? (struct span){data, (size_t)len} : (struct span){0};
}

void tls_output_sent(struct tls *tls, size_t len)
{
	char away[4096];

	while (len > 0) {
		int got = tls->library->BIO_read(
			tls->out, away, len < sizeof away ? (int)len : (int)sizeof away);
		assert(got > 0);
		len -= (size_t)got;
	}
}

/* Of a call that returned no success. */
static int fault_of(struct tls *tls, int returned)
{
	const struct tls_library *library = tls->library;

	switch (library->SSL_get_error(tls->ssl, returned)) {
	case SSL_ERROR_WANT_READ:
	case SSL_ERROR_WANT_WRITE: /* not with memory alone */
		return 0;
	case SSL_ERROR_ZERO_RETURN:
		return -EPIPE;
	}
	const char *reason = library->ERR_reason_error_string(library->ERR_peek_last_error());
	bool is_told = tls->complaint[0] != 0; /* by the look at the certificate */
	if (!is_told)
		snprintf(tls->complaint, sizeof tls->complaint,
			"the other end does not speak TLS as we do: %s",
			reason ? reason : "no reason is known");
	library->ERR_clear_error();
	return is_told ? -EKEYREJECTED : -EPROTO;
}

int tls_shake(struct tls *tls)
{
	if (tls->is_open)
		return 1;
	tls->library->ERR_clear_error();
	int done = tls->library->SSL_do_handshake(tls->ssl);
	tls->is_open = done == 1;
	if (done == 1)
		return 1;
	int r = fault_of(tls, done);
	return r == -EPIPE ? -EPROTO : r;
}

ssize_t tls_read(struct tls *tls, char *at, size_t room)
{
	tls->library->ERR_clear_error();
	int got = tls->library->SSL_read(tls->ssl, at, room < INT32_MAX ? (int)room : INT32_MAX);

	return got > 0 ? got : fault_of(tls, got);
}

int tls_write(struct tls *tls, struct span bytes)
{
	assert(bytes.len <= TLS_RECORD_BYTES);
	if (bytes.len == 0)
		return 0;
	tls->library->ERR_clear_error();
	int put = tls->library->SSL_write(tls->ssl, bytes.data, (int)bytes.len);
	if (put == (int)bytes.len)
		return 0;
	int r = fault_of(tls, put);
	return r < 0 ? r : -EPROTO; /* it may not put a part off */
}

void tls_say_goodbye(struct tls *tls)
{
	if (!tls->is_open)
		return;
	tls->library->ERR_clear_error();
	tls->library->SSL_shutdown(tls->ssl);
	tls->library->ERR_clear_error();
}
