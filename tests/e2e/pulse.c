/*
 * A worker that does nothing but beat: stint-pulse URL TOKEN-FILE WORKER LEASE-MS near|far
 *
 * Lines in: "bind ID", "unbind ID", "forget ID", "renew WORKER"; the end of the input ends it. Lines out: the news, one
 * each, as "registered", "lost ID", "cancel ID".
 */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <uv.h>

#include "worker/beat/pulse.h"

static struct pulse *pulse;
static uv_pipe_t input;
static char line[4096];
static size_t line_len;

static void tell(void *context, const struct pulse_news *news)
{
	static const char *const kinds[] = {
		[PULSE_REGISTERED] = "registered",
		[PULSE_LOST] = "lost",
		[PULSE_CANCEL] = "cancel",
		[PULSE_REPORTED] = "reported",
		[PULSE_PARK] = "park",
		[PULSE_STANDING] = "standing",
		[PULSE_LAPSED] = "lapsed",
		[PULSE_VOUCHED] = "vouched",
		[PULSE_OVER] = "over",
		[PULSE_REFUSED] = "refused",
		[PULSE_AWAY] = "away",
		[PULSE_BACK] = "back",
	};

	(void)context;
	printf("%s", kinds[news->kind]);
	if (news->id.len > 0)
		printf(" %.*s", SPAN_ARGS(news->id));
	if (news->kind == PULSE_STANDING)
		printf(" %d", (int)news->standing);
	if (news->kind == PULSE_REFUSED)
		printf(" %d %.*s", news->status, SPAN_ARGS(news->code));
	printf("\n");
	fflush(stdout);
}

static void obey(const char *order)
{
	struct span id = span_of(strchr(order, ' ') ? strchr(order, ' ') + 1 : "");
	int r = 0;

	if (strncmp(order, "bind ", 5) == 0)
		r = pulse_bind(pulse, id);
	else if (strncmp(order, "unbind ", 7) == 0)
		pulse_unbind(pulse, id);
	else if (strncmp(order, "forget ", 7) == 0)
		pulse_forget(pulse, id);
	else if (strncmp(order, "renew ", 6) == 0)
		r = pulse_renew(pulse, id);
	else
		r = -1;
	if (r < 0) {
		fprintf(stderr, "stint-pulse: no: %s\n", order);
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
		pulse_free(pulse);
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
	struct pulse_options options = {
		.tasks_max = 1000, .seed = 1, .about = SPAN("\"executors\":[\"none\"]")};
	const char *complaint = "usage: stint-pulse URL TOKEN-FILE WORKER LEASE-MS near|far";
	static char token[600];
	FILE *file = argc == 6 ? fopen(argv[2], "r") : NULL;

	if (!file || !fgets(token, sizeof token, file) ||
		http_address_parse(argv[1], &options.address, &complaint) < 0) {
		fprintf(stderr, "stint-pulse: %s\n", complaint);
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
	pulse = pulse_new(loop, &options, tell, NULL);
	uv_pipe_init(loop, &input, 0);
	if (!pulse || uv_pipe_open(&input, 0) < 0)
		return 1;
	uv_read_start((uv_stream_t *)&input, on_room, on_input);
	uv_run(loop, UV_RUN_DEFAULT);
	return uv_loop_close(loop) == 0 ? 0 : 3;
}
