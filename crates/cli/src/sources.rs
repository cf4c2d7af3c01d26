//! Workflows that are files, and what lies beside them.

use std::collections::BTreeSet;
use std::ffi::OsStr;
use std::fs;
use std::path::{Path, PathBuf};

use anyhow::{Context, Result};
use outlast::{Handler, Outlast};
use outlast_flow::Flow;
use outlast_script::{Diagnostics, Script};
use outlast_tasks::{Options, TaskConfig, builtins};

use crate::commands::mistakes;
use crate::exit::{Exit, Stop};
use crate::words::shell;

/// How many files beside the one that is run are looked at.
const BESIDE_MAX: usize = 1_000;

/// What a file is written in.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Style {
    /// `.wf`
    Script,
    /// `.flow.yaml`, `.flow.yml`, `.flow.json`
    Flow,
}

impl Style {
    fn of(path: &Path) -> Option<Style> {
        let name = path.file_name()?.to_str()?;
        let is_flow = [".flow.yaml", ".flow.yml", ".flow.json"].iter().any(|end| name.ends_with(end));
        match (is_flow, path.extension() == Some(OsStr::new("wf"))) {
            (true, _) => Some(Style::Flow),
            (false, true) => Some(Style::Script),
            (false, false) => None,
        }
    }
}

/// A file that workflows are written in.
#[derive(Clone, Debug)]
pub(crate) struct Source {
    pub(crate) path: PathBuf,
    pub(crate) text: String,
    pub(crate) style: Style,
}

/// A text that can be run.
pub(crate) enum Compiled {
    Script(Script),
    Flow(Flow),
}

impl Compiled {
    pub(crate) fn workflows(&self) -> Vec<String> {
        match self {
            Compiled::Script(script) => script.workflows().into_iter().map(str::to_owned).collect(),
            Compiled::Flow(flow) => vec![flow.name().to_owned()],
        }
    }

    pub(crate) fn version(&self) -> &str {
        match self {
            Compiled::Script(script) => script.version(),
            Compiled::Flow(flow) => flow.version(),
        }
    }

    pub(crate) fn warnings(&self) -> &Diagnostics {
        match self {
            Compiled::Script(script) => script.warnings(),
            Compiled::Flow(flow) => flow.warnings(),
        }
    }
}

impl Source {
    /// Reads a file. What it is written in is known by the end of its name.
    pub(crate) fn read(path: &Path) -> Result<Source> {
        let shown = path.display();
        if !path.exists() {
            let stop = Stop::new(Exit::NotFound, format!("there is no file {shown}"));
            let beside = files_in(folder(path));
            return Err(match beside.as_slice() {
                [] => stop.hint("workflows are files that end in .wf or .flow.yaml").into(),
                found => stop.hint(format!("here are {}", listed(found))).into(),
            });
        }
        if path.is_dir() {
            let message = format!("{shown} is a folder");
            let found = files_in(path);
            let hint =
                if found.is_empty() { "name a file".to_owned() } else { format!("in it are {}", listed(&found)) };
            return Err(Stop::new(Exit::Usage, message).hint(hint).into());
        }
        let Some(style) = Style::of(path) else {
            let hint = "scripts end in .wf, flows in .flow.yaml";
            return Err(Stop::new(Exit::Usage, format!("{shown} is neither a script nor a flow")).hint(hint).into());
        };
        let text = fs::read_to_string(path).with_context(|| format!("{shown} cannot be read"))?;
        Ok(Source { path: path.to_owned(), text, style })
    }

    /// The name of the file alone: what a text is stored under does not depend on where it lay.
    pub(crate) fn name(&self) -> String {
        self.path.file_name().unwrap_or_default().to_string_lossy().into_owned()
    }

    /// Reads, checks and compiles it; or what is wrong with it, each with its line.
    pub(crate) fn compile(&self) -> Result<Compiled, Diagnostics> {
        // The whole path is in the messages, so that editors and people find the place. The name of a script without
        // `workflow` is made from the end of it.
        let name = self.path.to_string_lossy();
        match self.style {
            Style::Script => Script::compile(&name, &self.text).map(Compiled::Script),
            Style::Flow => Flow::parse(&name, &self.text).map(Compiled::Flow),
        }
    }

    fn define(&self, engine: Outlast) -> Outlast {
        match self.style {
            Style::Script => engine.script(&self.name(), &self.text),
            Style::Flow => engine.flow(&self.name(), &self.text),
        }
    }
}

fn folder(path: &Path) -> &Path {
    path.parent().filter(|folder| !folder.as_os_str().is_empty()).unwrap_or(Path::new("."))
}

