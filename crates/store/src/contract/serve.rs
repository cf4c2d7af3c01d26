//! Rolling deploys: who offers to drive what, and what becomes of a run that nobody can drive.

use outlast_core::commit::{Control, NewRun, Status, Then};
use outlast_core::id::{ClaimId, RunKey};

use super::scene::*;
use crate::{Claim, Claimed, Pick, Serves};

super::stories! {
    run_that_somebody_announces_is_not_parked,
    run_is_parked_when_nobody_announced_it_for_the_grace,
    run_that_nobody_ever_announced_is_parked_after_the_grace,
    run_that_became_ready_only_now_is_not_parked,
    run_that_waits_for_something_is_not_parked,
    run_that_a_live_node_owns_is_not_parked,
    run_whose_owner_died_is_parked_like_a_ready_one,
    announcing_is_for_one_version_of_one_workflow,
    announcement_counts_in_every_namespace,
    runs_of_every_namespace_are_parked,
    park_takes_at_most_its_limit_the_first_to_be_claimed_first,
    parked_run_keeps_what_it_has_and_goes_on_when_it_is_unparked,
    unparked_run_is_given_the_whole_grace_again,
    paused_and_parked_runs_are_left_as_they_are,
    announcing_twice_and_announcing_nothing_are_harmless,
    announcement_of_another_process_counts,
    old_announcements_are_forgotten_and_count_as_silence,
}

const GRACE: u64 = 300_000;

impl Scene<'_> {
    async fn announce(&self, name: &str, of: &str) {
        self.store.announce(vec![(workflow(name), version(of))]).await.unwrap();
    }

    /// Parks what nobody serves; the ids.
    async fn park(&self, limit: usize) -> Vec<String> {
        let parked: Vec<RunKey> = self.store.park_unserved(ms(GRACE), limit).await.unwrap();
        parked.iter().map(|run| run.id.to_string()).collect()
    }

    async fn status(&self, run: &RunKey) -> Status {
        self.view(run).await.status
    }

    /// Claims as a node that has only this version.
    async fn claim_served(&self, id: u64, of: &str) -> Vec<Claimed> {
        let lease = self.node("server", 1_000).await;
        let serves = Serves::Only(vec![(workflow("checkout"), version(of))]);
        self.store.claim(Claim { lease, id: ClaimId(id), limit: 10, pick: Pick::Ready, serves }).await.unwrap()
    }
}

async fn run_that_somebody_announces_is_not_parked(s: Scene<'_>) {
    let a = s.start("a").await;
    for now in [0, 200_000, 400_000, 600_000] {
        s.clock.set(now);
        s.announce("checkout", "1").await;
        assert_eq!(s.park(10).await, [""; 0], "at {now}");
    }
    s.clock.set(600_000 + 299_999);
    assert_eq!(s.park(10).await, [""; 0], "one millisecond less than the grace");
    assert_eq!(s.status(&a).await, Status::Queued);
}

async fn run_is_parked_when_nobody_announced_it_for_the_grace(s: Scene<'_>) {
    let a = s.start("a").await;
    s.clock.set(1_000);
    s.announce("checkout", "1").await;
    s.clock.set(300_999);
    assert_eq!(s.park(10).await, [""; 0]);
    s.clock.set(301_000);
    assert_eq!(s.park(10).await, ["a"]);
    let view = s.view(&a).await;
    assert_eq!((view.status, view.owner, view.tries), (Status::Parked, None, 0));
    let note = "workflow_version_mismatch: no node has offered checkout version 1 for 5 minutes; register it as a \
                previous version (for a text, the steps and workflows that it names), deploy, and unpark the run";
    assert_eq!(view.note.as_deref(), Some(note));
    assert_eq!(s.park(10).await, [""; 0], "once is enough");
    assert_eq!(s.claim_served(1, "1").await, [], "and it is not claimed until it is unparked");
}

async fn run_that_nobody_ever_announced_is_parked_after_the_grace(s: Scene<'_>) {
    s.clock.set(50);
    s.start("a").await;
    s.clock.set(300_049);
    assert_eq!(s.park(10).await, [""; 0]);
    s.clock.set(300_050);
    assert_eq!(s.park(10).await, ["a"]);
}

