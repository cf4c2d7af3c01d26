//! Instants as texts.

use outlast::Timestamp;

/// As RFC 3339 in UTC, with milliseconds: `2026-11-17T21:02:37.120Z`.
pub(crate) fn text(at: Timestamp) -> String {
    match jiff::Timestamp::from_millisecond(at.as_millis()) {
        Ok(at) => format!("{at:.3}"),
        // Beyond the calendar: somebody asked to sleep for ever.
        Err(_) => "9999-12-31T23:59:59.999Z".to_owned(),
    }
}

/// An instant that was written as RFC 3339, in any offset.
pub(crate) fn parse(text: &str) -> Option<Timestamp> {
    let at: jiff::Timestamp = text.parse().ok()?;
    Some(Timestamp::from_millis(at.as_millisecond()))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn an_instant_is_read_as_it_was_written() {
        let at = Timestamp::from_millis(1_700_000_000_120);
        assert_eq!(text(at), "2023-11-14T22:13:20.120Z");
        assert_eq!(parse(&text(at)), Some(at));
        assert_eq!(parse("2023-11-14T23:13:20.12+01:00"), Some(at));
        assert_eq!(parse("yesterday"), None);
        assert_eq!(text(Timestamp::from_millis(i64::MAX)), "9999-12-31T23:59:59.999Z");
    }
}
