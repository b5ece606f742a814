/*
 * A full disk through store.h: fill it, let retention make room, and see that the store comes back by itself
 * with everything it acknowledged. Once on a disk of the tests' own making, once on a small file system.
 */
#include "proof/check.h"
#include "store_fixture.h"

#include <sched.h>
#include <sys/mman.h>
#include <sys/mount.h>
#include <sys/wait.h>

#include "base/take.h"
#include "faulty_vfs.h"
#include "../skip.h"

enum {
	DISK_BYTES = 24 << 20,
	BALLAST_BYTES = 8 << 20, /* as in life: it holds what a log holds that is due to be written back */
	BODY_BYTES = 6000,
	FINALS_PER_TURN = 20, /* beside each task that stays */
	TURNS_MAX = 2000,
	SWEEPS_MAX = 50,
};

struct disk {
	char dir[256], path[288], ballast[320];
	const char *vfs; /* NULL: the disk is a file system */
	struct store *store;
	struct store_options options;
	struct moment now;
	uint32_t kept; /* tasks keep-0 … that were acknowledged and are not final */
};

static void disk_open(struct disk *disk)
{
	struct sqlite_options options = {
		.path = disk->path, .vfs = disk->vfs, .ballast_bytes = BALLAST_BYTES};
	struct backend *backend = NULL;
	cleanup(free_at) char *complaint = NULL;

	if (sqlite_open(&options, &backend, &complaint) < 0)
		fail_msg("%s", complaint);
	disk->options.now = disk->now;
	assert_int_equal(store_open(backend, &disk->options, &disk->store), 0);
}

static struct disk *disk_new(void)
{
	/* shared, so that a process that is killed can tell what was acknowledged */
	struct disk *disk =
		mmap(NULL, sizeof *disk, PROT_READ | PROT_WRITE, MAP_SHARED | MAP_ANONYMOUS, -1, 0);
	const char *tmp = getenv("TMPDIR");

	assert_true(disk != MAP_FAILED);
	snprintf(disk->dir, sizeof disk->dir, "%s/stint-test-XXXXXX", tmp ? tmp : "/tmp");
	assert_non_null(mkdtemp(disk->dir));
	snprintf(disk->path, sizeof disk->path, "%s/stint.db", disk->dir);
	snprintf(disk->ballast, sizeof disk->ballast, "%s.ballast", disk->path);
	disk->now = (struct moment){START_WALL_MS, START_LEASE_MS};
	disk->options = store_options_default();
	disk->options.boot_lo = 1;
	disk->options.retention.final_ms = 1;
	disk->options.retention.event_ms = 1;
	return disk;
}

static void disk_free(struct disk *disk)
{
	static const char *const endings[] = {"", "-wal", "-shm", ".ballast"};
	char path[320];

	for (size_t i = 0; i < sizeof endings / sizeof *endings; i++) {
		snprintf(path, sizeof path, "%s%s", disk->path, endings[i]);
		unlink(path);
	}
	rmdir(disk->dir);
	munmap(disk, sizeof *disk);
}

/* One task that stays, and some that are cancelled at once. True if it was acknowledged. */
static bool fill_turn(struct disk *disk)
{
	static char body[BODY_BYTES];
	static char ids[1 + FINALS_PER_TURN][32];
	static uint32_t number;
	struct command commands[1 + 2 * FINALS_PER_TURN];
	struct result results[1 + 2 * FINALS_PER_TURN];
	uint32_t count = 1;

	snprintf(ids[0], sizeof ids[0], "keep-%u", disk->kept);
	commands[0] = say_create(ids[0], "q");
	for (uint32_t i = 1; i <= FINALS_PER_TURN; i++) {
		snprintf(ids[i], sizeof ids[i], "goes-%u", number++);
		commands[count] = say_create(ids[i], "q");
		commands[count++].create.body = (struct span){body, sizeof body};
		commands[count++] = say_about(COMMAND_CANCEL, ids[i]);
	}
	assert_int_equal(store_turn(disk->store, disk->now, commands, count, results), 0);
	assert_int_equal(store_checkpoint(disk->store), 0);
	if (results[0].refusal == REFUSED_NOTHING)
		disk->kept++;
	else
		assert_int_equal(results[0].refusal, REFUSED_UNAVAILABLE);
	return results[0].refusal == REFUSED_NOTHING;
}

static void fill(struct disk *disk)
{
	for (uint32_t i = 0; i < TURNS_MAX && !store_is_degraded(disk->store); i++)
		fill_turn(disk);
	assert_true(store_is_degraded(disk->store));
	assert_false(fill_turn(disk));
	assert_true(disk->kept > 10);
}

