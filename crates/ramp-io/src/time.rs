//! Time as data has it: numbers, or dates of the calendar; and the intervals between them.
//!
//! A moment is a number: that of its column, or for dates the seconds since 1970 began in UTC.

use serde::{Deserialize, Deserializer, Serialize, Serializer};
use std::fmt;
use std::str::FromStr;

const DAY: f64 = 86_400.0;

/// A length of time: a number in the units of a column of numbers, or one that the calendar has, such as `1d` or `15min`.
///
/// ```
/// use ramp_io::time::{Interval, parse_moment, spell_moment};
/// let month: Interval = "1mo".parse()?;
/// let start = parse_moment("2024-01-31").unwrap();
/// assert_eq!(spell_moment(month.after(start, 1.0)), "2024-02-29");
/// let hours: Interval = "6h".parse()?;
/// assert_eq!(hours.steps(start, parse_moment("2024-02-01 12:00").unwrap()), 6.0);
/// assert_eq!(Interval::from(0.5).steps(3.0, 4.0), 2.0);
/// # Ok::<(), ramp_io::time::IntervalError>(())
/// ```
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Interval {
    count: f64,
    unit: Unit,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Unit {
    /// Those of a column of numbers.
    Plain,
    Second,
    Minute,
    Hour,
    Day,
    Week,
    Month,
    Year,
}

impl Unit {
    const NAMES: [(&str, Unit); 7] = [
        ("s", Unit::Second),
        ("min", Unit::Minute),
        ("h", Unit::Hour),
        ("d", Unit::Day),
        ("w", Unit::Week),
        ("mo", Unit::Month),
        ("y", Unit::Year),
    ];

    /// On average, for months and years.
    fn seconds(self) -> f64 {
        const YEAR: f64 = 365.2425 * DAY;
        match self {
            Unit::Plain | Unit::Second => 1.0,
            Unit::Minute => 60.0,
            Unit::Hour => 3600.0,
            Unit::Day => DAY,
            Unit::Week => 7.0 * DAY,
            Unit::Month => YEAR / 12.0,
            Unit::Year => YEAR,
        }
    }

    /// Calendar months, for units that are made of them.
    fn months(self) -> Option<f64> {
        match self {
            Unit::Month => Some(1.0),
            Unit::Year => Some(12.0),
            _ => None,
        }
    }
}

/// A text that is no interval.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[error(
    "`{text}` is no interval: write a positive number and one of s, min, h, d, w, mo, y, such as \"1d\" or \"15min\""
)]
pub struct IntervalError {
    /// The text.
    pub text: String,
}

impl From<f64> for Interval {
    fn from(count: f64) -> Self {
        Interval {
            count,
            unit: Unit::Plain,
        }
    }
}

impl FromStr for Interval {
    type Err = IntervalError;

    fn from_str(text: &str) -> Result<Self, IntervalError> {
        let wrong = || IntervalError { text: text.into() };
        let text = text.trim();
        let split = text
            .find(|c: char| c.is_ascii_alphabetic())
            .unwrap_or(text.len());
        let (count, unit) = text.split_at(split);
        let count: f64 = match count.trim() {
            "" => 1.0,
            count => count.parse().map_err(|_| wrong())?,
        };
        let known = Unit::NAMES.iter().find(|(name, _)| *name == unit.trim());
        let unit = known.ok_or_else(wrong)?.1;
        let interval = Interval { count, unit };
        // Parts of a month have no length.
        let whole = unit.months().is_none() || count.fract() == 0.0;
        match interval.is_sound() && whole {
            true => Ok(interval),
            false => Err(wrong()),
        }
    }
}

impl fmt::Display for Interval {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let name = Unit::NAMES.iter().find(|(_, unit)| *unit == self.unit);
        write!(f, "{}{}", self.count, name.map_or("", |(name, _)| name))
    }
}

impl Serialize for Interval {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        match self.unit {
            Unit::Plain => serializer.serialize_f64(self.count),
            _ => serializer.collect_str(self),
        }
    }
}

impl<'de> Deserialize<'de> for Interval {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        struct Visitor;
        impl serde::de::Visitor<'_> for Visitor {
            type Value = Interval;

            fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
                f.write_str("a number, or a text such as \"1d\"")
            }
            fn visit_f64<E: serde::de::Error>(self, count: f64) -> Result<Interval, E> {
                Ok(count.into())
            }
            fn visit_i64<E: serde::de::Error>(self, count: i64) -> Result<Interval, E> {
                Ok((count as f64).into())
            }
            fn visit_u64<E: serde::de::Error>(self, count: u64) -> Result<Interval, E> {
                Ok((count as f64).into())
            }
            fn visit_str<E: serde::de::Error>(self, text: &str) -> Result<Interval, E> {
                text.parse().map_err(E::custom)
            }
        }
        deserializer.deserialize_any(Visitor)
    }
}

impl Interval {
    /// Whether it can separate steps.
    pub fn is_sound(&self) -> bool {
        self.count.is_finite() && self.count > 0.0
    }

    /// Whether it is one of the calendar, so that moments are dates.
    pub fn is_calendar(&self) -> bool {
        self.unit != Unit::Plain
    }

    /// Its length in seconds, on average for months and years, or in the units of a column of numbers.
    pub fn length(&self) -> f64 {
        self.count * self.unit.seconds()
    }

    /// How many of it lie between two moments; months and years are counted on the calendar.
    pub fn steps(&self, from: f64, to: f64) -> f64 {
        match self.unit.months() {
            Some(months) => (month_of(to) - month_of(from)) / (months * self.count),
            None => (to - from) / self.length(),
        }
    }

    /// The moment so many of it after another. A day that a month does not have is its last.
    pub fn after(&self, moment: f64, steps: f64) -> f64 {
        let Some(months) = self.unit.months() else {
            return moment + steps * self.length();
        };
        let (_, _, day) = date_of(moment);
        let month = month_of(moment) + (steps * months * self.count).round();
        let first = days_of(
            month.div_euclid(12.0) as i64,
            month.rem_euclid(12.0) as i64 + 1,
            1,
        );
        let next = month + 1.0;
        let last = days_of(
            next.div_euclid(12.0) as i64,
            next.rem_euclid(12.0) as i64 + 1,
            1,
        ) - 1;
        let days = (first + day - 1).min(last);
        days as f64 * DAY + moment.rem_euclid(DAY)
    }
}

/// Months since the year 0.
fn month_of(moment: f64) -> f64 {
    let (year, month, _) = date_of(moment);
    (12 * year + month - 1) as f64
}

/// Year, month and day of a moment in the Gregorian calendar.
fn date_of(moment: f64) -> (i64, i64, i64) {
    // Howard Hinnant's algorithm: years begin in March, so that leap days come last.
    let days = (moment / DAY).floor() as i64 + 719_468;
    let era = days.div_euclid(146_097);
    let of_era = days.rem_euclid(146_097);
    let year = (of_era - of_era / 1460 + of_era / 36_524 - of_era / 146_096) / 365;
    let of_year = of_era - (365 * year + year / 4 - year / 100);
    let from_march = (5 * of_year + 2) / 153;
    let day = of_year - (153 * from_march + 2) / 5 + 1;
    let month = if from_march < 10 {
        from_march + 3
    } else {
        from_march - 9
    };
    (year + era * 400 + i64::from(month <= 2), month, day)
}

/// Days since 1970 began.
fn days_of(year: i64, month: i64, day: i64) -> i64 {
    let year = year - i64::from(month <= 2);
    let era = year.div_euclid(400);
    let of_era = year.rem_euclid(400);
    let of_year = (153 * (if month > 2 { month - 3 } else { month + 9 }) + 2) / 5 + day - 1;
    era * 146_097 + of_era * 365 + of_era / 4 - of_era / 100 + of_year - 719_468
}

