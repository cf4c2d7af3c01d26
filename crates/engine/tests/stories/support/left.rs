//! What a story leaves in its store: every run, how it ended, and every journal.
#![expect(clippy::unwrap_used, reason = "a story ends at the first error")]

use outlast::testing::JournalText;
use outlast::{Checker, Event, Recording, ReplayError, Status};
use outlast_core::id::{Generation, Index};
use outlast_store::{Excerpt, Filter, LIST_PAGE_MAX, RunView, Store};

/// Every run of the store as text, the oldest first. Each can be replayed with the code it belongs to.
pub(super) async fn runs(store: &dyn Store, code: &[Checker]) -> Vec<String> {
    let mut left = Vec::new();
    for namespace in store.namespaces().await.unwrap() {
        let filter = Filter { limit: LIST_PAGE_MAX, ..Filter::all(namespace) };
        for view in store.list(filter).await.unwrap().runs.into_iter().rev() {
            // A parked run says itself why its code cannot go on.
            if view.status != Status::Parked {
                let recording = Recording::read(store, &view.run).await.unwrap();
                assert_replays(&recording, code);
            }
            left.push(written(store, view).await);
        }
    }
    left
}

/// Code that drove the run can replay what came of it.
fn assert_replays(recording: &Recording, code: &[Checker]) {
    let outcomes: Vec<_> = code.iter().map(|code| code.check(recording)).collect();
    // A story may be about a journal that nobody can read.
    let known =
        |outcome: &&Result<_, _>| !matches!(outcome, Err(ReplayError::NoCode { .. } | ReplayError::Unreadable(_)));
    if outcomes.iter().any(|outcome| outcome.is_ok()) || outcomes.iter().find(known).is_none() {
        return;
    }
    panic!("the journal of {} cannot be replayed: {outcomes:?}\n{}", recording.run(), text(recording));
}

fn text(recording: &Recording) -> JournalText {
    JournalText::of(&recording.events().unwrap())
}

async fn written(store: &dyn Store, view: RunView) -> String {
    let RunView { run, workflow, version, status, note, generation, created_at, finished_at, .. } = view;
    let mut text = format!("{run} {workflow} {version} {status:?} {note:?} {created_at} {finished_at:?}\n");
    for generation in 0..=generation.0 {
        let mut excerpt = Excerpt {
            run: run.clone(),
            generation: Some(Generation(generation)),
            from: Index(0),
            limit: LIST_PAGE_MAX,
        };
        let mut records = store.excerpt(excerpt.clone()).await.unwrap();
        let mut page = records.clone();
        while !excerpt.is_last(&page) {
            excerpt = excerpt.after(&page);
            page = store.excerpt(excerpt.clone()).await.unwrap();
            records.extend_from_slice(&page);
        }
        let events: Result<Vec<Event>, _> = records.iter().map(Event::decode).collect();
        let Ok(events) = events else {
            text.push_str(&format!("  {generation} {records:?}\n"));
            continue;
        };
        let journal = JournalText::of(&events);
        for (record, line) in records.iter().zip(journal.lines()) {
            text.push_str(&format!("  {generation} {} {line}\n", record.at));
        }
    }
    text
}
