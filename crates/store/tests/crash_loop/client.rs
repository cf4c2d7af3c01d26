//! Somebody outside who asks for things, repeats every request under the same id until it is acknowledged, and
//! remembers what was acknowledged.

use std::sync::Arc;
use std::time::Duration;

use bytes::Bytes;
use outlast_core::commit::{Control, Delivery, NewRun, Signal, Status, TimerKind, WaitKind};
use outlast_core::id::{DeliveryId, Revision, RunKey, ScheduleId, SignalName, Version, WorkflowName};
use outlast_store::invariants::Sent;
use outlast_store::{Awaited, Delivered, Retention, Schedule, StoreError};

use crate::ledger::Answered;
use crate::operations::token;
use crate::program::{SILENCE_MS, key, ms};
use crate::stage::{Dead, Played, Port, single};

const HOUR_MS: i64 = 3_600_000;
/// Between two signs of life.
const BEAT_MS: i64 = 10;

/// One thing a client does.
#[derive(Clone, Copy, Debug)]
pub(crate) enum Act {
    Start {
        run: &'static str,
        workflow: &'static str,
    },
    /// Starts a run with signals (name, id), or leaves them for the run that is there.
    StartWith {
        run: &'static str,
        workflow: &'static str,
        signals: &'static [(&'static str, &'static str)],
    },
    Signal {
        run: &'static str,
        name: &'static str,
        id: &'static str,
    },
    Aim {
        run: &'static str,
        at: &'static str,
        name: &'static str,
        id: &'static str,
    },
    Approve {
        run: &'static str,
        at: &'static str,
        id: &'static str,
    },
    CallBack {
        run: &'static str,
        at: &'static str,
        id: &'static str,
    },
    Beat {
        run: &'static str,
        at: &'static str,
    },
    Ask {
        run: &'static str,
        control: Control,
        id: &'static str,
    },
    Schedule {
        id: &'static str,
    },
    /// Waits until the run waits for something, or has waited for it.
    UntilOpen {
        run: &'static str,
        at: &'static str,
    },
    Until {
        run: &'static str,
        status: Status,
    },
    UntilEnded {
        run: &'static str,
    },
    /// Does nothing for so many steps.
    Idle {
        steps: u32,
    },
    /// Lets the runs be deleted that have ended, and looks whether they are.
    Retain {
        runs: &'static [&'static str],
    },
    /// Lets a week pass, after which nobody remembers them.
    Forget {
        runs: &'static [&'static str],
    },
}

/// Plays a script from where it was left.
pub(crate) async fn client(port: Port, script: Arc<[Act]>) -> Played {
    loop {
        let done = port.stage.ledger.borrow().acts;
        let Some(act) = script.get(done) else { return Ok(()) };
        perform(&port, *act).await?;
        port.stage.ledger.borrow_mut().acts += 1;
        port.stage.moved();
    }
}

async fn perform(port: &Port, act: Act) -> Played {
    let name = |id: &str| port.stage.run(id);
    match act {
        Act::Start { run, workflow } => start(port, &name(run), workflow, &[]).await,
        Act::StartWith { run, workflow, signals } => start(port, &name(run), workflow, signals).await,
        Act::Signal { run, name: signal, id } => send(port, &name(run), letter(signal, id, None)).await,
        Act::Aim { run, at, name: signal, id } => send(port, &name(run), letter(signal, id, Some(at))).await,
        Act::Approve { run, at, id } => answer(port, &name(run), at, WaitKind::Approval, id).await,
        Act::CallBack { run, at, id } => answer(port, &name(run), at, WaitKind::Callback, id).await,
        Act::Beat { run, at } => beat(port, &name(run), at).await,
        Act::Ask { run, control, id } => ask(port, name(run), control, id).await,
        Act::Schedule { id } => schedule(port, id).await,
        Act::UntilOpen { run, at } => until_open(port, &name(run), at).await,
        Act::Until { run, status } => until(port, &name(run), |found| found == status).await,
        Act::UntilEnded { run } => until(port, &name(run), Status::is_terminal).await,
        Act::Idle { steps } => {
            for _ in 0..steps {
                port.gate().await;
                port.stage.moved();
            }
            Ok(())
        }
        Act::Retain { runs } => retain(port, runs, HOUR_MS + 1, true).await,
        Act::Forget { runs } => retain(port, runs, 8 * 24 * HOUR_MS, false).await,
    }
}

