//! What those who are not workflows see: namespaces, texts, approvals, a journal page by page, and what goes on behind an event.
#![expect(clippy::unwrap_used, reason = "a story ends at the first error")]

use futures_util::future::join;
use outlast::{ClaimRequest, Ctx, Event, Observed};

use crate::support::{Scene, seconds};

async fn counts(ctx: Ctx, n: u32) -> outlast::Result<u32> {
    ctx.step("one", async |_| Ok(())).await?;
    ctx.step("two", async |_| Ok(())).await?;
    if n < 2 { ctx.continue_as_new(&(n + 1)) } else { Ok(n) }
}

async fn asks(ctx: Ctx, (): ()) -> outlast::Result<bool> {
    Ok(ctx.approve("Ship it?").assignee("ann").timeout(seconds(60)).await?.is_some_and(|decision| decision.approved))
}

async fn all(mut attached: outlast::Attached) -> Vec<Observed> {
    let mut told = Vec::new();
    while let Some(observed) = attached.observe().await.unwrap() {
        told.push(observed);
    }
    told
}

/// Also behind the last event of a generation.
#[test]
fn whoever_begins_behind_any_event_is_told_the_rest_and_nothing_twice() {
    Scene::play(async |scene| {
        let engine = scene.engine(|engine| engine.workflow("counts", counts)).await;
        let run = engine.start("counts", &0).id("a").await.unwrap();
        scene.pass(seconds(1)).await;
        let told = all(run.attach()).await;
        assert!(matches!(told[0], Observed { index: None, at: None, event: Event::RunStarted { .. }, .. }));
        let mut recorded = Vec::new();
        for generation in 0..3 {
            recorded.extend(run.journal_page(Some(generation), 0, 100).await.unwrap());
        }
        assert_eq!(recorded.len(), 9, "three generations of three events");
        assert_eq!(told[1..], recorded[6..], "whoever does not say where begins with the current one");
        for (place, seen) in recorded.iter().enumerate() {
            let rest = all(run.attach().after(seen.generation, seen.index.unwrap())).await;
            assert_eq!(rest, recorded[place + 1..], "behind {place}");
        }
        for (generation, index) in [(2, 3), (3, 0), (7, 7)] {
            assert!(run.attach().after(generation, index).next().await.is_err());
        }
        let page = run.journal_page(Some(1), 1, 1).await.unwrap();
        assert_eq!(page, recorded[4..5]);
        assert_eq!(run.journal_page(None, 0, 100).await.unwrap(), recorded[6..]);
        assert_eq!(run.journal_page(None, 3, 100).await.unwrap(), []);
        assert_eq!(&run.input().await.unwrap()[..], b"2", "of the current generation");
    });
}

#[test]
fn what_waits_for_people_is_found_over_all_runs_until_it_is_decided() {
    Scene::play(async |scene| {
        let engine = scene.engine(|engine| engine.workflow("asks", asks)).await;
        for id in ["a", "b"] {
            engine.start("asks", &()).id(id).await.unwrap();
        }
        scene.pass(seconds(1)).await;
        let first = engine.approvals(None, 1).await.unwrap();
        let rest = engine.approvals(first.next, 10).await.unwrap();
        let open = [&first.approvals[..], &rest.approvals[..]].concat();
        assert_eq!(open.iter().map(|open| open.run.as_str()).collect::<Vec<_>>(), ["b", "a"]);
        assert_eq!((open[0].title.as_str(), open[0].assignee.as_deref()), ("Ship it?", Some("ann")));
        assert_eq!(open[0].until, Some(open[0].since + seconds(60)));
        let run = engine.run("b").unwrap();
        run.approve(open[0].approval.as_str(), true).await.unwrap();
        scene.pass(seconds(1)).await;
        let open = engine.approvals(None, 10).await.unwrap().approvals;
        assert_eq!(open.iter().map(|open| open.run.as_str()).collect::<Vec<_>>(), ["a"]);
    });
}

#[test]
fn a_client_of_one_namespace_sees_nothing_of_another() {
    Scene::play(async |scene| {
        let engine = scene.engine(|engine| engine.workflow("counts", counts)).await;
        assert!(!engine.has_namespace("shop").await.unwrap());
        let shop = engine.in_namespace("shop").await.unwrap();
        assert!(engine.has_namespace("shop").await.unwrap() && shop.namespace().as_str() == "shop");
        shop.define_script("n.wf", "return 1").await.unwrap();
        shop.define_script("n.wf", "return 2").await.unwrap();
        let run = shop.start("n", &()).id("a").attribute("tenant", "t").await.unwrap();
        assert_eq!(run.attributes().await.unwrap(), [("tenant".to_owned(), "t".to_owned())]);
        assert_eq!(run.result::<u32>().await.unwrap(), 2);
        let names = |found: Vec<outlast::WorkflowVersion>| {
            found.into_iter().map(|found| (found.workflow.to_string(), found.style)).collect::<Vec<_>>()
        };
        let (counts, script) = (("counts".to_owned(), "code"), ("n".to_owned(), "script"));
        assert_eq!(names(shop.workflows().await.unwrap()), [counts.clone(), script]);
        assert_eq!(names(engine.workflows().await.unwrap()), [counts]);
        let versions = shop.workflow_versions("n").await.unwrap();
        assert_eq!(versions.iter().map(|version| version.current).collect::<Vec<_>>(), [false, true]);
        let old = shop.workflow_text("n", Some(versions[0].version.as_str())).await.unwrap().unwrap();
        assert_eq!(old.1, "return 1");
        assert_eq!(engine.workflow_text("n", None).await.unwrap(), None);
        assert_eq!(engine.list().await.unwrap().runs.len(), 0);
        assert_eq!(engine.run("a").unwrap().status().await.unwrap_err().code(), "not_found");
        assert_eq!(engine.start("n", &()).await.err().unwrap().code(), "unknown_workflow");
    });
}

#[test]
fn a_worker_that_waits_is_given_what_comes_and_no_claim_is_given_up() {
    Scene::play(async |scene| {
        let engine = scene.engine(|engine| engine).await;
        let request = |id| ClaimRequest {
            worker: "mill".to_owned(),
            id,
            queues: vec!["default".to_owned()],
            names: vec!["grind".to_owned()],
            host: None,
            limit: 10,
            lease: seconds(30),
        };
        let queue = async |id: &str, later: u64| {
            scene.pass(seconds(5)).await;
            engine.enqueue("grind", &1).id(id).delay(seconds(later)).await.unwrap();
        };
        let waiting = engine.claim_tasks_until(request(1), std::future::pending());
        let (offers, ()) = join(waiting, queue("now", 0)).await;
        let offers = offers.unwrap();
        assert_eq!(offers[0].id.as_str(), "now");
        engine.complete_task(&offers[0].token, &()).await.unwrap();
        let waiting = engine.claim_tasks_until(request(2), std::future::pending());
        let (offers, ()) = join(waiting, queue("later", 30)).await;
        assert_eq!(offers.unwrap()[0].id.as_str(), "later");
        let waiting = engine.claim_tasks_until(request(3), scene.pass(seconds(7)));
        assert_eq!(waiting.await.unwrap(), [], "its time is up");
    });
}
