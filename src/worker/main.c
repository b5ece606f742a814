/*
 * stint-worker: the supervisor. What the command line and the environment say, where the server is, and what may be run;
 * then supervisor.c. `stint-worker run-once` is the same for one pass.
 */
#include <errno.h>
#include <signal.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/prctl.h>
#include <sys/stat.h>
#include <unistd.h>

#include "base/log.h"
#include "base/take.h"
#include "config/server_place.h"
#include "worker/supervisor.h"
#include "worker/sweep.h"
#include "worker/walls.h"
#include "worker/worktrees.h"

enum {
	EXIT_USAGE = 2,
	EXIT_UNAVAILABLE = 69,
	EXIT_CONFIG = 78,
	SETS_MAX = 64,
	TEXT_BYTES_MAX = 1 << 20,
	LEASE_MS = 60 * 1000,
	SLOT_LEASE_MS = 90 * 1000,
	DRAIN_MS = 5 * 60 * 1000,
};

static const char usage[] =
	"usage: stint-worker [--slot NAME] [--queues a,b | high=4,low=1] [--concurrency N] [FLAGS]\n"
	"\n"
	"Claims tasks and runs them with the executors of its configuration. Reached as `stint worker`, too.\n"
	"\n"
	"  --slot NAME        fill this slot (default $SLOT_ID): one worker at a time, a lease of 90 s\n"
	"  --queues LIST      which queues to serve, with weights if some are to be asked first more often\n"
	"                     (default: those of the configuration, else \"default\")\n"
	"  --concurrency N    tasks at a time, 1 to 1000 (default 1); pools have sizes of their own\n"
	"  --capabilities a,b what it can do, for tasks that require it\n"
	"  --name NAME        the first part of its id (default: the slot, else the name of this machine)\n"
	"  --home DIR         state directory (default $STINT_HOME, $XDG_STATE_HOME/stint, ~/.local/state/stint)\n"
	"  --url URL          the server: http://HOST:PORT or unix:/PATH (default $STINT_URL, else that of the home)\n"
	"  --token TOKEN      credential (default $STINT_TOKEN); others can see it, so a file is better\n"
	"  --token-file FILE  a file with it (default $STINT_TOKEN_FILE, else admin.token of the home)\n"
	"  --remote           the server is on another machine, whatever the address looks like (a tunnel): stop all\n"
	"                     work when it has not answered for nine tenths of the lease\n"
	"  --lease-ms N       how long the server waits for a sign of life (default 60000; 90000 in a slot)\n"
	"  --drain-ms N       how long running work may go on after the first SIGTERM (default 300000)\n"
	"  --config FILE      instead of the three configuration files\n"
	"  --set KEY=VALUE    a key that the server has too, as log.level\n"
	"  --shell            an executor \"shell\" that runs what a task carries, for queue \"shell\"\n"
	"  --root DIR         a directory beneath which tasks may work; may be repeated\n"
	"  --check-config     print what it would run and end; status 78 if something is wrong\n"
	"  --check-isolation  try which levels of isolation can be had here, print that as JSON and end\n"
	"\n"
	"The configuration (JSON, comments allowed): {\"roots\": [\"~/work\"], \"executors\": {\"tests\":\n"
	"{\"kind\": \"command\", \"argv\": [\"make\", \"test\"]}}, \"queues\": {\"ci\": {\"executor\": \"tests\"}}}\n"
	"\n"
	"Try: stint worker --queues ci --concurrency 2\n"
	"     stint worker run-once --agent-id dev-3 --queues dev-team   (run-once --help says more)\n";

