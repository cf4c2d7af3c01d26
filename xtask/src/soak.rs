//! `cargo xtask soak`: the randomised tests with large counts and a fresh seed each round.
//!
//! A test takes part by its name or its binary's name: see [`FILTER`]. It reads `OUTLAST_SEED` (u64), `OUTLAST_CASES`
//! (number of random cases; properties of proptest read `PROPTEST_RNG_SEED`) and may stop after `OUTLAST_SOAK_SECONDS`.

mod totals;

use std::hash::{BuildHasher as _, Hasher as _, RandomState};
use std::process::Command;
use std::time::{Duration, Instant};

use anyhow::{Context as _, Result};

use crate::cluster::{Cluster, Synced};
use crate::interrupt::Interrupted;
use crate::process::{self, CtrlC, cargo};
use crate::usage::Usage;
use crate::{sim, tools};
use totals::Totals;

/// The words by which a test or its binary says that it is randomised. Nextest refuses a binary pattern that matches
/// nothing, so this one also names our own, which is taken out again.
const FILTER: &str = "(test(/random|differential|crash|abort|soak/) \
    + binary(/random|differential|crash|abort|soak|chaos|^xtask$/)) - package(xtask)";
const DEFAULT_MINUTES: u64 = 10;
const DEFAULT_CASES: u64 = 10_000;
/// A round is at most this long, so that many seeds get their turn.
const ROUND: Duration = Duration::from_secs(300);

#[derive(Debug, PartialEq, Eq)]
struct Plan {
    length: Duration,
    cases: u64,
    /// Run one round with this seed instead of many with fresh ones.
    seed: Option<u64>,
}

pub(crate) fn run(args: &[String]) -> Result<()> {
    let plan = plan(args)?;
    tools::need_nextest()?;
    let cluster = Cluster::start(Synced::Yes)?;
    let deadline = Instant::now() + plan.length;
    let totals = Totals::begin()?;
    let mut rounds = 0_u64;
    loop {
        let left = deadline.saturating_duration_since(Instant::now());
        let seed = plan.seed.unwrap_or_else(fresh_seed);
        rounds += 1;
        eprintln!("\n==> round {rounds}: OUTLAST_SEED={seed} OUTLAST_CASES={}", plan.cases);
        let outcome = round(&cluster, &totals, seed, plan.cases, left.min(ROUND));
        if outcome.is_err() || plan.seed.is_some() || Instant::now() >= deadline {
            eprintln!("\nin {rounds} round(s): {}", totals.tell()?);
        }
        outcome?;
        if plan.seed.is_some() || Instant::now() >= deadline {
            eprintln!("\n{rounds} round(s) passed");
            return Ok(());
        }
    }
}

fn round(cluster: &Cluster, totals: &Totals, seed: u64, cases: u64, length: Duration) -> Result<()> {
    let mut command = cargo(&["nextest", "run", "--workspace", "--all-features", "--locked"]);
    command.args(["--profile", "soak", "--filterset", FILTER]).envs(cluster.variables());
    command.env("OUTLAST_SEED", seed.to_string()).env("OUTLAST_CASES", cases.to_string());
    command.env("PROPTEST_RNG_SEED", seed.to_string());
    command.env("OUTLAST_SOAK_SECONDS", length.as_secs().max(1).to_string());
    let hint = || format!("repeat this round with `cargo xtask soak --seed {seed} --cases {cases}`");
    let seconds = length.as_secs().max(1).to_string();
    let lives = ["--from", &seed.to_string(), "--seeds", &u32::MAX.to_string(), "--seconds", &seconds];
    let mut lives = lives.map(str::to_owned).to_vec();
    lives.extend(totals.arguments());
    let on = |store: &str| -> Result<Command> {
        // A part of the time: most lives are lived in memory.
        let part = (length.as_secs() / 4).max(1).to_string();
        let mut args = lives.clone();
        args.extend(["--seconds", &part, "--store", store].map(str::to_owned));
        let mut command = sim::command(&args)?;
        command.envs(cluster.variables());
        Ok(command)
    };
    let mut on_disk = (on("sqlite")?, on("postgres")?);
    let mut lives = sim::command(&lives)?;
    for command in [&mut command, &mut lives, &mut on_disk.0, &mut on_disk.1] {
        match process::run(command, CtrlC::EndsUs) {
            Err(error) if !error.is::<Interrupted>() => return Err(error).with_context(hint),
            outcome => outcome?,
        }
    }
    Ok(())
}

fn plan(args: &[String]) -> Result<Plan> {
    let mut plan = Plan { length: Duration::from_secs(DEFAULT_MINUTES * 60), cases: DEFAULT_CASES, seed: None };
    let mut args = args.iter();
    while let Some(flag) = args.next() {
        match flag.as_str() {
            "--minutes" => plan.length = Duration::from_secs(number(flag, args.next())?.saturating_mul(60)),
            "--cases" => plan.cases = number(flag, args.next())?,
            "--seed" => plan.seed = Some(number(flag, args.next())?),
            other => return Err(Usage::unknown_argument("soak", other).into()),
        }
    }
    Ok(plan)
}

fn number(flag: &str, value: Option<&String>) -> Result<u64, Usage> {
    let value = value.ok_or_else(|| Usage::new(format!("`{flag}` needs a number")))?;
    value.parse().map_err(|_| Usage::new(format!("`{flag}` needs a number, not `{value}`")))
}

/// The standard library seeds its hashers from the operating system; more is not needed here.
fn fresh_seed() -> u64 {
    RandomState::new().build_hasher().finish()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[track_caller]
    fn check(args: &[&str], expected: Plan) {
        let args: Vec<String> = args.iter().map(ToString::to_string).collect();
        assert_eq!(plan(&args).expect("a plan"), expected);
    }

    #[test]
    fn flags_change_the_plan() {
        let minutes = |minutes| Duration::from_secs(60 * minutes);
        check(&[], Plan { length: minutes(DEFAULT_MINUTES), cases: DEFAULT_CASES, seed: None });
        check(&["--minutes", "90"], Plan { length: minutes(90), cases: DEFAULT_CASES, seed: None });
        check(
            &["--seed", "18446744073709551615", "--cases", "7"],
            Plan { length: minutes(DEFAULT_MINUTES), cases: 7, seed: Some(u64::MAX) },
        );
    }

    #[test]
    fn seeds_differ() {
        assert_ne!(fresh_seed(), fresh_seed());
    }
}
