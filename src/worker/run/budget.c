/*
 * What an attempt may use: the budget of its executor, which is new for each attempt, and the budget of its task, which all attempts
 * share. What earlier attempts used is the more of what this host remembers and what the server has counted.
 *
 *	before its process   used up: it is not started; a part that nobody can meter: refused (NOT_ALLOWED)
 *	four fifths          said in the log, and to the agent with its next turn
 *	all of it            stopped. The task is blocked; or, with "onBudget":"ask", a person decides, and an answer other than "stop" gives
 *	                     the task as much again
 */
#include "worker/run/parts.h"

#include <stdio.h>
#include <string.h>

#include "agent/settings.h"
#include "base/log.h"
#include "base/take.h"

enum { CALL_MS = 10 * 1000, NEAR_PERCENT = 80 };

static const char *const part_names[BUDGET_PARTS] = {"usd", "tokens", "turns", "toolCalls"};

static const struct agent_settings *settings_of(const struct run *run)
{
	return run->executor->agent;
}

/* ---- what was used -------------------------------------------------------------------------------------------- */

const char *run_agent_model(const struct run *run)
{
	const struct run_agent *agent = run->agent;

	return agent->session.model[0] ? agent->session.model : agent->model;
}

static const struct price *price_of_run(const struct run *run)
{
	return price_find(&run->supervisor->settings->prices, run_agent_model(run));
}

void run_add_price(const struct run *run, struct session_usage *usage)
{
	const struct price *price = usage->usd_known || !usage->tokens_known ? NULL : price_of_run(run);

	if (!price)
		return;
	usage->usd = price_of(price, usage, settings_of(run)->adapter->input_has_cache);
	usage->usd_known = true;
}

/* By part. */
static void put_used(const struct session_spending *spending, double used[BUDGET_PARTS])
{
	const struct session_usage *usage = &spending->usage;

	used[BUDGET_USD] = usage->usd_known ? usage->usd : 0;
	used[BUDGET_TOKENS] =
		(double)(usage->input_tokens + usage->output_tokens + usage->cache_write_tokens);
	used[BUDGET_TURNS] = (double)spending->turns;
	used[BUDGET_TOOL_CALLS] = (double)spending->tool_calls;
}

/* ---- what may be used ----------------------------------------------------------------------------------------- */

static double number_of(yyjson_val *object, const char *key)
{
	double number = 0;

	return json_number(yyjson_obj_get(object, key), &number) && number > 0 ? number : 0;
}

static double more(double a, double b)
{
	return a > b ? a : b;
}

static void put_spent(const struct memory *memory, yyjson_val *usage, double spent[BUDGET_PARTS])
{
	double tokens = number_of(usage, "inputTokens") + number_of(usage, "outputTokens") +
		number_of(usage, "cacheWriteTokens");

	spent[BUDGET_USD] = more(memory->usd_spent, number_of(usage, "usd"));
	spent[BUDGET_TOKENS] = more((double)memory->tokens_spent, tokens);
	spent[BUDGET_TURNS] = more((double)memory->turns_spent, number_of(usage, "turns"));
	spent[BUDGET_TOOL_CALLS] = more((double)memory->tool_calls_spent, number_of(usage, "toolCalls"));
}

/* Why nobody can meter that part; NULL: it is metered. */
static const char *unmetered(const struct run *run, enum budget_part part)
{
	const struct adapter *adapter = settings_of(run)->adapter;

	switch (part) {
	case BUDGET_USD:
		return adapter->counts_usd || price_of_run(run)
			? NULL
			: "the agent says tokens and no money, and the worker's \"prices\" have none of its model";
	case BUDGET_TOKENS:
		return adapter->counts_tokens ? NULL : "the agent says none";
	case BUDGET_TOOL_CALLS:
		return adapter->counts_tools ? NULL : "the agent does not tell its tool calls";
	case BUDGET_TURNS:
	case BUDGET_PARTS:
		break;
	}
	return NULL;
}

static bool refuse_spent(struct run *run, const char *name, double whole, const char *unit)
{
	return run_refuse(run, "BUDGET_EXCEEDED",
		arena_text(&run->arena,
			"budget.%s of the task is used up by its attempts: %g%s. Raise its \"budget\" (stint edit %s), then: stint retry %s",
			name, whole, unit, run->task, run->task));
}

