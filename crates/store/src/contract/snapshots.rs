//! Snapshots: a cache, by definition and index.

use outlast_core::commit::Snapshot;
use outlast_core::id::Index;

use super::scene::*;
use crate::{Load, LoadFrom, Loaded};

super::stories! {
    load_begins_at_the_snapshot,
    newer_snapshot_replaces_the_older,
    snapshot_of_another_definition_is_ignored,
    run_without_a_snapshot_loads_from_the_start,
    snapshot_is_gone_with_its_generation,
    snapshot_is_gone_with_the_end,
    snapshot_is_written_with_its_commit_or_not_at_all,
    load_by_index_brings_no_snapshot,
    load_from_a_snapshot_brings_the_inbox,
}

fn snapshot(index: u64, definition: &str, data: &str) -> Snapshot {
    Snapshot { index: Index(index), definition: definition.to_owned(), data: bytes(data) }
}

async fn load_from(s: &Scene<'_>, held: &Held, definition: &str) -> Loaded {
    let from = LoadFrom::Snapshot { definition: definition.to_owned() };
    s.store.load(vec![Load { run: held.run.clone(), from }]).await.remove(0).unwrap()
}

/// A run with three events and a snapshot of the first two.
async fn snapped(s: &Scene<'_>) -> Held {
    let mut held = s.own("a").await;
    let commit = held.commit().event("0").event("1").event("2");
    let commit = commit.change(|commit| commit.snapshot = Some(snapshot(2, "hash", "state")));
    s.apply(&mut held, commit).await;
    held
}

async fn load_begins_at_the_snapshot(s: Scene<'_>) {
    let held = snapped(&s).await;
    let loaded = load_from(&s, &held, "hash").await;
    assert_eq!(loaded.snapshot, Some(snapshot(2, "hash", "state")));
    assert_eq!((loaded.first, loaded.events), (Index(2), vec![event("2")]));
}

async fn newer_snapshot_replaces_the_older(s: Scene<'_>) {
    let mut held = snapped(&s).await;
    let commit = held.commit().event("3").change(|commit| commit.snapshot = Some(snapshot(4, "hash", "")));
    s.apply(&mut held, commit).await;
    let loaded = load_from(&s, &held, "hash").await;
    assert_eq!((loaded.snapshot, loaded.events), (Some(snapshot(4, "hash", "")), Vec::new()));
}

async fn snapshot_of_another_definition_is_ignored(s: Scene<'_>) {
    let mut held = snapped(&s).await;
    let loaded = load_from(&s, &held, "other hash").await;
    assert_eq!((loaded.snapshot, loaded.first, loaded.events.len()), (None, Index(0), 3));
    let commit = held.commit().change(|commit| commit.snapshot = Some(snapshot(3, "other hash", "theirs")));
    s.apply(&mut held, commit).await;
    let loaded = load_from(&s, &held, "other hash").await;
    assert_eq!(loaded.snapshot, Some(snapshot(3, "other hash", "theirs")));
}

async fn run_without_a_snapshot_loads_from_the_start(s: Scene<'_>) {
    let mut held = s.own("a").await;
    let commit = held.commit().event("0");
    s.apply(&mut held, commit).await;
    let loaded = load_from(&s, &held, "hash").await;
    assert_eq!((loaded.snapshot, loaded.first, loaded.events.len()), (None, Index(0), 1));
}

async fn snapshot_is_gone_with_its_generation(s: Scene<'_>) {
    let mut held = snapped(&s).await;
    let commit = held.commit().event("3").continue_as_new("{}");
    s.apply(&mut held, commit).await;
    let loaded = load_from(&s, &held, "hash").await;
    assert_eq!((loaded.snapshot, loaded.first, loaded.events.len()), (None, Index(0), 0));
}

async fn snapshot_is_gone_with_the_end(s: Scene<'_>) {
    let mut held = snapped(&s).await;
    let commit = held.commit().event("end").finish();
    s.apply(&mut held, commit).await;
    let loaded = load_from(&s, &held, "hash").await;
    assert_eq!((loaded.snapshot, loaded.first, loaded.events.len()), (None, Index(0), 4), "nobody will go on from it");
}

async fn snapshot_is_written_with_its_commit_or_not_at_all(s: Scene<'_>) {
    let held = snapped(&s).await;
    let stale = held.commit().event("x").change(|commit| {
        commit.expected = Index(0);
        commit.snapshot = Some(snapshot(1, "hash", "stale"));
    });
    assert!(s.commit(stale).await.is_err());
    assert_eq!(load_from(&s, &held, "hash").await.snapshot, Some(snapshot(2, "hash", "state")));
}

async fn load_by_index_brings_no_snapshot(s: Scene<'_>) {
    let held = snapped(&s).await;
    let loaded = s.load(&held.run).await;
    assert_eq!((loaded.snapshot, loaded.events.len()), (None, 3));
}

async fn load_from_a_snapshot_brings_the_inbox(s: Scene<'_>) {
    let held = snapped(&s).await;
    s.deliver(signal(&held.run, "go", "1", "x")).await;
    assert_eq!(load_from(&s, &held, "hash").await.inbox.len(), 1);
}
