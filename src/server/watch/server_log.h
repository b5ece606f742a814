/*
 * What the server logs while it runs; see server_log.c.
 */
#pragma once

#include "server/turn/exchange.h"
#include "wire/http/http.h"

void journal_listening(const struct server *server, struct span url);
void journal_store(struct server *server); /* after everything that may change whether it can be written */
void journal_turn(const struct server *server, uint32_t commands, uint64_t ns);
void journal_reply(const struct exchange *exchange); /* before it is handed over */
void journal_refused_connection(const char *reason);
void journal_refused_payer(struct span who, const char *reason);
void journal_refused_request(const struct http_complaint *complaint);
void journal_sweep(void); /* about once a second */
