/*
 * Memory that runs short, at every allocation that a turn makes: either the turn was refused and nothing has happened, or it
 * was committed and the index knows all of it. There is nothing in between, and the store lives on.
 */
#include "store_fixture.h"

/* ---- an allocator that fails once ---- */

/* The linker's --wrap: what our own code asks for fails, what libraries ask for does not. */
void *__real_malloc(size_t bytes);
void *__real_calloc(size_t count, size_t bytes);
void *__real_realloc(void *old, size_t bytes);
void *__wrap_malloc(size_t bytes);
void *__wrap_calloc(size_t count, size_t bytes);
void *__wrap_realloc(void *old, size_t bytes);

static int left = -1; /* allocations that succeed before the one that fails; negative: all do */
static bool suspended;

static bool fails(void)
{
	return !suspended && left >= 0 && left-- == 0;
}

void *__wrap_malloc(size_t bytes)
{
	return fails() ? NULL : __real_malloc(bytes);
}

void *__wrap_calloc(size_t count, size_t bytes)
{
	return fails() ? NULL : __real_calloc(count, bytes);
}

void *__wrap_realloc(void *old, size_t bytes)
{
	return fails() ? NULL : __real_realloc(old, bytes);
}

/* ---- a backend whose commit is never short ---- */

/* A commit that fails leaves the disk in doubt, and the store ends: another test has that. */
static const struct backend_ops *real_ops;

static int send_with_memory(struct backend *backend)
{
	suspended = true;
	int r = real_ops->send(backend);
	suspended = false;
	return r;
}

static struct backend_ops ops_with_memory(const struct backend_ops *ops)
{
	struct backend_ops wrapped = *ops;

	real_ops = ops;
	wrapped.send = send_with_memory;
	return wrapped;
}

/* ---- turns ---- */

enum {
	ALLOCATIONS_MAX = 100000,
	BULK = 140, /* more than a chunk of a lane holds */
};

struct scene {
	const char *name;
	uint32_t (*prepare)(struct command *commands); /* run before; NULL: nothing is */
	uint32_t (*turn)(struct command *commands);
	bool restarts;     /* between the two: a turn's own memory is not there yet */
	uint32_t repeated; /* more times that the first is run */
};

static struct command say_full_worker(const char *id, const char *slot)
{
	struct command command = say_beat(id, 0);

	command.kind = COMMAND_REGISTER;
	command.beat.describes = true;
	command.beat.slot = span_of(slot);
	command.beat.metadata = SPAN("{\"zone\":\"a\"}");
	command.beat.max_concurrent = 4;
	command.beat.any_executor = true;
	return command;
}

/* Something of every kind that the index keeps. */
static uint32_t say_everything(struct command *commands)
{
	static const struct span parents[] = {{"parent", 6}};
	uint32_t count = 0;

	commands[count++] = say_full_worker("w1", "slot-1");
	commands[count++] = say_create("parent", "q1");
	commands[count] = say_create("child", "q2");
	commands[count++].create.parents = (struct name_list){parents, 1};
	commands[count] = say_create("rare", "q3");
	commands[count++].create.finish_by_ms = START_WALL_MS + 1000000;
	commands[count] = say_create("later", "q1");
	commands[count++].create.not_before_ms = START_WALL_MS + 1000000;
	commands[count] = say_create("session", "q1");
	commands[count++].create.spawn = (struct command_spawn){.label = SPAN("one"), .spec = SPAN("{}")};
	commands[count++] = say_claim("w1");
	commands[count++] = say_claim("plain");
	commands[count++] =
		(struct command){.kind = COMMAND_QUEUE_SET, .queue_set = {SPAN("q4"), QUEUE_PAUSED}};
	commands[count++] = (struct command){.kind = COMMAND_SLOT_CRASH, .slot = SPAN("slot-2")};
	commands[count++] = (struct command){
		.kind = COMMAND_TOKEN_PUT,
		.token = {.id = SPAN("token"), .kind = TOKEN_OPERATOR, .name = SPAN("builder")},
	};
	return count;
}

static uint32_t say_bulk(struct command *commands)
{
	for (uint32_t i = 0; i < BULK; i++) {
		commands[i] = say_create("", i % 3 == 0 ? "q1" : "q2");
		commands[i].create.priority = (int32_t)(i * 7 % 11);
		commands[i].create.finish_by_ms = i % 2 == 0 ? START_WALL_MS + 1000000 + i : 0;
	}
	return BULK;
}

static uint32_t say_timed(struct command *commands)
{
	for (uint32_t i = 0; i < BULK; i++) {
		commands[i] = say_create("", "q1");
		commands[i].create.finish_by_ms = START_WALL_MS + 1000000 + i;
	}
	return BULK;
}

/* Tasks move from one lane to another. */
static uint32_t say_moves(struct command *commands)
{
	static char ids[BULK][16];

	for (uint32_t i = 0; i < BULK; i++) {
		snprintf(ids[i], sizeof ids[i], "m%u", i);
		commands[i] = say_about(COMMAND_UPDATE, ids[i]);
		commands[i].update.patch.set_queue = true;
		commands[i].update.queue = i % 2 == 0 ? SPAN("q3") : SPAN("q4");
	}
	return BULK;
}

