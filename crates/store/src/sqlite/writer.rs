//! The one thread that writes.
//!
//! It drains its queue into one `BEGIN IMMEDIATE … COMMIT`: while one group syncs, the next one forms. Nobody is
//! answered before the COMMIT of its group has returned. There is no artificial delay.
//!
//! A thread that has nothing else to do may write itself while nobody waits ([`WriterQueue::here`]): waking the writer,
//! and being woken by it, costs a good part of what the disk does.
//!
//! A COMMIT that fails did not happen: with a write-ahead log SQLite publishes a transaction only after its frames are
//! written and synced, and the writer is in the same process, so no reply can be lost on the way. Hence this store never
//! answers `Unknown`.
//!
//! What only says who does what (leases, claims, signs of life, timers that fired) ends with the process anyway, and whoever
//! opens the file next does it again. A group of nothing else is not synced ([`Lasting::Process`]): the frames of a
//! write-ahead log are in order, so the sync of any later group covers it, and nothing that was acknowledged rests on it.

use std::panic::{AssertUnwindSafe, catch_unwind};
use std::sync::atomic::{AtomicUsize, Ordering};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError, TryLockError};

use std::time::Duration;

use rusqlite::Connection;
use tokio::sync::{mpsc, oneshot};

use super::error::store_error;
use super::names::Names;
use super::rows::SqliteRows;
use super::schema::BUSY_TIMEOUT;
use crate::clock::Clock;
use crate::error::{StoreError, Trouble};
use crate::rows::Fault;

/// Jobs the queue holds before senders wait.
const QUEUE_MAX: usize = 4_096;
/// Jobs in one transaction. Above the runs in flight: a smaller group costs throughput.
const GROUP_MAX: usize = 4_096;

/// Jobs in one transaction that run an author's statements: they may take long, and the others wait for them. A lease
/// must be renewed in between.
const GUESTS_MAX: usize = 4;

/// How long what a job writes must last.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub(super) enum Lasting {
    /// As long as this process and the kernel under it: a loss of power may undo it.
    Process,
    /// For ever.
    Forever,
}

