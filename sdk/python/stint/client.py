"""A client of stint's server: every route as a method, over HTTP, HTTPS or a Unix socket.

A request is repeated only where the server can tell that it is the same: reads, reports with their fence, creates under an
Idempotency-Key, claims under a requestId. Those are sent again 1, 2 and 4 s after a connection error or a 5xx. Any other
change is sent again only if it cannot have reached the server, or the server says that it changed nothing (503).
"""
from __future__ import annotations

import http.client
import ipaddress
import json
import os
import pathlib
import socket
import ssl
import threading
import uuid
from collections.abc import Mapping
from typing import Any
from urllib.parse import urlencode, urlsplit

from .api import Api

RETRY_DELAYS_S = (1.0, 2.0, 4.0)
REPLY_BYTES_MAX = 64 << 20


class Problem(Exception):
    """The server refused: `code` is stable, `detail` a sentence for people, `body` the whole answer."""

    def __init__(self, status: int, body: Any):
        self.status, self.body = status, body if isinstance(body, dict) else {}
        error = self.body.get("error")  # the doors of older tools have another shape
        self.code: str = str(self.body.get("code") or (error.get("code") if isinstance(error, dict) else error) or "http_%d" % status)
        self.detail: str = str(self.body.get("detail") or self.body.get("title") or self.code)
        super().__init__("%s (%d %s)" % (self.detail, status, self.code))


class Unreachable(ConnectionError):
    """No server answered. `sent`: the last request may have reached one, and may have been done."""

    def __init__(self, message: str, sent: bool):
        super().__init__(message)
        self.sent = sent


class _Socket(http.client.HTTPConnection):
    def __init__(self, path: str, timeout: float):
        super().__init__("localhost", timeout=timeout)
        self.path = path

    def connect(self) -> None:
        self.sock = socket.socket(socket.AF_UNIX, socket.SOCK_STREAM)
        self.sock.settimeout(self.timeout)
        self.sock.connect(self.path)


class Address:
    """One place where a server may be: `https://HOST:PORT`, `http://HOST:PORT` or `unix:/PATH`."""

    def __init__(self, url: str, ca: str | None = None):
        self.url, self.path, self.prefix, self.tls = url, "", "", None
        if url.startswith("unix:"):
            self.path = url.removeprefix("unix:").removeprefix("//")
            self.is_local = True
            if not self.path.startswith("/"):
                raise ValueError("%s: a socket is written unix:/PATH" % url)
            return
        parts = urlsplit(url)
        if parts.scheme not in ("http", "https") or not parts.hostname or parts.username is not None:
            raise ValueError("%s: an address is http://HOST:PORT, https://HOST:PORT or unix:/PATH" % url)
        self.host, self.prefix = parts.hostname, parts.path.rstrip("/")
        self.port = parts.port or (443 if parts.scheme == "https" else 80)
        self.is_local = _is_loopback(self.host)
        if parts.scheme == "https":
            self.tls = ssl.create_default_context(cafile=ca)
            self.tls.minimum_version = ssl.TLSVersion.TLSv1_2

    def open(self, timeout: float) -> http.client.HTTPConnection:
        if self.path:
            return _Socket(self.path, timeout)
        if self.tls:
            return http.client.HTTPSConnection(self.host, self.port, timeout=timeout, context=self.tls)
        return http.client.HTTPConnection(self.host, self.port, timeout=timeout)


def _is_loopback(host: str) -> bool:
    try:
        return ipaddress.ip_address(host).is_loopback
    except ValueError:
        return host == "localhost"


def _line(path: str) -> str:
    text = pathlib.Path(path).read_text(encoding="ascii").strip()
    if not text or any(not "!" <= letter <= "~" for letter in text):
        raise ValueError("%s: that is not one line with a token or an address" % path)
    return text


