//! Questions: lists, counts, namespaces, attributes, and what a run waits for.

use outlast_core::commit::{NewRun, NewWait, Status, TimerKind, WaitKind};
use outlast_core::id::{AttributeName, RunKey};

use super::scene::*;
use crate::{Awaited, Cursor, Filter, LIST_PAGE_MAX, StoreError, TaskState};

super::stories! {
    list_is_newest_first,
    list_by_status,
    list_by_workflow_and_version,
    list_by_the_beginning_of_the_id_takes_every_letter_as_it_is,
    list_by_time_of_creation_includes_from_and_excludes_until,
    list_by_parent,
    list_by_attribute,
    list_by_everything_at_once,
    list_of_another_namespace_is_its_own,
    pages_join_without_gap_or_overlap,
    pages_stay_put_while_rows_come_and_go,
    page_has_at_least_one_and_at_most_the_maximum,
    deleted_runs_are_hidden,
    count_tells_how_many_stand_where,
    get_of_an_unknown_or_deleted_run_is_an_error,
    attributes_are_set_changed_and_removed_by_commits,
    attributes_survive_the_end_and_the_next_generation,
    awaiting_tells_timers_waits_tasks_and_children_in_this_order,
    awaiting_tells_what_people_need_of_a_wait,
    awaiting_of_an_unknown_run_is_an_error,
    namespaces_are_listed_by_name_and_default_is_there,
    namespace_is_new_once,
    secret_is_the_same_for_everybody,
}

fn all() -> Filter {
    Filter::all(namespace("default"))
}

async fn listed(s: &Scene<'_>, filter: Filter) -> Vec<String> {
    let page = s.store.list(filter).await.unwrap();
    page.runs.into_iter().map(|view| view.run.id.to_string()).collect()
}

fn attribute(name: &str) -> AttributeName {
    AttributeName::new(name).unwrap()
}

async fn list_is_newest_first(s: Scene<'_>) {
    for id in ["b", "c", "a"] {
        s.start(id).await;
    }
    assert_eq!(listed(&s, all()).await, ["a", "c", "b"], "the order of creation, also within one instant");
    assert_eq!(s.store.list(all()).await.unwrap().next, None);
}

async fn list_by_status(s: Scene<'_>) {
    s.start("queued").await;
    s.own("running").await;
    s.ended("completed").await;
    let of = |status: &[Status]| Filter { status: status.to_vec(), ..all() };
    assert_eq!(listed(&s, of(&[Status::Running])).await, ["running"]);
    assert_eq!(listed(&s, of(&[Status::Completed, Status::Queued])).await, ["completed", "queued"]);
    assert_eq!(listed(&s, of(&[Status::Parked])).await, [""; 0]);
    assert_eq!(listed(&s, of(&[])).await.len(), 3, "none named: all");
}

async fn list_by_workflow_and_version(s: Scene<'_>) {
    s.start("a").await;
    s.create(NewRun { workflow: workflow("refund"), ..new_run(&run("b")) }).await;
    s.create(NewRun { version: version("2"), ..new_run(&run("c")) }).await;
    assert_eq!(listed(&s, Filter { workflow: Some(workflow("checkout")), ..all() }).await, ["c", "a"]);
    assert_eq!(listed(&s, Filter { version: Some(version("1")), ..all() }).await, ["b", "a"]);
    let both = Filter { workflow: Some(workflow("checkout")), version: Some(version("2")), ..all() };
    assert_eq!(listed(&s, both).await, ["c"]);
}

async fn list_by_the_beginning_of_the_id_takes_every_letter_as_it_is(s: Scene<'_>) {
    for id in ["order_1", "orderx1", "Order_2", "order%", "order\\", "äpfel", "zz", "order*"] {
        s.start(id).await;
    }
    let prefix = |text: &str| Filter { id_prefix: Some(text.to_owned()), ..all() };
    assert_eq!(listed(&s, prefix("order_")).await, ["order_1"], "`_` is no wildcard");
    assert_eq!(listed(&s, prefix("order%")).await, ["order%"], "`%` is no wildcard");
    assert_eq!(listed(&s, prefix("order\\")).await, ["order\\"]);
    assert_eq!(listed(&s, prefix("order*")).await, ["order*"]);
    assert_eq!(listed(&s, prefix("Order")).await, ["Order_2"], "case matters");
    assert_eq!(listed(&s, prefix("ä")).await, ["äpfel"]);
    assert_eq!(listed(&s, prefix("")).await.len(), 8);
    assert_eq!(listed(&s, prefix("zzz")).await, [""; 0]);
}

