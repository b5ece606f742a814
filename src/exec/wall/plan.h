/* From a spec with a wall to what the shim is asked for; for start.c alone. */
#pragma once

#include "base/arena.h"
#include "exec/process.h"
#include "exec/request/request.h"
#include "exec/wall/short_link.h"
#include "exec/wall/wall.h"

/* What lies at a path inside. */
struct plan_bind {
	const char *path;
	const char *source; /* its path outside; NULL: it is there already */
	enum grant_access access;
	int fd; /* what was meant; the plan's */
};

struct wall_plan {
	struct arena arena;
	const char **argv; /* of what makes the wall */
	size_t argc;
	const char *maker_env[WALL_ENV_MAX + 1];
	struct grant grants[GRANTS_MAX]; /* as it looks inside; by path */
	size_t grant_count;
	struct plan_bind binds[REQUEST_GRANT_FDS_MAX];
	const char *bind_paths[REQUEST_GRANT_FDS_MAX + 1]; /* of those, for the request */
	size_t bind_count;
	const char *workdir;               /* inside */
	const char *rootfs;                /* WALL_CONTAINER: where it is, and the first of the binds */
	bool loose;                        /* request_wall's */
	char short_link[SHORT_LINK_BYTES]; /* to what podman keeps, if it is needed */
	bool short_of;                     /* of memory or of room */
	/* WALL_VM: instead of the one that was given */
	struct process_spec spec;
	struct buf input;
	const char *env[4];
};

/* On a fault there is nothing in it to be done. Faults as process_start(). */
int wall_plan_make(struct wall_plan *plan, const char *shim, const struct process_spec *spec);
void wall_plan_done(struct wall_plan *plan);

/* Fill in what the shim needs to know. Borrows the plan. */
void wall_plan_ask(const struct wall_plan *plan, const struct process_spec *spec, struct request *request);

/* Of the three in the order that they are looked for; NULL: it is nowhere in PATH. */
const char *wall_program(struct arena *arena, const char *name);

/* By its name; it needs crun, too. NULL is the default and is not. */
bool wall_is_podman(const char *runtime);

/* What is shown, at this level, without having been granted: -EXDEV if the state directory lies in it. */
int wall_system_check(const struct wall *wall, const char *keep_out);

/* sandbox.c, container.c; machine.c, which makes another spec, and no wall for the shim */
int sandbox_plan(struct wall_plan *plan, const char *shim, const struct process_spec *spec);
int container_plan(struct wall_plan *plan, const char *shim, const struct process_spec *spec);
int machine_plan(struct wall_plan *plan, const char *shim, const struct process_spec *given);

/* What of the server is shown: its socket, or the directory in which that is alone; NULL: nothing. */
const char *plan_door(struct wall_plan *plan, const struct wall *wall);

/* For those three. */
const char *plan_text(struct wall_plan *plan, const char *format, ...) __attribute__((format(printf, 2, 3)));
void plan_word(struct wall_plan *plan, const char *word);
void plan_words(struct wall_plan *plan, const char *const *words);
void plan_grant(struct wall_plan *plan, const char *path, enum grant_access access);
