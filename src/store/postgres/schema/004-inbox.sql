-- Tasks that other programs ask for in transactions of their own: a commit makes one task, a rollback none. The leader reads the rows, and
-- the turn that makes a task deletes its row.
--
-- Whoever may use the schema may call enqueue(), and needs no right on a table: the function has those of its owner. So its
-- search_path is fixed, with pg_temp behind everything else.

CREATE TABLE inbox (
	id    bigserial PRIMARY KEY,
	queue text NOT NULL CONSTRAINT the_queue_has_a_name CHECK (octet_length(queue) BETWEEN 1 AND 255),
	task  text NOT NULL CONSTRAINT the_task_is_at_most_1_mib CHECK (octet_length(task) <= 1048576),
	role  text NOT NULL DEFAULT session_user,
	added timestamptz NOT NULL DEFAULT now()
);

SELECT set_config('search_path', current_setting('search_path') || ', pg_temp', true);

CREATE FUNCTION enqueue(queue text, task jsonb DEFAULT '{}') RETURNS bigint LANGUAGE sql SECURITY DEFINER
SET search_path FROM CURRENT AS $$
	INSERT INTO inbox (queue, task)
	VALUES ($1, (CASE jsonb_typeof($2) WHEN 'object' THEN $2 || jsonb_build_object('queue', $1) ELSE $2 END)::text)
	RETURNING id
$$;

COMMENT ON FUNCTION enqueue(text, jsonb) IS 'One task of stint, if this transaction commits. The task is a document as for POST /api/tasks.';
