//! Which name somebody may have meant.

/// The known names nearest to one that is not known, nearest first.
pub(super) fn nearest<'a>(name: &str, known: impl Iterator<Item = &'a str>) -> Vec<&'a str> {
    let mut near: Vec<(usize, &str)> = known
        .filter_map(|candidate| Some((score(name, candidate)?, candidate)))
        .collect();
    near.sort_unstable();
    near.dedup();
    near.into_iter().map(|(_, name)| name).collect()
}

/// How near two names are; none if they are far from each other.
fn score(name: &str, candidate: &str) -> Option<usize> {
    let edits = edits(&name.to_ascii_lowercase(), candidate);
    let most = (candidate.len() / 3).max(1);
    if edits <= most {
        Some(edits)
    } else if !name.is_empty() && candidate.starts_with(name) {
        Some(most + 1)
    } else {
        None
    }
}

/// How many letters must be changed, added, taken away or swapped with their neighbour.
fn edits(one: &str, other: &str) -> usize {
    let one: Vec<char> = one.chars().take(32).collect();
    let other: Vec<char> = other.chars().take(32).collect();
    let mut rows: Vec<Vec<usize>> = vec![(0..=other.len()).collect()];
    for i in 1..=one.len() {
        let mut row = vec![i];
        for j in 1..=other.len() {
            let changed = rows[i - 1][j - 1] + usize::from(one[i - 1] != other[j - 1]);
            let mut least = changed.min(row[j - 1] + 1).min(rows[i - 1][j] + 1);
            let swapped =
                i > 1 && j > 1 && one[i - 1] == other[j - 2] && one[i - 2] == other[j - 1];
            if swapped {
                least = least.min(rows[i - 2][j - 2] + 1);
            }
            row.push(least);
        }
        rows.push(row);
    }
    rows[one.len()][other.len()]
}

#[cfg(test)]
mod tests {
    use super::nearest;

    #[test]
    fn a_name_is_found_by_what_is_nearly_it_or_its_beginning() {
        let known = ["clear", "mark", "redo", "retry", "rewind", "undo"];
        let cases: [(&str, &[&str]); 7] = [
            ("rewnid", &["rewind"]),
            ("Rewind", &["rewind"]),
            ("rew", &["rewind"]),
            ("undoo", &["undo"]),
            ("mrak", &["mark"]),
            ("re", &["redo", "retry", "rewind"]),
            ("frobnicate", &[]),
        ];

        for (name, expected) in cases {
            assert_eq!(nearest(name, known.into_iter()), expected, "{name}");
        }
    }
}
