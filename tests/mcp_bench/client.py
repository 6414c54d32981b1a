"""Speaks the Model Context Protocol with a server: over standard input and output, over HTTP, and over the older HTTP with SSE.

Only the standard library is used, so the time that a client adds is the same for every server.
"""

import collections
import http.client
import json
import subprocess
import threading
import time

VERSION = "2025-06-18"
LONGEST_ANSWER = 120
# Seconds. The servers wait longer before they close a connection.
LONGEST_IDLE = 2

Answer = collections.namedtuple("Answer", "text structured is_error seconds meta")


class Failure(Exception):
    """The server answered with an error of the protocol, or not at all."""


def make_request(number, method, params):
    return {"jsonrpc": "2.0", "id": number, "method": method, "params": params}


def make_initialize():
    return {"protocolVersion": VERSION, "capabilities": {}, "clientInfo": {"name": "bench", "version": "1"}}


def make_initialized():
    return {"jsonrpc": "2.0", "method": "notifications/initialized"}


def take_result(message):
    if "error" in message:
        raise Failure(json.dumps(message["error"]))
    return message["result"]


class Client:
    """What all three transports share. `exchange` sends one request and returns the message that answers it.

    `seconds` is the time from before the request was sent until its answer was there. Reading the answer is no work of a server.
    """

    def __init__(self):
        self.last, self.seconds = 0, 0.0

    def request(self, method, params=None):
        self.last += 1
        return take_result(self.exchange(make_request(self.last, method, params or {})))

    def call(self, tool, **arguments):
        result = self.request("tools/call", {"name": tool, "arguments": arguments})
        seconds = self.seconds
        text = "\n".join(block["text"] for block in result["content"] if block["type"] == "text")
        return Answer(text, result.get("structuredContent"), bool(result.get("isError")), seconds, result.get("_meta", {}))

    def close_if_idle(self):
        """A server closes a connection that was idle for some seconds, so a new one is opened before."""
        if time.monotonic() - self.used > LONGEST_IDLE:
            self.connection.close()
        self.used = time.monotonic()

    def begin_session(self):
        answer = self.request("initialize", make_initialize())
        self.notify(make_initialized())
        return answer


class StdioClient(Client):
    """Starts the server and owns it."""

    def __init__(self, command, environment, error_file=subprocess.DEVNULL):
        super().__init__()
        pipe = subprocess.PIPE
        self.process = subprocess.Popen(command, env=environment, stdin=pipe, stdout=pipe, stderr=error_file)

    def __enter__(self):
        return self

    def __exit__(self, *_):
        self.process.stdin.close()
        try:
            self.process.wait(10)
        except subprocess.TimeoutExpired:
            self.process.kill()
            self.process.wait(10)

    def notify(self, message):
        self.process.stdin.write(json.dumps(message).encode() + b"\n")
        self.process.stdin.flush()

    def exchange(self, message):
        watch = threading.Timer(LONGEST_ANSWER, self.process.kill)
        watch.start()
        begin = time.perf_counter()
        try:
            self.notify(message)
            while line := self.process.stdout.readline():
                self.seconds = time.perf_counter() - begin
                answer = json.loads(line)
                if answer.get("id") == message["id"]:
                    return answer
        finally:
            watch.cancel()
        raise Failure(f"no answer to {message['method']}")

    def read_memory(self):
        """The resident memory of the process, in MiB."""
        with open(f"/proc/{self.process.pid}/status", encoding="ascii") as status:
            return next(int(line.split()[1]) / 1024 for line in status if line.startswith("VmRSS:"))


class HttpClient(Client):
    """Streamable HTTP, with a session and a connection that stays open."""

    def __init__(self, port, token, path="/mcp"):
        super().__init__()
        self.path = path
        self.connection = http.client.HTTPConnection("127.0.0.1", port, timeout=LONGEST_ANSWER)
        self.headers = {"Authorization": f"Bearer {token}", "Content-Type": "application/json"}
        self.headers |= {"Accept": "application/json, text/event-stream", "MCP-Protocol-Version": VERSION}
        self.used = time.monotonic()

    def post(self, message):
        self.close_if_idle()
        self.connection.request("POST", self.path, json.dumps(message), self.headers)
        answer = self.connection.getresponse()
        body = answer.read().decode()
        if answer.status >= 300:
            raise Failure(f"HTTP {answer.status}: {body[:200]}")
        if session := answer.getheader("Mcp-Session-Id"):
            self.headers["Mcp-Session-Id"] = session
        return body

    def notify(self, message):
        self.post(message)

    def exchange(self, message):
        begin = time.perf_counter()
        body = self.post(message)
        self.seconds = time.perf_counter() - begin
        lines = body.splitlines() if body.startswith("{") else read_data_lines(body.splitlines())
        for line in lines:
            answer = json.loads(line)
            if answer.get("id") == message["id"]:
                return answer
        raise Failure(f"no answer to {message['method']}: {body[:200]}")


def read_data_lines(lines):
    return (line[5:].strip() for line in lines if line.startswith("data:") and line[5:].strip())


class SseClient(Client):
    """The older transport of two addresses: requests go by POST, and one stream brings all answers."""

    def __init__(self, port, path="/mcp/sse"):
        super().__init__()
        self.stream = http.client.HTTPConnection("127.0.0.1", port, timeout=LONGEST_ANSWER)
        self.stream.request("GET", path, headers={"Accept": "text/event-stream"})
        self.events = self.stream.getresponse()
        if self.events.status != 200:
            raise Failure(f"HTTP {self.events.status}")
        self.connection = http.client.HTTPConnection("127.0.0.1", port, timeout=LONGEST_ANSWER)
        self.address, self.used = self.read_data(), time.monotonic()

    def read_data(self):
        while line := self.events.readline():
            if line.startswith(b"data:"):
                return line[5:].strip().decode()
        raise Failure("the stream has ended")

    def notify(self, message):
        self.close_if_idle()
        self.connection.request("POST", self.address, json.dumps(message), {"Content-Type": "application/json"})
        answer = self.connection.getresponse()
        body = answer.read()
        if answer.status >= 300:
            raise Failure(f"HTTP {answer.status}: {body[:200]}")

    def exchange(self, message):
        begin = time.perf_counter()
        self.notify(message)
        while True:
            data = self.read_data()
            self.seconds = time.perf_counter() - begin
            answer = json.loads(data)
            if answer.get("id") == message["id"]:
                return answer
