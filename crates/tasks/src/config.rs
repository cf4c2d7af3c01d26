//! Command tasks in `outlast.toml`.

mod error;
mod value;

use std::fs;
use std::path::{Path, PathBuf};

use outlast::{Handler, QueueName, TaskName};
use toml::Spanned;
use toml::de::{DeTable, DeValue};

use crate::CommandTask;
pub use error::ConfigError;
use error::{Place, nearest};
use value::{byte_count, duration, exit_code, positive, text, texts};

/// What may be said of a task.
const KEYS: [&str; 9] =
    ["command", "concurrency", "cwd", "env", "grace", "output_limit", "permanent_exit_codes", "queue", "timeout"];

/// The most that `output_limit` can be: nothing larger can be stored.
const OUTPUT_BYTES_CEILING: usize = 16 * 1024 * 1024;

/// The `[tasks]` of an `outlast.toml`: any program as a task.
///
/// ```
/// use outlast_tasks::TaskConfig;
///
/// let handlers = TaskConfig::from_toml(r#"tasks.charge = { command = ["python3", "charge.py"] }"#, "/srv/shop")?;
/// assert_eq!(handlers.len(), 1);
///
/// let wrong = "[tasks.charge]\ncommand = ['python3']\ntimout = '30s'";
/// let error = TaskConfig::from_toml(wrong, ".").err().expect("a wrong key");
/// assert_eq!(error.to_string(), "line 3: tasks.charge.timout: there is no such key; did you mean `timeout`?");
/// # Ok::<(), outlast_tasks::ConfigError>(())
/// ```
#[derive(Debug)]
#[non_exhaustive]
pub struct TaskConfig;

impl TaskConfig {
    /// A handler for each of the tasks in a text. Directories are relative to `base_dir`. Whatever else is in the text is not
    /// looked at.
    pub fn from_toml(text: &str, base_dir: impl AsRef<Path>) -> Result<Vec<Handler>, ConfigError> {
        let document = DeTable::parse(text).map_err(|error| {
            Place { text, key: Vec::new(), at: error.span().unwrap_or_default() }.error(error.message().to_owned())
        })?;
        let place = Place { text, key: Vec::new(), at: document.span() };
        let document = document.into_inner();
        let Some((key, tasks)) = document.get_key_value("tasks") else {
            return none_or_misspelt(&document, &place);
        };
        let place = place.inside("tasks", key.span());
        let tasks = table(tasks, &place)?;
        tasks.iter().map(|(name, task)| handler(name, task, &place, base_dir.as_ref())).collect()
    }

    /// A handler for each of the tasks in a file. Directories are relative to the file's.
    pub fn from_file(path: impl AsRef<Path>) -> Result<Vec<Handler>, ConfigError> {
        let path = path.as_ref();
        let text = fs::read_to_string(path).map_err(|error| ConfigError::unreadable(path, error))?;
        // A name alone lies here; no program can be started in a folder without a name.
        let base = path.parent().filter(|folder| !folder.as_os_str().is_empty()).unwrap_or(Path::new("."));
        TaskConfig::from_toml(&text, base).map_err(|error| error.in_file(path))
    }
}

/// A file without tasks has none; one that nearly has them has a mistake.
fn none_or_misspelt(document: &DeTable<'_>, place: &Place<'_>) -> Result<Vec<Handler>, ConfigError> {
    let misspelt = document.keys().find(|key| nearest(key.get_ref(), &["tasks"]).is_some());
    match misspelt {
        Some(key) => {
            Err(place.inside(key.get_ref(), key.span()).error("tasks are in `tasks`: `[tasks.charge]`".to_owned()))
        }
        None => Ok(Vec::new()),
    }
}

fn table<'t, 'i>(value: &'t Spanned<DeValue<'i>>, place: &Place<'_>) -> Result<&'t DeTable<'i>, ConfigError> {
    value.get_ref().as_table().ok_or_else(|| {
        let found = value.get_ref().type_str();
        place
            .error(format!("a table is expected here, and not {found}; write `[tasks.charge]` and `command = [\"…\"]`"))
    })
}

