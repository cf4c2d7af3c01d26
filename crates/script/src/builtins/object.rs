//! Objects.

use std::sync::Arc;

use super::{Call, Run, Spec};
use crate::heap::Object;
use crate::machine::Done;
use crate::value::Value;

pub(super) fn table() -> Vec<Spec> {
    vec![
        Spec("Object.keys(object)", 1, Some(1), Run::Rust(keys)),
        Spec("Object.values(object)", 1, Some(1), Run::Rust(values)),
        Spec("Object.entries(object)", 1, Some(1), Run::Rust(pairs)),
        Spec("Object.assign(target, ...sources)", 1, None, Run::Rust(assign)),
        Spec("Object.fromEntries(pairs)", 1, Some(1), Run::Rust(from_entries)),
        Spec("Object.hasOwn(object, key)", 2, Some(2), Run::Rust(has_own)),
        Spec("object.hasOwnProperty(key)", 1, Some(1), Run::Rust(has_own)),
        Spec("object.toString()", 0, Some(0), Run::Rust(to_string)),
        Spec("error.toString()", 0, Some(0), Run::Rust(to_string)),
        Spec("function.toString()", 0, Some(0), Run::Rust(to_string)),
    ]
}

/// The properties of an argument; a list has its places.
fn entries(call: &mut Call<'_>, place: usize) -> Done<Vec<(Arc<str>, Value)>> {
    let entries: Vec<(Arc<str>, Value)> = match call.arg(place) {
        Value::Object(id) => call.machine.heap.object_of(id).into_iter().flat_map(Object::iter).cloned().collect(),
        Value::List(id) => {
            let items = call.machine.heap.list_of(id).iter().enumerate();
            items.map(|(place, item)| (Arc::from(place.to_string()), *item)).collect()
        }
        other => return Err(call.type_error("the argument", "an object", other)),
    };
    call.machine.spend(entries.len() as u64)?;
    Ok(entries)
}

fn keys(call: &mut Call<'_>) -> Done {
    let keys = entries(call, 0)?;
    let keys = keys.into_iter().map(|(key, _)| call.machine.heap.text(key)).collect();
    call.new_list(keys)
}

fn values(call: &mut Call<'_>) -> Done {
    let values = entries(call, 0)?.into_iter().map(|(_, value)| value).collect();
    call.new_list(values)
}

fn pairs(call: &mut Call<'_>) -> Done {
    let mut pairs = Vec::new();
    for (key, value) in entries(call, 0)? {
        let key = call.machine.heap.text(key);
        pairs.push(call.machine.heap.list(vec![key, value]));
    }
    call.new_list(pairs)
}

fn assign(call: &mut Call<'_>) -> Done {
    let target = call.object(0, "the target")?;
    for place in 1..call.count {
        if call.arg(place) == Value::Null {
            continue;
        }
        for (key, value) in entries(call, place)? {
            call.machine.heap.set_property(target, &key, value);
        }
    }
    Ok(call.arg(0))
}

fn from_entries(call: &mut Call<'_>) -> Done {
    let id = call.list(0, "the argument")?;
    let mut object = Object::default();
    for pair in call.machine.heap.list_of(id).to_vec() {
        let Value::List(pair_id) = pair else { return Err(call.type_error("each element", "a pair", pair)) };
        let part =
            |at: usize, call: &Call<'_>| call.machine.heap.list_of(pair_id).get(at).copied().unwrap_or(Value::Null);
        let (key, value) = (part(0, call), part(1, call));
        let key = call.machine.shown(key);
        object.set(&Arc::from(key), value);
    }
    call.machine.spend(object.len() as u64)?;
    Ok(call.machine.heap.object(object))
}

fn has_own(call: &mut Call<'_>) -> Done {
    let key = call.arg(1);
    let key = call.machine.shown(key);
    if let Value::List(id) = call.arg(0) {
        let place = key.parse::<usize>().ok().filter(|place| place.to_string() == key);
        let length = call.machine.heap.list_of(id).len();
        return Ok(Value::Bool(key == "length" || place.is_some_and(|place| place < length)));
    }
    let id = call.object(0, "the object")?;
    Ok(Value::Bool(call.machine.heap.object_of(id).is_some_and(|object| object.get(&key).is_some())))
}

fn to_string(call: &mut Call<'_>) -> Done {
    let value = call.arg(0);
    let text = call.machine.shown(value);
    call.new_text(text)
}
