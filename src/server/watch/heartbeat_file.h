/*
 * The document of heartbeats as a file; see heartbeat_file.c.
 */
#pragma once

#include <uv.h>

#include "api/api.h"
#include "wire/http/http.h"

struct server;

struct heartbeat_file {
	const char *path; /* NULL: no such file */
	bool is_array, is_busy;
	bool is_off; /* the file there is not ours */
	int fault;   /* the fault that was logged last */
	int64_t interval_ms, not_before_ms;
	uint64_t seen_changes; /* of the store, at the last look */
	uint64_t saved;        /* digest of the last document written */
	uint64_t spent_ns;     /* time spent on the document that is being made */
	uv_idle_t step;        /* runs while a document is being made */
	struct api_call call;
	struct http_request request;
	struct arena arena;
	struct buf body;
};

void heartbeat_file_start(struct server *server);
void heartbeat_file_look(struct server *server); /* write it, if there is anything new and it is time */
void heartbeat_file_done(struct server *server);
