//! Workflows that are text: every version is kept, one is current, and what is new can be told.

use futures_util::future::{join, join_all, join3};
use outlast_core::commit::NewRun;
use outlast_core::id::Revision;
use outlast_core::limits::TEXT_BYTES_MAX;

use super::RawWrite;
use super::scene::*;
use crate::{Defined, Definition, DefinitionFilter, DefinitionPage, DefinitionView, Store, StoreError, Style};

super::stories! {
    definition_is_there_with_its_text_and_is_the_current_one,
    definition_that_was_replaced_is_kept,
    definition_again_changes_nothing,
    definition_of_an_earlier_text_makes_it_current_again,
    definition_is_never_overwritten,
    definition_keeps_the_file_it_first_came_from,
    definitions_of_one_call_are_applied_in_order_and_one_refusal_touches_no_other,
    definition_of_another_namespace_is_another,
    definition_of_an_unknown_namespace_is_refused,
    definition_that_is_missing_is_none,
    definition_may_have_any_bytes,
    definitions_are_listed_by_revision_in_pages,
    definitions_that_are_new_are_told_without_the_old,
    definitions_of_another_process_are_seen_and_none_is_missed,
    definitions_of_many_at_once_are_all_there_and_one_is_current,
    definition_that_a_live_run_has_is_not_forgotten,
    definition_that_only_ended_runs_had_is_forgotten,
    definition_that_a_run_of_another_namespace_workflow_or_version_has_is_forgotten,
    definition_that_is_current_is_forgotten_last,
    definition_that_is_forgotten_may_come_again_and_its_revision_does_not,
    definition_is_not_needed_to_begin_a_run_and_a_race_leaves_one_or_the_other,
    definition_that_is_restored_while_it_is_forgotten_is_there,
    definition_that_cannot_be_is_refused_by_the_database;
    small limits:
    definition_that_is_too_large_is_refused,
}

fn definition(of: &str, hash: &str, text: &str) -> Definition {
    Definition {
        namespace: namespace("default"),
        workflow: workflow(of),
        version: version(hash),
        style: Style::Script,
        file: "shop.js".to_owned(),
        text: bytes(text),
    }
}

async fn define(store: &dyn Store, definition: Definition) -> Result<Defined, StoreError> {
    store.define(vec![definition]).await.remove(0)
}

/// The text of the current version, or of the one that is named.
async fn text(s: &Scene<'_>, of: &str, hash: Option<&str>) -> Option<String> {
    let found = s.store.definition(namespace("default"), workflow(of), hash.map(version)).await.unwrap();
    found.map(|found| String::from_utf8_lossy(&found.text).into_owned())
}

async fn forget(store: &dyn Store, of: &str, hash: &str) -> Result<bool, StoreError> {
    store.forget_definition(namespace("default"), workflow(of), version(hash)).await
}

async fn since(store: &dyn Store, revision: u64) -> DefinitionPage {
    store.definitions(DefinitionFilter::since(Revision(revision))).await.unwrap()
}

fn names(page: &DefinitionPage) -> Vec<(&str, &str, u64, bool)> {
    let definitions = page.definitions.iter();
    definitions.map(|view| (view.workflow.as_str(), view.version.as_str(), view.revision.0, view.current)).collect()
}

async fn definition_is_there_with_its_text_and_is_the_current_one(s: Scene<'_>) {
    s.clock.set(7);
    let flow = Definition { style: Style::Flow, ..definition("pay", "h1", "one") };
    assert_eq!(define(&*s.store, flow.clone()).await, Ok(Defined::New(Revision(1))));
    s.clock.set(9);
    for hash in [None, Some(version("h1"))] {
        let found = s.store.definition(namespace("default"), workflow("pay"), hash).await.unwrap().unwrap();
        let view = DefinitionView {
            namespace: namespace("default"),
            workflow: workflow("pay"),
            version: version("h1"),
            style: Style::Flow,
            file: "shop.js".to_owned(),
            bytes: 3,
            defined_at: at(7),
            revision: Revision(1),
            current: true,
        };
        assert_eq!((found.view, found.text), (view, bytes("one")));
    }
}

