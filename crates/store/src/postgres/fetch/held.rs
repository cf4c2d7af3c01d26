//! What flow control knows of runs, and start keys.

use outlast_core::id::RunId;
use tokio_postgres::Row;

use super::Query;
use super::side::{found_for, places, wanted};
use crate::error::StoreError;
use crate::postgres::admit::read_held;
use crate::postgres::decode::Fields;
use crate::postgres::failure::Failure;
use crate::postgres::needs::Needs;
use crate::postgres::session::{Param, Step};
use crate::postgres::working_set::WorkingSet;
use crate::rows::{StartKey, StartKeyRow};

const HELD: &str = "SELECT k.n, r.seq, h.not_before, h.priority, h.place, h.gate, h.terms \
     FROM unnest($1::int[], $2::text[]) WITH ORDINALITY k (ns, id, n) \
     JOIN run r ON r.ns = k.ns AND r.id = k.id JOIN held h ON h.run = r.seq";

const LOCK_START_KEYS: &str = "SELECT k.n, s.run, s.until \
     FROM unnest($1::int[], $2::smallint[], $3::text[]) WITH ORDINALITY k (ns, kind, key, n) \
     JOIN start_key s ON s.ns = k.ns AND s.kind = k.kind AND s.key = k.key \
     ORDER BY s.ns + 0, s.kind + 0, s.key FOR UPDATE OF s";

fn known<'n>(set: &WorkingSet, needs: &'n Needs) -> Vec<(i32, &'n StartKey)> {
    let known = |key: &'n StartKey| Some((*set.facts.namespaces.get(&key.0)?, key));
    needs.start_keys.iter().filter_map(known).collect()
}

pub(super) fn start_key_params<'n>(set: &WorkingSet, needs: &'n Needs) -> Vec<Param<'n>> {
    let keys = known(set, needs);
    let ns: Vec<i32> = keys.iter().map(|(ns, _)| *ns).collect();
    let kinds: Vec<i16> = keys.iter().map(|(_, key)| key.1.code()).collect();
    let names: Vec<&str> = keys.iter().map(|(_, key)| key.2.as_str()).collect();
    vec![Box::new(ns), Box::new(kinds), Box::new(names)]
}

/// Start keys, locked: those that are there. Of two who put the same new one, one finds it taken.
pub(super) fn start_keys<'n>(set: &mut WorkingSet, needs: &'n Needs) -> Option<Query<'n>> {
    for key in &needs.start_keys {
        set.facts.start_keys.insert(key.clone(), Ok(None));
    }
    let keys = known(set, needs);
    if keys.is_empty() {
        return None;
    }
    let step = Step::new(LOCK_START_KEYS, start_key_params(set, needs));
    Some(Query::new(step, move |_, set, rows| rows.iter().try_for_each(|row| keep(&keys, set, row))))
}

fn keep(keys: &[(i32, &StartKey)], set: &mut WorkingSet, row: &Row) -> Result<(), Failure> {
    let at = usize::try_from(row.try_get::<_, i64>(0)? - 1).unwrap_or(usize::MAX);
    let Some((_, key)) = keys.get(at) else { return Ok(()) };
    let mut fields = Fields::from(row, 1);
    let read = fields.id::<RunId>().and_then(|run| Ok(StartKeyRow { run, until: fields.time()? }));
    let found = read.map(Some).map_err(|detail| StoreError::corrupt(format!("start key {}", key.2), detail));
    set.facts.start_keys.insert((*key).clone(), found);
    Ok(())
}

/// What holds runs back.
pub(super) fn held<'n>(set: &WorkingSet, needs: &'n Needs) -> Option<Query<'n>> {
    let asked = wanted(set, needs, |of| of.held.then_some(()));
    if asked.is_empty() {
        return None;
    }
    Some(Query::new(Step::new(HELD, places(&asked)), move |_, set, rows| {
        for (_, run, ()) in &asked {
            set.facts.runs.entry((*run).clone()).or_default().held = Some(Ok(None));
        }
        for row in rows {
            let Some((run, ())) = found_for(&asked, row)? else { continue };
            let read = read_held(&mut Fields::from(row, 1), run.clone());
            let read = read.map(Some).map_err(|detail| StoreError::corrupt(run.to_string(), detail));
            set.facts.runs.entry(run.clone()).or_default().held = Some(read);
        }
        Ok(())
    }))
}

#[cfg(test)]
pub(super) fn statements() -> [(&'static str, &'static str, &'static [&'static str]); 2] {
    [
        ("fetch: held", HELD, &["held_pkey", "run_ns_id_key"]),
        ("fetch: start keys", LOCK_START_KEYS, &["start_key_pkey"]),
    ]
}
