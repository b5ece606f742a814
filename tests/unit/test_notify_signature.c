/* Signatures that others have computed, and secrets that are none. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

#include "base/take.h"
#include "notify/signature.h"

/* Of the Standard Webhooks reference libraries; Python's hmac says the same. */
static void the_published_vector_is_signed_alike(void **state)
{
	cleanup(buf_done) struct buf out = {0};
	struct secret secret;

	(void)state;
	buf_init(&out, 1024);
	assert_int_equal(secret_parse(SPAN("whsec_MfKQ9r8GKYqrTwjUPD8ILPZIo2LaLaSw"), &secret), 0);
	assert_int_equal(secret.len, 24);
	assert_int_equal(signature_put(&out, &secret, 1, "msg_p5jXN8AQM9LWM0D4loKWxJek", 1614265330,
				 SPAN("{\"test\": 2432232314}")),
		0);
	assert_true(span_equal(buf_span(&out), SPAN("v1,g0hM9SsE+OTPJTGt/tmIKtSyZlE3uFJELVlNIOLJ1OE=")));
}

static void two_secrets_give_two_signatures_with_a_blank_between(void **state)
{
	cleanup(buf_done) struct buf out = {0};
	struct secret secrets[2];

	(void)state;
	buf_init(&out, 1024);
	assert_int_equal(secret_parse(SPAN("whsec_MfKQ9r8GKYqrTwjUPD8ILPZIo2LaLaSw"), &secrets[0]), 0);
	secrets[1] = secrets[0];
	assert_int_equal(signature_put(&out, secrets, 2, "msg_p5jXN8AQM9LWM0D4loKWxJek", 1614265330,
				 SPAN("{\"test\": 2432232314}")),
		0);
	assert_true(span_equal(buf_span(&out),
		SPAN("v1,g0hM9SsE+OTPJTGt/tmIKtSyZlE3uFJELVlNIOLJ1OE= v1,g0hM9SsE+OTPJTGt/tmIKtSyZlE3uFJELVlNIOLJ1OE=")));
}

static void what_is_no_secret_is_refused(void **state)
{
	static const char *const wrong[] = {"", "whsec_", "MfKQ9r8GKYqrTwjUPD8ILPZIo2LaLaSw", "whsec_YWJj",
		"whsec_MfKQ9r8GKYqrTwjUPD8ILPZIo2LaLaS", "whsec_MfKQ9r8GKYqrTwjUPD8ILPZIo2LaLaS!",
		"whsec_AAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAA"};
	struct secret secret;

	(void)state;
	for (size_t i = 0; i < sizeof wrong / sizeof *wrong; i++)
		assert_true(secret_parse(span_of(wrong[i]), &secret) < 0);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(the_published_vector_is_signed_alike),
		cmocka_unit_test(two_secrets_give_two_signatures_with_a_blank_between),
		cmocka_unit_test(what_is_no_secret_is_refused),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
