/*
 * stintd: the server. Opening the store comes first, because its lock says that we are the only one; then the
 * sockets; then systemd gets its READY=1. Stopping goes the other way round and takes no more than seconds.
 */
#include <errno.h>
#include <fcntl.h>
#include <malloc.h>
#include <signal.h>
#include <sodium.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/prctl.h>
#include <sys/resource.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <sys/un.h>
#include <unistd.h>

#include "base/service.h"
#include "base/take.h"
#include "server/home.h"
#include "server/server.h"
#include "server/disk.h"
#include "server/watch/server_log.h"
#include "store/sqlite.h"

enum {
	EXIT_SYSTEM = 71,
	EXIT_STORE = 74,
	EXIT_CONFIG = 78,
	LISTEN_BACKLOG = 4096, /* the kernel allows no more by default; a full queue turns everyone away */
	CHORES_MS = 20,        /* retention is behind: the next sweep comes soon */
	DUE_MS = 250,          /* what runs out is looked at no more often than that */
	STOP_GRACE_MS = 200,   /* for requests that are on their way: they hear that it stops */
	STOP_LOOK_MS = 20,
	STOP_MS = 4000,
	LARGE_BYTES = 128 << 10, /* that a chunk of tasks is not */
};

static const char usage[] =
	"usage: stintd [--home DIR] [--listen ADDRESS:PORT] [--store URL] [--config FILE]\n"
	"              [--set KEY=VALUE]... [--behind-proxy] [--ui-dir DIR] [--check-config [--json]]\n"
	"              [--check-store [FILE] | --restore FILE | --accept-loss | --new-store]\n"
	"\n"
	"The stint server: a durable work queue over HTTP, on a Unix socket and on TCP.\n"
	"\n"
	"  --home DIR       state directory (default $STINT_HOME, $XDG_STATE_HOME/stint, ~/.local/state/stint);\n"
	"                   holds stint.db, stint.sock, url and admin.token\n"
	"  --listen A:P     TCP address (default 127.0.0.1:8787; port 0 picks a free one, see DIR/url)\n"
	"  --store URL      sqlite:PATH (default DIR/stint.db), or postgres://USER@HOST/DATABASE: several servers may name the\n"
	"                   same one, of which one leads and the others stand by\n"
	"  --config FILE    instead of DIR/config.json, the user's and the system's (JSON; comments allowed)\n"
	"  --set KEY=VALUE  a key of the configuration, above everything else\n"
	"  --behind-proxy   allow an address that is not of this machine alone without TLS: a proxy in front speaks it\n"
	"  --ui-dir DIR     serve the dashboard from the files in this directory, for those who change it\n"
	"  --check-config   print the effective configuration and where each value comes from, and end;\n"
	"                   status 78 if something is wrong; --json for programs\n"
	"  --restore FILE   put a backup in the place of the store and end; the server must not run\n"
	"  --check-store [FILE]  read all of the store, or of FILE, and print what is wrong with it, one JSON line each; the\n"
	"                   server must not run; status 0 whole, 1 damaged, 74 unreadable, 75 in use\n"
	"  --accept-loss    serve what is left of a store that has lost something: a new generation, no live claims\n"
	"  --new-store      keep the store that is there under another name and begin a new one\n"
	"\n"
	"Keys, for --set and for config.json; with their defaults. Each has\n"
	"a variable, as STINT_LOG_LEVEL for log.level; docs/configuration.md says more.\n";

static const char usage_end[] =
	"\n"
	"Try: stintd --home /tmp/stint --listen 127.0.0.1:0 &\n"
	"     curl -H \"Authorization: Bearer $(cat /tmp/stint/admin.token)\" $(cat /tmp/stint/url)/api/tasks\n";

static void print_help(void)
{
	cleanup(buf_done) struct buf keys;

	buf_init(&keys, 64 << 10);
	config_put_keys(&keys);
	printf("%s%.*s%s", usage, SPAN_ARGS(buf_span(&keys)), usage_end);
}

