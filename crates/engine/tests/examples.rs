//! Every example does what it says.
#![cfg(feature = "sqlite")]
#![expect(clippy::unwrap_used, reason = "a test fails by panicking")]

use std::io::{BufRead, BufReader, Read, Write};
use std::net::TcpStream;
use std::path::{Path, PathBuf};
use std::process::{Child, Command, Stdio};

/// The example beside this test's own binary: Cargo builds examples with the tests.
fn example(name: &str) -> PathBuf {
    let deps = std::env::current_exe().unwrap();
    let built = deps.parent().unwrap().parent().unwrap().join("examples").join(name);
    assert!(built.exists(), "{} is not built: run the whole package's tests, not this file alone", built.display());
    built
}

fn lines(name: &str) -> Vec<String> {
    let output = Command::new(example(name)).output().unwrap();
    let text = String::from_utf8(output.stdout).unwrap();
    assert!(output.status.success(), "{text}\n{}", String::from_utf8_lossy(&output.stderr));
    text.lines().map(str::to_owned).collect()
}

#[test]
fn hello_is_killed_half_way_and_finishes_without_doing_anything_twice() {
    let output = Command::new(example("hello")).output().unwrap();
    let text = String::from_utf8(output.stdout).unwrap();
    assert!(output.status.success(), "{text}\n{}", String::from_utf8_lossy(&output.stderr));
    assert!(text.contains("was killed with SIGKILL (signal: 9"), "{text}");
    for step in ["boil the water", "grind the coffee", "pour", "say good morning"] {
        assert_eq!(text.matches(&format!("doing: {step}\n")).count(), 1, "{step} was done once:\n{text}");
    }
    assert_eq!(
        text.matches("recorded: boil the water").count(),
        2,
        "the second process finds it in the journal:\n{text}"
    );
    assert!(text.contains("breakfast is ready"), "{text}");
}

#[test]
fn hello_with_a_wrong_argument_says_how_it_is_used() {
    let output = Command::new(example("hello")).arg("--help-me").output().unwrap();
    assert_eq!(output.status.code(), Some(2));
    assert!(String::from_utf8_lossy(&output.stderr).contains("usage: hello"));
}

#[test]
fn a_saga_takes_back_what_it_did_in_the_opposite_order() {
    let expected = [
        "  order-1: stock reserved",
        "  order-1: charged under default/order-1/0/charge",
        "order-1: shipped with label-order-1",
        "  order-2: stock reserved",
        "  order-2: charged under default/order-2/0/charge",
        "  order-2: refunded",
        "  order-2: stock released",
        "order-2: not shipped, everything taken back (the address does not exist)",
    ];
    assert_eq!(lines("checkout_saga"), expected);
}

#[test]
fn an_approval_goes_to_the_next_person_when_nobody_answers() {
    let expected = [
        "  paying 90 for a chair",
        "a chair: approved by ann",
        "a boat: refused by bob (too dear)",
        "ann is too late: yes",
    ];
    assert_eq!(lines("human_approval"), expected);
}

#[test]
fn polling_keeps_what_each_check_found() {
    let expected = [
        "  yearly report (report-1): 0 to 25 percent",
        "  yearly report (report-1): 25 to 50 percent",
        "  yearly report (report-1): 50 to 75 percent",
        "  yearly report (report-1): 75 to 100 percent",
        "yearly report (report-1) is at 100 percent",
    ];
    assert_eq!(lines("polling"), expected);
}

#[test]
fn a_fan_out_tolerates_what_it_is_told_to() {
    let expected = ["  picture 7: broken: picture-7.png is not a picture", "11 made, 1 failed, ALL_COMPLETED"];
    assert_eq!(lines("fan_out"), expected);
}

#[test]
fn a_payment_wins_against_its_deadline_or_loses() {
    let expected =
        ["invoice-1: paid after 0 reminders", "  reminder 1 for 80", "  reminder 2 for 80", "invoice-2: expired"];
    let mut told = lines("timer_race");
    // The two invoices run side by side.
    told.sort_by_key(|line| !line.starts_with("invoice-1"));
    assert_eq!(told, expected);
}

