//! `outlast serve`: the server, for production.

use std::future::pending;
use std::path::PathBuf;
use std::time::Duration;

use anyhow::{Context, Result};
use clap::Args;
use outlast::{Engine, Namespace};
use outlast_server::{Bound, Options, Server, ServerError, Tls};
use tokio::signal::unix::{Signal, SignalKind, signal};
use tokio::sync::oneshot;
use tracing::Level;

use crate::commands::run::refused;
use crate::database::DatabaseArgs;
use crate::exit::{Exit, Stop};
use crate::logs;
use crate::site::{Settings, Site, Watch};
use crate::sources::{Source, files_in};
use crate::traces::Traces;
use crate::words::parse_length;

/// Where a server listens if nobody says otherwise.
pub(crate) const LISTEN: &str = "127.0.0.1:7117";

/// Serve the API, and drive the runs of a database
#[derive(Debug, Args)]
#[command(
    after_help = "Logs are lines of JSON on standard error. SIGTERM or Ctrl-C drains: requests that are under way are answered, \
                  and other processes go on with the runs. outlast.toml has tasks, schedules, tokens and webhooks, and is \
                  read again when it changes."
)]
pub(crate) struct Serve {
    /// The address to listen on. Without tokens only a loopback address is taken
    #[arg(long, value_name = "ADDRESS", env = "OUTLAST_LISTEN", default_value = LISTEN)]
    listen: String,
    #[command(flatten)]
    database: DatabaseArgs,
    /// Tasks, schedules, tokens and webhooks
    #[arg(long, value_name = "FILE", default_value = "outlast.toml")]
    config: PathBuf,
    /// A folder whose workflows are put when the server starts
    #[arg(long, value_name = "DIR")]
    workflows: Option<PathBuf>,
    /// The namespace of these workflows and schedules, and of whoever needs no token
    #[arg(long, value_name = "NAME", default_value = "default", value_parser = parse_namespace)]
    namespace: Namespace,
    /// A chain of certificates (PEM): the server is asked over https
    #[arg(long, value_name = "FILE", requires = "tls_key")]
    tls_cert: Option<PathBuf>,
    /// The key of the certificate (PEM)
    #[arg(long, value_name = "FILE", requires = "tls_cert")]
    tls_key: Option<PathBuf>,
    /// A file to which every write is added: who, when, what
    #[arg(long, value_name = "FILE")]
    audit: Option<PathBuf>,
    /// Answer questions in SQL of admins of the namespace; they see every namespace. `sql = true` under [server] says the same
    #[arg(long)]
    sql: bool,
    /// A collector that is told of every run that ends, by OTLP over HTTP, such as http://127.0.0.1:4318
    #[arg(long, value_name = "URL", env = "OTEL_EXPORTER_OTLP_ENDPOINT")]
    otlp: Option<String>,
    /// How long runs are kept after they ended, such as 30d [default: for ever]
    #[arg(long, value_name = "TIME", value_parser = parse_length)]
    retention: Option<Duration>,
    /// How long requests and tasks may take to end when the server stops
    #[arg(long, value_name = "TIME", value_parser = parse_length, default_value = "10s")]
    drain: Duration,
    /// How much is logged: error, warn, info, debug or trace
    #[arg(long, value_name = "LEVEL", env = "OUTLAST_LOG", default_value = "info")]
    log: Level,
}

fn parse_namespace(text: &str) -> Result<Namespace, String> {
    Namespace::new(text).map_err(|error| error.to_string())
}

pub(crate) async fn serve(asked: Serve) -> Result<Exit> {
    logs::write_json(asked.log);
    raise_files();
    let settings = Settings::read(&asked.config)?;
    let engine = start(&asked, &settings).await?;
    let served = serve_on(&engine, &asked, settings).await;
    // After the server: what it answers last needs the engine.
    match served {
        Ok(exit) => Ok(exit),
        Err(error) => {
            engine.shutdown().await;
            Err(error)
        }
    }
}

/// A shell allows a thousand open files, which is a thousand connections at most. As many as the system allows are taken.
fn raise_files() {
    use rustix::process::{Resource, getrlimit, setrlimit};
    let mut limit = getrlimit(Resource::Nofile);
    limit.current = limit.maximum;
    // With fewer it works, too: whoever finds no room waits.
    let _ = setrlimit(Resource::Nofile, limit);
}

async fn start(asked: &Serve, settings: &Settings) -> Result<Engine> {
    let database = asked.database.get();
    let mut builder = settings.register(database.create()?).grace(asked.drain);
    if let Some(age) = asked.retention {
        builder = builder.retention(age);
    }
    let engine = builder.start().await.map_err(|error| refused(error, &database))?;
    let engine = engine.in_namespace(asked.namespace.as_str()).await?;
    tracing::info!(database = %database, namespace = %asked.namespace, "the database is open");
    Ok(engine)
}

