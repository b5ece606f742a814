/*
 * The mark: a small file beside the store that says how far the store is.
 *
 * A file that is missing, empty, another's or an old copy looks to SQLite like any other. The mark remembers which store
 * was here, its generation and the last event, as of the last start, checkpoint or clean stop. What it says was on disk
 * before the mark was written, so a store that is behind its mark has lost something. A store without a mark was written by
 * an older release, or moved here by hand: there is nothing to compare it with.
 *
 * The default store has the name stint.db and its mark the name store.mark; any other store has its own name with .mark
 * behind it, because a directory may have several.
 */
#include <fcntl.h>
#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "base/crc32c.h"
#include "base/files.h"
#include "base/take.h"
#include "base/uuid.h"
#include "store/sqlite/mark.h"

enum {
	MARK_BYTES_MAX = 512,
};

char *mark_path(const char *store_path)
{
	const char *slash = strrchr(store_path, '/');
	const char *name = slash ? slash + 1 : store_path;
	char *path;

	if (strcmp(name, "stint.db") != 0)
		return file_beside(store_path, ".mark");
	return asprintf(&path, "%.*sstore.mark", (int)(name - store_path), store_path) < 0 ? NULL : path;
}

static int mark_text(const struct mark *mark, char text[MARK_BYTES_MAX])
{
	char id[UUID_CHARS + 1];

	uuid_write(mark->id_hi, mark->id_lo, id);
	int len = snprintf(text, MARK_BYTES_MAX,
		"stint store mark 1\nstore %s\ngeneration %" PRId64 "\nstarts %" PRId64 "\ntask %" PRId64
		"\nevent %" PRId64 "\ndoubt %d\n",
		id, mark->generation, mark->starts, mark->task, mark->event, mark->is_in_doubt);
	uint32_t crc = crc32c(0, (struct span){text, (size_t)len});
	return len + snprintf(text + len, MARK_BYTES_MAX - (size_t)len, "crc %08" PRIx32 "\n", crc);
}

/* A mark is what mark_text() writes for it, to the byte. */
static bool mark_take(const char *text, struct mark *ret_mark)
{
	struct mark mark = {0};
	char id[UUID_CHARS + 1], again[MARK_BYTES_MAX];
	int doubt;

	if (sscanf(text,
		    "stint store mark 1\nstore %36s\ngeneration %" SCNd64 "\nstarts %" SCNd64
		    "\ntask %" SCNd64 "\nevent %" SCNd64 "\ndoubt %d\n",
		    id, &mark.generation, &mark.starts, &mark.task, &mark.event, &doubt) != 6 ||
		!uuid_read(span_of(id), &mark.id_hi, &mark.id_lo))
		return false;
	mark.is_in_doubt = doubt != 0;
	mark_text(&mark, again);
	*ret_mark = mark;
	return strcmp(text, again) == 0;
}

int mark_read(const char *store_path, struct mark *ret_mark, char **ret_complaint)
{
	cleanup(free_at) char *path = mark_path(store_path);
	cleanup(close_at) int fd = path ? open(path, O_RDONLY | O_NOFOLLOW | O_CLOEXEC) : -1;
	char text[MARK_BYTES_MAX];

	if (!path)
		return -ENOMEM;
	if (fd < 0 && errno == ENOENT)
		return -ENOENT;
	ssize_t got = fd < 0 ? -1 : read(fd, text, sizeof text - 1);
	if (got < 0)
		return sqlite_complain(ret_complaint, -errno, "cannot read %s: %s", path, strerror(errno));
	text[got] = 0;
	if (strlen(text) == (size_t)got && mark_take(text, ret_mark))
		return 0;
	return sqlite_complain(ret_complaint, -EBADMSG,
		"%s is damaged: it says which store belongs here, and how far it is; remove it if %s is that store",
		path, store_path);
}

