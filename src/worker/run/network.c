/* The ways of a run out of its isolation: to the server, and to the hosts that its executor lists. */
#include "worker/run/parts.h"

#include <errno.h>
#include <string.h>

#include "attempt/walls.h"
#include "base/log.h"

/* ---- what was refused ------------------------------------------------------------------------------------------------ */

void run_add_last_words(struct run *run, const char *line)
{
	const char *words = arena_text(&run->arena, "%s%s", run->last_words ? run->last_words : "", line);

	if (!words[0]) /* no memory: the log is shorter by that line */
		return;
	run->last_words = words;
	log_upload_add_last(&run->upload, span_of(words));
}

static bool is_told(const struct run *run, const char *host)
{
	for (uint32_t i = 0; i < run->barred_count; i++)
		if (strcmp(run->barred[i], host) == 0)
			return true;
	return false;
}

/* Each host once: a program that is refused tries again. */
static void on_barred(void *context, const char *host, uint16_t port, const char *address)
{
	struct run *run = context;
	const struct settings *settings = run->supervisor->settings;
	const char *file = settings_file_of(settings, settings_origin_of(settings, run->executor));
	const char *entry = address[0] ? address : host;

	if (is_told(run, host) || run->barred_count == RUN_BARRED_MAX)
		return;
	run->barred[run->barred_count++] = arena_text(&run->arena, "%s", host);
	log_warn("a task was refused a host", log_cstr("task", run->task), log_cstr("host", host),
		log_int("port", port), log_cstr("address", address));
	run_add_last_words(run,
		arena_text(&run->arena,
			"stint: %s:%u was refused: %s%s%s. To allow it add \"%s\" to \"network\" of executor %s in %s, and "
			"restart the worker\n",
			host, port,
			address[0] ? "it has the address " : "\"network\" of its executor does not list it",
			address, address[0] ? ", which is not public" : "", entry, run->executor->name,
			file));
}

/* ---- the sockets ------------------------------------------------------------------------------------------------------ */

int run_open_sockets(struct run *run)
{
	struct supervisor *supervisor = run->supervisor;
	struct child_socket_options options = {
		.loop = supervisor->loop,
		.share = &supervisor->accepts,
		.run_fd = run->dir_fd,
		.server = &supervisor->options->address,
		.hosts = run->executor->hosts,
		.barred = on_barred,
		.context = run,
	};

	if (run->wall.level == WALL_VM) /* there is no way into a machine but its serial line */
		return 0;
	int r = child_socket_open(&options, &run->socket);
	if (r == 0 && options.hosts) {
		options.server = NULL;
		r = child_socket_open(&options, &run->proxy);
	}
	if (r < 0)
		run_close_sockets(run);
	return r;
}

/* An address of a socket has 107 bytes. Behind a wall a longer path has a short name; here a link has one. */
int run_name_sockets(struct run *run, const char *run_path)
{
	const char *proxy = run->proxy ? arena_text(&run->arena, "%s/" PROXY_SOCKET_NAME, run_path) : NULL;
	int r = 0;

	walls_settle(&run->wall, run_path, arena_text(&run->arena, "%s/" CHILD_SOCKET_NAME, run_path), proxy);
	if (run->wall.level != WALL_PROCESS || !wall_is_long(run->wall.socket))
		return 0;
	if (!run->short_link[0])
		r = short_link_make(run_path, run->short_link);
	run->wall.socket = arena_text(&run->arena, "%s/" CHILD_SOCKET_NAME, run->short_link);
	return r;
}

void run_close_sockets(struct run *run)
{
	child_socket_close(run->socket);
	child_socket_close(run->proxy);
	run->socket = run->proxy = NULL;
	short_link_remove(run->short_link);
}
