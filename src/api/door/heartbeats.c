/*
 * The heartbeats of slot workers, as their own document has them: who fills which slot, and what it does.
 *
 * A slot worker is a worker of the engine that is called like its slot, beats without tokens and asks for 90 s. What it
 * says of itself is kept as the worker's metadata, its words about its state as the member "heartbeat" of that. The
 * document is made anew for every reader, in slices: a slot is what the engine says it is. Who holds a task works on
 * it; whose lease is over is offline, since when and why. The word of the worker counts where the engine knows no
 * better: between the beat that says "working" and the claim.
 *
 * Rejected: stamping a slot without heartbeats. A client that takes a task with PATCH alone sends no heartbeats, and a
 * watchdog that reads the document must not take its silence for death.
 */
#include "api/form.h"
#include "api/task/form.h"

#include <errno.h>
#include <string.h>

#include "base/iso_time.h"
#include "base/take.h"

enum {
	SLOT_LEASE_MS = 90 * 1000, /* stale after that */
	SESSION_MAX = 1024,
	METADATA_MAX = 64 << 10,
	SLOTS_MAX = 10000,  /* of one document */
	SLICE_LOOKS = 500,  /* workers looked at … */
	SLICE_ENTRIES = 50, /* … or looked at and told, in one slice */
	CELLS_FIRST = 64,
};

#define TIME_MAX INT64_C(253402300799999)

/* ---- a slot as it is shown ------------------------------------------------------------------------------ */

/* What the engine knows, and what the worker said where the engine knows nothing. */
struct heartbeat {
	struct span slot;
	const char *status;      /* idle, working, offline */
	struct span task, title; /* empty: none */
	struct span session;     /* JSON; empty: none */
	int64_t last_update_ms, started_ms;
	int64_t pid; /* 0: none */
	uint32_t restarts;
	int64_t task_started_ms;    /* 0: it did not say, and holds nothing */
	int64_t detected_ms;        /* when its silence was noticed, else 0 */
	struct span offline_reason; /* of the offline ones */
	yyjson_doc *said;           /* its metadata */
};

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

/* What is known of that worker, which fills a slot or did. Always heartbeat_done(). -ENOENT, -ENOMEM. */
static int heartbeat_read(struct api_call *call, struct span id, struct heartbeat *ret_beat)
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

static void heartbeat_done(struct heartbeat *beat)
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

/* As an entry of the document. */
static int heartbeat_put(struct buf *out, const struct heartbeat *beat)
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

/* As an entry of the form that is a list. An offline slot has no mode of its own there: readers go by the age of the last beat. */
static int heartbeat_put_row(struct buf *out, const struct heartbeat *beat)
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

/* Reply with the slot of the worker that is called like it. */
static void heartbeat_reply(struct api_call *call, struct span slot)
{
	struct heartbeat beat;

	int r = heartbeat_read(call, slot, &beat);
	if (r == 0)
		r = heartbeat_put(call->body, &beat);
	heartbeat_done(&beat);
	call_reply(call, 200, r);
}

/* ---- a beat ------------------------------------------------------------------------------------------- */

struct slot_beat {
	struct span slot, status, task, title, session, metadata;
	struct span session_json;
	int64_t last_update_ms, started_ms, pid;
	bool is_working, is_offline;
};

static const struct field beat_fields[] = {
	FIELD_MUST_BE(slot_beat, slot, "slot", FIELD_NAME, .max = COMMAND_ID_MAX),
	FIELD_MUST_BE(slot_beat, status, "status", FIELD_NAME, .max = 0),
	FIELD(slot_beat, task, "task", FIELD_ID, .max = 0),
	FIELD(slot_beat, title, "taskTitle", FIELD_TEXT, .max = 4096),
	FIELD(slot_beat, session, "sessionId", FIELD_NAME, .max = SESSION_MAX),
	FIELD(slot_beat, last_update_ms, "lastUpdate", FIELD_INT, .max = TIME_MAX),
	FIELD(slot_beat, started_ms, "startedAt", FIELD_INT, .max = TIME_MAX),
	FIELD(slot_beat, metadata, "metadata", FIELD_OBJECT, .max = 0),
};

