//! Definitions of workflows that are text.
//!
//! Whoever defines or forgets holds the row of the last revision until it commits. So revisions become visible in their order,
//! and who has seen one need not look behind it again.

use outlast_core::id::{Namespace, Revision, RunId, RunKey, Version, WorkflowName};
use tokio_postgres::Row;

use super::decode::{Detail, Fields, number};
use super::failure::Failure;
use super::session::{CLOCK, Param, Session, Step};
use super::{Core, transact};
use crate::api::{Defined, Definition, DefinitionDetail, DefinitionFilter, DefinitionPage, DefinitionView, Style};
use crate::error::StoreError;
use crate::logic::definition::{self, Change, Known};

/// Whether nothing of the same workflow came later.
macro_rules! is_current {
    () => {
        "NOT EXISTS (SELECT 1 FROM definition o WHERE o.ns + 0 = d.ns AND o.workflow = d.workflow \
         AND o.revision + 0 > d.revision)"
    };
}
macro_rules! view_columns {
    () => {
        concat!(
            "d.ns, d.workflow, d.version, d.style, d.file, octet_length(d.text), d.defined_at, d.revision, ",
            is_current!()
        )
    };
}

pub(super) const KNOWN: &str = concat!(
    "SELECT d.revision, d.style = $4::smallint AND d.text = $5::bytea, ",
    is_current!(),
    " FROM definition d WHERE d.ns = $1 AND d.workflow = $2 AND d.version = $3"
);
const LOCK: &str = "SELECT revision FROM defining WHERE id = 1 FOR UPDATE";
const SET_LAST: &str = "UPDATE defining SET revision = $1::bigint WHERE id = 1";
const INSERT: &str = "INSERT INTO definition (ns, workflow, version, style, file, defined_at, revision, text) \
     VALUES ($1, $2::text, $3::text, $4::smallint, $5::text, $6, $7::bigint, $8::bytea)";
const RAISE: &str = "UPDATE definition SET revision = $4::bigint WHERE ns = $1 AND workflow = $2 AND version = $3";
pub(super) const ONE: &str = concat!(
    "SELECT ",
    view_columns!(),
    ", d.text FROM definition d WHERE d.ns = $1 AND d.workflow = $2 AND d.version = $3"
);
pub(super) const CURRENT: &str = concat!(
    "SELECT ",
    view_columns!(),
    ", d.text FROM definition d WHERE d.ns + 0 = $1 AND d.workflow = $2 ORDER BY d.revision + 0 DESC LIMIT 1"
);
/// Behind a revision; of one namespace and one workflow, if they are given.
pub(super) const LIST: &str = concat!(
    "SELECT ",
    view_columns!(),
    " FROM definition d WHERE d.revision > $1 AND ($2::int IS NULL OR d.ns + 0 = $2) \
     AND ($3::text IS NULL OR d.workflow = $3) ORDER BY d.revision LIMIT $4"
);
/// The same of one workflow of one namespace.
pub(super) const VERSIONS: &str = concat!(
    "SELECT ",
    view_columns!(),
    " FROM definition d WHERE d.revision + 0 > $1 AND d.ns + 0 = $2 AND d.workflow = $3 \
     ORDER BY d.revision + 0 LIMIT $4"
);
/// Whether it is the current one, and whether there are others.
const STANDING: &str = concat!(
    "SELECT ",
    is_current!(),
    ", EXISTS (SELECT 1 FROM definition o WHERE o.ns + 0 = d.ns AND o.workflow = d.workflow AND o.version <> d.version) \
     FROM definition d WHERE d.ns = $1 AND d.workflow = $2 AND d.version = $3"
);
/// The oldest live run that began with it.
const NEEDED: &str = "SELECT r.id FROM run r WHERE r.status < 5 AND r.ns = $1 AND r.workflow = $2 AND r.version = $3 \
     ORDER BY r.seq LIMIT 1";
const FORGET: &str = "DELETE FROM definition WHERE ns = $1 AND workflow = $2 AND version = $3";

fn corrupt(detail: Detail) -> StoreError {
    StoreError::corrupt("the table of definitions", detail)
}

fn known_of(ns: i32, definition: &Definition) -> Step<'_> {
    let Definition { workflow, version, style, text, .. } = definition;
    let params: Vec<Param<'_>> = vec![
        Box::new(ns),
        Box::new(workflow.as_str()),
        Box::new(version.as_str()),
        Box::new(style.code()),
        Box::new(text.as_ref()),
    ];
    Step::new(KNOWN, params)
}

fn known(rows: &[Row]) -> Result<Option<Known>, StoreError> {
    let read = |row: &Row| -> Result<Known, Detail> {
        let mut fields = Fields::from(row, 0);
        Ok(Known { revision: Revision(fields.whole()?), same: fields.next()?, current: fields.next()? })
    };
    rows.first().map(read).transpose().map_err(corrupt)
}

