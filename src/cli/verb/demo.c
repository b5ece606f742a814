#include "cli/verb/demo.h"

#include <stdio.h>
#include <string.h>

#include "base/take.h"
#include "wire/http/client.h"
#include "wire/json/json.h"

enum {
	BODY_BYTES_MAX = 16 << 10,
	CALL_MS = 5000,
};

struct demo_task {
	const char *id, *title;
	const char *script; /* $1 is this program */
};

static const struct demo_task tasks[] = {
	{"demo-hello", "say hello in three steps",
		"for i in 1 2 3; do echo step $i of 3; sleep 1; done; echo 'hello, world'"},
	{"demo-crash", "lose its process half way, and recover",
		"if [ \"$STINT_ATTEMPT\" = 1 ]; then\n"
		"	echo 'half way'\n"
		"	kill -9 $$\n"
		"fi\n"
		"echo \"attempt $STINT_ATTEMPT: the one before was killed, and nothing was lost\""},
	{"demo-ask", "ask a person",
		"if \"$1\" show \"$STINT_TASK_ID\" --no-timeline | grep ^answer; then\n"
		"	echo 'a person has answered; that was all it needed'\n"
		"else\n"
		"	echo 'it asks, and ends; no process waits for the answer'\n"
		"	\"$1\" task ask 'tea or coffee?' --option tea --option coffee\n"
		"fi"},
};

static int put_task(struct buf *body, const struct demo_task *task, const char *program)
{
	cleanup(buf_done) struct buf payload = {0};
	struct json_object object;

	/* the words are the program's own; the path of stint comes as an argument, so that nothing needs a quote */
	buf_init(&payload, BODY_BYTES_MAX);
	buf_printf(&payload, "{\"argv\":[\"sh\",\"-c\",");
	json_put_string(&payload, span_of(task->script));
	buf_printf(&payload, ",\"demo\",");
	json_put_string(&payload, span_of(program));
	buf_printf(&payload, "]}");
	buf_clear(body);
	json_begin(&object, body);
	json_member_string(&object, "id", span_of(task->id));
	json_member_string(&object, "title", span_of(task->title));
	json_member_word(&object, "queue", "shell");
	json_member_word(&object, "executor", "shell");
	json_member_raw(&object, "labels", SPAN("[\"demo\"]"));
	json_member_buf(&object, "payload", &payload);
	return json_end(&object);
}

static int read_token(const char *home, char *token, size_t room)
{
	char path[1200];

	snprintf(path, sizeof path, "%s/admin.token", home);
	FILE *file = fopen(path, "re");
	bool got = file && fgets(token, (int)room, file);
	if (file)
		fclose(file);
	if (!got)
		return -1;
	token[strcspn(token, "\r\n")] = 0;
	return 0;
}

bool demo_add(const char *home, const char *program)
{
	struct http_answer_limits limits = http_answer_limits_default();
	cleanup(buf_done) struct buf body = {0};
	struct http_address address;
	struct http_answer *answer;
	enum http_reach reach;
	const char *complaint;
	char url[1200], token[600] = "";
	size_t added = 0;

	snprintf(url, sizeof url, "unix:%s/stint.sock", home);
	if (http_address_parse(url, &address, &complaint) < 0 || read_token(home, token, sizeof token) < 0)
		return false;
	buf_init(&body, BODY_BYTES_MAX);
	struct http_client *client = http_client_new(&address, &limits);
	for (size_t i = 0; client && i < sizeof tasks / sizeof *tasks; i++) {
		if (put_task(&body, &tasks[i], program) < 0)
			break;
		struct http_call call = {
			.method = HTTP_METHOD_POST,
			.target = SPAN("/api/tasks"),
			.body = buf_span(&body),
			.token = span_of(token),
			.timeout_ms = CALL_MS,
		};
		added += http_client_call(client, &call, &answer, &reach) == 0 &&
			http_answer_status(answer) == 201;
	}
	http_client_free(client);
	return added == sizeof tasks / sizeof *tasks;
}
