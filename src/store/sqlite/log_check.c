/*
 * The write-ahead log, looked at before SQLite writes to it.
 *
 * SQLite reads a log up to the first frame whose checksum is wrong and takes that for its end. After a power cut that is
 * right: the frames of the last turn may lie there torn, and nobody was told of it. But where a bit of an older frame has
 * changed, every commit behind it would go without a word. So we read the log ourselves:
 *
 *   header   magic, version, page size, count of checkpoints, two salts, checksum of these 24 bytes    32 bytes
 *   frame    page number, pages of the database (0: no commit), the two salts, checksum                24 bytes, and a page
 *
 * The checksum of a frame goes on from that of the frame before it. A bad frame is the end
 *   - if no commit frame with the salts of the header lies behind it, or
 *   - if one does, nothing of these salts follows it, and the machine was booted since, or the mark says that a sync
 *     failed: one turn, torn.
 * Anything else is damage. Frames with other salts are of before the last checkpoint.
 *
 * SQLite goes on behind the last commit and writes over what is left of a torn turn. If that were longer than the next
 * turn, and the next one were torn as well, the remains of both would look like damage. So the caller is told of
 * remains, and wipes them before it writes anything else: in their place, because there may be no room for more.
 *
 * A header is written and synced when the log is begun again, after every frame of the old one has been copied into the
 * database. A header that is bad is therefore the end only if the frames behind it say what the database says.
 */
#include <inttypes.h>
#include <stdlib.h>
#include <string.h>

#include "base/take.h"
#include "store/sqlite/sqlite_backend.h"

enum {
	HEADER_BYTES = 32,
	FRAME_BYTES = 24, /* without its page */
	SUMMED_BYTES = 8, /* of a frame's header */
	PAGE_BYTES_MIN = 512,
	PAGE_BYTES_MAX = 65536,
	LOG_VERSION = 3007000,
};
#define LOG_MAGIC UINT32_C(0x377f0682) /* its lowest bit: the checksum is of big-endian words */

struct wal {
	sqlite3_file *file, *database;
	int64_t bytes, frames;
	int64_t pages_max; /* that the database can have: each new page is in a frame */
	int64_t pages_min; /* that it had at the last good commit: it is never made smaller */
	uint32_t page_bytes;
	bool big_endian;
	bool is_padded; /* a torn write may damage its neighbours: SQLite writes a commit frame several times over */
	unsigned char salts[8];
	uint32_t sum[2];
	unsigned char *frame; /* FRAME_BYTES and a page */
};

static uint32_t u32_at(const unsigned char *bytes)
{
	return (uint32_t)bytes[0] << 24 | (uint32_t)bytes[1] << 16 | (uint32_t)bytes[2] << 8 | bytes[3];
}

static uint32_t word_at(const unsigned char *bytes, bool big_endian)
{
	uint32_t word = u32_at(bytes);

	return big_endian ? word : __builtin_bswap32(word);
}

static void sum_add(const struct wal *log, const unsigned char *bytes, size_t len, uint32_t sum[2])
{
	for (size_t at = 0; at < len; at += 8) {
		sum[0] += word_at(bytes + at, log->big_endian) + sum[1];
		sum[1] += word_at(bytes + at + 4, log->big_endian) + sum[0];
	}
}

static int read_at(sqlite3_file *file, void *bytes, uint32_t len, int64_t at)
{
	return file->pMethods->xRead(file, bytes, (int)len, at);
}

static int64_t frame_at(const struct wal *log, int64_t number)
{
	return HEADER_BYTES + number * (int64_t)(FRAME_BYTES + log->page_bytes);
}

static bool page_bytes_are_sound(uint32_t bytes)
{
	return bytes >= PAGE_BYTES_MIN && bytes <= PAGE_BYTES_MAX && (bytes & (bytes - 1)) == 0;
}

static bool take_header(struct wal *log, const unsigned char header[HEADER_BYTES])
{
	uint32_t sum[2] = {0};

	if ((u32_at(header) & ~1u) != LOG_MAGIC || u32_at(header + 4) != LOG_VERSION ||
		!page_bytes_are_sound(u32_at(header + 8)))
		return false;
	log->page_bytes = u32_at(header + 8);
	log->big_endian = u32_at(header) & 1;
	memcpy(log->salts, header + 16, sizeof log->salts);
	sum_add(log, header, FRAME_BYTES, sum);
	memcpy(log->sum, sum, sizeof sum);
	return sum[0] == u32_at(header + 24) && sum[1] == u32_at(header + 28);
}

