//! schemathesis reads the OpenAPI document, asks the server what the document allows and what it does not, and compares.

use std::io::{BufRead, BufReader};
use std::path::Path;
use std::process::{Child, Command, Stdio};

use crate::python;

/// Other seeds look elsewhere; fixed ones find the same each time. `OUTLAST_SCHEMA_SEED` and `OUTLAST_SCHEMA_EXAMPLES` look further.
const SEEDS: [&str; 2] = ["7", "11"];
const EXAMPLES: &str = "30";

/// Nobody waits for the end of a run that has none. What the document allows is done, or refused for what a document cannot say: whose
/// token it is, which runs, cursors and texts of workflows there are, how large something may be. A claim waits as long as it is told
/// to, for a minute at most.
const CONFIG: &str = "[parameters]\n\"query.wait_ms\" = 0\n[checks.positive_data_acceptance]\n\
                      expected-statuses = [\"2xx\", 401, 403, 404, 409, 410, 413, 422]\n\
                      [[operations]]\ninclude-path = \"/api/v1/work/claim\"\nchecks.max_response_time = 65\n";

const SCRIPT: &str = "workflow waits(x) {\n  await Task.run(\"pack\", x)\n  return await Signal.next(\"go\")\n}\n";

/// A server that ends with the test.
struct Server {
    child: Child,
    url: String,
}

impl Drop for Server {
    fn drop(&mut self) {
        let _ = self.child.kill();
        let _ = self.child.wait();
    }
}

fn outlast(folder: &Path, args: &[&str]) -> Command {
    let mut command = Command::new(env!("CARGO_BIN_EXE_outlast"));
    command.current_dir(folder).args(args).stdin(Stdio::null());
    for name in ["OUTLAST_DATABASE", "OUTLAST_URL", "OUTLAST_TOKEN", "NO_COLOR"] {
        command.env_remove(name);
    }
    command
}

impl Server {
    fn start(folder: &Path) -> Server {
        let args = ["serve", "--workflows", ".", "--listen", "127.0.0.1:0", "--log", "info"];
        let mut child = outlast(folder, &args).stderr(Stdio::piped()).stdout(Stdio::null()).spawn().unwrap();
        let mut lines = BufReader::new(child.stderr.take().unwrap()).lines().map_while(Result::ok);
        let line = lines.find(|line| line.contains("\"listening\"")).expect("it listens");
        // Whatever else it says is read, or it would wait for a reader.
        std::thread::spawn(move || lines.for_each(drop));
        let line: serde_json::Value = serde_json::from_str(&line).unwrap();
        Server { child, url: line["address"].as_str().unwrap().to_owned() }
    }
}

#[test]
fn a_tool_that_compares_the_document_with_the_server_finds_nothing() {
    match std::env::var("OUTLAST_SCHEMA_SEED") {
        Ok(seed) => compare(&seed),
        Err(_) => SEEDS.into_iter().for_each(compare),
    }
}

fn compare(seed: &str) {
    let folder = tempfile::tempdir().unwrap();
    std::fs::write(folder.path().join("waits.wf"), SCRIPT).unwrap();
    std::fs::write(folder.path().join("schemathesis.toml"), CONFIG).unwrap();
    let token = outlast(folder.path(), &["token", "new", "tool", "--add", "--quiet", "--scope", "admin"]).output();
    let token = String::from_utf8(token.unwrap().stdout).unwrap();
    let server = Server::start(folder.path());
    let start = ["start", "waits", "--id", "a", "--url", &server.url];
    assert!(outlast(folder.path(), &start).env("OUTLAST_TOKEN", token.trim()).status().unwrap().success());
    let examples = std::env::var("OUTLAST_SCHEMA_EXAMPLES").unwrap_or_else(|_| EXAMPLES.to_owned());
    let document = Path::new(env!("CARGO_MANIFEST_DIR")).join("../server/openapi.json");
    let output = Command::new(python::program("schemathesis"))
        .current_dir(folder.path())
        .arg("run")
        .arg(document)
        .args(["--url", &server.url, "--header", &format!("Authorization: Bearer {}", token.trim())])
        .args(["--seed", seed, "--max-examples", &examples, "--phases", "examples,coverage,fuzzing"])
        .args(["--checks", "all", "--request-timeout", "65", "--no-color", "--generation-database", "none"])
        // A stream does not end.
        .args(["--exclude-path-regex", "/stream$"])
        .output()
        .unwrap();
    let text = String::from_utf8_lossy(&output.stdout) + String::from_utf8_lossy(&output.stderr);
    assert!(output.status.success(), "{seed}: {text}");
    // `3597 generated, 3597 passed, 56 skipped`
    let counted = text.lines().find(|line| line.contains(" generated, ")).unwrap_or_default();
    let numbers: Vec<u32> =
        counted.split(|letter: char| !letter.is_ascii_digit()).filter_map(|n| n.parse().ok()).collect();
    assert!(numbers.len() >= 2 && numbers[0] > 2_000 && numbers[0] == numbers[1], "{seed}: {text}");
}
