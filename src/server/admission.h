/*
 * Who may come in: every request passes here before the API sees it.
 */
#pragma once

#include <stdbool.h>
#include <stdint.h>

#include "core/worker/token.h"
#include "server/mint.h"
#include "server/net/sources.h"

struct exchange;
struct http_request;
struct payer_key;
struct browser_login;
struct options;
struct server;

enum {
	SEALS_MAX = 4096,
	SEAL_BYTES = 16,
	ADMISSION_HOSTS_MAX = 4,
};

/* A secret that was right a moment ago: see admission.c. */
struct known_secret {
	unsigned char seal[SEAL_BYTES];
	/* `token` is valid while `changes` equals the store's count of token changes; NULL: the admin token. */
	const struct token *token;
	uint64_t changes; /* UINT64_MAX: the token is not known */
};

struct admission {
	unsigned char admin_hash[TOKEN_HASH_BYTES]; /* of the token in admin.token, which no API revokes */
	char admin_id[TOKEN_BYTES_MAX];
	unsigned char nobody_hash[TOKEN_HASH_BYTES]; /* compared with when the token does not exist */
	unsigned char seal_key[SEAL_BYTES];
	struct known_secret known[SEALS_MAX];
	char hosts[ADMISSION_HOSTS_MAX][300]; /* allowed values of Host */
	uint32_t host_count;
	bool any_host;
	char port[8];
	/* The cookie of browser sessions: stint_PORT, because cookies know no port; __Host-stint_PORT by https. `front_cookie` is
	 * for those who come by publicUrl: beneath a path it has that path, which __Host- forbids. */
	struct login_cookie {
		char name[32];
		const char *path;
		bool secure;
	} cookie, front_cookie;
};

void admission_init(
	struct admission *admission, const struct options *options, uint16_t port, const char *admin_token);

/* Whose is the head of a request whose body is still on its way? False: of nobody; a wrong credential counts for its source. */
bool admission_payer(struct server *server, const struct source_key *source, const struct http_request *head,
	struct payer_key *ret_key, uint32_t *ret_scopes);

/* The cookie for a browser that sent this request. */
const struct login_cookie *admission_cookie(const struct server *server, const struct http_request *request);

/* The session whose cookie the request shows, open or not; NULL: none. The cookie alone opens nothing. */
const struct browser_login *admission_cookie_login(struct server *server, const struct http_request *request);

/* May the request in, and as whom? False: the exchange has its reply. */
bool admission_pass(struct server *server, struct exchange *exchange);

/* Is the credential of the exchange still valid? For exchanges that stay long: waiting claims, reads, streams. */
bool admission_is_still_good(struct server *server, const struct exchange *exchange);
