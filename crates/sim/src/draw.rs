//! Drawing a case from a seed.
//!
//! Each case leaves out most kinds of faults: a life in which everything goes wrong at once shows less than many lives in
//! which a few things do.

mod guests;
mod schedules;
mod written;

use serde_json::json;

use crate::case::{Act, Aim, Case, Fails, Fault, Options, Programs, Role, Snapshots, Timed, has_tasks};
use crate::chance::Chance;
use crate::generate::{SIGNALS, errand, work};
use crate::tree::{Needs, Tree, grow, needs};

/// How long faults happen, in virtual milliseconds.
const TROUBLED: u64 = 90_000;

/// What sets the source of schedules apart from that of the rest.
const SCHEDULES: u64 = 0x5CED_0000_0000_0001;

/// The same of runs that are held back, and of what is done with dead tasks.
const GUESTS: u64 = 0x6E57_0000_0000_0002;
const DEAD: u64 = 0xDEAD_0000_0000_0003;
/// And of what one run may do at once.
const FEW: u64 = 0xFE60_0000_0000_0004;
/// And of workflows that are text.
const WRITTEN: u64 = 0x7E87_0000_0000_0005;

/// The case of a seed.
pub fn draw(seed: u64) -> Case {
    let mut chance = Chance::new(seed);
    let mut options = options(&mut chance);
    let runs: Vec<Tree> = (0..chance.between(1, 3)).map(|_| tree(&mut chance)).collect();
    let mut acts = acts(&mut chance, &runs);
    enqueue(&mut chance, &mut acts);
    employ(&mut chance, &runs, &acts, &mut options);
    let faults = faults(&mut chance, options.processes, runs.len());
    let mut case =
        Case { seed, options, runs, schedules: Vec::new(), guests: Vec::new(), written: Vec::new(), acts, faults };
    schedules::add(&mut Chance::new(seed ^ SCHEDULES), &mut case);
    guests::add(&mut Chance::new(seed ^ GUESTS), &mut case);
    bury(&mut Chance::new(seed ^ DEAD), &mut case);
    few(&mut Chance::new(seed ^ FEW), &mut case.options);
    written::add(&mut Chance::new(seed ^ WRITTEN), &mut case);
    case
}

fn tree(chance: &mut Chance) -> Tree {
    let budget = if chance.one_in(8) { chance.between(9, 16) } else { chance.between(2, 8) };
    grow(chance, u32::try_from(budget).unwrap_or(8))
}

fn options(chance: &mut Chance) -> Options {
    let processes = usize::try_from(*chance.pick(&[1, 2, 2, 2, 3])).unwrap_or(2);
    let drift = (0..processes).map(|_| if chance.one_in(3) { drift(chance) } else { 0 }).collect();
    Options {
        processes,
        lease: *chance.pick(&[5_000, 10_000, 10_000, 30_000]),
        poll: *chance.pick(&[1_000, 2_000, 5_000]),
        programs: *chance.pick(&[Programs::Kept, Programs::Kept, Programs::Dropped, Programs::Evicted]),
        latency: *chance.pick(&[0, 0, 3, 50]),
        drift,
        runs_max: if chance.one_in(6) { 1 } else { 100 },
        here: chance.one_in(4),
        versions: chance.one_in(5),
        beside: chance.one_in(8),
        roles: Vec::new(),
        retention: chance.one_in(5).then(|| *chance.pick(&[20_000, 60_000, 300_000])),
        tasks_max: if chance.one_in(6) { 1 } else { 100 },
        pending_max: None,
        snapshots: Snapshots::default(),
    }
}

/// In some cases a run may do only a few things at once.
fn few(chance: &mut Chance, options: &mut Options) {
    options.pending_max = chance.one_in(10).then(|| *chance.pick(&[1, 1, 2, 2, 3, 4]));
}

/// If there are tasks, somebody works: some processes only drive then, some only work.
fn employ(chance: &mut Chance, runs: &[Tree], acts: &[Timed<Act>], options: &mut Options) {
    if has_tasks(runs, acts, &[]) {
        let roles = [Role::Both, Role::Both, Role::Drives, Role::Works];
        options.roles = (0..options.processes).map(|_| *chance.pick(&roles)).collect();
        options.staff();
    }
}

