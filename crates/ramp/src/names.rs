//! Names in sentences: lists that stay short, and the nearest name when one is misspelt.

/// Lists longer than this are cut: the first names are enough to find the place.
const LISTED: usize = 12;

/// `a`, `b`, `c`, cut where it would not help any more.
pub fn list(names: &[String]) -> String {
    joined(names, ", ")
}

/// [`list`] with something else than commas.
pub fn joined(names: &[String], between: &str) -> String {
    let mut text = String::new();
    for (position, name) in names.iter().take(LISTED).enumerate() {
        if position > 0 {
            text.push_str(between);
        }
        text.push('`');
        text.push_str(&shortened(name));
        text.push('`');
    }
    if names.len() > LISTED {
        text.push_str(&format!("{between}… {} more", names.len() - LISTED));
    }
    text
}

/// A name or a value from outside as it fits into a sentence: on one line and not too long.
pub fn shortened(text: &str) -> String {
    const SHOWN: usize = 60;
    let on_one_line = |c: char| if c.is_control() { ' ' } else { c };
    let mut shown: String = text.chars().take(SHOWN).map(on_one_line).collect();
    if text.chars().nth(SHOWN).is_some() {
        shown.push('…');
    }
    shown
}

/// As many names may be equally near before the list of all names says more.
const SUGGESTED: usize = 3;

/// The nearest name if one is near enough to be a slip of the keyboard, else what there is to choose from.
pub fn hint<'a>(name: &str, names: impl Iterator<Item = &'a str> + Clone) -> String {
    let length = name.chars().count();
    let mut least = (length / 3).max(1);
    let mut nearest: Vec<String> = Vec::new();
    for candidate in names.clone() {
        if candidate.chars().count().abs_diff(length) > least {
            continue;
        }
        let distance = edit_distance(name, candidate);
        if distance < least {
            least = distance;
            nearest.clear();
        }
        if distance == least {
            nearest.push(format!("`{}`", shortened(candidate)));
        }
    }
    if (1..=SUGGESTED).contains(&nearest.len()) {
        format!("did you mean {}?", nearest.join(" or "))
    } else {
        format!(
            "there are {}",
            list(&names.map(str::to_owned).collect::<Vec<_>>())
        )
    }
}

/// How many characters must be put in, taken out, changed or swapped with their neighbour to turn `a` into `b`;
/// a change of case counts nothing.
fn edit_distance(a: &str, b: &str) -> usize {
    strsim::osa_distance(&a.to_lowercase(), &b.to_lowercase())
}
