//! Fills a working set: locks what may change, then reads the clock, then reads the rest, in one round trip.

mod held;
mod side;

use outlast_core::id::{LeaseId, Namespace, RunKey};
use outlast_core::time::Timestamp;
use tokio_postgres::Row;

use super::Core;
use super::decode::{self, Fields, number, run_columns, task_columns};
use super::failure::Failure;
use super::needs::Needs;
use super::session::{CLOCK, Param, Session, Step};
use super::working_set::WorkingSet;
use crate::error::StoreError;

/// Multi-row statements lock in (namespace, id) order, so that two groups never wait for each other in a circle. That
/// order is written so that no index has it: rows are looked up one by one and then sorted, never found by walking
/// through all there are.
const LOCK_RUNS: &str = concat!(
    "SELECT ",
    run_columns!(),
    " FROM unnest($1::int[], $2::text[]) k (ns, id) JOIN run r ON r.ns = k.ns AND r.id = k.id \
      ORDER BY r.ns + 0, r.id FOR UPDATE OF r"
);

/// As [`LOCK_RUNS`], and the runs that await the tasks of the other two parameters: a task's run is locked before it.
const LOCK_RUNS_OF_TASKS: &str = concat!(
    "SELECT ",
    run_columns!(),
    " FROM (SELECT ns, id FROM unnest($1::int[], $2::text[]) k (ns, id) UNION \
      SELECT t.ns, t.run FROM unnest($3::int[], $4::text[]) k (ns, id) \
      JOIN task t ON t.ns = ANY(ARRAY[k.ns]) AND t.id = k.id WHERE t.run || '' IS NOT NULL) k \
      JOIN run r ON r.ns = k.ns AND r.id = k.id ORDER BY r.ns + 0, r.id FOR UPDATE OF r"
);

/// As [`LOCK_RUNS_OF_TASKS`], and the runs that have the start keys of the last three.
const LOCK_RUNS_OF_STARTS: &str = concat!(
    "SELECT ",
    run_columns!(),
    " FROM (SELECT ns, id FROM unnest($1::int[], $2::text[]) k (ns, id) UNION \
      SELECT t.ns, t.run FROM unnest($3::int[], $4::text[]) k (ns, id) \
      JOIN task t ON t.ns = ANY(ARRAY[k.ns]) AND t.id = k.id WHERE t.run || '' IS NOT NULL UNION \
      SELECT s.ns, s.run FROM unnest($5::int[], $6::smallint[], $7::text[]) k (ns, kind, key) \
      JOIN start_key s ON s.ns = k.ns AND s.kind = k.kind AND s.key = k.key) k \
      JOIN run r ON r.ns = k.ns AND r.id = k.id ORDER BY r.ns + 0, r.id FOR UPDATE OF r"
);

const LOCK_TASKS: &str = concat!(
    "SELECT ",
    task_columns!(),
    " FROM unnest($1::int[], $2::text[]) k (ns, id) JOIN task t ON t.ns = ANY(ARRAY[k.ns]) AND t.id = k.id \
      ORDER BY t.ns + 0, t.id FOR UPDATE OF t"
);

const LOCK_SCHEDULES: &str = "SELECT s.ns, s.id, s.revision, s.spec, s.state, s.next_at \
     FROM unnest($1::int[], $2::text[]) k (ns, id) JOIN schedule s ON s.ns = k.ns AND s.id = k.id ORDER BY s.ns + 0, s.id FOR UPDATE OF s";

const LEASES: &str = "SELECT id, until FROM lease WHERE id = ANY($1)";

const SEQS: &str = "SELECT nextval('run_seq') FROM generate_series(1, $1::bigint)";

/// A statement and what becomes of its rows.
struct Query<'n> {
    step: Step<'n>,
    apply: Apply<'n>,
}

type Apply<'n> = Box<dyn FnOnce(&Core, &mut WorkingSet, &[Row]) -> Result<(), Failure> + Send + 'n>;

impl<'n> Query<'n> {
    fn new(
        step: Step<'n>,
        apply: impl FnOnce(&Core, &mut WorkingSet, &[Row]) -> Result<(), Failure> + Send + 'n,
    ) -> Self {
        Query { step, apply: Box::new(apply) }
    }
}

/// Begins the transaction of a working set, and fetches what is known to be needed.
pub(super) async fn begin(
    core: &Core,
    session: &mut Session,
    set: &mut WorkingSet,
    needs: &Needs,
) -> Result<(), Failure> {
    fetch(core, session, set, needs, Some(Step::Plain("BEGIN"))).await
}

