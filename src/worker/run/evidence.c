/* The evidence of an attempt of an agent: what it has changed, where that is, and what judged it. */
#include "worker/run/parts.h"

#include <string.h>

#include "agent/session/changes.h"
#include "base/take.h"
#include "base/utf8.h"

enum { LIST_BYTES_MAX = 128 << 10, WHY_BYTES_MAX = 2000 };

static void put_list(struct json_object *evidence, const char *key, const struct buf *elements)
{
	if (elements->len == 0 || !json_put_key(evidence, key))
		return;
	buf_put_byte(evidence->buf, '[');
	buf_put_span(evidence->buf, buf_span(elements));
	buf_put_byte(evidence->buf, ']');
}

static void put_delivery(struct json_object *evidence, const struct run_agent *agent)
{
	if (agent->link && json_put_key(evidence, "links"))
		json_put_strings(evidence->buf, &(struct span){agent->link, strlen(agent->link)}, 1);
	if (agent->undelivered)
		json_member_string(
			evidence, "undelivered", utf8_cut(span_of(agent->undelivered), WHY_BYTES_MAX));
}

void run_look_for_work(struct run *run)
{
	struct run_agent *agent = run->agent;
	const struct worktree_record *record = run->tree ? worktree_record(run->tree) : NULL;
	cleanup(buf_done) struct buf list = {0};
	struct changes changes = {0};
	struct json_object evidence;

	buf_init(&list, LIST_BYTES_MAX);
	int r = changes_look(run->workspace, record ? record->git : NULL, agent->since_ns, &changes, &list);
	agent->worked = agent->reported || (r == 0 && changes.something);
	buf_clear(&agent->evidence);
	json_begin(&evidence, &agent->evidence);
	if (r == 0)
		json_member_raw(&evidence, "files", buf_span(&list));
	if (record) {
		json_member_word(&evidence, "vcs", "git");
		json_member_string(&evidence, "branch", span_of(record->branch));
		json_member_string(&evidence, "tree", span_of(record->path));
	} else {
		json_member_null(&evidence, "vcs");
	}
	put_list(&evidence, "commits", &agent->commits);
	put_list(&evidence, "checks", &agent->check_results);
	put_delivery(&evidence, agent);
	if (json_end(&evidence) < 0)
		buf_clear(&agent->evidence);
}
