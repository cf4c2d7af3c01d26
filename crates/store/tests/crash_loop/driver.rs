//! A node that drives runs: claim, load, decide, commit, and never guess.

use outlast_core::commit::{Commit, Ending, InboxItem, Snapshot, Then};
use outlast_core::event::Event;
use outlast_core::id::{ClaimId, Fence, InboxId, Index, LeaseId, NodeId};
use outlast_core::record::Record;
use outlast_store::{
    Claim, Claimed, CommitError, Load, LoadFrom, Loaded, Pick, Rejection, Release, Resolution, Serves, StoreError,
    Take, Trouble,
};

use crate::ledger::{Acknowledged, idempotency_key};
use crate::program::{Hold, Next, Turn, journal, ms};
use crate::stage::{Dead, Played, Port, single};

/// How long a node owns what it claims without a sign of life.
pub(crate) const LEASE_MS: u64 = 100_000;
/// The hash of every definition.
const DEFINITION: &str = "d1";

/// What becomes of a commit, for its driver.
enum Written {
    /// It is durable.
    Yes,
    /// The run is somebody else's.
    Lost,
    /// Something happened meanwhile: read the inbox again.
    Stale,
}

pub(crate) struct Driver {
    port: Port,
    node: NodeId,
    snapshots: bool,
    claims: u64,
}

impl Driver {
    pub(crate) fn new(port: Port, node: &str, snapshots: bool) -> Driver {
        Driver { port, node: NodeId::new(node).unwrap(), snapshots, claims: 0 }
    }

    /// Drives whatever is there to be driven, until the process dies.
    pub(crate) async fn play(mut self) -> Played {
        let mut lease = self.register().await?;
        loop {
            self.claims += 1;
            let (id, serves) = (ClaimId(self.claims), Serves::Everything);
            let claim = Claim { lease, id, limit: 2, pick: Pick::Ready, serves };
            let claimed = match self.port.call(|store| store.claim(claim.clone())).await? {
                Ok(claimed) => claimed,
                Err(StoreError::LeaseLapsed { .. }) => {
                    lease = self.register().await?;
                    continue;
                }
                Err(error) => panic!("a claim is refused: {error}"),
            };
            for claimed in claimed {
                self.port.stage.moved();
                self.drive(claimed).await?;
            }
        }
    }

    async fn register(&self) -> Result<LeaseId, Dead> {
        Ok(self.port.must(|store| store.register(self.node.clone(), ms(LEASE_MS))).await?.id)
    }

    /// Drives one run until it is given back, lost or over.
    async fn drive(&self, claimed: Claimed) -> Played {
        let Claimed { run, fence, workflow, generation, parent, .. } = claimed;
        let mut hold = Hold { run, fence, workflow, generation, parent };
        self.try_as_the_one_before(&hold).await;
        let name = (hold.run.clone(), fence);
        self.port.stage.ledger.borrow_mut().held.insert(name.clone());
        let mut fresh = true;
        while !self.turns(&mut hold, fresh).await? {
            fresh = false;
        }
        self.port.stage.ledger.borrow_mut().held.remove(&name);
        self.probe("gave it back", &hold, hold.fence).await;
        Ok(())
    }

    /// Loads the run and goes on with it; whether it is no longer this driver's.
    async fn turns(&self, hold: &mut Hold, fresh: bool) -> Result<bool, Dead> {
        let Loaded { generation, mut events, mut inbox, inbox_next, .. } = self.load(hold).await?;
        if !fresh {
            let take = Take { run: hold.run.clone(), fence: hold.fence, read: inbox_next };
            match self.port.call(|store| single(store.take(vec![take.clone()]))).await? {
                // What came since keeps its wake.
                Ok(_) => {}
                Err(StoreError::Fenced { .. }) => return Ok(true),
                Err(error) => panic!("taking a resume is refused: {error}"),
            }
        }
        hold.generation = generation;
        if journal(&events).is_over() {
            // Somebody else, who took the run over, has ended it.
            return Ok(true);
        }
        loop {
            let now = self.port.stage.now();
            let commit = match Turn::new(hold, journal(&events), &inbox, now).decide() {
                Next::Until(due) => {
                    self.port.stage.clock.set(due.as_millis().max(now.as_millis()));
                    continue;
                }
                Next::Release => return self.release(hold).await,
                Next::Body(key) => self.body(hold, &events, &inbox, &key),
                Next::Commit(commit) => *commit,
            };
            let commit = self.with_snapshot(commit, &events);
            match self.write(hold, &commit).await? {
                Written::Lost => return Ok(true),
                Written::Stale => return Ok(false),
                Written::Yes => {}
            }
            match commit.then {
                Then::Continue => {}
                Then::ContinueAsNew { .. } => return Ok(false),
                Then::Suspend | Then::Pause | Then::Park { .. } | Then::Finish(_) => return Ok(true),
            }
            self.repeat(&commit).await;
            inbox.retain(|item| !commit.consumed.contains(&item.id));
            events.extend(commit.events);
        }
    }

