//! What drivers, node and clients of one engine tell each other.

use std::collections::BTreeMap;
use std::sync::atomic::{AtomicBool, AtomicI64, AtomicU64, AtomicUsize, Ordering};
use std::sync::{Arc, Mutex, MutexGuard, OnceLock, PoisonError};

use outlast_core::commit::Commit;
use outlast_core::event::Event;
use outlast_core::id::{ClaimId, Generation, Index, LeaseId, RunKey};
use outlast_core::time::Timestamp;
use tokio::sync::futures::Notified;
use tokio::sync::{Notify, broadcast, oneshot};

use crate::drive::Lifecycle;
use crate::host::Host;

/// The notice board of one engine.
#[derive(Default)]
pub(crate) struct Board {
    /// Runs the drivers hold, and those that are being created for them.
    driven: AtomicUsize,
    /// Nothing new is driven: a suspect must be alone.
    closed: AtomicBool,
    /// A suspect is driven, and nobody knows yet whether it kills its driver.
    suspect: AtomicBool,
    /// Suspects that somebody met who asked for one run, for the node's loop.
    met: Mutex<Vec<RunKey>>,
    /// Claims that somebody made who asked for one run, and whose reply was lost, for the node's loop.
    doubts: Mutex<Vec<ClaimId>>,
    /// The node found no room for another run.
    full: AtomicBool,
    /// The node's lease; 0 for none.
    lease: AtomicU64,
    /// The earliest timer this engine started and nobody has looked after since.
    due: AtomicI64,
    /// Runs were deleted, and their rows are still there.
    deleted: AtomicBool,
    /// Runs were started that have to be admitted, or ended while others wait for that.
    admission: AtomicBool,
    /// The last time anybody looked, a run waited for the end of another.
    held: AtomicBool,
    /// The earliest instant at which a task may begin that nobody has looked for since.
    task_due: AtomicI64,
    /// Tasks were taken back that may be running here.
    tasks_cancelled: AtomicBool,
    /// Wakes the worker's loop.
    worker: Notify,
    /// Wakes workers elsewhere, who wait here for something to do.
    elsewhere: Notify,
    /// Wakes the node's loop.
    node: Notify,
    /// Says whether the node's loop can be woken; nobody says otherwise if there is none.
    host: Option<Arc<dyn Host>>,
    waiting: Mutex<Waiting>,
    /// Those who wait until a run is no longer driven here.
    leaving: Mutex<BTreeMap<RunKey, Vec<oneshot::Sender<()>>>>,
    observers: Mutex<BTreeMap<RunKey, Observed>>,
    /// Whether anybody ever watched a run: most engines never ask.
    observed: AtomicBool,
    /// Those who watch the operations of runs.
    watchers: Mutex<BTreeMap<RunKey, broadcast::Sender<Lifecycle>>>,
    watched: AtomicBool,
    /// Those who want to know which runs end here; nobody, mostly.
    ends: OnceLock<broadcast::Sender<RunKey>>,
}

/// A run that somebody watches.
struct Observed {
    sender: broadcast::Sender<Told>,
    /// A commit is on its way, and where it begins: what it emits is not told yet.
    under_way: Option<Index>,
}

/// What those who watch a run are told.
#[derive(Clone)]
pub(crate) enum Told {
    /// Something that is not in the journal, and where it belongs: before the event with this index.
    Emitted { generation: Generation, before: Index, event: Arc<Event> },
    /// The journal may have grown.
    Grown,
}

#[derive(Default)]
struct Waiting {
    last: u64,
    ends: BTreeMap<RunKey, Vec<Waiter>>,
}

type Waiter = (u64, oneshot::Sender<Arc<Event>>);

const NEVER: i64 = i64::MAX;

/// Events a slow observer may lag behind before it misses those that are only emitted.
const OBSERVED_MAX: usize = 1_024;

/// Ends that somebody who is slow may lag behind before they miss some.
const ENDS_MAX: usize = 4_096;

impl Board {
    pub(crate) fn new() -> Board {
        Board { due: AtomicI64::new(NEVER), task_due: AtomicI64::new(NEVER), ..Board::default() }
    }

    /// The board of an engine on a host.
    pub(crate) fn on(host: Arc<dyn Host>) -> Board {
        Board { host: Some(host), ..Board::new() }
    }

    /// Tells the node's loop that there is something to look after.
    fn notice(&self) {
        if self.host.as_ref().is_none_or(|host| host.hears()) {
            self.node.notify_one();
        }
    }

    // For drivers.

