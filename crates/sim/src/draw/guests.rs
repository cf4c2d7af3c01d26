//! Runs that flow control holds back, drawn from a source of their own.

use super::moment;
use crate::case::{Act, Aim, Case, Deed, Fails, Fault, Flow, Guest, Timed};
use crate::chance::Chance;
use crate::tree::{Tree, Wait, Work};

/// One case in so many has guests.
const CASES: u64 = 8;

/// Gives some cases guests.
pub(super) fn add(chance: &mut Chance, case: &mut Case) {
    if !chance.one_in(CASES) {
        return;
    }
    // Few kinds in one case, so that guests are in each other's way.
    let kinds: Vec<u64> = (0..chance.between(1, 3)).map(|_| chance.below(KINDS)).collect();
    for guest in 0..usize::try_from(chance.between(2, 7)).unwrap_or(2) {
        let flow = flow(chance, &kinds);
        case.guests.push(Guest { flow, tree: tree(chance) });
        acts(chance, guest, &mut case.acts);
    }
    case.acts.sort_by_key(|act| act.at);
    if chance.one_in(3) {
        let process = usize::try_from(chance.below(case.options.processes as u64 + 1)).unwrap_or(0);
        let fails = *chance.pick(&[Fails::Refused, Fails::NotAppliedInDoubt, Fails::AppliedInDoubt]);
        let of = *chance.pick(&[Aim::Admit, Aim::Admit, Aim::Create]);
        let what = Fault::Call { process, skip: chance.below(4), of: Some(of), early: false, fails };
        case.faults.push(Timed { at: moment(chance, 0), what });
        case.faults.sort_by_key(|fault| fault.at);
    }
}

const KINDS: u64 = 7;

fn flow(chance: &mut Chance, kinds: &[u64]) -> Flow {
    let mut flow = Flow::default();
    let key = |chance: &mut Chance| u32::try_from(chance.below(2)).unwrap_or(0);
    let kind = *chance.pick(kinds);
    let also = chance.one_in(3).then(|| *chance.pick(kinds));
    for kind in std::iter::once(kind).chain(also) {
        match kind {
            0 => flow.delay = Some(chance.between(500, 20_000)),
            1 => flow.at = Some(chance.between(500, 20_000)),
            2 => {
                flow.concurrency = if chance.one_in(3) { vec![0, 1] } else { vec![key(chance)] };
                flow.priority = chance.one_in(2).then(|| i16::try_from(chance.below(30)).unwrap_or(0));
                flow.fair = chance.one_in(3).then(|| (key(chance), 1 + key(chance)));
            }
            3 => flow.rate = Some(key(chance)),
            4 => flow.single = Some((0, chance.one_in(2))),
            5 => flow.window = Some((key(chance), chance.between(2_000, 60_000))),
            _ => {
                let wait = chance.between(1_000, 8_000);
                flow.debounce = Some((0, wait, wait * chance.between(1, 3)));
            }
        }
    }
    if flow.debounce.is_some() {
        // It says itself when it begins, and has no other start key.
        (flow.delay, flow.at, flow.single, flow.window) = (None, None, None, None);
    }
    if flow.delay.is_some() {
        flow.at = None;
    }
    flow
}

/// Small, and often long enough to be in the way of others.
fn tree(chance: &mut Chance) -> Tree {
    let step = |takes| Tree::Step(Work { attempts: 2, delay: 200, takes: Some(takes), ..Work::default() });
    let wait = Wait { name: "plum".to_owned(), number: false, aimed: false, timeout: Some(9_000), or_fail: false };
    match chance.below(4) {
        0 => step(chance.below(3_000)),
        1 => Tree::Sleep(chance.between(100, 15_000)),
        2 => Tree::Wait(wait),
        _ => Tree::Cleanup { body: Box::new(Tree::Sleep(20_000)), cleanup: Box::new(step(1_500)) },
    }
}

fn acts(chance: &mut Chance, guest: usize, acts: &mut Vec<Timed<Act>>) {
    let begin = chance.below(25_000);
    let mut add = |at: u64, what: Deed| acts.push(Timed { at, what: Act::Guest { guest, what } });
    add(begin, Deed::Start);
    for (odds, what) in [(5, Deed::Start), (3, Deed::Signal), (6, Deed::Cancel), (12, Deed::Terminate)] {
        if chance.one_in(odds) {
            add(moment(chance, begin), what);
        }
    }
}
