//! `cargo xtask test`: everything that must hold before a change goes in.

use anyhow::Result;

use crate::cluster::{Cluster, Synced};
use crate::process::cargo;
use crate::stages::Stages;
use crate::usage::Usage;
use crate::{sim, tidy, tools, web};

const INSTALL_DENY: &str = "cargo-deny is not installed: `cargo install cargo-deny --locked`";

/// Lives that are simulated.
const SEEDS: &str = "20000";
const SEEDS_QUICK: &str = "500";
/// How long they may take, in seconds: three times what they should on two cores, because others may use the machine, too.
const WITHIN: &str = "900";

#[derive(Clone, Copy, PartialEq, Eq)]
enum Depth {
    Full,
    Quick,
}

pub(crate) fn run(args: &[String]) -> Result<()> {
    let depth = match args {
        [] => Depth::Full,
        [flag] if flag == "--quick" => Depth::Quick,
        [.., other] => return Err(Usage::unknown_argument("test", other).into()),
    };
    tools::need_components()?;
    tools::need_nextest()?;
    tools::need_node()?;
    tools::need_python()?;
    let cluster = Cluster::start(Synced::No)?;
    eprintln!("PostgreSQL for this run: {}", cluster.url());

    let mut stages = Stages::default();
    stages.command("fmt", &mut cargo(&["fmt", "--all", "--check"]))?;
    stages.command(
        "clippy",
        cargo(&["clippy", "--workspace", "--all-targets", "--all-features", "--locked"]).args(["--", "-D", "warnings"]),
    )?;
    let mut nextest = cargo(&["nextest", "run", "--workspace", "--all-features", "--locked"]);
    nextest.envs(cluster.variables());
    if depth == Depth::Quick {
        // What must not compile is compiled for minutes, and seldom changes.
        nextest.env("OUTLAST_QUICK", "1").args(["-E", "not package(outlast-mistakes)"]);
    }
    stages.command("tests", &mut nextest)?;
    if depth == Depth::Full {
        web::stages(&mut stages)?;
    }
    simulation(&mut stages, &cluster, depth)?;
    if depth == Depth::Full {
        documentation(&mut stages, &cluster)?;
    }
    stages.check("tidy", "cargo xtask tidy", tidy::check)?;
    if depth == Depth::Full {
        dependencies(&mut stages)?;
    }
    drop(cluster);
    stages.finish()
}

fn simulation(stages: &mut Stages, cluster: &Cluster, depth: Depth) -> Result<()> {
    let seeds = if depth == Depth::Full { SEEDS } else { SEEDS_QUICK };
    let mut args = ["--seeds", seeds, "--within", WITHIN].map(str::to_owned).to_vec();
    if depth == Depth::Full {
        // Then the trial is tried: it must find the bugs that are planted. One build has them, and none is at work before.
        args.push("--planted".to_owned());
    }
    stages.command("sim", &mut sim::command(&args)?)?;
    if depth == Depth::Full {
        let planted = ["--planted".to_owned()];
        stages.command("adapters", sim::contract(&planted)?.envs(cluster.variables()))?;
    }
    Ok(())
}

fn documentation(stages: &mut Stages, cluster: &Cluster) -> Result<()> {
    stages.command(
        "doctests",
        cargo(&["test", "--doc", "--workspace", "--all-features", "--locked"]).envs(cluster.variables()),
    )?;
    stages.command(
        "docs",
        cargo(&["doc", "--no-deps", "--workspace", "--all-features", "--locked"]).env("RUSTDOCFLAGS", "-D warnings"),
    )
}

fn dependencies(stages: &mut Stages) -> Result<()> {
    if !tools::has_deny() {
        stages.skip("deny", INSTALL_DENY);
        return Ok(());
    }
    stages.command("deny", &mut cargo(&["deny", "--all-features", "check", "bans", "licenses", "sources"]))
}
