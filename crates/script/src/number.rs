//! Numbers as text, as JavaScript writes them.

/// The shortest text that reads back as the same number: `1`, `0.1`, `1e+21`, `NaN`.
pub(crate) fn to_text(value: f64) -> String {
    if value.is_nan() {
        return "NaN".to_owned();
    }
    if value.is_infinite() {
        return if value > 0.0 { "Infinity" } else { "-Infinity" }.to_owned();
    }
    if value == 0.0 {
        return "0".to_owned();
    }
    if value.fract() == 0.0 && value.abs() < 1e15 {
        return (value as i64).to_string();
    }
    // Rust writes the shortest digits too, only in another form.
    let scientific = format!("{:e}", value.abs());
    let Some((mantissa, exponent)) = scientific.split_once('e') else { return scientific };
    let digits: String = mantissa.chars().filter(char::is_ascii_digit).collect();
    let point = exponent.parse::<i32>().unwrap_or_default() + 1;
    let sign = if value < 0.0 { "-" } else { "" };
    format!("{sign}{}", place_point(&digits, point))
}

/// Puts the point after so many digits.
fn place_point(digits: &str, point: i32) -> String {
    let count = i32::try_from(digits.len()).unwrap_or(i32::MAX);
    if (1..=21).contains(&point) {
        if count <= point {
            return format!("{digits}{}", "0".repeat(usize::try_from(point - count).unwrap_or_default()));
        }
        let (whole, fraction) = digits.split_at(usize::try_from(point).unwrap_or_default());
        return format!("{whole}.{fraction}");
    }
    if (-5..=0).contains(&point) {
        return format!("0.{}{digits}", "0".repeat(usize::try_from(-point).unwrap_or_default()));
    }
    let exponent = point - 1;
    let sign = if exponent < 0 { '-' } else { '+' };
    let (first, rest) = digits.split_at(1);
    let dot = if rest.is_empty() { "" } else { "." };
    format!("{first}{dot}{rest}e{sign}{}", exponent.abs())
}

/// With so many digits after the point; halves go away from zero, as in `toFixed`.
pub(crate) fn to_fixed(value: f64, digits: usize) -> String {
    if !value.is_finite() || value.abs() >= 1e21 {
        return to_text(value);
    }
    // Every digit a double can have: rounding looks at the exact value.
    const EXACT_DIGITS: usize = 1100;
    let exact = format!("{:.EXACT_DIGITS$}", value.abs());
    let cut = exact.len() - EXACT_DIGITS + digits;
    let (kept, rest) = exact.split_at(cut);
    let mut kept = kept.trim_end_matches('.').to_owned();
    if rest.trim_start_matches('.').as_bytes().first().is_some_and(|digit| *digit >= b'5') {
        kept = increment(&kept);
    }
    // A small negative number keeps its sign, as in JavaScript: (-0.001).toFixed(2) is -0.00.
    if value < 0.0 { format!("-{kept}") } else { kept }
}

/// One more in the last place.
fn increment(text: &str) -> String {
    let mut digits: Vec<u8> = text.bytes().collect();
    for digit in digits.iter_mut().rev() {
        match digit {
            b'.' => {}
            b'9' => *digit = b'0',
            _ => {
                *digit += 1;
                return String::from_utf8_lossy(&digits).into_owned();
            }
        }
    }
    format!("1{}", String::from_utf8_lossy(&digits))
}

/// The number a text stands for, as `Number(text)` reads it; NaN if it is none.
pub(crate) fn from_text(text: &str) -> f64 {
    let text = text.trim();
    if text.is_empty() {
        return 0.0;
    }
    let radix = |digits: &str, radix| {
        let all = !digits.is_empty() && digits.chars().all(|digit| digit.is_digit(radix));
        if !all {
            return f64::NAN;
        }
        digits.chars().fold(0.0, |sum, digit| sum * f64::from(radix) + f64::from(digit.to_digit(radix).unwrap_or(0)))
    };
    match text.get(..2) {
        Some("0x" | "0X") => return radix(&text[2..], 16),
        Some("0b" | "0B") => return radix(&text[2..], 2),
        Some("0o" | "0O") => return radix(&text[2..], 8),
        _ => {}
    }
    match text {
        "Infinity" | "+Infinity" => f64::INFINITY,
        "-Infinity" => f64::NEG_INFINITY,
        // Rust reads words that JavaScript does not.
        _ if text.bytes().any(|byte| byte.is_ascii_alphabetic() && !matches!(byte, b'e' | b'E')) => f64::NAN,
        _ => text.parse().unwrap_or(f64::NAN),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn numbers_are_written_as_in_javascript() {
        let cases = [
            (0.0, "0"),
            (-0.0, "0"),
            (1.0, "1"),
            (-1.5, "-1.5"),
            (0.1 + 0.2, "0.30000000000000004"),
            (1e21, "1e+21"),
            (1e20, "100000000000000000000"),
            (123_456_789_012_345_680_000.0, "123456789012345680000"),
            (1e-6, "0.000001"),
            (1e-7, "1e-7"),
            (1.5e-9, "1.5e-9"),
            (9_007_199_254_740_993.0, "9007199254740992"),
            (f64::MAX, "1.7976931348623157e+308"),
            (5e-324, "5e-324"),
        ];
        for (value, text) in cases {
            assert_eq!(to_text(value), text);
        }
    }

    #[test]
    fn fixed_digits_round_the_exact_value_and_halves_away_from_zero() {
        let cases = [
            (1.005, 2, "1.00"),
            (2.5, 0, "3"),
            (-2.5, 0, "-3"),
            (0.5, 0, "1"),
            (1.45, 1, "1.4"),
            (8.345, 2, "8.35"),
            (9.999, 2, "10.00"),
            (-0.001, 2, "-0.00"),
            (0.0, 2, "0.00"),
            (1e21, 2, "1e+21"),
        ];
        for (value, digits, text) in cases {
            assert_eq!(to_fixed(value, digits), text, "{value} {digits}");
        }
    }

    #[test]
    fn texts_are_read_as_in_javascript() {
        assert_eq!(from_text(" 12 "), 12.0);
        assert_eq!(from_text(""), 0.0);
        assert_eq!(from_text("0x1f"), 31.0);
        assert_eq!(from_text("1e3"), 1000.0);
        assert!(from_text("12px").is_nan());
        assert!(from_text("inf").is_nan());
        assert_eq!(from_text("-Infinity"), f64::NEG_INFINITY);
    }
}
