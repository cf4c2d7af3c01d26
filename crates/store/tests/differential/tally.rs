//! What the sequences reached: sequences in which nothing succeeds, or nothing is refused, would prove nothing.

use std::collections::BTreeMap;
use std::sync::Mutex;

use outlast_store::{CommitError, Created, Fired};

use crate::call::{Call, Reply};

/// Every answer that must occur, each many times over.
const SOMETIMES: [&str; 65] = [
    "LeaseLapsed",
    "Created",
    "Existing",
    "Joined",
    "Admitted",
    "Exists",
    "UnknownNamespace",
    "Deleted",
    "Live",
    "NotFound",
    "Limit",
    "Claimed",
    "Committed",
    "Committed:Suspend",
    "Committed:Pause",
    "Committed:Park",
    "Committed:Finish",
    "Committed:ContinueAsNew",
    "Committed:consumed",
    "Committed:timer",
    "Committed:fired",
    "Committed:wait",
    "Committed:closed",
    "Committed:task",
    "Committed:child",
    "Committed:delivery",
    "Committed:snapshot",
    "Conflict",
    "CommitFenced",
    "SkipsAhead",
    "Answered",
    "Unanswered",
    "WaitGone",
    "WaitExists",
    "TimerNotDue",
    "TimerGone",
    "InboxGone",
    "ChildExists",
    "ForeignNamespace",
    "Delivered",
    "Buffered",
    "Duplicate",
    "Lost",
    "DeliveryNotFound",
    "Task",
    "Extended",
    "TaskFenced",
    "TaskShown",
    "TaskRetried",
    "TaskDiscarded",
    "TaskNotDead",
    "TimersFired",
    "Fired",
    "Stale",
    "Fenced",
    "New",
    "Restored",
    "Unchanged",
    "DefinitionExists",
    "DefinitionNeeded",
    "DefinitionCurrent",
    "DefinitionForgotten",
    "ParkedUnserved",
    "Taken",
    "Unread",
];

/// How often each answer occurred.
#[derive(Debug, Default)]
pub(crate) struct Tally(Mutex<BTreeMap<String, u64>>);

impl Tally {
    pub(crate) fn count(&self, call: &Call, reply: &Reply) {
        let mut counts = self.0.lock().unwrap();
        for name in names(call, reply) {
            *counts.entry(name).or_default() += 1;
        }
    }

    /// Fails if something never happened.
    pub(crate) fn check(&self) {
        let counts = self.0.lock().unwrap();
        let missing: Vec<&str> = SOMETIMES.into_iter().filter(|name| !counts.contains_key(*name)).collect();
        assert!(missing.is_empty(), "the sequences never reached {missing:?}: {counts:#?}");
    }
}

/// The variant's name, as it is printed.
fn variant(value: &impl std::fmt::Debug) -> String {
    format!("{value:?}").chars().take_while(|letter| letter.is_alphanumeric()).collect()
}

fn names(call: &Call, reply: &Reply) -> Vec<String> {
    let error = |error: &outlast_store::StoreError| variant(error);
    match (call, reply) {
        (Call::Commit(commits), Reply::Committed(answers)) => {
            commits.iter().zip(answers).flat_map(|(commit, answer)| committed(commit, answer)).collect()
        }
        (_, Reply::Created(answers)) => answers
            .iter()
            .map(|answer| match answer {
                Ok(Created::Created { .. }) => "Created".to_owned(),
                Ok(Created::Existing { .. }) => "Existing".to_owned(),
                Ok(Created::Joined { .. }) => "Joined".to_owned(),
                Err(refused) => error(refused),
            })
            .collect(),
        (_, Reply::Claimed(Ok(claimed))) => claimed.iter().map(|_| "Claimed".to_owned()).collect(),
        (Call::RetryTask(..), Reply::Done(Ok(()))) => vec!["TaskRetried".to_owned()],
        (Call::DiscardTask(..), Reply::Done(Ok(()))) => vec!["TaskDiscarded".to_owned()],
        (_, Reply::Task(Ok(_))) => vec!["TaskShown".to_owned()],
        (_, Reply::Claimed(Err(refused)) | Reply::Lease(Err(refused)) | Reply::Done(Err(refused))) => {
            vec![error(refused)]
        }
        (_, Reply::Taken(answers)) => answers
            .iter()
            .map(|answer| match answer {
                Ok(true) => "Taken".to_owned(),
                Ok(false) => "Unread".to_owned(),
                Err(refused) => error(refused),
            })
            .collect(),
        (_, Reply::Defined(answers)) => {
            answers.iter().map(|answer| answer.as_ref().map_or_else(error, variant)).collect()
        }
        (Call::ForgetDefinition(..), Reply::Whether(Ok(true))) => vec!["DefinitionForgotten".to_owned()],
        (Call::ForgetDefinition(..), Reply::Whether(Err(refused))) => vec![error(refused)],
        (_, Reply::AllDone(answers)) => answers.iter().filter_map(|answer| answer.as_ref().err().map(error)).collect(),
        (_, Reply::Delivered(answers)) => answers
            .iter()
            .map(|answer| match answer {
                Ok(outlast_store::Delivered::NotFound) => "DeliveryNotFound".to_owned(),
                Ok(delivered) => variant(delivered),
                Err(refused) => error(refused),
            })
            .collect(),
        (Call::ParkUnserved(..), Reply::Keys(Ok(parked))) => {
            parked.iter().map(|_| "ParkedUnserved".to_owned()).collect()
        }
        (_, Reply::Tasks(Ok(tasks))) => tasks.iter().map(|_| "Task".to_owned()).collect(),
        (_, Reply::Extended(Ok(_))) => vec!["Extended".to_owned()],
        (_, Reply::Extended(Err(refused)) | Reply::View(Err(refused))) => vec![error(refused)],
        (_, Reply::Admitted(Ok(answer))) if answer.admitted > 0 => vec!["Admitted".to_owned()],
        (_, Reply::Swept(Ok(swept))) if swept.fired > 0 => vec!["TimersFired".to_owned()],
        (_, Reply::Fired(Ok(fired))) => vec![match fired {
            Fired::Fired { .. } => "Fired".to_owned(),
            Fired::Stale => "Stale".to_owned(),
            Fired::Early => "Early".to_owned(),
        }],
        _ => Vec::new(),
    }
}

fn committed(
    commit: &outlast_core::commit::Commit,
    answer: &Result<outlast_store::Committed, CommitError>,
) -> Vec<String> {
    match answer {
        Ok(_) => {
            let parts = [
                ("consumed", !commit.consumed.is_empty()),
                ("timer", !commit.timers.is_empty()),
                ("fired", !commit.timers_fired.is_empty()),
                ("wait", !commit.waits.is_empty()),
                ("closed", !commit.waits_closed.is_empty()),
                ("task", !commit.tasks.is_empty()),
                ("child", !commit.children.is_empty()),
                ("delivery", !commit.deliveries.is_empty()),
                ("snapshot", commit.snapshot.is_some()),
            ];
            let parts = parts.into_iter().filter(|(_, there)| *there).map(|(part, _)| format!("Committed:{part}"));
            parts.chain(["Committed".to_owned(), format!("Committed:{}", variant(&commit.then))]).collect()
        }
        Err(CommitError::Rejected(rejection)) => vec![variant(rejection)],
        Err(CommitError::NotApplied(refused)) => vec![variant(refused)],
        Err(CommitError::Fenced { .. }) => vec!["CommitFenced".to_owned()],
        Err(other) => vec![variant(other)],
    }
}
