//! Definitions of workflows that are text.

use bytes::Bytes;
use outlast_core::id::{Namespace, Revision, RunId, RunKey, Version, WorkflowName};
use outlast_core::limits::Limits;
use outlast_core::time::Timestamp;
use rusqlite::{OptionalExtension, Row, params};

use super::decode;
use super::error::bad_value;
use super::query::Query;
use super::rows::SqliteRows;
use crate::api::{Defined, Definition, DefinitionDetail, DefinitionFilter, DefinitionPage, DefinitionView, Style};
use crate::error::StoreError;
use crate::logic::definition::{self, Change, Known};
use crate::logic::{Halt, refuse};
use crate::rows::{Fault, Rows};

/// Whether nothing of the same workflow came later.
macro_rules! is_current {
    () => {
        "NOT EXISTS (SELECT 1 FROM definition o WHERE o.ns = d.ns AND o.workflow = d.workflow AND o.revision > d.revision)"
    };
}
macro_rules! view_columns {
    () => {
        concat!(
            "d.ns, d.workflow, d.version, d.style, d.file, length(d.text), d.defined_at, d.revision, ",
            is_current!()
        )
    };
}

pub(super) const KNOWN: &str = concat!(
    "SELECT d.revision, d.style = ?4 AND d.text = ?5, ",
    is_current!(),
    " FROM definition d WHERE d.ns = ?1 AND d.workflow = ?2 AND d.version = ?3"
);
const LAST: &str = "SELECT revision FROM defining";
const SET_LAST: &str = "UPDATE defining SET revision = ?1";
const INSERT: &str = "INSERT INTO definition (ns, workflow, version, style, file, defined_at, revision, text) \
     VALUES (?1, ?2, ?3, ?4, ?5, ?6, ?7, ?8)";
const RAISE: &str = "UPDATE definition SET revision = ?4 WHERE ns = ?1 AND workflow = ?2 AND version = ?3";
pub(super) const ONE: &str = concat!(
    "SELECT ",
    view_columns!(),
    ", d.text FROM definition d WHERE d.ns = ?1 AND d.workflow = ?2 AND d.version = ?3"
);
pub(super) const CURRENT: &str = concat!(
    "SELECT ",
    view_columns!(),
    ", d.text FROM definition d WHERE d.ns = ?1 AND d.workflow = ?2 ORDER BY d.revision DESC LIMIT 1"
);
/// Behind a revision; of one namespace and one workflow, if they are given.
pub(super) const LIST: &str = concat!(
    "SELECT ",
    view_columns!(),
    " FROM definition d WHERE d.revision > ?1 AND (?2 IS NULL OR d.ns = ?2) AND (?3 IS NULL OR d.workflow = ?3) \
     ORDER BY d.revision LIMIT ?4"
);
/// The same of one workflow of one namespace.
pub(super) const VERSIONS: &str = concat!(
    "SELECT ",
    view_columns!(),
    " FROM definition d WHERE d.revision > ?1 AND d.ns = ?2 AND d.workflow = ?3 ORDER BY d.revision LIMIT ?4"
);
/// Whether it is the current one, and whether there are others.
const STANDING: &str = concat!(
    "SELECT ",
    is_current!(),
    ", EXISTS (SELECT 1 FROM definition o WHERE o.ns = d.ns AND o.workflow = d.workflow AND o.version <> d.version) \
     FROM definition d WHERE d.ns = ?1 AND d.workflow = ?2 AND d.version = ?3"
);
/// The oldest live run that began with it.
pub(super) const NEEDED: &str = "SELECT id FROM run INDEXED BY run_live WHERE status < 5 AND ns = ?1 AND workflow = ?2 \
     AND version = ?3 ORDER BY row LIMIT 1";
const FORGET: &str = "DELETE FROM definition WHERE ns = ?1 AND workflow = ?2 AND version = ?3";

fn revision(row: &Row<'_>, column: usize) -> rusqlite::Result<Revision> {
    Ok(Revision(decode::number(row, column, "definition.revision")?))
}

fn signed(revision: Revision) -> i64 {
    i64::try_from(revision.0).unwrap_or(i64::MAX)
}