_Noreturn void server_die(struct server *server, int fault)
{
	const char *why = store_complaint(server->store);

	log_error("store fault; ending, so that nothing is acknowledged that may not be on disk",
		log_cstr("store", server->options->store), log_cstr("reason", why ? why : strerror(-fault)));
	_exit(EXIT_STORE); /* no clean-up: whatever it would write is in doubt */
}

/* ---- the store ------------------------------------------------------------------------------------------- */

static int refuse_store(const char *store, const char *reason)
{
	log_error("not started: the store cannot be opened", log_cstr("store", store),
		log_cstr("reason", reason));
	return EXIT_STORE;
}

/* The store keeps the hash of the admin token. The key that follows from the token is for a store of an older release. */
static int tell_admin_token(struct server *server, char token[TOKEN_BYTES_MAX])
{
	struct store_options *storage = &server->options->storage;
	int r = home_admin_token(server->options->home, token);

	if (r != 0)
		return r;
	crypto_hash_sha256(storage->admin_hash, (const unsigned char *)token, strlen(token));
	mint_key_of_admin(token, storage->admin_key);
	storage->random = randombytes_buf;
	return 0;
}

static int open_sqlite(const struct options *options, struct backend **ret_backend, char **ret_complaint)
{
	struct sqlite_options sqlite = {
		.path = options->store,
		.boot_hi = options->storage.boot_hi,
		.boot_lo = options->storage.boot_lo,
		.accept_loss = options->accept_loss || options->new_store,
	};
	int r = options->new_store ? store_set_aside(options, ret_complaint) : 0;

	return r == 0 ? sqlite_open(&sqlite, ret_backend, ret_complaint) : r;
}

/* Clients of a store in PostgreSQL find a server that stands by as they find one that leads. */
static void write_url_again(struct server *server);

static int open_postgres(struct server *server, struct backend **ret_backend, char **ret_complaint)
{
	return standby_wait(server, server->options->store_url, write_url_again, ret_backend, ret_complaint);
}

static int open_store(struct server *server, char token[TOKEN_BYTES_MAX])
{
	struct options *options = server->options;
	struct backend *backend;
	cleanup(free_at) char *complaint = NULL;

	int r = clock_boot_id(&options->storage.boot_hi, &options->storage.boot_lo);
	if (r < 0) {
		log_error("not started: the machine's boot id cannot be read",
			log_cstr("reason", strerror(-r)));
		return EXIT_STORE;
	}
	if (options->store_url) /* whoever looks into the directory finds the token while we stand by */
		r = tell_admin_token(server, token);
	if (r != 0)
		return r;
	r = options->store_url ? open_postgres(server, &backend, &complaint)
			       : open_sqlite(options, &backend, &complaint);
	if (r == -ECANCELED)
		return r;
	if (r < 0)
		return refuse_store(options->store, complaint ? complaint : strerror(-r));
	if (!options->store_url) /* under its lock: of two that start in a new home, one writes the token */
		r = tell_admin_token(server, token);
	if (r != 0) {
		backend->ops->close(backend);
		return r;
	}
	randombytes_buf(&options->storage.seed, sizeof options->storage.seed);
	options->storage.now = server->now = clock_now();
	r = store_open(backend, &options->storage, &server->store);
	server->backend = r == 0 ? backend : NULL;
	if (r == 0)
		return 0;
	int status = refuse_store(options->store,
		r == -E2BIG                  ? "it has known as many names of workflows as it may"
			: backend->complaint ? backend->complaint
					     : strerror(-r));
	backend->ops->close(backend);
	return status;
}

/* ---- sockets ----------------------------------------------------------------------------------------------- */

static int complain_listen(const char *where, int fault)
{
	log_error("not started: cannot listen", log_cstr("address", where),
		log_cstr("reason", uv_strerror(fault)));
	return 1;
}