static void read_status(struct form *form, struct slot_beat *beat)
{
	beat->is_working = span_equal(beat->status, SPAN("working"));
	beat->is_offline = span_equal(beat->status, SPAN("offline"));
	if (beat->status.len > 0 && !beat->is_working && !beat->is_offline &&
		!span_equal(beat->status, SPAN("idle")))
		form_error(form, "status", "must be \"idle\", \"working\" or \"offline\"");
	if (beat->is_working && beat->task.len == 0 && form->error_count == 0)
		form_error(form, "task", "is required while the status is \"working\": the id of the task");
	if (!beat->is_working)
		beat->task = beat->title = beat->session = (struct span){0};
}

static void read_pid(struct form *form, struct slot_beat *beat)
{
	yyjson_val *pid = yyjson_obj_get(yyjson_obj_get(form->root, "metadata"), "workerPid");

	if (!pid || yyjson_is_null(pid))
		return;
	if (node_int(pid, &beat->pid) < 0 || beat->pid < 1 || beat->pid > INT32_MAX)
		form_error(form, "metadata.workerPid", "must be the number of a process, or null");
}

static void read_session_json(struct form *form, struct slot_beat *beat)
{
	cleanup(buf_done) struct buf text = {.max = 8 * SESSION_MAX};

	if (beat->session.len == 0)
		return;
	json_put_string(&text, beat->session);
	form_keep_text(form, &text, &beat->session_json);
}

void heartbeat_beat_begin(struct api_call *call)
{
	struct slot_beat *beat = call_detail(call, sizeof *beat);
	cleanup(form_done) struct form form = {0};

	if (!beat || !form_open(&form, call, false))
		return;
	form.tolerant = true;
	form_read(&form, form.root, FIELDS(beat_fields), beat);
	read_status(&form, beat);
	read_pid(&form, beat);
	read_session_json(&form, beat);
	if (form_is_good(&form))
		call->step = API_READ; /* what it said before is not said again: see merge_said() */
}

/* What this beat says of the slot's state; null takes away what was true of another one. */
static int put_said(struct buf *out, const struct slot_beat *beat, bool is_new)
{
	struct json_object object, said;

	json_begin(&object, out);
	json_put_key(&object, "heartbeat");
	json_begin(&said, out);
	json_member_string(&said, "status", beat->status);
	json_member_string_or_null(&said, "task", beat->task);
	json_member_string_or_null(&said, "taskTitle", beat->title);
	json_member_string_or_null(&said, "sessionId", beat->session);
	if (beat->started_ms != 0)
		json_member_int(&said, "startedAt", beat->started_ms);
	else if (is_new)
		json_member_null(&said, "startedAt");
	json_end(&said);
	json_member_null(&object, "restartCount"); /* the server counts */
	json_member_null(&object, "detectedAt");
	if (!beat->is_working)
		json_member_null(&object, "taskStartedAt");
	if (beat->is_offline)
		json_member_null(&object, "workerPid");
	else
		json_member_null(&object, "offlineReason");
	return json_end(&object);
}

/* Its metadata as it shall be: what it said before, what it says now, and its state. */
static int merge_said(struct api_call *call, const struct slot_beat *beat, struct span old, bool is_new,
	struct span *ret_text)
{
	cleanup(buf_done) struct buf text = {.max = 2 * METADATA_MAX};
	struct span members = {0};
	int r = 0;

