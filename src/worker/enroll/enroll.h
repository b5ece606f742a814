/*
 * stint-worker enroll: a machine becomes a worker of a server. It shows a join code and gets a credential of its own.
 *
 *	make a secret, on disk ──▶ connect ──the authority has the hash of the code──▶ show the code and the hash of the secret
 *	                               └──any other──▶ nothing was sent                        │
 *	                      the credential takes its place, with address and authority ◀──────┘
 *
 * Whatever ends it in the middle, the same command again goes on: the server answers the same code and hash as before.
 */
#pragma once

#include <stdbool.h>

struct enrol_request {
	const char *url, *code, *home;
	const char *name; /* what this machine is called; NULL: its host name */
	const char *ca;   /* file with the authority; NULL: the code names it, or the system knows it */
	bool plain;       /* the code may go in the clear */
	bool json;
};

/* The status to end with. */
int enrol_run(const struct enrol_request *request);
