/*
 * A shortage that a test can set, put before the C library with LD_PRELOAD: the n-th call of one kind fails, and only that
 * one. The file that STINT_SHORTAGE names is mapped and shared with the test, which arms it, disarms it and reads it while the
 * program runs:
 *
 *   kind      0 none, 1 memory, 2 descriptor, 3 process, 4 write, 5 sync
 *   at        the call that fails, counted from 1 since `count` was 0; 0: none, calls are only counted
 *   count     calls of this kind so far
 *   hits      how many have failed: 0 or 1
 *   blocks    pieces of memory that are in use now
 *
 * Only the program that STINT_SHORTAGE_PROGRAM names is short of anything, not what it starts, nor what it forks.
 *
 * With STINT_SHORTAGE_RECORD every call of the kind whose stack was not seen before is written to that file: its number and the
 * places in the program that led to it. Two calls with one stack fail alike; so the test fails one of them, and "every n" stays
 * affordable for programs that allocate a million times. With STINT_SHORTAGE_DEEP the 2nd, 4th, 8th, … call with one stack is
 * written as well: what a table or a buffer does when it grows again is another case. A program that dies by a signal says where,
 * for the test to tell whether the fault is its own or the product's.
 *
 * A backtrace takes ten microseconds. So each call first looks at the words of the stack itself: those that point into the code of
 * the program are its return addresses, and some left-overs. Where the same words were seen before, the stack is the same, and
 * which one it is was noted.
 */
#include <dlfcn.h>
#include <errno.h>
#include <execinfo.h>
#include <fcntl.h>
#include <link.h>
#include <pthread.h>
#include <signal.h>
#include <stdarg.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <sys/uio.h>
#include <unistd.h>

enum kind { NONE, MEMORY, DESCRIPTOR, PROCESS, WRITE, SYNC };
enum { FRAMES_MAX = 24, SEEN = 1 << 16, WORDS_MAX = 512, WORDS_SEEN = 1 << 18 };

struct control {
	int64_t kind, at, count, hits, blocks;
};

static volatile struct control *control;
static pid_t own_pid;
static int record_fd = -1;
static uintptr_t program_base, program_end, code_begin, code_end;
static uint64_t seen[SEEN]; /* hashes of stacks */
static uint32_t seen_count[SEEN];
static uint64_t words_seen[WORDS_SEEN]; /* hashes of words on the stack */
static uint32_t words_slot[WORDS_SEEN]; /* which of `seen` they belong to */
static __thread uintptr_t stack_end;    /* of this thread; 0: not asked for yet, 1: unknown */
static int is_deep;
static __thread int busy;

/* glibc's own, behind the names that we take. */
void *__libc_malloc(size_t bytes);
void *__libc_calloc(size_t count, size_t bytes);
void *__libc_realloc(void *old, size_t bytes);
void *__libc_memalign(size_t alignment, size_t bytes);
void __libc_free(void *block);

static int note_program(struct dl_phdr_info *info, size_t size, void *context)
{
	(void)size;
	(void)context;
	program_base = info->dlpi_addr;
	for (int i = 0; i < info->dlpi_phnum; i++) {
		if (info->dlpi_phdr[i].p_type == PT_LOAD) {
			uintptr_t end =
				info->dlpi_addr + info->dlpi_phdr[i].p_vaddr + info->dlpi_phdr[i].p_memsz;
			if (end > program_end)
				program_end = end;
			if (info->dlpi_phdr[i].p_flags & PF_X) {
				code_begin = info->dlpi_addr + info->dlpi_phdr[i].p_vaddr;
				code_end = end;
			}
		}
	}
	return 1; /* the first is the program */
}

/* The places in the program on the stack, as offsets that addr2line understands. */
static size_t put_stack(char *text, size_t room, uint64_t *ret_hash)
{
	void *frames[FRAMES_MAX];
	int count = backtrace(frames, FRAMES_MAX);
	size_t len = 0;

	*ret_hash = 14695981039346656037u;
	for (int i = 0; i < count; i++) {
		uintptr_t at = (uintptr_t)frames[i];
		if (at < program_base || at >= program_end)
			continue;
		*ret_hash = (*ret_hash ^ (at - program_base)) * 1099511628211u;
		if (len + 20 < room)
			len += (size_t)snprintf(
				text + len, room - len, " %lx", (unsigned long)(at - program_base - 1));
	}
	return len;
}

