/*
 * Where a program that serves finds the server, and with which token. It waits for a server that is not there yet, so
 * unlike for a command nothing of it is looked at.
 *
 *	the server   --url, else STINT_URL unless --home is given, else the socket of the state directory
 *	the token    --token, --token-file, STINT_TOKEN, STINT_TOKEN_FILE, admin.token of the state directory
 *
 * The admin token is for this computer: it is read only when the server is reached by socket or loopback.
 */
#pragma once

#include <stddef.h>

#include "wire/http/client.h"

struct server_place_flags {
	const char *url, *home, *token, *token_file; /* NULL: not given */
};

struct server_place {
	struct http_address address;
	char url[4200];
	char token[600]; /* empty: none; a server that asks for one will say so */
};

enum {
	SERVER_PLACE_COMPLAINT_BYTES = 5000,
};

/* `home` is the state directory. -EINVAL: the complaint says what is wrong. */
int server_place_find(const struct server_place_flags *flags, const char *home,
	struct server_place *ret_place, char complaint[SERVER_PLACE_COMPLAINT_BYTES]);
