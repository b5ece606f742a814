#include "sim/request.h"

#include <assert.h>
#include <stdarg.h>
#include <stdio.h>

struct span request_text(struct request *request, struct span text)
{
	char *at = request->text + request->text_len;

	assert(text.len <= sizeof request->text - request->text_len);
	memcpy(at, text.data, text.len);
	request->text_len += (uint32_t)text.len;
	return (struct span){at, text.len};
}

struct span request_printf(struct request *request, const char *format, ...)
{
	char text[256];
	va_list args;

	va_start(args, format);
	int len = vsnprintf(text, sizeof text, format, args);
	va_end(args);
	assert(len >= 0 && (size_t)len < sizeof text);
	return request_text(request, (struct span){text, (size_t)len});
}

struct name_list request_begin_list(struct request *request)
{
	return (struct name_list){.items = request->list + request->list_len, .count = 0};
}

void request_add(struct request *request, struct name_list *list, struct span text)
{
	assert(list->items + list->count == request->list + request->list_len);
	assert(request->list_len < REQUEST_LIST_MAX);
	request->list[request->list_len++] = text;
	list->count++;
}

struct name_list request_words(
	struct request *request, const struct span *words, uint32_t count, uint32_t mask)
{
	struct name_list list = request_begin_list(request);

	for (uint32_t i = 0; i < count; i++) {
		if (mask & 1u << i)
			request_add(request, &list, words[i]);
	}
	return list;
}

void id_copy(char out[ID_MAX], struct span text)
{
	assert(text.len < ID_MAX);
	if (text.len > 0)
		memcpy(out, text.data, text.len);
	out[text.len] = 0;
}

static void fill_claims(struct reply *reply, const struct result *result)
{
	assert(result->claim_count <= REPLY_CLAIMS_MAX);
	reply->claim_count = result->claim_count;
	for (uint32_t i = 0; i < result->claim_count; i++) {
		const struct claimed *claimed = &result->claims[i];
		id_copy(reply->claims[i].id, claimed->id);
		reply->claims[i].seq = claimed->task.seq;
		reply->claims[i].fence = claimed->task.fence;
	}
}

static uint32_t fill_ids(char out[REPLY_LIST_MAX][ID_MAX], const struct span *ids, uint32_t count)
{
	assert(count <= REPLY_LIST_MAX);
	for (uint32_t i = 0; i < count; i++)
		id_copy(out[i], ids[i]);
	return count;
}

/* Progress whose word ended the claim was the end that it said. */
static enum command_kind kind_told(const struct command *command, const struct result *result)
{
	const struct task *task = &result->task;

	if (command->kind != COMMAND_PROGRESS || command->told.event.type.len == 0 ||
		result->refusal != REFUSED_NOTHING || task->claim.holder != 0)
		return command->kind;
	return task->ended == ENDED_FAIL ? COMMAND_FAIL : COMMAND_REVIEW;
}

void reply_fill(struct reply *reply, const struct command *command, const struct result *result)
{
	reply->kind = kind_told(command, result);
	reply->refusal = result->refusal;
	reply->repeated = result->repeated;
	id_copy(reply->id, result->id);
	reply->seq = result->task.seq;
	reply->fence = command->fence;
	reply->token = result->worker.token;
	reply->granted_ms = result->worker.lease.granted_ms;
	reply->worker_state = result->worker.state;
	fill_claims(reply, result);
	reply->lost_count = fill_ids(reply->lost, result->lost, result->lost_count);
	reply->stop_count = fill_ids(reply->stop, result->stop, result->stop_count);
	reply->park_count = fill_ids(reply->park, result->park, result->park_count);
}