async fn list_by_time_of_creation_includes_from_and_excludes_until(s: Scene<'_>) {
    for (id, now) in [("a", 10), ("b", 20), ("c", 30)] {
        s.clock.set(now);
        s.start(id).await;
    }
    let between =
        |from: i64, until: i64| Filter { created_from: Some(at(from)), created_until: Some(at(until)), ..all() };
    assert_eq!(listed(&s, between(10, 30)).await, ["b", "a"]);
    assert_eq!(listed(&s, between(20, 21)).await, ["b"]);
    assert_eq!(listed(&s, between(21, 30)).await, [""; 0]);
}

async fn list_by_parent(s: Scene<'_>) {
    let mut parent = s.own("parent").await;
    let commit = parent.commit().event("x").child(child_of(&parent, "c1", "1")).child(child_of(&parent, "c2", "2"));
    s.apply(&mut parent, commit).await;
    s.start("stranger").await;
    assert_eq!(listed(&s, Filter { parent: Some(run("parent").id), ..all() }).await, ["c2", "c1"]);
    assert_eq!(listed(&s, Filter { parent: Some(run("c1").id), ..all() }).await, [""; 0]);
}

async fn list_by_attribute(s: Scene<'_>) {
    for (id, city) in [("a", "Bern"), ("b", "Basel"), ("c", "Bern")] {
        let attributes = vec![(attribute("city"), city.to_owned()), (attribute("id"), id.to_owned())];
        s.create(NewRun { attributes, ..new_run(&run(id)) }).await;
    }
    let by = |name: &str, value: &str| Filter { attribute: Some((attribute(name), value.to_owned())), ..all() };
    assert_eq!(listed(&s, by("city", "Bern")).await, ["c", "a"]);
    assert_eq!(listed(&s, by("id", "b")).await, ["b"]);
    assert_eq!(listed(&s, by("city", "bern")).await, [""; 0]);
    assert_eq!(listed(&s, by("street", "Bern")).await, [""; 0]);
}

async fn list_by_everything_at_once(s: Scene<'_>) {
    s.clock.set(5);
    let attributes = vec![(attribute("city"), "Bern".to_owned())];
    for id in ["x1", "x2", "y1"] {
        s.create(NewRun { attributes: attributes.clone(), ..new_run(&run(id)) }).await;
    }
    s.create(new_run(&run("x3"))).await;
    let filter = Filter {
        status: vec![Status::Queued],
        workflow: Some(workflow("checkout")),
        version: Some(version("1")),
        id_prefix: Some("x".to_owned()),
        created_from: Some(at(5)),
        created_until: Some(at(6)),
        attribute: Some((attribute("city"), "Bern".to_owned())),
        limit: 1,
        ..all()
    };
    let page = s.store.list(filter.clone()).await.unwrap();
    assert_eq!(page.runs[0].run, run("x2"));
    let page = s.store.list(Filter { after: page.next, ..filter }).await.unwrap();
    assert_eq!((&page.runs[0].run, page.next), (&run("x1"), None));
}

async fn list_of_another_namespace_is_its_own(s: Scene<'_>) {
    s.store.put_namespace(namespace("other")).await.unwrap();
    s.start("here").await;
    s.create(new_run(&run_in("other", "there"))).await;
    assert_eq!(listed(&s, all()).await, ["here"]);
    assert_eq!(listed(&s, Filter::all(namespace("other"))).await, ["there"]);
    assert_eq!(listed(&s, Filter::all(namespace("nowhere"))).await, [""; 0]);
    assert_eq!(s.store.count(namespace("other")).await.unwrap(), [(Status::Queued, 1)]);
}

async fn pages(s: &Scene<'_>, limit: usize) -> Vec<String> {
    let mut found = Vec::new();
    let mut after: Option<Cursor> = None;
    loop {
        let page = s.store.list(Filter { after, limit, ..all() }).await.unwrap();
        assert!(page.runs.len() <= limit);
        found.extend(page.runs.into_iter().map(|view| view.run.id.to_string()));
        match page.next {
            Some(next) => after = Some(next),
            None => return found,
        }
    }
}

async fn pages_join_without_gap_or_overlap(s: Scene<'_>) {
    for number in 0..7 {
        s.start(&number.to_string()).await;
    }
    for limit in 1..9 {
        assert_eq!(pages(&s, limit).await, ["6", "5", "4", "3", "2", "1", "0"], "pages of {limit}");
    }
}

