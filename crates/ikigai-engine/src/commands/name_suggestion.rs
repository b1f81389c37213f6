//! Suggestions for mistyped names.

/// Returns the known names nearest to an unknown one, nearest first.
pub(super) fn nearest<'a>(name: &str, known: impl Iterator<Item = &'a str>) -> Vec<&'a str> {
    let mut near: Vec<(usize, &str)> = known
        .filter_map(|candidate| Some((score(name, candidate)?, candidate)))
        .collect();
    near.sort_unstable();
    near.dedup();
    near.into_iter().map(|(_, name)| name).collect()
}

/// Returns the distance of two names; none if they are far apart.
fn score(name: &str, candidate: &str) -> Option<usize> {
    // The cost grows with both lengths; no name is longer.
    const MOST_TYPED: usize = 32;
    let typed: String = name.chars().take(MOST_TYPED).collect();
    let edits = strsim::osa_distance(&typed.to_ascii_lowercase(), candidate);
    let most = (candidate.len() / 3).max(1);
    if edits <= most {
        Some(edits)
    } else if !name.is_empty() && candidate.starts_with(name) {
        Some(most + 1)
    } else {
        None
    }
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
