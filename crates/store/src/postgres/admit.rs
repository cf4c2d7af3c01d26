//! Admitting runs, in batches. Whoever admits holds the one row of `admission` from the beginning to the end of its
//! transaction, so that nobody else adds slots or writes gates meanwhile.

mod write;

use std::collections::{BTreeMap, BTreeSet};

use outlast_core::id::{Namespace, RunKey};
use outlast_core::time::Timestamp;
use tokio_postgres::Row;

use super::claim::refused;
use super::decode::{self, Detail, Fields, number, run_columns};
use super::failure::Failure;
use super::session::{CLOCK, Param, Session, Step};
use super::working_set::WorkingSet;
use super::{Core, query, transact};
use crate::api::{Admitted, Held, LIST_PAGE_MAX};
use crate::error::{StoreError, Trouble};
use crate::logic::admit::{Flow, GATES_MAX, Gathered, Line, Needed, begin, line_depth, plan, view};
use crate::rows::{GateId, GateRow, HeldRow, RunRow, Terms};

/// Whether there is anything to do, and when next. When there is nothing, this is all that is asked.
pub(super) const LOOK: &str = "SELECT t.now, EXISTS (SELECT 1 FROM slot s WHERE s.done), \
     (SELECT h.not_before FROM held h JOIN run r ON r.seq = h.run \
      WHERE h.gate IS NULL AND r.status + 0 = 0 AND r.owner IS NULL AND r.ready_at IS NULL ORDER BY h.not_before, h.run + 0 LIMIT 1), \
     (SELECT g.look_at FROM gate g WHERE g.look_at IS NOT NULL ORDER BY g.look_at LIMIT 1), \
     EXISTS (SELECT 1 FROM held h WHERE h.gate IS NOT NULL) \
     FROM (SELECT coalesce($1::bigint, floor(extract(epoch FROM clock_timestamp()) * 1000)::bigint)) t (now)";

const LOCK: &str = "SELECT id FROM admission WHERE id = 1 FOR UPDATE";
pub(super) const DONE: &str = "SELECT s.ns, s.run, s.gate FROM slot s WHERE s.done \
     ORDER BY s.run + 0, s.gate || '' LIMIT $1";
/// Runs that are due and stand in no line; not those that somebody seized, or that are parked.
pub(super) const FRESH: &str = "SELECT h.ns, h.run FROM held h JOIN run r ON r.seq = h.run \
     WHERE h.gate IS NULL AND h.not_before <= $1 AND r.status + 0 = 0 AND r.owner IS NULL AND r.ready_at IS NULL \
     ORDER BY h.not_before, h.run + 0 LIMIT $2";
pub(super) const DUE: &str = "SELECT g.ns, g.name FROM gate g WHERE g.look_at IS NOT NULL AND g.look_at <= $1 \
     ORDER BY g.look_at LIMIT $2";
pub(super) const GATES: &str = "SELECT g.ns, g.name, g.bound, g.used, g.tat, g.passed, g.look_at \
     FROM unnest($1::int[], $2::text[]) k (ns, name) JOIN gate g ON g.ns = k.ns AND g.name = k.name";
pub(super) const FLOWS: &str = "SELECT f.ns, f.gate, f.key, f.finish \
     FROM unnest($1::int[], $2::text[], $3::text[]) k (ns, gate, key) \
     JOIN flow f ON f.ns = k.ns AND f.gate = k.gate AND f.key = k.key";
/// The heads of lines, each so deep.
pub(super) const LINES: &str = "SELECT k.ns, l.run, k.n FROM unnest($1::int[], $2::text[], $3::bigint[]) \
     WITH ORDINALITY k (ns, gate, depth, n) CROSS JOIN LATERAL (SELECT h.run, h.priority, h.place FROM held h \
     JOIN run r ON r.seq = h.run WHERE h.gate = k.gate AND h.ns + 0 = k.ns AND r.status + 0 = 0 AND r.owner IS NULL AND r.ready_at IS NULL \
     ORDER BY h.priority DESC, h.place, h.run + 0 LIMIT k.depth) l ORDER BY k.n, l.priority DESC, l.place, l.run";
