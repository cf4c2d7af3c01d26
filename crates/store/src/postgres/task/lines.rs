//! Where ready tasks line up: one line per queue, priority and namespace.
//!
//! A claimed task leaves a dead entry at the head of its line's index, and while somebody holds an old snapshot nobody can clear
//! those away: each claim would read them all again. So a store remembers the lines it has seen and up to where each was empty, and looks
//! for new lines only between those. For tasks whose transaction took its time it looks further back now and then, and at the whole of
//! its lines beside the claims, so that none of them pays for it.

use std::collections::{BTreeMap, BTreeSet};

use tokio_postgres::Row;

use super::super::failure::Failure;
use super::super::session::{Param, Step};
use super::super::turns::Levels;

/// The first task of each line that is known, from where it is not empty.
pub(in super::super) const HEADS: &str = "SELECT k.queue, k.level, k.ns, h.place \
     FROM unnest($1::text[], $2::int[], $3::int[], $4::bigint[]) k (queue, level, ns, floor) CROSS JOIN LATERAL \
     (SELECT t.place FROM task t WHERE t.queue = k.queue AND t.state = 0 AND - t.priority::int = k.level \
     AND t.ns + 0 = k.ns AND t.place >= k.floor ORDER BY t.place, t.id LIMIT 1) h";

/// When the first task of each queue is to be made ready.
pub(in super::super) const ENDS: &str = "SELECT q.queue, e.until FROM unnest($1::text[]) q (queue) CROSS JOIN LATERAL \
     (SELECT t.until FROM task t WHERE t.queue = q.queue AND t.until IS NOT NULL ORDER BY t.until LIMIT 1) e";

macro_rules! first_of {
    ($from:literal, $where:literal) => {
        concat!(
            "(SELECT - t.priority::int AS level, t.ns + 0 AS ns FROM task t WHERE t.queue = ",
            $from,
            ".queue AND t.state = 0 AND ",
            $where,
            " ORDER BY - t.priority::int, t.ns + 0, t.place, t.id LIMIT 1)"
        )
    };
}

/// The first line behind one: of its level, of a level between, of the level where it ends. In three parts, because each of them can
/// be looked up: a comparison of pairs would read the line before the gap, and all that is dead in it, to its end.
macro_rules! next_line {
    ($from:literal, $rest:literal, $between:literal, $last:literal) => {
        concat!(
            "CROSS JOIN LATERAL (SELECT p.level, p.ns FROM (",
            first_of!($from, $rest),
            " UNION ALL ",
            first_of!($from, $between),
            " UNION ALL ",
            first_of!($from, $last),
            ") p ORDER BY p.level, p.ns LIMIT 1) n"
        )
    };
}

/// Lines that are not known: from one to the next, without reading what is in them.
pub(in super::super) const GAPS: &str = concat!(
    "WITH RECURSIVE line AS (SELECT g.queue, n.level, n.ns, g.to_level, g.to_ns \
     FROM unnest($1::text[], $2::int[], $3::int[], $4::int[], $5::int[]) g (queue, level, ns, to_level, to_ns) ",
    next_line!(
        "g",
        "- t.priority::int = g.level AND t.ns + 0 > g.ns \
         AND t.ns + 0 < CASE WHEN g.level < g.to_level THEN 2147483647 ELSE g.to_ns END",
        "- t.priority::int > g.level AND - t.priority::int < g.to_level",
        "- t.priority::int = g.to_level AND t.ns + 0 < CASE WHEN g.level < g.to_level THEN g.to_ns ELSE -1 END"
    ),
    " UNION ALL SELECT l.queue, n.level, n.ns, l.to_level, l.to_ns FROM line l ",
    next_line!(
        "l",
        "- t.priority::int = l.level AND t.ns + 0 > l.ns \
         AND t.ns + 0 < CASE WHEN l.level < l.to_level THEN 2147483647 ELSE l.to_ns END",
        "- t.priority::int > l.level AND - t.priority::int < l.to_level",
        "- t.priority::int = l.to_level AND t.ns + 0 < CASE WHEN l.level < l.to_level THEN l.to_ns ELSE -1 END"
    ),
    ") SELECT queue, level, ns FROM line"
);

