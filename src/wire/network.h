/*
 * Where a message may go. The check is made on the address that is connected to, not on the name that led there: a name
 * can mean something else a moment later.
 */
#pragma once

#include <stdbool.h>
#include <sys/socket.h>

enum {
	NETWORK_TEXT_BYTES = 64, /* of an address */
};

struct network {
	int family;
	unsigned char bytes[16];
	unsigned bits; /* length of the prefix */
};

/* "10.0.0.0/8", "::1". False: the text is not a network. */
bool network_parse(const char *text, struct network *ret_network);
bool network_has(const struct network *network, const struct sockaddr *address);

/* Is it a public address: not of this machine, of a private network or of a cloud's own services, and not a form that embeds
 * another address? */
bool address_is_public(const struct sockaddr *address);
void address_put(const struct sockaddr *address, char text[NETWORK_TEXT_BYTES]);
