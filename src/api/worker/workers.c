/*
 * Workers: looking at them, and sending them away. How they come and stay is in worker/beat.c.
 */
#include "api/form.h"

#include <assert.h>
#include <errno.h>

#include "base/uuid.h"

enum {
	SLICE_WORKERS = 100,
	HELD_IN_LIST = 3,    /* ids of tasks of one worker */
	WORKERS_MAX = 10000, /* of one reply */
};

static int64_t lease_left_ms(const struct api_call *call, const struct worker *worker)
{
	struct given given = {.rules = call->rules, .now = call->now};

	return worker_is_alive(worker) ? lease_remaining_ms(&worker->lease, &given) : 0;
}

static void put_boot(struct json_object *object, const struct worker_process *process)
{
	char text[UUID_CHARS + 1];

	if ((process->boot_hi | process->boot_lo) == 0)
		return;
	uuid_write(process->boot_hi, process->boot_lo, text);
	json_member_cstr(object, "bootId", text);
}

/* What it said of its process, as far as it did. */
static void put_process(
	const struct api_call *call, struct json_object *object, const struct worker_process *process)
{
	if (process->host != 0)
		json_member_string(object, "host", name_of(call, process->host));
	put_boot(object, process);
	json_member_int_if_any(object, "pid", process->pid);
	if (process->start != 0)
		json_member_int(object, "startTime", (int64_t)process->start);
}

/* How long ago it was heard, by the clock that its lease runs on; by people's if that was before this start. */
static void put_age(struct json_object *object, const struct api_call *call, const struct worker *worker)
{
	int64_t age_ms = call->now.wall_ms - worker->last_beat_ms;

	if (worker->heard_ms != INT64_MIN)
		age_ms = call->now.lease_ms - worker->heard_ms;
	if (worker->last_beat_ms != 0)
		json_member_int(object, "heartbeatAgeMs", age_ms > 0 ? age_ms : 0);
	else
		json_member_null(object, "heartbeatAgeMs");
}

/* The queues that it serves: those it asked for work since the server runs. Nothing of one that asked for none yet, or for any. */
static void put_queues(
	const struct api_call *call, struct json_object *object, const struct worker_document *worker)
{
	struct json_names names;

	if (worker->any_queue)
		json_member_bool(object, "anyQueue", true);
	if (worker->queue_count == 0 || worker->any_queue)
		return;
	json_names_begin(&names, object, "queues");
	for (uint32_t i = 0; i < worker->queue_count; i++)
		json_names_put(&names, name_of(call, worker->queues[i]));
	json_names_end(&names, 0);
}

struct held_names {
	struct json_names names;
	uint32_t count;
};

static int put_held(void *context, struct span id)
{
	struct held_names *held = context;
	int r = json_names_put(&held->names, id);

	return r < 0 ? r : ++held->count == HELD_IN_LIST;
}

/* The first of the tasks that it holds: there may be thousands. */
static void put_first_held(const struct api_call *call, struct json_object *object, struct span id)
{
	struct held_names held = {0};

	json_names_begin(&held.names, object, "tasks");
	int r = store_each_held(call->store, id, put_held, &held);
	json_names_end(&held.names, r == -ENOENT || r > 0 ? 0 : r);
}

