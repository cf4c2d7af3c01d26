//! Killing a workflow's engine at every call it makes.

use std::fmt::Debug;
use std::pin::pin;
use std::sync::Arc;

use futures_util::future::{Either, select};
use outlast_core::limits::Limits;
use outlast_store::MemoryStore;
use outlast_store::faults::{Fault, FaultStore, Plan};

use super::World;
use crate::engine::{Engine, Outlast};

/// What [`crash_everywhere`] did.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Crashes {
    /// How often the engine was killed.
    pub kills: u64,
}

/// Runs a story, then again and again with the engine killed at every call it makes to its store, once just before and
/// once just after the call took effect, with programs kept in memory and without. Another engine takes over, the story's
/// client tries again from its beginning, and every time the story must end in the same way.
///
/// `register` registers the workflows. `client` plays the story: it starts runs (with fixed ids), sends signals (with
/// fixed ids), waits for results, and returns what must always be the same.
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
    let expected = story(&register, &client, None, true);
    assert!(expected.ended.is_some(), "the story must end without any crash first");
    let mut kills = 0;
    for hot in [true, false] {
        for fault in [Fault::NotApplied { in_doubt: false }, Fault::AppliedThenCrash] {
            let mut at = 0;
            loop {
                let told = story(&register, &client, Some(Plan { at, fault }), hot);
                if !told.landed {
                    break;
                }
                kills += 1;
                assert_eq!(
                    told.ended,
                    expected.ended,
                    "the story ends in another way when the engine is killed at call {at} ({}, {fault:?}, programs {})",
                    told.call,
                    if hot { "kept" } else { "not kept" }
                );
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
    hot: bool,
) -> Told<T> {
    let world = World::new();
    let store = Arc::new(MemoryStore::new(world.clock(), Limits::default()));
    let faulty = match plan {
        Some(plan) => FaultStore::new(store.clone(), plan),
        None => FaultStore::counting(store.clone()),
    };
    let faulty = Arc::new(faulty);
    let (builder, group) = world.engine_behind(Arc::clone(&faulty));
    let builder = register(if hot { builder } else { builder.hot_runs(0) });
    let first = world.block_on(async {
        let play = pin!(async {
            let engine = builder.start().await.ok()?;
            client(engine).await
        });
        // A call that fails without being applied is not a crash by itself: here it is.
        let died = pin!(died(&faulty));
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
    world.kill(group);
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
