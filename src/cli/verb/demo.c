#include "cli/verb/demo.h"

#include "base/take.h"
#include "cli/verb/here.h"

enum {
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

static bool add(struct cli *cli, const struct demo_task *task)
{
	struct json_object *body = cli_body(cli);
	cleanup(reply_done) struct reply reply = {0};

	json_member_word(body, "id", task->id);
	json_member_word(body, "title", task->title);
	json_member_word(body, "queue", "shell");
	json_member_word(body, "executor", "shell");
	json_member_raw(body, "labels", SPAN("[\"demo\"]"));
	/* the path of stint comes as an argument, so that nothing in it needs a quote */
	json_member_raw(body, "payload", SPAN("{\"argv\":[\"sh\",\"-c\","));
	json_put_string(body->buf, span_of(task->script));
	buf_put_span(body->buf, SPAN(",\"demo\","));
	json_put_string(body->buf, span_of(program_beside(cli, "stint")));
	buf_put_span(body->buf, SPAN("]}"));
	struct ask question = {.method = HTTP_METHOD_POST,
		.path = "/api/tasks",
		.body = cli_body_end(cli),
		.timeout_ms = CALL_MS,
		.optional = true};
	return server_ask(cli, &question, &reply) == 0;
}

bool demo_add(struct cli *cli, const char *home)
{
	bool found = here_find_server(cli, home);
	size_t added = 0;

	for (size_t i = 0; found && i < sizeof tasks / sizeof *tasks; i++)
		added += add(cli, &tasks[i]);
	return added == sizeof tasks / sizeof *tasks;
}
