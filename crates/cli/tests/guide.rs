//! Every command of the guide does what the guide shows.
#![expect(clippy::unwrap_used, clippy::disallowed_methods, reason = "tests fail by panicking, and run in real time")]

use std::collections::BTreeMap;
use std::fs;
use std::io::{BufRead, BufReader};
use std::path::{Path, PathBuf};
use std::process::{Child, Command, Stdio};
use std::sync::mpsc::channel;
use std::time::Duration;

/// The files the guide speaks of.
const FILES: [(&str, &str); 4] = [
    ("greet.wf", "workflow greet(name) {\n  await Task.run(\"noop\")\n  return `Hello, ${name}!`\n}\n"),
    (
        "ship.wf",
        "const ok = await Approval.request({ title: \"Ship it?\", assignee: \"sales\" })\n\
         return ok.approved ? \"shipped\" : \"kept\"\n",
    ),
    ("wrong/typo.wf", "const total = 1\nreturn totl\n"),
    (
        "fulfil.flow.yaml",
        "flow: fulfil\nnodes:\n  - { id: order, type: task, task: noop }\n  - { id: ok, type: approve, title: 'Ship?' }\n",
    ),
];

fn root() -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join("../..")
}

fn page(name: &str) -> String {
    fs::read_to_string(root().join(name)).unwrap_or_else(|error| panic!("{name}: {error}"))
}

#[test]
fn the_guide_is_true() {
    let text = page("docs/cli.md");
    for (name, content) in FILES.iter().take(2) {
        assert!(text.contains(content.trim_end()), "the guide shows another {name}");
    }
    let dir = tempfile::tempdir().unwrap();
    // A copy with its files beside it: that is where they are looked for, and where they may be changed.
    fs::write(dir.path().join("cli.md"), text).unwrap();
    for folder in ["cli.in", "cli.out"] {
        for (name, content) in FILES {
            let path = dir.path().join(folder).join(name);
            fs::create_dir_all(path.parent().unwrap()).unwrap();
            fs::write(path, content).unwrap();
        }
    }
    let cases = trycmd::TestCases::new();
    cases.register_bin("outlast", assert_cmd::cargo::cargo_bin("outlast"));
    cases.case(dir.path().join("cli.md"));
    cases.run();
}

/// The lines of a page's `sh` blocks, without their comments.
fn shell_lines(page: &str) -> Vec<String> {
    let blocks = page.split("```sh\n").skip(1).filter_map(|rest| rest.split("```").next());
    let lines = blocks.flat_map(str::lines).map(|line| line.split(" #").next().unwrap_or_default().trim().to_owned());
    lines.filter(|line| !line.is_empty() && !line.starts_with('#')).collect()
}

/// The commands among them.
fn shell_commands(page: &str) -> Vec<String> {
    shell_lines(page).into_iter().filter(|line| line.starts_with("outlast ")).collect()
}

/// Somebody who types what a page says, in a folder that has the examples in it, and beside a server that has them, too.
struct Reader {
    dir: tempfile::TempDir,
    /// What was exported.
    exported: BTreeMap<String, String>,
    server: Child,
    address: String,
    token: String,
}

impl Drop for Reader {
    fn drop(&mut self) {
        let _ = self.server.kill();
        let _ = self.server.wait();
    }
}

fn outlast(folder: &Path, args: &[&str]) -> Command {
    let mut command = Command::new(env!("CARGO_BIN_EXE_outlast"));
    command.current_dir(folder).args(args).stdin(Stdio::null());
    for name in ["NO_COLOR", "CLICOLOR_FORCE", "OUTLAST_DATABASE", "OUTLAST_URL", "OUTLAST_TOKEN"] {
        command.env_remove(name);
    }
    command
}

/// How long anything may take on a busy machine.
const PATIENCE: Duration = Duration::from_secs(60);

/// Where a process that has just begun listens, if it does.
fn begun(child: &mut Child) -> String {
    let lines = BufReader::new(child.stderr.take().unwrap()).lines().map_while(Result::ok);
    let (send, heard) = channel();
    // Whatever else it says is read, or it would wait for a reader.
    std::thread::spawn(move || lines.for_each(|line| drop(send.send(line))));
    let mut said = Vec::new();
    loop {
        let Ok(line) = heard.recv_timeout(PATIENCE) else {
            let _ = child.kill();
            panic!("it never began:\n{}", said.join("\n"));
        };
        let is_there = ["http://127", "http://0.0"].iter().any(|address| line.contains(address));
        if is_there || line.contains("\"working\"") {
            let address = line.split("http://").nth(1).unwrap_or_default();
            return address.chars().take_while(|letter| letter.is_ascii_digit() || ".:".contains(*letter)).collect();
        }
        said.push(line);
    }
}

