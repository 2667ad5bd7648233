//! From data to places on paper: ranges, the 1-2-5 ticks and their labels.

/// A mark on an axis.
#[derive(Clone, Debug, PartialEq)]
pub(super) struct Tick {
    pub at: f64,
    pub label: String,
}

/// A map from data to points on the page, linear or logarithmic.
#[derive(Clone, Copy, Debug)]
pub(super) struct Scale {
    log: bool,
    data: (f64, f64),
    page: (f64, f64),
}

impl Scale {
    pub fn new(log: bool, data: (f64, f64), page: (f64, f64)) -> Self {
        Self { log, data, page }
    }

    /// Where a value lies; `None` if it is not finite or has no logarithm.
    pub fn place(&self, value: f64) -> Option<f64> {
        let bend = |v: f64| if self.log { v.ln() } else { v };
        let (low, high) = (bend(self.data.0), bend(self.data.1));
        let share = (bend(value) - low) / (high - low);
        // Values far outside are clipped from view; their coordinates must stay printable.
        share
            .is_finite()
            .then(|| (self.page.0 + share * (self.page.1 - self.page.0)).clamp(-1e5, 1e5))
    }

    /// The two ends on the page, as given.
    pub fn page(&self) -> (f64, f64) {
        self.page
    }
}

/// The range an axis shows for an extent of data: never empty, with a margin as a share of its length.
pub(super) fn padded(extent: Option<(f64, f64)>, log: bool, margin: f64) -> (f64, f64) {
    let Some((low, high)) = extent.filter(|(low, high)| low.is_finite() && high.is_finite()) else {
        return if log { (1.0, 10.0) } else { (0.0, 1.0) };
    };
    if log {
        let (low, high) = (
            low.max(f64::MIN_POSITIVE).ln(),
            high.max(f64::MIN_POSITIVE).ln(),
        );
        let (low, high) = padded(Some((low, high)), false, margin);
        return (low.exp().max(f64::MIN_POSITIVE), high.exp().min(f64::MAX));
    }
    let length = high - low;
    // A range that rounding would swallow shows its value in the middle.
    if length <= 1e-9 * low.abs().max(high.abs()).max(1e-290) {
        let half = if low == 0.0 { 0.5 } else { 0.5 * low.abs() };
        return (low - half, high + half);
    }
    (low - margin * length, high + margin * length)
}

/// Ticks at 1, 2 or 5 times a power of ten inside a range, at least two and about as many as wanted.
pub(super) fn linear_ticks(range: (f64, f64), wanted: usize) -> Vec<Tick> {
    let (low, high) = (range.0.min(range.1), range.0.max(range.1));
    let length = high - low;
    if !(length.is_finite() && length > 0.0) {
        return Vec::new();
    }
    let tolerance = 1e-9 * length;
    let first = |step: f64| ((low - tolerance) / step).ceil();
    let last = |step: f64| ((high + tolerance) / step).floor();
    let count = |step: f64| last(step) - first(step) + 1.0;

    // From fine to coarse; of two steps that miss the wish by as much, the fine one.
    let power = (length.log10().ceil() as i32).clamp(-300, 300);
    let steps = (power - 3..=power).flat_map(|power| [1, 2, 5].map(|factor| (factor, power)));
    let miss = |&(factor, power): &(i32, i32)| {
        let count = count(f64::from(factor) * 10_f64.powi(power));
        let lonely = if count < 2.0 { 100.0 } else { 0.0 };
        lonely + (count - wanted.max(1) as f64).abs()
    };
    let Some((factor, power)) = steps.min_by(|a, b| miss(a).total_cmp(&miss(b))) else {
        return Vec::new();
    };
    let step = f64::from(factor) * 10_f64.powi(power);
    // Ranges at the ends of f64 have no good step: one below the spacing of numbers, or far too many.
    let spacing = f64::EPSILON * low.abs().max(high.abs());
    if step <= 4.0 * spacing || count(step) > 3.0 * wanted.max(1) as f64 + 3.0 {
        return Vec::new();
    }
    let decimals = power.min(0).unsigned_abs() as usize;
    (0..count(step).max(0.0) as usize)
        .map(|index| (first(step) + index as f64) * step)
        .map(|at| Tick {
            at,
            label: label(at, decimals),
        })
        .collect()
}

/// Ticks at powers of ten, with 2 and 5 between them or some powers left out, as many as are wanted.
pub(super) fn log_ticks(range: (f64, f64), wanted: usize) -> Vec<Tick> {
    let (low, high) = (range.0.min(range.1), range.0.max(range.1));
    if !(low > 0.0 && high.is_finite() && high > low) {
        return Vec::new();
    }
    let (first, last) = (low.log10().floor() as i32, high.log10().ceil() as i32);
    let inside = low * (1.0 - 1e-9)..=high * (1.0 + 1e-9);
    let choose = |factors: &[i32], stride: i32| -> Vec<Tick> {
        (first..=last)
            .filter(|power| power.rem_euclid(stride) == 0)
            .flat_map(|power| factors.iter().map(move |&factor| (factor, power)))
            .map(|(factor, power)| (f64::from(factor) * 10_f64.powi(power), factor, power))
            .filter(|(at, _, _)| inside.contains(at))
            .map(|(at, factor, power)| Tick {
                at,
                label: log_label(factor, power),
            })
            .collect()
    };
    let coarse = (last - first) / wanted.max(1) as i32;
    let options = std::iter::once(choose(&[1, 2, 5], 1))
        .chain((coarse.max(1)..=coarse.max(1) + 1).map(|stride| choose(&[1], stride)));
    options
        .min_by_key(|ticks| (ticks.len() < 2, ticks.len().abs_diff(wanted)))
        .unwrap_or_default()
}

