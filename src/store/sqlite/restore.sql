-- What a restore changes in the copy before it takes the store's place, in one transaction. The keys are
-- those of enum meta_key; temp.given_out has what the store in that place may have given out, by the same keys.

BEGIN IMMEDIATE;

-- META_GENERATION: claims of the store that goes and claims made after the backup are of an older generation,
-- and so stale.
REPLACE INTO meta (key, value) VALUES (1, 1 + max(
	coalesce((SELECT value FROM meta WHERE key = 1), 1),
	(SELECT value FROM temp.given_out WHERE key = 1)));

-- META_STARTS: the next start is a new one to both, and so are its tokens.
REPLACE INTO meta (key, value) VALUES (2, max(
	coalesce((SELECT value FROM meta WHERE key = 2), 0),
	(SELECT value FROM temp.given_out WHERE key = 2)));

-- META_TASK_FLOOR: ids given out after the backup are not given out again.
REPLACE INTO meta (key, value) VALUES (3, 1000000 + max(
	coalesce((SELECT max(seq) FROM task), 0),
	coalesce((SELECT value FROM meta WHERE key = 3), 0),
	(SELECT value FROM temp.given_out WHERE key = 3)));

-- META_RESTORED: the next start frees every claim, and hands out nothing if the store that goes did not.
REPLACE INTO meta (key, value) VALUES (5, 1 + (SELECT value FROM temp.given_out WHERE key = 9));

-- Login codes and browser sessions are of the store that goes, or older: nobody comes in with them.
DELETE FROM small WHERE kind = 15;
-- So are join codes (TOKEN_JOIN, with their SMALL_TOKEN).
DELETE FROM small WHERE kind = 60 AND key IN (SELECT id FROM token WHERE kind = 10);
DELETE FROM token WHERE kind = 10;
-- META_KEY_OF_ADMIN, and the keys of derived tokens: what was signed before is no longer valid. The start makes a new key.
REPLACE INTO meta (key, value) VALUES (15, 0);
DELETE FROM secret;

UPDATE meta SET crc = seal(key, value) WHERE key IN (1, 2, 3, 5, 15);

COMMIT;
