#include "core/refusal.h"

#include <assert.h>

static const struct refusal_row {
	const char *code;
	int http_status;
	const char *text;
} rows[REFUSAL_COUNT] = {
#define X(name, code, status, exit_status, text) [REFUSED_##name] = {code, status, text},
	REFUSALS(X)
#undef X
};

static const struct refusal_row *row_of(enum refusal refusal)
{
	assert(refusal > REFUSED_NOTHING);
	assert(refusal < REFUSAL_COUNT);
	return &rows[refusal];
}

const char *refusal_code(enum refusal refusal)
{
	return row_of(refusal)->code;
}

int refusal_http_status(enum refusal refusal)
{
	return row_of(refusal)->http_status;
}

const char *refusal_text(enum refusal refusal)
{
	return row_of(refusal)->text;
}
