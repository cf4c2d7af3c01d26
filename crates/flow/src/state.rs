//! Where a run of a flow stands: the fold of its journal, as a tree of what is open.

use std::collections::{BTreeMap, BTreeSet};
use std::sync::{Arc, LazyLock};

use bytes::Bytes;
use outlast_core::failure::Failure;
use outlast_core::id::{Index, Key};
use outlast_core::operation::{OperationKind, Requested};
use outlast_script::RunInfo;
use serde::{Deserialize, Serialize};
use serde_json::Value as Json;

use crate::items::Items;
use crate::left::Bodies;
use crate::limits::FlowLimits;
use crate::load::Flow;
use crate::mark::Mark;
use crate::model::Body;
use crate::walk::pass_of;

/// A run of a flow.
pub(crate) struct State {
    pub(crate) flow: Flow,
    pub(crate) info: RunInfo,
    pub(crate) limits: FlowLimits,
    /// What the run was given. The store has it, and so no snapshot does.
    pub(crate) input: Arc<Json>,
    pub(crate) saved: Saved,
    /// Operations that were decided and not handed out yet.
    pub(crate) starts: Vec<Requested>,
    /// The mark that was decided and is not in the journal yet: there is never a second one, so that whatever is decided
    /// next is decided in the light of it. What an operator does takes it back.
    pub(crate) mark: Option<Mark>,
    /// Why it could not be found out whether the node runs that this mark begins: then it fails at once. A condition is looked
    /// at when the mark is decided, and not again.
    pub(crate) doubt: Option<Failure>,
    /// Whether that mark was not handed out yet.
    pub(crate) is_fresh: bool,
    /// Whether something may have happened that was not looked at yet: then every branch is, and not only the one that the
    /// latest event is about.
    pub(crate) is_unseen: bool,
    pub(crate) end: Option<Result<Bytes, Failure>>,
}

/// What a snapshot holds.
#[derive(Clone, Debug, Serialize, Deserialize)]
pub(crate) struct Saved {
    /// The pass that loop edges opened, from 1.
    pub(crate) pass: u32,
    /// How often each loop edge was taken.
    pub(crate) taken: Vec<u32>,
    /// The loop edge that is taken next.
    pub(crate) going_back: Option<usize>,
    pub(crate) top: Block,
    /// What operators said when they let the run go on.
    pub(crate) messages: Vec<Arc<Json>>,
    /// How many of the last of them nothing has begun since.
    pub(crate) unread: usize,
}

/// A list of nodes that is being run: the flow's own, or one iteration of a container.
#[derive(Clone, Debug, Default, Serialize, Deserialize)]
pub(crate) struct Block {
    pub(crate) slots: Vec<Slot>,
    #[serde(with = "present")]
    pub(crate) outputs: Vec<Option<Arc<Json>>>,
    /// What the pass or round before left.
    #[serde(with = "present")]
    pub(crate) previous: Vec<Option<Arc<Json>>>,
    #[serde(with = "present")]
    pub(crate) errors: Vec<Option<Arc<Json>>>,
    /// What failed in it, and where.
    pub(crate) failure: Option<(Failure, Key)>,
    /// Nodes that a failure led to: no edge has to.
    #[serde(default, skip_serializing_if = "BTreeSet::is_empty")]
    pub(crate) reached: BTreeSet<usize>,
    /// What is left of containers that are over, by their places.
    #[serde(default, skip_serializing_if = "BTreeMap::is_empty")]
    pub(crate) left: BTreeMap<usize, Bodies>,
}

impl Saved {
    /// The pass in which a node runs, comes next, or cannot run any more.
    pub(crate) fn pass_of(&self, place: usize) -> u32 {
        match &self.top.slots[place] {
            Slot::Running(entry) => pass_of(entry.key.as_str()).map_or(1, |(pass, _)| pass),
            Slot::Waiting | Slot::Done { .. } | Slot::Failed | Slot::Skipped | Slot::Waived => self.pass,
        }
    }
}

impl Block {
    pub(crate) fn new(body: &Body, previous: Vec<Option<Arc<Json>>>) -> Block {
        let count = body.nodes.len();
        Block {
            slots: vec![Slot::Waiting; count],
            outputs: vec![None; count],
            previous,
            errors: vec![None; count],
            failure: None,
            reached: BTreeSet::new(),
            left: BTreeMap::new(),
        }
    }

    pub(crate) fn is_over(&self) -> bool {
        self.slots.iter().all(Slot::is_over)
    }

    /// The outputs by the nodes' ids. Nodes that were skipped or failed have none.
    pub(crate) fn outputs_of(&self, body: &Body) -> Json {
        let named = body.nodes.iter().zip(&self.outputs);
        let present = named.filter_map(|(node, output)| Some((node.id.to_string(), (**output.as_ref()?).clone())));
        Json::Object(present.collect())
    }
}

#[derive(Clone, Debug, Serialize, Deserialize)]
pub(crate) enum Slot {
    /// Its turn has not come.
    Waiting,
    Running(Box<Entry>),
    /// It has an output, which is in the journal here.
    Done {
        at: Index,
    },
    /// It failed, and the flow goes on.
    Failed,
    /// Its condition did not hold, or nothing led to it.
    Skipped,
    /// An operator let the flow go on without it: for those that follow it came to something.
    Waived,
}

impl Slot {
    pub(crate) fn is_over(&self) -> bool {
        match self {
            Slot::Waiting | Slot::Running(_) => false,
            Slot::Done { .. } | Slot::Failed | Slot::Skipped | Slot::Waived => true,
        }
    }
}

