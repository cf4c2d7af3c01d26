//! Many futures of one owner, of which only those are polled that were woken.

use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, Mutex};
use std::task::{Wake, Waker};

use super::lock;

/// Tells which of its members were woken, first come first served. Polling a thousand members because one of them can
/// go on would cost a million polls in all.
pub(in crate::code) struct Many {
    owner: Arc<Owner>,
    members: Vec<Arc<Member>>,
}

struct Owner {
    waker: Mutex<Waker>,
    woken: Mutex<Vec<usize>>,
}

struct Member {
    owner: Arc<Owner>,
    place: usize,
    woken: AtomicBool,
}

impl Many {
    pub(in crate::code) fn new() -> Self {
        let owner = Owner { waker: Mutex::new(Waker::noop().clone()), woken: Mutex::default() };
        Many { owner: Arc::new(owner), members: Vec::new() }
    }

    /// The waker of the next member.
    pub(in crate::code) fn add(&mut self) -> Waker {
        let place = self.members.len();
        let member = Arc::new(Member { owner: Arc::clone(&self.owner), place, woken: AtomicBool::new(false) });
        self.members.push(Arc::clone(&member));
        member.into()
    }

    /// Whom to wake when a member is woken.
    pub(in crate::code) fn set_owner(&self, waker: &Waker) {
        let mut known = lock(&self.owner.waker);
        if !known.will_wake(waker) {
            known.clone_from(waker);
        }
    }

    /// The members that were woken since this was asked last, with their wakers.
    pub(in crate::code) fn take_woken(&self) -> Vec<(usize, Waker)> {
        let woken = std::mem::take(&mut *lock(&self.owner.woken));
        woken
            .into_iter()
            .map(|place| {
                let member = &self.members[place];
                member.woken.store(false, Ordering::Release);
                (place, Arc::clone(member).into())
            })
            .collect()
    }
}

impl Wake for Member {
    fn wake(self: Arc<Self>) {
        self.wake_by_ref();
    }

    fn wake_by_ref(self: &Arc<Self>) {
        if !self.woken.swap(true, Ordering::AcqRel) {
            lock(&self.owner.woken).push(self.place);
        }
        let owner = lock(&self.owner.waker).clone();
        owner.wake();
    }
}
