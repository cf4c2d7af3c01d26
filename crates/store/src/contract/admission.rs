//! Flow control: a run that is held back is admitted when there is room, and never before.

use futures_util::future::join;
use outlast_core::commit::{Admission, Begin, Bound, Fair, Limit, NewRun, Rate, Status};
use outlast_core::id::{Generation, Index, LimitKey, RunKey};

use super::scene::{Held as Owned, *};
use crate::{Admitted, StoreError};

super::stories! {
    run_with_a_limit_is_held_back_until_it_is_admitted,
    limit_is_never_exceeded_and_the_end_of_a_run_makes_room,
    slot_is_kept_until_the_end_of_its_run_whatever_happens_to_it,
    run_begins_when_all_its_keys_have_room,
    run_that_waits_for_another_key_holds_up_nobody_behind_it,
    limits_of_another_namespace_are_others,
    limit_that_was_said_last_holds_for_all,
    delayed_run_begins_at_its_time_and_not_before,
    run_that_is_to_begin_in_the_past_begins_now,
    rate_admits_evenly_and_says_when_the_next_one_may_begin,
    rate_with_a_burst_admits_so_many_at_once,
    rate_and_concurrency_of_one_key_both_hold,
    higher_priority_is_admitted_first,
    shares_of_a_limit_are_as_their_weights,
    newcomer_has_its_share_at_once_though_others_have_many_waiting,
    admitting_by_two_at_once_exceeds_nothing,
    admitting_a_few_at_a_time_admits_all,
    clock_that_steps_back_admits_nobody_early_and_loses_nobody,
    many_held_runs_with_several_keys_all_begin_and_no_limit_is_exceeded,
    run_that_asks_for_what_cannot_be_is_refused,
    run_that_is_held_back_has_no_owner,
}

pub(super) fn limit_key(text: &str) -> LimitKey {
    LimitKey::new(text).unwrap()
}

pub(super) fn at_once(key: &str, max: u32) -> Limit {
    Limit { key: limit_key(key), bound: Bound::Concurrency { max } }
}

pub(super) fn rated(key: &str, rate: Rate) -> Limit {
    Limit { key: limit_key(key), bound: Bound::Rate(rate) }
}

pub(super) fn limited(limits: &[Limit]) -> Admission {
    Admission { limits: limits.to_vec(), ..Admission::default() }
}

pub(super) fn admitted_as(id: &str, admission: Admission) -> NewRun {
    NewRun { admission: Some(Box::new(admission)), ..new_run(&run(id)) }
}

/// Creates a run with limits.
pub(super) async fn hold(s: &Scene<'_>, id: &str, limits: &[Limit]) -> RunKey {
    s.create(admitted_as(id, limited(limits))).await;
    run(id)
}

/// Admits until there is no more to do; the last answer.
pub(super) async fn admit(s: &Scene<'_>) -> Admitted {
    let mut admitted = 0;
    loop {
        let answer = s.store.admit(256).await.unwrap();
        admitted += answer.admitted;
        if !answer.more {
            return Admitted { admitted, ..answer };
        }
    }
}

/// Which of these are held back.
pub(super) async fn held(s: &Scene<'_>, ids: &[&str]) -> Vec<String> {
    let mut held = Vec::new();
    for id in ids {
        let view = s.view(&run(id)).await;
        if view.status == Status::Queued && !view.ready {
            assert!(s.store.held(run(id)).await.unwrap().is_some(), "{id} is held back for a reason");
            held.push((*id).to_owned());
        }
    }
    held
}

/// Claims a run and ends it.
pub(super) async fn end(s: &Scene<'_>, id: &str) {
    let mut owned = s.reclaim(&run(id)).await;
    finish(s, &mut owned).await;
}

pub(super) async fn finish(s: &Scene<'_>, owned: &mut Owned) {
    let commit = owned.commit().event("end").finish();
    s.apply(owned, commit).await;
}

