//! Values of the right kind.

use std::time::Duration;

use toml::Spanned;
use toml::de::DeValue;

use super::error::{ConfigError, Place};
use crate::duration;

type Value<'i> = Spanned<DeValue<'i>>;

fn expected(what: &str, found: &Value<'_>, place: &Place<'_>) -> ConfigError {
    place.at(found.span()).error(format!("{what} is expected here, and not {}", found.get_ref().type_str()))
}

pub(super) fn text(value: &Value<'_>, place: &Place<'_>) -> Result<String, ConfigError> {
    let text = value.get_ref().as_str().ok_or_else(|| expected("a string", value, place))?;
    if text.contains('\0') {
        return Err(place.at(value.span()).error("no program can be given a NUL character; remove it".to_owned()));
    }
    Ok(text.to_owned())
}

pub(super) fn list<T>(
    value: &Value<'_>,
    place: &Place<'_>,
    each: impl Fn(&Value<'_>, &Place<'_>) -> Result<T, ConfigError>,
) -> Result<Vec<T>, ConfigError> {
    let array = value.get_ref().as_array().ok_or_else(|| expected("a list, in `[` and `]`,", value, place))?;
    array.iter().map(|value| each(value, place)).collect()
}

pub(super) fn texts(value: &Value<'_>, place: &Place<'_>) -> Result<Vec<String>, ConfigError> {
    list(value, place, text)
}

/// A whole number, if it is one.
fn integer(value: &Value<'_>) -> Option<i64> {
    let integer = value.get_ref().as_integer()?;
    i64::from_str_radix(integer.as_str(), integer.radix()).ok()
}

pub(super) fn positive(value: &Value<'_>, place: &Place<'_>) -> Result<usize, ConfigError> {
    let number = integer(value).and_then(|number| usize::try_from(number).ok()).filter(|number| *number > 0);
    number.ok_or_else(|| place.at(value.span()).error("a whole number from 1 is expected here".to_owned()))
}

pub(super) fn exit_code(value: &Value<'_>, place: &Place<'_>) -> Result<i32, ConfigError> {
    let code = integer(value).and_then(|code| i32::try_from(code).ok()).filter(|code| (1..=255).contains(code));
    code.ok_or_else(|| place.at(value.span()).error("an exit code from 1 to 255 is expected here".to_owned()))
}

pub(super) fn duration(value: &Value<'_>, place: &Place<'_>) -> Result<Duration, ConfigError> {
    let read = match value.get_ref() {
        DeValue::String(text) => duration::parse(text),
        DeValue::Integer(_) => integer(value).and_then(|seconds| duration::parse(&seconds.to_string())),
        DeValue::Float(seconds) => seconds.as_str().parse().ok().and_then(duration::from_seconds),
        DeValue::Boolean(_) | DeValue::Datetime(_) | DeValue::Array(_) | DeValue::Table(_) => None,
    };
    read.ok_or_else(|| place.at(value.span()).error(format!("this is none: {}", duration::FORM)))
}

/// A number of bytes, such as `1000`, `"64KiB"` or `"1MiB"`.
pub(super) fn byte_count(value: &Value<'_>, place: &Place<'_>, max: usize) -> Result<usize, ConfigError> {
    let read = match value.get_ref().as_str() {
        Some(text) => {
            let unit = text.find(|letter: char| !letter.is_ascii_digit()).unwrap_or(text.len());
            let (number, unit) = text.split_at(unit);
            let each = match unit.trim() {
                "" | "B" => Some(1),
                "KiB" => Some(1024),
                "MiB" => Some(1024 * 1024),
                _ => None,
            };
            number.parse::<usize>().ok().zip(each).and_then(|(number, each): (usize, usize)| number.checked_mul(each))
        }
        None => integer(value).and_then(|number| usize::try_from(number).ok()),
    };
    read.filter(|bytes| (1..=max).contains(bytes)).ok_or_else(|| {
        let message = format!("a size is `1000` (bytes), `\"64KiB\"` or `\"1MiB\"`, and at most {max} bytes");
        place.at(value.span()).error(message)
    })
}
