/*
 * Workflows of a configuration: what is written, and what is wrong with it.
 */
// clang-format off
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <cmocka.h>
// clang-format on
#include <string.h>

#include "api/flow/workflow_form.h"
#include "base/take.h"
#include "wire/form/form.h"

#define RULES(rules)   "{\"mine\":{\"last\":\"merged\",\"rules\":[" rules "]}}"
#define RULE(members)  RULES("{" members "}," MERGES)
#define MERGES         "{\"events\":[\"x\"],\"from\":[\"validated\"],\"to\":\"merged\"}"
#define MOVE(from, to) "\"events\":[\"a\"],\"from\":[\"" from "\"],\"to\":\"" to "\""

/* The errors of that text, as elements of a JSON list; empty: it is good. */
static uint32_t read_workflows(struct form *form, struct workflow_form *workflows, const char *text)
{
	struct json_complaint complaint;
	yyjson_doc *doc = json_read(span_of(text), &complaint);

	if (!doc)
		fail_msg("%s: %s", complaint.reason, text);
	assert_false(workflow_form_take(workflows, form, SPAN("others"), yyjson_doc_get_root(doc)));
	assert_true(workflow_form_take(workflows, form, SPAN("workflows"), yyjson_doc_get_root(doc)));
	yyjson_doc_free(doc);
	return form->error_count;
}

static void a_workflow_that_is_wrong_says_where_and_why(void **state)
{
	static const struct {
		const char *text, *says; /* NULL: it is good */
	} rows[] = {
		{RULES(MERGES), NULL},
		{RULE(MOVE("in_progress", "building")), NULL},
		{RULE(MOVE("allocated", "in_progress")), NULL},
		{RULE(MOVE("in_progress", "pr_created") ",\"reports\":true"), NULL},
		{RULE(MOVE("pr_created", "reviewing") ",\"action\":\"validate\",\"guards\":[\"success\"]"),
			NULL},
		{RULE(MOVE("reviewing", "validated")), NULL},
		{RULE(MOVE("in_progress", "failed")), NULL},
		{RULE(MOVE("reviewing", "failed") ",\"onReject\":\"in_progress\""), NULL},
		{"5", "must be an object"},
		{"{\"mine\":5}", "must be an object: { \\\"last\\\""},
		{"{\"mine\":{}}", "must have last and rules"},
		{"{\"mine\":{\"last\":\"building\",\"rules\":[]}}", "the stage that is done"},
		{"{\"mine\":{\"last\":\"merged\",\"rules\":[]}}", "must be a list of 1 to 64 rules"},
		{"{\"mine\":{\"last\":\"merged\",\"rules\":5}}", "must be a list of 1 to 64 rules"},
		{"{\"-mine\":{}}", "must have a name of up to"},
		{"{\"\":{}}", "must have a name of up to"},
		{"{\"autopilot\":{}}", "is built in; choose another name"},
		{RULES("5"), "rules[0]"},
		{RULES("{}"), "must have events, from and to"},
		{RULE("\"events\":[],\"from\":[\"in_progress\"],\"to\":\"building\""),
			"a list of 1 to 32 names"},
		{RULE("\"events\":[\"a b\"],\"from\":[\"in_progress\"],\"to\":\"building\""),
			"a list of 1 to 32 names"},
		{RULE("\"events\":[\"a\"],\"from\":[],\"to\":\"building\""), "a list of stages"},
		{RULE("\"events\":[\"a\"],\"from\":[\"nowhere\"],\"to\":\"building\""), "a list of stages"},
		{RULE(MOVE("in_progress", "nowhere")), "a stage: "},
		{RULE(MOVE("in_progress", "building") ",\"guards\":5"), "a list of guards"},
		{RULE(MOVE("in_progress", "building") ",\"guards\":[\"luck\"]"), "a list of guards"},
		{RULE(MOVE("in_progress", "building") ",\"action\":\"dance\""),
			"create_pr, validate, merge or verify"},
		{RULE(MOVE("in_progress", "building") ",\"reports\":5"),
			"\"field\":\"workflows.mine.rules[0].reports\""},
		{RULE(MOVE("allocated", "building")), "leads from allocated"},
		{RULE(MOVE("in_progress", "building") ",\"reports\":true"), "has reports"},
		{RULE(MOVE("in_progress", "validated")), "leads to validated"},
		{RULE(MOVE("validated", "completed")), "behind the last one, merged"},
		{RULE(MOVE("in_progress", "merged")), "nothing comes there that was not validated"},
		{RULE(MOVE("validated", "reviewing")), "leads back"},
		{RULE(MOVE("reviewing", "failed") ",\"onReject\":\"building\""),
			"has an onReject that is not in_progress"},
		{RULES("{" MOVE("in_progress", "building") "}"),
			"has no rule that leads to the last stage, merged"},
	};

	(void)state;
	for (size_t i = 0; i < sizeof rows / sizeof *rows; i++) {
		struct arena arena;
		struct form form;
		struct workflow_form workflows = {0};

		arena_init(&arena, 1 << 20);
		form_start(&form, &arena);
		uint32_t errors = read_workflows(&form, &workflows, rows[i].text);
		struct span said = buf_span(&form.errors);
		if (!rows[i].says ? errors > 0 || workflows.count != 1 : errors == 0)
			fail_msg("%s: %u errors: %.*s", rows[i].text, errors, SPAN_ARGS(said));
		if (rows[i].says && !memmem(said.data, said.len, rows[i].says, strlen(rows[i].says)))
			fail_msg("%s: no %s in %.*s", rows[i].text, rows[i].says, SPAN_ARGS(said));
		form_done(&form);
		arena_done(&arena);
	}
}

static void a_name_that_comes_again_takes_the_place_of_the_other(void **state)
{
	struct arena arena;
	struct form form;
	struct workflow_form workflows = {0};

	(void)state;
	arena_init(&arena, 1 << 20);
	form_start(&form, &arena);
	assert_int_equal(read_workflows(&form, &workflows, RULES(MERGES)), 0);
	assert_int_equal(read_workflows(&form, &workflows,
				 "{\"mine\":{\"last\":\"merged\",\"text\":\"anew\",\"rules\":[" MERGES "]}}"),
		0);
	assert_int_equal(workflows.count, 1);
	assert_string_equal(workflows.plans[0].text, "anew");
	form_done(&form);
	arena_done(&arena);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(a_workflow_that_is_wrong_says_where_and_why),
		cmocka_unit_test(a_name_that_comes_again_takes_the_place_of_the_other),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
