//! The command line.

use clap::{Args, ColorChoice, Parser};

use crate::commands::Command;
use crate::output::Format;

/// Runs workflows that outlast crashes, deploys and months.
#[derive(Debug, Parser)]
#[command(name = "outlast", version, propagate_version = false, disable_help_subcommand = true)]
#[command(after_help = "Exit codes: 0 done, 1 error, 2 usage, 3 not found, 4 not allowed, 5 the run failed, \
                        6 the run is not over, 7 unreachable, 130 interrupted.\nMore: docs/cli.md")]
pub(crate) struct Cli {
    #[command(flatten)]
    pub(crate) global: Global,
    #[command(subcommand)]
    pub(crate) command: Command,
}

/// What every command understands.
#[derive(Clone, Debug, Args)]
pub(crate) struct Global {
    /// How the answer is printed
    #[arg(short, long, value_enum, default_value_t, global = true, value_name = "FORMAT")]
    pub(crate) output: Format,
    /// Colours: NO_COLOR and CLICOLOR_FORCE are understood too
    #[arg(long, value_enum, default_value_t = ColorChoice::Auto, global = true, value_name = "WHEN")]
    pub(crate) color: ColorChoice,
}
