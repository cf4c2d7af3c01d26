"""What a worker does with offers, and what it says about them, also when the server does not do its part."""

import asyncio
import threading
import time
import unittest
from collections.abc import Callable
from contextlib import contextmanager
from unittest import mock

from outlast import OutlastError, TaskContext, TaskError, TaskStopped, Worker, task
from outlast import _attempt, _http, worker as worker_module

from .fake import Answer, Call, Fake, Queue, after, offer, refusal


@contextmanager
def working(fake: Fake, *tasks, **options):
    """A worker in a thread, which is stopped and has ended afterwards."""
    worker = Worker(tasks, client=fake.client(), **{"poll": 5.0, "grace": 5.0, **options})
    thread = threading.Thread(target=worker.run, daemon=True)
    thread.start()
    try:
        yield worker
    finally:
        worker.stop()
        thread.join(15)
        assert not thread.is_alive(), "the worker does not end"


def until(what: Callable[[], object], seconds: float = 10.0) -> None:
    began = time.monotonic()
    while not what():
        if time.monotonic() - began > seconds:
            raise AssertionError("it did not happen")
        time.sleep(0.01)


def said(fake: Fake) -> list[tuple[str, object]]:
    """What was said about attempts, signs of life apart."""
    ends = ("complete", "fail", "give-back")
    found = [(call.path.rsplit("/", 1)[1], call.body) for call in fake.calls if call.path.endswith(ends)]
    return [(what, body.get("result", body.get("error"))) for what, body in found]


@task
def double(ctx: TaskContext, n: int) -> int:
    return 2 * n


class Outcomes(unittest.TestCase):
    def test_a_plain_and_an_async_handler_do_their_tasks(self) -> None:
        @task("triple")
        async def three_times(ctx: TaskContext, n: int) -> int:
            await asyncio.sleep(0)
            return 3 * n

        with Fake(Queue(offer("double", 21), offer("triple", 4))) as fake:
            with working(fake, double, three_times):
                until(lambda: len(said(fake)) == 2)
            self.assertEqual(sorted(said(fake), key=str), [("complete", 12), ("complete", 42)])
            claim = fake.of("/claim")[0].body
            self.assertEqual((claim["names"], claim["queues"], claim["lease_ms"]), (["double", "triple"], ["default"], 30000))
        self.assertEqual(double(TaskContext(), 4), 8, "it is still a function")

    def test_async_handlers_run_in_the_loop_of_an_async_program(self) -> None:
        loops = []

        @task
        async def where(ctx: TaskContext, args: object) -> None:
            loops.append(asyncio.get_running_loop())

        async def program(fake: Fake) -> None:
            worker = Worker([where], client=fake.client(), poll=1.0)
            work = asyncio.create_task(worker.run_async())
            await asyncio.to_thread(until, lambda: said(fake))
            worker.stop()
            await work
            self.assertEqual(loops, [asyncio.get_running_loop()])

        with Fake(Queue(offer("where"))) as fake:
            asyncio.run(program(fake))

    def test_errors_are_told_with_their_code(self) -> None:
        @task
        def declined(ctx: TaskContext, args: object) -> None:
            raise TaskError("declined", "no money", data={"n": 1}, permanent=True)

        @task
        def broken(ctx: TaskContext, args: object) -> None:
            raise KeyError("odd \ud800")

        with Fake(Queue(offer("declined"), offer("broken"))) as fake:
            with working(fake, declined, broken, concurrency=1):
                until(lambda: len(said(fake)) == 2)
            (_, first), (_, second) = said(fake)
            self.assertEqual(first, {"code": "declined", "message": "no money", "permanent": True, "data": {"n": 1}})
            self.assertEqual((second["code"], second["data"]["type"]), ("error", "KeyError"))
            self.assertIn("broken", second["data"]["traceback"])

    def test_what_is_no_json_or_is_refused_fails_for_good(self) -> None:
        @task
        def odd(ctx: TaskContext, args: object) -> object:
            return {1, 2}

        refused = lambda call: refusal(413, "limit_exceeded") if call.path.endswith("/complete") else None  # noqa: E731
        with Fake(Queue(offer("odd"), offer("double", 1), on=refused)) as fake:
            with working(fake, odd, double, concurrency=1):
                until(lambda: len(said(fake)) == 3)
            found = [(what, error["code"], error["permanent"]) for what, error in said(fake) if what == "fail"]
            self.assertEqual(found, [("fail", "invalid_output", True), ("fail", "limit_exceeded", True)])


