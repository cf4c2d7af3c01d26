//! Times, and commands to copy, as people read them.

use std::time::Duration;

use outlast::Timestamp;

/// A length of time, as exact as it matters: `0.4 s`, `12 s`, `3 min 5 s`, `2 h 10 min`, `3 d 4 h`.
pub(crate) fn length(time: Duration) -> String {
    let seconds = time.as_secs();
    let (minutes, hours, days) = (seconds / 60, seconds / 3_600, seconds / 86_400);
    match seconds {
        0..=9 => format!("{:.1} s", time.as_secs_f64()),
        10..=59 => format!("{seconds} s"),
        60..=3_599 => format!("{minutes} min {} s", seconds % 60),
        3_600..=86_399 => format!("{hours} h {} min", minutes % 60),
        _ => format!("{days} d {} h", hours % 24),
    }
}

/// What time it is. Only for people: nothing that happens depends on it.
pub(crate) fn now() -> Timestamp {
    Timestamp::from_millis(jiff::Timestamp::now().as_millisecond())
}

/// An instant as everybody writes it: `2026-11-17T20:58:09.120Z`.
pub(crate) fn instant(at: Timestamp) -> String {
    match jiff::Timestamp::from_millisecond(at.as_millis()) {
        Ok(at) => format!("{at:.3}"),
        Err(_) => at.to_string(),
    }
}

/// A word for a shell, quoted if it must be.
pub(crate) fn shell(word: &str) -> String {
    let plain = |letter: char| letter.is_ascii_alphanumeric() || "-_./:=@%+,".contains(letter);
    if !word.is_empty() && word.chars().all(plain) {
        word.to_owned()
    } else {
        format!("'{}'", word.replace('\'', r"'\''"))
    }
}

/// The beginning of a text, on one line.
pub(crate) fn short(text: &str, letters_max: usize) -> String {
    let line = text.split_whitespace().collect::<Vec<_>>().join(" ");
    if line.chars().count() <= letters_max {
        return line;
    }
    line.chars().take(letters_max.saturating_sub(1)).chain(['…']).collect()
}

/// Reads a length of time: `500ms`, `30s`, `5m`, `2h`, `1d`.
pub(crate) fn parse_length(text: &str) -> Result<Duration, String> {
    outlast_script::parse_duration(text).ok_or_else(|| "a length of time is 500ms, 30s, 5m, 2h or 1d".to_owned())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn lengths_are_as_exact_as_it_matters() {
        let cases = [
            (400, "0.4 s"),
            (12_300, "12 s"),
            (185_000, "3 min 5 s"),
            (7_800_000, "2 h 10 min"),
            (273_600_000, "3 d 4 h"),
        ];
        for (millis, expected) in cases {
            assert_eq!(length(Duration::from_millis(millis)), expected);
        }
    }

    #[test]
    fn a_shell_reads_one_word() {
        assert_eq!(shell("examples/a.wf"), "examples/a.wf");
        assert_eq!(shell("my file's.wf"), r"'my file'\''s.wf'");
        assert_eq!(shell(""), "''");
    }

    #[test]
    fn a_long_text_is_cut() {
        assert_eq!(short("a\n b", 10), "a b");
        assert_eq!(short("abcdef", 4), "abc…");
    }
}
