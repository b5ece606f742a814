/*
 * The PostgreSQL backend: one server writes, and PostgreSQL itself decides which.
 */
#pragma once

#include "store/backend.h"

enum {
	LEADER_NAME_BYTES = 256,
	LEADER_URL_BYTES = 400,
};

/* Who leads, as a server that stands by sees it. */
struct postgres_leader {
	char name[LEADER_NAME_BYTES]; /* host and process */
	char url[LEADER_URL_BYTES];   /* where clients reach it; empty: it did not say */
	int64_t since_ms;             /* wall: when it took the lead */
	int64_t turn;                 /* its last one */
	int64_t term;
	bool is_synchronous; /* its commits wait for a standby of PostgreSQL */
	const char
		*away; /* PostgreSQL cannot be reached, and the rest is what was seen last: why; else NULL */
};

struct postgres_options {
	const char *url;        /* postgres://…; "schema=NAME" among its parameters is ours */
	const char *holder;     /* who leads, for people: host and process */
	const char *leader_url; /* where clients reach us when we lead; NULL: nowhere */
	uint32_t
		patience_ms; /* how long a lost connection is looked for before the turn under way is given up; 0: 3 s */
	uint32_t
		look_away_ms; /* how long another holder may say nothing before it is taken for gone; 0: 3 s */
	/* Another server leads, or PostgreSQL is away: called between two looks. Non-zero ends the open with that fault. NULL: a
	 * database that is away is a fault. */
	int (*stand_by)(void *context, const struct postgres_leader *leader);
	void *context;
};

/* Who leads, seen from the one that does. False: the store is not in PostgreSQL. */
bool postgres_leads(const struct backend *backend, struct postgres_leader *ret_leader);

/* Is it the URL of such a store? */
bool postgres_is_url(const char *url);

/* The URL without its password, for people, in memory that the caller frees; NULL: there is no memory. */
char *postgres_url_for_people(const char *url);

/* 0, once this server leads. -ENOTSUP: the library libpq is not on this machine; -EPROTO: the schema is not ours, or of a newer
 * release; -EPERM: the role may not; other faults. On failure *ret_complaint, if given, is a sentence for people that the caller
 * frees. */
int postgres_open(const struct postgres_options *options, struct backend **ret_backend, char **ret_complaint);

/* To read alone, as of now, whoever leads: one snapshot, and nothing is changed. Faults as above; -EPROTO: an older schema, too. */
int postgres_open_to_look(const char *url, struct backend **ret_backend, char **ret_complaint);

/* The rows that the transaction has put are sent, and forgotten here: for a transaction that does not fit into memory. */
int postgres_spill(struct backend *backend);

/* What is in memory may be answered from only by the leader: 0 if PostgreSQL was heard from within the last `ms`, or says now that we
 * still lead. -ESTALE: another server does. -EROFS: it cannot be reached. Between transactions. */
int postgres_confirm(struct backend *backend, uint32_t ms);
