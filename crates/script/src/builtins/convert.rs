//! From one kind of value to another: `String`, `Number`, `JSON`, errors.

use super::options::Options;
use super::{Call, Run, Spec};
use crate::machine::{Done, codes};
use crate::value::Value;

pub(super) fn table() -> Vec<Spec> {
    vec![
        Spec("String(value)", 0, Some(1), Run::Rust(to_text)),
        Spec("Number(value)", 0, Some(1), Run::Rust(to_number)),
        Spec("Boolean(value)", 0, Some(1), Run::Rust(to_boolean)),
        Spec("JSON.parse(text)", 1, Some(1), Run::Rust(parse)),
        Spec("JSON.stringify(value, null, indent)", 1, Some(3), Run::Rust(stringify)),
        Spec("Error(message, options)", 0, Some(2), Run::Rust(|call| error(call, None))),
        Spec("TypeError(message, options)", 0, Some(2), Run::Rust(|call| error(call, Some(codes::TYPE)))),
        Spec("RangeError(message, options)", 0, Some(2), Run::Rust(|call| error(call, Some(codes::RANGE)))),
    ]
}

fn to_text(call: &mut Call<'_>) -> Done {
    if call.count == 0 {
        return call.new_text(String::new());
    }
    let mut text = String::new();
    let value = call.arg(0);
    call.machine.print_onto(value, &mut text)?;
    call.new_text(text)
}

fn to_number(call: &mut Call<'_>) -> Done {
    Ok(Value::Number(match call.arg(0) {
        Value::Number(number) => number,
        Value::Null | Value::Hole => 0.0,
        Value::Bool(value) => f64::from(u8::from(value)),
        Value::Text(id) => crate::number::from_text(&call.machine.heap.text_of(id).text),
        value @ Value::List(_) => crate::number::from_text(&call.machine.shown(value)),
        Value::Object(_) | Value::Error(_) | Value::Promise(_) | Value::Function(_) | Value::Native(_) => f64::NAN,
    }))
}

fn to_boolean(call: &mut Call<'_>) -> Done {
    Ok(Value::Bool(call.machine.truthy(call.arg(0))))
}

fn parse(call: &mut Call<'_>) -> Done {
    let text = call.text(0, "the text")?;
    call.machine.spend(text.len() as u64 / 8)?;
    match call.machine.json_value(text.as_bytes()) {
        Ok(value) => Ok(value),
        Err(problem) => {
            let message = format!("JSON.parse: this is not JSON: {problem}");
            Err(call.machine.error(codes::SYNTAX, message))
        }
    }
}

fn stringify(call: &mut Call<'_>) -> Done {
    /// As many as JavaScript allows.
    const INDENT_MAX: usize = 10;
    let indent = match call.arg(2) {
        Value::Number(spaces) => " ".repeat((spaces.max(0.0) as usize).min(INDENT_MAX)),
        Value::Text(id) => call.machine.heap.text_of(id).text.chars().take(INDENT_MAX).collect(),
        _ => String::new(),
    };
    if call.arg(1) != Value::Null {
        let found = call.arg(1);
        return Err(call.type_error("the second argument", "null", found));
    }
    let value = call.arg(0);
    match call.machine.stringify(value, &indent)? {
        Some(text) => call.new_text(text),
        None => Ok(Value::Null),
    }
}

/// `Error(message, { code, data })`. Other options are refused: what they carry would be lost.
fn error(call: &mut Call<'_>, code: Option<&str>) -> Done {
    let message = match call.arg(0) {
        Value::Null => call.new_text(String::new())?,
        Value::Text(id) => Value::Text(id),
        other => {
            let text = call.machine.shown(other);
            call.new_text(text)?
        }
    };
    let options = Options::new(call, 1, &["code", "data"])?;
    let code = match options.get(call, "code") {
        Value::Null => call.machine.heap.text(code.unwrap_or(outlast_core::failure::code::ERROR)),
        given => given,
    };
    let data = options.get(call, "data");
    Ok(call.machine.new_error(code, message, data))
}
