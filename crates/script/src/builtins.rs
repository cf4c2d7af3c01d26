//! The functions, constants and methods of the language.

mod call;
mod convert;
mod durable;
mod list;
mod math;
mod number;
mod object;
mod options;
mod promise;
mod text;

use std::collections::BTreeMap;
use std::sync::LazyLock;

use rustc_hash::FxHashMap;

pub(crate) use call::Call;

use crate::compile::{Compiled, compile};
use crate::machine::Done;
use crate::value::Value;

/// What a name of the language stands for.
#[derive(Clone, Copy, Debug, PartialEq)]
pub(crate) enum Builtin {
    Native(u16),
    Constant(Constant),
}

impl Eq for Builtin {}

#[derive(Clone, Copy, Debug, PartialEq)]
pub(crate) enum Constant {
    Number(f64),
    Inputs,
    RunId,
    WorkflowName,
}

/// A function of the language.
pub(crate) struct Native {
    /// With its namespace, or for a method with the kind of its receiver: `Task.run`, `list.map`.
    pub(crate) name: &'static str,
    signature: &'static str,
    /// How many arguments it takes, without the receiver.
    pub(crate) least: u8,
    pub(crate) most: Option<u8>,
    pub(crate) run: Run,
}

impl Native {
    /// How it is written.
    pub(crate) fn usage(&self) -> &'static str {
        self.signature
    }
}

pub(crate) enum Run {
    Rust(fn(&mut Call<'_>) -> Done),
    /// Written in the language itself.
    Script(&'static str),
}

/// A function of the language, as its module lists it: how it is written, how many arguments it takes, what it does.
struct Spec(&'static str, u8, Option<u8>, Run);

const PRELUDE: &str = include_str!("builtins/prelude.wf");

/// The kinds of values that have methods.
const KINDS: [&str; 8] = ["string", "list", "object", "number", "boolean", "promise", "error", "function"];

struct Registry {
    natives: Vec<Native>,
    /// The members of each namespace.
    namespaces: BTreeMap<&'static str, BTreeMap<&'static str, Builtin>>,
    globals: BTreeMap<&'static str, Builtin>,
    /// For each name of a method its number for each kind.
    methods: FxHashMap<&'static str, [Option<u16>; KINDS.len()]>,
}

static REGISTRY: LazyLock<Registry> = LazyLock::new(registry);

fn registry() -> Registry {
    let mut registry = Registry {
        natives: Vec::new(),
        namespaces: BTreeMap::new(),
        globals: constants(),
        methods: FxHashMap::default(),
    };
    for (namespace, name, constant) in namespace_constants() {
        registry.namespaces.entry(namespace).or_default().insert(name, Builtin::Constant(constant));
    }
    let tables = [
        math::table(),
        number::table(),
        text::table(),
        list::table(),
        object::table(),
        convert::table(),
        promise::table(),
        durable::table(),
    ];
    for Spec(signature, least, most, run) in tables.into_iter().flatten() {
        let name = signature.split('(').next().unwrap_or(signature);
        let id = u16::try_from(registry.natives.len()).unwrap_or(u16::MAX);
        registry.natives.push(Native { name, signature, least, most, run });
        registry.list(name, id);
    }
    registry
}

impl Registry {
    fn list(&mut self, name: &'static str, id: u16) {
        let Some((namespace, member)) = name.split_once('.') else {
            self.globals.insert(name, Builtin::Native(id));
            return;
        };
        match KINDS.iter().position(|kind| *kind == namespace) {
            Some(kind) => self.methods.entry(member).or_default()[kind] = Some(id),
            None => {
                self.namespaces.entry(namespace).or_default().insert(member, Builtin::Native(id));
            }
        }
    }
}

fn constants() -> BTreeMap<&'static str, Builtin> {
    [("NaN", Constant::Number(f64::NAN)), ("Infinity", Constant::Number(f64::INFINITY)), ("Inputs", Constant::Inputs)]
        .map(|(name, constant)| (name, Builtin::Constant(constant)))
        .into_iter()
        .collect()
}

fn namespace_constants() -> Vec<(&'static str, &'static str, Constant)> {
    use std::f64::consts;
    let number = Constant::Number;
    vec![
        ("Context", "runId", Constant::RunId),
        ("Context", "workflow", Constant::WorkflowName),
        ("Math", "PI", number(consts::PI)),
        ("Math", "E", number(consts::E)),
        ("Math", "LN2", number(consts::LN_2)),
        ("Math", "LN10", number(consts::LN_10)),
        ("Math", "LOG2E", number(consts::LOG2_E)),
        ("Math", "LOG10E", number(consts::LOG10_E)),
        ("Math", "SQRT2", number(consts::SQRT_2)),
        ("Math", "SQRT1_2", number(consts::FRAC_1_SQRT_2)),
        ("Number", "MAX_SAFE_INTEGER", number(9_007_199_254_740_991.0)),
        ("Number", "MIN_SAFE_INTEGER", number(-9_007_199_254_740_991.0)),
        ("Number", "MAX_VALUE", number(f64::MAX)),
        ("Number", "MIN_VALUE", number(5e-324)),
        ("Number", "EPSILON", number(f64::EPSILON)),
        ("Number", "NaN", number(f64::NAN)),
        ("Number", "POSITIVE_INFINITY", number(f64::INFINITY)),
        ("Number", "NEGATIVE_INFINITY", number(f64::NEG_INFINITY)),
    ]
}

pub(crate) fn native(id: u16) -> &'static Native {
    &REGISTRY.natives[usize::from(id)]
}

/// Whether there is a function with this number.
pub(crate) fn is_native(id: u16) -> bool {
    usize::from(id) < REGISTRY.natives.len()
}

/// Whether a name has members: `Task`. Some of them are functions too.
pub(crate) fn is_namespace(name: &str) -> bool {
    REGISTRY.namespaces.contains_key(name) && !REGISTRY.globals.contains_key(name)
}

/// Whether a name has members, whatever else it is: `Number`.
pub(crate) fn has_members(name: &str) -> bool {
    REGISTRY.namespaces.contains_key(name)
}

pub(crate) fn global(name: &str, in_prelude: bool) -> Option<Builtin> {
    REGISTRY.globals.get(name).copied().filter(|_| in_prelude || !name.starts_with('$'))
}

/// Every name that is there without being declared.
pub(crate) fn global_names() -> impl Iterator<Item = &'static str> {
    let globals = REGISTRY.globals.keys().copied().filter(|name| !name.starts_with('$'));
    globals.chain(REGISTRY.namespaces.keys().copied())
}

/// A member of a namespace.
pub(crate) fn member(namespace: &str, name: &str) -> Option<Builtin> {
    REGISTRY.namespaces.get(namespace)?.get(name).copied()
}

/// The names of a namespace's members.
pub(crate) fn members(namespace: &str) -> impl Iterator<Item = &'static str> {
    REGISTRY.namespaces.get(namespace).into_iter().flat_map(|members| members.keys().copied())
}

