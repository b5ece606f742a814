/*
 * stint dashboard: the page in a browser. The link holds a code that is good once, for five minutes; it never holds a token.
 */
#include "cli/verb/dashboard.h"

#include <fcntl.h>
#include <pwd.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "base/files.h"
#include "base/take.h"
#include "cli/frame/spawn.h"
#include "cli/verb/here.h"

static const struct flag flags[] = {
	{"role", 0, FLAG_CHOICE, .value = "viewer|approver|operator|admin",
		.text = "what the browser may do (default operator, or as much as your token); admin lasts 15 minutes"},
	{"no-open", 0, FLAG_SWITCH, .text = "only print the link"},
	{0},
};

static const char *own_name(void)
{
	const char *name = getenv("USER");
	const struct passwd *entry = name && *name ? NULL : getpwuid(geteuid());

	return name && *name ? name : entry ? entry->pw_name : NULL;
}

const char *dashboard_link(struct cli *cli, const char *url, const char *role, bool needed)
{
	struct json_object *body = cli_body(cli);
	cleanup(reply_done) struct reply reply = {0};

	json_member_string(body, "kind", SPAN("login"));
	cli_member_text(body, "name", own_name());
	cli_member_text(body, "role", role);
	struct ask question = {.method = HTTP_METHOD_POST,
		.path = "/api/tokens",
		.body = cli_body_end(cli),
		.optional = !needed};
	if (server_ask(cli, &question, &reply) != 0 || !reply.root)
		return NULL;
	struct span code = field_text(reply.root, "code"), page = field_text(reply.root, "page");
	if (page.len > 0) /* publicUrl: behind its proxy, the server is not for browsers at its own address */
		url = cli_text(cli, "%.*s", SPAN_ARGS(page));
	size_t len = strlen(url);
	while (len > 0 && url[len - 1] == '/')
		len--;
	return code.len > 0 ? cli_text(cli, "%.*s/#k=%.*s", (int)len, url, SPAN_ARGS(code)) : NULL;
}

/* A browser in a snap or a flatpak sees no hidden directory, and the state directory is beneath one. */
static bool browser_reads_files(void)
{
	static const char *const ask[] = {"xdg-settings", "get", "default-web-browser", NULL};
	cleanup(buf_done) struct buf said = {.max = 4096};
	char path[512];

	if (spawn_and_read(ask, &said) != 0 || said.len == 0)
		return true;
	size_t len = strcspn(said.data, "\n");
	snprintf(path, sizeof path, "/var/lib/snapd/desktop/applications/%.*s", (int)(len < 200 ? len : 200),
		said.data);
	if (access(path, F_OK) == 0)
		return false;
	snprintf(path, sizeof path, "/var/lib/flatpak/exports/share/applications/%.*s",
		(int)(len < 200 ? len : 200), said.data);
	return access(path, F_OK) != 0;
}

static bool has_desktop(void)
{
	const char *x = getenv("DISPLAY"), *wayland = getenv("WAYLAND_DISPLAY");

	return (x && *x) || (wayland && *wayland);
}

bool dashboard_open(struct cli *cli, const char *home, const char *link)
{
	static const char name[] = "dashboard.html";
	const char *path = cli_text(cli, "%s/%s", home, name);
	const char *const open_it[] = {"xdg-open", path, NULL};
	cleanup(buf_done) struct buf said = {.max = 4096};

	if (!has_desktop() || !isatty(STDOUT_FILENO) || home[0] == 0 || !browser_reads_files())
		return false;
	const char *page = cli_text(cli,
		"<!DOCTYPE html>\n<meta charset=\"utf-8\"><meta http-equiv=\"refresh\" content=\"0; url=%s\">\n"
		"<title>stint</title>\n<a href=\"%s\">stint</a>\n",
		link, link);
	cleanup(close_at) int dir = open(home, O_RDONLY | O_DIRECTORY | O_CLOEXEC);
	if (dir < 0 || file_write(dir, name, span_of(page), false) < 0)
		return false;
	return spawn_and_read(open_it, &said) == 0;
}

/* The address that a browser on this computer can use: the server's own, or that of its TCP listener. */
static const char *page_url(struct cli *cli)
{
	char url[256];

	if (strncmp(cli->place.url, "http", 4) == 0)
		return cli->place.url;
	return cli->home[0] && here_url(cli->home, url, sizeof url) ? cli_text(cli, "%s", url) : NULL;
}

static int run(struct cli *cli)
{
	int r = server_find(cli);
	if (r != 0)
		return r;
	const char *url = page_url(cli);
	if (!url)
		return cli_fail(cli, EXIT_FAILED, "failed", "stint dashboard --url http://127.0.0.1:8787",
			"the server's address for browsers is not known: no file \"url\" in its state directory");
	const char *link = dashboard_link(cli, url, args_text(&cli->args, "role"), true);
	if (!link)
		return EXIT_FAILED;
	bool opened = !args_has(&cli->args, "no-open") && cli->output != OUTPUT_JSON &&
		dashboard_open(cli, cli->home, link);
	if (cli->output == OUTPUT_JSON) {
		cleanup(buf_done) struct buf json = {.max = 4096};
		struct json_object object;
		json_begin(&object, &json);
		json_member_string(&object, "url", span_of(link));
		json_end(&object);
		return cli_put_json_buf(cli, true, "dashboard", &json);
	}
	cli_put(cli, "%s\n", link);
	cli_say(cli,
		opened ? "opened in your browser; the link works once, for 5 minutes"
		       : "open it in a browser; the link works once, for 5 minutes");
	return 0;
}

const struct verb verb_dashboard = {
	.name = "dashboard",
	.gives = GIVES_JSON,
	.brief = "the page in a browser",
	.text = "Prints a link to the dashboard, and opens it where there is a desktop. The link works once, within 5 minutes; the "
		"browser then has a session that ends after 12 hours, or 2 hours without use.",
	.flags = flags,
	.examples = "stint dashboard\nstint dashboard --role viewer --no-open\n",
	.run = run,
};
