//! Schedules at the end: no instant is missing that policy demands, and what clients were told of schedules is so.

use std::time::Duration;

use outlast::Overlap;

use super::{Evidence, Scene};
use crate::case::schedule_id;
use crate::ledger::{Wish, Wished};
use crate::violation::Findings;
use crate::watch::{Edition, Passed};

pub(super) fn judge(evidence: &Evidence, scene: &Scene<'_>, findings: &mut Findings) {
    if !evidence.ordered {
        return;
    }
    for ((_, id), edition) in evidence.almanac.all() {
        for passed in &edition.passed {
            let verdict = reason(edition, passed, scene);
            let Passed { instant, .. } = passed;
            findings
                .check(11, verdict.map_err(|broken| format!("{id}, its instant {instant}: {broken}\n  {passed:?}")));
        }
        counted(id.as_str(), edition, findings);
    }
    for wished in &evidence.wishes {
        kept(evidence, scene, wished, findings);
    }
}

/// Why an instant did not start its run when its time came.
fn reason(edition: &Edition, passed: &Passed, scene: &Scene<'_>) -> Result<(), String> {
    let there = edition.started.iter().any(|start| start.instant == passed.instant && !start.manual);
    if there || passed.late || edition.refused.contains(&passed.instant) {
        return Ok(());
    }
    if !was_busy(passed, scene.slack) {
        return Err("nothing was in its way, and it started no run".to_owned());
    }
    // What waits starts sooner or later, or one that took its place does.
    let later = || edition.started.iter().any(|start| start.tick > passed.tick);
    match passed.overlap {
        Overlap::Allow => Err("nothing can be in its way, and it started no run".to_owned()),
        Overlap::Skip => Ok(()),
        _ if !scene.is_end || edition.removed => Ok(()),
        Overlap::BufferAll => Err("it waited, and never started its run".to_owned()),
        Overlap::BufferOne | Overlap::CancelPrevious | Overlap::TerminatePrevious if later() => Ok(()),
        Overlap::BufferOne | Overlap::CancelPrevious | Overlap::TerminatePrevious => {
            Err("it waited, and nothing was started after it".to_owned())
        }
    }
}

/// Whether a run of the schedule may have been in the way: whoever decides has looked some time before it writes.
fn was_busy(passed: &Passed, slack: Option<Duration>) -> bool {
    let (since, then) = passed.busy;
    let just_now = |slack: Duration| passed.free_since.is_none_or(|free| free + slack >= passed.at);
    then || since && slack.is_none_or(just_now)
}

/// No more instants start runs than it may start.
fn counted(id: &str, edition: &Edition, findings: &mut Findings) {
    let Some(most) = edition.says.remaining else { return };
    let started = edition.started.iter().filter(|start| start.timely && start.created).count();
    findings.ensure(11, i64::try_from(started).unwrap_or(i64::MAX) <= most, || {
        format!("{id} started {started} runs in time, and may start {most}")
    });
}

/// What a client was told is so. A schedule that may have been removed has forgotten what it was told.
fn kept(evidence: &Evidence, scene: &Scene<'_>, wished: &Wished, findings: &mut Findings) {
    let id = schedule_id(wished.schedule);
    let of_it = || evidence.wishes.iter().filter(|other| other.schedule == wished.schedule && other.is_possible());
    let Some(said) = wished.done().filter(|_| of_it().all(|other| other.wish != Wish::Remove)) else { return };
    let editions = || evidence.almanac.all().filter(|((_, other), _)| other.as_str() == id).map(|(_, edition)| edition);
    let starts = || editions().flat_map(|edition| &edition.started);
    match &wished.wish {
        Wish::Put => findings.ensure(11, editions().any(|edition| !edition.removed), || format!("{id} is gone")),
        Wish::Pause => {
            // Until somebody may have let it go on.
            let told = wished.ended.unwrap_or(u64::MAX);
            let resumed =
                of_it().filter(|other| other.wish == Wish::Resume && other.ended.is_none_or(|at| at > wished.begun));
            let until = resumed.map(|other| other.begun).min().unwrap_or(u64::MAX);
            let fired = starts().find(|start| start.timely && start.created && start.tick > told && start.tick < until);
            findings.ensure(11, fired.is_none(), || format!("{id} is paused, and started {fired:?}"));
        }
        Wish::Trigger if said != "waits" && said != "skipped" => {
            findings.ensure(11, starts().any(|start| start.run.id.as_str() == said), || {
                format!("{id} said that it started {said}, and did not")
            });
        }
        Wish::Backfill { from, to } if scene.is_end => {
            let same = |edition: &&Edition| edition.said.iter().all(|says| says.every == edition.says.every);
            for edition in editions().filter(same) {
                let mut instant = edition.says.last(*to);
                while instant >= *from {
                    let there = starts().any(|start| start.instant == instant && !start.manual);
                    findings.ensure(11, there || edition.refused.contains(&instant), || {
                        format!("{id} was told to make up for {instant}, and did not")
                    });
                    instant -= edition.says.every;
                }
            }
        }
        Wish::Resume | Wish::Trigger | Wish::Backfill { .. } | Wish::Remove => {}
    }
}

