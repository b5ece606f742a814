-- The statements of the SQLite backend, prepared once when a store is opened.
--
--   -- name: put_task        the statement that follows is SQL_PUT_TASK
--   -- list: task            the words that follow stand where {task} stands; {?task} is a ? for each
--
-- Parameters and columns are bound and read in the order of the list; the C beside it counts along.

-- list: task
seq, state, queue, priority, rest

-- list: claim
holder, claimed_ms, expires_ms

-- list: worker
id, principal, instance, state, ended, flags, token, credential, deadline_ms, granted_ms, stored_deadline_ms, slot,
capabilities, executors, max_concurrent, registered_ms, last_beat_ms, ended_ms, metadata, process_host,
process_boot_hi, process_boot_lo, process_pid, process_start, version

-- list: token
id, principal, kind, hash, name, gate, queues, created_ms, created_by, expires_ms, revoked_ms, revoked_by

-- name: begin
BEGIN IMMEDIATE

-- name: commit
COMMIT

-- name: rollback
ROLLBACK

-- Tasks and bodies, as many as are pending. ROLLBACK, as whoever runs it would: then SQLite takes no notes of how to undo
-- the rows before one that cannot be.

-- name: insert_tasks
INSERT OR ROLLBACK INTO task ({task}, crc) SELECT a, b, c, d, e, i FROM pending_new_task

-- name: replace_tasks
REPLACE INTO task ({task}, {claim}, crc) SELECT a, b, c, d, e, f, g, h, i FROM pending_task

-- name: put_bodies
REPLACE INTO task_body (seq, body, crc) SELECT a, b, c FROM pending_body

-- name: get_task
SELECT {task}, holder, crc FROM task WHERE seq = ?

-- name: page_tasks
SELECT {task}, holder, crc FROM task WHERE seq > ? ORDER BY seq LIMIT ?

-- name: page_outlines
SELECT {task}, holder, crc FROM task WHERE seq < ? ORDER BY seq DESC LIMIT ?

-- Final states are 10 to 12.
-- name: scan_live_tasks
SELECT {task}, holder, crc FROM task WHERE state < 10 OR state > 12 ORDER BY seq

-- name: delete_task
DELETE FROM task WHERE seq = ?

-- name: page_bodies
SELECT seq, body, crc FROM task_body WHERE seq >= ? ORDER BY seq LIMIT ?

-- name: scan_bodies
SELECT seq, body, crc FROM task_body ORDER BY seq

-- name: delete_body
DELETE FROM task_body WHERE seq = ?

-- name: put_extra
REPLACE INTO task_extra (seq, kind, n, data, crc) VALUES (?, ?, ?, ?, ?)

-- name: get_extra
SELECT data, crc FROM task_extra WHERE seq = ? AND kind = ? AND n = ?

-- name: scan_extras
SELECT data, crc, seq, kind, n FROM task_extra ORDER BY seq, kind, n

-- name: delete_extra
DELETE FROM task_extra WHERE seq = ? AND kind = ? AND n = ?

-- name: delete_extras
DELETE FROM task_extra WHERE seq = ?

-- name: put_base
REPLACE INTO task_base (seq, data, crc) VALUES (?, ?, ?)

-- name: get_base
SELECT seq, data, crc FROM task_base WHERE seq = ?

-- name: page_bases
SELECT seq, data, crc FROM task_base WHERE seq > ? ORDER BY seq LIMIT ?

-- name: delete_base
DELETE FROM task_base WHERE seq = ?

-- name: put_id
REPLACE INTO task_id (id, seq, crc) VALUES (?, ?, ?)

-- name: find_id
SELECT id, seq, crc FROM task_id WHERE id = ?

-- name: scan_ids
SELECT id, seq, crc FROM task_id ORDER BY id

-- name: delete_ids
DELETE FROM task_id WHERE seq = ?

-- name: put_key
REPLACE INTO task_key (key, seq, crc) VALUES (?, ?, ?)

-- name: find_key
SELECT key, seq, crc FROM task_key WHERE key = ?

-- name: scan_keys
SELECT key, seq, crc FROM task_key ORDER BY key

-- name: delete_key
DELETE FROM task_key WHERE key = ?