#[test]
fn an_upgrade_leaves_old_runs_with_old_code() {
    let expected = [
        "version 1 is deployed, and Ada's run waits",
        "version 2 is deployed, and knows version 1",
        "  ada: Hello Ada",
        "  bob: Good morning, Bob!",
    ];
    assert_eq!(lines("versioned_upgrade"), expected);
}

#[test]
fn the_transfer_happens_once_however_often_the_example_runs() {
    let folder = tempfile::tempdir().unwrap();
    for _ in 0..2 {
        let output = Command::new(example("transactional_step")).arg(folder.path().join("bank.db")).output().unwrap();
        let text = String::from_utf8(output.stdout).unwrap();
        assert!(output.status.success(), "{text}\n{}", String::from_utf8_lossy(&output.stderr));
        assert_eq!(text, "transfer-1 left ann with 70 and ben with 30\nann has 70\nben has 30\n");
    }
}

/// The application, as a process of its own.
struct App {
    child: Child,
    address: String,
}

impl App {
    fn start(file: &Path) -> App {
        let mut child = Command::new(example("axum_app"))
            .args(["127.0.0.1:0", file.to_str().unwrap()])
            .stdout(Stdio::piped())
            .spawn()
            .unwrap();
        let mut said = String::new();
        BufReader::new(child.stdout.as_mut().unwrap()).read_line(&mut said).unwrap();
        let address = said.trim().strip_prefix("listening on http://").unwrap().to_owned();
        App { child, address }
    }

    /// Asks, and gives status and body.
    fn ask(&self, method: &str, path: &str, body: &str) -> (u16, String) {
        let mut stream = TcpStream::connect(&self.address).unwrap();
        let length = body.len();
        write!(
            stream,
            "{method} {path} HTTP/1.1\r\nhost: shop\r\nconnection: close\r\ncontent-type: application/json\r\n\
             content-length: {length}\r\n\r\n{body}"
        )
        .unwrap();
        let mut answer = String::new();
        stream.read_to_string(&mut answer).unwrap();
        let (head, body) = answer.split_once("\r\n\r\n").unwrap();
        (head.split(' ').nth(1).unwrap().parse().unwrap(), body.to_owned())
    }

    fn status(&self, order: &str) -> String {
        let (_, body) = self.ask("GET", &format!("/orders/{order}"), "");
        body
    }

    /// Waits until an order stands so.
    fn becomes(&self, order: &str, wanted: &str) {
        let mut status = self.status(order);
        while !status.contains(wanted) {
            std::thread::yield_now();
            status = self.status(order);
            assert!(!status.contains("failed"), "{status}");
        }
    }
}

impl Drop for App {
    fn drop(&mut self) {
        let _ = self.child.kill();
        let _ = self.child.wait();
    }
}

#[test]
fn a_web_application_is_killed_and_its_orders_go_on() {
    let dir = tempfile::tempdir().unwrap();
    let file = dir.path().join("shop.db");
    let app = App::start(&file);
    assert_eq!(app.ask("POST", "/orders/o-1", "{\"amount\": 100}").0, 201);
    assert_eq!(app.ask("POST", "/orders/o-1", "{\"amount\": 100}").0, 201, "the same again");
    assert_eq!(app.ask("POST", "/orders/o-1", "{\"amount\": 7}").0, 409, "another one under the same id");
    assert_eq!(app.ask("POST", "/orders/o-2", "{\"amount\": 5}").0, 201);
    assert_eq!(app.ask("POST", "/orders/o-1/payments/p-1", "60").0, 202);
    assert_eq!(app.ask("POST", "/orders/none/payments/p-1", "60").0, 404);
    drop(app);

    let app = App::start(&file);
    assert_eq!(app.ask("POST", "/orders/o-1/payments/p-1", "60").0, 202, "sent again, and applied once");
    assert_eq!(app.ask("DELETE", "/orders/o-2", "").0, 202);
    app.becomes("o-2", "cancelled");
    assert!(app.status("o-1").contains("\"outcome\":null"), "{}", app.status("o-1"));
    assert_eq!(app.ask("POST", "/orders/o-1/payments/p-2", "40").0, 202);
    app.becomes("o-1", "completed");
    assert!(app.status("o-1").contains("shipped under default/o-1/0/ship"), "{}", app.status("o-1"));
    assert_eq!(app.ask("POST", "/orders/o-1/payments/p-3", "40").0, 409, "it is over");
}

