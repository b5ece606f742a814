// clang-format off
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <cmocka.h>
// clang-format on

#include <string.h>

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

/* ---- machines ---- */

enum { NOW = 1000000 };

static const unsigned char first[TOKEN_HASH_BYTES] = {1}, second[TOKEN_HASH_BYTES] = {2},
			   third[TOKEN_HASH_BYTES] = {3};

static struct token machine(void)
{
	struct token token = {.id = SPAN("a"),
		.kind = TOKEN_WORKER,
		.created_ms = NOW,
		.expires_ms = NOW + 1000000,
		.more = {.lives_ms = 1000000}};

	memcpy(token.hash, first, sizeof first);
	return token;
}

static struct token renewed(
	const struct token *token, const unsigned char *shown, const unsigned char *fresh, int64_t now_ms)
{
	struct token after = {0};

	assert_int_equal(token_renew(token, shown, fresh, now_ms, &after), RENEWAL_DONE);
	assert_true(token_is_sound(&after));
	return after;
}

static void a_renewed_token_has_two_secrets_for_a_day_and_a_new_life(void **state)
{
	struct token token = machine();
	struct token after = renewed(&token, first, second, NOW + 500000);

	(void)state;
	assert_memory_equal(after.hash, second, sizeof second);
	assert_memory_equal(after.more.old_hash, first, sizeof first);
	assert_int_equal(after.expires_ms, NOW + 1500000);
	assert_int_equal(after.more.old_ends_ms, NOW + 1000000); /* not longer than it would have lived */
	assert_true(token_has_old(&after, NOW + 999999));
	assert_false(token_has_old(&after, NOW + 1000000));
	token.expires_ms = 0;
	assert_int_equal(renewed(&token, first, second, NOW).more.old_ends_ms, NOW + TOKEN_OLD_LIVES_MS);
}

static void the_secret_before_ends_when_the_new_one_was_used(void **state)
{
	struct token token = machine(), after = renewed(&token, first, second, NOW), nothing;

	(void)state;
	after.is_settled = true;
	assert_false(token_has_old(&after, NOW + 1));
	assert_int_equal(
		token_renew(&after, first, third, NOW + TOKEN_RENEW_AGAIN_MS, &nothing), RENEWAL_WRONG);
	assert_int_equal(
		token_renew(&after, second, third, NOW + TOKEN_RENEW_AGAIN_MS, &nothing), RENEWAL_DONE);
}

static void a_renewal_may_be_repeated_and_not_taken_back(void **state)
{
	struct token token = machine(), after = renewed(&token, first, second, NOW), nothing;

	(void)state;
	assert_int_equal(token_renew(&after, first, second, NOW + 1, &nothing), RENEWAL_REPEATED);
	assert_int_equal(token_renew(&after, second, second, NOW + 1, &nothing), RENEWAL_REPEATED);
	assert_int_equal(
		token_renew(&after, second, first, NOW + TOKEN_RENEW_AGAIN_MS, &nothing), RENEWAL_SAME);
	assert_int_equal(token_renew(&token, first, first, NOW, &nothing), RENEWAL_SAME);
	assert_int_equal(token_renew(&token, second, third, NOW, &nothing), RENEWAL_WRONG);
}

static void a_token_is_renewed_once_a_minute_and_not_after_its_end(void **state)
{
	struct token token = machine(), after = renewed(&token, first, second, NOW), nothing;

	(void)state;
	assert_int_equal(
		token_renew(&after, second, third, NOW + TOKEN_RENEW_AGAIN_MS - 1, &nothing), RENEWAL_EARLY);
	assert_int_equal(
		token_renew(&after, second, third, NOW + TOKEN_RENEW_AGAIN_MS, &nothing), RENEWAL_DONE);
	assert_int_equal(token_renew(&token, first, second, NOW + 1000000, &nothing), RENEWAL_WRONG);
	token.revoked_ms = NOW;
	assert_int_equal(token_renew(&token, first, second, NOW, &nothing), RENEWAL_WRONG);
}

static void a_secret_that_is_replaced_before_it_was_used_gives_the_old_one_no_more_time(void **state)
{
	struct token token = machine(), after = renewed(&token, first, second, NOW), again;

	(void)state;
	again = renewed(&after, first, third, NOW + TOKEN_RENEW_AGAIN_MS);
	assert_memory_equal(again.more.old_hash, first, sizeof first);
	assert_int_equal(again.more.old_ends_ms, after.more.old_ends_ms);
	assert_memory_equal(again.hash, third, sizeof third);
}