async fn definition_that_was_replaced_is_kept(s: Scene<'_>) {
    define(&*s.store, definition("pay", "h1", "one")).await.unwrap();
    assert_eq!(define(&*s.store, definition("pay", "h2", "two")).await, Ok(Defined::New(Revision(2))));
    assert_eq!(text(&s, "pay", None).await.as_deref(), Some("two"));
    assert_eq!(text(&s, "pay", Some("h1")).await.as_deref(), Some("one"));
    assert_eq!(names(&since(&*s.store, 0).await), [("pay", "h1", 1, false), ("pay", "h2", 2, true)]);
}

async fn definition_again_changes_nothing(s: Scene<'_>) {
    define(&*s.store, definition("pay", "h1", "one")).await.unwrap();
    let before = since(&*s.store, 0).await;
    s.clock.advance(5);
    for _ in 0..2 {
        let again = define(&*s.store, definition("pay", "h1", "one")).await;
        assert_eq!(again, Ok(Defined::Unchanged(Revision(1))));
        assert_eq!(since(&*s.store, 0).await, before);
    }
}

async fn definition_of_an_earlier_text_makes_it_current_again(s: Scene<'_>) {
    define(&*s.store, definition("pay", "h1", "one")).await.unwrap();
    define(&*s.store, definition("pay", "h2", "two")).await.unwrap();
    s.clock.advance(5);
    let again = define(&*s.store, definition("pay", "h1", "one")).await;
    assert_eq!(again, Ok(Defined::Restored(Revision(3))));
    assert_eq!(text(&s, "pay", None).await.as_deref(), Some("one"));
    let page = since(&*s.store, 0).await;
    assert_eq!(names(&page), [("pay", "h2", 2, false), ("pay", "h1", 3, true)]);
    assert_eq!(page.definitions[1].defined_at, at(0), "it is as old as it was");
}

async fn definition_is_never_overwritten(s: Scene<'_>) {
    define(&*s.store, definition("pay", "h1", "one")).await.unwrap();
    define(&*s.store, definition("pay", "h2", "two")).await.unwrap();
    let before = since(&*s.store, 0).await;
    let refused = |hash| StoreError::DefinitionExists { workflow: workflow("pay"), version: version(hash) };
    for hash in ["h1", "h2"] {
        let other = definition("pay", hash, "other");
        assert_eq!(define(&*s.store, other).await, Err(refused(hash)));
    }
    let other = Definition { style: Style::Flow, ..definition("pay", "h1", "one") };
    assert_eq!(define(&*s.store, other).await, Err(refused("h1")));
    assert_eq!(since(&*s.store, 0).await, before);
    assert_eq!(text(&s, "pay", Some("h1")).await.as_deref(), Some("one"));
}

async fn definition_keeps_the_file_it_first_came_from(s: Scene<'_>) {
    define(&*s.store, definition("pay", "h1", "one")).await.unwrap();
    let moved = Definition { file: "moved.js".to_owned(), ..definition("pay", "h1", "one") };
    assert_eq!(define(&*s.store, moved).await, Ok(Defined::Unchanged(Revision(1))));
    assert_eq!(since(&*s.store, 0).await.definitions[0].file, "shop.js");
}

async fn definitions_of_one_call_are_applied_in_order_and_one_refusal_touches_no_other(s: Scene<'_>) {
    let file = |of: &str| definition(of, "h1", "both");
    let answers = s.store.define(vec![file("pay"), file("ship")]).await;
    assert_eq!(answers, [Ok(Defined::New(Revision(1))), Ok(Defined::New(Revision(2)))]);
    let answers = s
        .store
        .define(vec![
            definition("pay", "h2", "two"),
            definition("pay", "h1", "wrong"),
            definition("pay", "h1", "both"),
            definition("pay", "h3", "three"),
            definition("pay", "h3", "three"),
            definition("ship", "h1", "both"),
        ])
        .await;
    let wrong = StoreError::DefinitionExists { workflow: workflow("pay"), version: version("h1") };
    let expected = [
        Ok(Defined::New(Revision(3))),
        Err(wrong),
        Ok(Defined::Restored(Revision(4))),
        Ok(Defined::New(Revision(5))),
        Ok(Defined::Unchanged(Revision(5))),
        Ok(Defined::Unchanged(Revision(2))),
    ];
    assert_eq!(answers, expected);
    assert_eq!(text(&s, "pay", None).await.as_deref(), Some("three"));
    assert_eq!(s.store.define(Vec::new()).await, []);
}

