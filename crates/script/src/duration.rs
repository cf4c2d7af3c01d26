//! Durations as people write them.

use std::time::Duration;

/// The longest: 1000 years. Longer ones are slips.
const SECONDS_MAX: f64 = 1000.0 * 366.0 * 86_400.0;

/// A number of seconds, which may have a fraction.
pub(crate) fn from_seconds(seconds: f64) -> Option<Duration> {
    if !(0.0..=SECONDS_MAX).contains(&seconds) {
        return None;
    }
    // Whole milliseconds, which is what is recorded.
    Some(Duration::from_millis((seconds * 1000.0).round() as u64))
}

/// A duration as people write it: `"10s"`, `"5 seconds"`, `"1h 30m"`, `"PT5M"`, `"90"`.
pub fn parse(text: &str) -> Option<Duration> {
    let text = text.trim();
    if let Some(rest) = text.strip_prefix(['P', 'p']) {
        return parse_iso(rest);
    }
    if let Ok(seconds) = text.parse::<f64>() {
        return from_seconds(seconds);
    }
    let mut rest = text;
    let mut total = 0.0;
    while !rest.is_empty() {
        let (number, after) = take_number(rest)?;
        let after = after.trim_start();
        let length = after.find(|letter: char| !letter.is_ascii_alphabetic()).unwrap_or(after.len());
        total += number * unit(&after[..length])?;
        rest = after[length..].trim_start_matches([' ', ',']);
    }
    if text.is_empty() { None } else { from_seconds(total) }
}

/// A number at the beginning of the text, and what follows it.
fn take_number(text: &str) -> Option<(f64, &str)> {
    let length = text.find(|letter: char| !letter.is_ascii_digit() && letter != '.').unwrap_or(text.len());
    Some((text[..length].parse().ok()?, &text[length..]))
}

/// How many seconds a unit has.
fn unit(name: &str) -> Option<f64> {
    Some(match name.to_ascii_lowercase().as_str() {
        "ms" | "millisecond" | "milliseconds" => 0.001,
        "s" | "sec" | "secs" | "second" | "seconds" => 1.0,
        "m" | "min" | "mins" | "minute" | "minutes" => 60.0,
        "h" | "hr" | "hrs" | "hour" | "hours" => 3_600.0,
        "d" | "day" | "days" => 86_400.0,
        "w" | "week" | "weeks" => 604_800.0,
        _ => return None,
    })
}

/// ISO 8601 after its `P`: weeks, days, and after a `T` hours, minutes, seconds. Months and years have no fixed length.
fn parse_iso(text: &str) -> Option<Duration> {
    let (date, time) = match text.find(['T', 't']) {
        Some(at) => (&text[..at], Some(&text[at + 1..])),
        None => (text, None),
    };
    if date.is_empty() && time.is_none_or(str::is_empty) {
        return None;
    }
    let date = iso_part(date, &[('W', 604_800.0), ('D', 86_400.0)])?;
    let time = iso_part(time.unwrap_or_default(), &[('H', 3_600.0), ('M', 60.0), ('S', 1.0)])?;
    from_seconds(date + time)
}

fn iso_part(text: &str, units: &[(char, f64)]) -> Option<f64> {
    let (mut rest, mut total, mut left) = (text, 0.0, units);
    while !rest.is_empty() {
        let (number, after) = take_number(rest)?;
        let letter = after.chars().next()?.to_ascii_uppercase();
        let place = left.iter().position(|(name, _)| *name == letter)?;
        total += number * left[place].1;
        left = &left[place + 1..];
        rest = &after[1..];
    }
    Some(total)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn durations_are_read_in_all_their_forms() {
        let cases = [
            ("10s", 10_000),
            ("5 seconds", 5_000),
            ("1 hour", 3_600_000),
            ("PT5M", 300_000),
            ("P1DT12H", 129_600_000),
            ("1h 30m", 5_400_000),
            ("1h30m", 5_400_000),
            ("250ms", 250),
            ("1.5s", 1_500),
            ("90", 90_000),
            ("2 weeks", 1_209_600_000),
            ("1 day, 2 hours", 93_600_000),
        ];
        for (text, millis) in cases {
            assert_eq!(parse(text), Some(Duration::from_millis(millis)), "{text}");
        }
        for text in ["", "soon", "10x", "P", "PT", "P1Y", "-5s", "5 5", "PT5S3M", "1e99"] {
            assert_eq!(parse(text), None, "{text}");
        }
        assert_eq!(from_seconds(f64::NAN), None);
        assert_eq!(from_seconds(-1.0), None);
        assert_eq!(from_seconds(0.0015), Some(Duration::from_millis(2)));
    }
}
