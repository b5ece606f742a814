-- The first schema. Migrations are append-only: a released file is never edited, and each runs in one
-- transaction together with the user_version that says it ran.
--
-- Times end in _ms: wall times are milliseconds since 1970; deadline_ms, since_ms and crashed_* are on the lease
-- clock (time since boot). 64-bit unsigned numbers (token) are kept as the signed number of the same bits. Numbers of states, codes and
-- kinds are those of src/core. Names of queues, slots, executors and sets of capabilities are ids in `name`.

PRAGMA application_id = 1937010292; -- "stnt"

-- The hot row: narrow, found by rowid, rewritten in place, no index. Every column costs on every write and at every
-- start, so only what SQL looks at is one; `rest` has all other numbers, as src/store/sqlite/tasks.c packs them.
-- No column says NOT NULL: with it every statement that writes several rows would take notes of how to undo them.
CREATE TABLE task (
	seq        INTEGER PRIMARY KEY,
	state      INTEGER,
	queue      INTEGER,
	priority   INTEGER,
	rest       BLOB,
	-- the live claim, for people; all NULL when there is none
	holder     TEXT,
	claimed_ms INTEGER,
	expires_ms INTEGER -- unless it is renewed; NULL where its worker's lease is what counts
) STRICT;

-- What the caller said; read at claim only, so that the hot rows stay close together.
CREATE TABLE task_body (
	seq  INTEGER PRIMARY KEY,
	body BLOB
) STRICT;

-- Results, errors, checkpoints, questions, …: kind is enum extra_kind.
CREATE TABLE task_extra (
	seq  INTEGER NOT NULL,
	kind INTEGER NOT NULL,
	n    INTEGER NOT NULL,
	data BLOB NOT NULL,
	PRIMARY KEY (seq, kind, n)
) STRICT, WITHOUT ROWID;

-- One event per change; the row has one or several in a row, and the number of the last one. How they are put together
-- is known to src/store/sqlite/events.c, what is in each to src/store/record/record.c.
CREATE TABLE event (
	last INTEGER PRIMARY KEY,
	data BLOB NOT NULL
) STRICT;

-- The lifecycle columns of a task as folded from the events that compaction took away.
CREATE TABLE task_base (
	seq  INTEGER PRIMARY KEY,
	data BLOB NOT NULL
) STRICT;

-- A set is a name too: its members in order, each after the character 31.
CREATE TABLE name (
	id        INTEGER PRIMARY KEY,
	text      TEXT NOT NULL,
	principal INTEGER NOT NULL -- who brought it in
) STRICT;

-- Callers' own ids. Generated ones encode the seq and need no row.
CREATE TABLE task_id (
	id  TEXT PRIMARY KEY,
	seq INTEGER NOT NULL
) STRICT, WITHOUT ROWID;
CREATE INDEX task_id_by_seq ON task_id (seq);

-- Who holds a unique key.
CREATE TABLE task_key (
	key BLOB PRIMARY KEY,
	seq INTEGER NOT NULL
) STRICT, WITHOUT ROWID;

-- child waits for parent; dead: the parent failed or was cancelled.
CREATE TABLE edge (
	parent INTEGER NOT NULL,
	child  INTEGER NOT NULL,
	dead   INTEGER NOT NULL,
	PRIMARY KEY (parent, child)
) STRICT, WITHOUT ROWID;
CREATE INDEX edge_by_child ON edge (child);

CREATE TABLE worker (
	id                 TEXT PRIMARY KEY,
	principal          INTEGER NOT NULL, -- whose it is
	instance           INTEGER NOT NULL,
	state              INTEGER NOT NULL,
	ended              INTEGER NOT NULL,
	flags              INTEGER NOT NULL, -- 1: a name of an old door, 2: takes any executor
	token              INTEGER NOT NULL,
	credential         INTEGER NOT NULL, -- number of its own token; 0: it has none
	deadline_ms        INTEGER NOT NULL,
	granted_ms         INTEGER NOT NULL,
	stored_deadline_ms INTEGER NOT NULL,
	slot               INTEGER NOT NULL,
	capabilities       INTEGER NOT NULL,
	executors          INTEGER NOT NULL,
	max_concurrent     INTEGER NOT NULL,
	registered_ms      INTEGER NOT NULL,
	last_beat_ms       INTEGER NOT NULL,
	ended_ms           INTEGER NOT NULL,
	metadata           TEXT NOT NULL,
	-- the process that it says it is, 0 where it did not say; process_host is an id in name
	process_host       INTEGER NOT NULL,
	process_boot_hi    INTEGER NOT NULL,
	process_boot_lo    INTEGER NOT NULL,
	process_pid        INTEGER NOT NULL,
	process_start      INTEGER NOT NULL,
	version            INTEGER NOT NULL -- of its program: an id in name; 0: it did not say
) STRICT, WITHOUT ROWID;