/// How far what is remembered stays behind the clock: a task is queued with the time of its transaction, and seen when that is over.
/// What gathers in this time is read at every claim.
const MARGIN_MS: i64 = 100;
/// The same for transactions that take longer, and how often those are looked for.
const BROAD_MARGIN_MS: i64 = 500;
const BROAD_MS: i64 = 250;
/// How often the whole of the lines is looked at, for transactions that took longer still, and for tasks that were given back and have
/// kept their place.
const WHOLE_MS: i64 = 1_000;
/// A line that was empty for so long is forgotten.
const FORGET_MS: i64 = 10 * 60 * 1_000;
/// Lines that are remembered. If there are more it begins anew.
const LINES_MAX: usize = 4_096;

/// Queue, level (the priority, negated) and namespace.
pub(in super::super) type Line = (String, i32, i32);

#[derive(Clone, Copy, Debug)]
struct Known {
    /// Nothing of it is before this, but for what a slow transaction queued.
    floor: i64,
    /// The same for slower ones.
    broad_floor: i64,
    /// When it was looked at that far, when the whole of it was, and when it was not empty last.
    broad: i64,
    whole: i64,
    seen: i64,
    /// How often it was reopened: what a look says that began before is not believed.
    reopened: u64,
}

/// How much of a line is looked at.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Width {
    Near,
    Broad,
}

/// From where a line is looked at.
#[derive(Clone, Copy, Debug)]
pub(super) struct From {
    pub(super) floor: i64,
    width: Width,
    /// How often it had been reopened by then.
    reopened: u64,
}

impl From {
    const START: From = From { floor: i64::MIN, width: Width::Broad, reopened: 0 };
}

impl Known {
    fn new(floor: i64, now: i64) -> Known {
        Known { floor, broad_floor: floor, broad: now, whole: now, seen: now, reopened: 0 }
    }

    /// From where to look at it, and how much that is.
    fn look(&self, now: i64) -> From {
        let (floor, width) =
            if self.broad + BROAD_MS <= now { (self.broad_floor, Width::Broad) } else { (self.floor, Width::Near) };
        From { floor, width, reopened: self.reopened }
    }

    /// Takes note of what was seen: the first of what there is, if there is anything.
    fn note(&mut self, from: From, head: Option<i64>, now: i64) {
        if from.reopened != self.reopened {
            return;
        }
        let empty_to = head.unwrap_or(i64::MAX);
        self.floor = empty_to.min(now - MARGIN_MS);
        if from.width == Width::Broad {
            self.broad_floor = empty_to.min(now - BROAD_MARGIN_MS);
            self.broad = now;
        }
    }

    /// Somebody lined up here.
    fn reopen(&mut self, place: i64) {
        self.floor = self.floor.min(place);
        self.broad_floor = self.broad_floor.min(place);
        self.reopened += 1;
    }
}

/// What is remembered of all lines, and of when tasks are to be made ready.
#[derive(Debug, Default)]
pub(in super::super) struct Lines {
    known: BTreeMap<Line, Known>,
    /// By queue: nothing is to be made ready before this.
    ends: BTreeMap<String, Known>,
    /// The store's time when it was looked at last.
    now: i64,
    /// The whole of some lines is being looked at.
    looking: bool,
}

/// How to look at the lines of some queues.
pub(in super::super) struct Look {
    /// Lines, and from where to look at each.
    heads: Vec<(Line, From)>,
    /// Between which lines to look for others.
    gaps: Vec<(String, Ends, Ends)>,
    /// Queues, and from when on tasks are to be made ready.
    pub(super) ends: Vec<(String, From)>,
}

/// Level and namespace of a line between which and another there is a gap.
type Ends = (i32, i32);

const BEFORE_ALL: Ends = (i32::MIN, i32::MIN);
const AFTER_ALL: Ends = (i32::MAX, i32::MAX);

