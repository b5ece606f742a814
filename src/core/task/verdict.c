/*
 * The rule of byReport, and the form in which a report is kept until the attempt ends.
 *
 * A report is kept as a first byte that says which form this is, numbers, and the texts with their lengths. The API shows
 * it as JSON; nobody needs to understand JSON to apply it. Reports of older servers are a JSON object; of those only the
 * outcome is understood, and the object itself stands for the result or the error.
 */
#include "core/task/verdict.h"

#include <assert.h>
#include <errno.h>
#include <string.h>

enum {
	FORM = 1,
	FORM_JSON = '{',
	NUMBERS_BYTES_MAX = 9 * UVARINT_BYTES_MAX + 1,
};

static bool reports_failure(enum claim_end reported)
{
	return reported == ENDED_FAIL || reported == ENDED_BLOCK || reported == ENDED_RELEASE;
}

static bool is_end(enum claim_end outcome)
{
	return outcome > ENDED_NOT && outcome <= ENDED_WAIT && outcome != ENDED_LOST;
}

enum seen_end verdict_seen(enum claim_end outcome, const struct failure *failure, bool exited, bool checked)
{
	assert(is_end(outcome));
	if (outcome != ENDED_FAIL && outcome != ENDED_BLOCK)
		return SEEN_EXIT;
	if (failure->code == CODE_BUDGET_EXCEEDED && !checked)
		return SEEN_BUDGET_SPENT;
	if (failure->klass == CLASS_HOST || failure->klass == CLASS_POLICY)
		return SEEN_NOTHING_RUN;
	if (failure->klass == CLASS_TASK && failure->code != CODE_CHECK_FAILED && exited)
		return SEEN_EXIT;
	return SEEN_FAULT;
}

enum verdict verdict_weigh(enum seen_end seen, enum claim_end reported, bool asking)
{
	assert(reported == ENDED_NOT || is_end(reported));
	if (seen == SEEN_NOT_SAID || seen == SEEN_NOTHING_RUN)
		return VERDICT_SEEN;
	if (seen == SEEN_BUDGET_SPENT)
		return reported == ENDED_COMPLETE ? VERDICT_REPORTED : VERDICT_SEEN;
	if (asking)
		return VERDICT_ASKED;
	if (reports_failure(reported))
		return VERDICT_REPORTED;
	if (seen == SEEN_FAULT || reported == ENDED_NOT)
		return VERDICT_SEEN;
	return VERDICT_REPORTED;
}

/* ---- how it is kept ---- */

static char *put_text(char *at, struct span text)
{
	at = uvarint_write(at, text.len);
	if (text.len > 0)
		memcpy(at, text.data, text.len);
	return at + text.len;
}

int ending_put(struct buf *out, const struct ending *ending)
{
	const struct failure *failure = &ending->failure;

	assert(is_end(ending->outcome));
	int r = buf_reserve(
		out, NUMBERS_BYTES_MAX + ending->data.len + ending->evidence.len + ending->note.len);
	if (r < 0)
		return r;
	char *at = out->data + out->len;
	*at++ = FORM;
	at = uvarint_write(at, ending->outcome);
	at = uvarint_write(at, failure->code);
	at = uvarint_write(at, failure->klass);
	at = uvarint_write(at, (uint64_t)failure->retry_at_ms);
	at = uvarint_write(at, failure->no_retry);
	at = uvarint_write(at, (uint64_t)ending->delay_ms);
	at = put_text(at, ending->data);
	at = put_text(at, ending->evidence);
	at = put_text(at, ending->note);
	out->len = (size_t)(at - out->data);
	return 0;
}

static int read_json(struct span kept, struct ending *ret_ending)
{
	static const struct {
		struct span begins;
		enum claim_end outcome;
	} rows[] = {
		{{"{\"outcome\":\"complete\"", 21}, ENDED_COMPLETE},
		{{"{\"outcome\":\"review\"", 19}, ENDED_REVIEW},
		{{"{\"outcome\":\"fail\"", 17}, ENDED_FAIL},
		{{"{\"outcome\":\"block\"", 18}, ENDED_BLOCK},
		{{"{\"outcome\":\"release\"", 20}, ENDED_RELEASE},
	};

	for (size_t i = 0; i < sizeof rows / sizeof *rows; i++) {
		struct span begins = rows[i].begins;
		if (kept.len <= begins.len || memcmp(kept.data, begins.data, begins.len) != 0)
			continue;
		*ret_ending = (struct ending){
			.outcome = rows[i].outcome,
			.failure = {.code = CODE_EXECUTION_ERROR, .klass = CLASS_TASK},
			.data = kept,
		};
		return 0;
	}
	return -EPROTO;
}

int ending_read(struct span kept, struct ending *ret_ending)
{
	struct ending ending = {0};
	struct reader reader;

	if (kept.len > 0 && kept.data[0] == FORM_JSON)
		return read_json(kept, ret_ending);
	reader_init(&reader, kept);
	unsigned char form = reader_byte(&reader);
	uint64_t outcome = reader_uvarint(&reader), code = reader_uvarint(&reader),
		 klass = reader_uvarint(&reader);
	ending.failure.retry_at_ms = (int64_t)reader_uvarint(&reader);
	ending.failure.no_retry = reader_uvarint(&reader) != 0;
	ending.delay_ms = (int64_t)reader_uvarint(&reader);
	ending.data = reader_bytes(&reader);
	ending.evidence = reader_bytes(&reader);
	ending.note = reader_bytes(&reader);
	if (!reader_is_done(&reader) || form != FORM || outcome > ENDED_WAIT ||
		!is_end((enum claim_end)outcome) || code >= FAILURE_CODE_COUNT ||
		klass >= FAILURE_CLASS_COUNT)
		return -EPROTO;
	ending.outcome = (enum claim_end)outcome;
	ending.failure.code = (enum failure_code)code;
	ending.failure.klass = (enum failure_class)klass;
	*ret_ending = ending;
	return 0;
}
