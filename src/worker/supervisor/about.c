/* The registration of a supervisor: who it is and what it can run. */
#include "worker/supervisor/parts.h"

#include "agent/settings.h"

#include <string.h>
#include <unistd.h>

#include "base/take.h"
#include "exec/tree/proc.h"

/* The accounts of agents, by executor: the server holds back tasks of an account that is used up. */
static void put_credentials(const struct settings *settings, struct json_object *object)
{
	struct json_object accounts;
	bool any = false;

	for (uint32_t i = 0; i < settings->executor_count; i++)
		any |= settings->executors[i].agent && settings->executors[i].agent->credential;
	if (!any || !json_put_key(object, "credentials"))
		return;
	json_begin(&accounts, object->buf);
	for (uint32_t i = 0; i < settings->executor_count; i++) {
		const struct executor *executor = &settings->executors[i];
		if (executor->agent && executor->agent->credential)
			json_member_string(&accounts, executor->name, span_of(executor->agent->credential));
	}
	json_end(&accounts);
}

/* Of which executor tasks may create subtasks that name which others. The worker that claims one compares again. */
static const char *const *subtasks_of(const struct executor *executor)
{
	return executor->subtasks;
}

/* Which others take the place of an executor while its account is held. */
static const char *const *fallback_of(const struct executor *executor)
{
	return executor->agent ? executor->agent->fallback : NULL;
}

static void put_lists(const struct settings *settings, struct json_object *object, const char *key,
	const char *const *(*list_of)(const struct executor *executor))
{
	struct json_object lists;
	bool any = false;

	for (uint32_t i = 0; i < settings->executor_count; i++) {
		const char *const *list = list_of(&settings->executors[i]);
		any |= list && list[0];
	}
	if (!any || !json_put_key(object, key))
		return;
	json_begin(&lists, object->buf);
	for (uint32_t i = 0; i < settings->executor_count; i++) {
		const struct executor *executor = &settings->executors[i];
		const char *const *list = list_of(executor);
		struct span names[EXECUTORS_MAX];
		uint32_t count = 0;
		while (list && list[count] && count < EXECUTORS_MAX) {
			names[count] = span_of(list[count]);
			count++;
		}
		if (count > 0 && json_put_key(&lists, executor->name))
			json_put_strings(object->buf, names, count);
	}
	json_note(object, json_end(&lists));
}

void supervisor_put_executors(struct supervisor *supervisor, struct json_object *object, bool offered)
{
	const struct settings *settings = supervisor->settings;
	struct span names[EXECUTORS_MAX];
	uint32_t count = 0;

	for (uint32_t i = 0; i < settings->executor_count; i++) {
		if (!offered || supervisor_offers(supervisor, &settings->executors[i]))
			names[count++] = span_of(settings->executors[i].name);
	}
	if (json_put_key(object, "executors"))
		json_put_strings(object->buf, names, count);
	put_credentials(settings, object);
	put_lists(settings, object, "subtasks", subtasks_of);
	put_lists(settings, object, "fallback", fallback_of);
}

void supervisor_put_capabilities(struct supervisor *supervisor, struct json_object *object)
{
	const struct supervisor_options *options = supervisor->options;
	struct span names[CAPABILITIES_MAX];

	for (uint32_t i = 0; i < options->capability_count; i++)
		names[i] = span_of(options->capabilities[i]);
	if (options->capability_count > 0 && json_put_key(object, "capabilities"))
		json_put_strings(object->buf, names, options->capability_count);
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
	if (before->worker_id[0] && strcmp(before->boot, boot) == 0 && before->pid > 0 && before->start > 0 &&
		settings_is_name(host) && json_put_key(&object, "replaces")) {
		struct json_object replaces;
		json_begin(&replaces, about);
		json_member_string(&replaces, "workerId", span_of(before->worker_id));
		json_member_int(&replaces, "pid", before->pid);
		json_member_int(&replaces, "startTime", before->start);
		json_end(&replaces);
	}
	return buf_fault(object.buf);
}
