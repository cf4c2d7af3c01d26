//! Looking at JSON without understanding it.

use serde_json::value::RawValue;

/// How deep a request may nest.
pub(crate) const DEPTH_MAX: usize = 128;

/// How deep a text nests at most, by its brackets. Of a text that is not JSON any number may come out.
pub(super) fn depth(text: &str) -> usize {
    let (mut depth, mut deepest, mut in_string, mut escaped) = (0usize, 0, false, false);
    for byte in text.bytes() {
        match (in_string, byte) {
            (true, _) if escaped => escaped = false,
            (true, b'\\') => escaped = true,
            (true, b'"') => in_string = false,
            (true, _) => {}
            (false, b'"') => in_string = true,
            (false, b'[' | b'{') => {
                depth += 1;
                deepest = deepest.max(depth);
            }
            (false, b']' | b'}') => depth = depth.saturating_sub(1),
            (false, _) => {}
        }
    }
    deepest
}

/// The same text with a whole number for the one that ends at this place, if it is written with a fraction that is none: `91` for
/// `91.0`.
pub(super) fn whole_number(text: &str, line: usize, column: usize) -> Option<String> {
    let before: usize = text.split_inclusive('\n').take(line.checked_sub(1)?).map(str::len).sum();
    // Where reading stopped: at the number's last letter, or right behind it.
    let place = before + column;
    let is_part = |byte: &u8| matches!(byte, b'0'..=b'9' | b'.' | b'e' | b'E' | b'+' | b'-');
    let bytes = text.as_bytes();
    let end = (place.checked_sub(1)?..bytes.len().min(place + 1))
        .find(|at| !bytes.get(*at).is_some_and(is_part))
        .unwrap_or(place);
    let start = end - bytes.get(..end)?.iter().rev().take_while(|byte| is_part(byte)).count();
    let number: f64 = text.get(start..end).filter(|token| token.contains(['.', 'e', 'E']))?.parse().ok()?;
    let is_exact = number.fract() == 0.0 && number.abs() <= 9_007_199_254_740_992.0;
    is_exact.then(|| format!("{}{number:.0}{}", &text[..start], &text[end..]))
}

/// The same value without the blanks between its parts: two clients that write the same value with other blanks mean the
/// same run.
pub(crate) fn compact(value: &RawValue) -> Box<RawValue> {
    let text = value.get();
    if !text.bytes().any(|byte| byte.is_ascii_whitespace()) {
        return value.to_owned();
    }
    let mut kept = String::with_capacity(text.len());
    let (mut in_string, mut escaped) = (false, false);
    for letter in text.chars() {
        match (in_string, letter) {
            (true, _) if escaped => escaped = false,
            (true, '\\') => escaped = true,
            (true, '"') => in_string = false,
            (true, _) => {}
            (false, '"') => in_string = true,
            (false, ' ' | '\t' | '\n' | '\r') => continue,
            (false, _) => {}
        }
        kept.push(letter);
    }
    RawValue::from_string(kept).unwrap_or_else(|_| value.to_owned())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn brackets_in_texts_are_no_depth() {
        assert_eq!(depth("1"), 0);
        assert_eq!(depth(r#"{"a":[1,[2]]}"#), 3);
        assert_eq!(depth(r#"["[[[","\"[[","\\"]"#), 1);
        assert_eq!(depth("]]]["), 1);
        assert_eq!(depth(&"[".repeat(1000)), 1000);
    }

    #[test]
    fn blanks_between_parts_go_and_those_in_texts_stay() {
        let value: Box<RawValue> = serde_json::from_str("{ \"a b\" : [ 1.0 , \" \\\" \" ],\n\t\"ü\":null }").unwrap();
        assert_eq!(compact(&value).get(), "{\"a b\":[1.0,\" \\\" \"],\"ü\":null}");
    }

    #[test]
    fn a_whole_number_is_one_however_it_is_written() {
        #[derive(Debug, PartialEq, serde::Deserialize)]
        struct Numbers {
            a: u32,
            b: Option<i64>,
        }
        let read = |text: &str| crate::body::parse::<Numbers>(text.as_bytes()).ok();
        let expected = |a, b| Some(Numbers { a, b });
        assert_eq!(read(r#"{"a":91.0}"#), expected(91, None));
        assert_eq!(read("{\n \"a\": 1e2 ,\n\"b\":-3.0\n}"), expected(100, Some(-3)));
        assert_eq!(read(r#"{"b": 2.0, "a": 0.0}"#), expected(0, Some(2)));
        for wrong in [r#"{"a":91.5}"#, r#"{"a":-1.0}"#, r#"{"a":1e300}"#, r#"{"a":"1.0"}"#, r#"{"a":[1.0]}"#] {
            assert_eq!(read(wrong), None, "{wrong}");
        }
    }
}
