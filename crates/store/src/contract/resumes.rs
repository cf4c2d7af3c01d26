//! Resumes, as the queue items they stand for, and runs that are woken by hand.

use super::scene::*;
use crate::Resume;

super::stories! {
    new_run_has_one_unclaimed_resume,
    claimed_run_has_one_claimed_resume_and_its_node,
    run_woken_while_it_is_driven_has_one_claimed_and_one_unclaimed_resume,
    waiting_or_ended_run_has_no_resume,
    wake_by_hand_makes_a_waiting_run_ready_and_a_second_one_changes_nothing,
    wake_of_an_ended_or_unknown_run_is_told,
    resumes_are_listed_by_run_and_page_by_page,
}

async fn resumes(s: &Scene<'_>) -> Vec<Resume> {
    s.store.resumes(namespace("default"), None, 10).await.unwrap()
}

async fn new_run_has_one_unclaimed_resume(s: Scene<'_>) {
    s.clock.set(5);
    let run = s.start("a").await;
    assert_eq!(resumes(&s).await, [Resume { run: run.id, claimed: None, ready_since: Some(at(5)) }]);
    assert_eq!(s.store.resumes(namespace("nowhere"), None, 10).await.unwrap(), []);
}

async fn claimed_run_has_one_claimed_resume_and_its_node(s: Scene<'_>) {
    let lease = s.node("one", 1_000).await;
    let held = s.own_under(lease, "a").await;
    let node = outlast_core::id::NodeId::new("one").unwrap();
    let claimed = Some((lease, Some(node)));
    assert_eq!(resumes(&s).await, [Resume { run: held.run.id.clone(), claimed, ready_since: None }]);
}

async fn run_woken_while_it_is_driven_has_one_claimed_and_one_unclaimed_resume(s: Scene<'_>) {
    let mut held = s.own("a").await;
    for now in [7, 8] {
        s.clock.set(now);
        assert_eq!(s.store.wake(held.run.clone()).await, Ok(true));
    }
    let found = resumes(&s).await;
    assert_eq!((found.len(), found[0].claimed.is_some(), found[0].ready_since), (1, true, Some(at(7))));
    let commit = held.commit().event("x").suspend();
    s.apply(&mut held, commit).await;
    let found = resumes(&s).await;
    assert_eq!(
        (found.len(), found[0].claimed.is_some(), found[0].ready_since),
        (1, false, Some(at(7))),
        "it outlives the turn"
    );
}

async fn waiting_or_ended_run_has_no_resume(s: Scene<'_>) {
    let mut held = s.own("a").await;
    let commit = held.commit().event("x").suspend();
    s.apply(&mut held, commit).await;
    assert_eq!(resumes(&s).await, []);
    let ended = s.ended("b").await;
    assert_eq!(resumes(&s).await, [], "{ended:?}");
}

async fn wake_by_hand_makes_a_waiting_run_ready_and_a_second_one_changes_nothing(s: Scene<'_>) {
    let mut held = s.own("a").await;
    let commit = held.commit().event("x").suspend();
    s.apply(&mut held, commit).await;
    for now in [10, 20] {
        s.clock.set(now);
        assert_eq!(s.store.wake(held.run.clone()).await, Ok(true));
        assert_eq!(resumes(&s).await.len(), 1);
        assert_eq!(resumes(&s).await[0].ready_since, Some(at(10)));
    }
    let lease = s.node("next", 1_000).await;
    assert_eq!(s.claim_ids(lease, 1).await, ["a"]);
}

async fn wake_of_an_ended_or_unknown_run_is_told(s: Scene<'_>) {
    let ended = s.ended("b").await;
    assert_eq!(s.store.wake(ended).await, Ok(false));
    assert_eq!(s.store.wake(run("nobody")).await, Ok(false));
}

async fn resumes_are_listed_by_run_and_page_by_page(s: Scene<'_>) {
    for id in ["c", "a", "b"] {
        s.start(id).await;
    }
    let first = s.store.resumes(namespace("default"), None, 2).await.unwrap();
    let ids = |page: &[Resume]| page.iter().map(|resume| resume.run.to_string()).collect::<Vec<_>>();
    assert_eq!(ids(&first), ["a", "b"]);
    let rest = s.store.resumes(namespace("default"), Some(first[1].run.clone()), 2).await.unwrap();
    assert_eq!(ids(&rest), ["c"]);
}
