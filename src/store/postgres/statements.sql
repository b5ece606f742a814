-- The statements of the PostgreSQL backend, prepared once in each session. The form is that of SQLite's statements.sql.
--
-- Parameters stand in the order of the key's columns, columns in that of the table (row.c counts along). A put takes one array for
-- each column, a delete one for each column of the key.

-- list: task
seq, claimed_ms, expires_ms, state, queue, priority, rest, holder, crc

-- list: worker
id, principal, instance, state, ended, flags, token, credential, deadline_ms, granted_ms, stored_deadline_ms, slot,
capabilities, executors, max_concurrent, registered_ms, last_beat_ms, ended_ms, metadata, process_host,
process_boot_hi, process_boot_lo, process_pid, process_start, version, crc

-- list: token
id, principal, kind, hash, name, gate, queues, created_ms, created_by, expires_ms, revoked_ms, revoked_by, crc

-- list: idem
principal, key, fingerprint, task, created_ms, deduplicated, crc

-- The fence, the first statement of every turn: $1 our term, $2 the number of the turn. Without the lead or the predecessor the
-- term is NULL, and nothing of the turn is written. The lead's row stays shared-locked until the turn has committed, so
-- a take-over comes either before it or behind it.

-- name: fence
INSERT INTO turn (turn, term) VALUES ($2::int8, (SELECT l.term FROM lead AS l WHERE l.term = $1::int8
AND EXISTS (SELECT FROM turn AS p WHERE p.turn = $2::int8 - 1) FOR SHARE OF l))

-- name: prune_turns
DELETE FROM turn WHERE turn < $1

-- name: resign
UPDATE lead SET holder = NULL WHERE term = $1

-- Puts.

-- name: put_task
INSERT INTO task ({task}) SELECT * FROM
unnest($1::int8[], $2::int8[], $3::int8[], $4::int8[], $5::int8[], $6::int8[], $7::bytea[], $8::bytea[], $9::int4[])
ON CONFLICT (seq) DO UPDATE SET claimed_ms = excluded.claimed_ms, expires_ms = excluded.expires_ms, state = excluded.state,
queue = excluded.queue, priority = excluded.priority, rest = excluded.rest, holder = excluded.holder, crc = excluded.crc

-- name: put_body
INSERT INTO task_body (seq, body, crc) SELECT * FROM unnest($1::int8[], $2::bytea[], $3::int4[])
ON CONFLICT (seq) DO UPDATE SET body = excluded.body, crc = excluded.crc

-- name: put_extra
INSERT INTO task_extra (seq, kind, n, data, crc) SELECT * FROM
unnest($1::int8[], $2::int8[], $3::int8[], $4::bytea[], $5::int4[])
ON CONFLICT (seq, kind, n) DO UPDATE SET data = excluded.data, crc = excluded.crc

-- name: put_event
INSERT INTO event (last, data, crc) SELECT * FROM unnest($1::int8[], $2::bytea[], $3::int4[])
ON CONFLICT (last) DO UPDATE SET data = excluded.data, crc = excluded.crc

-- name: put_base
INSERT INTO task_base (seq, data, crc) SELECT * FROM unnest($1::int8[], $2::bytea[], $3::int4[])
ON CONFLICT (seq) DO UPDATE SET data = excluded.data, crc = excluded.crc

-- name: put_name
INSERT INTO name (id, text, principal, crc) SELECT * FROM unnest($1::int8[], $2::bytea[], $3::int8[], $4::int4[])
ON CONFLICT (id) DO UPDATE SET text = excluded.text, principal = excluded.principal, crc = excluded.crc

-- name: put_id
INSERT INTO task_id (id, seq, crc) SELECT * FROM unnest($1::bytea[], $2::int8[], $3::int4[])
ON CONFLICT (id) DO UPDATE SET seq = excluded.seq, crc = excluded.crc

-- name: put_key
INSERT INTO task_key (key, seq, crc) SELECT * FROM unnest($1::bytea[], $2::int8[], $3::int4[])
ON CONFLICT (key) DO UPDATE SET seq = excluded.seq, crc = excluded.crc

-- name: put_edge
INSERT INTO edge (parent, child, dead, crc) SELECT * FROM unnest($1::int8[], $2::int8[], $3::int8[], $4::int4[])
ON CONFLICT (parent, child) DO UPDATE SET dead = excluded.dead, crc = excluded.crc