/* The sockets that systemd or `stint up` has for us. Each is -1 once it is used. */
struct socket_list {
	struct service_socket sockets[SERVICE_SOCKETS_MAX];
	size_t count;
};

static bool is_at(int fd, const struct sockaddr *wanted)
{
	struct sockaddr_storage found = {0};
	socklen_t len = sizeof found;
	const struct sockaddr_in6 *six = (const struct sockaddr_in6 *)&found,
				  *six_wanted = (const void *)wanted;
	const struct sockaddr_in *four = (const struct sockaddr_in *)&found,
				 *four_wanted = (const void *)wanted;

	if (getsockname(fd, (struct sockaddr *)&found, &len) < 0 || found.ss_family != wanted->sa_family)
		return false;
	if (found.ss_family == AF_INET6)
		return memcmp(&six->sin6_addr, &six_wanted->sin6_addr, sizeof six->sin6_addr) == 0 &&
			(six_wanted->sin6_port == 0 || six->sin6_port == six_wanted->sin6_port);
	return four->sin_addr.s_addr == four_wanted->sin_addr.s_addr &&
		(four_wanted->sin_port == 0 || four->sin_port == four_wanted->sin_port);
}

/* On a socket of this address that we were given, or else on one of our own, which is then kept for the process after us. */
static int listen_at(struct socket_list *given, uv_tcp_t *tcp, const struct sockaddr *address, unsigned flags)
{
	struct service_socket *found = NULL;
	uv_os_fd_t fd = -1;

	for (size_t i = 0; i < given->count && !found; i++) {
		if (given->sockets[i].fd >= 0 && is_at(given->sockets[i].fd, address))
			found = &given->sockets[i];
	}
	int r = found ? uv_tcp_open(tcp, found->fd) : uv_tcp_bind(tcp, address, flags);
	if (found)
		found->fd = -1;
	if (r == 0)
		r = uv_listen((uv_stream_t *)tcp, LISTEN_BACKLOG, connection_accept);
	if (r == 0 && !found && uv_fileno((uv_handle_t *)tcp, &fd) == 0)
		service_keep(fd);
	return r;
}

/* One of a socket unit would take connections that nobody answers. */
static int refuse_others(struct socket_list *given, const struct options *options)
{
	int r = 0;

	for (size_t i = 0; i < given->count; i++) {
		if (given->sockets[i].fd < 0)
			continue;
		if (!given->sockets[i].is_kept) {
			log_error(
				"not started: stintd.socket has an address that `listen` does not name; make them the same",
				log_cstr("listen", options->host), log_int("port", options->port));
			r = EXIT_CONFIG;
		}
		close(given->sockets[i].fd);
	}
	return r;
}

static bool listens_beside(const struct options *options)
{
	return strcmp(options->host, "127.0.0.1") == 0 || strcmp(options->host, "localhost") == 0;
}

/* `listen` was changed: the sockets of before end here, for whoever still has them, too. They would stand in the way of the new
 * address, or take connections that nobody answers. */
static void end_old(struct socket_list *given, const struct options *options, const struct sockaddr *address)
{
	struct sockaddr_in6 beside;
	bool any = false;

	uv_ip6_addr("::1", options->port, &beside);
	for (size_t i = 0; i < given->count; i++) {
		struct service_socket *old = &given->sockets[i];
		if (!old->is_kept || is_at(old->fd, address) ||
			(listens_beside(options) && is_at(old->fd, (struct sockaddr *)&beside)))
			continue;
		shutdown(old->fd, SHUT_RD);
		close(old->fd);
		old->fd = -1;
		any = true;
	}
	if (!any)
		return;
	service_keep_none();
	for (size_t i = 0; i < given->count; i++) {
		if (given->sockets[i].fd >= 0 && given->sockets[i].is_kept)
			service_keep(given->sockets[i].fd);
	}
}

