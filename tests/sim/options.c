#include "sim/options.h"

#include <inttypes.h>
#include <stdio.h>

#include "base/rng.h"

#define MINUTES(n) ((n) * INT64_C(60000))
#define HOURS(n)   ((n) * INT64_C(3600000))

static const struct fault_row {
	const char *name;
	uint32_t weight;
} fault_rows[FAULT_COUNT] = {[FAULT_NONE] = {"none", 0},
#define X(name, word, weight, text) [FAULT_##name] = {word, weight},
	FAULTS(X)
#undef X
};

const char *fault_name(enum fault fault)
{
	return fault_rows[fault].name;
}

static uint32_t scaled(uint32_t value_ms, uint32_t percent)
{
	uint64_t ms = (uint64_t)value_ms * percent / 100;
	return ms > 0 ? (uint32_t)ms : 1;
}

/* The defaults, faster: what takes minutes in life shall happen many times within a few thousand steps. */
static void expand_rules(struct sim_options *options, struct rng *rng)
{
	static const uint32_t paces[] = {100, 100, 50, 25, 10};
	struct rules *rules = &options->rules;
	uint32_t percent = paces[rng_below(rng, 5)];

	*rules = rules_default();
	options->pace_percent = percent;
	rules->lease_min_ms = scaled(rules->lease_min_ms, percent);
	rules->worker_lease_ms = scaled(rules->worker_lease_ms, percent);
	rules->claim_lease_ms = scaled((uint32_t)rng_between(rng, 20000, 90000), percent);
	rules->claim_lease_plain_ms = scaled((uint32_t)rng_between(rng, 60000, 400000), percent);
	rules->verify_after_ms = scaled((uint32_t)rng_between(rng, 15000, 120000), percent);
	rules->restart_grace_ms = scaled((uint32_t)rng_between(rng, 20000, 60000), percent);
	rules->resume_grace_ms = scaled(rules->resume_grace_ms, percent);
	rules->retry_base_ms = scaled(rules->retry_base_ms, percent);
	rules->retry_max_ms = scaled(rules->retry_max_ms, percent);
	rules->timeout_ms = scaled((uint32_t)rng_between(rng, 60000, 900000), percent);
	rules->timeout_max_ms = 2 * rules->timeout_ms;
	rules->executor_missing_ms = scaled((uint32_t)rng_between(rng, 2000, 60000), percent);
	rules->ask_park_ms =
		rng_chance(rng, 6) ? 0 : scaled((uint32_t)rng_between(rng, 2000, 60000), percent);
	rules->ask_resume_ms = scaled((uint32_t)rng_between(rng, 10000, 120000), percent);
	rules->crash_budget = 2 + rng_below(rng, 3);
	rules->interruption_budget = 3 + rng_below(rng, 8);
	rules->max_attempts = 1 + rng_below(rng, 4);
	rules->quarantine_window_ms = scaled(rules->quarantine_window_ms, percent);
	rules->quarantine_trial_ms =
		rng_chance(rng, 4) ? 0 : scaled((uint32_t)rng_between(rng, 30000, 300000), percent);
}

static void expand_retention(struct sim_options *options, struct rng *rng)
{
	int64_t unit_ms = MINUTES(1) * options->pace_percent / 100;
	struct retention *retention = &options->retention;

	*retention = store_options_default().retention;
	retention->final_ms = unit_ms * rng_between(rng, 2, 20);
	retention->finals_max = (uint64_t)rng_between(rng, 20, 200);
	retention->event_ms = unit_ms * rng_between(rng, 1, 20);
	retention->events_max = (uint64_t)rng_between(rng, 100, 2000);
	retention->step = (uint32_t)rng_between(rng, 1, 64);
	/* no jump of the wall clock reaches these: what is past them is judged as new */
	retention->idempotency_ms = HOURS(24 * 365 * 200);
	retention->dead_worker_ms = HOURS(24 * 365 * 200);
}

static void expand_crowd(struct sim_options *options, struct rng *rng)
{
	options->steady = 1 + rng_below(rng, 3);
	options->workers = 2 + rng_below(rng, 6);
	options->plain = 1 + rng_below(rng, 4);
	options->named = 1 + rng_below(rng, 3);
	options->producers = 1 + rng_below(rng, 4);
	options->operators = 1 + rng_below(rng, 3);
	options->impostors = rng_below(rng, 3);
	options->live_max = 10 + rng_below(rng, 60);
}