fn letter(name: &str, id: &str, aimed: Option<&str>) -> Signal {
    Signal {
        name: SignalName::new(name).unwrap(),
        id: DeliveryId::new(id).unwrap(),
        payload: Bytes::copy_from_slice(id.as_bytes()),
        aimed: aimed.map(key),
    }
}

async fn start(port: &Port, run: &RunKey, workflow: &str, signals: &[(&str, &str)]) -> Played {
    let (workflow, version) = (WorkflowName::new(workflow).unwrap(), Version::new("1").unwrap());
    let signals: Vec<Signal> = signals.iter().map(|(name, id)| letter(name, id, None)).collect();
    for signal in &signals {
        note(port, run, signal);
    }
    let new = NewRun { signals, ..NewRun::new(run.clone(), workflow, version, Bytes::from_static(b"{}")) };
    port.must(|store| single(store.create(vec![new.clone()]))).await?;
    for signal in &new.signals {
        accepted(port, run, signal, Delivered::Buffered);
    }
    port.stage.ledger.borrow_mut().created.insert(run.clone());
    Ok(())
}

/// Takes note that a signal is about to be sent: from now on it may arrive.
fn note(port: &Port, run: &RunKey, signal: &Signal) {
    let mut ledger = port.stage.ledger.borrow_mut();
    let sent = ledger.sent.entry(run.clone()).or_default();
    if !sent.iter().any(|sent| sent.id == signal.id) {
        let Signal { name, id, aimed, .. } = signal.clone();
        sent.push(Sent { name, id, aimed, accepted: false });
    }
}

/// Takes note of what the store said.
fn accepted(port: &Port, run: &RunKey, signal: &Signal, delivered: Delivered) {
    let mut ledger = port.stage.ledger.borrow_mut();
    let sent = ledger.sent.entry(run.clone()).or_default();
    match delivered {
        Delivered::Delivered | Delivered::Buffered | Delivered::Duplicate => {
            sent.iter_mut().filter(|sent| sent.id == signal.id).for_each(|sent| sent.accepted = true);
        }
        Delivered::Lost | Delivered::NotFound | Delivered::Deleted | Delivered::Full => {
            sent.retain(|sent| sent.id != signal.id || sent.accepted);
            ledger.sometimes.insert("signal lost");
        }
    }
}

async fn send(port: &Port, run: &RunKey, signal: Signal) -> Played {
    note(port, run, &signal);
    let delivered = deliver(port, Delivery::Signal { run: run.clone(), signal: signal.clone() }).await?;
    accepted(port, run, &signal, delivered);
    Ok(())
}

async fn deliver(port: &Port, delivery: Delivery) -> Result<Delivered, Dead> {
    port.must(|store| single(store.deliver(vec![delivery.clone()]))).await
}

async fn answer(port: &Port, run: &RunKey, at: &str, kind: WaitKind, id: &str) -> Played {
    let (key, id) = (key(at), DeliveryId::new(id).unwrap());
    let delivered = deliver(
        port,
        Delivery::Answer {
            run: run.clone(),
            key: key.clone(),
            kind,
            id: id.clone(),
            token: (kind == WaitKind::Callback).then(|| token(&key)),
            meta: None,
            payload: Some(Bytes::copy_from_slice(id.as_str().as_bytes())),
        },
    )
    .await?;
    let mut ledger = port.stage.ledger.borrow_mut();
    ledger.sometimes.insert(match delivered {
        Delivered::Delivered | Delivered::Duplicate => "answered",
        Delivered::Buffered | Delivered::Lost | Delivered::NotFound | Delivered::Deleted | Delivered::Full => {
            "too late"
        }
    });
    ledger.answered.push(Answered { run: run.clone(), key, kind, id, delivered });
    Ok(())
}

