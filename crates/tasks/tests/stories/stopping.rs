//! Programs that are stopped: too slow, too loud, or not wanted any more. Nothing of them may remain.

use std::sync::Arc;
use std::time::Duration;

use outlast::{Ctx, Handler, Outlast, Retry};
use outlast_core::id::Namespace;
use outlast_core::limits::Limits;
use outlast_store::{Clock, MemoryStore, Store, TaskFilter};
use outlast_tasks::CommandTask;
use serde_json::{Value, json};
use tokio::io::AsyncReadExt;
use tokio::net::{TcpListener, TcpStream};

use crate::support::{PATIENCE, command, engine, leave, perform, python, sh};

/// Long enough for a program to begin, on a machine that has much else to do.
const SOON: Duration = Duration::from_secs(5);

/// Programs that call when they begin; the line is dead when they are.
struct Switchboard(TcpListener);

impl Switchboard {
    async fn open() -> Switchboard {
        Switchboard(TcpListener::bind("127.0.0.1:0").await.unwrap())
    }

    /// Part of a shell's script: a program that calls, and then goes on for ever. It does not heed SIGTERM.
    fn stubborn(&self) -> String {
        let port = self.0.local_addr().unwrap().port();
        format!(
            "python3 -c 'import signal, socket, time\nsignal.signal(signal.SIGTERM, signal.SIG_IGN)\n\
             s = socket.create_connection((\"127.0.0.1\", {port}))\ns.sendall(b\"!\")\ntime.sleep(1000)'"
        )
    }

    async fn call(&self) -> TcpStream {
        let (mut line, _) = tokio::time::timeout(PATIENCE, self.0.accept()).await.expect("a call in time").unwrap();
        assert_eq!(line.read_u8().await.unwrap(), b'!');
        line
    }
}

/// Whoever held the line is gone.
async fn dies(mut line: TcpStream) {
    let end = tokio::time::timeout(PATIENCE, line.read_u8()).await.expect("it was killed");
    assert!(end.is_err(), "it says no more");
}

/// A program with a grandchild, both of which do not heed SIGTERM.
fn family(board: &Switchboard) -> CommandTask {
    let script = format!("trap '' TERM; {} & echo begun >&2; wait; wait", board.stubborn());
    sh(&script).grace(Duration::from_millis(200))
}

#[tokio::test]
async fn a_program_that_takes_too_long_is_killed_with_all_it_started() {
    let board = Switchboard::open().await;
    let task = family(&board).timeout(SOON);
    let (error, line) = tokio::join!(command(task, &json!(null)), board.call());
    let error = error.unwrap_err();
    error.says("timeout", &["`sh` of task `job` took longer than 5s, and was stopped"]);
    assert_eq!(error.data("stderr"), "begun\n");
    assert!(!error.permanent);
    dies(line).await;
}

/// SIGTERM first: a program can tidy up.
#[tokio::test]
async fn a_program_is_asked_to_end_before_it_is_killed() {
    let directory = tempfile::tempdir().unwrap();
    let program = "import signal, sys, time, pathlib\n\
                   def end(*_):\n    pathlib.Path('tidied').touch()\n    sys.exit(0)\n\
                   signal.signal(signal.SIGTERM, end)\ntime.sleep(1000)";
    // A grace beyond the test's patience: it ends because the program did.
    let task = python(program).cwd(directory.path()).timeout(SOON).grace(PATIENCE * 4);
    command(task, &json!(null)).await.unwrap_err().says("timeout", &[]);
    assert!(directory.path().join("tidied").exists());
}

#[tokio::test]
async fn what_a_program_leaves_running_ends_with_it_and_does_not_hold_its_result() {
    let board = Switchboard::open().await;
    let fifo = tempfile::tempdir().unwrap();
    // It ends when its grandchild has called.
    let script = format!("{} & mkfifo go; echo 7; read -r line < go", board.stubborn());
    let task = sh(&script).cwd(fifo.path()).timeout(PATIENCE * 4);
    let go = async {
        let line = board.call().await;
        let path = fifo.path().join("go");
        tokio::task::spawn_blocking(move || std::fs::write(path, "go\n").unwrap()).await.unwrap();
        line
    };
    let (result, line) = tokio::join!(command(task, &json!(null)), go);
    assert_eq!(result.unwrap(), 7);
    dies(line).await;
}

/// A process that left the group is not ours to kill, but it cannot hold the task by keeping its output open either.
#[tokio::test]
async fn a_daemon_that_keeps_the_output_open_does_not_hold_the_task() {
    let program = "import os, subprocess, sys\n\
                   child = subprocess.Popen(['sleep', '60'], start_new_session=True)\n\
                   print(child.pid)";
    let pid = command(python(program).timeout(PATIENCE * 4), &json!(null)).await.unwrap();
    let pid = rustix::process::Pid::from_raw(i32::try_from(pid.as_i64().unwrap()).unwrap()).unwrap();
    rustix::process::kill_process(pid, rustix::process::Signal::KILL).expect("it was left alone");
}

