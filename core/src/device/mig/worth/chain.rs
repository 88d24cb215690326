//! The states of one card under a mix of requests, and the steps between them.

use alloc::{collections::BTreeMap, vec::Vec};

use super::{super::Profile, Geometry, MigState, ProfileIx};

/// A kind of request: profiles that need the same room at the same starts.
#[derive(Clone, Copy, Debug)]
pub(super) struct Shape {
    profile: ProfileIx,
    /// Compute slices of an instance.
    pub(super) slices: f64,
    /// Its part of all requests.
    pub(super) share: f64,
}

/// What a state came to be worth.
#[derive(Clone, Copy, Debug)]
pub(super) struct Solved {
    /// Relative to an empty card, in compute slices; negative.
    pub(super) worth: f64,
    /// The part of the cards that is in this state.
    pub(super) share: f64,
}

/// States as numbers. The empty card is number 0.
#[derive(Debug)]
pub(super) struct Chain {
    pub(super) shapes: Vec<Shape>,
    pub(super) states: Vec<MigState>,
    /// By state, then by shape: the states that one more instance leads to, lowest start first.
    pub(super) more: Vec<Vec<Vec<u16>>>,
    /// By state: the states that the end of an instance leads to.
    pub(super) less: Vec<Vec<u16>>,
    /// By state: how much of the work that is asked for would still fit, in compute slices.
    pub(super) room: Vec<f64>,
}

impl Chain {
    /// The chain of a geometry; `None` if nothing is asked for.
    pub(super) fn new(geometry: &'static Geometry, weights: &[u32]) -> Option<Self> {
        let shapes = shapes(geometry, weights);
        if !shapes.iter().any(|shape| shape.share > 0.0) {
            return None;
        }
        let mut chain = Self {
            shapes,
            states: [MigState::EMPTY].into(),
            more: Vec::new(),
            less: Vec::new(),
            room: Vec::new(),
        };
        let key = |state: MigState| (state.mask, state.begins());
        let mut numbers = BTreeMap::from([(key(MigState::EMPTY), 0_u16)]);
        chain.less.push(Vec::new());
        let mut at = 0;
        while let Some(&state) = chain.states.get(at) {
            let mut steps = Vec::with_capacity(chain.shapes.len());
            for shape in &chain.shapes {
                let starts = geometry.starts(state, shape.profile);
                let mut next = Vec::new();
                for start in (0..geometry.units).filter(|start| starts >> start & 1 == 1) {
                    let Some(after) = geometry.put(state, shape.profile, start) else {
                        continue;
                    };
                    let number = *numbers.entry(key(after)).or_insert_with(|| {
                        chain.states.push(after);
                        chain.less.push(Vec::new());
                        (chain.states.len() - 1) as u16
                    });
                    next.push(number);
                    // Two shapes with the same units make the same state; its instance ends once.
                    if let Some(less) = chain.less.get_mut(usize::from(number))
                        && !less.contains(&(at as u16))
                    {
                        less.push(at as u16);
                    }
                }
                steps.push(next);
            }
            let fits = |shape: &Shape| {
                shape.share * shape.slices * f64::from(geometry.most(state, shape.profile))
            };
            chain.room.push(chain.shapes.iter().map(fits).sum());
            chain.more.push(steps);
            at += 1;
        }
        Some(chain)
    }

    /// How much an empty card is worth above a full one, in compute slices.
    pub(super) fn depth(solved: &[Solved]) -> f64 {
        let worths = solved.iter().map(|state| state.worth);
        -worths.fold(0.0, f64::min)
    }
}

fn shapes(geometry: &'static Geometry, weights: &[u32]) -> Vec<Shape> {
    let weight = |ix: ProfileIx| f64::from(weights.get(usize::from(ix.0)).copied().unwrap_or(0));
    let all: f64 = geometry.indices().map(weight).sum();
    let mut shapes: Vec<(&Profile, Shape)> = Vec::new();
    for (ix, profile) in geometry.indices().zip(geometry.profiles) {
        let share = weight(ix) / all.max(1.0);
        let alike = |(other, _): &&mut (&Profile, Shape)| {
            (other.units, other.starts) == (profile.units, profile.starts)
        };
        match shapes.iter_mut().find(alike) {
            Some((_, shape)) => shape.share += share,
            None => shapes.push((
                profile,
                Shape {
                    profile: ix,
                    slices: profile.compute_slices.into(),
                    share,
                },
            )),
        }
    }
    shapes.into_iter().map(|(_, shape)| shape).collect()
}
