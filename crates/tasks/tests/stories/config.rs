//! What `outlast.toml` may say, and how it is told when it says something else.

use outlast_tasks::TaskConfig;
use serde_json::json;

use crate::support::perform;

#[track_caller]
fn refused(text: &str) -> String {
    TaskConfig::from_toml(text, ".").err().expect("it is refused").to_string()
}

#[tokio::test]
async fn every_key_is_read() {
    let directory = tempfile::tempdir().unwrap();
    std::fs::create_dir(directory.path().join("sub")).unwrap();
    let text = r#"
        [server]
        port = 80

        [tasks."billing.charge"]
        command = ["sh", "-c", "echo \"[\\\"$CARGO_PKG_VERSION\\\", \\\"$(basename $(pwd))\\\"]\""]
        cwd = "sub"
        env = ["CARGO_PKG_VERSION"]
        timeout = "1.5m"
        grace = 2
        output_limit = "64KiB"
        queue = "default"
        concurrency = 2
        permanent_exit_codes = [2, 65]

        [tasks.other]
        command = ["true"]
        timeout = 0.5
        output_limit = 1_000
    "#;
    let handlers = TaskConfig::from_toml(text, directory.path()).unwrap();
    assert_eq!(handlers.len(), 2);
    let result = perform(handlers, "billing.charge", &json!(null)).await.unwrap();
    assert_eq!(result, json!([std::env::var("CARGO_PKG_VERSION").unwrap(), "sub"]));
}

#[tokio::test]
async fn limits_from_the_file_hold() {
    let text =
        r#"tasks.job = { command = ["sh", "-c", "echo 123456; exec sleep 1000"], output_limit = 6, grace = "1s" }"#;
    let error = perform(TaskConfig::from_toml(text, ".").unwrap(), "job", &json!(null)).await.unwrap_err();
    error.says("limit_exceeded", &["more than 6 bytes"]);
    let text = r#"tasks.job = { command = ["sleep", "1000"], timeout = "300ms" }"#;
    let error = perform(TaskConfig::from_toml(text, ".").unwrap(), "job", &json!(null)).await.unwrap_err();
    error.says("timeout", &["longer than 300ms"]);
    let text = r#"tasks.job = { command = ["sh", "-c", "exit 9"], permanent_exit_codes = [9] }"#;
    assert!(perform(TaskConfig::from_toml(text, ".").unwrap(), "job", &json!(null)).await.unwrap_err().permanent);
}

#[test]
fn a_file_without_tasks_has_none() {
    assert_eq!(TaskConfig::from_toml("", ".").unwrap().len(), 0);
    assert_eq!(TaskConfig::from_toml("[server]\nport = 80", ".").unwrap().len(), 0);
    assert_eq!(TaskConfig::from_toml("[tasks]", ".").unwrap().len(), 0);
}

#[test]
fn mistakes_are_told_with_their_line_their_key_and_what_to_do() {
    let cases = [
        (
            "[tasks.a]\ncommand = ['x']\n\ntimout = 1",
            "line 4: tasks.a.timout: there is no such key; did you mean `timeout`?",
        ),
        (
            "[tasks.a]\ncommand = ['x']\nshell = true",
            "line 3: tasks.a.shell: there is no such key; there are command, concurrency",
        ),
        (
            "[tasks.b.a]\ncommand = ['x']",
            "line 1: tasks.b.a: there is no such key; a task with a `.` in its name is written with quotes: `[tasks.\"b.a\"]`",
        ),
        ("[tasks.a]\ncwd = '.'", "line 1: tasks.a: `command` is missing"),
        ("[tasks.a]\ncommand = []", "line 2: tasks.a.command: names no program"),
        ("[tasks.a]\ncommand = ['']", "line 2: tasks.a.command: names no program"),
        (
            "[tasks.a]\ncommand = 'python3 x.py'",
            "line 2: tasks.a.command: a list, in `[` and `]`, is expected here, and not string",
        ),
        ("[tasks.a]\ncommand = [\n'x',\n1]", "line 4: tasks.a.command: a string is expected here, and not integer"),
        ("[tasks.a]\ncommand = [\"x\\u0000\"]", "line 2: tasks.a.command: no program can be given a NUL"),
        (
            "[tasks.a]\ncommand = ['x']\ntimeout = 'soon'",
            "line 3: tasks.a.timeout: this is none: a length of time is `\"500ms\"`",
        ),
        ("[tasks.a]\ncommand = ['x']\ntimeout = 0", "line 3: tasks.a.timeout: this is none"),
        ("[tasks.a]\ncommand = ['x']\ngrace = -1.5", "line 3: tasks.a.grace: this is none"),
        ("[tasks.a]\ncommand = ['x']\nconcurrency = 0", "line 3: tasks.a.concurrency: a whole number from 1"),
        ("[tasks.a]\ncommand = ['x']\noutput_limit = '1GB'", "line 3: tasks.a.output_limit: a size is"),
        ("[tasks.a]\ncommand = ['x']\noutput_limit = '17MiB'", "at most 16777216 bytes"),
        (
            "[tasks.a]\ncommand = ['x']\npermanent_exit_codes = [0]",
            "line 3: tasks.a.permanent_exit_codes: an exit code from 1",
        ),
        ("[tasks.a]\ncommand = ['x']\nqueue = ''", "line 3: tasks.a.queue: "),
        ("[tasks.a]\ncommand = ['x']\nenv = ['A=B']", "line 3: tasks.a.env: `A=B` is no name of a variable"),
        (
            "[tasks.a]\ncommand = ['x']\nenv = ['OUTLAST_ATTEMPT']",
            "line 3: tasks.a.env: `OUTLAST_ATTEMPT` cannot be passed on",
        ),
        ("[tasks]\na = 1", "line 2: tasks.a: a table is expected here, and not integer"),
        ("tasks = 1", "line 1: tasks: a table is expected"),
        ("\n[task.a]\ncommand = ['x']", "line 2: task: tasks are in `tasks`"),
        ("[tasks.'']\ncommand = ['x']", "line 1: tasks.: "),
        ("[tasks.a]\ncommand = ['x'", "line 2: "),
        ("[tasks.a]\ncommand = ['x']\n[tasks.a]\ncommand = ['y']", "line 3: "),
    ];
    for (text, told) in cases {
        let refused = refused(text);
        assert!(refused.contains(told), "{text}\n  is refused with: {refused}\n  and not with: {told}");
    }
}

#[test]
fn a_file_is_named_in_its_errors() {
    let directory = tempfile::tempdir().unwrap();
    let path = directory.path().join("outlast.toml");
    let error = TaskConfig::from_file(&path).err().unwrap();
    assert!(error.to_string().starts_with(&format!("{}: it cannot be read: ", path.display())), "{error}");
    std::fs::write(&path, "[tasks.a]\ncomand = ['x']").unwrap();
    let error = TaskConfig::from_file(&path).err().unwrap();
    assert_eq!((error.line(), error.key()), (Some(2), Some("tasks.a.comand")));
    assert!(
        error.to_string().starts_with(&format!(
            "{}:2: tasks.a.comand: there is no such key; did you mean `command`",
            path.display()
        )),
        "{error}"
    );
}
