#include "worker/beat/text.h"

#include <stdio.h>
#include <string.h>

#include "base/take.h"
#include "wire/http/client.h"
#include "wire/json/json.h"
#include "attempt/retry.h"

enum {
	LEASE_MS_MAX = 24 * 60 * 60 * 1000,
	COMMANDS_MAX = 10000, /* a worker holds no more tasks */
};

/* ---- out ---- */

static void put_ids(struct json_object *object, const char *key, const struct span *ids, uint32_t count)
{
	if (count > 0 && json_put_key(object, key))
		json_put_strings(object->buf, ids, count);
}

int beat_put(struct buf *out, const struct beat_request *request, struct span worker_id, struct span about)
{
	struct json_object object;

	json_begin(&object, out);
	json_member_string(&object, "workerId", worker_id);
	json_member_int(&object, "leaseMs", request->lease_ms);
	if ((request->registers || request->describes) && about.len > 0)
		json_members_raw(&object, about);
	if (!request->registers)
		json_member_string(&object, "token", request->token);
	put_ids(&object, "boundTasks", request->bound, request->bound_count);
	put_ids(&object, "unboundTasks", request->unbound, request->unbound_count);
	return json_end(&object);
}

/* ---- in ---- */

static struct span text_of(yyjson_val *object, const char *key, struct arena *arena)
{
	yyjson_val *value = yyjson_obj_get(object, key);
	struct span text = {0};

	if (yyjson_is_str(value))
		arena_copy(arena, json_text(value), &text);
	return text;
}

static uint32_t read_lost(yyjson_val *list, struct arena *arena, struct span **ret_ids)
{
	struct span *ids = arena_alloc(arena, BEAT_DELTAS_MAX * sizeof *ids);
	uint32_t count = 0;
	size_t at, size;
	yyjson_val *id;

	if (!ids || !yyjson_is_arr(list))
		return 0;
	yyjson_arr_foreach(list, at, size, id)
	{
		struct span text = json_text(id);
		if (yyjson_is_str(id) && count < BEAT_DELTAS_MAX && arena_copy(arena, text, &ids[count]) == 0)
			count++;
	}
	*ret_ids = ids;
	return count;
}

/* [{"type":"cancel","task":"…"},{"type":"quiet"}]; commands of later servers are passed over. */
static void read_commands(yyjson_val *list, struct arena *arena, struct beat_answer *answer)
{
	static const char *const kinds[] = {[BEAT_CANCEL] = "cancel",
		[BEAT_REPORTED] = "reported",
		[BEAT_PARK] = "park",
		[BEAT_TOLD] = "tell"};
	size_t at, size = yyjson_arr_size(list), room = size < COMMANDS_MAX ? size : COMMANDS_MAX;
	struct beat_command *commands = arena_alloc(arena, room * sizeof *commands);
	uint32_t count = 0;
	yyjson_val *command;

	answer->commands = commands;
	yyjson_arr_foreach(list, at, size, command)
	{
		yyjson_val *type = yyjson_obj_get(command, "type");
		for (unsigned kind = 0; kind < sizeof kinds / sizeof *kinds; kind++) {
			if (!commands || count == room || !yyjson_equals_str(type, kinds[kind]))
				continue;
			commands[count] =
				(struct beat_command){.kind = kind, .task = text_of(command, "task", arena)};
			count += commands[count].task.len > 0;
		}
		if (yyjson_equals_str(type, "quiet"))
			answer->standing = BEAT_QUIET;
		else if (yyjson_equals_str(type, "terminate"))
			answer->standing = BEAT_TERMINATING;
	}
	answer->command_count = count;
}

static void read_accepted(
	yyjson_val *root, struct arena *arena, struct beat_answer *answer, struct beat_said *said)
{
	int64_t lease_ms = yyjson_get_sint(yyjson_obj_get(root, "leaseMs"));

	answer->token = text_of(root, "token", arena);
	if (answer->token.len == 0 || lease_ms <= 0)
		return;
	answer->outcome = BEAT_ACCEPTED;
	answer->lease_ms = lease_ms < LEASE_MS_MAX ? lease_ms : LEASE_MS_MAX;
	answer->lost_count = read_lost(yyjson_obj_get(root, "lost"), arena, &answer->lost);
	read_commands(yyjson_obj_get(root, "commands"), arena, answer);
	said->credential = text_of(root, "credential", arena);
}

static void read_refused(
	yyjson_val *root, struct arena *arena, struct beat_answer *answer, struct beat_said *said)
{
	said->code = text_of(root, "code", arena);
	said->detail = text_of(root, "detail", arena);
	said->slot_holder = text_of(root, "holder", arena);
	answer->outcome = BEAT_REFUSED;
	if (span_equal(said->code, SPAN("WORKER_INACTIVE")))
		answer->outcome = BEAT_WORKER_INACTIVE;
	if (span_equal(said->code, SPAN("TOKEN_MISMATCH"))) {
		answer->token = text_of(root, "token", arena);
		answer->outcome = BEAT_TOKEN_MISMATCH;
	}
}

/* ---- news ---- */

int news_put_target(struct buf *out, struct span worker_id, int64_t seq)
{
	char query[64];

	snprintf(query, sizeof query, "/news?after=%lld&waitMs=%d", (long long)seq, NEWS_WAIT_MS);
	return http_put_path(out, "/api/workers/", worker_id, query);
}

bool news_read(const struct http_answer *answer, int64_t *seq)
{
	cleanup(yyjson_doc_free_at) yyjson_doc *doc = NULL;

	json_read_reply(http_answer_body(answer), &doc);
	yyjson_val *root = yyjson_doc_get_root(doc), *last = yyjson_obj_get(root, "seq");

	if (yyjson_is_int(last) && yyjson_get_sint(last) >= 0)
		*seq = yyjson_get_sint(last);
	return yyjson_is_true(yyjson_obj_get(root, "news"));
}

void beat_read(const struct http_answer *answer, struct arena *arena, struct beat_answer *ret_answer,
	struct beat_said *ret_said)
{
	int status = http_answer_status(answer);
	cleanup(yyjson_doc_free_at) yyjson_doc *doc = NULL;

	json_read_reply(http_answer_body(answer), &doc);
	yyjson_val *root = yyjson_doc_get_root(doc);
	*ret_answer = (struct beat_answer){.outcome = BEAT_UNANSWERED};
	*ret_said = (struct beat_said){.status = status};
	if (status == 200)
		read_accepted(root, arena, ret_answer, ret_said);
	else if (status >= 400 && status < 500)
		read_refused(root, arena, ret_answer, ret_said);
	ret_answer->retry_after_ms = retry_after_ms(answer);
	if ((status == 429 || status == 503) && ret_answer->retry_after_ms > 0)
		ret_answer->outcome = BEAT_BUSY;
	else if (status == 429)
		ret_answer->outcome = BEAT_UNANSWERED; /* too many, and no word of when: as if it were away */
}
