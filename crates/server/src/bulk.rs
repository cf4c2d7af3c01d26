//! Bulk actions that are under way: each is a task of its own, which nobody's connection can end.

use std::collections::{BTreeMap, VecDeque};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use outlast::Namespace;
use tokio::task::JoinSet;

use crate::dto::{BulkRefusal, BulkView};
use crate::error::ApiResult;

/// How many are under way at once.
const UNDER_WAY_MAX: usize = 8;
/// How many that are done are remembered.
const REMEMBERED_MAX: usize = 256;
/// How many refusals are told.
const REFUSALS_MAX: usize = 20;

type Key = (String, String);

/// The bulk actions of a server. When it stops they do, too: asked again under the same key they go on.
#[derive(Default)]
pub(crate) struct Bulk(Mutex<Known>);

#[derive(Default)]
struct Known {
    jobs: BTreeMap<Key, Arc<Mutex<Progress>>>,
    /// In the order in which they began.
    order: VecDeque<Key>,
    tasks: JoinSet<()>,
}

/// How far one is.
#[derive(Clone, Debug, Default)]
pub(crate) struct Progress {
    matched: u64,
    done: u64,
    refused: u64,
    refusals: Vec<BulkRefusal>,
}

impl Progress {
    /// Nothing is done but to count.
    pub(crate) fn counted(runs: usize) -> BulkView {
        let progress = Progress { matched: runs as u64, ..Progress::default() };
        BulkView { state: "counted".to_owned(), ..progress.view(None) }
    }

    fn view(&self, id: Option<&str>) -> BulkView {
        let Progress { matched, done, refused, refusals } = self.clone();
        let state = if done + refused < matched { "running" } else { "done" };
        BulkView { bulk: id.map(str::to_owned), state: state.to_owned(), matched, done, refused, refusals }
    }

    fn note(&mut self, run: String, outcome: ApiResult<()>) {
        match outcome {
            Ok(()) => self.done += 1,
            Err(error) => {
                self.refused += 1;
                if self.refusals.len() < REFUSALS_MAX {
                    let (code, message) = error.told();
                    self.refusals.push(BulkRefusal { run, code, message });
                }
            }
        }
    }
}

fn lock<T>(mutex: &Mutex<T>) -> MutexGuard<'_, T> {
    mutex.lock().unwrap_or_else(PoisonError::into_inner)
}

impl Bulk {
    /// Begins one, or finds the one that is there under its id; none if there are too many.
    pub(crate) fn begin<F>(&self, namespace: &Namespace, id: &str, runs: Vec<String>, act: F) -> Option<BulkView>
    where
        F: Fn(String) -> futures_util::future::BoxFuture<'static, ApiResult<()>> + Send + 'static,
    {
        let key = (namespace.to_string(), id.to_owned());
        let mut known = lock(&self.0);
        if let Some(job) = known.jobs.get(&key) {
            return Some(lock(job).view(Some(id)));
        }
        while known.tasks.try_join_next().is_some() {}
        if known.tasks.len() >= UNDER_WAY_MAX {
            return None;
        }
        let job = Arc::new(Mutex::new(Progress { matched: runs.len() as u64, ..Progress::default() }));
        let view = lock(&job).view(Some(id));
        known.remember(key, Arc::clone(&job));
        known.tasks.spawn(async move {
            for run in runs {
                let outcome = act(run.clone()).await;
                lock(&job).note(run, outcome);
            }
        });
        Some(view)
    }

    /// How far it is.
    pub(crate) fn get(&self, namespace: &Namespace, id: &str) -> Option<BulkView> {
        let key = (namespace.to_string(), id.to_owned());
        let known = lock(&self.0);
        known.jobs.get(&key).map(|job| lock(job).view(Some(id)))
    }
}

impl Known {
    fn remember(&mut self, key: Key, job: Arc<Mutex<Progress>>) {
        self.jobs.insert(key.clone(), job);
        self.order.push_back(key);
        if self.order.len() > REMEMBERED_MAX
            && let Some(oldest) = self.order.pop_front()
        {
            self.jobs.remove(&oldest);
        }
    }
}
