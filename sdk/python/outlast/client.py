"""What a program says to a server: start runs, wait for them, tell them things, look at them."""

from __future__ import annotations

import asyncio
import random
import time
import uuid
from collections.abc import Awaitable, Callable, Iterator, Mapping
from concurrent.futures import ThreadPoolExecutor
from functools import partial
from typing import Any, Concatenate, NotRequired, ParamSpec, TypedDict, TypeVar

from ._http import Transport, path
from .errors import RunFailed, WaitTimeout

#: How long the server is asked to wait for the end of a run, each time: proxies cut what is silent for a minute.
WAIT_SECONDS = 30.0
#: The same where a thread waits that cannot be stopped.
ASYNC_WAIT_SECONDS = 5.0


class Started(TypedDict):
    run: str
    new: bool


class Delivered(TypedDict):
    #: ``delivered``, ``buffered`` (kept until the run asks for it), ``duplicate`` (accepted before, under the same key) or ``lost`` (too late).
    outcome: str


class RunSummary(TypedDict):
    run: str
    workflow: str
    version: str
    status: str
    generation: int
    events: int
    created_at: str
    note: NotRequired[str]
    parked_at: NotRequired[str]
    parent: NotRequired[str]
    finished_at: NotRequired[str]


class RunView(TypedDict):
    summary: RunSummary
    input: Any
    attributes: dict[str, str]
    awaiting: list[dict[str, Any]]


class RunResult(TypedDict):
    run: str
    workflow: str
    #: ``completed``, ``failed`` or ``cancelled``; anything else has not ended.
    status: str
    output: NotRequired[Any]
    error: NotRequired[dict[str, Any]]


class Explained(TypedDict):
    run: str
    status: str
    standing: str
    #: All of it in plain sentences.
    text: str
    operations: list[dict[str, Any]]
    inbox: list[dict[str, Any]]


class Approval(TypedDict):
    run: str
    workflow: str
    approval: str
    title: str
    since: str
    assignee: NotRequired[str]
    until: NotRequired[str]


class Client:
    """A client of the server at OUTLAST_URL, with the token in OUTLAST_TOKEN. Threads may share it.

    Every write has an idempotency key, so that it is repeated safely when its answer is lost. Give one (``key``) to
    repeat a write across crashes of this process, too.
    """

    def __init__(
        self, url: str | None = None, token: str | None = None, *, timeout: float = 10.0, retry_for: float = 30.0
    ) -> None:
        self.transport = Transport(url, token, timeout, retry_for)

    def __enter__(self) -> Client:
        return self

    def __exit__(self, *_: object) -> None:
        self.close()

    def close(self) -> None:
        self.transport.close()

    def start(
        self,
        workflow: str,
        input: Any = None,
        *,
        id: str | None = None,
        version: str | None = None,
        attributes: Mapping[str, str] | None = None,
        delay: float | None = None,
        key: str | None = None,
    ) -> Started:
        """Starts a run. The same ``id``, or within a day the same ``key``, is the same run."""
        body: dict[str, Any] = {"workflow": workflow, "input": input}
        optional = {"id": id, "version": version, "attributes": attributes and dict(attributes)}
        body |= {name: value for name, value in optional.items() if value}
        if delay is not None:
            body["delay_ms"] = round(delay * 1000)
        # An id already makes it repeatable.
        key = key or (None if id else _fresh())
        answer: Started = self.transport.call("POST", path("runs"), body, key=key)[1]
        return answer

    def peek(self, run: str, wait: float = 0.0) -> RunResult:
        """What a run came to, if it has ended within ``wait`` seconds (60 at most), and where it stands otherwise."""
        query = {"wait_ms": round(min(wait, 60.0) * 1000)}
        answer: RunResult = self.transport.call("GET", path("runs", run, "result"), query=query, wait=wait)[1]
        return answer

    def result(self, run: str, timeout: float | None = None) -> Any:
        """The output of a run, when it has ended.

        Raises ``RunFailed`` if it ended otherwise or is parked, and ``WaitTimeout`` after ``timeout`` seconds.
        """
        began = time.monotonic()
        while True:
            asked = time.monotonic()
            left = WAIT_SECONDS if timeout is None else began + timeout - asked
            found = self.peek(run, max(0.0, min(left, WAIT_SECONDS)))
            if _has_ended(found):
                return found.get("output")
            if timeout is not None and time.monotonic() >= began + timeout:
                raise WaitTimeout(run, found["status"], timeout)
            if time.monotonic() - asked < 1.0:
                # A server that shuts down answers at once: it is not to be asked in a circle.
                time.sleep(random.uniform(0.1, 0.5))

    def get(self, run: str) -> RunView:
        """A run, with everything it waits for."""
        answer: RunView = self.transport.call("GET", path("runs", run))[1]
        return answer

    def explain(self, run: str) -> Explained:
        """Why a run stands where it stands, and what would wake it."""
        answer: Explained = self.transport.call("GET", path("runs", run, "explain"))[1]
        return answer

    def list(
        self,
        *,
        status: str | None = None,
        workflow: str | None = None,
        prefix: str | None = None,
        attribute: str | None = None,
        page: int = 100,
    ) -> Iterator[RunSummary]:
        """Finds runs, the newest first, page by page as they are looked at."""
        query = {"status": status, "workflow": workflow, "prefix": prefix, "attribute": attribute, "limit": page}
        yield from self._pages("runs", "runs", query)

    def signal(self, run: str, name: str, payload: Any = None, *, key: str | None = None) -> Delivered:
        """Sends a signal. It is durable when this returns. The same ``key`` counts once for the life of the run."""
        return self._tell(path("runs", run, "signals", name), {"payload": payload}, key)

    def approvals(self, *, assignee: str | None = None) -> Iterator[Approval]:
        """The approvals that nobody has decided, those of the newest runs first."""
        yield from self._pages("approvals", "approvals", {"assignee": assignee})

    def approve(self, run: str, approval: str, feedback: str | None = None, *, key: str | None = None) -> Delivered:
        return self._decide(run, approval, True, feedback, key)

    def deny(self, run: str, approval: str, feedback: str | None = None, *, key: str | None = None) -> Delivered:
        return self._decide(run, approval, False, feedback, key)

    def cancel(self, run: str, reason: str = "", *, key: str | None = None) -> Delivered:
        """Asks a run to stop: its cleanup runs, and its children are asked too."""
        return self._tell(path("runs", run, "cancel"), {"reason": reason}, key)

    def put_workflow(self, file: str, text: str) -> dict[str, Any]:
        """Puts a ``.wf`` script or a ``.flow.yaml``. The same text again changes nothing."""
        answer: dict[str, Any] = self.transport.call("PUT", path("workflows"), {"file": file, "text": text})[1]
        return answer

    def _decide(self, run: str, approval: str, approved: bool, feedback: str | None, key: str | None) -> Delivered:
        body: dict[str, Any] = {"approved": approved}
        if feedback is not None:
            body["feedback"] = feedback
        return self._tell(path("runs", run, "approvals", approval), body, key)

    def _tell(self, target: str, body: dict[str, Any], key: str | None) -> Delivered:
        answer: Delivered = self.transport.call("POST", target, body, key=key or _fresh())[1]
        return answer

    def _pages(self, what: str, field: str, query: Mapping[str, Any]) -> Iterator[Any]:
        cursor = None
        while True:
            page = self.transport.call("GET", path(what), query={**query, "cursor": cursor})[1]
            yield from page[field]
            cursor = page.get("next")
            if cursor is None:
                return


