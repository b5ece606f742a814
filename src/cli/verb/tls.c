/*
 * stint tls: an authority of one's own, and what it signs for the server. The files are all there is: no server is asked.
 */
#include <errno.h>
#include <fcntl.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "base/files.h"
#include "base/iso_time.h"
#include "base/take.h"
#include "cli/verb/task_view.h"
#include "wire/tls/tls.h"

enum {
	HOSTS_MAX = 40,
	HOST_BYTES = 65,
	PEM_MAX = 1 << 20,
	HEX_BYTES = 2 * TLS_HASH_BYTES + 1,
};

#define LIVES_MS (INT64_C(3650) * 24 * 3600 * 1000)

static const struct flag init_flags[] = {
	{"home", 0, FLAG_TEXT, OFFER_FILES, .value = "DIR",
		.text = "the state directory of the server (default $STINT_HOME)"},
	{"dir", 0, FLAG_TEXT, OFFER_FILES, .value = "DIR",
		.text = "where the files go (default tls in the state directory)"},
	{0},
};

static const struct flag show_flags[] = {
	{"home", 0, FLAG_TEXT, OFFER_FILES, .value = "DIR",
		.text = "the state directory of the server (default $STINT_HOME)"},
	{0},
};

static int fail(struct cli *cli, int fault, const char *what, const char *path)
{
	if (fault == -ENOSYS)
		return cli_fail(cli, EXIT_FAILED, "no_openssl", "apt install libssl3",
			"certificates need OpenSSL 3 (libssl.so.3), which is not installed here");
	return cli_fail(cli, EXIT_FAILED, "failed", NULL, "cannot %s %s: %s", what, path, strerror(-fault));
}

/* Where the files are, or are to be. 0, or the ending. */
static int find_dir(struct cli *cli, const char **ret_dir)
{
	const char *dir = args_text(&cli->args, "dir");
	int r = dir ? 0 : place_home(cli, cli->home, sizeof cli->home);

	if (r == 0)
		*ret_dir = cli_path(cli, dir ? dir : cli_text(cli, "%s/tls", cli->home));
	if (r == 0 && !*ret_dir)
		return cli_fail(cli, EXIT_FAILED, "failed", NULL, "the current directory is gone");
	return r;
}

/* ---- init ---- */

/* What a server on this machine is called in any case, and what the caller adds. */
static size_t take_hosts(struct cli *cli, const char *hosts[HOSTS_MAX])
{
	static char name[HOST_BYTES];
	size_t count = 0;

	hosts[count++] = "localhost";
	hosts[count++] = "127.0.0.1";
	hosts[count++] = "::1";
	if (gethostname(name, sizeof name - 1) == 0 && name[0] && strcmp(name, "localhost") != 0)
		hosts[count++] = name;
	for (size_t i = 0; i < cli->args.plain_count && count < HOSTS_MAX; i++)
		hosts[count++] = args_plain(&cli->args, i);
	return count;
}

/* The one that stands there already stays: clients trust it. -ENOENT: there is none. */
static int read_authority(int dir_fd, struct tls_authority **ret_authority)
{
	cleanup(buf_done) struct buf cert = {.max = PEM_MAX}, key = {.max = PEM_MAX};
	int r = file_read(dir_fd, "ca.crt", &cert);

	if (r == 0)
		r = file_read(dir_fd, "ca.key", &key);
	return r < 0 ? r : tls_authority_read(buf_span(&cert), buf_span(&key), ret_authority);
}

static int make_authority(struct cli *cli, int dir_fd, struct tls_authority **ret_authority)
{
	cleanup(buf_done) struct buf cert = {.max = PEM_MAX}, key = {.max = PEM_MAX};
	const char *name = cli_text(cli, "stint authority %lld", (long long)cli->now_ms / 1000);
	int r = tls_authority_new(name, cli->now_ms + LIVES_MS, ret_authority);

	if (r < 0)
		return r;
	r = tls_authority_put(*ret_authority, &cert, &key);
	if (r == 0)
		r = file_write(dir_fd, "ca.key", buf_span(&key), true);
	return r == 0 ? file_write(dir_fd, "ca.crt", buf_span(&cert), true) : r;
}