fn handler(
    name: &Spanned<std::borrow::Cow<'_, str>>,
    task: &Spanned<DeValue<'_>>,
    place: &Place<'_>,
    base: &Path,
) -> Result<Handler, ConfigError> {
    let place = place.inside(name.get_ref(), name.span());
    TaskName::new(name.get_ref()).map_err(|error| place.error(error.to_string()))?;
    let task = table(task, &place)?;
    known_keys(task, &place)?;
    let command = match task.get_key_value("command") {
        Some((key, command)) => texts(command, &place.inside("command", key.span()))?,
        None => return Err(place.error("`command` is missing: `command = [\"python3\", \"charge.py\"]`".to_owned())),
    };
    if command.first().is_none_or(String::is_empty) {
        let message = "names no program: `command = [\"python3\", \"charge.py\"]`".to_owned();
        return Err(place.inside("command", key_span(task, "command")).error(message));
    }
    let mut read = CommandTask::new(name.get_ref(), command).cwd(base);
    for (key, value) in task {
        read = set(read, key.get_ref(), value, &place.inside(key.get_ref(), key.span()), base)?;
    }
    Ok(read.into())
}

fn key_span(table: &DeTable<'_>, key: &str) -> std::ops::Range<usize> {
    table.get_key_value(key).map(|(key, _)| key.span()).unwrap_or_default()
}

fn known_keys(task: &DeTable<'_>, place: &Place<'_>) -> Result<(), ConfigError> {
    for (key, value) in task {
        let name: &str = key.get_ref();
        if KEYS.contains(&name) {
            continue;
        }
        let place_of_key = place.inside(name, key.span());
        let hint = match nearest(name, &KEYS) {
            Some(key) => format!("did you mean `{key}`?"),
            // `[tasks.billing.charge]` is a table in a table.
            None if value.get_ref().is_table() => {
                let whole = format!("{}.{name}", place.key.last().map_or("", String::as_str));
                format!("a task with a `.` in its name is written with quotes: `[tasks.\"{whole}\"]`")
            }
            None => format!("there are {}", KEYS.join(", ")),
        };
        return Err(place_of_key.error(format!("there is no such key; {hint}")));
    }
    Ok(())
}

fn set(
    task: CommandTask,
    key: &str,
    value: &Spanned<DeValue<'_>>,
    place: &Place<'_>,
    base: &Path,
) -> Result<CommandTask, ConfigError> {
    Ok(match key {
        "timeout" => task.timeout(duration(value, place)?),
        "grace" => task.grace(duration(value, place)?),
        "cwd" => task.cwd(directory(base, &text(value, place)?)),
        "env" => task.env(variables(value, place)?),
        "output_limit" => task.output_limit(byte_count(value, place, OUTPUT_BYTES_CEILING)?),
        "concurrency" => task.concurrency(positive(value, place)?),
        "permanent_exit_codes" => task.permanent_exit_codes(value::list(value, place, exit_code)?),
        "queue" => {
            let queue = text(value, place)?;
            QueueName::new(&queue).map_err(|error| place.error(error.to_string()))?;
            task.queue(&queue)
        }
        // The command itself, which is read already; there are no others.
        _ => task,
    })
}

fn directory(base: &Path, directory: &str) -> PathBuf {
    base.join(directory)
}

fn variables(value: &Spanned<DeValue<'_>>, place: &Place<'_>) -> Result<Vec<String>, ConfigError> {
    let names = texts(value, place)?;
    for name in &names {
        if name.is_empty() || name.contains(['=', '\0']) {
            let message =
                format!("`{name}` is no name of a variable; name those of the worker's that the program may see");
            return Err(place.error(message));
        }
        if name.starts_with("OUTLAST_") {
            return Err(
                place.error(format!("`{name}` cannot be passed on: OUTLAST_… says what is known of the attempt"))
            );
        }
    }
    Ok(names)
}
