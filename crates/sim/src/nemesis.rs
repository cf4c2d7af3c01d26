//! What goes wrong, when the case says so.

use std::rc::Rc;
use std::time::Duration;

use outlast::testing::Process;
use outlast_store::faults::{Fault as CallFault, Planned, Wakes};

use crate::case::{Aim, Fails, Fault, run_id};
use crate::cluster::Cluster;

/// How often to look, at most: for about a minute.
const LOOKS_MAX: u32 = 160;
/// When a process that died of its own call comes back.
const BACK: Duration = Duration::from_secs(2);

/// Lets one fault happen, and ends when it is over.
pub(crate) async fn inflict(cluster: Rc<Cluster>, fault: Fault) {
    let kind = fault.kind();
    match fault {
        Fault::Crash { process, back, same_name } => {
            if cluster.with(process, |_| ()) {
                cluster.landed(kind);
                cluster.crash(process, millis(back), same_name).await;
            }
        }
        Fault::PowerCut { back } => {
            cluster.landed(kind);
            cluster.power_cut(millis(back)).await;
        }
        Fault::Freeze { process, long } => {
            let effect = Effect { begin: Process::freeze, end: Process::thaw, seen: Process::tasks_held };
            during(&cluster, kind, process, long, effect).await;
        }
        Fault::Jump { forward, by } => {
            cluster.landed(kind);
            cluster.world.jump(forward, millis(by));
            if !forward {
                cluster.back.set(cluster.back.get() + millis(by));
            }
        }
        Fault::Deaf { process, long } => {
            let effect =
                Effect { begin: |one| one.deaf(true), end: |one| one.deaf(false), seen: Process::notices_lost };
            during(&cluster, kind, process, long, effect).await;
        }
        Fault::WakesLost { process, long } => {
            let begin = |one: &Process| one.faults().set_wakes(Wakes::Lost);
            during(&cluster, kind, process, long, Effect { begin, end: hear, seen: |one| landed(one, "wakes_lost") })
                .await;
        }
        Fault::WakesDoubled { process, long } => {
            let begin = |one: &Process| one.faults().set_wakes(Wakes::Doubled);
            during(
                &cluster,
                kind,
                process,
                long,
                Effect { begin, end: hear, seen: |one| landed(one, "wakes_doubled") },
            )
            .await;
        }
        Fault::WakesLate { process, long } => {
            let begin = |one: &Process| one.faults().set_wakes(Wakes::Late);
            during(&cluster, kind, process, long, Effect { begin, end: hear, seen: |one| landed(one, "wakes_late") })
                .await;
        }
        Fault::Full { long } => {
            let before = cluster.effects("full");
            cluster.set_full(true);
            cluster.world.sleep(millis(long)).await;
            cluster.set_full(false);
            if cluster.effects("full") > before {
                cluster.landed(kind);
            }
        }
        Fault::Cut { process, long } => {
            let (begin, end) =
                (|one: &Process| one.faults().set_cut(true), |one: &Process| one.faults().set_cut(false));
            during(&cluster, kind, process, long, Effect { begin, end, seen: |one| landed(one, "cut") }).await;
        }
        Fault::Call { process, skip, of, fails, .. } => {
            if let Some(planned) = plan(&cluster, process, (of, skip), fails) {
                let number = cluster.case.faults.len();
                follow(&cluster, (kind, number), process, planned, fails).await;
            }
        }
        Fault::Poison { run, times } => poison(&cluster, kind, &run_id(run), times).await,
        Fault::Damage { run, long, event } => damage(&cluster, kind, &run_id(run), long, event).await,
    }
}

/// Damages the middle of a run's journal for a while. It has landed only if somebody met it.
async fn damage(cluster: &Cluster, kind: &'static str, run: &str, long: u64, event: bool) {
    let before = cluster.watch.damage_met();
    let next = if cluster.ground.in_memory { None } else { Some(cluster.stands(run).await) };
    let Some((run, index)) = cluster.watch.damage(run, event, next) else { return };
    if let Some(damage) = &cluster.ground.damage {
        damage(&run, Some((index, event)));
    }
    cluster.world.sleep(millis(long)).await;
    cluster.repair(&run);
    if cluster.watch.damage_met() > before {
        cluster.landed(kind);
    }
}

/// How long to wait before looking whether something has happened: what is aimed at happens soon, or seldom.
fn patience(look: u32) -> Duration {
    Duration::from_millis(if look < 50 { 100 } else { 500 })
}

/// Something that is done to a process and undone later, and how often it has shown.
struct Effect {
    begin: fn(&Process),
    end: fn(&Process),
    seen: fn(&Process) -> u64,
}

/// Lets it be for a while. It has landed only if it made a difference.
async fn during(cluster: &Cluster, kind: &'static str, process: usize, long: u64, effect: Effect) {
    let Some(process) = cluster.process(process) else { return };
    let before = (effect.seen)(&process);
    (effect.begin)(&process);
    cluster.world.sleep(millis(long)).await;
    if !process.has_crashed() {
        (effect.end)(&process);
    }
    if (effect.seen)(&process) > before {
        cluster.landed(kind);
    }
}

fn hear(process: &Process) {
    process.faults().set_wakes(Wakes::Heard);
}

fn landed(process: &Process, kind: &str) -> u64 {
    process.faults().landed_by_kind().get(kind).copied().unwrap_or(0)
}

