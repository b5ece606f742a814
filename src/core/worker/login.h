/*
 * Browsers: a code for once becomes a session.
 *
 *	CODE ──login, within 5 min──▶ SESSION ──logout, or its code is shown again──▶ ENDED
 *
 * One record is the code and the session that it becomes. It keeps hashes: of the code, of the cookie, and of the page's key,
 * which the browser keeps per origin. A cookie reaches every port of its host, so the cookie alone opens nothing.
 */
#pragma once

#include <stdbool.h>
#include <stdint.h>

#include "core/worker/token.h"

/* Stored numbers. */
enum login_state { LOGIN_CODE = 1, LOGIN_SESSION = 2, LOGIN_ENDED = 3 };

enum {
	LOGIN_ID_BYTES_MAX = 17,   /* 16 digits and a NUL */
	LOGIN_NAME_BYTES_MAX = 65, /* with its NUL */
	LOGIN_CODE_MS = 5 * 60 * 1000,
	LOGIN_IDLE_MS = 2 * 3600 * 1000,
	LOGIN_LIVES_MS = 12 * 3600 * 1000,
	LOGIN_ADMIN_MS = 15 * 60 * 1000, /* an admin's session is an operator's after that */
	LOGIN_KEPT_MS = 3600 * 1000,     /* how long an ended session is listed */
	LOGIN_CODES_MAX = 64,            /* open codes of one maker */
	LOGINS_MAX = 4096,
};

struct browser_login {
	char id[LOGIN_ID_BYTES_MAX];
	enum login_state state;
	enum token_kind role; /* viewer, approver, operator or admin */
	char maker
		[TOKEN_ID_TEXT_MAX]; /* id of the token that made the code; "admin" for the one in admin.token */
	uint32_t principal;          /* of the maker: the session acts for it */
	char name[LOGIN_NAME_BYTES_MAX];
	int64_t made_ms, used_ms, ended_ms; /* wall; 0: not yet */
	unsigned char code_hash[TOKEN_HASH_BYTES], cookie_hash[TOKEN_HASH_BYTES], key_hash[TOKEN_HASH_BYTES];
	int64_t seen_ms; /* lease clock, in memory only: the login or the last request; 0: none since the server started */
};

bool login_is_sound(const struct browser_login *login);

/* May the code still be used? */
bool login_takes_code(const struct browser_login *login, int64_t wall_ms);

/* A session that has neither ended nor reached its age. */
bool login_is_open(const struct browser_login *login, int64_t wall_ms);

/* Nobody needs the record any more. */
bool login_is_stale(const struct browser_login *login, int64_t wall_ms);

/* What the session may do now: an admin's is an operator's once its code is old. */
enum token_kind login_role(const struct browser_login *login, int64_t wall_ms);

/* Is it one of the roles that a person in a browser can have? */
bool login_role_is_known(enum token_kind role);
