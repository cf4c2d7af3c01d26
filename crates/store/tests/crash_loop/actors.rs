//! Everybody but drivers and clients: the sweep, workers, schedulers, and a clock that jumps.

use outlast_core::commit::{Delivery, NewRun, TaskOutcome};
use outlast_core::id::{ClaimId, TaskToken, Version, WorkerId, WorkflowName};
use outlast_core::time::Timestamp;
use outlast_store::{ClaimTasks, ClaimedTask, Delivered, Fire, Fired, Schedule, StoreError, TaskHeartbeat};

use crate::driver::LEASE_MS;
use crate::ledger::idempotency_key;
use crate::operations::queue;
use crate::program::ms;
use crate::stage::{Dead, Played, Port, single};

/// How long a worker may be silent.
const WORKER_LEASE_MS: u64 = 100_000;
/// How far time jumps when nobody knows of anything to come: a lease is over after four of them.
const IDLE_JUMP_MS: i64 = 30_000;
/// Between two instants of a schedule.
const PERIOD_MS: i64 = 1_000;
/// How often a schedule fires.
pub(crate) const INSTANTS: i64 = 3;

/// Fires due timers, and lets time pass: when nothing moves any more, or at once if it is `eager`.
pub(crate) async fn sweeper(port: Port, eager: bool) -> Played {
    loop {
        let swept = port.must(|store| store.sweep(10)).await?;
        let clock = &port.stage.clock;
        match swept.next_due {
            _ if swept.fired > 0 => port.stage.moved(),
            Some(due) if eager || port.stage.is_quiet() => clock.set(due.as_millis().max(clock.now().as_millis())),
            None if port.stage.is_quiet() => {
                clock.advance(IDLE_JUMP_MS);
                port.stage.jumps.set(port.stage.jumps.get() + 1);
                port.stage.moved();
            }
            Some(_) | None => {}
        }
    }
}

/// Makes leases lapse under their owners' hands, a few times.
pub(crate) async fn nemesis(port: Port) -> Played {
    for _ in 0..5 {
        for _ in 0..4 {
            port.gate().await;
        }
        port.stage.clock.advance(LEASE_MS as i64 + 1);
    }
    Ok(())
}

/// Does tasks, in the manner they ask for.
pub(crate) async fn worker(port: Port, name: String) -> Played {
    let worker = WorkerId::new(name).unwrap();
    for claim in 1.. {
        let claim = ClaimTasks {
            worker: worker.clone(),
            id: ClaimId(claim),
            namespace: None,
            queues: vec![queue()],
            names: Vec::new(),
            lease: ms(WORKER_LEASE_MS),
            limit: 2,
        };
        for task in port.must(|store| store.claim_tasks(claim.clone())).await? {
            port.stage.moved();
            try_as_the_one_before(&port, &task).await;
            work(&port, &task).await?;
        }
    }
    Ok(())
}

async fn work(port: &Port, task: &ClaimedTask) -> Played {
    let (run, key) = (task.run.clone().unwrap(), task.key.clone().unwrap());
    let name = idempotency_key(&port.stage.run(run.as_str()), 0, &key);
    let result = port.stage.ledger.borrow_mut().body(name, "worked");
    let finished = TaskOutcome::Finished { result: result.clone().into_bytes().into(), log: None };
    match (task.args.as_ref(), task.attempt) {
        // The worker is gone: nobody ever reports.
        (b"desert", 1) => Ok(()),
        (b"retry", 1) => {
            let error = b"once more".as_slice().into();
            report(port, task, TaskOutcome::Retry { at: port.stage.now() + ms(50), error }).await?;
            Ok(())
        }
        (b"retry" | b"desert", _) => {
            let beat = TaskHeartbeat {
                namespace: task.namespace.clone(),
                task: task.id.clone(),
                token: task.token,
                lease: ms(WORKER_LEASE_MS),
                lapse: None,
                progress: None,
            };
            let extended = port.call(|store| store.heartbeat(beat.clone())).await?;
            if matches!(extended, Err(StoreError::TaskFenced(_) | StoreError::UnknownTask(_))) {
                return Ok(());
            }
            if report(port, task, finished).await? == Delivered::Delivered {
                port.stage.ledger.borrow_mut().results.push((task.id.clone(), result));
                port.stage.moved();
            }
            Ok(())
        }
        (other, _) => panic!("there is no manner {other:?}"),
    }
}

async fn report(port: &Port, task: &ClaimedTask, outcome: TaskOutcome) -> Result<Delivered, Dead> {
    let delivery = result_of(task, task.token, outcome);
    port.must(|store| single(store.deliver(vec![delivery.clone()]))).await
}

fn result_of(task: &ClaimedTask, token: TaskToken, outcome: TaskOutcome) -> Delivery {
    Delivery::Task { namespace: task.namespace.clone(), task: task.id.clone(), token, outcome, receipt: None }
}

/// Invariant 7: the worker that had the task before may report what it wants; nothing changes.
async fn try_as_the_one_before(port: &Port, task: &ClaimedTask) {
    let Some(token) = task.token.0.checked_sub(1).filter(|token| *token > 0) else { return };
    let before = port.world().await;
    let late = TaskOutcome::Finished { result: b"late".as_slice().into(), log: None };
    let delivered = port.bare().deliver(vec![result_of(task, TaskToken(token), late)]).await.remove(0);
    assert_eq!(delivered, Ok(Delivered::Lost), "token {token} of {} is stale", task.id);
    assert!(before == port.world().await, "a refused result of {} changed something", task.id);
    port.stage.ledger.borrow_mut().sometimes.insert("late result");
}

/// Fires schedules; two of them fight for every instant.
pub(crate) async fn scheduler(port: Port) -> Played {
    loop {
        for schedule in port.must(|store| store.due_schedules(None, 10)).await?.schedules {
            let fire = firing(&port, &schedule);
            if port.must(|store| store.fire(fire.clone())).await? == (Fired::Early) {
                panic!("{:?} was said to be due", schedule.id);
            }
            port.stage.moved();
        }
    }
}

fn firing(port: &Port, schedule: &Schedule) -> Fire {
    let at = schedule.next_at.unwrap();
    let first: i64 = std::str::from_utf8(&schedule.spec).unwrap().parse().unwrap();
    let number = (at.as_millis() - first) / PERIOD_MS;
    let next = Timestamp::from_millis(at.as_millis() + PERIOD_MS);
    let (workflow, version) = (WorkflowName::new("leaf").unwrap(), Version::new("1").unwrap());
    let run =
        NewRun::new(port.stage.run(&format!("{}-{number}", schedule.id)), workflow, version, schedule.spec.clone());
    let next_at = (number + 1 < INSTANTS).then_some(next);
    let Schedule { namespace, id, revision, .. } = schedule.clone();
    Fire { namespace, id, revision, at: Some(at), state: number.to_string().into(), next_at, run: Some(run) }
}
