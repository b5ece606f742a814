/*
 * The targets, as the configuration has them:
 *
 *	"notify": {
 *	  "targets": { "ops": { "url": "https://…", "secretFile": "/etc/stint/ops.secret", "events": ["alerts"], "allow": [] } },
 *	  "source": "stint", "retryBaseMs": 1000, "retryMaxMs": 3600000
 *	}
 *
 * The files are those of every program, and the higher one replaces a target of the same name.
 */
#pragma once

#include "config/config.h"
#include "wire/network.h"
#include "notify/signature.h"

enum {
	TARGETS_MAX = 32,
	TARGET_EVENTS_MAX = 64,
	TARGET_ALLOW_MAX = 16,
	TARGET_NAME_BYTES_MAX = 64,
	SECRET_FILE_BYTES_MAX = 1024,
};

/* What a message looks like: an event for programs, a line for people at a service that knows no signatures, or spans for a collector
 * of OpenTelemetry. */
enum target_format { FORMAT_CLOUDEVENTS, FORMAT_SLACK, FORMAT_DISCORD, FORMAT_NTFY, FORMAT_OTLP };

/* Texts are the configuration's. */
struct target {
	const char *name; /* also the channel: it gets the ends of sessions with this channel */
	const char *url;
	const char *secret_file;
	const char
		*ca_file; /* in place of the authorities that the system trusts; NULL: those of the system */
	const char *const *events; /* patterns, NULL at the end; NULL: none */
	struct network allow[TARGET_ALLOW_MAX];
	uint32_t allow_count;
	struct secret secrets[SECRETS_MAX];
	uint32_t secret_count;
	enum target_format format;
	bool plain; /* http without TLS: only to networks in `allow` */
	struct config_origin where;
};

struct targets {
	struct config *config;
	struct target items[TARGETS_MAX];
	uint32_t count;
	const char *source;
	int64_t retry_base_ms, retry_max_ms;
};

void targets_init(struct targets *targets);

/* A config_foreign_read. Complaints go to the configuration. */
void targets_read(
	void *targets, struct config *config, struct form *form, struct span key, struct yyjson_val *value);

/* After all files: is each complete? Reads the secrets. */
void targets_check(struct targets *targets, struct config *config);

/* NULL: no such target. */
const struct target *targets_find(const struct targets *targets, const char *name);

/* https://HOST/…: what stands behind the host may be a secret. */
void target_put_origin(const struct target *target, char *out, size_t room);
