//! The live program of a workflow written as a script.

use std::sync::Arc;

use bytes::Bytes;
use outlast_core::commit::Snapshot;
use outlast_core::failure::Failure;
use outlast_core::id::{Index, Key};
use outlast_core::operation::{OperationKind, Operations, SharedName};
use outlast_core::program::{Input, Program, Progress};

use crate::code::Code;
use crate::heap::PromiseState;
use crate::limits::Limits;
use crate::machine::{Machine, Stop, codes};
use crate::snapshot::{self, SnapshotError};
use crate::world::{RunInfo, World};

/// A run of a script, as the driver sees it: facts in, requests out.
pub struct ScriptProgram {
    pub(crate) machine: Machine,
    /// Until it is started.
    input: Option<Bytes>,
    /// The index after that of the last fact.
    next: Index,
    end: Option<Progress>,
}

impl ScriptProgram {
    pub(crate) fn new(code: Arc<Code>, info: RunInfo, input: Bytes, limits: Limits) -> ScriptProgram {
        let world = World::new(info, code.source.name());
        let machine = Machine::new(code, world, limits);
        ScriptProgram { machine, input: Some(input), next: Index(0), end: None }
    }

    pub(crate) fn restore(
        code: Arc<Code>,
        info: RunInfo,
        limits: Limits,
        snapshot: &Snapshot,
    ) -> Result<ScriptProgram, SnapshotError> {
        if snapshot.definition != code.hash {
            return Err(SnapshotError::OtherCode);
        }
        let machine = snapshot::load(code, info, limits, &snapshot.data)?;
        Ok(ScriptProgram { machine, input: None, next: snapshot.index, end: None })
    }

    /// The operations that are started and not settled, in the order of their keys, and whether each is awaited. A
    /// restored program does not start them again.
    pub fn open_operations(&self) -> impl Iterator<Item = (&Key, OperationKind, bool)> {
        self.machine.world.open.iter().map(|(key, open)| (key, open.kind, open.is_awaited))
    }

    fn start(&mut self, ops: &mut Operations) -> Result<(), Failure> {
        let Some(input) = self.input.take() else { return Ok(()) };
        self.machine.inputs = self.machine.json_value(&input).map_err(|problem| {
            let message = format!("the input of the run is not JSON: {problem}");
            Failure::new(outlast_core::failure::code::VALIDATION_ERROR, message).permanent()
        })?;
        self.machine.start(ops)
    }

    /// Whether the script came to its end.
    fn progress(&mut self) -> Progress {
        let main = self.machine.main.and_then(|main| self.machine.heap.promise_of(main));
        match main.map(|promise| promise.state) {
            // Whatever it returned: the next generation begins, and this one has no result.
            Some(PromiseState::Fulfilled(_)) if self.machine.world.is_continued => Progress::Finished(Bytes::new()),
            Some(PromiseState::Fulfilled(value)) => match self.machine.json_of(value, "what the workflow returns") {
                Ok(output) => Progress::Finished(output),
                Err(Stop::Throw(error)) => Progress::Failed(self.machine.failure(error)),
                Err(Stop::Fatal(failure)) => Progress::Failed(failure),
            },
            Some(PromiseState::Rejected(error)) => Progress::Failed(self.machine.failure(error)),
            Some(PromiseState::Pending | PromiseState::Following) if self.machine.world.open.is_empty() => {
                Progress::Failed(self.stuck())
            }
            Some(PromiseState::Pending | PromiseState::Following) | None => Progress::Blocked,
        }
    }

    fn stuck(&self) -> Failure {
        let place = self.machine.awaits().into_iter().next();
        let place = place.map_or(String::new(), |place| format!(" (at {place})"));
        let message =
            format!("the script waits for a promise that can never settle{place}: nothing is open that could wake it");
        Failure::new(codes::STUCK, message).permanent()
    }
}

impl Program for ScriptProgram {
    fn resume(&mut self, input: Input<'_>, ops: &mut Operations) -> Progress {
        if let Some(end) = &self.end {
            return end.clone();
        }
        self.machine.refuel();
        let ran = match input {
            Input::Start => self.start(ops),
            Input::Fact { index, event } => {
                self.next = Index(index.0 + 1);
                self.machine.feed(event, ops);
                self.machine.finish_turn(ops)
            }
            // A script has no bodies that the driver would run.
            Input::Execute { .. } | Input::Poll => Ok(()),
        };
        let progress = match ran {
            Ok(()) => self.progress(),
            Err(failure) => Progress::Failed(failure),
        };
        match &progress {
            Progress::Blocked | Progress::Executing => {}
            Progress::Finished(_) | Progress::Failed(_) | Progress::Unsound(_) => self.end = Some(progress.clone()),
        }
        progress
    }

    fn snapshot(&self) -> Option<Snapshot> {
        if self.input.is_some() || self.end.is_some() {
            return None;
        }
        let data = snapshot::save(&self.machine)?;
        (data.len() <= self.machine.limits.snapshot_bytes).then(|| Snapshot {
            index: self.next,
            definition: self.machine.code.hash.clone(),
            data: data.into(),
        })
    }

    fn leaves_unawaited(&self) -> bool {
        true
    }

    fn shared_names(&self) -> &[SharedName] {
        self.machine.world.keys.shared_names()
    }
}

impl std::fmt::Debug for ScriptProgram {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("ScriptProgram")
            .field("workflow", &self.machine.world.workflow())
            .field("end", &self.end)
            .finish()
    }
}
