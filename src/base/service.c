#include "base/service.h"

#include <stddef.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <sys/un.h>

#include "base/take.h"

void service_tell(const char *text)
{
	const char *path = getenv("NOTIFY_SOCKET");
	struct sockaddr_un address = {.sun_family = AF_UNIX};

	if (!path || strlen(path) >= sizeof address.sun_path || (path[0] != '/' && path[0] != '@'))
		return;
	cleanup(close_at) int fd = socket(AF_UNIX, SOCK_DGRAM | SOCK_CLOEXEC, 0);
	if (fd < 0)
		return;
	strcpy(address.sun_path, path);
	socklen_t len = (socklen_t)(offsetof(struct sockaddr_un, sun_path) + strlen(path));
	if (path[0] == '@')
		address.sun_path[0] = 0;
	sendto(fd, text, strlen(text), MSG_NOSIGNAL, (struct sockaddr *)&address, len);
}
