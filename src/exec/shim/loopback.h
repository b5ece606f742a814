/*
 * The way from a wall without a network to the proxy of its supervisor: programs know proxies by a TCP address, and there is only a
 * socket in the run dir. So the shim inside listens on 127.0.0.1 of its own network namespace, where nobody else is, and passes each
 * connection on to that socket.
 */
#pragma once

/* Listens on WALL_PROXY_PORT. A descriptor, or a negative errno. */
int loopback_listen(void);

/* Serves it in a thread of its own, for as long as the process lives. `path` is kept. 0, or a negative errno. */
int loopback_serve(int listener, const char *path);
