#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <string.h>

#include <cmocka.h>

#include "base/secret.h"

#define SECRET "0123456789abcdefghijklmnopqrstuvwxyzABC_-xy"
#define STARS  "*******************************************"

static void assert_becomes(const char *before, const char *after)
{
	char text[400];

	snprintf(text, sizeof text, "%s", before);
	secret_blank(text, strlen(text));
	assert_string_equal(text, after);
}

static void the_secret_of_a_whole_token_is_blanked_where_it_stands(void **state)
{
	(void)state;
	assert_becomes("a stint_claim_00ff.1.zz_" SECRET " b", "a stint_claim_00ff.1.zz_" STARS " b");
	assert_becomes("stint_claim_00ff.1.zz-1.1-0a_" SECRET, "stint_claim_00ff.1.zz-1.1-0a_" STARS);
	assert_becomes("\"stint_gate:merge_1_" SECRET "\"", "\"stint_gate:merge_1_" STARS "\"");
	assert_becomes("stint_worker_1_" SECRET "\nstint_admin_2_" SECRET,
		"stint_worker_1_" STARS "\nstint_admin_2_" STARS);
}

static void what_is_no_whole_token_stays(void **state)
{
	(void)state;
	const char *const texts[] = {"", "stint_", "stint_worker_count 3", "stint_admin_0011_short",
		"stint__1_" SECRET, "stint_a_" SECRET, "stint_tasks_completed_total{queue=\"a\"} 4"};

	for (size_t i = 0; i < sizeof texts / sizeof *texts; i++)
		assert_becomes(texts[i], texts[i]);
	char zeros[100] = "stint_admin_1_";
	secret_blank(zeros, sizeof zeros);
	assert_int_equal(zeros[14], 0);
	assert_false(secret_may_be_in(SPAN("stint_worker_count")));
	assert_true(secret_may_be_in(SPAN("stint_admin_2_" SECRET)));
	assert_true(secret_may_be_in(SPAN("_ a_stint__stint_admin_2_" SECRET)));
	assert_true(secret_may_be_in(SPAN(SECRET "-------stint_")));
	assert_false(secret_may_be_in(SPAN("stin_ _____ tint_ " SECRET)));
}

int main(void)
{
	static const struct CMUnitTest cases[] = {
		cmocka_unit_test(the_secret_of_a_whole_token_is_blanked_where_it_stands),
		cmocka_unit_test(what_is_no_whole_token_stays),
	};

	return cmocka_run_group_tests(cases, NULL, NULL);
}
