//! Feeding a program what is recorded, and nothing else.

use std::collections::{BTreeMap, BTreeSet};

use bytes::Bytes;
use outlast_core::event::{Class, Event};
use outlast_core::id::{Index, Key};
use outlast_core::operation::{Location, Operation, OperationKind, Requested};

use super::super::end::Outcome;
use super::super::mismatch::{self, Mismatch};
use super::{Fed, Run, Stop};
use crate::drive::OperationInfo;

/// Where a program stands when everything recorded was fed.
#[derive(Debug)]
pub(crate) enum Stands {
    /// It waits, or would do something new.
    Within(Vec<OperationInfo>),
    /// It has come to its end.
    Ended,
}

impl Run {
    /// Feeds the program everything that is recorded. No body runs, and nothing is appended or asked of anybody.
    ///
    /// `end` is the event that ended the journal, if one did: it is no fact for the program, which must come to it by
    /// itself. `outputs` says whether what a run returned must be the same.
    pub(crate) fn replay(&mut self, end: Option<&Event>, outputs: bool) -> Result<Stands, Stop> {
        self.started = true;
        if self.loaded == Index(0) && matches!(end, Some(Event::RunCancelled { .. })) {
            // It was cancelled before it was admitted: its program never began.
            return Ok(Stands::Ended);
        }
        let mut came_to = self.tell(&Fed::Start)?;
        while came_to.is_none() {
            let Some(index) = self.next_fact()? else { break };
            came_to = self.tell(&Fed::Fact(index))?;
        }
        let Some(outcome) = came_to else { return self.stands_within(end) };
        self.pass_the_rest()?;
        if let Some(end) = end {
            self.compare_end(end, outcome, outputs)?;
        }
        Ok(Stands::Ended)
    }

    /// Has a replay remember where operations are asked for.
    pub(crate) fn note_locations(&mut self) {
        self.locations = Some(BTreeMap::new());
    }

    /// Where every operation was asked for that the program asked for in a replay.
    pub(crate) fn into_locations(self) -> BTreeMap<Key, Location> {
        self.locations.unwrap_or_default()
    }

    /// Behind the last fact there may be what the program asked for on the way to its end, with what came of it at once (a
    /// child that was refused, a sleep of no time), and answers that had been promised to count. And nothing else.
    pub(super) fn pass_the_rest(&mut self) -> Result<(), Stop> {
        let mut begun = BTreeSet::new();
        while self.fed < self.loaded {
            let index = self.fed;
            self.fed = index.next();
            let event = self.journal.get(index);
            let key = event.and_then(Event::key).cloned();
            if event.is_some_and(|event| event.class() == Class::Coordination) {
                begun.extend(key.clone());
            }
            let answer = event.is_some_and(is_answer);
            let expected = match self.pass(index) {
                Ok(fact) => !fact || answer || key.is_some_and(|key| begun.contains(&key)),
                Err(_) => false,
            };
            if !expected {
                return Err(Stop::Mismatch(self.mismatch_at(index, mismatch::Requested::End)));
            }
        }
        Ok(())
    }

    /// The program goes on. That is as it should be, unless its end is recorded.
    fn stands_within(&self, end: Option<&Event>) -> Result<Stands, Stop> {
        match end {
            // Whoever ended it did not ask the program.
            None | Some(Event::RunTerminated { .. }) => Ok(Stands::Within(self.wanted())),
            Some(end) => {
                Err(self.other_end(end, mismatch::Requested::Nothing { instead: self.instead_of(self.loaded) }))
            }
        }
    }

    /// The operations that the program has not taken back: of a step that never came to anything nothing is recorded.
    fn wanted(&self) -> Vec<OperationInfo> {
        let is_it =
            |requested: &Requested, of: &Key| matches!(&requested.operation, Operation::Cancel { key } if key == of);
        let taken_back = |of: &Key| self.held.iter().any(|requested| is_it(requested, of));
        self.operations().into_iter().filter(|operation| !taken_back(&operation.key)).collect()
    }

    /// The program came to its end: to the one that is recorded?
    fn compare_end(&mut self, end: &Event, outcome: Outcome, outputs: bool) -> Result<(), Stop> {
        if matches!(end, Event::RunTerminated { .. }) {
            return Ok(());
        }
        // A value asked for, or a child started, on the way to the end would have been recorded.
        let held = std::mem::take(&mut self.held);
        let new: Vec<_> = held.iter().filter_map(started).collect();
        if !new.is_empty() {
            return Err(self.other_end(end, mismatch::Requested::Nothing { instead: new }));
        }
        for requested in held {
            if let Operation::ContinueAsNew { input, version } = requested.operation {
                self.next_generation = Some((input, version));
            }
        }
        let outcome = self.outcome_of(outcome);
        let difference = difference(end, &outcome, outputs);
        difference.map_or(Ok(()), |(recorded, requested)| {
            let mut mismatch = self.end_mismatch(end, requested);
            mismatch.recorded.detail = recorded;
            Err(Stop::Mismatch(mismatch))
        })
    }

    fn other_end(&self, end: &Event, requested: mismatch::Requested) -> Stop {
        Stop::Mismatch(self.end_mismatch(end, requested))
    }

    /// The recorded end stands behind everything that was loaded.
    fn end_mismatch(&self, end: &Event, requested: mismatch::Requested) -> Mismatch {
        let recorded = mismatch::Recorded { kind: end.kind(), key: None, detail: None };
        Mismatch { index: self.loaded, recorded, requested }
    }
}

/// Whether the event records what somebody was told that it counts.
fn is_answer(event: &Event) -> bool {
    matches!(
        event,
        Event::ApprovalResolved { .. }
            | Event::CallbackResolved { .. }
            | Event::CallbackFailed { .. }
            | Event::SignalResolved { .. }
            | Event::SignalRejected { .. }
    )
}

/// What a request starts, where, and under which key.
fn started(requested: &Requested) -> Option<(OperationKind, Key, Option<Location>)> {
    let (kind, key) = (requested.operation.starts()?, requested.operation.key()?);
    Some((kind, key.clone(), requested.location.clone()))
}

/// How the end that the code came to differs from the recorded one; none if it is the same.
fn difference(end: &Event, outcome: &Outcome, outputs: bool) -> Option<(Option<String>, mismatch::Requested)> {
    let (was, is) = match (end, outcome) {
        (Event::RunFinished { output: was }, Outcome::Finished(is)) => (text(was), text(is)),
        (Event::RunContinued { input: was, .. }, Outcome::Continued { input: is, .. }) => (text(was), text(is)),
        // The text of an error may be mended; what programs branch on may not.
        (Event::RunErrored { error: was }, Outcome::Failed(is)) => {
            let differ = was.code != is.code;
            return differ.then(|| (Some(was.code.clone()), other_end(outcome, Some(is.code.clone()))));
        }
        (Event::RunCancelled { .. }, Outcome::Cancelled { .. }) => return None,
        (_, _) => return Some((None, other_end(outcome, None))),
    };
    (outputs && was != is).then(|| (Some(was), other_end(outcome, Some(is))))
}

fn other_end(outcome: &Outcome, detail: Option<String>) -> mismatch::Requested {
    mismatch::Requested::OtherEnd { kind: outcome.event_kind(), detail }
}

/// JSON text without its spaces; any other text as it is.
fn text(json: &Bytes) -> String {
    let value: Result<serde_json::Value, _> = serde_json::from_slice(json);
    value.map_or_else(|_| String::from_utf8_lossy(json).into_owned(), |value| value.to_string())
}