async fn definition_of_another_namespace_is_another(s: Scene<'_>) {
    s.store.put_namespace(namespace("blue")).await.unwrap();
    define(&*s.store, definition("pay", "h1", "one")).await.unwrap();
    let blue = Definition { namespace: namespace("blue"), ..definition("pay", "h1", "not one") };
    assert_eq!(define(&*s.store, blue).await, Ok(Defined::New(Revision(2))));
    assert_eq!(text(&s, "pay", None).await.as_deref(), Some("one"));
    for (of, revision) in [("default", 1), ("blue", 2)] {
        let filter = DefinitionFilter { namespace: Some(namespace(of)), ..DefinitionFilter::since(Revision(0)) };
        let page = s.store.definitions(filter).await.unwrap();
        assert_eq!(names(&page), [("pay", "h1", revision, true)]);
        assert_eq!(page.definitions[0].namespace, namespace(of));
    }
    assert_eq!(names(&since(&*s.store, 0).await), [("pay", "h1", 1, true), ("pay", "h1", 2, true)]);
}

async fn definition_of_an_unknown_namespace_is_refused(s: Scene<'_>) {
    let stranger = Definition { namespace: namespace("nowhere"), ..definition("pay", "h1", "one") };
    let answers = s.store.define(vec![stranger, definition("pay", "h1", "one")]).await;
    let unknown = StoreError::UnknownNamespace(namespace("nowhere"));
    assert_eq!(answers, [Err(unknown), Ok(Defined::New(Revision(1)))]);
    assert_eq!(s.store.definition(namespace("nowhere"), workflow("pay"), None).await, Ok(None));
    let filter = DefinitionFilter { namespace: Some(namespace("nowhere")), ..DefinitionFilter::since(Revision(4)) };
    let nothing = DefinitionPage { definitions: Vec::new(), next: Revision(4), more: false };
    assert_eq!(s.store.definitions(filter).await, Ok(nothing));
    assert_eq!(s.store.forget_definition(namespace("nowhere"), workflow("pay"), version("h1")).await, Ok(false));
}

async fn definition_that_is_missing_is_none(s: Scene<'_>) {
    assert_eq!(text(&s, "pay", None).await, None);
    define(&*s.store, definition("pay", "h1", "one")).await.unwrap();
    assert_eq!(text(&s, "pay", Some("h2")).await, None);
    assert_eq!(text(&s, "ship", Some("h1")).await, None);
    assert_eq!(forget(&*s.store, "pay", "h2").await, Ok(false));
    assert_eq!(forget(&*s.store, "ship", "h1").await, Ok(false));
}

async fn definition_may_have_any_bytes(s: Scene<'_>) {
    let odd = Definition {
        file: String::new(),
        text: bytes::Bytes::from_static(b"\0\xff\r\n"),
        ..definition("\u{1F6D2}", "sha256:0", "")
    };
    define(&*s.store, odd.clone()).await.unwrap();
    let found = s.store.definition(odd.namespace.clone(), odd.workflow.clone(), None).await.unwrap().unwrap();
    assert_eq!((found.text, found.view.file, found.view.bytes), (odd.text.clone(), String::new(), 4));
    assert_eq!(define(&*s.store, odd.clone()).await, Ok(Defined::Unchanged(Revision(1))));
    let cut = Definition { text: bytes::Bytes::from_static(b"\0"), ..odd };
    assert!(matches!(define(&*s.store, cut).await, Err(StoreError::DefinitionExists { .. })));
}

