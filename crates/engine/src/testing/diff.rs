//! Two lists of lines, side by side.

use std::fmt::Write;

/// What is on both sides, only expected (`-`), and only found (`+`), in order.
pub(super) fn diff(expected: &[&str], found: &[&str], same: impl Fn(&str, &str) -> bool) -> String {
    let common = common(expected, found, &same);
    let (mut left, mut right) = (0, 0);
    let mut text = String::new();
    let mut line = |mark: char, line: &str| {
        let _ = writeln!(text, "  {mark} {line}");
    };
    while left < expected.len() || right < found.len() {
        let both = left < expected.len() && right < found.len();
        if both && same(expected[left], found[right]) {
            line(' ', found[right]);
            (left, right) = (left + 1, right + 1);
        } else if right == found.len() || (left < expected.len() && common[left + 1][right] >= common[left][right + 1])
        {
            line('-', expected[left]);
            left += 1;
        } else {
            line('+', found[right]);
            right += 1;
        }
    }
    text
}

/// How many lines the rest of both sides have in common, from every pair of places.
fn common(expected: &[&str], found: &[&str], same: &impl Fn(&str, &str) -> bool) -> Vec<Vec<usize>> {
    let mut table = vec![vec![0; found.len() + 1]; expected.len() + 1];
    for left in (0..expected.len()).rev() {
        for right in (0..found.len()).rev() {
            table[left][right] = if same(expected[left], found[right]) {
                table[left + 1][right + 1] + 1
            } else {
                table[left + 1][right].max(table[left][right + 1])
            };
        }
    }
    table
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_difference_shows_what_is_missing_and_what_is_too_much() {
        let text = diff(&["a", "b", "c"], &["a", "x", "c", "d"], |left, right| left == right);
        assert_eq!(text, "    a\n  - b\n  + x\n    c\n  + d\n");
        assert_eq!(diff(&[], &[], |_, _| true), "");
    }
}
