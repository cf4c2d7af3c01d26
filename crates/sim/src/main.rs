//! `cargo xtask sim`: plays cases, and says what was broken.
#![expect(clippy::print_stdout, reason = "a command prints its report")]

use std::path::{Path, PathBuf};
use std::process::ExitCode;
use std::time::Duration;

use outlast_sim::case::Case;
use outlast_sim::corpus::{self, Kept};
use outlast_sim::draw::draw;
use outlast_sim::failure::Failure;
use outlast_sim::ground::Kind;
use outlast_sim::play::play;
use outlast_sim::suite::{self, Report};
use outlast_sim::{nth, story};

/// Cases that are played if nobody says otherwise.
const SEEDS: u64 = 20_000;
/// The same on a store that does not answer at once.
const SEEDS_ON_DISK: u64 = 500;
/// All cases that are played in memory should take no longer, on two cores that nobody else uses.
const AIM: Duration = Duration::from_secs(300);

const USAGE: &str = "usage: cargo xtask sim [--seeds N] [--from SEED] [--seconds N] [--within N] [--threads N] [--store NAME]
       cargo xtask sim --seed SEED [--store NAME]
       cargo xtask sim --case FILE [--store NAME]
       cargo xtask sim --planted [NAME]

  --seeds N      plays the cases of N seeds (20,000 if nobody says otherwise, 500 on disk), after the corpus and the N-th-call loop
  --from SEED    the first of them
  --seconds N    stops after so many seconds
  --within N     fails if the seeds take longer than so many seconds
  --store NAME   plays the seeds on `sqlite` or `postgres`: only them, and fewer if nobody says otherwise
  --seed SEED    plays one case, twice, and tells its story
  --case FILE    plays one case that is written down, twice: one of the corpus, or one that has failed
  --totals FILE  adds a line to a file: how many seeds, how long, and what happened how often, as JSON
  --planted      builds in bugs on purpose, all or those with a name or of a family, and says which suite finds each; with --seeds
                 it plays those first, without any

A case that fails is made small and written to target/sim-failures/. In crates/sim/corpus/ every run of the suite repeats it.";

struct Options {
    seeds: Option<u64>,
    from: u64,
    seconds: Option<u64>,
    within: Option<u64>,
    threads: usize,
    seed: Option<u64>,
    case: Option<PathBuf>,
    planted: Option<Option<String>>,
    store: Option<String>,
    totals: Option<PathBuf>,
}

fn main() -> ExitCode {
    match run() {
        Ok(true) => ExitCode::SUCCESS,
        Ok(false) => ExitCode::FAILURE,
        Err(error) => {
            eprintln!("{error}");
            ExitCode::from(2)
        }
    }
}

/// Does what was asked; whether all is well, or what cannot be done.
fn run() -> Result<bool, String> {
    let options = options()?;
    // A panic in a case is caught and told with the case.
    std::panic::set_hook(Box::new(|_| {}));
    let ground = ground(options.store.as_deref())?;
    if let Some(file) = &options.case {
        return written(file, &ground);
    }
    Ok(match (&options.seed, &options.planted, ground) {
        (Some(seed), _, ground) => one(draw(*seed), &ground),
        // Whoever finds something in a sound program finds it with every bug, too.
        (None, Some(name), _) if options.seeds.is_some() => everything(&options) && planted(name.as_deref(), &options),
        (None, Some(name), _) => planted(name.as_deref(), &options),
        (None, None, Kind::Memory) => everything(&options),
        #[cfg(any(feature = "sqlite", feature = "postgres"))]
        (None, None, ground) => random(&options, &ground),
    })
}

fn options() -> Result<Options, String> {
    let options = parsed().ok_or(USAGE)?;
    if options.seeds == Some(0) {
        return Err("`--seeds 0` would play nothing and find nothing: say at least 1".to_owned());
    }
    Ok(options)
}