impl Reader {
    fn new() -> Reader {
        let dir = tempfile::tempdir().unwrap();
        for folder in ["scripts", "flows"] {
            for entry in fs::read_dir(root().join("examples").join(folder)).unwrap().flatten() {
                let copies = [dir.path().join("examples").join(folder), dir.path().join("srv")];
                for copy in copies.iter().take(if folder == "scripts" { 2 } else { 1 }) {
                    fs::create_dir_all(copy).unwrap();
                    fs::copy(entry.path(), copy.join(entry.file_name())).unwrap();
                }
            }
        }
        for file in ["checkout.wf", "outlast.toml"] {
            fs::copy(root().join("examples/scripts").join(file), dir.path().join(file)).unwrap();
        }
        let token = ["token", "new", "reader", "--scope", "admin", "--add", "--quiet"];
        let text = |folder: &str| {
            let drawn = outlast(&dir.path().join(folder), &token).output().unwrap();
            String::from_utf8(drawn.stdout).unwrap().trim().to_owned()
        };
        // One for the server, and one for those that the page starts.
        let (token, _) = (text("srv"), text("."));
        let serve = ["serve", "--workflows", ".", "--listen", "127.0.0.1:0"];
        let mut server = outlast(&dir.path().join("srv"), &serve).stderr(Stdio::piped()).spawn().unwrap();
        let address = begun(&mut server);
        Reader { dir, exported: BTreeMap::new(), server, address, token }
    }

    /// A line with what is another thing here.
    fn here(&self, line: &str) -> String {
        let database = std::env::var("OUTLAST_TEST_POSTGRES")
            .expect("there is no PostgreSQL: run `cargo xtask test`, or set OUTLAST_TEST_POSTGRES");
        line.replace("http://127.0.0.1:7117", &format!("http://{}", self.address))
            .replace("https://outlast.example.org", &format!("http://{}", self.address))
            .replace("postgres://outlast@db/outlast", &database)
            .replace("0.0.0.0:7117", "0.0.0.0:0")
            .replace("/srv/workflows", "srv")
            .replace("olt_…", &self.token)
    }

    /// Types a line; whether it was one that can be.
    fn types(&mut self, line: &str) -> bool {
        let line = self.here(line);
        if let Some(said) = line.strip_prefix("export ") {
            let named = said.split(' ').filter_map(|one| one.split_once('='));
            self.exported.extend(named.map(|(name, value)| (name.to_owned(), value.to_owned())));
            return true;
        }
        let line = line.replacen("cargo run --release -- ", "outlast ", 1);
        let Some(rest) = line.strip_prefix("outlast ") else { return false };
        // Who sits at a terminal is asked. Here nobody is, and an approval with a deadline would be waited for as long.
        let patience = if rest.starts_with("run ") { " --timeout 10s" } else { "" };
        let mut command = Command::new("sh");
        command.args(["-c", &format!("exec {} {rest}{patience}", env!("CARGO_BIN_EXE_outlast"))]);
        command.current_dir(self.dir.path()).stdin(Stdio::null());
        for name in ["NO_COLOR", "CLICOLOR_FORCE", "OUTLAST_DATABASE", "OUTLAST_URL", "OUTLAST_TOKEN"] {
            command.env_remove(name);
        }
        // Nobody who types a command has a free port in mind, and the server they ask wants a token.
        command.env("OUTLAST_LISTEN", "127.0.0.1:0").env("OUTLAST_TOKEN", &self.token).envs(&self.exported);
        if ["dev", "serve", "worker"].contains(&rest.split(' ').next().unwrap_or_default()) {
            self.stays(&line, command);
        } else {
            let done = command.output().unwrap();
            let (out, err) = (String::from_utf8_lossy(&done.stdout), String::from_utf8_lossy(&done.stderr));
            let waits = done.status.code() == Some(6) && err.contains("waits for the approval");
            assert!(done.status.success() || waits, "{line}: {:?}\n{out}\n{err}", done.status);
        }
        true
    }

    /// One that goes on until it is asked to stop.
    fn stays(&self, line: &str, mut command: Command) {
        let mut child = command.stdout(Stdio::null()).stderr(Stdio::piped()).spawn().unwrap();
        begun(&mut child);
        rustix::process::kill_process(rustix::process::Pid::from_child(&child), rustix::process::Signal::TERM).unwrap();
        let status = child.wait().unwrap();
        assert!(status.success(), "{line}: {status:?}");
    }
}

