//! `outlast token`: who may use a server. Tokens are in its `outlast.toml`, as hashes.

use std::fs;
use std::io::Write;
use std::path::{Path, PathBuf};
use std::time::Duration;

use anyhow::{Context, Result};
use clap::{Args, Subcommand};
use outlast_server::{NewToken, Scope, ServerConfig, Token};
use serde::Serialize;

use crate::args::Global;
use crate::commands::done;
use crate::exit::{Exit, Stop};
use crate::output::{self, Format, note, table};
use crate::words::{now, parse_length};

/// Make, list and revoke the tokens of a server
#[derive(Debug, Args)]
#[command(
    after_help = "A server reads its outlast.toml again when it changes: a token that was added can be used, and one that \
                        was revoked is worthless, within a second."
)]
pub(crate) struct TokenArgs {
    #[command(subcommand)]
    verb: Verb,
    /// The file of the server
    #[arg(long, value_name = "FILE", default_value = "outlast.toml", global = true)]
    config: PathBuf,
}

#[derive(Debug, Subcommand)]
enum Verb {
    New(New),
    /// List tokens. Their texts are not kept, and nobody can show them
    List,
    /// Take a token out of the file
    Revoke {
        /// The token's id
        id: String,
    },
}

/// Draw a token. Its text is shown once, and only its hash is kept
#[derive(Debug, Args)]
struct New {
    /// Who has it: stands beside approvals, and in the audit log
    name: String,
    /// What it may do: read, start, signal, approve, worker or admin; may be said more than once
    #[arg(long, required = true)]
    scope: Vec<Scope>,
    /// The namespace it acts in
    #[arg(long, value_name = "NAME", default_value = "default")]
    namespace: String,
    /// When it expires
    #[arg(long, value_name = "TIME", default_value = "90d", value_parser = parse_length)]
    expires: Duration,
    /// Add it to the file, instead of showing what to add
    #[arg(long)]
    add: bool,
    /// Print the token and nothing else
    #[arg(short, long, requires = "add")]
    quiet: bool,
}

pub(crate) fn token(asked: TokenArgs, global: &Global) -> Result<Exit> {
    let TokenArgs { verb, config } = asked;
    match verb {
        Verb::New(new) => draw(&new, &config, global),
        Verb::List => list(&config, global),
        Verb::Revoke { id } => revoke(&id, &config, global),
    }
}

/// What a program is told about a token that was drawn.
#[derive(Serialize)]
struct Drawn<'t> {
    token: &'t str,
    id: &'t str,
    name: &'t str,
    namespace: &'t str,
    scopes: &'t [Scope],
    expires: &'t str,
}

fn draw(new: &New, config: &Path, global: &Global) -> Result<Exit> {
    let drawn = NewToken::draw(&new.name, &new.namespace, &new.scope, now() + new.expires)
        .map_err(|error| Stop::new(Exit::Usage, error.to_string()))?;
    let NewToken { text, token } = &drawn;
    if new.add {
        append(config, &token.to_toml())?;
    }
    let Token { id, name, namespace, scopes, expires, .. } = token;
    let shown = Drawn { token: text, id, name, namespace, scopes, expires };
    output::one(global.output, &shown, |shown| shown.token.to_owned())?;
    if global.output == Format::Table && !new.quiet {
        if new.add {
            note(&format!(
                "It is in {} as {id}, until {expires}. This is the only time it is shown.",
                config.display()
            ));
        } else {
            note(&format!("This is the only time it is shown. Add to {}:\n\n{}", config.display(), token.to_toml()));
        }
    }
    Ok(Exit::Done)
}

fn append(config: &Path, entry: &str) -> Result<()> {
    // What is there must be readable: a file that is broken is not made longer.
    let before = tokens(config)?;
    let file = fs::OpenOptions::new().create(true).append(true).open(config);
    let mut file = file.with_context(|| format!("{} cannot be written", config.display()))?;
    let gap = if before.text.is_empty() { "" } else { "\n" };
    file.write_all(format!("{gap}{entry}").as_bytes())
        .with_context(|| format!("{} cannot be written", config.display()))
}

struct Kept {
    text: String,
    tokens: Vec<Token>,
}

