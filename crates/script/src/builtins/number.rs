//! Numbers.

use super::{Call, Run, Spec};
use crate::machine::Done;
use crate::value::Value;

pub(super) fn table() -> Vec<Spec> {
    vec![
        Spec("number.toFixed(digits)", 0, Some(1), Run::Rust(to_fixed)),
        Spec("number.toString(radix)", 0, Some(1), Run::Rust(to_string)),
        Spec("number.valueOf()", 0, Some(0), Run::Rust(|call| Ok(call.arg(0)))),
        Spec("boolean.toString()", 0, Some(0), Run::Rust(to_string)),
        Spec(
            "Number.isInteger(value)",
            1,
            Some(1),
            Run::Rust(|call| test(call, |x| x.is_finite() && x.fract() == 0.0)),
        ),
        Spec("Number.isSafeInteger(value)", 1, Some(1), Run::Rust(|call| test(call, is_safe))),
        Spec("Number.isFinite(value)", 1, Some(1), Run::Rust(|call| test(call, f64::is_finite))),
        Spec("Number.isNaN(value)", 1, Some(1), Run::Rust(|call| test(call, f64::is_nan))),
        Spec("Number.parseInt(text, radix)", 1, Some(2), Run::Rust(parse_int)),
        Spec("Number.parseFloat(text)", 1, Some(1), Run::Rust(parse_float)),
        Spec("parseInt(text, radix)", 1, Some(2), Run::Rust(parse_int)),
        Spec("parseFloat(text)", 1, Some(1), Run::Rust(parse_float)),
        Spec("isNaN(number)", 1, Some(1), Run::Rust(|call| global_test(call, f64::is_nan))),
        Spec("isFinite(number)", 1, Some(1), Run::Rust(|call| global_test(call, f64::is_finite))),
    ]
}

fn is_safe(x: f64) -> bool {
    x.is_finite() && x.fract() == 0.0 && x.abs() <= 9_007_199_254_740_991.0
}

fn test(call: &mut Call<'_>, test: fn(f64) -> bool) -> Done {
    Ok(Value::Bool(matches!(call.arg(0), Value::Number(number) if test(number))))
}

fn global_test(call: &mut Call<'_>, test: fn(f64) -> bool) -> Done {
    Ok(Value::Bool(test(call.number(0, "the argument")?)))
}

fn receiver(call: &Call<'_>) -> f64 {
    match call.arg(0) {
        Value::Number(number) => number,
        _ => f64::NAN,
    }
}

fn to_fixed(call: &mut Call<'_>) -> Done {
    let digits = call.integer(1, "the number of digits", 0.0)?;
    if !(0.0..=100.0).contains(&digits) {
        return Err(call.range_error("digits must be between 0 and 100"));
    }
    let text = crate::number::to_fixed(receiver(call), digits as usize);
    call.new_text(text)
}

fn to_string(call: &mut Call<'_>) -> Done {
    let radix = call.integer(1, "the radix", 10.0)?;
    if !(2.0..=36.0).contains(&radix) {
        return Err(call.range_error("the radix must be between 2 and 36"));
    }
    let value = call.arg(0);
    let text = match value {
        Value::Number(number) if radix != 10.0 => match in_radix(number, radix as u32) {
            Some(text) => text,
            None => return Err(call.range_error("only whole numbers up to 2^53 can be written in another radix")),
        },
        value => call.machine.shown(value),
    };
    call.new_text(text)
}

fn in_radix(number: f64, radix: u32) -> Option<String> {
    if !is_safe(number) {
        return None;
    }
    let mut rest = number.abs() as u64;
    let mut digits = Vec::new();
    loop {
        digits.push(char::from_digit((rest % u64::from(radix)) as u32, radix)?);
        rest /= u64::from(radix);
        if rest == 0 {
            break;
        }
    }
    if number < 0.0 {
        digits.push('-');
    }
    Some(digits.into_iter().rev().collect())
}

/// The text an argument stands for: numbers are written first, as in JavaScript.
fn source(call: &mut Call<'_>) -> String {
    let value = call.arg(0);
    call.machine.shown(value)
}

fn parse_int(call: &mut Call<'_>) -> Done {
    let text = source(call);
    let radix = call.integer(1, "the radix", 0.0)?;
    let text = text.trim_start();
    let (sign, text) = match text.strip_prefix('-') {
        Some(rest) => (-1.0, rest),
        None => (1.0, text.strip_prefix('+').unwrap_or(text)),
    };
    let hex = text.strip_prefix("0x").or_else(|| text.strip_prefix("0X"));
    let (radix, text) = match (radix, hex) {
        (0.0 | 16.0, Some(rest)) => (16.0, rest),
        (0.0, None) => (10.0, text),
        (radix, _) => (radix, text),
    };
    if !(2.0..=36.0).contains(&radix) {
        return Ok(Value::Number(f64::NAN));
    }
    let digits: String = text.chars().take_while(|digit| digit.is_digit(radix as u32)).collect();
    if digits.is_empty() {
        return Ok(Value::Number(f64::NAN));
    }
    let value = if radix == 10.0 {
        digits.parse().unwrap_or(f64::NAN)
    } else {
        digits.chars().fold(0.0, |sum, digit| sum * radix + f64::from(digit.to_digit(radix as u32).unwrap_or(0)))
    };
    Ok(Value::Number(sign * value))
}

fn parse_float(call: &mut Call<'_>) -> Done {
    let text = source(call);
    Ok(Value::Number(float_prefix(text.trim_start())))
}

/// The longest beginning of the text that is a number.
fn float_prefix(text: &str) -> f64 {
    let unsigned = text.strip_prefix(['+', '-']).unwrap_or(text);
    if unsigned.starts_with("Infinity") {
        return if text.starts_with('-') { f64::NEG_INFINITY } else { f64::INFINITY };
    }
    let digits = |text: &str| text.bytes().take_while(u8::is_ascii_digit).count();
    let whole = digits(unsigned);
    let mut length = whole;
    let mut fraction = 0;
    if unsigned[length..].starts_with('.') {
        fraction = digits(&unsigned[length + 1..]);
        length += 1 + fraction;
    }
    if whole + fraction == 0 {
        return f64::NAN;
    }
    if unsigned[length..].starts_with(['e', 'E']) {
        let exponent = &unsigned[length + 1..];
        let sign = usize::from(exponent.starts_with(['+', '-']));
        let count = digits(&exponent[sign..]);
        if count > 0 {
            length += 1 + sign + count;
        }
    }
    let signs = text.len() - unsigned.len();
    text[..signs + length].parse().unwrap_or(f64::NAN)
}
