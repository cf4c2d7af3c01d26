//! What can happen to an operation of the table, and what cannot.

use outlast_core::event::Event;
use outlast_core::failure::Failure;
use outlast_core::id::DeliveryId;

use super::*;

const DUE: Timestamp = Timestamp::from_millis(100);

fn key(text: &str) -> Key {
    Key::new(text).unwrap()
}

/// A wait for a signal that has just been asked for, with a deadline.
fn with_a_wait() -> Table {
    let mut table = Table::default();
    let entry = Entry {
        kind: OperationKind::Signal,
        state: State::Executing,
        location: None,
        deadline: Some(DUE),
        awaited: false,
        refused: false,
        detail: Detail::Signal { name: SignalName::new("go").unwrap() },
    };
    table.insert(key("wait"), entry);
    table
}

fn deadline(table: &Table) -> Option<Timestamp> {
    table.get(&key("wait")).unwrap().deadline
}

/// Semantics L21: nothing can happen to an operation that nobody asked for, and the error names it.
#[test]
fn nothing_happens_to_an_operation_that_nobody_asked_for_and_the_error_names_it() {
    for transition in Transition::ALL {
        let mut table = with_a_wait();
        let error = table.try_shift(&key("other"), transition).unwrap_err();
        assert_eq!(error, Impossible::Unknown(key("other"), transition));
        assert!(error.to_string().starts_with("other: "), "{error}");
        assert!(table.get(&key("other")).is_none(), "it is not made up");
        assert_eq!(table.infos().len(), 1);
    }
}

/// Semantics L21: neither to one that is completed.
#[test]
fn nothing_happens_to_an_operation_that_is_completed_and_forgotten() {
    let mut table = with_a_wait();
    table.shift(&key("wait"), Transition::Settled);
    let error = table.try_shift(&key("wait"), Transition::Settled).unwrap_err();
    assert!(error.to_string().contains("completed and forgotten"), "{error}");
}

/// Semantics L1 and L21: only one that waits for a retry can be due, and only one that is idle begins to be awaited.
#[test]
fn a_move_that_its_state_does_not_allow_changes_nothing_and_the_error_names_it() {
    let mut table = with_a_wait();
    for transition in [Transition::RetryDue, Transition::Awaited] {
        let error = table.try_shift(&key("wait"), transition).unwrap_err();
        assert_eq!(error.to_string(), format!("wait: {transition}, but the operation is executing"));
        assert_eq!(table.get(&key("wait")).unwrap().state, State::Executing);
    }
}

/// Semantics L22.
#[test]
fn a_change_that_says_nothing_of_a_deadline_keeps_the_one_there_is() {
    let mut table = with_a_wait();
    for (transition, state) in
        [(Transition::WentIdle, State::IdleNotAwaited), (Transition::Awaited, State::IdleAwaited)]
    {
        table.shift(&key("wait"), transition);
        assert_eq!(table.get(&key("wait")).unwrap().state, state);
        assert_eq!(deadline(&table), Some(DUE), "{transition}");
    }
    let rejected = Event::SignalRejected {
        key: key("wait"),
        name: SignalName::new("go").unwrap(),
        signal_id: DeliveryId::new("1").unwrap(),
        error: Failure::new("validation_error", "no number"),
    };
    table.note(&key("wait"), &rejected);
    assert_eq!(deadline(&table), Some(DUE), "the wait goes on as it was");
    assert_eq!(table.infos()[0].deadline, Some(DUE));
}

/// Semantics L8 and L22: what is completed has no deadline, and no wait.
#[test]
fn what_is_completed_has_neither_a_deadline_nor_a_wait() {
    let mut table = with_a_wait();
    table.shift(&key("wait"), Transition::WentIdle);
    table.wait_opened(&key("wait"), &SignalName::new("go").unwrap());
    assert_eq!(table.waiting_for("go"), Some(&key("wait")));
    table.shift(&key("wait"), Transition::Cancelled);
    assert_eq!(table.waiting_for("go"), None);
    assert_eq!((table.infos().len(), table.pending()), (0, 0));
}

/// What is counted on the way is what a count of all operations would give.
#[test]
fn what_counts_for_the_end_of_a_turn_is_what_is_live() {
    let counted = |table: &Table| {
        let mut live: Vec<_> = table.live().map(|(_, entry)| (entry.kind, entry.state)).collect();
        live.retain(|(kind, _)| *kind != OperationKind::Scope);
        live.sort_unstable_by_key(|class| format!("{class:?}"));
        live.dedup();
        let mut views: Vec<_> = table.views().iter().map(|view| (view.kind, view.state)).collect();
        views.sort_unstable_by_key(|class| format!("{class:?}"));
        assert_eq!(views, live);
        views.len()
    };
    let mut table = Table::default();
    let entry = |kind| Entry {
        kind,
        state: State::Executing,
        location: None,
        deadline: None,
        awaited: false,
        refused: false,
        detail: Detail::Plain,
    };
    for (name, kind) in [("a", OperationKind::Timer), ("b", OperationKind::Timer), ("s", OperationKind::Scope)] {
        table.insert(key(name), entry(kind));
        assert_eq!(counted(&table), 1);
    }
    // The same key again counts once.
    table.insert(key("a"), entry(OperationKind::Task));
    assert_eq!(counted(&table), 2);
    for name in ["a", "b"] {
        for transition in Transition::ALL {
            let _ = table.try_shift(&key(name), transition);
            counted(&table);
        }
        if table.is_live(&key(name)) {
            table.shift(&key(name), Transition::Settled);
        }
    }
    assert_eq!(counted(&table), 0);
}
