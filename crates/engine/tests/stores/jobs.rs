//! What the tasks of these stories do, and what can be seen of it.

use std::sync::atomic::{AtomicUsize, Ordering};
use std::sync::{Arc, Mutex};
use std::time::Duration;

use outlast::testing::World;
use outlast::{Engine, Error, Handler, TaskContext};
use serde::{Deserialize, Serialize};

use crate::place::seconds;

/// What a task is asked to do: it takes so many seconds, and then gives its number or fails.
#[derive(Clone, Copy, Debug, Serialize, Deserialize)]
pub(crate) struct Job {
    takes: u64,
    pub(crate) number: u32,
    fails: bool,
}

pub(crate) fn gives(number: u32, takes: u64) -> Job {
    Job { takes, number, fails: false }
}

pub(crate) fn fails(number: u32, takes: u64) -> Job {
    Job { takes, number, fails: true }
}

/// An attempt at a task.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct Attempt {
    pub(crate) number: u32,
    pub(crate) attempt: u32,
    pub(crate) begun: Duration,
}

/// Does jobs, and notes it.
#[derive(Clone)]
pub(crate) struct Jobs {
    world: outlast::testing::WorldTime,
    begun: Arc<Mutex<Vec<Attempt>>>,
    now: Arc<AtomicUsize>,
    most: Arc<AtomicUsize>,
}

/// A job is under way as long as this is there.
struct UnderWay(Arc<AtomicUsize>);

impl Drop for UnderWay {
    fn drop(&mut self) {
        self.0.fetch_sub(1, Ordering::SeqCst);
    }
}

impl Jobs {
    pub(crate) fn new(world: &World) -> Jobs {
        Jobs { world: world.time(), begun: Arc::default(), now: Arc::default(), most: Arc::default() }
    }

    /// Does tasks of the name `job`.
    pub(crate) fn handler(&self) -> Handler {
        self.named("job")
    }

    pub(crate) fn named(&self, name: &str) -> Handler {
        let jobs = self.clone();
        Handler::new(name, move |task: TaskContext, job: Job| {
            let (begun, attempt) = (jobs.world.elapsed(), task.attempt());
            jobs.begun.lock().unwrap().push(Attempt { number: job.number, attempt, begun });
            jobs.most.fetch_max(jobs.now.fetch_add(1, Ordering::SeqCst) + 1, Ordering::SeqCst);
            let (nap, under_way) = (jobs.world.sleep(seconds(job.takes)), UnderWay(Arc::clone(&jobs.now)));
            async move {
                nap.await;
                drop(under_way);
                if job.fails {
                    Err(Error::new("broke", format!("{} broke", job.number)).permanent())
                } else {
                    Ok(job.number)
                }
            }
        })
    }

    /// The attempts that were begun, in their order.
    pub(crate) fn attempts(&self) -> Vec<Attempt> {
        self.begun.lock().unwrap().clone()
    }

    /// The numbers of the jobs that were begun, in their order.
    pub(crate) fn numbers(&self) -> Vec<u32> {
        self.attempts().iter().map(|attempt| attempt.number).collect()
    }

    /// How many are under way, and how many were at most.
    pub(crate) fn under_way(&self) -> (usize, usize) {
        (self.now.load(Ordering::SeqCst), self.most.load(Ordering::SeqCst))
    }
}

/// The kinds of events in a run's journal.
pub(crate) async fn kinds(engine: &Engine, run: &str) -> Vec<&'static str> {
    let journal = engine.run(run).unwrap().journal().await.unwrap();
    journal.iter().map(|event| event.kind().name()).collect()
}
