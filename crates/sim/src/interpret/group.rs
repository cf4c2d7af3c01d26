//! Several operations at once: groups and batches.

use std::sync::Arc;

use outlast::{BatchItem, Ctx, Map, Parallel, Race2, Race3, Result};

use super::bodies::Product;
use super::errands::performed;
use super::operations::{Open, made, signal};
use super::{Player, done};
use crate::outcome::{Outcome, Settled};
use crate::tree::{Batch, Child, Group, How, Made, Tree, Wait, Work};

impl Player {
    pub(super) async fn group(self, group: Group) -> Result<Outcome> {
        let Group { how, made, members } = group;
        let ledger = Arc::clone(&self.outside.ledger);
        let came = self.members_of(how, made, members).await;
        ledger.part(format!("group {how:?}"));
        ledger.part(format!("group of {made:?}"));
        came
    }

    async fn members_of(self, how: How, made: Made, members: Vec<Tree>) -> Result<Outcome> {
        match made {
            Made::Scopes => {
                let scopes: Vec<_> = self.members(members).collect();
                together(&self.ctx, how, scopes, |outcome| outcome).await
            }
            Made::Started => {
                let handles: Vec<_> = self.members(members).map(outlast::Scope::start).collect();
                together(&self.ctx, how, handles, |outcome| outcome).await
            }
            Made::Sleeps => {
                let sleeps = members.iter().enumerate().filter_map(|(number, member)| match member {
                    Tree::Sleep(ms) => Some(self.part(number).sleep("sleep", *ms)),
                    _ => None,
                });
                together(&self.ctx, how, sleeps.collect(), |()| Outcome::Done).await
            }
            Made::Tasks => {
                let tasks = members.iter().enumerate().filter_map(|(number, member)| match member {
                    Tree::Task(errand) => Some(self.part(number).task(errand)),
                    _ => None,
                });
                together(&self.ctx, how, tasks.collect(), performed).await
            }
            Made::Trio => match <[Tree; 3]>::try_from(members) {
                Ok([Tree::Sleep(ms), Tree::Wait(wait), Tree::Step(work)]) => self.trio(how, ms, &wait, &work).await,
                Ok(_) | Err(_) => Err(misshapen()),
            },
            Made::Family => match <[Tree; 2]>::try_from(members) {
                Ok([Tree::Child(child), Tree::Sleep(ms)]) => self.family(how, child, ms).await,
                Ok(_) | Err(_) => Err(misshapen()),
            },
        }
    }

    fn members(&self, members: Vec<Tree>) -> impl Iterator<Item = outlast::Scope<'static, Outcome>> {
        members.into_iter().enumerate().map(|(number, member)| {
            let part = self.part(number);
            part.scoped("member", part.place.inside("member"), member)
        })
    }

    async fn trio(self, how: How, ms: u64, wait: &Wait, work: &Work) -> Result<Outcome> {
        // Two types of waits make two types of tuples.
        if wait.number {
            let members = (self.part(0).sleep("sleep", ms), self.part(1).number(wait), self.part(2).step("step", work));
            three(&self.ctx, how, members, signal).await
        } else {
            let any = self.part(1).any_signal(wait);
            let members = (self.part(0).sleep("sleep", ms), any, self.part(2).step("step", work));
            three(&self.ctx, how, members, signal).await
        }
    }

    async fn family(self, how: How, child: Child, ms: u64) -> Result<Outcome> {
        let members = (self.part(0).kin(child), self.part(1).sleep("sleep", ms));
        let ctx = &self.ctx;
        match how {
            How::All => ctx.all(members).await.map(|(child, ())| Outcome::All(vec![child, Outcome::Done])),
            How::Any => ctx.any(members).await.map(child_or_nap),
            How::Race => ctx.race(members).await.map(child_or_nap),
            How::AllSettled => {
                let (child, nap) = ctx.all_settled(members).await;
                Ok(Outcome::Settled(vec![Settled::of(child), Settled::of(done(nap))]))
            }
        }
    }
}

fn child_or_nap(won: Race2<Outcome, ()>) -> Outcome {
    match won {
        Race2::First(child) => Outcome::Won(0, Box::new(child)),
        Race2::Second(()) => Outcome::Won(1, Box::new(Outcome::Done)),
    }
}