/* Everything that is known of it. `alone`: with the ids of what it holds. */
static int put_worker(
	const struct api_call *call, struct buf *out, struct span id, const struct worker *worker, bool alone)
{
	struct worker_document more = {0};
	struct json_object object;

	if (store_read_worker(call->store, id, &more) < 0)
		more = (struct worker_document){0};
	json_begin(&object, out);
	json_member_string(&object, "workerId", id);
	json_member_cstr(&object, "state", worker_state_name(worker->state));
	if (worker->ended != WORKER_ENDED_NOT)
		json_member_cstr(&object, "ended", worker_end_name(worker->ended));
	json_member_int_if_any(&object, "endedAt", more.ended_ms);
	json_member_string_or_null(&object, "slot", name_of(call, worker->slot));
	json_member_set(call, &object, "capabilities", worker->capabilities);
	if (!worker->any_executor)
		json_member_set(call, &object, "executors", worker->executors);
	put_queues(call, &object, &more);
	json_member_int(&object, "maxConcurrent", worker->max_concurrent);
	json_member_int(&object, "held", worker->held);
	json_member_int(&object, "leaseMs", lease_left_ms(call, worker));
	json_member_int(&object, "leaseGrantedMs", worker->lease.granted_ms);
	json_member_int(&object, "registeredAt", worker->registered_ms);
	json_member_int_or_null(&object, "lastBeatAt", worker->last_beat_ms);
	put_age(&object, call, worker);
	json_member_int(&object, "instance", more.instance);
	json_member_int(&object, "restarts", more.restarts);
	put_process(call, &object, &worker->process);
	if (worker->version != 0)
		json_member_string(&object, "version", name_of(call, worker->version));
	json_member_raw_if_any(&object, "metadata", more.metadata);
	if (alone)
		json_member_held(call, &object, "tasks", id);
	else if (worker->held > 0)
		put_first_held(call, &object, id);
	return json_end(&object);
}

struct worker_list {
	struct api_call *call;
	struct span state; /* empty: all */
	bool alive;        /* first the workers that live, then the others */
	uint32_t count, limit;
	uint32_t at;
};

bool worker_is_visible(const struct principal *who, struct span id, const struct worker *worker)
{
	if ((who->scopes & (SCOPE_BIT(SCOPE_READ) | SCOPE_BIT(SCOPE_ADMIN))) != 0)
		return who->queues.count == 0;
	return worker->principal == who->number && (who->worker.len == 0 || span_equal(who->worker, id));
}

/* Claimants that never registered are no workers of the list. */
static int list_worker(void *context, struct span id, const struct worker *worker)
{
	struct worker_list *list = context;
	struct api_call *call = list->call;

	if (worker->state == WORKER_UNKNOWN || worker_is_alive(worker) != list->alive)
		return 0;
	if (!worker_is_visible(&call->who, id, worker))
		return 0;
	if (list->state.data && !span_equal(list->state, span_of(worker_state_name(worker->state))))
		return 0;
	if (list->count == list->limit)
		return 1;
	if (list->count++ > 0)
		buf_put_byte(call->body, ',');
	return put_worker(call, call->body, id, worker, false);
}

static bool is_worker_state(struct span name)
{
	for (int state = WORKER_ACTIVE; state <= WORKER_INACTIVE; state++) {
		if (span_equal(name, span_of(worker_state_name((enum worker_state)state))))
			return true;
	}
	return false;
}

/* NULL: it was refused. */
static struct worker_list *worker_list_new(struct api_call *call)
{
	struct query_value values[] = {{.name = "state"}, {.name = "limit"}};
	struct worker_list *list;
	int64_t limit;

	if (!query_read(call, values, 2))
		return NULL;
	if (values[0].value.data && !is_worker_state(values[0].value)) {
		call_refuse_field(
			call, "state", "must be \"active\", \"quiet\", \"terminating\" or \"inactive\"");
		return NULL;
	}
	if (!query_int(call, &values[1], 1, WORKERS_MAX, WORKERS_MAX, &limit,
		    "must be a number from 1 to 10000"))
		return NULL;
	list = call_detail(call, sizeof *list);
	if (!list)
		return NULL;
	*list = (struct worker_list){
		.call = call, .state = values[0].value, .alive = true, .limit = (uint32_t)limit};
	call_slices_begin(call, "[");
	return list;
}

/* In slices. Live workers come first: there may be many more dead ones. */
void worker_list_read(struct api_call *call)
{
	struct worker_list *list = call->detail ? call->detail : worker_list_new(call);

	if (!list)
		return;
	int r = store_page_workers(call->store, &list->at, SLICE_WORKERS, list_worker, list);
	bool more = list->at != 0 || list->alive;
	list->alive &= list->at != 0;
	call_slice(call, r, more, "]");
}

