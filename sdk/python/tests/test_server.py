"""Client and workers against the real server."""

import asyncio
import base64
import hashlib
import hmac
import secrets
import time
import unittest
import urllib.error
import urllib.request
from datetime import UTC, datetime

from outlast import AsyncClient, Client, OutlastError, RunFailed, TaskContext, WaitTimeout, Worker, task

from .server import SIGTERM, WithServer, until

try:
    from standardwebhooks import Webhook
except ImportError:
    Webhook = None


class Clients(WithServer):
    def test_a_run_is_started_once_and_its_result_is_waited_for(self) -> None:
        self.client.put_workflow("add.wf", "workflow add(n) { await Task.run(\"noop\"); return n + 1 }")
        first = self.client.start("add", 41, key="k", attributes={"customer": "kim"})
        again = self.client.start("add", 41, key="k", attributes={"customer": "kim"})
        self.assertEqual((first["new"], again), (True, {"run": first["run"], "new": False}))
        self.assertEqual(self.client.result(first["run"], timeout=20), 42)
        self.assertEqual(self.client.get(first["run"])["attributes"], {"customer": "kim"})
        runs = [self.client.start("add", n)["run"] for n in range(5)]
        found = [run["run"] for run in self.client.list(workflow="add", page=2)]
        self.assertEqual(sorted(found), sorted([first["run"], *runs]))

    def test_a_run_is_told_things_and_decided_about(self) -> None:
        text = """
            workflow ship(order) {
              const paid = await Signal.next("paid")
              const ok = await Approval.request({ title: "Ship it?", assignee: "sales" })
              const sure = await Approval.request({ title: "Sure?" })
              return [paid, ok.approved, ok.feedback, sure.approved]
            }"""
        self.client.put_workflow("ship.wf", text)
        self.client.start("ship", None, id="a/b é")
        self.assertEqual(self.client.signal("a/b é", "paid", {"sum": 1}, key="s")["outcome"] in ("delivered", "buffered"), True)
        self.assertEqual(self.client.signal("a/b é", "paid", {"sum": 1}, key="s"), {"outcome": "duplicate"})
        first = until(lambda: [*self.client.approvals(assignee="sales")])[0]
        self.assertIn("Ship it?", self.client.explain("a/b é")["text"] + first["title"])
        with self.assertRaises(WaitTimeout):
            self.client.result("a/b é", timeout=0.2)
        self.client.approve("a/b é", first["approval"], "fine")
        second = until(lambda: [found for found in self.client.approvals() if found["title"] == "Sure?"])[0]
        self.client.deny("a/b é", second["approval"])
        self.assertEqual(self.client.result("a/b é", timeout=20), [{"sum": 1}, True, "fine", False])

    def test_what_went_wrong_is_told_with_code_message_and_hint(self) -> None:
        with self.assertRaises(OutlastError) as raised:
            self.client.get("nobody")
        error = raised.exception
        self.assertEqual((error.code, error.status, bool(error.message), bool(error.hint)), ("not_found", 404, True, True))
        self.client.put_workflow("wait.wf", 'workflow wait() { await Signal.next("never") }')
        self.client.start("wait", id="w")
        self.client.cancel("w", "not needed")
        with self.assertRaises(RunFailed) as failed:
            self.client.result("w", timeout=20)
        self.assertEqual((failed.exception.run_status, failed.exception.code), ("cancelled", "cancelled"))

    def test_the_same_for_async_programs(self) -> None:
        async def program() -> object:
            client = AsyncClient(self.client)
            await client.put_workflow("two.wf", "workflow two(n) { return n * 2 }")
            started = await asyncio.gather(*[client.start("two", n) for n in range(4)])
            return await asyncio.gather(*[client.result(run["run"], timeout=20) for run in started])

        self.assertEqual(asyncio.run(program()), [0, 2, 4, 6])


