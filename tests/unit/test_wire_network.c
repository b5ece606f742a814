/* Which addresses are of the world, and which a network has. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

#include <arpa/inet.h>
#include <netinet/in.h>
#include <string.h>

#include "wire/network.h"

static struct sockaddr_storage address(const char *text)
{
	struct sockaddr_storage found = {0};
	struct sockaddr_in *four = (struct sockaddr_in *)&found;
	struct sockaddr_in6 *six = (struct sockaddr_in6 *)&found;

	if (inet_pton(AF_INET, text, &four->sin_addr) == 1)
		four->sin_family = AF_INET;
	else if (inet_pton(AF_INET6, text, &six->sin6_addr) == 1)
		six->sin6_family = AF_INET6;
	else
		fail_msg("%s", text);
	return found;
}

static void expect_public(const char *text, bool expected)
{
	struct sockaddr_storage found = address(text);

	if (address_is_public((struct sockaddr *)&found) != expected)
		fail_msg("%s should %sbe public", text, expected ? "" : "not ");
}

static void what_is_not_of_the_world_is_refused(void **state)
{
	static const char *const closed[] = {"0.0.0.0", "0.1.2.3", "10.0.0.1", "10.255.255.255", "100.64.0.1",
		"100.100.100.200", "100.127.255.255", "127.0.0.1", "127.255.255.254", "168.63.129.16",
		"169.254.0.1", "169.254.169.254", "172.16.0.1", "172.31.255.255", "192.0.0.192", "192.0.2.1",
		"192.88.99.1", "192.168.0.1", "192.168.255.255", "198.18.0.1", "198.19.255.255",
		"198.51.100.7", "203.0.113.9", "224.0.0.1", "239.255.255.255", "240.0.0.1", "255.255.255.255",
		"::", "::1", "::127.0.0.1", "::ffff:8.8.8.8", "::ffff:127.0.0.1", "64:ff9b::7f00:1",
		"64:ff9b:1::1", "100::1", "2001::1", "2001:0:4136:e378::1", "2001:db8::1", "2002:7f00:1::1",
		"3fff::1", "4000::1", "fc00::1", "fd00:ec2::254", "fe80::1", "fec0::1", "ff02::1"};

	(void)state;
	for (size_t i = 0; i < sizeof closed / sizeof *closed; i++)
		expect_public(closed[i], false);
}

static void what_lies_beside_it_is_not(void **state)
{
	static const char *const open[] = {"1.1.1.1", "8.8.8.8", "9.255.255.255", "11.0.0.0",
		"100.63.255.255", "100.128.0.0", "126.255.255.255", "128.0.0.0", "168.63.129.15",
		"168.63.129.17", "169.253.255.255", "169.255.0.0", "172.15.255.255", "172.32.0.0",
		"192.0.1.0", "192.167.255.255", "192.169.0.0", "198.17.255.255", "198.20.0.0",
		"223.255.255.255", "2001:200::1", "2001:4860:4860::8888", "2003::1", "2606:4700:4700::1111",
		"2a00:1450::1"};

	(void)state;
	for (size_t i = 0; i < sizeof open / sizeof *open; i++)
		expect_public(open[i], true);
}

static void an_address_of_another_kind_is_refused(void **state)
{
	struct sockaddr_storage local = {.ss_family = AF_UNIX};
	char text[NETWORK_TEXT_BYTES];

	(void)state;
	assert_false(address_is_public((struct sockaddr *)&local));
	address_put((struct sockaddr *)&local, text);
	assert_string_equal(text, "an address of another kind");
}

static void a_network_has_what_its_bits_say(void **state)
{
	static const struct {
		const char *network, *address;
		bool has;
	} rows[] = {
		{"10.0.0.0/8", "10.200.3.4", true},
		{"10.0.0.0/8", "11.0.0.0", false},
		{"192.168.4.0/22", "192.168.7.255", true},
		{"192.168.4.0/22", "192.168.8.0", false},
		{"127.0.0.1", "127.0.0.1", true},
		{"127.0.0.1", "127.0.0.2", false},
		{"0.0.0.0/0", "8.8.8.8", true},
		{"0.0.0.0/0", "::1", false},
		{"::1", "::1", true},
		{"::1", "127.0.0.1", false},
		{"fd00::/7", "fdff::1", true},
	};
	struct network network;

	(void)state;
	for (size_t i = 0; i < sizeof rows / sizeof *rows; i++) {
		struct sockaddr_storage found = address(rows[i].address);
		assert_true(network_parse(rows[i].network, &network));
		assert_int_equal(network_has(&network, (struct sockaddr *)&found), rows[i].has);
	}
}

static void what_is_no_network_is_refused(void **state)
{
	static const char *const wrong[] = {"", "/8", "10.0.0.0/", "10.0.0.0/33", "10.0.0.0/-1",
		"10.0.0.0/8x", "10.0.0", "::1/129", "localhost", "1.2.3.4.5", "[::1]",
		"0000:0000:0000:0000:0000:0000:0000:0000:0000:0000:0000:0000:0000:0000"};
	struct network network;

	(void)state;
	for (size_t i = 0; i < sizeof wrong / sizeof *wrong; i++)
		assert_false(network_parse(wrong[i], &network));
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(what_is_not_of_the_world_is_refused),
		cmocka_unit_test(what_lies_beside_it_is_not),
		cmocka_unit_test(an_address_of_another_kind_is_refused),
		cmocka_unit_test(a_network_has_what_its_bits_say),
		cmocka_unit_test(what_is_no_network_is_refused),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
