#include "config/server_place.h"

#include <errno.h>
#include <stdio.h>
#include <string.h>

#include "config/config.h"

static int find_address(const struct server_place_flags *flags, const char *home, struct server_place *place,
	char complaint[SERVER_PLACE_COMPLAINT_BYTES])
{
	const char *given = flags->url ? flags->url : flags->home ? NULL : config_variable("STINT_URL");
	const char *reason = "";

	if (given)
		snprintf(place->url, sizeof place->url, "%s", given);
	else
		snprintf(place->url, sizeof place->url, "unix:%s/stint.sock", home);
	if (http_address_parse(place->url, &place->address, &reason) == 0)
		return 0;
	snprintf(complaint, SERVER_PLACE_COMPLAINT_BYTES, "%s is no address of a server: %s", place->url,
		reason);
	return -EINVAL;
}

static int find_token(const struct server_place_flags *flags, const char *home, struct server_place *place,
	char complaint[SERVER_PLACE_COMPLAINT_BYTES])
{
	const char *text = flags->token ? flags->token
		: flags->token_file     ? NULL
					: config_variable("STINT_TOKEN");
	const char *file = flags->token_file ? flags->token_file
		: text                       ? NULL
					     : config_variable("STINT_TOKEN_FILE");
	char own[4200];

	snprintf(own, sizeof own, "%s/admin.token", home);
	if (text) {
		snprintf(place->token, sizeof place->token, "%s", text);
	} else if (file) {
		int r = config_read_line(file, place->token, sizeof place->token);
		if (r < 0) {
			snprintf(complaint, SERVER_PLACE_COMPLAINT_BYTES, "cannot read a token from %s: %s",
				file, strerror(-r));
			return -EINVAL;
		}
	} else if (!http_address_is_loopback(&place->address) ||
		config_read_line(own, place->token, sizeof place->token) < 0) {
		place->token[0] = 0;
	}
	for (const char *at = place->token; *at; at++) {
		if ((unsigned char)*at > ' ' && (unsigned char)*at < 127)
			continue;
		snprintf(complaint, SERVER_PLACE_COMPLAINT_BYTES, "that is not a token");
		return -EINVAL;
	}
	return 0;
}

int server_place_find(const struct server_place_flags *flags, const char *home,
	struct server_place *ret_place, char complaint[SERVER_PLACE_COMPLAINT_BYTES])
{
	int r = find_address(flags, home, ret_place, complaint);

	return r < 0 ? r : find_token(flags, home, ret_place, complaint);
}
