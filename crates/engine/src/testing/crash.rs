//! Killing a workflow's engine at every call it makes.

use std::fmt::Debug;
use std::pin::pin;
use std::sync::Arc;

use futures_util::future::{Either, select};
use outlast_core::limits::Limits;
use outlast_store::MemoryStore;
use outlast_store::faults::{Fault, FaultStore, Plan};

use super::{Programs, World};
use crate::engine::{Engine, Outlast};

/// What [`crash_everywhere`] did.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Crashes {
    /// How often the engine was killed.
    pub kills: u64,
}

/// Runs a story, then again and again with the engine killed at every call it makes to its store, once just before and
/// once just after the call took effect; with programs kept in memory, without, and with some evicted at random. Another
/// engine takes over, the story's client tries again from its beginning, and every time the story must end in the same
/// way.
///
/// `register` registers the workflows. `client` plays the story: it starts runs (with fixed ids), sends signals (with
/// fixed ids, or as a [`super::Script`]), waits for results, and returns what must always be the same.
///
/// ```
/// use outlast::testing::crash_everywhere;
/// use outlast::{Ctx, Engine};
///
/// async fn double(ctx: Ctx, n: u32) -> outlast::Result<u32> {
///     ctx.step("double", async |_| Ok(n * 2)).await
/// }
///
/// let crashes = crash_everywhere(
///     |engine| engine.workflow("double", double),
///     async |engine: Engine| {
///         let run = engine.start("double", &21).id("a").await.ok()?;
///         run.result::<u32>().await.ok()
///     },
/// );
/// assert!(crashes.kills > 5);
/// ```
///
/// # Panics
///
/// If the story ends in another way after a crash; the message names the call.
pub fn crash_everywhere<T: PartialEq + Debug>(
    register: impl Fn(Outlast) -> Outlast,
    client: impl AsyncFn(Engine) -> Option<T>,
) -> Crashes {
    crash_everywhere_or(register, client, |_| false)
}

/// Like [`crash_everywhere`], for stories that may end in several ways: a crash takes time, and so may change who wins a
/// race. After a crash the story must end as it did without one, or in a way that `accept` accepts.
///
/// ```
/// use std::time::Duration;
/// use outlast::testing::crash_everywhere_or;
/// use outlast::{Ctx, Engine};
///
/// /// Whether a minute took a minute.
/// async fn punctual(ctx: Ctx, _: ()) -> outlast::Result<bool> {
///     let begun = ctx.now().await?;
///     ctx.sleep(Duration::from_secs(60)).await?;
///     Ok(ctx.now().await? == begun + Duration::from_secs(60))
/// }
///
/// crash_everywhere_or(
///     |engine| engine.workflow("punctual", punctual),
///     async |engine: Engine| engine.start("punctual", &()).id("a").await.ok()?.result::<bool>().await.ok(),
///     // Whoever takes over may come later.
///     |on_time| !on_time,
/// );
/// ```
///
/// # Panics
///
/// If the story ends in a way that is neither.
pub fn crash_everywhere_or<T: PartialEq + Debug>(
    register: impl Fn(Outlast) -> Outlast,
    client: impl AsyncFn(Engine) -> Option<T>,
    accept: impl Fn(&T) -> bool,
) -> Crashes {
    let expected = story(&register, &client, None, Programs::Kept);
    assert!(expected.ended.is_some(), "the story must end without any crash first");
    let mut kills = 0;
    let ways: [fn(u64) -> Programs; 3] =
        [|_| Programs::Kept, |_| Programs::Dropped, |at| Programs::Evicted { seed: at }];
    for programs in ways {
        for fault in [Fault::NotApplied { in_doubt: false }, Fault::AppliedThenCrash] {
            let mut at = 0;
            loop {
                let told = story(&register, &client, Some(Plan { at, fault }), programs(at));
                let accepted = told.ended == expected.ended || told.ended.as_ref().is_some_and(&accept);
                assert!(
                    accepted,
                    "the story ends in another way when the engine is killed at call {at} ({}, {fault:?}, programs {:?})\n\
                     without a crash: {:?}\n    with this one: {:?}",
                    told.call,
                    programs(at),
                    expected.ended,
                    told.ended,
                );
                if !told.landed {
                    break;
                }
                kills += 1;
                at += 1;
            }
        }
    }
    Crashes { kills }
}

struct Told<T> {
    ended: Option<T>,
    landed: bool,
    call: &'static str,
}

/// Plays the story once. With a plan, the first engine dies at that call, and a second one takes over.
fn story<T>(
    register: &impl Fn(Outlast) -> Outlast,
    client: &impl AsyncFn(Engine) -> Option<T>,
    plan: Option<Plan>,
    programs: Programs,
) -> Told<T> {
    let world = World::new().programs(programs);
    let store = Arc::new(MemoryStore::new(world.clock(), Limits::default()));
    let faulty = match plan {
        Some(plan) => FaultStore::new(store.clone(), plan),
        None => FaultStore::counting(store.clone()),
    };
    let process = world.process_behind(faulty);
    let faulty = process.faults();
    let builder = register(process.engine());
    let first = world.block_on(async {
        let play = pin!(async {
            let engine = builder.start().await.ok()?;
            client(engine).await
        });
        // A call that fails without being applied is not a crash by itself: here it is.
        let died = pin!(died(faulty));
        match select(play, died).await {
            Either::Left((ended, _)) => ended,
            Either::Right(_) => None,
        }
    });
    let landed = faulty.landed() > 0;
    let call = plan.and_then(|plan| faulty.log().get(usize::try_from(plan.at).ok()?).copied()).unwrap_or("none");
    if !landed {
        return Told { ended: first, landed, call };
    }
    process.crash();
    let second = register(world.engine_on(store));
    let ended = world.block_on(async {
        let engine = second.start().await.ok()?;
        client(engine).await
    });
    Told { ended, landed, call }
}

/// Completes when the planned fault has happened.
async fn died(store: &FaultStore) {
    std::future::poll_fn(|context| {
        if store.landed() > 0 {
            return std::task::Poll::Ready(());
        }
        store.notify(context.waker());
        std::task::Poll::Pending
    })
    .await;
}
