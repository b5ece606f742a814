/* Who a supervisor is and what it has, as the server is told. */
#include "worker/supervisor/parts.h"

#include <string.h>
#include <unistd.h>

#include "base/take.h"
#include "exec/tree/proc.h"

/* "key":["a","b"] */
void supervisor_put_name(struct json_object *object, struct buf *list, const char *name)
{
	buf_put_byte(list, list->len > 0 ? ',' : '[');
	json_put_string(list, span_of(name));
	json_note(object, buf_fault(list));
}

void supervisor_put_list(struct json_object *object, const char *key, struct buf *list)
{
	int r = list->len > 0 ? buf_put_byte(list, ']') : buf_put_span(list, SPAN("[]"));

	if (r == 0)
		json_member_raw(object, key, buf_span(list));
	else
		json_note(object, r);
}

/* All that it has, or those with room. */
void supervisor_put_executors(struct supervisor *supervisor, struct json_object *object, bool offered)
{
	cleanup(buf_done) struct buf list = {0};

	buf_init(&list, SUPERVISOR_BODY_BYTES_MAX);
	for (uint32_t i = 0; i < supervisor->settings->executor_count; i++) {
		if (!offered || supervisor_offers(supervisor, &supervisor->settings->executors[i]))
			supervisor_put_name(object, &list, supervisor->settings->executors[i].name);
	}
	supervisor_put_list(object, "executors", &list);
}

void supervisor_put_capabilities(struct supervisor *supervisor, struct json_object *object)
{
	cleanup(buf_done) struct buf list = {0};

	if (supervisor->options->capability_count == 0)
		return;
	buf_init(&list, SUPERVISOR_BODY_BYTES_MAX);
	for (uint32_t i = 0; i < supervisor->options->capability_count; i++)
		supervisor_put_name(object, &list, supervisor->options->capabilities[i]);
	supervisor_put_list(object, "capabilities", &list);
}

static uint32_t pool_workers(const struct settings *settings)
{
	uint32_t count = 0;

	for (uint32_t i = 0; i < settings->executor_count; i++)
		count += (uint32_t)settings->executors[i].size;
	return count;
}

static void put_metadata(struct supervisor *supervisor, struct json_object *about)
{
	cleanup(buf_done) struct buf text = {0};
	struct json_object object;

	buf_init(&text, SUPERVISOR_BODY_BYTES_MAX);
	json_begin(&object, &text);
	json_member_string(&object, "version", SPAN(STINT_VERSION));
	if (pool_workers(supervisor->settings) > 0 && json_put_key(&object, "pools"))
		json_note(&object, pools_put(&text, supervisor->pools));
	if (json_end(&object) == 0)
		json_member_raw(about, "metadata", buf_span(&text));
}

/* Who we are; and, in a slot, whom we replace. */
int supervisor_put_about(struct supervisor *supervisor, struct buf *about)
{
	const struct supervisor_options *options = supervisor->options;
	const struct predecessor *before = &supervisor->state_dir.before;
	struct json_object object = {.buf = about};
	char boot[IDENTITY_BOOT_BYTES] = "", host[65] = "";
	struct proc_stat self = {0};

	boot_id_read(boot, sizeof boot);
	proc_stat_read(getpid(), &self);
	gethostname(host, sizeof host - 1);
	if (options->slot)
		json_member_string(&object, "slot", span_of(options->slot));
	supervisor_put_capabilities(supervisor, &object);
	supervisor_put_executors(supervisor, &object, false);
	json_member_int(&object, "maxConcurrent", options->concurrency + pool_workers(supervisor->settings));
	if (settings_is_name(host))
		json_member_string(&object, "host", span_of(host));
	if (boot[0])
		json_member_string(&object, "bootId", span_of(boot));
	json_member_int(&object, "pid", getpid());
	json_member_int(&object, "startTime", (int64_t)self.start);
	put_metadata(supervisor, &object);
	if (options->slot && before->worker_id[0] && strcmp(before->boot, boot) == 0 && before->pid > 0 &&
		before->start > 0 && settings_is_name(host)) {
		cleanup(buf_done) struct buf dead = {0};
		struct json_object replaces;
		buf_init(&dead, 1024);
		json_begin(&replaces, &dead);
		json_member_string(&replaces, "workerId", span_of(before->worker_id));
		json_member_int(&replaces, "pid", before->pid);
		json_member_int(&replaces, "startTime", before->start);
		if (json_end(&replaces) == 0)
			json_member_raw(&object, "replaces", buf_span(&dead));
	}
	return buf_fault(object.buf);
}
