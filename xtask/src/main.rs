//! Every developer habit as a command: `cargo xtask <command>`.
//!
//! One file per command. What they share: [`process`] starts children and ends them when a signal comes, [`cluster`]
//! is a private PostgreSQL that stops when it is dropped, [`tools`] finds or installs what a fresh machine lacks.

#![expect(clippy::disallowed_methods, reason = "a developer tool waits for processes and measures how long they take")]

mod bench;
mod cluster;
mod dev;
mod interrupt;
mod postgres;
mod process;
mod sim;
mod soak;
mod stages;
mod test;
mod tidy;
mod tools;
mod usage;
mod web;

use std::process::ExitCode;

use crate::interrupt::Interrupted;
use crate::process::ChildFailed;
use crate::usage::Usage;

const HELP: &str = "\
Usage: cargo xtask <command>

  test [--quick]                 everything CI checks; sets up what it needs. --quick: the inner loop, smaller counts
  postgres [-- command…]         a private PostgreSQL for one command, or until Ctrl-C
  tidy                           the rules of the design that no compiler checks
  bench store [args…]            the store benchmark, one JSON object per line
  bench engine [args…]           the engine benchmark: W1 to W7, scripts, flows
  bench flow [args…]             its part about flows
  bench script                   the script language: reading, running, saving, restoring
  bench web [--minutes N] [--runs N]
                                 the web page in Chromium: lists, large runs, live updates, idle
  sim [args…]                    the simulator: whole clusters, every fault, thousands of seeds; --planted tries itself
  soak [--minutes N] [--cases N] [--seed N]
                                 the randomised tests with large counts and fresh seeds; --seed repeats one round
  web [--test]                   the web page: built, checked, put into the server; --test: tried in a real browser
  dev [args…]                    the web page and `outlast dev` with it
  help                           this text
";

fn main() -> ExitCode {
    let args: Vec<String> = std::env::args().skip(1).collect();
    let done = if sim::is_compiler() { sim::compile(&args) } else { interrupt::watch().and_then(|()| dispatch(&args)) };
    match done {
        Ok(()) => ExitCode::SUCCESS,
        Err(error) => report(&error),
    }
}

fn dispatch(args: &[String]) -> anyhow::Result<()> {
    let Some((command, rest)) = args.split_first() else {
        return Err(Usage::new("no command given").into());
    };
    match command.as_str() {
        "test" => test::run(rest),
        "postgres" => postgres::run(rest),
        "tidy" => tidy::run(rest),
        "bench" => bench::run(rest),
        "sim" => sim::run(rest),
        "soak" => soak::run(rest),
        "web" => web::run(rest),
        "dev" => dev::run(rest),
        "help" | "--help" | "-h" => {
            print!("{HELP}");
            Ok(())
        }
        unknown => Err(Usage::new(format!("there is no command `{unknown}`")).into()),
    }
}

fn report(error: &anyhow::Error) -> ExitCode {
    if let Some(usage) = error.downcast_ref::<Usage>() {
        eprint!("xtask: {usage}\n\n{HELP}");
        return ExitCode::from(2);
    }
    if let Some(Interrupted { signal }) = error.downcast_ref() {
        eprintln!("xtask: interrupted; everything it started was stopped");
        return ExitCode::from(128_u8.saturating_add(u8::try_from(*signal).unwrap_or(0)));
    }
    if let Some(ChildFailed { code, .. }) = error.downcast_ref() {
        eprintln!("xtask: {error:#}");
        return ExitCode::from(*code);
    }
    eprintln!("xtask: {error:#}");
    ExitCode::FAILURE
}

#[cfg(test)]
mod tests {
    use super::*;

    #[track_caller]
    fn check_usage(args: &[&str], complaint: &str) {
        let args: Vec<String> = args.iter().map(ToString::to_string).collect();
        let error = dispatch(&args).expect_err("wrong usage is refused");
        let usage = error.downcast_ref::<Usage>().expect("the error is a usage error");
        assert_eq!(usage.to_string(), complaint);
    }

    #[test]
    fn wrong_usage_is_refused_before_anything_starts() {
        check_usage(&[], "no command given");
        check_usage(&["tset"], "there is no command `tset`");
        check_usage(&["test", "--fast"], "`test` does not take `--fast`");
        check_usage(&["tidy", "now"], "`tidy` does not take `now`");
        check_usage(&["bench"], "`bench` needs to know what to measure: store, engine, flow, script, server, web");
        check_usage(
            &["bench", "disk"],
            "there is no benchmark `disk`; there are: store, engine, flow, script, server, web",
        );
        check_usage(&["postgres", "psql"], "put `--` before the command: cargo xtask postgres -- psql");
        check_usage(&["soak", "--minutes"], "`--minutes` needs a number");
        check_usage(&["soak", "--minutes", "soon"], "`--minutes` needs a number, not `soon`");
        check_usage(&["soak", "--hours", "1"], "`soak` does not take `--hours`");
        check_usage(&["web", "--fast"], "`web` does not take `--fast`");
    }

    #[test]
    fn help_lists_every_command() {
        for command in [
            "test",
            "postgres",
            "tidy",
            "bench store",
            "bench engine",
            "bench flow",
            "bench script",
            "bench web",
            "sim",
            "soak",
            "web",
            "dev",
        ] {
            assert!(HELP.contains(&format!("\n  {command} ")), "{command} is missing");
        }
        dispatch(&["help".to_owned()]).expect("help succeeds");
    }
}
