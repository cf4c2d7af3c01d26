//! Instants for people.

use std::fmt;

use outlast_core::time::Timestamp;

/// An instant for people: the date and time of day in UTC.
pub(crate) struct Utc(pub(crate) Timestamp);

impl fmt::Display for Utc {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        const DAY_MS: i64 = 86_400_000;
        let (days, rest) = (self.0.as_millis().div_euclid(DAY_MS), self.0.as_millis().rem_euclid(DAY_MS));
        let (year, month, day) = date(days);
        let (hour, minute) = (rest / 3_600_000, rest / 60_000 % 60);
        write!(f, "{year:04}-{month:02}-{day:02} {hour:02}:{minute:02}:{:02}", rest / 1_000 % 60)?;
        match rest % 1_000 {
            0 => Ok(()),
            millis => write!(f, ".{millis:03}"),
        }?;
        f.write_str(" UTC")
    }
}

/// Year, month and day of a number of days after 1970-01-01. A year begins in March here, so that the leap day is its last.
fn date(days: i64) -> (i64, i64, i64) {
    const ERA_DAYS: i64 = 146_097;
    let days = days + 719_468;
    let (era, of_era) = (days.div_euclid(ERA_DAYS), days.rem_euclid(ERA_DAYS));
    let year_of_era = (of_era - of_era / 1_460 + of_era / 36_524 - of_era / 146_096) / 365;
    let of_year = of_era - (365 * year_of_era + year_of_era / 4 - year_of_era / 100);
    let from_march = (5 * of_year + 2) / 153;
    let day = of_year - (153 * from_march + 2) / 5 + 1;
    let month = if from_march < 10 { from_march + 3 } else { from_march - 9 };
    (era * 400 + year_of_era + i64::from(month <= 2), month, day)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn instants_are_told_as_people_write_them() {
        let told = |millis| Utc(Timestamp::from_millis(millis)).to_string();
        assert_eq!(told(0), "1970-01-01 00:00:00 UTC");
        assert_eq!(told(-1), "1969-12-31 23:59:59.999 UTC");
        assert_eq!(told(951_782_400_000), "2000-02-29 00:00:00 UTC");
        assert_eq!(told(1_700_000_000_000), "2023-11-14 22:13:20 UTC");
        assert_eq!(told(4_107_542_399_999), "2100-02-28 23:59:59.999 UTC");
        assert_eq!(told(4_107_542_400_000), "2100-03-01 00:00:00 UTC", "no leap year");
    }
}