static int listen_tcp(struct server *server, struct socket_list *given, uint16_t *ret_port)
{
	const struct options *options = server->options;
	struct sockaddr_storage address;
	struct sockaddr *any = (struct sockaddr *)&address;
	int len = sizeof address;
	char where[300];

	snprintf(where, sizeof where, "%s:%u", options->host, options->port);
	const char *host = strcmp(options->host, "localhost") == 0 ? "127.0.0.1" : options->host;
	int r = uv_ip4_addr(host, options->port, (struct sockaddr_in *)&address);
	if (r < 0)
		r = uv_ip6_addr(host, options->port, (struct sockaddr_in6 *)&address);
	uv_tcp_init(&server->loop, &server->tcp);
	server->tcp.data = server;
	if (r == 0) {
		end_old(given, options, any);
		r = listen_at(given, &server->tcp, any, 0);
	}
	if (r == 0)
		r = uv_tcp_getsockname(&server->tcp, any, &len);
	if (r < 0)
		return complain_listen(where, r);
	*ret_port = any->sa_family == AF_INET6 ? ntohs(((struct sockaddr_in6 *)&address)->sin6_port)
					       : ntohs(((struct sockaddr_in *)&address)->sin_port);
	return 0;
}

/* "localhost" is [::1] to some clients, and they try nothing else: a server on 127.0.0.1 listens there too, where there is
 * such an address. */
static void listen_beside(struct server *server, struct socket_list *given, uint16_t port)
{
	struct sockaddr_in6 address;

	uv_tcp_init(&server->loop, &server->beside);
	server->beside.data = server;
	if (!listens_beside(server->options))
		return;
	uv_ip6_addr("::1", port, &address);
	if (listen_at(given, &server->beside, (struct sockaddr *)&address, UV_TCP_IPV6ONLY) == UV_EADDRINUSE)
		log_warn(
			"another program has this port of [::1]: clients that say localhost may meet that one",
			log_int("port", port));
}

static int listen_local(struct server *server)
{
	char path[OPTIONS_PATH_MAX + 16];

	snprintf(path, sizeof path, "%s/stint.sock", server->options->home);
	if (strlen(path) >= sizeof((struct sockaddr_un *)0)->sun_path) {
		log_error("not started: the path is too long for a socket; choose a shorter --home",
			log_cstr("path", path));
		return 1;
	}
	unlink(path); /* a lock, of the store or of the directory, says that nobody else serves here */
	uv_pipe_init(&server->loop, &server->local, 0);
	server->local.data = server;
	mode_t mask = umask(077);
	int r = uv_pipe_bind(&server->local, path);
	umask(mask);
	if (r == 0)
		r = uv_listen((uv_stream_t *)&server->local, LISTEN_BACKLOG, connection_accept);
	return r < 0 ? complain_listen(path, r) : 0;
}

/* A full disk is no reason not to serve: clients that know the socket need no such file, and the next sweep tries again. Any other
 * fault is returned, and only once. */
static int write_url(struct server *server)
{
	int r = server->url[0] ? home_write(server->options->home, "url", server->url) : 0;

	if (r == -ENOSPC || r == -EDQUOT) {
		home_remove(server->options->home,
			"url"); /* what a killed server left there may be wrong by now */
		return 0;
	}
	server->url[0] = 0;
	return r;
}

static void put_url(const struct server *server, const char *host, uint16_t port, char *url, size_t size)
{
	const char *scheme = server->options->identity ? "https" : "http";

	snprintf(url, size, strchr(host, ':') ? "%s://[%s]:%u" : "%s://%s:%u", scheme, host, port);
}

/* Where others reach us. An address that means every address of the machine is no place to connect to: the machine's name is. */
static void name_us(struct server *server, uint16_t port)
{
	const char *host = server->options->host, *given = server->options->leader_url;
	bool is_any = strcmp(host, "0.0.0.0") == 0 || strcmp(host, "::") == 0;
	char name[256] = "";

	put_url(server, host, port, server->url, sizeof server->url - 1);
	strcat(server->url, "\n");
	gethostname(name, sizeof name - 1);
	put_url(server, is_any ? name : host, port, server->standby.url, sizeof server->standby.url);
	if (given[0])
		snprintf(server->standby.url, sizeof server->standby.url, "%s", given);
}

