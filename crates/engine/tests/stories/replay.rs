//! Code that changed under a run, and other ways of not doing the same twice.
#![expect(clippy::unwrap_used, reason = "a story ends at the first error")]

use std::sync::atomic::{AtomicU32, Ordering};
use std::sync::{Arc, Mutex, mpsc};
use std::thread::JoinHandle;

use futures_util::future::select;
use outlast::testing::Programs;
use outlast::{Ctx, Outlast};
use tokio::sync::oneshot;

use crate::support::{Scene, Tally, kinds, parked, seconds};

/// The code every run here begins with.
async fn before(ctx: Ctx, (): ()) -> outlast::Result<u32> {
    let n = ctx.step("a", async |_| Ok(1)).await?;
    ctx.sleep(seconds(3_600)).await?;
    Ok(n)
}

/// A run begins with [`before`] and is woken with other code. It parks and nothing is appended; with the right code it
/// goes on. Why it parked.
fn deploy(after: impl Fn(Outlast) -> Outlast) -> String {
    Scene::play(async |scene| {
        let engine = scene.engine(|engine| engine.workflow("w", before)).await;
        engine.start("w", &()).id("a").await.unwrap();
        scene.pass(seconds(1)).await;
        assert_eq!(kinds(&engine, "a").await, ["STEP_FINISHED", "TIMER_STARTED"]);
        engine.shutdown().await;

        let engine = scene.engine(&after).await;
        engine.run("a").unwrap().signal("wake", &(), "1").await.unwrap();
        scene.pass(seconds(1)).await;
        let reason = parked(&engine, "a").await;
        assert_eq!(kinds(&engine, "a").await, ["STEP_FINISHED", "TIMER_STARTED"], "nothing is appended");
        engine.shutdown().await;

        let engine = scene.engine(|engine| engine.workflow("w", before)).await;
        assert!(engine.run("a").unwrap().unpark().await.unwrap());
        assert_eq!(engine.run("a").unwrap().result::<u32>().await.unwrap(), 1);
        let expected = ["STEP_FINISHED", "TIMER_STARTED", "TIMER_FIRED", "RUN_FINISHED"];
        assert_eq!(kinds(&engine, "a").await, expected, "nothing happened twice");
        reason
    })
}

fn assert_tells(reason: &str, parts: &[&str]) {
    for part in parts {
        assert!(reason.contains(part), "{part:?} is missing: {reason}");
    }
}

/// The first mismatch: "a fact whose key was not requested". And "while unfed facts remain, no step body starts".
#[test]
fn a_step_under_another_name_parks_the_run_before_its_body_runs() {
    static LINE: AtomicU32 = AtomicU32::new(0);
    let ran = Tally::default();
    let reason = deploy(|engine| {
        let counted = ran.clone();
        engine.workflow("w", move |ctx: Ctx, (): ()| {
            let ran = counted.clone();
            async move {
                LINE.store(line!() + 1, Ordering::SeqCst);
                let n = ctx.step("b", async |_| Ok(ran.add())).await?;
                ctx.sleep(seconds(3_600)).await?;
                Ok::<_, outlast::Error>(n)
            }
        })
    });
    let at = format!("it asks for step \"b\" at crates/engine/tests/stories/replay.rs:{}", LINE.load(Ordering::SeqCst));
    assert_tells(&reason, &["replay mismatch at index 0", "the journal has STEP_FINISHED \"a\"", &at, "unpark"]);
    assert_eq!(ran.count(), 0, "no body runs while facts remain");
}

/// The second mismatch: "a key requested as another kind".
#[test]
fn a_key_that_became_another_kind_of_operation_parks_the_run() {
    static LINE: AtomicU32 = AtomicU32::new(0);
    async fn after(ctx: Ctx, (): ()) -> outlast::Result<u32> {
        LINE.store(line!() + 1, Ordering::SeqCst);
        ctx.sleep(seconds(3_600)).id("a").await?;
        Ok(1)
    }
    let reason = deploy(|engine| engine.workflow("w", after));
    let at =
        format!("the code asks for a sleep at crates/engine/tests/stories/replay.rs:{}", LINE.load(Ordering::SeqCst));
    assert_tells(&reason, &["replay mismatch at index 0", "the journal has STEP_FINISHED \"a\"", &at]);
}

/// The third mismatch: "a recorded start never requested".
#[test]
fn a_sleep_that_is_no_longer_asked_for_parks_the_run() {
    static LINE: AtomicU32 = AtomicU32::new(0);
    async fn after(ctx: Ctx, (): ()) -> outlast::Result<u32> {
        ctx.step("a", async |_| Ok(1)).await?;
        LINE.store(line!() + 1, Ordering::SeqCst);
        ctx.wait_for("go").await
    }
    let reason = deploy(|engine| engine.workflow("w", after));
    let line = LINE.load(Ordering::SeqCst);
    let at = format!("it asks for wait \"__wait-go-0\" at crates/engine/tests/stories/replay.rs:{line}");
    assert_tells(&reason, &["replay mismatch at index 1", "the journal has TIMER_STARTED \"__sleep-0\"", &at]);
}

/// The fourth mismatch: "a finish with facts left".
#[test]
fn code_that_ends_before_its_journal_does_parks_the_run() {
    async fn after(ctx: Ctx, (): ()) -> outlast::Result<u32> {
        ctx.step("a", async |_| Ok(1)).await
    }
    let reason = deploy(|engine| engine.workflow("w", after));
    let told =
        ["replay mismatch at index 1", "the journal has TIMER_STARTED \"__sleep-0\"", "the code has come to its end"];
    assert_tells(&reason, &told);
}

