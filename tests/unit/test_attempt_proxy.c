#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

#include <arpa/inet.h>
#include <errno.h>
#include <string.h>

#include "attempt/relay/proxy.h"
#include "base/take.h"

static void expect_wish(const char *request, const char *host, int port, bool tunnel)
{
	struct proxy_wish wish;

	assert_int_equal(proxy_read(span_of(request), &wish), 0);
	assert_string_equal(wish.host, host);
	assert_int_equal(wish.port, port);
	assert_int_equal(wish.tunnel, tunnel);
	assert_int_equal(wish.head_len, strlen(request));
}

static void a_tunnel_names_host_and_port(void **state)
{
	(void)state;
	expect_wish("CONNECT PyPI.org:443 HTTP/1.1\r\nHost: x\r\n\r\n", "pypi.org", 443, true);
	expect_wish("CONNECT pypi.org.:443 HTTP/1.0\r\n\r\n", "pypi.org", 443, true);
	expect_wish("CONNECT [2001:DB8::1]:8443 HTTP/1.1\r\n\r\n", "2001:db8::1", 8443, true);
}

static void a_plain_request_names_them_in_its_url(void **state)
{
	(void)state;
	expect_wish("GET http://deb.debian.org/x?y HTTP/1.1\r\n\r\n", "deb.debian.org", 80, false);
	expect_wish("GET HTTP://a.b:8080 HTTP/1.1\r\n\r\n", "a.b", 8080, false);
	expect_wish("GET http://10.0.0.1?q=http://c/ HTTP/1.1\r\n\r\n", "10.0.0.1", 80, false);
}

static void a_head_that_goes_on_is_waited_for(void **state)
{
	struct proxy_wish wish;

	(void)state;
	assert_int_equal(proxy_read(SPAN(""), &wish), -EAGAIN);
	assert_int_equal(proxy_read(SPAN("CONNECT a.b:1 HTTP/1.1\r\nHost: a\r\n"), &wish), -EAGAIN);
}

static void what_is_no_request_for_a_proxy_is_refused(void **state)
{
	static const char *const wrong[] = {"GET / HTTP/1.1\r\n\r\n", "GET https://a.b/ HTTP/1.1\r\n\r\n",
		"CONNECT a.b HTTP/1.1\r\n\r\n", "CONNECT a.b:0 HTTP/1.1\r\n\r\n",
		"CONNECT a.b:65536 HTTP/1.1\r\n\r\n", "CONNECT a.b:99999999999999999999 HTTP/1.1\r\n\r\n",
		"CONNECT :443 HTTP/1.1\r\n\r\n", "CONNECT a.b:4x HTTP/1.1\r\n\r\n",
		"CONNECT [::1:443 HTTP/1.1\r\n\r\n", "CONNECT [::1]x443 HTTP/1.1\r\n\r\n",
		"CONNECT a b:443 HTTP/1.1\r\n\r\n", "CONNECT user@a.b:443 HTTP/1.1\r\n\r\n",
		"GET http://user@a.b/ HTTP/1.1\r\n\r\n", "GET http:/// HTTP/1.1\r\n\r\n",
		"CONNECT a.b:443 HTTP/2\r\n\r\n", "nonsense\r\n\r\n", "\r\n\r\n",
		"CONNECT a%2eb:443 HTTP/1.1\r\n\r\n", "CONNECT .:443 HTTP/1.1\r\n\r\n"};
	struct proxy_wish wish;

	(void)state;
	for (size_t i = 0; i < sizeof wrong / sizeof *wrong; i++)
		assert_int_equal(proxy_read(span_of(wrong[i]), &wish), -EPROTO);
	char long_host[400];
	memset(long_host, 'x', sizeof long_host);
	memcpy(long_host, "CONNECT ", 8);
	strcpy(long_host + 300, ":1 HTTP/1.1\r\n\r\n");
	assert_int_equal(proxy_read(span_of(long_host), &wish), -EPROTO);
}

static void expect_head(const char *request, const char *expected)
{
	cleanup(buf_done) struct buf out;
	struct proxy_wish wish;

	buf_init(&out, 4096);
	assert_int_equal(proxy_read(span_of(request), &wish), 0);
	assert_int_equal(proxy_put_head((struct span){request, wish.head_len}, &wish, &out), 0);
	assert_int_equal(buf_put_byte(&out, 0), 0);
	assert_string_equal(out.data, expected);
}

