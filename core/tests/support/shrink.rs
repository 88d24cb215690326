//! A failing world made as small as it can be.

/// The smallest world found by taking away one thing at a time: `smaller` lists every world with one
/// thing less, large things first.
pub fn smallest<World: Clone>(
    world: &World,
    smaller: impl Fn(&World) -> Vec<World>,
    fails: impl Fn(&World) -> bool,
) -> World {
    let mut best = world.clone();
    'again: loop {
        for smaller in smaller(&best) {
            if fails(&smaller) {
                best = smaller;
                continue 'again;
            }
        }
        return best;
    }
}