/// "`TIMER_STARTED` records the requested duration, compared on replay."
#[test]
fn a_sleep_of_another_length_parks_the_run() {
    static LINE: AtomicU32 = AtomicU32::new(0);
    async fn after(ctx: Ctx, (): ()) -> outlast::Result<u32> {
        let n = ctx.step("a", async |_| Ok(1)).await?;
        LINE.store(line!() + 1, Ordering::SeqCst);
        ctx.sleep(seconds(7_200)).await?;
        Ok(n)
    }
    let reason = deploy(|engine| engine.workflow("w", after));
    let line = LINE.load(Ordering::SeqCst);
    let at = format!("asks for a sleep (7200000 ms) at crates/engine/tests/stories/replay.rs:{line}");
    assert_tells(&reason, &["replay mismatch at index 1", "TIMER_STARTED \"__sleep-0\" (3600000 ms)", &at]);
}

/// Semantics P9: a conditional pause on randomness "is a determinism error that names the index".
#[test]
fn a_pause_that_depends_on_chance_is_an_error_that_names_the_index() {
    Scene::play_with(Programs::Dropped, async |scene| {
        let coin = Tally::default();
        let tossed = coin.clone();
        let register = |engine: Outlast| {
            engine.workflow("w", move |ctx: Ctx, (): ()| {
                let heads = tossed.add() == 1;
                async move {
                    ctx.step("a", async |_| Ok(1)).await?;
                    if heads {
                        ctx.sleep(seconds(1)).await?;
                    }
                    ctx.wait_for::<u32>("go").await
                }
            })
        };
        let engine = scene.engine(register).await;
        engine.start("w", &()).id("a").await.unwrap();
        scene.pass(seconds(2)).await;
        assert!(coin.count() > 1, "the code ran again");
        let reason = parked(&engine, "a").await;
        assert_tells(&reason, &["replay mismatch at index 1", "TIMER_STARTED \"__sleep-0\"", "\"__wait-go-0\""]);
    });
}

/// A step that the new code adds behind everything recorded is no mismatch.
#[test]
fn code_that_only_adds_to_its_end_goes_on() {
    async fn after(ctx: Ctx, (): ()) -> outlast::Result<u32> {
        let n = before(ctx.clone(), ()).await?;
        ctx.step("new", async |_| Ok(n + 1)).await
    }
    Scene::play(async |scene| {
        let engine = scene.engine(|engine| engine.workflow("w", before)).await;
        engine.start("w", &()).id("a").await.unwrap();
        scene.pass(seconds(1)).await;
        engine.shutdown().await;
        let engine = scene.engine(|engine| engine.workflow("w", after)).await;
        assert_eq!(engine.run("a").unwrap().result::<u32>().await.unwrap(), 2);
    });
}

/// A thread that waits for a word before it wakes the workflow.
#[derive(Clone, Default)]
struct Stranger(Arc<Mutex<Option<Invited>>>);

/// Its ear, and its thread.
type Invited = (mpsc::Sender<()>, JoinHandle<()>);

impl Stranger {
    fn invite(&self) -> oneshot::Receiver<()> {
        let (word, heard) = mpsc::channel::<()>();
        let (sender, receiver) = oneshot::channel();
        #[expect(clippy::disallowed_methods, reason = "a stranger is a thread the engine does not know")]
        let thread = std::thread::spawn(move || {
            let _ = heard.recv();
            let _ = sender.send(());
        });
        self.0.lock().unwrap().get_or_insert((word, thread));
        receiver
    }

    /// Lets it act, and waits until it has.
    fn act(&self) {
        let (word, thread) = self.0.lock().unwrap().take().unwrap();
        word.send(()).unwrap();
        thread.join().unwrap();
    }
}

/// "Any other wake from outside the driver's poll or feed parks the run and says so."
#[test]
fn a_thread_that_wakes_the_workflow_parks_the_run() {
    // A program that was dropped cannot be woken.
    Scene::play_with(Programs::Kept, async |scene| {
        let stranger = Stranger::default();
        let invited = stranger.clone();
        let register = |engine: Outlast| {
            engine.workflow("w", move |ctx: Ctx, (): ()| {
                let channel = invited.invite();
                async move {
                    select(channel, ctx.sleep(seconds(60))).await;
                    Ok::<_, outlast::Error>(())
                }
            })
        };
        let engine = scene.engine(register).await;
        engine.start("w", &()).id("a").await.unwrap();
        scene.pass(seconds(1)).await;
        stranger.act();
        scene.pass(seconds(60)).await;
        let reason = parked(&engine, "a").await;
        assert_tells(&reason, &["woken from outside", "do other waiting inside a step"]);
        assert_eq!(kinds(&engine, "a").await, ["TIMER_STARTED"], "nothing is appended");
    });
}

/// A workflow that waits for something nobody but a stranger could give is told so at once.
#[test]
fn a_workflow_that_waits_for_no_operation_parks() {
    Scene::play(async |scene| {
        async fn stuck(_: Ctx, (): ()) -> outlast::Result<()> {
            std::future::pending().await
        }
        let engine = scene.engine(|engine| engine.workflow("w", stuck)).await;
        engine.start("w", &()).id("a").await.unwrap();
        scene.pass(seconds(1)).await;
        assert_tells(&parked(&engine, "a").await, &["awaits something that is not an operation of its Ctx"]);
    });
}
