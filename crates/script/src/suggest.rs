//! The name somebody probably meant.

/// Names longer than this are not compared: the work grows with the square.
const NAME_CHARS_MAX: usize = 40;

/// The candidate nearest to `name`, if one is near enough to be meant.
pub fn nearest<'a>(name: &str, candidates: impl IntoIterator<Item = &'a str>) -> Option<&'a str> {
    let length = name.chars().count();
    if length > NAME_CHARS_MAX {
        return None;
    }
    // A third of the letters may be wrong.
    let allowed = (length / 3).max(1);
    let distance = |candidate: &str| {
        if candidate.eq_ignore_ascii_case(name) { 0 } else { edits(name, candidate) }
    };
    candidates
        .into_iter()
        .filter(|candidate| *candidate != name && candidate.chars().count().abs_diff(length) <= allowed)
        .map(|candidate| (distance(candidate), candidate))
        .filter(|(distance, _)| *distance <= allowed && *distance < length)
        .min_by_key(|(distance, candidate)| (*distance, candidate.len(), *candidate))
        .map(|(_, candidate)| candidate)
}

/// How many letters to insert, delete, replace or swap with a neighbour.
fn edits(from: &str, to: &str) -> usize {
    let (from, to): (Vec<char>, Vec<char>) = (from.chars().collect(), to.chars().collect());
    let mut before: Vec<usize> = Vec::new();
    let mut last: Vec<usize> = (0..=to.len()).collect();
    for (i, a) in from.iter().enumerate() {
        let mut row = vec![i + 1];
        for (j, b) in to.iter().enumerate() {
            let mut best = (last[j] + usize::from(a != b)).min(last[j + 1] + 1).min(row[j] + 1);
            if i > 0 && j > 0 && from[i - 1] == *b && *a == to[j - 1] {
                best = best.min(before[j - 1] + 1);
            }
            row.push(best);
        }
        before = std::mem::replace(&mut last, row);
    }
    last[to.len()]
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_slip_is_recognised_and_another_word_is_not() {
        let names = ["total", "items", "item", "Task"];
        assert_eq!(nearest("totl", names), Some("total"));
        assert_eq!(nearest("toatl", names), Some("total"));
        assert_eq!(nearest("task", names), Some("Task"));
        assert_eq!(nearest("itms", names), Some("items"));
        assert_eq!(nearest("banana", names), None);
        assert_eq!(nearest("x", ["y"]), None);
    }
}
