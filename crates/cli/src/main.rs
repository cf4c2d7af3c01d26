//! The `outlast` command: runs workflows, looks at them, and talks to them.
//!
//! One file per command in `commands/`. What is worth testing without a terminal is in the crates below.

mod api;
mod args;
mod commands;
mod database;
mod exit;
mod logs;
mod output;
mod palette;
mod progress;
mod site;
mod sources;
mod target;
mod traces;
mod words;

use clap::{ColorChoice, Parser};

use args::Cli;
use exit::{Exit, Stop};
use palette::Palette;

fn main() {
    let cli = Cli::parse();
    choose_colours(cli.global.color);
    let exit = match commands::execute(cli) {
        Ok(exit) => exit,
        Err(error) => {
            complain(&error);
            Exit::of(&error)
        }
    };
    // Not by returning: a thread that reads the terminal cannot be asked to stop.
    std::process::exit(exit as i32)
}

fn choose_colours(choice: ColorChoice) {
    let choice = match choice {
        ColorChoice::Auto => anstream::ColorChoice::Auto,
        ColorChoice::Always => anstream::ColorChoice::Always,
        ColorChoice::Never => anstream::ColorChoice::Never,
    };
    choice.write_global();
}

/// What went wrong, and what to do next.
fn complain(error: &anyhow::Error) {
    let palette = Palette::stderr();
    let stop = error.downcast_ref::<Stop>();
    if stop.is_some_and(Stop::is_report) {
        output::note(&error.to_string());
    } else {
        output::note(&format!("{} {error:#}", palette.bad("error:")));
    }
    if let Some(next) = stop.and_then(Stop::next) {
        output::note(&format!("{} {next}", palette.info("hint:")));
    }
}
