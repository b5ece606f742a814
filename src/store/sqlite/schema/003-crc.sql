-- A checksum in the rows that hold what callers said and what happened: CRC32C of the row, as src/store/sqlite/seal.c computes it. A
-- row of before has none (NULL) until it is written again; META_UNSEALED_TASK and META_UNSEALED_EVENT say up to which
-- number there may be such rows.
ALTER TABLE task ADD COLUMN crc INTEGER;
ALTER TABLE task_body ADD COLUMN crc INTEGER;
ALTER TABLE task_extra ADD COLUMN crc INTEGER;
ALTER TABLE event ADD COLUMN crc INTEGER;

REPLACE INTO meta (key, value) VALUES
	(13, coalesce((SELECT max(seq) FROM task), (SELECT max(seq) FROM task_extra), -1)),
	(14, coalesce((SELECT max(last) FROM event), -1));

PRAGMA user_version = 3;