/// Fetches what was missing.
pub(super) async fn more(
    core: &Core,
    session: &mut Session,
    set: &mut WorkingSet,
    needs: &Needs,
) -> Result<(), Failure> {
    fetch(core, session, set, needs, None).await
}

async fn fetch(
    core: &Core,
    session: &mut Session,
    set: &mut WorkingSet,
    needs: &Needs,
    begin: Option<Step<'_>>,
) -> Result<(), Failure> {
    core.namespaces.learn(session, needs.all_namespaces()).await?;
    for namespace in needs.all_namespaces() {
        if let Some(id) = core.namespaces.id(namespace) {
            set.facts.namespaces.insert(namespace.clone(), id);
        }
    }
    let mut queries: Vec<Query<'_>> = begin.into_iter().map(|step| Query::new(step, |_, _, _| Ok(()))).collect();
    queries.extend(runs(set, needs));
    queries.extend(tasks(set, needs));
    queries.extend(side::tasks_of(set, needs));
    queries.extend(schedules(set, needs));
    queries.extend(held::start_keys(set, needs));
    queries.push(Query::new(Step::new(CLOCK, Vec::new()), |core, set, rows| {
        set.now = core.now(rows)?;
        Ok(())
    }));
    queries.extend(leases(needs));
    queries.extend(seqs(needs));
    queries.extend(side::all(set, needs));
    queries.extend(held::held(set, needs));
    let (steps, applies): (Vec<_>, Vec<_>) = queries.into_iter().map(|query| (query.step, query.apply)).unzip();
    let answers = session.send_all(&steps).await?;
    for (apply, rows) in applies.into_iter().zip(&answers) {
        apply(core, set, rows)?;
    }
    Ok(())
}

/// Names with the numbers of their namespaces; those of namespaces that do not exist are left out.
fn placed<'n>(set: &WorkingSet, names: impl IntoIterator<Item = (&'n Namespace, &'n str)>) -> (Vec<i32>, Vec<&'n str>) {
    let known = |(namespace, name)| Some((*set.facts.namespaces.get(namespace)?, name));
    names.into_iter().filter_map(known).unzip()
}

fn runs<'n>(set: &mut WorkingSet, needs: &'n Needs) -> Option<Query<'n>> {
    let wanted = || needs.runs.iter().filter(|(_, of)| of.row).map(|(run, _)| run);
    for run in wanted() {
        set.facts.runs.entry(run.clone()).or_default().row = Some(Ok(None));
    }
    let (ns, ids) = placed(set, wanted().map(|run| (&run.namespace, run.id.as_str())));
    let (task_ns, task_ids) = placed(set, needs.tasks.iter().map(|(namespace, id)| (namespace, id.as_str())));
    let step = if !needs.start_keys.is_empty() {
        let mut params: Vec<Param<'_>> = vec![Box::new(ns), Box::new(ids), Box::new(task_ns), Box::new(task_ids)];
        params.extend(held::start_key_params(set, needs));
        Step::new(LOCK_RUNS_OF_STARTS, params)
    } else if !task_ids.is_empty() {
        let params = vec![Box::new(ns) as _, Box::new(ids) as _, Box::new(task_ns) as _, Box::new(task_ids) as _];
        Step::new(LOCK_RUNS_OF_TASKS, params)
    } else if !ids.is_empty() {
        Step::new(LOCK_RUNS, vec![Box::new(ns), Box::new(ids)])
    } else {
        return None;
    };
    Some(Query::new(step, |core, set, rows| rows.iter().try_for_each(|row| keep_run(core, set, row))))
}

fn keep_run(core: &Core, set: &mut WorkingSet, row: &Row) -> Result<(), Failure> {
    let found = decode::run(row, &core.namespaces);
    let key = match &found {
        Ok(run) => run.key.clone(),
        Err(damaged) => match damaged_key(core, row) {
            Some(key) => key,
            None => return Err(damaged.error.clone().into()),
        },
    };
    set.facts.runs.entry(key).or_default().row = Some(found.map(Some).map_err(|damaged| damaged.error));
    Ok(())
}

/// A damaged run that was found by its key has that key.
fn damaged_key(core: &Core, row: &Row) -> Option<RunKey> {
    let namespace = core.namespaces.name(row.try_get(0).ok()?)?;
    Some(RunKey::new(namespace, Fields::from(row, 2).id().ok()?))
}