-- crashed_*: the latest crashes, newest first; NULL where there was none.
CREATE TABLE slot (
	name      INTEGER PRIMARY KEY,
	state     INTEGER NOT NULL,
	since_ms  INTEGER NOT NULL,
	restarts  INTEGER NOT NULL,
	trial_by  INTEGER NOT NULL, -- digest of the worker that has the trial
	crashed_1 INTEGER,
	crashed_2 INTEGER,
	crashed_3 INTEGER,
	crashed_4 INTEGER,
	crashed_5 INTEGER,
	crashed_6 INTEGER,
	crashed_7 INTEGER,
	crashed_8 INTEGER
) STRICT;

CREATE TABLE queue (
	name  INTEGER PRIMARY KEY,
	state INTEGER NOT NULL
) STRICT;

-- Where a slot that names no queue gets its work from: each queue after the character 31, in order, as often as it was
-- named.
CREATE TABLE assignment (
	slot   INTEGER PRIMARY KEY,
	queues TEXT NOT NULL
) STRICT;

-- Credentials. hash is SHA-256 of the whole token, which is kept nowhere; queues has each queue after the
-- character 31. expires_ms and revoked_ms are 0 as long as there is no such moment.
CREATE TABLE token (
	id         TEXT PRIMARY KEY,
	principal  INTEGER NOT NULL, -- whose workers and claims are its own
	kind       INTEGER NOT NULL,
	hash       BLOB NOT NULL,
	name       TEXT NOT NULL,
	gate       TEXT NOT NULL, -- '' but for approvers of one gate
	queues     TEXT NOT NULL,
	created_ms INTEGER NOT NULL,
	created_by TEXT NOT NULL,
	expires_ms INTEGER NOT NULL,
	revoked_ms INTEGER NOT NULL,
	revoked_by TEXT NOT NULL
) STRICT, WITHOUT ROWID;

-- Requests that were answered; the index is for their retention.
CREATE TABLE idem (
	principal    BLOB NOT NULL,
	key          BLOB NOT NULL,
	fingerprint  BLOB NOT NULL,
	task         INTEGER NOT NULL,
	created_ms   INTEGER NOT NULL,
	deduplicated INTEGER NOT NULL,
	PRIMARY KEY (principal, key)
) STRICT, WITHOUT ROWID;
CREATE INDEX idem_by_created ON idem (created_ms);

-- Facts about the store as a whole: key is enum meta_key.
CREATE TABLE meta (
	key   INTEGER PRIMARY KEY,
	value INTEGER NOT NULL
) STRICT;

-- The two views are for people and their tools. They show the tables that earlier worker connectors kept.

-- Every worker that ever registered and is still remembered. capabilities is a JSON array. A heartbeat
-- that changes nothing is written late or not at all, so last_heartbeat_at may trail by a minute.
CREATE VIEW worker_registry AS
SELECT
	w.id AS worker_id,
	CASE w.capabilities
		WHEN 0 THEN '[]'
		ELSE '["' ||
			replace(replace(replace(substr(n.text, 2), '\', '\\'), '"', '\"'), char(31), '","') ||
			'"]'
	END AS capabilities,
	w.max_concurrent AS max_concurrent,
	strftime('%Y-%m-%dT%H:%M:%fZ', w.registered_ms / 1000.0, 'unixepoch') AS registered_at,
	strftime('%Y-%m-%dT%H:%M:%fZ', w.last_beat_ms / 1000.0, 'unixepoch') AS last_heartbeat_at,
	CASE
		WHEN w.state <> 4 THEN 'active'
		WHEN w.ended = 3 THEN 'terminated'
		ELSE 'inactive'
	END AS status,
	CASE w.metadata WHEN '' THEN '{}' ELSE w.metadata END AS metadata
FROM worker AS w
LEFT JOIN name AS n ON n.id = w.capabilities
WHERE w.state <> 0;

-- The live claims; those of the past are in the events, so released_at and release_reason are NULL here.
-- Leases run on a clock that has no calendar: expires_at is the last known renewal plus the granted length.
CREATE VIEW worker_task_claims AS
SELECT
	coalesce(
		(SELECT id FROM task_id WHERE task_id.seq = t.seq),
		't-' || (
			WITH RECURSIVE base36 (rest, text) AS (
				SELECT t.seq, ''
				UNION ALL
				SELECT rest / 36, substr('0123456789abcdefghijklmnopqrstuvwxyz', rest % 36 + 1, 1) || text
				FROM base36
				WHERE rest > 0
			)
			SELECT text FROM base36 WHERE rest = 0
		)
	) AS vtid,
	t.holder AS worker_id,
	strftime('%Y-%m-%dT%H:%M:%fZ', t.claimed_ms / 1000.0, 'unixepoch') AS claimed_at,
	strftime('%Y-%m-%dT%H:%M:%fZ', coalesce(t.expires_ms, w.last_beat_ms + w.granted_ms) / 1000.0, 'unixepoch')
		AS expires_at,
	NULL AS released_at,
	NULL AS release_reason
FROM task AS t
LEFT JOIN worker AS w ON w.id = t.holder
WHERE t.holder IS NOT NULL;

PRAGMA user_version = 1;
