//! Children: created with their parent's commit, and their end told to the generation that started them.

use outlast_core::commit::{Control, Delivery, InboxKind, NewRun, Opener, Owner, Parent, Status};
use outlast_core::id::{ClaimId, Fence, Generation, RunId, RunKey};

use super::scene::*;
use crate::{Awaited, CommitError, Created, Delivered, Rejection};

super::stories! {
    child_is_created_with_the_commit,
    child_owned_from_the_start_is_driven_by_the_same_node,
    child_of_a_lapsed_lease_is_left_to_be_claimed,
    child_that_exists_already_is_found_again,
    id_of_a_stranger_rejects_the_commit,
    id_of_another_operations_child_rejects_the_commit,
    same_child_twice_in_one_commit_is_rejected,
    run_cannot_be_its_own_child,
    deleted_id_cannot_be_a_child,
    end_of_a_child_reaches_its_parent_in_one_transaction,
    end_of_a_child_reaches_a_parent_that_ended_as_lost,
    end_of_a_child_of_an_older_generation_is_not_told,
    refused_end_of_a_child_tells_the_parent_nothing,
    signals_with_a_child_are_in_its_inbox,
    child_of_the_old_generation_is_no_longer_awaited,
    detached_child_is_not_awaited,
    parent_that_ended_awaits_no_child,
    cancel_of_a_parent_reaches_its_child_with_the_commit,
    cancel_of_a_parent_is_for_the_run_its_operation_started_and_for_nobody_else,
    commit_into_another_namespace_is_rejected,
    grandchildren_know_their_parent,
}

/// A parent that waits for its child.
async fn family(s: &Scene<'_>) -> (Held, Held) {
    let mut parent = s.own("parent").await;
    let commit = parent.commit().event("started").child(child_of(&parent, "child", "ship")).suspend();
    s.apply(&mut parent, commit).await;
    let child = s.reclaim(&run("child")).await;
    (parent, child)
}

fn child_exists(id: &str) -> CommitError {
    CommitError::Rejected(Rejection::ChildExists { child: RunId::new(id).unwrap() })
}

async fn child_is_created_with_the_commit(s: Scene<'_>) {
    let mut parent = s.own("parent").await;
    s.clock.set(9);
    let child = child_of(&parent, "child", "ship");
    let commit = parent.commit().event("started").child(child.clone());
    s.apply(&mut parent, commit).await;
    let view = s.view(&run("child")).await;
    assert_eq!((view.status, view.ready, view.created_at), (Status::Queued, true, at(9)));
    assert_eq!(view.parent, child.parent);
    let awaiting = s.awaiting(&parent.run).await;
    let ship = Awaited::Child { key: key("ship"), run: run("child").id, status: Status::Queued };
    assert_eq!(awaiting, [ship]);
}

async fn child_owned_from_the_start_is_driven_by_the_same_node(s: Scene<'_>) {
    let lease = s.node("n", 1_000).await;
    let mut parent = s.own_under(lease, "parent").await;
    let owner = Some(Owner { lease, claim: ClaimId(5) });
    let child = NewRun { owner, ..child_of(&parent, "child", "ship") };
    let commit = parent.commit().event("started").child(child.clone());
    s.apply(&mut parent, commit).await;
    let view = s.view(&run("child")).await;
    assert_eq!((view.status, view.owner, view.ready), (Status::Running, Some(lease), false));
    assert_eq!(s.create(child).await, Created::Created { fence: Fence(1), at: at(0) }, "asking again tells the fence");
}

async fn child_of_a_lapsed_lease_is_left_to_be_claimed(s: Scene<'_>) {
    let lease = s.node("n", 100).await;
    let mut parent = s.own_under(lease, "parent").await;
    s.clock.set(100);
    let owner = Some(Owner { lease, claim: ClaimId(5) });
    let child = NewRun { owner, ..child_of(&parent, "child", "ship") };
    let commit = parent.commit().event("started").child(child);
    s.apply(&mut parent, commit).await;
    let view = s.view(&run("child")).await;
    assert_eq!((view.status, view.owner, view.ready), (Status::Queued, None, true));
}

async fn child_that_exists_already_is_found_again(s: Scene<'_>) {
    let mut parent = s.own("parent").await;
    let child = child_of(&parent, "child", "ship");
    s.create(child.clone()).await;
    s.deliver(signal(&run("child"), "go", "1", "kept")).await;
    let commit = parent.commit().event("started").child(child);
    s.apply(&mut parent, commit).await;
    assert_eq!(s.mail(&run("child")).await, ["kept"], "it is the same run, not a new one");
}

/// Row 38: a close policy killed a stranger.
async fn id_of_a_stranger_rejects_the_commit(s: Scene<'_>) {
    let stranger = s.start("child").await;
    let parent = s.own("parent").await;
    let commit = parent.commit().event("started").child(child_of(&parent, "child", "ship"));
    assert_eq!(s.commit(commit).await.unwrap_err(), child_exists("child"));
    assert_eq!(s.view(&stranger).await.parent, None, "the stranger is unharmed");
    assert_eq!(s.story(&parent.run).await, [""; 0]);
}

