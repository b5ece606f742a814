#include "notify/notifier.h"

#include <errno.h>
#include <fcntl.h>
#include <signal.h>
#include <stdio.h>
#include <string.h>
#include <sys/file.h>
#include <sys/signalfd.h>
#include <unistd.h>

#include "base/clock.h"
#include "base/log.h"
#include "base/service.h"
#include "base/take.h"
#include "notify/feed.h"
#include "notify/teller.h"

enum {
	EXIT_TEMPORARY = 75,
	EXIT_NO_PERMISSION = 77,
	WAIT_MS_MAX = 60 * 1000,
};

struct notifier {
	const struct targets *targets;
	CURLM *multi;
	struct feed feed;
	struct teller teller;
	struct senders senders;
	struct rng rng;
	int dir_fd, signals;
	bool stopping;
};

static int64_t now_ms(void)
{
	return clock_ms(CLOCK_MONOTONIC);
}

/* ---- the loop ------------------------------------------------------------------------------------------------------ */

static int step_all(struct notifier *notifier, int64_t *next_ms)
{
	int64_t now = now_ms(), wall = clock_wall_ms();

	if (senders_want_more(&notifier->senders))
		feed_rewind(&notifier->feed, now);
	/* The feed first: what it brings is sent in the same tick. */
	enum feed_step before = notifier->feed.step;
	int r = feed_step(&notifier->feed, now, next_ms);
	bool streams = notifier->feed.step == FEED_STREAM;
	if (streams && before != FEED_STREAM)
		teller_meet(&notifier->teller);
	for (uint32_t i = 0; r == 0 && i < notifier->senders.count; i++)
		r = sender_step(&notifier->senders.items[i], now, wall, next_ms);
	if (r == 0)
		teller_step(&notifier->teller, streams, now, next_ms);
	return r;
}

static int finish_all(struct notifier *notifier)
{
	CURLMsg *message;
	int left, r = 0;

	while (r == 0 && (message = curl_multi_info_read(notifier->multi, &left))) {
		CURL *easy = message->easy_handle;
		CURLcode code = message->data.result;
		struct sender *sender = NULL;
		curl_easy_getinfo(easy, CURLINFO_PRIVATE, &sender);
		r = sender_finish(sender, code, now_ms(), clock_wall_ms());
	}
	return r;
}

static int tick(struct notifier *notifier)
{
	struct curl_waitfd waits[3] = {{.fd = notifier->signals, .events = CURL_WAIT_POLLIN}};
	unsigned wait_count = 1;
	int64_t next_ms = now_ms() + WAIT_MS_MAX;
	struct signalfd_siginfo info;
	int running;

	int r = step_all(notifier, &next_ms);
	if (r < 0)
		return r;
	int64_t wait_ms = next_ms - now_ms();
	const struct pollfd polls[] = {feed_poll(&notifier->feed), teller_poll(&notifier->teller)};
	for (size_t i = 0; i < sizeof polls / sizeof *polls; i++) {
		if (polls[i].fd < 0)
			continue;
		waits[wait_count].fd = polls[i].fd;
		waits[wait_count++].events = (short)((polls[i].events & POLLIN ? CURL_WAIT_POLLIN : 0) |
			(polls[i].events & POLLOUT ? CURL_WAIT_POLLOUT : 0));
	}
	curl_multi_poll(notifier->multi, waits, wait_count, wait_ms > 0 ? (int)wait_ms : 0, NULL);
	if (curl_multi_perform(notifier->multi, &running) != CURLM_OK)
		return -ENOMEM;
	if (read(notifier->signals, &info, sizeof info) == sizeof info)
		notifier->stopping = true;
	return finish_all(notifier);
}

/* ---- life ---------------------------------------------------------------------------------------------------------- */

static int catch_signals(void)
{
	sigset_t wanted;

	sigemptyset(&wanted);
	sigaddset(&wanted, SIGTERM);
	sigaddset(&wanted, SIGINT);
	sigprocmask(SIG_BLOCK, &wanted, NULL);
	int fd = signalfd(-1, &wanted, SFD_CLOEXEC | SFD_NONBLOCK);
	return fd < 0 ? -errno : fd;
}

/* Two of us with one cursor would send everything twice. */
static int lock(int dir_fd)
{
	cleanup(close_at) int fd = openat(dir_fd, ".lock", O_RDWR | O_CREAT | O_NOFOLLOW | O_CLOEXEC, 0600);
	if (fd < 0)
		return -errno;
	return flock(fd, LOCK_EX | LOCK_NB) < 0 ? -errno : take_fd(fd);
}

