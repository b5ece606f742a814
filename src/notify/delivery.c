#include "notify/delivery.h"

#include <errno.h>
#include <stdio.h>
#include <string.h>
#include <unistd.h>

#include "notify/message.h"

enum {
	CONNECT_MS = 5000,
	TOTAL_MS = 10000,
	REPLY_BYTES_MAX = 64 << 10,
	SIGNATURE_BYTES_MAX = 1024,
	HEADER_BYTES = 1200,
};

static bool may_reach(const struct target *target, const struct sockaddr *address)
{
	for (uint32_t i = 0; i < target->allow_count; i++) {
		if (network_has(&target->allow[i], address))
			return true;
	}
	return !target->plain && address_is_public(address);
}

/* curl asks for a socket to the address that it is about to connect to: whatever name led there, this one counts. */
static curl_socket_t open_socket(void *context, curlsocktype purpose, struct curl_sockaddr *address)
{
	struct delivery *delivery = context;

	(void)purpose;
	if (!may_reach(delivery->target, &address->addr)) {
		address_put(&address->addr, delivery->refused);
		return CURL_SOCKET_BAD;
	}
	return socket(address->family, address->socktype | SOCK_CLOEXEC, address->protocol);
}

/* Counted and dropped; too much of it ends the transfer. */
static size_t take_reply(char *data, size_t size, size_t count, void *context)
{
	struct delivery *delivery = context;

	(void)data;
	delivery->reply_bytes += size * count;
	return delivery->reply_bytes > REPLY_BYTES_MAX ? 0 : size * count;
}

int delivery_init(struct delivery *delivery, const struct target *target, void *context)
{
	*delivery = (struct delivery){.target = target, .easy = curl_easy_init()};
	buf_init(&delivery->signature, SIGNATURE_BYTES_MAX);
	if (!delivery->easy)
		return -ENOMEM;
	CURL *easy = delivery->easy;
	/* a proxy would connect for us, wherever it likes */
	if (curl_easy_setopt(easy, CURLOPT_URL, target->url) != CURLE_OK ||
		curl_easy_setopt(easy, CURLOPT_PROTOCOLS_STR, target->plain ? "http" : "https") != CURLE_OK ||
		curl_easy_setopt(easy, CURLOPT_PROXY, "") != CURLE_OK ||
		curl_easy_setopt(easy, CURLOPT_USERAGENT, "stint-notify/" STINT_VERSION) != CURLE_OK ||
		(target->ca_file && curl_easy_setopt(easy, CURLOPT_CAINFO, target->ca_file) != CURLE_OK))
		return -ENOMEM;
	curl_easy_setopt(easy, CURLOPT_PRIVATE, context);
	curl_easy_setopt(easy, CURLOPT_NOSIGNAL, 1L);
	curl_easy_setopt(easy, CURLOPT_POST, 1L);
	curl_easy_setopt(easy, CURLOPT_FOLLOWLOCATION, 0L);
	/* a connection that another target may have is not one that was checked for this */
	curl_easy_setopt(easy, CURLOPT_FRESH_CONNECT, 1L);
	curl_easy_setopt(easy, CURLOPT_FORBID_REUSE, 1L);
	curl_easy_setopt(easy, CURLOPT_CONNECTTIMEOUT_MS, (long)CONNECT_MS);
	curl_easy_setopt(easy, CURLOPT_TIMEOUT_MS, (long)TOTAL_MS);
	curl_easy_setopt(easy, CURLOPT_OPENSOCKETFUNCTION, open_socket);
	curl_easy_setopt(easy, CURLOPT_OPENSOCKETDATA, delivery);
	curl_easy_setopt(easy, CURLOPT_WRITEFUNCTION, take_reply);
	curl_easy_setopt(easy, CURLOPT_WRITEDATA, delivery);
	curl_easy_setopt(easy, CURLOPT_ERRORBUFFER, delivery->fault);
	return 0;
}

void delivery_done(struct delivery *delivery)
{
	curl_easy_cleanup(delivery->easy);
	curl_slist_free_all(delivery->headers);
	buf_done(&delivery->signature);
}

static int add_header(struct delivery *delivery, const char *name, const char *value)
{
	char line[HEADER_BYTES];

	if ((size_t)snprintf(line, sizeof line, "%s: %s", name, value) >= sizeof line)
		return -E2BIG;
	struct curl_slist *longer = curl_slist_append(delivery->headers, line);
	if (!longer)
		return -ENOMEM;
	delivery->headers = longer;
	return 0;
}

int delivery_prepare(struct delivery *delivery, const char *id, int64_t now_s, struct span body)
{
	const struct target *target = delivery->target;
	char when[24];

	curl_slist_free_all(delivery->headers);
	delivery->headers = NULL;
	delivery->reply_bytes = 0;
	delivery->refused[0] = delivery->fault[0] = 0;
	snprintf(when, sizeof when, "%lld", (long long)now_s);
	buf_clear(&delivery->signature);
	signature_put(&delivery->signature, target->secrets, target->secret_count, id, now_s, body);
	int r = buf_put_byte(&delivery->signature, 0);
	const char *const headers[][2] = {{"Content-Type", message_type(target)}, {"webhook-id", id},
		{"webhook-timestamp", when}, {"Expect", ""},
		{"webhook-signature", target->secret_count > 0 ? delivery->signature.data : NULL}};
	for (size_t i = 0; r == 0 && i < sizeof headers / sizeof *headers; i++) {
		if (headers[i][1])
			r = add_header(delivery, headers[i][0], headers[i][1]);
	}
	if (r < 0)
		return r;
	curl_easy_setopt(delivery->easy, CURLOPT_HTTPHEADER, delivery->headers);
	curl_easy_setopt(delivery->easy, CURLOPT_POSTFIELDS, body.data);
	curl_easy_setopt(delivery->easy, CURLOPT_POSTFIELDSIZE, (long)body.len);
	return 0;
}

struct delivery_outcome delivery_judge(struct delivery *delivery, CURLcode code)
{
	struct delivery_outcome outcome = {0};
	bool too_long = delivery->reply_bytes > REPLY_BYTES_MAX;

	curl_easy_getinfo(delivery->easy, CURLINFO_RESPONSE_CODE, &outcome.status);
	/* a receiver that says yes at great length has said yes */
	outcome.delivered = (code == CURLE_OK || too_long) && outcome.status >= 200 && outcome.status <= 299;
	if (outcome.delivered)
		return outcome;
	if (delivery->refused[0])
		snprintf(outcome.error, sizeof outcome.error,
			"%s may not be reached: %s, and notify.targets.%s.allow does not have it",
			delivery->refused,
			delivery->target->plain ? "this is http" : "it is no public address",
			delivery->target->name);
	else if (code == CURLE_OK || too_long)
		snprintf(outcome.error, sizeof outcome.error, "the answer was %ld%s", outcome.status,
			outcome.status >= 300 && outcome.status <= 399 ? "; redirects are not followed" : "");
	else
		snprintf(outcome.error, sizeof outcome.error, "%s",
			delivery->fault[0] ? delivery->fault : curl_easy_strerror(code));
	return outcome;
}
