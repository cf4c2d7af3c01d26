//! What a program may see and nobody else: the values of the variables it is given are taken out of what is kept and shown of it.

use std::ffi::OsString;
use std::os::unix::ffi::OsStrExt;

/// What stands where a value stood.
const MASK: &str = "***";
/// A value that is shorter is no secret, and would be found in the middle of words.
const SECRET_BYTES_MIN: usize = 8;
/// So much of the beginning of a value at the end of a stream is taken for the value, cut off.
const PART_BYTES_MIN: usize = 4;
/// What these have is no secret, and is in every other line of what a program says.
const KNOWN: [&str; 9] = ["HOME", "LANG", "LC_ALL", "LOGNAME", "PWD", "SHELL", "TMPDIR", "TZ", "USER"];

/// The values that must not be told, in each way a program writes them; the longest first.
#[derive(Clone, Debug, Default)]
pub(super) struct Secrets(Vec<Vec<u8>>);

impl Secrets {
    /// Those of these variables.
    pub(super) fn of(variables: &[(&str, OsString)]) -> Secrets {
        let values = variables.iter().filter(|(name, _)| !KNOWN.contains(name)).map(|(_, value)| value.as_bytes());
        let mut written: Vec<Vec<u8>> = values.flat_map(spellings).collect();
        written.retain(|value| value.len() >= SECRET_BYTES_MIN);
        written.sort_by_key(|value| std::cmp::Reverse(value.len()));
        written.dedup();
        Secrets(written)
    }

    /// The text without them. If it ends within one, that part is gone too.
    pub(super) fn hide(&self, text: &[u8]) -> Vec<u8> {
        let mut told = Vec::with_capacity(text.len());
        let mut filter = Filter::new(self.clone());
        filter.pass(text, &mut told);
        told.extend(filter.rest());
        told
    }

    /// A document of JSON without them, if there were any: in its texts, and as its numbers. What is left is JSON.
    pub(super) fn hide_in_json(&self, json: &str) -> Option<String> {
        let mut told = String::with_capacity(json.len());
        let mut rest = json;
        while let Some(token) = next_token(rest) {
            rest = &rest[token.len()..];
            let plain = serde_json::from_str::<String>(token).unwrap_or_else(|_| token.to_owned());
            let hidden = String::from_utf8_lossy(&self.replace(plain.as_bytes())).into_owned();
            if hidden == plain {
                told.push_str(token);
            } else {
                told.push_str(&serde_json::Value::from(hidden).to_string());
            }
        }
        (told != json).then_some(told)
    }

    /// Every whole value replaced.
    fn replace(&self, text: &[u8]) -> Vec<u8> {
        let (mut told, mut at) = (Vec::with_capacity(text.len()), 0);
        while let Some(byte) = text.get(at) {
            match self.0.iter().find(|value| text[at..].starts_with(value)) {
                Some(value) => {
                    told.extend(MASK.as_bytes());
                    at += value.len();
                }
                None => {
                    told.push(*byte);
                    at += 1;
                }
            }
        }
        told
    }

    /// Whether more could make a value of this, or a longer one.
    fn may_begin_with(&self, text: &[u8]) -> bool {
        self.0.iter().any(|value| value.len() > text.len() && value.starts_with(text))
    }
}

/// A value as it is, each of its lines, and each of those as JSON writes it, with and without letters that are not ASCII.
fn spellings(value: &[u8]) -> Vec<Vec<u8>> {
    let mut plain = vec![value.to_vec(), value.trim_ascii().to_vec()];
    plain.extend(value.split(|byte| *byte == b'\n').map(|line| line.trim_ascii().to_vec()));
    let texts = plain.iter().filter_map(|value| std::str::from_utf8(value).ok());
    let escaped: Vec<Vec<u8>> = texts.flat_map(in_json).map(String::into_bytes).collect();
    plain.extend(escaped);
    plain
}

fn in_json(text: &str) -> [String; 2] {
    let quoted = serde_json::Value::from(text).to_string();
    let bare = quoted[1..quoted.len() - 1].to_owned();
    let mut units = [0; 2];
    let mut ascii = String::with_capacity(bare.len());
    for letter in bare.chars() {
        match letter.is_ascii() {
            true => ascii.push(letter),
            false => ascii.extend(letter.encode_utf16(&mut units).iter().map(|unit| format!("\\u{unit:04x}"))),
        }
    }
    [bare, ascii]
}

/// What a document of JSON goes on with: a text, a number or word, or what is between those.
fn next_token(rest: &str) -> Option<&str> {
    let is_word = |c: char| c.is_ascii_alphanumeric() || matches!(c, '+' | '-' | '.');
    let first = rest.chars().next()?;
    let end = match first {
        '"' => {
            let mut escaped = false;
            let close = rest[1..].find(|c| {
                let closes = c == '"' && !escaped;
                escaped = c == '\\' && !escaped;
                closes
            });
            close.map(|close| close + 2)
        }
        first if is_word(first) => rest.find(|c| !is_word(c)),
        _ => rest.find(|c| c == '"' || is_word(c)),
    };
    Some(&rest[..end.unwrap_or(rest.len())])
}

/// Takes values out of a stream, however it is cut into pieces.
#[derive(Debug, Default)]
pub(super) struct Filter {
    secrets: Secrets,
    /// What may be the beginning of a value: not told until it is known that it is none.
    held: Vec<u8>,
}