/* The library that called abort(), if it was one: the first that is neither this one nor the C library. */
static const char *who_aborts(void)
{
	void *frames[FRAMES_MAX];
	int count = backtrace(frames, FRAMES_MAX);
	Dl_info about;

	for (int i = 0; i < count; i++) {
		if (!dladdr(frames[i], &about) || !about.dli_fname)
			continue;
		const char *name = strrchr(about.dli_fname, '/');
		name = name ? name + 1 : about.dli_fname;
		if (strncmp(name, "stint-shortage", 14) != 0 && strncmp(name, "libc.", 5) != 0)
			return name;
	}
	return "?";
}

static void on_crash(int signal)
{
	char text[FRAMES_MAX * 20 + 80];
	uint64_t hash;
	size_t len;

	busy = 1;
	len = (size_t)snprintf(text, sizeof text, "\nshortage: crashed by %d in %s at", signal, who_aborts());
	len += put_stack(text + len, sizeof text - len - 1, &hash);
	text[len++] = '\n';
	if (syscall(SYS_write, 2, text, len) < 0)
		_exit(98);
	_exit(99);
}

static void watch_for_crashes(void)
{
	static const int signals[] = {SIGSEGV, SIGBUS, SIGFPE, SIGILL, SIGABRT};
	struct sigaction action = {.sa_handler = on_crash, .sa_flags = SA_NODEFER};
	int (*real)(int, const struct sigaction *, struct sigaction *) =
		(int (*)(int, const struct sigaction *, struct sigaction *))dlsym(RTLD_NEXT, "sigaction");

	for (size_t i = 0; i < sizeof signals / sizeof *signals; i++)
		real(signals[i], &action, NULL);
}

__attribute__((constructor)) static void look(void)
{
	const char *path = getenv("STINT_SHORTAGE"), *program = getenv("STINT_SHORTAGE_PROGRAM");
	const char *record = getenv("STINT_SHORTAGE_RECORD");
	void *frames[2];

	if (!path || (program && strcmp(program, program_invocation_short_name) != 0))
		return;
	int fd = open(path, O_RDWR | O_CLOEXEC);
	if (fd < 0)
		return;
	void *at = mmap(NULL, sizeof *control, PROT_READ | PROT_WRITE, MAP_SHARED, fd, 0);
	close(fd);
	if (at == MAP_FAILED)
		return;
	backtrace(frames, 2); /* it loads a library the first time */
	dl_iterate_phdr(note_program, NULL);
	if (record)
		record_fd = open(record, O_WRONLY | O_CREAT | O_APPEND | O_CLOEXEC, 0600);
	is_deep = getenv("STINT_SHORTAGE_DEEP") != NULL;
	watch_for_crashes();
	own_pid = getpid();
	control = at;
}

static void find_stack_end(void)
{
	pthread_attr_t about;
	void *begin;
	size_t bytes;

	stack_end = 1;
	if (pthread_getattr_np(pthread_self(), &about) != 0)
		return;
	if (pthread_attr_getstack(&about, &begin, &bytes) == 0)
		stack_end = (uintptr_t)begin + bytes;
	pthread_attr_destroy(&about);
}

/* The words above this frame that point into the program's code, hashed. */
static uint64_t hash_words(void)
{
	const uintptr_t *word = __builtin_frame_address(0);
	uint64_t hash = 14695981039346656037u;

	if (stack_end == 0)
		find_stack_end();
	for (size_t i = 0; i < WORDS_MAX && (uintptr_t)(word + i + 1) <= stack_end; i++) {
		if (word[i] >= code_begin && word[i] < code_end)
			hash = (hash ^ (word[i] - program_base)) * 1099511628211u;
	}
	return hash;
}

/* Where a hash is in a table, or would be. The tables are never full: a program has some thousand stacks. */
static size_t slot_of(const uint64_t *table, size_t size, uint64_t hash)
{
	size_t i = hash % size;

	while (table[i] != 0 && table[i] != hash)
		i = (i + 1) % size;
	return i;
}

