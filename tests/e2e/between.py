"""A door between a worker and its server, which a test can shut: it passes each request on and its answer back, one at a time
per connection, and asks the test before and after each."""
import http.client
import http.server
import json
import threading


class Request:
    def __init__(self, method, path, body):
        self.method, self.path, self.body = method, path, body

    @property
    def json(self):
        return json.loads(self.body) if self.body else None

    def is_claim(self):
        return self.path == "/api/claims"

    def finishes(self):
        """The ids of the tasks that it ends, as part of a claim."""
        return [item["id"] for item in (self.json or {}).get("finish", [])] if self.is_claim() else []

    def ends(self, task):
        """Does it end that task, by either way?"""
        return task in self.finishes() or (self.method == "POST" and self.path.startswith("/api/tasks/%s/" % task) and
                                           self.path.rsplit("/", 1)[1] in ("complete", "fail", "release"))


class Between:
    """`before(request)` and `after(request, answer)` are called in the thread of the connection. If the first returns (status,
    document) that is the answer, and the server hears nothing; if either returns False the connection is cut there."""

    def __init__(self, server):
        self.server, self.requests = server, []
        self.before = lambda request: None
        self.after = lambda request, answer: None
        between = self

        class Handler(http.server.BaseHTTPRequestHandler):
            protocol_version = "HTTP/1.1"

            def handle_one_request(self):
                try:
                    super().handle_one_request()
                except (OSError, http.client.HTTPException):
                    self.close_connection = True

            def log_message(self, *words):
                pass

            def serve(self):
                body = self.rfile.read(int(self.headers.get("Content-Length") or 0))
                request = Request(self.command, self.path, body)
                between.requests.append(request)
                verdict = between.before(request)
                if verdict is False:
                    self.cut()
                    return
                if verdict is None:
                    status, headers, answer = between.ask(request, self.headers)
                    if between.after(request, answer) is False:
                        self.cut()
                        return
                else:
                    status, headers, answer = verdict[0], [], json.dumps(verdict[1]).encode()
                self.send_response_only(status)
                for name, value in headers:
                    self.send_header(name, value)
                self.send_header("Content-Length", str(len(answer)))
                self.end_headers()
                self.wfile.write(answer)

            def cut(self):
                self.close_connection = True
                self.connection.close()

            do_GET = do_POST = do_DELETE = do_PATCH = serve

        self.door = http.server.ThreadingHTTPServer(("127.0.0.1", 0), Handler)
        self.door.daemon_threads = True
        self.url = "http://127.0.0.1:%d" % self.door.server_address[1]
        self.thread = threading.Thread(target=self.door.serve_forever, kwargs={"poll_interval": 0.02})
        self.thread.start()

    def ask(self, request, headers):
        connection = http.client.HTTPConnection("127.0.0.1", self.server.port, timeout=100)
        try:
            kept = {name: value for name, value in headers.items()
                    if name.lower() not in ("host", "connection", "content-length")}
            connection.request(request.method, request.path, request.body or None, kept)
            reply = connection.getresponse()
            answer = reply.read()
            return reply.status, [(name, value) for name, value in reply.getheaders()
                                  if name.lower() in ("content-type", "retry-after")], answer
        finally:
            connection.close()

    def close(self):
        self.door.shutdown()
        self.door.server_close()
        self.thread.join(10)
