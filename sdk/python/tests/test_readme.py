"""The examples of the README do what they say."""

import contextlib
import io
import os
import re
import unittest
from pathlib import Path
from typing import Any
from unittest import mock

from outlast import TaskContext, TaskError, Worker

from .fake import Answer, Call, Fake

BLOCKS = re.findall(r"```python\n(.*?)```", (Path(__file__).parent.parent / "README.md").read_text(), re.DOTALL)


class Readme(unittest.TestCase):
    def test_the_worker_does_what_it_says(self) -> None:
        names: dict[str, Any] = {}
        with mock.patch.object(Worker, "run") as run:
            exec(BLOCKS[0], names)
        run.assert_called_once_with()
        charge = names["charge"]
        self.assertEqual(charge(TaskContext({"idempotency_key": "k"}), {"items": ["a", "b"], "total": 1}), {"receipt": "r-k"})
        with self.assertRaises(TaskError):
            charge(TaskContext(), {"items": [], "total": 1001})

    def test_the_client_does_what_it_says(self) -> None:
        def answer(call: Call) -> Answer:
            return Answer(body={"run": "order-42", "status": "completed", "output": "done", "outcome": "delivered"})

        with Fake(answer) as fake, mock.patch.dict(os.environ, {"OUTLAST_URL": fake.url}):
            with contextlib.redirect_stdout(io.StringIO()) as printed:
                names: dict[str, Any] = {}
                exec(BLOCKS[1], names)
            names["client"].close()
            self.assertEqual(printed.getvalue(), "done\n")
            self.assertEqual([call.path.split("?")[0].removeprefix("/api/v1/") for call in fake.calls],
                             ["runs", "runs/order-42/signals/paid", "runs/order-42/result"])  # fmt: skip


if __name__ == "__main__":
    unittest.main()
