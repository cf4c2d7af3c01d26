//! What goes wrong, when the case says so.

use std::rc::Rc;
use std::time::Duration;

use outlast::testing::Process;
use outlast_store::faults::{Fault as CallFault, Wakes};

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
            during(&cluster, kind, process, long, Process::freeze, Process::thaw).await;
        }
        Fault::Jump { forward, by } => {
            cluster.landed(kind);
            cluster.world.jump(forward, millis(by));
            if !forward {
                cluster.back.set(cluster.back.get() + millis(by));
            }
        }
        Fault::Deaf { process, long } => {
            during(&cluster, kind, process, long, |one| one.deaf(true), |one| one.deaf(false)).await;
        }
        Fault::WakesLost { process, long } => wakes(&cluster, kind, process, long, Wakes::Lost).await,
        Fault::WakesDoubled { process, long } => wakes(&cluster, kind, process, long, Wakes::Doubled).await,
        Fault::Full { long } => {
            cluster.landed(kind);
            cluster.everybody(|process| process.faults().set_full(true));
            cluster.world.sleep(millis(long)).await;
            cluster.everybody(|process| process.faults().set_full(false));
        }
        Fault::Cut { process, long } => {
            let (cut, mend) = (|one: &Process| one.faults().set_cut(true), |one: &Process| one.faults().set_cut(false));
            during(&cluster, kind, process, long, cut, mend).await;
        }
        Fault::Call { process, skip, of, fails } => call(&cluster, kind, process, (of, skip), fails).await,
        Fault::Poison { run, times } => poison(&cluster, kind, &run_id(run), times).await,
        Fault::Damage { run, long } => {
            if cluster.watch.damage(&run_id(run)) {
                cluster.landed(kind);
                cluster.world.sleep(millis(long)).await;
                cluster.watch.repair(&run_id(run));
            }
        }
    }
}

/// How long to wait before looking whether something has happened: what is aimed at happens soon, or seldom.
fn patience(look: u32) -> Duration {
    Duration::from_millis(if look < 50 { 100 } else { 500 })
}

/// Something that is done to a process and undone later.
async fn during(
    cluster: &Cluster,
    kind: &'static str,
    process: usize,
    long: u64,
    begin: impl FnOnce(&Process),
    end: impl FnOnce(&Process),
) {
    if cluster.with(process, begin) {
        cluster.landed(kind);
        cluster.world.sleep(millis(long)).await;
        cluster.with(process, end);
    }
}

async fn wakes(cluster: &Cluster, kind: &'static str, process: usize, long: u64, wakes: Wakes) {
    let set = |wakes| move |one: &Process| one.faults().set_wakes(wakes);
    during(cluster, kind, process, long, set(wakes), set(Wakes::Heard)).await;
}

async fn call(cluster: &Rc<Cluster>, kind: &'static str, process: usize, (of, skip): (Option<Aim>, u64), fails: Fails) {
    let fault = match fails {
        Fails::Refused => CallFault::NotApplied { in_doubt: false },
        Fails::NotAppliedInDoubt => CallFault::NotApplied { in_doubt: true },
        Fails::AppliedInDoubt => CallFault::AppliedThenError,
        Fails::AppliedThenCrash => CallFault::AppliedThenCrash,
        Fails::SentThenCrash { before } => CallFault::Late { before: millis(before), after: Duration::ZERO },
        Fails::Late { before, after } => CallFault::Late { before: millis(before), after: millis(after) },
        Fails::Hangs { long, applied } => CallFault::Hang { long: millis(long), applied },
    };
    let mut before = 0;
    if !cluster.with(process, |one| {
        before = one.faults().landed();
        match of {
            Some(aim) => one.faults().plan_next_of(aim.name(), skip, fault),
            None => one.faults().plan_next(skip, fault),
        }
    }) {
        return;
    }
    for look in 0..LOOKS_MAX {
        cluster.world.sleep(patience(look)).await;
        let mut there = false;
        let alive = cluster.with(process, |one| there = one.faults().landed() > before);
        if !alive {
            // It died of something else, and the fault with it.
            return;
        }
        if there {
            cluster.landed(kind);
            if matches!(fails, Fails::AppliedThenCrash | Fails::SentThenCrash { .. }) {
                cluster.crash(process, BACK, true).await;
            }
            return;
        }
    }
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