static void only_a_machine_lives_longer_by_a_renewal(void **state)
{
	struct token token = machine();

	(void)state;
	token.more.lives_ms = 0;
	assert_int_equal(renewed(&token, first, second, NOW + 500000).expires_ms, NOW + 1000000);
}

static struct token code_for(uint32_t uses)
{
	struct token code = {.id = SPAN("c"),
		.kind = TOKEN_JOIN,
		.expires_ms = NOW + 1000,
		.more = {.uses = uses, .lives_ms = 500}};

	memcpy(code.hash, first, sizeof first);
	return code;
}

static void a_code_is_good_as_often_and_as_long_as_it_says(void **state)
{
	struct token code = code_for(2), after;

	(void)state;
	assert_int_equal(token_enrol(&code, first, NULL, second, NOW, &after), ENROLMENT_DONE);
	assert_true(token_is_sound(&after));
	assert_int_equal(after.more.used, 1);
	assert_int_equal(token_enrol(&after, first, NULL, third, NOW, &code), ENROLMENT_DONE);
	assert_int_equal(token_enrol(&code, first, NULL, third, NOW, &after), ENROLMENT_GONE);
	code = code_for(1);
	assert_int_equal(token_enrol(&code, second, NULL, second, NOW, &after), ENROLMENT_GONE);
	assert_int_equal(token_enrol(&code, first, NULL, second, NOW + 1000, &after), ENROLMENT_GONE);
	code.revoked_ms = NOW;
	assert_int_equal(token_enrol(&code, first, NULL, second, NOW, &after), ENROLMENT_GONE);
	assert_int_equal(token_enrol(NULL, first, NULL, second, NOW, &after), ENROLMENT_GONE);
}

static void the_same_machine_is_answered_again_for_a_quarter_of_an_hour(void **state)
{
	struct token code = code_for(1), there = machine(), after;

	(void)state;
	code.more.used = 1;
	code.more.used_ms = NOW;
	there.more.join[0] = 'c';
	assert_int_equal(token_enrol(&code, first, &there, first, NOW + 5000, &after), ENROLMENT_REPEATED);
	assert_int_equal(token_enrol(&code, first, &there, second, NOW + 5000, &after), ENROLMENT_GONE);
	assert_int_equal(
		token_enrol(&code, first, &there, first, NOW + TOKEN_REPEAT_MS, &after), ENROLMENT_GONE);
	there.more.join[0] = 'd'; /* of another code */
	assert_int_equal(token_enrol(&code, first, &there, first, NOW + 5000, &after), ENROLMENT_GONE);
}

static void the_token_of_somebody_else_is_not_taken_over(void **state)
{
	struct token code = code_for(5), there = machine(), after;

	(void)state;
	assert_int_equal(token_enrol(&code, first, &there, first, NOW, &after), ENROLMENT_GONE);
	code.kind = TOKEN_WORKER; /* a token is no code */
	assert_int_equal(token_enrol(&code, first, NULL, second, NOW, &after), ENROLMENT_GONE);
}

int main(void)
{
	static const struct CMUnitTest tests[] = {
		cmocka_unit_test(every_kind_is_found_by_its_name_and_no_other_is),
		cmocka_unit_test(a_token_lives_until_it_expires_or_is_revoked),
		cmocka_unit_test(a_token_has_the_queues_it_was_given),
		cmocka_unit_test(those_who_see_everything_have_no_queues),
		cmocka_unit_test(a_renewed_token_has_two_secrets_for_a_day_and_a_new_life),
		cmocka_unit_test(the_secret_before_ends_when_the_new_one_was_used),
		cmocka_unit_test(a_renewal_may_be_repeated_and_not_taken_back),
		cmocka_unit_test(a_token_is_renewed_once_a_minute_and_not_after_its_end),
		cmocka_unit_test(a_secret_that_is_replaced_before_it_was_used_gives_the_old_one_no_more_time),
		cmocka_unit_test(only_a_machine_lives_longer_by_a_renewal),
		cmocka_unit_test(a_code_is_good_as_often_and_as_long_as_it_says),
		cmocka_unit_test(the_same_machine_is_answered_again_for_a_quarter_of_an_hour),
		cmocka_unit_test(the_token_of_somebody_else_is_not_taken_over),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
