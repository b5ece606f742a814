/*
 * What people tell a task while an agent works on it (stint tell). It is kept here until the agent's turn has ended, and is its next
 * turn then; of an agent whose process ends with its turn, the prompt of another process. What the session knows is written down
 * with it, so that no attempt tells it twice; the server is told with the next progress.
 */
#include "worker/run/parts.h"

#include "agent/prompt/prompt.h"
#include "base/log.h"
#include "base/take.h"

void run_hear_tells(struct run *run, yyjson_val *task)
{
	struct run_agent *agent = run->agent;
	struct prompt_facts facts = {.task = task, .told = agent->tells_last};
	size_t before = agent->tells.len;
	int64_t last = prompt_put_tells(&agent->tells, &facts);

	if (buf_fault(&agent->tells) < 0)
		buf_cut(&agent->tells, before); /* the rest comes with the turn after that */
	else
		agent->tells_last = last;
}

bool run_has_tells(const struct run *run)
{
	return run->agent->tells_last > run->agent->memory.told;
}

int run_put_tells(struct run *run, struct buf *prompt)
{
	struct run_agent *agent = run->agent;
	struct json_complaint complaint;
	cleanup(yyjson_doc_free_at) yyjson_doc *doc =
		json_read_to(run->input, JSON_REPLY_DEPTH_MAX, &complaint);
	struct prompt_facts facts = {
		.task = yyjson_doc_get_root(doc), .stint = agent->stint, .near = agent->near};

	if (!doc)
		return -ENOMEM;
	int r = prompt_put_told(prompt, &facts, buf_span(&agent->tells));
	if (r < 0)
		return r;
	buf_clear(&agent->tells);
	agent->memory.told = agent->tells_last;
	agent->dirty = true;
	if (memory_save(&agent->memory) < 0)
		log_warn("what an agent was told cannot be written down", log_cstr("task", run->task));
	return 0;
}

void run_told(struct run *run)
{
	if (run->agent && run->phase == RUN_STARTED)
		run_look(run);
}