impl Filter {
    pub(super) fn new(secrets: Secrets) -> Filter {
        Filter { secrets, held: Vec::new() }
    }

    /// Takes a piece, and tells what can be told by now.
    pub(super) fn pass(&mut self, piece: &[u8], told: &mut impl Extend<u8>) {
        let mut text = std::mem::take(&mut self.held);
        text.extend(piece);
        let mut at = 0;
        while at < text.len() {
            let rest = &text[at..];
            // A longer value may go on where a shorter one ends.
            if self.secrets.may_begin_with(rest) {
                self.held = rest.to_vec();
                return;
            }
            match self.secrets.0.iter().find(|value| rest.starts_with(value)) {
                Some(value) => {
                    told.extend(MASK.bytes());
                    at += value.len();
                }
                None => {
                    told.extend([text[at]]);
                    at += 1;
                }
            }
        }
    }

    /// What is left if nothing follows.
    pub(super) fn rest(&self) -> Vec<u8> {
        let hidden = self.secrets.replace(&self.held);
        let part = (0..hidden.len()).find(|from| self.secrets.may_begin_with(&hidden[*from..]));
        match part.filter(|from| hidden.len() - from >= PART_BYTES_MIN) {
            Some(from) => [&hidden[..from], MASK.as_bytes()].concat(),
            None => hidden,
        }
    }

    pub(super) fn holds_nothing(&self) -> bool {
        self.held.is_empty()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn secrets(values: &[&str]) -> Secrets {
        let variables: Vec<(&str, OsString)> = values.iter().map(|value| ("KEY", OsString::from(value))).collect();
        Secrets::of(&variables)
    }

    fn hidden(values: &[&str], text: &str) -> String {
        String::from_utf8(secrets(values).hide(text.as_bytes())).unwrap()
    }

    #[test]
    fn a_value_is_hidden_wherever_it_stands_and_nothing_else_is() {
        for (values, text, expected) in [
            (&["sk-live-1"][..], "key sk-live-1!", "key ***!"),
            (&["sk-live-1"], "sk-live-1sk-live-1", "******"),
            (&["sk-live-1"], "sk-live-2 and sk-live", "sk-live-2 and ***"),
            (&["sk-live-1"], "no key, ask", "no key, ask"),
            (&["short"], "a short word", "a short word"),
            (&["aaaaaaab"], "aaaaaaaaab", "aa***"),
            (&["12345678", "1234567890"], "1234567890 12345678", "*** ***"),
            (&["12345678", "1234567890"], "123456789", "***9"),
            (&["-----BEGIN\nline one\nx\n"], "it was: line one", "it was: ***"),
            (&["a \"quoted\" ü"], r#"{"k":"a \"quoted\" \u00fc"} or a "quoted" ü"#, r#"{"k":"***"} or ***"#),
            (&[], "all of it", "all of it"),
        ] {
            assert_eq!(hidden(values, text), expected, "{values:?}");
        }
    }

    #[test]
    fn a_value_is_hidden_however_the_stream_is_cut() {
        let secrets = secrets(&["sk-live-1234", "sk-live-1234-more", "ve-12345678"]);
        let text = b"one sk-live-1234 two sk-live-1234-more sk-live-12345678 three";
        let whole = secrets.hide(text);
        assert_eq!(whole, b"one *** two *** ***5678 three");
        for first in 0..text.len() {
            for second in first..text.len() {
                let (mut filter, mut told) = (Filter::new(secrets.clone()), Vec::new());
                for piece in [&text[..first], &text[first..second], &text[second..]] {
                    filter.pass(piece, &mut told);
                    assert!(whole.starts_with(&told), "cut at {first} and {second}");
                }
                told.extend(filter.rest());
                assert_eq!(told, whole, "cut at {first} and {second}");
            }
        }
    }

    #[test]
    fn what_a_path_is_told_of_is_not_hidden() {
        let variables = [("HOME", OsString::from("/home/somebody")), ("KEY", OsString::from("/home/secret"))];
        let hidden = Secrets::of(&variables).hide(b"/home/somebody has /home/secret");
        assert_eq!(hidden, b"/home/somebody has ***");
    }

    #[test]
    fn json_without_a_value_is_json_and_as_it_was_otherwise() {
        let secrets = secrets(&["sk-\"live\"-ü", "12345678", "trueish-value"]);
        for (json, expected) in [
            (r#"{"a": "x sk-\"live\"-ü y", "n": 1.50}"#, Some(r#"{"a": "x ***  y", "n": 1.50}"#.replace("  ", " "))),
            (r#"["\u0073k-\u0022live\"-\u00fc"]"#, Some(r#"["***"]"#.to_owned())),
            (r#"{"12345678":1}"#, Some(r#"{"***":1}"#.to_owned())),
            ("[12345678,  -112345678.5e3, 1234567]", Some(r#"["***",  "-1***.5e3", 1234567]"#.to_owned())),
            (r#"{"a": ["\\", "\"", 1.50, true, null, "12 345678"]}"#, None),
            ("null", None),
        ] {
            assert_eq!(secrets.hide_in_json(json), expected, "{json}");
            if let Some(expected) = expected {
                serde_json::from_str::<serde_json::Value>(&expected).unwrap();
            }
        }
    }
}
