//! Tasks as people and tools see them.

use outlast_core::id::{Namespace, TaskId};
use tokio_postgres::Row;

use super::super::Core;
use super::super::decode::{self, Fields, number, task_columns};
use super::super::session::{Param, Session};
use crate::api::{TaskDetail, TaskFilter, TaskPage};
use crate::error::StoreError;
use crate::rows::{TaskRow, task_state_code};

const ONE: &str = concat!("SELECT ", task_columns!(), " FROM task t WHERE t.ns = $1 AND t.id = $2");

pub(in super::super) async fn one(core: &Core, namespace: &Namespace, id: &TaskId) -> Result<TaskDetail, StoreError> {
    let mut session = Session::begin(&core.pool).await?;
    core.namespaces.learn(&mut session, [namespace]).await?;
    let unknown = || StoreError::UnknownTask(id.clone());
    let ns = core.namespaces.id(namespace).ok_or_else(unknown)?;
    let rows = session.ask(ONE, vec![Box::new(ns), Box::new(id.as_str())]).await?;
    read(core, namespace, rows.first().ok_or_else(unknown)?).map(|task| task.detail())
}

/// One page, put together from the filters that are set.
pub(in super::super) async fn page(core: &Core, filter: &TaskFilter) -> Result<TaskPage, StoreError> {
    let limit = filter.tasks_max();
    let mut session = Session::begin(&core.pool).await?;
    core.namespaces.learn(&mut session, [&filter.namespace]).await?;
    let Some(ns) = core.namespaces.id(&filter.namespace) else { return Ok(TaskPage::of(Vec::new(), limit)) };
    let mut params: Vec<Param<'_>> = vec![Box::new(ns)];
    let mut sql = String::from(concat!("SELECT ", task_columns!(), " FROM task t WHERE t.ns = $1"));
    let texts = [
        (" AND t.queue || '' = ", filter.queue.as_ref().map(|queue| queue.as_str())),
        (" AND t.name = ", filter.name.as_ref().map(|name| name.as_str())),
        (" AND t.origin || '' = ", filter.origin.as_ref().map(|run| run.as_str())),
        (" AND t.id > ", filter.after.as_ref().map(|after| after.as_str())),
    ];
    // Only fixed pieces are joined; every value is a parameter.
    for (piece, text) in texts {
        if let Some(text) = text {
            params.push(Box::new(text));
            sql.push_str(&format!("{piece}${}", params.len()));
        }
    }
    if !filter.state.is_empty() {
        params.push(Box::new(filter.state.iter().map(|state| task_state_code(*state)).collect::<Vec<i16>>()));
        sql.push_str(&format!(" AND t.state + 0 = ANY(${}::smallint[])", params.len()));
    }
    // One more than a page has, to see whether there is another.
    params.push(Box::new(number(limit as u64 + 1)));
    sql.push_str(&format!(" ORDER BY t.id LIMIT ${}", params.len()));
    let rows = session.ask(&sql, params).await?;
    let tasks = rows.iter().map(|row| read(core, &filter.namespace, row).map(|task| task.view()));
    Ok(TaskPage::of(tasks.collect::<Result<_, _>>()?, limit))
}

fn read(core: &Core, namespace: &Namespace, row: &Row) -> Result<TaskRow, StoreError> {
    let id: Option<TaskId> = Fields::from(row, 1).id().ok();
    let what = || id.map_or_else(|| "the table of tasks".to_owned(), |id| format!("task {namespace}/{id}"));
    decode::task(&mut Fields::from(row, 0), &core.namespaces).map_err(|detail| StoreError::corrupt(what(), detail))
}
