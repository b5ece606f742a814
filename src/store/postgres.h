/*
 * The PostgreSQL backend: one server writes, and PostgreSQL itself decides which.
 */
#pragma once

#include "store/backend.h"

struct postgres_options {
	const char *url;    /* postgres://…; "schema=NAME" among its parameters is ours */
	const char *holder; /* who leads, for people: host and process */
	uint32_t
		patience_ms; /* how long a lost connection is looked for before the turn under way is given up; 0: 3 s */
	uint32_t
		look_away_ms; /* how long another holder may say nothing before it is taken for gone; 0: 3 s */
	/* Another server leads: called between two looks, with its name. Non-zero ends the open with that fault. May be NULL. */
	int (*stand_by)(void *context, const char *leader);
	void *context;
};

/* Is it the URL of such a store? */
bool postgres_is_url(const char *url);

/* The URL without its password, for people, in memory that the caller frees; NULL: there is no memory. */
char *postgres_url_for_people(const char *url);

/* 0, once this server leads. -ENOTSUP: the library libpq is not on this machine; -EPROTO: the schema is not ours, or of a newer
 * release; -EPERM: the role may not; other faults. On failure *ret_complaint, if given, is a sentence for people that the caller
 * frees. */
int postgres_open(const struct postgres_options *options, struct backend **ret_backend, char **ret_complaint);