async fn definitions_are_listed_by_revision_in_pages(s: Scene<'_>) {
    for (of, hash) in [("b", "h1"), ("a", "h1"), ("b", "h2"), ("a", "h2"), ("b", "h3")] {
        define(&*s.store, definition(of, hash, hash)).await.unwrap();
    }
    let filter = |of: Option<&str>, after, limit| DefinitionFilter {
        namespace: Some(namespace("default")),
        workflow: of.map(workflow),
        after: Revision(after),
        limit,
    };
    let first = s.store.definitions(filter(Some("b"), 0, 2)).await.unwrap();
    assert_eq!(names(&first), [("b", "h1", 1, false), ("b", "h2", 3, false)]);
    assert_eq!((first.next, first.more), (Revision(3), true));
    let last = s.store.definitions(filter(Some("b"), first.next.0, 2)).await.unwrap();
    assert_eq!((names(&last), last.next, last.more), (vec![("b", "h3", 5, true)], Revision(5), false));
    let all = s.store.definitions(filter(None, 1, 9)).await.unwrap();
    assert_eq!(all.definitions.iter().map(|view| view.revision.0).collect::<Vec<_>>(), [2, 3, 4, 5]);
    let everywhere = DefinitionFilter { namespace: None, ..filter(Some("a"), 0, 0) };
    let one = s.store.definitions(everywhere).await.unwrap();
    assert_eq!((names(&one), one.more), (vec![("a", "h1", 2, false)], true), "a page is never empty for its size");
}

async fn definitions_that_are_new_are_told_without_the_old(s: Scene<'_>) {
    assert_eq!(since(&*s.store, 0).await, DefinitionPage { definitions: Vec::new(), next: Revision(0), more: false });
    define(&*s.store, definition("pay", "h1", "one")).await.unwrap();
    define(&*s.store, definition("pay", "h2", "two")).await.unwrap();
    let seen = since(&*s.store, 0).await.next;
    assert_eq!(since(&*s.store, seen.0).await, DefinitionPage { definitions: Vec::new(), next: seen, more: false });
    define(&*s.store, definition("pay", "h2", "two")).await.unwrap();
    assert_eq!(names(&since(&*s.store, seen.0).await), [], "nothing is new");
    define(&*s.store, definition("pay", "h1", "one")).await.unwrap();
    let news = since(&*s.store, seen.0).await;
    assert_eq!((names(&news), news.next), (vec![("pay", "h1", 3, true)], Revision(3)), "it is current again");
}

/// Who looks for news while others define sees all, in order: no smaller revision appears behind a larger one.
async fn definitions_of_another_process_are_seen_and_none_is_missed(s: Scene<'_>) {
    let other = s.other().await;
    let write = |store: std::sync::Arc<dyn Store>, of: &'static str| async move {
        for n in 0..20 {
            define(&*store, definition(of, &format!("h{n}"), "text")).await.unwrap();
        }
    };
    let read = async {
        let (mut seen, mut found) = (Revision(0), Vec::new());
        while found.len() < 40 {
            let page = since(&*s.store, seen.0).await;
            found.extend(page.definitions.iter().map(|view| view.revision.0));
            seen = page.next;
            // A store that answers at once lets nobody else in.
            yields().await;
        }
        found
    };
    let (_, _, found) = join3(write(s.store.clone(), "a"), write(other, "b"), read).await;
    assert_eq!(found, (1..=40).collect::<Vec<u64>>());
}

/// Lets others go on.
async fn yields() {
    let mut yielded = false;
    std::future::poll_fn(|context| {
        if yielded {
            return std::task::Poll::Ready(());
        }
        yielded = true;
        context.waker().wake_by_ref();
        std::task::Poll::Pending
    })
    .await;
}

async fn definitions_of_many_at_once_are_all_there_and_one_is_current(s: Scene<'_>) {
    let other = s.other().await;
    let stores = [&s.store, &other];
    // Every node defines what is in its folder when it starts.
    let calls = (0..12)
        .map(|n| define(&**stores[n % 2], definition("pay", &format!("h{}", n % 4), &format!("text {}", n % 4))));
    let answers = join_all(calls).await;
    assert!(answers.iter().all(Result::is_ok), "{answers:?}");
    let new = answers.iter().filter(|answer| matches!(answer, Ok(Defined::New(_)))).count();
    assert_eq!(new, 4);
    let page = since(&*s.store, 0).await;
    assert_eq!(page.definitions.len(), 4);
    let last = page.definitions.last().unwrap();
    assert!(page.definitions.iter().all(|view| view.current == (view.revision == last.revision)), "{page:?}");
    let given = answers.into_iter().flatten().map(Defined::revision).max();
    assert_eq!(given, Some(last.revision));
}

