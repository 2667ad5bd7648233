//! Whether answers share how far from the middle they are beyond what they share by their order: then people differ in how extremely they answer, and a latent of one dimension takes up
//! some of that.

use ramp::data::Dataset;

/// Fewer items or rows tell nothing.
const FEWEST_ITEMS: usize = 3;
const FEWEST_ROWS: usize = 200;
/// The shared distance from the middle, as a correlation, from which it deserves a word. Made-up answers without a style of answering have −0.06, with one that varies by a factor of 1.5 about
/// 0.04 and of 2.2 about 0.2, the five scales of a real questionnaire (bfi) 0.07 to 0.12.
const SHARED: f64 = 0.05;

/// One word about the items of a latent of one dimension, given one among zeros for each of their levels, where people seem to differ in how extremely they answer.
pub(crate) fn style_warning(latent: &str, items: &[&str], data: &Dataset) -> Option<String> {
    let answers: Option<Vec<_>> = items.iter().map(|item| places(item, data)).collect();
    let shared = shared_distance(&answers?)?;
    (shared > SHARED).then(|| {
        format!(
            "answers to the items of `{latent}` share how far they are from the middle (a correlation of {shared:.2} beyond what their order explains): people differ in how extremely they \
             answer; `dim = 2` in [latents.{latent}] gives that a dimension of its own, and the first, `{latent}.mean1`, follows the items more closely"
        )
    })
}

/// The place of each answer among the levels; `None` where it is missing.
fn places(item: &str, data: &Dataset) -> Option<Vec<Option<f64>>> {
    let observation = data.observation(item).ok()?;
    let place = |row: usize| {
        let levels = observation.numbers(row);
        let weighed = levels
            .iter()
            .enumerate()
            .map(|(l, &x)| l as f64 * f64::from(x));
        observation.is_present(row).then(|| weighed.sum())
    };
    Some((0..data.rows()).map(place).collect())
}

/// The mean over pairs of items of the correlation of their squared distances from the middle, freed of what places tell of it, less the squared correlation of their places: nothing on average for items
/// that share a normal trait alone.
fn shared_distance(answers: &[Vec<Option<f64>>]) -> Option<f64> {
    let rows = answers.first()?.len();
    if answers.len() < FEWEST_ITEMS || rows < FEWEST_ROWS {
        return None;
    }
    let mut columns = vec![];
    for answers in answers {
        let known: Vec<f64> = answers.iter().flatten().copied().collect();
        let count = known.len() as f64;
        let mean = known.iter().sum::<f64>() / count;
        let moment = |power| known.iter().map(|x| (x - mean).powi(power)).sum::<f64>() / count;
        let (square, cube) = (moment(2), moment(3));
        if known.len() < FEWEST_ROWS || square < 1e-9 {
            return None;
        }
        let far = |x: f64| (x - mean).powi(2) - cube / square * (x - mean);
        let distances: Vec<Option<f64>> = answers.iter().map(|x| x.map(far)).collect();
        columns.push((answers, distances));
    }
    let (mut sum, mut pairs) = (0.0, 0.0);
    for (i, (place, far)) in columns.iter().enumerate() {
        for (other_place, other_far) in &columns[..i] {
            let by_place = correlation(place, other_place)?;
            sum += correlation(far, other_far)? - by_place * by_place;
            pairs += 1.0;
        }
    }
    Some(sum / pairs)
}

/// Over rows that have both; `None` where nothing varies.
fn correlation(a: &[Option<f64>], b: &[Option<f64>]) -> Option<f64> {
    let both: Vec<(f64, f64)> = a
        .iter()
        .zip(b)
        .filter_map(|(a, b)| Some(((*a)?, (*b)?)))
        .collect();
    let count = both.len() as f64;
    let mean = |of: fn(&(f64, f64)) -> f64| both.iter().map(of).sum::<f64>() / count;
    let (ma, mb) = (mean(|p| p.0), mean(|p| p.1));
    let sum =
        |of: &dyn Fn(f64, f64) -> f64| both.iter().map(|p| of(p.0 - ma, p.1 - mb)).sum::<f64>();
    let (ab, aa, bb) = (sum(&|a, b| a * b), sum(&|a, _| a * a), sum(&|_, b| b * b));
    let found = ab / (aa * bb).sqrt();
    found.is_finite().then_some(found)
}

#[cfg(test)]
mod tests {
    use super::*;
    use rand::SeedableRng;
    use rand_chacha::ChaCha8Rng;
    use rand_distr::{Distribution, StandardNormal};

    /// Answers of people who differ in a trait and, by so much, in how extremely they answer.
    fn answered(style: f64) -> Dataset {
        let mut rng = ChaCha8Rng::seed_from_u64(7);
        let mut normal = || -> f64 { StandardNormal.sample(&mut rng) };
        let mut columns = vec![vec![]; 5];
        for _ in 0..1500 {
            let (level, spread) = (normal(), (style * normal()).exp());
            for (i, column) in columns.iter_mut().enumerate() {
                let way = if i == 3 { -1.0 } else { 1.0 };
                let x = spread * (0.8 * way * level + 0.7 * normal());
                let place = [-1.2, -0.4, 0.4, 1.2].iter().filter(|c| x > **c).count();
                column.extend((0..5).map(|l| f32::from(u8::from(l == place))));
            }
        }
        let columns = columns.into_iter().enumerate();
        columns.fold(Dataset::new(), |data, (i, column)| {
            data.observe(format!("q{i}"), 5, column).unwrap()
        })
    }

    #[test]
    fn extreme_answering_is_named_and_a_trait_alone_is_not() {
        let items = ["q0", "q1", "q2", "q3", "q4"];
        let word = style_warning("calm", &items, &answered(0.8)).unwrap();
        assert!(
            word.contains("[latents.calm]") && word.contains("`dim = 2`"),
            "{word}"
        );
        assert_eq!(style_warning("calm", &items, &answered(0.0)), None);
        // Two items tell too little.
        assert_eq!(style_warning("calm", &items[..2], &answered(0.8)), None);
    }
}