pub(super) const SHARED: &str = "SELECT k.n FROM unnest($1::int[], $2::text[]) WITH ORDINALITY k (ns, gate, n) \
     WHERE EXISTS (SELECT 1 FROM held h WHERE h.first = k.gate AND h.ns + 0 = k.ns AND h.place IS NOT NULL OFFSET 0)";
/// In the order in which everybody locks runs.
pub(super) const RUNS: &str = concat!(
    "SELECT ",
    run_columns!(),
    " FROM unnest($1::bigint[]) k (seq) JOIN run r ON r.seq = k.seq ORDER BY r.ns + 0, r.id FOR UPDATE OF r"
);
/// Read after their runs are locked: nobody changes them any more.
pub(super) const HELD: &str = "SELECT h.run, h.not_before, h.priority, h.place, h.gate, h.terms \
     FROM unnest($1::bigint[]) k (run) JOIN held h ON h.run = k.run";
const AHEAD: &str = "SELECT count(*) FROM (SELECT 1 FROM held h WHERE h.gate = $1 AND h.ns + 0 = $2 \
     AND (h.priority > $3 OR h.priority = $3 AND (h.place, h.run) < ($4, $5)) LIMIT $6) ahead";

/// A held run: its row, not_before, priority, place, gate, terms.
pub(super) fn read_held(fields: &mut Fields<'_>, key: RunKey) -> Result<HeldRow, Detail> {
    Ok(HeldRow {
        row: fields.next()?,
        key,
        not_before: fields.time()?,
        priority: fields.next()?,
        place: fields.next()?,
        gate: fields.next()?,
        terms: Terms::decode(fields.next()?)?,
    })
}

struct Look {
    admitted: Admitted,
    idle: bool,
}

pub(super) async fn admit(core: &Core, limit: usize) -> Result<Admitted, StoreError> {
    let mut session = Session::begin(&core.pool).await?;
    let look = look(core, &mut session).await?;
    drop(session);
    if look.idle {
        return Ok(look.admitted);
    }
    let admitted: Result<Admitted, StoreError> = transact!(core, |session| attempt(core, session, limit));
    if admitted.as_ref().is_ok_and(|admitted| admitted.admitted > 0) {
        core.hint();
    }
    admitted
}

async fn look(core: &Core, session: &mut Session) -> Result<Look, Failure> {
    let rows = session.ask(LOOK, vec![Box::new(core.manual_now())]).await?;
    Ok(read_look(rows.first().ok_or_else(unanswered)?)?)
}

fn read_look(row: &Row) -> Result<Look, tokio_postgres::Error> {
    let now: i64 = row.try_get(0)?;
    let next = [row.try_get::<_, Option<i64>>(2)?, row.try_get(3)?].into_iter().flatten().min();
    let more = row.try_get(1)? || next.is_some_and(|at| at <= now);
    let (now, next_at) = (Timestamp::from_millis(now), next.map(Timestamp::from_millis));
    Ok(Look { admitted: Admitted { now, admitted: 0, next_at, more, waiting: row.try_get(4)? }, idle: !more })
}

fn unanswered() -> Failure {
    StoreError::unavailable(Trouble::Other, "the server left a statement unanswered").into()
}

async fn attempt(core: &Core, session: &mut Session, limit: usize) -> Result<Admitted, Failure> {
    session.send_all(&[Step::Plain("BEGIN"), Step::new(LOCK, Vec::new())]).await?;
    let (mut set, gathered) = gather(core, session, limit).await?;
    let done = gathered.done.clone();
    let planned = plan(gathered);
    for (held, _) in &planned.admitted {
        let run = set.stored(&held.key).cloned().ok_or_else(unanswered)?;
        refused(begin(&mut set, &run).map_err(Into::into))?;
    }
    let mut steps = super::flush::steps(&set);
    write::steps(core, &done, &planned, &mut steps);
    steps.push(Step::new(LOOK, vec![Box::new(core.manual_now())]));
    let answers = session.commit(steps).await?;
    let row = answers.last().and_then(|rows| rows.first()).ok_or_else(unanswered)?;
    Ok(Admitted { admitted: planned.admitted.len(), ..read_look(row)?.admitted })
}

