#include "scene.h"

#include <fcntl.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stdio.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include <cmocka.h>

#include "exec/rundir.h"

enum { TEXTS = 4 };

static void put(int dir, const char *name)
{
	assert_int_equal(rundir_put_secret(dir, name, SPAN("secret")), 0);
}

void scene_open(struct scene *scene, const struct host_options *options)
{
	memset(scene, 0, sizeof *scene);
	world_open_with(&scene->world, options);
	snprintf(scene->home, sizeof scene->home, "%s/home", scene->world.dir);
	snprintf(scene->own, sizeof scene->own, "%s/own", scene->home);
	snprintf(scene->beside, sizeof scene->beside, "%s/sibling", scene->home);
	assert_int_equal(mkdir(scene->home, 0700), 0);
	scene->home_fd = open(scene->home, O_RDONLY | O_DIRECTORY | O_CLOEXEC);
	put(scene->home_fd, "stint.db");
	put(scene->home_fd, "admin.token");
	assert_int_equal(rundir_make(scene->home_fd, "own", &scene->own_fd), 0);
	assert_int_equal(rundir_make(scene->home_fd, "sibling", &scene->sibling_fd), 0);
	put(scene->own_fd, "token");
	put(scene->sibling_fd, "token");
}

void scene_close(struct scene *scene)
{
	process_kill(scene->sibling.process);
	world_until_gone(&scene->sibling);
	running_done(&scene->sibling);
	close(scene->own_fd);
	close(scene->sibling_fd);
	close(scene->home_fd);
	world_close(&scene->world);
}

static bool is_one_of(const char *text, const char *list)
{
	size_t len = strlen(text);

	for (const char *at = list; (at = strstr(at, text)); at++)
		if (len && (at == list || at[-1] == ' ') && (at[len] == ' ' || at[len] == 0))
			return true;
	return false;
}

void scene_attempt(struct scene *scene, scene_spec *spec, const char *const *argv, const char *expected)
{
	struct running running;
	struct process_spec made = spec(&running, argv);

	world_start(&scene->world, &running, &made);
	world_until_gone(&running);
	if (!is_one_of(running_text(&running, STREAM_OUT), expected))
		fail_msg("%s %s %s: '%s', expected %s (%s)", argv[1], argv[2] ? argv[2] : "",
			argv[2] && argv[3] ? argv[3] : "", running_text(&running, STREAM_OUT), expected,
			running_text(&running, STREAM_ERR));
	running_done(&running);
}

const char *in_home(const struct scene *scene, const char *name)
{
	static char paths[TEXTS][300];
	static unsigned next;
	char *path = paths[next++ % TEXTS];

	snprintf(path, sizeof paths[0], "%s/%s", scene->home, name);
	return path;
}

const char *number(int value)
{
	static char text[TEXTS][16];
	static unsigned next;
	char *into = text[next++ % TEXTS];

	snprintf(into, sizeof text[0], "%d", value);
	return into;
}