/// Its version was not offered for a long time, but nobody missed it: it slept.
async fn run_that_became_ready_only_now_is_not_parked(s: Scene<'_>) {
    let mut sleeper = s.own("sleeper").await;
    let commit = sleeper.commit().event("sleeps").suspend();
    s.apply(&mut sleeper, commit).await;
    s.clock.set(1_000_000);
    s.deliver(signal(&sleeper.run, "go", "1", "one")).await;
    assert_eq!(s.park(10).await, [""; 0]);
    s.clock.set(1_299_999);
    assert_eq!(s.park(10).await, [""; 0]);
    s.clock.set(1_300_000);
    assert_eq!(s.park(10).await, ["sleeper"]);
}

async fn run_that_waits_for_something_is_not_parked(s: Scene<'_>) {
    let mut sleeper = s.own("sleeper").await;
    let commit = sleeper.commit().event("sleeps").suspend();
    s.apply(&mut sleeper, commit).await;
    s.clock.set(10_000_000);
    assert_eq!(s.park(10).await, [""; 0]);
    assert_eq!(s.status(&sleeper.run).await, Status::Waiting);
}

async fn run_that_a_live_node_owns_is_not_parked(s: Scene<'_>) {
    let lease = s.node("busy", 10_000_000).await;
    let mut held = s.own_under(lease, "a").await;
    s.deliver(signal(&held.run, "go", "1", "one")).await;
    s.clock.set(GRACE as i64 * 2);
    assert_eq!(s.park(10).await, [""; 0], "ready again, but owned");
    let commit = held.commit().event("goes on").suspend();
    s.apply(&mut held, commit).await;
    assert_eq!(s.view(&held.run).await.next, held.next);
}

async fn run_whose_owner_died_is_parked_like_a_ready_one(s: Scene<'_>) {
    let lease = s.node("mortal", 1_000).await;
    let mut held = s.own_under(lease, "a").await;
    s.announce("checkout", "1").await;
    s.clock.set(299_999);
    assert_eq!(s.park(10).await, [""; 0]);
    s.clock.set(300_000);
    assert_eq!(s.park(10).await, ["a"]);
    let view = s.view(&held.run).await;
    assert_eq!((view.status, view.owner), (Status::Parked, None));
    let commit = held.commit().event("late").suspend();
    assert!(s.commit(commit).await.is_err(), "the dead owner writes no more");
    assert!(s.store.unpark(held.run.clone()).await.unwrap());
    held = s.reclaim(&held.run).await;
    assert_eq!(held.fence.0, 2);
}

async fn announcing_is_for_one_version_of_one_workflow(s: Scene<'_>) {
    s.create(NewRun { workflow: workflow("refund"), ..new_run(&run("other workflow")) }).await;
    s.create(NewRun { version: version("2"), ..new_run(&run("other version")) }).await;
    s.create(NewRun { workflow: workflow("Checkout"), ..new_run(&run("other case")) }).await;
    let mine = s.start("mine").await;
    s.clock.set(GRACE as i64);
    s.announce("checkout", "1").await;
    assert_eq!(s.park(10).await, ["other workflow", "other version", "other case"]);
    assert_eq!(s.status(&mine).await, Status::Queued);
    let note = s.view(&run("other version")).await.note.unwrap();
    assert!(note.contains("checkout version 2"), "{note}");
}

async fn announcement_counts_in_every_namespace(s: Scene<'_>) {
    s.store.put_namespace(namespace("tenant")).await.unwrap();
    s.start("a").await;
    s.create(new_run(&run_in("tenant", "b"))).await;
    s.clock.set(GRACE as i64);
    s.announce("checkout", "1").await;
    assert_eq!(s.park(10).await, [""; 0]);
}

async fn runs_of_every_namespace_are_parked(s: Scene<'_>) {
    s.store.put_namespace(namespace("tenant")).await.unwrap();
    s.start("same").await;
    s.clock.set(1);
    s.create(new_run(&run_in("tenant", "same"))).await;
    s.clock.set(GRACE as i64 + 1);
    let parked = s.store.park_unserved(ms(GRACE), 10).await.unwrap();
    assert_eq!(parked, [run("same"), run_in("tenant", "same")]);
    assert_eq!(s.status(&run_in("tenant", "same")).await, Status::Parked);
}

async fn park_takes_at_most_its_limit_the_first_to_be_claimed_first(s: Scene<'_>) {
    for (id, priority) in [("low", -5), ("old", 10), ("new", 10), ("high", 20)] {
        s.create(NewRun { priority, ..new_run(&run(id)) }).await;
        s.clock.advance(1);
    }
    s.clock.advance(GRACE as i64);
    assert_eq!(s.park(0).await, [""; 0]);
    assert_eq!(s.park(2).await, ["high", "old"]);
    assert_eq!(s.status(&run("new")).await, Status::Queued);
    assert_eq!(s.park(2).await, ["new", "low"]);
    assert_eq!(s.park(2).await, [""; 0]);
}