/* Is the call with this stack, which has been seen in `slot` before or is new, to be written? */
static int is_wanted(size_t slot)
{
	uint32_t count = ++seen_count[slot];

	return count == 1 || (is_deep && (count & (count - 1)) == 0);
}

static void record(int64_t number)
{
	char text[FRAMES_MAX * 20 + 40];
	uint64_t hash, words = hash_words();
	size_t known = slot_of(words_seen, WORDS_SEEN, words);

	if (words_seen[known] == words && !is_wanted(words_slot[known]))
		return;
	size_t len = (size_t)snprintf(text, sizeof text, "%ld", (long)number);
	len += put_stack(text + len, sizeof text - len - 1, &hash);
	text[len++] = '\n';
	if (words_seen[known] != words) {
		size_t slot = slot_of(seen, SEEN, hash);
		seen[slot] = hash;
		words_seen[known] = words;
		words_slot[known] = (uint32_t)slot;
		if (!is_wanted(slot))
			return;
	}
	if (syscall(SYS_write, record_fd, text, len) < 0)
		_exit(97);
}

/* Does this call fail? */
static int is_short(enum kind kind)
{
	if (!control || control->kind != (int64_t)kind || busy || getpid() != own_pid)
		return 0;
	int64_t number = __atomic_add_fetch(&control->count, 1, __ATOMIC_SEQ_CST);
	if (record_fd >= 0) {
		busy = 1;
		record(number);
		busy = 0;
	}
	if (number != control->at)
		return 0;
	__atomic_add_fetch(&control->hits, 1, __ATOMIC_SEQ_CST);
	if (getenv("STINT_SHORTAGE_TRACE")) {
		char text[FRAMES_MAX * 20 + 40] = "shortage: here";
		uint64_t hash;
		busy = 1;
		size_t len = 14 + put_stack(text + 14, sizeof text - 16, &hash);
		text[len++] = '\n';
		if (syscall(SYS_write, 2, text, len) < 0)
			_exit(97);
		busy = 0;
	}
	return 1;
}

static int fail(int error)
{
	errno = error;
	return -1;
}

/* ---- memory ---- */

static void *counted(void *block)
{
	if (block && control)
		__atomic_add_fetch(&control->blocks, 1, __ATOMIC_RELAXED);
	return block;
}

static void *none_left(void)
{
	errno = ENOMEM;
	return NULL;
}

void *malloc(size_t bytes)
{
	return is_short(MEMORY) ? none_left() : counted(__libc_malloc(bytes));
}

void *calloc(size_t count, size_t bytes)
{
	return is_short(MEMORY) ? none_left() : counted(__libc_calloc(count, bytes));
}

void *realloc(void *old, size_t bytes)
{
	if (is_short(MEMORY))
		return none_left();
	if (old && bytes == 0) {
		free(old);
		return NULL;
	}
	return old ? __libc_realloc(old, bytes) : counted(__libc_realloc(old, bytes));
}

void *reallocarray(void *old, size_t count, size_t bytes)
{
	size_t all;

	if (__builtin_mul_overflow(count, bytes, &all))
		return none_left();
	return realloc(old, all);
}

void *aligned_alloc(size_t alignment, size_t bytes)
{
	return is_short(MEMORY) ? none_left() : counted(__libc_memalign(alignment, bytes));
}

void *memalign(size_t alignment, size_t bytes)
{
	return aligned_alloc(alignment, bytes);
}

int posix_memalign(void **ret_block, size_t alignment, size_t bytes)
{
	void *block = aligned_alloc(alignment, bytes);

	if (!block)
		return ENOMEM;
	*ret_block = block;
	return 0;
}

void free(void *block)
{
	if (block && control)
		__atomic_add_fetch(&control->blocks, -1, __ATOMIC_RELAXED);
	__libc_free(block);
}

/* ---- the others: the real one is looked up the first time ---- */

#define REAL(result, name, ...)             \
	static result (*real)(__VA_ARGS__); \
	if (!real)                          \
	real = (result(*)(__VA_ARGS__))dlsym(RTLD_NEXT, name)

#define TAKE_MODE                                                                 \
	va_list rest;                                                             \
	va_start(rest, flags);                                                    \
	mode_t mode = (flags & (O_CREAT | O_TMPFILE)) ? va_arg(rest, mode_t) : 0; \
	va_end(rest)

