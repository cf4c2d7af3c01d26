//! Would this code go on with those journals? What is recorded is replayed and nothing else is done: no step body runs,
//! nothing is written, nobody is asked.

mod error;
mod recording;
mod runs;

use std::collections::BTreeMap;
use std::sync::Arc;
use std::task::Waker;

use outlast_core::commit::Snapshot;
use outlast_core::event::Event;
use outlast_core::id::{Fence, Key};
use outlast_core::limits::Limits;
use outlast_core::operation::Location;
use outlast_core::time::Timestamp;

pub use error::{Divergence, ReplayError};
pub use recording::Recording;
pub(crate) use recording::WrittenEvent;
pub use runs::{CheckedRun, Replay};

use crate::code::Workflow;
use crate::drive::{Hints, Identity, Moment, OperationInfo, Restored, Run, Settings, Stands, Transactions, unseal};
use crate::registry::{About, Registry};
use crate::token::Secret;

/// Replays a recorded journal with a workflow's code: whether the code would go on with that run.
///
/// For tests that run with every change: record a run once, keep it, and find out before a deploy that its code can no
/// longer replay it. No step body runs and nothing outside is touched. A journal may end anywhere; code that asks for
/// more behind everything recorded is fine.
///
/// ```
/// # #[cfg(feature = "testing")] {
/// use outlast::testing::World;
/// use outlast::{Ctx, Recording, Workflow, check_replay};
///
/// async fn before(ctx: Ctx, n: u32) -> outlast::Result<u32> {
///     ctx.step("double", async |_| Ok(n * 2)).await
/// }
///
/// async fn after(ctx: Ctx, n: u32) -> outlast::Result<u32> {
///     ctx.step("twice", async |_| Ok(n * 2)).await
/// }
///
/// let world = World::new();
/// let json = world.block_on(async {
///     let engine = world.engine().workflow("double", before).start().await.unwrap();
///     engine.start("double", &21).id("a").await.unwrap().result::<u32>().await.unwrap();
///     serde_json::to_string(&engine.run("a").unwrap().export().await.unwrap()).unwrap()
/// });
///
/// let recording: Recording = serde_json::from_str(&json).unwrap();
/// assert!(check_replay(&recording, &Workflow::new("double", before)).is_ok());
/// let error = check_replay(&recording, &Workflow::new("double", after)).unwrap_err();
/// assert!(error.to_string().starts_with(
///     "replay mismatch at index 0: the journal has STEP_FINISHED \"double\", \
///      the code did not ask for it; it asks for step \"twice\" at "
/// ));
/// # }
/// ```
pub fn check_replay(recording: &Recording, workflow: &Workflow) -> Result<Replayed, ReplayError> {
    let registry = Registry::default();
    let registered = workflow.clone().register().map_err(|error| ReplayError::Unsound(error.to_string()))?;
    // A registry that is empty takes any name.
    let _ = registry.add(registered);
    Checker::new(Arc::new(registry), Limits::default(), None).check(recording)
}

/// A journal that was replayed from its beginning to its end.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Replayed {
    /// How many events were matched: all there are.
    pub events: u64,
    /// Whether the code came to its end.
    pub ended: bool,
    /// What the code does where the journal ends: operations that are recorded and not completed, and new ones.
    pub operations: Vec<OperationInfo>,
}

/// Where in the source the operations of a journal were asked for.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Located {
    /// Where each was, done or not; flows have none.
    pub locations: BTreeMap<Key, Location>,
    /// Where the code goes another way than the journal, if it does: what would come behind that is not known.
    pub divergence: Option<ReplayError>,
}

/// Code to replay recorded journals with; see [`crate::Outlast::checker`].
#[derive(Clone)]
pub struct Checker {
    registry: Arc<Registry>,
    settings: Arc<Settings>,
    /// Whether callbacks have the tokens they had.
    tokens_known: bool,
}

