//! Hunks of unified diffs, as pairs of texts before and after.

use super::updates::{CallContent, CallLocation};

/// Hunk of a diff.
#[derive(Debug, Default, PartialEq, Eq)]
struct Hunk {
    /// First line in the file after the change, from 1.
    line: u64,
    old: String,
    new: String,
    has_old: bool,
}

/// Makes the contents of a call that changes a file, from its diff; empty if the text is none.
pub(super) fn diff_contents(path: &str, diff: &str) -> Vec<CallContent> {
    let hunks = hunks(diff).into_iter();
    let content = |hunk: Hunk| CallContent::Diff {
        path: path.to_owned(),
        old_text: hunk.has_old.then_some(hunk.old),
        new_text: hunk.new,
    };
    hunks.map(content).collect()
}

/// Returns the place of the first change.
pub(super) fn diff_location(path: &str, diff: &str) -> CallLocation {
    CallLocation {
        path: path.to_owned(),
        line: hunks(diff).first().map(|hunk| hunk.line.max(1)),
    }
}

fn hunks(diff: &str) -> Vec<Hunk> {
    let mut hunks: Vec<Hunk> = Vec::new();
    for line in diff.lines() {
        if line.starts_with("@@ -") {
            hunks.push(Hunk {
                line: first_line(line),
                // A file without lines before the change does not exist, or is empty.
                has_old: !line.starts_with("@@ -0,0 "),
                ..Hunk::default()
            });
            continue;
        }
        let Some(hunk) = hunks.last_mut() else {
            continue;
        };
        match line.split_at_checked(1) {
            Some(("+", text)) => add_line(&mut hunk.new, text),
            Some(("-", text)) => add_line(&mut hunk.old, text),
            Some((" ", text)) => {
                add_line(&mut hunk.old, text);
                add_line(&mut hunk.new, text);
            }
            // The end of the file, or of a diff that was cut.
            _ => {}
        }
    }
    hunks
}

fn add_line(text: &mut String, line: &str) {
    text.push_str(line);
    text.push('\n');
}

/// Returns the first line after the change: 12 of `@@ -10,7 +12,9 @@`.
fn first_line(header: &str) -> u64 {
    let after = header.split(' ').find_map(|part| part.strip_prefix('+'));
    let number = after.and_then(|after| after.split(',').next()?.parse().ok());
    number.unwrap_or(1)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn each_hunk_is_a_pair_of_texts() {
        let diff =
            "@@ -1,2 +1,2 @@\n a\n-b\n+c\n@@ -9 +9,2 @@\n x\n+y\n\\ no newline at end of file\n";

        let found = diff_contents("/f", diff);

        let pair = |old: &str, new: &str| CallContent::Diff {
            path: "/f".to_owned(),
            old_text: Some(old.to_owned()),
            new_text: new.to_owned(),
        };
        assert_eq!(found, [pair("a\nb\n", "a\nc\n"), pair("x\n", "x\ny\n")]);
        assert_eq!(diff_location("/f", diff).line, Some(1));
        let second = &diff[diff.rfind("@@ -").unwrap()..];
        assert_eq!(diff_location("/f", second).line, Some(9));
    }

    #[test]
    fn a_new_file_has_no_old_text_and_other_texts_are_no_diff() {
        let made = diff_contents("/f", "@@ -0,0 +1 @@\n+a\n");

        assert!(matches!(
            &made[..],
            [CallContent::Diff { old_text: None, .. }]
        ));
        assert_eq!(diff_contents("/f", "3 lines\n+4"), []);
    }
}