/// Creates a run of this version, and has a node claim it.
async fn begin(s: &Scene<'_>, id: &str, hash: &str) -> Held {
    s.create(NewRun { version: version(hash), ..new_run(&run(id)) }).await;
    let lease = s.node(&format!("driver-of-{id}"), 3_600_000).await;
    Held::of(&s.claim_run(lease, 1, &run(id)).await.unwrap())
}

/// Two versions of the workflow of the stories' runs; the second is current.
async fn two_versions(s: &Scene<'_>) {
    define(&*s.store, definition("checkout", "h1", "one")).await.unwrap();
    define(&*s.store, definition("checkout", "h2", "two")).await.unwrap();
}

async fn definition_that_a_live_run_has_is_not_forgotten(s: Scene<'_>) {
    two_versions(&s).await;
    let mut held = begin(&s, "b", "h1").await;
    begin(&s, "a", "h1").await;
    let needed = |run| StoreError::DefinitionNeeded { workflow: workflow("checkout"), version: version("h1"), run };
    assert_eq!(forget(&*s.store, "checkout", "h1").await, Err(needed(run("b"))), "the oldest is named");
    let suspended = held.commit().event("one").suspend();
    s.apply(&mut held, suspended).await;
    assert_eq!(forget(&*s.store, "checkout", "h1").await, Err(needed(run("b"))), "one that waits is live");
    s.deliver(signal(&held.run, "go", "1", "x")).await;
    let mut held = s.reclaim(&held.run).await;
    let parked = held.commit().event("two").park("for a look");
    s.apply(&mut held, parked).await;
    assert_eq!(forget(&*s.store, "checkout", "h1").await, Err(needed(run("b"))), "one that is parked is live");
    assert_eq!(text(&s, "checkout", Some("h1")).await.as_deref(), Some("one"));
}

async fn definition_that_only_ended_runs_had_is_forgotten(s: Scene<'_>) {
    two_versions(&s).await;
    let mut held = begin(&s, "a", "h1").await;
    let ended = held.commit().event("end").finish();
    s.apply(&mut held, ended).await;
    assert_eq!(forget(&*s.store, "checkout", "h1").await, Ok(true));
    assert_eq!(text(&s, "checkout", Some("h1")).await, None);
    assert_eq!(names(&since(&*s.store, 0).await), [("checkout", "h2", 2, true)]);
    assert_eq!(forget(&*s.store, "checkout", "h1").await, Ok(false));
}

async fn definition_that_a_run_of_another_namespace_workflow_or_version_has_is_forgotten(s: Scene<'_>) {
    two_versions(&s).await;
    s.store.put_namespace(namespace("blue")).await.unwrap();
    let new = |run| NewRun { version: version("h1"), ..new_run(&run) };
    s.create(new(run_in("blue", "a"))).await;
    s.create(NewRun { workflow: workflow("other"), ..new(run("b")) }).await;
    s.create(NewRun { version: version("h2"), ..new(run("c")) }).await;
    assert_eq!(forget(&*s.store, "checkout", "h1").await, Ok(true));
}

async fn definition_that_is_current_is_forgotten_last(s: Scene<'_>) {
    two_versions(&s).await;
    let current = StoreError::DefinitionCurrent { workflow: workflow("checkout"), version: version("h2") };
    assert_eq!(forget(&*s.store, "checkout", "h2").await, Err(current));
    assert_eq!(forget(&*s.store, "checkout", "h1").await, Ok(true));
    assert_eq!(forget(&*s.store, "checkout", "h2").await, Ok(true), "then there is no such workflow");
    assert_eq!(text(&s, "checkout", None).await, None);
}

async fn definition_that_is_forgotten_may_come_again_and_its_revision_does_not(s: Scene<'_>) {
    two_versions(&s).await;
    assert_eq!(forget(&*s.store, "checkout", "h1").await, Ok(true));
    assert_eq!(forget(&*s.store, "checkout", "h2").await, Ok(true));
    s.clock.set(3);
    let again = define(&*s.store, definition("checkout", "h2", "other")).await;
    assert_eq!(again, Ok(Defined::New(Revision(3))), "who has seen the second revision sees it");
    assert_eq!(since(&*s.store, 2).await.definitions[0].defined_at, at(3));
}