-- name: put_worker
INSERT INTO worker ({worker}) SELECT * FROM
unnest($1::bytea[], $2::int8[], $3::int8[], $4::int8[], $5::int8[], $6::int8[], $7::int8[], $8::int8[], $9::int8[],
$10::int8[], $11::int8[], $12::int8[], $13::int8[], $14::int8[], $15::int8[], $16::int8[], $17::int8[], $18::int8[],
$19::bytea[], $20::int8[], $21::int8[], $22::int8[], $23::int8[], $24::int8[], $25::int8[], $26::int4[])
ON CONFLICT (id) DO UPDATE SET principal = excluded.principal, instance = excluded.instance, state = excluded.state,
ended = excluded.ended, flags = excluded.flags, token = excluded.token, credential = excluded.credential,
deadline_ms = excluded.deadline_ms, granted_ms = excluded.granted_ms, stored_deadline_ms = excluded.stored_deadline_ms,
slot = excluded.slot, capabilities = excluded.capabilities, executors = excluded.executors,
max_concurrent = excluded.max_concurrent, registered_ms = excluded.registered_ms, last_beat_ms = excluded.last_beat_ms,
ended_ms = excluded.ended_ms, metadata = excluded.metadata, process_host = excluded.process_host,
process_boot_hi = excluded.process_boot_hi, process_boot_lo = excluded.process_boot_lo,
process_pid = excluded.process_pid, process_start = excluded.process_start, version = excluded.version, crc = excluded.crc

-- name: put_small
INSERT INTO small (kind, key, data, crc) SELECT * FROM unnest($1::int8[], $2::bytea[], $3::bytea[], $4::int4[])
ON CONFLICT (kind, key) DO UPDATE SET data = excluded.data, crc = excluded.crc

-- name: put_secret
INSERT INTO secret (kind, key, data, crc) SELECT * FROM unnest($1::int8[], $2::bytea[], $3::bytea[], $4::int4[])
ON CONFLICT (kind, key) DO UPDATE SET data = excluded.data, crc = excluded.crc

-- name: put_token
INSERT INTO token ({token}) SELECT * FROM
unnest($1::bytea[], $2::int8[], $3::int8[], $4::bytea[], $5::bytea[], $6::bytea[], $7::bytea[], $8::int8[], $9::bytea[],
$10::int8[], $11::int8[], $12::bytea[], $13::int4[])
ON CONFLICT (id) DO UPDATE SET principal = excluded.principal, kind = excluded.kind, hash = excluded.hash,
name = excluded.name, gate = excluded.gate, queues = excluded.queues, created_ms = excluded.created_ms,
created_by = excluded.created_by, expires_ms = excluded.expires_ms, revoked_ms = excluded.revoked_ms,
revoked_by = excluded.revoked_by, crc = excluded.crc

-- name: put_idem
INSERT INTO idem ({idem}) SELECT * FROM
unnest($1::bytea[], $2::bytea[], $3::bytea[], $4::int8[], $5::int8[], $6::int8[], $7::int4[])
ON CONFLICT (principal, key) DO UPDATE SET fingerprint = excluded.fingerprint, task = excluded.task,
created_ms = excluded.created_ms, deduplicated = excluded.deduplicated, crc = excluded.crc

-- name: put_meta
INSERT INTO meta (key, value, crc) SELECT * FROM unnest($1::int8[], $2::int8[], $3::int4[])
ON CONFLICT (key) DO UPDATE SET value = excluded.value, crc = excluded.crc

-- Deletes.

-- name: delete_extra
DELETE FROM task_extra AS t USING unnest($1::int8[], $2::int8[], $3::int8[]) AS k (seq, kind, n)
WHERE t.seq = k.seq AND t.kind = k.kind AND t.n = k.n

-- name: delete_base
DELETE FROM task_base WHERE seq = ANY ($1::int8[])

-- name: delete_key
DELETE FROM task_key WHERE key = ANY ($1::bytea[])

-- name: delete_edge
DELETE FROM edge AS t USING unnest($1::int8[], $2::int8[]) AS k (parent, child)
WHERE t.parent = k.parent AND t.child = k.child

-- name: delete_worker
DELETE FROM worker WHERE id = ANY ($1::bytea[])

-- name: delete_small
DELETE FROM small AS t USING unnest($1::int8[], $2::bytea[]) AS k (kind, key) WHERE t.kind = k.kind AND t.key = k.key

-- name: delete_secret
DELETE FROM secret AS t USING unnest($1::int8[], $2::bytea[]) AS k (kind, key) WHERE t.kind = k.kind AND t.key = k.key

-- name: delete_token
DELETE FROM token WHERE id = ANY ($1::bytea[])

-- name: delete_inbox
DELETE FROM inbox WHERE id = ANY ($1::int8[])

-- A task with all that hangs on it; its baseline stays.

-- name: drop_tasks
DELETE FROM task WHERE seq = ANY ($1::int8[])

-- name: drop_bodies
DELETE FROM task_body WHERE seq = ANY ($1::int8[])

-- name: drop_extras
DELETE FROM task_extra WHERE seq = ANY ($1::int8[])

-- name: drop_edges_down
DELETE FROM edge WHERE parent = ANY ($1::int8[])

