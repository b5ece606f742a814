/*
 * Where the server is, and with which token.
 *
 *	the server   --url, --home, STINT_URL, STINT_HOME, the home directory's own state directory: the first one.
 *	             In a state directory it is the socket, or else what the file `url` says.
 *	the token    --token, --token-file, STINT_TOKEN, STINT_TOKEN_FILE, admin.token of the state directory.
 *
 * The admin token is for this computer: it is read only when the server is reached by socket or loopback, so that a
 * wrong address does not send it into the world.
 */
#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "base/take.h"
#include "cli/frame/cli.h"
#include "config/config.h"

int place_home(struct cli *cli, char *ret_home, size_t room)
{
	const char *flag = args_text(&cli->args, "home"), *home = config_variable("STINT_HOME");

	if (!flag && !home) {
		if (config_usual_home(ret_home, room))
			return 0;
		return cli_fail(cli, EXIT_USAGE, "no_home", "export STINT_HOME=/path/of/the/state",
			"there is no state directory to look into");
	}
	if ((size_t)snprintf(ret_home, room, "%s", flag ? flag : home) >= room)
		return cli_fail(
			cli, EXIT_USAGE, "invalid", NULL, "the path of the state directory is too long");
	return 0;
}

static int set_address(struct cli *cli, const char *url, const char *from)
{
	struct place *place = &cli->place;
	const char *complaint = NULL;

	if ((size_t)snprintf(place->url, sizeof place->url, "%s", url) >= sizeof place->url)
		return cli_fail(cli, EXIT_USAGE, "invalid", NULL, "%s: the address is too long", from);
	if (http_address_parse(url, &place->address, &complaint) < 0)
		return cli_fail(cli, EXIT_USAGE, "invalid", "stint --url http://127.0.0.1:8787 ls",
			"%s says \"%s\": %s", from, url, complaint);
	return 0;
}

/* The socket if there is one: it has no port to guess and nobody else's server behind it. */
static int find_in_home(struct cli *cli)
{
	struct place *place = &cli->place;
	char path[1200], url[1280];

	snprintf(path, sizeof path, "%s/stint.sock", place->home);
	if (access(path, F_OK) == 0 && strlen(path) < sizeof place->address.path) {
		snprintf(url, sizeof url, "unix:%s", path);
		return set_address(cli, url, "the state directory");
	}
	snprintf(path, sizeof path, "%s/url", place->home);
	int r = config_read_line(path, url, sizeof url);
	if (r == 0)
		return set_address(cli, url, path);
	if (r == -EACCES)
		return cli_fail(cli, EXIT_UNAUTHORISED, "forbidden", "export STINT_URL=… STINT_TOKEN_FILE=…",
			"%s belongs to somebody else; ask for an address and a token", place->home);
	return cli_fail(cli, EXIT_UNREACHABLE, "unreachable",
		strcmp(cli->verb->name, "doctor") == 0 ? "stint up" : "stint up   (or stint doctor)",
		"no server runs in %s", place->home);
}

static int set_token(struct cli *cli, const char *token, const char *from)
{
	struct place *place = &cli->place;

	snprintf(place->token_from, sizeof place->token_from, "%s", from);
	if ((size_t)snprintf(place->token, sizeof place->token, "%s", token) >= sizeof place->token)
		return cli_fail(cli, EXIT_USAGE, "invalid", NULL, "%s: the token is too long", from);
	for (const char *at = place->token; *at; at++) {
		if ((unsigned char)*at <= ' ' || (unsigned char)*at >= 127)
			return cli_fail(cli, EXIT_USAGE, "invalid", NULL, "%s: that is not a token", from);
	}
	return 0;
}

static int token_of_file(struct cli *cli, const char *path, const char *from)
{
	char line[600];
	int r = config_read_line(path, line, sizeof line);

	if (r < 0)
		return cli_fail(cli, EXIT_UNAUTHORISED, "unauthorized", "stint token create --kind …",
			"%s: cannot read a token from %s: %s", from, path, strerror(-r));
	return set_token(cli, line, path);
}

static int find_token(struct cli *cli)
{
	struct place *place = &cli->place;
	const char *flag = args_text(&cli->args, "token"), *flag_file = args_text(&cli->args, "token-file");
	char path[1200], line[600];

	if (flag)
		return set_token(cli, flag, "--token");
	if (flag_file)
		return token_of_file(cli, flag_file, "--token-file");
	if (config_variable("STINT_TOKEN"))
		return set_token(cli, config_variable("STINT_TOKEN"), "STINT_TOKEN");
	if (config_variable("STINT_TOKEN_FILE"))
		return token_of_file(cli, config_variable("STINT_TOKEN_FILE"), "STINT_TOKEN_FILE");
	if (!place->home[0] || !http_address_is_loopback(&place->address))
		return 0;
	snprintf(path, sizeof path, "%s/admin.token", place->home);
	return config_read_line(path, line, sizeof line) == 0 ? set_token(cli, line, path) : 0;
}

int place_find(struct cli *cli)
{
	struct place *place = &cli->place;
	const char *flag_url = args_text(&cli->args, "url");
	const char *url = flag_url              ? flag_url
		: args_text(&cli->args, "home") ? NULL
						: config_variable("STINT_URL");

	if (place->known)
		return 0;
	int r = 0;
	if (!url || config_variable("STINT_HOME") || config_variable("HOME") || args_text(&cli->args, "home"))
		r = place_home(cli, place->home, sizeof place->home);
	if (r == 0)
		r = url ? set_address(cli, url, flag_url ? "--url" : "STINT_URL") : find_in_home(cli);
	if (r == 0)
		r = find_token(cli);
	place->known = r == 0;
	return r;
}

const char *program_beside(struct cli *cli, const char *name)
{
	char own[4096];
	ssize_t len = readlink("/proc/self/exe", own, sizeof own - 1);

	own[len > 0 ? len : 0] = 0;
	char *slash = strrchr(own, '/');
	const char *path = slash ? cli_text(cli, "%.*s/%s", (int)(slash - own), own, name) : name;
	return access(path, X_OK) == 0 ? path : name;
}
