//! Values. They are small and copied; what is large lies in the heap.

/// A place in the heap.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub(crate) struct Id(pub(crate) u32);

/// A value of the language.
#[derive(Clone, Copy, Debug, PartialEq)]
pub(crate) enum Value {
    /// Declared and not initialised yet. No program ever holds it: reading it is an error.
    Hole,
    Null,
    Bool(bool),
    Number(f64),
    Text(Id),
    List(Id),
    Object(Id),
    Error(Id),
    Promise(Id),
    /// A closure, or a method together with what it was read from.
    Function(Id),
    /// A function of the language itself.
    Native(u16),
}

impl Value {
    /// What `typeof` says.
    pub(crate) fn type_name(self) -> &'static str {
        match self {
            Value::Hole => "undefined",
            Value::Null | Value::List(_) | Value::Object(_) | Value::Error(_) | Value::Promise(_) => "object",
            Value::Bool(_) => "boolean",
            Value::Number(_) => "number",
            Value::Text(_) => "string",
            Value::Function(_) | Value::Native(_) => "function",
        }
    }

    /// What it is, in a message: `a number`.
    pub(crate) fn described(self) -> &'static str {
        match self {
            Value::Hole | Value::Null => "null",
            Value::Bool(_) => "a boolean",
            Value::Number(_) => "a number",
            Value::Text(_) => "a string",
            Value::List(_) => "a list",
            Value::Object(_) => "an object",
            Value::Error(_) => "an error",
            Value::Promise(_) => "a promise",
            Value::Function(_) | Value::Native(_) => "a function",
        }
    }

    /// Where in the heap it lies, if it does.
    pub(crate) fn id(self) -> Option<Id> {
        match self {
            Value::Text(id)
            | Value::List(id)
            | Value::Object(id)
            | Value::Error(id)
            | Value::Promise(id)
            | Value::Function(id) => Some(id),
            Value::Hole | Value::Null | Value::Bool(_) | Value::Number(_) | Value::Native(_) => None,
        }
    }
}
