//! `Math`. The results are the same on every machine: nothing here is left to the system's library.

use super::{Call, Run, Spec};
use crate::machine::{Done, power};
use crate::value::Value;

pub(super) fn table() -> Vec<Spec> {
    fn one(signature: &'static str, run: fn(&mut Call<'_>) -> Done) -> Spec {
        Spec(signature, 1, Some(1), Run::Rust(run))
    }
    vec![
        one("Math.abs(x)", |call| unary(call, f64::abs)),
        one("Math.ceil(x)", |call| unary(call, f64::ceil)),
        one("Math.floor(x)", |call| unary(call, f64::floor)),
        one("Math.round(x)", |call| unary(call, round)),
        one("Math.trunc(x)", |call| unary(call, f64::trunc)),
        one("Math.sign(x)", |call| unary(call, sign)),
        one("Math.sqrt(x)", |call| unary(call, f64::sqrt)),
        one("Math.cbrt(x)", |call| unary(call, libm::cbrt)),
        one("Math.exp(x)", |call| unary(call, exp)),
        one("Math.expm1(x)", |call| unary(call, libm::expm1)),
        one("Math.log(x)", |call| unary(call, libm::log)),
        one("Math.log2(x)", |call| unary(call, libm::log2)),
        one("Math.log10(x)", |call| unary(call, libm::log10)),
        one("Math.log1p(x)", |call| unary(call, libm::log1p)),
        one("Math.sin(x)", |call| unary(call, libm::sin)),
        one("Math.cos(x)", |call| unary(call, libm::cos)),
        one("Math.tan(x)", |call| unary(call, libm::tan)),
        one("Math.asin(x)", |call| unary(call, libm::asin)),
        one("Math.acos(x)", |call| unary(call, libm::acos)),
        one("Math.atan(x)", |call| unary(call, libm::atan)),
        Spec("Math.atan2(y, x)", 2, Some(2), Run::Rust(|call| binary(call, libm::atan2))),
        Spec("Math.pow(base, exponent)", 2, Some(2), Run::Rust(|call| binary(call, power))),
        Spec("Math.hypot(...numbers)", 0, None, Run::Rust(hypot)),
        Spec("Math.max(...numbers)", 0, None, Run::Rust(max)),
        Spec("Math.min(...numbers)", 0, None, Run::Rust(min)),
        Spec("Math.random()", 0, Some(0), Run::Rust(random)),
    ]
}

fn unary(call: &mut Call<'_>, run: fn(f64) -> f64) -> Done {
    Ok(Value::Number(run(call.number(0, "x")?)))
}

fn binary(call: &mut Call<'_>, run: fn(f64, f64) -> f64) -> Done {
    let (left, right) = (call.number(0, "the first argument")?, call.number(1, "the second argument")?);
    Ok(Value::Number(run(left, right)))
}

/// e itself is exact, as in JavaScript's engines.
fn exp(x: f64) -> f64 {
    if x == 1.0 { std::f64::consts::E } else { libm::exp(x) }
}

/// Halves go up, also below zero; what becomes nothing keeps its sign.
fn round(x: f64) -> f64 {
    let down = x.floor();
    let rounded = if x - down >= 0.5 { down + 1.0 } else { down };
    if rounded == 0.0 { rounded.copysign(x) } else { rounded }
}

fn sign(x: f64) -> f64 {
    if x == 0.0 || x.is_nan() { x } else { x.signum() }
}

fn numbers(call: &mut Call<'_>) -> Done<Vec<f64>> {
    (0..call.count).map(|place| call.number(place, "each argument")).collect()
}

/// Scaled, so that squares are neither too large nor too small; and with a sum that loses nothing.
fn hypot(call: &mut Call<'_>) -> Done {
    let numbers = numbers(call)?;
    let largest = numbers.iter().fold(0.0, |largest: f64, number| largest.max(number.abs()));
    if largest.is_infinite() {
        return Ok(Value::Number(f64::INFINITY));
    }
    if numbers.iter().any(|number| number.is_nan()) {
        return Ok(Value::Number(f64::NAN));
    }
    if largest == 0.0 {
        return Ok(Value::Number(0.0));
    }
    let (mut sum, mut lost) = (0.0, 0.0);
    for number in numbers {
        let part = (number / largest) * (number / largest) - lost;
        let next = sum + part;
        lost = (next - sum) - part;
        sum = next;
    }
    Ok(Value::Number(sum.sqrt() * largest))
}

fn max(call: &mut Call<'_>) -> Done {
    let larger = |a: f64, b: f64| {
        if a.is_nan() || b.is_nan() {
            f64::NAN
        } else if a > b || a == b && b.is_sign_negative() {
            a
        } else {
            b
        }
    };
    Ok(Value::Number(numbers(call)?.into_iter().fold(f64::NEG_INFINITY, larger)))
}

fn min(call: &mut Call<'_>) -> Done {
    let smaller = |a: f64, b: f64| {
        if a.is_nan() || b.is_nan() {
            f64::NAN
        } else if a < b || a == b && a.is_sign_negative() {
            a
        } else {
            b
        }
    };
    Ok(Value::Number(numbers(call)?.into_iter().fold(f64::INFINITY, smaller)))
}

/// Recorded, so that it is the same when the run is rebuilt.
fn random(call: &mut Call<'_>) -> Done {
    let key = call.positional(outlast_core::operation::OperationKind::Random, None)?;
    let location = call.location();
    let bits = call.ops.record_random(key, Some(location));
    // 53 bits, as many as a number between 0 and 1 has.
    Ok(Value::Number((bits >> 11) as f64 / (1_u64 << 53) as f64))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn halves_are_rounded_up() {
        let cases = [(0.5, 1.0), (-0.5, 0.0), (2.5, 3.0), (-2.5, -2.0), (0.499_999_999_999_999_94, 0.0), (1.4, 1.0)];
        for (x, rounded) in cases {
            assert_eq!(round(x), rounded, "{x}");
        }
    }
}