-- name: drop_edges_up
DELETE FROM edge WHERE child = ANY ($1::int8[])

-- name: drop_ids
DELETE FROM task_id WHERE seq = ANY ($1::int8[])

-- name: drop_events
DELETE FROM event WHERE last <= $1

-- name: drop_idems
DELETE FROM idem WHERE (principal, key) IN
(SELECT principal, key FROM idem WHERE created_ms < $1 ORDER BY created_ms LIMIT $2)

-- Look-ups.

-- name: get_task
SELECT {task} FROM task WHERE seq = $1

-- name: get_body
SELECT seq, body, crc FROM task_body WHERE seq = $1

-- name: get_extra
SELECT seq, kind, n, data, crc FROM task_extra WHERE seq = $1 AND kind = $2 AND n = $3

-- name: get_base
SELECT seq, data, crc FROM task_base WHERE seq = $1

-- name: get_id
SELECT id, seq, crc FROM task_id WHERE id = $1

-- name: get_key
SELECT key, seq, crc FROM task_key WHERE key = $1

-- name: get_worker
SELECT {worker} FROM worker WHERE id = $1

-- name: get_small
SELECT kind, key, data, crc FROM small WHERE kind = $1 AND key = $2

-- name: get_secret
SELECT kind, key, data, crc FROM secret WHERE kind = $1 AND key = $2

-- name: get_idem
SELECT {idem} FROM idem WHERE principal = $1 AND key = $2

-- name: get_meta
SELECT key, value, crc FROM meta WHERE key = $1

-- Several rows.

-- name: children
SELECT parent, child, dead, crc FROM edge WHERE parent = $1 ORDER BY child

-- name: parents
SELECT parent, child, dead, crc FROM edge WHERE child = $1 ORDER BY parent

-- name: page_edges
SELECT parent, child, dead, crc FROM edge WHERE (parent, child) > ($1, $2) ORDER BY parent, child LIMIT $3

-- name: page_bodies
SELECT seq, body, crc FROM task_body WHERE seq > $1 ORDER BY seq LIMIT $2

-- name: page_extras
SELECT seq, kind, n, data, crc FROM task_extra WHERE (seq, kind, n) > ($1, $2, $3) ORDER BY seq, kind, n LIMIT $4

-- name: page_ids
SELECT id, seq, crc FROM task_id WHERE id > $1 ORDER BY id LIMIT $2

-- name: page_keys
SELECT key, seq, crc FROM task_key WHERE key > $1 ORDER BY key LIMIT $2

-- name: page_idems
SELECT {idem} FROM idem WHERE (principal, key) > ($1, $2) ORDER BY principal, key LIMIT $3

-- name: page_names
SELECT id, text, principal, crc FROM name WHERE id > $1 ORDER BY id LIMIT $2

-- name: page_workers
SELECT {worker} FROM worker WHERE id > $1 ORDER BY id LIMIT $2

-- name: page_tokens
SELECT {token} FROM token WHERE id > $1 ORDER BY id LIMIT $2

-- Final states are 10 to 12.
-- name: page_live_tasks
SELECT {task} FROM task WHERE seq > $1 AND (state < 10 OR state > 12) ORDER BY seq LIMIT $2

-- name: page_tasks
SELECT {task} FROM task WHERE seq > $1 ORDER BY seq LIMIT $2

-- name: page_outlines
SELECT {task} FROM task WHERE seq < $1 ORDER BY seq DESC LIMIT $2

-- name: page_events
SELECT last, data, crc FROM event WHERE last > $1 ORDER BY last LIMIT $2

-- name: page_bases
SELECT seq, data, crc FROM task_base WHERE seq > $1 ORDER BY seq LIMIT $2

-- name: page_small
SELECT kind, key, data, crc FROM small WHERE kind = $1 AND key > $2 ORDER BY key LIMIT $3

-- name: page_secret
SELECT kind, key, data, crc FROM secret WHERE kind = $1 AND key > $2 ORDER BY key LIMIT $3

-- name: page_inbox
SELECT id, queue, role, task FROM inbox WHERE id > $1 ORDER BY id LIMIT $2

-- Every row of the small tables is looked at before the start believes one of them.

-- name: all_meta
SELECT key, value, crc FROM meta ORDER BY key

-- META_EVENT_BASE is 4. A caller's id looks like a generated one when nothing but base 36 follows "t-".

-- name: facts
SELECT
greatest(coalesce((SELECT max(last) FROM event), 0), coalesce((SELECT value FROM meta WHERE key = 4), 0)),
coalesce((SELECT max(seq) FROM task), 0),
(SELECT count(*) FROM task_id WHERE id > 't-'::bytea AND id < 't.'::bytea AND encode(id, 'escape') ~ '^t-[0-9a-z]+$'),
(SELECT count(*) FROM task)
