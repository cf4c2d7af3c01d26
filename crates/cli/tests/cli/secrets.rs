//! A secret that is given to a server is told to nobody.

use std::fs;
use std::path::Path;

use serde_json::json;

use crate::place::{Place, eventually};
use crate::web::Web;

/// In every secret, so that it is found wherever one leaks.
const CANARY: &str = "Q0FOQVJZLUNBTkFSWS1DQU5BUlktQ0FOQVJZ";
const TOML: &str = r#"
[tasks.use]
command = ["sh", "-c", "echo using $SECRET of ${#SECRET} letters >&2; sleep 2; echo [${#SECRET}, \\\"$SECRET\\\"]"]
env = ["SECRET"]

[tasks.wrong]
command = ["sh", "-c", "echo bad key $SECRET >&2; echo $SECRET; exit 3"]
env = ["SECRET"]
permanent_exit_codes = [3]

[tasks.odd]
command = ["sh", "-c", "echo it is $SECRET"]
env = ["SECRET"]

[[hooks]]
id = "mT3k9bQx7fWz2LpR8sVn4cYd"
name = "payments"
secrets = ["env:HOOK_SECRET"]
start = "uses"
"#;

/// Every file of a folder, and what is below it.
fn search(folder: &Path, secrets: &[&str], found: &mut Vec<String>) {
    for entry in fs::read_dir(folder).unwrap().flatten() {
        let path = entry.path();
        if path.is_dir() {
            search(&path, secrets, found);
            continue;
        }
        let bytes = fs::read(&path).unwrap_or_default();
        let text = String::from_utf8_lossy(&bytes);
        found.extend(secrets.iter().filter(|secret| text.contains(**secret)).map(|_| path.display().to_string()));
    }
}

#[test]
fn a_secret_is_in_no_log_event_page_export_or_file() {
    let place = Place::new(&[
        ("uses.wf", "return await Task.run(\"use\")\n"),
        ("fails.wf", "return await Task.run(\"wrong\")\n"),
        ("odd.wf", "return await Task.run(\"odd\")\n"),
        ("outlast.toml", TOML),
    ]);
    let new = ["token", "new", "ann", "--scope", "admin", "--add", "--quiet"];
    let token = place.call(&new).exits(0).out.trim().to_owned();
    let drawn = token.rsplit('_').next().unwrap().to_owned();
    let mut command = place.command(&["serve", "--workflows", ".", "--listen", "127.0.0.1:0", "--log", "trace"]);
    command.args(["--audit", "audit.jsonl"]).env("SECRET", CANARY).env("HOOK_SECRET", format!("whsec_{CANARY}"));
    let mut web =
        Web::from(command.stdout(std::process::Stdio::null()).stderr(std::process::Stdio::piped()).spawn().unwrap());
    web.token = Some(token);
    web.post("/api/v1/runs", &json!({ "workflow": "uses", "id": "u" })).is(201);
    web.post("/api/v1/runs", &json!({ "workflow": "fails", "id": "f" })).is(201);
    web.post("/api/v1/runs", &json!({ "workflow": "odd", "id": "o" })).is(201);
    // While it runs: what a program has said by now is its progress.
    let mut answers = String::new();
    eventually("the task says something", || {
        let tasks = web.get("/api/v1/tasks").is(200).body;
        answers += &tasks;
        tasks.contains("using ***")
    });
    assert_eq!(web.result("u")["output"], json!([CANARY.len(), "***"]));
    for (run, told) in [("f", "exit code 3: bad key ***"), ("o", "it begins with: it is ***")] {
        let failed = web.result(run);
        assert!(failed["status"] == "failed" && failed.to_string().contains(told), "{failed}");
    }
    // Secrets where they do not belong, and a webhook that nobody signed.
    let shown = web.token.replace(format!("olt_{CANARY}"));
    for path in [&format!("/api/v1/runs?token={CANARY}"), "/api/v1/whoami", &format!("/hooks/{CANARY}"), "/metrics"] {
        answers += &web.get(path).body;
        answers += &web.post(path, &json!({})).body;
    }
    web.token = shown;
    let unsigned = [("webhook-id", "m"), ("webhook-timestamp", "1"), ("webhook-signature", CANARY)];
    let mut refused = String::new();
    let mut asked = web.ask("POST", "/hooks/mT3k9bQx7fWz2LpR8sVn4cYd", &unsigned, Some(&json!({})));
    std::io::Read::read_to_string(&mut asked, &mut refused).unwrap();
    assert!(refused.starts_with("HTTP/1.1 401"), "{refused}");
    answers += &refused;
    for run in ["u", "f", "o"] {
        for part in ["", "/events", "/explain", "/operations", "/export", "/result"] {
            answers += &web.get(&format!("/api/v1/runs/{run}{part}")).is(200).body;
        }
    }
    for path in
        ["/", "/metrics", "/openapi.json", "/api/v1/workers", "/api/v1/tasks", "/api/v1/workflows", "/api/v1/whoami"]
    {
        answers += &web.get(path).is(200).body;
    }
    eventually("the audit log has lines", || place.read("audit.jsonl").lines().count() >= 2);
    let (_, said) = web.stop();
    assert!(said.contains("listening") && said.lines().count() > 10, "{said}");
    let secrets = [CANARY, drawn.as_str(), "CANARY-CANARY"];
    for secret in secrets {
        assert!(!said.contains(secret), "in the log:\n{said}");
        assert!(!answers.contains(secret), "in an answer:\n{answers}");
    }
    let mut found = Vec::new();
    search(&place.path(""), &secrets, &mut found);
    assert!(found.is_empty(), "{found:?}");
    assert!(place.read("outlast.toml").contains("sha256:"));
}