class Workers(WithServer):
    def test_a_plain_and_an_async_handler_do_a_runs_tasks(self) -> None:
        @task
        def double(ctx: TaskContext, n: int) -> int:
            return 2 * n

        @task("triple")
        async def triple(ctx: TaskContext, n: int) -> int:
            await asyncio.sleep(0.01)
            return 3 * n

        text = 'workflow six(n) { const two = await Task.run("double", n); return await Task.run("triple", two) }'
        self.client.put_workflow("six.wf", text)
        runs = [self.client.start("six", n)["run"] for n in range(8)]

        async def program() -> None:
            worker = Worker([double, triple], client=Client(self.server.url), concurrency=4)
            work = asyncio.create_task(worker.run_async())
            client = AsyncClient(self.client)
            results = await asyncio.gather(*[client.result(run, timeout=30) for run in runs])
            self.assertEqual(results, [6 * n for n in range(8)])
            self.assertIn(worker.name, str(await asyncio.to_thread(self.client.transport.call, "GET", "/api/v1/workers")))
            worker.stop()
            await work

        asyncio.run(program())

    def test_a_workers_error_is_what_the_run_fails_with(self) -> None:
        self.worker()
        self.start("refuse")
        with self.assertRaises(RunFailed) as raised:
            self.client.result("r", timeout=20)
        self.assertEqual((raised.exception.code, raised.exception.data), ("declined", {"attempt": 1}))

    def test_progress_is_shown_and_a_cancelled_run_stops_its_handlers(self) -> None:
        self.worker()
        self.start("nap", "a", seconds=30)
        self.start("watch", "b")
        until(lambda: '"sleeps": 30' in str(self.client.transport.call("GET", "/api/v1/workers")[1]).replace("'", '"'))
        for run in ("a", "b"):
            self.client.cancel(run)
        until(lambda: len([line for line in self.log() if "is stopped" in line]) == 2)
        reasons = {line.rsplit(" ", 1)[1] for line in self.log() if "is stopped" in line}
        # Which of the two depends on whether the run was over before the next sign of life.
        self.assertLessEqual(reasons, {"cancelled", "lost"})

    def test_a_task_longer_than_its_lease_is_held_by_signs_of_life(self) -> None:
        self.worker()
        self.worker()
        self.start("nap", seconds=5)
        self.assertEqual(self.client.result("r", timeout=20)["attempt"], 1)
        self.assertEqual(self.log(), ["python begins"])

    def test_a_sigterm_lets_what_is_under_way_end(self) -> None:
        worker = self.worker()
        self.start("nap", seconds=1.5)
        until(self.log)
        worker.send_signal(SIGTERM)
        self.ended(worker)
        self.assertEqual(self.client.result("r", timeout=20), {"by": "python", "attempt": 1})

    def test_a_sigterm_hands_back_what_does_not_end_in_time(self) -> None:
        worker = self.worker(grace=0.3, lease=60.0)
        self.start("watch", "a")
        self.start("nap", "b", seconds=2)
        until(lambda: len(self.log()) == 2)
        worker.send_signal(SIGTERM)
        self.ended(worker)
        self.assertEqual(sorted(self.log())[2:], ["python is stopped: stopping"] * 2)
        # At once, although the lease is a minute; and the attempt did not count.
        self.worker()
        self.assertEqual(self.client.result("b", timeout=10), {"by": "python", "attempt": 1})

    def test_an_idle_worker_leaves_at_once_and_takes_nothing_with_it(self) -> None:
        worker = self.worker(lease=60.0, name="idle")
        until(lambda: "idle" in [worker["worker"] for worker in self.client.transport.call("GET", "/api/v1/workers")[1]["workers"]])
        began = time.monotonic()
        worker.send_signal(SIGTERM)
        self.ended(worker)
        self.assertLess(time.monotonic() - began, 3.0)
        self.worker()
        self.start("nap", seconds=0)
        self.assertEqual(self.client.result("r", timeout=10)["attempt"], 1)

    def test_a_server_that_dies_and_comes_back_is_told_the_result(self) -> None:
        self.worker(lease=10.0)
        self.start("nap", seconds=1.0)
        until(self.log)
        self.server.kill()
        time.sleep(2.0)
        self.server.start()
        self.assertEqual(self.client.result("r", timeout=20), {"by": "python", "attempt": 1})
        self.assertEqual(self.events("r").count("TASK_FINISHED"), 1)

    def test_a_server_that_is_replaced_while_workers_wait_and_work_loses_nothing(self) -> None:
        self.worker(lease=20.0)
        self.start("nap", "a", seconds=2.0)
        until(self.log)
        self.server.kill(SIGTERM)
        self.server.start()
        self.start("nap", "b", seconds=0)
        for run in ("a", "b"):
            self.assertEqual(self.client.result(run, timeout=30), {"by": "python", "attempt": 1})