impl Checker {
    pub(crate) fn new(registry: Arc<Registry>, limits: Limits, secret: Option<Secret>) -> Checker {
        let known = Arc::clone(&registry);
        let tokens_known = secret.is_some();
        let settings = Settings {
            limits,
            newest: Box::new(move |namespace, workflow| known.newest(namespace, workflow)),
            token: Box::new(move |run, generation, key| match &secret {
                Some(secret) => secret.token(run, generation, key),
                None => format!("token of {key}"),
            }),
            refuse_shared_names: false,
            snapshot_after: u64::MAX,
            steps: Arc::default(),
        };
        Checker { registry, settings: Arc::new(settings), tokens_known }
    }

    /// Replays a recorded journal; see [`check_replay`].
    pub fn check(&self, recording: &Recording) -> Result<Replayed, ReplayError> {
        self.check_with(recording, None)
    }

    /// The same from a snapshot on: whether a run that goes on from it comes to what the whole journal comes to. The recording
    /// has the whole journal, of which only what follows the snapshot is fed.
    pub fn check_from(&self, recording: &Recording, snapshot: &Snapshot) -> Result<Replayed, ReplayError> {
        self.check_with(recording, Some(snapshot))
    }

    /// Where in the source each operation of a recorded journal was asked for, as far as the code goes the journal's way.
    pub fn locate(&self, recording: &Recording) -> Result<Located, ReplayError> {
        let (mut run, end, outputs) = self.ready(recording, None)?;
        run.note_locations();
        let divergence = run.replay(end.as_ref(), outputs).err().map(ReplayError::from);
        Ok(Located { locations: run.into_locations(), divergence })
    }

    fn check_with(&self, recording: &Recording, snapshot: Option<&Snapshot>) -> Result<Replayed, ReplayError> {
        let (mut run, end, outputs) = self.ready(recording, snapshot)?;
        let (ended, operations) = match run.replay(end.as_ref(), outputs)? {
            Stands::Ended => (true, Vec::new()),
            Stands::Within(operations) => (false, operations),
        };
        Ok(Replayed { events: recording.events.len() as u64, ended, operations })
    }

    /// The run before its journal is replayed, the event that ended it, and whether what it returned must be the same.
    fn ready(
        &self,
        recording: &Recording,
        snapshot: Option<&Snapshot>,
    ) -> Result<(Run, Option<Event>, bool), ReplayError> {
        let mut events = recording.events()?;
        let end = events.pop_if(|event| event.ends_generation());
        // What a run returned may contain a token, and without the store's secret nobody knows those.
        let callbacks = events.iter().any(|event| matches!(event, Event::CallbackCreated { .. }));
        let run = self.restore(recording, events.len(), snapshot)?;
        Ok((run, end, self.tokens_known || !callbacks))
    }

    /// The run with the first `facts` of its journal, and with nothing that could reach anybody.
    fn restore(&self, recording: &Recording, facts: usize, snapshot: Option<&Snapshot>) -> Result<Run, ReplayError> {
        let identity = Identity {
            run: recording.run.clone(),
            generation: recording.generation,
            workflow: recording.workflow.clone(),
            version: recording.version.clone(),
            parent: None,
        };
        let Some(definition) = self.registry.definition(&identity.workflow, &identity.version) else {
            return Err(ReplayError::NoCode { workflow: identity.workflow, version: identity.version });
        };
        let transactions = Transactions::default();
        let about = About::new(&identity, &self.settings, &transactions, None);
        let (program, kept, first) = match snapshot {
            None => (definition.program(about, recording.input.clone()), None, 0),
            Some(snapshot) => {
                let (kept, state) = unseal(snapshot).map_err(ReplayError::Unsound)?;
                let program =
                    definition.restore(about, recording.input.clone(), &state).map_err(ReplayError::Unsound)?;
                (program, Some(kept), usize::try_from(snapshot.index.0).unwrap_or(usize::MAX).min(facts))
            }
        };
        let now = recording.events.last().map_or(Timestamp::EPOCH, |record| record.at);
        let restored = Restored {
            identity,
            fence: Fence(0),
            kept,
            events: recording.events[first..facts].to_vec(),
            inbox: Vec::new(),
            program,
            transactions,
            waker: Waker::noop().clone(),
            settings: Arc::clone(&self.settings),
            hints: Hints::default(),
        };
        Ok(Run::restore(restored, Moment { now, passed: now, seed: 0 })?)
    }
}
