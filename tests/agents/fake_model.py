"""A model server on loopback for real agent programs. It speaks the APIs that they speak, and plays a script.

    fake_model.py PORT-FILE SCRIPT.json

The script is a list of answers, one for each request of the main conversation: {"text": "…"}, {"shell": "command"}, {"status": 401},
{"status": 429}, {"status": 529}, {"stall": true}. After the last answer the text is "Nothing more to do.". A shell command becomes a call of
whichever tool the program offers for that. Each request is a line in PORT-FILE.log: how many messages it had, and what was answered.
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

# The tool of each program that runs a command, and what it takes.
SHELLS = {
    "Bash": lambda command: {"command": command, "description": "Run it"},  # claude
    "bash": lambda command: {"command": command, "description": "Run it"},  # opencode
    "run_shell_command": lambda command: {"command": command, "description": "Run it"},  # gemini
    "exec": lambda command: "text(await tools.exec_command({cmd: %s}))" % json.dumps(command),  # codex, with a model that writes scripts
    "exec_command": lambda command: {"cmd": command},  # codex, with any other
    "shell_command": lambda command: {"command": command},
    "shell": lambda command: {"command": ["sh", "-c", command]},
}
USED = {"in": 20, "out": 10}


class Messages:
    """Of Anthropic."""

    @staticmethod
    def is_asked(path):
        return path.split("?")[0].endswith("/messages")

    @staticmethod
    def tools(request):
        return [tool.get("name") for tool in request.get("tools", [])]

    @staticmethod
    def count(request):
        return len(request.get("messages", []))

    @staticmethod
    def error(status):
        kinds = {401: "authentication_error", 429: "rate_limit_error", 529: "overloaded_error"}
        return {"type": "error", "error": {"type": kinds.get(status, "api_error"), "message": "says the fake model"}}

    @staticmethod
    def events(request, number, text, tool, arguments):
        used = {"input_tokens": USED["in"], "cache_creation_input_tokens": 0, "cache_read_input_tokens": 0, "output_tokens": 1}
        yield {"type": "message_start", "message": {
            "id": "msg_%d" % number, "type": "message", "role": "assistant", "content": [], "model": request.get("model", "fake"),
            "stop_reason": None, "stop_sequence": None, "usage": used}}
        if tool:
            block = {"type": "tool_use", "id": "toolu_%d" % number, "name": tool, "input": {}}
            delta = {"type": "input_json_delta", "partial_json": json.dumps(arguments)}
        else:
            block, delta = {"type": "text", "text": ""}, {"type": "text_delta", "text": text}
        yield {"type": "content_block_start", "index": 0, "content_block": block}
        yield {"type": "content_block_delta", "index": 0, "delta": delta}
        yield {"type": "content_block_stop", "index": 0}
        yield {"type": "message_delta", "delta": {"stop_reason": "tool_use" if tool else "end_turn", "stop_sequence": None},
               "usage": {"output_tokens": USED["out"]}}
        yield {"type": "message_stop"}


class Responses:
    """Of OpenAI."""

    @staticmethod
    def is_asked(path):
        return path.split("?")[0].endswith("/responses")

    @staticmethod
    def tools(request):
        spaces = [space for item in request.get("input", []) if item.get("type") == "additional_tools" for space in item["tools"]]
        return [tool.get("name") for tool in [*request.get("tools", []), *(tool for space in spaces for tool in space.get("tools", []))]]

    @staticmethod
    def count(request):
        return len([item for item in request.get("input", []) if item.get("role") != "developer"])

    @staticmethod
    def error(status):
        kinds = {401: "invalid_api_key", 429: "usage_limit_reached", 529: "server_error"}
        return {"error": {"type": kinds.get(status, "server_error"), "code": kinds.get(status), "message": "says the fake model"}}

    @staticmethod
    def events(request, number, text, tool, arguments):
        answer = {"id": "resp_%d" % number, "object": "response", "model": request.get("model", "fake"), "output": []}
        yield {"type": "response.created", "response": {**answer, "status": "in_progress"}}
        if tool == "exec":
            item = {"type": "custom_tool_call", "id": "ct_%d" % number, "call_id": "call_%d" % number, "name": tool,
                    "namespace": "functions", "input": arguments, "status": "completed"}
        elif tool:
            item = {"type": "function_call", "id": "fc_%d" % number, "call_id": "call_%d" % number, "name": tool,
                    "arguments": json.dumps(arguments), "status": "completed"}
        else:
            item = {"type": "message", "id": "msg_%d" % number, "role": "assistant", "status": "completed",
                    "content": [{"type": "output_text", "text": text, "annotations": []}]}
        yield {"type": "response.output_item.added", "output_index": 0, "item": {**item, "status": "in_progress"}}
        yield {"type": "response.output_item.done", "output_index": 0, "item": item}
        yield {"type": "response.completed", "response": {
            **answer, "status": "completed", "output": [item],
            "usage": {"input_tokens": USED["in"], "input_tokens_details": {"cached_tokens": 0}, "output_tokens": USED["out"],
                      "output_tokens_details": {"reasoning_tokens": 0}, "total_tokens": USED["in"] + USED["out"]}}}


class Gemini:
    """Of Google."""

    @staticmethod
    def is_asked(path):
        return "enerateContent" in path

    @staticmethod
    def tools(request):
        return [tool.get("name") for group in request.get("tools", []) for tool in group.get("functionDeclarations", [])]

    @staticmethod
    def count(request):
        return len(request.get("contents", []))

    @staticmethod
    def error(status):
        kinds = {401: "UNAUTHENTICATED", 429: "RESOURCE_EXHAUSTED", 529: "UNAVAILABLE"}
        return {"error": {"code": status, "message": "says the fake model", "status": kinds.get(status, "INTERNAL")}}

    @staticmethod
    def events(request, number, text, tool, arguments):
        part = {"functionCall": {"name": tool, "args": arguments}} if tool else {"text": text}
        yield {"candidates": [{"content": {"role": "model", "parts": [part]}, "finishReason": "STOP", "index": 0}],
               "usageMetadata": {"promptTokenCount": USED["in"], "candidatesTokenCount": USED["out"],
                                 "totalTokenCount": USED["in"] + USED["out"]}, "modelVersion": "fake", "responseId": "r%d" % number}


DIALECTS = (Messages, Responses, Gemini)


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

    def do_POST(self):
        request = json.loads(self.rfile.read(int(self.headers.get("Content-Length", 0))) or b"{}")
        dialect = next((dialect for dialect in DIALECTS if dialect.is_asked(self.path)), None)
        if not dialect:
            self.reply(200, {"input_tokens": 1, "totalTokens": 1})
            return
        shell = next((tool for tool in dialect.tools(request) if tool in SHELLS), None)
        with LOCK:
            answer = ANSWERS.pop(0) if shell and ANSWERS else {"text": "Nothing more to do." if shell else "ok"}
            NUMBER[0] += 1
            number = NUMBER[0]
            with open(PORT_FILE + ".log", "a") as log:
                log.write(json.dumps({"main": bool(shell), "path": self.path, "messages": dialect.count(request), "answer": answer, "tokens": USED["out"] if "text" in answer or "shell" in answer else 0,
                                      "tools": [] if shell else dialect.tools(request)}) + "\n")
        if "status" in answer:
            self.reply(answer["status"], dialect.error(answer["status"]))
            return
        if answer.get("stall"):
            time.sleep(1000)
        call = (shell, SHELLS[shell](answer["shell"])) if "shell" in answer else (None, None)
        events = list(dialect.events(request, number, answer.get("text"), *call))
        if dialect is Gemini and "stream" not in self.path:
            self.reply(200, events[0])
            return
        self.send_response(200)
        self.send_header("Content-Type", "text/event-stream")
        self.send_header("Connection", "close")
        self.end_headers()
        for event in events:
            kind = "event: %s\n" % event["type"] if "type" in event else ""
            self.wfile.write(("%sdata: %s\n\n" % (kind, json.dumps(event))).encode())
            self.wfile.flush()
        self.close_connection = True


server = http.server.ThreadingHTTPServer(("127.0.0.1", 0), Handler)
with open(PORT_FILE + ".new", "w") as port_file:
    port_file.write(str(server.server_address[1]))
os.rename(PORT_FILE + ".new", PORT_FILE)
server.serve_forever()