async fn run_with_a_limit_is_held_back_until_it_is_admitted(s: Scene<'_>) {
    let a = hold(&s, "a", &[at_once("k", 1)]).await;
    let view = s.view(&a).await;
    assert_eq!((view.status, view.ready, view.owner), (Status::Queued, false, None));
    let lease = s.node("n", 1_000).await;
    assert_eq!(s.claim_ids(lease, 1).await, Vec::<String>::new());
    assert_eq!(s.claim_run(lease, 2, &a).await, None);
    let admitted = s.store.admit(10).await.unwrap();
    assert_eq!(admitted, Admitted { now: at(0), admitted: 1, next_at: None, more: false, waiting: false });
    assert_eq!(s.store.held(a.clone()).await, Ok(None));
    assert_eq!(s.claim_ids(lease, 3).await, ["a"]);
}

async fn limit_is_never_exceeded_and_the_end_of_a_run_makes_room(s: Scene<'_>) {
    for id in ["a", "b", "c", "d"] {
        hold(&s, id, &[at_once("k", 2)]).await;
    }
    let admitted = admit(&s).await;
    assert_eq!((admitted.admitted, admitted.waiting, admitted.next_at), (2, true, None));
    assert_eq!(held(&s, &["a", "b", "c", "d"]).await, ["c", "d"]);
    assert_eq!(admit(&s).await.admitted, 0);
    end(&s, "b").await;
    assert_eq!(admit(&s).await.admitted, 1);
    assert_eq!(held(&s, &["c", "d"]).await, ["d"]);
    end(&s, "a").await;
    end(&s, "c").await;
    assert_eq!(admit(&s).await.admitted, 1);
    end(&s, "d").await;
    assert_eq!(admit(&s).await, Admitted { now: at(0), ..Admitted::default() });
}

async fn slot_is_kept_until_the_end_of_its_run_whatever_happens_to_it(s: Scene<'_>) {
    hold(&s, "a", &[at_once("k", 1)]).await;
    hold(&s, "b", &[at_once("k", 1)]).await;
    admit(&s).await;
    let mut a = s.reclaim(&run("a")).await;
    let suspend = a.commit().event("sleeps").suspend();
    s.apply(&mut a, suspend).await;
    assert_eq!(admit(&s).await.admitted, 0, "it sleeps");
    s.deliver(signal(&run("a"), "go", "1", "{}")).await;
    let mut a = s.reclaim(&run("a")).await;
    let commit = a.commit().event("again").continue_as_new("next");
    s.apply(&mut a, commit).await;
    assert_eq!(admit(&s).await.admitted, 0, "its next generation is the same run");
    (a.next, a.generation) = (Index(0), Generation(1));
    let park = a.commit().event("stuck").park("why");
    s.apply(&mut a, park).await;
    assert_eq!(admit(&s).await.admitted, 0, "it is parked");
    s.store.unpark(run("a")).await.unwrap();
    end(&s, "a").await;
    assert_eq!(admit(&s).await.admitted, 1);
}

async fn run_begins_when_all_its_keys_have_room(s: Scene<'_>) {
    hold(&s, "a", &[at_once("x", 1)]).await;
    hold(&s, "b", &[at_once("y", 1)]).await;
    admit(&s).await;
    hold(&s, "both", &[at_once("x", 1), at_once("y", 1)]).await;
    assert_eq!(admit(&s).await.admitted, 0);
    end(&s, "a").await;
    assert_eq!(admit(&s).await.admitted, 0, "x alone is not enough");
    end(&s, "b").await;
    assert_eq!(admit(&s).await.admitted, 1);
    hold(&s, "c", &[at_once("x", 1)]).await;
    hold(&s, "d", &[at_once("y", 1)]).await;
    assert_eq!(admit(&s).await.admitted, 0, "it uses both");
    end(&s, "both").await;
    assert_eq!(admit(&s).await.admitted, 2);
}