    pub(crate) fn driven_one_less(&self) {
        let last = self.driven.fetch_sub(1, Ordering::SeqCst) == 1;
        let room = self.full.swap(false, Ordering::SeqCst);
        if room || last && self.closed.load(Ordering::SeqCst) {
            self.notice();
        }
    }

    /// A suspect made progress, or is no longer driven.
    pub(crate) fn suspect_settled(&self) {
        if self.suspect.swap(false, Ordering::SeqCst) {
            self.notice();
        }
    }

    /// A timer was started.
    pub(crate) fn timer_due(&self, due: Timestamp) {
        if self.due.fetch_min(due.as_millis(), Ordering::Relaxed) > due.as_millis() {
            self.notice();
        }
    }

    /// Some run may be ready that nobody drives yet.
    pub(crate) fn somebody_woken(&self) {
        self.notice();
    }

    /// The reply to a claim was lost.
    pub(crate) fn doubt(&self, claim: ClaimId) {
        self.doubts.lock().unwrap_or_else(PoisonError::into_inner).push(claim);
    }

    pub(crate) fn has_doubts(&self) -> bool {
        !self.doubts.lock().unwrap_or_else(PoisonError::into_inner).is_empty()
    }

    pub(crate) fn take_doubts(&self) -> Vec<ClaimId> {
        std::mem::take(&mut *self.doubts.lock().unwrap_or_else(PoisonError::into_inner))
    }

    /// Runs were deleted.
    pub(crate) fn somebody_deleted(&self) {
        self.deleted.store(true, Ordering::SeqCst);
        self.notice();
    }

    /// Runs may have room that were held back.
    pub(crate) fn somebody_held(&self) {
        self.admission.store(true, Ordering::SeqCst);
        self.notice();
    }

    /// Whether to look at runs that are held back, since the last time anybody asked.
    pub(crate) fn take_held(&self) -> bool {
        self.admission.swap(false, Ordering::SeqCst)
    }

    /// Says whether the end of a run may let another begin; whether that was so before.
    pub(crate) fn set_held(&self, held: bool) -> bool {
        self.held.swap(held, Ordering::SeqCst)
    }

    /// Whether runs were deleted since the last time anybody asked.
    pub(crate) fn take_deleted(&self) -> bool {
        self.deleted.swap(false, Ordering::SeqCst)
    }

    // For and about workers.

    /// Tells the worker's loop that there is something to look after.
    pub(crate) fn somebody_has_tasks(&self) {
        if self.host.as_ref().is_none_or(|host| host.hears()) {
            self.worker.notify_one();
            self.elsewhere.notify_waiters();
        }
    }

    /// A task may begin at this instant.
    pub(crate) fn task_due(&self, due: Timestamp) {
        self.task_due.fetch_min(due.as_millis(), Ordering::SeqCst);
        self.somebody_has_tasks();
    }

    /// Notes when a task may begin, without waking the worker: it is the worker that says so.
    pub(crate) fn remember_task_due(&self, due: Timestamp) {
        self.task_due.fetch_min(due.as_millis(), Ordering::SeqCst);
    }

    /// Tasks are no longer wanted.
    pub(crate) fn somebody_cancelled_tasks(&self) {
        self.tasks_cancelled.store(true, Ordering::SeqCst);
        self.somebody_has_tasks();
    }

    pub(crate) fn take_tasks_cancelled(&self) -> bool {
        self.tasks_cancelled.swap(false, Ordering::SeqCst)
    }

    pub(crate) fn task_due_at(&self) -> Option<Timestamp> {
        let due = self.task_due.load(Ordering::SeqCst);
        (due != NEVER).then(|| Timestamp::from_millis(due))
    }

    pub(crate) fn clear_task_due(&self) {
        self.task_due.store(NEVER, Ordering::SeqCst);
    }

    pub(crate) async fn tasks_noticed(&self) {
        self.worker.notified().await;
    }

