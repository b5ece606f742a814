/*
 * What a hostile child would like to get at: a state directory with a database, a token and the run dirs of two attempts, of
 * which the second is running.
 */
#pragma once

#include "world.h"

struct scene {
	struct world world;
	char home[160], own[200],
		beside[200]; /* the state directory; the run dirs of the child and of its sibling */
	int home_fd, own_fd, sibling_fd;
	struct running sibling; /* the test starts it */
};

typedef struct process_spec scene_spec(struct running *running, const char *const *argv);

void scene_open(struct scene *scene, const struct host_options *options);
void scene_close(struct scene *scene);

/* One attempt of hostile.c; it must end in one of these words. */
void scene_attempt(struct scene *scene, scene_spec *spec, const char *const *argv, const char *expected);

/* Good for the next three calls. */
const char *in_home(const struct scene *scene, const char *name);
const char *number(int value);
