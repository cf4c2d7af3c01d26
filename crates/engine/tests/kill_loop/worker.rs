//! The process that is killed: it starts every run, tells every run what it waits for, notes what was acknowledged, and
//! drives until it is killed or all runs have ended.

mod companions;

use std::time::Duration;

use outlast::{Delivered, Engine, EngineError, Forked, RunHandle, Status};
use outlast_core::event::Class;
use outlast_core::id::NodeId;

use crate::ledger::{Ask, Ledger, Note};
use crate::place::Place;
use crate::workflows::{LENGTH, NAMES, register};

const POLL: Duration = Duration::from_millis(50);
/// What a dead process held is another's after this at the latest.
const LEASE: Duration = Duration::from_millis(400);
/// How often a worker looks whether a run has come to where something is to be done.
const GLANCE: Duration = Duration::from_millis(5);

/// What somebody who asks is told.
trait Answer {
    /// Whether it had been done before.
    fn is_known(&self) -> bool {
        false
    }
}

impl Answer for () {}
impl Answer for Forked {}

impl Answer for Delivered {
    fn is_known(&self) -> bool {
        assert_ne!(*self, Delivered::Full, "a mailbox is full");
        *self == Delivered::Duplicate
    }
}

struct Worker {
    engine: Engine,
    ledger: Ledger,
    /// What was acknowledged in earlier lives.
    known: Vec<Ask>,
    /// Whether that is asked for again: it must do nothing twice.
    again: bool,
}

pub(crate) fn work(place: &str) {
    let place: Place = serde_json::from_str(place).unwrap();
    let runtime = tokio::runtime::Builder::new_multi_thread().worker_threads(2).enable_all().build().unwrap();
    runtime.block_on(async {
        let mut engine = register(place.engine().await).poll(POLL).lease(LEASE);
        if let Ok(node) = std::env::var("OUTLAST_KILL_NODE") {
            engine = engine.node(NodeId::new(node).unwrap());
        }
        let engine = engine.start().await.unwrap();
        let ledger = Ledger::own();
        let acked = ledger.entries().into_iter().filter_map(|entry| match entry.note {
            Note::Acked(ask) | Note::Known(ask) => Some(ask),
            _ => None,
        });
        let known = acked.collect();
        let again = ledger.life.is_multiple_of(4);
        let worker = Worker { engine, ledger, known, again };
        worker.unpark().await;
        worker.live().await;
    });
}

impl Worker {
    async fn live(&self) {
        self.watch();
        let companions = async {
            self.start_all().await;
            // A second process helps to drive, and leaves the controls to the first.
            let alone = std::env::var_os("OUTLAST_KILL_TWIN").is_none();
            let controls = async {
                if alone {
                    self.pause_often().await;
                }
            };
            tokio::join!(self.signal(), self.count_generations(), self.answer(), self.fork(), self.stop(), controls);
        };
        tokio::join!(companions, self.wait_for_all());
    }

    async fn start_all(&self) {
        for name in NAMES {
            let ask = Ask::Start { run: name.to_owned() };
            let mut start = self.engine.start(name, &LENGTH).id(name);
            // Acknowledged with its start, it is not sent again: a second one would hide that the first was lost.
            let greets = name == "greeted" && !self.known.contains(&ask);
            if greets {
                start = start.signal("value", &1, "greeting");
            }
            if self.is_wanted(&ask) {
                self.ledger.note(Note::Tried(ask.clone()));
                start.await.unwrap();
                self.ledger.note(Note::Acked(ask));
            }
            if greets {
                // Whether it was new, a start does not say.
                self.ledger.note(Note::Known(Ask::Signal { run: name.to_owned(), id: "greeting".to_owned() }));
            }
        }
    }

    /// Whether to ask for it in this life.
    fn is_wanted(&self, ask: &Ask) -> bool {
        self.again || !self.known.contains(ask)
    }

    /// Asks, and notes what was acknowledged. Refused is only what comes too early or too late.
    async fn ask<T: Answer>(&self, ask: Ask, asking: impl IntoFuture<Output = Result<T, EngineError>>) -> bool {
        self.ledger.note(Note::Tried(ask.clone()));
        match asking.await {
            Ok(answer) => {
                self.ledger.note(if answer.is_known() { Note::Known(ask) } else { Note::Acked(ask) });
                true
            }
            Err(EngineError::Lost { .. } | EngineError::NotFound { .. }) => false,
            Err(error) => panic!("{ask:?}: {error}"),
        }
    }

    fn run(&self, id: &str) -> RunHandle {
        self.engine.run(id).unwrap()
    }

    /// Where a run stands.
    async fn status(&self, id: &str) -> Status {
        self.run(id).status().await.unwrap()
    }

    /// A run that was claimed ten times without progress is parked, because it may be what kills its process. Here it is
    /// not, and somebody says so.
    async fn unpark(&self) {
        for view in self.engine.list().status(Status::Parked).page_size(1_000).await.unwrap().runs {
            let note = view.note.unwrap_or_default();
            assert!(note.contains("without progress"), "{} is parked: {note}", view.run);
            self.run(view.run.id.as_str()).unpark().await.unwrap();
        }
    }

    /// A child that was detached, or told to stop, may end after its parent.
    async fn wait_for_all(&self) {
        loop {
            let runs = self.engine.list().page_size(1_000).await.unwrap().runs;
            let started = NAMES.iter().all(|name| runs.iter().any(|view| view.run.id.as_str() == *name));
            if started && runs.iter().all(|view| view.status.is_terminal()) {
                return;
            }
            self.unpark().await;
            tokio::time::sleep(GLANCE).await;
        }
    }

    /// Notes what only observers see, each kind once in a life.
    fn watch(&self) {
        let (run, ledger) = (self.run("generations"), self.ledger.clone());
        tokio::spawn(async move {
            let mut shown = Vec::new();
            loop {
                let mut attached = run.attach();
                while let Ok(Some(event)) = attached.next().await {
                    let kind = event.kind();
                    if event.class() == Class::EmitOnly && !shown.contains(&kind) {
                        shown.push(kind);
                        ledger.note(Note::Shown { kind: kind.name().to_owned() });
                    }
                }
                tokio::time::sleep(GLANCE).await;
            }
        });
    }
}
