#include "config/server_place.h"

#include <errno.h>
#include <fcntl.h>
#include <stdarg.h>
#include <stdio.h>
#include <string.h>
#include <unistd.h>

#include "base/files.h"
#include "base/take.h"
#include "config/config.h"
#include "config/machine.h"
#include "wire/tls/tls.h"

enum {
	PATH_BYTES = MACHINE_PATH_BYTES,
	CA_BYTES_MAX = 1 << 20,
};

struct place_search {
	const struct server_place_flags *flags;
	const char *home;
	struct server_place *place;
	char *complaint;
	bool by_home;    /* the address is that of the state directory */
	bool by_machine; /* … of the server that it was enrolled with */
};

__attribute__((format(printf, 3, 4))) static int complain(
	struct place_search *search, int fault, const char *format, ...)
{
	va_list list;

	va_start(list, format);
	vsnprintf(search->complaint, SERVER_PLACE_COMPLAINT_BYTES, format, list);
	va_end(list);
	return fault;
}

static int set_address(struct place_search *search, const char *url, const char *from)
{
	struct server_place *place = search->place;
	const char *reason = "";
	int r;

	if ((size_t)snprintf(place->url, sizeof place->url, "%s", url) >= sizeof place->url)
		return complain(search, -EINVAL, "%s: the address is too long", from);
	r = search->by_home ? http_address_parse(url, &place->address, &reason)
			    : http_address_parse_all(url, &place->address, &reason);
	return r < 0 ? complain(search, r, "%s says \"%s\": %s", from, url, reason) : 0;
}

/* The socket is preferred: it needs no port, and only our own server can be behind it. */
static int find_in_home(struct place_search *search)
{
	char path[PATH_BYTES], line[sizeof search->place->url];

	search->by_home = true;
	if (search->flags->enrols && machine_is_enrolled(search->home)) {
		machine_path(search->home, MACHINE_URL, path);
		int r = config_read_line(path, line, sizeof line);
		search->by_machine = r == 0;
		return r == 0 ? set_address(search, line, path)
			      : complain(search, -EINVAL, "cannot read the address of the server from %s: %s",
					path, strerror(-r));
	}
	snprintf(line, sizeof line, "unix:%s/stint.sock", search->home);
	if (!search->flags->looks)
		return set_address(search, line, "the state directory");
	const char *socket = line + strlen("unix:");
	if (access(socket, F_OK) == 0 && strlen(socket) < sizeof search->place->address.path)
		return set_address(search, line, "the state directory");
	snprintf(path, sizeof path, "%s/url", search->home);
	int r = config_read_line(path, line, sizeof line);
	if (r == 0)
		return set_address(search, line, path);
	if (r == -EACCES)
		return complain(search, r, "%s belongs to another user; ask them for an address and a token",
			search->home);
	return complain(search, -ENOENT, "no server runs in %s", search->home);
}

static int find_address(struct place_search *search)
{
	const struct server_place_flags *flags = search->flags;
	const char *variable = flags->home ? NULL : config_variable("STINT_URL");

	if (flags->url)
		return set_address(search, flags->url, "--url");
	return variable ? set_address(search, variable, "STINT_URL") : find_in_home(search);
}

static int set_token(struct place_search *search, const char *token, const char *from)
{
	struct server_place *place = search->place;

	snprintf(place->token_from, sizeof place->token_from, "%s", from);
	if ((size_t)snprintf(place->token, sizeof place->token, "%s", token) >= sizeof place->token)
		return complain(search, -EKEYREJECTED, "%s: the token is too long", from);
	for (const char *at = place->token; *at; at++) {
		if ((unsigned char)*at <= ' ' || (unsigned char)*at >= 127)
			return complain(search, -EKEYREJECTED, "%s: that is not a token", from);
	}
	return 0;
}

static int token_of_file(struct place_search *search, const char *path, const char *from)
{
	char line[sizeof search->place->token];
	int r = config_read_line(path, line, sizeof line);

	if (r < 0)
		return complain(
			search, -ENOKEY, "%s: cannot read a token from %s: %s", from, path, strerror(-r));
	return set_token(search, line, path);
}

