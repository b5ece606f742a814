/*
 * A session: what one process of an agent has said so far. The parser of an adapter calls the functions below for each line;
 * the session keeps the facts that the verdict needs, writes a log that people can read, and collects the bytes that the agent
 * shall be told. No clock, no process and no server is needed for that.
 *
 *	line ──adapter->hear()──▶ session_began, _said, _used, _tool_began, _tool_ended, _asked, _retried, _ended
 *	                             │                                                        │
 *	                             ├──▶ log (for people), reply (for the agent's input)     └──▶ policy: allow, deny, or a question
 *	                             └──▶ facts ──session_judge()──▶ verdict
 */
#pragma once

#include "agent/adapter/adapter.h"
#include "agent/session/policy.h"
#include "base/buf.h"

enum {
	SESSION_LINE_BYTES_MAX = 8 << 20,
	SESSION_WORDS_BYTES_MAX = 64 << 10,
	SESSION_LOG_BYTES_MAX = 256 << 10,
	SESSION_REPLY_BYTES_MAX = 4 << 20,
	SESSION_MESSAGES = 64, /* message ids that are remembered */
	SESSION_TOOLS = 32,    /* tool calls that may be open at once */
	SESSION_QUESTIONS = 16,
	SESSION_SECRETS = 16,
	SESSION_MESSAGE_BYTES = 600,
	SESSION_TEXT_BYTES = 400,
	SESSION_QUESTIONS_MAX = 50, /* an attempt; the next is denied */
};

struct session_usage {
	int64_t input_tokens, output_tokens, cache_read_tokens, cache_write_tokens;
	double usd;
	bool usd_known, tokens_known;
};

/* How it said that it ended. */
enum session_final { FINAL_NONE, FINAL_GOOD, FINAL_BAD };

struct session_fault {
	const char *code; /* of SPEC 6: a literal */
	char message[SESSION_MESSAGE_BYTES];
	int64_t retry_at_ms; /* wall; 0: not said */
};

struct session_tool {
	char id[ADAPTER_ID_BYTES];
	char name[64];
	bool denied; /* a permission for it was denied: its failure is none of its own */
};

/* Adds what another process has used. What is known of one alone is known of the sum. */
void session_usage_add(struct session_usage *sum, const struct session_usage *more);

/* A permission that the agent waits for. */
struct session_question {
	char id[ADAPTER_ID_BYTES]; /* the agent's own */
	char tool[64];
	char text[SESSION_TEXT_BYTES]; /* "Wants to run git push" */
	const char *rule;              /* that made it a question; NULL: the default of the policy */
	struct buf subject;            /* what the policy was matched with: a command, a path */
	struct buf input;              /* JSON */
	struct buf extra;              /* JSON of the adapter's own, for its answer */
};

struct agent_session {
	const struct adapter *adapter;
	const struct policy *policy;
	struct span prompt; /* borrowed until begin() has returned */
	const char *cwd;    /* borrowed; for adapters whose protocol names it */
	bool resumes;
	int64_t now_ms, start_ms; /* of the line that is being heard; of the start. For the log */

	char id[ADAPTER_ID_BYTES], model[96], version[48];
	enum session_final final;
	struct session_fault fault; /* of FINAL_BAD */
	struct buf words;           /* the last that it said */
	uint32_t turns, tool_calls, tools_failed, tools_denied, questions_asked, retries;
	uint64_t lines, odd_lines; /* heard; not understood */
	bool limited;              /* it has said that its account is used up */
	int64_t limit_until_ms;

	struct session_usage usage;  /* of this process */
	double agent_usd;            /* the agent's own total, as it said it last */
	double usd_before;           /* that total when the process before this one ended; 0: unknown */
	int64_t agent_output_tokens; /* the same */
	struct {
		uint64_t id;
		struct session_usage usage;
	} messages[SESSION_MESSAGES];
	uint32_t message_next;

	struct session_tool tools[SESSION_TOOLS]; /* open calls */
	uint32_t tool_count;

	struct session_question questions[SESSION_QUESTIONS]; /* the first is the open one */
	uint32_t question_count;

	struct buf log, reply;
	const char *secrets[SESSION_SECRETS]; /* borrowed */
	uint32_t secret_count;
	/* of an adapter with a conversation of its own (acp) */
	uint32_t step;
	uint64_t request;
	char slot[ADAPTER_ID_BYTES];
	struct buf aside; /* JSON that it will speak of (codex app-server) */
	bool closing;     /* nothing more is to be said: its input may be closed */
};

void session_init(struct agent_session *session, const struct adapter *adapter, const struct policy *policy);
void session_done(struct agent_session *session);

/* These words never appear in the log. Short ones are no secrets and are ignored. */
void session_hide(struct agent_session *session, const char *secret);

/* A line of its standard output, without the newline. */
void session_hear(struct agent_session *session, struct span line, int64_t now_ms);

/* The end of its output, once it is gone: the answer of OUTPUT_WHOLE; and the last words of a program that speaks plain text. */
void session_hear_all(struct agent_session *session, struct span text, int64_t now_ms);

/* A line of its standard error, or one of ours: for the log. */
void session_note(struct agent_session *session, struct span line);

/* The open question is answered; the next one opens. */
void session_answer(struct agent_session *session, bool allow, struct span words);

/* NULL: none is open. */
const struct session_question *session_open_question(const struct agent_session *session);

bool session_has_open_tool(const struct agent_session *session);

/* It was to continue a session, and nothing came of it: the agent does not know that session any more. */
bool session_is_unknown(const struct agent_session *session);

/* Another turn of the same process. False: this agent has none. */
bool session_go_on(struct agent_session *session, struct span text);

/* ---- for parsers ---- */

void session_began(struct agent_session *session, struct span id, struct span model, struct span version);
void session_said(struct agent_session *session, struct span text);

/* Counts of one message so far: what was counted of it before is replaced. */
void session_used(struct agent_session *session, struct span message, const struct session_usage *usage);

/* Counts that come once and have no message. */
void session_used_more(struct agent_session *session, const struct session_usage *usage);

void session_tool_began(struct agent_session *session, struct span id, struct span name, yyjson_val *input);
enum tool_end { TOOL_GOOD, TOOL_FAILED, TOOL_DENIED };
void session_tool_ended(struct agent_session *session, struct span id, enum tool_end end);

/* A permission is asked for: the policy decides, or a question is opened. `extra` may be NULL. */
void session_asked(struct agent_session *session, struct span id, struct span tool, yyjson_val *input,
	yyjson_val *extra);
void session_withdrew(struct agent_session *session, struct span id);

void session_retried(struct agent_session *session, struct span why);
void session_limited(struct agent_session *session, int64_t until_ms);
void session_turned(struct agent_session *session);

/* Its last word. `words` empty: what it said last counts. */
void session_ended_well(struct agent_session *session, struct span words);
void session_ended_badly(struct agent_session *session, const char *code, struct span message);

/* The code for a status of the model's service: 401 AUTH, 429 QUOTA, 5xx UPSTREAM; NULL: none of these. */
const char *session_code_of(int64_t status, struct span text);

/* Appends a text without the secrets. */
void session_put(const struct agent_session *session, struct buf *out, struct span text);

/* What a tool is about to do, in a few words: its command, its file. */
void tool_subject(yyjson_val *input, struct buf *out);
