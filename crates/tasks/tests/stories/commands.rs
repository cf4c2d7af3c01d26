//! Programs as tasks. Seed 002, Workers: "tasks as commands".

use std::time::Duration;

use outlast::{Ctx, Event, Handler, Outlast, Retry};
use outlast_tasks::{CommandTask, TaskConfig};
use serde_json::{Value, json};

use crate::support::{command, leave, python, sh};

/// Seed 002: "`[tasks.charge] command = ["python3", "charge.py"]`, JSON on stdin, JSON on stdout".
#[tokio::test]
async fn a_workflow_has_a_program_do_a_task() {
    async fn order(ctx: Ctx, euros: u32) -> outlast::Result<String> {
        let receipt: Value = ctx.task("charge", &json!({ "euros": euros })).await?;
        Ok(receipt["told"].as_str().unwrap().to_owned())
    }
    let directory = tempfile::tempdir().unwrap();
    let program = "import json, sys\norder = json.load(sys.stdin)\n\
                   print(json.dumps({'told': 'charged %d €' % order['euros']}, ensure_ascii=False))";
    std::fs::write(directory.path().join("charge.py"), program).unwrap();
    std::fs::write(
        directory.path().join("outlast.toml"),
        "[engine]\nname = 'x'\n\n[tasks.charge]\ncommand = ['python3', 'charge.py']\ntimeout = '20s'\n",
    )
    .unwrap();
    let mut engine = Outlast::memory().workflow("order", order);
    for handler in TaskConfig::from_file(directory.path().join("outlast.toml")).unwrap() {
        engine = engine.handler(handler);
    }
    let engine = engine.start().await.unwrap();
    let told: String = engine.start("order", &7).await.unwrap().result().await.unwrap();
    assert_eq!(told, "charged 7 €");
    leave(&engine).await;
}

#[tokio::test]
async fn json_goes_through_a_program_unchanged() {
    let value = json!({ "b": [1, 2.5, null, true], "a": "Grüße, 世界 \u{1F980} \u{0} \" \\", "n": u64::MAX });
    assert_eq!(command(sh("cat"), &value).await.unwrap(), value);
}

#[tokio::test]
async fn a_program_that_writes_nothing_gives_null() {
    assert_eq!(command(sh("cat > /dev/null"), &json!(1)).await.unwrap(), Value::Null);
}

/// Seed 002: "exit code ≠ 0 = failure"; issue: "stderr kept with the attempt".
#[tokio::test]
async fn an_exit_code_is_a_failure_that_has_the_code_and_what_was_written_to_stderr() {
    let script = "echo first >&2; echo 'the bank said no: ü' >&2; echo '{\"ok\":1}'; exit 3";
    let error = command(sh(script), &json!(null)).await.unwrap_err();
    error.says("command_failed", &["`sh` of task `job` ended with exit code 3: the bank said no: ü"]);
    assert!(!error.permanent);
    assert_eq!(error.data("exit_code"), 3);
    assert_eq!(error.data("signal"), &Value::Null);
    assert_eq!(error.data("stderr"), "first\nthe bank said no: ü\n");
}

/// Seed 002: "stderr captured to the run's log".
#[tokio::test]
async fn what_a_program_that_succeeds_wrote_to_stderr_is_kept_in_the_journal_of_its_run() {
    async fn chatty(ctx: Ctx, (): ()) -> outlast::Result<Value> {
        ctx.task("job", &()).await
    }
    let handler: Handler = sh("echo 'charging ü' >&2; echo '\"done\"'").into();
    let engine = Outlast::memory().workflow("chatty", chatty).handler(handler).start().await.unwrap();
    let run = engine.start("chatty", &()).id("c").await.unwrap();
    assert_eq!(run.result::<Value>().await.unwrap(), "done");
    let journal = engine.run("c").unwrap().journal().await.unwrap();
    let kept = journal.iter().find_map(|event| match event {
        Event::TaskFinished { log, .. } => log.clone(),
        _ => None,
    });
    assert_eq!(kept.as_deref(), Some("charging ü\n"));
    leave(&engine).await;
}

#[tokio::test]
async fn an_exit_code_can_say_that_trying_again_is_pointless() {
    let error = command(sh("exit 65").permanent_exit_codes([64, 65]), &json!(null)).await.unwrap_err();
    error.says("command_failed", &["exit code 65 and wrote nothing to stderr"]);
    assert!(error.permanent);
}

