"""What the client does when the network or the server does not do its part."""

import os
import socket
import threading
import time
import unittest
from unittest import mock

from outlast import Client, OutlastError, RunFailed, Unreachable, WaitTimeout
from outlast import _http

from .fake import Answer, Call, Fake, refusal


def failing(times: int, with_: Answer, then: Answer):
    """The first calls are answered so, the others otherwise."""
    left = [with_] * times

    def answer(_: Call) -> Answer:
        return left.pop() if left else then

    return answer


STARTED = Answer(201, {"run": "r", "new": True})


class Calls(unittest.TestCase):
    def test_a_call_that_was_heard_and_not_answered_is_repeated_under_the_same_key(self) -> None:
        with Fake(failing(1, Answer(reset=True), STARTED)) as fake:
            self.assertEqual(fake.client().start("order", 1)["run"], "r")
            keys = {call.headers["Idempotency-Key"] for call in fake.calls}
            self.assertEqual((len(fake.calls), len(keys)), (2, 1))

    def test_two_writes_have_two_keys(self) -> None:
        with Fake(lambda _: Answer(body={"outcome": "delivered"})) as fake, fake.client() as client:
            client.signal("r", "paid")
            client.signal("r", "paid")
            self.assertEqual(len({call.headers["Idempotency-Key"] for call in fake.calls}), 2)

    def test_trouble_that_may_pass_is_tried_again_and_a_refusal_is_not(self) -> None:
        for status, tries in [(500, 3), (503, 3), (507, 3), (429, 3), (400, 1), (404, 1), (409, 1), (422, 1)]:
            with self.subTest(status=status), Fake(failing(2, refusal(status, "code"), STARTED)) as fake:
                if tries == 1:
                    with self.assertRaises(OutlastError) as raised:
                        fake.client().start("order")
                    error = raised.exception
                    found = (error.code, error.message, error.hint, error.status)
                    self.assertEqual(found, ("code", "no", "try something else", status))
                else:
                    fake.client().start("order")
                self.assertEqual(len(fake.calls), tries)

    def test_it_gives_up_when_the_time_for_it_is_over(self) -> None:
        with Fake(lambda _: refusal(503, "unavailable")) as fake:
            began = time.monotonic()
            with self.assertRaises(OutlastError) as raised:
                fake.client(retry_for=1.0).get("r")
            self.assertEqual(raised.exception.code, "unavailable")
            self.assertLess(time.monotonic() - began, 5.0)
            self.assertGreater(len(fake.calls), 1)

    def test_nobody_there_is_unreachable(self) -> None:
        with socket.socket() as free:
            free.bind(("127.0.0.1", 0))
            with self.assertRaises(Unreachable) as raised:
                Client(f"http://127.0.0.1:{free.getsockname()[1]}", retry_for=0.0).get("r")
        self.assertEqual(raised.exception.code, "unreachable")

    def test_a_slow_answer_is_given_up_and_asked_for_again(self) -> None:
        with Fake(failing(1, Answer(late=4.0), Answer(body={"text": "it waits"}))) as fake:
            self.assertEqual(fake.client(timeout=1.0).explain("r")["text"], "it waits")
            self.assertGreaterEqual(len(fake.calls), 2)

    def test_an_answer_that_drips_ends_with_the_timeout(self) -> None:
        server = socket.create_server(("127.0.0.1", 0))
        self.addCleanup(server.close)

        def drip() -> None:
            connection, _ = server.accept()
            with connection:
                connection.sendall(b"HTTP/1.1 200 OK\r\nContent-Length: 100\r\n\r\n")
                try:
                    while True:
                        connection.sendall(b" ")
                        time.sleep(0.05)
                except OSError:
                    pass

        threading.Thread(target=drip, daemon=True).start()
        began = time.monotonic()
        with self.assertRaises(Unreachable):
            Client(f"http://127.0.0.1:{server.getsockname()[1]}", timeout=0.4, retry_for=0.0).get("r")
        self.assertLess(time.monotonic() - began, 4.0)

    def test_a_connection_that_the_server_closed_while_idle_is_replaced_at_once(self) -> None:
        with Fake(lambda _: Answer(body={"text": ""})) as fake, fake.client() as client:
            client.explain("r")
            (_, idle) = client.transport._idle[0]
            idle.sock.shutdown(socket.SHUT_RDWR)
            with mock.patch.object(_http, "pause", return_value=60.0):
                client.explain("r")

    def test_what_is_too_large_is_not_sent_and_not_read(self) -> None:
        with Fake(lambda _: Answer(raw=b" " * 2000)) as fake:
            with self.assertRaises(OutlastError) as raised:
                fake.client().start("order", "x" * _http.REQUEST_BYTES_MAX)
            self.assertEqual((raised.exception.code, fake.calls), ("limit_exceeded", []))
            with mock.patch.object(_http, "ANSWER_BYTES_MAX", 1000), self.assertRaises(OutlastError) as raised:
                fake.client().get("r")
            self.assertEqual(raised.exception.code, "answer_too_large")

    def test_an_answer_of_somebody_else_is_an_error_and_no_surprise(self) -> None:
        page = b"<html>Bad gateway</html>"
        with Fake(failing(1, Answer(502, raw=page), Answer(200, raw=page))) as fake:
            with self.assertRaises(OutlastError) as raised:
                fake.client().get("r")
            self.assertEqual((raised.exception.code, len(fake.calls)), ("bad_answer", 2))

    def test_ids_are_quoted_and_the_token_is_sent(self) -> None:
        with Fake(lambda _: Answer(body={"text": ""})) as fake:
            with mock.patch.dict(os.environ, {"OUTLAST_URL": fake.url + "/behind/", "OUTLAST_TOKEN": "olt_x\n"}):
                with Client() as client:
                    client.explain("a/b c?é")
            self.assertEqual(fake.calls[0].path, "/behind/api/v1/runs/a%2Fb%20c%3F%C3%A9/explain")
            self.assertEqual(fake.calls[0].headers["Authorization"], "Bearer olt_x")
            for bad in ["", ".", ".."]:
                with self.assertRaises(ValueError):
                    fake.client().get(bad)
        with self.assertRaises(ValueError) as raised:
            Client("http://x", "olt_a\nb")
        self.assertNotIn("olt_a", str(raised.exception))
        for url in ["ftp://x", "http://user:word@x", "x"]:
            with self.assertRaises(ValueError):
                Client(url)


