mod admission;
mod mail;
mod retention;
mod schedules;
mod tasks;
mod turns;

use std::sync::Arc;
use std::time::Duration;

use bytes::Bytes;
use futures_util::FutureExt;
use outlast_core::commit::{
    Commit, Control, Delivery, Ending, InboxItem, InboxKind, NewRun, NewTimer, Parent, Signal, Status, Then, TimerKind,
    TimerRef, WaitKind,
};
use outlast_core::event::{ClosePolicy, Event};
use outlast_core::id::{
    ClaimId, DeliveryId, Fence, Generation, InboxId, Index, Key, LeaseId, Namespace, NodeId, RunId, RunKey, SignalName,
    Version, WorkflowName,
};
use outlast_core::limits::Limits;
use outlast_core::time::Timestamp;
use outlast_store::{
    Claim, Claimed, Committed, Created, Delivered, Lease, Load, LoadFrom, Loaded, ManualClock, MemoryStore, Pick,
    RunView, Serves, Store, StoreError,
};

use super::sight::{Orders, Sight, Stand};
use super::{Clock, Watch};

const ALONE: Stand = Stand { alone: true };

fn at(ms: i64) -> Timestamp {
    Timestamp::from_millis(ms)
}

fn key(key: &str) -> Key {
    Key::new(key).unwrap()
}

fn run(id: &str) -> RunKey {
    RunKey::new(Namespace::default_namespace(), RunId::new(id).unwrap())
}

fn new(id: &str) -> NewRun {
    NewRun::new(run(id), WorkflowName::new("w").unwrap(), Version::new("1").unwrap(), Bytes::from_static(b"null"))
}

fn json(text: &'static str) -> Bytes {
    Bytes::from_static(text.as_bytes())
}

/// A run `r`, claimed under lease 1 and fence 1, and everything that may be done to it.
struct Scene(Sight);

impl Scene {
    fn new() -> Scene {
        let mut scene = Scene(Sight::default());
        scene.lease(1, 1_000);
        scene.lease(2, 1_000);
        scene.0.created(&new("r"), &Created::Created { fence: Fence(0), at: at(0) });
        scene.claim(1, 1, 10);
        scene
    }

    fn lease(&mut self, id: u64, until: i64) {
        let node = NodeId::new(format!("n{id}")).unwrap();
        self.0.registered(&Lease { id: LeaseId(id), node, until: at(until), now: at(0) }, "");
    }

    fn claimed(&self, fence: u64, now: i64) -> Claimed {
        let shadow = &self.0.runs[&run("r")];
        Claimed {
            run: run("r"),
            fence: Fence(fence),
            generation: shadow.generation(),
            next: shadow.next(),
            workflow: WorkflowName::new("w").unwrap(),
            version: Version::new("1").unwrap(),
            parent: None,
            tries: shadow.tries + u32::from(shadow.owned),
            was: Status::Queued,
            inbox: None,
            now: at(now),
        }
    }

    fn claim(&mut self, lease: u64, fence: u64, now: i64) {
        let claimed = self.claimed(fence, now);
        self.claim_as(lease, &claimed, Serves::Everything);
    }

    fn claim_as(&mut self, lease: u64, claimed: &Claimed, serves: Serves) {
        let id = ClaimId(lease * 100 + claimed.fence.0);
        let claim = Claim { lease: LeaseId(lease), id, limit: 1, pick: Pick::Ready, serves };
        self.0.claimed(&claim, claimed, ALONE);
    }

    fn commit(&mut self, events: &[Event], then: Then) {
        let commit = self.draft(events, then);
        self.apply(&commit, 20);
    }

    fn draft(&self, events: &[Event], then: Then) -> Commit {
        let events = events.iter().map(|event| event.encode(at(15))).collect();
        Commit { events, then, ..Commit::new(run("r"), Fence(1), self.0.runs[&run("r")].next()) }
    }

    fn apply(&mut self, commit: &Commit, now: i64) {
        let next = Index(commit.expected.0 + commit.events.len() as u64);
        let delivered = vec![Delivered::Delivered; commit.deliveries.len()];
        self.0.applied(commit, &Committed { next, delivered, now: at(now) }, ALONE);
    }

    fn deliver(&mut self, delivery: &Delivery, delivered: Delivered) {
        self.0.delivered(delivery, delivered, ALONE);
    }

    fn load(&mut self, inbox: Vec<InboxItem>) {
        let loaded = self.loaded(inbox);
        self.0.loaded(&loaded, ALONE);
    }

    fn loaded(&self, inbox: Vec<InboxItem>) -> Loaded {
        let shadow = &self.0.runs[&run("r")];
        let chapter = shadow.chapter().unwrap();
        Loaded {
            run: run("r"),
            generation: shadow.generation(),
            input: chapter.input.clone(),
            snapshot: None,
            first: Index(0),
            events: chapter.records().cloned().collect(),
            inbox,
            inbox_next: InboxId(0),
        }
    }

