"""Drives one client library of the Model Context Protocol for tests/mcp_clients.py, by lines of JSON.

    PYTHONPATH=FOLDER_OF_LIBRARY python3 tests/mcp_driver.py

The first line of standard input says how to connect, and each further line is one command, such as {"do": "call", "name": "guide",
"arguments": {}}. Each is answered by one line: {"result": ...} as it came, or {"error": "..."}. The end of input closes the session.
The library is `mcp` 1.30 or 2.3, whichever is found. NODE is the same for the libraries of Node; `node -e` runs it.

Each library declares that it opens addresses (`elicitation.url`). {"do": "person", "does": "accept"} says what the person does with each
address from then on: `accept`, `decline`, `cancel`, or `ignore`, which is no answer at all. It returns what was shown to them before.
`call_once` is a call of the newest protocol whose request for a person is handed over and not answered.
"""

import asyncio
import contextlib
import json
import os
import sys
import threading
from importlib.metadata import version

# Seconds for one request, and for a change to be reported.
LONGEST_REQUEST = int(os.environ.get("LONGEST_REQUEST", "120"))

NODE = r"""
const [library] = process.argv.slice(1);
const old = library === "sdk";
const base = old ? "@modelcontextprotocol/sdk/client" : "@modelcontextprotocol/client";
const { Client } = require(old ? base + "/index.js" : base);
const { StdioClientTransport } = require(old ? base + "/stdio.js" : base + "/stdio");
const { StreamableHTTPClientTransport } = require(old ? base + "/streamableHttp.js" : base);
const types = old ? require("@modelcontextprotocol/sdk/types.js") : {};
const updated = types.ResourceUpdatedNotificationSchema ?? "notifications/resources/updated";
const limits = { timeout: 1000 * Number(process.env.LONGEST_REQUEST) };
const changes = new Set();
const waiting = new Map();
let client, modern, action = "cancel", shown = [];
const callTool = (wish, options) => old ? client.callTool(wish, undefined, options) : client.callTool(wish, options);

const verbs = {
  tools: (cursor) => client.listTools(cursor), resources: (cursor) => client.listResources(cursor),
  templates: (cursor) => client.listResourceTemplates(cursor), prompts: (cursor) => client.listPrompts(cursor),
};
const keys = { templates: "resourceTemplates" };

const commands = {
  async connect({ transport, command, args, env, url, token, era }) {
    const options = { capabilities: { elicitation: { url: {} } }, versionNegotiation: { mode: era === "legacy" ? "legacy" : { pin: era } } };
    client = new Client({ name: process.env.CLIENT_NAME, version: "1" }, options);
    client.setNotificationHandler(updated, ({ params }) => {
      changes.add(params.uri);
      waiting.get(params.uri)?.();
    });
    client.setRequestHandler(types.ElicitRequestSchema ?? "elicitation/create", ({ params }) => {
      shown.push(params);
      return action === "ignore" ? new Promise(() => {}) : { action };
    });
    const headers = { Authorization: `Bearer ${token}` };
    await client.connect(transport === "stdio" ? new StdioClientTransport({ command, args, env })
      : new StreamableHTTPClientTransport(new URL(url), { requestInit: { headers } }), limits);
    modern = era !== "legacy";
    const negotiated = client.getNegotiatedProtocolVersion?.() ?? client.transport.protocolVersion ?? client.transport._protocolVersion;
    return { protocol: negotiated ?? null, instructions: client.getInstructions(), capabilities: client.getServerCapabilities() };
  },
  async list({ what }) {
    const all = [];
    let cursor;
    do {
      const page = await verbs[what](cursor ? { cursor } : undefined);
      all.push(...page[keys[what] ?? what]);
      cursor = page.nextCursor;
    } while (cursor);
    return all;
  },
  call: ({ name, arguments: given }) => callTool({ name, arguments: given }, limits),
  call_once: ({ name, arguments: given }) =>
    client.request({ method: "tools/call", params: { name, arguments: given } }, { ...limits, allowInputRequired: true }),
  person({ does }) {
    const seen = shown;
    [action, shown] = [does, []];
    return seen;
  },
  read: ({ uri }) => client.readResource({ uri }, limits),
  prompt: ({ name, arguments: given }) => client.getPrompt({ name, arguments: given }, limits),
  complete: ({ ref, argument }) => client.complete({ ref, argument }, limits),
  async cancel({ name, arguments: given }) {
    const abort = new AbortController();
    let reports = 0;
    const options = { ...limits, signal: abort.signal, onprogress: () => { reports += 1; abort.abort("enough"); } };
    try {
      await callTool({ name, arguments: given }, options);
    } catch (error) {
      return { cancelled: reports > 0, reports, error: String(error) };
    }
    return { cancelled: false, reports };
  },
  async watch({ uri }) {
    if (!modern) return client.subscribeResource({ uri }, limits);
    return (await client.listen({ resourceSubscriptions: [uri] }, limits)).honoredFilter;
  },
  await_change({ uri, seconds }) {
    return new Promise((resolve) => {
      const timer = setTimeout(() => resolve({ changed: false }), seconds * 1000);
      const found = () => { clearTimeout(timer); resolve({ changed: true }); };
      changes.has(uri) ? found() : waiting.set(uri, found);
    });
  },
};

(async () => {
  for await (const line of require("node:readline").createInterface({ input: process.stdin })) {
    const command = JSON.parse(line);
    let answer;
    try {
      answer = { result: await commands[command.do](command) };
    } catch (error) {
      answer = { error: String(error?.stack ?? error) };
    }
    process.stdout.write(JSON.stringify(answer) + "\n");
  }
  await client?.close();
  process.exit(0);
})();
"""


