/* Both ends of TLS in one program: the bytes that one has for the other are carried by hand. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

#include <errno.h>
#include <string.h>
#include <time.h>

#include "wire/tls/tls.h"

struct world {
	struct buf ca, ca_key, cert, key;
	struct tls_authority *authority;
	struct tls_trust *trust;
	struct tls_identity *identity;
	struct tls *client, *server;
	char complaint[TLS_COMPLAINT_BYTES];
};

#define YEAR_MS (INT64_C(365) * 24 * 3600 * 1000)

static int64_t now_ms(void)
{
	return (int64_t)time(NULL) * 1000;
}

static void issue(struct world *w, const char *host)
{
	buf_clear(&w->cert);
	buf_clear(&w->key);
	assert_int_equal(
		tls_authority_issue(w->authority, &host, 1, now_ms() + YEAR_MS, &w->cert, &w->key), 0);
	tls_identity_free(w->identity);
	w->identity = NULL;
	assert_int_equal(tls_identity_new(buf_span(&w->cert), buf_span(&w->key), buf_span(&w->ca), now_ms(),
				 &w->identity, w->complaint),
		0);
}

static int begin(void **state)
{
	static struct world world;
	struct world *w = &world;

	*w = (struct world){0};
	buf_init(&w->ca, 1 << 16);
	buf_init(&w->ca_key, 1 << 16);
	buf_init(&w->cert, 1 << 16);
	buf_init(&w->key, 1 << 16);
	assert_int_equal(tls_authority_new("an authority", now_ms() + YEAR_MS, &w->authority), 0);
	assert_int_equal(tls_authority_put(w->authority, &w->ca, &w->ca_key), 0);
	assert_int_equal(tls_trust_new(buf_span(&w->ca), &w->trust, w->complaint), 0);
	issue(w, "queue.example");
	*state = w;
	return 0;
}

static int end(void **state)
{
	struct world *w = *state;

	tls_free(w->client);
	tls_free(w->server);
	tls_identity_free(w->identity);
	tls_trust_free(w->trust);
	tls_authority_free(w->authority);
	buf_done(&w->ca);
	buf_done(&w->ca_key);
	buf_done(&w->cert);
	buf_done(&w->key);
	return 0;
}

static bool carry(struct tls *from, struct tls *to, size_t most)
{
	struct span bytes = tls_output(from);

	bytes.len = bytes.len < most ? bytes.len : most;
	if (bytes.len > 0)
		assert_int_equal(tls_hear(to, bytes), 0);
	tls_output_sent(from, bytes.len);
	return bytes.len > 0;
}

/* What the client thinks of it in the end. */
static int shake(struct world *w, const char *host, size_t piece)
{
	int client = 0, server = 0;
	bool moves = true;

	w->client = tls_client_new(w->trust, host);
	w->server = tls_server_new(w->identity);
	assert_non_null(w->client);
	assert_non_null(w->server);
	while (moves) {
		client = client == 0 ? tls_shake(w->client) : client;
		moves = carry(w->client, w->server, piece);
		server = server == 0 ? tls_shake(w->server) : server;
		moves |= carry(w->server, w->client, piece);
	}
	return client;
}

static void expect(struct tls *from, struct tls *to, const char *text)
{
	char heard[100];

	assert_int_equal(tls_write(from, span_of(text)), 0);
	carry(from, to, SIZE_MAX);
	assert_int_equal(tls_read(to, heard, sizeof heard), strlen(text));
	assert_memory_equal(heard, text, strlen(text));
	assert_int_equal(tls_read(to, heard, sizeof heard), 0);
}

static void both_ends_hear_each_other(void **state)
{
	struct world *w = *state;

	assert_int_equal(shake(w, "queue.example", SIZE_MAX), 1);
	assert_true(tls_is_open(w->client));
	assert_true(tls_is_open(w->server));
	expect(w->client, w->server, "a question");
	expect(w->server, w->client, "an answer");
	assert_string_equal(tls_complaint(w->client), "");
}

static void a_handshake_in_single_bytes_is_the_same(void **state)
{
	assert_int_equal(shake(*state, "queue.example", 1), 1);
}

static void a_goodbye_is_told_from_silence(void **state)
{
	struct world *w = *state;
	char heard[10];

	assert_int_equal(shake(w, "queue.example", SIZE_MAX), 1);
	assert_int_equal(tls_read(w->client, heard, sizeof heard), 0);
	tls_say_goodbye(w->server);
	carry(w->server, w->client, SIZE_MAX);
	assert_int_equal(tls_read(w->client, heard, sizeof heard), -EPIPE);
}

static void a_name_that_the_certificate_lacks_is_refused(void **state)
{
	struct world *w = *state;

	assert_int_equal(shake(w, "other.example", SIZE_MAX), -EKEYREJECTED);
	assert_string_equal(
		tls_complaint(w->client), "its certificate is for queue.example, not for other.example");
	assert_false(tls_is_open(w->client));
}

