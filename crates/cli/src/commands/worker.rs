//! `outlast worker`: does the tasks of an `outlast.toml` for a server elsewhere, over the worker protocol.

mod attempt;
mod desk;

use std::path::PathBuf;
use std::sync::Arc;
use std::time::Duration;

use anyhow::Result;
use clap::Args;
use tokio::sync::watch;
use tokio::task::JoinSet;
use tracing::Level;
use uuid::Uuid;

use crate::api::Api;
use crate::commands::serve::Signals;
use crate::database::{Place, PlaceArgs};
use crate::exit::{Exit, Stop};
use crate::logs;
use crate::site::Settings;
use crate::words::parse_length;
use desk::{Desk, desks};

/// Do tasks for a server: those of outlast.toml, and the built-in ones
#[derive(Debug, Args)]
#[command(
    after_help = "It asks the server of --url or OUTLAST_URL, with the token in OUTLAST_TOKEN, which needs the scope `worker`. \
                  Logs are lines of JSON on standard error. SIGTERM or Ctrl-C drains: nothing new is taken, what is under way may end, \
                  and the rest is given back. `outlast workers` lists who works."
)]
pub(crate) struct Worker {
    /// Whose tasks are done
    #[arg(long, value_name = "FILE", default_value = "outlast.toml")]
    config: PathBuf,
    /// What it is called; no two may have one name [default: made of the host's name]
    #[arg(long, value_name = "NAME")]
    name: Option<String>,
    /// How many tasks of one queue it does at once
    #[arg(long, value_name = "TASKS", default_value_t = 8, value_parser = clap::value_parser!(u32).range(1..=256))]
    concurrency: u32,
    /// How long it may be silent before others are given its tasks
    #[arg(long, value_name = "TIME", value_parser = parse_length, default_value = "30s")]
    lease: Duration,
    /// How long tasks may take to end when it stops
    #[arg(long, value_name = "TIME", value_parser = parse_length, default_value = "10s")]
    drain: Duration,
    /// How much is logged: error, warn, info, debug or trace
    #[arg(long, value_name = "LEVEL", env = "OUTLAST_LOG", default_value = "info")]
    log: Level,
    #[command(flatten)]
    place: PlaceArgs,
}

/// What every part of a worker knows.
pub(crate) struct Work {
    api: Api,
    name: String,
    host: Option<String>,
    lease: Duration,
    stage: watch::Receiver<Stage>,
}

/// How far a worker is from its end.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub(crate) enum Stage {
    /// It takes what there is.
    Working,
    /// It takes nothing new.
    Draining,
    /// It gives back what it has.
    Stopping,
}

impl Work {
    /// Waits until it has come so far.
    async fn until(&self, stage: Stage) {
        let mut now = self.stage.clone();
        // Whoever says so lives as long as the worker.
        let _ = now.wait_for(|now| *now >= stage).await;
    }
}

pub(crate) async fn worker(asked: Worker) -> Result<Exit> {
    logs::write_json(asked.log);
    let Place::Server(url) = asked.place.get()? else {
        let message = "a worker asks a server, and none is named";
        let hint = "say --url http://HOST:PORT or OUTLAST_URL; on a database of its own `outlast serve` does the tasks";
        return Err(Stop::new(Exit::Usage, message).hint(hint).into());
    };
    let settings = Settings::read(&asked.config)?;
    let host = rustix::system::uname().nodename().to_str().ok().map(str::to_owned);
    let unique = Uuid::new_v4().simple().to_string();
    let name = asked.name.unwrap_or_else(|| format!("{}-{}", host.as_deref().unwrap_or("worker"), &unique[..8]));
    let (stage, now) = watch::channel(Stage::Working);
    let (server, tasks) = (url.to_string(), settings.tasks().join(", "));
    let api = Api::new(url, std::env::var("OUTLAST_TOKEN").ok())?;
    let work = Arc::new(Work { api, name, host, lease: asked.lease, stage: now });
    let desks = desks(settings.handlers, asked.concurrency);
    let queues = desks.iter().map(Desk::queue).collect::<std::collections::BTreeSet<_>>();
    let queues = queues.into_iter().collect::<Vec<_>>().join(", ");
    let mut signals = Signals::new()?;
    tracing::info!(worker = work.name, server, tasks, queues, "working");
    let mut open: JoinSet<Result<()>> = JoinSet::new();
    for desk in desks {
        let work = Arc::clone(&work);
        open.spawn(async move { desk.serve(&work).await });
    }
    tokio::select! {
        () = signals.next() => {}
        // It ends by itself only if the server will never give it anything.
        Some(Ok(Err(refused))) = open.join_next() => return Err(refused),
    }
    tracing::info!("stopping: what is under way may end");
    stage.send_replace(Stage::Draining);
    let ended = async { while open.join_next().await.is_some() {} };
    let drained = async {
        let mut ended = std::pin::pin!(ended);
        if tokio::time::timeout(asked.drain, &mut ended).await.is_err() {
            tracing::warn!("some tasks did not end in time, and are given back");
            stage.send_replace(Stage::Stopping);
            ended.await;
        }
    };
    tokio::select! {
        () = drained => Ok(Exit::Done),
        () = signals.next() => Ok(Exit::Interrupted),
    }
}