#[tokio::test]
async fn a_program_that_fails_is_started_again_with_the_same_key_and_another_attempt() {
    async fn patient(ctx: Ctx, (): ()) -> outlast::Result<Value> {
        let retry = Retry::attempts(2).initial(Duration::from_millis(1));
        ctx.task("job", &()).retry(retry).await
    }
    let directory = tempfile::tempdir().unwrap();
    let script = "echo \"$OUTLAST_ATTEMPT $OUTLAST_IDEMPOTENCY_KEY\" >> seen; \
                  if [ $OUTLAST_ATTEMPT = 1 ]; then exit 1; fi; echo '\"done\"'";
    let handler: Handler = sh(script).cwd(directory.path()).into();
    let engine = Outlast::memory().workflow("patient", patient).handler(handler).start().await.unwrap();
    let told: Value = engine.start("patient", &()).id("p").await.unwrap().result().await.unwrap();
    assert_eq!(told, "done");
    let seen = std::fs::read_to_string(directory.path().join("seen")).unwrap();
    assert_eq!(seen, "1 default/p/0/__task-job-0\n2 default/p/0/__task-job-0\n");
    leave(&engine).await;
}

#[tokio::test]
async fn a_program_that_a_signal_killed_is_told_with_the_signal() {
    let error = command(sh("kill -SEGV $$"), &json!(null)).await.unwrap_err();
    error.says("command_failed", &["was killed by SIGSEGV"]);
    assert_eq!((error.data("signal"), error.data("exit_code")), (&json!("SIGSEGV"), &Value::Null));
}

#[tokio::test]
async fn output_that_is_not_json_is_an_error_that_shows_its_beginning() {
    let error = command(sh("echo Charging the card...; echo '{}'; echo why >&2"), &json!(null)).await.unwrap_err();
    error.says("invalid_output", &["not JSON", "begins with: Charging the card...", "everything else to stderr"]);
    assert!(error.permanent, "what it does is done: it is not done again");
    assert_eq!(error.data("stderr"), "why\n");
    let error = command(sh("printf '\\377\\376'"), &json!(null)).await.unwrap_err();
    error.says("invalid_output", &["not UTF-8"]);
    let error = command(python("print('x' * 10_000)"), &json!(null)).await.unwrap_err();
    assert!(error.message.len() < 1_000 && error.message.contains("xxx…"), "{error:?}");
    // Whoever reads a result must be able to: these are JSON for some.
    for odd in ["'[' * 100_000 + ']' * 100_000", "'1e999'", "'\"\\\\ud800\"'", "'{} {}'", "'NaN'"] {
        let error = command(python(&format!("print({odd})")), &json!(null)).await.unwrap_err();
        error.says("invalid_output", &[]);
    }
}

#[tokio::test]
async fn of_a_long_stderr_the_end_is_kept() {
    let program = "import sys\nfor i in range(20_000): print('line', i, file=sys.stderr)\nsys.exit(1)";
    let error = command(python(program), &json!(null)).await.unwrap_err();
    error.says("command_failed", &[": line 19999"]);
    let stderr = error.data("stderr").as_str().unwrap();
    assert!(stderr.starts_with('…') && stderr.ends_with("line 19999\n"), "{stderr}");
    assert!((16_000..17_000).contains(&stderr.len()), "{}", stderr.len());
}

#[tokio::test]
async fn a_large_input_does_not_block_a_program_that_does_not_read_it() {
    let large = json!("x".repeat(1024 * 1024));
    assert_eq!(command(sh("echo 1"), &large).await.unwrap(), 1);
    // Reading begins after more was written than a pipe holds.
    let program = "import sys\nprint('[' + '1,' * 300_000, flush=True)\nprint(len(sys.stdin.read()), ']')";
    let list = command(python(program), &large).await.unwrap();
    assert_eq!(list[300_000], 1024 * 1024 + 3, "quotes and a line's end");
    let program = "import os, sys; os.close(0); print(2)";
    assert_eq!(command(python(program), &large).await.unwrap(), 2);
}

#[tokio::test]
async fn a_program_may_close_its_output_before_it_ends() {
    let program = "import os, sys\nprint(5, flush=True)\nos.close(1)\nos.close(2)\nsys.stdin.read()\nos._exit(0)";
    assert_eq!(command(python(program), &json!(null)).await.unwrap(), 5);
    let error = command(sh("echo 5; exec >&- 2>&-; exit 4"), &json!(null)).await.unwrap_err();
    assert_eq!(error.data("exit_code"), 4);
}

