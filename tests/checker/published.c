/*
 * The tables stand between `<!-- table: transitions -->` (or notes) and `<!-- end -->`. The first cell of a
 * row is the event, the second and third are lists of states; backticks and the two rows of the head are
 * skipped. "nowhere" is before creation and after the purge.
 */
#include "checker/published.h"

#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "checker/words.h"

enum table { TABLE_NONE, TABLE_TRANSITIONS, TABLE_NOTES };

static uint32_t bit(uint32_t state)
{
	return 1u << state;
}

/* A list of states as bits; 0 if a word in it is no state. */
static uint32_t states_of(const struct names *names, char *cell)
{
	uint32_t bits = 0;
	char *rest = NULL;

	for (char *word = strtok_r(cell, " `", &rest); word; word = strtok_r(NULL, " `", &rest)) {
		uint32_t state = ck_names_find(names, word, strlen(word));
		if (strcmp(word, "nowhere") == 0)
			bits |= bit(WORD_NONE);
		else if (state >= WORD_FIRST_STATE && state <= WORD_LAST_STATE)
			bits |= bit(state);
		else
			return 0;
	}
	return bits;
}

static char *next_cell(char **line)
{
	char *cell = strsep(line, "|");

	if (!cell)
		return NULL;
	cell += strspn(cell, " `");
	for (size_t len = strlen(cell); len > 0 && strchr(" `\n", cell[len - 1]); len--)
		cell[len - 1] = '\0';
	return cell;
}

static int read_row(struct published *published, struct names *names, enum table table, char *line)
{
	strsep(&line, "|"); /* before the first bar */
	char *kind = next_cell(&line);
	char *from = next_cell(&line);
	char *to = table == TABLE_NOTES ? NULL : next_cell(&line);

	if (!kind || !from || (table == TABLE_TRANSITIONS && !to))
		return -EINVAL;
	if (!strchr(kind, '.')) /* the head and the rule below it */
		return 0;
	if (published->count == PUBLISHED_ROWS_MAX)
		return -EINVAL;
	struct published_row *row = &published->rows[published->count++];
	*row = (struct published_row){
		.kind = ck_names_number(names, kind, strlen(kind)),
		.from = states_of(names, from),
		.to = to ? states_of(names, to) : 0,
		.note = table == TABLE_NOTES,
	};
	return row->from == 0 || (row->to == 0) != row->note ? -EINVAL : 0;
}

static enum table table_after(enum table table, const char *line)
{
	if (strncmp(line, "<!-- table: transitions -->", 27) == 0)
		return TABLE_TRANSITIONS;
	if (strncmp(line, "<!-- table: notes -->", 21) == 0)
		return TABLE_NOTES;
	if (strncmp(line, "<!--", 4) == 0)
		return TABLE_NONE;
	return table;
}

static int read_tables(struct published *published, struct names *names, FILE *file)
{
	char *line = NULL;
	size_t room = 0;
	enum table table = TABLE_NONE;
	int status = 0;

	while (status == 0 && getline(&line, &room, file) >= 0) {
		table = table_after(table, line);
		if (table != TABLE_NONE && line[0] == '|')
			status = read_row(published, names, table, line);
	}
	free(line);
	if (status == 0 && published->count == 0)
		status = -EINVAL;
	return status;
}

int ck_published_read(struct published *published, struct names *names, const char *path)
{
	FILE *file = fopen(path, "re");

	if (!file)
		return -errno;
	published->count = 0;
	int status = read_tables(published, names, file);
	fclose(file);
	return status;
}

static bool is_note(const struct published *published, uint32_t kind, uint32_t state)
{
	for (uint32_t i = 0; i < published->count; i++) {
		const struct published_row *row = &published->rows[i];
		if (row->note && row->kind == kind && (row->from & bit(state)))
			return true;
	}
	return false;
}

/* A row of the table is all its states times all its states; a move to where the task already is means
 * something only for a claim, which its holder may take up again. */
bool ck_published_allows(const struct published *published, uint32_t kind, uint32_t from, uint32_t to)
{
	if (from == to && kind != WORD_TASK_CLAIMED)
		return is_note(published, kind, from);
	for (uint32_t i = 0; i < published->count; i++) {
		const struct published_row *row = &published->rows[i];
		if (!row->note && row->kind == kind && (row->from & bit(from)) && (row->to & bit(to)))
			return true;
	}
	return false;
}
