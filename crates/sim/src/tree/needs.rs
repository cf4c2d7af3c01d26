//! What a program needs from outside.

use std::collections::BTreeMap;

use super::{Call, Group, Place, Tree, Wait};

/// What a run needs from outside, so that whoever plays its clients can plan acts that hit. What its children need is
/// their own affair: everything they wait for has a timeout.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Needs {
    /// Signals by name, and how many at most are awaited under it.
    pub signals: Vec<(String, u64)>,
    /// How many approvals and callbacks may be open in all.
    pub answers: u64,
    /// Waits that hope for a signal of their own: key and name.
    pub aimed: Vec<(String, String)>,
    /// The keys of approvals.
    pub approvals: Vec<String>,
    /// The keys of callbacks.
    pub callbacks: Vec<String>,
    /// Where the program panics.
    pub panics: Vec<String>,
}

/// What a run of this tree needs from outside, over all its generations.
pub fn needs(tree: &Tree) -> Needs {
    let mut found = Found::default();
    found.look(&Place::root(), tree);
    let Found { signals, mut needs } = found;
    needs.signals = signals.into_iter().collect();
    needs.answers = (needs.approvals.len() + needs.callbacks.len()) as u64;
    needs
}

#[derive(Default)]
struct Found {
    signals: BTreeMap<String, u64>,
    needs: Needs,
}

impl Found {
    fn look(&mut self, place: &Place, tree: &Tree) {
        match tree {
            Tree::Wait(wait) | Tree::Lent { wait, .. } => self.wait(place, wait),
            Tree::Approve(_) => self.needs.approvals.push(place.key("approve")),
            Tree::Callback(call) => self.needs.callbacks.push(callback_key(place, call)),
            Tree::Seq(parts) => self.parts(place, parts),
            Tree::Try(part) | Tree::Timed(part) => self.look(&place.part(0), part),
            Tree::Scope(part) => self.look(&place.inside("scope").part(0), part),
            Tree::Cleanup { body, cleanup } => {
                self.look(&place.part(0), body);
                self.look(&place.part(1), cleanup);
            }
            Tree::Batch(batch) => {
                for (number, branch) in batch.branches.iter().enumerate() {
                    self.look(&place.branch("batch", number), branch);
                }
            }
            Tree::Group(group) => self.group(place, group),
            Tree::Started { first, meanwhile, .. } => {
                self.look(&first_place(place, first), first);
                self.look(&place.part(1), meanwhile);
            }
            Tree::Renew(rest) => self.look(&Place::root(), rest),
            Tree::Panic => self.needs.panics.push(place.key("panic")),
            Tree::Step(_)
            | Tree::Transaction(_)
            | Tree::Task(_)
            | Tree::Sleep(_)
            | Tree::SleepUntil(_)
            | Tree::Condition { .. }
            | Tree::Child(_)
            | Tree::Now
            | Tree::Uuid
            | Tree::Random
            | Tree::Emit
            | Tree::SetState
            | Tree::Fail => {}
        }
    }

    fn parts(&mut self, place: &Place, parts: &[Tree]) {
        for (number, part) in parts.iter().enumerate() {
            self.look(&place.part(number), part);
        }
    }

    fn group(&mut self, place: &Place, group: &Group) {
        for (number, member) in group.members.iter().enumerate() {
            self.look(&member_place(place, group, number), member);
        }
    }

    fn wait(&mut self, place: &Place, wait: &Wait) {
        if wait.aimed {
            self.needs.aimed.push((place.key("wait"), wait.name.clone()));
        } else {
            *self.signals.entry(wait.name.clone()).or_default() += 1;
        }
    }
}

/// The key under which a callback is answered.
pub(crate) fn callback_key(place: &Place, call: &Call) -> String {
    let key = place.key("callback");
    // The callback inside has no name of its own.
    if call.submitted { format!("{key}/__callback-0") } else { key }
}

/// Where the member of a group stands.
pub(crate) fn member_place(place: &Place, group: &Group, number: usize) -> Place {
    use super::Made;
    let part = place.part(number);
    match group.made {
        Made::Scopes | Made::Started => part.inside("member"),
        Made::Sleeps | Made::Trio | Made::Family | Made::Tasks => part,
    }
}

/// Whether something can be started as it is; anything else is started inside a scope.
pub(crate) fn is_operation(tree: &Tree) -> bool {
    match tree {
        Tree::Step(_)
        | Tree::Transaction(_)
        | Tree::Task(_)
        | Tree::Sleep(_)
        | Tree::Wait(_)
        | Tree::Approve(_)
        | Tree::Condition { .. }
        | Tree::Batch(_)
        | Tree::Scope(_) => true,
        Tree::Callback(call) => call.submitted,
        Tree::Child(child) => child.how != super::Kin::Left,
        Tree::Seq(_)
        | Tree::Try(_)
        | Tree::Timed(_)
        | Tree::Cleanup { .. }
        | Tree::SleepUntil(_)
        | Tree::Group(_)
        | Tree::Started { .. }
        | Tree::Lent { .. }
        | Tree::Now
        | Tree::Uuid
        | Tree::Random
        | Tree::Emit
        | Tree::SetState
        | Tree::Fail
        | Tree::Panic
        | Tree::Renew(_) => false,
    }
}

/// Where something that is started stands.
pub(crate) fn first_place(place: &Place, first: &Tree) -> Place {
    let part = place.part(0);
    if is_operation(first) { part } else { part.inside("started") }
}
