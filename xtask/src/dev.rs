//! `cargo xtask dev`: builds the web page, and starts `outlast dev` with it.

use anyhow::Result;

use crate::process::{self, CtrlC, cargo};
use crate::web;

pub(crate) fn run(args: &[String]) -> Result<()> {
    web::build()?;
    let mut command = cargo(&["run", "--package", "outlast-cli", "--locked", "--", "dev"]);
    command.args(args);
    process::run(&mut command, CtrlC::BelongsToChild)
}