async fn pages_stay_put_while_rows_come_and_go(s: Scene<'_>) {
    for id in ["a", "b"] {
        s.start(id).await;
    }
    s.ended("gone").await;
    for id in ["d", "e"] {
        s.start(id).await;
    }
    let first = s.store.list(Filter { limit: 2, ..all() }).await.unwrap();
    assert_eq!(first.runs.len(), 2);
    s.start("newest").await;
    s.store.delete(run("gone"), WHY.to_owned()).await.unwrap();
    let second = Filter { limit: 2, after: first.next, ..all() };
    assert_eq!(listed(&s, second).await, ["b", "a"], "neither a repetition nor a hole");
}

async fn page_has_at_least_one_and_at_most_the_maximum(s: Scene<'_>) {
    let runs = (0..LIST_PAGE_MAX + 2).map(|number| new_run(&run(&number.to_string()))).collect();
    assert!(s.store.create(runs).await.iter().all(Result::is_ok));
    assert_eq!(s.store.list(Filter { limit: 0, ..all() }).await.unwrap().runs.len(), 1);
    let page = s.store.list(Filter { limit: usize::MAX, ..all() }).await.unwrap();
    assert_eq!(page.runs.len(), LIST_PAGE_MAX);
    let rest = s.store.list(Filter { limit: usize::MAX, after: page.next, ..all() }).await.unwrap();
    assert_eq!((rest.runs.len(), rest.next), (2, None));
    let beyond = Filter { after: Some(Cursor(u64::MAX)), limit: 1, ..all() };
    assert_eq!(listed(&s, beyond).await, [(LIST_PAGE_MAX + 1).to_string()]);
    assert_eq!(listed(&s, Filter { after: Some(Cursor(0)), ..all() }).await, [""; 0]);
}

async fn deleted_runs_are_hidden(s: Scene<'_>) {
    s.start("stays").await;
    let gone = s.ended("gone").await;
    s.store.delete(gone, WHY.to_owned()).await.unwrap();
    assert_eq!(listed(&s, all()).await, ["stays"]);
    assert_eq!(s.store.count(namespace("default")).await.unwrap(), [(Status::Queued, 1)]);
}

async fn count_tells_how_many_stand_where(s: Scene<'_>) {
    assert_eq!(s.store.count(namespace("default")).await.unwrap(), []);
    s.ended("c").await;
    s.start("a").await;
    s.start("b").await;
    s.own("d").await;
    let counts = s.store.count(namespace("default")).await.unwrap();
    assert_eq!(counts, [(Status::Queued, 2), (Status::Running, 1), (Status::Completed, 1)]);
    assert_eq!(s.store.count(namespace("nowhere")).await.unwrap(), []);
}

async fn get_of_an_unknown_or_deleted_run_is_an_error(s: Scene<'_>) {
    let gone = s.ended("gone").await;
    s.store.delete(gone.clone(), WHY.to_owned()).await.unwrap();
    for (run, error) in [(run("none"), StoreError::NotFound(run("none"))), (gone.clone(), tombstone(gone))] {
        assert_eq!(s.store.get(run.clone()).await.unwrap_err(), error);
        assert_eq!(s.store.awaiting(run.clone()).await.unwrap_err(), error);
        assert_eq!(s.store.attributes(run.clone()).await.unwrap_err(), error);
        assert_eq!(s.store.unpark(run).await.unwrap_err(), error);
    }
    let elsewhere: RunKey = run_in("nowhere", "a");
    assert_eq!(s.store.get(elsewhere.clone()).await.unwrap_err(), StoreError::NotFound(elsewhere));
}

async fn attributes_are_set_changed_and_removed_by_commits(s: Scene<'_>) {
    let mut held = s.own("a").await;
    for (value, expected) in [(Some("1"), Some("1")), (Some("2"), Some("2")), (None, None), (None, None)] {
        let change = vec![(attribute("n"), value.map(str::to_owned))];
        let commit = held.commit().event("x").change(|commit| commit.attributes = change);
        s.apply(&mut held, commit).await;
        let found = s.store.attributes(held.run.clone()).await.unwrap();
        assert_eq!(found.first().map(|(_, value)| value.as_str()), expected);
    }
}

