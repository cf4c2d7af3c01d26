//! Flow control: who is held back, who was admitted, and whether there was room.

use std::collections::BTreeMap;

use bytes::Bytes;
use outlast_core::commit::{Admission, Begin, Bound, Control, NewRun, Rate};
use outlast_core::id::{DeliveryId, LimitKey, RunKey};
use outlast_core::time::Timestamp;
use outlast_store::{Admitted, Created, StoreError};

use super::Watch;
use super::shadow::{Arrival, Parcel, Shadow};
use super::sight::{Sight, Stand};
use crate::ledger::tick;
use crate::tally::count;
use crate::violation::Findings;

/// The request to make way for another run with the same key.
const REPLACED: &str = "outlast.singleton.replaced";

/// Runs whose starts said something about flow control.
#[derive(Clone, Debug, Default)]
pub struct Lobby {
    visits: BTreeMap<RunKey, Visit>,
    /// When runs were admitted by each rate, in order, and the last of them among everything that happened.
    rates: BTreeMap<LimitKey, (u64, Vec<Timestamp>)>,
    /// What became of starts, by kind.
    pub outcomes: BTreeMap<&'static str, u64>,
}

/// Such a run.
#[derive(Clone, Debug)]
pub struct Visit {
    /// What its start said.
    pub admission: Admission,
    /// A larger one is admitted sooner.
    pub priority: i16,
    /// When it was started, by the store's clock.
    pub since: Timestamp,
    /// It must not begin before.
    pub not_before: Timestamp,
    /// What it begins with.
    pub input: Bytes,
    /// Where it stands.
    pub stands: Stands,
    /// Whether another one asked it to make way.
    pub replaced: bool,
}

/// Where a run stands.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Stands {
    /// Outside.
    Held,
    /// Inside, since then.
    Admitted(Timestamp),
    /// It was told to stop before it was admitted: it ends, and never begins.
    Leaving,
}

impl Visit {
    fn new(new: &NewRun, admission: &Admission, now: Timestamp) -> Visit {
        let not_before = match (&admission.debounce, admission.begin) {
            (Some(debounce), _) => now + debounce.wait,
            (None, Begin::Now) => now,
            (None, Begin::After(delay)) => now + delay,
            (None, Begin::At(at)) => at,
        };
        let stands = if admission.holds() { Stands::Held } else { Stands::Admitted(now) };
        Visit {
            admission: admission.clone(),
            priority: new.priority,
            since: now,
            not_before,
            input: new.input.clone(),
            stands,
            replaced: false,
        }
    }

    /// Whether it was neither let in nor told to stop.
    pub(super) fn is_held(&self) -> bool {
        matches!(self.stands, Stands::Held)
    }

    fn has_limit(&self, key: &LimitKey) -> bool {
        let is = |bound: &Bound| matches!(bound, Bound::Concurrency { .. });
        self.admission.limits.iter().any(|limit| limit.key == *key && is(&limit.bound))
    }

    fn single(&self) -> Option<&LimitKey> {
        self.admission.single.as_ref().map(|single| &single.key)
    }

    /// Whether all it waits for is one limit on how many run at once.
    fn waits_in_one_line(&self) -> bool {
        let admission = &self.admission;
        let one = matches!(admission.limits.as_slice(), [limit] if matches!(limit.bound, Bound::Concurrency { .. }));
        one && admission.single.is_none() && admission.fair.is_none()
    }
}

impl Lobby {
    /// One of them.
    pub fn get(&self, run: &RunKey) -> Option<&Visit> {
        self.visits.get(run)
    }

    /// Those that nobody let in although their time has come and there is room for them, and since when. Those that
    /// wait for a rate are left out.
    pub fn held_with_room(&self, runs: &BTreeMap<RunKey, Shadow>, now: Timestamp) -> Vec<(&RunKey, Timestamp)> {
        let ended = |run: &RunKey| runs.get(run).is_none_or(|shadow| shadow.ended || shadow.deleted);
        // Whoever leaves may have a place, too.
        let used = |is: &dyn Fn(&Visit) -> bool| {
            let others = self.visits.iter().filter(|(run, other)| !ended(run) && is(other));
            others.filter(|(_, other)| other.stands != Stands::Held).count()
        };
        let has_room = |visit: &Visit| {
            let limits = visit.admission.limits.iter().all(|limit| match limit.bound {
                Bound::Concurrency { max } => used(&|other| other.has_limit(&limit.key)) < max as usize,
                Bound::Rate(_) => false,
            });
            limits && visit.single().is_none_or(|key| used(&|other| other.single() == Some(key)) == 0)
        };
        let waits = |(run, visit): &(&RunKey, &Visit)| {
            let free = runs.get(run).is_some_and(|shadow| lives(Some(shadow)) && !shadow.owned && !is_told(shadow));
            visit.stands == Stands::Held && visit.not_before <= now && free && has_room(visit)
        };
        self.visits.iter().filter(waits).map(|(run, visit)| (run, visit.not_before)).collect()
    }