/* The key first: until the certificate follows, a server that looks finds two that do not belong together, and waits. */
static int issue(struct cli *cli, int dir_fd, const struct tls_authority *authority)
{
	cleanup(buf_done) struct buf cert = {.max = PEM_MAX}, key = {.max = PEM_MAX};
	const char *hosts[HOSTS_MAX];
	size_t count = take_hosts(cli, hosts);

	int r = tls_authority_issue(authority, hosts, count, cli->now_ms + LIVES_MS, &cert, &key);
	if (r == 0)
		r = file_write(dir_fd, "server.key", buf_span(&key), true);
	return r == 0 ? file_write(dir_fd, "server.crt", buf_span(&cert), true) : r;
}

static const char *hex_of(struct cli *cli, const unsigned char hash[TLS_HASH_BYTES])
{
	static const char digits[] = "0123456789abcdef";
	char text[HEX_BYTES];

	for (size_t i = 0; i < TLS_HASH_BYTES; i++) {
		text[2 * i] = digits[hash[i] >> 4];
		text[2 * i + 1] = digits[hash[i] & 15];
	}
	text[HEX_BYTES - 1] = 0;
	return cli_text(cli, "%s", text);
}

static void put_certificate(struct cli *cli, struct json_object *object, const struct tls_facts *facts,
	const unsigned char hash[TLS_HASH_BYTES])
{
	struct span names[TLS_NAMES_MAX];

	for (uint32_t i = 0; i < facts->name_count; i++)
		names[i] = span_of(facts->names[i]);
	if (json_put_key(object, "names"))
		json_put_strings(object->buf, names, facts->name_count);
	json_member_int(object, "beginsAt", facts->begins_ms);
	json_member_int(object, "endsAt", facts->ends_ms);
	json_member_string(object, "sha256", span_of(hex_of(cli, hash)));
}

/* Root makes it for the service, whose server reads it as its own user: then who that is. */
static bool is_for_service(const struct cli *cli, struct stat *ret_owner)
{
	return geteuid() == 0 && !args_has(&cli->args, "dir") && stat(cli->home, ret_owner) == 0 &&
		ret_owner->st_uid != 0;
}

/* What makes certificates stays root's. */
static int give_to_owner(struct cli *cli, int dir_fd)
{
	static const char *const files[] = {"server.key", "server.crt", "ca.crt"};
	struct stat owner;

	if (!is_for_service(cli, &owner))
		return 0;
	for (size_t i = 0; i < sizeof files / sizeof *files; i++) {
		if (fchownat(dir_fd, files[i], owner.st_uid, owner.st_gid, AT_SYMLINK_NOFOLLOW) < 0)
			return -errno;
	}
	return fchown(dir_fd, owner.st_uid, owner.st_gid) < 0 ? -errno : 0;
}

static int put_made(struct cli *cli, const char *dir)
{
	struct stat owner;
	static const char *const files[] = {"cert", "server.crt", "key", "server.key", "ca", "ca.crt"};
	cleanup(buf_done) struct buf json = {.max = PEM_MAX};
	struct json_object object;

	if (cli->output == OUTPUT_JSON) {
		json_begin(&object, &json);
		for (size_t i = 0; i < sizeof files / sizeof *files; i += 2)
			json_member_word(&object, files[i], cli_text(cli, "%s/%s", dir, files[i + 1]));
		json_end(&object);
		return cli_put_json_buf(cli, true, "tls", &json);
	}
	cli_put(cli, "  \"tls\": {");
	for (size_t i = 0; i < sizeof files / sizeof *files; i += 2)
		cli_put(cli, "%s\"%s\": \"%s/%s\"", i > 0 ? ", " : "", files[i], dir, files[i + 1]);
	cli_put(cli, "}\n");
	cli_say(cli,
		"put this into %s/config.json and start the server again; clients elsewhere need ca.crt (--ca); ca.key signs "
		"for this server: keep it to yourself",
		is_for_service(cli, &owner) ? "/etc/stint"
			: cli->home[0]      ? cli->home
					    : "the state directory");
	return 0;
}

static int run_init(struct cli *cli)
{
	struct tls_authority *authority = NULL;
	cleanup(close_at) int dir_fd = -1;
	const char *dir;

	int r = find_dir(cli, &dir);
	if (r != 0)
		return r;
	r = directory_make(dir);
	if (r == 0 && (dir_fd = open(dir, O_RDONLY | O_DIRECTORY | O_CLOEXEC)) < 0)
		r = -errno;
	if (r < 0)
		return fail(cli, r, "make", dir);
	r = read_authority(dir_fd, &authority);
	if (r == -ENOENT)
		r = make_authority(cli, dir_fd, &authority);
	if (r < 0) {
		tls_authority_free(authority);
		return fail(cli, r, "make or read the authority in", dir);
	}
	r = issue(cli, dir_fd, authority);
	tls_authority_free(authority);
	if (r == 0)
		r = give_to_owner(cli, dir_fd);
	if (r == -EINVAL)
		return cli_fail(cli, EXIT_USAGE, "invalid", "stint tls init queue.example.org 10.0.0.5",
			"one of the names is neither a host nor an address");
	return r < 0 ? fail(cli, r, "make the certificate in", dir) : put_made(cli, dir);
}

