//! `cargo xtask bench`: benchmarks, with a PostgreSQL whose files are on a real disk.

use anyhow::Result;

use crate::cluster::{Cluster, Synced};
use crate::process::{self, CtrlC, cargo};
use crate::usage::Usage;
use crate::web;

pub(crate) fn run(args: &[String]) -> Result<()> {
    match args.split_first() {
        Some((what, rest)) if what == "store" => bench("outlast-store", "store", rest),
        Some((what, rest)) if what == "engine" => bench("outlast", "engine", rest),
        // A part of it that is asked for by its own name.
        Some((what, rest)) if what == "flow" => {
            let part = ["--only", "flow_map", "--only", "flow_resume"].map(str::to_owned);
            bench("outlast", "engine", &[&part[..], rest].concat())
        }
        Some((what, rest)) if what == "script" => without_cluster("outlast-script", "script", rest),
        Some((what, rest)) if what == "server" => without_cluster("outlast-cli", "server", rest),
        Some((what, rest)) if what == "web" => web::bench(rest),
        Some((what, _)) => Err(Usage::new(format!(
            "there is no benchmark `{what}`; there are: store, engine, flow, script, server, web"
        ))
        .into()),
        None => {
            Err(Usage::new("`bench` needs to know what to measure: store, engine, flow, script, server, web").into())
        }
    }
}

/// What needs no server.
fn without_cluster(package: &str, name: &str, args: &[String]) -> Result<()> {
    process::run(cargo(&["bench", "--package", package, "--bench", name, "--"]).args(args), CtrlC::EndsUs)
}

fn bench(package: &str, name: &str, args: &[String]) -> Result<()> {
    let cluster = Cluster::start(Synced::Yes)?;
    let mut command = cargo(&["bench", "--package", package, "--all-features", "--bench", name, "--"]);
    command.args(args).envs(cluster.variables());
    process::run(&mut command, CtrlC::EndsUs)
}