static const char once_usage[] =
	"usage: stint-worker run-once --agent-id NAME [--queues a,b] [--config-object FILE] [FLAGS]\n"
	"\n"
	"One pass: takes up what this agent still has, else claims one task; runs it, reports, and prints one line:\n"
	"  {\"ok\":true,\"action\":\"completed\",\"itemId\":\"t-1\",\"title\":\"…\",\"summary\":\"…\",\"links\":[],\"elapsedMs\":1200}\n"
	"action is completed, noop_empty, failed or blocked; the status is 0 for the first two, 1 for the others.\n"
	"\n"
	"  --config-object FILE     an object (JSON) with the fields agentId queues leaseMs progressEveryMs maxIterations\n"
	"                           pollIntervalMs enablePrSweep allowStatuses executionMode model thinking maxToolCalls\n"
	"                           maxRunSeconds; - is standard input. The flags say the same and count more\n"
	"  --agent-id NAME          whose claims it takes up and makes\n"
	"  --queues a,b             from which (default: as a worker)\n"
	"  --lease-ms N             of the claim (default 900000)\n"
	"  --progress-every-ms N    renew the lease, with a note (default 600000)\n"
	"  --max-iterations N       passes (default 1), with a line for each\n"
	"  --poll-interval-ms N     between two of them (default 2000)\n"
	"  --enable-pr-sweep BOOL   sweep first, if a sweep is configured (default true)\n"
	"  --allow-statuses LIST    ready, pending or both (default ready)\n"
	"  --execution-mode WORD    isolated; main needs an agent that can continue a session\n"
	"  --model TEXT, --thinking low|medium|high   for the executor, as STINT_MODEL and STINT_THINKING\n"
	"  --max-tool-calls N       needs an agent whose calls can be counted\n"
	"  --max-run-seconds N      the attempt is ended after that time\n"
	"  --empty-exit N           status if there was nothing to do (default 0)\n"
	"\n"
	"--home --url --token --token-file --remote --drain-ms --config --set --shell --root --capabilities: as a worker.\n"
	"\n"
	"Try: stint worker run-once --agent-id dev-3 --queues dev-team --max-run-seconds 600\n";

static const char trees_usage[] =
	"usage: stint-worker worktrees [--prune] [--json] [FLAGS]\n"
	"\n"
	"Lists the work trees that were made for tasks: live (somebody works with it), kept (there is work in it that was not\n"
	"committed or not pushed; the line says what), making and removing (a worker died over it).\n"
	"\n"
	"  --prune  look at each that nobody works with, and remove those without work in them; what has some stays\n"
	"  --json   {\"schema\":1,\"ok\":true,\"worktrees\":[{\"name\":…,\"state\":…,\"task\":…,\"path\":…,\"branch\":…,\"reason\":…},…]}\n"
	"\n"
	"--home --config --set: as a worker.\n"
	"\n"
	"Try: stint worker worktrees --prune\n";

static const char sweep_usage[] =
	"usage: stint-worker sweep-prs [--repository OWNER/NAME] [--queue NAME] [--executor NAME] [FLAGS]\n"
	"\n"
	"Asks gh for the open pull requests that are no drafts and that nobody has approved, and adds a task for each: once\n"
	"for each commit, and never two at a time for one pull request. Prints {\"ok\":true,\"action\":\"swept\",…,\"added\":1}.\n"
	"Status 69 without gh, 1 if gh or the server fails; then standard error says why.\n"
	"\n"
	"  --repository OWNER/NAME  (default: \"prSweep\" of the configuration, else that of the current directory)\n"
	"  --queue NAME             of the tasks (default: as configured, else the first queue that is served)\n"
	"  --executor NAME          that is to run them (default: as configured, else none is named)\n"
	"\n"
	"--home --url --token --token-file --config --set: as a worker.\n"
	"\n"
	"Try: stint worker sweep-prs --repository owner/name --queue dev-team\n";

struct flags {
	const char *slot, *queues, *capabilities, *name, *home, *url, *token, *token_file, *config;
	const char *roots[ROOTS_MAX];
	uint32_t root_count;
	struct config_flag sets[SETS_MAX];
	char keys[SETS_MAX][CONFIG_NAME_MAX];
	uint32_t set_count;
	int64_t concurrency, drain_ms, lease_ms;
	bool remote, shell, check_config, check_isolation, help, version;
	bool once;   /* run-once */
	bool sweeps; /* sweep-prs */
	bool trees;  /* worktrees */
	bool prune, json;
	struct settings_sweep sweep;
	struct once_config pass;
};

