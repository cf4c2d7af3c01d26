"""Workers of both SDKs beside each other."""

import unittest

from .server import PROGRAMS, WithServer, until


class Together(WithServer):
    def finishes_what_another_abandoned(self, first: str, second: str) -> None:
        dead = self.worker(first)
        self.start("work")
        until(self.log)
        alive = self.worker(second)
        dead.kill()
        self.assertEqual(self.client.result("r", timeout=30), {"by": second, "attempt": 2})
        begun = [line.split(" ") for line in self.log() if "begins" in line]
        self.assertEqual([(who, attempt) for who, _, attempt, _ in begun], [(first, "1"), (second, "2")])
        self.assertEqual(begun[0][3], begun[1][3], "both attempts have one idempotency key")
        self.assertEqual(self.events("r").count("TASK_FINISHED"), 1)
        self.assertIsNone(alive.poll())

    def test_node_finishes_what_python_abandoned(self) -> None:
        self.finishes_what_another_abandoned("python", "node")

    def test_python_finishes_what_node_abandoned(self) -> None:
        self.finishes_what_another_abandoned("node", "python")

    def test_many_tasks_are_done_once_each_while_workers_of_both_kinds_are_killed(self) -> None:
        runs = [f"r-{n}" for n in range(12)]
        workers = [(sdk, self.worker(sdk, concurrency=2)) for sdk in PROGRAMS]
        for run in runs:
            self.start("nap", run, seconds=0.3)
        until(lambda: len(self.log()) >= 3)
        for sdk, worker in workers:
            worker.kill()
            self.worker(sdk, concurrency=2)
        for run in runs:
            self.assertIn(self.client.result(run, timeout=30)["by"], PROGRAMS)
            self.assertEqual(self.events(run).count("TASK_FINISHED"), 1)


if __name__ == "__main__":
    unittest.main()
