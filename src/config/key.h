/*
 * The keys of the configuration: one line each, and everything else is made from it: parsing, its errors, the help of
 * stintd, docs/configuration.md. A key has an effect: one that nothing reads does not stand here, and is refused as
 * unknown.
 *
 * A number has a unit and bounds; a choice has its words; a text has a form, and bounds of its length.
 */
#pragma once

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "base/buf.h"
#include "base/span.h"

enum config_type { CONFIG_TEXT, CONFIG_NUMBER, CONFIG_BOOL, CONFIG_CHOICE };

#define CONFIG_TEXT_MAX 4000
#define CONFIG_DAY_MS   (24 * 60 * 60 * 1000)

// clang-format off
#define CONFIG_KEYS(X) \
	/* symbol                     name                         type    unit, words or form  least  most                   default           environment variable             help */ \
	X(LISTEN,                     "listen",                    TEXT,   "ADDRESS:PORT",      1,     300,                   "127.0.0.1:8787", "STINT_LISTEN",                  "TCP address; port 0 picks a free one; 127.0.0.1 is [::1], too") \
	X(AUTH,                       "auth",                      CHOICE, "token open",        0,     0,                     "token",          "STINT_AUTH",                    "open: no token is needed, except for what only an admin may do; on loopback only") \
	X(BEHIND_PROXY,               "behindProxy",               BOOL,   "",                  0,     1,                     "false",          "STINT_BEHIND_PROXY",            "a proxy in front speaks TLS: listen may be any address without tls.cert") \
	X(PUBLIC_URL,                 "publicUrl",                 TEXT,   "URL",               0,     399,                   "",               "STINT_PUBLIC_URL",              "where browsers reach the server through a proxy, as in https://example.org/stint: its host, its origin and the path before ours") \
	X(PROXY_FROM,                 "proxy.from",                TEXT,   "ADDRESS NETWORK/BITS …", 0, 999,                  "",               "STINT_PROXY_FROM",              "the proxies: their X-Forwarded-For says who is asking, and other peers are refused; empty: any peer, and the header says nothing") \
	X(TLS_CERT,                   "tls.cert",                  TEXT,   "PATH",              0,     CONFIG_TEXT_MAX,       "",               "STINT_TLS_CERT",                "the certificate that clients of TCP are shown, PEM, with those between it and its authority; stint tls init makes one") \
	X(TLS_KEY,                    "tls.key",                   TEXT,   "PATH",              0,     CONFIG_TEXT_MAX,       "",               "STINT_TLS_KEY",                 "its private key, PEM, closed to other users; both files are read anew when they change") \
	X(TLS_CA,                     "tls.ca",                    TEXT,   "PATH",              0,     CONFIG_TEXT_MAX,       "",               "STINT_TLS_CA",                  "the certificate of its authority, PEM: programs that find the server by its state directory trust it; empty: the system's authorities") \
	X(STORE,                      "store",                     TEXT,   "sqlite:PATH or postgres://…",       1,     CONFIG_TEXT_MAX,       "",               "STINT_STORE",                   "where tasks are kept; default stint.db in the state directory") \
	X(LEADER_LEASE_MS,            "leader.leaseMs",            NUMBER, "ms",                500,   10 * 60 * 1000,        "3000",           "STINT_LEADER_LEASE_MS",         "of servers that share a store: the leader is replaced when it has written nothing for that long, and answers nobody when it has not heard from PostgreSQL for 0.8 of it") \
	X(LEADER_URL,                 "leader.url",                TEXT,   "URL",               0,     399,                   "",               "STINT_LEADER_URL",              "where clients and the other servers of a shared store reach this one; empty: the address it listens on") \
	X(CLAIM_VERIFY_AFTER_MS,      "claim.verifyAfterMs",       NUMBER, "ms",                1000,  CONFIG_DAY_MS,         "120000",         "STINT_CLAIM_VERIFY_AFTER_MS",   "a claim that its worker, one with heartbeats, has not confirmed by then is taken back; until then leaseMs is at most this") \
	X(WORKER_LEASE_MIN_MS,        "worker.leaseMinMs",         NUMBER, "ms",                100,   CONFIG_DAY_MS,         "5000",           "STINT_WORKER_LEASE_MIN_MS",     "the shortest lease of a worker or a claim") \
	X(WORKER_RESCHEDULE_ON_EXPIRY,"worker.rescheduleOnExpiry", BOOL,   "",                  0,     1,                     "true",           "STINT_WORKER_RESCHEDULE_ON_EXPIRY", "free what a lost worker held; false only reports it") \
	X(RESTART_GRACE_MS,           "restart.graceMs",           NUMBER, "ms",                0,     CONFIG_DAY_MS,         "60000",          "STINT_RESTART_GRACE_MS",        "no worker and no claim expires that soon after a start") \
	X(RETRY_BASE_MS,              "retry.baseMs",              NUMBER, "ms",                1,     CONFIG_DAY_MS,         "10000",          "STINT_RETRY_BASE_MS",           "back-off after the first failure; it doubles with each") \
	X(RETRY_MAX_MS,               "retry.maxMs",               NUMBER, "ms",                1,     CONFIG_DAY_MS,         "300000",         "STINT_RETRY_MAX_MS",            "the longest back-off") \
	X(TASK_CRASH_BUDGET,          "task.crashBudget",          NUMBER, "",                  1,     1000,                  "3",              "STINT_TASK_CRASH_BUDGET",       "crashes in a row after which a task has failed") \
	X(TASK_TIMEOUT_MS,            "task.timeoutMs",            NUMBER, "ms",                1,     30LL * CONFIG_DAY_MS,  "1800000",        "STINT_TASK_TIMEOUT_MS",         "the time limit of an attempt, for a task that names none") \
	X(TASK_TIMEOUT_MAX_MS,        "task.timeoutMaxMs",         NUMBER, "ms",                1,     30LL * CONFIG_DAY_MS,  "7200000",        "STINT_TASK_TIMEOUT_MAX_MS",     "the longest time limit: a task that asks for more gets this") \
	X(TASK_LOG_KEEP_BYTES,        "task.logKeepBytes",         NUMBER, "bytes",             262144, 4194304,              "1048576",        "STINT_TASK_LOG_KEEP_BYTES",     "how much output of one attempt is kept; of more, the middle is dropped") \
	X(TASK_LOG_BYTES_PER_SECOND,  "task.logBytesPerSecond",    NUMBER, "bytes",             1024,  1 << 30,               "1048576",        "STINT_TASK_LOG_BYTES_PER_SECOND", "how fast an attempt may append to its log") \
	X(TASK_CHILDREN_MAX,          "task.childrenMax",          NUMBER, "",                  1,     1000,                  "100",            "STINT_TASK_CHILDREN_MAX",                             "subtasks that one task may create") \
	X(TASK_TREE_MAX,              "task.treeMax",              NUMBER, "",                  1,     10000,                 "1000",           "STINT_TASK_TREE_MAX",                             "tasks in a tree of subtasks, with the task at its top") \
	X(EXECUTION_OPT_IN_QUEUES,    "execution.optInQueues",     TEXT,   "QUEUE QUEUE …",     0,     CONFIG_TEXT_MAX,       "",               "STINT_EXECUTION_OPT_IN_QUEUES", "these queues hand out only tasks with metadata.autonomous_execution: true; * = all") \
	X(WORKFLOW_CREATE_PR,         "workflow.createPrQueue",    TEXT,   "QUEUE",             0,     255,                   "",               "STINT_WORKFLOW_CREATE_PR_QUEUE", "where a task is added when a workflow needs a pull request; empty: its event tells") \
	X(WORKFLOW_VALIDATE,          "workflow.validateQueue",    TEXT,   "QUEUE",             0,     255,                   "",               "STINT_WORKFLOW_VALIDATE_QUEUE", "… when work waits for a validator") \
	X(WORKFLOW_MERGE,             "workflow.mergeQueue",       TEXT,   "QUEUE",             0,     255,                   "",               "STINT_WORKFLOW_MERGE_QUEUE",    "… when what was validated is to be merged") \
	X(WORKFLOW_VERIFY,            "workflow.verifyQueue",      TEXT,   "QUEUE",             0,     255,                   "",               "STINT_WORKFLOW_VERIFY_QUEUE",   "… when a deploy is to be verified") \
	X(QUARANTINE_TRIAL_AFTER_MS,  "quarantine.trialAfterMs",   NUMBER, "ms",                0,     30LL * CONFIG_DAY_MS,  "600000",         "STINT_QUARANTINE_TRIAL_AFTER_MS", "a quarantined slot gets one trial after this; 0 = never") \
	X(ASK_PARK_MS,                "ask.parkMs",                NUMBER, "ms",                0,     30LL * CONFIG_DAY_MS,  "120000",         "STINT_ASK_PARK_MS",               "how long a process waits for a person's answer; then it is ended and the question stays open; 0 = for ever") \
	X(EXECUTOR_MISSING_AFTER_MS,  "executor.missingAfterMs",   NUMBER, "ms",                0,     30LL * CONFIG_DAY_MS,  "300000",         "STINT_EXECUTOR_MISSING_AFTER_MS", "a ready task whose executor no live worker of its queue has had for this long is blocked; 0 = never") \
	X(HEARTBEATS_FILE,            "heartbeats.file",           TEXT,   "PATH",              0,     CONFIG_TEXT_MAX,       "",               "STINT_HEARTBEATS_FILE",         "the heartbeats of all slots are written there too, as in .clawhub/worker-heartbeats.json; never over a file that stint did not create") \
	X(HEARTBEATS_SHAPE,           "heartbeats.shape",          CHOICE, "map array",         0,     0,                     "map",            "STINT_HEARTBEATS_SHAPE",        "the form of that file: an object by slot, or the older list") \
	X(HEARTBEATS_INTERVAL_MS,     "heartbeats.intervalMs",     NUMBER, "ms",                100,   CONFIG_DAY_MS,         "1000",           "STINT_HEARTBEATS_INTERVAL_MS",  "it is written when something has changed, and no sooner than this after the last time") \
	X(SWEEP_INTERVAL_MS,          "sweep.intervalMs",          NUMBER, "ms",                10,    60 * 1000,             "1000",           "STINT_SWEEP_INTERVAL_MS",       "how often timeouts and upkeep are looked at") \
	X(LIMITS_AUTH_FAILURES_PER_S, "limits.authFailuresPerS",   NUMBER, "",                  1,     1000,                  "10",             "STINT_LIMITS_AUTH_FAILURES_PER_S", "wrong tokens from one address in a second, from this machine 20 times as many; more are 429, right ones never") \
	X(LIMITS_UNAUTHENTICATED,     "limits.unauthenticatedConnections", NUMBER, "",          1,     100000,                "100",            "STINT_LIMITS_UNAUTHENTICATED_CONNECTIONS", "connections without a token from one address while many are open; of more, the oldest that are silent are closed") \
	X(LIMITS_REQUESTS_IN_FLIGHT,  "limits.requestsInFlight",   NUMBER, "",                  1,     4096,                  "64",             "STINT_LIMITS_REQUESTS_IN_FLIGHT", "requests of one token in one commit while requests of others wait") \
	X(LIMITS_REGISTRATIONS,       "limits.registrationsPerMinute", NUMBER, "",              0,     1000000,               "20000",          "STINT_LIMITS_REGISTRATIONS_PER_MINUTE", "workers that one token may register; 0 = no limit") \
	X(LIMITS_WORKERS,             "limits.workers",            NUMBER, "",                  0,     10000000,              "20000",          "STINT_LIMITS_WORKERS",          "live workers of one token; 0 = no limit") \
	X(LIMITS_SLOT_REGISTRATIONS,  "limits.slotRegistrationsPerMinute", NUMBER, "",          0,     1000000,               "20",             "STINT_LIMITS_SLOT_REGISTRATIONS_PER_MINUTE", "registrations in one slot or under one id, without workers that have said goodbye; 0 = no limit") \
	X(LIMITS_PROGRESS,            "limits.progressPerMinute", NUMBER, "",                   0,     1000000,               "600",            "STINT_LIMITS_PROGRESS_PER_MINUTE", "changes that one attempt makes: progress, questions, PATCH; a note counts once more for each 4 KiB; its end is free; 0 = no limit") \
	X(LIMITS_EVENT_STREAMS,       "limits.eventStreams",       NUMBER, "",                  1,     10000,                 "16",             "STINT_LIMITS_EVENT_STREAMS",    "open event streams of one token") \
	X(HOLD_RELEASE_PER_MINUTE,    "hold.releasePerMinute",     NUMBER, "",                  1,     60000,                 "30",             "STINT_HOLD_RELEASE_PER_MINUTE", "claims of an account that works again after a hold, for 10 min") \
	X(DISK_LOW_BYTES,             "disk.lowBytes",             NUMBER, "bytes",             0,     1LL << 50,             "0",              "STINT_DISK_LOW_BYTES",          "with less room on the disk nothing new is begun (503 disk_low); 0 = 5 % of it, 16 MiB to 1 GiB") \
	X(QUEUE_AGE_MS,               "queue.ageMs",               NUMBER, "ms",                0,     30LL * CONFIG_DAY_MS,  "0",              "STINT_QUEUE_AGE_MS",            "ageing: a step of priority is worth that much waiting, so that a task of low priority is claimed in the end; 0: priority goes before age. Not in fair queues") \
	X(QUOTA_OPEN_TASKS,           "quota.openTasks",           NUMBER, "",                  0,     1000000000,            "100000",         "STINT_QUOTA_OPEN_TASKS",        "tasks of one token that are not final, unless it is an admin's or an operator's; 0 = no limit") \
	X(QUOTA_OPEN_BYTES,           "quota.openBytes",           NUMBER, "bytes",             0,     1LL << 41,             "1073741824",     "STINT_QUOTA_OPEN_BYTES",        "bytes of these tasks as they were created; 0 = no limit") \
	X(RETENTION_FINAL_MS,         "retention.finalMs",         NUMBER, "ms",                1000,  3650LL * CONFIG_DAY_MS,"604800000",      "STINT_RETENTION_FINAL_MS",      "a final task is kept that long (7 days) …") \
	X(RETENTION_FINAL_MAX,        "retention.finalMax",        NUMBER, "",                  1,     1000000000,            "1000000",        "STINT_RETENTION_FINAL_MAX",     "… while there are no more than this") \
	X(RETENTION_EVENT_MS,         "retention.eventMs",         NUMBER, "ms",                1000,  3650LL * CONFIG_DAY_MS,"2592000000",     "STINT_RETENTION_EVENT_MS",      "an event is kept that long (30 days) …") \
	X(RETENTION_EVENT_MAX,        "retention.eventMax",        NUMBER, "",                  1000,  1000000000,            "10000000",       "STINT_RETENTION_EVENT_MAX",     "… while there are no more than this") \
	X(RETENTION_AUDIT_MAX,        "retention.auditMax",        NUMBER, "",                  1,     1000000000,            "1000000",        "STINT_RETENTION_AUDIT_MAX",     "events of tokens, gates, execution and the server that outlast retention.eventMax, for as long as retention.eventMs") \
	X(WORKQUEUE_DEFAULT_QUEUES,   "workqueue.defaultQueues",   TEXT,   "QUEUE,QUEUE",       0,     CONFIG_TEXT_MAX,       "dev-team",       "CLAWNSOLE_DEFAULT_QUEUES",      "of /api/workqueue: a claim that names no queue, of an agent without assigned queues, is for these; empty: for none") \
	X(LOG_LEVEL,                  "log.level",                 CHOICE, "error warn info debug", 0, 0,                    "info",           "STINT_LOG_LEVEL",               "the least urgent lines that are written") \
	X(LOG_FORMAT,                 "log.format",                CHOICE, "auto text json",    0,     0,                     "auto",           "STINT_LOG_FORMAT",              "auto: text on a terminal, JSON elsewhere") \
	X(LOG_SLOW_TURN_MS,           "log.slowTurnMs",            NUMBER, "ms",                1,     CONFIG_DAY_MS,         "1000",           "STINT_LOG_SLOW_TURN_MS",        "a turn that takes longer is logged as a warning")