/// A group of one kind of operations.
async fn together<O: outlast::Operation>(
    ctx: &Ctx,
    how: How,
    members: Vec<O>,
    outcome: impl Fn(O::Value) -> Outcome,
) -> Result<Outcome> {
    match how {
        How::All => Ok(Outcome::All(ctx.all(members).await?.into_iter().map(outcome).collect())),
        How::Any => ctx.any(members).await.map(|(place, value)| Outcome::Won(place, Box::new(outcome(value)))),
        How::Race => ctx.race(members).await.map(|(place, value)| Outcome::Won(place, Box::new(outcome(value)))),
        How::AllSettled => {
            let settled = ctx.all_settled(members).await.into_iter();
            Ok(Outcome::Settled(settled.map(|result| Settled::of(result.map(&outcome))).collect()))
        }
    }
}

/// A sleep, a wait and a step.
async fn three<A, B, C>(
    ctx: &Ctx,
    how: How,
    members: (A, B, C),
    signal: impl Fn(B::Value) -> Outcome,
) -> Result<Outcome>
where
    A: outlast::Operation<Value = ()>,
    B: outlast::Operation,
    C: outlast::Operation<Value = Product>,
{
    let won = |won| match won {
        Race3::First(()) => Outcome::Won(0, Box::new(Outcome::Done)),
        Race3::Second(value) => Outcome::Won(1, Box::new(signal(value))),
        Race3::Third(product) => Outcome::Won(2, Box::new(made(product))),
    };
    match how {
        How::All => {
            let ((), value, product) = ctx.all(members).await?;
            Ok(Outcome::All(vec![Outcome::Done, signal(value), made(product)]))
        }
        How::Any => ctx.any(members).await.map(won),
        How::Race => ctx.race(members).await.map(won),
        How::AllSettled => {
            let (nap, value, product) = ctx.all_settled(members).await;
            let settled = [done(nap), value.map(signal), product.map(made)];
            Ok(Outcome::Settled(settled.into_iter().map(Settled::of).collect()))
        }
    }
}

fn misshapen() -> outlast::Error {
    outlast::Error::new("misshapen", "a group is not made of what it says").permanent()
}

impl Player {
    pub(super) async fn batch(self, batch: Batch) -> Result<Outcome> {
        let outcome = if batch.parallel { self.parallel(batch).await? } else { self.map(batch).await? };
        self.outside.ledger.part(format!("batch {:?}", outcome.reason));
        Ok(batch_outcome(outcome))
    }

    pub(super) fn open_batch(&self, batch: Batch) -> Open {
        Open::Batch(if batch.parallel { self.parallel(batch).start() } else { self.map(batch).start() })
    }

    fn map(&self, batch: Batch) -> Map<'static, Outcome> {
        let player = self.clone();
        let mut map = self.ctx.map(&self.place.name("batch"), batch.branches, async move |ctx, branch, number| {
            player.at(ctx, player.place.branch("batch", number)).play(branch).await
        });
        if let Some(max) = batch.concurrency {
            map = map.max_concurrency(max);
        }
        if let Some(min) = batch.enough {
            map = map.min_successful(min);
        }
        if let Some(max) = batch.tolerated {
            map = map.tolerate_failures(max);
        }
        if let Some(percent) = batch.percent {
            map = map.tolerate_percent(percent);
        }
        map
    }

    fn parallel(&self, batch: Batch) -> Parallel<'static, Outcome> {
        let mut parallel = self.ctx.parallel(&self.place.name("batch"));
        for (number, branch) in batch.branches.into_iter().enumerate() {
            let player = self.clone();
            parallel = parallel
                .branch(async move |ctx| player.at(ctx, player.place.branch("batch", number)).play(branch).await);
        }
        if let Some(max) = batch.concurrency {
            parallel = parallel.max_concurrency(max);
        }
        if let Some(min) = batch.enough {
            parallel = parallel.min_successful(min);
        }
        if let Some(max) = batch.tolerated {
            parallel = parallel.tolerate_failures(max);
        }
        if let Some(percent) = batch.percent {
            parallel = parallel.tolerate_percent(percent);
        }
        parallel
    }
}

pub(super) fn batch_outcome(batch: outlast::Batch<Outcome>) -> Outcome {
    let branches = batch.items.into_iter().map(|item| match item {
        BatchItem::Succeeded(outcome) => Some(Settled::Gave(outcome)),
        BatchItem::Failed(error) => Some(Settled::Failed(error.into_failure())),
        BatchItem::Cancelled => None,
    });
    Outcome::Batch { reason: batch.reason, branches: branches.collect() }
}