-- name: put_edge
REPLACE INTO edge (parent, child, dead, crc) VALUES (?, ?, ?, ?)

-- name: delete_edge
DELETE FROM edge WHERE parent = ? AND child = ?

-- name: delete_edges_down
DELETE FROM edge WHERE parent = ?

-- name: delete_edges_up
DELETE FROM edge WHERE child = ?

-- name: children
SELECT parent, child, dead, crc FROM edge WHERE parent = ? ORDER BY child

-- name: parents
SELECT parent, child, dead, crc FROM edge WHERE child = ? ORDER BY parent

-- name: scan_edges
SELECT parent, child, dead, crc FROM edge ORDER BY parent, child

-- Events, in packs.

-- name: put_events
INSERT INTO event (last, data, crc) VALUES (?, ?, ?)

-- name: trim_events
REPLACE INTO event (last, data, crc) VALUES (?, ?, ?)

-- name: page_events
SELECT last, data, crc FROM event WHERE last > ? ORDER BY last LIMIT ?

-- name: delete_events
DELETE FROM event WHERE last <= ?

-- Everything else.

-- name: put_name
REPLACE INTO name (id, text, principal, crc) VALUES (?, ?, ?, ?)

-- name: scan_names
SELECT id, text, principal, crc FROM name ORDER BY id

-- name: put_worker
REPLACE INTO worker ({worker}, crc) VALUES ({?worker}, ?)

-- name: get_worker
SELECT {worker}, crc FROM worker WHERE id = ?

-- name: scan_workers
SELECT {worker}, crc FROM worker ORDER BY id

-- name: delete_worker
DELETE FROM worker WHERE id = ?

-- name: put_small
REPLACE INTO small (kind, key, data, crc) VALUES (?, ?, ?, ?)

-- name: get_small
SELECT kind, key, data, crc FROM small WHERE kind = ? AND key = ?

-- name: page_small
SELECT kind, key, data, crc FROM small WHERE kind = ? AND key > ? ORDER BY key LIMIT ?

-- name: delete_small
DELETE FROM small WHERE kind = ? AND key = ?

-- Small records that no backup has.

-- name: put_secret
REPLACE INTO secret (kind, key, data, crc) VALUES (?, ?, ?, ?)

-- name: get_secret
SELECT kind, key, data, crc FROM secret WHERE kind = ? AND key = ?

-- name: page_secret
SELECT kind, key, data, crc FROM secret WHERE kind = ? AND key > ? ORDER BY key LIMIT ?

-- name: delete_secret
DELETE FROM secret WHERE kind = ? AND key = ?

-- name: put_token
REPLACE INTO token ({token}, crc) VALUES ({?token}, ?)

-- name: scan_tokens
SELECT {token}, crc FROM token ORDER BY id

-- name: delete_token
DELETE FROM token WHERE id = ?

-- name: put_idem
REPLACE INTO idem (principal, key, fingerprint, task, created_ms, deduplicated, crc) VALUES (?, ?, ?, ?, ?, ?, ?)

-- name: get_idem
SELECT principal, key, fingerprint, task, created_ms, deduplicated, crc FROM idem WHERE principal = ? AND key = ?

-- name: scan_idems
SELECT principal, key, fingerprint, task, created_ms, deduplicated, crc FROM idem ORDER BY principal, key

-- name: delete_idems
DELETE FROM idem WHERE (principal, key) IN
	(SELECT principal, key FROM idem WHERE created_ms < ? ORDER BY created_ms LIMIT ?)

-- name: put_meta
REPLACE INTO meta (key, value, crc) VALUES (?, ?, ?)

-- name: get_meta
SELECT key, value, crc FROM meta WHERE key = ?

-- What the store looks like as a whole. META_EVENT_BASE is 4. A caller's id looks like a generated one when
-- nothing but base 36 follows "t-"; '.' is the character after '-'.

-- name: facts
SELECT
	max(coalesce((SELECT max(last) FROM event), 0), coalesce((SELECT value FROM meta WHERE key = 4), 0)),
	coalesce((SELECT max(seq) FROM task), 0),
	(SELECT count(*) FROM task_id WHERE id > 't-' AND id < 't.' AND id NOT GLOB 't-*[^0-9a-z]*'),
	(SELECT count(*) FROM task)
