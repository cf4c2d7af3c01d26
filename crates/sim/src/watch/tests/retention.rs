//! Runs that go by their age.

use super::*;

const AGE: Duration = Duration::from_millis(100);

/// Whether the parent of `r`, `top`, and `r` itself have ended, and when; what is broken if the parent goes at 200.
fn broken(top: Option<i64>, below: Option<i64>) -> Vec<u8> {
    broken_with(top, below, false)
}

fn broken_with(top: Option<i64>, below: Option<i64>, detached: bool) -> Vec<u8> {
    let mut scene = Scene::new();
    scene.0.created(&new("top"), &Created::Created { fence: Fence(0), at: at(0) });
    let parent = Parent { run: run("top").id, generation: Generation(0), key: key("child"), detached };
    for (id, ended) in [("top", top), ("r", below)] {
        let shadow = scene.0.runs.get_mut(&run(id)).unwrap();
        (shadow.ended, shadow.ended_at) = (ended.is_some(), ended.map(at));
        shadow.parent = (id == "r").then(|| parent.clone());
    }
    scene.0.judge_age(&run("top"), AGE, Some(at(200)));
    scene.broken()
}

#[test]
fn a_tree_that_ended_long_ago_may_go() {
    assert_eq!(broken(Some(100), Some(90)), [0_u8; 0]);
    assert_eq!(broken_with(Some(100), None, true), [0_u8; 0], "nobody waits for the other one");
}

#[test]
fn a_tree_that_goes_too_soon_or_while_somebody_in_it_lives_is_reported() {
    assert_eq!(broken(Some(101), Some(90)), [19]);
    assert_eq!(broken(Some(100), Some(150)), [19]);
    assert_eq!(broken(Some(100), None), [19]);
    assert_eq!(broken(None, Some(100)), [19]);
}