/// A number with a true minus sign and, from five digits on, thin spaces between thousands.
fn label(value: f64, decimals: usize) -> String {
    // The nearest double to a multiple of the step may print as "-0".
    let value = if value == 0.0 { 0.0 } else { value };
    let magnitude = value.abs();
    if magnitude == 0.0 && decimals > 5 {
        return "0".to_owned();
    }
    if magnitude >= 1e7 || decimals > 5 {
        let power = magnitude.log10().floor() as i32;
        let mantissa = value / 10_f64.powi(power);
        return format!(
            "{}·{}",
            plain((mantissa * 1e4).round() / 1e4),
            power_of_ten(power)
        );
    }
    let text = format!("{magnitude:.decimals$}");
    let (whole, fraction) = text
        .split_once('.')
        .map_or((text.as_str(), None), |(w, f)| (w, Some(f)));
    let mut grouped = String::new();
    for (index, digit) in whole.chars().enumerate() {
        if index > 0 && whole.len() > 4 && (whole.len() - index) % 3 == 0 {
            grouped.push('\u{2009}');
        }
        grouped.push(digit);
    }
    let sign = if value < 0.0 { "−" } else { "" };
    match fraction {
        Some(fraction) => format!("{sign}{grouped}.{fraction}"),
        None => format!("{sign}{grouped}"),
    }
}

fn log_label(factor: i32, power: i32) -> String {
    let value = || f64::from(factor) * 10_f64.powi(power);
    match power {
        -3..=4 => label(value(), power.min(0).unsigned_abs() as usize),
        _ if factor == 1 => power_of_ten(power),
        _ => format!("{factor}·{}", power_of_ten(power)),
    }
}

fn plain(value: f64) -> String {
    format!("{value}").replace('-', "−")
}

fn power_of_ten(power: i32) -> String {
    let power = power.to_string();
    let digits = power.chars().map(|digit| match digit {
        '-' => '⁻',
        '1' => '¹',
        '2' => '²',
        '3' => '³',
        '4' => '⁴',
        '5' => '⁵',
        '6' => '⁶',
        '7' => '⁷',
        '8' => '⁸',
        '9' => '⁹',
        _ => '⁰',
    });
    "10".chars().chain(digits).collect()
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    fn labels(ticks: &[Tick]) -> Vec<&str> {
        ticks.iter().map(|tick| tick.label.as_str()).collect()
    }

    #[test]
    fn ticks_read_as_a_person_would_write_them() {
        assert_eq!(
            labels(&linear_ticks((0.0, 1.0), 5)),
            ["0.0", "0.2", "0.4", "0.6", "0.8", "1.0"]
        );
        assert_eq!(
            labels(&linear_ticks((-10.0, 10.0), 4)),
            ["−10", "−5", "0", "5", "10"]
        );
        assert_eq!(
            labels(&linear_ticks((0.0, 50_000.0), 2)),
            ["0", "50\u{2009}000"]
        );
        assert_eq!(
            labels(&linear_ticks((0.0, 2e-9), 3)),
            ["0", "1·10⁻⁹", "2·10⁻⁹"]
        );
        assert_eq!(
            labels(&log_ticks((0.01, 1e6), 8))[..3],
            ["0.01", "0.1", "1"]
        );
        assert_eq!(
            labels(&log_ticks((1.0, 40.0), 5)),
            ["1", "2", "5", "10", "20"]
        );
        assert_eq!(power_of_ten(-12), "10⁻¹²");
    }

    #[test]
    fn a_range_is_never_empty() {
        assert_eq!(padded(None, false, 0.1), (0.0, 1.0));
        assert_eq!(padded(Some((0.0, 0.0)), false, 0.1), (-0.5, 0.5));
        let (low, high) = padded(Some((3.0, 3.0)), true, 0.1);
        assert!(low < 3.0 && high > 3.0);
    }

    #[test]
    fn what_has_no_place_has_none() {
        let scale = Scale::new(true, (1.0, 100.0), (0.0, 10.0));
        assert_eq!(scale.place(10.0), Some(5.0));
        for nowhere in [0.0, -1.0, f64::NAN, f64::INFINITY] {
            assert_eq!(scale.place(nowhere), None);
        }
    }

    proptest! {
        #[test]
        fn linear_ticks_are_few_even_and_inside(
            low in -1e6..1e6_f64,
            length in 1e-3..1e6_f64,
            wanted in 2_usize..9,
        ) {
            let high = low + length;
            let ticks = linear_ticks((low, high), wanted);
            prop_assert!(ticks.len() >= 2 && ticks.len() <= 2 * wanted + 2, "{ticks:?}");
            let slack = 1e-6 * length;
            for pair in ticks.windows(2) {
                let step = ticks[1].at - ticks[0].at;
                prop_assert!((pair[1].at - pair[0].at - step).abs() <= slack);
                prop_assert_ne!(&pair[0].label, &pair[1].label);
            }
            prop_assert!(ticks.iter().all(|t| t.at >= low - slack && t.at <= high + slack));
        }

        #[test]
        fn any_range_terminates(low in any::<f64>(), high in any::<f64>()) {
            prop_assert!(linear_ticks((low, high), 5).len() < 20);
            prop_assert!(log_ticks((low, high), 5).len() < 20);
            let range = padded(Some((low.min(high), low.max(high))), false, 0.05);
            let _ = Scale::new(false, range, (0.0, 1.0)).place(low);
        }
    }
}
