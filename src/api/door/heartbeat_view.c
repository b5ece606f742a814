/*
 * A slot as its heartbeat shows it: what the engine knows, and what the worker said where the engine knows nothing.
 */
#include "api/door/heartbeat_view.h"

#include <string.h>

#include "api/task/form.h"
#include "base/iso_time.h"
#include "base/take.h"

/* Members of the metadata that are written from other sources. */
static const char *const own_members[] = {"workerPid", "workerVersion", "restartCount", "taskStartedAt",
	"offlineReason", "detectedAt", "heartbeat"};

static yyjson_val *said_member(const struct heartbeat *beat, const char *key)
{
	return yyjson_obj_get(yyjson_doc_get_root(beat->said), key);
}

static int64_t said_time(yyjson_val *value)
{
	return yyjson_is_int(value) ? yyjson_get_sint(value) : 0;
}

/* ---- what it holds ------------------------------------------------------------------------------------ */

struct held {
	struct arena *arena;
	struct span id;
};

static int take_first(void *context, struct span id)
{
	struct held *held = context;
	int r = arena_copy(held->arena, id, &held->id);

	return r < 0 ? r : 1;
}

/* The title stands in the text of the task. */
static int read_title(struct api_call *call, struct span body, struct span *ret_title)
{
	yyjson_doc *doc = task_body_read(body, call->body);
	int r = arena_copy(
		call->arena, json_text(yyjson_obj_get(yyjson_doc_get_root(doc), "title")), ret_title);

	yyjson_doc_free(doc);
	return r;
}

static int read_held(struct api_call *call, struct span worker, struct heartbeat *beat)
{
	struct held held = {.arena = call->arena};
	struct task_document document;
	int64_t seq;

	int r = store_each_held(call->store, worker, take_first, &held);
	if (r != 1)
		return r;
	r = store_find_task(call->store, held.id, &seq);
	if (r == 0)
		r = store_read_task(call->store, seq, call->now, call->arena, &document);
	if (r == 0)
		r = read_title(call, document.body, &beat->title);
	if (r < 0)
		return r;
	beat->task = held.id;
	beat->session = document.session;
	beat->task_started_ms = document.task.claim.claimed_wall_ms;
	return 0;
}

/* ---- what it said -------------------------------------------------------------------------------------- */

static int take_session(struct api_call *call, struct span text, struct heartbeat *beat)
{
	cleanup(buf_done) struct buf json = {.max = 64 << 10};

	if (text.len == 0)
		return 0;
	int r = json_put_string(&json, text);
	return r < 0 ? r : arena_copy(call->arena, buf_span(&json), &beat->session);
}

/* Its word counts for what it holds, and if it holds nothing. */
static int add_said_work(struct api_call *call, struct heartbeat *beat)
{
	yyjson_val *said = said_member(beat, "heartbeat");
	struct span task = json_text(yyjson_obj_get(said, "task"));
	int64_t started_ms = said_time(said_member(beat, "taskStartedAt"));

	if (task.len == 0 || (beat->task.len > 0 && !span_equal(beat->task, task)))
		return 0;
	if (beat->task.len == 0)
		beat->title = json_text(yyjson_obj_get(said, "taskTitle"));
	beat->task = task;
	if (started_ms != 0)
		beat->task_started_ms = started_ms;
	return take_session(call, json_text(yyjson_obj_get(said, "sessionId")), beat);
}

static struct span reason_of(enum worker_end ended)
{
	switch (ended) {
	case WORKER_EXPIRED:
		return SPAN("stale-heartbeat");
	case WORKER_TERMINATED:
		return SPAN("terminated");
	case WORKER_REPLACED:
		return SPAN("replaced");
	case WORKER_ENDED_NOT:
	case WORKER_SHUTDOWN:
		break;
	}
	return SPAN("graceful-shutdown");
}

static void take_end(const struct worker_document *worker, struct heartbeat *beat)
{
	struct span said = json_text(said_member(beat, "offlineReason"));
	bool silent = worker->worker.ended == WORKER_EXPIRED;

	beat->status = "offline";
	beat->offline_reason = worker->worker.ended == WORKER_SHUTDOWN && said.len > 0
		? said
		: reason_of(worker->worker.ended);
	beat->detected_ms = silent ? worker->ended_ms : 0;
}

static int take_life(struct api_call *call, const struct worker_document *worker, struct heartbeat *beat)
{
	int r = worker->worker.held > 0 ? read_held(call, worker->id, beat) : 0;

	if (r == 0)
		r = add_said_work(call, beat);
	beat->status = beat->task.len > 0 ? "working" : "idle";
	beat->pid = worker->worker.process.pid;
	return r;
}

