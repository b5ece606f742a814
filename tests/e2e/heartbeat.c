/*
 * A worker that does nothing but beat: stint-heartbeat URL TOKEN-FILE WORKER LEASE-MS near|far
 *
 * Lines in: "bind ID", "unbind ID", "forget ID", "renew WORKER"; the end of the input ends it. Lines out: the news, one
 * each, as "registered", "lost ID", "cancel ID".
 */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <uv.h>

#include "worker/beat/heartbeat.h"

static struct heartbeat_client *heartbeat;
static uv_pipe_t input;
static char line[4096];
static size_t line_len;

static void tell(void *context, const struct heartbeat_event *news)
{
	static const char *const kinds[] = {
		[HEARTBEAT_REGISTERED] = "registered",
		[HEARTBEAT_LOST] = "lost",
		[HEARTBEAT_CANCEL] = "cancel",
		[HEARTBEAT_REPORTED] = "reported",
		[HEARTBEAT_STOP_WAITING] = "park",
		[HEARTBEAT_STANDING] = "standing",
		[HEARTBEAT_LAPSED] = "lapsed",
		[HEARTBEAT_VOUCHED] = "vouched",
		[HEARTBEAT_OVER] = "over",
		[HEARTBEAT_REFUSED] = "refused",
		[HEARTBEAT_AWAY] = "away",
		[HEARTBEAT_BACK] = "back",
		[HEARTBEAT_NOTIFIED] = "news",
	};

	(void)context;
	printf("%s", kinds[news->kind]);
	if (news->id.len > 0)
		printf(" %.*s", SPAN_ARGS(news->id));
	if (news->kind == HEARTBEAT_STANDING)
		printf(" %d", (int)news->standing);
	if (news->kind == HEARTBEAT_REFUSED)
		printf(" %d %.*s", news->status, SPAN_ARGS(news->code));
	printf("\n");
	fflush(stdout);
}

static void obey(const char *order)
{
	struct span id = span_of(strchr(order, ' ') ? strchr(order, ' ') + 1 : "");
	int r = 0;

	if (strncmp(order, "bind ", 5) == 0)
		r = heartbeat_bind(heartbeat, id);
	else if (strncmp(order, "unbind ", 7) == 0)
		heartbeat_let_go(heartbeat, id, false);
	else if (strncmp(order, "forget ", 7) == 0)
		heartbeat_let_go(heartbeat, id, true);
	else if (strncmp(order, "renew ", 6) == 0)
		r = heartbeat_renew(heartbeat, id);
	else
		r = -1;
	if (r < 0) {
		fprintf(stderr, "stint-heartbeat: no: %s\n", order);
		exit(1);
	}
}

static void on_room(uv_handle_t *handle, size_t wanted, uv_buf_t *room)
{
	static char block[1024];

	(void)handle;
	(void)wanted;
	*room = uv_buf_init(block, sizeof block);
}

static void on_input(uv_stream_t *stream, ssize_t got, const uv_buf_t *room)
{
	if (got < 0) {
		uv_close((uv_handle_t *)stream, NULL);
		heartbeat_free(heartbeat);
		return;
	}
	for (ssize_t i = 0; i < got; i++) {
		if (room->base[i] != '\n' && line_len < sizeof line - 1) {
			line[line_len++] = room->base[i];
			continue;
		}
		line[line_len] = 0;
		line_len = 0;
		obey(line);
	}
}

int main(int argc, char **argv)
{
	struct heartbeat_options options = {
		.tasks_max = 1000, .seed = 1, .about = SPAN("\"executors\":[\"none\"]")};
	const char *complaint = "usage: stint-heartbeat URL TOKEN-FILE WORKER LEASE-MS near|far";
	static char token[600];
	FILE *file = argc == 6 ? fopen(argv[2], "r") : NULL;

	if (!file || !fgets(token, sizeof token, file) ||
		http_address_parse(argv[1], &options.address, &complaint) < 0) {
		fprintf(stderr, "stint-heartbeat: %s\n", complaint);
		return 2;
	}
	fclose(file);
	token[strcspn(token, "\n")] = 0;
	options.token = span_of(token);
	options.worker_id = span_of(argv[3]);
	options.rules = (struct beat_rules){
		.lease_ms = strtoll(argv[4], NULL, 10),
		.same_host = strcmp(argv[5], "near") == 0,
	};
	uv_loop_t *loop = uv_default_loop();
	heartbeat = heartbeat_new(loop, &options, tell, NULL);
	uv_pipe_init(loop, &input, 0);
	if (!heartbeat || uv_pipe_open(&input, 0) < 0)
		return 1;
	uv_read_start((uv_stream_t *)&input, on_room, on_input);
	uv_run(loop, UV_RUN_DEFAULT);
	return uv_loop_close(loop) == 0 ? 0 : 3;
}
