"""A worker: claims tasks, has its handlers do them, and says what came of each."""

from __future__ import annotations

import asyncio
import logging
import math
import os
import random
import signal
import socket
import threading
import time
import uuid
from collections.abc import Iterable, Iterator
from contextlib import contextmanager, suppress
from typing import Any

from ._attempt import Attempt
from ._http import Cut, path
from .client import Client
from .errors import Interrupted, OutlastError
from .tasks import Task

log = logging.getLogger("outlast")

#: What one claim takes at most. Arguments can be large, and an answer has a limit.
CLAIM_MAX = 16
#: How long a handler has, once it is told to stop because the worker ends.
WIND_DOWN_SECONDS = 5.0
#: How often a worker in the main thread looks whether a signal came.
LOOK_SECONDS = 0.2


class Worker:
    """Does the tasks that its handlers know, at most ``concurrency`` at once.

    ``lease`` is how long the worker may be out of reach before others are given its tasks, ``poll`` how long the server
    is asked to wait for something to do, and ``grace`` how long what is under way may take after a SIGTERM before it is
    handed back; all in seconds. ``name`` must be that of no other worker that runs.
    """

    def __init__(
        self,
        tasks: Iterable[Task[Any, Any]],
        *,
        client: Client | None = None,
        queues: Iterable[str] = ("default",),
        concurrency: int = 8,
        lease: float = 30.0,
        poll: float = 20.0,
        grace: float = 20.0,
        name: str | None = None,
    ) -> None:
        self._tasks: dict[str, Task[Any, Any]] = {}
        for task in tasks:
            if task.name in self._tasks:
                raise ValueError(f"two handlers are given for the task {task.name!r}; give one of them another name")
            self._tasks[task.name] = task
        if not self._tasks:
            raise ValueError("a worker needs at least one task it can do")
        if concurrency < 1 or not 1.0 <= lease <= 3600.0 or not 0.0 <= poll <= 60.0 or grace < 0.0:
            raise ValueError("concurrency is at least 1, a lease 1 to 3600 s, a poll 0 to 60 s, and a grace not negative")
        host = socket.gethostname()[:100]
        self.name = name or f"{host}-{os.getpid()}-{uuid.uuid4().hex[:8]}"
        self.client = client or Client()
        self.lease = lease
        self._about = {"worker": self.name, "host": host, "queues": [*queues], "names": [*self._tasks]}
        self._concurrency, self._poll, self._grace = concurrency, poll, grace
        # A claim's id must be new also if a worker of this name ran before.
        self._claims = time.time_ns() // 1000
        self._attempts: set[Attempt] = set()
        self._changed = threading.Condition()
        self._cut = Cut()
        self._hurry = threading.Event()
        self._signals = 0
        self._failure: BaseException | None = None
        self._loop: asyncio.AbstractEventLoop | None = None
        #: Until when it may be said what came of an attempt; as long as its lease, unless the worker ends.
        self.tell_until = math.inf

    def run(self) -> None:
        """Works until SIGTERM, SIGINT or ``stop``, then drains. Raises what makes going on pointless: a token that is refused."""
        work = threading.Thread(target=self._work, name="outlast-worker", daemon=True)
        with self._own_loop(), self._on_signal():
            work.start()
            seen = 0
            while work.is_alive():
                # A signal handler may interrupt any line of this thread: it only counts, and takes no lock.
                work.join(LOOK_SECONDS)
                while seen < self._signals:
                    seen += 1
                    self.stop()
        if self._failure is not None:
            raise self._failure

    async def run_async(self) -> None:
        """The same inside a loop: ``async`` handlers run in it."""
        self._loop = asyncio.get_running_loop()
        signals = (signal.SIGTERM, signal.SIGINT) if threading.current_thread() is threading.main_thread() else ()
        for number in signals:
            self._loop.add_signal_handler(number, self.stop)
        ended = self._loop.create_future()

        def tell() -> None:
            if not ended.done():
                ended.set_result(None)

        def work(loop: asyncio.AbstractEventLoop) -> None:
            self._work()
            with suppress(RuntimeError):  # nobody waits, and the loop is closed
                loop.call_soon_threadsafe(tell)

        # Not a thread of the loop's pool: calls that wait for this worker's results may have them all.
        threading.Thread(target=work, args=(self._loop,), name="outlast-worker", daemon=True).start()
        try:
            await ended
        except asyncio.CancelledError:
            self.stop()
            raise
        finally:
            for number in signals:
                self._loop.remove_signal_handler(number)
        if self._failure is not None:
            raise self._failure

    def stop(self) -> None:
        """No more tasks are claimed, and those under way have the grace time. Told again, they have none."""
        if self._cut.is_cut():
            self._hurry.set()
        self._cut.cut()
        with self._changed:
            self._changed.notify_all()

    def _work(self) -> None:
        try:
            while not self._cut.is_cut():
                self._claim(self._room())
        except Interrupted:
            pass
        except BaseException as error:
            self._failure = error
            log.error("the worker %s stops: %s", self.name, error)
            self._cut.cut()
        self._drain()

    def _room(self) -> int:
        """How many more it could do, as soon as that is at least one."""
        with self._changed:
            self._changed.wait_for(lambda: len(self._attempts) < self._concurrency or self._cut.is_cut())
            return min(CLAIM_MAX, self._concurrency - len(self._attempts))

    def _claim(self, limit: int) -> None:
        if self._cut.is_cut():
            return
        self._claims += 1
        claim = {**self._about, "id": self._claims, "limit": limit, "lease_ms": round(self.lease * 1000)}
        asked = time.monotonic()
        try:
            # Repeated under the same id until it is answered: what was claimed and not heard of comes again.
            offers = self._ask({**claim, "wait_ms": round(self._poll * 1000)}, self._poll, math.inf, self._cut)
        except Interrupted:
            # Maybe it had been given something, which nobody would do before the lease is over.
            self._hand_back_unheard({**claim, "wait_ms": 0})
            raise
        for offer in offers:
            if self._cut.is_cut():
                self._give_back(offer)
            else:
                self._begin(offer)
        if not offers and time.monotonic() - asked < 0.5:
            # A server that shuts down answers at once: it is not to be asked in a circle.
            self._cut.wait(random.uniform(0.1, 1.0))

    def _ask(self, claim: dict[str, Any], wait: float, retry_for: float, cut: Cut | None) -> list[dict[str, Any]]:
        _, answer = self.client.transport.call(
            "POST", path("work", "claim"), claim, wait=wait, retry_for=retry_for, cut=cut
        )
        offers: list[dict[str, Any]] = answer["tasks"]
        return offers

    def _hand_back_unheard(self, claim: dict[str, Any]) -> None:
        try:
            for offer in self._ask(claim, 0.0, WIND_DOWN_SECONDS, None):
                self._give_back(offer)
        except OutlastError as error:
            log.info("whether there was something to hand back is not known: %s", error)

    def _give_back(self, offer: dict[str, Any]) -> None:
        self.client.transport.call("POST", path("work", "give-back"), {"token": offer["token"]}, retry_for=1.0)

    def _begin(self, offer: dict[str, Any]) -> None:
        attempt = Attempt(self, self._tasks[offer["name"]], offer)
        with self._changed:
            self._attempts.add(attempt)

        def make() -> None:
            try:
                attempt.make(self._loop)
            finally:
                with self._changed:
                    self._attempts.discard(attempt)
                    self._changed.notify_all()

        threading.Thread(target=make, name=f"outlast-{offer['task']}", daemon=True).start()

    def _drain(self) -> None:
        self._wait_for_attempts(self._grace, self._hurry)
        self.tell_until = time.monotonic() + 2 * WIND_DOWN_SECONDS
        for attempt in self._left():
            attempt.stop("stopping")
        self._wait_for_attempts(WIND_DOWN_SECONDS, None)
        # What does not stop ends with the process. Others need not wait for that.
        for attempt in self._left():
            attempt.hand_back()
        for attempt in self._left():
            attempt.said.wait(max(0.0, self.tell_until - time.monotonic()))
        self.client.close()

    def _left(self) -> list[Attempt]:
        with self._changed:
            return [*self._attempts]

    def _wait_for_attempts(self, seconds: float, hurry: threading.Event | None) -> None:
        over = lambda: not self._attempts or (hurry is not None and hurry.is_set())  # noqa: E731
        with self._changed:
            self._changed.wait_for(over, seconds)

    @contextmanager
    def _own_loop(self) -> Iterator[None]:
        if not any(task.is_async for task in self._tasks.values()):
            yield
            return
        # One for all: what handlers share, such as a pool of connections, belongs to one loop. Not this thread's: a handler
        # that blocks it holds up other handlers, but no sign of life.
        loop = self._loop = asyncio.new_event_loop()
        thread = threading.Thread(target=loop.run_forever, name="outlast-handlers", daemon=True)
        thread.start()
        try:
            yield
        finally:
            loop.call_soon_threadsafe(loop.stop)
            thread.join(WIND_DOWN_SECONDS)
            if not thread.is_alive():
                loop.close()

    @contextmanager
    def _on_signal(self) -> Iterator[None]:
        if threading.current_thread() is not threading.main_thread():
            yield
            return

        def count(*_: object) -> None:
            self._signals += 1

        before = {number: signal.signal(number, count) for number in (signal.SIGTERM, signal.SIGINT)}
        try:
            yield
        finally:
            for number, handler in before.items():
                signal.signal(number, handler)
