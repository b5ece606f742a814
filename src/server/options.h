/*
 * How stintd was asked to run. The keys, and where their values come from, are the room config's.
 */
#pragma once

#include <stdbool.h>
#include <stdint.h>

#include "api/flow/workflow_form.h"
#include "base/log.h"
#include "config/config.h"
#include "server/front.h"
#include "store/store.h"

enum {
	OPTIONS_PATH_MAX = 4096,
};

struct tls_identity;

struct options {
	struct config config;
	const char *home;
	const char *
		store; /* path of the SQLite file; of a store in PostgreSQL its URL for people, without a password */
	const char *store_url;  /* of a store in PostgreSQL; else NULL */
	char *shown_url;        /* what `store` points to then */
	const char *restore;    /* path of a backup that replaces the store, then stintd ends; NULL: serve */
	bool check_store;       /* look at the store, say what is wrong with it, and end */
	const char *check_path; /* … at this file; NULL: the configured store */
	bool accept_loss;       /* serve what is left of a store that has lost something */
	bool new_store;         /* put the store that is there aside and begin a new one */
	uint32_t leader_lease_ms; /* of a store in PostgreSQL */
	const char *leader_url;   /* where we are reached when we lead; empty: where we listen */
	char host[256];
	uint16_t port;
	bool behind_proxy;
	struct front front;
	const char *tls_cert, *tls_key, *tls_ca; /* paths; "": none */
	struct tls_identity *identity;           /* what these files hold; NULL: TCP without TLS */
	bool auth_open;                          /* "auth": "open": a request without a token is let in */
	const char *ui_dir;                      /* where the dashboard's files are; NULL: in the program */
	bool help, version;
	bool check_config, json;
	uint32_t sweep_ms;
	uint32_t auth_failures_per_s; /* of one source; after more it has to wait */
	uint32_t strangers_max;       /* connections of one source that have shown no valid credential */
	uint32_t in_flight_max;     /* commands of one principal in one turn, while others want a turn, too */
	uint32_t streams_max;       /* of one principal */
	const char *default_queues; /* "a,b", for /api/workqueue */
	uint64_t disk_low_bytes;    /* 0: by the size of the file system */
	uint64_t slow_turn_ms;
	const char *heartbeat_file; /* path; empty: no such file */
	bool heartbeat_array;
	uint32_t heartbeat_interval_ms;
	enum log_level log_level;
	enum log_format log_format;
	struct store_options storage;
	struct workflow_form workflows;
};

/* 0; or an exit status (2: usage, 78: configuration) after all mistakes were printed to stderr. With
 * --check-config the configuration is printed. To be ended with options_done() in any case. */
int options_read(int argc, char **argv, struct options *ret_options);
void options_done(struct options *options);
