/*
 * An adapter: what is known about one agent program. A table says how to start, resume and end it and where its login is; one
 * small parser turns a line of its output into the records of session.h. The machine that runs agents reads the table and
 * knows no agent by name.
 *
 * Agents change weekly. `tried_from` and `tried_to` are the versions whose streams are fixtures of our tests; any other version
 * is run and said to be untried.
 */
#pragma once

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "base/arena.h"
#include "wire/json/json.h"

struct agent_session;

enum {
	ADAPTER_ARGV_MAX = 96,
	ADAPTER_ID_BYTES = 160, /* of an agent's own session id, with the NUL */
};

/* How words go in. */
enum adapter_talk {
	TALK_ONCE,   /* standard input is the prompt and its end */
	TALK_STREAM, /* standard input stays open: the prompt, answers and further turns are lines of JSON */
};

/* How its output is read. */
enum adapter_output {
	OUTPUT_LINES, /* a JSON value a line; other lines go to the log as they are */
	OUTPUT_WHOLE, /* one JSON value, when it has ended */
};

/* What one start of an agent asks for. Texts are borrowed. */
struct adapter_start {
	const char *const
		*program; /* its words of the configuration, NULL at the end; the first is the program */
	const char
		*session; /* its id: ours for a new session, or the one to resume; NULL: the agent chooses */
	bool resumes;
	const char *model;       /* NULL: the agent's default */
	const char *prompt_file; /* the prompt, for an agent that reads a file */
	const char *settings;    /* file with settings of ours */
	int64_t turns_max;       /* 0: no limit */
	double usd_max;          /* 0: no limit */
	bool walled;             /* our isolation holds: the agent's own sandbox is off */
};

/* The words of a command line, in the arena. */
struct adapter_words {
	struct arena *arena;
	const char *items[ADAPTER_ARGV_MAX + 1];
	size_t count;
	bool failed; /* too many words, or no memory */
};

void words_add(struct adapter_words *words, const char *word); /* NULL adds nothing */
void words_add_pair(
	struct adapter_words *words, const char *flag, const char *value); /* without a value: nothing */
void words_add_all(struct adapter_words *words, const char *const *list);

/* A login: the first of these that is there is used. */
struct adapter_login {
	const char *const *variables; /* of the operator; NULL at the end */
	const char *file;             /* in the person's home, JSON; NULL: none */
	const char *token;            /* path of the access token in it, as "a.b" */
	const char *until;            /* path of its end in it, ms since 1970; NULL: not said */
	const char *variable;         /* in which the person's access token, or stint's own login, goes in */
	const char *command;          /* what a person types to get a long-lived token */
};

struct adapter {
	const char *name;
	const char *program;
	const char *tried_from, *tried_to;
	enum adapter_talk talk;
	enum adapter_output output;
	bool takes_id; /* the session id may be ours */
	bool resumes;  /* a session may be continued by another process */
	bool asks;     /* permission prompts reach us: policies with "ask" or "deny" hold */
	const struct adapter
		*asking; /* the same program run so that it asks, where the policy does; NULL: it cannot */
	bool counts_usd, counts_tokens, counts_tools;
	bool counts_thread;   /* its counts are those of the whole session, over all its processes */
	bool input_has_cache; /* its count of input has what was read from a cache in it */
	const char *
		transcript; /* where a session lies in its home, a pattern with one %s for the id; NULL: unknown */
	const char *const
		*env; /* NAME=value, NULL at the end; a value that begins with ~/ lies in its home */
	const char *const *hosts; /* that its model is on */
	const char *const *
		gateway; /* variables of the worker that say where its model is reached instead; NULL at the end; NULL: none */
	struct adapter_login login;
	const char *settings_file; /* path in its home for `settings`; NULL: none */
	const char *settings;      /* text of that file */
	const char *
		by_hand; /* how a person goes on with a session: a command with one %s for its id; NULL: not at all */
	void (*put_argv)(struct adapter_words *words, const struct adapter_start *start);
	/* TALK_STREAM: writes what begins the conversation, with session->prompt or without, into session->reply. */
	void (*begin)(struct agent_session *session);
	/* TALK_STREAM: another turn in the same process. */
	void (*go_on)(struct agent_session *session, struct span text);
	/* The answer to the open question: into session->reply. */
	void (*answer)(struct agent_session *session, bool allow, struct span words);
	void (*hear)(struct agent_session *session, yyjson_val *line);
	/* Its end decides whether it went well, for streams without a last word; NULL: only its last word does. */
	void (*ended)(struct agent_session *session, int status);
};

/* NULL: there is none. */
const struct adapter *adapter_find(const char *name);

/* All of them, NULL at the end. */
extern const struct adapter *const adapters[];

extern const struct adapter adapter_claude, adapter_codex, adapter_gemini, adapter_opencode, adapter_openclaw,
	adapter_acp, adapter_custom;

/* Other ways to run one of them: `asking` of it. */
extern const struct adapter adapter_codex_asking;

/* "2.1.197 (Claude Code)" → "2.1.197": the first word that begins with a digit and has a dot; 0: there is none. */
size_t adapter_version(struct span text, char *ret_version, size_t room);

/* Below, at or above 0, by numbers between dots. */
int version_compare(const char *a, const char *b);

/* Is it one of the versions that our fixtures are from? */
bool adapter_has_tried(const struct adapter *adapter, const char *version);
