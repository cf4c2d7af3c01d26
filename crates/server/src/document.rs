//! What the OpenAPI document says of every request, beyond what types say: so that whatever it allows can be read.

use serde_json::{Value, json};

use crate::api;

/// Fields of requests that are instants.
const INSTANTS: [&str; 6] = ["created_from", "created_until", "from", "once_at", "to", "until"];

/// Says it of every request.
pub(crate) fn tighten(document: &mut Value) {
    let schemas = document.pointer_mut("/components/schemas").and_then(Value::as_object_mut);
    for schema in schemas.into_iter().flat_map(|all| all.values_mut()) {
        // Only a request refuses fields that nobody knows.
        if schema["additionalProperties"] != json!(false) {
            continue;
        }
        let fields = schema.get_mut("properties").and_then(Value::as_object_mut);
        for (name, field) in fields.into_iter().flatten() {
            tighten_field(name, field);
        }
    }
    let paths = document.get_mut("paths").and_then(Value::as_object_mut);
    let operations = paths.into_iter().flat_map(|all| all.values_mut()).filter_map(Value::as_object_mut);
    for operation in operations.flat_map(|item| item.values_mut()) {
        let parameters = operation.get_mut("parameters").and_then(Value::as_array_mut);
        for parameter in parameters.into_iter().flatten().filter(|parameter| parameter["in"] == "query") {
            let name = parameter["name"].as_str().unwrap_or_default().to_owned();
            if let Some(schema) = parameter.get_mut("schema") {
                tighten_field(&name, schema);
            }
        }
    }
}

fn tighten_field(name: &str, field: &mut Value) {
    let has = |field: &Value, kind: &str| {
        field["type"] == kind || field["type"].as_array().is_some_and(|kinds| kinds.contains(&json!(kind)))
    };
    if has(field, "integer") && field.get("maximum").is_none() {
        // What `int32` stands for here counts from 0, and has 32 bits for that.
        let whole = if field["format"] == "int32" { u64::from(u32::MAX) } else { i64::MAX as u64 };
        field["maximum"] = json!(whole);
    }
    if !has(field, "string") {
        return;
    }
    if let Some((_, words)) = api::words().into_iter().find(|(word, _)| *word == name) {
        let or_none = has(field, "null").then_some(Value::Null);
        field["enum"] = words.iter().map(|word| json!(word)).chain(or_none).collect();
    } else if INSTANTS.contains(&name) && field.get("format").is_none() {
        field["format"] = json!("date-time");
    }
}