class Changes:
    """The resources that were reported as changed."""

    def __init__(self) -> None:
        self.seen: set[str] = set()
        self.news = asyncio.Event()

    def add(self, uri: str) -> None:
        self.seen.add(uri)
        self.news.set()

    async def wait_for(self, uri: str, seconds: float) -> dict:
        with contextlib.suppress(TimeoutError):
            async with asyncio.timeout(seconds):
                while uri not in self.seen:
                    self.news.clear()
                    await self.news.wait()
        return {"changed": uri in self.seen}


def to_json(value):
    """As it was sent: what was absent stays absent."""
    return value.model_dump(mode="json", by_alias=True, exclude_unset=True)


async def list_all(list_page, key: str) -> list:
    """All pages of a list."""
    found, cursor = [], None
    while True:
        page = to_json(await list_page(cursor))
        found += page[key]
        cursor = page.get("nextCursor")
        if not cursor:
            return found


class Person:
    """Whoever sits at the client, and the addresses that were shown to them."""

    def __init__(self) -> None:
        self.action, self.shown = "cancel", []

    def change(self, action: str) -> list:
        """What they do from now on. Returns what was shown to them before."""
        shown, self.action, self.shown = self.shown, action, []
        return shown

    def take_request(self, types):
        """The function that a library calls with a request."""

        async def answer(_, params):
            self.shown.append(to_json(params))
            if self.action == "ignore":
                await asyncio.Event().wait()
            return types.ElicitResult(action=self.action)

        return answer