/// Plans what happens to a process from its first call on, before it makes one. If it dies before, it happens to whoever comes in
/// its place.
pub(crate) fn begin(cluster: &Rc<Cluster>, number: usize) {
    let early = cluster.case.faults.iter().map(|fault| &fault.what).enumerate().filter(|(_, fault)| fault.is_early());
    for (place, fault) in early {
        if cluster.early.borrow().contains(&place) {
            continue;
        }
        let Fault::Call { process, skip, of, fails, .. } = *fault else { continue };
        let Some(planned) = (process == number).then(|| plan(cluster, process, (of, skip), fails)).flatten() else {
            continue;
        };
        let (kind, cluster, world) = (fault.kind(), Rc::clone(cluster), Rc::clone(&cluster.world));
        cluster.left.set(cluster.left.get() + 1);
        world.spawn(async move {
            follow(&cluster, (kind, place), process, planned, fails).await;
            cluster.left.set(cluster.left.get() - 1);
        });
    }
}

/// Plans that one call of a process fails; none if it is dead.
fn plan(cluster: &Cluster, process: usize, (of, skip): (Option<Aim>, u64), fails: Fails) -> Option<(Process, Planned)> {
    let fault = match fails {
        Fails::Refused => CallFault::NotApplied { in_doubt: false },
        Fails::NotAppliedInDoubt => CallFault::NotApplied { in_doubt: true },
        Fails::AppliedInDoubt => CallFault::AppliedThenError,
        Fails::AppliedThenCrash => CallFault::AppliedThenCrash,
        Fails::SentThenCrash { before } => CallFault::Late { before: millis(before), after: Duration::ZERO },
        Fails::Late { before, after } => CallFault::Late { before: millis(before), after: millis(after) },
        Fails::InFlight { before } => CallFault::InFlight { before: millis(before) },
        Fails::Hangs { long, applied } => CallFault::Hang { long: millis(long), applied },
    };
    let one = cluster.process(process)?;
    let planned = one.faults().follow_next(of.map(Aim::name), skip, fault);
    Some((one, planned))
}

/// Waits until a call of the fault at a place of the case fails as planned, and sees to it that whoever dies of it is dead.
async fn follow(
    cluster: &Rc<Cluster>,
    (kind, place): (&'static str, usize),
    process: usize,
    (one, planned): (Process, Planned),
    fails: Fails,
) {
    for look in 0..LOOKS_MAX {
        cluster.world.sleep(patience(look)).await;
        let there = one.faults().has_landed(planned);
        if one.has_crashed() && !there {
            // It died of something else, and the fault with it.
            return;
        }
        if there {
            cluster.landed(kind);
            cluster.early.borrow_mut().insert(place);
            if matches!(fails, Fails::AppliedThenCrash | Fails::SentThenCrash { .. }) {
                cluster.crash(process, BACK, true).await;
            }
            // As long as it is on its way, trouble is not over.
            return cluster.world.sleep(on_its_way(fails)).await;
        }
    }
    // Later nobody would see to it that a process that dies of it is dead.
    one.faults().forget(planned);
}

/// How long a call is not answered.
fn on_its_way(fails: Fails) -> Duration {
    millis(match fails {
        Fails::Refused | Fails::NotAppliedInDoubt | Fails::AppliedInDoubt | Fails::AppliedThenCrash => 0,
        Fails::SentThenCrash { before } | Fails::InFlight { before } => before,
        Fails::Late { before, after } => before + after,
        Fails::Hangs { long, .. } => long,
    })
}

/// Lets every process die that begins a body of the run, so often.
async fn poison(cluster: &Rc<Cluster>, kind: &'static str, run: &str, times: u32) {
    cluster.ledger.poison(run, times);
    for look in 0.. {
        if look == LOOKS_MAX {
            cluster.ledger.poison(run, 0);
        }
        let dying = cluster.ledger.take_poisoned();
        if dying.is_empty() && !cluster.ledger.is_poisonous(run) {
            return;
        }
        for process in dying {
            cluster.landed(kind);
            if let Some(number) = cluster.number_of(&process) {
                cluster.crash(number, BACK, true).await;
            }
        }
        cluster.world.sleep(patience(look)).await;
    }
}

fn millis(millis: u64) -> Duration {
    Duration::from_millis(millis)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::case::{Act, Case, Timed};
    use crate::draw::draw;
    use crate::play::play;

    /// A calm case with one run that starts at once, and a fault.
    fn with(fault: Fault) -> Case {
        let mut case = draw(0);
        case.runs = vec![crate::tree::Tree::Sleep(1_000)];
        case.acts = vec![Timed { at: 0, what: Act::Start(0) }];
        case.faults = vec![Timed { at: 0, what: fault }];
        (case.options.processes, case.options.latency, case.options.drift) = (1, 0, vec![0]);
        case
    }

    #[test]
    fn a_fault_that_nobody_met_has_not_landed() {
        let landed = |fault: Fault| {
            let kind = fault.kind();
            play(&with(fault)).tally.faults.contains_key(kind)
        };
        assert!(landed(Fault::Cut { process: 0, long: 20_000 }));
        assert!(!landed(Fault::Cut { process: 7, long: 20_000 }), "there is no such process");
        assert!(landed(Fault::Full { long: 20_000 }));
        assert!(!landed(Fault::Full { long: 0 }), "nobody wrote meanwhile");
        assert!(!landed(Fault::WakesLost { process: 0, long: 10 }), "nobody was woken meanwhile");
        assert!(!landed(Fault::Damage { run: 0, long: 60_000, event: true }), "there is no journal yet");
    }

    #[test]
    fn trouble_lasts_as_long_as_a_call_is_on_its_way() {
        assert_eq!(on_its_way(Fails::Refused), Duration::ZERO);
        assert_eq!(on_its_way(Fails::Late { before: 2, after: 3 }), millis(5));
        assert_eq!(on_its_way(Fails::Hangs { long: 7, applied: true }), millis(7));
    }
}