/// A definition and the number of its namespace, or why it is refused.
type Checked<'d> = Result<(i32, &'d Definition), StoreError>;

fn check<'d>(core: &Core, definition: &'d Definition) -> Checked<'d> {
    definition::check(definition, &core.limits)?;
    let unknown = || StoreError::UnknownNamespace(definition.namespace.clone());
    Ok((core.namespaces.id(&definition.namespace).ok_or_else(unknown)?, definition))
}

pub(super) async fn define(
    core: &Core,
    definitions: &[Definition],
) -> Result<Vec<Result<Defined, StoreError>>, StoreError> {
    let mut session = Session::begin(&core.pool).await?;
    core.namespaces.learn(&mut session, definitions.iter().map(|definition| &definition.namespace)).await?;
    let checked: Vec<Checked<'_>> = definitions.iter().map(|definition| check(core, definition)).collect();
    // Whoever starts defines what is there already, mostly: nothing is to be locked for that.
    if let Some(unchanged) = unchanged(&mut session, &checked).await? {
        return Ok(unchanged);
    }
    drop(session);
    let (answers, changed) = transact!(core, |session| try_define(core, session, &checked))?;
    if changed {
        core.hint();
    }
    Ok(answers)
}

/// The answers, if all are there and current.
async fn unchanged(
    session: &mut Session,
    checked: &[Checked<'_>],
) -> Result<Option<Vec<Result<Defined, StoreError>>>, StoreError> {
    let steps: Vec<Step<'_>> = checked.iter().flatten().map(|(ns, definition)| known_of(*ns, definition)).collect();
    let mut found = session.send_all(&steps).await?.into_iter();
    let mut answers = Vec::with_capacity(checked.len());
    for item in checked {
        let answer = match item {
            Err(refused) => Err(refused.clone()),
            Ok(_) => match known(&found.next().unwrap_or_default())? {
                Some(Known { revision, same: true, current: true }) => Ok(Defined::Unchanged(revision)),
                Some(_) | None => return Ok(None),
            },
        };
        answers.push(answer);
    }
    Ok(Some(answers))
}

async fn lock(session: &mut Session) -> Result<(Revision, Vec<Row>), Failure> {
    let locks = [Step::Plain("BEGIN"), Step::new(LOCK, Vec::new()), Step::new(CLOCK, Vec::new())];
    let mut answers = session.send_all(&locks).await?;
    let clock = answers.pop().unwrap_or_default();
    let last = answers.pop().unwrap_or_default();
    let last = last.first().ok_or_else(|| corrupt("the last revision is gone".to_owned()))?;
    Ok((Revision(Fields::from(last, 0).whole().map_err(corrupt)?), clock))
}

/// The answers, and whether anything changed.
async fn try_define(
    core: &Core,
    session: &mut Session,
    checked: &[Checked<'_>],
) -> Result<(Vec<Result<Defined, StoreError>>, bool), Failure> {
    let (first, clock) = lock(session).await?;
    let now = core.now(&clock)?.as_millis();
    let mut last = first;
    let mut answers = Vec::with_capacity(checked.len());
    for item in checked {
        let (ns, definition) = match item {
            Ok(item) => item,
            Err(refused) => {
                answers.push(Err(refused.clone()));
                continue;
            }
        };
        let rows = session.send_all(&[known_of(*ns, definition)]).await?.pop().unwrap_or_default();
        let decided = definition::define(definition, known(&rows)?, last);
        if let Ok((_, Some(change))) = decided {
            last = write(session, *ns, definition, change, now).await?;
        }
        answers.push(decided.map(|(defined, _)| defined));
    }
    session.commit(vec![Step::new(SET_LAST, vec![Box::new(number(last.0))])]).await?;
    Ok((answers, last != first))
}

/// Its revision.
async fn write(
    session: &mut Session,
    ns: i32,
    definition: &Definition,
    change: Change,
    now: i64,
) -> Result<Revision, Failure> {
    let Definition { workflow, version, style, file, text, .. } = definition;
    let mut params: Vec<Param<'_>> = vec![Box::new(ns), Box::new(workflow.as_str()), Box::new(version.as_str())];
    let (sql, revision) = match change {
        Change::Insert(revision) => {
            params.push(Box::new(style.code()));
            params.push(Box::new(file.as_str()));
            params.push(Box::new(now));
            params.push(Box::new(number(revision.0)));
            params.push(Box::new(text.as_ref()));
            (INSERT, revision)
        }
        Change::Raise(revision) => {
            params.push(Box::new(number(revision.0)));
            (RAISE, revision)
        }
    };
    session.ask(sql, params).await?;
    Ok(revision)
}

pub(super) async fn one(
    core: &Core,
    namespace: &Namespace,
    workflow: &WorkflowName,
    version: Option<&Version>,
) -> Result<Option<DefinitionDetail>, StoreError> {
    let mut session = Session::begin(&core.pool).await?;
    core.namespaces.learn(&mut session, [namespace]).await?;
    let Some(ns) = core.namespaces.id(namespace) else { return Ok(None) };
    let rows = match version {
        Some(version) => {
            let name: Vec<Param<'_>> = vec![Box::new(ns), Box::new(workflow.as_str()), Box::new(version.as_str())];
            session.ask(ONE, name).await?
        }
        None => session.ask(CURRENT, vec![Box::new(ns), Box::new(workflow.as_str())]).await?,
    };
    let detail = |row: &Row| -> Result<DefinitionDetail, Detail> {
        let mut fields = Fields::from(row, 0);
        Ok(DefinitionDetail { view: view(core, &mut fields)?, text: fields.bytes()? })
    };
    rows.first().map(detail).transpose().map_err(corrupt)
}

pub(super) async fn page(core: &Core, filter: &DefinitionFilter) -> Result<DefinitionPage, StoreError> {
    let mut session = Session::begin(&core.pool).await?;
    core.namespaces.learn(&mut session, &filter.namespace).await?;
    let ns = filter.namespace.as_ref().map(|namespace| core.namespaces.id(namespace));
    if ns == Some(None) {
        return Ok(DefinitionPage::of(Vec::new(), filter));
    }
    let (ns, workflow) = (ns.flatten(), filter.workflow.as_ref().map(WorkflowName::as_str));
    // One more than a page has, to see whether there is another.
    let limit = number(filter.definitions_max() as u64 + 1);
    let mut params: Vec<Param<'_>> = vec![Box::new(number(filter.after.0))];
    let sql = match (ns, workflow) {
        (Some(ns), Some(workflow)) => {
            params.push(Box::new(ns));
            params.push(Box::new(workflow));
            VERSIONS
        }
        (ns, workflow) => {
            params.push(Box::new(ns));
            params.push(Box::new(workflow));
            LIST
        }
    };
    params.push(Box::new(limit));
    let rows = session.ask(sql, params).await?;
    core.namespaces.cover(&mut session, &rows).await?;
    let found = rows.iter().map(|row| view(core, &mut Fields::from(row, 0)).map_err(corrupt));
    Ok(DefinitionPage::of(found.collect::<Result<_, _>>()?, filter))
}

/// A definition without its text, from `view_columns!`.
fn view(core: &Core, fields: &mut Fields<'_>) -> Result<DefinitionView, Detail> {
    let ns: i32 = fields.next()?;
    Ok(DefinitionView {
        namespace: core.namespaces.name(ns).ok_or_else(|| format!("there is no namespace {ns}"))?,
        workflow: fields.id()?,
        version: fields.id()?,
        style: fields.code("style", Style::from_code)?,
        file: fields.next()?,
        bytes: fields.count()? as usize,
        defined_at: fields.time()?,
        revision: Revision(fields.whole()?),
        current: fields.next()?,
    })
}

pub(super) async fn forget(
    core: &Core,
    namespace: &Namespace,
    workflow: &WorkflowName,
    version: &Version,
) -> Result<bool, StoreError> {
    let mut session = Session::begin(&core.pool).await?;
    core.namespaces.learn(&mut session, [namespace]).await?;
    drop(session);
    let Some(ns) = core.namespaces.id(namespace) else { return Ok(false) };
    transact!(core, |session| try_forget(session, (ns, namespace), workflow, version))
}

async fn try_forget(
    session: &mut Session,
    (ns, namespace): (i32, &Namespace),
    workflow: &WorkflowName,
    version: &Version,
) -> Result<bool, Failure> {
    let name = || -> Vec<Param<'_>> { vec![Box::new(ns), Box::new(workflow.as_str()), Box::new(version.as_str())] };
    lock(session).await?;
    let found = session.ask(STANDING, name()).await?;
    let Some(found) = found.first() else { return Ok(false) };
    let standing = (found.try_get(0)?, found.try_get(1)?);
    let needs = |row: &Row| -> Result<RunId, Detail> { Fields::from(row, 0).id() };
    let live = session.ask(NEEDED, name()).await?.first().map(needs).transpose();
    let live = live.map_err(|detail| StoreError::corrupt("the table of runs", detail))?;
    let live = live.map(|id| RunKey::new(namespace.clone(), id));
    definition::forget(workflow, version, standing, live)?;
    session.commit(vec![Step::new(FORGET, name())]).await?;
    Ok(true)
}
