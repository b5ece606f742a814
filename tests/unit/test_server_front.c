/* What stands before the server: the public address, and whom a proxy speaks for. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

#include <arpa/inet.h>
#include <string.h>

#include "server/front.h"

static void address(const char *text, unsigned char ret_address[ADDRESS_BYTES])
{
	memset(ret_address, 0, ADDRESS_BYTES);
	if (inet_pton(AF_INET6, text, ret_address) == 1)
		return;
	ret_address[10] = ret_address[11] = 0xff;
	assert_int_equal(inet_pton(AF_INET, text, ret_address + 12), 1);
}

static void a_public_url_is_a_host_an_origin_and_a_path(void **state)
{
	struct front front = {0};

	(void)state;
	assert_true(front_read_url(&front, "https://Stint.Example/board/"));
	assert_string_equal(front.host, "stint.example");
	assert_string_equal(front.origin, "https://stint.example");
	assert_string_equal(front.prefix, "/board");
	assert_true(front.secure);
	assert_true(front_read_url(&front, "https://stint.example:443"));
	assert_string_equal(front.origin, "https://stint.example");
	assert_string_equal(front.prefix, "");
	assert_true(front_read_url(&front, "https://stint.example:8443/a/b_c-D"));
	assert_string_equal(front.host, "stint.example:8443");
	assert_string_equal(front.prefix, "/a/b_c-D");
	assert_true(front_read_url(&front, "https://[2001:db8::1]:8443"));
	assert_string_equal(front.host, "[2001:db8::1]:8443");
	assert_true(front_read_url(&front, "http://localhost:80/x"));
	assert_string_equal(front.origin, "http://localhost");
	assert_true(front_read_url(&front, "http://127.0.0.1:8080"));
	assert_true(front_read_url(&front, "http://[::1]:8080"));
}

static void what_is_no_public_url_changes_nothing(void **state)
{
	static const char *const wrong[] = {"", "stint.example", "https://", "https:///x",
		"ftp://stint.example", "http://stint.example", "http://localhost.evil", "https://a b",
		"https://stint.example:", "https://stint.example:0", "https://stint.example:65536",
		"https://stint.example:8443x", "https://me@stint.example", "https://stint.example/a//b",
		"https://stint.example/a;b", "https://stint.example/a?b", "https://stint.example/a%2f",
		"https://stint.example/..", "https://stint.example\r\nx: y", "https://[::1"};
	struct front front = {0};

	(void)state;
	assert_true(front_read_url(&front, "https://kept.example/here"));
	for (size_t i = 0; i < sizeof wrong / sizeof *wrong; i++) {
		assert_false(front_read_url(&front, wrong[i]));
		assert_string_equal(front.origin, "https://kept.example");
		assert_string_equal(front.prefix, "/here");
	}
}

static void the_prefix_is_taken_off_a_path_that_has_it(void **state)
{
	static const struct {
		const char *path, *left;
		enum front_path is;
	} cases[] = {
		{"/board/", "/", FRONT_PATH_OURS},
		{"/board/api/tasks", "/api/tasks", FRONT_PATH_OURS},
		{"/board", "/board", FRONT_PATH_SLASH},
		{"/boards/api", "/boards/api", FRONT_PATH_OURS},
		{"/api/tasks", "/api/tasks", FRONT_PATH_OURS},
		{"/board/board/x", "/board/x", FRONT_PATH_OURS},
		{"/", "/", FRONT_PATH_OURS},
	};
	struct front front = {0}, none = {0};

	(void)state;
	assert_true(front_read_url(&front, "https://stint.example/board"));
	for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) {
		struct span path = span_of(cases[i].path);
		assert_int_equal(front_strip(&front, &path), cases[i].is);
		assert_true(span_equal(path, span_of(cases[i].left)));
		path = span_of(cases[i].path);
		assert_int_equal(front_strip(&none, &path), FRONT_PATH_OURS);
		assert_true(span_equal(path, span_of(cases[i].path)));
	}
}

static void proxies_are_addresses_and_networks(void **state)
{
	static const struct {
		const char *text;
		bool is_proxy;
	} cases[] = {{"127.0.0.1", true}, {"127.0.0.2", false}, {"10.20.30.40", true}, {"11.0.0.1", false},
		{"172.31.255.255", true}, {"172.32.0.0", false}, {"fd12::1", true}, {"fe80::1", false},
		{"::1", true}, {"::2", false}};
	struct front front = {0};
	unsigned char bytes[ADDRESS_BYTES];

	(void)state;
	assert_null(front_read_proxies(&front, " 127.0.0.1 10.0.0.0/8, 172.16.0.0/12  fd00::/8 ::1"));
	assert_int_equal(front.proxy_count, 5);
	for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) {
		address(cases[i].text, bytes);
		assert_int_equal(front_is_proxy(&front, bytes), cases[i].is_proxy);
	}
	assert_string_equal(front_read_proxies(&front, "127.0.0.1 proxy.example"), "proxy.example");
	assert_string_equal(front_read_proxies(&front, "10.0.0.0/33"), "10.0.0.0/33");
	assert_string_equal(front_read_proxies(&front, "10.0.0.0/"), "10.0.0.0/");
	assert_string_equal(front_read_proxies(&front, "1 2"), "1 2");
	assert_null(front_read_proxies(&front, "0.0.0.0/0"));
	address("203.0.113.9", bytes);
	assert_true(front_is_proxy(&front, bytes));
	address("2001:db8::1", bytes);
	assert_false(front_is_proxy(&front, bytes));
	assert_non_null(front_read_proxies(&front,
		"1.1.1.1 1.1.1.1 1.1.1.1 1.1.1.1 1.1.1.1 1.1.1.1 1.1.1.1 1.1.1.1 1.1.1.1 1.1.1.1 1.1.1.1 "
		"1.1.1.1 1.1.1.1 1.1.1.1 1.1.1.1 1.1.1.1 1.1.1.1"));
}

static void the_client_is_the_last_address_that_is_no_proxy(void **state)
{
	static const struct {
		const char *header, *client;
	} cases[] = {{"198.51.100.7", "198.51.100.7"}, {"203.0.113.1, 198.51.100.7", "198.51.100.7"},
		{"198.51.100.7, 10.0.0.2", "198.51.100.7"},
		{"198.51.100.7,10.0.0.2 , 10.0.0.3", "198.51.100.7"}, {"2001:db8::7", "2001:db8::7"},
		{"10.0.0.2", NULL}, {"", NULL}, {"198.51.100.7, unknown", NULL}, {"198.51.100.7,", NULL},
		{"198.51.100.7:4711", NULL}};
	struct front front = {0};
	unsigned char wanted[ADDRESS_BYTES], found[ADDRESS_BYTES];

	(void)state;
	assert_null(front_read_proxies(&front, "10.0.0.0/8"));
	for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) {
		bool has = front_client(&front, span_of(cases[i].header), found);
		assert_int_equal(has, cases[i].client != NULL);
		if (!has)
			continue;
		address(cases[i].client, wanted);
		assert_memory_equal(found, wanted, ADDRESS_BYTES);
	}
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(a_public_url_is_a_host_an_origin_and_a_path),
		cmocka_unit_test(what_is_no_public_url_changes_nothing),
		cmocka_unit_test(the_prefix_is_taken_off_a_path_that_has_it),
		cmocka_unit_test(proxies_are_addresses_and_networks),
		cmocka_unit_test(the_client_is_the_last_address_that_is_no_proxy),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
