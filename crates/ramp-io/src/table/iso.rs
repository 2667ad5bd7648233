//! Dates, times and decimals from their storage to text.

/// Parts of a second that times are counted in.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Unit {
    Second,
    Millisecond,
    Microsecond,
    Nanosecond,
}

impl Unit {
    fn per_second(self) -> i64 {
        match self {
            Unit::Second => 1,
            Unit::Millisecond => 1_000,
            Unit::Microsecond => 1_000_000,
            Unit::Nanosecond => 1_000_000_000,
        }
    }
}

/// A day counted from 1970-01-01, as `2024-02-29`.
pub(super) fn date(days: i64) -> String {
    // Years begin in March, so that the leap day is the last; eras of 400 years are all alike.
    let shifted = i128::from(days) + 719_468;
    let (era, day) = (shifted.div_euclid(146_097), shifted.rem_euclid(146_097));
    let year = (day - day / 1_460 + day / 36_524 - day / 146_096) / 365;
    let day = day - (365 * year + year / 4 - year / 100);
    let month = (5 * day + 2) / 153;
    let day = day - (153 * month + 2) / 5 + 1;
    let month = if month < 10 { month + 3 } else { month - 9 };
    let year = year + era * 400 + i128::from(month <= 2);
    let sign = if year < 0 { "-" } else { "" };
    format!("{sign}{:04}-{month:02}-{day:02}", year.unsigned_abs())
}

/// A time of day, as `13:05:00` or `13:05:00.250`.
pub(super) fn time(count: i64, unit: Unit) -> String {
    let per_second = unit.per_second();
    let (seconds, part) = (count.div_euclid(per_second), count.rem_euclid(per_second));
    let mut text = format!(
        "{:02}:{:02}:{:02}",
        seconds / 3600,
        seconds / 60 % 60,
        seconds % 60
    );
    if part != 0 {
        let digits = match unit {
            Unit::Second => 0,
            Unit::Millisecond => 3,
            Unit::Microsecond => 6,
            Unit::Nanosecond => 9,
        };
        text.push_str(&format!(".{part:0digits$}"));
    }
    text
}

/// A moment counted from 1970, as `2024-02-29T13:05:00`, with `Z` where it is in UTC.
pub(super) fn timestamp(count: i64, unit: Unit, utc: bool) -> String {
    let day = 86_400 * unit.per_second();
    let text = format!(
        "{}T{}",
        date(count.div_euclid(day)),
        time(count.rem_euclid(day), unit)
    );
    if utc { text + "Z" } else { text }
}

/// A whole number of units of 10 to the power of minus `scale`.
pub(super) fn decimal(unscaled: i128, scale: i32) -> String {
    let sign = if unscaled < 0 { "-" } else { "" };
    let digits = unscaled.unsigned_abs().to_string();
    match usize::try_from(scale) {
        Ok(0) => format!("{sign}{digits}"),
        // More decimals than any decimal type has: leave them to the exponent.
        Ok(scale) if scale <= 80 => {
            let digits = format!("{digits:0>width$}", width = scale + 1);
            let (whole, part) = digits.split_at(digits.len() - scale);
            format!("{sign}{whole}.{part}")
        }
        _ => format!("{sign}{digits}e{}", -i64::from(scale)),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn days_follow_the_calendar() {
        assert_eq!(date(0), "1970-01-01");
        assert_eq!(date(-1), "1969-12-31");
        assert_eq!(date(11_016), "2000-02-29");
        assert_eq!(date(19_782), "2024-02-29");
        assert_eq!(date(-719_528), "0000-01-01");
        assert_eq!(date(-719_529), "-0001-12-31");
        // Step by step over several leap rules, against the lengths of the months.
        let (mut year, mut month, mut day) = (1890, 1, 1);
        for days in -29_219..60_000 {
            assert_eq!(date(days), format!("{year:04}-{month:02}-{day:02}"));
            let leap = year % 4 == 0 && (year % 100 != 0 || year % 400 == 0);
            let length = match month {
                2 => 28 + i32::from(leap),
                4 | 6 | 9 | 11 => 30,
                _ => 31,
            };
            day += 1;
            if day > length {
                (day, month) = (1, month + 1);
            }
            if month > 12 {
                (month, year) = (1, year + 1);
            }
        }
    }

    #[test]
    fn moments_and_decimals_are_spelt_out() {
        assert_eq!(
            timestamp(-1, Unit::Millisecond, true),
            "1969-12-31T23:59:59.999Z"
        );
        assert_eq!(
            timestamp(1_709_211_900, Unit::Second, false),
            "2024-02-29T13:05:00"
        );
        assert_eq!(time(1_500_000_001, Unit::Nanosecond), "00:00:01.500000001");
        assert_eq!(
            (decimal(-5, 2), decimal(12345, 2), decimal(7, 0)),
            ("-0.05".into(), "123.45".into(), "7".into())
        );
        assert_eq!(decimal(7, -2), "7e2");
        for count in [i64::MIN, i64::MAX] {
            timestamp(count, Unit::Second, true);
        }
    }
}
