-- Small records by kind: what there are some of, each whole in one row. A new noun is a kind and no table. Queues, slots and
-- assignments had tables of their own; a row of theirs whose name is unknown stops the migration.
--
-- kind is enum small_kind, key the name that the record is about, data as src/store/record/small.c writes it.
CREATE TABLE small (
	kind INTEGER NOT NULL,
	key  TEXT NOT NULL,
	data BLOB NOT NULL,
	PRIMARY KEY (kind, key)
) STRICT, WITHOUT ROWID;

INSERT INTO small (kind, key, data)
SELECT 1, n.text, CAST(q.state AS BLOB) FROM queue AS q LEFT JOIN name AS n ON n.id = q.name;

INSERT INTO small (kind, key, data)
SELECT 2, n.text, CAST(
	s.state || ' ' || s.since_ms || ' ' || s.restarts || ' ' || s.trial_by
	|| ' ' || coalesce(s.crashed_1, '-') || ' ' || coalesce(s.crashed_2, '-')
	|| ' ' || coalesce(s.crashed_3, '-') || ' ' || coalesce(s.crashed_4, '-')
	|| ' ' || coalesce(s.crashed_5, '-') || ' ' || coalesce(s.crashed_6, '-')
	|| ' ' || coalesce(s.crashed_7, '-') || ' ' || coalesce(s.crashed_8, '-') AS BLOB)
FROM slot AS s LEFT JOIN name AS n ON n.id = s.name;

INSERT INTO small (kind, key, data)
SELECT 3, n.text, CAST(a.queues AS BLOB) FROM assignment AS a LEFT JOIN name AS n ON n.id = a.slot;

DROP TABLE queue;
DROP TABLE slot;
DROP TABLE assignment;

PRAGMA user_version = 2;