impl Lines {
    /// How to look. Where the clock is set by hand and jumps, nothing is skipped.
    pub(super) fn look(&self, queues: &BTreeSet<&str>, skips: bool) -> Look {
        let mut look = Look { heads: Vec::new(), gaps: Vec::new(), ends: Vec::new() };
        let from = |known: Option<&Known>| match known {
            Some(known) if skips => known.look(self.now),
            Some(known) => From { reopened: known.reopened, ..From::START },
            None => From::START,
        };
        for queue in queues {
            look.ends.push(((*queue).to_owned(), from(self.ends.get(*queue))));
            let first = ((*queue).to_owned(), i32::MIN, i32::MIN);
            let mut last = BEFORE_ALL;
            for (line, known) in self.known.range(first..).take_while(|((of, ..), _)| of == queue) {
                look.heads.push((line.clone(), from(Some(known))));
                look.gaps.push(((*queue).to_owned(), last, (line.1, line.2)));
                last = (line.1, line.2);
            }
            look.gaps.push(((*queue).to_owned(), last, AFTER_ALL));
        }
        look
    }

    /// Takes note of what was seen: those of the known lines that are not empty, and where they begin, and others.
    pub(super) fn note(&mut self, look: &Look, seen: &Seen, now: i64) {
        if now + MARGIN_MS < self.now {
            // The server's clock was set back: what is queued from now on is before what was found empty.
            (self.known, self.ends) = (BTreeMap::new(), BTreeMap::new());
            self.now = now;
        }
        // Claims that are under way at once need not end in the order of their times.
        self.now = self.now.max(now);
        for (line, from) in &look.heads {
            let head = seen.heads.get(line).copied();
            if let Some(known) = self.known.get_mut(line) {
                known.note(*from, head, now);
                known.seen = if head.is_some() { now } else { known.seen };
            }
        }
        for line in &seen.others {
            self.known.insert(line.clone(), Known::new(i64::MIN, now));
        }
        for (queue, from) in &look.ends {
            let known = self.ends.entry(queue.clone()).or_insert(Known::new(i64::MIN, now));
            known.note(*from, seen.more_to_promote.then_some(i64::MIN), now);
        }
        for (line, place) in &seen.promoted {
            self.known.entry(line.clone()).or_insert(Known::new(*place, now)).reopen(*place);
        }
        self.known.retain(|_, known| known.seen + FORGET_MS > now);
        if self.known.len() > LINES_MAX || self.ends.len() > LINES_MAX {
            (self.known, self.ends) = (BTreeMap::new(), BTreeMap::new());
        }
    }

    /// The lines of some queues, if it is time to look at the whole of them and nobody does.
    pub(super) fn overdue(&mut self, queues: &BTreeSet<&str>) -> Option<Look> {
        let is_overdue = |known: &Known| known.whole + WHOLE_MS <= self.now;
        let mut look = Look { heads: Vec::new(), gaps: Vec::new(), ends: Vec::new() };
        for (line, _) in self.known.iter().filter(|((of, ..), known)| queues.contains(of.as_str()) && is_overdue(known))
        {
            look.heads.push((line.clone(), From::START));
        }
        for (queue, _) in self.ends.iter().filter(|(of, known)| queues.contains(of.as_str()) && is_overdue(known)) {
            look.ends.push((queue.clone(), From::START));
        }
        let is_time = !look.heads.is_empty() || !look.ends.is_empty();
        let wanted = is_time && !self.looking;
        self.looking |= wanted;
        wanted.then_some(look)
    }

    /// The whole of these lines was looked at: where each begins, and when the first task of each queue is to be made ready.
    pub(super) fn note_whole(&mut self, look: &Look, seen: Option<&Whole>) {
        self.looking = false;
        // One that failed is not tried again at once.
        let now = self.now;
        for (line, ..) in &look.heads {
            if let Some(known) = self.known.get_mut(line) {
                known.whole = now;
                seen.and_then(|seen| seen.heads.get(line)).into_iter().for_each(|place| known.reopen(*place));
            }
        }
        for (queue, ..) in &look.ends {
            if let Some(known) = self.ends.get_mut(queue) {
                known.whole = now;
                seen.and_then(|seen| seen.ends.get(queue)).into_iter().for_each(|until| known.reopen(*until));
            }
        }
    }

