//! Wakers. The workflow may be woken by facts only, its bodies by anything. So they have different ones.

mod foreign;
mod many;

use std::cell::Cell;
use std::collections::BTreeSet;
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::task::{Wake, Waker};

use outlast_core::id::Key;

pub(super) use many::Many;

thread_local! {
    /// The program whose workflow code runs on this thread now; 0 if none does.
    static INSIDE: Cell<u64> = const { Cell::new(0) };
}

/// Everything that may be woken in one program. As a waker it is that of the workflow.
pub(super) struct Wakes {
    program: u64,
    workflow: AtomicBool,
    /// Bodies that can go on.
    bodies: Mutex<Vec<Key>>,
    /// Bodies that gave a sign of life, and in which attempt.
    heard: Mutex<BTreeSet<(Key, u32)>>,
    /// Who is to be told that bodies can go on.
    driver: Mutex<Option<Waker>>,
    /// Who woke the workflow from outside, first.
    foreign: Mutex<Option<String>>,
    /// The program is over: nobody cares who wakes it.
    is_closed: AtomicBool,
}

impl Wakes {
    pub(super) fn new() -> Arc<Self> {
        static PROGRAMS: AtomicU64 = AtomicU64::new(1);
        Arc::new(Wakes {
            program: PROGRAMS.fetch_add(1, Ordering::Relaxed),
            workflow: AtomicBool::new(true),
            bodies: Mutex::default(),
            heard: Mutex::default(),
            driver: Mutex::default(),
            foreign: Mutex::default(),
            is_closed: AtomicBool::new(false),
        })
    }

    /// Until this is dropped, the code that runs on this thread is the workflow's.
    pub(super) fn enter(&self) -> Inside {
        Inside { outer: INSIDE.replace(self.program) }
    }

    pub(super) fn set_driver(&self, waker: Option<&Waker>) {
        let mut driver = lock(&self.driver);
        let is_known = match (&*driver, waker) {
            (Some(known), Some(waker)) => known.will_wake(waker),
            (None, None) => true,
            (Some(_), None) | (None, Some(_)) => false,
        };
        if !is_known {
            *driver = waker.cloned();
        }
    }

    /// Whether the workflow was woken since this was asked last.
    pub(super) fn take_workflow(&self) -> bool {
        self.workflow.swap(false, Ordering::AcqRel)
    }

    pub(super) fn take_bodies(&self) -> Vec<Key> {
        std::mem::take(&mut *lock(&self.bodies))
    }

    /// A body gave a sign of life, from any thread.
    pub(super) fn heartbeat(&self, key: &Key, attempt: u32) {
        let is_new = lock(&self.heard).insert((key.clone(), attempt));
        if is_new {
            self.call_driver();
        }
    }

    /// Takes the bodies that gave a sign of life since this was asked last.
    pub(super) fn take_heard(&self) -> BTreeSet<(Key, u32)> {
        std::mem::take(&mut *lock(&self.heard))
    }

    pub(super) fn foreign(&self) -> Option<String> {
        lock(&self.foreign).clone()
    }

    pub(super) fn close(&self) {
        self.is_closed.store(true, Ordering::Release);
        self.set_driver(None);
    }

    fn call_driver(&self) {
        let driver = lock(&self.driver).clone();
        if let Some(driver) = driver {
            driver.wake();
        }
    }
}

impl Wake for Wakes {
    fn wake(self: Arc<Self>) {
        self.wake_by_ref();
    }

    fn wake_by_ref(self: &Arc<Self>) {
        self.workflow.store(true, Ordering::Release);
        if INSIDE.try_with(Cell::get) == Ok(self.program) || self.is_closed.load(Ordering::Acquire) {
            return;
        }
        {
            let mut foreign = lock(&self.foreign);
            if foreign.is_none() {
                *foreign = Some(foreign::describe());
            }
        }
        self.call_driver();
    }
}

/// See [`Wakes::enter`].
pub(super) struct Inside {
    outer: u64,
}

impl Inside {
    /// Until this is dropped, the code that runs on this thread is not the workflow's: a body's.
    pub(super) fn leave() -> Inside {
        Inside { outer: INSIDE.replace(0) }
    }
}

impl Drop for Inside {
    fn drop(&mut self) {
        INSIDE.set(self.outer);
    }
}

/// The waker of one attempt at a step.
pub(super) struct BodyWaker {
    wakes: Arc<Wakes>,
    key: Key,
    woken: AtomicBool,
}

impl BodyWaker {
    /// A body can go on when it begins.
    pub(super) fn new(wakes: Arc<Wakes>, key: Key) -> Arc<Self> {
        Arc::new(BodyWaker { wakes, key, woken: AtomicBool::new(true) })
    }

    pub(super) fn take_woken(&self) -> bool {
        self.woken.swap(false, Ordering::AcqRel)
    }
}

impl Wake for BodyWaker {
    fn wake(self: Arc<Self>) {
        self.wake_by_ref();
    }

    fn wake_by_ref(self: &Arc<Self>) {
        if !self.woken.swap(true, Ordering::AcqRel) {
            lock(&self.wakes.bodies).push(self.key.clone());
            self.wakes.call_driver();
        }
    }
}

/// Nothing here is left half done by a panic.
fn lock<T>(mutex: &Mutex<T>) -> MutexGuard<'_, T> {
    mutex.lock().unwrap_or_else(PoisonError::into_inner)
}
