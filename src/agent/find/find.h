/*
 * Where the agents of this machine are, and with which login each is run.
 */
#pragma once

#include "agent/adapter/adapter.h"
#include "base/arena.h"

/* The program of an agent: along PATH, then where installers put it in that home (~/.local/bin, npm, nvm, volta, bun, pnpm). In
 * the arena; NULL: it is not there. */
const char *agent_find(struct arena *arena, const char *name, const char *path, const char *home);

enum login_kind {
	LOGIN_NONE,
	LOGIN_KEY, /* a key or long-lived token of the operator, by variable */
	LOGIN_PERSON, /* the person's access token, which is handed over alone: no refresh token leaves their home */
	LOGIN_OWN, /* a token that was given to `stint agent login` */
};

struct login {
	enum login_kind kind;
	const char *variable; /* in which it goes in */
	const char *token;    /* in the arena */
	int64_t until_ms;     /* wall; 0: not known */
	bool too_short; /* LOGIN_NONE: the person is logged in, but the token ends before the attempt may */
};

/* The login for an attempt that may take until `needed_ms` (wall). `env` are variables of the executor (NAME=value, NULL at the
 * end) and count first; then our own environment, the person's home, and the state directory. */
void login_find(struct login *login, struct arena *arena, const struct adapter *adapter,
	const char *const *env, const char *home, const char *state, int64_t needed_ms);

/* "key ANTHROPIC_API_KEY", "your login, until 14:20", "none". */
const char *login_describe(const struct login *login, struct arena *arena, int64_t now_ms);

/* Keeps a token for this agent in the state directory, 0600. */
int login_keep(const char *state, const struct adapter *adapter, struct span token);
