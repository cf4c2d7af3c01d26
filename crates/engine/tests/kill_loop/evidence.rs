//! What the store held at one moment, read from outside.

use std::collections::BTreeMap;

use outlast::{Event, Status};
use outlast_core::id::{Generation, Index, Namespace};
use outlast_core::record::Record;
use outlast_store::{Excerpt, Filter, LIST_PAGE_MAX, RunView, Store};

/// One run.
#[derive(Clone, Debug)]
pub(crate) struct Seen {
    pub(crate) workflow: String,
    pub(crate) status: Status,
    /// One for each generation.
    pub(crate) journals: Vec<Vec<Record>>,
    /// Whether a timer, wait, task or child is its own.
    pub(crate) owns: bool,
}

/// All runs, by id, between two lives.
#[derive(Clone, Debug, Default)]
pub(crate) struct Snapshot {
    /// How many lines the ledger had.
    pub(crate) lines: usize,
    pub(crate) runs: BTreeMap<String, Seen>,
}

impl Snapshot {
    pub(crate) async fn take(store: &dyn Store, lines: usize) -> Snapshot {
        let mut views = list(store).await;
        loop {
            let mut runs = BTreeMap::new();
            for view in &views {
                runs.insert(view.run.id.to_string(), Seen::read(store, view).await);
            }
            // What a dead client sent last, a server may still be doing.
            let again = list(store).await;
            if again == views {
                return Snapshot { lines, runs };
            }
            views = again;
        }
    }
}

async fn list(store: &dyn Store) -> Vec<RunView> {
    let filter = Filter { limit: LIST_PAGE_MAX, ..Filter::all(Namespace::default_namespace()) };
    let page = store.list(filter).await.unwrap();
    assert!(page.next.is_none(), "a story has fewer runs than a page");
    page.runs
}

impl Seen {
    async fn read(store: &dyn Store, view: &RunView) -> Seen {
        let mut journals = Vec::new();
        for generation in 0..=view.generation.0 {
            let mut journal = Vec::new();
            loop {
                let (run, generation) = (view.run.clone(), Some(Generation(generation)));
                let from = Index(journal.len() as u64);
                let page = store.excerpt(Excerpt { run, generation, from, limit: LIST_PAGE_MAX }).await.unwrap();
                if page.is_empty() {
                    break;
                }
                journal.extend(page);
            }
            journals.push(journal);
        }
        let owns = view.status.is_terminal() && !store.awaiting(view.run.clone()).await.unwrap().is_empty();
        Seen { workflow: view.workflow.to_string(), status: view.status, journals, owns }
    }

    /// Every event of every generation, with where and when it was recorded.
    pub(crate) fn events(&self) -> Vec<Recorded> {
        let mut events = Vec::new();
        for (generation, journal) in self.journals.iter().enumerate() {
            for (index, record) in journal.iter().enumerate() {
                let event = Event::decode(record).unwrap();
                events.push(Recorded { generation: generation as u64, index, at: record.at.as_millis(), event });
            }
        }
        events
    }
}

/// An event, and where and when it was recorded.
#[derive(Clone, Debug)]
pub(crate) struct Recorded {
    pub(crate) generation: u64,
    pub(crate) index: usize,
    pub(crate) at: i64,
    pub(crate) event: Event,
}

impl Recorded {
    /// The operation it is about.
    pub(crate) fn key(&self) -> Option<&str> {
        self.event.key().map(outlast_core::id::Key::as_str)
    }

    /// The attempt it tells the outcome of.
    pub(crate) fn attempt(&self) -> Option<u32> {
        match &self.event {
            Event::StepFinished { attempts, .. } | Event::StepFailed { attempts, .. } => Some(*attempts),
            Event::StepRetryScheduled { attempt, .. } | Event::ConditionChecked { attempt, .. } => Some(*attempt),
            _ => None,
        }
    }
}
