#include "core/task/usage.h"

struct usage usage_raise(const struct usage *before, const struct usage *now)
{
	struct usage raised = *now;

	for (int i = 0; before->is_reported && i < USAGE_COUNTS; i++) {
		if (before->counts[i] > now->counts[i])
			raised.counts[i] = before->counts[i];
	}
	return raised;
}

struct usage usage_add(const struct usage *a, const struct usage *b)
{
	struct usage sum = {
		.is_reported = a->is_reported || b->is_reported,
		.price_is_unknown = a->price_is_unknown || b->price_is_unknown,
	};

	for (int i = 0; i < USAGE_COUNTS; i++) {
		if (__builtin_add_overflow(a->counts[i], b->counts[i], &sum.counts[i]))
			sum.counts[i] = INT64_MAX;
	}
	return sum;
}