    /// Completes when there may be something to do for a worker elsewhere, from the moment at which it is enabled.
    pub(crate) fn tasks_elsewhere(&self) -> Notified<'_> {
        self.elsewhere.notified()
    }

    /// A run is no longer driven here.
    pub(crate) fn left(&self, run: &RunKey) {
        let mut leaving = self.leaving();
        if leaving.is_empty() {
            return;
        }
        for waiter in leaving.remove(run).unwrap_or_default() {
            let _ = waiter.send(());
        }
    }

    /// A run ended with this commit.
    pub(crate) fn ended(&self, commit: &Commit) {
        if self.held.load(Ordering::SeqCst) {
            self.somebody_held();
        }
        if let Some(ends) = self.ends.get() {
            // Nobody may listen any more.
            let _ = ends.send(commit.run.clone());
        }
        let waiting = self.waiting().ends.remove(&commit.run);
        let Some(waiting) = waiting else { return };
        let Some(Ok(event)) = commit.events.last().map(Event::decode) else { return };
        let event = Arc::new(event);
        for (_, waiter) in waiting {
            let _ = waiter.send(Arc::clone(&event));
        }
    }

    /// Tells which runs end from now on.
    pub(crate) fn ends(&self) -> broadcast::Receiver<RunKey> {
        self.ends.get_or_init(|| broadcast::Sender::new(ENDS_MAX)).subscribe()
    }

    /// A commit of a run is about to be sent. Whoever finds it in the store before it is published waits for that.
    pub(crate) fn sending(&self, run: &RunKey, from: Index) {
        self.set_under_way(run, Some(from));
    }

    /// A commit of a run was not applied.
    pub(crate) fn not_sent(&self, run: &RunKey) {
        self.set_under_way(run, None);
    }

    fn set_under_way(&self, run: &RunKey, under_way: Option<Index>) {
        if self.observed.load(Ordering::Acquire)
            && let Some(observed) = self.observers().get_mut(run)
        {
            observed.under_way = under_way;
        }
    }

    /// A run is parked: those who wait for its end look for themselves.
    pub(crate) fn parked(&self, run: &RunKey) {
        self.waiting().ends.remove(run);
    }

    /// Something of a run became durable: those who watch it are told. What is only emitted reaches those who watch now.
    pub(crate) fn publish(&self, run: &RunKey, generation: Generation, emitted: Vec<(Index, Event)>) {
        if !self.observed.load(Ordering::Acquire) {
            return;
        }
        let mut observers = self.observers();
        let Some(observed) = observers.get_mut(run) else { return };
        observed.under_way = None;
        for (before, event) in emitted {
            let _ = observed.sender.send(Told::Emitted { generation, before, event: Arc::new(event) });
        }
        if observed.sender.send(Told::Grown).is_err() {
            observers.remove(run);
        }
    }

    /// Whether somebody watches the operations of a run.
    pub(crate) fn is_watched(&self, run: &RunKey) -> bool {
        self.watched.load(Ordering::Acquire) && self.watchers().contains_key(run)
    }

    /// Tells those who watch the operations of a run.
    pub(crate) fn tell(&self, run: &RunKey, happened: Vec<Lifecycle>) {
        let mut watchers = self.watchers();
        let Some(sender) = watchers.get(run) else { return };
        let told = happened.into_iter().map(|lifecycle| sender.send(lifecycle).is_ok()).last();
        if told == Some(false) {
            watchers.remove(run);
        }
    }

    // For the node.

    pub(crate) fn driven(&self) -> usize {
        self.driven.load(Ordering::SeqCst)
    }

    pub(crate) fn driven_more(&self, runs: usize) {
        self.driven.fetch_add(runs, Ordering::SeqCst);
    }

    /// Says whether runs that are started here may be driven here. To be said before [`Board::driven`] is asked.
    pub(crate) fn close(&self, closed: bool) {
        self.closed.store(closed, Ordering::SeqCst);
    }

    /// A suspect is about to be driven.
    pub(crate) fn suspect_begins(&self) {
        self.suspect.store(true, Ordering::SeqCst);
    }

    /// Somebody who asked for this run found that it must be driven alone.
    pub(crate) fn suspect_met(&self, run: RunKey) {
        self.met().push(run);
        self.node.notify_one();
    }

    /// Suspects that were met since this was last asked.
    pub(crate) fn take_suspects(&self) -> Vec<RunKey> {
        std::mem::take(&mut self.met())
    }

    fn met(&self) -> MutexGuard<'_, Vec<RunKey>> {
        self.met.lock().unwrap_or_else(PoisonError::into_inner)
    }

    pub(crate) fn has_suspect(&self) -> bool {
        self.suspect.load(Ordering::SeqCst)
    }

    /// Notes that there was no room: the next run that leaves makes some.
    pub(crate) fn set_full(&self) {
        self.full.store(true, Ordering::SeqCst);
    }

    pub(crate) fn set_lease(&self, lease: Option<LeaseId>) {
        self.lease.store(lease.map_or(0, |lease| lease.0), Ordering::Release);
    }

    /// Told when a run is no longer driven here.
    pub(crate) fn await_left(&self, run: &RunKey) -> oneshot::Receiver<()> {
        let (sender, receiver) = oneshot::channel();
        let mut leaving = self.leaving();
        leaving.retain(|_, waiters| {
            waiters.retain(|waiter| !waiter.is_closed());
            !waiters.is_empty()
        });
        leaving.entry(run.clone()).or_default().push(sender);
        receiver
    }

    fn leaving(&self) -> MutexGuard<'_, BTreeMap<RunKey, Vec<oneshot::Sender<()>>>> {
        self.leaving.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Completes when there is something to look after.
    pub(crate) async fn noticed(&self) {
        self.node.notified().await;
    }

    pub(crate) fn next_due(&self) -> Option<Timestamp> {
        match self.due.load(Ordering::Relaxed) {
            NEVER => None,
            due => Some(Timestamp::from_millis(due)),
        }
    }

    /// Notes when to look next, without waking the node: it is the node that says so.
    pub(crate) fn remember_due(&self, due: Timestamp) {
        self.due.fetch_min(due.as_millis(), Ordering::Relaxed);
    }

    /// Forgets the timers noted so far: a sweep is about to look for itself.
    pub(crate) fn clear_due(&self) {
        self.due.store(NEVER, Ordering::Relaxed);
    }

    // For clients.

    /// Counts a run that is about to be created for a driver here; whether there is room for it.
    pub(crate) fn enter(&self, runs_max: usize) -> bool {
        // Counted first: either the node sees it, or this sees that the node wants a suspect to be alone.
        let before = self.driven.fetch_add(1, Ordering::SeqCst);
        let room = before < runs_max && !self.closed.load(Ordering::SeqCst);
        if !room {
            self.driven_one_less();
        }
        room
    }

    pub(crate) fn lease(&self) -> Option<LeaseId> {
        match self.lease.load(Ordering::Acquire) {
            0 => None,
            lease => Some(LeaseId(lease)),
        }
    }

    /// What becomes of a run from now on, as far as it is driven here.
    pub(crate) fn observe(&self, run: &RunKey) -> broadcast::Receiver<Told> {
        self.observed.store(true, Ordering::Release);
        let mut observers = self.observers();
        observers.retain(|_, observed| observed.sender.receiver_count() > 0);
        let new = || Observed { sender: broadcast::channel(OBSERVED_MAX).0, under_way: None };
        observers.entry(run.clone()).or_insert_with(new).sender.subscribe()
    }

    /// Where a commit of a run that is watched begins that is on its way, or applied and not published.
    pub(crate) fn under_way(&self, run: &RunKey) -> Option<Index> {
        self.observers().get(run).and_then(|observed| observed.under_way)
    }

    /// What happens to the operations of a run from now on, as far as it is driven here.
    pub(crate) fn watch(&self, run: &RunKey) -> broadcast::Receiver<Lifecycle> {
        self.watched.store(true, Ordering::Release);
        let mut watchers = self.watchers();
        watchers.retain(|_, sender| sender.receiver_count() > 0);
        watchers.entry(run.clone()).or_insert_with(|| broadcast::channel(OBSERVED_MAX).0).subscribe()
    }

    fn watchers(&self) -> MutexGuard<'_, BTreeMap<RunKey, broadcast::Sender<Lifecycle>>> {
        self.watchers.lock().unwrap_or_else(PoisonError::into_inner)
    }

    fn observers(&self) -> MutexGuard<'_, BTreeMap<RunKey, Observed>> {
        self.observers.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Waits for the end of a run, if it ends here.
    pub(crate) fn await_end(self: &Arc<Self>, run: &RunKey) -> EndOfRun {
        let (sender, receiver) = oneshot::channel();
        let mut waiting = self.waiting();
        waiting.last += 1;
        let id = waiting.last;
        waiting.ends.entry(run.clone()).or_default().push((id, sender));
        drop(waiting);
        EndOfRun { board: Arc::clone(self), run: run.clone(), id, receiver }
    }

    fn waiting(&self) -> MutexGuard<'_, Waiting> {
        self.waiting.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

/// Somebody who waits for the end of a run. Dropping it leaves nothing behind.
pub(crate) struct EndOfRun {
    board: Arc<Board>,
    run: RunKey,
    id: u64,
    receiver: oneshot::Receiver<Arc<Event>>,
}

impl EndOfRun {
    /// The event that ended the run; none if it was parked. Never completes if that happens elsewhere.
    pub(crate) async fn event(&mut self) -> Option<Arc<Event>> {
        (&mut self.receiver).await.ok()
    }
}

impl Drop for EndOfRun {
    fn drop(&mut self) {
        let mut waiting = self.board.waiting();
        if let Some(waiters) = waiting.ends.get_mut(&self.run) {
            waiters.retain(|(id, _)| *id != self.id);
            if waiters.is_empty() {
                waiting.ends.remove(&self.run);
            }
        }
    }
}