fn parsed() -> Option<Options> {
    let threads = std::thread::available_parallelism().map_or(2, usize::from);
    let (seeds, seconds, seed, case, planted, store) = (None, None, None, None, None, None);
    let mut options =
        Options { seeds, from: 0, seconds, within: None, threads, seed, case, planted, store, totals: None };
    let mut args = std::env::args().skip(1).peekable();
    while let Some(arg) = args.next() {
        match arg.as_str() {
            "--seeds" => options.seeds = Some(args.next()?.replace('_', "").parse().ok()?),
            "--from" => options.from = args.next()?.parse().ok()?,
            "--seconds" => options.seconds = Some(args.next()?.parse().ok()?),
            "--within" => options.within = Some(args.next()?.parse().ok()?),
            "--threads" => options.threads = args.next()?.parse::<usize>().ok()?.max(1),
            "--seed" => options.seed = Some(args.next()?.parse().ok()?),
            "--case" => options.case = Some(args.next()?.into()),
            "--store" => options.store = Some(args.next()?),
            "--totals" => options.totals = Some(args.next()?.into()),
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

/// The case of a seed.
fn one(case: Case, ground: &Kind) -> bool {
    let seed = case.seed;
    let (first, second) = ground.play_twice(&case);
    let fickle = ground.repeats() && !first.repeats(&second);
    let failed = [&first, &second].into_iter().find(|verdict| !verdict.violations.is_empty());
    match failed {
        Some(verdict) => println!("{}", Failure::found(&format!("seed {seed}"), &case, verdict, ground)),
        None => println!("{}", story::tell(&case, &first)),
    }
    println!("{}", first.tally);
    if fickle {
        println!("seed {seed} does not do the same twice: {} and {}", first.trace, second.trace);
    }
    failed.is_none() && !fickle
}

/// A case that is written down.
fn written(file: &Path, ground: &Kind) -> Result<bool, String> {
    let Kept { why, case } = corpus::one(file)?;
    println!("{why}");
    let failure = Failure::of_file(file, &case, ground);
    match &failure {
        Some(failure) => println!("{failure}"),
        None => println!("every promise is kept, twice in the same way"),
    }
    Ok(failure.is_none())
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
            let with = format!("corpus {}", name.trim_end_matches(".json"));
            println!("{why}\n{}", Failure::found(&with, case, &verdict, &Kind::Memory));
            ok = false;
        }
    }
    println!("corpus: {} cases", kept.len());
    let looped = nth::every_call(options.threads, usize::MAX);
    println!("{looped}");
    for (case, verdict) in &looped.failures {
        println!("{}", Failure::found(nth::scenario_of(verdict), case, verdict, &Kind::Memory));
    }
    let complaints = if looped.failures.is_empty() { looped.complaints() } else { Vec::new() };
    complaints.iter().for_each(|complaint| println!("{complaint}"));
    ok &= looped.failures.is_empty() && complaints.is_empty();
    random(options, &Kind::Memory) && ok
}

/// The seeds, on a store.
fn random(options: &Options, ground: &Kind) -> bool {
    let seeds = options.seeds.unwrap_or(if ground.repeats() { SEEDS } else { SEEDS_ON_DISK });
    let seeds = options.from..options.from.saturating_add(seeds);
    let limits = suite::Limits { time: options.seconds.map(Duration::from_secs), ..suite::Limits::default() };
    let report = suite::random(ground, seeds, options.threads, limits);
    if let Some(Err(error)) = options.totals.as_deref().map(|file| report.add_to(file)) {
        println!("the totals could not be written down: {error}");
        return false;
    }
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
    if report.played >= SEEDS && report.took > AIM {
        // Only said, unless somebody asks for more: on a machine that others use too it would fail for no reason.
        println!("SLOW: {} seeds should take at most {} s", report.played, AIM.as_secs());
    }
    let is_late = options.within.is_some_and(|within| report.took > Duration::from_secs(within));
    if is_late {
        println!("TOO SLOW: they took longer than `--within` allows");
    }
    println!("{}", report.tally);
    for (case, verdict) in &report.failures {
        println!("{}", Failure::found(&format!("seed {}", case.seed), case, verdict, ground));
        println!("  the whole case has {} acts and {} faults", case.acts.len(), case.faults.len());
    }
    let complaints = report.complaints(ground.repeats());
    for complaint in &complaints {
        println!("{complaint}");
    }
    report.failures.is_empty() && complaints.is_empty() && !is_late
}

#[cfg(not(outlast_planted))]
fn planted(_: Option<&str>, _: &Options) -> bool {
    println!("nothing is planted in this build; `cargo xtask sim --planted` makes one");
    false
}

#[cfg(outlast_planted)]
fn planted(name: Option<&str>, options: &Options) -> bool {
    let is_sound = options.seeds.is_some();
    outlast_sim::planted::hunt(name, options.threads, is_sound)
}
