//! `outlast sql`: a question about the tables.

use anyhow::Result;
use clap::Args;
use outlast_server::dto;
use serde_json::{Map, Value};

use crate::api::Api;
use crate::args::Global;
use crate::database::PlaceArgs;
use crate::exit::Exit;
use crate::output::{self, note, table};
use crate::palette::Palette;
use crate::words::short;

/// How much of a value a table shows.
const LETTERS_MAX: usize = 60;

/// Ask a question in SQL that only reads
#[derive(Debug, Args)]
#[command(
    after_help = "A server answers it only if it was started with --sql, or has `sql = true` under [server] in its outlast.toml, \
                  and only to admins of its own namespace: SQL sees every namespace. The tables may change with every version."
)]
pub(crate) struct Sql {
    /// One statement, such as: SELECT status, count(*) AS runs FROM run GROUP BY status
    query: String,
    /// How many rows, at most
    #[arg(long, value_name = "ROWS", value_parser = clap::value_parser!(u32).range(1..=1000))]
    limit: Option<u32>,
    #[command(flatten)]
    place: PlaceArgs,
}

pub(crate) async fn sql(asked: Sql, global: &Global) -> Result<Exit> {
    let request = dto::AskSql { query: asked.query, limit: asked.limit };
    let answer: dto::SqlAnswer = Api::with(&asked.place, async |api| api.post(&["sql"], &request).await).await?;
    let named = |row: &Vec<Value>| answer.columns.iter().cloned().zip(row.iter().cloned()).collect::<Map<_, _>>();
    let rows: Vec<Map<String, Value>> = answer.rows.iter().map(named).collect();
    output::many(global.output, &rows, |_| {
        let shown = |value: &Value| match value {
            Value::String(text) => short(text, LETTERS_MAX),
            other => short(&other.to_string(), LETTERS_MAX),
        };
        let columns: Vec<&str> = answer.columns.iter().map(String::as_str).collect();
        table(&columns, answer.rows.iter().map(|row| row.iter().map(shown).collect()))
    })?;
    if answer.more {
        note(&format!("{} there are more rows; ask for less", Palette::stderr().warn("note:")));
    }
    Ok(Exit::Done)
}