/* Also a claimant that never registered, as long as it holds something. */
void worker_read(struct api_call *call)
{
	struct worker_document found;

	if (!query_read(call, NULL, 0))
		return;
	int r = store_read_worker(call->store, call->params[0], &found);
	if (r == 0 && !worker_is_visible(&call->who, found.id, &found.worker))
		r = -ENOENT;
	if (!call_has_failed(call, r))
		call_reply(call, 200, put_worker(call, call->body, found.id, &found.worker, true));
}

/* ---- news ------------------------------------------------------------------------------------------- */

static void reply_news(struct api_call *call, struct span worker, bool news)
{
	struct json_object object;

	json_begin(&object, call->body);
	json_member_string(&object, "workerId", worker);
	json_member_bool(&object, "news", news);
	json_member_int(&object, "seq", store_last_event(call->store));
	call_reply(call, 200, json_end(&object));
}

void api_finish_news(struct api_call *call, bool news)
{
	assert(call->step == API_NEWS);
	call->step = API_REPLY;
	reply_news(call, call->news_of, news);
}

/* For the worker itself: others have the events. False: it was refused. */
static bool find_own(struct api_call *call, struct worker_document *ret_found)
{
	const struct principal *who = &call->who;
	int r = store_read_worker(call->store, call->params[0], ret_found);
	bool is_own = r == 0 && worker_belongs_to(&ret_found->worker, who->number) &&
		(who->worker.len == 0 || span_equal(who->worker, ret_found->id));

	if (!is_own)
		return call_refuse_fault(call, -ENOENT);
	if (ret_found->worker.state == WORKER_INACTIVE)
		return api_refuse(call, REFUSED_WORKER_INACTIVE, NULL);
	return true;
}

void worker_news_read(struct api_call *call)
{
	struct query_value values[] = {{.name = "after"}, {.name = "waitMs"}};
	struct worker_document found;
	int64_t after;

	if (!query_read(call, values, 2) ||
		!query_int(
			call, &values[0], 0, INT64_MAX, 0, &after, "must be the seq of an earlier answer") ||
		!query_int(call, &values[1], 0, WAIT_MS_MAX, 0, &call->wait_ms,
			"must be a number from 0 to 60000") ||
		!find_own(call, &found))
		return;
	if (found.news_seq > after || call->wait_ms == 0 || call->request->method == HTTP_METHOD_HEAD) {
		reply_news(call, found.id, found.news_seq > after);
		return;
	}
	call->news_of = call->params[0];
	call->step = API_NEWS;
}

/* ---- sending away ----------------------------------------------------------------------------------- */

/* NULL: it was refused. */
static struct command *worker_begin(struct api_call *call, enum command_kind kind)
{
	if (!form_read_body(call, NULL, 0, NULL) ||
		!call_require(call, text_is_name(call->params[0], COMMAND_ID_MAX), REFUSED_NOT_FOUND, NULL))
		return NULL;
	struct command *command = call_command(call, kind);
	if (command)
		command->worker = call->params[0];
	return command;
}

void worker_stop_begin(struct api_call *call)
{
	worker_begin(call, (enum command_kind)call->route->variant);
}

/* A goodbye, unless an operator says ?how=terminated. */
void worker_leave_begin(struct api_call *call)
{
	struct query_value how = {.name = "how"};

	if (!query_read(call, &how, 1))
		return;
	bool terminated = span_equal(how.value, SPAN("terminated"));
	bool operates = call->who.scopes & (SCOPE_BIT(SCOPE_OPERATE) | SCOPE_BIT(SCOPE_ADMIN));
	if (!call_require_field(call,
		    !how.value.data || terminated || span_equal(how.value, SPAN("shutdown")), "how",
		    "must be \"shutdown\" or \"terminated\"") ||
		!call_require(call, !terminated || operates, REFUSED_FORBIDDEN,
			"Only an operator terminates a worker."))
		return;
	struct command *command = worker_begin(call, COMMAND_LEAVE);
	if (command)
		command->leave = terminated ? WORKER_TERMINATED : WORKER_SHUTDOWN;
}

void worker_finish(struct api_call *call, const struct result *results)
{
	call_reply(
		call, 200, put_worker(call, call->body, call->commands[0].worker, &results[0].worker, false));
}
