//! What becomes of a run while flow control holds it back.

use outlast_core::commit::{Bound, Control, HELD_CANCEL, NewRun, Rate, Status};

use super::admission::{admit, admitted_as, at_once, end, finish, held, hold, limited, rated};
use super::scene::{Held as Owned, *};
use crate::{HeldLimit, StoreError};

super::stories! {
    signals_for_a_held_run_wait_and_do_not_start_it,
    cancelled_held_run_leaves_the_line_at_once_and_uses_no_slot,
    paused_held_run_is_held_until_it_is_admitted,
    held_run_is_terminated_at_once,
    held_run_whose_terminator_died_is_held_as_before,
    held_run_that_was_seized_and_given_back_is_held_as_before,
    held_run_that_was_parked_is_held_when_it_is_unparked,
    held_run_is_listed_and_cannot_be_deleted,
    held_run_says_why,
}

async fn signals_for_a_held_run_wait_and_do_not_start_it(s: Scene<'_>) {
    hold(&s, "a", &[at_once("k", 1)]).await;
    admit(&s).await;
    let signals = vec![letter("go", "0", "with the start")];
    s.create(NewRun { signals, ..admitted_as("b", limited(&[at_once("k", 1)])) }).await;
    admit(&s).await;
    s.deliver(signal(&run("b"), "go", "1", "later")).await;
    assert_eq!(held(&s, &["b"]).await, ["b"]);
    assert_eq!(admit(&s).await.admitted, 0);
    end(&s, "a").await;
    admit(&s).await;
    let b = s.reclaim(&run("b")).await;
    assert_eq!(s.mail(&b.run).await, ["with the start", "later"]);
}

async fn cancelled_held_run_leaves_the_line_at_once_and_uses_no_slot(s: Scene<'_>) {
    for id in ["a", "b", "c"] {
        hold(&s, id, &[at_once("k", 1)]).await;
    }
    admit(&s).await;
    s.deliver(control(&run("b"), Control::Cancel, "stop")).await;
    let mut b = s.reclaim(&run("b")).await;
    let item = s.inbox(&b.run).await.remove(0);
    assert_eq!(item.name.as_deref(), Some(HELD_CANCEL), "its driver is told that it never began");
    finish(&s, &mut b).await;
    assert_eq!(admit(&s).await.admitted, 0, "it had no slot to give back");
    end(&s, "a").await;
    assert_eq!(admit(&s).await.admitted, 1);
    assert!(s.view(&run("c")).await.ready);
}

async fn paused_held_run_is_held_until_it_is_admitted(s: Scene<'_>) {
    hold(&s, "a", &[at_once("k", 1)]).await;
    s.deliver(control(&run("a"), Control::Pause, "wait")).await;
    assert_eq!(held(&s, &["a"]).await, ["a"]);
    assert_eq!(admit(&s).await.admitted, 1);
    let a = s.reclaim(&run("a")).await;
    assert_eq!(s.inbox(&a.run).await.len(), 1, "and then it reads the request");
}

async fn held_run_is_terminated_at_once(s: Scene<'_>) {
    for id in ["a", "b", "c"] {
        hold(&s, id, &[at_once("k", 1)]).await;
    }
    admit(&s).await;
    let lease = s.node("n", 3_600_000).await;
    let mut b = Owned::of(&s.seize(lease, 1, &run("b")).await.unwrap());
    finish(&s, &mut b).await;
    assert_eq!(s.view(&run("b")).await.status, Status::Completed);
    assert_eq!(s.store.held(run("b")).await, Ok(None));
    end(&s, "a").await;
    assert_eq!(admit(&s).await.admitted, 1);
    assert!(s.view(&run("c")).await.ready);
}