static int announce(struct server *server)
{
	journal_listening(server, span_of(server->standby.url));
	disk_begin(server);
	int r = write_url(server);
	if (r < 0)
		log_error("not started: the file url cannot be written",
			log_cstr("home", server->options->home), log_cstr("reason", strerror(-r)));
	return r < 0;
}

/* ---- the loop ------------------------------------------------------------------------------------------------ */

static void on_more(uv_idle_t *idle)
{
	(void)idle;
}

/* With something to do at once the loop looks at the network and does not go to sleep there. */
static void stay_awake(struct server *server)
{
	if (server->turns.queued.first || server->streams.has_work || server->readers.has_work ||
		steps_have_work(server))
		uv_idle_start(&server->more, on_more);
	else
		uv_idle_stop(&server->more);
}

static void on_due(uv_timer_t *timer);

/* A lease or a time that runs out before the next sweep does not wait for it. */
static void look_when_due(struct server *server)
{
	int64_t idle_ms = store_idle_ms(server->store, server->now);

	if (!server->stopping && idle_ms < (int64_t)server->options->sweep_ms)
		uv_timer_start(&server->due, on_due, idle_ms > DUE_MS ? (uint64_t)idle_ms : DUE_MS, 0);
}

/* A turn may have set an earlier time. To find the first of all is dear: it is done a few times a second, not after each. */
static void look_soon(struct server *server)
{
	server->turns.times_set = false;
	if (!uv_is_active((uv_handle_t *)&server->due) || uv_timer_get_due_in(&server->due) > DUE_MS)
		uv_timer_start(&server->due, on_due, DUE_MS, 0);
}

static void on_due(uv_timer_t *timer)
{
	struct server *server = timer->data;

	turns_run(server);
	streams_feed(server);
	stay_awake(server);
	look_when_due(server);
}

static void on_check(uv_check_t *check)
{
	struct server *server = check->data;

	connections_tick(server);
	if (!server->store) {
		connections_flush(server);
		server->now_is_old = true;
		return;
	}
	if (turns_may_grow(server)) {
		uv_idle_start(&server->more, on_more); /* the loop looks, and does not wait */
		server->now_is_old = true;
		return;
	}
	if (server->turns.queued.first || server->steps.is_ready)
		turns_run(server);
	else
		connections_flush(server);
	streams_feed(server);
	readers_run(server);
	steps_look(server);
	stay_awake(server);
	if (server->turns.times_set)
		look_soon(server);
	server->now_is_old = true;
}

static void write_url_again(struct server *server)
{
	int r = write_url(server);

	if (r < 0)
		log_warn("the file url cannot be written: clients that look for it do not find this server",
			log_cstr("home", server->options->home), log_cstr("reason", strerror(-r)));
}

static void on_sweep(uv_timer_t *timer)
{
	struct server *server = timer->data;

	turns_run(server);
	waiting_sweep(server);
	if (server->slept)
		connections_outlast_stall(server);
	else
		connections_timeout(server);
	server->slept = false;
	server->last_sweep_ms = server->now.lease_ms;
	streams_sweep(server);
	readers_sweep(server);
	connections_flush(server);
	int r = store_sweep(server->store, server->now);
	if (r < 0)
		server_die(server, r);
	streams_feed(server);
	write_url_again(server);
	heartbeat_file_look(server);
	journal_store(server);
	certificate_look(server);
	disk_look(server);
	journal_sweep();
	stay_awake(server);
	look_when_due(server);
	service_tell("WATCHDOG=1");
	uv_timer_start(
		timer, on_sweep, store_has_chores(server->store) ? CHORES_MS : server->options->sweep_ms, 0);
}