	if (old.len > 2)
		members = (struct span){old.data + 1, old.len - 2}; /* without the braces */
	if (beat->metadata.len > 0)
		r = task_body_merge(call->arena, members, beat->metadata, &members);
	if (r == 0)
		r = put_said(&text, beat, is_new);
	if (r == 0)
		r = task_body_merge(call->arena, members, buf_span(&text), &members);
	if (r == 0 && members.len > METADATA_MAX)
		r = -E2BIG;
	if (r < 0)
		return r;
	buf_clear(&text);
	buf_put_byte(&text, '{');
	buf_put_span(&text, members);
	r = buf_put_byte(&text, '}');
	return r < 0 ? r : arena_copy(call->arena, buf_span(&text), ret_text);
}

static void fill_beat(struct command *command, struct slot_beat *beat, struct span metadata)
{
	command->kind = COMMAND_BEAT;
	command->worker = beat->slot;
	command->beat = (struct command_beat){
		.named = true,
		.lease_ms = SLOT_LEASE_MS,
		.describes = true,
		.slot = beat->slot,
		.any_executor = true,
		.metadata = metadata,
		.process = {.pid = (uint32_t)beat->pid},
		.bound = {&beat->task, beat->is_working},
		.tells_all = !beat->is_offline,
		.session = beat->session_json,
	};
}

void heartbeat_beat_read(struct api_call *call)
{
	struct slot_beat *beat = call->detail;
	struct worker_document worker = {0};
	struct span metadata;

	int r = store_read_worker(call->store, beat->slot, &worker);
	bool alive = r == 0 && worker_is_alive(&worker.worker);
	if (r == -ENOENT || (r == 0 && !worker_belongs_to(&worker.worker, call->who.number)))
		worker = (struct worker_document){0}; /* another principal's metadata is not the caller's */
	r = r == -ENOENT ? 0 : r;
	if (r == 0 && beat->is_offline && worker.worker.state == WORKER_INACTIVE) {
		heartbeat_reply(call, beat->slot); /* it has been that before */
		return;
	}
	if (r == 0)
		r = merge_said(call, beat, worker.metadata, !alive, &metadata);
	if (!call_require_field(call, r != -E2BIG, "metadata",
		    "must not have more than 65536 bytes with what it had before") ||
		call_has_failed(call, r))
		return;
	struct command *commands = call_commands(call, beat->is_offline ? 2 : 1);
	if (!commands)
		return;
	fill_beat(&commands[0], beat, metadata);
	if (!beat->is_offline)
		return;
	commands[1].kind = COMMAND_LEAVE;
	commands[1].worker = beat->slot;
	commands[1].leave = WORKER_SHUTDOWN;
}

void heartbeat_beat_finish(struct api_call *call, const struct result *results)
{
	const struct slot_beat *beat = call->detail;

	(void)results;
	heartbeat_reply(call, beat->slot);
}

/* ---- the document ------------------------------------------------------------------------------------- */

/* The one worker of each slot that is shown: the one that lives, else the one that was heard last. */
struct choice {
	uint32_t slot, handle; /* slot 0: a free cell */
	bool alive;
	int64_t last_beat_ms;
};

struct slot_list {
	struct api_call *call;
	struct choice *cells; /* a power of two of them, half of them free at least */
	uint32_t cell_count, chosen;
	bool array; /* the other historical form */
	bool telling;
	uint32_t told;
	uint32_t at;
};

static struct choice *cell_of(const struct slot_list *list, uint32_t slot)
{
	uint32_t at = (slot * UINT32_C(2654435761)) & (list->cell_count - 1);

	while (list->cells[at].slot != 0 && list->cells[at].slot != slot)
		at = (at + 1) & (list->cell_count - 1);
	return &list->cells[at];
}

static int grow_cells(struct slot_list *list)
{
	struct choice *old = list->cells;
	uint32_t count = list->cell_count;

	if (2 * (list->chosen + 1) <= count)
		return 0;
	list->cell_count = count > 0 ? 2 * count : CELLS_FIRST;
	list->cells = arena_alloc(list->call->arena, list->cell_count * sizeof *old);
	if (!list->cells)
		return -ENOMEM;
	for (uint32_t i = 0; i < count; i++) {
		if (old[i].slot != 0)
			*cell_of(list, old[i].slot) = old[i];
	}
	return 0;
}

