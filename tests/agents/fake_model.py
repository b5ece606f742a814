"""A model server on loopback for real agent programs: it speaks the Messages API of Anthropic and plays a script.

    fake_model.py PORT-FILE SCRIPT.json

The script is a list of answers, one for each request of the main conversation: {"text": "…"}, {"tool": "Bash", "input": {…}},
{"status": 401}, {"status": 429}, {"status": 529}, {"stall": true}. After the last answer the text is "Nothing more to do.".
Each request is a line in PORT-FILE.log: how many messages it had, and the tokens that were answered.
"""
import http.server
import json
import os
import sys
import threading
import time

PORT_FILE, SCRIPT = sys.argv[1:3]
LOCK = threading.Lock()
with open(SCRIPT) as script_file:
    ANSWERS = json.load(script_file)
NUMBER = [0]


class Handler(http.server.BaseHTTPRequestHandler):
    protocol_version = "HTTP/1.1"

    def log_message(self, *words):
        pass

    def reply(self, status, value):
        body = json.dumps(value).encode()
        self.send_response(status)
        self.send_header("Content-Type", "application/json")
        self.send_header("Content-Length", str(len(body)))
        self.end_headers()
        self.wfile.write(body)

    def do_HEAD(self):
        self.send_response(200)
        self.send_header("Content-Length", "0")
        self.end_headers()

    def do_GET(self):
        self.reply(200, {})

    def event(self, kind, **data):
        self.wfile.write(("event: %s\ndata: %s\n\n" % (kind, json.dumps({"type": kind, **data}))).encode())
        self.wfile.flush()

    def do_POST(self):
        request = json.loads(self.rfile.read(int(self.headers.get("Content-Length", 0))) or b"{}")
        if "/messages" not in self.path or "count_tokens" in self.path:
            self.reply(200, {"input_tokens": 1})
            return
        main = bool(request.get("tools"))
        with LOCK:
            answer = ANSWERS.pop(0) if main and ANSWERS else {"text": "Nothing more to do." if main else "ok"}
            NUMBER[0] += 1
            number = NUMBER[0]
            with open(PORT_FILE + ".log", "a") as log:
                log.write(json.dumps({"main": main, "messages": len(request.get("messages", [])), "answer": answer}) + "\n")
        if "status" in answer:
            kinds = {401: "authentication_error", 429: "rate_limit_error", 529: "overloaded_error"}
            self.reply(answer["status"], {"type": "error", "error": {"type": kinds.get(answer["status"], "api_error"),
                                                                     "message": "says the fake model"}})
            return
        if answer.get("stall"):
            time.sleep(1000)
        self.send_response(200)
        self.send_header("Content-Type", "text/event-stream")
        self.send_header("Connection", "close")
        self.end_headers()
        used = {"input_tokens": 20, "cache_creation_input_tokens": 0, "cache_read_input_tokens": 0, "output_tokens": 1}
        self.event("message_start", message={"id": "msg_%d" % number, "type": "message", "role": "assistant", "content": [],
                                             "model": request.get("model", "fake"), "stop_reason": None, "stop_sequence": None,
                                             "usage": used})
        if "tool" in answer:
            self.event("content_block_start", index=0, content_block={"type": "tool_use", "id": "toolu_%d" % number,
                                                                      "name": answer["tool"], "input": {}})
            self.event("content_block_delta", index=0, delta={"type": "input_json_delta",
                                                              "partial_json": json.dumps(answer["input"])})
        else:
            self.event("content_block_start", index=0, content_block={"type": "text", "text": ""})
            self.event("content_block_delta", index=0, delta={"type": "text_delta", "text": answer["text"]})
        self.event("content_block_stop", index=0)
        self.event("message_delta", delta={"stop_reason": "tool_use" if "tool" in answer else "end_turn", "stop_sequence": None},
                   usage={"output_tokens": 10})
        self.event("message_stop")
        self.close_connection = True


server = http.server.ThreadingHTTPServer(("127.0.0.1", 0), Handler)
with open(PORT_FILE + ".new", "w") as port_file:
    port_file.write(str(server.server_address[1]))
os.rename(PORT_FILE + ".new", PORT_FILE)
server.serve_forever()