def drawn(name: str, *scopes: str) -> tuple[str, str]:
    """A token, and what the server keeps of it."""
    id = secrets.token_hex(8)
    text = f"olt_{id}_{base64.urlsafe_b64encode(secrets.token_bytes(32)).decode().rstrip('=')}"
    listed = ", ".join(f'"{scope}"' for scope in scopes)
    return text, f"""
        [[tokens]]
        id = "{id}"
        name = "{name}"
        namespace = "shop"
        scopes = [{listed}]
        hash = "sha256:{hashlib.sha256(text.encode()).hexdigest()}"
        expires = "2100-01-01T00:00:00Z"
    """


ADMIN, ADMIN_KEPT = drawn("ann", "admin")
MILL, MILL_KEPT = drawn("mill", "worker")


class Tokens(WithServer):
    config = ADMIN_KEPT + MILL_KEPT

    def test_a_worker_needs_its_scope_and_no_other(self) -> None:
        @task
        def double(ctx: TaskContext, n: int) -> int:
            return 2 * n

        admin, mill = Client(self.server.url, ADMIN), Client(self.server.url, MILL)
        with admin, mill:
            admin.put_workflow("double.wf", 'workflow double(n) { return await Task.run("double", n) }')
            run = admin.start("double", 21)["run"]

            async def program() -> None:
                worker = Worker([double], client=mill)
                work = asyncio.create_task(worker.run_async())
                self.assertEqual(await AsyncClient(admin).result(run, timeout=20), 42)
                worker.stop()
                await work

            asyncio.run(program())
            for client, code in [(mill, "forbidden"), (self.client, "unauthenticated")]:
                with self.assertRaises(OutlastError) as raised:
                    client.get(run)
                self.assertEqual(raised.exception.code, code)
        with self.assertRaises(OutlastError) as raised:
            Worker([double], client=Client(self.server.url, "olt_wrong")).run()
        self.assertEqual(raised.exception.status, 401)


HOOK, SECRET = "mT3k9bQx7fWz2LpR8sVn4cYd", "whsec_" + base64.b64encode(secrets.token_bytes(24)).decode()


def by_hand(id: str, now: datetime, body: str) -> str:
    key = base64.b64decode(SECRET.removeprefix("whsec_"))
    mac = hmac.digest(key, f"{id}.{int(now.timestamp())}.{body}".encode(), "sha256")
    return "v1," + base64.b64encode(mac).decode()


class Webhooks(WithServer):
    config = f"""
        [[hooks]]
        id = "{HOOK}"
        name = "payments"
        secrets = ["{SECRET}"]
        signal = "paid"
        run = "/data/order"
    """

    sign = staticmethod(by_hand)

    def post(self, body: str, signed: str, id: str = "msg_1") -> int:
        now = datetime.now(UTC)
        headers = {
            "content-type": "application/json",
            "webhook-id": id,
            "webhook-timestamp": str(int(now.timestamp())),
            "webhook-signature": self.sign(id, now, signed),
        }
        request = urllib.request.Request(f"{self.server.url}/hooks/{HOOK}", body.encode(), headers)
        try:
            with urllib.request.urlopen(request, timeout=10) as response:
                return response.status
        except urllib.error.HTTPError as error:
            return error.code

    def test_a_signed_webhook_is_a_signal_once(self) -> None:
        text = 'workflow order() { const a = await Signal.next("paid"); const b = await Signal.next("paid"); return [a, b] }'
        self.client.put_workflow("order.wf", text)
        self.client.start("order", id="o-1")
        body = '{"data": {"order": "o-1"}, "sum": 1.50}'
        self.assertEqual(self.post(body, body), 200)
        self.assertEqual(self.post(body, body), 200, "delivered twice is applied once")
        self.assertGreaterEqual(self.post(body, body + " "), 400, "another body was signed")
        until(lambda: self.client.explain("o-1")["inbox"] == [])
        self.assertEqual(self.client.peek("o-1", 0.3)["status"], "waiting")
        self.assertEqual(self.post(body.replace("1.50", "2"), body.replace("1.50", "2"), "msg_2"), 200)
        self.assertEqual([paid["sum"] for paid in self.client.result("o-1", timeout=20)], [1.5, 2])

    @unittest.skipUnless(Webhook, "the package `standardwebhooks` is not installed")
    def test_a_webhook_signed_by_the_library_of_the_standard_is_a_signal_once(self) -> None:
        self.sign = Webhook(SECRET).sign
        self.test_a_signed_webhook_is_a_signal_once()


if __name__ == "__main__":
    unittest.main()
