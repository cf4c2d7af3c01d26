//! Schedules, and what is done to them. They are drawn from a source of their own, so that the rest of a case does not depend
//! on them.

use outlast::Overlap;

use super::moment;
use crate::case::{Act, Aim, Case, Fails, Fault, Timed, Timetable};
use crate::chance::Chance;
use crate::tree::{Tree, Wait, Work};

/// One case in so many has schedules.
const CASES: u64 = 8;

const OVERLAPS: [Overlap; 6] = [
    Overlap::Skip,
    Overlap::Allow,
    Overlap::BufferOne,
    Overlap::BufferAll,
    Overlap::CancelPrevious,
    Overlap::TerminatePrevious,
];

/// Gives some cases schedules.
pub(super) fn add(chance: &mut Chance, case: &mut Case) {
    if !chance.one_in(CASES) {
        return;
    }
    for schedule in 0..usize::try_from(chance.between(1, 2)).unwrap_or(1) {
        case.schedules.push(timetable(chance));
        acts(chance, schedule, &mut case.acts);
    }
    case.acts.sort_by_key(|act| act.at);
    if chance.one_in(2) {
        for _ in 0..chance.between(1, 3) {
            let (at, what) = (moment(chance, 0), fault(chance, case.options.processes));
            case.faults.push(Timed { at, what });
        }
        case.faults.sort_by_key(|fault| fault.at);
    }
}

fn timetable(chance: &mut Chance) -> Timetable {
    let every = *chance.pick(&[5_000, 10_000, 15_000, 15_000, 30_000]);
    let cron = chance.one_in(3);
    Timetable {
        every,
        offset: if cron { 0 } else { chance.below(every) },
        cron,
        overlap: *chance.pick(&OVERLAPS),
        catch_up: *chance.pick(&[10_000, 20_000, 45_000]),
        jitter: if chance.one_in(3) { chance.below(every) } else { 0 },
        remaining: chance.one_in(8).then(|| chance.between(1, 5)),
        tree: tree(chance),
    }
}

/// Small, and often longer than the time to the next instant.
fn tree(chance: &mut Chance) -> Tree {
    let step = |chance: &mut Chance| {
        let takes = Some(*chance.pick(&[0, 0, 300, 4_000]));
        Tree::Step(Work { attempts: 2, delay: 200, takes, ..Work::default() })
    };
    match chance.below(5) {
        0 => step(chance),
        1 => Tree::Sleep(chance.between(50, 9_000)),
        2 => {
            let wait =
                Wait { name: "plum".to_owned(), number: false, aimed: false, timeout: Some(7_000), or_fail: false };
            Tree::Wait(wait)
        }
        3 => {
            Tree::Cleanup { body: Box::new(Tree::Sleep(chance.between(500, 20_000))), cleanup: Box::new(step(chance)) }
        }
        _ => Tree::Seq(vec![step(chance), Tree::Sleep(chance.between(50, 6_000))]),
    }
}

fn acts(chance: &mut Chance, schedule: usize, acts: &mut Vec<Timed<Act>>) {
    let begin = chance.below(15_000);
    let mut add = |at: u64, what: Act| acts.push(Timed { at, what });
    add(begin, Act::PutSchedule { schedule, other: false });
    if chance.one_in(3) {
        add(moment(chance, begin), Act::PutSchedule { schedule, other: chance.one_in(2) });
    }
    if chance.one_in(3) {
        let at = moment(chance, begin);
        add(at, Act::PauseSchedule(schedule));
        if !chance.one_in(4) {
            add(at + chance.below(30_000), Act::ResumeSchedule(schedule));
        }
    }
    for _ in 0..chance.below(3) {
        add(moment(chance, begin), Act::TriggerSchedule(schedule));
    }
    if chance.one_in(3) {
        let back = chance.between(1_000, 60_000);
        let what = Act::BackfillSchedule { schedule, back, long: chance.between(1_000, back.min(40_000)) };
        add(moment(chance, begin), what);
    }
    if chance.one_in(6) {
        let at = moment(chance, begin);
        add(at, Act::RemoveSchedule(schedule));
        if chance.one_in(2) {
            add(at + chance.below(20_000), Act::PutSchedule { schedule, other: false });
        }
    }
}

/// Calls about schedules are few: they are aimed at.
fn fault(chance: &mut Chance, processes: usize) -> Fault {
    let process = usize::try_from(chance.below(processes as u64 + 1)).unwrap_or(0);
    let fails = [Fails::Refused, Fails::NotAppliedInDoubt, Fails::AppliedInDoubt];
    let late = [Fails::Late { before: chance.below(12_000), after: chance.below(12_000) }, Fails::AppliedThenCrash];
    // A client's process does not die.
    let fails = if process < processes && chance.one_in(3) { *chance.pick(&late) } else { *chance.pick(&fails) };
    let of = *chance.pick(&[Aim::Fire, Aim::Fire, Aim::PutSchedule]);
    Fault::Call { process, skip: chance.below(3), of: Some(of), early: false, fails }
}
