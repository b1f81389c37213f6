//! Tables of the documentation, which generate tests.

use std::fs;

/// Reads the cells of a Markdown table between `<!-- NAME: begin -->` and `<!-- NAME: end -->`.
///
/// The head of the table is left out. `page` is a file in `docs`.
///
/// # Panics
///
/// If there is no such page or table.
pub fn table_of(page: &str, name: &str) -> Vec<Vec<String>> {
    let path = format!("{}/../../docs/{page}", env!("CARGO_MANIFEST_DIR"));
    let text = fs::read_to_string(&path).unwrap_or_else(|error| panic!("{path}: {error}"));
    let begin = format!("<!-- {name}: begin -->");
    let end = format!("<!-- {name}: end -->");
    let table = text
        .split_once(&begin)
        .and_then(|(_, rest)| rest.split_once(&end));
    let (table, _) = table.unwrap_or_else(|| panic!("{path} has no table `{name}`"));
    let rows = table.trim().lines().skip(2).map(|line| {
        let cells = line.trim().trim_matches('|').split('|');
        cells.map(|cell| cell.trim().to_owned()).collect()
    });
    rows.collect()
}