class OldLibrary:
    """`mcp` 1.30: a session that begins with `initialize`."""

    async def connect(self, stack, wish: dict) -> dict:
        import httpx
        from mcp import ClientSession, StdioServerParameters, types
        from mcp.client.stdio import stdio_client
        from mcp.client.streamable_http import streamable_http_client

        self.types, self.changes, self.person_at_client = types, Changes(), Person()
        if wish["transport"] == "stdio":
            server = StdioServerParameters(command=wish["command"], args=wish["args"], env=wish["env"])
            read, write = await stack.enter_async_context(stdio_client(server))
        else:
            headers = {"Authorization": f"Bearer {wish['token']}"}
            web = await stack.enter_async_context(httpx.AsyncClient(headers=headers, timeout=LONGEST_REQUEST))
            read, write, _ = await stack.enter_async_context(streamable_http_client(wish["url"], http_client=web))
        info = types.Implementation(name=os.environ["CLIENT_NAME"], version="1")
        self.session = await stack.enter_async_context(
            ClientSession(
                read, write, message_handler=self.handle_message, client_info=info,
                elicitation_callback=self.person_at_client.take_request(types),
            )
        )
        began = await self.session.initialize()
        return {"protocol": began.protocolVersion, "instructions": began.instructions, "capabilities": to_json(began.capabilities)}

    async def handle_message(self, message) -> None:
        if isinstance(message, self.types.ServerNotification) and isinstance(message.root, self.types.ResourceUpdatedNotification):
            self.changes.add(str(message.root.params.uri))

    async def list(self, what: str) -> list:
        verbs = {
            "tools": (self.session.list_tools, "tools"), "resources": (self.session.list_resources, "resources"),
            "templates": (self.session.list_resource_templates, "resourceTemplates"), "prompts": (self.session.list_prompts, "prompts"),
        }
        verb, key = verbs[what]
        return await list_all(lambda cursor: verb(params=self.types.PaginatedRequestParams(cursor=cursor)), key)

    async def call(self, name: str, arguments: dict) -> dict:
        return to_json(await self.session.call_tool(name, arguments))

    async def read(self, uri: str) -> dict:
        return to_json(await self.session.read_resource(uri))

    async def prompt(self, name: str, arguments: dict) -> dict:
        return to_json(await self.session.get_prompt(name, arguments))

    async def complete(self, ref: dict, argument: dict) -> dict:
        kind = self.types.PromptReference if ref["type"] == "ref/prompt" else self.types.ResourceTemplateReference
        return to_json(await self.session.complete(kind(**ref), argument))

    async def cancel(self, name: str, arguments: dict) -> dict:
        # This library sends no cancellation by itself, and does not name the id of a request.
        request, reports = self.session._request_id, asyncio.Event()

        async def report(*_: object) -> None:
            reports.set()

        call = asyncio.ensure_future(self.session.call_tool(name, arguments, progress_callback=report))
        wait = asyncio.ensure_future(reports.wait())
        await asyncio.wait([call, wait], timeout=LONGEST_REQUEST, return_when=asyncio.FIRST_COMPLETED)
        wait.cancel()
        if not reports.is_set():
            return {"cancelled": False, "answered": call.done()}
        params = self.types.CancelledNotificationParams(requestId=request, reason="enough")
        await self.session.send_notification(self.types.ClientNotification(self.types.CancelledNotification(params=params)))
        call.cancel()
        with contextlib.suppress(asyncio.CancelledError):
            await call
        return {"cancelled": True}

    async def watch(self, uri: str) -> dict:
        return to_json(await self.session.subscribe_resource(uri))

    async def await_change(self, uri: str, seconds: float) -> dict:
        return await self.changes.wait_for(uri, seconds)

    async def person(self, does: str) -> list:
        return self.person_at_client.change(does)


