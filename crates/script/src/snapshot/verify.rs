//! Whether a state that was read can be run. A damaged one must not bring the driver down with it.

use crate::builtins;
use crate::code::Op;
use crate::heap::{Cell, PromiseState, Reaction};
use crate::machine::Machine;
use crate::value::{Id, Value};

/// Checks that everything names something of its own kind.
pub(super) fn verify(machine: &Machine) -> Result<(), String> {
    let wanted = "a promise that is none";
    let main = machine.main.ok_or("the promise of the run is missing")?;
    is_promise(machine, main).then_some(()).ok_or(wanted)?;
    let is_task = machine.main_task.is_some_and(|id| matches!(get(machine, id), Some(Cell::Task(_))));
    is_task.then_some(()).ok_or("the call of the file is missing")?;
    for open in machine.world.open.values() {
        is_promise(machine, open.promise).then_some(()).ok_or(wanted)?;
    }
    value(machine, machine.inputs)?;
    for place in machine.heap.statics()..u32::try_from(machine.heap.len()).unwrap_or(u32::MAX) {
        cell(machine, machine.heap.cell(Id(place)))?;
    }
    Ok(())
}

fn get(machine: &Machine, id: Id) -> Option<&Cell> {
    ((id.0 as usize) < machine.heap.len()).then(|| machine.heap.cell(id))
}

fn is_promise(machine: &Machine, id: Id) -> bool {
    matches!(get(machine, id), Some(Cell::Promise(_)))
}

fn value(machine: &Machine, value: Value) -> Result<(), String> {
    let fits = match value {
        Value::Hole | Value::Null | Value::Bool(_) | Value::Number(_) => true,
        Value::Text(id) => matches!(get(machine, id), Some(Cell::Text(_))),
        Value::List(id) => matches!(get(machine, id), Some(Cell::List(_))),
        Value::Object(id) => matches!(get(machine, id), Some(Cell::Object(_))),
        Value::Error(id) => matches!(get(machine, id), Some(Cell::Error(_))),
        Value::Promise(id) => is_promise(machine, id),
        // A shared variable is kept under the same name.
        Value::Function(id) => {
            matches!(get(machine, id), Some(Cell::Closure(_) | Cell::Bound { .. } | Cell::Variable(_)))
        }
        Value::Native(native) => builtins::is_native(native),
    };
    if fits { Ok(()) } else { Err(format!("{value:?} names something else")) }
}

fn cell(machine: &Machine, cell: &Cell) -> Result<(), String> {
    let each = |values: &[Value]| values.iter().try_for_each(|item| value(machine, *item));
    match cell {
        Cell::Free | Cell::Text(_) => Ok(()),
        Cell::List(items) => each(items),
        Cell::Object(object) => object.iter().try_for_each(|(_, item)| value(machine, *item)),
        Cell::Error(error) => each(&[error.code, error.message, error.data]),
        Cell::Closure(closure) => {
            let function = machine.code.functions.get(closure.function as usize).ok_or("a function that is none")?;
            let boxes = closure.captures.iter().all(|id| matches!(get(machine, *id), Some(Cell::Variable(_))));
            let fits = boxes && closure.captures.len() == function.captures.len();
            fits.then_some(()).ok_or_else(|| "a closure with other variables than its function".to_owned())
        }
        Cell::Bound { native, receiver } => {
            value(machine, Value::Native(*native))?;
            value(machine, *receiver)
        }
        Cell::Variable(variable) => value(machine, *variable),
        Cell::Promise(promise) => {
            match promise.state {
                PromiseState::Pending | PromiseState::Following => {}
                PromiseState::Fulfilled(outcome) | PromiseState::Rejected(outcome) => value(machine, outcome)?,
            }
            promise.reactions.iter().try_for_each(|found| reaction(machine, *found))
        }
        Cell::Task(task) => {
            let function = machine.code.functions.get(task.function as usize).ok_or("a function that is none")?;
            each(&task.stack)?;
            let ends = task.promise.is_some_and(|promise| is_promise(machine, promise));
            let closure = task.closure.is_none_or(|id| matches!(get(machine, id), Some(Cell::Closure(_))));
            let fits = !task.is_suspended() || task.stack.len() >= usize::from(function.slots);
            // A call is suspended by an await, and nowhere else.
            let awaits = match task.at.checked_sub(1) {
                Some(before) => function.ops.get(before as usize) == Some(&Op::Await),
                None => true,
            };
            (ends && closure && fits && awaits).then_some(()).ok_or_else(|| "a call in no possible state".to_owned())
        }
        Cell::Combine(combine) => {
            combine.items.iter().try_for_each(|item| value(machine, item.value))?;
            combine.cancelled.iter().try_for_each(|cancelled| value(machine, cancelled.error))?;
            let names = combine.names.as_ref().is_none_or(|names| names.len() == combine.items.len());
            let sources = combine.items.iter().filter_map(|item| item.source).all(|id| is_promise(machine, id));
            let fits = names && sources && is_promise(machine, combine.promise);
            fits.then_some(()).ok_or_else(|| "a combination in no possible state".to_owned())
        }
    }
}

fn reaction(machine: &Machine, reaction: Reaction) -> Result<(), String> {
    let fits = match reaction {
        Reaction::Resume(task) => matches!(get(machine, task), Some(Cell::Task(task)) if task.is_suspended()),
        Reaction::Follow(promise) => is_promise(machine, promise),
        Reaction::Item { combine, .. } => matches!(get(machine, combine), Some(Cell::Combine(_))),
    };
    if fits { Ok(()) } else { Err("a reaction of nothing".to_owned()) }
}