/* How many sweeps it took. */
static uint32_t sweep_until_back(struct disk *disk)
{
	uint32_t sweeps = 0;

	while (store_is_degraded(disk->store) && sweeps < SWEEPS_MAX) {
		disk->now.wall_ms += 1000;
		disk->now.lease_ms += 1000;
		assert_int_equal(store_sweep(disk->store, disk->now), 0);
		sweeps++;
	}
	if (store_is_degraded(disk->store))
		fail_msg("still full after %u sweeps: %s", sweeps, store_complaint(disk->store));
	return sweeps;
}

static void assert_all_there(struct disk *disk)
{
	char id[32], complaint[256];
	int64_t seq;

	for (uint32_t i = 0; i < disk->kept; i++) {
		snprintf(id, sizeof id, "keep-%u", i);
		assert_int_equal(store_find_task(disk->store, span_of(id), &seq), 0);
	}
	if (store_check_memory(disk->store, complaint, sizeof complaint) < 0 ||
		store_check_fold(disk->store, complaint, sizeof complaint) < 0)
		fail_msg("%s", complaint);
}

static void disk_reopen(struct disk *disk)
{
	struct backend *backend = store_abandon(disk->store);

	backend->ops->close(backend);
	disk_open(disk);
}

/* Full, back, and full again: what the first purge left must serve for the next time. */
static void live_through(struct disk *disk)
{
	disk_open(disk);
	for (int round = 0; round < 3; round++) {
		fill(disk);
		assert_all_there(disk);
		sweep_until_back(disk);
		assert_int_equal(access(disk->ballast, F_OK), 0);
		assert_true(fill_turn(disk));
		assert_all_there(disk);
		disk_reopen(disk);
		assert_all_there(disk);
	}
	store_close(disk->store);
}

static void fill_and_die(struct disk *disk)
{
	int status;
	pid_t child = fork();

	assert_true(child >= 0);
	if (child == 0) {
		disk_open(disk);
		fill(disk);
		_exit(0);
	}
	assert_int_equal(waitpid(child, &status, 0), child);
	assert_int_equal(status, 0);
}

/* What a killed server leaves is a log of full length beside the file. */
static void live_through_a_kill(struct disk *disk)
{
	fill_and_die(disk);
	disk_open(disk);
	assert_all_there(disk);
	while (!store_is_degraded(disk->store))
		fill_turn(disk);
	sweep_until_back(disk);
	assert_true(fill_turn(disk));
	assert_all_there(disk);
	store_close(disk->store);
}

/* ---- a disk of the tests' own making ------------------------------------------------------------ */

static int on_faulty(void **state)
{
	struct disk *disk = disk_new();

	disk->vfs = faulty_vfs();
	faulty.capacity_bytes = DISK_BYTES;
	faulty.ballast_path = disk->ballast;
	*state = disk;
	return 0;
}

static int faulty_over(void **state)
{
	faulty = (struct faulty){0};
	disk_free(*state);
	return 0;
}

/* ---- a small file system -------------------------------------------------------------------------- */

static int on_tmpfs(void **state)
{
	struct disk *disk = disk_new();
	char options[32];

	*state = disk;
	snprintf(options, sizeof options, "size=%d", DISK_BYTES);
	/* of this process alone: nobody else sees it, and it goes with us */
	if (unshare(CLONE_NEWNS) < 0 || mount(NULL, "/", NULL, MS_REC | MS_PRIVATE, NULL) < 0 ||
		mount("tmpfs", disk->dir, "tmpfs", 0, options) < 0) {
		print_message("no file system of a test can be mounted: %s\n", strerror(errno));
		disk->path[0] = 0;
	}
	return 0;
}

static int tmpfs_over(void **state)
{
	struct disk *disk = *state;

	umount2(disk->dir, MNT_DETACH);
	disk_free(disk);
	return 0;
}

static void a_full_disk_frees_itself(void **state)
{
	struct disk *disk = *state;

	if (!disk->path[0])
		skip_because("no small disk can be mounted here");
	live_through(disk);
}

static void a_server_killed_on_a_full_disk_frees_itself(void **state)
{
	struct disk *disk = *state;

	if (!disk->path[0])
		skip_because("no small disk can be mounted here");
	live_through_a_kill(disk);
}

#define ON_DISKS(test)                                             \
	{#test " (faulty)", test, on_faulty, faulty_over, NULL},   \
	{                                                          \
		#test " (tmpfs)", test, on_tmpfs, tmpfs_over, NULL \
	}

int main(void)
{
	static const struct CMUnitTest cases[] = {
		ON_DISKS(a_full_disk_frees_itself),
		ON_DISKS(a_server_killed_on_a_full_disk_frees_itself),
	};

	return cmocka_run_group_tests(cases, NULL, NULL);
}