/// Work for the writer: may be run again if its group is rolled back.
trait Job: Send {
    fn lasting(&self) -> Lasting;
    /// Whether it runs an author's statements.
    fn is_guest(&self) -> bool;
    fn run(&mut self, rows: &mut SqliteRows<'_>) -> Result<(), StoreError>;
    fn settle(self: Box<Self>, failed: Option<StoreError>);
}

struct Call<T, F> {
    work: F,
    lasting: Lasting,
    guest: bool,
    done: Option<T>,
    reply: oneshot::Sender<Result<T, StoreError>>,
}

impl<T, F> Job for Call<T, F>
where
    T: Send,
    F: FnMut(&mut SqliteRows<'_>) -> Result<T, Fault> + Send,
{
    fn lasting(&self) -> Lasting {
        self.lasting
    }

    fn is_guest(&self) -> bool {
        self.guest
    }

    fn run(&mut self, rows: &mut SqliteRows<'_>) -> Result<(), StoreError> {
        self.done = Some((self.work)(rows).map_err(of_fault)?);
        Ok(())
    }

    fn settle(self: Box<Self>, failed: Option<StoreError>) {
        let answer = match (failed, self.done) {
            (None, Some(done)) => Ok(done),
            (None, None) => Err(StoreError::unavailable(Trouble::Other, "the job was not run")),
            (Some(error), _) => Err(error),
        };
        // The caller may have dropped its future: what was done stays done.
        let _ = self.reply.send(answer);
    }
}

/// The sending half.
#[derive(Clone)]
pub(super) struct WriterQueue {
    /// Dropped first: the writer closes the connection when it ends, and only then may another process take the file.
    pen: Arc<Mutex<Pen>>,
    sender: mpsc::Sender<Box<dyn Job>>,
    waiting: Arc<AtomicUsize>,
}

impl WriterQueue {
    /// Runs `work` on this thread, in a transaction of its own, and blocks until it is durable. None if somebody else
    /// writes, here or in another process, or waits for that: whoever waits is not overtaken. An error means it was not
    /// applied.
    pub(super) fn here<T>(
        &self,
        work: impl FnOnce(&mut SqliteRows<'_>) -> Result<T, Fault>,
    ) -> Option<Result<T, StoreError>> {
        if self.waiting.load(Ordering::Acquire) > 0 {
            return None;
        }
        let mut pen = match self.pen.try_lock() {
            Ok(pen) => pen,
            Err(TryLockError::Poisoned(poisoned)) => poisoned.into_inner(),
            Err(TryLockError::WouldBlock) => return None,
        };
        match pen.attempt_at_once(|rows| work(rows).map_err(of_fault)) {
            Err(StoreError::Unavailable { trouble: Trouble::Busy, .. }) => None,
            done => Some(done),
        }
    }

    /// Runs `work` in the next group and waits until it lasts. An error means it was not applied.
    pub(super) async fn run<T, F>(&self, lasting: Lasting, work: F) -> Result<T, StoreError>
    where
        T: Send + 'static,
        F: FnMut(&mut SqliteRows<'_>) -> Result<T, Fault> + Send + 'static,
    {
        self.send(work, lasting, false).await
    }

    /// The same, for work that runs an author's statements.
    pub(super) async fn run_guest<T, F>(&self, work: F) -> Result<T, StoreError>
    where
        T: Send + 'static,
        F: FnMut(&mut SqliteRows<'_>) -> Result<T, Fault> + Send + 'static,
    {
        self.send(work, Lasting::Forever, true).await
    }

    async fn send<T, F>(&self, work: F, lasting: Lasting, guest: bool) -> Result<T, StoreError>
    where
        T: Send + 'static,
        F: FnMut(&mut SqliteRows<'_>) -> Result<T, Fault> + Send + 'static,
    {
        let (reply, answer) = oneshot::channel();
        let place = self.sender.reserve().await.map_err(|_| closed())?;
        self.waiting.fetch_add(1, Ordering::AcqRel);
        place.send(Box::new(Call { work, lasting, guest, done: None, reply }));
        answer.await.unwrap_or_else(|_| Err(closed()))
    }
}

fn of_fault(fault: Fault) -> StoreError {
    match fault {
        Fault::Failed(error) => error,
        Fault::Miss => StoreError::corrupt("SQLite", "a row was asked for that SQLite does not fetch"),
    }
}

fn closed() -> StoreError {
    StoreError::unavailable(Trouble::Closed, "the store is closed")
}

/// The connection that writes: whoever holds it is the only one.
struct Pen {
    connection: Connection,
    /// What the connection is set to.
    lasting: Lasting,
    names: Names,
    clock: Clock,
}

impl Pen {
    /// A connection comes synced.
    fn new(connection: Connection, names: Names, clock: Clock) -> Pen {
        Pen { connection, lasting: Lasting::Forever, names, clock }
    }

    /// Runs the work in one transaction. On an error nothing is applied.
    fn attempt<T>(
        &mut self,
        lasting: Lasting,
        work: impl FnOnce(&mut SqliteRows<'_>) -> Result<T, StoreError>,
    ) -> Result<T, StoreError> {
        if !self.connection.is_autocommit() {
            // A disk that failed may have kept the last one from being rolled back.
            self.roll_back();
        }
        self.set_lasting(lasting)?;
        statement(&self.connection, "BEGIN IMMEDIATE")?;
        // The clock is read after the lock is held.
        let now = self.clock.now();
        let mut rows = SqliteRows::new(&self.connection, &mut self.names, now);
        let ran = catch_unwind(AssertUnwindSafe(|| work(&mut rows)))
            .unwrap_or_else(|_| Err(StoreError::unavailable(Trouble::Other, "a store operation panicked")));
        drop(rows);
        let committed = ran.and_then(|done| statement(&self.connection, "COMMIT").map(|()| done));
        if committed.is_err() {
            self.roll_back();
        }
        committed
    }

    /// The same, without waiting for another process that writes.
    fn attempt_at_once<T>(
        &mut self,
        work: impl FnOnce(&mut SqliteRows<'_>) -> Result<T, StoreError>,
    ) -> Result<T, StoreError> {
        self.connection.busy_timeout(Duration::ZERO).map_err(|error| store_error(&error))?;
        let attempted = self.attempt(Lasting::Forever, work);
        self.connection.busy_timeout(BUSY_TIMEOUT).map_err(|error| store_error(&error))?;
        attempted
    }

    /// Says whether a COMMIT waits for the disk.
    fn set_lasting(&mut self, lasting: Lasting) -> Result<(), StoreError> {
        if self.lasting != lasting {
            statement(
                &self.connection,
                match lasting {
                    Lasting::Process => "PRAGMA synchronous = NORMAL",
                    Lasting::Forever => "PRAGMA synchronous = FULL",
                },
            )?;
            self.lasting = lasting;
        }
        Ok(())
    }

    fn roll_back(&mut self) {
        // Namespaces looked up in the transaction may be gone with it.
        self.names.clear();
        if !self.connection.is_autocommit() {
            let _ = statement(&self.connection, "ROLLBACK");
        }
    }
}

/// The thread's own state.
pub(super) struct Writer {
    pen: Arc<Mutex<Pen>>,
    queue: mpsc::Receiver<Box<dyn Job>>,
    /// Jobs that were sent and have no answer yet.
    waiting: Arc<AtomicUsize>,
}

impl Writer {
    pub(super) fn new(connection: Connection, names: Names, clock: Clock) -> (Writer, WriterQueue) {
        Writer::with(Pen::new(connection, names, clock))
    }

    fn with(pen: Pen) -> (Writer, WriterQueue) {
        let (sender, queue) = mpsc::channel(QUEUE_MAX);
        let pen = Arc::new(Mutex::new(pen));
        let waiting = Arc::new(AtomicUsize::new(0));
        let writer = Writer { pen: Arc::clone(&pen), queue, waiting: Arc::clone(&waiting) };
        (writer, WriterQueue { sender, pen, waiting })
    }

    /// Until every sender is gone and the queue is empty.
    pub(super) fn run(mut self) {
        let mut jobs = Vec::new();
        // Those for whom there was no room yet. Others overtake them.
        let mut guests: Vec<Box<dyn Job>> = Vec::new();
        loop {
            let open = if guests.is_empty() {
                self.queue.blocking_recv_many(&mut jobs, GROUP_MAX) > 0
            } else {
                self.take_waiting(&mut jobs);
                true
            };
            if !open {
                return;
            }
            let (mut group, mut seated) = (Vec::new(), 0);
            for job in std::mem::take(&mut guests).into_iter().chain(jobs.drain(..)) {
                seated += usize::from(job.is_guest());
                if job.is_guest() && seated > GUESTS_MAX {
                    guests.push(job);
                } else {
                    group.push(job);
                }
            }
            self.group(group);
        }
    }

    /// Takes what is there, without waiting.
    fn take_waiting(&mut self, jobs: &mut Vec<Box<dyn Job>>) {
        while jobs.len() < GROUP_MAX
            && let Ok(job) = self.queue.try_recv()
        {
            jobs.push(job);
        }
    }

    fn group(&mut self, mut jobs: Vec<Box<dyn Job>>) {
        // The pen is free again before anybody is answered.
        crate::meters::group(jobs.len());
        let lasting = jobs.iter().map(|job| job.lasting()).max().unwrap_or(Lasting::Forever);
        let ran = self.pen().attempt(lasting, |rows| jobs.iter_mut().try_for_each(|job| job.run(rows)));
        match ran {
            Ok(()) => self.settle_all(jobs, None),
            Err(_) if jobs.len() > 1 => {
                // One of them, or the disk. Alone, each gets the answer that is its own.
                for job in jobs {
                    self.group(vec![job]);
                }
            }
            Err(error) => self.settle_all(jobs, Some(&error)),
        }
    }

    fn pen(&self) -> MutexGuard<'_, Pen> {
        // A transaction that panics is rolled back.
        self.pen.lock().unwrap_or_else(PoisonError::into_inner)
    }

    fn settle_all(&self, jobs: Vec<Box<dyn Job>>, failed: Option<&StoreError>) {
        self.waiting.fetch_sub(jobs.len(), Ordering::AcqRel);
        for job in jobs {
            job.settle(failed.cloned());
        }
    }
}

fn statement(connection: &Connection, sql: &str) -> Result<(), StoreError> {
    let run = || connection.prepare_cached(sql)?.execute([]);
    run().map(|_| ()).map_err(|error| store_error(&error))
}

#[cfg(test)]
impl WriterQueue {
    /// How long the last group was made to last.
    pub(super) fn last(&self) -> Lasting {
        self.pen.lock().unwrap_or_else(PoisonError::into_inner).lasting
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_commit_waits_for_the_disk_if_anything_in_its_group_must_outlive_the_machine() {
        let (writer, queue) =
            Writer::with(Pen::new(Connection::open_in_memory().unwrap(), Names::default(), Clock::System));
        let read = |rows: &mut SqliteRows<'_>| -> Result<i64, Fault> {
            rows.connection.pragma_query_value(None, "synchronous", |row| row.get(0)).map_err(Fault::from)
        };
        let runtime = tokio::runtime::Builder::new_current_thread().build().unwrap();
        let ask = |lastings: &[Lasting]| -> Vec<i64> {
            let calls: Vec<_> = lastings.iter().map(|lasting| queue.run(*lasting, read)).collect();
            runtime.block_on(futures_util::future::join_all(calls)).into_iter().map(Result::unwrap).collect()
        };
        let (full, normal) = (2, 1);
        #[expect(clippy::disallowed_methods, reason = "the writer has a thread of its own")]
        std::thread::spawn(|| writer.run());
        assert_eq!(ask(&[Lasting::Process]), [normal]);
        assert_eq!(ask(&[Lasting::Forever]), [full]);
        assert_eq!(ask(&[Lasting::Process]), [normal]);
        assert_eq!(queue.here(read), Some(Ok(full)), "who writes here waits for the disk");
        assert_eq!(queue.last(), Lasting::Forever);
    }

    #[test]
    #[expect(clippy::disallowed_methods, reason = "how long SQLite waits is real time")]
    fn a_writer_of_another_process_is_not_waited_for_on_the_callers_thread() {
        let folder = tempfile::tempdir().unwrap();
        let file = folder.path().join("t.db");
        let stranger = Connection::open(&file).unwrap();
        stranger.execute_batch("CREATE TABLE t (n INTEGER); BEGIN IMMEDIATE").unwrap();
        let pen = Pen::new(Connection::open(&file).unwrap(), Names::default(), Clock::System);
        pen.connection.busy_timeout(BUSY_TIMEOUT).unwrap();
        let (_writer, queue) = Writer::with(pen);
        let write = |rows: &mut SqliteRows<'_>| rows.execute("INSERT INTO t VALUES (2)", []);
        let begun = std::time::Instant::now();
        assert!(queue.here(write).is_none(), "it is to be sent to the thread that can wait");
        assert!(begun.elapsed() < BUSY_TIMEOUT / 2);
        stranger.execute_batch("COMMIT").unwrap();
        assert_eq!(queue.here(write), Some(Ok(1)));
    }

    #[test]
    fn a_transaction_that_could_not_be_rolled_back_does_not_stop_the_next_one() {
        let connection = Connection::open_in_memory().unwrap();
        connection.execute_batch("CREATE TABLE t (n INTEGER); BEGIN IMMEDIATE; INSERT INTO t VALUES (1)").unwrap();
        let mut pen = Pen::new(connection, Names::default(), Clock::System);
        let write = |rows: &mut SqliteRows<'_>| rows.execute("INSERT INTO t VALUES (2)", []).map_err(of_fault);
        assert_eq!(pen.attempt(Lasting::Forever, write), Ok(1));
        let there: i64 = pen.connection.query_row("SELECT sum(n) FROM t", [], |row| row.get(0)).unwrap();
        assert_eq!(there, 2, "what was to be rolled back is gone");
    }
}
