//! Writes what a working set changed: one statement per table and kind of write, rows as arrays.

mod held;
mod runs;
mod side;
mod tasks;

use super::session::Step;
use super::working_set::{Place, RunChanges, WorkingSet};

/// The most rows one statement writes.
const ROWS_MAX: usize = 10_000;
/// The most payload one statement carries, in bytes; a message to the server has a length of 32 bits.
const BYTES_MAX: usize = 64 * 1024 * 1024;

/// A statement over rows, with one array parameter per column.
macro_rules! arrays {
    ($sql:expr, $rows:expr, |$row:pat_param| [$($column:expr),+ $(,)?]) => {
        $crate::postgres::session::Step::new($sql, vec![$({
            #[allow(unused_variables, reason = "each column uses some part of the row")]
            let values: Vec<_> = $rows.iter().map(|$row| $column).collect();
            Box::new(values) as $crate::postgres::session::Param<'_>
        }),+])
    };
}
pub(super) use arrays;

/// The statements that bring the database to where the working set is. None if nothing changed.
pub(super) fn steps(set: &WorkingSet) -> Vec<Step<'_>> {
    let changed = Changed::of(set);
    let mut steps = Vec::new();
    side::clear(&changed, &mut steps);
    runs::write(set, &changed, &mut steps);
    side::write(&changed, &mut steps);
    tasks::write(set, &mut steps);
    tasks::schedules(set, &mut steps);
    held::write(set, &changed, &mut steps);
    steps
}

/// Whether somebody may be waiting for what this change made ready.
pub(super) fn wakes_anybody(set: &WorkingSet) -> bool {
    let mut runs = set.changes.runs.iter().filter_map(|(key, changes)| Some((key, changes.row.as_ref()?)));
    let woken = runs.any(|(key, row)| {
        let was_ready = set.stored(key).is_some_and(|before| before.ready_at.is_some() && before.owner == row.owner);
        row.ready_at.is_some() && !was_ready
    });
    woken || set.changes.tasks.values().any(Option::is_some)
}

/// The changed runs, in (namespace, id) order, with the place of their rows.
struct Changed<'s>(Vec<(Place, &'s RunChanges)>);

impl<'s> Changed<'s> {
    fn of(set: &'s WorkingSet) -> Self {
        let placed = set.changes.runs.iter().filter_map(|(run, changes)| Some((set.place(run)?, changes)));
        Changed(placed.collect())
    }

    /// Rows of one kind, of all runs.
    fn rows<T, I: IntoIterator<Item = T>>(&self, pick: impl Fn(&'s RunChanges) -> I) -> Vec<(Place, T)> {
        let of_run = |(place, changes): &(Place, &'s RunChanges)| {
            let place = *place;
            pick(changes).into_iter().map(move |row| (place, row))
        };
        self.0.iter().flat_map(of_run).collect()
    }
}

/// Cuts rows into statements of bounded size.
fn chunks<T>(rows: &[T], bytes: impl Fn(&T) -> usize) -> Vec<&[T]> {
    let mut chunks = Vec::new();
    let (mut start, mut size) = (0, 0);
    for (at, row) in rows.iter().enumerate() {
        let row_bytes = bytes(row);
        if at > start && (at - start == ROWS_MAX || size + row_bytes > BYTES_MAX) {
            chunks.push(&rows[start..at]);
            (start, size) = (at, 0);
        }
        size += row_bytes;
    }
    if start < rows.len() {
        chunks.push(&rows[start..]);
    }
    chunks
}

/// Every statement here that looks for rows, and the indexes it is meant to use.
#[cfg(test)]
pub(super) fn statements() -> Vec<(&'static str, &'static str, &'static [&'static str])> {
    let mut statements = runs::statements().to_vec();
    statements.extend(side::statements());
    statements.extend(tasks::statements());
    statements.extend(held::statements());
    statements
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_chunk_ends_before_it_grows_too_large_and_nothing_is_left_out() {
        let rows = [BYTES_MAX / 2, BYTES_MAX / 2, 1, BYTES_MAX + 5, 2];
        let cut = chunks(&rows, |bytes| *bytes);
        assert_eq!(cut, [&rows[0..2], &rows[2..3], &rows[3..4], &rows[4..5]]);
        let many = vec![0; ROWS_MAX + 1];
        assert_eq!(chunks(&many, |_| 0).iter().map(|chunk| chunk.len()).collect::<Vec<_>>(), [ROWS_MAX, 1]);
        assert!(chunks(&[] as &[usize], |bytes| *bytes).is_empty());
    }
}