/// The workflows in a folder, in the order of their names.
pub(crate) fn files_in(folder: &Path) -> Vec<PathBuf> {
    let entries = fs::read_dir(folder).into_iter().flatten().flatten();
    let mut found: Vec<PathBuf> =
        entries.map(|entry| entry.path()).filter(|path| Style::of(path).is_some()).take(BESIDE_MAX).collect();
    found.sort();
    found.into_iter().map(|path| path.strip_prefix("./").map(Path::to_owned).unwrap_or(path)).collect()
}

fn listed(paths: &[PathBuf]) -> String {
    const SHOWN_MAX: usize = 8;
    let names = paths.iter().take(SHOWN_MAX).map(|path| shell(&path.to_string_lossy()));
    let names = names.collect::<Vec<_>>().join(", ");
    if paths.len() > SHOWN_MAX { format!("{names} and {} more", paths.len() - SHOWN_MAX) } else { names }
}

/// A file to run, and what it can use: the other workflows of its folder, and the tasks of the `outlast.toml` there.
pub(crate) struct Folder {
    pub(crate) main: Source,
    pub(crate) compiled: Compiled,
    others: Vec<Source>,
    handlers: Vec<Handler>,
    /// What is left out, and why.
    pub(crate) notes: Vec<String>,
}

impl Folder {
    /// Reads everything. Only a mistake in the file itself, or in `outlast.toml`, is a reason to stop.
    pub(crate) fn around(path: &Path) -> Result<Folder> {
        let main = Source::read(path)?;
        let compiled = main.compile().map_err(mistakes)?;
        let mut read = Folder { main, compiled, others: Vec::new(), handlers: tasks(folder(path))?, notes: Vec::new() };
        read.look_around(path);
        Ok(read)
    }

    fn look_around(&mut self, path: &Path) {
        let mut taken: BTreeSet<String> = self.compiled.workflows().into_iter().collect();
        for file in files_in(folder(path)) {
            if file.file_name() == path.file_name() {
                continue;
            }
            let Ok(source) = Source::read(&file) else { continue };
            let Ok(compiled) = source.compile() else {
                let shown = shell(&file.to_string_lossy());
                self.notes.push(format!("{shown} has mistakes and is left out; see `outlast check {shown}`"));
                continue;
            };
            let names = compiled.workflows();
            if let Some(name) = names.iter().find(|name| taken.contains(*name)) {
                self.notes.push(format!("{} is left out: another file has a workflow {name:?} too", file.display()));
                continue;
            }
            taken.extend(names);
            self.others.push(source);
        }
    }

    /// The workflow to run: the one that was asked for, or the one with the file's name, or the first.
    pub(crate) fn workflow(&self, asked: Option<&str>) -> Result<String> {
        let names = self.compiled.workflows();
        if let Some(name) = asked {
            let known = || {
                let message = format!("{} has no workflow {name:?}", self.main.path.display());
                Stop::new(Exit::NotFound, message).hint(format!("it has {}", names.join(", ")))
            };
            return names.iter().find(|known| *known == name).cloned().ok_or_else(|| known().into());
        }
        let stem = self.main.path.file_stem().and_then(OsStr::to_str).unwrap_or_default();
        let chosen = names.iter().find(|name| *name == stem).or(names.first());
        let none = || Stop::new(Exit::Error, format!("{} has no workflow", self.main.path.display()));
        chosen.cloned().ok_or_else(|| none().into())
    }

    /// The tasks that can be done here.
    pub(crate) fn tasks(&self) -> BTreeSet<String> {
        self.handlers.iter().map(|handler| handler.name().to_owned()).collect()
    }

    /// Gives an engine all of it.
    pub(crate) fn register(self, engine: Outlast) -> Outlast {
        let engine = self.handlers.into_iter().fold(engine, Outlast::handler);
        std::iter::once(&self.main).chain(&self.others).fold(engine, |engine, source| source.define(engine))
    }
}

/// The tasks of a folder, and those that are always there. A folder may have its own of the same name.
fn tasks(folder: &Path) -> Result<Vec<Handler>> {
    let config = folder.join("outlast.toml");
    let config = config.strip_prefix("./").unwrap_or(&config);
    let mut handlers = if config.exists() { TaskConfig::from_file(config)? } else { Vec::new() };
    let named: BTreeSet<String> = handlers.iter().map(|handler| handler.name().to_owned()).collect();
    handlers.extend(builtins(Options::default()).into_iter().filter(|builtin| !named.contains(builtin.name())));
    Ok(handlers)
}
