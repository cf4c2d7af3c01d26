//! Strings. Places and lengths count characters.

use std::sync::Arc;

use super::{Call, Run, Spec};
use crate::heap::Text;
use crate::machine::{Done, count};
use crate::value::Value;

pub(super) fn table() -> Vec<Spec> {
    vec![
        Spec("string.at(index)", 1, Some(1), Run::Rust(at)),
        Spec("string.charAt(index)", 0, Some(1), Run::Rust(char_at)),
        Spec("string.charCodeAt(index)", 0, Some(1), Run::Rust(|call| code_at(call, Value::Number(f64::NAN)))),
        Spec("string.codePointAt(index)", 0, Some(1), Run::Rust(|call| code_at(call, Value::Null))),
        Spec("string.concat(...texts)", 0, None, Run::Rust(concat)),
        Spec("string.endsWith(text)", 1, Some(2), Run::Rust(ends_with)),
        Spec("string.includes(text)", 1, Some(2), Run::Rust(includes)),
        Spec("string.indexOf(text, from)", 1, Some(2), Run::Rust(index_of)),
        Spec("string.lastIndexOf(text, from)", 1, Some(2), Run::Rust(last_index_of)),
        Spec("string.localeCompare(text)", 1, Some(1), Run::Rust(locale_compare)),
        Spec("string.padEnd(length, filler)", 1, Some(2), Run::Rust(|call| pad(call, false))),
        Spec("string.padStart(length, filler)", 1, Some(2), Run::Rust(|call| pad(call, true))),
        Spec("string.repeat(count)", 1, Some(1), Run::Rust(repeat)),
        Spec("string.replace(old, new)", 2, Some(2), Run::Rust(|call| replace(call, false))),
        Spec("string.replaceAll(old, new)", 2, Some(2), Run::Rust(|call| replace(call, true))),
        Spec("string.slice(start, end)", 0, Some(2), Run::Rust(slice)),
        Spec("string.split(separator, limit)", 0, Some(2), Run::Rust(split)),
        Spec("string.startsWith(text, from)", 1, Some(2), Run::Rust(starts_with)),
        Spec("string.substring(start, end)", 1, Some(2), Run::Rust(substring)),
        Spec("string.toLowerCase()", 0, Some(0), Run::Rust(|call| map(call, str::to_lowercase))),
        Spec("string.toUpperCase()", 0, Some(0), Run::Rust(|call| map(call, str::to_uppercase))),
        Spec("string.toString()", 0, Some(0), Run::Rust(|call| Ok(call.arg(0)))),
        Spec("string.valueOf()", 0, Some(0), Run::Rust(|call| Ok(call.arg(0)))),
        Spec("string.trim()", 0, Some(0), Run::Rust(|call| map(call, |text| trim(text, true, true).to_owned()))),
        Spec("string.trimStart()", 0, Some(0), Run::Rust(|call| map(call, |text| trim(text, true, false).to_owned()))),
        Spec("string.trimEnd()", 0, Some(0), Run::Rust(|call| map(call, |text| trim(text, false, true).to_owned()))),
        Spec("String.fromCodePoint(...codes)", 0, None, Run::Rust(from_codes)),
        Spec("String.fromCharCode(...codes)", 0, None, Run::Rust(from_codes)),
    ]
}

fn receiver(call: &mut Call<'_>) -> Done<Text> {
    match call.arg(0) {
        Value::Text(id) => {
            let text = call.machine.heap.text_of(id).clone();
            call.machine.spend(text.text.len() as u64 / 16)?;
            Ok(text)
        }
        other => Err(call.type_error("the receiver", "a string", other)),
    }
}

fn map(call: &mut Call<'_>, run: fn(&str) -> String) -> Done {
    let text = run(&receiver(call)?.text);
    call.new_text(text)
}

/// Without the white space JavaScript knows, which has the byte order mark in addition.
fn trim(text: &str, start: bool, end: bool) -> &str {
    let is_space = |letter: char| letter.is_whitespace() && letter != '\u{85}' || letter == '\u{FEFF}';
    let text = if start { text.trim_start_matches(is_space) } else { text };
    if end { text.trim_end_matches(is_space) } else { text }
}

