/*
 * How stintd was asked to run: flags, over $STINT_HOME/config.json, over defaults.
 */
#pragma once

#include <stdbool.h>
#include <stdint.h>

#include "store/store.h"

enum {
	OPTIONS_PATH_MAX = 4096,
};

struct options {
	char home[OPTIONS_PATH_MAX];
	char store[OPTIONS_PATH_MAX];  /* path of the SQLite file */
	char config[OPTIONS_PATH_MAX]; /* "" = home/config.json, if it is there */
	char host[256];
	uint16_t port;
	bool behind_proxy;
	bool auth_open; /* "auth": "open": whoever shows no token is let in */
	bool help, version;
	uint32_t sweep_ms;
	uint32_t auth_failures_per_s; /* of one source: then it waits */
	uint32_t strangers_max;       /* connections of one source that have shown no good credential */
	uint32_t in_flight_max;       /* commands of one principal in one turn, while others want one */
	uint32_t streams_max;         /* of one principal */
	struct store_options storage;
};

/* 0; or an exit status (2: usage, 78: configuration) after one clear sentence on stderr. */
int options_read(int argc, char **argv, struct options *ret_options);
