/*
 * Members and the server: before a start the server is asked whether the slot may run, one question at a time. A crash is a
 * report in the outbox.
 */
#include "pool/member.h"

#include <assert.h>
#include <errno.h>
#include <stdio.h>
#include <string.h>

#include "base/log.h"
#include "base/take.h"
#include "wire/http/http.h"
#include "wire/json/json.h"

static int put_target(struct buf *target, const struct pool_member *member, const char *verb)
{
	buf_init(target, 4096);
	http_put_path(target, "/api/slots/", span_of(member->slot), "/");
	buf_put_span(target, span_of(verb));
	return buf_fault(target);
}

static void tell_standing(struct pool_member *member, enum pool_entry entry)
{
	bool quarantined = entry == POOL_ENTRY_QUARANTINED;

	if (entry == POOL_ENTRY_UNKNOWN || quarantined == member->quarantine_told)
		return;
	member->quarantine_told = quarantined;
	if (quarantined)
		log_error("a worker of a pool crashed too often; its slot is in quarantine",
			log_cstr("slot", member->slot));
	else
		log_info("a slot is out of quarantine", log_cstr("slot", member->slot));
}

static void on_entered(void *context, int status)
{
	struct pools *pools = context;
	assert(pools->asking); /* one question at a time */
	struct pool_member *member = take(pools->asking);
	enum pool_entry entry = status >= 200 && status < 300 ? POOL_ENTRY_FREE
		: status == 409                               ? POOL_ENTRY_QUARANTINED
							      : POOL_ENTRY_UNKNOWN;

	tell_standing(member, entry);
	pool_member_perform(member, pool_child_entered(&member->worker, entry, pool_clock_ms()), NULL);
	pool_jobs_place(pools, member->executor);
	pool_entry_ask(pools);
}

static int ask(struct pools *pools, struct pool_member *member)
{
	const struct pools_site *site = &pools->site;
	cleanup(buf_done) struct buf body = {0}, target = {0};
	struct json_object object;

	buf_init(&body, 4096);
	json_begin(&object, &body);
	json_member_string(&object, "workerId", span_of(site->worker_id));
	int r = json_end(&object);
	if (r == 0)
		r = put_target(&target, member, "enter");
	return r < 0 ? r
		     : site->owner->ask(site->context, buf_span(&target), buf_span(&body), on_entered, pools);
}

void pool_entry_ask(struct pools *pools)
{
	for (uint32_t i = 0; !pools->asking && i < pools->member_count; i++) {
		struct pool_member *member = &pools->members[i];
		if (!member->asks || member->worker.state != POOL_ENTERING)
			continue;
		member->asks = false;
		pools->asking = member;
		if (ask(pools, member) < 0) {
			pools->asking = NULL;
			pool_member_perform(member,
				pool_child_entered(&member->worker, POOL_ENTRY_UNKNOWN, pool_clock_ms()),
				NULL);
		}
	}
}

void pool_entry_tell_crash(struct pool_member *member)
{
	const struct pools_site *site = &member->pools->site;
	cleanup(buf_done) struct buf target = {0};

	assert(!member->process); /* nothing of it runs when its crash is reported */
	assert(!member->job);
	snprintf(member->crash_report, sizeof member->crash_report, "%s-crash", member->run);
	int r = put_target(&target, member, "crash");
	if (r == 0)
		r = site->owner->post(site->context, member->crash_report, buf_span(&target), SPAN("{}"));
	if (r < 0) { /* nobody will answer */
		member->crash_report[0] = 0;
		pool_member_perform(
			member, pool_child_told(&member->worker, POOL_ENTRY_FREE, pool_clock_ms()), NULL);
	}
}

bool pools_settled(struct pools *pools, const char *name, int status, struct span body)
{
	for (uint32_t i = 0; i < pools->member_count; i++) {
		struct pool_member *member = &pools->members[i];
		struct json_complaint complaint;
		if (strcmp(member->crash_report, name) != 0)
			continue;
		member->crash_report[0] = 0;
		cleanup(yyjson_doc_free_at) yyjson_doc *doc = json_read(body, &complaint);
		yyjson_val *state = yyjson_obj_get(yyjson_doc_get_root(doc), "state");
		bool quarantined = status < 300 && yyjson_equals_str(state, "quarantined");
		enum pool_entry entry = quarantined ? POOL_ENTRY_QUARANTINED : POOL_ENTRY_FREE;
		tell_standing(member, entry);
		pool_member_perform(member, pool_child_told(&member->worker, entry, pool_clock_ms()), NULL);
		pool_jobs_place(pools, member->executor);
		return true;
	}
	return false;
}