static bool has_salts(const struct wal *log, const unsigned char *frame)
{
	return u32_at(frame) != 0 && memcmp(frame + 8, log->salts, sizeof log->salts) == 0;
}

/* The frame in the buffer, which follows those that were summed. */
static bool frame_is_whole(struct wal *log)
{
	uint32_t sum[2] = {log->sum[0], log->sum[1]};

	if (!has_salts(log, log->frame))
		return false;
	sum_add(log, log->frame, SUMMED_BYTES, sum);
	sum_add(log, log->frame + FRAME_BYTES, log->page_bytes, sum);
	memcpy(log->sum, sum, sizeof sum);
	return sum[0] == u32_at(log->frame + 16) && sum[1] == u32_at(log->frame + 20);
}

/* What lies behind a bad frame. */
struct behind {
	int64_t commits, last_commit, last;
};

static int look_behind(const struct wal *log, int64_t bad, struct behind *ret_behind)
{
	struct behind behind = {.last = bad};
	unsigned char frame[FRAME_BYTES], before[SUMMED_BYTES] = {0};

	for (int64_t i = bad + 1; i < log->frames; i++) {
		int code = read_at(log->file, frame, sizeof frame, frame_at(log, i));
		if (code != SQLITE_OK)
			return code;
		if (!has_salts(log, frame))
			continue;
		/* a copy of the commit before it, perhaps behind copies that were torn */
		bool is_padding = log->is_padded && behind.commits > 0 && behind.last == behind.last_commit &&
			memcmp(frame, before, SUMMED_BYTES) == 0;
		behind.last = i;
		memcpy(before, frame, sizeof before);
		/* 0 is no commit, and a number that cannot be is one half of a header that was torn: the other half may be of a
		 * frame that lay there before, even a commit */
		if (u32_at(frame + 4) == 0 || u32_at(frame + 4) < log->pages_min ||
			u32_at(frame + 4) > log->pages_max)
			continue;
		behind.commits += !is_padding;
		behind.last_commit = i;
	}
	*ret_behind = behind;
	return SQLITE_OK;
}

static int log_of(struct sqlite *store, struct wal *ret_log)
{
	struct wal log = {0};
	int64_t page_bytes = 0, is_log = 0;
	sqlite3_int64 bytes = 0;
	int code = sqlite_ask(store->db, "PRAGMA page_size", &page_bytes);

	if (code == SQLITE_OK)
		code = sqlite_ask(store->db, "SELECT journal_mode = 'wal' FROM pragma_journal_mode", &is_log);
	if (code == SQLITE_OK)
		code = sqlite3_file_control(store->db, "main", SQLITE_FCNTL_FILE_POINTER, &log.database);
	if (code == SQLITE_OK)
		code = sqlite3_file_control(store->db, "main", SQLITE_FCNTL_JOURNAL_POINTER, &log.file);
	if (code == SQLITE_OK && is_log && log.file && log.file->pMethods)
		code = log.file->pMethods->xFileSize(log.file, &bytes);
	if (code == SQLITE_OK && bytes > 0)
		log.is_padded = !(log.file->pMethods->xDeviceCharacteristics(log.file) &
			SQLITE_IOCAP_POWERSAFE_OVERWRITE);
	log.bytes = bytes;
	log.page_bytes = (uint32_t)page_bytes;
	*ret_log = log;
	return code;
}

/* Does the database have the page that the frame in the buffer has? */
static int database_has(const struct wal *log, uint32_t page, bool *ret_same)
{
	cleanup(free_at) char *bytes = malloc(log->page_bytes);
	int code = bytes ? read_at(log->database, bytes, log->page_bytes,
				   (int64_t)(page - 1) * (int64_t)log->page_bytes)
			 : SQLITE_NOMEM;

	*ret_same = code == SQLITE_OK && memcmp(bytes, log->frame + FRAME_BYTES, log->page_bytes) == 0;
	return code == SQLITE_IOERR_SHORT_READ ? SQLITE_OK : code;
}

