//! What the stories share.

use std::time::Duration;

use outlast::{Ctx, Engine, Handler, Outlast, Retry};
use outlast_tasks::{CommandTask, HttpOptions, Options, builtins};
use serde::{Deserialize, Serialize};
use serde_json::Value;

/// Longer than anything here may take.
pub(crate) const PATIENCE: Duration = Duration::from_secs(30);

/// A task's error, as a workflow sees it.
#[derive(Debug, Serialize, Deserialize)]
pub(crate) struct Told {
    pub(crate) code: String,
    pub(crate) message: String,
    pub(crate) permanent: bool,
    pub(crate) data: Option<Value>,
}

impl Told {
    #[track_caller]
    pub(crate) fn says(&self, code: &str, parts: &[&str]) {
        assert_eq!(self.code, code, "{self:?}");
        for part in parts {
            assert!(self.message.contains(part), "`{part}` is not in {self:?}");
        }
    }

    pub(crate) fn data(&self, key: &str) -> &Value {
        &self.data.as_ref().unwrap()[key]
    }
}

/// Has one task done, once, and tells its result or its error.
async fn once(ctx: Ctx, (name, args): (String, Value)) -> outlast::Result<Result<Value, Told>> {
    let done = ctx.task::<Value>(&name, &args).retry(Retry::never()).await;
    Ok(done.map_err(|error| Told {
        code: error.code().to_owned(),
        message: error.message().to_owned(),
        permanent: error.is_permanent(),
        data: error.data(),
    }))
}

/// An engine with these handlers and the workflow `once`.
pub(crate) async fn engine(handlers: impl IntoIterator<Item = Handler>) -> Engine {
    let mut engine = Outlast::memory().workflow("once", once);
    for handler in handlers {
        engine = engine.handler(handler);
    }
    engine.start().await.unwrap()
}

/// Has one task done by an engine of its own.
pub(crate) async fn perform(
    handlers: impl IntoIterator<Item = Handler>,
    name: &str,
    args: &Value,
) -> Result<Value, Told> {
    let engine = engine(handlers).await;
    let run = engine.start("once", &(name, args)).id("run-1").await.unwrap();
    let result = tokio::time::timeout(PATIENCE, run.result()).await.expect("it ends in time");
    leave(&engine).await;
    result.unwrap()
}

/// Ends an engine, after the doctor's visit.
pub(crate) async fn leave(engine: &Engine) {
    assert_eq!(engine.doctor().await.unwrap().findings, [], "the doctor has found something");
    engine.shutdown().await;
}

/// Has a program do a task.
pub(crate) async fn command(task: CommandTask, args: &Value) -> Result<Value, Told> {
    perform([task.into()], "job", args).await
}

/// The task `job`, done by a Python program.
pub(crate) fn python(program: &str) -> CommandTask {
    CommandTask::new("job", ["python3", "-c", program])
}

/// The task `job`, done by a shell.
pub(crate) fn sh(script: &str) -> CommandTask {
    CommandTask::new("job", ["sh", "-c", script])
}

/// Sends a request.
pub(crate) async fn request(options: HttpOptions, args: &Value) -> Result<Value, Told> {
    perform(builtins(Options::default().http(options)), "http.request", args).await
}

/// Requests may reach this machine, at its usual address.
pub(crate) fn local() -> HttpOptions {
    HttpOptions::default().allow("127.0.0.1").unwrap()
}
