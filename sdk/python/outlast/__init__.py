"""Workers and clients for Outlast, which runs workflows that outlast crashes, deploys and months."""

from .client import Approval, AsyncClient, Client, Delivered, Explained, RunResult, RunSummary, RunView, Started
from .errors import OutlastError, RunFailed, TaskError, TaskStopped, Unreachable, WaitTimeout
from .tasks import Task, TaskContext, task
from .worker import Worker

__all__ = [
    "Approval",
    "AsyncClient",
    "Client",
    "Delivered",
    "Explained",
    "OutlastError",
    "RunFailed",
    "RunResult",
    "RunSummary",
    "RunView",
    "Started",
    "Task",
    "TaskContext",
    "TaskError",
    "TaskStopped",
    "Unreachable",
    "WaitTimeout",
    "Worker",
    "task",
]