async fn attributes_survive_the_end_and_the_next_generation(s: Scene<'_>) {
    let mut held = s.own("a").await;
    let change = vec![(attribute("n"), Some("1".to_owned()))];
    let commit = held.commit().event("x").change(|commit| commit.attributes = change).continue_as_new("{}");
    s.apply(&mut held, commit).await;
    held.next = outlast_core::id::Index(0);
    let commit = held.commit().event("end").finish();
    s.apply(&mut held, commit).await;
    assert_eq!(s.store.attributes(held.run).await.unwrap(), [("n".to_owned(), "1".to_owned())]);
}

async fn awaiting_tells_timers_waits_tasks_and_children_in_this_order(s: Scene<'_>) {
    let mut held = s.own("a").await;
    let commit = held
        .commit()
        .event("x")
        .child(child_of(&held, "child", "b"))
        .task(new_task("2", Some("z")))
        .task(new_task("1", Some("ä")))
        .wait_signal("b", "go")
        .approval("B")
        .sleep("z", 9)
        .sleep("a", 10);
    s.apply(&mut held, commit).await;
    let seen: Vec<String> = s.awaiting(&held.run).await.iter().map(short).collect();
    assert_eq!(
        seen,
        ["timer a", "timer z", "wait B", "wait b", "task z", "task ä", "child b"],
        "each by key, by bytes"
    );
}

fn short(awaited: &Awaited) -> String {
    match awaited {
        Awaited::Timer { key, .. } => format!("timer {key}"),
        Awaited::Wait { key, .. } => format!("wait {key}"),
        Awaited::Task { key, .. } => format!("task {key}"),
        Awaited::Child { key, .. } => format!("child {key}"),
    }
}

async fn awaiting_tells_what_people_need_of_a_wait(s: Scene<'_>) {
    s.clock.set(12);
    let mut held = s.own("a").await;
    let (assignee, meta) = (Some("ann".to_owned()), Some(bytes("{\"title\":\"Ship?\"}")));
    let approval = NewWait { assignee: assignee.clone(), meta: meta.clone(), ..new_wait("ok", WaitKind::Approval) };
    let commit = held.commit().event("x").wait(approval).wait_signal("w", "go").sleep("t", 99);
    let commit = commit.task(new_task("t", Some("op")));
    s.apply(&mut held, commit).await;
    let wait = |name: &str, kind, signal: Option<&str>| Awaited::Wait {
        key: key(name),
        kind,
        name: signal.map(str::to_owned),
        assignee: assignee.clone().filter(|_| kind == WaitKind::Approval),
        answered: false,
        meta: meta.clone().filter(|_| kind == WaitKind::Approval),
        since: at(12),
    };
    let expected = [
        Awaited::Timer { key: key("t"), kind: TimerKind::Delay, due: at(99) },
        wait("ok", WaitKind::Approval, None),
        wait("w", WaitKind::Signal, Some("go")),
        Awaited::Task { key: key("op"), id: task_id("t"), state: TaskState::Ready },
    ];
    assert_eq!(s.awaiting(&held.run).await, expected);
}

async fn awaiting_of_an_unknown_run_is_an_error(s: Scene<'_>) {
    assert_eq!(s.store.awaiting(run("none")).await.unwrap_err(), StoreError::NotFound(run("none")));
    let ended = s.ended("a").await;
    assert_eq!(s.awaiting(&ended).await, [], "what ended waits for nothing");
}

async fn namespaces_are_listed_by_name_and_default_is_there(s: Scene<'_>) {
    let other = s.other().await;
    assert_eq!(s.store.namespaces().await.unwrap(), [namespace("default")]);
    for name in ["b", "B", "é", "a"] {
        assert_eq!(s.store.put_namespace(namespace(name)).await, Ok(true));
    }
    let expected = ["B", "a", "b", "default", "é"].map(namespace);
    assert_eq!(other.namespaces().await.unwrap(), expected, "by bytes");
}

async fn secret_is_the_same_for_everybody(s: Scene<'_>) {
    let other = s.other().await;
    let secret = s.store.secret().await.unwrap();
    assert_eq!(other.secret().await.unwrap(), secret);
    assert_ne!(secret, [0; 32]);
}

async fn namespace_is_new_once(s: Scene<'_>) {
    let other = s.other().await;
    assert_eq!(s.store.put_namespace(namespace("a")).await, Ok(true));
    assert_eq!(s.store.put_namespace(namespace("a")).await, Ok(false));
    assert_eq!(s.store.put_namespace(namespace("default")).await, Ok(false));
    other.create(vec![new_run(&run_in("a", "x"))]).await.remove(0).unwrap();
}
