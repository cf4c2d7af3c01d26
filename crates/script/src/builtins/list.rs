//! Lists.

use super::{Call, Run, Spec};
use crate::machine::{Done, count};
use crate::value::{Id, Value};

pub(super) fn table() -> Vec<Spec> {
    fn script(signature: &'static str, most: Option<u8>, function: &'static str) -> Spec {
        Spec(signature, 1, most, Run::Script(function))
    }
    vec![
        script("list.map(callback)", Some(1), "list_map"),
        script("list.filter(callback)", Some(1), "list_filter"),
        script("list.forEach(callback)", Some(1), "list_forEach"),
        script("list.find(callback)", Some(1), "list_find"),
        script("list.findIndex(callback)", Some(1), "list_findIndex"),
        script("list.findLast(callback)", Some(1), "list_findLast"),
        script("list.findLastIndex(callback)", Some(1), "list_findLastIndex"),
        script("list.some(callback)", Some(1), "list_some"),
        script("list.every(callback)", Some(1), "list_every"),
        script("list.reduce(callback, initial)", Some(2), "list_reduce"),
        script("list.reduceRight(callback, initial)", Some(2), "list_reduceRight"),
        script("list.flatMap(callback)", Some(1), "list_flatMap"),
        Spec("list.sort(compare)", 0, Some(1), Run::Script("list_sort")),
        Spec("list.toSorted(compare)", 0, Some(1), Run::Script("list_toSorted")),
        Spec("list.at(index)", 1, Some(1), Run::Rust(at)),
        Spec("list.concat(...lists)", 0, None, Run::Rust(concat)),
        Spec("list.entries()", 0, Some(0), Run::Rust(entries)),
        Spec("list.fill(value, start, end)", 1, Some(3), Run::Rust(fill)),
        Spec("list.flat(depth)", 0, Some(1), Run::Rust(flat)),
        Spec("list.includes(value, from)", 1, Some(2), Run::Rust(includes)),
        Spec("list.indexOf(value, from)", 1, Some(2), Run::Rust(index_of)),
        Spec("list.join(separator)", 0, Some(1), Run::Rust(join)),
        Spec("list.keys()", 0, Some(0), Run::Rust(keys)),
        Spec("list.lastIndexOf(value, from)", 1, Some(2), Run::Rust(last_index_of)),
        Spec("list.pop()", 0, Some(0), Run::Rust(pop)),
        Spec("list.push(...values)", 0, None, Run::Rust(push)),
        Spec("list.reverse()", 0, Some(0), Run::Rust(reverse)),
        Spec("list.shift()", 0, Some(0), Run::Rust(shift)),
        Spec("list.slice(start, end)", 0, Some(2), Run::Rust(slice)),
        Spec("list.splice(start, count, ...values)", 0, None, Run::Rust(splice)),
        Spec("list.toReversed()", 0, Some(0), Run::Rust(to_reversed)),
        Spec("list.toString()", 0, Some(0), Run::Rust(to_string)),
        Spec("list.unshift(...values)", 0, None, Run::Rust(unshift)),
        Spec("list.values()", 0, Some(0), Run::Rust(|call| items(call).and_then(|items| call.new_list(items)))),
        Spec("list.with(index, value)", 2, Some(2), Run::Rust(with)),
        Spec("Array.isArray(value)", 1, Some(1), Run::Rust(is_array)),
        Spec("Array.of(...values)", 0, None, Run::Rust(of)),
        Spec("Array.from(source, callback)", 1, Some(2), Run::Script("array_from")),
        Spec("$elements(source)", 1, Some(1), Run::Rust(elements)),
        Spec("$compare(left, right)", 2, Some(2), Run::Rust(compare)),
        Spec("$callable(callback, name)", 2, Some(2), Run::Rust(callable)),
    ]
}

fn receiver(call: &mut Call<'_>) -> Done<Id> {
    call.list(0, "the receiver")
}

/// A copy of the elements.
fn items(call: &mut Call<'_>) -> Done<Vec<Value>> {
    let id = receiver(call)?;
    let items = call.machine.heap.list_of(id).to_vec();
    call.machine.spend(items.len() as u64 / 4)?;
    Ok(items)
}

/// Replaces the elements.
fn set_items(call: &mut Call<'_>, id: Id, items: Vec<Value>) -> Done<()> {
    call.machine.check_items(items.len())?;
    let before = call.machine.heap.list_of(id).len();
    call.machine.heap.grew(items.len().saturating_sub(before) * 16);
    if let Some(list) = call.machine.heap.list_mut(id) {
        *list = items;
    }
    Ok(())
}

