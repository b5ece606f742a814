#include "base/service.h"

#include <fcntl.h>
#include <stddef.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <sys/un.h>

#include "base/take.h"

enum {
	GIVEN_FROM = 3, /* SD_LISTEN_FDS_START */
};

static const char kept_name[] = "stint-kept";

/* `fd` goes along; -1: none. */
static void tell(const char *text, int fd)
{
	const char *path = getenv("NOTIFY_SOCKET");
	struct sockaddr_un address = {.sun_family = AF_UNIX};

	if (!path || strlen(path) >= sizeof address.sun_path || (path[0] != '/' && path[0] != '@'))
		return;
	cleanup(close_at) int to = socket(AF_UNIX, SOCK_DGRAM | SOCK_CLOEXEC, 0);
	if (to < 0)
		return;
	strcpy(address.sun_path, path);
	if (path[0] == '@')
		address.sun_path[0] = 0;
	union {
		struct cmsghdr head;
		char room[CMSG_SPACE(sizeof fd)];
	} along = {0};
	struct iovec words = {.iov_base = (char *)text, .iov_len = strlen(text)};
	struct msghdr message = {
		.msg_name = &address,
		.msg_namelen = (socklen_t)(offsetof(struct sockaddr_un, sun_path) + strlen(path)),
		.msg_iov = &words,
		.msg_iovlen = 1,
	};
	if (fd >= 0) {
		along.head = (struct cmsghdr){
			.cmsg_len = CMSG_LEN(sizeof fd), .cmsg_level = SOL_SOCKET, .cmsg_type = SCM_RIGHTS};
		memcpy(CMSG_DATA(&along.head), &fd, sizeof fd);
		message.msg_control = &along;
		message.msg_controllen = sizeof along.room;
	}
	sendmsg(to, &message, MSG_NOSIGNAL);
}

void service_tell(const char *text)
{
	tell(text, -1);
}

void service_keep(int fd)
{
	char text[64];

	snprintf(text, sizeof text, "FDSTORE=1\nFDNAME=%s", kept_name);
	tell(text, fd);
}

void service_keep_none(void)
{
	char text[64];

	snprintf(text, sizeof text, "FDSTOREREMOVE=1\nFDNAME=%s", kept_name);
	tell(text, -1);
}

/* The next name of a list with colons between. */
static bool is_kept(const char **names)
{
	size_t len = strcspn(*names, ":");
	bool kept = len == sizeof kept_name - 1 && strncmp(*names, kept_name, len) == 0;

	*names += len + ((*names)[len] == ':');
	return kept;
}

size_t service_sockets(struct service_socket *ret, size_t max)
{
	const char *pid = getenv("LISTEN_PID"), *count = getenv("LISTEN_FDS"),
		   *names = getenv("LISTEN_FDNAMES");
	long given = pid && count && strtol(pid, NULL, 10) == getpid() ? strtol(count, NULL, 10) : 0;
	size_t taken = 0;

	names = names ? names : "";
	for (int fd = GIVEN_FROM; given > 0 && fd - GIVEN_FROM < given && fcntl(fd, F_SETFD, FD_CLOEXEC) == 0;
		fd++) {
		bool kept = is_kept(&names);
		if (taken < max)
			ret[taken++] = (struct service_socket){fd, kept};
		else
			close(fd);
	}
	unsetenv("LISTEN_PID");
	unsetenv("LISTEN_FDS");
	unsetenv("LISTEN_FDNAMES");
	return taken;
}

void service_hand_on(const int *fds, size_t count)
{
	char text[24], names[SERVICE_SOCKETS_MAX * sizeof kept_name] = "";
	int high[SERVICE_SOCKETS_MAX];

	count = count < SERVICE_SOCKETS_MAX ? count : SERVICE_SOCKETS_MAX;
	for (size_t i = 0; i < count; i++) /* out of the way: one of them may stand where another goes */
		high[i] = fcntl(fds[i], F_DUPFD_CLOEXEC, GIVEN_FROM + SERVICE_SOCKETS_MAX);
	for (size_t i = 0; i < count; i++) {
		if (high[i] < 0 || dup2(high[i], GIVEN_FROM + (int)i) < 0)
			return;
		strcat(strcat(names, i > 0 ? ":" : ""), kept_name);
	}
	if (count == 0)
		return;
	snprintf(text, sizeof text, "%ld", (long)getpid());
	setenv("LISTEN_PID", text, 1);
	snprintf(text, sizeof text, "%zu", count);
	setenv("LISTEN_FDS", text, 1);
	setenv("LISTEN_FDNAMES", names, 1);
}

int service_hear(int from, long sender)
{
	union {
		struct cmsghdr head;
		char room[CMSG_SPACE(sizeof(struct ucred)) + CMSG_SPACE(sizeof(int) * SERVICE_SOCKETS_MAX)];
	} along = {0};
	char text[64];
	struct iovec words = {.iov_base = text, .iov_len = sizeof text};
	struct msghdr message = {.msg_iov = &words,
		.msg_iovlen = 1,
		.msg_control = &along,
		.msg_controllen = sizeof along.room};
	cleanup(close_at) int kept = -1;
	long pid = 0;

	if (recvmsg(from, &message, MSG_DONTWAIT | MSG_CMSG_CLOEXEC) < 0)
		return -errno;
	for (struct cmsghdr *part = CMSG_FIRSTHDR(&message); part; part = CMSG_NXTHDR(&message, part)) {
		size_t count = (part->cmsg_len - CMSG_LEN(0)) / sizeof(int);
		struct ucred peer;
		if (part->cmsg_level == SOL_SOCKET && part->cmsg_type == SCM_CREDENTIALS) {
			memcpy(&peer, CMSG_DATA(part), sizeof peer);
			pid = peer.pid;
		}
		for (size_t i = 0; part->cmsg_type == SCM_RIGHTS && i < count; i++) {
			close_at(&kept);
			memcpy(&kept, CMSG_DATA(part) + i * sizeof(int), sizeof kept);
		}
	}
	return pid == sender && kept >= 0 ? take_fd(kept) : -ENOMSG;
}
