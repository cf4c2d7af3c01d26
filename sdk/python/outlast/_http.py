"""HTTP, with the standard library alone. Every call can be repeated, so every call is, until it is answered."""

from __future__ import annotations

import http.client
import io
import json
import logging
import os
import random
import socket
import ssl
import threading
import time
from collections.abc import Mapping
from functools import partial
from typing import Any
from urllib.parse import quote, urlencode, urlsplit

from .errors import Interrupted, OutlastError, Unreachable

log = logging.getLogger("outlast")

#: What the server takes.
REQUEST_BYTES_MAX = 4 * 1024 * 1024
#: What is read of an answer: more than sixteen tasks with the largest arguments a server has unless it is told otherwise.
ANSWER_BYTES_MAX = 64 * 1024 * 1024
PAUSE_FIRST = 0.2
PAUSE_MAX = 10.0
#: Connections that are kept when nobody uses them, and how long. A server closes idle ones, too.
IDLE_MAX = 8
IDLE_SECONDS = 15.0


def pause(tries: int, longest: float = PAUSE_MAX) -> float:
    """How long to wait before the next try. Full jitter: workers that lost one server must not come back together."""
    return random.uniform(0.0, min(longest, PAUSE_FIRST * 2.0 ** min(tries, 16)))


def encode(value: Any) -> bytes:
    """JSON as the server takes it: NaN is none, and what is too large is not sent."""
    data = json.dumps(value, ensure_ascii=False, allow_nan=False, separators=(",", ":")).encode()
    if len(data) > REQUEST_BYTES_MAX:
        message = f"the request has {len(data)} bytes, the limit is {REQUEST_BYTES_MAX}"
        raise OutlastError("limit_exceeded", message, "send less, and keep what is large elsewhere", status=413)
    return data


def path(*parts: str) -> str:
    """A path of the API. What varies is quoted, so that an id can have any character."""
    if any(part in ("", ".", "..") for part in parts):
        raise ValueError(f"an id cannot be empty, '.' or '..' in a path: {parts}")
    return "/api/v1/" + "/".join(quote(part, safe="") for part in parts)


class Cut:
    """Lets another thread end the calls that are made with it: the one that waits, and every later one."""

    def __init__(self) -> None:
        self._event = threading.Event()
        self._lock = threading.Lock()
        self._socket: socket.socket | None = None

    def cut(self) -> None:
        self._event.set()
        with self._lock:
            if self._socket is not None:
                _shut(self._socket)

    def watch(self, sock: socket.socket | None) -> None:
        with self._lock:
            self._socket = sock
            if sock is not None and self._event.is_set():
                _shut(sock)

    def is_cut(self) -> bool:
        return self._event.is_set()

    def wait(self, seconds: float) -> None:
        self._event.wait(seconds)


def _shut(sock: socket.socket) -> None:
    try:
        # Unlike `close`, this wakes whoever reads.
        sock.shutdown(socket.SHUT_RDWR)
    except OSError:
        pass


class _TimedReader(io.RawIOBase):
    """Reads until an instant. The timeout of a socket begins anew with every byte that comes."""

    def __init__(self, sock: socket.socket, deadline: float) -> None:
        self._sock, self._deadline = sock, deadline
        # Keeps the socket open for as long as somebody reads.
        self._raw = sock.makefile("rb", buffering=0)

    def readable(self) -> bool:
        return True

    def readinto(self, buffer: Any) -> int | None:
        left = self._deadline - time.monotonic()
        if left <= 0:
            raise TimeoutError("the answer took too long")
        self._sock.settimeout(left)
        return self._raw.readinto(buffer)

    def close(self) -> None:
        self._raw.close()
        super().close()


