//! `cargo xtask bench`: benchmarks, with a PostgreSQL whose files are on a real disk.

use anyhow::Result;

use crate::cluster::Cluster;
use crate::process::{self, CtrlC, cargo};
use crate::usage::Usage;

pub(crate) fn run(args: &[String]) -> Result<()> {
    match args.split_first() {
        Some((what, rest)) if what == "store" => store(rest),
        Some((what, _)) => Err(Usage::new(format!("there is no benchmark `{what}`; there is: store")).into()),
        None => Err(Usage::new("`bench` needs to know what to measure: store").into()),
    }
}

fn store(args: &[String]) -> Result<()> {
    let cluster = Cluster::start()?;
    let mut command = cargo(&["bench", "--package", "outlast-store", "--all-features", "--bench", "store", "--"]);
    command.args(args).envs(cluster.variables());
    process::run(&mut command, CtrlC::EndsUs)
}