/// The method of a value.
pub(crate) fn method(receiver: Value, name: &str) -> Option<u16> {
    REGISTRY.methods.get(name)?[kind(receiver)?]
}

/// The names of a value's methods.
pub(crate) fn methods(receiver: Value) -> Vec<&'static str> {
    let Some(kind) = kind(receiver) else { return Vec::new() };
    let prefix = KINDS[kind];
    let names = REGISTRY.natives.iter().filter_map(|native| native.name.split_once('.'));
    names.filter(|(namespace, _)| *namespace == prefix).map(|(_, name)| name).collect()
}

fn kind(value: Value) -> Option<usize> {
    match value {
        Value::Hole | Value::Null => None,
        Value::Text(_) => Some(0),
        Value::List(_) => Some(1),
        Value::Object(_) => Some(2),
        Value::Number(_) => Some(3),
        Value::Bool(_) => Some(4),
        Value::Promise(_) => Some(5),
        Value::Error(_) => Some(6),
        Value::Function(_) | Value::Native(_) => Some(7),
    }
}

/// Whether `new` makes an error of this name.
pub(crate) fn is_error_name(name: &str) -> bool {
    matches!(name, "Error" | "TypeError" | "RangeError")
}

/// The names of all functions that scripts can call: `Task.run`, `list.map`. Tests see to it that none is forgotten.
pub fn names() -> impl Iterator<Item = &'static str> {
    REGISTRY.natives.iter().map(|native| native.name).filter(|name| !name.starts_with('$'))
}

/// Names all functions of the language, in order: saved state refers to them by number.
pub(crate) fn fingerprint() -> String {
    let names: Vec<&str> = REGISTRY.natives.iter().map(|native| native.signature).collect();
    names.join("\n") + PRELUDE
}

/// The part of the language that is written in itself.
pub(crate) fn prelude() -> &'static Compiled {
    static COMPILED: LazyLock<Compiled> = LazyLock::new(|| {
        let parsed = crate::syntax::parse(PRELUDE);
        let checked = crate::check::check(&parsed, true);
        compile(&parsed, &checked, &Compiled::default(), true)
    });
    &COMPILED
}

/// The number of a function of the prelude.
pub(crate) fn prelude_function(name: &str) -> u32 {
    static NAMES: LazyLock<FxHashMap<&'static str, u32>> = LazyLock::new(|| {
        let functions = prelude().functions.iter().enumerate();
        functions.map(|(id, function)| (&*function.name, u32::try_from(id).unwrap_or(u32::MAX))).collect()
    });
    NAMES.get(name).copied().unwrap_or_default()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_prelude_compiles_and_has_every_function_that_is_listed() {
        let parsed = crate::syntax::parse(PRELUDE);
        assert_eq!(parsed.problems, []);
        assert_eq!(crate::check::check(&parsed, true).problems, []);
        for native in &REGISTRY.natives {
            if let Run::Script(name) = native.run {
                let found = &prelude().functions[prelude_function(name) as usize];
                assert_eq!(&*found.name, name);
                assert!(found.captures.is_empty(), "{name} uses something outside of it");
            }
        }
    }

    #[test]
    fn no_function_is_listed_twice() {
        let mut names: Vec<&str> = REGISTRY.natives.iter().map(|native| native.name).collect();
        names.sort_unstable();
        let count = names.len();
        names.dedup();
        assert_eq!(names.len(), count);
    }
}