/// Tasks that no run waits for; some are queued twice.
fn enqueue(chance: &mut Chance, acts: &mut Vec<Timed<Act>>) {
    if !chance.one_in(6) {
        return;
    }
    for number in 0..chance.between(1, 3) {
        let work = work(chance);
        let errand = errand(chance, work);
        for _ in 0..chance.between(1, 2) {
            let what = Act::Enqueue { id: format!("errand-{number}"), errand: errand.clone() };
            acts.push(Timed { at: moment(chance, 0), what });
        }
    }
    acts.sort_by_key(|act| act.at);
}

/// Somebody looks after tasks that failed for good.
fn bury(chance: &mut Chance, case: &mut Case) {
    if has_tasks(&case.runs, &case.acts, &[]) && chance.one_in(2) {
        for _ in 0..chance.between(1, 3) {
            let what = Act::Dead { nth: chance.below(4), retry: !chance.one_in(3) };
            case.acts.push(Timed { at: chance.between(5_000, TROUBLED), what });
        }
        case.acts.sort_by_key(|act| act.at);
    }
}

/// Up to a tenth: far more than any clock, and still less than what a lease allows. The clock on the wall of a process is left
/// alone: only the sole user of a store reads it, as a reason to look, and a story holds that it decides nothing.
fn drift(chance: &mut Chance) -> i32 {
    i32::try_from(chance.below(200)).unwrap_or(0) - 100
}

fn acts(chance: &mut Chance, runs: &[Tree]) -> Vec<Timed<Act>> {
    let mut acts = Vec::new();
    for (run, tree) in runs.iter().enumerate() {
        let begin = if chance.one_in(2) { 0 } else { chance.below(20_000) };
        let started = start(chance, run, tree);
        acts.push(Timed { at: begin, what: started });
        let needed = needs(tree);
        for what in signals(chance, run, &needed) {
            // Some come long before they are asked for, some late, some even before the run is there.
            acts.push(Timed { at: moment(chance, begin), what });
        }
        for what in aimed(chance, run, &needed) {
            acts.push(Timed { at: moment(chance, begin), what });
        }
        below(chance, run, tree, begin, &mut acts);
        for _ in 0..needed.answers + chance.below(2) {
            let what = Act::Answer { run, nth: chance.below(3), yes: !chance.one_in(4) };
            let at = moment(chance, begin);
            acts.push(Timed { at, what });
            if chance.one_in(3) {
                // At once, before the first was read, or when nobody asks any more.
                let later = *chance.pick(&[1, 50, 400, 10_000]);
                let what = Act::AnswerAgain { run, nth: chance.below(3), yes: chance.one_in(2) };
                acts.push(Timed { at: at + chance.below(later), what });
            }
        }
        if needed.answers > 0 && chance.one_in(3) {
            acts.push(Timed { at: moment(chance, begin), what: Act::Heartbeat(run) });
        }
        controls(chance, run, begin, &mut acts);
    }
    acts.sort_by_key(|act| act.at);
    acts
}

fn start(chance: &mut Chance, run: usize, tree: &Tree) -> Act {
    match needs(tree).signals.first() {
        Some((name, _)) if chance.one_in(4) => {
            let id = format!("with-start-{run}");
            Act::SignalWithStart { run, name: name.clone(), payload: json!(chance.below(100)), id }
        }
        _ => Act::Start(run),
    }
}

fn signals(chance: &mut Chance, run: usize, needed: &Needs) -> Vec<Act> {
    let mut signals = Vec::new();
    for (name, count) in &needed.signals {
        for nth in 0..count + chance.below(2) {
            // What never comes is sent by the healer.
            if chance.one_in(5) {
                continue;
            }
            let payload = if chance.one_in(6) { json!(null) } else { json!(chance.below(1_000)) };
            let id = format!("{name}-{nth}");
            signals.push(Act::Signal { run, name: name.clone(), payload, id });
            if chance.one_in(4)
                && let Some(again) = signals.last().cloned()
            {
                signals.push(again);
            }
        }
    }
    signals
}

/// Signals for waits that hope for one of their own. Some come twice under two ids: the second is lost.
fn aimed(chance: &mut Chance, run: usize, needed: &Needs) -> Vec<Act> {
    let mut signals = Vec::new();
    for (nth, (key, name)) in needed.aimed.iter().enumerate() {
        for again in 0..chance.below(3) {
            let (key, name, payload) = (key.clone(), name.clone(), json!(chance.below(1_000)));
            signals.push(Act::Aimed { run, key, name, payload, id: format!("aimed-{nth}-{again}") });
        }
    }
    signals
}