/* 0 in one run of four: every fault is also missing now and then. */
static uint32_t rate(struct rng *rng, uint32_t lo, uint32_t hi)
{
	uint32_t one_in = (uint32_t)rng_between(rng, lo, hi);
	return rng_chance(rng, 4) ? 0 : one_in;
}

static void expand_network(struct sim_options *options, struct rng *rng)
{
	options->lose_request = rate(rng, 8, 100);
	options->lose_reply = rate(rng, 8, 100);
	options->duplicate = rate(rng, 10, 100);
	options->delay = rate(rng, 5, 50);
	options->delay_max_ms = rng_between(rng, 200, 20000);
	options->hang_up = rate(rng, 8, 60);
	options->batch_max = 1 + rng_below(rng, 16);
}

static void expand_faults(struct sim_options *options, struct rng *rng)
{
	options->fault_one_in = rate(rng, 30, 1000);
	for (int fault = FAULT_NONE + 1; fault < FAULT_COUNT; fault++)
		options->fault_weight[fault] = rng_chance(rng, 4) ? 0 : fault_rows[fault].weight;
	options->wall_jump_max_ms = rng_chance(rng, 5) ? HOURS(24 * 365) : HOURS(2);
}

void options_expand(struct sim_options *options, uint64_t seed)
{
	struct rng rng;

	options->seed = seed;
	rng_seed(&rng, seed);
	expand_rules(options, &rng);
	expand_retention(options, &rng);
	expand_crowd(options, &rng);
	expand_network(options, &rng);
	expand_faults(options, &rng);
	options->remote = 1 + rng_below(&rng, 4);
	options->rules.queue_age_ms = rng_chance(&rng, 4) ? rng_between(&rng, 1, 2000) : 0;
}

static void print_rules(const struct sim_options *options)
{
	const struct rules *rules = &options->rules;
	const struct retention *retention = &options->retention;

	printf("  rules    pace %u%% lease_min %u worker_lease %u claim_lease %u plain_lease %u verify %u "
	       "restart_grace %u resume_grace %u\n",
		options->pace_percent, rules->lease_min_ms, rules->worker_lease_ms, rules->claim_lease_ms,
		rules->claim_lease_plain_ms, rules->verify_after_ms, rules->restart_grace_ms,
		rules->resume_grace_ms);
	printf("           retry %u..%u crash_budget %u interruptions %u timeout %u max_attempts %u "
	       "quarantine_window %u trial %u\n",
		rules->retry_base_ms, rules->retry_max_ms, rules->crash_budget, rules->interruption_budget,
		rules->timeout_ms, rules->max_attempts, rules->quarantine_window_ms,
		rules->quarantine_trial_ms);
	printf("           queue_age %" PRId64 "\n", rules->queue_age_ms);
	printf("  keep     final %" PRId64 " ms or %" PRIu64 ", events %" PRId64 " ms or %" PRIu64
	       ", step %u\n",
		retention->final_ms, retention->finals_max, retention->event_ms, retention->events_max,
		retention->step);
}

void options_print(const struct sim_options *options)
{
	printf("seed %" PRIu64 " steps %" PRIu64 "\n", options->seed, options->steps);
	print_rules(options);
	printf("  crowd    steady %u workers %u plain %u named %u producers %u operators %u impostors %u remote %u live_max %u\n",
		options->steady, options->workers, options->plain, options->named, options->producers,
		options->operators, options->impostors, options->remote, options->live_max);
	printf("  network  lose_request 1/%u lose_reply 1/%u duplicate 1/%u delay 1/%u up to %" PRId64
	       " ms hang_up 1/%u batch %u\n",
		options->lose_request, options->lose_reply, options->duplicate, options->delay,
		options->delay_max_ms, options->hang_up, options->batch_max);
	printf("  faults   1/%u of", options->fault_one_in);
	for (int fault = FAULT_NONE + 1; fault < FAULT_COUNT; fault++)
		printf(" %s %u", fault_name((enum fault)fault), options->fault_weight[fault]);
	printf(", wall jumps up to %" PRId64 " ms\n", options->wall_jump_max_ms);
}
