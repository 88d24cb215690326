//! The best weights to prove with that cards cannot give what is wanted.
//!
//! Data enters as numbers wanted and groups of cards with their patterns; out come weights. They are a
//! guess: numbers are rounded, and whoever uses them checks them.

use alloc::vec::Vec;
use core::cmp::Reverse;

use super::{Group, Weights};
use crate::device::patterns::{Counts, MOST_ITEMS};

/// Bits behind the point of the table's numbers.
const FRACTION: u32 = 40;
const ONE: i128 = 1 << FRACTION;
/// What is below this counts as nothing.
const TINY: i128 = 1 << 10;
/// Numbers beyond this are no longer trusted.
const HUGE: i128 = 1 << 62;
const MOST_PIVOTS: usize = 200;
const MOST_CELLS: usize = 1 << 14;
/// What a weight of 1 is in whole numbers.
pub(super) const UNIT: u64 = 1 << FRACTION;

/// The linear program for the best weights, as a simplex tableau in fixed point: what is wanted is to
/// weigh as much as can be while an average card holds a weight of 1. One column for the weight of each
/// item (of the most that a card gives of it) and one for what a card of each group holds; one row for
/// each pattern and one for the sum.
pub(super) struct Table {
    columns: usize,
    /// Rows of columns and a limit; the last row is what a column is worth.
    cells: Vec<i128>,
    /// By row and by column: the variable there, columns first.
    basis: Vec<usize>,
    outside: Vec<usize>,
    /// Numbers that were changed.
    pub(super) looks: u64,
}

fn part(count: u32, of: u64) -> i128 {
    (i128::from(count) << FRACTION) / i128::from(of.max(1))
}

impl Table {
    /// Nothing: it would be too large.
    pub(super) fn new(wanted: &Counts, groups: &[Group], most: &Counts) -> Option<Self> {
        let columns = MOST_ITEMS + groups.len();
        let width = columns + 1;
        let rows = groups
            .iter()
            .map(|group| group.patterns.list.len())
            .sum::<usize>()
            + 1;
        let size = (rows + 1)
            .checked_mul(width)
            .filter(|&size| size <= MOST_CELLS)?;
        let mut cells = alloc::vec![0; size];
        let mut table = cells.chunks_exact_mut(width);
        let mut slack = 16 * TINY;
        for (at, group) in groups.iter().enumerate() {
            for (pattern, row) in group.patterns.list.iter().zip(&mut table) {
                for ((cell, &count), &most) in row.iter_mut().zip(pattern).zip(most) {
                    *cell = part(count, most.into());
                }
                row[MOST_ITEMS + at] = -ONE;
                // Not quite 0, and not quite the same: ties can go round in circles.
                slack += TINY;
                row[columns] = slack;
            }
        }
        let cards: u64 = groups.iter().map(|group| u64::from(group.cards)).sum();
        if let (Some(sum), Some(worth)) = (table.next(), table.next()) {
            for (cell, group) in sum[MOST_ITEMS..].iter_mut().zip(groups) {
                *cell = part(group.cards, cards);
            }
            sum[columns] = ONE;
            for ((cell, &count), &most) in worth.iter_mut().zip(wanted).zip(most) {
                *cell = part(count, cards.saturating_mul(most.into()));
            }
        }
        Some(Self {
            columns,
            cells,
            basis: (columns..columns + rows).collect(),
            outside: (0..columns).collect(),
            looks: 0,
        })
    }

    pub(super) fn solve(&mut self) {
        let (width, rows) = (self.columns + 1, self.basis.len());
        for _ in 0..MOST_PIVOTS {
            let worth = &self.cells[rows * width..][..self.columns];
            let entering = (0..self.columns).max_by_key(|&column| (worth[column], Reverse(column)));
            let Some(column) = entering.filter(|&column| worth[column] > TINY) else {
                return;
            };
            let limited = self.cells.chunks_exact(width).take(rows).enumerate();
            let limited = limited.filter(|(_, row)| row[column] > TINY);
            let leaving = limited.min_by_key(|(at, row)| {
                let limit = row[self.columns].max(0);
                ((limit << FRACTION) / row[column], *at)
            });
            let Some((row, _)) = leaving else { return };
            if !self.pivot(row, column) {
                return;
            }
        }
    }

    /// Lets a column's variable take a row's place. False: the numbers are out of hand.
    fn pivot(&mut self, row: usize, column: usize) -> bool {
        let width = self.columns + 1;
        self.looks += self.cells.len() as u64;
        let own = &self.cells[row * width..][..width];
        let divisor = own[column];
        let divide = |(at, &cell): (usize, &i128)| {
            let cell = if at == column { ONE } else { cell };
            (cell << FRACTION) / divisor
        };
        let own: Vec<i128> = own.iter().enumerate().map(divide).collect();
        if own.iter().any(|cell| cell.abs() > HUGE) {
            return false;
        }
        let mut is_sound = true;
        for (at, cells) in self.cells.chunks_exact_mut(width).enumerate() {
            if at == row {
                cells.copy_from_slice(&own);
                continue;
            }
            let factor = core::mem::take(&mut cells[column]);
            if factor != 0 {
                for (cell, &own) in cells.iter_mut().zip(&own) {
                    *cell -= (factor * own) >> FRACTION;
                    is_sound &= cell.abs() <= HUGE;
                }
            }
        }
        core::mem::swap(&mut self.basis[row], &mut self.outside[column]);
        is_sound
    }

    pub(super) fn weights(&self, most: &Counts) -> Weights {
        let mut weights = [0; MOST_ITEMS];
        let rows = self.cells.chunks_exact(self.columns + 1);
        for (&variable, row) in self.basis.iter().zip(rows) {
            if let (Some(weight), Some(&most)) = (weights.get_mut(variable), most.get(variable)) {
                let found = row[self.columns].clamp(0, HUGE) as u64;
                *weight = found / u64::from(most.max(1));
            }
        }
        weights
    }
}
