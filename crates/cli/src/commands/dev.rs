//! `outlast dev`: a server for the folder somebody works in. It follows what they write.

use std::collections::BTreeMap;
use std::path::{Path, PathBuf};
use std::time::Instant;

use anyhow::{Context, Result};
use clap::Args;
use outlast::Engine;
use outlast_server::{Mistakes, Options, Server};

use super::serve::{LISTEN, Signals, unbound, until_stopped};
use crate::commands::run::refused;
use crate::database::DatabaseArgs;
use crate::exit::{Exit, Stop};
use crate::output::note;
use crate::palette::Palette;
use crate::progress::{Screen, show_logs};
use crate::site::{Changed, Settings, Site, Watch};
use crate::sources::{Source, files_in};
use crate::words::shell;

/// Where the folder says what else there is.
const CONFIG: &str = "outlast.toml";
/// How long what runs has to end after Ctrl-C. Whatever it does not finish is done again.
const GRACE: std::time::Duration = std::time::Duration::from_secs(2);

/// Serve a folder while you work on it: its workflows and outlast.toml are read again whenever they change
#[derive(Debug, Args)]
#[command(
    after_help = "Runs are kept in .outlast/ in the folder, and go on when it is started again. A file with a mistake is \
                        named, and what it said before holds."
)]
pub(crate) struct Dev {
    /// The folder
    #[arg(default_value = ".")]
    dir: PathBuf,
    /// The address to listen on, which must be a loopback address
    #[arg(long, value_name = "ADDRESS", env = "OUTLAST_LISTEN", default_value = LISTEN)]
    listen: String,
    #[command(flatten)]
    database: DatabaseArgs,
}

pub(crate) async fn dev(asked: Dev) -> Result<Exit> {
    #[expect(clippy::disallowed_methods, reason = "for people: how long it took")]
    let since = Instant::now();
    let signals = Signals::new()?;
    let entered = std::env::set_current_dir(&asked.dir);
    entered.map_err(|error| {
        let message = format!("{} cannot be worked in: {error}", asked.dir.display());
        Stop::new(Exit::NotFound, message).hint(format!("mkdir -p {}", shell(&asked.dir.to_string_lossy())))
    })?;
    show_logs(Screen::stderr(false));
    // Before it is read: what changes meanwhile is read again.
    let watch = Watch::new(Path::new(CONFIG), Some(Path::new(".")));
    let mistakes = Mistakes::default();
    let settings = settings_or_none(&mistakes);
    let database = asked.database.get();
    let builder = settings.register(database.create()?).grace(GRACE);
    let engine = builder.start().await.map_err(|error| refused(error, &database))?;
    let served = begin(&engine, &asked, settings, mistakes).await;
    let (bound, mut folder) = match served {
        Ok(begun) => begun,
        Err(error) => {
            engine.shutdown().await;
            return Err(error);
        }
    };
    let palette = Palette::stderr();
    note(&format!("{} {database}", label("database")));
    note(&format!("{} {}", palette.good("✓"), palette.bold(&format!("http://{}", bound.address()))));
    note(&format!("  ready in {} ms; Ctrl-C stops it", since.elapsed().as_millis()));
    until_stopped(&engine, bound, signals, async { folder.follow(watch).await }).await
}

async fn begin(
    engine: &Engine,
    asked: &Dev,
    settings: Settings,
    mistakes: Mistakes,
) -> Result<(outlast_server::Bound, Folder)> {
    let site = Site::new(engine.clone(), &settings)?;
    let (access, hooks, sql) = (site.access(false), site.hooks(), settings.server.sql);
    let requests_per_second = settings.server.requests_per_second;
    let mistakes_shown = mistakes.clone();
    let options = Options {
        access,
        hooks,
        sql,
        requests_per_second,
        drain: GRACE,
        mistakes: mistakes_shown,
        ..Options::default()
    };
    let bound = Server::new(engine.clone(), options).bind(&asked.listen).await.map_err(unbound)?;
    let mut folder = Folder { site, names: BTreeMap::new(), mistakes };
    note(&format!("outlast {} in {}", env!("CARGO_PKG_VERSION"), here()?));
    folder.put(files_in(Path::new("."))).await;
    folder.tell(&settings);
    if let Err(error) = folder.site.put_schedules(&settings).await {
        complain(&folder.mistakes, CONFIG, &error);
    }
    Ok((bound, folder))
}

fn here() -> Result<String> {
    Ok(std::env::current_dir().context("there is no current folder")?.display().to_string())
}