async fn held_run_whose_terminator_died_is_held_as_before(s: Scene<'_>) {
    hold(&s, "a", &[at_once("k", 1)]).await;
    hold(&s, "b", &[at_once("k", 1)]).await;
    admit(&s).await;
    let dead = s.node("dead", 10).await;
    s.seize(dead, 1, &run("b")).await.unwrap();
    s.deliver(signal(&run("b"), "go", "1", "{}")).await;
    assert_eq!(admit(&s).await.admitted, 0);
    s.clock.set(20);
    let lease = s.node("n", 3_600_000).await;
    assert_eq!(s.claim_ids(lease, 1).await, ["a"], "it must not begin beside the other");
    s.clock.set(30);
    assert_eq!(held(&s, &["b"]).await, ["b"]);
    let mut a = Owned::of(&s.claim_run(lease, 1, &run("a")).await.unwrap());
    finish(&s, &mut a).await;
    assert_eq!(admit(&s).await.admitted, 1);
}

async fn held_run_that_was_seized_and_given_back_is_held_as_before(s: Scene<'_>) {
    hold(&s, "a", &[at_once("k", 1)]).await;
    let lease = s.node("n", 3_600_000).await;
    let b = s.seize(lease, 1, &run("a")).await.unwrap();
    assert_eq!(admit(&s).await.admitted, 0, "somebody ends it");
    let release = crate::Release { run: run("a"), fence: b.fence, again: true };
    s.store.release(vec![release]).await.remove(0).unwrap();
    assert_eq!(held(&s, &["a"]).await, ["a"]);
    assert_eq!(admit(&s).await.admitted, 1);
}

async fn held_run_that_was_parked_is_held_when_it_is_unparked(s: Scene<'_>) {
    hold(&s, "a", &[at_once("k", 1)]).await;
    hold(&s, "b", &[at_once("k", 1)]).await;
    admit(&s).await;
    let lease = s.node("n", 3_600_000).await;
    let mut b = Owned::of(&s.seize(lease, 1, &run("b")).await.unwrap());
    let park = b.commit().park("damaged");
    s.apply(&mut b, park).await;
    end(&s, "a").await;
    assert_eq!(admit(&s).await.admitted, 0);
    hold(&s, "c", &[at_once("k", 1)]).await;
    assert_eq!(admit(&s).await.admitted, 1, "a parked one holds up nobody");
    assert_eq!(s.store.unpark(run("b")).await, Ok(true));
    assert_eq!(admit(&s).await.admitted, 0);
    assert_eq!(held(&s, &["b"]).await, ["b"]);
    end(&s, "c").await;
    assert_eq!(admit(&s).await.admitted, 1);
}

async fn held_run_is_listed_and_cannot_be_deleted(s: Scene<'_>) {
    let a = hold(&s, "a", &[at_once("k", 1)]).await;
    let filter = crate::Filter { status: vec![Status::Queued], ..crate::Filter::all(namespace("default")) };
    assert_eq!(s.store.list(filter).await.unwrap().runs.len(), 1);
    assert_eq!(s.store.count(namespace("default")).await.unwrap(), [(Status::Queued, 1)]);
    assert_eq!(s.store.delete(a.clone(), WHY.to_owned()).await, Err(StoreError::Live(a)));
}

async fn held_run_says_why(s: Scene<'_>) {
    let limits = [at_once("k", 1), rated("api", Rate::new(1, ms(100)))];
    for id in ["a", "b", "c"] {
        hold(&s, id, &limits).await;
    }
    admit(&s).await;
    let why = s.store.held(run("c")).await.unwrap().unwrap();
    assert_eq!((why.not_before, why.at, why.ahead), (at(0), Some(0), 1));
    let single = false;
    let bound = Bound::Concurrency { max: 1 };
    assert_eq!(why.limits[0], HeldLimit { key: "k".to_owned(), bound, single, used: 1, room_at: None });
    assert_eq!((why.limits[1].key.as_str(), why.limits[1].room_at), ("api", Some(at(100))));
    end(&s, "a").await;
    admit(&s).await;
    let why = s.store.held(run("c")).await.unwrap().unwrap();
    assert!(why.at.is_some());
    assert_eq!(s.store.held(run("nobody")).await, Err(StoreError::NotFound(run("nobody"))));
}
