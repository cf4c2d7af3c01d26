"""A worker that tests start, stop and kill. `program.js` of the other SDK does the same tasks."""

import json
import sys
import time
from typing import Any

from outlast import TaskContext, TaskError, TaskStopped, Worker, task


def note(args: dict[str, Any], what: str) -> None:
    with open(args["log"], "a") as log:
        log.write(f"python {what}\n")


@task
def work(ctx: TaskContext, args: dict[str, Any]) -> dict[str, Any]:
    """The first attempt never ends."""
    note(args, f"begins {ctx.attempt} {ctx.idempotency_key}")
    if ctx.attempt == 1:
        time.sleep(60)
    note(args, f"ends {ctx.attempt}")
    return {"by": "python", "attempt": ctx.attempt}


@task
async def nap(ctx: TaskContext, args: dict[str, Any]) -> dict[str, Any]:
    import asyncio

    note(args, "begins")
    ctx.heartbeat({"sleeps": args["seconds"]})
    try:
        await asyncio.sleep(args["seconds"])
    except asyncio.CancelledError:
        note(args, f"is stopped: {ctx.reason}")
        raise
    return {"by": "python", "attempt": ctx.attempt}


@task
def watch(ctx: TaskContext, args: dict[str, Any]) -> None:
    note(args, "begins")
    try:
        ctx.sleep(30)
    except TaskStopped as stopped:
        note(args, f"is stopped: {stopped.reason}")
        raise


@task("refuse")
def refuse(ctx: TaskContext, args: dict[str, Any]) -> None:
    raise TaskError("declined", "no money", data={"attempt": ctx.attempt}, permanent=True)


if __name__ == "__main__":
    Worker([work, nap, watch, refuse], **json.loads(sys.argv[1])).run()