fn letter(text: &Text, index: f64) -> Option<&str> {
    let inside = index >= 0.0 && index < text.chars() as f64;
    inside.then(|| text.slice(index as usize, index as usize + 1))
}

fn at(call: &mut Call<'_>) -> Done {
    let text = receiver(call)?;
    let index = call.integer(1, "the index", 0.0)?;
    let index = if index < 0.0 { text.chars() as f64 + index } else { index };
    Ok(letter(&text, index).map_or(Value::Null, |letter| call.machine.heap.text(letter)))
}

fn char_at(call: &mut Call<'_>) -> Done {
    let text = receiver(call)?;
    let index = call.integer(1, "the index", 0.0)?;
    let letter = letter(&text, index).unwrap_or_default().to_owned();
    call.new_text(letter)
}

fn code_at(call: &mut Call<'_>, missing: Value) -> Done {
    let text = receiver(call)?;
    let index = call.integer(1, "the index", 0.0)?;
    let code = letter(&text, index).and_then(|letter| letter.chars().next());
    Ok(code.map_or(missing, |code| Value::Number(f64::from(u32::from(code)))))
}

fn concat(call: &mut Call<'_>) -> Done {
    let mut text = receiver(call)?.text.to_string();
    for place in 1..call.count {
        let part = call.arg(place);
        call.machine.print_onto(part, &mut text)?;
    }
    call.new_text(text)
}

fn includes(call: &mut Call<'_>) -> Done {
    let text = receiver(call)?;
    let wanted = call.text(1, "what to look for")?;
    let from = text.offset(call.integer(2, "where to begin", 0.0)?.max(0.0) as usize);
    Ok(Value::Bool(text.text[from..].contains(&*wanted)))
}

fn starts_with(call: &mut Call<'_>) -> Done {
    let text = receiver(call)?;
    let wanted = call.text(1, "what to look for")?;
    let from = text.offset(call.integer(2, "where to begin", 0.0)?.max(0.0) as usize);
    Ok(Value::Bool(text.text[from..].starts_with(&*wanted)))
}

fn ends_with(call: &mut Call<'_>) -> Done {
    let text = receiver(call)?;
    let wanted = call.text(1, "what to look for")?;
    let end = text.offset(call.integer(2, "where to end", text.chars() as f64)?.max(0.0) as usize);
    Ok(Value::Bool(text.text[..end].ends_with(&*wanted)))
}

fn index_of(call: &mut Call<'_>) -> Done {
    let text = receiver(call)?;
    let wanted = call.text(1, "what to look for")?;
    let from = text.offset(call.integer(2, "where to begin", 0.0)?.max(0.0) as usize);
    let found = text.text[from..].find(&*wanted).map(|byte| text.chars_before(from + byte));
    Ok(found.map_or(Value::Number(-1.0), count))
}

fn last_index_of(call: &mut Call<'_>) -> Done {
    let text = receiver(call)?;
    let wanted = call.text(1, "what to look for")?;
    // The last place where it may begin.
    let last = text.offset(call.integer(2, "where to begin", f64::INFINITY)?.max(0.0) as usize);
    let end = last.saturating_add(wanted.len()).min(text.text.len());
    // What ends inside a character is not what is looked for.
    let end = text.text.floor_char_boundary(end);
    let found = text.text[..end].rfind(&*wanted).map(|byte| text.chars_before(byte));
    Ok(found.map_or(Value::Number(-1.0), count))
}

/// By the numbers of the characters: there are no locales.
fn locale_compare(call: &mut Call<'_>) -> Done {
    let text = receiver(call)?;
    let other = call.text(1, "what to compare with")?;
    Ok(Value::Number(match (*text.text).cmp(&*other) {
        std::cmp::Ordering::Less => -1.0,
        std::cmp::Ordering::Equal => 0.0,
        std::cmp::Ordering::Greater => 1.0,
    }))
}