class NewLibrary:
    """`mcp` 2.3: with or without sessions."""

    async def connect(self, stack, wish: dict) -> dict:
        import httpx2
        import mcp_types as types
        from mcp import Client
        from mcp.client.stdio import StdioServerParameters
        from mcp.client.streamable_http import streamable_http_client

        self.types, self.stack, self.changes, self.era = types, stack, Changes(), wish["era"]
        self.person_at_client = Person()
        if wish["transport"] == "stdio":
            server = StdioServerParameters(command=wish["command"], args=wish["args"], env=wish["env"])
        else:
            headers = {"Authorization": f"Bearer {wish['token']}"}
            web = await stack.enter_async_context(httpx2.AsyncClient(headers=headers, timeout=LONGEST_REQUEST))
            server = streamable_http_client(wish["url"], http_client=web)
        info = types.Implementation(name=os.environ["CLIENT_NAME"], version="1")
        # With a version there is no first exchange, so its own default asks for the newest.
        mode = "legacy" if self.era == "legacy" else "auto"
        answer = self.person_at_client.take_request(types)
        client = Client(server, mode=mode, client_info=info, message_handler=self.handle_message, elicitation_callback=answer)
        self.client = await stack.enter_async_context(client)
        return {
            "protocol": self.client.protocol_version, "instructions": self.client.instructions,
            "capabilities": to_json(self.client.server_capabilities),
        }

    async def handle_message(self, message) -> None:
        if isinstance(message, self.types.ResourceUpdatedNotification):
            self.changes.add(str(message.params.uri))

    async def list(self, what: str) -> list:
        verbs = {
            "tools": (self.client.list_tools, "tools"), "resources": (self.client.list_resources, "resources"),
            "templates": (self.client.list_resource_templates, "resourceTemplates"), "prompts": (self.client.list_prompts, "prompts"),
        }
        verb, key = verbs[what]
        return await list_all(lambda cursor: verb(cursor=cursor), key)

    async def call(self, name: str, arguments: dict) -> dict:
        return to_json(await self.client.call_tool(name, arguments))

    async def call_once(self, name: str, arguments: dict) -> dict:
        return to_json(await self.client.session.call_tool(name, arguments, allow_input_required=True))

    async def read(self, uri: str) -> dict:
        return to_json(await self.client.read_resource(uri))

    async def prompt(self, name: str, arguments: dict) -> dict:
        return to_json(await self.client.get_prompt(name, arguments))

    async def complete(self, ref: dict, argument: dict) -> dict:
        kind = self.types.PromptReference if ref["type"] == "ref/prompt" else self.types.ResourceTemplateReference
        return to_json(await self.client.complete(kind(**ref), argument))

    async def cancel(self, name: str, arguments: dict) -> dict:
        import anyio

        reports = 0
        with anyio.CancelScope() as scope:

            async def report(*_: object) -> None:
                nonlocal reports
                reports += 1
                scope.cancel()

            await self.client.call_tool(name, arguments, progress_callback=report)
        return {"cancelled": scope.cancelled_caught, "reports": reports}

    async def watch(self, uri: str) -> dict:
        if self.era == "legacy":
            return to_json(await self.client.subscribe_resource(uri))
        stream = await self.stack.enter_async_context(self.client.listen(resource_subscriptions=[uri]))

        async def read_stream() -> None:
            async for event in stream:
                self.changes.add(str(event.uri))

        reading = asyncio.ensure_future(read_stream())
        self.stack.callback(reading.cancel)
        return to_json(stream.honored)

    async def await_change(self, uri: str, seconds: float) -> dict:
        return await self.changes.wait_for(uri, seconds)

    async def person(self, does: str) -> list:
        return self.person_at_client.change(does)


async def main() -> None:
    library = NewLibrary() if version("mcp").startswith("2.") else OldLibrary()
    lines: asyncio.Queue = asyncio.Queue()
    loop = asyncio.get_running_loop()

    def read_input() -> None:
        for line in sys.stdin:
            loop.call_soon_threadsafe(lines.put_nowait, line)
        loop.call_soon_threadsafe(lines.put_nowait, None)

    # The library may end the main task when its server was killed. The thread must not keep the process then.
    threading.Thread(target=read_input, daemon=True).start()
    async with contextlib.AsyncExitStack() as stack:
        while line := await lines.get():
            command = json.loads(line)
            verb = command.pop("do")
            try:
                async with asyncio.timeout(LONGEST_REQUEST):
                    done = await (library.connect(stack, command) if verb == "connect" else getattr(library, verb)(**command))
                answer = {"result": done}
            except Exception as error:  # noqa: BLE001: whatever a library raises is what the test reports
                answer = {"error": f"{type(error).__name__}: {error}"}
            print(json.dumps(answer), flush=True)


if __name__ == "__main__":
    import warnings

    warnings.simplefilter("ignore")
    asyncio.run(main())