async fn definition_is_not_needed_to_begin_a_run_and_a_race_leaves_one_or_the_other(s: Scene<'_>) {
    let other = s.other().await;
    for n in 0..10 {
        define(&*s.store, definition("checkout", "old", "one")).await.unwrap();
        define(&*s.store, definition("checkout", "new", "two")).await.unwrap();
        let new = NewRun { version: version("old"), ..new_run(&run(&format!("r{n}"))) };
        let (created, forgotten) = join(s.try_create(new), forget(&*other, "checkout", "old")).await;
        created.expect("a start does not look for definitions");
        let there = text(&s, "checkout", Some("old")).await.is_some();
        match forgotten {
            Ok(true) => assert!(!there),
            Err(StoreError::DefinitionNeeded { .. }) => assert!(there),
            other => panic!("{other:?}"),
        }
        // The text can be brought back in any case: then the run has what it began with.
        define(&*s.store, definition("checkout", "old", "one")).await.unwrap();
        assert!(matches!(forget(&*other, "checkout", "old").await, Err(StoreError::DefinitionNeeded { .. })));
        let mut held = s.reclaim(&run(&format!("r{n}"))).await;
        let ended = held.commit().event("end").finish();
        s.apply(&mut held, ended).await;
    }
}

async fn definition_that_is_restored_while_it_is_forgotten_is_there(s: Scene<'_>) {
    let other = s.other().await;
    for n in 0..10 {
        let (old, new) = (format!("old {n}"), format!("new {n}"));
        define(&*s.store, definition("pay", &old, "one")).await.unwrap();
        define(&*s.store, definition("pay", &new, "two")).await.unwrap();
        let restore = define(&*s.store, definition("pay", &old, "one"));
        let (restored, forgotten) = join(restore, forget(&*other, "pay", &old)).await;
        match (&restored, &forgotten) {
            (Ok(Defined::Restored(_)), Err(StoreError::DefinitionCurrent { .. })) | (Ok(Defined::New(_)), Ok(true)) => {
            }
            torn => panic!("{torn:?}"),
        }
        assert_eq!(text(&s, "pay", None).await.as_deref(), Some("one"), "what was defined is there, and current");
    }
}

async fn definition_that_cannot_be_is_refused_by_the_database(s: Scene<'_>) {
    define(&*s.store, definition("pay", "h1", "one")).await.unwrap();
    let before = since(&*s.store, 0).await;
    for write in [RawWrite::EmptyDefinition, RawWrite::OversizeDefinition, RawWrite::UnknownStyle] {
        if let Some(written) = s.raw(write.clone()).await {
            assert!(written.is_err(), "the database took {write:?}");
        }
    }
    assert_eq!(since(&*s.store, 0).await, before);
}

async fn definition_that_is_too_large_is_refused(s: Scene<'_>) {
    let limit = |what, found, limit| {
        StoreError::Limit(outlast_core::limits::LimitExceeded { what, found, limit, unit: "bytes" })
    };
    let large = definition("pay", "h1", "123456789");
    assert_eq!(define(&*s.store, large).await, Err(limit("the text of a definition", 9, 8)));
    let file = "f".repeat(TEXT_BYTES_MAX + 1);
    let named = Definition { file, ..definition("pay", "h1", "12345678") };
    let refused = limit("the file of a definition", TEXT_BYTES_MAX + 1, TEXT_BYTES_MAX);
    assert_eq!(define(&*s.store, named).await, Err(refused));
    let nul = Definition { file: "a\0b".to_owned(), ..definition("pay", "h1", "12345678") };
    assert!(matches!(define(&*s.store, nul).await, Err(StoreError::Limit(_))));
    let fits = Definition { file: "f".repeat(TEXT_BYTES_MAX), ..definition("pay", "h1", "12345678") };
    assert_eq!(define(&*s.store, fits).await, Ok(Defined::New(Revision(1))));
}