/// The moment that a text in ISO form says: a day, with or without a time of day and a zone, or a month; slashes will do for
/// dashes. `None` for anything else, and beyond the years 1678 to 2261.
pub fn parse_moment(text: &str) -> Option<f64> {
    let mut text = text.trim().replace('/', "-");
    let month = text.len() == 7 && text.as_bytes()[4] == b'-';
    if month {
        text += "-01";
    }
    // A time of day without seconds.
    if text.len() == 16 && text.as_bytes()[13] == b':' {
        text += ":00";
    }
    let nanoseconds = arrow_cast::parse::string_to_timestamp_nanos(&text).ok()?;
    Some(nanoseconds as f64 / 1e9)
}

/// A moment in ISO form: the day alone where it is midnight.
pub fn spell_moment(moment: f64) -> String {
    if !moment.is_finite() || moment.abs() > 1e14 {
        return moment.to_string();
    }
    let moment = moment.round();
    let (year, month, day) = date_of(moment);
    let date = format!("{year:04}-{month:02}-{day:02}");
    match moment.rem_euclid(DAY) as u32 {
        0 => date,
        of_day => format!(
            "{date}T{:02}:{:02}:{:02}",
            of_day / 3600,
            of_day / 60 % 60,
            of_day % 60
        ),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_day_of_eight_centuries_is_spelled_as_it_is_parsed() {
        let first = parse_moment("1700-01-01").unwrap();
        let (mut year, mut month, mut day) = (1700, 1, 1);
        for n in 0..200_000 {
            let moment = first + f64::from(n) * DAY;
            let text = format!("{year:04}-{month:02}-{day:02}");
            assert_eq!(spell_moment(moment), text);
            if n % 997 == 0 {
                assert_eq!(parse_moment(&text), Some(moment));
            }
            let leap = year % 4 == 0 && (year % 100 != 0 || year % 400 == 0);
            let days = [
                31,
                28 + i64::from(leap),
                31,
                30,
                31,
                30,
                31,
                31,
                30,
                31,
                30,
                31,
            ];
            day += 1;
            if day > days[month - 1] {
                (day, month) = (1, month + 1);
            }
            if month > 12 {
                (month, year) = (1, year + 1);
            }
        }
    }

    #[test]
    fn moments_are_read_as_programs_write_them() {
        let noon = parse_moment("2024-02-29T12:00:00").unwrap();
        for text in [
            "2024-02-29 12:00:00",
            "2024/02/29 12:00",
            "2024-02-29T12:00:00Z",
            "2024-02-29T13:00:00+01:00",
        ] {
            assert_eq!(parse_moment(text), Some(noon), "{text}");
        }
        assert_eq!(spell_moment(noon), "2024-02-29T12:00:00");
        assert_eq!(parse_moment("2024-02"), parse_moment("2024-02-01"));
        for text in [
            "",
            "17",
            "29.02.2024",
            "2024-02-30",
            "9999-01-01",
            "tomorrow",
        ] {
            assert_eq!(parse_moment(text), None, "{text}");
        }
    }

    #[test]
    fn intervals_are_written_as_they_are_read() {
        for (text, seconds) in [
            ("1d", DAY),
            ("6h", 21_600.0),
            ("0.5min", 30.0),
            ("2w", 14.0 * DAY),
        ] {
            let interval: Interval = text.parse().unwrap();
            assert_eq!(
                (interval.length(), interval.to_string()),
                (seconds, text.into())
            );
            let json = serde_json::to_string(&interval).unwrap();
            assert_eq!(serde_json::from_str::<Interval>(&json).unwrap(), interval);
        }
        assert_eq!(
            serde_json::from_str::<Interval>("7").unwrap(),
            Interval::from(7.0)
        );
        assert_eq!("d".parse::<Interval>().unwrap().to_string(), "1d");
        for text in ["", "1", "0d", "-1d", "1.5mo", "1day", "1 d 2 h"] {
            let error = text.parse::<Interval>().unwrap_err().to_string();
            assert!(
                error.contains("is no interval: write a positive number"),
                "{error}"
            );
        }
        let year: Interval = "1y".parse().unwrap();
        let leap = parse_moment("2024-02-29").unwrap();
        assert_eq!(spell_moment(year.after(leap, 1.0)), "2025-02-28");
        assert_eq!(year.steps(leap, parse_moment("2030-02-01").unwrap()), 6.0);
    }
}