/// What is done to children and forks.
fn below(chance: &mut Chance, run: usize, tree: &Tree, begin: u64, acts: &mut Vec<Timed<Act>>) {
    let has_children = tree.all().iter().any(|part| matches!(part, Tree::Child(_)));
    if !chance.one_in(if has_children { 2 } else { 12 }) {
        return;
    }
    for number in 0..chance.between(1, 3) {
        let what = match chance.below(6) {
            0 => Act::Cancel(run),
            1 => Act::Terminate(run),
            2 => Act::Pause(run),
            3 => Act::Resume(run),
            4 => Act::Answer { run, nth: chance.below(3), yes: !chance.one_in(4) },
            _ => {
                let (name, payload) = ((*chance.pick(&SIGNALS)).to_owned(), json!(chance.below(1_000)));
                Act::Signal { run, name, payload, id: format!("below-{run}-{number}") }
            }
        };
        let (at, nth) = (moment(chance, begin), chance.below(4));
        acts.push(Timed { at, what: Act::Below { run, nth, what: Box::new(what) } });
    }
}

fn controls(chance: &mut Chance, run: usize, begin: u64, acts: &mut Vec<Timed<Act>>) {
    let mut add = |chance: &mut Chance, odds: u64, what: Act| {
        if chance.one_in(odds) {
            acts.push(Timed { at: moment(chance, begin), what });
        }
    };
    add(chance, 6, Act::Start(run));
    add(chance, 8, Act::StartOther(run));
    add(chance, 5, Act::Cancel(run));
    add(chance, 20, Act::Cancel(run));
    add(chance, 12, Act::Terminate(run));
    add(chance, 4, Act::Pause(run));
    add(chance, 4, Act::Resume(run));
    let part = chance.below(1_001);
    add(chance, 6, Act::Fork { run, part });
    add(chance, 4, Act::Explain(run));
    add(chance, 10, Act::Delete(run));
    hasty(chance, run, begin, acts);
}

/// Sometimes a pause is taken back before it has begun, by a resume or a cancellation.
fn hasty(chance: &mut Chance, run: usize, begin: u64, acts: &mut Vec<Timed<Act>>) {
    if chance.one_in(8) {
        let at = moment(chance, begin);
        let back = if chance.one_in(4) { Act::Cancel(run) } else { Act::Resume(run) };
        acts.push(Timed { at, what: Act::Pause(run) });
        acts.push(Timed { at: at + chance.below(120), what: back });
    }
}

/// Some time while things go wrong; often soon, when most happens.
fn moment(chance: &mut Chance, begin: u64) -> u64 {
    match chance.below(4) {
        0 => begin + chance.below(200),
        1 => begin + chance.below(5_000),
        2 => begin + chance.below(30_000),
        _ => chance.below(TROUBLED),
    }
}

fn faults(chance: &mut Chance, processes: usize, runs: usize) -> Vec<Timed<Fault>> {
    let kinds: Vec<u64> = (0..KINDS).filter(|_| chance.one_in(3)).collect();
    if kinds.is_empty() {
        return Vec::new();
    }
    let mut faults = Vec::new();
    for _ in 0..chance.between(1, 8) {
        let kind = *chance.pick(&kinds);
        let (at, what) = (moment(chance, 0), fault(chance, kind, processes, runs));
        faults.push(Timed { at, what });
    }
    faults.sort_by_key(|fault| fault.at);
    faults
}

const KINDS: u64 = 16;