class Repeated(unittest.TestCase):
    def test_a_claim_whose_answer_was_lost_is_repeated_under_the_same_id(self) -> None:
        lost = [Answer(reset=True)]
        with Fake(Queue(offer("double", 21), on=lambda call: lost.pop() if lost else None)) as fake:
            with working(fake, double):
                until(lambda: said(fake))
            self.assertEqual(said(fake), [("complete", 42)])
            ids = [call.body["id"] for call in fake.of("/claim")]
            self.assertEqual(ids[0], ids[1])

    def test_a_result_is_told_until_it_is_heard(self) -> None:
        answers = [refusal(409, "task_lost"), refusal(503, "unavailable"), refusal(429, "busy"), Answer(reset=True)]

        def on(call: Call) -> Answer | None:
            return answers.pop() if call.path.endswith("/complete") and answers else None

        with Fake(Queue(offer("double", 21), on=on)) as fake:
            with working(fake, double):
                until(lambda: not answers)
            # The first one was taken and its answer lost, so that the last one is told it came too late.
            self.assertEqual(said(fake), [("complete", 42)] * 4)

    def test_a_server_that_comes_back_within_the_lease_hears_the_result_in_time(self) -> None:
        down = lambda call: refusal(503, "unavailable") if call.path.endswith("/complete") else None  # noqa: E731
        # The worst that chance can do, written down instead of waited for.
        asked: list[float] = []
        with mock.patch.object(_http.random, "uniform", lambda _, most: asked.append(most) or 0.01):
            with Fake(Queue(offer("double", 21, lease=3.0), on=down)) as fake:
                with working(fake, double, lease=3.0):
                    until(lambda: len(said(fake)) >= 8)
                    pauses = asked[:7]
                    fake.answer = Queue()
        self.assertEqual(pauses, sorted(pauses), "they grow")
        self.assertLess(pauses[-1], 0.6, "a fifth of the lease")

    def test_a_result_nobody_hears_is_given_up(self) -> None:
        down = lambda call: refusal(503, "unavailable") if call.path.endswith("/complete") else None  # noqa: E731
        with mock.patch.object(_attempt, "TELL_SECONDS", 0.3):
            with Fake(Queue(offer("double", 1, lease=0.5), offer("double", 2), on=down)) as fake:
                with working(fake, double, concurrency=1, lease=1.0):
                    until(lambda: len(fake.of("/claim")) >= 2)
                self.assertGreater(len(said(fake)), 1)

    def test_a_server_that_refuses_the_token_ends_the_worker(self) -> None:
        with Fake(lambda _: refusal(401, "unauthenticated")) as fake:
            with self.assertRaises(OutlastError) as raised:
                Worker([double], client=fake.client()).run()
            self.assertEqual(raised.exception.code, "unauthenticated")

    def test_an_empty_answer_that_comes_at_once_is_not_asked_for_in_a_circle(self) -> None:
        with Fake(lambda _: Answer(body={"tasks": []})) as fake, working(fake, double):
            time.sleep(1.0)
            self.assertLess(len(fake.calls), 12)


class SignsOfLife(unittest.TestCase):
    def test_they_are_given_in_the_background_and_carry_progress(self) -> None:
        @task
        def slow(ctx: TaskContext, args: object) -> str:
            steps = {"step": 1}
            ctx.heartbeat(steps)
            steps["step"] = 2
            ctx.sleep(2.6)
            return "done"

        with Fake(Queue(offer("slow", lease=2.0))) as fake:
            with working(fake, slow, lease=2.0):
                until(lambda: said(fake))
            beats = [call.body.get("progress") for call in fake.of("/heartbeat")]
            self.assertIn({"step": 1}, beats, "what was changed later is not shown")
            self.assertGreaterEqual(len(beats), 3)
            self.assertEqual(said(fake), [("complete", "done")])

    def stopped(self, on: Callable[[Call], Answer | None], *, lease: float = 3.0, within: float = 60.0, **more: object):
        """Why handlers of both kinds were stopped, and what was said."""
        for is_async in (False, True):
            reasons: list[str | None] = []

            @task("slow")
            def plain(ctx: TaskContext, args: object) -> None:
                try:
                    ctx.sleep(20.0)
                except TaskStopped:
                    reasons.append(ctx.reason)
                    raise

            @task("slow")
            async def quick(ctx: TaskContext, args: object) -> None:
                try:
                    await asyncio.sleep(20.0)
                except asyncio.CancelledError:
                    reasons.append(ctx.reason)
                    raise

            with self.subTest(is_async=is_async), Fake(Queue(on=on)) as fake:
                began = time.monotonic()
                fake.answer.offers.append(offer("slow", lease=lease, deadline=after(within), **more))
                with working(fake, quick if is_async else plain, lease=lease):
                    until(lambda: reasons)
                    time.sleep(0.3)
                self.assertLess(time.monotonic() - began, 15.0)
                yield reasons, fake

    def test_a_lost_lease_stops_the_handler_and_nothing_more_is_said(self) -> None:
        lost = lambda call: refusal(409, "task_lost") if call.path.endswith("/heartbeat") else None  # noqa: E731
        for reasons, fake in self.stopped(lost):
            self.assertEqual((reasons, said(fake)), (["lost"], []))
            self.assertEqual(len(fake.of("/heartbeat")), 1, "it is believed at once")

    def test_a_server_out_of_reach_for_a_lease_stops_the_handler(self) -> None:
        away = lambda call: Answer(reset=True) if call.path.endswith("/heartbeat") else None  # noqa: E731
        for reasons, fake in self.stopped(away, lease=1.0):
            self.assertEqual((reasons, said(fake)), (["lost"], []))
            self.assertGreaterEqual(len(fake.of("/heartbeat")), 2, "it is tried more than once")

    def test_a_cancelled_task_is_stopped_and_given_back(self) -> None:
        beat = Answer(body={"until": after(30), "cancelled": True})
        for reasons, fake in self.stopped(lambda call: beat if call.path.endswith("/heartbeat") else None):
            self.assertEqual((reasons, said(fake)), (["cancelled"], [("give-back", None)]))

    def test_an_attempt_that_takes_too_long_is_stopped_and_has_failed(self) -> None:
        for reasons, fake in self.stopped(lambda _: None, within=1.0):
            [(what, error)] = said(fake)
            self.assertEqual((reasons, what, error["code"]), (["timeout"], "fail", "timeout"))

    def test_nobody_gives_signs_of_life_for_a_handler_that_must_itself(self) -> None:
        for silence, lease in [(1000, 2.0), (2000, 1.0)]:
            for reasons, fake in self.stopped(lambda _: None, lease=lease, silence_ms=silence):
                [(what, error)] = said(fake)
                self.assertEqual((reasons, what, error["code"]), (["silent"], "fail", "timeout"))
                if silence < lease * 1000:
                    self.assertEqual(fake.of("/heartbeat"), [])

    def test_a_handler_that_gives_signs_of_life_is_held(self) -> None:
        @task
        def lively(ctx: TaskContext, args: object) -> str:
            for _ in range(6):
                ctx.heartbeat()
                ctx.sleep(0.6)
            return "done"

        with Fake(Queue(offer("lively", lease=2.5, silence_ms=2500))) as fake:
            with working(fake, lively):
                until(lambda: said(fake))
            self.assertEqual(said(fake), [("complete", "done")])

    def test_progress_that_cannot_be_sent_is_the_handlers_mistake(self) -> None:
        for progress in [{1, 2}, float("nan"), "x" * 70_000]:
            with self.assertRaises((TypeError, ValueError)):
                TaskContext().heartbeat(progress)


