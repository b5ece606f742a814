/*
 * What stint doctor has looked at: verb/doctor.c asks the server, doctor_home.c the state directory.
 */
#pragma once

#include "cli/frame/cli.h"

enum {
	CHECKS_MAX = 64,
};

enum check_verdict { PASS, FIXED, WARN, FAIL, VERDICTS };

struct doctor_check {
	const char *group, *name, *text, *fix;
	enum check_verdict verdict;
};

struct examination {
	struct cli *cli;
	bool repairs; /* --fix */
	char home[1024];
	struct doctor_check checks[CHECKS_MAX];
	size_t count;
	size_t repairable; /* how many --fix would have repaired */
};

/* `fix` is for WARN and FAIL. */
void doctor_note(struct examination *exam, enum check_verdict verdict, const char *group, const char *name,
	const char *fix, const char *format, ...) __attribute__((format(printf, 6, 7)));

/* The state directory: who may open what is in it, and what a server that is gone has left there. */
void doctor_look_at_home(struct examination *exam);