static int complain(const char *format, ...) __attribute__((format(printf, 1, 2)));

static int complain(const char *format, ...)
{
	va_list args;

	va_start(args, format);
	fputs("stint-worker: ", stderr);
	vfprintf(stderr, format, args);
	fputc('\n', stderr);
	va_end(args);
	return EXIT_USAGE;
}

/* ---- the command line -------------------------------------------------------------------------------------- */

static int take_number(const char *flag, const char *text, int64_t least, int64_t most, int64_t *ret_number)
{
	char *end;

	errno = 0;
	long long number = strtoll(text, &end, 10);
	if (errno || end == text || *end || number < least || number > most)
		return complain("%s must be a whole number from %lld to %lld; it is \"%s\"", flag,
			(long long)least, (long long)most, text);
	*ret_number = number;
	return 0;
}

static int take_set(struct flags *flags, const char *text)
{
	const char *equals = strchr(text, '=');

	if (!equals || equals == text || equals - text >= CONFIG_NAME_MAX || flags->set_count == SETS_MAX)
		return complain("--set wants KEY=VALUE; it is \"%s\"", text);
	char *key = flags->keys[flags->set_count];
	memcpy(key, text, (size_t)(equals - text));
	flags->sets[flags->set_count++] = (struct config_flag){"--set", key, equals + 1};
	return 0;
}

static int take_value(struct flags *flags, const char *flag, const char *value)
{
	const struct {
		const char *name;
		const char **text;
	} texts[] = {
		{"--slot", &flags->slot},
		{"--queues", &flags->queues},
		{"--capabilities", &flags->capabilities},
		{"--name", &flags->name},
		{"--home", &flags->home},
		{"--url", &flags->url},
		{"--token", &flags->token},
		{"--token-file", &flags->token_file},
		{"--config", &flags->config},
	};

	for (size_t i = 0; i < sizeof texts / sizeof *texts; i++) {
		if (strcmp(texts[i].name, flag) == 0) {
			*texts[i].text = value;
			return 0;
		}
	}
	if (flags->once && strcmp(flag, "--config-object") == 0)
		return 0; /* it was read before */
	if (flags->once) {
		char complaint[ONCE_COMPLAINT_BYTES];
		int r = once_config_flag(&flags->pass, flag, value, complaint);
		if (r != -ENOENT)
			return r < 0 ? complain("%s", complaint) : 0;
	}
	if (flags->sweeps && strcmp(flag, "--repository") == 0 && settings_is_repository(value)) {
		flags->sweep.repository = value;
		return 0;
	}
	if (flags->sweeps && strcmp(flag, "--repository") == 0)
		return complain("--repository must be owner/name; it is \"%s\"", value);
	if (flags->sweeps && (strcmp(flag, "--queue") == 0 || strcmp(flag, "--executor") == 0)) {
		if (!settings_is_name(value))
			return complain(
				"%s must be a name: letters, digits and -._:; it is \"%s\"", flag, value);
		*(strcmp(flag, "--queue") == 0 ? &flags->sweep.queue : &flags->sweep.executor) = value;
		return 0;
	}
	if (strcmp(flag, "--set") == 0)
		return take_set(flags, value);
	if (strcmp(flag, "--root") == 0) {
		if (value[0] != '/' || flags->root_count == ROOTS_MAX)
			return complain("--root wants an absolute path; it is \"%s\"", value);
		flags->roots[flags->root_count++] = value;
		return 0;
	}
	if (strcmp(flag, "--concurrency") == 0)
		return take_number(flag, value, 1, CONCURRENCY_MAX, &flags->concurrency);
	if (strcmp(flag, "--drain-ms") == 0)
		return take_number(flag, value, 0, INT64_C(24) * 3600 * 1000, &flags->drain_ms);
	if (strcmp(flag, "--lease-ms") == 0)
		return take_number(flag, value, 1000, INT64_C(24) * 3600 * 1000, &flags->lease_ms);
	return complain("there is no flag %s; stint-worker --help lists those there are", flag);
}