    fn broken(&self) -> Vec<u8> {
        self.0.findings.broken()
    }
}

fn is_broken(invariant: u8, story: impl FnOnce(&mut Scene)) {
    let mut scene = Scene::new();
    assert_eq!(scene.broken(), [0_u8; 0]);
    story(&mut scene);
    assert_eq!(scene.broken(), [invariant], "{:#?}", scene.0.findings.violations);
}

fn holds(story: impl FnOnce(&mut Scene)) {
    let mut scene = Scene::new();
    story(&mut scene);
    assert_eq!(scene.0.findings.violations, []);
}

fn finished(text: &str) -> Event {
    Event::StepFinished { key: key(text), result: json("1"), attempts: 1 }
}

fn over() -> (Event, Then) {
    (Event::RunFinished { output: json("1") }, Then::Finish(Ending::Completed))
}

fn signal(id: &str) -> Delivery {
    let signal = Signal {
        name: SignalName::new("s").unwrap(),
        id: DeliveryId::new(id).unwrap(),
        payload: json("1"),
        aimed: None,
    };
    Delivery::Signal { run: run("r"), signal }
}

fn resolved(id: &str) -> Event {
    let (name, signal_id) = (SignalName::new("s").unwrap(), DeliveryId::new(id).unwrap());
    Event::SignalResolved { key: key("wait"), name, signal_id, payload: json("1") }
}

fn awaited() -> Event {
    Event::SignalAwaited { key: key("wait"), name: SignalName::new("s").unwrap(), deadline: None }
}

fn item(kind: InboxKind, delivery: Option<&str>) -> InboxItem {
    let delivery = delivery.map(|id| DeliveryId::new(id).unwrap());
    InboxItem { id: InboxId(7), kind, key: None, name: None, delivery, at: at(20), meta: None, payload: None }
}

fn answer(kind: WaitKind, meta: &'static str, payload: Option<&'static str>) -> Delivery {
    Delivery::Answer {
        run: run("r"),
        key: key("a"),
        kind,
        id: DeliveryId::new("answer").unwrap(),
        token: None,
        meta: Some(json(meta)),
        payload: payload.map(json),
    }
}

fn requested() -> Event {
    let (title, assignee, deadline) = ("?".to_owned(), None, None);
    Event::ApprovalRequested { key: key("a"), approval: "a".to_owned(), title, assignee, deadline }
}

fn decided(by: &str) -> Event {
    let (approval, by) = ("a".to_owned(), Some(by.to_owned()));
    Event::ApprovalResolved { key: key("a"), approval, approved: true, by, feedback: None }
}

const BY_ANN: &str = r#"{"decided":{"approved":true,"by":"ann","feedback":null}}"#;

#[test]
fn a_lease_that_is_over_is_not_renewed() {
    is_broken(7, |scene| {
        let lease = Lease { id: LeaseId(1), node: NodeId::new("n1").unwrap(), until: at(9_000), now: at(1_000) };
        scene.0.renewed(&lease, ALONE);
    });
}

#[test]
fn a_run_of_a_live_owner_is_given_to_nobody_else() {
    is_broken(7, |scene| scene.claim(2, 2, 999));
    holds(|scene| {
        scene.claim(2, 2, 1_000);
        scene.claim(1, 3, 1_000);
    });
}

#[test]
fn a_fence_is_given_out_once() {
    is_broken(7, |scene| {
        scene.0.let_go(&run("r"));
        scene.claim(2, 1, 20);
    });
}

#[test]
fn a_claim_says_where_the_run_stands_and_what_it_is() {
    is_broken(1, |scene| {
        let claimed = Claimed { next: Index(5), ..scene.claimed(2, 1_000) };
        scene.claim_as(2, &claimed, Serves::Everything);
    });
    is_broken(22, |scene| {
        let claimed = Claimed { version: Version::new("2").unwrap(), ..scene.claimed(2, 1_000) };
        scene.claim_as(2, &claimed, Serves::Everything);
    });
    is_broken(22, |scene| {
        let claimed = scene.claimed(2, 1_000);
        scene.claim_as(2, &claimed, Serves::Only(Vec::new()));
    });
}

#[test]
fn a_stale_fence_changes_nothing() {
    is_broken(7, |scene| {
        scene.claim(2, 2, 1_000);
        scene.commit(&[finished("a")], Then::Continue);
    });
    is_broken(7, |scene| {
        scene.commit(&[finished("a")], Then::Suspend);
        scene.commit(&[finished("b")], Then::Continue);
    });
}