async fn parked_run_keeps_what_it_has_and_goes_on_when_it_is_unparked(s: Scene<'_>) {
    let mut held = s.own("a").await;
    let commit = held.commit().event("one").event("two").suspend();
    s.apply(&mut held, commit).await;
    s.deliver(signal(&held.run, "go", "1", "payload")).await;
    s.clock.set(GRACE as i64);
    assert_eq!(s.park(10).await, ["a"]);
    s.deliver(signal(&held.run, "go", "2", "later")).await;
    s.announce("checkout", "1").await;
    assert_eq!(s.claim_served(1, "1").await, [], "an announcement alone does not unpark it");
    assert!(s.store.unpark(held.run.clone()).await.unwrap());
    let claimed = s.claim_served(2, "1").await;
    assert_eq!(claimed.len(), 1, "{claimed:?}");
    assert_eq!((claimed[0].next, claimed[0].tries), (held.next, 0));
    assert_eq!(s.mail(&held.run).await, ["payload", "later"]);
    assert_eq!(s.view(&held.run).await.note, None);
}

/// Unparked before the deploy: the new version has as long to come as after a fresh wake.
async fn unparked_run_is_given_the_whole_grace_again(s: Scene<'_>) {
    let a = s.start("a").await;
    s.clock.set(GRACE as i64);
    assert_eq!(s.park(10).await, ["a"]);
    s.clock.set(GRACE as i64 * 3);
    s.deliver(signal(&a, "go", "1", "while parked")).await;
    s.clock.set(GRACE as i64 * 5);
    assert!(s.store.unpark(a.clone()).await.unwrap());
    assert_eq!(s.park(10).await, [""; 0]);
    s.clock.set(GRACE as i64 * 6 - 1);
    assert_eq!(s.park(10).await, [""; 0]);
    s.clock.set(GRACE as i64 * 6);
    assert_eq!(s.park(10).await, ["a"]);
}

async fn paused_and_parked_runs_are_left_as_they_are(s: Scene<'_>) {
    let mut paused = s.own("paused").await;
    let commit = paused.commit().event("pause").then(Then::Pause);
    s.apply(&mut paused, commit).await;
    s.deliver(signal(&paused.run, "go", "1", "x")).await;
    let mut parked = s.own("parked").await;
    let commit = parked.commit().park("for another reason");
    s.apply(&mut parked, commit).await;
    s.deliver(control(&parked.run, Control::Cancel, "cancel")).await;
    let ended = s.ended("ended").await;
    s.clock.set(GRACE as i64 * 10);
    assert_eq!(s.park(10).await, [""; 0]);
    assert_eq!(s.status(&paused.run).await, Status::Paused);
    assert_eq!(s.view(&parked.run).await.note.as_deref(), Some("for another reason"));
    assert_eq!(s.status(&ended).await, Status::Completed);
}

async fn announcing_twice_and_announcing_nothing_are_harmless(s: Scene<'_>) {
    s.start("a").await;
    s.clock.set(GRACE as i64);
    s.store.announce(Vec::new()).await.unwrap();
    let one = (workflow("checkout"), version("1"));
    s.store.announce(vec![one.clone(), (workflow("refund"), version("1")), one]).await.unwrap();
    assert_eq!(s.park(10).await, [""; 0]);
}

async fn announcement_of_another_process_counts(s: Scene<'_>) {
    s.start("a").await;
    s.clock.set(GRACE as i64);
    let other = s.other().await;
    other.announce(vec![(workflow("checkout"), version("1"))]).await.unwrap();
    assert_eq!(s.park(10).await, [""; 0]);
    s.clock.set(GRACE as i64 * 2);
    assert_eq!(other.park_unserved(ms(GRACE), 10).await.unwrap(), [run("a")]);
}

async fn old_announcements_are_forgotten_and_count_as_silence(s: Scene<'_>) {
    s.announce("checkout", "1").await;
    s.clock.set(40 * 24 * 3_600_000);
    s.announce("checkout", "2").await;
    assert_eq!(s.park(10).await, [""; 0], "there was nothing to park, only to forget");
    s.start("old").await;
    s.create(NewRun { version: version("2"), ..new_run(&run("new")) }).await;
    s.clock.advance(GRACE as i64);
    s.announce("checkout", "2").await;
    assert_eq!(s.park(10).await, ["old"]);
    assert_eq!(s.status(&run("new")).await, Status::Queued);
}
