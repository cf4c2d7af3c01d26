//! Start keys: idempotency windows, singletons, debounces.

use super::*;

/// Takes so many seconds, and when it is asked to stop, thirty more to tidy up.
async fn tidy(ctx: Ctx, length: u64) -> outlast::Result<u64> {
    let Err(error) = ctx.sleep(seconds(length)).await else { return Ok(length) };
    ctx.sleep(seconds(30)).await?;
    Err(error)
}

fn register(engine: Outlast) -> Outlast {
    engine.workflow("tidy", tidy)
}

#[test]
fn a_start_within_the_idempotency_window_is_the_same_start() {
    tell(register, async |world, engine| {
        let start = || engine.start("tidy", &5).idempotency("order-7", seconds(3_600));
        let first = start().await.unwrap();
        assert!(first.is_new());
        let again = start().await.unwrap();
        assert!(!again.is_new());
        assert_eq!(again.id(), first.id());
        let id = first.id().clone();
        assert_eq!(first.result::<u64>().await.unwrap(), 5);
        assert_eq!(start().await.unwrap().id(), &id, "also when it has ended");
        let error = engine.start("tidy", &6).idempotency("order-7", seconds(3_600)).await.err().unwrap();
        assert_eq!(error.code(), "run_exists");
        world.sleep(seconds(3_600)).await;
        let later = start().await.unwrap();
        assert!(later.is_new() && *later.id() != id);
        later.result::<u64>().await.unwrap();
    });
}

#[test]
fn a_singleton_is_started_once_while_it_lives() {
    tell(register, async |_, engine| {
        let first = engine.start("tidy", &5).singleton("nightly").await.unwrap();
        let second = engine.start("tidy", &6).singleton("nightly").await.unwrap();
        assert!(first.is_new() && !second.is_new());
        assert_eq!(second.result::<u64>().await.unwrap(), 5, "the one that lives answers");
        let third = engine.start("tidy", &7).singleton("nightly").await.unwrap();
        assert_eq!(third.result::<u64>().await.unwrap(), 7);
        first.result::<u64>().await.unwrap();
    });
}

#[test]
fn a_singleton_that_replaces_begins_when_the_one_before_has_tidied_up() {
    tell(register, async |world, engine| {
        let first = engine.start("tidy", &1_000).id("a").singleton_replacing("k").await.unwrap();
        world.sleep(seconds(10)).await;
        let second = engine.start("tidy", &1_000).id("b").singleton_replacing("k").await.unwrap();
        world.sleep(seconds(10)).await;
        let why = second.explain().await.unwrap().to_string();
        assert!(why.contains("it takes the place of another run under \"k\", which has not ended"), "{why}");
        let third = engine.start("tidy", &5).id("c").singleton_replacing("k").await.unwrap();
        let error = second.result::<u64>().await.unwrap_err();
        assert_eq!(error.to_string(), "the run was cancelled: the run c takes its place");
        assert_eq!(world.elapsed(), seconds(20), "it had not begun");
        assert!(first.result::<u64>().await.unwrap_err().to_string().contains("the run b takes its place"));
        assert_eq!(world.elapsed(), seconds(40), "it tidied up");
        assert_eq!(third.result::<u64>().await.unwrap(), 5);
        assert_eq!(world.elapsed(), seconds(45));
    });
}

#[test]
fn a_singleton_that_replaces_a_plain_one_waits_for_its_end_too() {
    tell(register, async |world, engine| {
        let first = engine.start("tidy", &1_000).id("a").singleton("k").await.unwrap();
        world.sleep(seconds(10)).await;
        let second = engine.start("tidy", &5).id("b").singleton_replacing("k").await.unwrap();
        let third = engine.start("tidy", &1_000).singleton("k").await.unwrap();
        assert_eq!(third.id(), second.id(), "the one that is to come answers");
        assert!(first.result::<u64>().await.unwrap_err().to_string().contains("the run b takes its place"));
        assert_eq!(world.elapsed(), seconds(40), "it tidied up");
        assert_eq!(second.result::<u64>().await.unwrap(), 5);
        assert_eq!(world.elapsed(), seconds(45), "the second began when the first had ended");
    });
}

#[test]
fn debounced_starts_are_one_run_with_the_last_input() {
    tell(register, async |world, engine| {
        let mut ids = Vec::new();
        for length in 1..=4 {
            let run = engine.start("tidy", &length).debounce("doc-1", seconds(10)).await.unwrap();
            assert_eq!(run.is_new(), length == 1);
            ids.push(run.id().clone());
            world.sleep(seconds(4)).await;
        }
        ids.dedup();
        assert_eq!(ids.len(), 1);
        let run = engine.run(ids[0].as_str()).unwrap();
        assert_eq!(run.result::<u64>().await.unwrap(), 4);
        assert_eq!(world.elapsed(), seconds(12 + 10 + 4), "ten seconds after the last, and then it takes four");
    });
}

#[test]
fn a_debounce_lasts_no_longer_than_it_may() {
    tell(register, async |world, engine| {
        let mut begun = Vec::new();
        for length in 0..10 {
            let start = engine.start("tidy", &length).debounce("doc-1", seconds(10)).at_most(seconds(25));
            let run = start.await.unwrap();
            if run.is_new() {
                begun.push(run);
            }
            world.sleep(seconds(4)).await;
        }
        assert_eq!(begun.len(), 2);
        assert_eq!(begun.remove(0).result::<u64>().await.unwrap(), 6, "what was said until 25 seconds had passed");
        assert_eq!(begun.remove(0).result::<u64>().await.unwrap(), 9);
    });
}
