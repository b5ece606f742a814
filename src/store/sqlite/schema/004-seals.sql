-- A checksum in every row that had none: seal() is the CRC32C of the columns before it, as src/store/sqlite/seal.c computes it. The
-- rows that are there get theirs here, so no row of these tables is without one.
--
-- `secret` has small records that no backup may have: the keys that sign derived tokens. It has a table of its own, because its
-- few rows fit into one page that never splits: what is deleted from a copy of that page is nowhere else in the copy.
CREATE TABLE secret (
	kind INTEGER NOT NULL,
	key  TEXT NOT NULL,
	data BLOB NOT NULL,
	crc  INTEGER,
	PRIMARY KEY (kind, key)
) STRICT, WITHOUT ROWID;

-- META_KEY_OF_ADMIN: derived tokens of this store were signed with a key that follows from the admin's token, and the next start takes
-- that key over. A store that was never started has no such tokens.
REPLACE INTO meta (key, value)
SELECT 15, 1 WHERE coalesce((SELECT value FROM meta WHERE key = 2), 0) > 0;

ALTER TABLE task_base ADD COLUMN crc INTEGER;
ALTER TABLE name ADD COLUMN crc INTEGER;
ALTER TABLE task_id ADD COLUMN crc INTEGER;
ALTER TABLE task_key ADD COLUMN crc INTEGER;
ALTER TABLE edge ADD COLUMN crc INTEGER;
ALTER TABLE worker ADD COLUMN crc INTEGER;
ALTER TABLE small ADD COLUMN crc INTEGER;
ALTER TABLE token ADD COLUMN crc INTEGER;
ALTER TABLE idem ADD COLUMN crc INTEGER;
ALTER TABLE meta ADD COLUMN crc INTEGER;

UPDATE task_base SET crc = seal(seq, data);
UPDATE name SET crc = seal(id, text, principal);
UPDATE task_id SET crc = seal(id, seq);
UPDATE task_key SET crc = seal(key, seq);
UPDATE edge SET crc = seal(parent, child, dead);
UPDATE worker SET crc = seal(
	id, principal, instance, state, ended, flags, token, credential, deadline_ms, granted_ms, stored_deadline_ms, slot,
	capabilities, executors, max_concurrent, registered_ms, last_beat_ms, ended_ms, metadata, process_host,
	process_boot_hi, process_boot_lo, process_pid, process_start, version);
UPDATE small SET crc = seal(kind, key, data);
UPDATE token SET crc = seal(
	id, principal, kind, hash, name, gate, queues, created_ms, created_by, expires_ms, revoked_ms, revoked_by);
UPDATE idem SET crc = seal(principal, key, fingerprint, task, created_ms, deduplicated);
UPDATE meta SET crc = seal(key, value);

PRAGMA user_version = 4;
