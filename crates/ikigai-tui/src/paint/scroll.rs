//! Search for rows that a terminal can scroll instead of redrawing.

use std::ops::Range;

use super::cell::{GridCell, mix};
use super::row::used_columns;
use super::theme::Theme;

/// Cells that a scroll must save to be worth its bytes.
const COST: usize = 24;

/// A move of rows.
#[derive(Debug)]
pub(super) struct Scroll {
    /// Rows involved: the moved, the overwritten and the blanked ones.
    pub(super) region: Range<usize>,
    /// Distance in rows.
    pub(super) by: usize,
    /// Towards the top.
    pub(super) up: bool,
}

/// Finds the move that saves most, if one does.
pub(super) fn find(
    old: &[GridCell],
    new: &[GridCell],
    columns: usize,
    theme: Theme,
) -> Option<Scroll> {
    if columns == 0 {
        return None;
    }
    let pairs = old.chunks_exact(columns).zip(new.chunks_exact(columns));
    if pairs.filter(|(old, new)| old != new).count() < 2 {
        return None;
    }
    let rows = RowDigests {
        old: old.chunks_exact(columns).map(digest).collect(),
        new: new.chunks_exact(columns).map(digest).collect(),
        costs: new
            .chunks_exact(columns)
            .map(|row| used_columns(row, theme))
            .collect(),
    };
    let count = rows.old.len();
    let mut best = (COST, None);
    for by in 1..count {
        rows.look(by, true, &mut best);
        rows.look(by, false, &mut best);
    }
    best.1
}

/// Digests of rows. A collision moves a row needlessly, and it is written afterwards.
struct RowDigests {
    old: Vec<u64>,
    new: Vec<u64>,
    /// Cost of writing each new row.
    costs: Vec<usize>,
}

impl RowDigests {
    /// Searches rows at a distance for a scroll that saves more than the best.
    fn look(&self, by: usize, up: bool, best: &mut (usize, Option<Scroll>)) {
        let count = self.new.len();
        let mut row = 0;
        while row < count {
            let start = row;
            let mut saved = 0;
            while row < count && self.stands(row, by, up) {
                saved += if self.stood(row) { 0 } else { self.cost(row) };
                row += 1;
            }
            // Most runs are blank rows; skip the cost of the overwritten rows for them.
            if saved > best.0 {
                let (region, spoilt) = if up {
                    (start..row + by, row..row + by)
                } else {
                    (start - by..row, start - by..start)
                };
                let lost: usize = spoilt
                    .filter(|row| self.stood(*row))
                    .map(|row| self.cost(row))
                    .sum();
                if saved > best.0 + lost {
                    *best = (saved - lost, Some(Scroll { region, by, up }));
                }
            }
            row += 1;
        }
    }

    /// Returns true if the new contents of a row stand at this distance now.
    fn stands(&self, row: usize, by: usize, up: bool) -> bool {
        let from = if up {
            row.checked_add(by)
        } else {
            row.checked_sub(by)
        };
        let from = from.and_then(|from| self.old.get(from));
        from.is_some() && from == self.new.get(row)
    }

    /// Returns true if a row already shows its new contents.
    fn stood(&self, row: usize) -> bool {
        self.old.get(row) == self.new.get(row)
    }

    fn cost(&self, row: usize) -> usize {
        self.costs.get(row).copied().unwrap_or(0)
    }
}

fn digest(row: &[GridCell]) -> u64 {
    row.iter()
        .fold(0, |digest, cell| mix(digest, cell.digest()))
}
