/*
 * stint-worker: the supervisor. What the command line and the environment say, where the server is, and what may be run;
 * then supervisor.c. `stint-worker run-once` is the same for one pass.
 */
#include <errno.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/prctl.h>
#include <sys/stat.h>
#include <unistd.h>

#include "base/log.h"
#include "base/take.h"
#include "config/server_place.h"
#include "worker/agents.h"
#include "worker/enroll/enroll.h"
#include "worker/settings/flags.h"
#include "worker/once/sweep.h"
#include "attempt/walls.h"
#include "worktree/worktrees.h"

enum {
	TEXT_BYTES_MAX = 1 << 20,
	LEASE_MS = 60 * 1000,
	SLOT_LEASE_MS = 90 * 1000,
	DRAIN_MS = 5 * 60 * 1000,
};

/* ---- the server --------------------------------------------------------------------------------------------- */

/* The socket of the home need not be there yet: a worker waits for its server. */
static int find_server(const struct worker_flags *flags, const char *home, struct supervisor_options *options)
{
	static struct server_place place;
	const struct server_place_flags given = {flags->url, flags->home, flags->token, flags->token_file,
		flags->ca, .plain = flags->plain, .looks = false, .enrols = true};
	char complaint[SERVER_PLACE_COMPLAINT_BYTES];

	if (server_place_find(&given, home, &place, complaint) < 0)
		return worker_complain("%s", complaint);
	options->address = place.address;
	options->url = place.url;
	options->token = place.token[0] ? place.token : NULL;
	options->token_file = strchr(place.token_from, '/') ? place.token_from : NULL;
	options->same_host = !flags->remote && http_address_is_loopback(&options->address);
	return 0;
}

/* ---- what it serves ------------------------------------------------------------------------------------------- */

/* Walk a,b,c in place; NULL at the end. */
static char *next_item(char **at)
{
	char *item = *at;

	if (!item || !*item)
		return NULL;
	char *comma = strchr(item, ',');
	*at = comma ? comma + 1 : item + strlen(item);
	if (comma)
		*comma = 0;
	return item;
}

/* --queues takes the place of the list in the configuration; a queue of both keeps its executor. */
static int take_queues(struct settings *settings, char *list)
{
	struct settings_queue kept[QUEUES_MAX];
	uint32_t kept_count = settings->queue_count;
	int64_t weight;
	char *item;

	memcpy(kept, settings->queues, sizeof kept);
	settings->queue_count = 0;
	while ((item = next_item(&list))) {
		char *equals = strchr(item, '=');
		weight = 1;
		if (equals)
			*equals = 0;
		if (equals && flags_take_number("the weight of a queue", equals + 1, 1, 1000, &weight) != 0)
			return EXIT_USAGE;
		struct settings_queue *queue =
			settings_is_name(item) ? settings_add_queue(settings, item, weight) : NULL;
		if (!queue)
			return worker_complain(
				"\"%s\" is not a name of a queue, or there are too many", item);
		for (uint32_t i = 0; i < kept_count; i++) {
			if (strcmp(kept[i].name, item) == 0)
				queue->executor = kept[i].executor;
		}
	}
	return settings->queue_count > 0 ? 0
					 : worker_complain("--queues wants names, as in a,b or high=4,low=1");
}

static int take_capabilities(struct supervisor_options *options, char *list)
{
	char *item;

	while ((item = next_item(&list))) {
		if (!settings_is_name(item) || options->capability_count == CAPABILITIES_MAX)
			return worker_complain(
				"\"%s\" is not a name of a capability, or there are too many", item);
		options->capabilities[options->capability_count++] = item;
	}
	return 0;
}

/* For tasks of the queue that name no executor, unless the configuration says which. */
static void name_executor(struct settings_queue *queue, const char *executor)
{
	if (queue && !queue->executor)
		queue->executor = executor;
}

/* An agent has a queue of its own name: what names no executor elsewhere is not for it, and costs no money unasked. */
static void serve_agents(struct settings *settings)
{
	for (uint32_t i = 0; i < settings->executor_count; i++) {
		const struct executor *executor = &settings->executors[i];
		if (executor->agent)
			name_executor(settings_add_queue(settings, executor->name, 1), executor->name);
	}
}

static int take_served(const struct worker_flags *flags, struct config *config, struct settings *settings,
	struct supervisor_options *options)
{
	static char queues[4096], capabilities[4096];
	bool configured = settings->executor_count > 0;
	int r = 0;