int mark_of(sqlite3 *db, struct mark *ret_mark)
{
	struct mark mark = {0};
	int64_t hi = 0, lo = 0;
	const struct {
		const char *question;
		int64_t *answer;
	} asked[] = {
		{"SELECT coalesce((SELECT value FROM meta WHERE key = 11), 0)", &hi},
		{"SELECT coalesce((SELECT value FROM meta WHERE key = 12), 0)", &lo},
		{"SELECT coalesce((SELECT value FROM meta WHERE key = 1), 1)", &mark.generation},
		{"SELECT coalesce((SELECT value FROM meta WHERE key = 2), 0)", &mark.starts},
		{"SELECT max(coalesce((SELECT max(seq) FROM task), 0),"
		 " coalesce((SELECT value FROM meta WHERE key = 3), 0))",
			&mark.task},
		{"SELECT max(coalesce((SELECT max(last) FROM event), 0),"
		 " coalesce((SELECT value FROM meta WHERE key = 4), 0))",
			&mark.event},
	};

	for (size_t i = 0; i < sizeof asked / sizeof *asked; i++) {
		int code = sqlite_ask(db, asked[i].question, asked[i].answer);
		if (code != SQLITE_OK)
			return code;
	}
	mark.id_hi = (uint64_t)hi;
	mark.id_lo = (uint64_t)lo;
	*ret_mark = mark;
	return SQLITE_OK;
}

_Static_assert(META_GENERATION == 1 && META_STARTS == 2 && META_TASK_FLOOR == 3 && META_EVENT_BASE == 4 &&
		META_STORE_HI == 11 && META_STORE_LO == 12,
	"as in mark_of()");

int mark_write(const char *store_path, const struct mark *mark)
{
	cleanup(free_at) char *path = mark_path(store_path);
	char text[MARK_BYTES_MAX];

	if (!path)
		return -ENOMEM;
	char *slash = strrchr(path, '/');
	*slash = 0; /* the path of a store is a real one */
	cleanup(close_at) int dir_fd = open(slash == path ? "/" : path, O_RDONLY | O_DIRECTORY | O_CLOEXEC);
	int len = mark_text(mark, text);
	return dir_fd < 0 ? -errno : file_write(dir_fd, slash + 1, (struct span){text, (size_t)len}, true);
}

int sqlite_mark(struct backend *backend)
{
	struct sqlite *store = sqlite_of(backend);
	struct mark mark;

	if (store->is_elsewhere || store->is_broken)
		return 0;
	int code = mark_of(store->db, &mark);
	if (code != SQLITE_OK)
		return sqlite_fault(store, code);
	int fault = mark_write(store->path, &mark);
	store->has_mark |= fault == 0;
	return fault ? sqlite_fault_because(store, fault, "cannot write the mark beside", store->path) : 0;
}

void mark_doubt(const struct sqlite *store)
{
	struct mark mark;

	if (!store->has_mark || mark_read(store->path, &mark, NULL) != 0)
		return;
	mark.is_in_doubt = true;
	if (mark_write(store->path, &mark) != 0)
		return; /* then the next start may refuse, and name its choices */
}

int mark_remove(const char *store_path)
{
	cleanup(free_at) char *path = mark_path(store_path);

	return path ? file_remove(path) : -ENOMEM;
}

int mark_compare(const char *path, const struct mark *mark, const struct mark *found, char **ret_complaint)
{
	if (mark->id_hi != found->id_hi || mark->id_lo != found->id_lo)
		return sqlite_complain(ret_complaint, -EBADMSG,
			"%s is another store than the one that was here (see the mark beside it); " SQLITE_CHOICES,
			path);
	/* Restored by other means: its events are other ones. Below 1: the row is damaged, and the start says so. */
	if (found->generation > mark->generation || found->generation < 1)
		return 0;
	if (found->generation < mark->generation)
		return sqlite_complain(ret_complaint, -EBADMSG,
			"%s is older than its mark: it is of generation %" PRId64 ", and %" PRId64
			" was here; " SQLITE_CHOICES,
			path, found->generation, mark->generation);
	if (found->event < mark->event)
		return sqlite_complain(ret_complaint, -EBADMSG,
			"%s is older than its mark: its last event is %" PRId64 ", and %" PRId64
			" was written here; " SQLITE_CHOICES,
			path, found->event, mark->event);
	return 0;
}
