//! An `outlast.toml`.

use std::collections::BTreeSet;
use std::fs;
use std::path::Path;

use anyhow::{Context, Result};
use outlast::{Handler, Outlast};
use outlast_server::ServerConfig;
use outlast_tasks::{Options, TaskConfig, builtins};
use serde::Deserialize;
use serde::de::IgnoredAny;

use super::schedules::{Planned, Plans};
use crate::exit::{Exit, Stop};

/// What an `outlast.toml` says.
pub(crate) struct Settings {
    pub(crate) server: ServerConfig,
    /// Those of the file, and those that are always there.
    pub(crate) handlers: Vec<Handler>,
    pub(crate) schedules: Vec<Planned>,
}

/// All that can be in the file. A section that is misspelt would otherwise be a server without tokens.
#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
struct Sections {
    #[serde(default, rename = "tasks")]
    _tasks: IgnoredAny,
    #[serde(default, rename = "server")]
    _server: IgnoredAny,
    #[serde(default, rename = "tokens")]
    _tokens: IgnoredAny,
    #[serde(default, rename = "hooks")]
    _hooks: IgnoredAny,
    #[serde(default)]
    schedules: Plans,
}

impl Settings {
    /// What holds without a file.
    pub(crate) fn none() -> Settings {
        Settings { server: ServerConfig::default(), handlers: with_builtins(Vec::new()), schedules: Vec::new() }
    }

    /// Reads a file; it says nothing if it is not there.
    pub(crate) fn read(file: &Path) -> Result<Settings> {
        let shown = file.display();
        if !file.exists() {
            return Ok(Settings::none());
        }
        let text = fs::read_to_string(file).with_context(|| format!("{shown} cannot be read"))?;
        let base = file.parent().filter(|folder| !folder.as_os_str().is_empty()).unwrap_or(Path::new("."));
        let refused = |error: &dyn std::fmt::Display| Stop::new(Exit::Error, format!("{shown}: {error}"));
        let handlers = TaskConfig::from_toml(&text, base).map_err(|error| refused(&error))?;
        let sections: Sections = toml::from_str(&text).map_err(|error| refused(&error))?;
        let server =
            ServerConfig::from_toml(&text, |name| std::env::var(name).ok()).map_err(|error| refused(&error))?;
        let schedules = sections.schedules.read().map_err(|error| refused(&error))?;
        Ok(Settings { server, handlers: with_builtins(handlers), schedules })
    }

    /// The names of the tasks.
    pub(crate) fn tasks(&self) -> Vec<&str> {
        self.handlers.iter().map(Handler::name).collect()
    }

    /// Gives an engine that is still to be started the handlers.
    pub(crate) fn register(&self, engine: Outlast) -> Outlast {
        self.handlers.iter().cloned().fold(engine, Outlast::handler)
    }
}

/// A file may have its own tasks of the same names.
fn with_builtins(mut handlers: Vec<Handler>) -> Vec<Handler> {
    let named: BTreeSet<String> = handlers.iter().map(|handler| handler.name().to_owned()).collect();
    handlers.extend(builtins(Options::default()).into_iter().filter(|builtin| !named.contains(builtin.name())));
    handlers
}