async fn run_that_waits_for_another_key_holds_up_nobody_behind_it(s: Scene<'_>) {
    hold(&s, "x", &[at_once("x", 1)]).await;
    admit(&s).await;
    // More than any look ahead: each of them waits for x, none of them for y.
    let many: Vec<String> = (0..40).map(|n| format!("m{n:02}")).collect();
    for id in &many {
        hold(&s, id, &[at_once("y", 1), at_once("x", 1)]).await;
    }
    hold(&s, "last", &[at_once("y", 1)]).await;
    assert_eq!(admit(&s).await.admitted, 1);
    assert_eq!(held(&s, &["m00", "last"]).await, ["m00"]);
    end(&s, "last").await;
    end(&s, "x").await;
    assert_eq!(admit(&s).await.admitted, 1, "and the first of them goes on when there is room for it");
    assert_eq!(held(&s, &["m00", "m01"]).await, ["m01"]);
}

async fn limits_of_another_namespace_are_others(s: Scene<'_>) {
    s.store.put_namespace(namespace("other")).await.unwrap();
    hold(&s, "a", &[at_once("k", 1)]).await;
    let theirs = NewRun { run: run_in("other", "a"), ..admitted_as("a", limited(&[at_once("k", 1)])) };
    s.create(theirs).await;
    assert_eq!(admit(&s).await.admitted, 2);
}

async fn limit_that_was_said_last_holds_for_all(s: Scene<'_>) {
    for id in ["a", "b", "c", "d"] {
        hold(&s, id, &[at_once("k", 1)]).await;
    }
    assert_eq!(admit(&s).await.admitted, 1);
    hold(&s, "e", &[at_once("k", 3)]).await;
    assert_eq!(admit(&s).await.admitted, 2);
    assert_eq!(held(&s, &["a", "b", "c", "d", "e"]).await, ["d", "e"], "those who waited longer are first");
    hold(&s, "f", &[at_once("k", 1)]).await;
    assert_eq!(admit(&s).await.admitted, 0);
    end(&s, "a").await;
    end(&s, "b").await;
    assert_eq!(admit(&s).await.admitted, 0, "one is one");
    end(&s, "c").await;
    assert_eq!(admit(&s).await.admitted, 1);
}

async fn delayed_run_begins_at_its_time_and_not_before(s: Scene<'_>) {
    let after = Admission { begin: Begin::After(ms(50)), ..Admission::default() };
    s.create(admitted_as("a", after)).await;
    let until = Admission { begin: Begin::At(at(80)), ..Admission::default() };
    s.create(admitted_as("b", until)).await;
    let admitted = admit(&s).await;
    assert_eq!((admitted.admitted, admitted.next_at), (0, Some(at(50))));
    s.clock.set(49);
    assert_eq!(admit(&s).await.admitted, 0);
    s.clock.set(50);
    let admitted = admit(&s).await;
    assert_eq!((admitted.admitted, admitted.next_at), (1, Some(at(80))));
    assert_eq!(held(&s, &["a", "b"]).await, ["b"]);
    s.clock.set(80);
    assert_eq!(admit(&s).await.admitted, 1);
}

async fn run_that_is_to_begin_in_the_past_begins_now(s: Scene<'_>) {
    s.clock.set(100);
    let past = Admission { begin: Begin::At(at(10)), ..Admission::default() };
    s.create(admitted_as("a", past)).await;
    assert_eq!(admit(&s).await.admitted, 1);
}

async fn rate_admits_evenly_and_says_when_the_next_one_may_begin(s: Scene<'_>) {
    let limit = rated("api", Rate::new(3, ms(100)));
    for id in ["a", "b", "c", "d"] {
        hold(&s, id, std::slice::from_ref(&limit)).await;
    }
    let mut instants = Vec::new();
    loop {
        let admitted = admit(&s).await;
        instants.extend(std::iter::repeat_n(admitted.now.as_millis(), admitted.admitted));
        match admitted.next_at {
            Some(next) if instants.len() < 4 => s.clock.set(next.as_millis()),
            _ => break,
        }
    }
    assert_eq!(instants, [0, 34, 68, 102], "a third of the period apart, and never early");
    assert_eq!(held(&s, &["a", "b", "c", "d"]).await, Vec::<String>::new());
}