fn fault(chance: &mut Chance, kind: u64, processes: usize, runs: usize) -> Fault {
    let engine = |chance: &mut Chance| usize::try_from(chance.below(processes as u64)).unwrap_or(0);
    let anybody = |chance: &mut Chance| usize::try_from(chance.below(processes as u64 + 1)).unwrap_or(0);
    let process = engine(chance);
    match kind {
        0 | 1 => {
            let back = *chance.pick(&[0, 100, 5_000, 40_000]);
            Fault::Crash { process, back, same_name: chance.one_in(2) }
        }
        2 => Fault::Freeze { process, long: *chance.pick(&[500, 12_000, 35_000, 60_000]) },
        3 => Fault::Jump { forward: true, by: *chance.pick(&[50, 5_000, 600_000, 86_400_000]) },
        4 => Fault::Jump { forward: false, by: *chance.pick(&[50, 5_000, 600_000, 86_400_000]) },
        5 => Fault::Deaf { process, long: chance.between(1_000, 40_000) },
        6 => Fault::WakesLost { process, long: chance.between(1_000, 40_000) },
        7 => {
            let long = chance.between(1_000, 40_000);
            if chance.one_in(2) { Fault::WakesDoubled { process, long } } else { Fault::WakesLate { process, long } }
        }
        8 => Fault::Full { long: chance.between(500, 20_000) },
        9 => Fault::Cut { process: anybody(chance), long: *chance.pick(&[200, 3_000, 15_000, 40_000]) },
        10 => {
            let run = usize::try_from(chance.below(runs as u64)).unwrap_or(0);
            Fault::Damage { run, long: chance.between(1_000, 60_000), event: chance.one_in(2) }
        }
        11 => {
            let run = usize::try_from(chance.below(runs as u64)).unwrap_or(0);
            // Often fewer than after which it is parked.
            let times = if chance.one_in(3) { chance.between(9, 12) } else { chance.between(1, 6) };
            Fault::Poison { run, times: u32::try_from(times).unwrap_or(1) }
        }
        12 => call(chance, anybody, &[Fails::Refused, Fails::NotAppliedInDoubt]),
        13 => {
            let process = anybody(chance);
            // Before the sender asks what became of it or repeats it, or after.
            let fails = Fails::InFlight { before: *chance.pick(&[0, 1, 100, 2_000, 15_000]) };
            let of = *chance.pick(&[Aim::Claim, Aim::Commit, Aim::Take, Aim::ClaimTasks, Aim::Deliver]);
            // A client that is told by a repetition that there is no such run knows nothing of what is still on its way.
            let process = if of == Aim::Deliver { engine(chance) } else { process };
            let flight = Fault::Call { process, skip: chance.below(4), of: Some(of), fails, early: false };
            if chance.one_in(2) { flight } else { call(chance, anybody, &[Fails::AppliedInDoubt]) }
        }
        14 => Fault::PowerCut { back: *chance.pick(&[0, 500, 20_000]) },
        _ => {
            let (before, after) = (chance.below(12_000), chance.below(12_000));
            let (long, applied) = (*chance.pick(&[2_000, 20_000, 45_000]), chance.one_in(2));
            let sent = Fails::SentThenCrash { before: chance.between(100, 8_000) };
            let late = Fails::Late { before, after };
            let fails = [late, Fails::Hangs { long, applied }, Fails::AppliedThenCrash, sent];
            // The client does not die, but its calls take as long as those of others.
            if chance.one_in(5) { call(chance, |_| processes, &fails[..2]) } else { call(chance, engine, &fails) }
        }
    }
}

fn call(chance: &mut Chance, process: impl Fn(&mut Chance) -> usize, fails: &[Fails]) -> Fault {
    // Most of what matters happens within the first calls after something else did.
    let skip = if chance.one_in(3) { chance.below(60) } else { chance.below(12) };
    let (process, fails) = (process(chance), *chance.pick(fails));
    if chance.one_in(2) {
        return Fault::Call { process, skip, of: None, fails, early: false };
    }
    // Most calls are looks around: those that matter are rarely hit by counting.
    let aims = [
        Aim::Claim,
        Aim::Commit,
        Aim::Commit,
        Aim::Deliver,
        Aim::Load,
        Aim::Load,
        Aim::Release,
        Aim::Resolve,
        Aim::Take,
        Aim::ClaimTasks,
        Aim::ClaimTasks,
        Aim::Heartbeat,
        Aim::Enqueue,
    ];
    Fault::Call { process, skip: skip / 6, of: Some(*chance.pick(&aims)), fails, early: false }
}

#[cfg(test)]
mod tests {
    use std::collections::BTreeSet;

    use super::*;

    #[test]
    fn every_kind_of_fault_and_of_act_is_drawn() {
        let cases: Vec<Case> = (0..1_000).map(draw).collect();
        let faults: BTreeSet<&str> =
            cases.iter().flat_map(|case| &case.faults).map(|fault| fault.what.kind()).collect();
        let acts: BTreeSet<&str> = cases.iter().flat_map(|case| &case.acts).map(|act| act.what.kind()).collect();
        assert_eq!(faults, Fault::KINDS.into_iter().collect());
        assert_eq!(acts, Act::KINDS.into_iter().collect());
    }

    #[test]
    fn case_survives_being_written_down() {
        for case in (0..100).map(draw) {
            let text = serde_json::to_string(&case).unwrap();
            assert_eq!(serde_json::from_str::<Case>(&text).unwrap(), case);
        }
    }
}