/// A node that is being run.
#[derive(Clone, Debug, Serialize, Deserialize)]
pub(crate) struct Entry {
    /// Its path: the key of its operation, and the beginning of those below.
    pub(crate) key: Key,
    /// How often it was begun, from 1: an operator may have it begin again.
    pub(crate) attempt: u32,
    pub(crate) operations: Vec<Open>,
    pub(crate) container: Option<Box<Container>>,
    pub(crate) outcome: Option<Outcome>,
    /// What a step was given: whoever runs it asks. Null for other nodes.
    pub(crate) input: Arc<Json>,
    /// What is left of its inside, once it came to something.
    #[serde(default, skip_serializing_if = "BTreeMap::is_empty")]
    pub(crate) left: Bodies,
}

impl Entry {
    pub(crate) fn new(key: Key, attempt: u32) -> Entry {
        // Only steps have one, and there may be thousands of other nodes.
        static NULL: LazyLock<Arc<Json>> = LazyLock::new(Arc::default);
        let (operations, input, left) = (Vec::new(), Arc::clone(&NULL), Bodies::new());
        Entry { key, attempt, operations, container: None, outcome: None, input, left }
    }
}

/// An operation that is started and not settled.
#[derive(Clone, Debug, Serialize, Deserialize)]
pub(crate) struct Open {
    pub(crate) role: Role,
    pub(crate) kind: OperationKind,
}

/// What an operation is for its node.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub(crate) enum Role {
    /// The node itself.
    Main,
    /// Whoever is told the token of a callback.
    Submit,
    /// The time a node may take.
    Timeout,
}

impl Role {
    /// What is added to the node's path. Ids have no dots.
    pub(crate) fn suffix(self) -> &'static str {
        match self {
            Role::Main => "",
            Role::Submit => ".task",
            Role::Timeout => ".timeout",
        }
    }
}

/// What a node came to, before it is marked.
#[derive(Clone, Debug, Serialize, Deserialize)]
pub(crate) enum Outcome {
    /// An output, and where in the journal it is, if an event has it.
    Output {
        value: Arc<Json>,
        at: Option<Index>,
    },
    Failed(Failure),
}

/// A container that is being run.
#[derive(Clone, Debug, Default, Serialize, Deserialize)]
pub(crate) struct Container {
    /// What foreach goes over.
    pub(crate) items: Items,
    /// How many iterations there will be, where that is known.
    pub(crate) total: Option<u32>,
    /// The iteration that begins next.
    pub(crate) next: u32,
    /// No more of them, whatever `total` says.
    pub(crate) is_exhausted: bool,
    pub(crate) active: BTreeMap<u32, Block>,
    /// Whether all iterations have the same nodes.
    pub(crate) repeats: bool,
    /// What is left of those that are over.
    #[serde(default, skip_serializing_if = "BTreeMap::is_empty")]
    pub(crate) left: Bodies,
    pub(crate) completed: u32,
    /// What iterations that are over came to.
    pub(crate) kept: BTreeMap<u32, Kept>,
    /// What the round before left.
    #[serde(with = "present")]
    pub(crate) previous: Vec<Option<Arc<Json>>>,
}

/// A value that is only looked at when its container is over, or by people: as text, so that ten thousand of them are restored as
/// quickly as they are copied.
#[derive(Clone, Debug, Serialize, Deserialize)]
pub(crate) struct Kept(Box<str>);

impl Kept {
    pub(crate) fn new(value: &Json) -> Kept {
        Kept(value.to_string().into_boxed_str())
    }

    pub(crate) fn value(&self) -> Json {
        // It was written here, and no deeper than can be read: an output has a limit far below.
        serde_json::from_str(&self.0).unwrap_or_default()
    }
}

/// Values that may be missing, where null is a value: an output of null is an output.
mod present {
    use std::sync::Arc;

    use serde::{Deserialize, Deserializer, Serialize, Serializer};
    use serde_json::Value as Json;

    type Values = [Option<Arc<Json>>];

    pub(super) fn serialize<S: Serializer>(values: &Values, serializer: S) -> Result<S::Ok, S::Error> {
        let wrapped: Vec<Option<(&Json,)>> =
            values.iter().map(|value| value.as_ref().map(|value| (&**value,))).collect();
        wrapped.serialize(serializer)
    }

    pub(super) fn deserialize<'de, D: Deserializer<'de>>(deserializer: D) -> Result<Vec<Option<Arc<Json>>>, D::Error> {
        let wrapped = Vec::<Option<(Json,)>>::deserialize(deserializer)?;
        Ok(wrapped.into_iter().map(|value| value.map(|(value,)| Arc::new(value))).collect())
    }
}

impl State {
    pub(crate) fn new(flow: Flow, info: RunInfo, input: Arc<Json>, limits: FlowLimits) -> State {
        let top = Block::new(&flow.inner.body, vec![None; flow.inner.body.nodes.len()]);
        let taken = vec![0; flow.inner.loops.len()];
        let saved = Saved { pass: 1, taken, going_back: None, top, messages: Vec::new(), unread: 0 };
        State::restored(flow, info, input, saved, limits)
    }

    pub(crate) fn restored(flow: Flow, info: RunInfo, input: Arc<Json>, saved: Saved, limits: FlowLimits) -> State {
        let starts = Vec::new();
        let (mark, doubt, end) = (None, None, None);
        State { flow, info, limits, input, saved, starts, mark, doubt, is_fresh: false, is_unseen: true, end }
    }

    /// Checks the input, and decides what comes first.
    pub(crate) fn start(&mut self) {
        let misfit = self.flow.inner.input.as_ref().and_then(|schema| schema.misfit("the input", &self.input));
        match misfit {
            Some(failure) => self.end = Some(Err(failure)),
            None => self.advance(None),
        }
    }
}