class Transport:
    """Calls to one server. Threads may share it."""

    def __init__(self, url: str | None, token: str | None, timeout: float, retry_for: float) -> None:
        url = url or os.environ.get("OUTLAST_URL") or "http://127.0.0.1:7117"
        parts = urlsplit(url)
        if parts.scheme not in ("http", "https") or not parts.hostname or parts.username is not None:
            raise ValueError("OUTLAST_URL must be http://HOST:PORT or https://HOST, without a user")
        self._host, self._port, self._prefix = parts.hostname, parts.port, parts.path.rstrip("/")
        self._tls = ssl.create_default_context() if parts.scheme == "https" else None
        self._token = (token or os.environ.get("OUTLAST_TOKEN") or "").strip()
        if not (self._token.isascii() and self._token.isprintable()):
            # Said here, without it: who finds out later puts it into their message.
            raise ValueError("OUTLAST_TOKEN has characters that no token has")
        self.timeout, self.retry_for = timeout, retry_for
        self._idle: list[tuple[float, http.client.HTTPConnection]] = []
        self._lock = threading.Lock()

    def call(
        self,
        method: str,
        path: str,
        body: Any = None,
        *,
        query: Mapping[str, Any] | None = None,
        key: str | None = None,
        wait: float = 0.0,
        timeout: float | None = None,
        retry_for: float | None = None,
        pause_max: float = PAUSE_MAX,
        cut: Cut | None = None,
    ) -> tuple[int, Any]:
        """Status and JSON of the answer. What may pass is tried again for ``retry_for`` seconds, at least every
        ``pause_max``; ``wait`` is how long the server was asked to wait, which comes on top of the timeout of each try."""
        data = None if body is None else encode(body)
        given = {name: value for name, value in (query or {}).items() if value is not None}
        target = self._prefix + path + ("?" + urlencode(given) if given else "")
        patience = wait + (self.timeout if timeout is None else timeout)
        until = time.monotonic() + (self.retry_for if retry_for is None else retry_for)
        tries = 0
        while True:
            try:
                return self._once(method, target, data, self._headers(key), patience, cut)
            except OutlastError as error:
                if cut is not None and cut.is_cut():
                    raise Interrupted() from error
                before = 0.0 if isinstance(error, Unreachable) and error.was_idle else pause(tries, pause_max)
                if not error.passes or time.monotonic() + before >= until:
                    raise
                tries += 1
                log.warning("%s %s: %s (again in %.1f s)", method, path, error, before)
                (cut.wait if cut is not None else time.sleep)(before)

    def close(self) -> None:
        """Closes the connections that nobody uses."""
        with self._lock:
            idle, self._idle = self._idle, []
        for _, connection in idle:
            connection.close()

    def _headers(self, key: str | None) -> dict[str, str]:
        headers = {"Accept": "application/json", "Content-Type": "application/json", "User-Agent": "outlast-python/0.1"}
        if self._token:
            headers["Authorization"] = f"Bearer {self._token}"
        if key is not None:
            if not (key.isascii() and key.isprintable() and 0 < len(key) <= 255):
                raise ValueError("an idempotency key has 1 to 255 printable ASCII characters")
            headers["Idempotency-Key"] = key
        return headers

    def _once(
        self, method: str, target: str, data: bytes | None, headers: dict[str, str], patience: float, cut: Cut | None
    ) -> tuple[int, Any]:
        deadline = time.monotonic() + patience
        connection, was_idle = self._take()
        try:
            if connection.sock is None:
                connection.timeout = min(patience, self.timeout)
                connection.connect()
            sock = connection.sock
            assert sock is not None, "it is connected"
            if cut is not None:
                cut.watch(sock)
            sock.settimeout(patience)
            connection.response_class = partial(_Response, deadline)  # type: ignore[assignment]
            connection.request(method, target, body=data, headers=headers)
            response = connection.getresponse()
            text = response.read(ANSWER_BYTES_MAX + 1)
        except (OSError, http.client.HTTPException) as error:
            connection.close()
            unreachable = Unreachable(f"{self._host} did not answer: {error or type(error).__name__}")
            unreachable.was_idle = was_idle and not isinstance(error, TimeoutError)
            raise unreachable from error
        finally:
            if cut is not None:
                cut.watch(None)
        self._keep(connection, response)
        return _answer(response.status, response.reason, text)

    def _take(self) -> tuple[http.client.HTTPConnection, bool]:
        with self._lock:
            while self._idle:
                since, connection = self._idle.pop()
                if time.monotonic() - since < IDLE_SECONDS:
                    return connection, True
                connection.close()
        if self._tls is not None:
            return http.client.HTTPSConnection(self._host, self._port, context=self._tls), False
        return http.client.HTTPConnection(self._host, self._port), False

    def _keep(self, connection: http.client.HTTPConnection, response: http.client.HTTPResponse) -> None:
        # `isclosed`: it was read to its end, so that the next answer is not mistaken for the rest of this one.
        reusable = response.isclosed() and not response.will_close
        response.close()
        with self._lock:
            if reusable and len(self._idle) < IDLE_MAX:
                self._idle.append((time.monotonic(), connection))
                return
        connection.close()


class _Response(http.client.HTTPResponse):
    def __init__(self, deadline: float, sock: socket.socket, *args: Any, **options: Any) -> None:
        super().__init__(sock, *args, **options)
        self.fp.close()
        self.fp = io.BufferedReader(_TimedReader(sock, deadline))


def _answer(status: int, reason: str, text: bytes) -> tuple[int, Any]:
    if len(text) > ANSWER_BYTES_MAX:
        raise OutlastError("answer_too_large", f"the answer has more than {ANSWER_BYTES_MAX} bytes", "ask for less")
    try:
        body = json.loads(text) if text else None
    except ValueError:
        body = None
        if status < 300:
            raise OutlastError("bad_answer", "the answer is not JSON", "check OUTLAST_URL: is this an Outlast server?") from None
    if 200 <= status < 300:
        return status, body
    # Whatever stands between us and the server may answer in its own words.
    told = body if isinstance(body, dict) else {}
    code, message = str(told.get("code", f"http_{status}")), str(told.get("message", reason or "the call was refused"))
    raise OutlastError(code, message, str(told.get("hint", "")), status=status)
