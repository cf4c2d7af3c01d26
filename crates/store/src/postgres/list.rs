//! Listings. The statement is put together from the filters that are set, so that each finds its index.

use tokio_postgres::Row;

use super::Core;
use super::decode::{self, number, run_columns};
use super::session::{Param, Session};
use crate::api::{Cursor, Filter, LIST_PAGE_MAX, Page};
use crate::error::StoreError;
use crate::rows::RunRow;

/// A statement in the making.
struct Statement<'f> {
    from: &'static str,
    order: &'static str,
    conditions: Vec<String>,
    params: Vec<Param<'f>>,
}

impl<'f> Statement<'f> {
    /// Adds a condition, in which `?` stands for the value.
    fn with(&mut self, condition: &str, value: impl tokio_postgres::types::ToSql + Sync + Send + 'f) {
        self.params.push(Box::new(value));
        self.conditions.push(condition.replace('?', &format!("${}", self.params.len())));
    }
}

pub(super) async fn list(core: &Core, filter: &Filter) -> Result<Page, StoreError> {
    let mut session = Session::begin(&core.pool).await?;
    core.namespaces.learn(&mut session, [&filter.namespace]).await?;
    let nothing = Page { runs: Vec::new(), next: None };
    let Some(ns) = core.namespaces.id(&filter.namespace) else { return Ok(nothing) };
    if cannot_match(filter) {
        return Ok(nothing);
    }
    let limit = filter.limit.clamp(1, LIST_PAGE_MAX);
    let mut statement = statement(ns, filter);
    // One more than a page has, to see whether there is another.
    statement.params.push(Box::new(number(limit as u64 + 1)));
    // Only fixed pieces are joined; every value is a parameter.
    // tidy: constant sql
    let sql = format!(
        "SELECT {} FROM {} WHERE {} ORDER BY {} DESC LIMIT ${}",
        run_columns!(),
        statement.from,
        statement.conditions.join(" AND "),
        statement.order,
        statement.params.len()
    );
    let rows = session.ask(&sql, statement.params).await?;
    page(core, &rows, limit)
}

/// PostgreSQL keeps no NUL in a text, so nothing can have one.
fn cannot_match(filter: &Filter) -> bool {
    let nul = |text: &str| text.contains('\0');
    filter.id_prefix.as_deref().is_some_and(nul) || filter.attribute.as_ref().is_some_and(|(_, value)| nul(value))
}

fn statement(ns: i32, filter: &Filter) -> Statement<'_> {
    let mut statement = Statement {
        from: "run r",
        order: "r.seq",
        conditions: vec!["r.deleted_at IS NULL".to_owned()],
        params: vec![],
    };
    statement.with("r.ns = ?", ns);
    if !filter.status.is_empty() {
        // Written out, because only constants tell the planner that a partial index will do.
        let codes: Vec<String> = filter.status.iter().map(|status| status.code().to_string()).collect();
        statement.conditions.push(format!("r.status IN ({})", codes.join(", ")));
    }
    if let Some(workflow) = &filter.workflow {
        statement.with("r.workflow = ?", workflow.as_str());
    }
    if let Some(version) = &filter.version {
        statement.with("r.version = ?", version.as_str());
    }
    if let Some(prefix) = &filter.id_prefix {
        statement.with("(r.id >= ? AND starts_with(r.id, ?))", prefix.as_str());
    }
    if let Some(from) = filter.created_from {
        statement.with("r.created_at >= ?", from.as_millis());
    }
    if let Some(until) = filter.created_until {
        statement.with("r.created_at < ?", until.as_millis());
    }
    if let Some(parent) = &filter.parent {
        statement.with("r.parent = ?", parent.as_str());
    }
    if let Some((name, value)) = &filter.attribute {
        statement.from = "attribute a JOIN run r ON r.seq = a.run";
        statement.order = "a.run + 0";
        statement.with("a.name || '' = ?", name.as_str());
        statement.with("(left(a.value, 128) = left(?, 128) AND a.value = ?)", value.as_str());
    }
    if let Some(after) = filter.after {
        statement.with("r.seq < ?", number(after.0));
    }
    statement
}

fn page(core: &Core, rows: &[Row], limit: usize) -> Result<Page, StoreError> {
    let found = rows.iter().take(limit).map(|row| decode::run(row, &core.namespaces).map_err(|damaged| damaged.error));
    let found: Vec<RunRow> = found.collect::<Result<_, _>>()?;
    let next = found.last().filter(|_| rows.len() > limit);
    let next = next.map(|run| Cursor(u64::try_from(run.row).unwrap_or(0)));
    Ok(Page { runs: found.iter().map(RunRow::view).collect(), next })
}