int open(const char *path, int flags, ...)
{
	TAKE_MODE;
	REAL(int, "open", const char *, int, ...);
	return is_short(DESCRIPTOR) ? fail(EMFILE) : real(path, flags, mode);
}

int open64(const char *path, int flags, ...)
{
	TAKE_MODE;
	REAL(int, "open64", const char *, int, ...);
	return is_short(DESCRIPTOR) ? fail(EMFILE) : real(path, flags, mode);
}

int openat(int dir, const char *path, int flags, ...)
{
	TAKE_MODE;
	REAL(int, "openat", int, const char *, int, ...);
	return is_short(DESCRIPTOR) ? fail(EMFILE) : real(dir, path, flags, mode);
}

int openat64(int dir, const char *path, int flags, ...)
{
	TAKE_MODE;
	REAL(int, "openat64", int, const char *, int, ...);
	return is_short(DESCRIPTOR) ? fail(EMFILE) : real(dir, path, flags, mode);
}

/* What a build with _FORTIFY_SOURCE calls when the flags are not known. */
int __open64_2(const char *path, int flags)
{
	REAL(int, "__open64_2", const char *, int);
	return is_short(DESCRIPTOR) ? fail(EMFILE) : real(path, flags);
}

int __openat64_2(int dir, const char *path, int flags)
{
	REAL(int, "__openat64_2", int, const char *, int);
	return is_short(DESCRIPTOR) ? fail(EMFILE) : real(dir, path, flags);
}

FILE *fopen(const char *path, const char *mode)
{
	REAL(FILE *, "fopen", const char *, const char *);
	if (is_short(DESCRIPTOR)) {
		errno = EMFILE;
		return NULL;
	}
	return real(path, mode);
}

FILE *fopen64(const char *path, const char *mode)
{
	return fopen(path, mode);
}

int socket(int domain, int type, int protocol)
{
	REAL(int, "socket", int, int, int);
	return is_short(DESCRIPTOR) ? fail(EMFILE) : real(domain, type, protocol);
}

int socketpair(int domain, int type, int protocol, int ret_fds[2])
{
	REAL(int, "socketpair", int, int, int, int *);
	return is_short(DESCRIPTOR) ? fail(EMFILE) : real(domain, type, protocol, ret_fds);
}

int accept4(int fd, struct sockaddr *address, socklen_t *size, int flags)
{
	REAL(int, "accept4", int, struct sockaddr *, socklen_t *, int);
	return is_short(DESCRIPTOR) ? fail(EMFILE) : real(fd, address, size, flags);
}

int pipe2(int ret_fds[2], int flags)
{
	REAL(int, "pipe2", int *, int);
	return is_short(DESCRIPTOR) ? fail(EMFILE) : real(ret_fds, flags);
}

int dup(int fd)
{
	REAL(int, "dup", int);
	return is_short(DESCRIPTOR) ? fail(EMFILE) : real(fd);
}

int eventfd(unsigned int start, int flags)
{
	REAL(int, "eventfd", unsigned int, int);
	return is_short(DESCRIPTOR) ? fail(EMFILE) : real(start, flags);
}

int epoll_create1(int flags)
{
	REAL(int, "epoll_create1", int);
	return is_short(DESCRIPTOR) ? fail(EMFILE) : real(flags);
}

int memfd_create(const char *name, unsigned int flags)
{
	REAL(int, "memfd_create", const char *, unsigned int);
	return is_short(DESCRIPTOR) ? fail(EMFILE) : real(name, flags);
}

int pidfd_open(pid_t pid, unsigned int flags)
{
	REAL(int, "pidfd_open", pid_t, unsigned int);
	return is_short(DESCRIPTOR) ? fail(EMFILE) : real(pid, flags);
}

/* ---- processes and threads ---- */

pid_t fork(void)
{
	REAL(pid_t, "fork", void);
	return is_short(PROCESS) ? fail(EAGAIN) : real();
}

struct spawn_actions;
struct spawn_attributes;

int posix_spawn(pid_t *ret_pid, const char *path, const struct spawn_actions *actions,
	const struct spawn_attributes *attributes, char *const *argv, char *const *envp)
{
	REAL(int, "posix_spawn", pid_t *, const char *, const struct spawn_actions *,
		const struct spawn_attributes *, char *const *, char *const *);
	return is_short(PROCESS) ? EAGAIN : real(ret_pid, path, actions, attributes, argv, envp);
}

