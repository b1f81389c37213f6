//! Near matches of a text that is not in a file.

use std::fmt::Write as _;

use crate::output::visible;

/// Most lines of a file that are compared.
const MOST_LINES: usize = 50_000;

/// Compared part of a longer line.
const MOST_LINE_BYTES: usize = 400;

/// Most near matches shown.
const MOST_SHOWN: usize = 3;

/// Most lines shown of a near match.
const MOST_SHOWN_LINES: usize = 12;

/// Returns advice for a model whose text is not in the file.
pub(super) fn advice(text: &[u8], wanted: &[u8]) -> String {
    let lines: Vec<&[u8]> = text.split(|byte| *byte == b'\n').take(MOST_LINES).collect();
    if let Some(bare) = without_numbers(wanted)
        && String::from_utf8_lossy(text).contains(&*String::from_utf8_lossy(&bare))
    {
        return "does not hold `old_string`, but does without the line numbers that file_read \
                puts before lines; leave them out"
            .to_owned();
    }
    let same = same_but_for_space(&lines, wanted);
    if !same.is_empty() {
        let (first, count) = (same[0], words_of(wanted).len());
        let at = list(&same);
        let shown = number_lines(&lines, first, count);
        return format!(
            "does not hold `old_string` exactly; but for white space it is at line {at}:\n{shown}"
        );
    }
    let close = closest(&lines, wanted);
    if close.is_empty() {
        return "does not hold `old_string`, nor anything like it; read the file again".to_owned();
    }
    let shown: String = close
        .iter()
        .map(|line| number_lines(&lines, *line, 1))
        .collect();
    format!("does not hold `old_string`; the lines most like it are:\n{shown}")
}

/// Returns the number, from 1, of the line that contains a byte.
pub(super) fn line_of(text: &[u8], place: usize) -> usize {
    let before = &text[..place.min(text.len())];
    before.split(|byte| *byte == b'\n').count()
}

/// Removes the line numbers of `file_read`; none if a line has no number.
fn without_numbers(wanted: &[u8]) -> Option<Vec<u8>> {
    let bare: Option<Vec<&[u8]>> = wanted
        .split(|byte| *byte == b'\n')
        .map(|line| {
            let tab = line.iter().position(|byte| *byte == b'\t')?;
            let number = line[..tab].trim_ascii();
            let is_number = !number.is_empty() && number.iter().all(u8::is_ascii_digit);
            is_number.then(|| &line[tab + 1..])
        })
        .collect();
    let bare = bare?.join(&b'\n');
    (!bare.is_empty()).then_some(bare)
}

/// Splits lines into words, without empty lines at both ends.
fn words_of(text: &[u8]) -> Vec<Vec<&[u8]>> {
    let all: Vec<Vec<&[u8]>> = text.split(|byte| *byte == b'\n').map(words).collect();
    let Some(first) = all.iter().position(|line| !line.is_empty()) else {
        return Vec::new();
    };
    let last = all
        .iter()
        .rposition(|line| !line.is_empty())
        .unwrap_or(first);
    all[first..=last].to_vec()
}

fn words(line: &[u8]) -> Vec<&[u8]> {
    line.split(u8::is_ascii_whitespace)
        .filter(|word| !word.is_empty())
        .collect()
}

/// Returns the first lines of passages with the same words.
fn same_but_for_space(lines: &[&[u8]], wanted: &[u8]) -> Vec<usize> {
    let wanted = words_of(wanted);
    let Some(first) = wanted.first() else {
        return Vec::new();
    };
    let begins = |at: &usize| {
        let here = lines.get(*at..*at + wanted.len());
        here.is_some_and(|here| {
            here.iter()
                .zip(&wanted)
                .all(|(line, want)| words(line) == *want)
        })
    };
    (0..lines.len())
        .filter(|at| words(lines[*at]) == *first)
        .filter(begins)
        .take(MOST_SHOWN)
        .collect()
}

/// Finds the lines most similar to the longest wanted one, in file order.
fn closest(lines: &[&[u8]], wanted: &[u8]) -> Vec<usize> {
    let longest = wanted
        .split(|byte| *byte == b'\n')
        .map(<[u8]>::trim_ascii)
        .max_by_key(|line| line.len())
        .unwrap_or_default();
    let longest = pairs(longest);
    let mut scored: Vec<(usize, usize)> = lines
        .iter()
        .enumerate()
        .map(|(at, line)| (likeness(&longest, &pairs(line.trim_ascii())), at))
        .filter(|(score, _)| *score >= 50)
        .collect();
    scored.sort_by(|one, other| other.0.cmp(&one.0).then(one.1.cmp(&other.1)));
    let mut best: Vec<usize> = scored
        .into_iter()
        .take(MOST_SHOWN)
        .map(|(_, at)| at)
        .collect();
    best.sort_unstable();
    best
}

/// Returns the pairs of neighbouring bytes of a line, sorted.
fn pairs(line: &[u8]) -> Vec<[u8; 2]> {
    let line = &line[..line.len().min(MOST_LINE_BYTES)];
    let mut pairs: Vec<[u8; 2]> = line.windows(2).map(|pair| [pair[0], pair[1]]).collect();
    pairs.sort_unstable();
    pairs
}

/// Returns the similarity of two lines: percentage of common pairs.
fn likeness(one: &[[u8; 2]], other: &[[u8; 2]]) -> usize {
    if one.is_empty() || other.is_empty() {
        return 0;
    }
    let (mut left, mut right, mut common) = (0, 0, 0);
    while let (Some(a), Some(b)) = (one.get(left), other.get(right)) {
        match a.cmp(b) {
            std::cmp::Ordering::Less => left += 1,
            std::cmp::Ordering::Greater => right += 1,
            std::cmp::Ordering::Equal => {
                common += 1;
                left += 1;
                right += 1;
            }
        }
    }
    200 * common / (one.len() + other.len())
}

fn number_lines(lines: &[&[u8]], first: usize, count: usize) -> String {
    let mut text = String::new();
    let here = lines.iter().enumerate().skip(first);
    for (at, line) in here.take(count.min(MOST_SHOWN_LINES)) {
        let line = line.strip_suffix(b"\r").unwrap_or(line);
        let short = &line[..line.len().min(MOST_LINE_BYTES)];
        let _ = writeln!(text, "{:>6}\t{}", at + 1, visible(short));
    }
    text
}

fn list(lines: &[usize]) -> String {
    let numbers: Vec<String> = lines.iter().map(|line| (line + 1).to_string()).collect();
    numbers.join(" and ")
}