/* The latest frame of each page, from the back. */
static int compare_pages(const struct wal *log, int64_t last, uint32_t pages, bool *ret_same)
{
	cleanup(free_at) char *seen = calloc(1, pages / 8 + 1);
	int code = seen ? SQLITE_OK : SQLITE_NOMEM;

	*ret_same = true;
	for (int64_t i = last; i >= 0 && code == SQLITE_OK && *ret_same; i--) {
		code = read_at(log->file, log->frame, FRAME_BYTES + log->page_bytes, frame_at(log, i));
		uint32_t page = u32_at(log->frame);
		if (code != SQLITE_OK || page == 0 || page > pages || seen[page / 8] & 1 << page % 8)
			continue;
		seen[page / 8] = (char)(seen[page / 8] | 1 << page % 8);
		code = database_has(log, page, ret_same);
	}
	return code;
}

/* The header is bad. What the first frame says is taken for its salts. */
static int check_without_header(struct wal *log, int64_t *ret_bad, int64_t *ret_commits)
{
	struct behind behind;
	bool same = true;
	int code =
		log->frames > 0 ? read_at(log->file, log->frame, FRAME_BYTES, frame_at(log, 0)) : SQLITE_OK;

	if (code != SQLITE_OK || log->frames == 0 || u32_at(log->frame) == 0)
		return code;
	memcpy(log->salts, log->frame + 8, sizeof log->salts);
	code = look_behind(log, -1, &behind);
	if (code != SQLITE_OK || behind.commits == 0)
		return code;
	code = read_at(log->file, log->frame, FRAME_BYTES, frame_at(log, behind.last_commit));
	if (code == SQLITE_OK)
		code = compare_pages(log, behind.last_commit, u32_at(log->frame + 4), &same);
	if (code == SQLITE_OK && !same) {
		*ret_bad = 0;
		*ret_commits = behind.commits;
	}
	return code;
}

static int check_frames(
	struct wal *log, bool rebooted, int64_t *ret_bad, int64_t *ret_commits, bool *ret_has_remains)
{
	struct behind behind;
	int64_t i = 0, committed = 0;
	int code = SQLITE_OK;

	for (; i < log->frames; i++) {
		code = read_at(log->file, log->frame, FRAME_BYTES + log->page_bytes, frame_at(log, i));
		if (code != SQLITE_OK || !frame_is_whole(log))
			break;
		if (u32_at(log->frame + 4) != 0) {
			committed = i + 1;
			log->pages_min = u32_at(log->frame + 4);
		}
	}
	*ret_has_remains = committed < i;
	if (code != SQLITE_OK || i == log->frames)
		return code;
	*ret_has_remains |= has_salts(log, log->frame);
	code = look_behind(log, i, &behind);
	*ret_has_remains |= code == SQLITE_OK && behind.last > i;
	if (code != SQLITE_OK || behind.commits == 0)
		return code;
	if (behind.commits == 1 && behind.last_commit == behind.last && rebooted)
		return code;
	*ret_bad = i + 1;
	*ret_commits = behind.commits;
	return code;
}

/* The boot in which the store was last started, as far as the log can be read. */
static bool was_rebooted(struct sqlite *store, const struct sqlite_options *options)
{
	int64_t hi = 0, lo = 0;

	if (options->boot_hi == 0 && options->boot_lo == 0)
		return true; /* the caller does not know */
	sqlite_ask(store->db, "SELECT value FROM meta WHERE key = 6", &hi);
	sqlite_ask(store->db, "SELECT value FROM meta WHERE key = 7", &lo);
	return (uint64_t)hi != options->boot_hi || (uint64_t)lo != options->boot_lo;
}

_Static_assert(META_BOOT_HI == 6 && META_BOOT_LO == 7, "as in was_rebooted()");

static int check(
	struct wal *log, bool rebooted, int64_t *ret_bad, int64_t *ret_commits, bool *ret_has_remains)
{
	unsigned char header[HEADER_BYTES];
	sqlite3_int64 database_bytes = 0;
	int code = read_at(log->file, header, sizeof header, 0);

	if (code == SQLITE_OK)
		code = log->database->pMethods->xFileSize(log->database, &database_bytes);
	if (code != SQLITE_OK)
		return code;
	bool good = take_header(log, header);
	log->frames = (log->bytes - HEADER_BYTES) / (FRAME_BYTES + log->page_bytes);
	log->pages_max = log->frames + database_bytes / log->page_bytes;
	log->frame = malloc(FRAME_BYTES + log->page_bytes);
	if (!log->frame)
		return SQLITE_NOMEM;
	return good ? check_frames(log, rebooted, ret_bad, ret_commits, ret_has_remains)
		    : check_without_header(log, ret_bad, ret_commits);
}