static uint32_t say_named_bulk(struct command *commands)
{
	static char ids[BULK][16];

	for (uint32_t i = 0; i < BULK; i++) {
		snprintf(ids[i], sizeof ids[i], "m%u", i);
		commands[i] = say_create(ids[i], i % 3 == 0 ? "q1" : "q2");
		commands[i].create.priority = (int32_t)(i * 7 % 11);
	}
	return BULK;
}

static uint32_t say_claims(struct command *commands)
{
	static char ids[BULK][16];

	for (uint32_t i = 0; i < BULK; i++) {
		snprintf(ids[i], sizeof ids[i], "w%u", i);
		commands[i] = say_claim(ids[i]);
	}
	return BULK;
}

static uint32_t say_worker(struct command *commands)
{
	commands[0] = say_full_worker("w1", "slot-1");
	return 1;
}

static uint32_t say_leave(struct command *commands)
{
	commands[0] = (struct command){
		.kind = COMMAND_LEAVE, .worker = SPAN("w1"), .leave = WORKER_SHUTDOWN, .oversees = true};
	return 1;
}

static const struct scene scenes[] = {
	{"everything", NULL, say_everything, false, 0},
	{"many into empty lanes", NULL, say_bulk, false, 0},
	{"many into full lanes", say_bulk, say_bulk, false, 0},
	{"from lane to lane", say_named_bulk, say_moves, false, 0},
	{"many claims", say_bulk, say_claims, false, 0},
	{"a worker leaves", say_worker, say_leave, true, 0},
	{"more timers than were reserved at first", say_timed, say_timed, false, 2},
};

static struct command commands[BULK];
static struct result results[BULK];

static void check(struct world *world, const struct scene *scene, int number)
{
	char complaint[256] = "";

	if (store_check_memory(world->store, complaint, sizeof complaint) < 0)
		fail_msg("%s, allocation %d: memory: %s", scene->name, number, complaint);
	if (store_check_fold(world->store, complaint, sizeof complaint) < 0)
		fail_msg("%s, allocation %d: fold: %s", scene->name, number, complaint);
}

static void run(struct world *world, const struct scene *scene, uint32_t count, int number)
{
	if (store_turn(world->store, world->now, commands, count, results) < 0)
		fail_msg("%s, allocation %d: the store is dead", scene->name, number);
}

/* Did the allocation of that number happen, and fail? */
static bool try_with(struct world *world, const struct scene *scene, int number)
{
	uint32_t count = scene->prepare ? scene->prepare(commands) : 0;
	for (uint32_t i = 0; i <= scene->repeated; i++)
		run(world, scene, count, number);
	if (scene->restarts)
		world_crash(world);
	int64_t before = store_last_event(world->store);

	count = scene->turn(commands);
	left = number;
	run(world, scene, count, number);
	bool failed = left < 0;
	left = -1;
	check(world, scene, number);
	bool refused = results[0].refusal == REFUSED_UNAVAILABLE;
	if (refused != (store_last_event(world->store) == before))
		fail_msg("%s, allocation %d: refused and written", scene->name, number);
	if (refused) {
		assert_true(failed);
		run(world, scene, count, number);
		check(world, scene, number);
	}
	for (uint32_t i = 0; i < count; i++)
		if (results[i].refusal != REFUSED_NOTHING)
			fail_msg("%s, allocation %d: command %u refused: %d", scene->name, number, i,
				results[i].refusal);
	return failed;
}

/* With sanitizers each turn takes ten times as long, so every fifth allocation is tried there. */
#ifdef __SANITIZE_ADDRESS__
enum { STRIDE = 5 };
#else
enum { STRIDE = 1 };
#endif

static void try_all(const struct scene *scene, bool on_disk)
{
	bool failed = true;

	for (int number = 0; failed && number < ALLOCATIONS_MAX; number += STRIDE) {
		struct world *world = world_new(on_disk);
		struct backend_ops ops = ops_with_memory(world->backend->ops);

		world->backend->ops = &ops;
		failed = try_with(world, scene, number);
		world->backend->ops = real_ops;
		world_crash(world); /* and the rows tell the same */
		check(world, scene, number);
		world_free(world);
	}
	assert_false(failed);
}

static void a_turn_short_of_memory_is_refused_whole_or_applied_whole(void **state)
{
	(void)state;
	for (size_t i = 0; i < sizeof scenes / sizeof *scenes; i++)
		try_all(&scenes[i], false);
}

static void and_so_it_is_on_disk(void **state)
{
	(void)state;
	try_all(&scenes[0], true);
}

/* A store that is opened without memory for its index says so; the next try finds everything. */
static void a_store_short_of_memory_is_not_opened(void **state)
{
	struct world *world = *state;
	uint32_t count = say_everything(commands);
	int r = -ENOMEM, number = 0;

	run(world, &scenes[0], count, 0);
	for (; r < 0 && number < ALLOCATIONS_MAX; number += STRIDE) {
		struct backend *backend = memory_reopen(store_abandon(world->store));
		left = number;
		r = store_open(backend, &world->options, &world->store);
		left = -1;
		if (r < 0) {
			assert_int_equal(r, -ENOMEM);
			assert_int_equal(store_open(backend, &world->options, &world->store), 0);
		}
		check(world, &scenes[0], number);
	}
	assert_int_equal(r, 0);
	assert_true(number > 1);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(a_turn_short_of_memory_is_refused_whole_or_applied_whole),
		cmocka_unit_test(and_so_it_is_on_disk),
		cmocka_unit_test_setup_teardown(a_store_short_of_memory_is_not_opened, on_memory, world_over),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