const struct verb verb_tls_init = {
	.name = "tls init",
	.arguments = "[HOST...]",
	.most = 32,
	.gives = NEEDS_NO_SERVER | GIVES_JSON,
	.brief = "certificates of your own",
	.text = "Makes an authority (ca.crt, ca.key) and a certificate for the server (server.crt, server.key), which is valid for this "
		"machine's names and for those that you add: names and addresses by which clients reach it. Where there is an authority "
		"already it stays, and only the certificate is made anew; a running server takes it within ten seconds. Prints the lines "
		"for the configuration.",
	.flags = init_flags,
	.examples = "stint tls init queue.example.org 10.0.0.5\n",
	.run = run_init,
};

/* ---- show ---- */

static int read_certificate(
	struct cli *cli, const char *path, struct tls_facts *facts, unsigned char hash[TLS_HASH_BYTES])
{
	cleanup(buf_done) struct buf pem = {.max = PEM_MAX};
	int r = file_read(AT_FDCWD, path, &pem);

	if (r == -ENOENT)
		return cli_fail(cli, EXIT_NOT_FOUND, "not_found", "stint tls init",
			"there is no certificate at %s", path);
	if (r == 0)
		r = tls_facts_read(buf_span(&pem), facts);
	if (r == 0)
		r = tls_hash(buf_span(&pem), hash);
	if (r == -EINVAL)
		return cli_fail(cli, EXIT_USAGE, "invalid", NULL, "%s is not a certificate in PEM", path);
	return r < 0 ? fail(cli, r, "read", path) : 0;
}

static void say_certificate(
	struct cli *cli, const char *path, const struct tls_facts *facts, const unsigned char *hash)
{
	char ends[ISO_TIME_BYTES + 1];

	iso_time_put(facts->ends_ms, ends);
	cli_put_line(cli, "%s", path);
	if (facts->name_count > 0)
		cli_put(cli, "  names   ");
	for (uint32_t i = 0; i < facts->name_count; i++)
		cli_put(cli, "%s%s", i > 0 ? ", " : "", facts->names[i]);
	if (facts->name_count > 0)
		cli_put(cli, "\n");
	cli_put_line(cli, "  ends    %s%s", ends, facts->ends_ms <= cli->now_ms ? ", which is over" : "");
	cli_put_line(cli, "  sha256  %s", hex_of(cli, hash));
}

static int run_show(struct cli *cli)
{
	cleanup(buf_done) struct buf json = {.max = PEM_MAX};
	static struct tls_facts facts;
	unsigned char hash[TLS_HASH_BYTES];
	size_t count = cli->args.plain_count;
	struct json_object object;
	const char *dir = "";

	int r = count > 0 ? 0 : find_dir(cli, &dir);
	buf_put_byte(&json, '[');
	for (size_t i = 0; r == 0 && i < (count > 0 ? count : 2); i++) {
		const char *path = count > 0 ? args_plain(&cli->args, i)
					     : cli_text(cli, "%s/%s", dir, i == 0 ? "server.crt" : "ca.crt");
		r = read_certificate(cli, path, &facts, hash);
		if (r == 0 && cli->output != OUTPUT_JSON)
			say_certificate(cli, path, &facts, hash);
		if (i > 0)
			buf_put_byte(&json, ',');
		json_begin(&object, &json);
		json_member_word(&object, "file", path);
		put_certificate(cli, &object, &facts, hash);
		json_end(&object);
	}
	buf_put_byte(&json, ']');
	return r == 0 && cli->output == OUTPUT_JSON ? cli_put_json_buf(cli, true, "certificates", &json) : r;
}

const struct verb verb_tls_show = {
	.name = "tls show",
	.arguments = "[FILE...]",
	.most = 20,
	.offer = OFFER_FILES,
	.gives = NEEDS_NO_SERVER | GIVES_JSON,
	.brief = "names and end of a certificate",
	.text = "Shows certificates, without a file those that stint tls init has made: the names and addresses that they are valid for, "
		"their end, and their SHA-256.",
	.flags = show_flags,
	.examples = "stint tls show\n",
	.run = run_show,
};
