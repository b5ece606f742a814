/*
 * Where the server is, and with which token: config/server_place.h says how both are found. Here are the messages
 * for the case that they are not.
 */
#include <errno.h>
#include <stdio.h>
#include <string.h>
#include <unistd.h>

#include "cli/frame/cli.h"
#include "config/config.h"

int place_home(struct cli *cli, char *ret_home, size_t room)
{
	const char *flag = args_text(&cli->args, "home"), *home = config_variable("STINT_HOME");

	if (!flag && !home) {
		if (config_usual_home(ret_home, room))
			return 0;
		return cli_fail(cli, EXIT_USAGE, "no_home",
			"export STINT_HOME=/var/lib/stint   # or another directory of your own",
			"no state directory: none of --home, $STINT_HOME and $HOME is set");
	}
	if ((size_t)snprintf(ret_home, room, "%s", flag ? flag : home) >= room)
		return cli_fail(
			cli, EXIT_USAGE, "invalid", NULL, "the path of the state directory is too long");
	return 0;
}

static int tell(struct cli *cli, int fault, const char *complaint)
{
	bool examines = strcmp(cli->verb->name, "doctor") == 0;

	switch (fault) {
	case -ENOENT:
		return cli_fail(cli, EXIT_UNREACHABLE, "unreachable",
			examines ? "stint up" : "stint up   # or stint doctor", "%s", complaint);
	case -EACCES:
		return cli_fail(cli, EXIT_UNAUTHORISED, "forbidden",
			"stint --url http://127.0.0.1:8787 ls   # with their address, and --token-file", "%s",
			complaint);
	case -ENOKEY:
		return cli_fail(cli, EXIT_UNAUTHORISED, "unauthorized",
			args_text(&cli->args, "token-file")
				? "stint token create --kind operator   # by an admin"
				: "env -u STINT_TOKEN_FILE stint token create --kind operator   # by an admin",
			"%s", complaint);
	case -EPERM:
		return cli_fail(cli, EXIT_USAGE, "in_the_clear",
			"stint --url https://HOST:8787 ls   # docs/tls.md says how the server gets a certificate",
			"%s", complaint);
	case -ENOSYS:
		return cli_fail(cli, EXIT_FAILED, "no_openssl", "apt install libssl3", "%s", complaint);
	default:
		return cli_fail(
			cli, EXIT_USAGE, "invalid", "stint --url http://127.0.0.1:8787 ls", "%s", complaint);
	}
}

int place_find(struct cli *cli)
{
	const struct args *args = &cli->args;
	const struct server_place_flags flags = {args_text(args, "url"), args_text(args, "home"),
		args_text(args, "token"), args_text(args, "token-file"), args_text(args, "ca"),
		.plain = args_has(args, "plain"), .looks = true};
	bool has_home = flags.home || config_variable("STINT_HOME") || config_variable("HOME");
	bool has_url = flags.url || (!flags.home && config_variable("STINT_URL"));
	char complaint[SERVER_PLACE_COMPLAINT_BYTES];

	if (cli->place_known)
		return 0;
	int r = !has_url || has_home ? place_home(cli, cli->home, sizeof cli->home) : 0;
	if (r != 0)
		return r;
	r = server_place_find(&flags, cli->home, &cli->place, complaint);
	cli->place_known = r == 0;
	return r < 0 ? tell(cli, r, complaint) : 0;
}

bool place_holds_state(struct cli *cli, const char *dir)
{
	char home[1024];
	size_t len = dir ? strlen(dir) : 0;

	while (len > 1 && dir[len - 1] == '/')
		len--;
	return len > 0 && place_home(cli, home, sizeof home) == 0 && strncmp(home, dir, len) == 0 &&
		(home[len] == '/' || home[len] == 0 || len == 1) && access(home, F_OK) == 0;
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
