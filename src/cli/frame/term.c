#include "cli/frame/term.h"

#include <ctype.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/ioctl.h>
#include <unistd.h>

#include "config/config.h"

enum {
	WIDTH_DEFAULT = 80,
	WIDTH_MAX = 10000,
};

static bool is_dumb(void)
{
	const char *term = config_variable("TERM");

	return !term || strcmp(term, "dumb") == 0;
}

static bool has_color(bool tty, enum color_wish wish)
{
	const char *force = config_variable("CLICOLOR_FORCE");

	if (wish != COLOR_AUTO)
		return wish == COLOR_ALWAYS;
	if (config_variable("NO_COLOR"))
		return false;
	if (force && strcmp(force, "0") != 0)
		return true;
	return tty && !is_dumb();
}

/* By the names of the locale alone: to load it costs more than all we do. */
static bool is_utf8(void)
{
	const char *names[] = {
		config_variable("LC_ALL"), config_variable("LC_CTYPE"), config_variable("LANG")};

	for (size_t i = 0; i < sizeof names / sizeof *names; i++) {
		if (names[i])
			return strcasestr(names[i], "utf-8") || strcasestr(names[i], "utf8");
	}
	return false;
}

static size_t width_of(int fd, bool tty)
{
	const char *columns = config_variable("COLUMNS");
	struct winsize size;

	if (columns && isdigit((unsigned char)columns[0])) {
		long width = strtol(columns, NULL, 10);
		if (width > 0 && width <= WIDTH_MAX)
			return (size_t)width;
	}
	if (!tty)
		return 0;
	return ioctl(fd, TIOCGWINSZ, &size) == 0 && size.ws_col > 0 ? size.ws_col : WIDTH_DEFAULT;
}

static size_t height_of(int fd, bool tty)
{
	struct winsize size;

	return tty && ioctl(fd, TIOCGWINSZ, &size) == 0 ? size.ws_row : 0;
}

/* ---- the title of the window --------------------------------------------------------------------------------- */

/* The terminal keeps the title that was, so that it can be put back; nobody else knows that title. */
#define TITLE_KEEP "\033[22;2t"
#define TITLE_BACK "\033[23;2t"

static volatile sig_atomic_t title_is_ours;

/* Those that have a title know both escapes, or pass over the one that they do not know. The console of Linux has none. */
static bool has_title(void)
{
	static const char *const begins[] = {"xterm", "tmux", "screen", "rxvt", "alacritty", "foot",
		"konsole", "vte", "gnome", "st-", "wezterm"};
	const char *term = getenv("TERM");

	for (size_t i = 0; term && i < sizeof begins / sizeof *begins; i++) {
		if (strncmp(term, begins[i], strlen(begins[i])) == 0)
			return true;
	}
	return false;
}

void term_look(struct term *term, enum color_wish wish)
{
	term->tty = isatty(STDOUT_FILENO);
	term->talk_tty = isatty(STDERR_FILENO);
	term->color = has_color(term->tty, wish);
	term->talk_color = has_color(term->talk_tty, wish);
	term->utf8 = is_utf8() || !term->tty; /* a file takes every letter */
	term->glyphs = term->utf8 && !(term->tty && is_dumb());
	term->moves = term->tty && !is_dumb();
	term->talk_moves = term->talk_tty && !is_dumb();
	term->titles = term->talk_moves && has_title();
	term->width = width_of(STDOUT_FILENO, term->tty);
	term->talk_width = width_of(STDERR_FILENO, term->talk_tty);
	term->height = height_of(STDOUT_FILENO, term->tty);
}

void term_title(const char *text)
{
	fprintf(stderr, "%s\033]2;%s\007", title_is_ours ? "" : TITLE_KEEP, text);
	title_is_ours = 1;
}

void term_title_back(void)
{
	if (title_is_ours)
		fputs(TITLE_BACK, stderr);
	title_is_ours = 0;
}

/* Only what a signal handler may: a write, and the signal once more with its usual effect. */
static void wipe_and_end(int number)
{
	static const char wipe[] = "\r\033[K", wipe_all[] = TITLE_BACK "\r\033[K";
	bool all = title_is_ours != 0;

	if (write(STDERR_FILENO, all ? wipe_all : wipe, (all ? sizeof wipe_all : sizeof wipe) - 1) < 0) {
		/* there is no terminal any more */
	}
	raise(number);
}

void term_wipe_at_signals(void)
{
	struct sigaction action = {.sa_handler = wipe_and_end, .sa_flags = SA_RESETHAND | SA_NODEFER};

	sigaction(SIGINT, &action, NULL);
	sigaction(SIGTERM, &action, NULL);
}

const char *term_paint(bool color, enum paint paint)
{
	static const char *const codes[] = {[PAINT_NONE] = "",
		[PAINT_BOLD] = "\033[1m",
		[PAINT_DIM] = "\033[2m",
		[PAINT_RED] = "\033[31m",
		[PAINT_GREEN] = "\033[32m",
		[PAINT_YELLOW] = "\033[33m",
		[PAINT_BLUE] = "\033[34m",
		[PAINT_CYAN] = "\033[36m",
		[PAINT_RUN] = "\033[94m",
		[PAINT_YOU_BOLD] = "\033[1;33m",
		[PAINT_REVERSE] = "\033[7m",
		[PAINT_YOU_REVERSE] = "\033[7;33m"};

	return color ? codes[paint] : "";
}

const char *term_plain(bool color, enum paint paint)
{
	return color && paint != PAINT_NONE ? "\033[0m" : "";
}