async fn rate_with_a_burst_admits_so_many_at_once(s: Scene<'_>) {
    let limit = rated("api", Rate::new(10, ms(100)).burst(3));
    for id in ["a", "b", "c", "d", "e"] {
        hold(&s, id, std::slice::from_ref(&limit)).await;
    }
    let admitted = admit(&s).await;
    assert_eq!((admitted.admitted, admitted.next_at), (3, Some(at(10))));
    s.clock.set(20);
    assert_eq!(admit(&s).await.admitted, 2, "what was not asked for in time is made up for");
}

async fn rate_and_concurrency_of_one_key_both_hold(s: Scene<'_>) {
    let limits = [at_once("k", 1), rated("k", Rate::new(1, ms(100)))];
    hold(&s, "a", &limits).await;
    hold(&s, "b", &limits).await;
    hold(&s, "c", &limits).await;
    assert_eq!(admit(&s).await.admitted, 1);
    s.clock.set(100);
    assert_eq!(admit(&s).await.admitted, 0, "one at once");
    end(&s, "a").await;
    assert_eq!(admit(&s).await.admitted, 1);
    end(&s, "b").await;
    assert_eq!(admit(&s).await.admitted, 0, "one in 100 ms");
    s.clock.set(200);
    assert_eq!(admit(&s).await.admitted, 1);
}

async fn higher_priority_is_admitted_first(s: Scene<'_>) {
    hold(&s, "a", &[at_once("k", 1)]).await;
    admit(&s).await;
    for (id, priority) in [("low", -5), ("usual", 10), ("high", 100)] {
        let new = NewRun { priority, ..admitted_as(id, limited(&[at_once("k", 1)])) };
        s.create(new).await;
        admit(&s).await;
    }
    for (done, next) in [("a", "high"), ("high", "usual"), ("usual", "low")] {
        end(&s, done).await;
        assert_eq!(admit(&s).await.admitted, 1);
        assert!(s.view(&run(next)).await.ready, "{next} is next");
    }
}

/// Creates runs `id0`, `id1` … of a tenant under the limit `k` of one.
async fn of_tenant(s: &Scene<'_>, tenant: &str, weight: u32, count: usize) {
    for n in 0..count {
        let fair = Some(Fair { key: limit_key(tenant), weight });
        let admission = Admission { fair, ..limited(&[at_once("k", 1)]) };
        s.create(admitted_as(&format!("{tenant}{n}"), admission)).await;
    }
}

/// Ends what runs and admits the next, so many times; whose they were.
async fn turns(s: &Scene<'_>, count: usize) -> String {
    let mut turns = String::new();
    let lease = s.node("turns", 3_600_000).await;
    for n in 0..count {
        admit(s).await;
        let claimed = s.claim(lease, 1_000 + n as u64, crate::Pick::Ready).await;
        assert_eq!(claimed.len(), 1, "one at once");
        let mut owned = Owned::of(&claimed[0]);
        turns.push_str(&owned.run.id.as_str()[..1]);
        finish(s, &mut owned).await;
    }
    turns
}

async fn shares_of_a_limit_are_as_their_weights(s: Scene<'_>) {
    of_tenant(&s, "a", 1, 6).await;
    of_tenant(&s, "b", 2, 6).await;
    let turns = turns(&s, 9).await;
    assert_eq!(turns.matches('a').count(), 3, "{turns}");
    assert_eq!(turns.matches('b').count(), 6, "{turns}");
    assert!(!turns.contains("aa") && !turns.contains("bbb"), "{turns}");
}

async fn newcomer_has_its_share_at_once_though_others_have_many_waiting(s: Scene<'_>) {
    of_tenant(&s, "a", 1, 30).await;
    assert_eq!(turns(&s, 10).await, "aaaaaaaaaa");
    of_tenant(&s, "b", 1, 5).await;
    let turns = turns(&s, 8).await;
    assert_eq!(turns.matches('b').count(), 4, "{turns}");
}