static bool read_minutes(struct run *run, yyjson_val *budget, uint32_t times)
{
	double minutes = number_of(budget, "minutes") * times;
	int64_t left_ms = (int64_t)(minutes * 60 * 1000) - run->agent->memory.ms_spent;

	if (minutes == 0)
		return true;
	if (left_ms <= 0)
		return refuse_spent(run, "minutes", minutes, "");
	if (left_ms < run->timeout_ms) {
		run->timeout_ms = left_ms;
		run->timeout_is_budget = true;
	}
	return true;
}

static void take_executors(struct run *run)
{
	const struct agent_settings *settings = settings_of(run);
	struct run_budget *budget = &run->agent->budget;

	budget->most[BUDGET_USD] = settings->usd_max;
	budget->most[BUDGET_TOKENS] = (double)settings->tokens_max;
	budget->most[BUDGET_TURNS] = (double)settings->turns_max;
	budget->most[BUDGET_TOOL_CALLS] = (double)settings->tool_calls_max;
	memcpy(budget->said, budget->most, sizeof budget->said);
}

/* The answer to a question about the budget that an earlier attempt asked; false: a person has said that it ends here. */
static bool read_answer(struct run *run, yyjson_val *task)
{
	struct memory *memory = &run->agent->memory;
	yyjson_val *answer = yyjson_obj_get(task, "answer");
	struct span id = json_text(yyjson_obj_get(yyjson_obj_get(task, "question"), "id")),
		    text = json_text(yyjson_obj_get(answer, "text"));

	if (!memory->budget_question[0] || !span_equal(id, span_of(memory->budget_question)) ||
		!yyjson_is_obj(answer))
		return true;
	memory->budget_question[0] = 0;
	if (yyjson_is_true(yyjson_obj_get(answer, "deny")) ||
		yyjson_is_true(yyjson_obj_get(answer, "denied")) || span_is(text, "stop"))
		return run_refuse(
			run, "BUDGET_EXCEEDED", "a person has decided that it ends with this budget");
	memory->budgets_given++;
	return true;
}

bool run_read_budget(struct run *run, yyjson_val *task, yyjson_val *budget)
{
	struct run_agent *agent = run->agent;
	double spent[BUDGET_PARTS];

	take_executors(run);
	if (!read_answer(run, task))
		return false;
	uint32_t times = 1 + agent->memory.budgets_given;
	put_spent(&agent->memory, yyjson_obj_get(task, "usage"), spent);
	for (unsigned part = 0; part < BUDGET_PARTS; part++) {
		double whole = number_of(budget, part_names[part]) * times, left = whole - spent[part];
		const char *why = whole > 0 ? unmetered(run, part) : NULL;
		if (why)
			return run_refuse(run, "NOT_ALLOWED",
				arena_text(&run->arena,
					"budget.%s of the task cannot be metered by executor %s: %s",
					part_names[part], run->executor->name, why));
		if (whole > 0 && left <= 0)
			return refuse_spent(run, part_names[part], whole, "");
		if (whole > 0 && (agent->budget.most[part] == 0 || left < agent->budget.most[part])) {
			agent->budget.most[part] = left;
			agent->budget.said[part] = whole;
			agent->budget.spent[part] = spent[part];
		}
	}
	return read_minutes(run, budget, times);
}

bool run_check_plain_budget(struct run *run, yyjson_val *budget)
{
	double minutes = number_of(budget, "minutes");

	for (unsigned part = 0; part < BUDGET_PARTS; part++)
		if (yyjson_obj_get(budget, part_names[part]))
			return run_refuse(run, "NOT_ALLOWED",
				arena_text(&run->arena,
					"budget.%s of the task cannot be metered by executor %s, which is of kind %s: only "
					"agents count it",
					part_names[part], run->executor->name, run->executor->kind));
	if (minutes > 0 && (int64_t)(minutes * 60 * 1000) < run->timeout_ms) {
		run->timeout_ms = (int64_t)(minutes * 60 * 1000);
		run->timeout_is_budget = true;
	}
	return true;
}

double run_budget_left(const struct run *run, enum budget_part part)
{
	const struct run_agent *agent = run->agent;
	double used[BUDGET_PARTS];

	if (agent->budget.most[part] == 0)
		return 0;
	put_used(&agent->before, used);
	double left = agent->budget.most[part] - used[part];
	return left > 0 ? left : part == BUDGET_USD ? 1e-9 : 1;
}

