//! Lengths of time as people write them: `500ms`, `30s`, `5m`, `2h`, `1d`, or a number of seconds.

use std::time::Duration;

use serde::{Deserialize, Deserializer};

/// The longest one, in seconds: a hundred years.
const SECONDS_MAX: f64 = 100.0 * 365.0 * 86_400.0;

/// What a length of time looks like.
pub(crate) const FORM: &str =
    "a length of time is `\"500ms\"`, `\"30s\"`, `\"5m\"`, `\"2h\"`, `\"1d\"` or a number of seconds";

/// Reads a length of time; none if it is not one, or is not more than nothing.
pub(crate) fn parse(text: &str) -> Option<Duration> {
    let text = text.trim();
    let unit = text.find(|letter: char| letter.is_ascii_alphabetic()).unwrap_or(text.len());
    let (number, unit) = text.split_at(unit);
    let each = match unit {
        "ms" => 0.001,
        "s" | "" => 1.0,
        "m" => 60.0,
        "h" => 3_600.0,
        "d" => 86_400.0,
        _ => return None,
    };
    from_seconds(number.trim().parse::<f64>().ok()? * each)
}

/// So many seconds; none if that is nothing, or too long.
pub(crate) fn from_seconds(seconds: f64) -> Option<Duration> {
    (seconds > 0.0 && seconds <= SECONDS_MAX).then(|| Duration::from_secs_f64(seconds)).filter(|time| !time.is_zero())
}

/// A length of time in JSON.
pub(crate) fn deserialize<'de, D: Deserializer<'de>>(deserializer: D) -> Result<Option<Duration>, D::Error> {
    #[derive(Deserialize)]
    #[serde(untagged)]
    enum Written {
        Seconds(f64),
        Text(String),
    }
    let Some(written) = Option::<Written>::deserialize(deserializer)? else { return Ok(None) };
    let read = match &written {
        Written::Seconds(seconds) => from_seconds(*seconds),
        Written::Text(text) => parse(text),
    };
    read.map(Some).ok_or_else(|| serde::de::Error::custom(FORM))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn lengths_of_time_are_read_as_people_write_them() {
        let cases = [("500ms", 500), ("30s", 30_000), ("1.5 m", 90_000), ("2h", 7_200_000), ("7", 7_000)];
        for (text, millis) in cases {
            assert_eq!(parse(text), Some(Duration::from_millis(millis)), "{text}");
        }
    }

    #[test]
    fn what_is_no_length_of_time_is_none() {
        for text in ["", "s", "0", "0s", "-1s", "1y", "1 fortnight", "NaN", "inf", "1e300d", "1s2"] {
            assert_eq!(parse(text), None, "{text}");
        }
    }
}