	if ((flags->queues && strlen(flags->queues) >= sizeof queues) ||
		(flags->capabilities && strlen(flags->capabilities) >= sizeof capabilities))
		return worker_complain("a list is too long");
	if (flags->queues)
		r = take_queues(settings, strcpy(queues, flags->queues));
	if (r == 0 && flags->capabilities)
		r = take_capabilities(options, strcpy(capabilities, flags->capabilities));
	if (r == 0 && !flags->queues && settings->queue_count == 0 && (configured || !flags->shell))
		settings_add_queue(settings, "default", 1);
	if (r == 0 && flags->shell) {
		settings_add_payload(settings, "shell");
		if (!flags->queues)
			name_executor(settings_add_queue(settings, "shell", 1), "shell");
	}
	if (r == 0 && flags->agents)
		settings_add_agents(settings, config);
	if (r == 0 && !flags->queues)
		serve_agents(settings);
	for (uint32_t i = 0; i < flags->root_count && settings->root_count < ROOTS_MAX; i++)
		settings->roots[settings->root_count++] = flags->roots[i];
	const char *home = flags->under_home ? getenv("HOME") : NULL;
	if (home && home[0] == '/' && settings->root_count < ROOTS_MAX) {
		settings->roots[settings->root_count++] = home;
		settings->home_root = true;
	}
	return r;
}

static int take_name(const struct worker_flags *flags, struct supervisor_options *options)
{
	static char host[65];

	if (flags->once)
		return flags->slot || flags->name || flags->concurrency != 1
			? worker_complain(
				  "--slot, --name and --concurrency are not for run-once: it does one task at a time, as its agent")
			: 0;
	options->slot = flags->slot ? flags->slot : config_variable("SLOT_ID");
	if (options->slot && (!settings_is_name(options->slot) || strlen(options->slot) > 100))
		return worker_complain(
			"\"%s\" is not a name of a slot: letters, digits and -._:, at most 100",
			options->slot);
	gethostname(host, sizeof host - 1);
	options->name = flags->name ? flags->name : options->slot ? options->slot : host;
	if (!settings_is_name(options->name) || strlen(options->name) > 100) {
		if (flags->name)
			return worker_complain(
				"\"%s\" is not a name: letters, digits and -._:, at most 100", flags->name);
		options->name = "worker";
	}
	return 0;
}

/* ---- all of it -------------------------------------------------------------------------------------------------- */

static void print_problems(const struct config *config)
{
	cleanup(buf_done) struct buf text;

	buf_init(&text, TEXT_BYTES_MAX);
	if (config_put_problems(&text, config, "stint-worker: ") < 0)
		fputs("stint-worker: the configuration is wrong, and there is no memory to say how\n",
			stderr);
	fwrite(text.data, 1, text.len, stderr);
}

/* --check-config; or --check-isolation, for `stint doctor`. */
static int print_check(const struct settings *settings, const char *home, bool isolation)
{
	struct wall_trial trial = {.landlock_optional = settings->landlock_optional, .keep_out = home};
	cleanup(buf_done) struct buf text;

	buf_init(&text, TEXT_BYTES_MAX);
	int r = isolation ? walls_report(settings->executors, settings->executor_count, &trial, &text)
			  : settings_put(&text, settings);
	if (r == 0 && isolation)
		r = settings_put_findings(&text, settings);
	if (r == 0 && isolation)
		r = buf_put_byte(&text, ']');
	if (r == 0)
		fwrite(text.data, 1, text.len, stdout);
	return 0;
}

/* Also what would fail only when a task comes. A server need not be there. */
static int check(
	const struct worker_flags *flags, struct config *config, struct settings *settings, const char *home)
{
	bool config_alone = flags->check_config;

	settings_hide_token(settings, config,
		flags->token_file ? flags->token_file : config_variable("STINT_TOKEN_FILE"));
	if (config_alone)
		settings_check_programs(settings, config);
	if (config->problem_count > 0) {
		print_problems(config);
		return EXIT_CONFIG;
	}
	return print_check(settings, home, !config_alone);
}

/* As an absolute path: children get paths beneath it. */
static int absolute(const char *path, char *out, size_t room)
{
	char here[4096];
	int len = path[0] == '/'            ? snprintf(out, room, "%s", path)
		: getcwd(here, sizeof here) ? snprintf(out, room, "%s/%s", here, path)
					    : -1;

	return len > 0 && (size_t)len < room ? 0
					     : worker_complain("the path of the state directory is too long");
}

