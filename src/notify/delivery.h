/*
 * One message to one target over HTTP: signed, to an address that was checked, no redirects, no proxy, 5 s to connect, 10 s
 * for all of it, 64 KiB of an answer that nobody reads.
 */
#pragma once

#include <curl/curl.h>

#include "notify/targets.h"

enum {
	DELIVERY_ERROR_BYTES = 256,
};

struct delivery {
	const struct target *target;
	CURL *easy;
	struct curl_slist *headers;
	struct buf signature;
	size_t reply_bytes;
	char refused[NETWORK_TEXT_BYTES]; /* the address that was refused; "": none */
	char fault[CURL_ERROR_SIZE];
};

/* How it went. */
struct delivery_outcome {
	bool delivered;
	long status;                      /* 0: there was no answer */
	char error[DELIVERY_ERROR_BYTES]; /* empty if it was delivered */
};

/* `context` is what CURLINFO_PRIVATE gives. -ENOMEM. */
int delivery_init(struct delivery *delivery, const struct target *target, void *context);
void delivery_done(struct delivery *delivery);

/* Ready `easy` for curl to perform. The body must live until that is over. -ENOMEM, -E2BIG. */
int delivery_prepare(struct delivery *delivery, const char *id, int64_t now_s, struct span body);
struct delivery_outcome delivery_judge(struct delivery *delivery, CURLcode code);