static int open_senders(struct notifier *notifier)
{
	const struct targets *targets = notifier->targets;
	int r = 0;

	for (uint32_t i = 0; r == 0 && i < targets->count; i++) {
		const char *name = targets->items[i].name;
		r = sender_open(&notifier->senders.items[i], &targets->items[i], targets, notifier->multi,
			&notifier->rng, notifier->dir_fd);
		notifier->senders.count++;
		if (r < 0)
			log_error(
				"the cursor of a target cannot be read; without the file it begins anew, with what happens then",
				log_cstr("target", name), log_cstr("error", strerror(-r)));
	}
	return r;
}

static int serve(struct notifier *notifier)
{
	int r = 0;

	log_info("watching", log_int("targets", notifier->senders.count));
	service_tell("READY=1");
	while (r == 0 && !notifier->stopping)
		r = tick(notifier);
	service_tell("STOPPING=1");
	for (uint32_t i = 0; i < notifier->senders.count; i++) {
		int kept = sender_keep(&notifier->senders.items[i]);
		r = r < 0 ? r : kept;
	}
	log_info("stopped");
	return r;
}

static int status_for(int fault)
{
	if (fault < 0 && fault != -EACCES)
		log_error("cannot go on", log_cstr("error", strerror(-fault)));
	return fault == 0 ? 0 : fault == -EACCES ? EXIT_NO_PERMISSION : EXIT_TEMPORARY;
}

static int run_in(struct notifier *notifier, const struct server_place *place)
{
	notifier->signals = catch_signals();
	notifier->multi = curl_multi_init();
	int r = notifier->signals < 0 ? notifier->signals : notifier->multi ? 0 : -ENOMEM;
	if (r < 0)
		return r;
	r = feed_open(&notifier->feed, place, &notifier->senders);
	if (r == 0)
		r = teller_open(&notifier->teller, place, &notifier->senders);
	if (r == 0)
		r = open_senders(notifier);
	if (r == 0)
		r = serve(notifier);
	for (uint32_t i = 0; i < notifier->senders.count; i++)
		sender_close(&notifier->senders.items[i]);
	feed_close(&notifier->feed);
	teller_close(&notifier->teller);
	curl_multi_cleanup(notifier->multi);
	close(notifier->signals);
	return r;
}

int notifier_run(const struct targets *targets, const struct server_place *place, const char *home)
{
	static struct notifier notifier;

	notifier = (struct notifier){.targets = targets, .dir_fd = -1, .signals = -1};
	rng_seed(&notifier.rng, (uint64_t)clock_wall_ms() ^ (uint64_t)getpid() << 32);
	cleanup(close_at) int dir_fd = cursor_dir_open(home);
	if (dir_fd < 0) {
		log_error("there is no place for cursors", log_cstr("home", home),
			log_cstr("error", strerror(-dir_fd)));
		return EXIT_TEMPORARY;
	}
	cleanup(close_at) int lock_fd = lock(dir_fd);
	if (lock_fd < 0) {
		log_error(lock_fd == -EWOULDBLOCK ? "another stint-notify works in this home"
						  : "the home cannot be locked",
			log_cstr("home", home), log_cstr("error", strerror(-lock_fd)));
		return EXIT_TEMPORARY;
	}
	notifier.dir_fd = dir_fd;
	return status_for(run_in(&notifier, place));
}

/* An event as the server would tell it, in the form that the target has. */
static int put_test(
	struct buf *body, const struct targets *targets, const struct target *target, const char *id)
{
	struct json_complaint complaint;
	char event[200];

	snprintf(event, sizeof event,
		"{\"seq\":0,\"time\":%lld,\"type\":\"test\",\"data\":{\"message\":\"This is a test of stint-notify.\"}}",
		(long long)clock_wall_ms());
	yyjson_doc *doc = json_read(span_of(event), &complaint);
	int r = doc ? message_put(body, target, targets->source, id, yyjson_doc_get_root(doc)) : -ENOMEM;
	yyjson_doc_free(doc);
	return r;
}

struct delivery_outcome notifier_test(const struct targets *targets, const struct target *target)
{
	struct delivery_outcome outcome = {.error = "there is no memory for it"};
	cleanup(buf_done) struct buf body = {0};
	char id[MESSAGE_ID_BYTES];
	struct delivery delivery = {0};
	int64_t wall_ms = clock_wall_ms();

	snprintf(id, sizeof id, "%s-test-%lld", targets->source, (long long)wall_ms);
	int r = put_test(&body, targets, target, id);
	if (r == 0)
		r = delivery_init(&delivery, target, NULL);
	if (r == 0)
		r = delivery_prepare(&delivery, id, wall_ms / 1000, buf_span(&body));
	if (r == 0)
		outcome = delivery_judge(&delivery, curl_easy_perform(delivery.easy));
	delivery_done(&delivery);
	return outcome;
}