#[test]
fn what_the_pages_tell_to_type_works() {
    let mut typed = 0;
    for name in ["README.md", "docs/cli.md", "docs/workers.md", "docs/web.md"] {
        let mut reader = Reader::new();
        for line in shell_lines(&page(name)) {
            let is_ours = line.starts_with("outlast ") || line.starts_with("cargo run --release -- ");
            assert!(reader.types(&line) || !is_ours, "{name}: {line}");
            typed += usize::from(is_ours);
        }
    }
    assert!(typed >= 14, "{typed}");
}

/// What the README shows of a script is what that script does.
#[test]
fn the_readmes_script_says_hello() {
    let readme = page("README.md");
    let script = readme.split("```js\n").nth(1).and_then(|rest| rest.split("```").next()).unwrap();
    let shown = readme.lines().find(|line| line.starts_with("# {\"status\"")).expect("what it prints");
    let shown: serde_json::Value = serde_json::from_str(shown.trim_start_matches("# ")).unwrap();
    let dir = tempfile::tempdir().unwrap();
    fs::write(dir.path().join("greet.wf"), script).unwrap();
    let done =
        outlast(dir.path(), &["run", "greet.wf", "--input", r#"{"name":"Ada"}"#, "-o", "json"]).output().unwrap();
    let said: serde_json::Value = serde_json::from_slice(&done.stdout).unwrap();
    assert_eq!((&said["status"], &said["output"]), (&shown["status"], &shown["output"]));
}

#[test]
fn every_command_of_the_documents_is_one() {
    let mut pages: Vec<PathBuf> =
        ["README.md", "sdk/python/README.md", "sdk/typescript/README.md"].map(|name| root().join(name)).into();
    pages.extend(fs::read_dir(root().join("docs")).unwrap().flatten().map(|entry| entry.path()));
    let mut seen = 0;
    for page in pages {
        let Ok(text) = fs::read_to_string(&page) else { continue };
        let shown = text.lines().filter_map(|line| line.strip_prefix("$ ")).map(str::to_owned);
        for command in shell_commands(&text).into_iter().chain(shown).filter(|line| line.starts_with("outlast ")) {
            check_words(&page, &command);
            seen += 1;
        }
    }
    assert!(seen > 30, "{seen}");
}

/// Every word that is a verb or a flag is known: clap refuses others before anything is done.
fn check_words(page: &Path, command: &str) {
    let words: Vec<&str> = command.split_whitespace().skip(1).take_while(|word| !word.starts_with('-')).collect();
    let verbs = if matches!(words.first(), Some(&("schedule" | "token"))) { 2 } else { 1 };
    let asked = Command::new(env!("CARGO_BIN_EXE_outlast")).args(words.iter().take(verbs)).arg("--help").output();
    let asked = asked.unwrap();
    let help = String::from_utf8_lossy(&asked.stdout) + String::from_utf8_lossy(&asked.stderr);
    assert!(asked.status.success() && help.contains("Usage:"), "{}: {command}\n{help}", page.display());
    for flag in command.split_whitespace().filter(|word| word.starts_with("--")) {
        let flag = flag.split('=').next().unwrap_or(flag);
        let is_known =
            help.split(|letter: char| !letter.is_ascii_alphanumeric() && letter != '-').any(|word| word == flag);
        assert!(is_known, "{}: {command}: {flag}\n{help}", page.display());
    }
}

#[test]
fn the_command_that_draws_a_webhooks_id_draws_one() {
    let commands = shell_lines(&page("docs/api.md"));
    let command = commands.iter().find(|line| line.contains("/dev/urandom")).expect("the command");
    let draw = || {
        let drawn = Command::new("sh").args(["-c", command]).output().unwrap();
        String::from_utf8(drawn.stdout).unwrap().trim().to_owned()
    };
    let (one, other) = (draw(), draw());
    assert_ne!(one, other);
    let is_letter = |letter: char| letter.is_ascii_alphanumeric() || letter == '-' || letter == '_';
    assert!(one.len() >= 22 && one.chars().all(is_letter), "{one}");
    // And a server takes it.
    let dir = tempfile::tempdir().unwrap();
    let config = format!("[[hooks]]\nid = \"{one}\"\nname = \"x\"\nsecrets = [\"env:HOOK\"]\nstart = \"x\"\n");
    fs::write(dir.path().join("outlast.toml"), config).unwrap();
    let serve = ["serve", "--listen", "127.0.0.1:0"];
    let secret = "whsec_MfKQ9r8GKYqrTwjUPD8ILPZIo2LaLaSw";
    let mut server = outlast(dir.path(), &serve).env("HOOK", secret).stderr(Stdio::piped()).spawn().unwrap();
    begun(&mut server);
    server.kill().unwrap();
    server.wait().unwrap();
}