async fn id_of_another_operations_child_rejects_the_commit(s: Scene<'_>) {
    let (parent, _child) = family(&s).await;
    s.deliver(signal(&parent.run, "go", "1", "x")).await;
    let parent = s.reclaim(&parent.run).await;
    let other_operation = parent.commit().event("again").child(child_of(&parent, "child", "ship#2"));
    assert_eq!(s.commit(other_operation).await.unwrap_err(), child_exists("child"));
    let other_parent = s.own("other").await;
    let commit = other_parent.commit().event("started").child(child_of(&other_parent, "child", "ship"));
    assert_eq!(s.commit(commit).await.unwrap_err(), child_exists("child"));
}

async fn same_child_twice_in_one_commit_is_rejected(s: Scene<'_>) {
    let parent = s.own("parent").await;
    let child = child_of(&parent, "child", "ship");
    let refused = s.commit(parent.commit().event("x").child(child.clone()).child(child)).await.unwrap_err();
    assert_eq!(refused, child_exists("child"));
    assert!(s.store.get(run("child")).await.is_err());
}

async fn run_cannot_be_its_own_child(s: Scene<'_>) {
    let parent = s.own("parent").await;
    let refused = s.commit(parent.commit().event("x").child(child_of(&parent, "parent", "self"))).await.unwrap_err();
    assert_eq!(refused, child_exists("parent"));
}

async fn deleted_id_cannot_be_a_child(s: Scene<'_>) {
    let (mut parent, mut child) = family(&s).await;
    let commit = child.commit().event("end").deliver(tell(&parent.run, 0, "ship", "child")).finish();
    s.apply(&mut child, commit).await;
    s.store.delete(child.run.clone(), WHY.to_owned()).await.unwrap();
    parent = s.reclaim(&parent.run).await;
    let refused = s.commit(parent.commit().event("x").child(child_of(&parent, "child", "ship"))).await.unwrap_err();
    assert_eq!(refused, child_exists("child"));
}

async fn end_of_a_child_reaches_its_parent_in_one_transaction(s: Scene<'_>) {
    let (parent, mut child) = family(&s).await;
    s.clock.set(20);
    let commit = child.commit().event("end").deliver(tell(&parent.run, 0, "ship", "child")).finish();
    assert_eq!(s.apply(&mut child, commit).await.delivered, [Delivered::Delivered]);
    let item = s.inbox(&parent.run).await.remove(0);
    assert_eq!((item.kind, item.key, item.name.as_deref()), (InboxKind::Child, Some(key("ship")), Some("child")));
    assert_eq!((item.payload, item.at), (Some(bytes("output")), at(20)));
    assert!(s.view(&parent.run).await.ready);
    assert_eq!(s.awaiting(&parent.run).await, [], "a child that ended is no longer waited for");
}

async fn end_of_a_child_reaches_a_parent_that_ended_as_lost(s: Scene<'_>) {
    let (parent, mut child) = family(&s).await;
    s.deliver(signal(&parent.run, "go", "1", "x")).await;
    let mut parent = s.reclaim(&parent.run).await;
    let commit = parent.commit().event("end").finish();
    s.apply(&mut parent, commit).await;
    let commit = child.commit().event("end").deliver(tell(&parent.run, 0, "ship", "child")).finish();
    assert_eq!(s.apply(&mut child, commit).await.delivered, [Delivered::Lost], "and the child ends all the same");
    assert_eq!(s.view(&child.run).await.status, Status::Completed);
}

/// Row 38: a close policy missed a continued parent's child.
async fn end_of_a_child_of_an_older_generation_is_not_told(s: Scene<'_>) {
    let (parent, mut child) = family(&s).await;
    s.deliver(signal(&parent.run, "go", "1", "x")).await;
    let mut parent = s.reclaim(&parent.run).await;
    let commit = parent.commit().event("next").continue_as_new("{}");
    s.apply(&mut parent, commit).await;
    let commit = child.commit().event("end").deliver(tell(&parent.run, 0, "ship", "child")).finish();
    assert_eq!(s.apply(&mut child, commit).await.delivered, [Delivered::Lost]);
    assert_eq!(s.mail(&parent.run).await, ["x"], "only the mailbox moved along");
}

async fn refused_end_of_a_child_tells_the_parent_nothing(s: Scene<'_>) {
    let (parent, child) = family(&s).await;
    let zombie = Held { fence: Fence(0), ..child.clone() };
    let commit = zombie.commit().event("end").deliver(tell(&parent.run, 0, "ship", "child")).finish();
    assert!(s.commit(commit).await.is_err());
    assert_eq!(s.inbox(&parent.run).await, []);
    assert!(!s.view(&parent.run).await.ready);
}

async fn signals_with_a_child_are_in_its_inbox(s: Scene<'_>) {
    let mut parent = s.own("parent").await;
    let child = NewRun { signals: vec![letter("go", "1", "hello")], ..child_of(&parent, "child", "ship") };
    let commit = parent.commit().event("started").child(child);
    s.apply(&mut parent, commit).await;
    assert_eq!(s.mail(&run("child")).await, ["hello"]);
}