fn at(call: &mut Call<'_>) -> Done {
    let id = receiver(call)?;
    let index = call.integer(1, "the index", 0.0)?;
    let items = call.machine.heap.list_of(id);
    let index = if index < 0.0 { items.len() as f64 + index } else { index };
    Ok(crate::machine::place(index).and_then(|place| items.get(place).copied()).unwrap_or(Value::Null))
}

fn concat(call: &mut Call<'_>) -> Done {
    let mut result = items(call)?;
    for place in 1..call.count {
        match call.arg(place) {
            Value::List(id) => result.extend_from_slice(call.machine.heap.list_of(id)),
            value => result.push(value),
        }
    }
    call.new_list(result)
}

fn entries(call: &mut Call<'_>) -> Done {
    let pairs = items(call)?.into_iter().enumerate();
    let pairs = pairs.map(|(place, item)| call.machine.heap.list(vec![count(place), item])).collect();
    call.new_list(pairs)
}

fn keys(call: &mut Call<'_>) -> Done {
    let id = receiver(call)?;
    let keys = (0..call.machine.heap.list_of(id).len()).map(count).collect();
    call.new_list(keys)
}

fn fill(call: &mut Call<'_>) -> Done {
    let id = receiver(call)?;
    let length = call.machine.heap.list_of(id).len() as f64;
    let clamp = |number: f64| if number < 0.0 { (length + number).max(0.0) } else { number.min(length) } as usize;
    let (from, to) = (clamp(call.integer(2, "the start", 0.0)?), clamp(call.integer(3, "the end", length)?));
    let value = call.arg(1);
    if let Some(part) = call.machine.heap.list_mut(id).and_then(|items| items.get_mut(from..to)) {
        part.fill(value);
    }
    Ok(call.arg(0))
}

/// Without recursion: what is left to look at, with how deep it may be flattened.
fn flat(call: &mut Call<'_>) -> Done {
    let depth = call.integer(1, "the depth", 1.0)?;
    let mut result = Vec::new();
    let mut work: Vec<(Value, f64)> = items(call)?.into_iter().rev().map(|item| (item, depth)).collect();
    while let Some((item, depth)) = work.pop() {
        call.machine.spend(1)?;
        match item {
            Value::List(id) if depth >= 1.0 => {
                let inner = call.machine.heap.list_of(id).iter().rev().map(|item| (*item, depth - 1.0));
                work.extend(inner);
                call.machine.check_items(work.len())?;
            }
            item => result.push(item),
        }
    }
    call.new_list(result)
}

/// Like `==`, but NaN is itself.
fn includes(call: &mut Call<'_>) -> Done {
    let wanted = call.arg(1);
    let is_nan = |value: Value| matches!(value, Value::Number(number) if number.is_nan());
    let items = items(call)?;
    let from = begin(call, items.len())?;
    let found =
        items.into_iter().skip(from).any(|item| call.machine.same(item, wanted) || is_nan(item) && is_nan(wanted));
    Ok(Value::Bool(found))
}

/// Where a search begins, counted from the end if negative.
fn begin(call: &mut Call<'_>, length: usize) -> Done<usize> {
    let from = call.integer(2, "where to begin", 0.0)?;
    Ok(if from < 0.0 { (length as f64 + from).max(0.0) } else { from } as usize)
}

fn index_of(call: &mut Call<'_>) -> Done {
    let wanted = call.arg(1);
    let items = items(call)?;
    let from = begin(call, items.len())?;
    let found = items.iter().skip(from).position(|item| call.machine.same(*item, wanted));
    Ok(found.map_or(Value::Number(-1.0), |place| count(from + place)))
}

fn last_index_of(call: &mut Call<'_>) -> Done {
    let wanted = call.arg(1);
    let mut items = items(call)?;
    // The last place to look at; before the first one there is nothing.
    let last = call.integer(2, "where to begin", f64::INFINITY)?;
    let last = if last < 0.0 { items.len() as f64 + last } else { last };
    items.truncate((last + 1.0).max(0.0) as usize);
    Ok(items.iter().rposition(|item| call.machine.same(*item, wanted)).map_or(Value::Number(-1.0), count))
}

fn join(call: &mut Call<'_>) -> Done {
    let separator = if call.arg(1) == Value::Null { ",".into() } else { call.text(1, "the separator")? };
    let mut text = String::new();
    for (place, item) in items(call)?.into_iter().enumerate() {
        if place > 0 {
            text.push_str(&separator);
        }
        if item != Value::Null {
            call.machine.print_onto(item, &mut text)?;
        }
        call.machine.check_text(text.len())?;
    }
    call.new_text(text)
}

fn to_string(call: &mut Call<'_>) -> Done {
    let mut text = String::new();
    let list = call.arg(0);
    call.machine.print_onto(list, &mut text)?;
    call.new_text(text)
}

fn pop(call: &mut Call<'_>) -> Done {
    let id = receiver(call)?;
    Ok(call.machine.heap.list_mut(id).and_then(Vec::pop).unwrap_or(Value::Null))
}

