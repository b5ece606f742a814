// clang-format off
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <cmocka.h>
// clang-format on

#include "core/worker/token.h"

static void every_kind_is_found_by_its_name_and_no_other_is(void **state)
{
	(void)state;
	for (int kind = TOKEN_ADMIN; kind < TOKEN_KIND_COUNT; kind++)
		assert_int_equal(token_kind_find(span_of(token_kind_name((enum token_kind)kind))), kind);
	assert_int_equal(token_kind_find(SPAN("claim")), 0);
	assert_int_equal(token_kind_find(SPAN("Admin")), 0);
	assert_int_equal(token_kind_find((struct span){0}), 0);
}

static void a_token_lives_until_it_expires_or_is_revoked(void **state)
{
	struct token token = {.created_ms = 100};

	(void)state;
	assert_true(token_is_live(&token, INT64_MAX));
	token.expires_ms = 200;
	assert_true(token_is_live(&token, 199));
	assert_false(token_is_live(&token, 200));
	assert_int_equal(token_ended_ms(&token, 500), 200);
	token.revoked_ms = 150;
	assert_false(token_is_live(&token, 160));
	assert_int_equal(token_ended_ms(&token, 500), 150);
}

static void a_token_has_the_queues_it_was_given(void **state)
{
	struct span queues[TOKEN_QUEUES_MAX];
	struct token token = {0};

	(void)state;
	assert_int_equal(token_queues(&token, queues), 0);
	token.queues = SPAN("\x1f"
			    "a b\x1f"
			    "c");
	assert_int_equal(token_queues(&token, queues), 2);
	assert_true(span_equal(queues[0], SPAN("a b")));
	assert_true(span_equal(queues[1], SPAN("c")));
}

static void those_who_see_everything_have_no_queues(void **state)
{
	(void)state;
	assert_false(token_kind_has_queues(TOKEN_ADMIN));
	assert_false(token_kind_has_queues(TOKEN_OPERATOR));
	assert_false(token_kind_has_queues(TOKEN_METRICS));
	assert_true(token_kind_has_queues(TOKEN_WORKER));
}

int main(void)
{
	static const struct CMUnitTest tests[] = {
		cmocka_unit_test(every_kind_is_found_by_its_name_and_no_other_is),
		cmocka_unit_test(a_token_lives_until_it_expires_or_is_revoked),
		cmocka_unit_test(a_token_has_the_queues_it_was_given),
		cmocka_unit_test(those_who_see_everything_have_no_queues),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