async fn child_of_the_old_generation_is_no_longer_awaited(s: Scene<'_>) {
    let (parent, _child) = family(&s).await;
    s.deliver(signal(&parent.run, "go", "1", "x")).await;
    let mut parent = s.reclaim(&parent.run).await;
    let commit = parent.commit().event("next").continue_as_new("{}");
    s.apply(&mut parent, commit).await;
    assert_eq!(s.awaiting(&parent.run).await, []);
}

async fn detached_child_is_not_awaited(s: Scene<'_>) {
    let mut parent = s.own("parent").await;
    let mut child = child_of(&parent, "child", "ship");
    child.parent = child.parent.map(|parent| Parent { detached: true, ..parent });
    let commit = parent.commit().event("started").child(child.clone());
    s.apply(&mut parent, commit).await;
    assert_eq!(s.awaiting(&parent.run).await, []);
    assert_eq!(s.view(&run("child")).await.parent, child.parent, "but it knows where it comes from");
}

/// Invariant 6.
async fn parent_that_ended_awaits_no_child(s: Scene<'_>) {
    let mut parent = s.own("parent").await;
    let commit = parent.commit().event("x").child(child_of(&parent, "child", "ship")).finish();
    s.apply(&mut parent, commit).await;
    assert_eq!(s.awaiting(&parent.run).await, [], "what ended waits for nothing, though its child lives on");
    assert_eq!(s.view(&run("child")).await.status, Status::Queued);
}

async fn cancel_of_a_parent_reaches_its_child_with_the_commit(s: Scene<'_>) {
    let (parent, mut child) = family(&s).await;
    let commit = child.commit().event("waits").suspend();
    s.apply(&mut child, commit).await;
    s.deliver(signal(&parent.run, "go", "1", "x")).await;
    let mut parent = s.reclaim(&parent.run).await;
    let cancel = control(&child.run, outlast_core::commit::Control::Cancel, "parent closed");
    let commit = parent.commit().event("cancelled").deliver(cancel).finish();
    assert_eq!(s.apply(&mut parent, commit).await.delivered, [Delivered::Delivered]);
    assert!(s.view(&child.run).await.ready);
    assert_eq!(s.inbox(&child.run).await[0].kind, InboxKind::Cancel);
}

async fn cancel_of_a_parent_is_for_the_run_its_operation_started_and_for_nobody_else(s: Scene<'_>) {
    let (parent, mut child) = family(&s).await;
    let commit = child.commit().event("waits").suspend();
    s.apply(&mut child, commit).await;
    s.create(new_run(&run("stranger"))).await;
    let close = |to: &RunKey, generation, operation: &str| Delivery::Control {
        run: to.clone(),
        control: Control::Cancel,
        id: id(&format!("close {generation} {operation}")),
        meta: None,
        child_of: Some(Opener { run: parent.run.id.clone(), generation: Generation(generation), key: key(operation) }),
    };
    let nobody = [
        close(&run("stranger"), 0, "ship"),
        close(&child.run, 1, "ship"),
        close(&child.run, 0, "other"),
        close(&parent.run, 0, "ship"),
    ];
    for delivery in nobody {
        assert_eq!(s.deliver(delivery.clone()).await, Delivered::NotFound, "{delivery:?}");
    }
    assert!(s.inbox(&run("stranger")).await.is_empty() && s.inbox(&child.run).await.is_empty());
    assert_eq!(s.deliver(close(&child.run, 0, "ship")).await, Delivered::Delivered);
    assert_eq!(s.inbox(&child.run).await[0].kind, InboxKind::Cancel);
}

/// Invariant 20: no reference crosses namespaces.
async fn commit_into_another_namespace_is_rejected(s: Scene<'_>) {
    s.store.put_namespace(namespace("other")).await.unwrap();
    let there = run_in("other", "a");
    s.create(new_run(&there)).await;
    let held = s.own("a").await;
    let foreign = CommitError::Rejected(Rejection::ForeignNamespace { namespace: namespace("other") });
    let child = NewRun { run: run_in("other", "child"), ..child_of(&held, "child", "ship") };
    assert_eq!(s.commit(held.commit().event("x").child(child)).await.unwrap_err(), foreign);
    for delivery in [signal(&there, "go", "1", "x"), decide(&there, "ok", "1"), beat(&there, "cb", None)] {
        assert_eq!(s.commit(held.commit().event("x").deliver(delivery)).await.unwrap_err(), foreign);
    }
    let told = held.commit().event("x").deliver(tell(&there, 0, "ship", "a"));
    assert_eq!(s.commit(told).await.unwrap_err(), foreign);
    assert_eq!(s.inbox(&there).await, []);
}

async fn grandchildren_know_their_parent(s: Scene<'_>) {
    let (_parent, mut child) = family(&s).await;
    let commit = child.commit().event("started").child(child_of(&child, "grandchild", "pack"));
    s.apply(&mut child, commit).await;
    let parent = s.view(&run("grandchild")).await.parent.expect("a parent");
    assert_eq!((parent.run, parent.generation, parent.key), (run("child").id, Generation(0), key("pack")));
}
