/*
 * Where a program finds the server, and with which token it comes.
 *
 *	the server   --url, else STINT_URL unless --home is given, else the one of the state directory: its socket, or what
 *	             its file `url` says. --url and STINT_URL may be several servers of one store, with commas between them
 *	the token    --token, --token-file, STINT_TOKEN, STINT_TOKEN_FILE, admin.token of the state directory: the first
 *
 *	its CA       --ca, STINT_CA, else that of the state directory if the server is found through it or on this computer, else
 *	             the authorities that the system trusts
 *
 * A worker whose state directory is that of an enrolled machine (see config/machine.h) and that was told no server finds all three
 * there.
 *
 * No credential goes in the clear to another computer: http to an address that is not loopback wants --plain.
 *
 * A command looks whether there is a server now. A program that serves waits for one: it takes the path of the socket though
 * there is no socket yet. The admin token is for this computer: it is read only when the server is reached by socket or
 * loopback, so that a wrong address does not send it into the world.
 */
#pragma once

#include <stdbool.h>
#include <stddef.h>

#include "wire/http/client.h"

struct server_place_flags {
	const char *url, *home, *token, *token_file, *ca; /* NULL: not given */
	bool plain;                                       /* a credential may go in the clear */
	bool looks;                                       /* for a command */
	bool enrols; /* for a worker: it takes the server, token and authority that an enrolment left in the state directory */
};

struct server_place {
	struct http_address address;
	char url[4200];
	char token[600];       /* empty: none; a server that asks for one will say so */
	char token_from[4300]; /* a flag, a variable or a file, for messages */
};

enum {
	SERVER_PLACE_COMPLAINT_BYTES = 5000,
};

/* `home` is the state directory, or empty. The complaint says what is wrong:
 *   -EINVAL        not an address
 *   -EKEYREJECTED  not a token
 *   -ENOKEY        a file with a token that cannot be read
 *   -ENOENT        a command finds no server in the state directory
 *   -EACCES        … and may not look into it
 *   -EPERM         the credential would go in the clear
 *   -ENOSYS        https, without OpenSSL on this computer; -ENOMEM
 * An address of https has its trust then, which is never freed. */
int server_place_find(const struct server_place_flags *flags, const char *home,
	struct server_place *ret_place, char complaint[SERVER_PLACE_COMPLAINT_BYTES]);
