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
}