static bool is_shown(const struct api_call *call, struct span id, const struct worker *worker)
{
	return worker->slot != 0 && worker->state != WORKER_UNKNOWN &&
		worker_is_visible(&call->who, id, worker);
}

static int choose(void *context, struct span id, const struct worker *worker)
{
	struct slot_list *list = context;
	struct choice choice = {worker->slot, worker->handle, worker_is_alive(worker), worker->last_beat_ms};

	if (!is_shown(list->call, id, worker) || list->chosen == SLOTS_MAX)
		return 0;
	int r = grow_cells(list);
	if (r < 0)
		return r;
	struct choice *cell = cell_of(list, worker->slot);
	list->chosen += cell->slot == 0;
	if (cell->slot == 0 || choice.alive > cell->alive ||
		(choice.alive == cell->alive && choice.last_beat_ms > cell->last_beat_ms))
		*cell = choice;
	return 0;
}

static int put_entry(struct slot_list *list, struct span id)
{
	struct api_call *call = list->call;
	struct heartbeat beat;

	int r = heartbeat_read(call, id, &beat);
	if (r == 0 && list->told++ > 0)
		buf_put_byte(call->body, ',');
	if (r == 0 && list->array) {
		heartbeat_put_row(call->body, &beat);
	} else if (r == 0) {
		json_put_string(call->body, beat.slot);
		buf_put_byte(call->body, ':');
		heartbeat_put(call->body, &beat);
	}
	heartbeat_done(&beat);
	return r;
}

/* The body of its task may be long: it is freed as soon as the title is written. */
static int tell(void *context, struct span id, const struct worker *worker)
{
	struct slot_list *list = context;
	struct api_call *call = list->call;
	struct arena arena, *whole = call->arena;

	if (!is_shown(call, id, worker) || cell_of(list, worker->slot)->handle != worker->handle)
		return 0;
	arena_init(&arena, 16 * API_TEXT_MAX);
	call->arena = &arena;
	int r = put_entry(list, id);
	call->arena = whole;
	arena_done(&arena);
	return r;
}

/* "array" is the other historical form. False: the call was refused. */
static bool read_shape(struct api_call *call, bool *ret_array)
{
	struct query_value shape = {.name = "shape"};

	if (!query_read(call, &shape, 1))
		return false;
	*ret_array = span_equal(shape.value, SPAN("array"));
	if (!shape.value.data || *ret_array || span_equal(shape.value, SPAN("map")))
		return true;
	return call_refuse_field(call, "shape", "must be \"map\" or \"array\"");
}

static int begin_list(struct slot_list *list, struct api_call *call, bool array)
{
	char at[ISO_TIME_BYTES + 1];

	*list = (struct slot_list){.call = call, .array = array};
	iso_time_put(call->now.wall_ms, at);
	call_slices_begin(call, "{");
	if (array)
		buf_printf(call->body, "\"updatedAt\":\"%s\",", at);
	buf_printf(call->body, "\"workers\":%c", array ? '[' : '{');
	return grow_cells(list);
}

/* In slices: first the worker of each slot is chosen, then the chosen ones are written. */
void heartbeat_list_read(struct api_call *call)
{
	bool array = false;
	int r = 0;

	if (!call->detail && !read_shape(call, &array))
		return;
	struct slot_list *list = call_detail(call, sizeof *list);
	if (!list)
		return;
	if (!list->call)
		r = begin_list(list, call, array);
	if (r == 0)
		r = store_page_workers(call->store, &list->at, list->telling ? SLICE_ENTRIES : SLICE_LOOKS,
			list->telling ? tell : choose, list);
	bool more = list->at != 0 || !list->telling;
	list->telling |= list->at == 0;
	call_slice(call, r, more, list->array ? "]}" : "}}");
}
