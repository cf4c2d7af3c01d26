//! The options of operations: `{ timeout: "5m", retry: 3 }`.

use std::sync::Arc;
use std::time::Duration;

use outlast_core::operation::Due;
use outlast_core::retry::{Backoff, Jitter, Retry};
use outlast_core::time::Timestamp;

use super::Call;
use crate::duration;
use crate::machine::{Done, codes};
use crate::value::{Id, Value};

/// An object of options, of which each may be asked for once.
pub(super) struct Options {
    object: Option<Id>,
}

impl Options {
    /// Those of an argument, which may be missing. Unknown ones are refused: a slip must not go unnoticed.
    pub(super) fn new(call: &mut Call<'_>, place: usize, known: &[&str]) -> Done<Options> {
        let object = match call.arg(place) {
            Value::Null => return Ok(Options { object: None }),
            Value::Object(id) => id,
            other => return Err(call.type_error("the options", "an object", other)),
        };
        let keys: Vec<Arc<str>> = match call.machine.heap.object_of(object) {
            Some(object) => object.iter().map(|(key, _)| Arc::clone(key)).collect(),
            None => Vec::new(),
        };
        if let Some(unknown) = keys.iter().find(|key| !known.contains(&&***key)) {
            let hint = match crate::suggest::nearest(unknown, known.iter().copied()) {
                Some(meant) => format!("did you mean `{meant}`?"),
                None => format!("there are {}", known.join(", ")),
            };
            let message = format!("{}: there is no option `{unknown}`: {hint}", call.name());
            return Err(call.machine.error(codes::TYPE, message));
        }
        Ok(Options { object: Some(object) })
    }

    pub(super) fn get(&self, call: &Call<'_>, key: &str) -> Value {
        let object = self.object.and_then(|id| call.machine.heap.object_of(id));
        object.and_then(|object| object.get(key)).unwrap_or(Value::Null)
    }

    pub(super) fn text(&self, call: &mut Call<'_>, key: &str) -> Done<Option<Arc<str>>> {
        match self.get(call, key) {
            Value::Null => Ok(None),
            Value::Text(id) => Ok(Some(Arc::clone(&call.machine.heap.text_of(id).text))),
            other => Err(call.type_error(key, "a string", other)),
        }
    }

    pub(super) fn duration(&self, call: &mut Call<'_>, key: &str) -> Done<Option<Duration>> {
        match self.get(call, key) {
            Value::Null => Ok(None),
            value => duration_of(call, value, key).map(Some),
        }
    }

    /// `timeout` or `deadline`.
    pub(super) fn due(&self, call: &mut Call<'_>) -> Done<Option<Due>> {
        match (self.duration(call, "timeout")?, self.get(call, "deadline")) {
            (Some(timeout), Value::Null) => Ok(Some(Due::After(timeout))),
            (None, Value::Null) => Ok(None),
            (None, deadline) => instant_of(call, deadline, "deadline").map(|at| Some(Due::At(at))),
            (Some(_), _) => Err(call.range_error("timeout and deadline exclude each other")),
        }
    }

    /// A number of attempts, or `{ attempts, initial, factor, cap, jitter, backoff }`.
    pub(super) fn retry(&self, call: &mut Call<'_>) -> Done<Retry> {
        match self.get(call, "retry") {
            Value::Null => Ok(Retry::default()),
            Value::Bool(false) => Ok(Retry::never()),
            Value::Number(attempts) => Ok(Retry::attempts(attempts_of(call, attempts)?)),
            Value::Object(id) => retry_of(call, id),
            other => Err(call.type_error("retry", "a number of attempts or an object", other)),
        }
    }
}

fn attempts_of(call: &mut Call<'_>, attempts: f64) -> Done<u32> {
    if !(1.0..=1e6).contains(&attempts) || attempts.fract() != 0.0 {
        return Err(call.range_error("attempts must be a whole number from 1 to 1000000"));
    }
    Ok(attempts as u32)
}

fn retry_of(call: &mut Call<'_>, id: Id) -> Done<Retry> {
    let options = Options { object: Some(id) };
    let known = ["attempts", "initial", "factor", "cap", "jitter", "backoff"];
    let keys: Vec<Arc<str>> = call
        .machine
        .heap
        .object_of(id)
        .map(|object| object.iter().map(|(key, _)| key.clone()).collect())
        .unwrap_or_default();
    if let Some(unknown) = keys.iter().find(|key| !known.contains(&&***key)) {
        let message = format!("{}: retry has no option `{unknown}`: there are {}", call.name(), known.join(", "));
        return Err(call.machine.error(codes::TYPE, message));
    }
    let mut retry = match options.get(call, "attempts") {
        Value::Null => Retry::default(),
        Value::Number(attempts) => Retry::attempts(attempts_of(call, attempts)?),
        other => return Err(call.type_error("attempts", "a number", other)),
    };
    if let Some(initial) = options.duration(call, "initial")? {
        retry = retry.initial(initial);
    }
    if let Some(cap) = options.duration(call, "cap")? {
        retry = retry.cap(cap);
    }
    match options.text(call, "backoff")?.as_deref() {
        None | Some("exponential") => {}
        Some("linear") => retry = retry.backoff(Backoff::Linear),
        Some("constant") => retry = retry.backoff(Backoff::Constant),
        Some(_) => return Err(call.range_error("backoff is \"exponential\", \"linear\" or \"constant\"")),
    }
    match options.get(call, "factor") {
        Value::Null => {}
        Value::Number(factor) => retry = retry.factor(factor),
        other => return Err(call.type_error("factor", "a number", other)),
    }
    match options.get(call, "jitter") {
        Value::Null => {}
        Value::Bool(true) => retry = retry.jitter(Jitter::Half),
        Value::Bool(false) => retry = retry.jitter(Jitter::None),
        other => return Err(call.type_error("jitter", "true or false", other)),
    }
    Ok(retry)
}

/// A number of seconds, or a text such as `"5m"`.
pub(super) fn duration_of(call: &mut Call<'_>, value: Value, what: &str) -> Done<Duration> {
    let duration = match value {
        Value::Number(seconds) => duration::from_seconds(seconds),
        Value::Text(id) => duration::parse(&call.machine.heap.text_of(id).text),
        other => return Err(call.type_error(what, "a number of seconds, or a string such as \"5m\"", other)),
    };
    match duration {
        Some(duration) => Ok(duration),
        None => {
            let shown = call.machine.shown(value);
            let shown = if matches!(value, Value::Text(_)) { format!("{shown:?}") } else { shown };
            let message =
                format!("{what} {shown} is no duration: write seconds, \"30s\", \"5 minutes\", \"1h 30m\" or \"PT5M\"");
            Err(call.range_error(&message))
        }
    }
}

/// An instant, in milliseconds since the epoch, as `Time.now` gives it.
pub(super) fn instant_of(call: &mut Call<'_>, value: Value, what: &str) -> Done<Timestamp> {
    match value {
        Value::Number(millis) if millis.is_finite() => Ok(Timestamp::from_millis(millis as i64)),
        other => Err(call.type_error(what, "an instant in milliseconds, such as Time.now() + 60000", other)),
    }
}