    /// From where a line is to be read.
    pub(super) fn floor(&self, line: &Line) -> i64 {
        self.known.get(line).map_or(i64::MIN, |known| known.floor)
    }
}

impl Look {
    pub(super) fn steps(&self) -> [Step<'_>; 2] {
        let heads: Vec<Param<'_>> = vec![
            Box::new(self.heads.iter().map(|(line, ..)| line.0.as_str()).collect::<Vec<_>>()),
            Box::new(self.heads.iter().map(|(line, ..)| line.1).collect::<Vec<_>>()),
            Box::new(self.heads.iter().map(|(line, ..)| line.2).collect::<Vec<_>>()),
            Box::new(self.heads.iter().map(|(_, from)| from.floor).collect::<Vec<_>>()),
        ];
        let gaps: Vec<Param<'_>> = vec![
            Box::new(self.gaps.iter().map(|(queue, ..)| queue.as_str()).collect::<Vec<_>>()),
            Box::new(self.gaps.iter().map(|(_, from, _)| from.0).collect::<Vec<_>>()),
            Box::new(self.gaps.iter().map(|(_, from, _)| from.1).collect::<Vec<_>>()),
            Box::new(self.gaps.iter().map(|(.., to)| to.0).collect::<Vec<_>>()),
            Box::new(self.gaps.iter().map(|(.., to)| to.1).collect::<Vec<_>>()),
        ];
        [Step::new(HEADS, heads), Step::new(GAPS, gaps)]
    }

    /// What is asked about the whole of the lines.
    pub(super) fn whole_steps(&self) -> [Step<'_>; 2] {
        let [heads, _] = self.steps();
        let ends: Vec<Param<'_>> =
            vec![Box::new(self.ends.iter().map(|(queue, ..)| queue.as_str()).collect::<Vec<_>>())];
        [heads, Step::new(ENDS, ends)]
    }
}

/// What the whole of some lines showed.
#[derive(Debug, Default)]
pub(super) struct Whole {
    heads: BTreeMap<Line, i64>,
    ends: BTreeMap<String, i64>,
}

impl Whole {
    pub(super) fn read(heads: &[Row], ends: &[Row]) -> Result<Whole, Failure> {
        let mut whole = Whole::default();
        for row in heads {
            whole.heads.insert(line(row)?, row.try_get(3)?);
        }
        for row in ends {
            whole.ends.insert(row.try_get(0)?, row.try_get(1)?);
        }
        Ok(whole)
    }
}

/// What was seen.
#[derive(Debug, Default)]
pub(super) struct Seen {
    heads: BTreeMap<Line, i64>,
    others: BTreeSet<Line>,
    /// Where those lined up that were made ready.
    promoted: BTreeMap<Line, i64>,
    /// As many were made ready as one claim does: there may be more.
    more_to_promote: bool,
}

impl Seen {
    pub(super) fn read(promoted: &[Row], heads: &[Row], gaps: &[Row], promote_max: usize) -> Result<Seen, Failure> {
        let mut seen = Seen { more_to_promote: promoted.len() >= promote_max, ..Seen::default() };
        for row in promoted {
            let place: i64 = row.try_get(3)?;
            let first = seen.promoted.entry(line(row)?).or_insert(place);
            *first = (*first).min(place);
        }
        for row in heads {
            seen.heads.insert(line(row)?, row.try_get(3)?);
        }
        for row in gaps {
            seen.others.insert(line(row)?);
        }
        Ok(seen)
    }

    /// Whether anything was made ready.
    pub(super) fn has_promoted(&self) -> bool {
        !self.promoted.is_empty()
    }