fn tokens(config: &Path) -> Result<Kept> {
    let shown = config.display();
    if !config.exists() {
        return Ok(Kept { text: String::new(), tokens: Vec::new() });
    }
    let text = fs::read_to_string(config).with_context(|| format!("{shown} cannot be read"))?;
    // Secrets of webhooks are not needed here.
    let read = ServerConfig::from_toml(&text, |_| Some("whsec_bm90IG5lZWRlZCBoZXJlIGF0IGFsbA==".to_owned()));
    let read = read.map_err(|error| Stop::new(Exit::Error, format!("{shown}: {error}")))?;
    Ok(Kept { text, tokens: read.tokens })
}

/// A token as it is listed.
#[derive(Serialize)]
struct Listed {
    id: String,
    name: String,
    namespace: String,
    scopes: Vec<Scope>,
    expires: String,
}

fn list(config: &Path, global: &Global) -> Result<Exit> {
    let kept = tokens(config)?.tokens.into_iter();
    let listed: Vec<Listed> = kept
        .map(|Token { id, name, namespace, scopes, expires, .. }| Listed { id, name, namespace, scopes, expires })
        .collect();
    output::many(global.output, &listed, |listed| {
        let lines = listed.iter().map(|token| {
            let scopes: Vec<&str> = token.scopes.iter().map(|scope| scope.name()).collect();
            vec![token.id.clone(), token.name.clone(), token.namespace.clone(), scopes.join(","), token.expires.clone()]
        });
        table(&["ID", "NAME", "NAMESPACE", "SCOPES", "EXPIRES"], lines)
    })?;
    Ok(Exit::Done)
}

fn revoke(id: &str, config: &Path, global: &Global) -> Result<Exit> {
    let kept = tokens(config)?;
    if !kept.tokens.iter().any(|token| token.id == id) {
        let message = format!("{} has no token {id:?}", config.display());
        return Err(Stop::new(Exit::NotFound, message).hint("`outlast token list` shows those it has").into());
    }
    let text = without(&kept.text, id);
    // What is written must be what was meant: everything but this token.
    let left = ServerConfig::from_toml(&text, |_| Some("whsec_bm90IG5lZWRlZCBoZXJlIGF0IGFsbA==".to_owned()));
    let is_right = left
        .is_ok_and(|left| left.tokens.len() + 1 == kept.tokens.len() && left.tokens.iter().all(|token| token.id != id));
    if !is_right {
        let message = format!("the token {id:?} is not written as an entry of its own in {}", config.display());
        return Err(Stop::new(Exit::Error, message).hint("remove it by hand").into());
    }
    fs::write(config, text).with_context(|| format!("{} cannot be written", config.display()))?;
    done(global, &serde_json::json!({ "id": id, "revoked": true }), &format!("revoked: {id}"))?;
    Ok(Exit::Done)
}

/// The text without the entry of a token.
fn without(text: &str, id: &str) -> String {
    let mut parts: Vec<String> = vec![String::new()];
    for line in text.split_inclusive('\n') {
        if line.trim_start().starts_with('[') {
            parts.push(String::new());
        }
        if let Some(part) = parts.last_mut() {
            part.push_str(line);
        }
    }
    let is_it = |part: &String| {
        let entry = toml::from_str::<toml::Table>(part).ok();
        let found = entry.as_ref().and_then(|entry| entry.get("tokens")?.get(0)?.get("id")?.as_str());
        part.trim_start().starts_with("[[tokens]]") && found == Some(id)
    };
    parts.into_iter().filter(|part| !is_it(part)).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn only_the_token_that_is_meant_is_taken_out() {
        let entry = |id: &str| format!("[[tokens]]\nid = \"{id}\"\nname = \"x\"\n\n");
        let tasks = "# tasks\n[tasks.a]\ncommand = [\n  \"cat\",\n]\n\n";
        let text = format!("{tasks}{}{}[tasks.b]\ncommand = [\"b\"]\n", entry("one"), entry("two"));
        assert_eq!(without(&text, "one"), format!("{tasks}{}[tasks.b]\ncommand = [\"b\"]\n", entry("two")));
        assert_eq!(without(&text, "three"), text);
    }
}