static int complain_damage(
	const struct sqlite *store, const struct wal *log, int64_t bad, int64_t commits, char **ret_complaint)
{
	if (bad == 0)
		return sqlite_complain(ret_complaint, -EBADMSG,
			"%s-wal is damaged in its header: %" PRId64
			" commits in it are not in %s; " SQLITE_CHOICES,
			store->path, commits, store->path);
	return sqlite_complain(ret_complaint, -EBADMSG,
		"%s-wal is damaged in frame %" PRId64 " (byte %" PRId64 "), and %" PRId64
		" commits lie behind it; " SQLITE_CHOICES,
		store->path, bad, frame_at(log, bad - 1), commits);
}

int log_check(struct sqlite *store, const struct sqlite_options *options, bool is_in_doubt,
	bool *ret_has_remains, char **ret_complaint)
{
	struct wal log;
	int64_t bad = -1, commits = 0;
	int code = log_of(store, &log);

	*ret_has_remains = false;
	if (code == SQLITE_OK && log.bytes >= HEADER_BYTES && page_bytes_are_sound(log.page_bytes))
		code = check(
			&log, is_in_doubt || was_rebooted(store, options), &bad, &commits, ret_has_remains);
	free(log.frame);
	if ((code & 0xff) == SQLITE_CORRUPT ||
		code == SQLITE_NOTADB) /* of the database: the log itself has no such code */
		return sqlite_complain_open(store->db, code, store->path, ret_complaint);
	if (code != SQLITE_OK)
		return sqlite_complain(
			ret_complaint, sqlite_fault_of(code), "cannot read %s-wal (%d)", store->path, code);
	return bad < 0 ? 0 : complain_damage(store, &log, bad, commits, ret_complaint);
}

/* ---- the remains of a torn turn ------------------------------------------------------------------------------------ */

/* Behind the last commit: how many frames there are up to it. */
static int find_end(struct wal *log, int64_t *ret_committed)
{
	int64_t committed = 0;

	for (int64_t i = 0; i < log->frames; i++) {
		int code = read_at(log->file, log->frame, FRAME_BYTES + log->page_bytes, frame_at(log, i));
		if (code != SQLITE_OK)
			return code;
		if (!frame_is_whole(log))
			break;
		if (u32_at(log->frame + 4) != 0)
			committed = i + 1;
	}
	*ret_committed = committed;
	return SQLITE_OK;
}

/* A cut amid this leaves remains again, and no more commits than there were. */
static int wipe_behind(struct wal *log, int64_t committed)
{
	static const unsigned char nothing[FRAME_BYTES];
	unsigned char frame[FRAME_BYTES];
	const sqlite3_io_methods *io = log->file->pMethods;

	for (int64_t i = committed; i < log->frames; i++) {
		int code = read_at(log->file, frame, sizeof frame, frame_at(log, i));
		if (code == SQLITE_OK && has_salts(log, frame))
			code = io->xWrite(log->file, nothing, sizeof nothing, frame_at(log, i));
		if (code != SQLITE_OK)
			return code;
	}
	return io->xSync(log->file, SQLITE_SYNC_NORMAL);
}

int log_wipe_remains(struct sqlite *store)
{
	struct wal log;
	unsigned char header[HEADER_BYTES];
	int64_t committed = 0;
	int code = log_of(store, &log);

	if (code == SQLITE_OK)
		code = read_at(log.file, header, sizeof header, 0);
	if (code != SQLITE_OK || !take_header(&log, header))
		return code;
	log.frames = (log.bytes - HEADER_BYTES) / (FRAME_BYTES + log.page_bytes);
	log.frame = malloc(FRAME_BYTES + log.page_bytes);
	code = log.frame ? find_end(&log, &committed) : SQLITE_NOMEM;
	if (code == SQLITE_OK)
		code = wipe_behind(&log, committed);
	free(log.frame);
	/* A file system that copies what it changes may have no room for it. Then the remains stay, and the worst that they do is
	 * to look like damage after another torn turn. */
	return code == SQLITE_FULL ? SQLITE_OK : code;
}
