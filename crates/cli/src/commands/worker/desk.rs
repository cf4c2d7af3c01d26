//! Where tasks of one queue are asked for, and handed to those who do them.

use std::collections::BTreeMap;
use std::sync::Arc;
use std::time::Duration;

use anyhow::Result;
use outlast::Handler;
use outlast_server::dto;
use tokio::sync::Semaphore;
use tokio::task::JoinSet;
use tokio::time::{Instant, sleep_until};
use uuid::Uuid;

use super::attempt::Attempt;
use super::{Stage, Work};
use crate::exit::Stop;

/// How long a claim waits for something to do.
const WAIT: Duration = Duration::from_secs(20);
/// How long to wait after a claim that was not answered, at first and at most.
const PAUSES: (Duration, Duration) = (Duration::from_millis(200), Duration::from_secs(10));
/// How long to wait after an answer that came empty at once: its server shuts down.
const BREATH: Duration = Duration::from_millis(200);

/// Handlers whose tasks are asked for together: all of a queue that have no limit of their own, or one that has.
pub(super) struct Desk {
    handlers: BTreeMap<String, Handler>,
    queue: String,
    tasks_max: usize,
}

/// Where the tasks of these handlers are asked for.
pub(super) fn desks(handlers: Vec<Handler>, concurrency: u32) -> Vec<Desk> {
    let mut together: BTreeMap<String, Desk> = BTreeMap::new();
    let mut alone = Vec::new();
    let desk = |queue: &str, tasks_max| Desk { handlers: BTreeMap::new(), queue: queue.to_owned(), tasks_max };
    for handler in handlers {
        let (name, queue) = (handler.name().to_owned(), handler.takes_from().to_owned());
        match handler.at_once() {
            Some(most) => {
                let mut own = desk(&queue, most.min(concurrency as usize));
                own.handlers.insert(name, handler);
                alone.push(own);
            }
            None => {
                let shared = together.entry(queue.clone()).or_insert_with(|| desk(&queue, concurrency as usize));
                shared.handlers.insert(name, handler);
            }
        }
    }
    together.into_values().chain(alone).collect()
}

impl Desk {
    pub(super) fn queue(&self) -> String {
        self.queue.clone()
    }

    /// Asks for tasks until the worker stops, and returns when all of them are over. An error is one that asking again does not
    /// mend.
    pub(super) async fn serve(self, work: &Arc<Work>) -> Result<()> {
        let room = Arc::new(Semaphore::new(self.tasks_max));
        let mut attempts = JoinSet::new();
        // At random: a worker that begins anew under its old name is not taken for who it was.
        let mut id = u64::from(Uuid::new_v4().as_fields().0) << 16;
        let mut pause = PAUSES.0;
        loop {
            let Some(places) = self.places(&room, work).await else { break };
            let request = self.request(work, id, places.num_permits());
            let asked = Instant::now();
            let claimed = tokio::select! {
                claimed = work.api.try_post::<dto::TaskClaimed>(&["work", "claim"], &request) => claimed,
                () = work.until(Stage::Draining) => {
                    // Nobody waits for its answer, and yet it may have been given something.
                    let again = dto::ClaimTasks { wait_ms: None, ..request };
                    let given = work.api.try_post::<dto::TaskClaimed>(&["work", "claim"], &again).await;
                    for offer in given.map_or(Vec::new(), |given| given.tasks) {
                        attempts.spawn(Attempt::give_back(Arc::clone(work), offer));
                    }
                    break;
                }
            };
            match claimed {
                Ok(dto::TaskClaimed { tasks }) => {
                    (id, pause) = (id + 1, PAUSES.0);
                    let early = tasks.is_empty() && asked.elapsed() < WAIT / 2;
                    self.hand_out(tasks, places, work, &mut attempts);
                    if early {
                        wait(work, BREATH).await;
                    }
                }
                Err(refused) if refused.passes() => {
                    tracing::warn!(error = %refused, queue = self.queue, "no tasks could be asked for; they are asked for again");
                    drop(places);
                    wait(work, pause).await;
                    pause = (pause * 2).min(PAUSES.1);
                }
                Err(refused) => return Err(Stop::from(refused).into()),
            }
            while attempts.try_join_next().is_some() {}
        }
        while attempts.join_next().await.is_some() {}
        Ok(())
    }

    /// As much room as there is; at least for one. None if the worker stops.
    async fn places(&self, room: &Arc<Semaphore>, work: &Work) -> Option<tokio::sync::OwnedSemaphorePermit> {
        let mut places = tokio::select! {
            place = Arc::clone(room).acquire_owned() => place.ok()?,
            () = work.until(Stage::Draining) => return None,
        };
        while let Ok(more) = Arc::clone(room).try_acquire_owned() {
            places.merge(more);
        }
        Some(places)
    }

    fn request(&self, work: &Work, id: u64, limit: usize) -> dto::ClaimTasks {
        let millis = |time: Duration| u64::try_from(time.as_millis()).unwrap_or(u64::MAX);
        dto::ClaimTasks {
            worker: work.name.clone(),
            id,
            queues: vec![self.queue.clone()],
            names: self.handlers.keys().cloned().collect(),
            host: work.host.clone(),
            limit: u32::try_from(limit).ok(),
            lease_ms: Some(millis(work.lease)),
            wait_ms: Some(millis(WAIT)),
        }
    }

    fn hand_out(
        &self,
        tasks: Vec<dto::TaskOffer>,
        mut places: tokio::sync::OwnedSemaphorePermit,
        work: &Arc<Work>,
        attempts: &mut JoinSet<()>,
    ) {
        for offer in tasks {
            let (work, place) = (Arc::clone(work), places.split(1));
            match self.handlers.get(&offer.name).cloned() {
                Some(handler) => attempts.spawn(async move {
                    Attempt::make(work, handler, offer).await;
                    drop(place);
                }),
                // Nobody asked for it.
                None => attempts.spawn(Attempt::give_back(work, offer)),
            };
        }
    }
}

async fn wait(work: &Work, time: Duration) {
    tokio::select! {
        () = sleep_until(Instant::now() + time) => {}
        () = work.until(Stage::Draining) => {}
    }
}
