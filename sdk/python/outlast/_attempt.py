"""One attempt at a task: the handler, the signs of life beside it, and what is said about it in the end."""

from __future__ import annotations

import asyncio
import logging
import math
import threading
import time
import traceback
from datetime import datetime
from typing import TYPE_CHECKING, Any

from ._http import PAUSE_MAX, path, pause
from .errors import OutlastError, TaskError
from .tasks import Task, TaskContext

if TYPE_CHECKING:
    from .worker import Worker

log = logging.getLogger("outlast")

#: Progress is sent at most so often.
THROTTLE_SECONDS = 1.0
#: How long it is tried at least to say what came of an attempt, also beyond its lease: whether it still counts is for the
#: server to say, and a server that was away for a moment gave the task to nobody.
TELL_SECONDS = 60.0
#: So many tries to say it fit into one lease: a server that comes back while the task is ours must hear it in time.
TELL_TRIES = 10
#: What is kept of a traceback: its end.
TRACE_CHARS_MAX = 4096


class Attempt:
    """Made by two threads: ``make`` gives signs of life and speaks to the server, the handler has its own."""

    def __init__(self, worker: Worker, task: Task[Any, Any], offer: dict[str, Any]) -> None:
        now = time.monotonic()
        # Only differences of the server's instants are used: the clocks of two machines are not compared.
        server_now = datetime.fromisoformat(offer["now"])

        def left(instant: str) -> float:
            return (datetime.fromisoformat(instant) - server_now).total_seconds()

        self._worker, self._task, self._offer = worker, task, offer
        self._token: str = offer["token"]
        self._silence = offer["silence_ms"] / 1000 if offer.get("silence_ms") is not None else math.inf
        #: How long the task stays ours after a sign of life.
        self._span = min(worker.lease, self._silence)
        self._expires = now + left(offer["until"])
        self._deadline = now + left(offer["deadline"]) if offer.get("deadline") else math.inf
        self._beaten = now
        self._not_before = 0.0
        self.ctx = TaskContext(offer, None if math.isinf(self._deadline) else self._deadline)
        self._ended = threading.Event()
        self._result: Any = None
        self._error: BaseException | None = None
        self._speaks = threading.Lock()
        #: The server knows, or will not be told any more.
        self.said = threading.Event()
        self._running: tuple[asyncio.AbstractEventLoop, asyncio.Task[None]] | None = None

    def make(self, loop: asyncio.AbstractEventLoop | None) -> None:
        """Returns when the handler has ended and the server knows, or does not care."""
        self._start_handler(loop)
        self._accompany()
        reason = self.ctx.reason
        if reason in ("timeout", "silent"):
            self._say_late(reason)
        elif reason == "cancelled":
            # It should tidy up first; but it is not waited for longer than the task is ours.
            self._ended.wait(max(0.0, self._expires - time.monotonic()))
            self.hand_back()
        elif reason == "stopping" and self._error is not None:
            self.hand_back()
        elif reason != "lost":
            self._say_outcome()
        # What cannot be stopped still takes its place.
        self._ended.wait()

    def stop(self, reason: str) -> None:
        """Tells the handler to stop. That the worker ends is no reason any more once there is another one."""
        if self.ctx.reason in (None, "stopping"):
            self.ctx.reason = reason
            self.ctx._stopped.set()
            if self._running is not None:
                loop, running = self._running
                loop.call_soon_threadsafe(running.cancel)

    def hand_back(self) -> None:
        """Others may have the task at once, and the attempt does not count."""
        self._say("give-back", {})

    def _start_handler(self, loop: asyncio.AbstractEventLoop | None) -> None:
        if self._task.is_async:
            assert loop is not None, "a worker with async handlers has a loop"
            asyncio.run_coroutine_threadsafe(self._handle_async(loop), loop)
        else:
            threading.Thread(target=self._handle, name=f"outlast-{self._task.name}", daemon=True).start()

    def _handle(self) -> None:
        try:
            self._result = self._task(self.ctx, self._offer["args"])
        except BaseException as error:  # also SystemExit: a handler does not end the worker
            self._error = error
        self._end()

    async def _handle_async(self, loop: asyncio.AbstractEventLoop) -> None:
        running = asyncio.current_task()
        assert running is not None
        try:
            self._running = (loop, running)
            self.ctx.check()
            self._result = await self._task(self.ctx, self._offer["args"])
        except BaseException as error:  # also that it was cancelled
            self._error = error
        self._end()

    def _end(self) -> None:
        self._ended.set()
        self.ctx._wake.set()

    def _accompany(self) -> None:
        """Gives signs of life until the handler has ended, or the attempt is over."""
        while not self._ended.is_set():
            now = time.monotonic()
            if now >= self._deadline:
                self.stop("timeout")
            elif now >= self.ctx._signed + self._silence:
                self.stop("silent")
            elif now >= self._expires:
                log.warning("task %s: the server was out of reach for a whole lease", self._offer["task"])
                self.stop("lost")
            if self.ctx.reason not in (None, "stopping"):
                return
            due = self._due()
            if now >= due:
                self._beat(now)
            else:
                self.ctx._wake.wait(min(due, self._deadline, self._expires, self.ctx._signed + self._silence) - now)
                self.ctx._wake.clear()

    def _due(self) -> float:
        """When the next sign of life is to be given."""
        if self.ctx._unsent:
            due = self._beaten + min(THROTTLE_SECONDS, self._span / 3)
        elif self._silence <= self._worker.lease:
            # Whether the handler lives is the handler's to say.
            due = math.inf
        else:
            due = self._beaten + self._span / 3
        return max(due, self._not_before)

    def _beat(self, now: float) -> None:
        progress = self.ctx._unsent.pop() if self.ctx._unsent else None
        body = {"token": self._token} if progress is None else {"token": self._token, "progress": progress}
        try:
            # One try: between two, the handler may end, and that is more important.
            _, answer = self._worker.client.transport.call(
                "POST", path("work", "heartbeat"), body, retry_for=0.0, timeout=max(1.0, min(10.0, self._span / 3))
            )
        except OutlastError as error:
            if error.status == 409:
                self.stop("lost")
            elif (error.passes or error.status in (401, 403)) and not self.ctx._unsent:
                self.ctx._unsent.append(progress)
            log.warning("task %s: a sign of life was not taken: %s", self._offer["task"], error)
            self._not_before = time.monotonic() + min(self._span / 6, pause(4))
            return
        # From when it was sent, not from when it was answered: the server counts from somewhere between.
        self._beaten, self._expires = now, now + self._span
        if answer["cancelled"]:
            self.stop("cancelled")

    def _say_late(self, reason: str) -> None:
        what = "took too long" if reason == "timeout" else f"gave no sign of life for {self._silence:g} s"
        # The server knows it as well, but looks only when somebody claims.
        self._say("fail", {"error": {"code": "timeout", "message": f"attempt {self._offer['attempt']} {what}"}})

    def _say_outcome(self) -> None:
        if self._error is not None:
            self._say("fail", {"error": _failure(self._error)})
        else:
            self._say("complete", {"result": self._result})

    def _say(self, what: str, body: dict[str, Any]) -> None:
        # Once: whoever hands back what does not stop, and the attempt itself, may come at the same time.
        if not self._speaks.acquire(blocking=False):
            return
        refused = self._tell(what, body)
        if refused is not None and what != "give-back":
            # The server does not take it and never will; the next attempt would come to the same.
            self._tell("fail", {"error": {"code": refused.code, "message": str(refused), "permanent": True}})
        self.said.set()

    def _tell(self, what: str, body: dict[str, Any]) -> OutlastError | None:
        """Repeats it until it is answered. Returns the error if something is wrong with what was said."""
        left = min(max(self._expires, time.monotonic() + TELL_SECONDS), self._worker.tell_until) - time.monotonic()
        transport = self._worker.client.transport
        try:
            body = {"token": self._token, **body}
            timeout = max(1.0, min(transport.timeout, left))
            pause_max = min(PAUSE_MAX, self._span / TELL_TRIES)
            transport.call("POST", path("work", what), body, retry_for=left, pause_max=pause_max, timeout=timeout)
        except (TypeError, ValueError, RecursionError) as error:
            return OutlastError("invalid_output", f"what the handler gave is not JSON: {error}")
        except OutlastError as error:
            log.warning("task %s: `%s` was not taken: %s", self._offer["task"], what, error)
            # 409: the attempt was over. If a first try was not answered, maybe because that one was taken.
            about_us = error.passes or error.status in (401, 403, 409)
            return None if about_us else error
        return None


def _failure(error: BaseException) -> dict[str, Any]:
    if isinstance(error, TaskError):
        failure = {"code": error.code, "message": error.message, "permanent": error.permanent}
        return failure if error.data is None else {**failure, "data": error.data}
    name = type(error).__name__
    trace = "".join(traceback.format_exception(error))[-TRACE_CHARS_MAX:]
    return {"code": "error", "message": _clean(f"{name}: {error}"[:8192]), "data": {"type": name, "traceback": _clean(trace)}}


def _clean(text: str) -> str:
    """Whatever somebody else's exception says, as Unicode."""
    return text.encode(errors="replace").decode()
