/*
 * Impostors: they report about tasks that they do not hold, under somebody else's fence or an old one, take
 * ids that are taken, and claim whatever they see. Nothing of it may change anything it should not.
 */
#include "sim/sim.h"

static struct span some_worker(struct sim *sim, struct request *request)
{
	const struct model *model = &sim->model;

	if (model->worker_count == 0 || rng_chance(&sim->rng, 4))
		return SPAN("stranger");
	return request_text(request, span_of(model->workers[rng_below(&sim->rng, model->worker_count)].id));
}

/* The right fence from the wrong worker, or an old fence from the right one. */
static void forge(struct sim *sim, struct request *request, const struct model_task *task)
{
	struct command *command = &request->command;
	const struct fold *fold = &task->fold;

	if (fold->holder[0] != 0 && rng_chance(&sim->rng, 2)) {
		command->worker = request_text(request, span_of(fold->holder));
		command->fence = fold->task.fence - 1 - rng_below(&sim->rng, 2);
		return;
	}
	command->worker = some_worker(sim, request);
	command->fence = fold->task.fence;
	command->by_name = rng_chance(&sim->rng, 4);
	if (span_equal(command->worker, span_of(fold->holder)))
		command->worker = SPAN("stranger");
}

static void report_falsely(struct sim *sim, struct actor *actor, const struct model_task *task)
{
	static const enum command_kind kinds[] = {COMMAND_PROGRESS, COMMAND_COMPLETE, COMMAND_FAIL,
		COMMAND_REVIEW, COMMAND_BLOCK, COMMAND_ASK, COMMAND_WAIT, COMMAND_RELEASE};
	uint32_t slot;
	struct request *request =
		network_request(sim, actor, kinds[rng_below(&sim->rng, sizeof kinds / sizeof *kinds)], &slot);

	request->command.task = request_text(request, span_of(task->id));
	request->command.data = SPAN("\"forged\"");
	request->command.wait_ends = true;
	if (request->command.kind == COMMAND_FAIL || request->command.kind == COMMAND_BLOCK)
		request->command.failure = (struct failure){.code = CODE_BAD_WORKDIR, .klass = CLASS_POLICY};
	forge(sim, request, task);
	network_send(sim, slot);
}

static void create_again(struct sim *sim, struct actor *actor, const struct model_task *task)
{
	uint32_t slot;
	struct request *request = network_request(sim, actor, COMMAND_CREATE, &slot);

	request->command.create.queue = word_queues[0];
	request->command.create.id = request_text(request, span_of(task->id));
	request->command.create.body = SPAN("\"title\":\"again\"");
	network_send(sim, slot);
}

static void claim_blindly(struct sim *sim, struct actor *actor, const struct model_task *task)
{
	uint32_t slot;
	struct request *request = network_request(sim, actor, COMMAND_CLAIM, &slot);
	struct command_claim *claim = &request->command.claim;

	request->command.task = request_text(request, span_of(task->id));
	request->command.worker = some_worker(sim, request);
	claim->queues = request_begin_list(request);
	claim->capabilities = request_begin_list(request);
	claim->executors = request_begin_list(request);
	claim->any_executor = true;
	claim->takes_ready = true;
	claim->resumes = rng_chance(&sim->rng, 2);
	claim->max = 1;
	network_send(sim, slot);
}

void impostor_act(struct sim *sim, struct actor *actor)
{
	const struct model_task *task = sim->calm ? NULL : some_task(sim);

	if (sim->calm)
		return;
	actor_wake_in(sim, actor, sim_paced_between(sim, 2000, 30000));
	if (!task)
		return;
	/* an id of the store's own making is no secret: it may be asked for too */
	if (rng_chance(&sim->rng, 6) && task->fold.task.named_id)
		create_again(sim, actor, task);
	else if (rng_chance(&sim->rng, 10))
		claim_blindly(sim, actor, task);
	else
		report_falsely(sim, actor, task);
}
