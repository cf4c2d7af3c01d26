//! `cargo xtask sim`: plays cases, and says what was broken.
#![expect(clippy::print_stdout, reason = "a command prints its report")]

use std::process::ExitCode;
use std::time::Duration;

use outlast_sim::case::Case;
use outlast_sim::corpus::{self, Kept};
use outlast_sim::draw::draw;
use outlast_sim::play::{Verdict, play};
use outlast_sim::suite::{self, Report};
use outlast_sim::{nth, shrink, story};

/// Tries for making a failing case small.
const SHRINK_TRIES: usize = 600;

const USAGE: &str = "usage: cargo xtask sim [--seeds N] [--from SEED] [--seconds N] [--threads N] [--keep NAME]
       cargo xtask sim --seed SEED [--keep NAME]
       cargo xtask sim --planted [NAME]

  --seeds N      plays the cases of N seeds (20,000 if nobody says otherwise), after the corpus and the N-th-call loop
  --from SEED    the first of them
  --seconds N    stops after so many seconds
  --seed SEED    plays one case, twice, and tells its story
  --keep NAME    keeps a case in the corpus: the first that fails, made small, or that of the seed
  --planted      builds in bugs on purpose, and says which suite finds each";

struct Options {
    seeds: u64,
    from: u64,
    seconds: Option<u64>,
    threads: usize,
    seed: Option<u64>,
    keep: Option<String>,
    planted: Option<Option<String>>,
}

fn main() -> ExitCode {
    let Some(options) = options() else {
        eprintln!("{USAGE}");
        return ExitCode::from(2);
    };
    // A panic in a case is caught and told with the case.
    std::panic::set_hook(Box::new(|_| {}));
    let ok = match (&options.seed, &options.planted) {
        (Some(seed), _) => one(*seed, options.keep.as_deref()),
        (None, Some(name)) => planted(name.as_deref(), &options),
        (None, None) => everything(&options),
    };
    if ok { ExitCode::SUCCESS } else { ExitCode::FAILURE }
}

fn options() -> Option<Options> {
    let threads = std::thread::available_parallelism().map_or(2, usize::from);
    let mut options = Options { seeds: 20_000, from: 0, seconds: None, threads, seed: None, keep: None, planted: None };
    let mut args = std::env::args().skip(1).peekable();
    while let Some(arg) = args.next() {
        match arg.as_str() {
            "--seeds" => options.seeds = args.next()?.replace('_', "").parse().ok()?,
            "--from" => options.from = args.next()?.parse().ok()?,
            "--seconds" => options.seconds = Some(args.next()?.parse().ok()?),
            "--threads" => options.threads = args.next()?.parse::<usize>().ok()?.max(1),
            "--seed" => options.seed = Some(args.next()?.parse().ok()?),
            "--keep" => options.keep = Some(args.next()?),
            "--planted" => options.planted = Some(args.next_if(|next| !next.starts_with("--"))),
            _ => return None,
        }
    }
    Some(options)
}

/// One case, twice.
fn one(seed: u64, keep: Option<&str>) -> bool {
    let case = draw(seed);
    if let Some(name) = keep {
        keep_case(name, &Kept { why: format!("the case of seed {seed}"), case: case.clone() });
    }
    let (first, second) = (play(&case), play(&case));
    println!("{}", story::tell(&case, &first));
    println!("{}", first.tally);
    if first.trace != second.trace {
        println!("seed {seed} does not do the same twice: {} and {}", first.trace, second.trace);
    }
    first.violations.is_empty() && first.trace == second.trace
}

/// The corpus, the N-th-call loop, and the seeds.
fn everything(options: &Options) -> bool {
    let kept = match corpus::read() {
        Ok(kept) => kept,
        Err(error) => {
            println!("{error}");
            return false;
        }
    };
    let mut ok = true;
    for (name, Kept { why, case }) in &kept {
        let verdict = play(case);
        if !verdict.violations.is_empty() {
            println!("the corpus fails: {name} ({why})\n{}", story::tell(case, &verdict));
            ok = false;
        }
    }
    println!("corpus: {} cases", kept.len());
    let looped = nth::every_call(options.threads);
    println!("{looped}");
    for (case, verdict) in &looped.failures {
        println!("{}", story::tell(case, verdict));
    }
    ok &= looped.failures.is_empty();
    let seeds = options.from..options.from.saturating_add(options.seeds);
    let report = suite::random(seeds, options.threads, options.seconds.map(Duration::from_secs), suite::FAILURES_MAX);
    ok && told(&report, options)
}

/// Prints a report; whether all is well.
fn told(report: &Report, options: &Options) -> bool {
    let rate = report.played as f64 / report.took.as_secs_f64();
    println!(
        "{} seeds in {:.1} s, {rate:.0} seeds/s on {} threads",
        report.played,
        report.took.as_secs_f64(),
        options.threads
    );
    println!("{}", report.tally);
    for (case, verdict) in &report.failures {
        let small = smallest(case, verdict);
        println!("FAILED, made small:\n{}", story::tell(&small, &play(&small)));
        println!("  the whole case has {} acts and {} faults", case.acts.len(), case.faults.len());
    }
    if let (Some(name), Some((case, verdict))) = (&options.keep, report.failures.first()) {
        let why = verdict.violations.first().map(|broken| broken.text.lines().next().unwrap_or("").to_owned());
        keep_case(name, &Kept { why: why.unwrap_or_default(), case: smallest(case, verdict) });
    }
    for seed in &report.fickle {
        println!("seed {seed} does not do the same twice");
    }
    let missing = if report.played >= suite::SEEDS_FOR_EVERYTHING { report.missing() } else { Vec::new() };
    for what in &missing {
        println!("an empty pass: {what} never occurred");
    }
    report.failures.is_empty() && report.fickle.is_empty() && missing.is_empty()
}

fn keep_case(name: &str, kept: &Kept) {
    match corpus::keep(name, kept) {
        Ok(path) => println!("kept as {}", path.file_name().unwrap_or_default().to_string_lossy()),
        Err(error) => println!("it could not be kept: {error}"),
    }
}

/// The smallest case that breaks one of the same invariants.
fn smallest(case: &Case, verdict: &Verdict) -> Case {
    let broken = suite::broken(verdict);
    shrink::shrink(case, SHRINK_TRIES, |case| !suite::broken(&play(case)).is_disjoint(&broken))
}

#[cfg(not(outlast_planted))]
fn planted(_: Option<&str>, _: &Options) -> bool {
    println!("nothing is planted in this build; `cargo xtask sim --planted` makes one");
    false
}

#[cfg(outlast_planted)]
fn planted(name: Option<&str>, options: &Options) -> bool {
    outlast_sim::planted::hunt(name, options.threads)
}