    async fn load(&self, hold: &Hold) -> Result<Loaded, Dead> {
        let load = Load { run: hold.run.clone(), from: LoadFrom::Index(Index(0)) };
        let full = self.port.must(|store| single(store.load(vec![load.clone()]))).await?;
        if self.snapshots {
            let from = LoadFrom::Snapshot { definition: DEFINITION.to_owned() };
            let load = Load { from, ..load };
            let short = self.port.must(|store| single(store.load(vec![load.clone()]))).await?;
            self.compare(&full, &short);
        }
        Ok(full)
    }

    /// Snapshot and tail must tell what the whole journal tells.
    fn compare(&self, full: &Loaded, short: &Loaded) {
        let start = short.snapshot.as_ref().map_or(0, |snapshot| {
            self.port.stage.ledger.borrow_mut().sometimes.insert("loaded from a snapshot");
            assert_eq!(snapshot.index, short.first, "the tail begins where the snapshot ends");
            u64::from_be_bytes(snapshot.data.as_ref().try_into().unwrap())
        });
        let folded = |start, events: &[Record]| events.iter().fold(start, fold);
        assert_eq!(folded(start, &short.events), folded(0, &full.events), "snapshot and tail differ from the journal");
    }

    fn with_snapshot(&self, commit: Commit, events: &[Record]) -> Commit {
        let index = Index(commit.expected.0 + commit.events.len() as u64);
        let data = events.iter().chain(&commit.events).fold(0, fold).to_be_bytes();
        let snapshot = Snapshot { index, definition: DEFINITION.to_owned(), data: data.to_vec().into() };
        Commit { snapshot: self.snapshots.then_some(snapshot), ..commit }
    }

    /// Runs a step's body: everything before it is durable.
    fn body(&self, hold: &Hold, events: &[Record], inbox: &[InboxItem], key: &outlast_core::id::Key) -> Commit {
        let name = idempotency_key(&hold.run, hold.generation.0, key);
        let result = self.port.stage.ledger.borrow_mut().body(name, key.as_str());
        let now = self.port.stage.now();
        let mut turn = Turn::new(hold, journal(events), inbox, now);
        turn.say(Event::StepFinished { key: key.clone(), result: result.into_bytes().into(), attempts: 1 });
        // What follows the result may share its commit, unless it is another body.
        match turn.decide() {
            Next::Commit(commit) => *commit,
            Next::Body(_) | Next::Until(_) | Next::Release => panic!("a result must be written first"),
        }
    }

    async fn release(&self, hold: &Hold) -> Result<bool, Dead> {
        let release = Release { run: hold.run.clone(), fence: hold.fence, again: false };
        match self.port.call(|store| single(store.release(vec![release.clone()]))).await? {
            // Fenced: it was released before, and only the reply was lost; or somebody else has it.
            Ok(()) | Err(StoreError::Fenced { .. }) => Ok(true),
            Err(error) => panic!("a release is refused: {error}"),
        }
    }

    async fn write(&self, hold: &Hold, commit: &Commit) -> Result<Written, Dead> {
        loop {
            self.port.gate().await;
            match self.port.store().commit(vec![commit.clone()]).await.remove(0) {
                Ok(committed) => {
                    let kept = commit.expected.0 + commit.events.len() as u64;
                    let continued = matches!(commit.then, Then::ContinueAsNew { .. });
                    assert_eq!(committed.next, Index(if continued { 0 } else { kept }));
                    self.acknowledge(hold, commit);
                    return Ok(Written::Yes);
                }
                Err(CommitError::Unknown(txn)) => match self.port.must(|store| store.resolve(txn)).await? {
                    Resolution::Applied => {
                        self.acknowledge(hold, commit);
                        return Ok(Written::Yes);
                    }
                    Resolution::NotApplied => {}
                },
                Err(CommitError::NotApplied(StoreError::Unavailable { trouble: Trouble::Closed, .. })) => {
                    return Err(Dead);
                }
                Err(CommitError::NotApplied(StoreError::Unavailable { .. })) => {}
                Err(CommitError::Fenced { .. } | CommitError::Conflict { .. }) => {
                    let mut ledger = self.port.stage.ledger.borrow_mut();
                    ledger.sometimes.insert("fenced");
                    ledger.lost(&hold.run, hold.fence);
                    return Ok(Written::Lost);
                }
                Err(CommitError::Rejected(
                    Rejection::Answered { .. } | Rejection::TimerGone { .. } | Rejection::Woken,
                )) => {
                    self.port.stage.ledger.borrow_mut().sometimes.insert("rejected");
                    return Ok(Written::Stale);
                }
                Err(error) => panic!("{}: a commit is refused: {error}", hold.run),
            }
        }
    }