// clang-format on

enum config_key {
#define X(symbol, ...) CONFIG_##symbol,
	CONFIG_KEYS(X)
#undef X
		CONFIG_KEY_COUNT
};

struct config_key_row {
	const char *name;
	enum config_type type;
	const char *of; /* unit, words or form; "": none */
	int64_t least, most;
	const char *fallback;
	const char *variable;
	const char *help;
};

extern const struct config_key_row config_keys[CONFIG_KEY_COUNT];

enum {
	CONFIG_NAME_MAX = 64, /* bytes of a key with its groups, and a NUL */
	CONFIG_ALLOWED_BYTES = 200,
};

/* CONFIG_KEY_COUNT: no such key. */
enum config_key config_key_find(const char *name);

/* Is it the first part of some key, as "claim" is? */
bool config_key_is_group(const char *name);

/* The key that was probably meant; NULL: nothing comes near. */
const char *config_key_like(const char *name);

/* The program that reads this top-level key, if it is not stintd; NULL: none does. */
const char *config_key_owner(const char *name);

/* Such keys, one after the other; NULL: there are no more. */
const char *config_foreign_key(uint32_t number);

struct field;
struct form;
struct yyjson_val;

/* The row as the reader of typed values wants it; `allowed` is room for its sentence. */
struct field config_key_field(enum config_key key, char allowed[CONFIG_ALLOWED_BYTES]);

/* A word, or a value of JSON, by the row of that key; an error goes to the form. A bool is 0 or 1, a choice the index of
 * its word. */
bool config_key_take(enum config_key key, struct form *form, const char *word, struct yyjson_val *value,
	int64_t *ret_number);

/* The same for a word, without saying what is wrong. */
bool config_key_parse(enum config_key key, const char *text, int64_t *ret_number);
