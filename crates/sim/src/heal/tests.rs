use std::rc::Rc;
use std::sync::Arc;

use outlast::testing::World;
use outlast::{Outlast, Status};

use super::*;
use crate::case::Options;
use crate::draw::draw;
use crate::interpret::{Input, Outside, WORKFLOW, employ, enqueue, register};
use crate::ledger::Ledger;
use crate::tree::{Errand, Tree, Wait, Work};

/// Who helps to build an engine.
type Build = fn(Outlast, Outside) -> Outlast;

/// Lets something happen, and settles; what is found, and how the run stands.
fn settled(tree: Tree, build: Build, before: impl AsyncFnOnce(&Client)) -> (Vec<Violation>, Option<Status>) {
    settled_in(false, tree, build, before)
}

fn settled_in(
    versions: bool,
    tree: Tree,
    build: Build,
    before: impl AsyncFnOnce(&Client),
) -> (Vec<Violation>, Option<Status>) {
    let world = Rc::new(World::new());
    let ledger = Ledger::new();
    let store = world.store();
    let (driver, front) = (world.process(store.clone()), world.process(store));
    world.block_on(async {
        let outside = Outside::new(Arc::clone(&ledger), world.time(), None);
        let engine = driver.engine().lease(Duration::from_secs(10)).poll(Duration::from_secs(1));
        let _engine = build(engine, outside.clone()).start().await.unwrap();
        let engine = register(front.engine().without_loops(), outside).start().await.unwrap();
        let client = Client { engine, ledger, world: Rc::clone(&world), acts: Rc::default(), seen: Rc::default() };
        before(&client).await;
        let options = Options { versions, ..draw(0).options };
        let case = Case { runs: vec![tree], options, ..draw(0) };
        let found = settle(&client, &case).await;
        let view = client.engine.run("run-0").unwrap().view().await;
        (found, view.ok().map(|view| view.status))
    })
}

fn drives(engine: Outlast, outside: Outside) -> Outlast {
    register(engine, outside)
}

fn works(engine: Outlast, outside: Outside) -> Outlast {
    employ(engine, outside)
}

fn wait() -> Tree {
    Tree::Wait(Wait { name: "pear".to_owned(), number: true, aimed: false, timeout: None, or_fail: false })
}

async fn nothing(_: &Client) {}

#[test]
fn a_run_that_was_never_started_is_and_whatever_it_waits_for_comes() {
    let callback = Tree::Callback(crate::tree::Call { submitted: false, fails: 0, timeout: None, heartbeat: None });
    for tree in [wait(), Tree::Approve(None), callback] {
        assert_eq!(settled(tree, drives, nothing), (vec![], Some(Status::Completed)));
    }
}

#[test]
fn a_run_that_is_paused_goes_on() {
    let paused = settled(wait(), drives, async |client| {
        let run = client.engine.start(WORKFLOW, &Input::of(wait())).id("run-0").await.unwrap();
        run.pause("wait").await.unwrap();
    });
    assert_eq!(paused, (vec![], Some(Status::Completed)));
}

#[test]
fn a_run_that_nobody_drives_is_found_and_its_journal_is_told() {
    let (found, status) = settled(wait(), works, nothing);
    assert_eq!(found.iter().map(|violation| violation.invariant).collect::<Vec<_>>(), [5]);
    assert!(found[0].text.contains("run-0 is Queued and does not come to its end"), "{}", found[0].text);
    assert_eq!(status, Some(Status::Queued));
}

#[test]
fn a_run_that_cannot_be_started_is_found() {
    // In a version that nobody has.
    let (found, status) = settled_in(true, wait(), drives, nothing);
    assert_eq!(found, [Violation { invariant: 2, text: "run-0 cannot be started".to_owned() }]);
    assert_eq!(status, None);
}

#[test]
fn a_task_that_nobody_does_is_found_and_one_that_is_done_is_not() {
    let errand = || Errand { work: Work { attempts: 1, takes: Some(0), ..Work::default() }, ..Errand::default() };
    let queue = async |client: &Client| drop(enqueue(&client.engine, "errand-0", &errand()).await.unwrap());
    let (found, _) = settled(Tree::Sleep(1), drives, queue);
    assert_eq!(found.iter().map(|violation| violation.invariant).collect::<Vec<_>>(), [17]);
    assert!(found[0].text.contains("errand-0"), "{}", found[0].text);
    let both: Build = |engine, outside| drives(works(engine, outside.clone()), outside);
    assert_eq!(settled(Tree::Sleep(1), both, queue).0, []);
}
