//! All layouts of a card, for people and for tests.

use alloc::vec::Vec;

use super::{Geometry, MigState, ProfileIx};

impl Geometry {
    /// Every layout of the accepted profiles to which none of them can be added, each as placements
    /// in order of their start, the list in order of its placements.
    ///
    /// Walks every legal layout: a few thousand steps with all profiles of a card.
    pub fn full_layouts(&self, accept: impl Fn(ProfileIx) -> bool) -> Vec<Vec<(ProfileIx, u8)>> {
        let mut placements: Vec<_> = self.placements().filter(|(ix, _)| accept(*ix)).collect();
        placements.sort_by_key(|(ix, start)| (*start, *ix));
        let mut full = Vec::new();
        let mut layout = Vec::new();
        self.extend(MigState::EMPTY, &placements, 0, &mut layout, &mut full);
        full
    }

    fn extend(
        &self,
        state: MigState,
        placements: &[(ProfileIx, u8)],
        from: usize,
        layout: &mut Vec<(ProfileIx, u8)>,
        full: &mut Vec<Vec<(ProfileIx, u8)>>,
    ) {
        let fits = |&(ix, start): &(ProfileIx, u8)| self.put(state, ix, start).is_some();
        if !layout.is_empty() && !placements.iter().any(fits) {
            full.push(layout.clone());
        }
        for (at, &(ix, start)) in placements.iter().enumerate().skip(from) {
            if let Some(next) = self.put(state, ix, start) {
                layout.push((ix, start));
                self.extend(next, placements, at + 1, layout, full);
                layout.pop();
            }
        }
    }
}