static int find_token(struct place_search *search)
{
	const struct server_place_flags *flags = search->flags;
	char path[PATH_BYTES], line[sizeof search->place->token];

	search->place->token[0] = search->place->token_from[0] = 0;
	if (flags->token)
		return set_token(search, flags->token, "--token");
	if (flags->token_file)
		return token_of_file(search, flags->token_file, "--token-file");
	if (config_variable("STINT_TOKEN"))
		return set_token(search, config_variable("STINT_TOKEN"), "STINT_TOKEN");
	if (config_variable("STINT_TOKEN_FILE"))
		return token_of_file(search, config_variable("STINT_TOKEN_FILE"), "STINT_TOKEN_FILE");
	if (search->by_machine) {
		machine_path(search->home, MACHINE_TOKEN, path);
		return token_of_file(search, path, path);
	}
	if (!search->home[0] || !http_address_is_loopback(&search->place->address))
		return 0;
	snprintf(path, sizeof path, "%s/admin.token", search->home);
	int r = config_read_line(path, line, sizeof line);
	if (r == 0)
		return set_token(search, line, path);
	if (r == -ENOENT || r == -ENOTDIR || r == -EACCES || r == -ENODATA)
		return 0; /* it is not there, or not for us: the server says what that means */
	return complain(search, r, "cannot read the token in %s: %s", path, strerror(-r));
}

/* ---- TLS ---- */

static int trust(struct place_search *search, const char *path, const char *from)
{
	char why[TLS_COMPLAINT_BYTES];
	struct tls_trust *made;
	cleanup(buf_done) struct buf pem = {.max = CA_BYTES_MAX};
	int r = path ? file_read(AT_FDCWD, path, &pem) : 0;

	if (r < 0)
		return complain(search, -EINVAL, "%s: cannot read the certificates in %s: %s", from, path,
			strerror(-r));
	r = tls_trust_new(path ? buf_span(&pem) : (struct span){0}, &made, why);
	if (r < 0)
		return complain(search, r, "%s: %s", path ? path : search->place->url, why);
	for (struct http_address *at = &search->place->address; at; at = at->next)
		at->trust = made;
	return 0;
}

static bool any_is_secure(const struct http_address *address)
{
	while (address && !address->secure)
		address = address->next;
	return address != NULL;
}

/* A file named by the caller, else one that stands where the server is found. */
static int find_trust(struct place_search *search)
{
	const struct server_place_flags *flags = search->flags;
	const char *variable = config_variable("STINT_CA");
	static const char *const kept[] = {
		"ca.crt", "tls/ca.crt"}; /* a running server's; that of stint tls init */
	char path[PATH_BYTES];

	if (!any_is_secure(&search->place->address))
		return 0;
	if (flags->ca)
		return trust(search, flags->ca, "--ca");
	if (variable)
		return trust(search, variable, "STINT_CA");
	if (search->by_machine) {
		machine_path(search->home, MACHINE_CA, path);
		return trust(search, access(path, F_OK) == 0 ? path : NULL, path);
	}
	bool is_own = search->by_home || http_address_is_loopback(&search->place->address);
	for (size_t i = 0; is_own && search->home[0] && i < sizeof kept / sizeof *kept; i++) {
		snprintf(path, sizeof path, "%s/%s", search->home, kept[i]);
		if (access(path, F_OK) == 0)
			return trust(search, path, path);
	}
	return trust(search, NULL, "");
}

/* Would a credential go in the clear to another computer? */
static bool any_is_open(const struct http_address *address)
{
	for (; address; address = address->next) {
		struct http_address alone = *address;
		alone.next = NULL;
		if (!alone.secure && !http_address_is_loopback(&alone))
			return true;
	}
	return false;
}

static int guard_token(struct place_search *search)
{
	const struct server_place *place = search->place;

	if (!place->token[0] || search->flags->plain || !any_is_open(&place->address))
		return 0;
	return complain(search, -EPERM,
		"%s is another computer, and http sends the credential in the clear: anybody on the way can read it; use "
		"https://, or say --plain",
		place->url);
}

int server_place_find(const struct server_place_flags *flags, const char *home,
	struct server_place *ret_place, char complaint[SERVER_PLACE_COMPLAINT_BYTES])
{
	struct place_search search = {
		.flags = flags, .home = home, .place = ret_place, .complaint = complaint};
	int r = find_address(&search);

	if (r == 0)
		r = find_token(&search);
	if (r == 0)
		r = guard_token(&search);
	return r < 0 ? r : find_trust(&search);
}