fn pad(call: &mut Call<'_>, at_start: bool) -> Done {
    let text = receiver(call)?;
    let length = call.integer(1, "the length", 0.0)?;
    let filler: Arc<str> = if call.arg(2) == Value::Null { " ".into() } else { call.text(2, "the filler")? };
    let missing = length - text.chars() as f64;
    if missing <= 0.0 || filler.is_empty() {
        return Ok(call.arg(0));
    }
    call.machine.check_text(missing.min(1e12) as usize)?;
    let padding: String = filler.chars().cycle().take(missing as usize).collect();
    let padded = if at_start { format!("{padding}{}", text.text) } else { format!("{}{padding}", text.text) };
    call.new_text(padded)
}

fn repeat(call: &mut Call<'_>) -> Done {
    let text = receiver(call)?;
    let times = call.integer(1, "the count", 0.0)?;
    if !(0.0..=1e9).contains(&times) {
        return Err(call.range_error("the count must not be negative or very large"));
    }
    call.machine.check_text(text.text.len().saturating_mul(times as usize))?;
    call.new_text(text.text.repeat(times as usize))
}

fn replace(call: &mut Call<'_>, all: bool) -> Done {
    let text = receiver(call)?;
    let (old, new) = (call.text(1, "what to replace")?, call.text(2, "the replacement")?);
    let mut result = String::new();
    let mut end = 0;
    for (start, _) in text.text.match_indices(&*old).take(if all { usize::MAX } else { 1 }) {
        result.push_str(&text.text[end..start]);
        expand(&new, &text.text, start, start + old.len(), &mut result);
        end = start + old.len();
        call.machine.spend(1)?;
        call.machine.check_text(result.len())?;
    }
    result.push_str(&text.text[end..]);
    call.new_text(result)
}

/// Writes a replacement, in which `$&` is what it replaces.
fn expand(new: &str, text: &str, start: usize, end: usize, result: &mut String) {
    let mut rest = new;
    while let Some(at) = rest.find('$') {
        result.push_str(&rest[..at]);
        let (part, length) = match rest[at + 1..].chars().next() {
            Some('$') => ("$", 2),
            Some('&') => (&text[start..end], 2),
            Some('`') => (&text[..start], 2),
            Some('\'') => (&text[end..], 2),
            _ => ("$", 1),
        };
        result.push_str(part);
        rest = &rest[at + length..];
    }
    result.push_str(rest);
}

fn slice(call: &mut Call<'_>) -> Done {
    let text = receiver(call)?;
    let (from, to) = call.range(text.chars())?;
    let part = text.slice(from, to).to_owned();
    call.new_text(part)
}

fn substring(call: &mut Call<'_>) -> Done {
    let text = receiver(call)?;
    let length = text.chars() as f64;
    let from = call.integer(1, "the start", 0.0)?.clamp(0.0, length) as usize;
    let to = call.integer(2, "the end", length)?.clamp(0.0, length) as usize;
    let part = text.slice(from.min(to), from.max(to)).to_owned();
    call.new_text(part)
}

fn split(call: &mut Call<'_>) -> Done {
    let text = receiver(call)?;
    let limit = call.integer(2, "the limit", f64::INFINITY)?;
    let limit = if limit < 0.0 { usize::MAX } else { limit as usize };
    if call.arg(1) == Value::Null {
        let whole = call.arg(0);
        return call.new_list(if limit == 0 { Vec::new() } else { vec![whole] });
    }
    let separator = call.text(1, "the separator")?;
    let parts: Vec<&str> = if separator.is_empty() {
        text.text.split("").filter(|part| !part.is_empty()).take(limit).collect()
    } else {
        text.text.split(&*separator).take(limit).collect()
    };
    call.machine.check_items(parts.len())?;
    let parts = parts.into_iter().map(|part| call.machine.heap.text(part)).collect();
    call.new_list(parts)
}

fn from_codes(call: &mut Call<'_>) -> Done {
    let mut text = String::new();
    for place in 0..call.count {
        let code = call.number(place, "each code")?;
        match char::from_u32(code as u32).filter(|_| code >= 0.0 && code.fract() == 0.0) {
            Some(letter) => text.push(letter),
            None => return Err(call.range_error("this is not the code of a character")),
        }
    }
    call.new_text(text)
}