#[cfg(test)]
mod tests {
    use outlast_core::time::Timestamp;

    use super::*;
    use crate::watch::{Says, Start};

    fn edition(overlap: Overlap) -> Edition {
        let says = Says { every: 5, offset: 0, until: None, overlap, catch_up: 20, jitter: 0, remaining: None };
        Edition::new(says, 0)
    }

    /// The instant 10, passed while a run was in its way.
    fn passed(overlap: Overlap) -> Passed {
        let at = Timestamp::from_millis(10);
        Passed { instant: 10, overlap, at, tick: 7, late: false, busy: (true, true), free_since: None }
    }

    fn start(instant: i64, tick: u64) -> Start {
        let run = outlast_core::id::RunKey::new(
            outlast_core::id::Namespace::default_namespace(),
            outlast_core::id::RunId::new(format!("s-{instant}")).unwrap(),
        );
        Start { run, instant, manual: false, created: true, tick, timely: false }
    }

    fn end() -> Scene<'static> {
        Scene { is_end: true, slack: Some(Duration::from_millis(2)), ..Scene::default() }
    }

    #[test]
    fn an_instant_is_passed_for_a_reason_or_reported() {
        let skip = edition(Overlap::Skip);
        assert_eq!(reason(&skip, &passed(Overlap::Skip), &end()), Ok(()));
        let free = Passed { busy: (false, false), ..passed(Overlap::Skip) };
        assert!(reason(&skip, &free, &end()).unwrap_err().contains("nothing was in its way"));
        assert_eq!(reason(&skip, &Passed { late: true, ..free }, &end()), Ok(()));
        assert!(reason(&edition(Overlap::Allow), &passed(Overlap::Allow), &end()).is_err());
    }

    #[test]
    fn a_run_that_ended_long_before_was_not_in_the_way() {
        let skip = edition(Overlap::Skip);
        let ended =
            |at| Passed { busy: (true, false), free_since: Some(Timestamp::from_millis(at)), ..passed(Overlap::Skip) };
        assert_eq!(reason(&skip, &ended(9), &end()), Ok(()));
        assert!(reason(&skip, &ended(7), &end()).is_err());
        // Where clocks jump nobody knows.
        assert_eq!(reason(&skip, &ended(7), &Scene { slack: None, ..end() }), Ok(()));
    }

    #[test]
    fn what_waited_is_started_or_something_in_its_place() {
        for overlap in [Overlap::BufferOne, Overlap::BufferAll, Overlap::CancelPrevious, Overlap::TerminatePrevious] {
            let mut edition = edition(overlap);
            edition.started.push(start(5, 1));
            assert!(reason(&edition, &passed(overlap), &end()).is_err(), "{overlap:?}");
            edition.started.push(start(15, 9));
            let replaced = reason(&edition, &passed(overlap), &end());
            assert_eq!(replaced.is_ok(), overlap != Overlap::BufferAll, "{overlap:?}");
            edition.started.push(start(10, 11));
            assert_eq!(reason(&edition, &passed(overlap), &end()), Ok(()), "{overlap:?}");
        }
    }

    #[test]
    fn more_runs_than_it_may_start_are_reported() {
        let mut edition = edition(Overlap::Allow);
        edition.says.remaining = Some(1);
        edition.started.extend([5, 10].map(|instant| Start { timely: true, ..start(instant, 1) }));
        let mut findings = Findings::default();
        counted("s", &edition, &mut findings);
        assert_eq!(findings.broken(), [11]);
    }

    #[test]
    fn an_instant_that_nobody_deals_with_is_reported_when_there_was_time() {
        use crate::timetables::undone;
        let patience = Duration::from_millis(12);
        let mut edition = edition(Overlap::Allow);
        assert_eq!(undone(&edition, 16, patience), None);
        assert_eq!(undone(&edition, 23, patience), Some(10));
        edition.dealt = 10;
        assert_eq!(undone(&edition, 23, patience), None);
        edition.looked = 36;
        assert_eq!(undone(&edition, 28, patience), None, "too late when somebody looked");
        edition.looked = 35;
        assert_eq!(undone(&edition, 28, patience), Some(15));
        edition.paused = true;
        assert_eq!(undone(&edition, 1_000, patience), None);
    }
}