    /// Those that nobody let in.
    fn outside(&self) -> Vec<RunKey> {
        let held = self.visits.iter().filter(|(_, visit)| visit.stands == Stands::Held);
        held.map(|(run, _)| run.clone()).collect()
    }
}

/// Whether a run is there and has surely not ended.
fn lives(shadow: Option<&Shadow>) -> bool {
    shadow.is_some_and(|shadow| shadow.sure && !shadow.ended && !shadow.deleted)
}

/// Whether it was told to stop.
fn is_told(shadow: &Shadow) -> bool {
    shadow.arrivals.iter().any(|arrival| arrival.what == Parcel::Control(Control::Cancel))
}

impl Watch {
    pub(super) async fn see_admit(&self, limit: usize) -> Result<Admitted, StoreError> {
        let under_way = self.begin(Vec::new());
        let store = self.inner();
        let answer = store.admit(limit).await;
        let stand = under_way.answered();
        let outside = {
            let mut sight = self.sight();
            sight.trace.note(&answer);
            answer.iter().for_each(|admitted| sight.told(admitted.now));
            if self.answers_at_once { sight.lobby.outside() } else { Vec::new() }
        };
        let mut inside = Vec::new();
        for run in outside {
            if store.held(run.clone()).await == Ok(None) {
                inside.push(run);
            }
        }
        if let Ok(admitted) = &answer {
            self.sight().let_in(&inside, admitted.now, stand);
        }
        answer
    }
}

impl Sight {
    /// A start that said something about flow control was answered.
    pub(super) fn knocked(&mut self, new: &NewRun, created: &Created, now: Timestamp, stand: Stand) {
        let Some(admission) = &new.admission else { return };
        let mut found = Findings::default();
        match created {
            Created::Created { at, .. } if !self.lobby.visits.contains_key(&new.run) => {
                self.judge_start_keys(new, admission, *at, &mut found);
                if let Some(single) = admission.single.as_ref().filter(|single| single.replace) {
                    self.make_way(&new.run, &single.key.clone());
                }
                let visit = Visit::new(new, admission, *at);
                count(&mut self.lobby.outcomes, if visit.stands == Stands::Held { "held" } else { "begins at once" });
                self.lobby.visits.insert(new.run.clone(), visit);
            }
            Created::Created { .. } | Created::Existing { .. } => {}
            Created::Joined { run, .. } => {
                let other = RunKey::new(new.run.namespace.clone(), run.clone());
                self.joined(new, admission, &other, now, &mut found);
            }
        }
        if stand.alone && !self.overlapped {
            self.findings.merge(found);
        }
    }

    /// A start that made a run of its own: nobody else had its key.
    fn judge_start_keys(&self, new: &NewRun, admission: &Admission, now: Timestamp, found: &mut Findings) {
        let run = &new.run;
        for (other, visit) in &self.lobby.visits {
            let alive = lives(self.runs.get(other));
            let same = |a: Option<&LimitKey>, b: Option<&LimitKey>| a.is_some() && a == b;
            if let Some(single) = admission.single.as_ref().filter(|single| !single.replace) {
                // Whoever was asked to make way has its place until its end, but answers for nobody any more.
                let taken = alive && !visit.replaced && same(Some(&single.key), visit.single());
                found.ensure(17, !taken, || format!("{run} was started, and {other} has its place and has not ended"));
            }
            if let (Some(mine), Some(theirs)) = (&admission.window, &visit.admission.window) {
                let within = mine.key == theirs.key && visit.since + theirs.window > now && visit.since <= now;
                found.ensure(17, !within, || {
                    format!("{run} was started at {now}, within the window of {other}: {visit:?}")
                });
            }
            if let (Some(mine), Some(theirs)) = (&admission.debounce, &visit.admission.debounce) {
                // One that was told to stop takes nobody in any more.
                let stays = self.runs.get(other).is_some_and(|shadow| !is_told(shadow));
                let waits = mine.key == theirs.key && alive && stays && visit.stands == Stands::Held;
                found.ensure(17, !waits, || format!("{run} was started while {other} waits for the last of them"));
            }
        }
    }