fn push(call: &mut Call<'_>) -> Done {
    let id = receiver(call)?;
    for place in 1..call.count {
        let value = call.arg(place);
        call.machine.append(Value::List(id), value)?;
    }
    Ok(count(call.machine.heap.list_of(id).len()))
}

fn reverse(call: &mut Call<'_>) -> Done {
    let id = receiver(call)?;
    if let Some(items) = call.machine.heap.list_mut(id) {
        items.reverse();
    }
    Ok(call.arg(0))
}

fn to_reversed(call: &mut Call<'_>) -> Done {
    let items = items(call)?.into_iter().rev().collect();
    call.new_list(items)
}

fn shift(call: &mut Call<'_>) -> Done {
    let id = receiver(call)?;
    let length = call.machine.heap.list_of(id).len();
    call.machine.spend(length as u64 / 64)?;
    let first = call.machine.heap.list_mut(id).filter(|items| !items.is_empty()).map(|items| items.remove(0));
    Ok(first.unwrap_or(Value::Null))
}

fn unshift(call: &mut Call<'_>) -> Done {
    let id = receiver(call)?;
    let mut result: Vec<Value> = call.args()[1..].to_vec();
    result.extend(items(call)?);
    let length = result.len();
    set_items(call, id, result)?;
    Ok(count(length))
}

fn slice(call: &mut Call<'_>) -> Done {
    let id = receiver(call)?;
    let length = call.machine.heap.list_of(id).len();
    let (from, to) = call.range(length)?;
    let part = call.machine.heap.list_of(id).get(from..to.max(from)).unwrap_or_default().to_vec();
    call.new_list(part)
}

fn splice(call: &mut Call<'_>) -> Done {
    let id = receiver(call)?;
    let mut items = items(call)?;
    let length = items.len() as f64;
    let start = call.integer(1, "the start", 0.0)?;
    let start = if start < 0.0 { (length + start).max(0.0) } else { start.min(length) };
    let most = length - start;
    // Without a count everything from there on; without any argument nothing.
    let missing = if call.count == 2 { most } else { 0.0 };
    let removed = call.integer(2, "the count", missing)?.clamp(0.0, most);
    let added: Vec<Value> = call.args().get(3..).unwrap_or_default().to_vec();
    let range = start as usize..(start + removed) as usize;
    let removed: Vec<Value> = items.splice(range, added).collect();
    set_items(call, id, items)?;
    call.new_list(removed)
}

fn with(call: &mut Call<'_>) -> Done {
    let mut items = items(call)?;
    let index = call.integer(1, "the index", 0.0)?;
    let index = if index < 0.0 { items.len() as f64 + index } else { index };
    match crate::machine::place(index).and_then(|place| items.get_mut(place)) {
        Some(item) => *item = call.machine.stack[call.start + 2],
        None => return Err(call.range_error("there is no such element")),
    }
    call.new_list(items)
}

fn is_array(call: &mut Call<'_>) -> Done {
    Ok(Value::Bool(matches!(call.arg(0), Value::List(_))))
}

fn of(call: &mut Call<'_>) -> Done {
    let items = call.args().to_vec();
    call.new_list(items)
}

/// What `Array.from` makes a list of: a list, a text, or an object with a length.
fn elements(call: &mut Call<'_>) -> Done {
    let source = call.arg(0);
    if let Value::Object(id) = source
        && let Some(Value::Number(length)) = call.machine.heap.object_of(id).and_then(|object| object.get("length"))
    {
        let length = length.max(0.0).min(u32::MAX.into()) as usize;
        call.machine.check_items(length)?;
        return call.new_list(vec![Value::Null; length]);
    }
    let items = call.machine.elements(source, "Array.from")?;
    call.new_list(items)
}

/// The order of `sort` without a function: that of the texts.
fn compare(call: &mut Call<'_>) -> Done {
    let (left, right) = (call.arg(0), call.arg(1));
    let (mut a, mut b) = (String::new(), String::new());
    call.machine.print_onto(left, &mut a)?;
    call.machine.print_onto(right, &mut b)?;
    Ok(Value::Number(match a.cmp(&b) {
        std::cmp::Ordering::Less => -1.0,
        std::cmp::Ordering::Equal => 0.0,
        std::cmp::Ordering::Greater => 1.0,
    }))
}

/// Makes sure that a callback can be called.
fn callable(call: &mut Call<'_>) -> Done {
    match call.arg(0) {
        Value::Function(_) | Value::Native(_) => Ok(Value::Null),
        other => {
            let name = call.text(1, "the name")?;
            let message = format!("{name} takes a function, not {}", other.described());
            Err(call.machine.error(crate::machine::codes::TYPE, message))
        }
    }
}
