"""What can go wrong, as classes that a program can tell apart."""

from __future__ import annotations

from typing import Any


class OutlastError(Exception):
    """Something did not work: ``code`` is what programs branch on, ``message`` what happened, ``hint`` what to do next."""

    def __init__(self, code: str, message: str, hint: str = "", *, status: int | None = None) -> None:
        super().__init__(f"{code}: {message}" + (f"; {hint}" if hint else ""))
        self.code = code
        self.message = message
        self.hint = hint
        #: The status of the server's answer; None if there was none.
        self.status = status

    @property
    def passes(self) -> bool:
        """Whether the same call may succeed later."""
        return self.status is not None and (self.status in (408, 425, 429) or self.status >= 500)


class Unreachable(OutlastError):
    """No answer came: it is not known whether the call was heard."""

    #: A connection that had been idle was closed by the other side: the next one is worth a try without a pause.
    was_idle: bool = False

    def __init__(self, message: str) -> None:
        super().__init__("unreachable", message, "check OUTLAST_URL, and whether the server runs")

    @property
    def passes(self) -> bool:
        return True


class Interrupted(OutlastError):
    """This process ended a call that waited."""

    def __init__(self) -> None:
        super().__init__("interrupted", "the call was given up because the worker stops")


class WaitTimeout(OutlastError, TimeoutError):
    """A run did not end in the time that was given to it. The run is not touched."""

    def __init__(self, run: str, status: str, seconds: float) -> None:
        super().__init__("timeout", f"{run} has not ended after {seconds:g} s; it is {status}", "wait again, or explain it")
        self.run = run
        #: Where the run stands, which is not the status of an answer.
        self.run_status = status


class RunFailed(OutlastError):
    """A run has no output: it failed, was cancelled, or is parked. ``code`` is that of its error."""

    def __init__(self, run: str, run_status: str, error: dict[str, Any]) -> None:
        message = f"{run} is {run_status}: {error.get('message', 'it has no output')}"
        hint = "mend the cause, then unpark it" if run_status == "parked" else ""
        super().__init__(str(error.get("code", run_status)), message, hint)
        self.run = run
        self.run_status = run_status
        self.data: Any = error.get("data")


class TaskError(Exception):
    """Raised by a handler: the attempt failed, with this code. If it is ``permanent``, it is not tried again."""

    def __init__(self, code: str, message: str, *, data: Any = None, permanent: bool = False) -> None:
        super().__init__(message)
        self.code = code
        self.message = message
        self.data = data
        self.permanent = permanent


class TaskStopped(Exception):
    """Raised in a handler that asks whether it should go on, and should not. See ``TaskContext.reason``."""

    def __init__(self, reason: str) -> None:
        super().__init__(f"the attempt is over: {reason}")
        self.reason = reason