int heartbeat_read(struct api_call *call, struct span id, struct heartbeat *ret_beat)
{
	struct worker_document worker;
	struct slot_document slot;

	*ret_beat = (struct heartbeat){.status = "offline"};
	int r = store_read_worker(call->store, id, &worker);
	if (r < 0)
		return r;
	ret_beat->said = kept_read(worker.metadata, call->body);
	ret_beat->slot = name_of(call, worker.worker.slot);
	ret_beat->last_update_ms = worker.worker.last_beat_ms;
	ret_beat->started_ms = said_time(yyjson_obj_get(said_member(ret_beat, "heartbeat"), "startedAt"));
	if (ret_beat->started_ms == 0)
		ret_beat->started_ms = worker.worker.registered_ms;
	if (store_read_slot(call->store, ret_beat->slot, &slot) == 0)
		ret_beat->restarts = slot.slot.restarts;
	if (worker_is_alive(&worker.worker))
		return take_life(call, &worker, ret_beat);
	take_end(&worker, ret_beat);
	return 0;
}

void heartbeat_done(struct heartbeat *beat)
{
	yyjson_doc_free(beat->said);
	beat->said = NULL;
}

/* ---- as JSON -------------------------------------------------------------------------------------------- */

static bool is_own(struct span key)
{
	for (size_t i = 0; i < sizeof own_members / sizeof *own_members; i++) {
		if (span_equal(span_of(own_members[i]), key))
			return true;
	}
	return false;
}

static void put_metadata(struct buf *out, const struct heartbeat *beat)
{
	struct json_object object;
	size_t i, limit;
	yyjson_val *key, *value;

	json_begin(&object, out);
	struct span version = json_text(said_member(beat, "workerVersion"));
	if (version.len == 0) /* what a worker calls it that is not of that system */
		version = json_text(said_member(beat, "version"));
	json_member_int_or_null(&object, "workerPid", beat->pid);
	json_member_string_or_null(&object, "workerVersion", version);
	json_member_int(&object, "restartCount", beat->restarts);
	if (beat->task.len > 0 && beat->task_started_ms != 0)
		json_member_int(&object, "taskStartedAt", beat->task_started_ms);
	json_member_string_if_any(&object, "offlineReason", beat->offline_reason);
	json_member_int_if_any(&object, "detectedAt", beat->detected_ms);
	yyjson_obj_foreach(yyjson_doc_get_root(beat->said), i, limit, key, value)
	{
		if (!is_own(json_text(key)))
			json_member_node(&object, key, value);
	}
	json_end(&object);
}

int heartbeat_put(struct buf *out, const struct heartbeat *beat)
{
	struct json_object object;

	json_begin(&object, out);
	json_member_string(&object, "slot", beat->slot);
	json_member_cstr(&object, "status", beat->status);
	json_member_string_or_null(&object, "task", beat->task);
	json_member_string_or_null(&object, "taskTitle", beat->title);
	json_member_raw_or_null(&object, "sessionId", beat->session);
	json_member_int(&object, "lastUpdate", beat->last_update_ms);
	json_member_int(&object, "startedAt", beat->started_ms);
	json_put_key(&object, "metadata");
	put_metadata(out, beat);
	return json_end(&object);
}

/* Who is offline has no mode of its own there: readers go by the age of the last beat. */
int heartbeat_put_row(struct buf *out, const struct heartbeat *beat)
{
	struct json_object object;
	char at[ISO_TIME_BYTES + 1];

	iso_time_put(beat->last_update_ms, at);
	json_begin(&object, out);
	json_member_string(&object, "slot", beat->slot);
	json_member_string(&object, "label", beat->slot);
	json_member_cstr(&object, "role", "worker");
	json_member_string_or_null(&object, "task", beat->title.len > 0 ? beat->title : beat->task);
	json_member_cstr(&object, "mode", strcmp(beat->status, "working") == 0 ? "active" : "waiting");
	json_member_cstr(&object, "lastBeatAt", at);
	return buf_printf(out, ",\"beats\":[{\"at\":\"%s\"}]}", at);
}

void heartbeat_reply(struct api_call *call, struct span slot)
{
	struct heartbeat beat;

	int r = heartbeat_read(call, slot, &beat);
	if (r == 0)
		r = heartbeat_put(call->body, &beat);
	heartbeat_done(&beat);
	call_reply(call, 200, r);
}