/// What there is, and the runs that may be admitted, locked.
async fn gather(core: &Core, session: &mut Session, limit: usize) -> Result<(WorkingSet, Gathered), Failure> {
    let batch = number(limit as u64);
    let clock = session.ask(CLOCK, Vec::new()).await?;
    let now = core.now(&clock)?;
    let steps = [
        Step::new(DONE, vec![Box::new(batch)]),
        Step::new(FRESH, vec![Box::new(now.as_millis()), Box::new(batch)]),
        Step::new(DUE, vec![Box::new(now.as_millis()), Box::new(number(GATES_MAX as u64))]),
    ];
    let answers = session.send_all(&steps).await?;
    let [done, fresh, due] = answers.as_slice() else { return Err(unanswered()) };
    for rows in [done, fresh, due] {
        core.namespaces.cover(session, rows).await?;
    }
    let mut gathered = Gathered { now, ..Gathered::default() };
    for row in done {
        gathered.done.push((row.try_get(1)?, gate_id(core, row.try_get(0)?, row.try_get(2)?)?));
    }
    let mut looked: BTreeSet<GateId> = gathered.done.iter().map(|(_, gate)| gate.clone()).collect();
    for row in due {
        looked.insert(gate_id(core, row.try_get(0)?, row.try_get(1)?)?);
    }
    gathered.gates = gates(core, session, looked.iter()).await?;
    let lines = lines(core, session, &gathered, looked, limit).await?;
    let fresh: Vec<i64> = fresh.iter().map(|row| row.try_get(1)).collect::<Result<_, _>>()?;
    let wanted: Vec<i64> = fresh.iter().copied().chain(lines.iter().flat_map(|line| line.rows.clone())).collect();
    let shared = shared(core, session, &lines).await?;
    let (set, mut held) = lock(core, session, now, wanted).await?;
    for line in lines {
        let more = line.rows.len() == line.depth;
        // One whose run somebody took between the two reads is left out: it is not held any more.
        let held = line
            .rows
            .iter()
            .filter_map(|row| held.remove(row))
            .filter(|row| row.gate.as_ref() == Some(&line.gate.name));
        let shared = shared.contains(&line.gate);
        gathered.lines.insert(line.gate.clone(), Line { held: held.collect(), more, shared });
    }
    let due = |held: &HeldRow| held.gate.is_none() && held.not_before <= now;
    gathered.fresh = fresh.iter().filter_map(|row| held.remove(row)).filter(due).collect();
    let needed = Needed::of(&gathered);
    gathered.gates.extend(gates(core, session, needed.gates.iter()).await?);
    gathered.flows = flows(core, session, &needed.flows).await?;
    Ok((set, gathered))
}

fn gate_id(core: &Core, ns: i32, name: String) -> Result<GateId, Failure> {
    let unknown = || StoreError::corrupt("the table of gates", format!("there is no namespace {ns}"));
    Ok(GateId { namespace: core.namespaces.name(ns).ok_or_else(unknown)?, name })
}

/// The number of a namespace that a row named before.
fn ns_of(core: &Core, namespace: &Namespace) -> i32 {
    core.namespaces.id(namespace).unwrap_or(0)
}

async fn gates(
    core: &Core,
    session: &mut Session,
    ids: impl Iterator<Item = &GateId> + Send,
) -> Result<BTreeMap<GateId, GateRow>, Failure> {
    let (ns, names): (Vec<i32>, Vec<String>) = ids.map(|id| (ns_of(core, &id.namespace), id.name.clone())).unzip();
    if names.is_empty() {
        return Ok(BTreeMap::new());
    }
    let rows = session.ask(GATES, vec![Box::new(ns), Box::new(names)]).await?;
    let mut gates = BTreeMap::new();
    for row in &rows {
        let id = gate_id(core, row.try_get(0)?, row.try_get(1)?)?;
        let gate = read_gate(row, id.clone());
        gates.insert(id, gate.map_err(|detail| StoreError::corrupt("the table of gates", detail))?);
    }
    Ok(gates)
}