async fn serve_on(engine: &Engine, asked: &Serve, settings: Settings) -> Result<Exit> {
    let site = Site::new(engine.clone(), &settings)?;
    for file in asked.workflows.as_deref().map(files_in).unwrap_or_default() {
        let workflows = site.put(&Source::read(&file)?).await?;
        tracing::info!(file = %file.display(), workflows = workflows.join(", "), "workflows were put");
    }
    site.put_schedules(&settings).await?;
    let has_tokens = !settings.server.tokens.is_empty();
    let tls = match (&asked.tls_cert, &asked.tls_key) {
        (Some(cert), Some(key)) => Some(Tls::read(cert, key)?),
        _ => None,
    };
    let scheme = if tls.is_some() { "https" } else { "http" };
    let options = Options {
        tls,
        access: site.access(has_tokens),
        hooks: site.hooks(),
        audit: asked.audit.clone(),
        drain: asked.drain,
        sql: asked.sql || settings.server.sql,
        requests_per_second: settings.server.requests_per_second,
        ..Options::default()
    };
    let signals = Signals::new()?;
    let bound = Server::new(engine.clone(), options).bind(&asked.listen).await.map_err(unbound)?;
    let (tasks, schedules) = (settings.handlers.len(), settings.schedules.len());
    let (tokens, hooks) = (settings.server.tokens.len(), settings.server.hooks.len());
    tracing::info!(address = %format!("{scheme}://{}", bound.address()), tasks, schedules, tokens, hooks, "listening");
    let watch = Watch::new(&asked.config, None);
    let traces = asked.otlp.as_deref().filter(|url| !url.is_empty()).map(Traces::to).transpose()?;
    let traced = async {
        if let Some(traces) = traces {
            traces.follow(engine.clone()).await;
        }
    };
    let meanwhile = async {
        tokio::join!(reload(&site, &asked.config, watch), traced);
    };
    until_stopped(engine, bound, signals, meanwhile).await
}

/// Takes the file's new settings whenever it changes.
async fn reload(site: &Site, config: &std::path::Path, mut watch: Watch) {
    loop {
        watch.changed().await;
        let taken = match Settings::read(config) {
            Ok(settings) => site.take(settings).await,
            Err(error) => Err(error),
        };
        match taken {
            Ok(()) => tracing::info!(file = %config.display(), "the file has changed, and was read again"),
            Err(error) => {
                let error = format!("{error:#}");
                tracing::error!(file = %config.display(), error, "the file has changed and cannot be used; what was read before holds");
            }
        }
    }
}

/// Serves until somebody stops the process, then drains. Whoever asks twice does not wait for that.
pub(crate) async fn until_stopped(
    engine: &Engine,
    bound: Bound,
    mut signals: Signals,
    meanwhile: impl Future<Output = ()>,
) -> Result<Exit> {
    let (stop, stopped) = oneshot::channel::<()>();
    let serving = async {
        bound.run(async { drop(stopped.await) }).await;
        engine.shutdown().await;
    };
    let asked = async {
        signals.next().await;
        tracing::info!("stopping: what is under way may end");
        drop(stop);
        signals.next().await;
    };
    tokio::select! {
        () = serving => Ok(Exit::Done),
        () = asked => Ok(Exit::Interrupted),
        () = async { meanwhile.await; pending::<()>().await } => Ok(Exit::Done),
    }
}

/// What asks the process to stop.
pub(crate) struct Signals {
    terminate: Signal,
    interrupt: Signal,
}

impl Signals {
    pub(crate) fn new() -> Result<Signals> {
        let listen = |kind| signal(kind).context("signals cannot be listened for");
        Ok(Signals { terminate: listen(SignalKind::terminate())?, interrupt: listen(SignalKind::interrupt())? })
    }

    pub(crate) async fn next(&mut self) {
        tokio::select! {
            _ = self.terminate.recv() => {}
            _ = self.interrupt.recv() => {}
        }
    }
}

/// The address cannot be taken.
pub(crate) fn unbound(error: ServerError) -> anyhow::Error {
    match &error {
        ServerError::Unprotected(_) => {
            let hint =
                "`outlast token new NAME --scope admin --add` puts one into outlast.toml; or listen on 127.0.0.1";
            Stop::new(Exit::Usage, error.to_string()).hint(hint).into()
        }
        ServerError::Bind(_, why) if why.kind() == std::io::ErrorKind::InvalidInput => {
            Stop::new(Exit::Usage, error.to_string()).hint("write HOST:PORT, such as 127.0.0.1:7117").into()
        }
        ServerError::Bind(_, _) => {
            let hint = "is another server running? Another address is --listen 127.0.0.1:PORT";
            Stop::new(Exit::Error, error.to_string()).hint(hint).into()
        }
        _ => error.into(),
    }
}