    /// Whoever has the place of a new run is asked to make way; one that was not admitted ends at once.
    fn make_way(&mut self, run: &RunKey, key: &LimitKey) {
        let mut told = Vec::new();
        for (other, visit) in self.lobby.visits.iter_mut().filter(|(_, visit)| visit.single() == Some(key)) {
            if other != run && self.runs.get(other).is_some_and(|shadow| !shadow.ended) {
                visit.replaced = true;
                count(&mut self.lobby.outcomes, "replaced");
                if visit.stands == Stands::Held {
                    visit.stands = Stands::Leaving;
                }
                told.push(other.clone());
            }
        }
        told.iter().for_each(|run| self.is_asked_to_make_way(run));
    }

    /// It was asked in the transaction that created the other.
    fn is_asked_to_make_way(&mut self, run: &RunKey) {
        let (Some(shadow), Ok(id)) = (self.runs.get_mut(run), DeliveryId::new(REPLACED)) else { return };
        if !shadow.arrivals.iter().any(|arrival| arrival.id == id) {
            shadow.arrivals.push(Arrival { id, what: Parcel::Control(Control::Cancel), inbox: None, consumed: false });
        }
    }

    /// Another run answers for a start.
    fn joined(&mut self, new: &NewRun, admission: &Admission, other: &RunKey, now: Timestamp, found: &mut Findings) {
        let ended = self.runs.get(other).is_none_or(|shadow| shadow.sure && (shadow.ended || shadow.deleted));
        let Some(visit) = self.lobby.visits.get_mut(other) else {
            return found.check(17, Err(format!("{other} answers for {}, and has no key", new.run)));
        };
        let windows = (&admission.window, &visit.admission.window);
        let within = matches!(windows, (Some(mine), Some(theirs))
            if mine.key == theirs.key && visit.since + theirs.window > now);
        let single = admission.single.as_ref().filter(|single| !single.replace).map(|single| &single.key);
        let only = single.is_some() && single == visit.single() && !ended;
        let debounced = match (&admission.debounce, &visit.admission.debounce) {
            (Some(mine), Some(theirs)) if mine.key == theirs.key => Some((mine.wait, visit.since + theirs.at_most)),
            (Some(_) | None, _) => None,
        };
        found.ensure(17, within || only || debounced.is_some() && visit.stands == Stands::Held, || {
            format!("{other} answers for {} at {now}, for no reason: {visit:?}", new.run)
        });
        if let Some((wait, at_most)) = debounced {
            // One whose time has come stands in line and keeps its place.
            if visit.not_before > now {
                visit.not_before = (now + wait).min(at_most).max(now);
            }
            visit.input = new.input.clone();
            if let Some(chapter) = self.runs.get_mut(other).and_then(|shadow| shadow.chapters.first_mut()) {
                chapter.input = new.input.clone();
            }
        }
        let kind = match (within, debounced) {
            (true, _) => "joined within a window",
            (false, Some(_)) => "debounced",
            (false, None) => "joined a singleton",
        };
        count(&mut self.lobby.outcomes, kind);
    }

    /// These are not held back any more.
    pub(super) fn let_in(&mut self, runs: &[RunKey], now: Timestamp, stand: Stand) {
        let mut found = Findings::default();
        let mut admitted = Vec::new();
        for run in runs {
            let shadow = self.runs.get(run);
            let Some(visit) = self.lobby.visits.get_mut(run) else { continue };
            if shadow.is_none_or(|shadow| shadow.ended || shadow.deleted || is_told(shadow)) {
                visit.stands = Stands::Leaving;
                count(&mut self.lobby.outcomes, "left before it began");
                continue;
            }
            visit.stands = Stands::Admitted(now);
            let latest = self.clock.latest();
            found.ensure(17, visit.not_before <= latest, || {
                format!("{run} was admitted at {now}, and is to begin at {}", visit.not_before)
            });
            count(&mut self.lobby.outcomes, if visit.not_before > visit.since { "admitted later" } else { "admitted" });
            admitted.push(run.clone());
        }
        for run in &admitted {
            self.judge_room(run, &mut found);
            self.judge_rates(run, now, &mut found);
            self.judge_order(run, now, &mut found);
        }
        if stand.alone && !self.overlapped {
            self.findings.merge(found);
        }
    }

