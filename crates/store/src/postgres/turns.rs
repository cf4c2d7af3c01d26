//! Taking turns (see [`crate::logic::turns`]) where reading what is ready means locking it, a round trip at a time.

use std::collections::BTreeMap;
use std::sync::PoisonError;

use super::Core;
use super::failure::Failure;
use super::session::Session;
use crate::logic::turns::{Ask, Deal, Round};

/// What was read for a question, by namespace.
pub(super) type Read<T> = BTreeMap<i64, Vec<T>>;

/// Ready work that can be locked.
pub(super) trait Ready: Send {
    type Item: Send;

    /// Locks the first ones of each namespace that nobody else holds.
    fn lock(
        &mut self,
        session: &mut Session,
        level: i32,
        ask: &Ask,
    ) -> impl Future<Output = Result<Read<Self::Item>, Failure>> + Send;
}

/// The namespaces with ready work, by level: the priority, negated, so that the highest comes first.
pub(super) type Levels = BTreeMap<i32, Vec<i64>>;

/// Takes at most `limit`, and takes note of whose turn it was.
pub(super) async fn take<R: Ready>(
    core: &Core,
    session: &mut Session,
    ready: &mut R,
    levels: Levels,
    round: impl Fn(i16) -> Round + Send,
    limit: usize,
) -> Result<Vec<R::Item>, Failure> {
    let mut taken = Vec::new();
    for (level, namespaces) in levels {
        if taken.len() >= limit {
            break;
        }
        let round = round(priority(level));
        let last = core.turns.lock().unwrap_or_else(PoisonError::into_inner).last(&round);
        let mut deal = Deal::new(limit - taken.len(), namespaces, last);
        while let Some(ask) = deal.next() {
            let mut read = ready.lock(session, level, &ask).await?;
            deal.put(&ask, |namespace| read.remove(&namespace).unwrap_or_default());
        }
        let dealt = deal.dealt();
        if let Some((namespace, _)) = dealt.last() {
            core.turns.lock().unwrap_or_else(PoisonError::into_inner).served(round, *namespace);
        }
        taken.extend(dealt.into_iter().map(|(_, item)| item));
    }
    Ok(taken)
}

/// The priority of a level.
fn priority(level: i32) -> i16 {
    i16::try_from(level.saturating_neg()).unwrap_or(i16::MIN)
}

/// Numbers of namespaces as a statement takes them.
pub(super) fn numbers(ask: &Ask) -> Vec<i32> {
    ask.namespaces.iter().filter_map(|(_, namespace)| i32::try_from(*namespace).ok()).collect()
}
