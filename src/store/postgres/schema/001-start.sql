-- The first schema. Migrations are append-only, as those of SQLite: a released file is never edited. They run in the transaction
-- that takes the lead, which notes their number in lead.schema. A step that an older server could not live with raises schema_min.
--
-- The tables are those of SQLite. Texts are bytea, because a key may be any bytes and is compared byte by byte, whatever
-- encoding and collation the database has. `crc` is the CRC32C of all columns before it, as src/store/postgres/row.c computes it.
-- Columns with eight bytes stand first: no byte is lost to alignment.

CREATE TABLE task (
	seq        bigint PRIMARY KEY,
	claimed_ms bigint,
	expires_ms bigint,
	state      bigint NOT NULL,
	queue      bigint NOT NULL,
	priority   bigint NOT NULL,
	rest       bytea NOT NULL,
	holder     bytea,
	crc        int NOT NULL
) WITH (fillfactor = 60);
ALTER TABLE task ALTER COLUMN rest SET STORAGE PLAIN;

CREATE TABLE task_body (seq bigint PRIMARY KEY, body bytea NOT NULL, crc int NOT NULL);

CREATE TABLE task_extra (
	seq bigint, kind bigint, n bigint, data bytea NOT NULL, crc int NOT NULL, PRIMARY KEY (seq, kind, n)
);

CREATE TABLE event (last bigint PRIMARY KEY, data bytea NOT NULL, crc int NOT NULL) WITH (toast_tuple_target = 8160);

CREATE TABLE task_base (seq bigint PRIMARY KEY, data bytea NOT NULL, crc int NOT NULL);

CREATE TABLE name (id bigint PRIMARY KEY, text bytea NOT NULL, principal bigint NOT NULL, crc int NOT NULL);

CREATE TABLE task_id (id bytea PRIMARY KEY, seq bigint NOT NULL, crc int NOT NULL);
CREATE INDEX task_id_by_seq ON task_id (seq);

CREATE TABLE task_key (key bytea PRIMARY KEY, seq bigint NOT NULL, crc int NOT NULL);

CREATE TABLE edge (parent bigint, child bigint, dead bigint NOT NULL, crc int NOT NULL, PRIMARY KEY (parent, child));
CREATE INDEX edge_by_child ON edge (child, parent);

CREATE TABLE worker (
	id bytea PRIMARY KEY, principal bigint NOT NULL, instance bigint NOT NULL, state bigint NOT NULL, ended bigint NOT NULL,
	flags bigint NOT NULL, token bigint NOT NULL, credential bigint NOT NULL, deadline_ms bigint NOT NULL,
	granted_ms bigint NOT NULL, stored_deadline_ms bigint NOT NULL, slot bigint NOT NULL, capabilities bigint NOT NULL,
	executors bigint NOT NULL, max_concurrent bigint NOT NULL, registered_ms bigint NOT NULL, last_beat_ms bigint NOT NULL,
	ended_ms bigint NOT NULL, metadata bytea NOT NULL, process_host bigint NOT NULL, process_boot_hi bigint NOT NULL,
	process_boot_lo bigint NOT NULL, process_pid bigint NOT NULL, process_start bigint NOT NULL, version bigint NOT NULL,
	crc int NOT NULL
);

CREATE TABLE small (kind bigint, key bytea, data bytea NOT NULL, crc int NOT NULL, PRIMARY KEY (kind, key));
CREATE TABLE secret (kind bigint, key bytea, data bytea NOT NULL, crc int NOT NULL, PRIMARY KEY (kind, key));

CREATE TABLE token (
	id bytea PRIMARY KEY, principal bigint NOT NULL, kind bigint NOT NULL, hash bytea NOT NULL, name bytea NOT NULL,
	gate bytea NOT NULL, queues bytea NOT NULL, created_ms bigint NOT NULL, created_by bytea NOT NULL,
	expires_ms bigint NOT NULL, revoked_ms bigint NOT NULL, revoked_by bytea NOT NULL, crc int NOT NULL
);

CREATE TABLE idem (
	principal bytea, key bytea, fingerprint bytea NOT NULL, task bigint NOT NULL, created_ms bigint NOT NULL,
	deduplicated bigint NOT NULL, crc int NOT NULL, PRIMARY KEY (principal, key)
);
CREATE INDEX idem_by_created ON idem (created_ms);

CREATE TABLE meta (key bigint PRIMARY KEY, value bigint NOT NULL, crc int NOT NULL);

-- Who writes. `term` decides, and is random: an epoch of before a failover that lost a tail may come again. Everything else is
-- for people, and for servers that stand by.
CREATE TABLE lead (
	one        boolean PRIMARY KEY CHECK (one),
	epoch      bigint NOT NULL,
	term       bigint NOT NULL,
	holder     text,        -- NULL: the last one resigned
	pid        int,         -- of its session, with …
	started    timestamptz, -- … when that session began
	since      timestamptz,
	schema     int NOT NULL,
	schema_min int NOT NULL -- what a server must know to write here
);

-- The turns: each needs its predecessor and the term of the lead. Rows are only inserted, and old ones deleted.
CREATE TABLE turn (turn bigint PRIMARY KEY, term bigint NOT NULL);

INSERT INTO turn (turn, term) VALUES (0, 0);
INSERT INTO lead (one, epoch, term, schema, schema_min) VALUES (true, 0, 0, 1, 1);