/// A mistake in the file is no reason not to begin: it is about to be mended.
fn settings_or_none(mistakes: &Mistakes) -> Settings {
    Settings::read(Path::new(CONFIG)).unwrap_or_else(|error| {
        complain(mistakes, CONFIG, &error);
        Settings::none()
    })
}

/// The folder, as it was read last.
struct Folder {
    site: Site,
    /// The workflows of each file.
    names: BTreeMap<PathBuf, Vec<String>>,
    /// For whoever looks at the page.
    mistakes: Mistakes,
}

impl Folder {
    /// Reads again what changes.
    async fn follow(&mut self, mut watch: Watch) {
        loop {
            let Changed { config, files, gone } = watch.changed().await;
            self.put(files.clone()).await;
            for file in files.iter().filter(|file| self.names.contains_key(*file)) {
                let names = self.names[file].join(", ");
                note(&format!("{} {} {names}", Palette::stderr().good("↻"), file.display()));
            }
            for file in gone {
                self.mistakes.none_in(&file.display().to_string());
                if let Some(names) = self.names.remove(&file) {
                    let names = names.join(", ");
                    let line =
                        format!("{} is gone; {names} can still be started until another file has it", file.display());
                    note(&format!("{} {line}", Palette::stderr().warn("note:")));
                }
            }
            if config {
                self.take_settings().await;
            }
        }
    }

    async fn take_settings(&mut self) {
        let taken = match Settings::read(Path::new(CONFIG)) {
            Ok(settings) => {
                self.tell(&settings);
                self.site.take(settings).await
            }
            Err(error) => Err(error),
        };
        match taken {
            Ok(()) => {
                self.mistakes.none_in(CONFIG);
                note(&format!("{} {CONFIG}", Palette::stderr().good("↻")));
            }
            Err(error) => complain(&self.mistakes, CONFIG, &error),
        }
    }

    /// Puts the workflows of files. What is wrong with one is said, and the others are put.
    async fn put(&mut self, files: Vec<PathBuf>) {
        for file in files {
            let shown = file.display().to_string();
            let put = match Source::read(&file) {
                Ok(source) => self.put_one(&file, &source).await,
                Err(error) => Err(error),
            };
            match put {
                Ok(names) => {
                    self.mistakes.none_in(&shown);
                    self.names.insert(file, names);
                }
                Err(error) => complain(&self.mistakes, &shown, &error),
            }
        }
    }

    async fn put_one(&self, file: &Path, source: &Source) -> Result<Vec<String>> {
        let names = source.compile().map_err(crate::commands::mistakes)?.workflows();
        let others = self.names.iter().filter(|(other, _)| *other != file);
        if let Some((other, name)) = others
            .flat_map(|(other, names)| names.iter().map(move |name| (other, name)))
            .find(|(_, name)| names.contains(name))
        {
            let message = format!("it is left out: {} has a workflow {name:?} too", other.display());
            return Err(Stop::new(Exit::Error, message).into());
        }
        self.site.put(source).await
    }

    /// What was found.
    fn tell(&self, settings: &Settings) {
        for (file, names) in &self.names {
            note(&format!(
                "{} {}  {}",
                label("workflow"),
                names.join(", "),
                Palette::stderr().dim(&file.display().to_string())
            ));
        }
        if self.names.is_empty() {
            note(&format!("{} none yet: write NAME.wf or NAME.flow.yaml here", label("workflow")));
        }
        note(&format!("{} {}", label("tasks"), settings.tasks().join(", ")));
        for schedule in &settings.schedules {
            note(&format!("{} {}: {} {}", label("schedule"), schedule.id, schedule.workflow, schedule.when));
        }
        for token in &settings.server.tokens {
            note(&format!("{} {} in {}", label("token"), token.name, token.namespace));
        }
        for hook in &settings.server.hooks {
            note(&format!("{} {}", label("webhook"), hook.name));
        }
    }
}

fn label(text: &str) -> String {
    Palette::stderr().dim(&format!("  {text:<9}"))
}

/// What is wrong with a file. Nothing stops for it.
fn complain(mistakes: &Mistakes, file: &str, error: &anyhow::Error) {
    mistakes.found(file, &format!("{error:#}"));
    let report = error.downcast_ref::<Stop>().is_some_and(Stop::is_report);
    if report {
        note(&format!("{error}"));
    } else {
        note(&format!("{} {file}: {error:#}", Palette::stderr().bad("error:")));
    }
    note(&format!("{} {file} has a mistake; what it said before holds", Palette::stderr().warn("note:")));
}
