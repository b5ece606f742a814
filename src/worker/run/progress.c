/* Progress of a run, told to the server: one request a second at the most, and of several notes the newest counts. */
#include "worker/run/parts.h"

#include "base/take.h"

enum {
	CALL_MS = 10 * 1000,
	NOTE_MS = 1000, /* between two notes of progress */
};

static void send_note(struct run *run);

static void on_note_again(uv_timer_t *timer)
{
	send_note(timer->data);
}

/* What became of it does not matter: the next one is newer, and the report tells the end. But the last one of an agent says what it has
 * used, which no report does: it is repeated until the server has answered, and the report waits for that. */
static void on_noted(void *context, int fault, const struct http_answer *answer)
{
	struct run *run = context;
	bool last = run->phase == RUN_ENDED;

	(void)answer;
	if (last && fault == 0 && run->note_waits) {
		send_note(run);
		return;
	}
	run->note_waits |= last && fault < 0 && run->agent;
	uv_timer_start(&run->note_timer, on_note_again, NOTE_MS, 0);
	if (last && run->log_ended && !run->note_waits)
		run_log_ended(run);
}

bool run_owes_note(const struct run *run)
{
	return run->agent && run->stop != STOP_LOST &&
		(run->note_waits || (run->notes && api_client_is_busy(run->notes)));
}

static void send_note(struct run *run)
{
	struct supervisor *supervisor = run->supervisor;
	cleanup(buf_done) struct buf target = {0};

	bool over = run->phase != RUN_STARTED && !(run->agent && run->phase == RUN_ENDED);

	if (!run->note_waits || over)
		return;
	if (!run->notes)
		run->notes = supervisor_take_client(supervisor);
	buf_init(&target, 1024);
	buf_put(&target, run->log_target.data, run->log_target.len - (sizeof "/log" - 1));
	if (!run->notes)
		run->note_waits = run->note_waits && run->phase != RUN_ENDED; /* nobody is there to say it */
	if (!run->notes || api_client_is_busy(run->notes) || buf_printf(&target, "/progress") < 0)
		return;
	struct http_call call = {
		.method = HTTP_METHOD_POST,
		.target = buf_span(&target),
		.body = buf_span(&run->note),
		.token = heartbeat_token(supervisor->heartbeat),
		.timeout_ms = CALL_MS,
	};
	run->note_waits = false;
	if (api_client_call(run->notes, &call, on_noted, run) < 0)
		uv_timer_start(&run->note_timer, on_note_again, NOTE_MS, 0);
}

void run_send_progress(struct run *run)
{
	if (!uv_is_active((uv_handle_t *)&run->note_timer))
		send_note(run);
}