fn read_gate(row: &Row, id: GateId) -> Result<GateRow, Detail> {
    let mut fields = Fields::from(row, 2);
    Ok(GateRow {
        id,
        bound: GateRow::bound_of(fields.next()?)?,
        used: fields.count()?,
        tat: fields.next()?,
        passed: fields.next()?,
        look_at: fields.time_or_none()?,
    })
}

struct Read {
    gate: GateId,
    depth: usize,
    rows: Vec<i64>,
}

async fn lines(
    core: &Core,
    session: &mut Session,
    gathered: &Gathered,
    looked: BTreeSet<GateId>,
    limit: usize,
) -> Result<Vec<Read>, Failure> {
    let depth = |gate: &GateId| {
        let given_back = gathered.done.iter().filter(|(_, of)| of == gate).count();
        line_depth(gathered.gates.get(gate), given_back, gathered.now, limit)
    };
    let mut lines: Vec<Read> =
        looked.into_iter().map(|gate| Read { depth: depth(&gate), gate, rows: Vec::new() }).collect();
    if lines.is_empty() {
        return Ok(lines);
    }
    let ns: Vec<i32> = lines.iter().map(|line| ns_of(core, &line.gate.namespace)).collect();
    let names: Vec<String> = lines.iter().map(|line| line.gate.name.clone()).collect();
    let depths: Vec<i64> = lines.iter().map(|line| number(line.depth as u64)).collect();
    let rows = session.ask(LINES, vec![Box::new(ns), Box::new(names), Box::new(depths)]).await?;
    for row in &rows {
        let at = usize::try_from(row.try_get::<_, i64>(2)? - 1).unwrap_or(usize::MAX);
        if let Some(line) = lines.get_mut(at) {
            line.rows.push(row.try_get(1)?);
        }
    }
    Ok(lines)
}

/// The gates with an empty line that somebody in another line shares.
async fn shared(core: &Core, session: &mut Session, lines: &[Read]) -> Result<BTreeSet<GateId>, Failure> {
    let empty: Vec<&GateId> = lines.iter().filter(|line| line.rows.is_empty()).map(|line| &line.gate).collect();
    if empty.is_empty() {
        return Ok(BTreeSet::new());
    }
    let ns: Vec<i32> = empty.iter().map(|gate| ns_of(core, &gate.namespace)).collect();
    let names: Vec<&str> = empty.iter().map(|gate| gate.name.as_str()).collect();
    let rows = session.ask(SHARED, vec![Box::new(ns), Box::new(names)]).await?;
    let mut shared = BTreeSet::new();
    for row in &rows {
        let at = usize::try_from(row.try_get::<_, i64>(0)? - 1).unwrap_or(usize::MAX);
        shared.extend(empty.get(at).map(|gate| (*gate).clone()));
    }
    Ok(shared)
}

/// Locks runs, and reads what holds them back; those that are held no more are left out.
async fn lock(
    core: &Core,
    session: &mut Session,
    now: Timestamp,
    wanted: Vec<i64>,
) -> Result<(WorkingSet, BTreeMap<i64, HeldRow>), Failure> {
    let mut set = WorkingSet { now, ..WorkingSet::default() };
    let mut held = BTreeMap::new();
    if wanted.is_empty() {
        return Ok((set, held));
    }
    let steps = [Step::new(RUNS, vec![Box::new(wanted.clone())]), Step::new(HELD, vec![Box::new(wanted)])];
    let answers = session.send_all(&steps).await?;
    let [runs, rows] = answers.as_slice() else { return Err(unanswered()) };
    let mut keys = BTreeMap::new();
    for row in runs {
        // One that cannot be read stays where it is, and keeps nobody else from going on.
        let Ok(run) = decode::run(row, &core.namespaces) else { continue };
        if run.is_held() && run.owner.is_none() {
            keys.insert(run.row, run.key.clone());
            set.hold(row.try_get(0)?, run);
        }
    }
    for row in rows {
        let Some(key) = keys.get(&row.try_get(0)?) else { continue };
        let read = read_held(&mut Fields::from(row, 0), key.clone());
        let read = read.map_err(|detail| StoreError::corrupt(key.to_string(), detail))?;
        held.insert(read.row, read);
    }
    Ok((set, held))
}