int posix_spawnp(pid_t *ret_pid, const char *path, const struct spawn_actions *actions,
	const struct spawn_attributes *attributes, char *const *argv, char *const *envp)
{
	REAL(int, "posix_spawnp", pid_t *, const char *, const struct spawn_actions *,
		const struct spawn_attributes *, char *const *, char *const *);
	return is_short(PROCESS) ? EAGAIN : real(ret_pid, path, actions, attributes, argv, envp);
}

int pthread_create(
	pthread_t *ret_thread, const pthread_attr_t *attributes, void *(*run)(void *), void *context)
{
	REAL(int, "pthread_create", pthread_t *, const pthread_attr_t *, void *(*)(void *), void *);
	return is_short(PROCESS) ? EAGAIN : real(ret_thread, attributes, run, context);
}

/* ---- writes and syncs: a file is full, a peer is gone ---- */

static int write_error(int fd)
{
	struct stat about;

	if (fstat(fd, &about) < 0)
		return EBADF;
	if (S_ISSOCK(about.st_mode))
		shutdown(fd,
			SHUT_RDWR); /* a connection that was reset brings nothing more, and its reader does not wait */
	return S_ISREG(about.st_mode) ? ENOSPC : S_ISSOCK(about.st_mode) ? ECONNRESET : EIO;
}

ssize_t write(int fd, const void *bytes, size_t count)
{
	REAL(ssize_t, "write", int, const void *, size_t);
	return is_short(WRITE) ? fail(write_error(fd)) : real(fd, bytes, count);
}

ssize_t writev(int fd, const struct iovec *pieces, int count)
{
	REAL(ssize_t, "writev", int, const struct iovec *, int);
	return is_short(WRITE) ? fail(write_error(fd)) : real(fd, pieces, count);
}

ssize_t pwrite(int fd, const void *bytes, size_t count, off_t at)
{
	REAL(ssize_t, "pwrite", int, const void *, size_t, off_t);
	return is_short(WRITE) ? fail(write_error(fd)) : real(fd, bytes, count, at);
}

ssize_t pwrite64(int fd, const void *bytes, size_t count, off64_t at)
{
	REAL(ssize_t, "pwrite64", int, const void *, size_t, off64_t);
	return is_short(WRITE) ? fail(write_error(fd)) : real(fd, bytes, count, at);
}

ssize_t send(int fd, const void *bytes, size_t count, int flags)
{
	REAL(ssize_t, "send", int, const void *, size_t, int);
	return is_short(WRITE) ? fail(write_error(fd)) : real(fd, bytes, count, flags);
}

ssize_t sendmsg(int fd, const struct msghdr *message, int flags)
{
	REAL(ssize_t, "sendmsg", int, const struct msghdr *, int);
	return is_short(WRITE) ? fail(write_error(fd)) : real(fd, message, flags);
}

int ftruncate64(int fd, off64_t bytes)
{
	REAL(int, "ftruncate64", int, off64_t);
	return is_short(WRITE) ? fail(write_error(fd)) : real(fd, bytes);
}

int fsync(int fd)
{
	REAL(int, "fsync", int);
	return is_short(SYNC) ? fail(EIO) : real(fd);
}

int fdatasync(int fd)
{
	REAL(int, "fdatasync", int);
	return is_short(SYNC) ? fail(EIO) : real(fd);
}

/* The test program may not take our handlers away: cmocka would call a crash a failed test. */
int sigaction(int number, const struct sigaction *action, struct sigaction *ret_before)
{
	REAL(int, "sigaction", int, const struct sigaction *, struct sigaction *);
	if (control && action &&
		(number == SIGSEGV || number == SIGBUS || number == SIGFPE || number == SIGILL ||
			number == SIGABRT))
		action = NULL;
	return real(number, action, ret_before);
}

sighandler_t signal(int number, sighandler_t handler)
{
	REAL(sighandler_t, "signal", int, sighandler_t);
	if (control &&
		(number == SIGSEGV || number == SIGBUS || number == SIGFPE || number == SIGILL ||
			number == SIGABRT))
		return SIG_DFL;
	return real(number, handler);
}