class Client(Api):
    """Finds its server as `stint` does: `url`, `home`, STINT_URL (several with commas), STINT_HOME, the default state directory.

    The token is `token`, `token_file`, STINT_TOKEN, STINT_TOKEN_FILE, or `admin.token` of the state directory if all
    addresses are on this computer. `ca` (STINT_CA) is a file with the certificates to trust in place of the system's. A token is never sent over
    plain HTTP to another computer unless `plain` is true. One client may be used by many threads.
    """

    def __init__(self, url: str | None = None, token: str | None = None, *, home: str | None = None, token_file: str | None = None,
                 ca: str | None = None, plain: bool = False, timeout_s: float = 30.0, environ: Mapping[str, str] = os.environ):
        state = home or environ.get("STINT_HOME") or os.path.join(
            environ.get("XDG_STATE_HOME") or os.path.join(environ.get("HOME") or os.path.expanduser("~"), ".local", "state"), "stint")
        urls = url or ("" if home else environ.get("STINT_URL")) or _url_of_home(state)
        trusted = ca or environ.get("STINT_CA")
        self.addresses = [Address(part.strip(), trusted) for part in urls.split(",") if part.strip()]
        if not self.addresses:
            raise ValueError("no address of a server: give url=, or set STINT_URL")
        self.token_file: str | None = None
        self.token = token or ""
        if not token and (token_file or not environ.get("STINT_TOKEN")):
            self.token_file = token_file or environ.get("STINT_TOKEN_FILE")
            admin = os.path.join(state, "admin.token")
            if not self.token_file and all(address.is_local for address in self.addresses) and os.access(admin, os.R_OK):
                self.token_file = admin
            self.token = _line(self.token_file) if self.token_file else ""
        elif not token:
            self.token = environ["STINT_TOKEN"]
        for address in self.addresses:
            if self.token and not address.is_local and not address.tls and not plain:
                raise ValueError("%s: a token is not sent over plain HTTP to another computer; use https://, or say plain=True" % address.url)
        self.timeout_s = timeout_s
        self._current = 0
        self._kept = threading.local()

    @property
    def is_local(self) -> bool:
        """The server runs on this computer."""
        return all(address.is_local for address in self.addresses)

    def call(self, method: str, path: str, *, body: Any = None, query: dict[str, Any] | None = None,
             headers: dict[str, Any] | None = None, repeatable: bool = False, text: bool = False, key: str | None = None,
             retries: int | None = None, timeout_s: float | None = None, stop: threading.Event | None = None,
             watch: set[http.client.HTTPConnection] | None = None) -> Any:
        """Send one request, again where that is safe. `retries`: how often (3). `stop`: when set, it is not sent again. While
        it waits, its connection is in `watch`: whoever shuts the socket down ends the call with Unreachable."""
        given = {name: str(value) for name, value in (headers or {}).items() if value is not None}
        if headers is not None and "Idempotency-Key" in headers:
            given.setdefault("Idempotency-Key", str(uuid.uuid4()))
        if key is not None and not body.get(key):
            body = {**body, key: str(uuid.uuid4())}
        asked = {name: value for name, value in (query or {}).items() if value is not None}
        target = path + ("?" + urlencode(asked) if asked else "")
        data = None if body is None else json.dumps(body, allow_nan=False).encode()
        delays = RETRY_DELAYS_S[:retries] if retries is not None else RETRY_DELAYS_S
        pause = stop or threading.Event()
        for attempt in range(len(delays) + 1):
            try:
                return self._round(method, target, data, given, repeatable, text, timeout_s or self.timeout_s, watch)
            except (Unreachable, Problem) as error:
                safe = repeatable or (error.status == 503 if isinstance(error, Problem) else not error.sent)
                if (isinstance(error, Problem) and error.status < 500) or not safe or attempt == len(delays) or pause.wait(delays[attempt]):
                    raise

    def _round(self, method: str, target: str, data: bytes | None, headers: dict[str, str], repeatable: bool, text: bool,
               timeout_s: float, watch: set[http.client.HTTPConnection] | None) -> Any:
        """Ask the addresses in turn, beginning with the one that answered last, until one does not say that it is away."""
        for turn in range(len(self.addresses)):
            index, last = self._current, turn == len(self.addresses) - 1
            try:
                status, answer = self._exchange(self.addresses[index], method, target, data, headers, repeatable, timeout_s, watch)
            except Unreachable as error:
                self._current = (index + 1) % len(self.addresses)
                if last or (error.sent and not repeatable):
                    raise
                continue
            if status == 401 and self._renew_token():
                status, answer = self._exchange(self.addresses[index], method, target, data, headers, repeatable, timeout_s, watch)
            if status < 300 and text:
                return answer.decode()
            document = _document(answer)
            if status < 300:
                return document
            if status != 503 or last:
                raise Problem(status, document)
            self._current = (index + 1) % len(self.addresses)
        raise AssertionError("there is an address")

    def _exchange(self, address: Address, method: str, target: str, data: bytes | None, headers: dict[str, str], repeatable: bool,
                  timeout_s: float, watch: set[http.client.HTTPConnection] | None) -> tuple[int, bytes]:
        kept: dict[str, http.client.HTTPConnection] = self._kept.__dict__
        # A kept connection may have been closed by now, and then nobody knows whether the server has read the request.
        connection = kept.pop(address.url, None) if repeatable else None
        was_kept, sent = connection is not None, False
        connection = connection or address.open(timeout_s)
        if watch is not None:
            watch.add(connection)
        try:
            if connection.sock is None:
                connection.connect()
            connection.sock.settimeout(timeout_s)
            sent = True
            connection.request(method, address.prefix + target, data, self._headers(data, headers))
            reply = connection.getresponse()
            answer = reply.read(REPLY_BYTES_MAX + 1)
            if len(answer) > REPLY_BYTES_MAX:
                raise http.client.HTTPException("the reply has more than %d bytes" % REPLY_BYTES_MAX)
            if not reply.will_close:
                kept[address.url], connection = connection, None
            return reply.status, answer
        except ssl.SSLCertVerificationError as error:
            raise ValueError("%s: %s; name its CA with ca= or STINT_CA" % (address.url, error.verify_message)) from error
        except (OSError, http.client.HTTPException) as error:
            if not was_kept or isinstance(error, TimeoutError):
                raise Unreachable("%s: %s" % (address.url, error or type(error).__name__), sent) from error
        finally:
            if watch is not None:
                watch.discard(connection or kept[address.url])
            if connection is not None:
                connection.close()
        return self._exchange(address, method, target, data, headers, repeatable, timeout_s, watch)  # on a new connection

    def _headers(self, data: bytes | None, headers: dict[str, str]) -> dict[str, str]:
        sent = {"Accept": "application/json, */*;q=0.1", **headers}
        if data is not None:
            sent["Content-Type"] = "application/json"
        if self.token and "Authorization" not in sent:
            sent["Authorization"] = "Bearer " + self.token
        return sent

    def _renew_token(self) -> bool:
        """A token in a file may have been replaced since we read it."""
        try:
            token = _line(self.token_file) if self.token_file else self.token
        except (OSError, ValueError):
            return False
        changed, self.token = token != self.token, token
        return changed


def _document(answer: bytes) -> Any:
    try:
        return json.loads(answer) if answer else None
    except ValueError:
        return {"title": answer[:200].decode(errors="replace")}


def _url_of_home(home: str) -> str:
    path = os.path.join(home, "stint.sock")
    if os.path.exists(path) and len(path) < 108:
        return "unix:" + path
    try:
        return _line(os.path.join(home, "url"))
    except OSError:
        raise ValueError("no server runs in %s; start one with `stint up`, or set STINT_URL" % home) from None