static bool take_switch(struct flags *flags, const char *flag)
{
	const struct {
		const char *name;
		bool *on;
	} switches[] = {
		{"--remote", &flags->remote},
		{"--shell", &flags->shell},
		{"--check-config", &flags->check_config},
		{"--check-isolation", &flags->check_isolation},
		{flags->trees ? "--prune" : "", &flags->prune},
		{flags->trees ? "--json" : "", &flags->json},
		{"--help", &flags->help},
		{"-h", &flags->help},
		{"--version", &flags->version},
	};

	for (size_t i = 0; i < sizeof switches / sizeof *switches; i++) {
		if (strcmp(switches[i].name, flag) == 0)
			return *switches[i].on = true;
	}
	return false;
}

/* First the object, then the flags: those count more. */
static int read_object(int argc, char **argv, struct flags *flags)
{
	static const char name[] = "--config-object";
	static struct arena arena;
	char complaint[ONCE_COMPLAINT_BYTES];

	flags->pass = once_config_default();
	arena_init(&arena, 1 << 20);
	for (int i = 1; i < argc; i++) {
		const char *path = strncmp(argv[i], name, sizeof name - 1) != 0 ? NULL
			: argv[i][sizeof name - 1] == '='                       ? argv[i] + sizeof name
			: argv[i][sizeof name - 1] == 0 && i + 1 < argc         ? argv[i + 1]
										: NULL;
		if (path && once_config_read(&flags->pass, path, &arena, complaint) < 0) {
			complain("%s", complaint);
			return EXIT_CONFIG;
		}
	}
	return 0;
}

static int read_flags(int argc, char **argv, struct flags *flags)
{
	char name[64];
	int r = 0;

	for (int i = 1; r == 0 && i < argc; i++) {
		const char *equals = strchr(argv[i], '=');
		if (take_switch(flags, argv[i]))
			continue;
		if (strncmp(argv[i], "--", 2) != 0)
			return complain("\"%s\" is no flag; stint-worker --help lists them", argv[i]);
		if (equals && equals - argv[i] < (ptrdiff_t)sizeof name) {
			snprintf(name, sizeof name, "%.*s", (int)(equals - argv[i]), argv[i]);
			r = take_value(flags, name, equals + 1);
		} else if (i + 1 < argc) {
			r = take_value(flags, argv[i], argv[i + 1]);
			i++;
		} else {
			r = complain(
				"%s wants a value, or is no flag; stint-worker --help lists them", argv[i]);
		}
	}
	return r;
}

/* ---- the server --------------------------------------------------------------------------------------------- */

/* The socket of the home need not be there yet: a worker waits for its server. */
static int find_server(const struct flags *flags, const char *home, struct supervisor_options *options)
{
	static struct server_place place;
	const struct server_place_flags given = {flags->url, flags->home, flags->token, flags->token_file};
	char complaint[SERVER_PLACE_COMPLAINT_BYTES];

	if (server_place_find(&given, home, &place, complaint) < 0)
		return complain("%s", complaint);
	options->address = place.address;
	options->url = place.url;
	options->token = place.token[0] ? place.token : NULL;
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
		if (equals && take_number("the weight of a queue", equals + 1, 1, 1000, &weight) != 0)
			return EXIT_USAGE;
		if (!settings_is_name(item) || settings_add_queue(settings, item, weight) < 0)
			return complain("\"%s\" is no name of a queue, or there are too many", item);
		for (uint32_t i = 0; i < kept_count; i++) {
			if (strcmp(kept[i].name, item) == 0)
				settings->queues[settings->queue_count - 1].executor = kept[i].executor;
		}
	}
	return settings->queue_count > 0 ? 0 : complain("--queues wants names, as in a,b or high=4,low=1");
}

