//! Tasks that are always there.

use std::collections::BTreeMap;

use outlast::{Handler, TaskContext};
use serde::Deserialize;
use serde_json::Value;
use serde_json::value::RawValue;

use crate::http::{self, HttpOptions};

/// How the built-in tasks behave.
#[derive(Clone, Debug, Default)]
pub struct Options {
    http: HttpOptions,
}

impl Options {
    /// How `http.request` behaves: above all, which addresses it may reach.
    #[must_use]
    pub fn http(mut self, http: HttpOptions) -> Options {
        self.http = http;
        self
    }
}

/// The built-in tasks: `http.request`, `log` and `noop`.
///
/// ```
/// use outlast::Outlast;
/// use outlast_tasks::{HttpOptions, Options, builtins};
///
/// let options = Options::default().http(HttpOptions::default().allow("10.1.0.0/16")?);
/// let mut engine = Outlast::memory();
/// for handler in builtins(options) {
///     engine = engine.handler(handler);
/// }
/// # drop(engine);
/// # Ok::<(), outlast_tasks::InvalidAllow>(())
/// ```
pub fn builtins(options: Options) -> Vec<Handler> {
    vec![http::handler(options.http), Handler::new("log", log), Handler::new("noop", noop)]
}

/// Gives back what it is given.
async fn noop(_: TaskContext, args: Box<RawValue>) -> outlast::Result<Box<RawValue>> {
    Ok(args)
}

#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
struct Line {
    #[serde(default)]
    level: Level,
    message: String,
    #[serde(default)]
    fields: BTreeMap<String, Value>,
}

#[derive(Clone, Copy, Default, Deserialize)]
#[serde(rename_all = "lowercase")]
enum Level {
    Trace,
    Debug,
    #[default]
    Info,
    Warn,
    Error,
}

/// Writes a line to the worker's log. Names of fields are known to `tracing` only when a program is built, so that they are
/// written together.
async fn log(context: TaskContext, line: Line) -> outlast::Result<()> {
    let Line { level, message, fields } = line;
    let fields = if fields.is_empty() { None } else { serde_json::to_string(&fields).ok() };
    let (task, run) = (context.id().as_str(), context.run_id().map(|run| run.as_str()));
    macro_rules! write_line {
        ($level:ident) => {
            tracing::event!(target: "outlast_tasks::log", tracing::Level::$level, run, task, fields, "{message}")
        };
    }
    match level {
        Level::Trace => write_line!(TRACE),
        Level::Debug => write_line!(DEBUG),
        Level::Info => write_line!(INFO),
        Level::Warn => write_line!(WARN),
        Level::Error => write_line!(ERROR),
    }
    Ok(())
}