async fn admitting_by_two_at_once_exceeds_nothing(s: Scene<'_>) {
    let second = s.other().await;
    for n in 0..20 {
        hold(&s, &format!("r{n}"), &[at_once("k", 3)]).await;
    }
    let (one, two) = join(s.store.admit(256), second.admit(256)).await;
    assert_eq!(one.unwrap().admitted + two.unwrap().admitted, 3);
}

async fn admitting_a_few_at_a_time_admits_all(s: Scene<'_>) {
    for n in 0..10 {
        hold(&s, &format!("r{n}"), &[at_once("k", 20)]).await;
    }
    let mut calls = Vec::new();
    loop {
        let answer = s.store.admit(3).await.unwrap();
        calls.push(answer.admitted);
        if !answer.more {
            break;
        }
    }
    assert_eq!(calls.iter().sum::<usize>(), 10);
    assert!(calls.iter().all(|admitted| *admitted <= 3), "{calls:?}");
}

async fn clock_that_steps_back_admits_nobody_early_and_loses_nobody(s: Scene<'_>) {
    s.clock.set(1_000);
    hold(&s, "a", &[rated("api", Rate::new(1, ms(100)))]).await;
    hold(&s, "b", &[rated("api", Rate::new(1, ms(100)))]).await;
    let delayed = Admission { begin: Begin::After(ms(50)), ..Admission::default() };
    s.create(admitted_as("c", delayed)).await;
    assert_eq!(admit(&s).await.admitted, 1);
    s.clock.set(500);
    assert_eq!(admit(&s).await.admitted, 0);
    s.clock.set(1_049);
    assert_eq!(admit(&s).await.admitted, 0);
    s.clock.set(1_100);
    assert_eq!(admit(&s).await.admitted, 2);
}

async fn many_held_runs_with_several_keys_all_begin_and_no_limit_is_exceeded(s: Scene<'_>) {
    let maxes = [2, 3, 1, 4];
    let keys = |n: usize| [n % 4, (n / 4) % 4];
    for n in 0..60 {
        let [one, two] = keys(n);
        let mut limits = vec![at_once(&format!("k{one}"), maxes[one])];
        if one != two {
            limits.push(at_once(&format!("k{two}"), maxes[two]));
        }
        hold(&s, &format!("r{n}"), &limits).await;
    }
    let lease = s.node("n", 3_600_000).await;
    let (mut running, mut ended, mut claim): (Vec<(usize, Owned)>, usize, u64) = (Vec::new(), 0, 0);
    while ended < 60 {
        admit(&s).await;
        loop {
            claim += 1;
            let claimed = s.claim(lease, claim, crate::Pick::Ready).await;
            if claimed.is_empty() {
                break;
            }
            for claimed in claimed {
                let n = claimed.run.id.as_str()[1..].parse().unwrap();
                running.push((n, Owned::of(&claimed)));
            }
        }
        for (key, max) in maxes.iter().enumerate() {
            let used = running.iter().filter(|(n, _)| keys(*n).contains(&key)).count();
            assert!(used <= *max as usize, "{used} run under k{key}");
        }
        assert!(!running.is_empty(), "{} of 60 have ended and nobody runs", ended);
        let (_, mut owned) = running.remove(ended % running.len());
        finish(&s, &mut owned).await;
        ended += 1;
    }
}

async fn run_that_asks_for_what_cannot_be_is_refused(s: Scene<'_>) {
    let refused = s.try_create(admitted_as("a", limited(&[at_once("k", 0)]))).await;
    assert!(matches!(&refused, Err(StoreError::Settings(why)) if why.contains("from 1 to")), "{refused:?}");
    assert_eq!(s.store.get(run("a")).await, Err(StoreError::NotFound(run("a"))));
}

async fn run_that_is_held_back_has_no_owner(s: Scene<'_>) {
    let lease = s.node("n", 1_000).await;
    let owner = Some(outlast_core::commit::Owner { lease, claim: outlast_core::id::ClaimId(1) });
    let new = NewRun { owner, ..admitted_as("a", limited(&[at_once("k", 1)])) };
    assert!(matches!(s.try_create(new).await, Err(StoreError::Settings(_))));
}
