/*
 * Remote workers speak the real protocol: what they say are the bodies of HTTP requests, which the API of the
 * product reads, and what they hear is what it writes. They have no other way to know anything.
 */
#pragma once

#include "api/api.h"
#include "sim/request.h"

struct sim;
struct actor;

/* One request in the hands of the API, from its bytes to those of the reply. */
struct wire_call {
	struct api_call call;
	struct http_request request;
	struct arena arena;
	struct buf body;
	bool used;
};

void wire_call_done(struct wire_call *wire);

/* Put the command of the request into words; from here on they are all that travels. */
void wire_speak(struct request *request, const struct actor *actor);

/* The server reads it: the command that the API makes of it. False: a violation, for it was well said. */
bool wire_begin(
	struct sim *sim, struct wire_call *wire, const struct request *request, struct command *ret_command);

/* … and answers: what the client reads in the reply. It must be what the result says. */
void wire_finish(struct sim *sim, struct wire_call *wire, const struct request *request,
	const struct result *result, struct reply *ret_reply);