#[tokio::test]
async fn a_program_sees_path_what_is_allowed_and_what_is_known_of_the_attempt() {
    let directory = tempfile::tempdir().unwrap();
    let task = sh("env > seen").cwd(directory.path()).env(["CARGO_MANIFEST_DIR", "SURELY_NOT_SET"]);
    command(task, &json!(null)).await.unwrap();
    let seen = std::fs::read_to_string(directory.path().join("seen")).unwrap();
    let variables = seen.lines().map(|line| line.split_once('=').unwrap());
    // Apart from the shell's own.
    let variables = variables.filter(|(name, _)| !["PWD", "OLDPWD", "SHLVL", "_"].contains(name));
    let mut seen: serde_json::Map<String, Value> =
        variables.map(|(name, value)| (name.to_owned(), Value::from(value))).collect();
    assert_eq!(seen.remove("PATH").unwrap(), std::env::var("PATH").unwrap().as_str());
    let expected = json!({
        "CARGO_MANIFEST_DIR": std::env::var("CARGO_MANIFEST_DIR").unwrap(),
        "OUTLAST_TASK": "job",
        "OUTLAST_TASK_ID": "run-1/0/__task-job-0",
        "OUTLAST_RUN_ID": "run-1",
        "OUTLAST_NAMESPACE": "default",
        "OUTLAST_ATTEMPT": "1",
        "OUTLAST_IDEMPOTENCY_KEY": "default/run-1/0/__task-job-0",
    });
    assert_eq!(Value::Object(seen), expected);
}

/// A variable that is set here, with a value nobody else has.
const SECRET: &str = "CARGO_PKG_DESCRIPTION";

/// What a run's journal has of a program that was given a secret.
async fn journal_of(script: &str) -> (Result<Value, String>, String) {
    async fn once(ctx: Ctx, (): ()) -> outlast::Result<Value> {
        ctx.task("job", &()).retry(Retry::never()).await
    }
    let handler: Handler = sh(script).env([SECRET]).timeout(Duration::from_secs(5)).output_limit(1_000).into();
    let engine = Outlast::memory().workflow("once", once).handler(handler).start().await.unwrap();
    let result = engine.start("once", &()).id("o").await.unwrap().result::<Value>().await;
    let journal = format!("{:?}", engine.run("o").unwrap().journal().await.unwrap());
    leave(&engine).await;
    (result.map_err(|error| format!("{error:?}")), journal)
}

#[tokio::test]
async fn a_secret_that_a_program_tells_is_not_kept_and_not_shown() {
    let secret = std::env::var(SECRET).unwrap();
    let said = "bad key $CARGO_PKG_DESCRIPTION";
    for (script, kept) in [
        (format!("echo {said} >&2; exit 3"), "ended with exit code 3: bad key ***"),
        (format!("echo {said} >&2; echo 1"), "bad key ***"),
        (format!("echo {said}"), "it begins with: bad key ***"),
        (format!("printf '\\377 %s' \"{said}\""), "bad key ***"),
        (format!("echo {said} >&2; head -c 2000 /dev/zero"), "bad key ***"),
        (format!("printf '%.40s' \"{said}\" >&2; exit 3"), "bad key ***"),
        (format!("echo {said} >&2; sleep 60"), "bad key ***"),
        (format!("echo \\\"{said}\\\""), "value of a variable of `env`"),
    ] {
        let (result, journal) = journal_of(&script).await;
        let told = format!("{result:?} {journal}");
        assert!(told.contains(kept), "{script}: {told}");
        assert!(!told.contains(&secret) && !told.contains(&secret[..8]), "{script}: {told}");
    }
    let (result, _) = journal_of(&format!("echo \\\"{said}\\\"")).await;
    assert_eq!(result.unwrap(), "bad key ***");
}

#[tokio::test]
async fn a_program_runs_in_its_directory_and_is_found_there() {
    use std::os::unix::fs::PermissionsExt;
    let directory = tempfile::tempdir().unwrap();
    let script = directory.path().join("where.sh");
    std::fs::write(&script, "#!/bin/sh\necho \"\\\"$(pwd -P)\\\"\"\n").unwrap();
    std::fs::set_permissions(&script, std::fs::Permissions::from_mode(0o755)).unwrap();
    let task = CommandTask::new("job", ["./where.sh"]).cwd(directory.path());
    let seen = command(task, &json!(null)).await.unwrap();
    assert_eq!(seen, directory.path().canonicalize().unwrap().to_str().unwrap());
}

#[tokio::test]
async fn a_program_that_cannot_be_started_says_why() {
    let error = command(CommandTask::new("job", ["no-such-program"]), &json!(null)).await.unwrap_err();
    error.says("command_not_started", &["`no-such-program` of task `job`", "is it installed on this worker"]);
    assert!(!error.permanent, "another worker may have it");
    let error = command(sh("true").cwd("/no/such/place"), &json!(null)).await.unwrap_err();
    error.says("command_not_started", &["its directory /no/such/place does not exist"]);
    let error = command(CommandTask::new("job", [""; 0]), &json!(null)).await.unwrap_err();
    error.says("command_not_started", &["empty command"]);
}