static void an_address_is_no_name(void **state)
{
	struct world *w = *state;

	issue(w, "10.0.0.5");
	assert_int_equal(shake(w, "10.0.0.5", SIZE_MAX), 1);
	tls_free(w->client);
	tls_free(w->server);
	assert_int_equal(shake(w, "10.0.0.6", SIZE_MAX), -EKEYREJECTED);
}

static void a_star_stands_for_one_part(void **state)
{
	static const struct {
		const char *host;
		int verdict;
	} rows[] = {{"a.queue.example", 1}, {"b.a.queue.example", -EKEYREJECTED},
		{"queue.example", -EKEYREJECTED}};
	struct world *w = *state;

	issue(w, "*.queue.example");
	for (size_t i = 0; i < sizeof rows / sizeof *rows; i++) {
		assert_int_equal(shake(w, rows[i].host, SIZE_MAX), rows[i].verdict);
		assert_int_equal(tls_facts_name(tls_identity_facts(w->identity), span_of(rows[i].host)),
			rows[i].verdict == 1);
		tls_free(w->client);
		tls_free(w->server);
		w->client = w->server = NULL;
	}
}

static void another_authority_is_not_trusted(void **state)
{
	struct world *w = *state;
	struct tls_authority *other;
	struct buf cert = {.max = 1 << 16}, key = {.max = 1 << 16};

	assert_int_equal(tls_authority_new("an authority", now_ms() + YEAR_MS, &other), 0);
	assert_int_equal(tls_authority_put(other, &cert, &key), 0);
	tls_trust_free(w->trust);
	assert_int_equal(tls_trust_new(buf_span(&cert), &w->trust, w->complaint), 0);
	assert_int_equal(shake(w, "queue.example", SIZE_MAX), -EKEYREJECTED);
	assert_string_equal(
		tls_complaint(w->client), "no authority that is trusted here has signed its certificate");
	tls_authority_free(other);
	buf_done(&cert);
	buf_done(&key);
}

static void what_is_no_tls_is_a_fault(void **state)
{
	struct world *w = *state;

	w->server = tls_server_new(w->identity);
	assert_non_null(w->server);
	assert_int_equal(tls_hear(w->server, SPAN("GET / HTTP/1.1\r\n\r\n")), 0);
	assert_int_equal(tls_shake(w->server), -EPROTO);
	assert_non_null(strstr(tls_complaint(w->server), "does not speak TLS as we do"));
}

static void a_byte_that_was_changed_is_a_fault(void **state)
{
	struct world *w = *state;
	char heard[100], copy[200];

	assert_int_equal(shake(w, "queue.example", SIZE_MAX), 1);
	assert_int_equal(tls_write(w->client, SPAN("a question")), 0);
	struct span bytes = tls_output(w->client);
	assert_true(bytes.len < sizeof copy);
	memcpy(copy, bytes.data, bytes.len);
	copy[bytes.len - 1] ^= 1;
	assert_int_equal(tls_hear(w->server, (struct span){copy, bytes.len}), 0);
	assert_int_equal(tls_read(w->server, heard, sizeof heard), -EPROTO);
}

static void a_pair_is_checked_before_it_is_used(void **state)
{
	struct world *w = *state;
	struct tls_identity *other = NULL;
	struct span cert = buf_span(&w->cert), key = buf_span(&w->key);

	assert_int_equal(tls_identity_new(cert, buf_span(&w->ca_key), (struct span){0}, now_ms(), &other,
				 w->complaint),
		-EINVAL);
	assert_non_null(strstr(w->complaint, "do not belong together"));
	assert_int_equal(
		tls_identity_new(cert, cert, (struct span){0}, now_ms(), &other, w->complaint), -EINVAL);
	assert_non_null(strstr(w->complaint, "the key cannot be read"));
	assert_int_equal(
		tls_identity_new(key, key, (struct span){0}, now_ms(), &other, w->complaint), -EINVAL);
	assert_non_null(strstr(w->complaint, "the certificate cannot be read"));
	assert_int_equal(
		tls_identity_new(cert, key, (struct span){0}, now_ms() + 2 * YEAR_MS, &other, w->complaint),
		-EINVAL);
	assert_non_null(strstr(w->complaint, "the certificate is valid from 2020-01-01"));
	assert_null(other);
}

static void facts_name_hosts_and_addresses(void **state)
{
	struct world *w = *state;
	static struct tls_facts facts;
	unsigned char a[TLS_HASH_BYTES], b[TLS_HASH_BYTES];

	issue(w, "::1");
	assert_int_equal(tls_facts_read(buf_span(&w->cert), &facts), 0);
	assert_true(tls_facts_name(&facts, SPAN("0:0::1")));
	assert_false(tls_facts_name(&facts, SPAN("::2")));
	assert_false(tls_facts_name(&facts, SPAN("")));
	assert_int_equal(tls_facts_read(SPAN("nothing"), &facts), -EINVAL);
	assert_int_equal(tls_hash(buf_span(&w->ca), a), 0);
	assert_int_equal(tls_hash(buf_span(&w->cert), b), 0);
	assert_memory_not_equal(a, b, sizeof a);
	assert_int_equal(tls_hash(SPAN("nothing"), a), -EINVAL);
}