class Draining(unittest.TestCase):
    def test_no_more_are_done_at_once_than_it_may(self) -> None:
        at_once, most, lock = [0], [0], threading.Lock()

        @task
        def slow(ctx: TaskContext, args: object) -> None:
            with lock:
                at_once[0] += 1
                most[0] = max(most[0], at_once[0])
            ctx.sleep(0.2)
            with lock:
                at_once[0] -= 1

        with Fake(Queue(*[offer("slow") for _ in range(6)])) as fake:
            with working(fake, slow, concurrency=2):
                until(lambda: len(said(fake)) == 6)
            self.assertEqual(most, [2])
            self.assertTrue({1, 2} >= {call.body["limit"] for call in fake.of("/claim")})

    def test_a_claim_that_waits_is_cut_and_what_it_may_have_got_is_handed_back(self) -> None:
        offers = [offer("double", 1)]

        def on(call: Call) -> Answer | None:
            if not call.path.endswith("/claim"):
                return None
            # It claims in the moment the worker leaves: only a claim under the same id shows what it got.
            return Answer(late=20.0) if call.body["wait_ms"] > 0 else Answer(body={"tasks": offers})

        with Fake(Queue(on=on)) as fake:
            with working(fake, double):
                until(lambda: fake.calls)
                began = time.monotonic()
            self.assertLess(time.monotonic() - began, 10.0)
            first, second = fake.of("/claim")
            self.assertEqual((first.body["id"], second.body["wait_ms"]), (second.body["id"], 0))
            self.assertEqual(said(fake), [("give-back", None)])

    def test_what_is_under_way_ends_within_the_grace_time(self) -> None:
        begun = threading.Event()

        @task
        def slow(ctx: TaskContext, args: object) -> str:
            begun.set()
            ctx.sleep(0.7)
            return "done"

        with Fake(Queue(offer("slow"))) as fake:
            with working(fake, slow):
                begun.wait(5)
            self.assertEqual(said(fake), [("complete", "done")])

    def test_after_the_grace_time_it_is_handed_back_also_if_it_does_not_stop(self) -> None:
        for listens in (True, False):
            begun, leave = threading.Event(), threading.Event()

            @task
            def slow(ctx: TaskContext, args: object) -> str:
                begun.set()
                if listens:
                    ctx.sleep(30.0)
                leave.wait(30.0)
                return "never told"

            with self.subTest(listens=listens), Fake(Queue(offer("slow"))) as fake:
                with mock.patch.object(worker_module, "WIND_DOWN_SECONDS", 0.5), working(fake, slow, grace=0.2) as worker:
                    begun.wait(5)
                leave.set()
                until(lambda: not worker._attempts)
                self.assertEqual(said(fake), [("give-back", None)])

    def test_who_is_told_twice_does_not_wait_for_the_grace_time(self) -> None:
        begun = threading.Event()

        @task
        def slow(ctx: TaskContext, args: object) -> None:
            begun.set()
            ctx.sleep(30.0)

        with Fake(Queue(offer("slow"))) as fake:
            with working(fake, slow, grace=30.0) as worker:
                begun.wait(5)
                worker.stop()
                worker.stop()
            self.assertEqual(said(fake), [("give-back", None)])


if __name__ == "__main__":
    unittest.main()