/// A sign of life, some time after the last one. Once it is acknowledged, the next is owed later than before.
async fn beat(port: &Port, run: &RunKey, at: &str) -> Played {
    port.stage.clock.advance(BEAT_MS);
    let beat = Delivery::Heartbeat { run: run.clone(), key: key(at), token: Some(token(&key(at))) };
    if deliver(port, beat).await? == Delivered::Delivered {
        let owed = port.stage.now() + ms(SILENCE_MS);
        let moved = |awaited: &Awaited| match awaited {
            Awaited::Timer { key: of, kind, due } => *of == key(at) && *kind == TimerKind::Heartbeat && *due == owed,
            Awaited::Wait { .. } | Awaited::Task { .. } | Awaited::Child { .. } => false,
        };
        let awaiting = port.bare().awaiting(run.clone()).await.unwrap();
        assert!(awaiting.iter().any(moved), "{run}: an acknowledged heartbeat moved nothing: {awaiting:?}");
    }
    Ok(())
}

async fn ask(port: &Port, run: RunKey, control: Control, id: &str) -> Played {
    let id = DeliveryId::new(id).unwrap();
    deliver(port, Delivery::Control { run, control, id, meta: None, child_of: None }).await?;
    Ok(())
}

async fn schedule(port: &Port, id: &str) -> Played {
    let first = port.stage.now().as_millis() + 10;
    let schedule = Schedule {
        namespace: port.stage.namespace.clone(),
        id: ScheduleId::new(id).unwrap(),
        revision: Revision(0),
        spec: first.to_string().into_bytes().into(),
        state: Default::default(),
        next_at: Some(outlast_core::time::Timestamp::from_millis(first)),
    };
    // As a new one: if it is there already, nothing changes.
    port.must(|store| store.put_schedule(schedule.clone())).await?;
    Ok(())
}

async fn until(port: &Port, run: &RunKey, reached: impl Fn(Status) -> bool) -> Played {
    loop {
        match port.call(|store| store.get(run.clone())).await? {
            Ok(view) if reached(view.status) || view.status.is_terminal() => return Ok(()),
            // A run that somebody else will start.
            Ok(_) | Err(StoreError::NotFound(_)) => {}
            Err(error) => panic!("{run} cannot be read: {error}"),
        }
    }
}

async fn until_open(port: &Port, run: &RunKey, at: &str) -> Played {
    loop {
        let awaiting = port.must(|store| store.awaiting(run.clone())).await?;
        let open = |awaited: &Awaited| match awaited {
            Awaited::Wait { key, .. } | Awaited::Timer { key, .. } => key.as_str() == at,
            Awaited::Task { .. } | Awaited::Child { .. } => false,
        };
        if awaiting.iter().any(open) {
            return Ok(());
        }
        // Its time may have run out while nobody looked.
        if port.world().await.events(run).iter().any(|event| event.key() == Some(&key(at))) {
            return Ok(());
        }
    }
}

/// Deletes what ended long ago, a few rows at a time, until nothing is left to do.
async fn retain(port: &Port, runs: &[&str], later: i64, remembered: bool) -> Played {
    port.stage.clock.advance(later);
    port.stage.ledger.borrow_mut().deleted.extend(runs.iter().map(|id| port.stage.run(id)));
    let retention = Retention { age: Duration::from_millis(HOUR_MS as u64), limit: 6 };
    while port.must(|store| store.retain(retention)).await?.more {
        port.stage.moved();
    }
    for id in runs {
        match port.call(|store| store.get(port.stage.run(id))).await? {
            Err(StoreError::Deleted { .. }) if remembered => {}
            Err(StoreError::NotFound(_)) if !remembered => {}
            other => panic!("{id} should be gone, remembered: {remembered}; it is {other:?}"),
        }
    }
    Ok(())
}
