/* From a spec with a wall to what the shim is asked for; for start.c alone. */
#pragma once

#include "base/arena.h"
#include "exec/process.h"
#include "exec/request/request.h"
#include "exec/wall/short_link.h"
#include "exec/wall/wall.h"

/* A file or directory that is visible at a path inside the wall. */
struct plan_bind {
	const char *path;
	const char *source; /* its path outside; NULL: it is the rootfs itself */
	enum grant_access access;
	int fd; /* opened outside; owned by the plan */
};

struct wall_plan {
	struct arena arena;
	const char **argv; /* of the program that makes the wall */
	size_t argc;
	const char *maker_env[WALL_ENV_MAX + 1];
	struct grant grants[GRANTS_MAX]; /* by their paths inside */
	size_t grant_count;
	struct plan_bind binds[REQUEST_GRANT_FDS_MAX];
	const char *bind_paths[REQUEST_GRANT_FDS_MAX + 1]; /* the paths of `binds`, for the request */
	size_t bind_count;
	const char *workdir; /* its path inside */
	const char *proxy;   /* the same of the proxy's socket; "": none */
	const char *rootfs;  /* WALL_CONTAINER: its path outside; binds[0] is the same directory */
	bool loose;          /* as in struct request_wall */
	char short_link[SHORT_LINK_BYTES]; /* to podman's state, if its path is too long; "": none */
	bool short_of;                     /* memory or argv was too small for the plan */
	/* WALL_VM: the spec of qemu, in place of the caller's */
	struct process_spec spec;
	struct buf input;
	const char *env[4];
};

/* After a fault the plan owns nothing; wall_plan_done() is not needed. Faults as for process_start(). */
int wall_plan_make(struct wall_plan *plan, const char *shim, const struct process_spec *spec);
void wall_plan_done(struct wall_plan *plan);

/* Fill in what the shim needs to know. Borrows the plan. */
void wall_plan_ask(const struct wall_plan *plan, const struct process_spec *spec, struct request *request);

/* The path of that program; NULL: it is nowhere in PATH. */
const char *wall_program(struct arena *arena, const char *name);

/* Is the runtime podman, by its name? podman needs crun, too. NULL means crun. */
bool wall_is_podman(const char *runtime);

/* -EXDEV if the state directory lies in what this level shows without a grant. */
int wall_system_check(const struct wall *wall, const char *keep_out);

/* sandbox.c, container.c; machine.c, which makes another spec, and no wall for the shim */
int sandbox_plan(struct wall_plan *plan, const char *shim, const struct process_spec *spec);
int container_plan(struct wall_plan *plan, const char *shim, const struct process_spec *spec);
int machine_plan(struct wall_plan *plan, const char *shim, const struct process_spec *given);

/* For those three. */
const char *plan_text(struct wall_plan *plan, const char *format, ...) __attribute__((format(printf, 2, 3)));
void plan_word(struct wall_plan *plan, const char *word);
void plan_words(struct wall_plan *plan, const char *const *words);
void plan_grant(struct wall_plan *plan, const char *path, enum grant_access access);