class Results(unittest.TestCase):
    def test_a_result_is_waited_for_until_there_is_one(self) -> None:
        running = Answer(202, {"run": "r", "workflow": "w", "status": "running"}, late=0.1)
        done = Answer(200, {"run": "r", "workflow": "w", "status": "completed", "output": 42})
        with Fake(failing(2, running, done)) as fake:
            self.assertEqual(fake.client().result("r"), 42)

    def test_a_run_without_an_output_raises_what_it_came_to(self) -> None:
        for status in ["failed", "cancelled", "parked"]:
            error = {"code": "declined", "message": "no money", "data": {"n": 1}}
            answer = Answer(202 if status == "parked" else 200, {"run": "r", "status": status, "error": error})
            with self.subTest(status=status), Fake(lambda _, answer=answer: answer) as fake:
                with self.assertRaises(RunFailed) as raised:
                    fake.client().result("r")
                found = raised.exception
                self.assertEqual((found.code, found.run_status, found.data), ("declined", status, {"n": 1}))

    def test_waiting_ends_when_its_time_is_over(self) -> None:
        with Fake(lambda _: Answer(202, {"run": "r", "status": "waiting"})) as fake:
            with self.assertRaises(WaitTimeout):
                fake.client().result("r", timeout=0.4)
            self.assertLess(len(fake.calls), 8, "a server that answers at once is not asked in a circle")

    def test_pages_are_followed(self) -> None:
        def answer(call: Call) -> Answer:
            return Answer(body={"runs": [{"run": "b"}]} if "cursor=c1" in call.path else {"runs": [], "next": "c1"})

        with Fake(answer) as fake:
            self.assertEqual([run["run"] for run in fake.client().list(status="failed")], ["b"])
            self.assertIn("status=failed", fake.calls[1].path)


if __name__ == "__main__":
    unittest.main()
