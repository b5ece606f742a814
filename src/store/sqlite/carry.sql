-- What a restore keeps of the store that goes, in one transaction. temp.old_token has the tokens of that store, temp.old_slot its
-- slots that are quarantined or on trial, temp.old_more its SMALL_TOKEN, temp.old_fact the last number that it gave to a principal (8; 0 for
-- another store than the backup is of), and the time (0, in ms).

BEGIN IMMEDIATE;

-- Join codes (TOKEN_JOIN) of the backup go, as those of the store that goes do: nobody is told of them.
DELETE FROM small WHERE kind = 60 AND key IN (SELECT id FROM token WHERE kind = 10);
DELETE FROM token WHERE kind = 10;

-- A token that was revoked since the backup stays revoked.
UPDATE token SET revoked_ms = o.revoked_ms, revoked_by = o.revoked_by, crc = NULL
FROM temp.old_token AS o
WHERE o.id = token.id AND o.revoked_ms <> 0 AND token.revoked_ms = 0;

-- A secret that was replaced since the backup stays replaced: its holder has the new one, and the old one may be in other hands.
UPDATE token SET hash = o.hash, expires_ms = o.expires_ms, crc = NULL
FROM temp.old_token AS o
WHERE o.id = token.id AND o.hash <> token.hash;
REPLACE INTO small (kind, key, data) SELECT 60, key, data FROM temp.old_more WHERE key IN (SELECT id FROM token);

-- So does a token that ended there so long ago that its row is gone: the store gave it its number, and does not have it any more.
UPDATE token SET revoked_ms = (SELECT value FROM temp.old_fact WHERE key = 0), revoked_by = 'restore', crc = NULL
WHERE revoked_ms = 0 AND id NOT IN (SELECT id FROM temp.old_token)
	AND principal <= (SELECT value FROM temp.old_fact WHERE key = 8);

UPDATE token SET crc = seal(
	id, principal, kind, hash, name, gate, queues, created_ms, created_by, expires_ms, revoked_ms, revoked_by)
WHERE crc IS NULL;

-- SMALL_RESTORED, with a number of enum restored_token: tokens that are valid again, that were valid and are gone, and that ended.
DELETE FROM small WHERE kind = 10;
INSERT INTO small (kind, key, data)
SELECT 10, id, CAST('3 ' || name AS BLOB) FROM token WHERE revoked_by = 'restore'
	AND id NOT IN (SELECT id FROM temp.old_token);
INSERT INTO small (kind, key, data)
SELECT 10, id, CAST('1 ' || name AS BLOB) FROM token
WHERE revoked_ms = 0 AND (expires_ms = 0 OR expires_ms > (SELECT value FROM temp.old_fact WHERE key = 0))
	AND id NOT IN (SELECT id FROM temp.old_token);
INSERT INTO small (kind, key, data)
SELECT 10, id, CAST('2 ' || name AS BLOB) FROM temp.old_token
WHERE revoked_ms = 0 AND (expires_ms = 0 OR expires_ms > (SELECT value FROM temp.old_fact WHERE key = 0))
	AND id NOT IN (SELECT id FROM token);

-- SMALL_SLOT: a slot that crashed too often stays out of service. Its name may be new to the copy.
INSERT INTO name (id, text, principal)
SELECT (SELECT coalesce(max(id), 0) FROM name) + row_number() OVER (ORDER BY o.key), o.key, o.principal
FROM temp.old_slot AS o WHERE o.key NOT IN (SELECT text FROM name);
UPDATE name SET crc = seal(id, text, principal) WHERE crc IS NULL;
REPLACE INTO small (kind, key, data) SELECT 2, key, data FROM temp.old_slot;

UPDATE small SET crc = seal(kind, key, data) WHERE crc IS NULL;

COMMIT;
