//! What the outside knows.

use std::collections::BTreeMap;

use outlast::Failure;
use serde_json::Value;

use super::Judge;

/// What the outside knows about a run and its family.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct Facts {
    /// The run's id.
    pub run: String,
    /// What runs were told, by their ids, whether that was acknowledged or not. A run that is a fork of another was told
    /// what that was told.
    pub told: BTreeMap<String, Told>,
    /// Whether nothing went wrong: processes neither stood still nor died, and the store answered. Then a body takes as
    /// long as it takes, no step is in doubt, and nothing times out that should not.
    pub calm: bool,
    /// By how many milliseconds the clocks that a run sees may disagree, latencies included; none if they jump.
    pub slack: Option<u64>,
    /// Whether the run began with a part of another one's journal: then what began together there may not have here.
    pub forked: bool,
    /// Whether the store has SQL.
    pub sql: bool,
    /// What the run's last generation has on record of times, unique ids and random numbers, by key: what its program was
    /// told once it must be told again, however often it starts anew. None if nobody has looked.
    pub recorded: Option<BTreeMap<String, String>>,
    /// How many operations of a run may be pending at once, if only a few.
    pub pending_max: Option<usize>,
}

/// What one run was told.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct Told {
    /// Signals, in the order in which they were sent. The same id counts once.
    pub signals: Vec<Sent>,
    /// Decisions.
    pub decisions: Vec<Decision>,
    /// Answers to callbacks.
    pub answers: Vec<Answer>,
    /// How often it was asked to stop, by whomever: clients, or the end of its parent.
    pub cancels: u32,
    /// Whether it was to be ended without being asked, by whomever.
    pub terminated: bool,
}

/// A signal.
#[derive(Clone, Debug, PartialEq)]
pub struct Sent {
    /// Under which name.
    pub name: String,
    /// With what.
    pub payload: Value,
    /// Its id.
    pub id: String,
    /// The key of the only operation it is for.
    pub aimed: Option<String>,
}

/// A decision.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Decision {
    /// The key of the approval.
    pub key: String,
    /// Yes or no.
    pub approved: bool,
}

/// An answer to a callback.
#[derive(Clone, Debug, PartialEq)]
pub struct Answer {
    /// The key of the callback.
    pub key: String,
    /// The answer, or the error it failed with.
    pub what: Result<Value, Failure>,
}

impl Told {
    fn add(&mut self, other: &Told) {
        self.signals.extend(other.signals.iter().cloned());
        self.decisions.extend(other.decisions.iter().cloned());
        self.answers.extend(other.answers.iter().cloned());
        self.cancels += other.cancels;
        self.terminated |= other.terminated;
    }
}

impl Judge<'_> {
    /// What a run was told; for a run that is not known, whatever anybody else was told.
    pub(super) fn told(&self, run: Option<&str>) -> Told {
        let known = |id: &&String| run.map_or(**id != self.facts.run, |run| run == **id);
        let mut told = Told::default();
        self.facts.told.iter().filter(|(id, _)| known(id)).for_each(|(_, one)| told.add(one));
        let mut ids = std::collections::BTreeSet::new();
        told.signals.retain(|sent| ids.insert(sent.id.clone()));
        told
    }

    /// Whether a wait can have consumed such a signal, which nobody else has. One that was aimed at it comes first:
    /// nobody else could have it.
    pub(super) fn consumes(&mut self, run: Option<&str>, key: &str, name: &str, payload: &Value) -> bool {
        let told = self.told(run);
        let used = self.used.entry(run.unwrap_or_default().to_owned()).or_default();
        let fits =
            |(number, sent): &(usize, &Sent)| !used.contains(number) && sent.name == name && sent.payload == *payload;
        let all = || told.signals.iter().enumerate();
        let aimed = all().filter(fits).find(|(_, sent)| sent.aimed.as_deref() == Some(key));
        let found = aimed.or_else(|| all().filter(fits).find(|(_, sent)| sent.aimed.is_none()));
        let number = found.map(|(number, _)| number);
        number.is_some_and(|number| used.insert(number))
    }
}