#[test]
fn events_are_appended_at_the_next_index() {
    is_broken(1, |scene| {
        let commit = Commit { expected: Index(1), ..scene.draft(&[finished("a")], Then::Continue) };
        scene.apply(&commit, 20);
    });
}

#[test]
fn nothing_follows_an_end() {
    let mut scene = Scene::new();
    let (end, then) = over();
    scene.commit(&[end], then);
    scene.commit(&[finished("a")], Then::Continue);
    assert!(scene.broken().contains(&3), "{:?}", scene.broken());
    is_broken(3, |scene| scene.commit(&[over().0], Then::Suspend));
}

#[test]
fn nothing_is_settled_twice() {
    is_broken(4, |scene| {
        scene.commit(&[finished("a")], Then::Continue);
        scene.commit(&[finished("a")], Then::Continue);
    });
}

#[test]
fn a_commit_that_was_refused_leaves_no_trace() {
    is_broken(7, |scene| {
        let commit = scene.draft(&[finished("a")], Then::Continue);
        let view = RunView {
            run: run("r"),
            workflow: WorkflowName::new("w").unwrap(),
            version: Version::new("1").unwrap(),
            status: Status::Running,
            note: None,
            parked_at: None,
            generation: Generation(0),
            next: Index(1),
            parent: None,
            owner: None,
            ready: false,
            tries: 0,
            created_at: at(0),
            finished_at: None,
        };
        scene.0.refused(&commit, &view);
    });
}

#[test]
fn what_is_read_is_what_was_appended() {
    is_broken(1, |scene| {
        scene.commit(&[finished("a")], Then::Continue);
        let mut loaded = scene.loaded(Vec::new());
        loaded.events[0] = finished("b").encode(at(15));
        scene.0.loaded(&loaded, ALONE);
    });
    is_broken(2, |scene| {
        scene.commit(&[finished("a")], Then::Continue);
        let mut loaded = scene.loaded(Vec::new());
        loaded.events.clear();
        scene.0.loaded(&loaded, ALONE);
    });
}

fn watch() -> Watch {
    let clock = Clock::Manual(ManualClock::at(1));
    Watch::new(Arc::new(MemoryStore::new(clock.clone(), Limits::default())), clock)
}

fn load(watch: &Watch) -> Result<Loaded, StoreError> {
    let load = Load { run: run("r"), from: LoadFrom::Index(Index(0)) };
    watch.load(vec![load]).now_or_never().unwrap().remove(0)
}

/// A watch and a run with an event in its journal.
fn watch_and_run() -> Watch {
    let watch = watch();
    let begun = NewRun { history: vec![Event::RunPaused { reason: None, by: None }.encode(at(1))], ..new("r") };
    watch.create(vec![begun]).now_or_never().unwrap().remove(0).unwrap();
    watch
}

#[test]
fn a_damaged_run_cannot_be_read_until_it_is_repaired() {
    assert_eq!(watch().damage("r", false, None), None, "there is no such run");
    let watch = watch_and_run();
    assert_eq!(watch.damage("r", false, None), Some((run("r"), Index(0))));
    assert!(matches!(load(&watch), Err(StoreError::Corrupt { .. })));
    assert_eq!((watch.damage_met(), watch.damaged()), (1, vec![run("r")]));
    watch.repair(&run("r"));
    assert!(load(&watch).is_ok());
    assert_eq!((watch.findings().violations, watch.damage_met()), (Vec::new(), 1));
}

#[test]
fn a_damaged_event_is_shown_and_says_nothing_that_is_known() {
    let watch = watch_and_run();
    watch.damage("r", true, None);
    let shown = load(&watch).unwrap().events;
    assert!(Event::decode(&shown[0]).is_err());
    watch.repair(&run("r"));
    assert!(Event::decode(&load(&watch).unwrap().events[0]).is_ok());
    assert_eq!((watch.findings().violations, watch.damage_met()), (Vec::new(), 1));
}

#[test]
fn a_call_that_nobody_waited_for_makes_the_watch_careful() {
    let watch = watch();
    watch.create(vec![new("r"), new("other")]).now_or_never().unwrap();
    drop(watch.begin(vec![run("r")]));
    let sight = watch.sight();
    assert!(sight.loose && !sight.runs[&run("r")].sure && sight.runs[&run("other")].sure);
}

#[test]
fn calls_that_overlap_are_not_alone() {
    let watch = watch();
    let (first, second) = (watch.begin(Vec::new()), watch.begin(Vec::new()));
    assert!(!first.answered().alone && !second.answered().alone);
    assert!(watch.begin(Vec::new()).answered().alone);
    let node = NodeId::new("n").unwrap();
    watch.register(node, Duration::from_secs(1)).now_or_never().unwrap().unwrap();
    assert_eq!(watch.findings().violations, []);
}
