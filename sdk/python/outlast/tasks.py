"""Handlers of tasks, and what they see of the attempt they make."""

from __future__ import annotations

import inspect
import json
import threading
import time
from collections import deque
from collections.abc import Callable
from typing import Any, Generic, TypeVar, overload

from .errors import TaskStopped

#: Progress is for people who look; what is large belongs into the result.
PROGRESS_BYTES_MAX = 64 * 1024

A = TypeVar("A")
R = TypeVar("R")


class TaskContext:
    """One attempt at a task. In a test of a handler, ``TaskContext()`` is enough."""

    def __init__(self, offer: dict[str, Any] | None = None, deadline: float | None = None) -> None:
        offer = offer or {}
        self.task: str = offer.get("task", "")
        self.name: str = offer.get("name", "")
        self.queue: str = offer.get("queue", "default")
        #: The run that waits for it, if one does.
        self.run: str | None = offer.get("run")
        #: From 1.
        self.attempt: int = offer.get("attempt", 1)
        #: The same for all attempts at this task, and for no other: give it to whoever must not do a thing twice.
        self.idempotency_key: str = offer.get("idempotency_key", "")
        #: Why the handler should stop: ``cancelled`` (nobody wants it any more), ``lost`` (somebody else may have it),
        #: ``timeout``, ``silent`` or ``stopping`` (the worker ends); None while it should go on.
        self.reason: str | None = None
        self._deadline = deadline
        self._stopped = threading.Event()
        self._signed = time.monotonic()
        #: The last progress that was not sent; two threads take and put it.
        self._unsent: deque[Any] = deque(maxlen=1)
        self._wake = threading.Event()

    def heartbeat(self, progress: Any = None) -> None:
        """A sign of life, with something to show while the task runs. It is sent in the background.

        A task with a ``heartbeat`` needs them: the worker cannot know whether a silent handler still does something.
        The others are held without.
        """
        if progress is not None:
            # A copy: the handler may go on changing what it gave.
            text = json.dumps(progress, allow_nan=False)
            if len(text) > PROGRESS_BYTES_MAX:
                raise ValueError(f"progress has {len(text)} bytes, the limit is {PROGRESS_BYTES_MAX}")
            progress = json.loads(text)
        self._signed = time.monotonic()
        self._unsent.append(progress)
        self._wake.set()

    @property
    def stopped(self) -> bool:
        """Whether the handler should stop."""
        return self._stopped.is_set()

    def check(self) -> None:
        """Raises ``TaskStopped`` if the handler should stop. An ``async`` handler is cancelled and need not ask."""
        if self._stopped.is_set():
            raise TaskStopped(self.reason or "stopping")

    def sleep(self, seconds: float) -> None:
        """As ``time.sleep``, but raises ``TaskStopped`` as soon as the handler should stop."""
        self._stopped.wait(seconds)
        self.check()

    def time_left(self) -> float | None:
        """Seconds until the attempt takes too long; None if it may take any time."""
        return None if self._deadline is None else max(0.0, self._deadline - time.monotonic())


class Task(Generic[A, R]):
    """A handler and the name of the tasks it does. It can still be called as the function it was."""

    def __init__(self, handler: Callable[[TaskContext, A], R], name: str) -> None:
        if not name or name.startswith("builtin."):
            raise ValueError(f"{name!r} cannot be the name of a task: names with `builtin.` are the engine's own")
        self.handler = handler
        self.name = name
        self.is_async = inspect.iscoroutinefunction(handler)
        self.__doc__ = handler.__doc__

    def __call__(self, ctx: TaskContext, args: A) -> R:
        return self.handler(ctx, args)

    def __repr__(self) -> str:
        return f"Task({self.name!r})"


@overload
def task(name: Callable[[TaskContext, A], R]) -> Task[A, R]: ...
@overload
def task(name: str) -> Callable[[Callable[[TaskContext, A], R]], Task[A, R]]: ...
def task(name: Any) -> Any:
    """Makes a function, plain or ``async``, the handler of the tasks of its name, or of another one: ``@task("charge")``."""
    if callable(name):
        return Task(name, getattr(name, "__name__", ""))
    return lambda handler: Task(handler, name)