    fn acknowledge(&self, hold: &Hold, commit: &Commit) {
        let Commit { run, expected, events, .. } = commit.clone();
        let acknowledged = Acknowledged { run, generation: hold.generation, first: expected, events };
        let mut ledger = self.port.stage.ledger.borrow_mut();
        ledger.commits.push(acknowledged);
        if commit.then == Then::Finish(Ending::Cancelled) {
            ledger.sometimes.insert("cancelled");
        }
        self.port.stage.moved();
    }

    /// Whoever held the run before tries once more.
    async fn try_as_the_one_before(&self, hold: &Hold) {
        let stale = self.port.stage.ledger.borrow_mut().take_stale(&hold.run, hold.fence);
        if let Some(fence) = stale {
            self.probe("zombie", hold, fence).await;
        }
    }

    /// Invariant 7: who does not hold the run may say what he wants; nothing changes. Tried once per story.
    async fn probe(&self, who: &'static str, hold: &Hold, fence: Fence) {
        if !self.port.stage.ledger.borrow_mut().sometimes.insert(who) {
            return;
        }
        let before = self.port.world().await;
        let next = before.runs.get(&hold.run).map_or(Index(0), |run| run.view.next);
        let refused = zombie(&self.port, hold, fence, next).await;
        assert!(refused, "{}: {who}, and fence {fence} was accepted", hold.run);
        assert!(before == self.port.world().await, "{}: {who}, was refused, and changed something", hold.run);
    }

    /// Invariant 1: what is written is not written again, not even by the one who holds the run.
    async fn repeat(&self, commit: &Commit) {
        let still_held = matches!(commit.then, Then::Continue) && !commit.events.is_empty();
        if !still_held || !self.port.stage.ledger.borrow_mut().sometimes.insert("repeated") {
            return;
        }
        let before = self.port.world().await;
        let again = self.port.bare().commit(vec![commit.clone()]).await.remove(0);
        let refused = matches!(again, Err(CommitError::Conflict { .. } | CommitError::Fenced { .. }));
        assert!(refused, "{}: a commit was applied twice: {again:?}", commit.run);
        assert!(before == self.port.world().await, "{}: a repeated commit changed something", commit.run);
    }
}

/// Commits, takes and releases under a fence that is over; whether all was refused.
async fn zombie(port: &Port, hold: &Hold, fence: Fence, next: Index) -> bool {
    let run = &hold.run;
    let mut commit = Commit::new(run.clone(), fence, next);
    commit.events.push(Event::RunCancelled { reason: None }.encode(port.stage.now()));
    commit.then = Then::Finish(Ending::Cancelled);
    let committed = port.bare().commit(vec![commit]).await.remove(0);
    let taken = port.bare().take(vec![Take { run: run.clone(), fence, read: InboxId(0) }]).await.remove(0);
    let released = port.bare().release(vec![Release { run: run.clone(), fence, again: true }]).await.remove(0);
    matches!(committed, Err(CommitError::Fenced { .. }))
        && matches!(taken, Err(StoreError::Fenced { .. }))
        && matches!(released, Err(StoreError::Fenced { .. }))
}

/// A number that depends on every event and their order.
fn fold(state: u64, record: &Record) -> u64 {
    let text = format!("{}/{:?}/{:?}/{:?}", record.kind, record.key, record.meta, record.payload);
    let mix = |state: u64, byte: u8| (state ^ u64::from(byte)).wrapping_mul(0x0000_0100_0000_01b3);
    text.bytes().fold(state.wrapping_add(0xcbf2_9ce4_8422_2325), mix)
}
