/*
 * stint agent: which agents are installed here, with which login each would run, and a login of stint's own.
 *
 *	agent ls            every agent that is found, or that the configuration names
 *	agent show NAME     one of them, with everything that an attempt is granted
 *	agent test NAME     is its program there, can it be started, does it have a login? Asks no model. If so, a hold of its account that
 *	                    a failed login has opened is ended
 *	agent login NAME    keeps a token, which is read from standard input
 */
#pragma once

#include "config/server_place.h"
#include "worker/settings/settings.h"

struct agents_request {
	const char *action, *name; /* NULL: not given */
	const char *home;          /* the state directory */
	struct server_place_flags server;
	bool json;
};

/* The status to end with. */
int agents_run(const struct settings *settings, const struct agents_request *request);
