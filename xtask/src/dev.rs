//! `cargo xtask dev`: builds the web page, and starts `outlast dev` with it; beside it Vite serves the page from its source, so
//! that a change of either is seen at once.

use std::process::Command;

use anyhow::{Context as _, Result};

use crate::process::{self, CtrlC};
use crate::web;

/// Where `outlast dev` listens if nobody says otherwise.
const LISTEN: &str = "127.0.0.1:7117";

pub(crate) fn run(args: &[String]) -> Result<()> {
    web::build()?;
    let binary = web::command()?;
    let _page = web::follow(&format!("http://{}", listens(args)))?;
    let mut command = Command::new(binary);
    // In the folder where it was called: that is the one to be served.
    let folder = std::env::current_dir().context("there is no current folder")?;
    command.arg("dev").args(args).current_dir(folder);
    process::run(&mut command, CtrlC::BelongsToChild)
}

/// Where the server will listen.
fn listens(args: &[String]) -> String {
    let said = |(at, arg): (usize, &String)| match arg.split_once('=') {
        Some(("--listen", address)) => Some(address.to_owned()),
        _ if arg == "--listen" => args.get(at + 1).cloned(),
        _ => None,
    };
    let said = args.iter().enumerate().find_map(said);
    said.or_else(|| std::env::var("OUTLAST_LISTEN").ok()).unwrap_or_else(|| LISTEN.to_owned())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_page_asks_the_server_where_it_listens() {
        let listens = |args: &[&str]| listens(&args.iter().map(|&arg| arg.to_owned()).collect::<Vec<_>>());
        assert_eq!(listens(&["shop", "--listen", "127.0.0.1:1"]), "127.0.0.1:1");
        assert_eq!(listens(&["--listen=127.0.0.1:2", "shop"]), "127.0.0.1:2");
        assert_eq!(listens(&["shop"]), std::env::var("OUTLAST_LISTEN").unwrap_or(LISTEN.to_owned()));
    }
}
