//! What literals mean.

/// The number a literal stands for; none if it is not one.
pub(super) fn number(text: &str) -> Option<f64> {
    if text.ends_with('_') || text.contains("__") || text.contains("_.") || text.contains("._") {
        return None;
    }
    let plain: String = text.chars().filter(|letter| *letter != '_').collect();
    let radix = |digits: &str, radix| -> Option<f64> {
        // Exact up to 2^53, rounded once beyond, as far as 128 bits go.
        u128::from_str_radix(digits, radix).ok().map(|value| value as f64)
    };
    match plain.get(..2) {
        Some("0x" | "0X") => radix(&plain[2..], 16),
        Some("0b" | "0B") => radix(&plain[2..], 2),
        Some("0o" | "0O") => radix(&plain[2..], 8),
        // An old octal literal: JavaScript refuses it too, in modules.
        Some(start) if start.starts_with('0') && start.as_bytes()[1].is_ascii_digit() => None,
        _ => plain.parse().ok(),
    }
}

/// Where an escape is wrong: its offset in the text, and what is wrong with it.
#[derive(Debug, PartialEq, Eq)]
pub(super) struct BadEscape {
    pub(super) at: usize,
    pub(super) length: usize,
    pub(super) message: &'static str,
}

/// The characters a literal's text stands for, without its quotes.
pub(super) fn unescape(text: &str) -> Result<String, BadEscape> {
    let mut out = String::with_capacity(text.len());
    let mut rest = text;
    while let Some(at) = rest.find('\\') {
        out.push_str(&rest[..at]);
        let offset = text.len() - rest.len() + at;
        let (letter, length) = escape(&rest[at..]).map_err(|(length, message)| BadEscape {
            at: offset,
            length: length.min(rest.len() - at),
            message,
        })?;
        out.extend(letter);
        rest = &rest[at + length..];
    }
    out.push_str(rest);
    // A template keeps one kind of line end, whatever the file has.
    Ok(if out.contains('\r') && text.contains('\r') { out.replace("\r\n", "\n") } else { out })
}

type Escaped = Result<(Option<char>, usize), (usize, &'static str)>;

/// The character an escape at the beginning of the text stands for, and how long the escape is.
fn escape(text: &str) -> Escaped {
    let Some(letter) = text[1..].chars().next() else { return Err((1, "nothing follows the backslash")) };
    let simple = |value| Ok((Some(value), 1 + letter.len_utf8()));
    match letter {
        'n' => simple('\n'),
        't' => simple('\t'),
        'r' => simple('\r'),
        'b' => simple('\u{8}'),
        'f' => simple('\u{c}'),
        'v' => simple('\u{b}'),
        '0' if !text[2..].starts_with(|next: char| next.is_ascii_digit()) => simple('\0'),
        '0'..='9' => Err((2, "numbers are not escapes: write \\u{…}")),
        '\n' => Ok((None, 2)),
        '\r' => Ok((None, if text[2..].starts_with('\n') { 3 } else { 2 })),
        'x' => code(text, 2, 2).and_then(|value| as_char(value, 4)),
        'u' if text[2..].starts_with('{') => braced(text),
        'u' => unit(text),
        other => simple(other),
    }
}

fn code(text: &str, from: usize, digits: usize) -> Result<u32, (usize, &'static str)> {
    text.get(from..from + digits)
        .filter(|hex| hex.bytes().all(|byte| byte.is_ascii_hexdigit()))
        .and_then(|hex| u32::from_str_radix(hex, 16).ok())
        .ok_or((from, "this escape needs hexadecimal digits after it"))
}

fn as_char(value: u32, length: usize) -> Escaped {
    match char::from_u32(value) {
        Some(letter) => Ok((Some(letter), length)),
        None => Err((length, "this is not a character")),
    }
}

fn braced(text: &str) -> Escaped {
    let Some(end) = text.find('}').filter(|end| *end <= 12) else { return Err((3, "this escape has no closing }")) };
    code(text, 3, end - 3).and_then(|value| as_char(value, end + 1))
}

/// `\uXXXX`, or two of them that are one character.
fn unit(text: &str) -> Escaped {
    const LENGTH: usize = 6;
    let first = code(text, 2, 4)?;
    if !(0xD800..0xE000).contains(&first) {
        return as_char(first, LENGTH);
    }
    let half = (LENGTH, "this is half a character: strings hold whole ones");
    if first >= 0xDC00 || text.get(LENGTH..LENGTH + 2) != Some("\\u") {
        return Err(half);
    }
    let second = code(&text[LENGTH..], 2, 4).map_err(|_| half)?;
    if !(0xDC00..0xE000).contains(&second) {
        return Err(half);
    }
    as_char(0x10000 + ((first - 0xD800) << 10) + (second - 0xDC00), 2 * LENGTH)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn numbers_are_read_in_all_their_forms() {
        let cases = [
            ("0", 0.0),
            ("12.5", 12.5),
            ("1e3", 1000.0),
            ("1_000_000", 1e6),
            ("0xff", 255.0),
            ("0b101", 5.0),
            ("0o17", 15.0),
            (".5", 0.5),
            ("5.", 5.0),
        ];
        for (text, value) in cases {
            assert_eq!(number(text), Some(value), "{text}");
        }
        for text in ["1__0", "1_", "012", "0x", "1_.5"] {
            assert_eq!(number(text), None, "{text}");
        }
    }

    #[test]
    fn escapes_stand_for_characters() {
        assert_eq!(unescape(r"a\n\t\'\x41\u0042\u{1F600}\uD83D\uDE00\q").as_deref(), Ok("a\n\t'AB😀😀q"));
        assert_eq!(unescape(r"ab\u12").unwrap_err().at, 2);
        assert_eq!(unescape(r"\uD83D").unwrap_err().message, "this is half a character: strings hold whole ones");
    }
}
