//! JSON Schemas, and what they say about fields before anything runs.

use std::collections::BTreeMap;
use std::sync::Arc;

use bytes::Bytes;
use outlast_core::failure::{Failure, code};
use serde_json::Value as Json;

/// A schema that was compiled.
#[derive(Clone)]
pub(crate) struct Schema {
    validator: Arc<jsonschema::Validator>,
    /// As it was written.
    pub(crate) text: Bytes,
    pub(crate) shape: Shape,
}

impl Schema {
    pub(crate) fn compile(schema: &Json) -> Result<Schema, String> {
        let validator = jsonschema::validator_for(schema).map_err(|error| error.to_string())?;
        let text = Bytes::from(schema.to_string());
        Ok(Schema { validator: Arc::new(validator), text, shape: Shape::of_schema(schema) })
    }

    /// Why a value does not fit; none if it does.
    pub(crate) fn misfit(&self, what: &str, value: &Json) -> Option<Failure> {
        // Their order may depend on hashes. Ours does not: the same value always has the same failure.
        let errors = self.validator.iter_errors(value);
        let (place, said) =
            errors.map(|error| (error.instance_path().to_string(), error.masked().to_string())).min()?;
        let place = if place.is_empty() { String::new() } else { format!(" at {place}") };
        let message = format!("{what} does not fit its schema{place}: {said}");
        Some(Failure::new(code::VALIDATION_ERROR, message).permanent())
    }
}

impl std::fmt::Debug for Schema {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("Schema").field("text", &self.text).finish()
    }
}

/// What is known about the fields of a value.
#[derive(Clone, Debug, Default, PartialEq)]
pub(crate) enum Shape {
    /// Nothing: any field may be there.
    #[default]
    Unknown,
    /// These fields, and no others.
    Fields(BTreeMap<Arc<str>, Shape>),
    /// A list, and its items.
    List(Box<Shape>),
}

impl Shape {
    pub(crate) fn fields(fields: impl IntoIterator<Item = (Arc<str>, Shape)>) -> Shape {
        Shape::Fields(fields.into_iter().collect())
    }

    fn of_schema(schema: &Json) -> Shape {
        let others = ["$ref", "allOf", "anyOf", "oneOf", "if", "patternProperties"];
        let is_open = schema.get("additionalProperties").is_some_and(|others| *others != Json::Bool(false));
        if is_open || others.iter().any(|other| schema.get(other).is_some()) {
            return Shape::Unknown;
        }
        let Some(properties) = schema.get("properties").and_then(Json::as_object) else {
            let items = schema.get("items").filter(|_| schema.get("prefixItems").is_none());
            return items.map_or(Shape::Unknown, |items| Shape::List(Box::new(Shape::of_schema(items))));
        };
        Shape::fields(properties.iter().map(|(name, schema)| (name.as_str().into(), Shape::of_schema(schema))))
    }
}