    /// Whoever is inside and has not ended counts, and there are not more than may be.
    fn judge_room(&self, run: &RunKey, found: &mut Findings) {
        let Some(visit) = self.lobby.visits.get(run) else { return };
        let inside = |is: &dyn Fn(&Visit) -> bool| {
            let visits = self.lobby.visits.iter().filter(|(_, other)| is(other));
            let inside = visits.filter(|(_, other)| matches!(other.stands, Stands::Admitted(_)));
            inside.filter(|(other, _)| lives(self.runs.get(other))).map(|(other, _)| other.clone()).collect::<Vec<_>>()
        };
        for limit in &visit.admission.limits {
            let Bound::Concurrency { max } = limit.bound else { continue };
            let sharing = inside(&|other| other.has_limit(&limit.key));
            found.ensure(17, sharing.len() <= max as usize, || {
                format!("{run} was admitted, and {sharing:?} share {}, which has room for {max}", limit.key)
            });
        }
        if let Some(single) = &visit.admission.single {
            let sharing = inside(&|other| other.single() == Some(&single.key));
            found
                .ensure(17, sharing.len() <= 1, || format!("{run} was admitted beside {sharing:?}: it is a singleton"));
        }
    }

    /// No more are admitted in any time than a rate allows.
    fn judge_rates(&mut self, run: &RunKey, now: Timestamp, found: &mut Findings) {
        let Some(visit) = self.lobby.visits.get(run) else { return };
        for limit in &visit.admission.limits {
            let Bound::Rate(rate) = limit.bound else { continue };
            let (since, times) = self.lobby.rates.entry(limit.key.clone()).or_default();
            if self.clock.latest_since(*since) > now {
                // The clock was set back meanwhile: what it shows does not tell how long that was.
                times.clear();
            }
            *since = tick();
            times.push(now);
            let verdict = within_rate(times, &rate);
            found.check(17, verdict.map_err(|broken| format!("{run} was admitted at {now}: {broken}")));
        }
    }

    /// Nobody of a higher priority is left waiting in the same line.
    fn judge_order(&self, run: &RunKey, now: Timestamp, found: &mut Findings) {
        let Some(visit) = self.lobby.visits.get(run).filter(|visit| visit.waits_in_one_line()) else { return };
        let passed_over = self.lobby.visits.iter().find(|(other, it)| {
            let free = self.runs.get(other).is_some_and(|shadow| !shadow.owned && !is_told(shadow));
            let same = it.waits_in_one_line() && it.admission.limits == visit.admission.limits;
            let waits = it.stands == Stands::Held && it.not_before <= now && lives(self.runs.get(other));
            same && waits && free && it.priority > visit.priority
        });
        found.ensure(17, passed_over.is_none(), || format!("{run} was admitted, and {passed_over:?} was passed over"));
    }

    /// A run was loaded: it begins with what the last start said.
    pub(super) fn begins_with(&mut self, run: &RunKey, input: &Bytes) {
        if let Some(visit) = self.lobby.visits.get(run).filter(|_| !self.overlapped) {
            self.findings.ensure(17, visit.input == *input, || {
                format!("{run} begins with {input:?}, and the last start said {:?}", visit.input)
            });
        }
    }
}

/// Of so many admissions in a row each comes no sooner than the rate allows. A clock that was set back says nothing.
fn within_rate(times: &[Timestamp], rate: &Rate) -> Result<(), String> {
    let Some((last, before)) = times.split_last() else { return Ok(()) };
    let (every, slack) = (rate.every().as_millis(), rate.slack().as_millis());
    for (first, number) in before.iter().rev().zip(1_u128..) {
        let passed = u128::try_from(last.as_millis() - first.as_millis()).unwrap_or(u128::MAX);
        if passed.saturating_add(slack) < number * every {
            return Err(format!("the {number}th after the one at {first}, of {rate:?}"));
        }
    }
    Ok(())
}

/// What a suite must have seen of flow control.
pub const FLOWS: [&str; 9] = [
    "held",
    "begins at once",
    "replaced",
    "joined within a window",
    "joined a singleton",
    "debounced",
    "admitted",
    "admitted later",
    "left before it began",
];

#[cfg(test)]
mod tests {
    use std::time::Duration;

    use super::*;

    #[test]
    fn admissions_that_come_sooner_than_a_rate_allows_are_reported() {
        let rate = Rate::new(1, Duration::from_millis(100)).burst(2);
        let times = |times: &[i64]| times.iter().copied().map(Timestamp::from_millis).collect::<Vec<_>>();
        assert_eq!(within_rate(&times(&[0, 0, 100, 200, 500, 500]), &rate), Ok(()));
        assert!(within_rate(&times(&[0, 0, 0]), &rate).is_err());
        assert!(within_rate(&times(&[0, 50, 99]), &rate).is_err());
        assert_eq!(within_rate(&times(&[900, 5]), &rate), Ok(()), "the clock was set back");
    }
}