async fn flows(core: &Core, session: &mut Session, wanted: &BTreeSet<Flow>) -> Result<BTreeMap<Flow, i64>, Failure> {
    if wanted.is_empty() {
        return Ok(BTreeMap::new());
    }
    let ns: Vec<i32> = wanted.iter().map(|(gate, _)| ns_of(core, &gate.namespace)).collect();
    let names: Vec<String> = wanted.iter().map(|(gate, _)| gate.name.clone()).collect();
    let keys: Vec<String> = wanted.iter().map(|(_, key)| key.clone()).collect();
    let rows = session.ask(FLOWS, vec![Box::new(ns), Box::new(names), Box::new(keys)]).await?;
    let mut flows = BTreeMap::new();
    for row in &rows {
        flows.insert((gate_id(core, row.try_get(0)?, row.try_get(1)?)?, row.try_get(2)?), row.try_get(3)?);
    }
    Ok(flows)
}

/// Why a run is held back.
pub(super) async fn held(core: &Core, key: &RunKey) -> Result<Option<Held>, StoreError> {
    let mut session = Session::begin(&core.pool).await?;
    Ok(try_held(core, &mut session, key).await?)
}

async fn try_held(core: &Core, session: &mut Session, key: &RunKey) -> Result<Option<Held>, Failure> {
    let (ns, run): (i32, RunRow) = query::live(core, session, key).await?;
    let steps = [Step::new(HELD, vec![Box::new(vec![run.row])]), Step::new(CLOCK, Vec::new())];
    let answers = session.send_all(&steps).await?;
    let [rows, clock] = answers.as_slice() else { return Err(unanswered()) };
    let Some(row) = rows.first() else { return Ok(None) };
    let held = read_held(&mut Fields::from(row, 0), key.clone());
    let held = held.map_err(|detail| StoreError::corrupt(key.to_string(), detail))?;
    let ids: Vec<GateId> = held.terms.wants.iter().map(|want| held.gate_id(&want.gate)).collect();
    let gates = gates(core, session, ids.iter()).await?;
    let mut ahead = 0;
    if let Some(gate) = &held.gate {
        let params: Vec<Param<'_>> = vec![
            Box::new(gate.as_str()),
            Box::new(ns),
            Box::new(held.priority),
            Box::new(held.place.unwrap_or(0)),
            Box::new(held.row),
            Box::new(number(LIST_PAGE_MAX as u64)),
        ];
        let rows = session.ask(AHEAD, params).await?;
        ahead = rows.first().map_or(Ok(0), |row| row.try_get::<_, i64>(0))?;
    }
    Ok(Some(view(&held, &gates, usize::try_from(ahead).unwrap_or(0), core.now(clock)?)))
}

/// Every statement here that is asked again and again, and the indexes it is meant to use.
#[cfg(test)]
pub(super) fn statements() -> [(&'static str, &'static str, &'static [&'static str]); 10] {
    [
        ("admit: look", LOOK, &["gate_due*", "held_fresh*", "held_line*", "run_pkey", "slot_done*"]),
        ("admit: done", DONE, &["slot_done*"]),
        ("admit: fresh", FRESH, &["held_fresh", "run_pkey"]),
        ("admit: due", DUE, &["gate_due"]),
        ("admit: gates", GATES, &["gate_pkey"]),
        ("admit: flows", FLOWS, &["flow_pkey"]),
        ("admit: lines", LINES, &["held_line", "run_pkey"]),
        ("admit: shared", SHARED, &["held_first"]),
        ("admit: runs", RUNS, &["run_pkey"]),
        ("admit: held", HELD, &["held_pkey"]),
    ]
}