/* ---- while it works ------------------------------------------------------------------------------------------- */

/* Of money and tokens nothing is left with the last of them; a turn or a call is the last one that may be. */
static bool is_over(unsigned part, double used, double most)
{
	return most > 0 && (part <= BUDGET_TOKENS ? used >= most : used > most);
}

static void note_near(struct run *run, unsigned part, double used)
{
	struct run_agent *agent = run->agent;
	const struct run_budget *budget = &agent->budget;

	agent->near = arena_text(&run->arena, "%.0f %% of budget.%s is used (%.6g of %.6g)",
		100 * (used + budget->spent[part]) / budget->said[part], part_names[part],
		used + budget->spent[part], budget->said[part]);
	session_note(&agent->session, span_of(arena_text(&run->arena, "stint: %s", agent->near)));
}

void run_look_at_budget(struct run *run)
{
	struct run_agent *agent = run->agent;
	const struct run_budget *budget = &agent->budget;
	struct session_spending spending = run_agent_spending(run);
	double used[BUDGET_PARTS];

	if (agent->over || agent->closing || run->stop != STOP_NOT)
		return;
	put_used(&spending, used);
	for (unsigned part = 0; part < BUDGET_PARTS; part++) {
		double said = budget->said[part];
		if (said > 0 && !agent->near &&
			100 * (used[part] + budget->spent[part]) >= NEAR_PERCENT * said)
			note_near(run, part, used[part]);
		if (!is_over(part, used[part], budget->most[part]))
			continue;
		agent->over = part_names[part];
		agent->over_limit = said;
		session_note(&agent->session,
			span_of(arena_text(&run->arena, "stint: budget.%s is used up (%g): it is ended",
				agent->over, said)));
		run_stop(run, STOP_FINAL, INT64_MAX);
		return;
	}
}

/* ---- asking for more ------------------------------------------------------------------------------------------ */

static int put_question(struct run *run)
{
	struct run_agent *agent = run->agent;
	struct buf *body = &agent->ask_body;
	struct json_object object;
	char text[200];

	/* another attempt asks another question: an old answer is no answer to it */
	snprintf(text, sizeof text,
		"Its budget is used up in attempt %u (%s: %g). May it have as much again?", run->attempt,
		agent->over, agent->over_limit);
	buf_clear(body);
	json_begin(&object, body);
	json_member_string(&object, "workerId", heartbeat_worker_id(run->supervisor->heartbeat));
	json_member_string(&object, "fence", span_of(run->fence));
	json_member_string(&object, "question", span_of(text));
	json_member_raw(&object, "options", SPAN("[\"more\",\"stop\"]"));
	return json_end(&object);
}

static void on_asked(void *context, int fault, const struct http_answer *answer)
{
	struct run *run = context;
	struct run_agent *agent = run->agent;
	cleanup(yyjson_doc_free_at) yyjson_doc *doc = NULL;

	if (run->phase != RUN_STARTED)
		return;
	if (fault == 0 && http_answer_status(answer) == 200 &&
		json_read_reply(http_answer_body(answer), &doc) == 0) {
		struct span id =
			json_text(yyjson_obj_get(yyjson_obj_get(yyjson_doc_get_root(doc), "question"), "id"));
		snprintf(agent->memory.budget_question, sizeof agent->memory.budget_question, "%.*s",
			SPAN_ARGS(id));
		agent->asked_for_budget = id.len > 0;
	}
	agent->checked(run);
}

bool run_ask_for_budget(struct run *run, void (*asked)(struct run *run))
{
	struct run_agent *agent = run->agent;
	cleanup(buf_done) struct buf target = {0};

	if (!agent->over || !settings_of(run)->asks_at_budget ||
		(run->stop != STOP_NOT && run->stop != STOP_FINAL))
		return false;
	if (!agent->asker)
		agent->asker = supervisor_take_client(run->supervisor);
	if (!agent->asker || run_put_ask_target(run, &target) < 0 || put_question(run) < 0)
		return false;
	agent->checked = asked;
	return api_client_post(agent->asker, buf_span(&target), buf_span(&agent->ask_body),
		       heartbeat_token(run->supervisor->heartbeat), CALL_MS, on_asked, run) == 0;
}
