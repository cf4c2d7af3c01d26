//! Real time, real threads, and the caller's Tokio runtime.

use std::pin::pin;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::task::{Context, Poll, Wake, Waker};
use std::thread::Thread;
use std::time::{Duration, Instant, SystemTime};

use outlast_core::time::Timestamp;
use tokio::runtime::Handle;
use uuid::Uuid;

use super::{Host, MakeDriver, SendFuture};

/// Drivers get a thread each, outside of any Tokio context: a Tokio timer, socket or task in workflow code fails at the
/// author's own line instead of making the workflow depend on something that is not journaled.
pub(crate) struct Threads {
    runtime: Handle,
    start: Instant,
}

impl Threads {
    #[expect(clippy::disallowed_methods, reason = "this is where the engine's time comes from")]
    pub(crate) fn new(runtime: Handle) -> Threads {
        Threads { runtime, start: Instant::now() }
    }
}

impl Host for Threads {
    fn elapsed(&self) -> Duration {
        self.start.elapsed()
    }

    #[expect(clippy::disallowed_methods, reason = "this is where the engine's time comes from")]
    fn wall(&self) -> Timestamp {
        let since = SystemTime::now().duration_since(SystemTime::UNIX_EPOCH).unwrap_or_default();
        Timestamp::from_millis(i64::try_from(since.as_millis()).unwrap_or(i64::MAX))
    }

    fn sleep_until(&self, until: Duration) -> SendFuture {
        let at = self.start.checked_add(until);
        let _context = self.runtime.enter();
        match at {
            Some(at) => Box::pin(tokio::time::sleep_until(at.into())),
            None => Box::pin(std::future::pending()),
        }
    }

    #[expect(clippy::disallowed_methods, reason = "the engine's own loops run on the caller's runtime")]
    fn spawn(&self, future: SendFuture) {
        self.runtime.spawn(future);
    }

    #[expect(clippy::disallowed_methods, reason = "a driver is a thread of its own")]
    fn spawn_driver(&self, name: String, make: MakeDriver) {
        let spawned = std::thread::Builder::new().name(name).spawn(move || block_on(make()));
        if let Err(error) = spawned {
            tracing::error!(%error, "a driver's thread could not be started; its share of the runs stays where it is");
        }
    }

    fn random(&self) -> u128 {
        Uuid::new_v4().as_u128()
    }

    fn may_block(&self) -> bool {
        true
    }

    fn runtime(&self) -> Option<Handle> {
        Some(self.runtime.clone())
    }
}

struct Parker {
    thread: Thread,
    woken: AtomicBool,
}

impl Wake for Parker {
    fn wake(self: Arc<Self>) {
        self.wake_by_ref();
    }

    fn wake_by_ref(self: &Arc<Self>) {
        if !self.woken.swap(true, Ordering::Release) {
            self.thread.unpark();
        }
    }
}

/// Runs a future on this thread, without any runtime around it.
fn block_on(future: impl Future<Output = ()>) {
    let mut future = pin!(future);
    let parker = Arc::new(Parker { thread: std::thread::current(), woken: AtomicBool::new(true) });
    let waker = Waker::from(Arc::clone(&parker));
    let mut context = Context::from_waker(&waker);
    loop {
        while !parker.woken.swap(false, Ordering::Acquire) {
            std::thread::park();
        }
        if let Poll::Ready(()) = future.as_mut().poll(&mut context) {
            return;
        }
    }
}
