/* What pools need of their supervisor (struct pools_owner). */
#include "worker/supervisor/parts.h"

#include <errno.h>
#include <stdio.h>

enum { CALL_MS = 10 * 1000 };

void supervisor_name_run(void *context, char name[PROCESS_RUN_BYTES_MAX + 1])
{
	struct supervisor *supervisor = context;

	snprintf(name, PROCESS_RUN_BYTES_MAX + 1, "%s-%llu", supervisor->instance,
		(unsigned long long)++supervisor->run_number);
}

static int note_run(void *context, const struct process_identity *identity)
{
	struct supervisor *supervisor = context;
	struct run_attempt nobody = {supervisor->worker_id, "", ""};
	struct run_record record = {.fd = -1};

	int r = state_dir_note_run(&supervisor->state_dir, &record, identity, &nobody);
	run_record_close(&record);
	return r;
}

static int forget_run(void *context, const char *run)
{
	struct supervisor *supervisor = context;

	return state_dir_forget_run(&supervisor->state_dir, run);
}

static void on_answer(void *context, int fault, const struct http_answer *answer)
{
	struct supervisor *supervisor = context;

	supervisor->pool_answered(supervisor->pool_asker, fault == 0 ? http_answer_status(answer) : 0);
}

static int ask(void *context, struct span target, struct span body, pools_answered answered, void *asker)
{
	struct supervisor *supervisor = context;

	if (!supervisor->pool_client)
		supervisor->pool_client = supervisor_take_client(supervisor);
	if (!supervisor->pool_client)
		return -ENOMEM;
	supervisor->pool_answered = answered;
	supervisor->pool_asker = asker;
	/* it may be repeated: a trial belongs to whom it was given to */
	return api_client_post(supervisor->pool_client, target, body, heartbeat_token(supervisor->heartbeat),
		CALL_MS, on_answer, supervisor);
}

static int post(void *context, const char *name, struct span target, struct span body)
{
	struct supervisor *supervisor = context;

	return outbox_post(supervisor->outbox, name, target, body);
}

static const struct pools_owner owner = {
	.name_run = supervisor_name_run,
	.note_run = note_run,
	.forget_run = forget_run,
	.ask = ask,
	.post = post,
	.changed = supervisor_pools_changed,
	.claim_later = supervisor_claim_later,
};

int supervisor_open_pools(struct supervisor *supervisor)
{
	const struct supervisor_options *options = supervisor->options;
	struct pools_site site = {
		.loop = supervisor->loop,
		.host = supervisor->host,
		.executors = supervisor->settings->executors,
		.executor_count = supervisor->settings->executor_count,
		.place = &supervisor->settings->place,
		.home = supervisor->state_dir.home,
		.runs_fd = supervisor->state_dir.runs_fd,
		.slot = options->slot   ? options->slot
			: options->once ? options->once->agent_id
					: options->name,
		.worker_id = supervisor->worker_id,
		.accepts = &supervisor->accepts,
		.lazy = options->once != NULL,
		.owner = &owner,
		.context = supervisor,
	};

	supervisor->pools = pools_new(&site);
	return supervisor->pools ? 0 : -ENOMEM;
}