static void end_loop(struct server *server)
{
	connections_close_all(server);
	uv_stop(&server->loop);
}

/* Comes again and again. A client that reads slowly gets all of its reply, in the time that a stop may take. */
static void on_stop_due(uv_timer_t *timer)
{
	struct server *server = timer->data;

	if (!connections_have_unsent(server) || uv_now(&server->loop) >= server->stop_by_ms)
		end_loop(server);
}

/* Answer the long polls, accept no new requests, and finish the writes under way. */
static void on_stop(uv_signal_t *signal, int number)
{
	struct server *server = signal->data;

	(void)number;
	if (server->stopping) {
		end_loop(server);
		return;
	}
	server->stopping = true;
	log_info("stopping", log_int("connections", server->connections.count),
		log_int("waiting", server->waiting.count));
	service_tell("STOPPING=1");
	if (!server->store) {
		standby_give_up(server);
		return;
	}
	server->now = clock_now();
	uv_close((uv_handle_t *)&server->tcp, NULL);
	uv_close((uv_handle_t *)&server->beside, NULL);
	uv_close((uv_handle_t *)&server->local, NULL);
	turns_run(server);
	turns_stop(server);
	backup_stop(server);
	streams_feed(server);
	streams_stop(server);
	readers_stop(server);
	connections_flush(server);
	server->stop_by_ms = uv_now(&server->loop) + STOP_MS;
	uv_timer_start(
		&server->due, on_stop_due, server->connections.count == 0 ? 0 : STOP_GRACE_MS, STOP_LOOK_MS);
}

static int begin_loop(struct server *server)
{
	int r = uv_loop_init(&server->loop);

	if (r != 0) {
		log_error("not started", log_cstr("reason", uv_strerror(r)));
		return EXIT_SYSTEM;
	}
	uv_check_init(&server->loop, &server->check);
	uv_timer_init(&server->loop, &server->sweep);
	uv_timer_init(&server->loop, &server->due);
	uv_idle_init(&server->loop, &server->more);
	uv_idle_init(&server->loop, &server->backup.step);
	server->backup.step.data = server;
	uv_signal_init(&server->loop, &server->term);
	uv_signal_init(&server->loop, &server->interrupt);
	server->check.data = server->sweep.data = server->due.data = server;
	server->term.data = server->interrupt.data = server;
	uv_check_start(&server->check, on_check);
	uv_signal_start(&server->term, on_stop, SIGTERM);
	uv_signal_start(&server->interrupt, on_stop, SIGINT);
	return 0;
}

static void start_sweeps(struct server *server)
{
	uv_timer_start(&server->sweep, on_sweep, server->options->sweep_ms, 0);
	lead_begin(server);
	server->last_sweep_ms = server->now.lease_ms;
	server->asleep_ms = clock_asleep_ms();
}

static int listen_everywhere(struct server *server, uint16_t *ret_port)
{
	struct socket_list given = {.count = 0};
	int r = listen_local(server);

	given.count = service_sockets(given.sockets, SERVICE_SOCKETS_MAX);
	if (r == 0)
		r = listen_tcp(server, &given, ret_port);
	if (r != 0)
		return r;
	listen_beside(server, &given, *ret_port);
	r = refuse_others(&given, server->options);
	if (r != 0)
		return r;
	name_us(server, *ret_port);
	certificate_begin(server);
	return 0;
}