#[tokio::test]
async fn a_program_that_writes_too_much_is_stopped() {
    let task = sh("yes").output_limit(1000).grace(Duration::from_millis(200));
    let error = command(task, &json!(null)).await.unwrap_err();
    error.says("limit_exceeded", &["more than 1000 bytes", "raise `output_limit`"]);
    assert!(error.permanent);
    let exact = python("print('1' * 14, end='')").output_limit(14);
    assert_eq!(command(exact, &json!(null)).await.unwrap(), json!(11_111_111_111_111_u64));
    command(python("print('1' * 14)").output_limit(14), &json!(null)).await.unwrap_err().says("limit_exceeded", &[]);
}

/// Seed 002, Workers: "cancellation reaches a running handler".
#[tokio::test]
async fn a_program_whose_run_is_cancelled_is_killed_with_all_it_started() {
    let board = Switchboard::open().await;
    let engine = engine([family(&board).into()]).await;
    let run = engine.start("once", &("job", Value::Null)).id("a").await.unwrap();
    let line = board.call().await;
    run.cancel("not wanted").await.unwrap();
    dies(line).await;
    leave(&engine).await;
}

#[tokio::test]
async fn a_program_whose_attempt_the_workflow_gives_up_is_killed_with_all_it_started() {
    async fn hasty(ctx: Ctx, (): ()) -> outlast::Result<String> {
        let late = ctx.task::<()>("job", &()).timeout(SOON).retry(Retry::never()).await;
        Ok(late.unwrap_err().code().to_owned())
    }
    let board = Switchboard::open().await;
    let handler: Handler = family(&board).into();
    let engine = Outlast::memory().workflow("hasty", hasty).handler(handler).start().await.unwrap();
    let run = engine.start("hasty", &()).await.unwrap();
    let line = board.call().await;
    assert_eq!(run.result::<String>().await.unwrap(), "timeout");
    dies(line).await;
    leave(&engine).await;
}

/// A runtime that ends takes its programs with it, grace or not.
#[test]
fn programs_do_not_survive_the_runtime_of_their_worker() {
    let runtime = || tokio::runtime::Builder::new_multi_thread().worker_threads(2).enable_all().build().unwrap();
    let (worker, observer) = (runtime(), runtime());
    let board = observer.block_on(Switchboard::open());
    let task = family(&board).grace(PATIENCE * 4);
    let engine = worker.block_on(engine([task.into()]));
    worker.block_on(async { engine.start("once", &("job", Value::Null)).await.unwrap() });
    let line = observer.block_on(board.call());
    drop(engine);
    worker.shutdown_timeout(PATIENCE);
    observer.block_on(dies(line));
}

/// What a program writes to stderr is a sign of life: this one has less time between two than it takes in all.
#[tokio::test]
async fn a_program_that_writes_to_stderr_gives_signs_of_life() {
    async fn watchful(ctx: Ctx, (): ()) -> outlast::Result<Value> {
        ctx.task("job", &()).heartbeat(SOON).retry(Retry::never()).await
    }
    let program = "import sys, time\nfor i in range(28):\n    print(i, file=sys.stderr, flush=True)\n    time.sleep(0.25)\nprint(1)";
    let handler: Handler = python(program).into();
    let engine = Outlast::memory().workflow("watchful", watchful).handler(handler).start().await.unwrap();
    assert_eq!(engine.start("watchful", &()).await.unwrap().result::<Value>().await.unwrap(), 1);
    leave(&engine).await;
    // And one that does not has none.
    let silent: Handler = python("import time; time.sleep(1000)").grace(Duration::from_millis(100)).into();
    let engine = Outlast::memory().workflow("watchful", watchful).handler(silent).start().await.unwrap();
    let error = engine.start("watchful", &()).await.unwrap().result::<Value>().await.unwrap_err();
    assert!(error.to_string().contains("no sign of life"), "{error}");
    leave(&engine).await;
}

/// Issue: "stderr kept with the attempt", also while it runs.
#[tokio::test]
async fn what_a_program_writes_to_stderr_is_shown_while_it_runs() {
    let store: Arc<dyn Store> = Arc::new(MemoryStore::new(Clock::System, Limits::default()));
    let handler: Handler = sh("echo half done >&2; exec sleep 1000").grace(Duration::from_millis(100)).into();
    let enqueue = async |ctx: Ctx, (): ()| ctx.task::<()>("job", &()).await;
    let engine = Outlast::store(Arc::clone(&store)).workflow("enqueue", enqueue).handler(handler);
    let engine = engine.start().await.unwrap();
    engine.start("enqueue", &()).await.unwrap();
    let shown = async {
        let mut look = tokio::time::interval(Duration::from_millis(10));
        loop {
            look.tick().await;
            let tasks = store.tasks(TaskFilter::all(Namespace::default_namespace())).await.unwrap().tasks;
            if let Some(note) = tasks.into_iter().find_map(|task| task.note) {
                return String::from_utf8(note.to_vec()).unwrap();
            }
        }
    };
    let shown = tokio::time::timeout(PATIENCE, shown).await.expect("it is shown in time");
    assert_eq!(shown, "{\"stderr\":\"half done\\n\"}");
    leave(&engine).await;
}

#[tokio::test]
async fn many_programs_run_beside_each_other() {
    let handlers = || [sh("cat").concurrency(4).into()];
    let tasks = (0..24).map(|number| async move { perform(handlers(), "job", &json!(number)).await.unwrap() });
    let results = futures_util::future::join_all(tasks).await;
    assert_eq!(results, (0..24).map(Value::from).collect::<Vec<_>>());
}
