//! `cargo xtask sim`: plays cases, and says what was broken.
#![expect(clippy::print_stdout, reason = "a command prints its report")]

use std::process::ExitCode;
use std::time::Duration;

use outlast_sim::case::Case;
use outlast_sim::corpus::{self, Kept};
use outlast_sim::draw::draw;
use outlast_sim::ground::Kind;
use outlast_sim::play::{Verdict, play};
use outlast_sim::suite::{self, Report};
use outlast_sim::{nth, shrink, story};

/// Tries for making a failing case small.
const SHRINK_TRIES: usize = 600;
/// Cases that are played if nobody says otherwise.
const SEEDS: u64 = 20_000;
/// The same on a store that does not answer at once.
const SEEDS_ON_DISK: u64 = 500;

const USAGE: &str = "usage: cargo xtask sim [--seeds N] [--from SEED] [--seconds N] [--threads N] [--keep NAME] [--store NAME]
       cargo xtask sim --seed SEED [--keep NAME] [--store NAME]
       cargo xtask sim --planted [NAME]

  --seeds N      plays the cases of N seeds (20,000 if nobody says otherwise, 500 on disk), after the corpus and the N-th-call loop
  --from SEED    the first of them
  --seconds N    stops after so many seconds
  --store NAME   plays the seeds on `sqlite` or `postgres`: only them, and fewer if nobody says otherwise
  --seed SEED    plays one case, twice, and tells its story
  --keep NAME    keeps a case in the corpus: the first that fails, made small, or that of the seed
  --planted      builds in bugs on purpose, and says which suite finds each";

struct Options {
    seeds: Option<u64>,
    from: u64,
    seconds: Option<u64>,
    threads: usize,
    seed: Option<u64>,
    keep: Option<String>,
    planted: Option<Option<String>>,
    store: Option<String>,
}

fn main() -> ExitCode {
    let Some(options) = options() else {
        eprintln!("{USAGE}");
        return ExitCode::from(2);
    };
    // A panic in a case is caught and told with the case.
    std::panic::set_hook(Box::new(|_| {}));
    let ground = match ground(options.store.as_deref()) {
        Ok(ground) => ground,
        Err(error) => {
            eprintln!("{error}");
            return ExitCode::from(2);
        }
    };
    let ok = match (&options.seed, &options.planted, ground) {
        (Some(seed), _, ground) => one(*seed, options.keep.as_deref(), &ground),
        (None, Some(name), _) => planted(name.as_deref(), &options),
        (None, None, Kind::Memory) => everything(&options),
        #[cfg(any(feature = "sqlite", feature = "postgres"))]
        (None, None, ground) => random(&options, &ground),
    };
    if ok { ExitCode::SUCCESS } else { ExitCode::FAILURE }
}

fn options() -> Option<Options> {
    let threads = std::thread::available_parallelism().map_or(2, usize::from);
    let (seeds, seconds, seed, keep, planted, store) = (None, None, None, None, None, None);
    let mut options = Options { seeds, from: 0, seconds, threads, seed, keep, planted, store };
    let mut args = std::env::args().skip(1).peekable();
    while let Some(arg) = args.next() {
        match arg.as_str() {
            "--seeds" => options.seeds = Some(args.next()?.replace('_', "").parse().ok()?),
            "--from" => options.from = args.next()?.parse().ok()?,
            "--seconds" => options.seconds = Some(args.next()?.parse().ok()?),
            "--threads" => options.threads = args.next()?.parse::<usize>().ok()?.max(1),
            "--seed" => options.seed = Some(args.next()?.parse().ok()?),
            "--keep" => options.keep = Some(args.next()?),
            "--store" => options.store = Some(args.next()?),
            "--planted" => options.planted = Some(args.next_if(|next| !next.starts_with("--"))),
            _ => return None,
        }
    }
    Some(options)
}

/// What the cases are played on.
fn ground(store: Option<&str>) -> Result<Kind, String> {
    match store {
        None | Some("memory") => Ok(Kind::Memory),
        #[cfg(feature = "sqlite")]
        Some("sqlite") => Ok(Kind::Sqlite),
        #[cfg(feature = "postgres")]
        Some("postgres") => Ok(Kind::Postgres(outlast_sim::ground::Server::for_tests()?.into())),
        Some(other) => {
            Err(format!("there is no store {other:?} here: `sqlite` and `postgres` are features of this build"))
        }
    }
}

/// One case, twice.
fn one(seed: u64, keep: Option<&str>, ground: &Kind) -> bool {
    let case = draw(seed);
    if let Some(name) = keep {
        keep_case(name, &Kept { why: format!("the case of seed {seed}"), case: case.clone() });
    }
    let (first, second) = (ground.play(&case), ground.play(&case));
    println!("{}", story::tell(&case, &first));
    println!("{}", first.tally);
    let fickle = ground.repeats() && first.trace != second.trace;
    if fickle {
        println!("seed {seed} does not do the same twice: {} and {}", first.trace, second.trace);
    }
    first.violations.is_empty() && second.violations.is_empty() && !fickle
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
    let looped = nth::every_call(options.threads, usize::MAX);
    println!("{looped}");
    for (case, verdict) in &looped.failures {
        println!("{}", story::tell(case, verdict));
    }
    ok &= looped.failures.is_empty();
    random(options, &Kind::Memory) && ok
}

/// The seeds, on a store.
fn random(options: &Options, ground: &Kind) -> bool {
    let seeds = options.seeds.unwrap_or(if ground.repeats() { SEEDS } else { SEEDS_ON_DISK });
    let seeds = options.from..options.from.saturating_add(seeds);
    let limits = suite::Limits { time: options.seconds.map(Duration::from_secs), ..suite::Limits::default() };
    let report = suite::random(ground, seeds, options.threads, limits);
    told(&report, options, ground)
}

/// Prints a report; whether all is well.
fn told(report: &Report, options: &Options, ground: &Kind) -> bool {
    let rate = report.played as f64 / report.took.as_secs_f64();
    println!(
        "{} seeds in {:.1} s, {rate:.0} seeds/s on {} threads",
        report.played,
        report.took.as_secs_f64(),
        options.threads
    );
    println!("{}", report.tally);
    for (case, verdict) in &report.failures {
        if !ground.repeats() {
            println!("FAILED:\n{}", story::tell(case, verdict));
            continue;
        }
        let small = smallest(case, verdict);
        println!("FAILED, made small:\n{}", story::tell(&small, &play(&small)));
        println!("  the whole case has {} acts and {} faults", case.acts.len(), case.faults.len());
    }
    if let (Some(name), Some((case, verdict)), true) = (&options.keep, report.failures.first(), ground.repeats()) {
        let why = verdict.violations.first().map(|broken| broken.text.lines().next().unwrap_or("").to_owned());
        keep_case(name, &Kept { why: why.unwrap_or_default(), case: smallest(case, verdict) });
    }
    for seed in &report.fickle {
        println!("seed {seed} does not do the same twice");
    }
    let expected = report.played >= suite::SEEDS_FOR_EVERYTHING && ground.repeats();
    let missing = if expected { report.missing() } else { Vec::new() };
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