static int start(struct server *server)
{
	char token[TOKEN_BYTES_MAX];
	bool is_shared = server->options->store_url != NULL;
	uint16_t port = 0;

	server->now = clock_now();
	int r = home_prepare(server->options->home);
	if (r == 0 && is_shared)
		r = home_lock(server->options->home);
	else if (r == 0)
		r = open_store(server, token); /* its lock says that nobody else serves here */
	if (r == 0)
		r = begin_loop(server);
	if (r != 0)
		return r;
	host_init(server);
	r = listen_everywhere(server, &port);
	if (r == 0 && is_shared)
		r = open_store(server, token); /* this may take weeks */
	if (r != 0)
		return r;
	server->started = server->now;
	backups_prepare(server);
	server->shares.round = 1; /* in 0, the share of a principal would count as one that it has */
	admission_init(&server->admission, server->options, port, token);
	sodium_memzero(token, sizeof token);
	if (server->options->auth_open)
		log_warn(
			"auth is open: every program on this machine may read, create, claim and cancel work without a token");
	heartbeat_file_start(server);
	start_sweeps(server);
	return announce(server); /* last: a client that reads where we are may tell us to stop */
}

/* Every client costs a descriptor: have as many as we may, and divide them. */
static void raise_limits(struct server *server)
{
	struct rlimit files = {0}, most;

	getrlimit(RLIMIT_NOFILE, &files);
	most = (struct rlimit){files.rlim_max, files.rlim_max};
	if (setrlimit(RLIMIT_NOFILE, &most) == 0)
		files = most;
	payers_init(&server->payers, files.rlim_cur);
	server->standby.passing.most = (uint32_t)(files.rlim_cur / 4); /* two descriptors each */
}

static void close_handle(uv_handle_t *handle, void *context)
{
	(void)context;
	if (!uv_is_closing(handle))
		uv_close(handle, NULL);
}

static int stop(struct server *server)
{
	uv_walk(&server->loop, close_handle, NULL);
	uv_run(&server->loop, UV_RUN_DEFAULT);
	uv_loop_close(&server->loop);
	home_remove(server->options->home, "url");
	if (server->certificate.is_published)
		home_remove(server->options->home, "ca.crt");
	home_remove(server->options->home, "stint.sock");
	if (server->store) {
		heartbeat_file_done(server);
		streams_done(server);
		deliveries_done(&server->deliveries);
		turns_done(server);
		store_rest(server->store, server->now);
		steps_done(server);
		store_close(server->store);
	}
	log_info("stopped");
	return 0;
}

/* A signal came before this server led. */
static int stop_standing_by(struct server *server)
{
	connections_close_all(server);
	return stop(server);
}

/* Without them, the next file to be opened would become stderr, and be logged into. */
static void hold_standard_files(void)
{
	int fd;

	do {
		fd = open("/dev/null", O_RDWR);
	} while (fd >= 0 && fd <= STDERR_FILENO);
	if (fd >= 0)
		close(fd);
}

static int serve(struct server *server, struct options *options)
{
	log_start(STDERR_FILENO, options->log_format, options->log_level);
	if (sodium_init() < 0) {
		log_error("not started: the system has no random numbers to give");
		return 1;
	}
	signal(SIGPIPE, SIG_IGN);
	umask(077);
	raise_limits(server);
	prctl(PR_SET_DUMPABLE, 0);
	if (options->restore)
		return restore_run(options);
	if (options->check_store)
		return check_store_run(options);
	server->options = options;
	int r = start(server);
	if (r == -ECANCELED)
		return stop_standing_by(server);
	if (r != 0)
		return r;
	service_tell("READY=1");
	uv_run(&server->loop, UV_RUN_DEFAULT);
	return stop(server);
}

/* What a large request takes for a moment lies in pages of its own and goes back at once. Otherwise it stays with us
 * for good, below the tasks that the request brought: 24 bytes for each of a million. */
static void give_back_large_memory(void)
{
	mallopt(M_MMAP_THRESHOLD, LARGE_BYTES);
}

int main(int argc, char **argv)
{
	static struct options options;
	static struct server server;

	give_back_large_memory();
	hold_standard_files();
	int r = options_read(argc, argv, &options);
	if (r == 0 && options.help)
		print_help();
	else if (r == 0 && options.version)
		puts("stintd " STINT_VERSION);
	else if (r == 0 && !options.check_config)
		r = serve(&server, &options);
	options_done(&options);
	return r;
}
