/*
 * stint agent: which agents are installed here, with which login each would run, and a login of stint's own.
 *
 *	agent ls            every agent that is found, or that the configuration names
 *	agent show NAME     one of them, with everything that an attempt is granted
 *	agent test NAME     is its program there, can it be started, does it have a login? Asks no model
 *	agent login NAME    keeps a token, which is read from standard input
 */
#pragma once

#include "worker/settings/settings.h"

struct agents_request {
	const char *action, *name; /* NULL: not given */
	const char *home;          /* the state directory */
	bool json;
};

/* The status to end with. */
int agents_run(const struct settings *settings, const struct agents_request *request);