pub(super) fn define(
    rows: &mut SqliteRows<'_>,
    definition: &Definition,
    limits: &Limits,
) -> Result<Defined, Halt<StoreError>> {
    definition::check(definition, limits).map_err(Halt::Refused)?;
    let Definition { namespace, workflow, version, style, file, text } = definition;
    let Some(ns) = rows.names.number(rows.connection, namespace).map_err(Fault::from)? else {
        return refuse(StoreError::UnknownNamespace(namespace.clone()));
    };
    let (workflow, version) = (workflow.as_str(), version.as_str());
    let known = rows.one(KNOWN, params![ns, workflow, version, style.code(), text.as_ref()], |row| {
        Ok(Known { revision: revision(row, 0)?, same: row.get(1)?, current: row.get(2)? })
    })?;
    let last = rows.one(LAST, [], |row| revision(row, 0))?.unwrap_or_default();
    let (defined, change) = definition::define(definition, known, last).map_err(Halt::Refused)?;
    match change {
        None => return Ok(defined),
        Some(Change::Insert(revision)) => {
            let now = rows.now().as_millis();
            let row = params![ns, workflow, version, style.code(), file, now, signed(revision), text.as_ref()];
            rows.execute(INSERT, row)?
        }
        Some(Change::Raise(revision)) => rows.execute(RAISE, params![ns, workflow, version, signed(revision)])?,
    };
    rows.execute(SET_LAST, [signed(defined.revision())])?;
    Ok(defined)
}

pub(super) fn forget(
    rows: &mut SqliteRows<'_>,
    namespace: &Namespace,
    workflow: &WorkflowName,
    version: &Version,
) -> Result<bool, Halt<StoreError>> {
    let Some(ns) = rows.names.number(rows.connection, namespace).map_err(Fault::from)? else { return Ok(false) };
    let name = params![ns, workflow.as_str(), version.as_str()];
    let standing = rows.one(STANDING, name, |row| Ok((row.get(0)?, row.get(1)?)))?;
    let Some(standing) = standing else { return Ok(false) };
    let needs = |row: &Row<'_>| {
        let id = RunId::new(row.get::<_, String>(0)?).map_err(|error| bad_value("run.id", error))?;
        Ok(RunKey::new(namespace.clone(), id))
    };
    let live = rows.one(NEEDED, name, needs)?;
    definition::forget(workflow, version, standing, live).map_err(Halt::Refused)?;
    Ok(rows.execute(FORGET, name)? > 0)
}

impl Query<'_> {
    pub(super) fn definition(
        &mut self,
        namespace: &Namespace,
        workflow: &WorkflowName,
        version: Option<&Version>,
    ) -> Result<Option<DefinitionDetail>, Fault> {
        let Some(ns) = self.names.number(self.connection, namespace)? else { return Ok(None) };
        let detail = |row: &Row<'_>| {
            let text = Bytes::from(row.get::<_, Vec<u8>>(9)?);
            Ok(DefinitionDetail { view: view(row, namespace.clone())?, text })
        };
        let found = match version {
            Some(version) => {
                let mut statement = self.connection.prepare_cached(ONE)?;
                statement.query_row(params![ns, workflow.as_str(), version.as_str()], detail).optional()?
            }
            None => {
                let mut statement = self.connection.prepare_cached(CURRENT)?;
                statement.query_row(params![ns, workflow.as_str()], detail).optional()?
            }
        };
        Ok(found)
    }

    pub(super) fn definitions(&mut self, filter: &DefinitionFilter) -> Result<DefinitionPage, Fault> {
        let ns = match &filter.namespace {
            None => None,
            Some(namespace) => match self.names.number(self.connection, namespace)? {
                None => return Ok(DefinitionPage::of(Vec::new(), filter)),
                known => known,
            },
        };
        let workflow = filter.workflow.as_ref().map(WorkflowName::as_str);
        let sql = if ns.is_some() && workflow.is_some() { VERSIONS } else { LIST };
        let mut statement = self.connection.prepare_cached(sql)?;
        let limit = filter.definitions_max() as i64 + 1;
        let mut rows = statement.query(params![signed(filter.after), ns, workflow, limit])?;
        let mut found = Vec::new();
        while let Some(row) = rows.next()? {
            let namespace = self.names.name(self.connection, row.get(0)?)?;
            found.push(view(row, namespace)?);
        }
        Ok(DefinitionPage::of(found, filter))
    }
}

/// A definition without its text, in `view_columns!` order.
fn view(row: &Row<'_>, namespace: Namespace) -> rusqlite::Result<DefinitionView> {
    let code: i64 = row.get(3)?;
    let unknown = || bad_value("definition.style", format_args!("unknown code {code}"));
    Ok(DefinitionView {
        namespace,
        workflow: WorkflowName::new(row.get::<_, String>(1)?)
            .map_err(|error| bad_value("definition.workflow", error))?,
        version: Version::new(row.get::<_, String>(2)?).map_err(|error| bad_value("definition.version", error))?,
        style: Style::from_code(code).ok_or_else(unknown)?,
        file: row.get(4)?,
        bytes: row.get::<_, i64>(5)?.unsigned_abs() as usize,
        defined_at: Timestamp::from_millis(row.get(6)?),
        revision: revision(row, 7)?,
        current: row.get(8)?,
    })
}
