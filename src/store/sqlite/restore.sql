-- What a restore changes in the copy before it takes the store's place, in one transaction. The keys are
-- those of enum meta_key.

BEGIN IMMEDIATE;

-- META_GENERATION: claims made after the backup are of an older generation, and so stale.
INSERT INTO meta (key, value) VALUES (1, 2)
ON CONFLICT (key) DO UPDATE SET value = value + 1;

-- META_TASK_FLOOR: ids given out after the backup are not given out again.
REPLACE INTO meta (key, value) VALUES (3, 1000000 + max(
	coalesce((SELECT max(seq) FROM task), 0),
	coalesce((SELECT value FROM meta WHERE key = 3), 0)));

-- META_RESTORED: the next start frees every claim.
REPLACE INTO meta (key, value) VALUES (5, 1);

COMMIT;