/// Runs a script with the example `wf`; its exit code, what it prints, and what it complains about.
#[cfg(feature = "script")]
fn wf(files: &[(&str, &str)], args: &[&str]) -> (Option<i32>, String, String) {
    let dir = tempfile::tempdir().unwrap();
    for (name, text) in files {
        std::fs::write(dir.path().join(name), text).unwrap();
    }
    let mut command = Command::new(example("wf"));
    for arg in args {
        let file = dir.path().join(arg);
        if file.exists() {
            command.arg(file)
        } else {
            command.arg(arg)
        };
    }
    let output = command.output().unwrap();
    let text = |bytes: Vec<u8>| String::from_utf8(bytes).unwrap().trim_end().to_owned();
    (output.status.code(), text(output.stdout), text(output.stderr))
}

#[test]
#[cfg(feature = "script")]
fn wf_runs_a_script_and_prints_what_it_returns() {
    let script = "workflow greet(inputs) {\n  await Task.run(\"noop\")\n  await Task.run(\"log\", { message: \"hi\" })\n  \
                  return `Hello, ${inputs.name}!`\n}\n";
    let (code, printed, complained) = wf(&[("greet.wf", script)], &["greet.wf", "--input", r#"{"name":"Ada"}"#]);
    assert_eq!((code, printed.as_str()), (Some(0), r#"{"status":"completed","output":"Hello, Ada!"}"#), "{complained}");
}

#[test]
#[cfg(feature = "script")]
fn wf_runs_the_commands_beside_the_script() {
    let config = "[tasks.echo]\ncommand = [\"cat\"]\n";
    let files = [
        ("outlast.toml", config),
        ("sum.wf", "return (await Task.all([1, 2].map(n => Task.run(\"echo\", n)))).join()"),
    ];
    let (code, printed, complained) = wf(&files, &["sum.wf"]);
    assert_eq!((code, printed.as_str()), (Some(0), r#"{"status":"completed","output":"1,2"}"#), "{complained}");
}

#[test]
#[cfg(feature = "script")]
fn wf_says_what_went_wrong() {
    let (code, printed, _) = wf(&[("a.wf", "throw new Error(\"no\", { code: \"odd\", data: [1] })")], &["a.wf"]);
    assert_eq!(code, Some(5));
    let told: serde_json::Value = serde_json::from_str(&printed).unwrap();
    assert_eq!((&told["status"], &told["error"]["code"]), (&"failed".into(), &"odd".into()));
    assert_eq!(told["error"]["data"], serde_json::json!([1]));

    let (code, printed, _) = wf(&[("a.wf", "return await Task.run(\"nobody_does_this\")")], &["a.wf"]);
    assert_eq!(code, Some(5), "{printed}");
    let told: serde_json::Value = serde_json::from_str(&printed).unwrap();
    assert_eq!(told["error"]["code"], "unknown_task");
    assert!(told["error"]["message"].as_str().unwrap().contains("[tasks.nobody_does_this]"), "{printed}");

    let (code, printed, complained) = wf(&[("a.wf", "const total = 1\nreturn totl")], &["a.wf"]);
    assert_eq!((code, printed.as_str()), (Some(1), ""));
    assert!(complained.contains("a.wf:2:8") && complained.contains("did you mean `total`?"), "{complained}");

    let (code, _, complained) = wf(&[("a.wf", "return 1")], &["a.wf", "--input", "{"]);
    assert_eq!(code, Some(2));
    assert!(complained.contains("--input is not JSON") && complained.contains("usage: wf FILE"), "{complained}");
    assert_eq!(wf(&[], &[]).0, Some(2));
    assert_eq!(wf(&[], &["missing.wf"]).0, Some(1));
}
