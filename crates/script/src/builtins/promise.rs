//! Promises and their combinations.

use super::{Call, Run, Spec};
use crate::heap::Combinator;
use crate::machine::{Done, Outcome};
use crate::value::Value;

pub(super) fn table() -> Vec<Spec> {
    fn combine(signature: &'static str, run: fn(&mut Call<'_>) -> Done) -> Spec {
        Spec(signature, 1, Some(1), Run::Rust(run))
    }
    vec![
        combine("Promise.all(items)", |call| combined(call, Combinator::All)),
        combine("Promise.allSettled(items)", |call| combined(call, Combinator::AllSettled)),
        combine("Promise.any(items)", |call| combined(call, Combinator::Any)),
        combine("Promise.race(items)", |call| combined(call, Combinator::Race)),
        combine("Task.all(items)", |call| combined(call, Combinator::All)),
        combine("Task.allSettled(items)", |call| combined(call, Combinator::TaskAllSettled)),
        combine("Task.any(items)", |call| combined(call, Combinator::TaskAny)),
        combine("Task.race(items)", |call| combined(call, Combinator::TaskRace)),
        Spec("Promise.resolve(value)", 0, Some(1), Run::Rust(resolve)),
        Spec("Promise.reject(error)", 0, Some(1), Run::Rust(reject)),
        Spec("promise.then(fulfilled, rejected)", 1, Some(2), Run::Script("promise_then")),
        Spec("promise.catch(rejected)", 1, Some(1), Run::Script("promise_catch")),
        Spec("promise.finally(callback)", 1, Some(1), Run::Script("promise_finally")),
    ]
}

fn combined(call: &mut Call<'_>, kind: Combinator) -> Done {
    let (source, name) = (call.arg(0), call.name());
    call.machine.combine(kind, source, name, call.ops)
}

fn resolve(call: &mut Call<'_>) -> Done {
    let value = call.arg(0);
    if matches!(value, Value::Promise(_)) {
        return Ok(value);
    }
    Ok(call.machine.settled_promise(Outcome::Value(value)))
}

fn reject(call: &mut Call<'_>) -> Done {
    let error = call.arg(0);
    Ok(call.machine.settled_promise(Outcome::Error(error)))
}
