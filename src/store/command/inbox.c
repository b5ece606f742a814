/*
 * The inbox: tasks that other programs asked for in transactions of their own, in PostgreSQL. A row becomes a task, and goes, in one
 * turn. A row that cannot become a task is kept with the reason, as a small record, until an operator tries it again or drops it.
 */
#include <errno.h>

#include "base/take.h"
#include "store/command/commands.h"
#include "store/record/inbox.h"

enum { KEPT_BYTES_MAX = 2 << 20 };

int inbox_look(struct turn *turn, const struct command_create *create, struct result *result)
{
	char key[INBOX_KEY_BYTES];
	struct span ignored;

	if (!create->was_kept)
		return 0;
	int r = store_rows(
		turn->store, get_small, SMALL_INBOX, inbox_key(create->inbox, key), &turn->arena, &ignored);
	return r == -ENOENT ? command_refuse(result, REFUSED_NOT_FOUND) : r;
}

int inbox_take(struct turn *turn, const struct command_create *create)
{
	char key[INBOX_KEY_BYTES];

	return create->was_kept ? turn_put(turn, delete_small, SMALL_INBOX, inbox_key(create->inbox, key))
				: turn_put(turn, delete_inbox, create->inbox);
}

static int put_kept(struct turn *turn, const struct command *command)
{
	const struct inbox_document document = {
		.since_ms = turn->given.now.wall_ms,
		.queue = command->inbox.queue,
		.role = command->inbox.role,
		.why = command->beside,
		.task = command->data,
	};
	cleanup(buf_done) struct buf data = {.max = KEPT_BYTES_MAX};
	char key[INBOX_KEY_BYTES];
	int r = inbox_put(&document, &data);

	if (r == 0)
		r = turn_put(
			turn, put_small, SMALL_INBOX, inbox_key(command->inbox.id, key), buf_span(&data));
	return r == 0 ? turn_put(turn, delete_inbox, command->inbox.id) : r;
}

static int drop(struct turn *turn, const struct command *command, struct result *result)
{
	const struct command_create kept = {.inbox = command->inbox.id, .was_kept = true};
	int r = inbox_look(turn, &kept, result);

	return r < 0 || result->refusal != REFUSED_NOTHING ? r : inbox_take(turn, &kept);
}

int execute_inbox(struct turn *turn, const struct command *command, struct result *result)
{
	bool keeps = command->kind == COMMAND_INBOX_KEEP;
	int r = keeps ? put_kept(turn, command) : drop(turn, command, result);

	if (r < 0 || result->refusal != REFUSED_NOTHING)
		return r;
	struct record record = turn_record(turn, keeps ? EVENT_INBOX_REFUSED : EVENT_INBOX_DROPPED);
	record.subject = command->inbox.queue;
	return turn_write_event(turn, &record);
}
