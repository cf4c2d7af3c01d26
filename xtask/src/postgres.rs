//! `cargo xtask postgres`: a private PostgreSQL for one command, or until Ctrl-C.

use std::process::Command;
use std::time::Duration;

use anyhow::Result;

use crate::cluster::{Cluster, Synced};
use crate::interrupt;
use crate::process::{self, CtrlC};
use crate::usage::Usage;

pub(crate) fn run(args: &[String]) -> Result<()> {
    match args {
        [] => until_interrupted(),
        [dashes, program, rest @ ..] if dashes == "--" => {
            let cluster = Cluster::start(Synced::Yes)?;
            let mut command = Command::new(program);
            process::forget_us(&mut command);
            command.args(rest).envs(cluster.variables());
            process::run(&mut command, CtrlC::BelongsToChild)
        }
        [dashes] if dashes == "--" => Err(Usage::new("there is no command after `--`").into()),
        words => {
            let words = words.join(" ");
            Err(Usage::new(format!("put `--` before the command: cargo xtask postgres -- {words}")).into())
        }
    }
}

fn until_interrupted() -> Result<()> {
    let cluster = Cluster::start(Synced::Yes)?;
    for (name, value) in cluster.variables() {
        println!("export {name}={value}");
    }
    eprintln!("PostgreSQL is running; Ctrl-C stops it");
    while interrupt::received().is_none() {
        std::thread::sleep(Duration::from_millis(50));
    }
    Ok(())
}