    /// The namespaces that have something ready, or only this one.
    pub(super) fn levels(&self, only: Option<i32>) -> Levels {
        let mut levels = Levels::new();
        let lines = self.heads.keys().chain(&self.others).chain(self.promoted.keys());
        for (_, level, ns) in lines.filter(|(.., ns)| only.is_none_or(|only| only == *ns)) {
            levels.entry(*level).or_default().push(i64::from(*ns));
        }
        levels
    }
}

fn line(row: &Row) -> Result<Line, Failure> {
    Ok((row.try_get(0)?, row.try_get(1)?, row.try_get(2)?))
}

#[cfg(test)]
mod tests {
    use super::*;

    fn line() -> Line {
        ("work".to_owned(), 0, 1)
    }

    /// A line that was empty at every look, every 10 ms from 10 s on.
    fn watched(until: i64) -> Lines {
        let mut lines = Lines { now: 10_000, ..Lines::default() };
        lines.known.insert(line(), Known::new(i64::MIN, 10_000));
        for now in (10_000..=until).step_by(10) {
            let look = lines.look(&BTreeSet::from(["work"]), true);
            lines.note(&look, &Seen::default(), now);
        }
        lines
    }

    /// From where the next look begins.
    fn next(lines: &Lines) -> i64 {
        lines.look(&BTreeSet::from(["work"]), true).heads[0].1.floor
    }

    #[test]
    fn most_looks_read_little_and_some_read_further_back() {
        let reach: Vec<i64> = (11_000..12_000).step_by(10).map(|until| until - next(&watched(until))).collect();
        assert_eq!(reach.iter().min(), Some(&MARGIN_MS));
        let broad = reach.iter().filter(|back| **back >= BROAD_MARGIN_MS).count();
        assert!((2..=10).contains(&broad), "{broad} of 100 looks went further back");
    }

    #[test]
    fn what_lined_up_behind_what_was_empty_is_looked_at_at_once() {
        let mut lines = watched(12_000);
        let look = lines.look(&BTreeSet::from(["work"]), true);
        let promoted = BTreeMap::from([(line(), 5_000)]);
        lines.note(&look, &Seen { promoted, ..Seen::default() }, 12_010);
        assert_eq!(next(&lines), 5_000);
    }

    #[test]
    fn the_whole_of_a_line_is_looked_at_now_and_then_by_one_at_a_time() {
        let queues = BTreeSet::from(["work"]);
        assert!(watched(10_900).overdue(&queues).is_none(), "not yet");
        let mut lines = watched(11_000);
        let look = lines.overdue(&queues).expect("it is time");
        assert!(lines.overdue(&queues).is_none(), "somebody does");
        let whole = Whole { heads: BTreeMap::from([(line(), 9_000)]), ..Whole::default() };
        lines.note_whole(&look, Some(&whole));
        assert_eq!(next(&lines), 9_000, "what a slow transaction queued is found");
        assert!(lines.overdue(&queues).is_none(), "not again at once");
    }

    #[test]
    fn a_look_that_began_before_a_line_was_reopened_does_not_close_it() {
        let mut lines = watched(12_000);
        let before = lines.look(&BTreeSet::from(["work"]), true);
        let promoted = BTreeMap::from([(line(), 5_000)]);
        lines.note(
            &Look { heads: Vec::new(), gaps: Vec::new(), ends: Vec::new() },
            &Seen { promoted, ..Seen::default() },
            12_010,
        );
        lines.note(&before, &Seen::default(), 12_020);
        assert_eq!(next(&lines), 5_000, "it saw the line as it was");
    }

    #[test]
    fn a_clock_that_is_set_back_hides_nothing() {
        let mut lines = watched(20_000);
        let look = lines.look(&BTreeSet::from(["work"]), true);
        lines.note(&look, &Seen::default(), 15_000);
        assert!(lines.look(&BTreeSet::from(["work"]), true).heads.is_empty(), "every line is looked for anew");
    }

    #[test]
    fn where_the_clock_is_set_by_hand_nothing_is_skipped() {
        assert_eq!(watched(12_000).look(&BTreeSet::from(["work"]), false).heads[0].1.floor, i64::MIN);
    }
}