static void an_authority_is_read_again_and_signs_no_nonsense(void **state)
{
	static const char *const bad[] = {"a b", "a,DNS:evil.example", "", "-x", "*"};
	struct world *w = *state;
	struct tls_authority *again;

	assert_int_equal(tls_authority_read(buf_span(&w->ca), buf_span(&w->ca_key), &again), 0);
	for (size_t i = 0; i < sizeof bad / sizeof *bad; i++)
		assert_int_equal(
			tls_authority_issue(again, &bad[i], 1, now_ms() + YEAR_MS, &w->cert, &w->key),
			-EINVAL);
	tls_authority_free(again);
	assert_int_equal(tls_authority_read(buf_span(&w->ca), SPAN("x"), &again), -EINVAL);
}

static void an_empty_file_is_no_authority(void **state)
{
	struct world *w = *state;
	struct tls_trust *trust;

	assert_int_equal(tls_trust_new(SPAN(""), &trust, w->complaint), -EINVAL);
	assert_int_equal(tls_trust_new(SPAN("x"), &trust, w->complaint), -EINVAL);
	assert_non_null(strstr(w->complaint, "there is no certificate in it"));
}

static bool is_wanted(void *context, const unsigned char hash[TLS_HASH_BYTES])
{
	return memcmp(context, hash, TLS_HASH_BYTES) == 0;
}

static void pin(struct world *w, unsigned char hash[TLS_HASH_BYTES])
{
	tls_trust_free(w->trust);
	w->trust = NULL;
	assert_int_equal(tls_trust_pinned(is_wanted, hash, &w->trust, w->complaint), 0);
}

static void an_authority_is_found_by_its_hash_and_kept(void **state)
{
	unsigned char hash[TLS_HASH_BYTES], found[TLS_HASH_BYTES];
	struct world *w = *state;

	assert_int_equal(tls_hash(buf_span(&w->ca), hash), 0);
	pin(w, hash);
	assert_null(tls_trust_found(w->trust).data);
	assert_int_equal(shake(w, "queue.example", SIZE_MAX), 1);
	assert_int_equal(tls_hash(tls_trust_found(w->trust), found), 0);
	assert_memory_equal(hash, found, sizeof hash);
	expect(w->client, w->server, "a code");
}

static void another_hash_another_name_and_a_foreign_certificate_behind_the_right_authority_are_refused(
	void **state)
{
	unsigned char hash[TLS_HASH_BYTES];
	struct tls_authority *foreign;
	struct world *w = *state;
	const char *host = "queue.example";

	assert_int_equal(tls_hash(buf_span(&w->ca), hash), 0);
	pin(w, hash);
	assert_int_equal(shake(w, "other.example", SIZE_MAX), -EKEYREJECTED);
	hash[0] ^= 1;
	tls_free(w->client);
	tls_free(w->server);
	pin(w, hash);
	assert_int_equal(shake(w, host, SIZE_MAX), -EKEYREJECTED);
	assert_non_null(strstr(tls_complaint(w->client), "does not show the authority that the code names"));
	hash[0] ^= 1; /* the stranger shows the true authority, and has no certificate of it */
	tls_free(w->client);
	tls_free(w->server);
	pin(w, hash);
	assert_int_equal(tls_authority_new("a stranger", now_ms() + YEAR_MS, &foreign), 0);
	buf_clear(&w->cert);
	buf_clear(&w->key);
	assert_int_equal(tls_authority_issue(foreign, &host, 1, now_ms() + YEAR_MS, &w->cert, &w->key), 0);
	tls_authority_free(foreign);
	tls_identity_free(w->identity);
	assert_int_equal(tls_identity_new(buf_span(&w->cert), buf_span(&w->key), buf_span(&w->ca), now_ms(),
				 &w->identity, w->complaint),
		0);
	assert_int_equal(shake(w, host, SIZE_MAX), -EKEYREJECTED);
	assert_null(tls_trust_found(w->trust).data);
}

int main(void)
{
#define TEST(name) cmocka_unit_test_setup_teardown(name, begin, end)
	const struct CMUnitTest tests[] = {
		TEST(both_ends_hear_each_other),
		TEST(a_handshake_in_single_bytes_is_the_same),
		TEST(a_goodbye_is_told_from_silence),
		TEST(a_name_that_the_certificate_lacks_is_refused),
		TEST(an_address_is_no_name),
		TEST(a_star_stands_for_one_part),
		TEST(another_authority_is_not_trusted),
		TEST(what_is_no_tls_is_a_fault),
		TEST(a_byte_that_was_changed_is_a_fault),
		TEST(a_pair_is_checked_before_it_is_used),
		TEST(facts_name_hosts_and_addresses),
		TEST(an_authority_is_read_again_and_signs_no_nonsense),
		TEST(an_empty_file_is_no_authority),
		TEST(an_authority_is_found_by_its_hash_and_kept),
		TEST(another_hash_another_name_and_a_foreign_certificate_behind_the_right_authority_are_refused),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