static int take_capabilities(struct supervisor_options *options, char *list)
{
	char *item;

	while ((item = next_item(&list))) {
		if (!settings_is_name(item) || options->capability_count == CAPABILITIES_MAX)
			return complain("\"%s\" is no name of a capability, or there are too many", item);
		options->capabilities[options->capability_count++] = item;
	}
	return 0;
}

static int take_served(
	const struct flags *flags, struct settings *settings, struct supervisor_options *options)
{
	static char queues[4096], capabilities[4096];
	bool configured = settings->executor_count > 0;
	int r = 0;

	if ((flags->queues && strlen(flags->queues) >= sizeof queues) ||
		(flags->capabilities && strlen(flags->capabilities) >= sizeof capabilities))
		return complain("a list is too long");
	if (flags->queues)
		r = take_queues(settings, strcpy(queues, flags->queues));
	if (r == 0 && flags->capabilities)
		r = take_capabilities(options, strcpy(capabilities, flags->capabilities));
	if (r == 0 && !flags->queues && settings->queue_count == 0 && (configured || !flags->shell))
		settings_add_queue(settings, "default", 1);
	if (r == 0 && flags->shell) {
		settings_add_payload(settings, "shell");
		if (!flags->queues)
			settings_add_queue(settings, "shell", 1);
	}
	for (uint32_t i = 0; i < flags->root_count && settings->root_count < ROOTS_MAX; i++)
		settings->roots[settings->root_count++] = flags->roots[i];
	return r;
}