/* Where the tasks go: as the flags say, else the configuration, else the first queue that is served. */
static struct settings_sweep sweep_of(const struct worker_flags *flags, const struct settings *settings)
{
	struct settings_sweep sweep = settings->sweep;

	if (flags->sweep.repository)
		sweep.repository = flags->sweep.repository;
	if (flags->sweep.executor)
		sweep.executor = flags->sweep.executor;
	if (flags->sweep.queue)
		sweep.queue = flags->sweep.queue;
	if (!sweep.queue)
		sweep.queue = settings->queue_count > 0 ? settings->queues[0].name : "default";
	return sweep;
}

/* {"ok":true,"action":"swept","found":3,"added":1} */
static int sweep(const struct worker_flags *flags, const struct supervisor_options *options)
{
	struct settings_sweep what = sweep_of(flags, options->settings);
	struct sweep_result result;

	int r = sweep_prs(options, &what, &result);
	if (r < 0) {
		worker_complain("%s", result.complaint);
		return r == -ENOENT ? EXIT_UNAVAILABLE : 1;
	}
	printf("{\"ok\":true,\"action\":\"swept\",\"queue\":\"%s\",\"found\":%u,\"added\":%u}\n", what.queue,
		result.found, result.added);
	return 0;
}

/* A signal that arrives before the supervisor listens is held until it does. In all other modes a signal ends the program as
 * usual. */
static void hold_signals(bool hold)
{
	sigset_t held;

	sigemptyset(&held);
	sigaddset(&held, SIGTERM);
	sigaddset(&held, SIGINT);
	sigprocmask(hold ? SIG_BLOCK : SIG_UNBLOCK, &held, NULL);
}

/* Before the first pass. What it cannot do keeps nobody from working. */
static void sweep_before(const struct worker_flags *flags, const struct supervisor_options *options)
{
	struct settings_sweep what = sweep_of(flags, options->settings);
	struct sweep_result result;

	hold_signals(false);
	if (flags->pass.enable_pr_sweep && what.on && sweep_prs(options, &what, &result) < 0)
		worker_complain("the sweep was left out: %s", result.complaint);
	hold_signals(true);
}

/* The others can run: a program may be installed later. */
static void warn_of_programs(const struct settings *settings)
{
	for (uint32_t i = 0; i < settings->executor_count; i++) {
		const char *missing = settings_missing_program(settings, &settings->executors[i]);
		if (missing)
			log_warn("the program of an executor is not there",
				log_cstr("executor", settings->executors[i].name),
				log_cstr("program", missing));
	}
}

static int supervise(struct worker_flags *flags, struct config *config, struct settings *settings)
{
	static struct supervisor supervisor;
	static struct supervisor_options options;
	static char home[3000];

	options = (struct supervisor_options){
		.settings = settings,
		.home = home,
		.concurrency = (uint32_t)flags->concurrency,
		.drain_ms = flags->drain_ms,
	};
	if (flags->once) {
		options.once = &flags->pass;
		if (!flags->queues)
			flags->queues = flags->pass.queues;
	}
	int r = absolute(config->home.text, home, sizeof home);
	if (r == 0 && flags->trees) {
		settings_settle_path(settings, config, home);
		return worktrees_list(home, settings->landlock_optional, flags->prune, flags->json);
	}
	if (r == 0 && flags->asks_agents) {
		settings_add_agents(settings, config);
		settings_settle_path(settings, config, home);
		return agents_run(settings,
			&(struct agents_request){flags->agent_action, flags->agent_name, home, flags->json});
	}
	if (r == 0)
		r = take_name(flags, &options);
	if (r == 0)
		r = take_served(flags, config, settings, &options);
	settings_settle_path(settings, config, home);
	if (r == 0 && (flags->check_config || flags->check_isolation))
		return check(flags, config, settings, home);
	if (r == 0)
		r = find_server(flags, home, &options);
	if (r != 0)
		return r;
	if (!settings_hide_token(settings, config, options.token_file)) {
		print_problems(config);
		return EXIT_CONFIG;
	}
	if (flags->sweeps)
		return sweep(flags, &options);
	if (settings->executor_count == 0) {
		worker_complain(
			"there is nothing that it may run: the configuration has no \"executors\"; as in\n"
			"  {\"executors\": {\"tests\": {\"kind\": \"command\", \"argv\": [\"make\", \"test\"]}}}");
		return EXIT_CONFIG;
	}
	char complaint[ONCE_COMPLAINT_BYTES];
	if (flags->once && once_config_check(&flags->pass, settings, complaint) < 0) {
		worker_complain("%s", complaint);
		return EXIT_CONFIG;
	}
	options.lease_ms = flags->lease_ms > 0 ? flags->lease_ms : options.slot ? SLOT_LEASE_MS : LEASE_MS;
	bool hushed = flags->once && config->values[CONFIG_LOG_LEVEL].origin.source == CONFIG_DEFAULT;
	log_start(STDERR_FILENO, (enum log_format)config_number(config, CONFIG_LOG_FORMAT),
		hushed ? LEVEL_WARN : (enum log_level)config_number(config, CONFIG_LOG_LEVEL));
	warn_of_programs(settings);
	if (flags->once)
		sweep_before(flags, &options);
	return supervisor_run(&supervisor, &options);
}

