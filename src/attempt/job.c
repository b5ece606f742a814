#include "attempt/job.h"

#include <assert.h>
#include <errno.h>
#include <stdio.h>
#include <string.h>

enum { WORDS_SHOWN = 300 };

static void take(struct job *job, enum process_stream stream, struct buf *into)
{
	const struct output *output = process_output(job->process, stream);
	struct span part;

	while ((part = output_unread(output, NULL)).len > 0) {
		size_t before = into->len;
		if (buf_put(into, part.data, part.len) < 0) {
			buf_cut(into, before);
			job->dropped += part.len;
		}
		process_advance(job->process, stream, part.len);
	}
}

static void on_output(void *context, struct process *process, enum process_stream stream)
{
	struct job *job = context;

	(void)process;
	if (stream == STREAM_OUT)
		take(job, STREAM_OUT, &job->out);
}

static void on_gone(void *context, struct process *process)
{
	struct job *job = context;

	assert(job->process == process); /* one program at a time */
	uv_timer_stop(&job->clock);
	take(job, STREAM_OUT, &job->out);
	job->dropped += process_output(process, STREAM_OUT)->dropped; /* a total: added once */
	output_tail(process_output(process, STREAM_ERR), JOB_WORDS_BYTES_MAX, &job->err);
	job->end = *process_end(process);
	process_free(process);
	job->process = NULL;
	job->done(job->context);
}

static const struct process_events events = {.output = on_output, .gone = on_gone};

static void on_late(uv_timer_t *timer)
{
	struct job *job = timer->data;

	job->timed_out = true;
	job_kill(job);
}

void job_init(struct job *job, uv_loop_t *loop, struct host *host, void *context)
{
	*job = (struct job){.host = host, .context = context};
	uv_timer_init(loop, &job->clock);
	job->clock.data = job;
	buf_init(&job->out, JOB_OUTPUT_BYTES_MAX);
	buf_init(&job->err, JOB_WORDS_BYTES_MAX);
}

int job_start(struct job *job, struct process_spec *spec, int64_t timeout_ms, void (*done)(void *context))
{
	assert(!job->process);
	buf_clear(&job->out);
	buf_clear(&job->err);
	job->timed_out = false;
	job->dropped = 0;
	job->done = done;
	spec->events = &events;
	spec->context = job;
	int fault = process_start(job->host, spec, &job->process);
	if (!fault)
		uv_timer_start(&job->clock, on_late, (uint64_t)timeout_ms, 0);
	return fault;
}

void job_kill(struct job *job)
{
	if (job->process)
		process_kill(job->process);
}

bool job_went_well(const struct job *job)
{
	assert(!job->process); /* how it ended is known when it has */
	return job->end.how == ENDED_EXIT && job->end.code == 0 && !job->timed_out && job->dropped == 0;
}

/* The last lines in one: programs say first what went wrong, and then what that means for them. */
static struct span last_words(struct span text, char *line, size_t room)
{
	while (text.len > 0 && strchr(" \t\r\n", text.data[text.len - 1]))
		text.len--;
	size_t len = text.len < room ? text.len : room;
	for (size_t i = 0; i < len; i++) {
		char byte = text.data[text.len - len + i];
		line[i] = byte == '\n' ? ';' : (unsigned char)byte < ' ' ? ' ' : byte;
	}
	return (struct span){line, len};
}

void job_explain(const struct job *job, char *text, size_t room)
{
	char room_for_words[WORDS_SHOWN];
	struct span line = last_words(buf_span(&job->err), room_for_words, sizeof room_for_words);
	size_t used;

	if (job->timed_out)
		snprintf(text, room, "it took too long");
	else if (job->end.how == ENDED_UNSTARTED)
		start_fault_text(&job->end.fault, text, room);
	else if (job->end.how == ENDED_EXIT && job->end.code == 0)
		snprintf(text, room, "it says more than can be kept");
	else
		snprintf(text, room, "%s %d", job->end.how == ENDED_SIGNAL ? "signal" : "exit status",
			job->end.code);
	used = strlen(text);
	if (line.len > 0)
		snprintf(text + used, room - used, ": %.*s", (int)line.len, line.data);
}

static void on_closed(uv_handle_t *handle)
{
	struct job *job = handle->data;

	buf_done(&job->out);
	buf_done(&job->err);
	job->closed(job->context);
}

void job_close(struct job *job, void (*closed)(void *context))
{
	assert(!job->process);
	job->closed = closed;
	uv_close((uv_handle_t *)&job->clock, on_closed);
}