static void a_host_gets_its_path_and_nothing_that_was_said_to_the_proxy(void **state)
{
	(void)state;
	expect_head(
		"GET http://A.b/x?y=1 HTTP/1.1\r\nHost: other\r\nProxy-Authorization: secret\r\nConnection: keep-alive\r\n"
		"Accept: */*\r\n\r\n",
		"GET /x?y=1 HTTP/1.1\r\nHost: a.b:80\r\nConnection: close\r\nAccept: */*\r\n\r\n");
	expect_head("POST http://[2001:db8::1]:81?q HTTP/1.0\r\n\r\n",
		"POST /?q HTTP/1.1\r\nHost: [2001:db8::1]:81\r\nConnection: close\r\n\r\n");
}

static const char *const hosts[] = {"pypi.org", "*.PythonHosted.org", "10.1.2.3", "fd00::1", NULL};

static void a_list_has_names_endings_and_addresses(void **state)
{
	static const char *const in[] = {
		"pypi.org", "files.pythonhosted.org", "a.b.pythonhosted.org", "10.1.2.3", "fd00:0::1"};
	static const char *const out[] = {"pythonhosted.org", "xpypi.org", "pypi.org.evil.com",
		"evilpythonhosted.org", "www.pypi.org", "10.1.2.4", "fd00::2", "1.2.3", "localhost"};

	(void)state;
	for (size_t i = 0; i < sizeof in / sizeof *in; i++)
		assert_true(proxy_lists(hosts, in[i]));
	for (size_t i = 0; i < sizeof out / sizeof *out; i++)
		assert_false(proxy_lists(hosts, out[i]));
}

static bool lists_address(const char *text)
{
	struct sockaddr_in four = {.sin_family = AF_INET};
	struct sockaddr_in6 six = {.sin6_family = AF_INET6};

	if (inet_pton(AF_INET, text, &four.sin_addr) == 1)
		return proxy_lists_address(hosts, (struct sockaddr *)&four);
	assert_int_equal(inet_pton(AF_INET6, text, &six.sin6_addr), 1);
	return proxy_lists_address(hosts, (struct sockaddr *)&six);
}

static void a_name_leads_to_public_addresses_and_to_those_of_the_list(void **state)
{
	static const char *const closed[] = {"127.0.0.1", "10.1.2.4", "192.168.1.1", "169.254.169.254", "::1",
		"fe80::1", "fd00::2", "::ffff:127.0.0.1", "::ffff:10.1.2.3", "64:ff9b::7f00:1"};

	(void)state;
	assert_true(lists_address("1.1.1.1"));
	assert_true(lists_address("2606:4700::1111"));
	assert_true(lists_address("10.1.2.3"));
	assert_true(lists_address("fd00::1"));
	for (size_t i = 0; i < sizeof closed / sizeof *closed; i++)
		assert_false(lists_address(closed[i]));
}

static void an_entry_is_a_name_an_ending_or_an_address(void **state)
{
	static const char *const good[] = {"a", "a.b-c_d.org", "*.a.b", "10.0.0.1", "::1"};
	static const char *const bad[] = {"", "*", "*.", "*a.b", "a.*.b", ".a", "a.", "a..b", "a:443",
		"http://a", "a/b", "10.0.0.0/8", "*.*.a", "a b"};

	(void)state;
	for (size_t i = 0; i < sizeof good / sizeof *good; i++)
		assert_true(proxy_is_host(good[i]));
	for (size_t i = 0; i < sizeof bad / sizeof *bad; i++)
		assert_false(proxy_is_host(bad[i]));
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(a_tunnel_names_host_and_port),
		cmocka_unit_test(a_plain_request_names_them_in_its_url),
		cmocka_unit_test(a_head_that_goes_on_is_waited_for),
		cmocka_unit_test(what_is_no_request_for_a_proxy_is_refused),
		cmocka_unit_test(a_host_gets_its_path_and_nothing_that_was_said_to_the_proxy),
		cmocka_unit_test(a_list_has_names_endings_and_addresses),
		cmocka_unit_test(a_name_leads_to_public_addresses_and_to_those_of_the_list),
		cmocka_unit_test(an_entry_is_a_name_an_ending_or_an_address),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