static int take_name(const struct flags *flags, struct supervisor_options *options)
{
	static char host[65];

	if (flags->once)
		return flags->slot || flags->name || flags->concurrency != 1
			? complain(
				  "--slot, --name and --concurrency are not for run-once: it does one task at a time, as its agent")
			: 0;
	options->slot = flags->slot ? flags->slot : config_variable("SLOT_ID");
	if (options->slot && (!settings_is_name(options->slot) || strlen(options->slot) > 100))
		return complain(
			"\"%s\" is no name of a slot: letters, digits and -._:, at most 100", options->slot);
	gethostname(host, sizeof host - 1);
	options->name = flags->name ? flags->name : options->slot ? options->slot : host;
	if (!settings_is_name(options->name) || strlen(options->name) > 100) {
		if (flags->name)
			return complain(
				"\"%s\" is no name: letters, digits and -._:, at most 100", flags->name);
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

static int print_settings(const struct settings *settings)
{
	cleanup(buf_done) struct buf text;

	buf_init(&text, TEXT_BYTES_MAX);
	if (settings_put(&text, settings) == 0)
		fwrite(text.data, 1, text.len, stdout);
	return 0;
}

/* For `stint doctor`. */
static int print_isolation(const struct settings *settings)
{
	cleanup(buf_done) struct buf text;

	buf_init(&text, TEXT_BYTES_MAX);
	if (walls_report(settings, &text) == 0)
		fwrite(text.data, 1, text.len, stdout);
	return 0;
}

/* As an absolute path: children get paths beneath it. */
static int absolute(const char *path, char *out, size_t room)
{
	char here[4096];
	int len = path[0] == '/'            ? snprintf(out, room, "%s", path)
		: getcwd(here, sizeof here) ? snprintf(out, room, "%s/%s", here, path)
					    : -1;

	return len > 0 && (size_t)len < room ? 0 : complain("the path of the state directory is too long");
}

/* Where the tasks go: as the flags say, else the configuration, else the first queue that is served. */
static struct settings_sweep sweep_of(const struct flags *flags, const struct settings *settings)
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
static int sweep(const struct flags *flags, const struct supervisor_options *options)
{
	struct settings_sweep what = sweep_of(flags, options->settings);
	struct sweep_result result;

	int r = sweep_prs(options, &what, &result);
	if (r < 0) {
		complain("%s", result.complaint);
		return r == -ENOENT ? EXIT_UNAVAILABLE : 1;
	}
	printf("{\"ok\":true,\"action\":\"swept\",\"queue\":\"%s\",\"found\":%u,\"added\":%u}\n", what.queue,
		result.found, result.added);
	return 0;
}

/* Before the first pass. What it cannot do keeps nobody from working. */
static void sweep_before(const struct flags *flags, const struct supervisor_options *options)
{
	struct settings_sweep what = sweep_of(flags, options->settings);
	struct sweep_result result;

	if (flags->pass.enable_pr_sweep && what.on && sweep_prs(options, &what, &result) < 0)
		complain("the sweep was left out: %s", result.complaint);
}

static int supervise(struct flags *flags, struct config *config, struct settings *settings)
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
	if (r == 0 && flags->trees)
		return worktrees_list(home, settings->landlock_optional, flags->prune, flags->json);
	if (r == 0)
		r = take_name(flags, &options);
	if (r == 0)
		r = take_served(flags, settings, &options);
	if (r == 0 && flags->check_config)
		return print_settings(settings);
	if (r == 0 && flags->check_isolation)
		return print_isolation(settings);
	if (r == 0)
		r = find_server(flags, home, &options);
	if (r != 0)
		return r;
	if (flags->sweeps)
		return sweep(flags, &options);
	if (settings->executor_count == 0) {
		complain(
			"there is nothing that it may run: the configuration has no \"executors\"; as in\n"
			"  {\"executors\": {\"tests\": {\"kind\": \"command\", \"argv\": [\"make\", \"test\"]}}}");
		return EXIT_CONFIG;
	}
	char complaint[ONCE_COMPLAINT_BYTES];
	if (flags->once && once_config_check(&flags->pass, settings, complaint) < 0) {
		complain("%s", complaint);
		return EXIT_CONFIG;
	}
	options.lease_ms = flags->lease_ms > 0 ? flags->lease_ms : options.slot ? SLOT_LEASE_MS : LEASE_MS;
	bool hushed = flags->once && config->values[CONFIG_LOG_LEVEL].origin.source == CONFIG_DEFAULT;
	log_start(STDERR_FILENO, (enum log_format)config_number(config, CONFIG_LOG_FORMAT),
		hushed ? LEVEL_WARN : (enum log_level)config_number(config, CONFIG_LOG_LEVEL));
	if (flags->once)
		sweep_before(flags, &options);
	return supervisor_run(&supervisor, &options);
}

int main(int argc, char **argv)
{
	static struct flags flags = {.concurrency = 1, .drain_ms = DRAIN_MS};
	static struct settings settings;
	static struct config config;

	flags.once = argc > 1 && strcmp(argv[1], "run-once") == 0;
	flags.sweeps = argc > 1 && strcmp(argv[1], "sweep-prs") == 0;
	flags.trees = argc > 1 && strcmp(argv[1], "worktrees") == 0;
	argc -= flags.once || flags.sweeps || flags.trees;
	argv += flags.once || flags.sweeps || flags.trees;
	int r = flags.once ? read_object(argc, argv, &flags) : 0;
	if (r == 0)
		r = read_flags(argc, argv, &flags);
	if (r != 0)
		return r;
	if (flags.help || flags.version) {
		fputs(flags.help && flags.trees              ? trees_usage
				: flags.help && flags.sweeps ? sweep_usage
				: flags.help && flags.once   ? once_usage
				: flags.help                 ? usage
							     : "stint-worker " STINT_VERSION "\n",
			stdout);
		return 0;
	}
	signal(SIGPIPE, SIG_IGN);
	umask(077);
	prctl(PR_SET_DUMPABLE, 0);
	struct config_request request = {
		.home = flags.home,
		.file = flags.config,
		.flags = flags.sets,
		.flag_count = flags.set_count,
		.foreign_read = settings_read,
		.foreign_context = &settings,
	};
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