/* The state directory of a worker alone: where the unit of the package looks, or beside that of `stint up`. */
static bool enrolled_home(const struct worker_flags *flags, char *ret_home, size_t room)
{
	const char *given = flags->home ? flags->home : config_variable("STINT_HOME");
	char usual[3000];
	int len;

	if (given)
		return absolute(given, ret_home, room) == 0;
	if (geteuid() != 0 && !config_usual_home(usual, sizeof usual)) {
		worker_complain("$HOME is not set; name the state directory with --home");
		return false;
	}
	len = geteuid() == 0 ? snprintf(ret_home, room, "/var/lib/stint-worker")
			     : snprintf(ret_home, room, "%s-worker", usual);
	return len > 0 && (size_t)len < room;
}

static int enrol(const struct worker_flags *flags)
{
	char home[3000];

	if (!flags->enrol_url || !flags->enrol_code)
		return worker_complain(
			"enroll wants two words, the address of the server and a code: stint worker invite prints them");
	if (!enrolled_home(flags, home, sizeof home))
		return EXIT_USAGE;
	return enrol_run(&(struct enrol_request){
		.url = flags->enrol_url,
		.code = flags->enrol_code,
		.home = home,
		.name = flags->name,
		.ca = flags->ca,
		.plain = flags->plain,
		.json = flags->json,
	});
}

int main(int argc, char **argv)
{
	static struct worker_flags flags = {.concurrency = 1, .drain_ms = DRAIN_MS};
	static struct settings settings;
	static struct config config;

	hold_signals(true);
	setenv("UV_THREADPOOL_SIZE", "16",
		0); /* lookups of names: those of proxies take 12 of them at the most */
	flags_take_mode(&argc, &argv, &flags);
	int r = flags.once ? flags_read_object(argc, argv, &flags) : 0;
	if (r == 0)
		r = flags_read(argc, argv, &flags);
	if (r != 0)
		return r;
	if (flags.help || flags.version) {
		fputs(flags.help && flags.enrols                  ? worker_usage_enroll
				: flags.help && flags.asks_agents ? worker_usage_agent
				: flags.help && flags.trees       ? worker_usage_trees
				: flags.help && flags.sweeps      ? worker_usage_sweep
				: flags.help && flags.once        ? worker_usage_once
				: flags.help                      ? worker_usage
								  : "stint-worker " STINT_VERSION "\n",
			stdout);
		return 0;
	}
	if (flags.sweeps || flags.trees || flags.asks_agents || flags.enrols || flags.check_config ||
		flags.check_isolation)
		hold_signals(false);
	signal(SIGPIPE, SIG_IGN);
	umask(077);
	prctl(PR_SET_DUMPABLE, 0);
	if (flags.enrols)
		return enrol(&flags);
	struct config_request request = {
		.home = flags.home,
		.file = flags.config,
		.flags = flags.sets.flags,
		.flag_count = flags.sets.count,
		.foreign_read = settings_read,
		.foreign_context = &settings,
	};
	settings.file = flags.config;
	config_read(&config, &request);
	settings_check(&settings, &config);
	settings_check_budgets(&settings, &config);
	if (config.problem_count > 0) {
		print_problems(&config);
		r = EXIT_CONFIG;
	} else {
		r = supervise(&flags, &config, &settings);
	}
	config_done(&config);
	return r;
}
