//! What goes wrong, when the case says so.

use std::rc::Rc;
use std::time::Duration;

use outlast::testing::Process;
use outlast_store::faults::{Fault as CallFault, Wakes};

use crate::case::{Fails, Fault, run_id};
use crate::cluster::Cluster;

/// How often to look whether a call that kills has been made.
const LOOK: Duration = Duration::from_millis(100);
/// How often, at most.
const LOOKS_MAX: u32 = 600;
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
        Fault::Call { process, skip, fails } => call(&cluster, kind, process, skip, fails).await,
        Fault::Damage { run, long } => {
            if cluster.watch.damage(&run_id(run)) {
                cluster.landed(kind);
                cluster.world.sleep(millis(long)).await;
                cluster.watch.repair(&run_id(run));
            }
        }
    }
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

async fn call(cluster: &Rc<Cluster>, kind: &'static str, process: usize, skip: u64, fails: Fails) {
    let fault = match fails {
        Fails::Refused => CallFault::NotApplied { in_doubt: false },
        Fails::NotAppliedInDoubt => CallFault::NotApplied { in_doubt: true },
        Fails::AppliedInDoubt => CallFault::AppliedThenError,
        Fails::AppliedThenCrash => CallFault::AppliedThenCrash,
        Fails::Late { before, after } => CallFault::Late { before: millis(before), after: millis(after) },
        Fails::Hangs { long, applied } => CallFault::Hang { long: millis(long), applied },
    };
    let mut before = 0;
    if !cluster.with(process, |one| {
        before = one.faults().landed();
        one.faults().plan_next(skip, fault);
    }) {
        return;
    }
    for _ in 0..LOOKS_MAX {
        cluster.world.sleep(LOOK).await;
        let mut there = false;
        let alive = cluster.with(process, |one| there = one.faults().landed() > before);
        if there || !alive {
            cluster.landed(kind);
            if fails == Fails::AppliedThenCrash {
                cluster.crash(process, BACK, true).await;
            }
            return;
        }
    }
}

fn millis(millis: u64) -> Duration {
    Duration::from_millis(millis)
}