def _has_ended(found: RunResult) -> bool:
    if found["status"] in ("failed", "cancelled", "parked"):
        raise RunFailed(found["run"], found["status"], found.get("error", {}))
    return found["status"] == "completed"


def _fresh() -> str:
    return uuid.uuid4().hex


# In a class with a method `list`, `list[…]` means something else.
_Runs = list[RunSummary]
_Approvals = list[Approval]
_P = ParamSpec("_P")
_T = TypeVar("_T")


def _in_thread(method: Callable[Concatenate[Client, _P], _T]) -> Callable[Concatenate[AsyncClient, _P], Awaitable[_T]]:
    async def call(self: AsyncClient, /, *args: _P.args, **options: _P.kwargs) -> _T:
        loop = asyncio.get_running_loop()
        return await loop.run_in_executor(self._threads, partial(method, self.client, *args, **options))

    call.__doc__ = method.__doc__
    return call


class AsyncClient:
    """The same for ``async`` programs. Each call waits in a thread, so that the loop does not; ``threads`` at once."""

    def __init__(self, client: Client | None = None, threads: int = 64) -> None:
        self.client = client or Client()
        self._threads = ThreadPoolExecutor(threads, "outlast")

    start = _in_thread(Client.start)
    peek = _in_thread(Client.peek)
    get = _in_thread(Client.get)
    explain = _in_thread(Client.explain)
    signal = _in_thread(Client.signal)
    approve = _in_thread(Client.approve)
    deny = _in_thread(Client.deny)
    cancel = _in_thread(Client.cancel)
    put_workflow = _in_thread(Client.put_workflow)

    async def result(self, run: str, timeout: float | None = None) -> Any:
        """As ``Client.result``. Who gives up waiting leaves no thread behind that waits for long."""
        began = time.monotonic()
        while True:
            asked = time.monotonic()
            left = ASYNC_WAIT_SECONDS if timeout is None else began + timeout - asked
            found = await self.peek(run, max(0.0, min(left, ASYNC_WAIT_SECONDS)))
            if _has_ended(found):
                return found.get("output")
            if timeout is not None and time.monotonic() >= began + timeout:
                raise WaitTimeout(run, found["status"], timeout)
            if time.monotonic() - asked < 1.0:
                await asyncio.sleep(random.uniform(0.1, 0.5))

    async def list(self, **filters: Any) -> _Runs:
        return await self._gather(lambda: [*self.client.list(**filters)])

    async def approvals(self, *, assignee: str | None = None) -> _Approvals:
        return await self._gather(lambda: [*self.client.approvals(assignee=assignee)])

    async def _gather(self, pages: Callable[[], _T]) -> _T:
        return await asyncio.get_running_loop().run_in_executor(self._threads, pages)