fn tasks<'n>(set: &mut WorkingSet, needs: &'n Needs) -> Option<Query<'n>> {
    for name in &needs.tasks {
        set.facts.tasks.insert(name.clone(), Ok(None));
    }
    let (ns, ids) = placed(set, needs.tasks.iter().map(|(namespace, id)| (namespace, id.as_str())));
    if ids.is_empty() {
        return None;
    }
    let step = Step::new(LOCK_TASKS, vec![Box::new(ns), Box::new(ids)]);
    Some(Query::new(step, |core, set, rows| rows.iter().try_for_each(|row| keep_task(core, set, row, 0))))
}

/// Keeps a task, whose columns begin at `at`.
fn keep_task(core: &Core, set: &mut WorkingSet, row: &Row, at: usize) -> Result<(), Failure> {
    let namespace = core.namespaces.name(row.try_get(at)?);
    let id = Fields::from(row, at + 1).id();
    // It was found by its name, or by the run that awaits it; unreadable, it can only be named in words.
    let (Some(namespace), Ok(id)) = (namespace, id) else {
        return Err(StoreError::corrupt("the table of tasks", "a task has no readable id").into());
    };
    let found = decode::task(&mut Fields::from(row, at), &core.namespaces);
    let found = found.map(Some).map_err(|detail| StoreError::corrupt(format!("task {namespace}/{id}"), detail));
    set.facts.tasks.insert((namespace, id), found);
    Ok(())
}

fn schedules<'n>(set: &mut WorkingSet, needs: &'n Needs) -> Option<Query<'n>> {
    for name in &needs.schedules {
        set.facts.schedules.insert(name.clone(), Ok(None));
    }
    let (ns, ids) = placed(set, needs.schedules.iter().map(|(namespace, id)| (namespace, id.as_str())));
    if ids.is_empty() {
        return None;
    }
    let step = Step::new(LOCK_SCHEDULES, vec![Box::new(ns), Box::new(ids)]);
    Some(Query::new(step, |core, set, rows| {
        for row in rows {
            let schedule = decode::schedule(&mut Fields::from(row, 0), &core.namespaces);
            let schedule = schedule.map_err(|detail| StoreError::corrupt("the table of schedules", detail))?;
            set.facts.schedules.insert((schedule.namespace.clone(), schedule.id.clone()), Ok(Some(schedule)));
        }
        Ok(())
    }))
}

fn leases(needs: &Needs) -> Option<Query<'_>> {
    if needs.leases.is_empty() {
        return None;
    }
    let ids: Vec<i64> = needs.leases.iter().map(|lease| number(lease.0)).collect();
    Some(Query::new(Step::new(LEASES, vec![Box::new(ids)]), |_, set, rows| {
        set.facts.leases.extend(needs.leases.iter().map(|lease| (*lease, None)));
        for row in rows {
            let lease = LeaseId(u64::try_from(row.try_get::<_, i64>(0)?).unwrap_or(0));
            set.facts.leases.insert(lease, Some(Timestamp::from_millis(row.try_get(1)?)));
        }
        Ok(())
    }))
}

fn seqs(needs: &Needs) -> Option<Query<'_>> {
    if needs.seqs == 0 {
        return None;
    }
    let step = Step::new(SEQS, vec![Box::new(number(needs.seqs as u64))]);
    Some(Query::new(step, |_, set, rows| {
        for row in rows {
            set.facts.seqs.push(row.try_get(0)?);
        }
        // The order in which the logic creates is the order in which they are listed.
        set.facts.seqs.sort_unstable();
        Ok(())
    }))
}

/// Every statement here, and the indexes it is meant to use.
#[cfg(test)]
pub(super) fn statements() -> Vec<(&'static str, &'static str, &'static [&'static str])> {
    let mut statements = vec![
        ("fetch: runs", LOCK_RUNS, &["run_ns_id_key"][..]),
        ("fetch: runs of tasks", LOCK_RUNS_OF_TASKS, &["run_ns_id_key", "task_pkey"]),
        ("fetch: runs of start keys", LOCK_RUNS_OF_STARTS, &["run_ns_id_key", "start_key_pkey", "task_pkey"]),
        ("fetch: tasks", LOCK_TASKS, &["task_pkey"]),
        ("fetch: schedules", LOCK_SCHEDULES, &["schedule_pkey"]),
        ("fetch: leases", LEASES, &["lease_pkey"]),
    ];
    statements.extend(side::statements());
    statements.extend(held::statements());
    statements
}
