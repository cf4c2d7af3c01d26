"""A server that answers as a test says: also badly, late, or not at all."""

from __future__ import annotations

import json
import socket
import struct
import threading
import time
from collections.abc import Callable
from dataclasses import dataclass, field
from datetime import UTC, datetime, timedelta
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from typing import Any

from outlast import Client


@dataclass
class Call:
    """What was asked."""

    method: str
    path: str
    body: Any
    headers: dict[str, str]
    at: float = field(default_factory=time.monotonic)


@dataclass
class Answer:
    status: int = 200
    body: Any = None
    #: Seconds before it.
    late: float = 0.0
    #: The connection is reset instead: the call was heard, and nobody is told.
    reset: bool = False
    #: Sent as it is, instead of `body`.
    raw: bytes | None = None


def refusal(status: int, code: str) -> Answer:
    return Answer(status, {"code": code, "message": "no", "hint": "try something else"})


class Fake:
    """Answers each call with what ``answer`` says. Every call is kept."""

    def __init__(self, answer: Any) -> None:
        self.calls: list[Call] = []
        self._clients: list[Client] = []
        self.answer = answer
        fake = self

        class Handler(BaseHTTPRequestHandler):
            protocol_version = "HTTP/1.1"

            def serve(self) -> None:
                length = int(self.headers.get("Content-Length") or 0)
                text = self.rfile.read(length)
                if len(text) < length:
                    return  # the client left in the middle
                call = Call(self.command, self.path, json.loads(text) if text else None, dict(self.headers.items()))
                fake.calls.append(call)
                given = fake.answer(call)
                time.sleep(given.late)
                if given.reset:
                    # With a linger of no time, closing resets.
                    self.connection.setsockopt(socket.SOL_SOCKET, socket.SO_LINGER, struct.pack("ii", 1, 0))
                    self.close_connection = True
                    self.connection.close()
                    return
                body = given.raw if given.raw is not None else json.dumps(given.body).encode()
                self.send_response(given.status)
                self.send_header("Content-Length", str(len(body)))
                self.end_headers()
                self.wfile.write(body)

            do_GET = do_POST = do_PUT = serve

            def log_message(self, *_: object) -> None:
                pass

            def handle(self) -> None:
                try:
                    super().handle()
                except (OSError, ValueError):
                    pass  # the client left, or was left

            def finish(self) -> None:
                try:
                    super().finish()
                except (OSError, ValueError):
                    pass

        self._server = ThreadingHTTPServer(("127.0.0.1", 0), Handler)
        self._server.daemon_threads = True
        self.url = f"http://127.0.0.1:{self._server.server_address[1]}"
        threading.Thread(target=self._server.serve_forever, args=(0.05,), daemon=True).start()

    def __enter__(self) -> Fake:
        return self

    def __exit__(self, *_: object) -> None:
        for client in self._clients:
            client.close()
        self._server.shutdown()
        self._server.server_close()

    def client(self, **options: Any) -> Client:
        self._clients.append(Client(self.url, **options))
        return self._clients[-1]

    def of(self, end: str) -> list[Call]:
        """The calls whose path ends so."""
        return [call for call in self.calls if call.path.split("?")[0].endswith(end)]


def after(seconds: float) -> str:
    return (datetime.now(UTC) + timedelta(seconds=seconds)).isoformat()


class Queue:
    """A fake of the worker protocol: hands out the offers it was given, one per claim. Others decide about the rest."""

    def __init__(self, *offers: dict[str, Any], on: Callable[[Call], Answer | None] = lambda _: None) -> None:
        self.offers, self._on = [*offers], on
        self.claimed: dict[int, list[dict[str, Any]]] = {}
        self._lock = threading.Lock()

    def __call__(self, call: Call) -> Answer:
        special = self._on(call)
        if call.path.endswith("/claim"):
            with self._lock:
                fresh = call.body["id"] not in self.claimed
                if fresh:
                    self.claimed[call.body["id"]] = [self.offers.pop(0)] if self.offers else []
                tasks = self.claimed[call.body["id"]]
            # As a server that waits, but not for long.
            return special or Answer(body={"tasks": tasks}, late=0.0 if tasks or call.body["wait_ms"] == 0 else 0.6)
        if call.path.endswith("/heartbeat"):
            return special or Answer(body={"until": after(30), "cancelled": False})
        return special or Answer(body={})


def offer(name: str, args: Any = None, *, lease: float = 30.0, **more: Any) -> dict[str, Any]:
    return {
        "token": f"token-{name}",
        "task": f"task-{name}",
        "name": name,
        "queue": "default",
        "args": args,
        "attempt": 1,
        "idempotency_key": f"key-{name}",
        "until": after(lease),
        "now": after(0),
        **more,
    }
