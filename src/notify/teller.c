#include "notify/teller.h"

#include <errno.h>

#include "base/log.h"
#include "base/take.h"

enum {
	HEAD_BYTES_MAX = 16 << 10,
	BODY_BYTES_MAX = 64 << 10,
	CALL_MS = 5000,
	PAUSE_MS = 1000,       /* between two requests about the same target */
	AGAIN_MS = 60 * 1000,  /* although nothing is new */
	AFTER_FAULT_MS = 5000, /* the feed finds out that the server is away, too */
};

int teller_open(struct teller *teller, const struct server_place *place, struct senders *senders)
{
	const struct http_answer_limits limits = {
		.head_bytes_max = HEAD_BYTES_MAX, .body_bytes_max = BODY_BYTES_MAX};

	*teller = (struct teller){
		.place = place, .senders = senders, .client = http_client_new(&place->address, &limits)};
	return teller->client ? 0 : -ENOMEM;
}

void teller_close(struct teller *teller)
{
	http_client_free(teller->client);
}

void teller_meet(struct teller *teller)
{
	teller->refused = false;
	teller->due_ms = 0;
	for (uint32_t i = 0; i < teller->senders->count; i++)
		teller->senders->items[i].told_ms = 0;
}

/* When the server is to hear of that target. */
static int64_t due_ms(const struct sender *sender)
{
	if (sender->told_ms == 0)
		return 0;
	return sender->told_ms + (sender->told_version == sender->history.version ? AGAIN_MS : PAUSE_MS);
}

static void put_target(struct buf *out, const struct sender *sender)
{
	const struct cursor *cursor = &sender->cursor;
	struct json_object object;
	char origin[300];

	target_put_origin(sender->target, origin, sizeof origin);
	json_begin(&object, out);
	json_member_string(&object, "target", span_of(sender->target->name));
	json_member_string(&object, "url", span_of(origin));
	json_member_int(&object, "delivered", cursor->delivered);
	json_member_int(&object, "givenUp", cursor->given_up);
	json_member_int(&object, "missed", cursor->missed);
	json_member_int(&object, "waiting", sender->count);
	if (json_put_key(&object, "last"))
		history_put(out, &sender->history);
	json_end(&object);
}

static void begin(struct teller *teller, uint32_t at, int64_t now_ms)
{
	cleanup(buf_done) struct buf body = {0};
	struct sender *sender = &teller->senders->items[at];
	const char *token = teller->place->token;

	buf_init(&body, BODY_BYTES_MAX);
	put_target(&body, sender);
	struct http_call call = {
		.method = HTTP_METHOD_POST,
		.target = SPAN("/api/deliveries"),
		.body = buf_span(&body),
		.token = token[0] ? span_of(token) : (struct span){0},
		.accept = SPAN("application/json"),
		.may_repeat = true,
		.timeout_ms = CALL_MS,
	};
	sender->told_ms = now_ms;
	teller->at = at;
	teller->version = sender->history.version;
	teller->under_way = buf_fault(&body) == 0 && http_client_begin(teller->client, &call) == 0;
}

static void finish(struct teller *teller, int64_t now_ms)
{
	const struct http_transfer *transfer = http_client_transfer(teller->client);
	int status = transfer->fault < 0 ? 0 : http_answer_status(transfer->answer);
	struct sender *sender = &teller->senders->items[teller->at];

	teller->under_way = false;
	if (status == 200) {
		sender->told_version = teller->version;
		return;
	}
	sender->told_version = sender->history.version - 1;
	teller->due_ms = now_ms + AFTER_FAULT_MS;
	teller->refused = status >= 400 && status <= 499 && status != 429;
	if (teller->refused)
		log_info("the server does not keep the last deliveries; stint notify ls shows them",
			log_int("status", status));
}

void teller_step(struct teller *teller, bool is_here, int64_t now_ms, int64_t *next_ms)
{
	struct pollfd wanted;

	if (teller->under_way) {
		http_client_step(teller->client);
		if (!http_transfer_is_under_way(http_client_transfer(teller->client)))
			finish(teller, now_ms);
	}
	for (uint32_t i = 0; i < teller->senders->count; i++) {
		int64_t due = due_ms(&teller->senders->items[i]);
		due = due < teller->due_ms ? teller->due_ms : due;
		if (!is_here || teller->refused || teller->under_way)
			break;
		if (due <= now_ms)
			begin(teller, i, now_ms);
		else if (due < *next_ms)
			*next_ms = due;
	}
	int64_t until = teller->under_way ? http_client_wait(teller->client, &wanted) : INT64_MAX;
	if (until < *next_ms)
		*next_ms = until;
}

struct pollfd teller_poll(const struct teller *teller)
{
	struct pollfd wanted = {.fd = -1};

	if (teller->under_way)
		http_client_wait(teller->client, &wanted);
	return wanted;
}
