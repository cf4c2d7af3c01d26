//! Taking turns: whoever claims gets the highest priority first, and within a priority one piece of work of each namespace after the
//! other, so that none waits for the backlog of another.
//!
//! A claim begins behind the namespace that was served last, so that small claims are fair too. Namespaces come in the order of
//! their numbers, which is the order in which they were made.

use std::collections::BTreeMap;

use outlast_core::id::{Namespace, QueueName, TaskName};

use crate::api::ClaimTasks;

/// What is claimed together, and therefore takes turns together.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub(crate) enum Round {
    /// Runs of this priority.
    Runs(i16),
    /// Tasks of this priority, as one kind of claim asks for them. Each has turns of its own: a namespace that has work for one
    /// kind only must not always be the one whose turn it was.
    Tasks(Option<Namespace>, Vec<QueueName>, Vec<TaskName>, i16),
}

impl Round {
    pub(crate) fn of(claim: &ClaimTasks, priority: i16) -> Round {
        Round::Tasks(claim.namespace.clone(), claim.queues.clone(), claim.names.clone(), priority)
    }
}

/// Rounds that are remembered. More are in use only if somebody makes up priorities; then it begins anew.
const ROUNDS_MAX: usize = 4_096;

/// Which namespace was served last.
#[derive(Debug, Default)]
pub(crate) struct Turns(BTreeMap<Round, i64>);

impl Turns {
    pub(crate) fn last(&self, round: &Round) -> Option<i64> {
        self.0.get(round).copied()
    }

    /// Takes note of whose turn it was.
    pub(crate) fn served(&mut self, round: Round, namespace: i64) {
        if self.0.len() >= ROUNDS_MAX && !self.0.contains_key(&round) {
            self.0.clear();
        }
        self.0.insert(round, namespace);
    }
}

/// One priority's work, dealt out one by one.
///
/// It is read from the store in a few steps, never more than can be used: whoever has locked work that it does not take keeps it
/// from others.
#[derive(Debug)]
pub(crate) struct Deal<T> {
    limit: usize,
    /// In the order of their turns. The first ones are read, the others not yet.
    namespaces: Vec<i64>,
    read: Vec<Hand<T>>,
}

#[derive(Debug)]
struct Hand<T> {
    items: Vec<T>,
    /// How many were asked for.
    asked: usize,
}

impl<T> Hand<T> {
    fn is_dry(&self) -> bool {
        self.items.len() < self.asked
    }
}

/// What to read next: the first so many of each of these namespaces, by their place in the deal.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct Ask {
    pub(crate) namespaces: Vec<(usize, i64)>,
    pub(crate) each: usize,
}

impl<T> Deal<T> {
    /// A deal among those that have work.
    pub(crate) fn new(limit: usize, mut namespaces: Vec<i64>, last: Option<i64>) -> Self {
        namespaces.sort_unstable_by_key(|number| (last.is_some_and(|last| *number <= last), *number));
        namespaces.dedup();
        Deal { limit, namespaces, read: Vec::new() }
    }

    fn room(&self) -> usize {
        self.limit.saturating_sub(self.read.iter().map(|hand| hand.items.len()).sum())
    }

    /// What to read next; none when it is done.
    pub(crate) fn next(&self) -> Option<Ask> {
        let room = self.room();
        let unread = self.namespaces.len() - self.read.len();
        if room == 0 {
            return None;
        }
        let Some(share) = room.checked_div(unread) else { return self.next_round(room) };
        // More namespaces than there was room for were left unread, and some of those that were read had nothing that is wanted.
        let each = self.read.first().map_or(share.max(1), |hand| hand.asked);
        Some(self.ask(self.read.len(), (room / each).min(unread), each))
    }

    /// Those that have more get another round, or as many of them as there is room for.
    fn next_round(&self, room: usize) -> Option<Ask> {
        let wet = || self.read.iter().enumerate().filter(|(_, hand)| !hand.is_dry());
        let least = wet().map(|(_, hand)| hand.asked).min()?;
        let behind: Vec<usize> = wet().filter(|(_, hand)| hand.asked == least).map(|(at, _)| at).collect();
        let rounds = if behind.len() == wet().count() { (room / behind.len()).max(1) } else { 1 };
        let namespaces = behind.into_iter().take(room).filter_map(|at| Some((at, *self.namespaces.get(at)?)));
        Some(Ask { namespaces: namespaces.collect(), each: least + rounds })
    }

    fn ask(&self, from: usize, count: usize, each: usize) -> Ask {
        let namespaces = self.namespaces.iter().copied().enumerate().skip(from).take(count.max(1));
        Ask { namespaces: namespaces.collect(), each }
    }

    /// Puts in what was read: for each namespace of the question, the first ones in their order.
    pub(crate) fn put(&mut self, ask: &Ask, mut items: impl FnMut(i64) -> Vec<T>) {
        for (at, namespace) in &ask.namespaces {
            let mut items = items(*namespace);
            items.truncate(ask.each);
            let hand = Hand { items, asked: ask.each };
            match self.read.get_mut(*at) {
                Some(old) => *old = hand,
                None => self.read.push(hand),
            }
        }
    }

    /// One of each namespace after the other, with its number.
    pub(crate) fn dealt(self) -> Vec<(i64, T)> {
        let mut hands: Vec<_> =
            self.namespaces.into_iter().zip(self.read).map(|(number, hand)| (number, hand.items.into_iter())).collect();
        let mut dealt = Vec::new();
        loop {
            let before = dealt.len();
            for (number, items) in &mut hands {
                dealt.extend(items.next().map(|item| (*number, item)));
            }
            if dealt.len() == before {
                dealt.truncate(self.limit);
                return dealt;
            }
        }
    }
}

/// Ready work, as a store that answers at once has it.
pub(crate) trait Ready {
    type Item;
    type Fault;

    /// The highest priority with anything ready, below this one if one is given.
    fn priority(&mut self, below: Option<i16>) -> Result<Option<i16>, Self::Fault>;
    /// The namespaces that have something ready of this priority.
    fn namespaces(&mut self, priority: i16) -> Result<Vec<i64>, Self::Fault>;
    /// The first ones of a namespace that are wanted.
    fn first(&mut self, priority: i16, namespace: i64, count: usize) -> Result<Vec<Self::Item>, Self::Fault>;
}

/// Takes at most `limit`, and takes note of whose turn it was.
pub(crate) fn take<R: Ready>(
    ready: &mut R,
    turns: &mut Turns,
    round: impl Fn(i16) -> Round,
    limit: usize,
) -> Result<Vec<R::Item>, R::Fault> {
    let mut taken = Vec::new();
    let mut below = None;
    while taken.len() < limit {
        let Some(priority) = ready.priority(below)? else { break };
        below = Some(priority);
        let round = round(priority);
        let mut deal = Deal::new(limit - taken.len(), ready.namespaces(priority)?, turns.last(&round));
        while let Some(ask) = deal.next() {
            let mut read = BTreeMap::new();
            for (_, namespace) in &ask.namespaces {
                read.insert(*namespace, ready.first(priority, *namespace, ask.each)?);
            }
            deal.put(&ask, |namespace| read.remove(&namespace).unwrap_or_default());
        }
        let dealt = deal.dealt();
        if let Some((namespace, _)) = dealt.last() {
            turns.served(round, *namespace);
        }
        taken.extend(dealt.into_iter().map(|(_, item)| item));
    }
    Ok(taken)
}

#[cfg(test)]
mod tests;
