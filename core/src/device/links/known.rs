//! Link matrices of machines that people know by name.

use alloc::{string::String, vec::Vec};

use super::{Link, LinkMatrix, Nic};

/// One machine as data: rows below the diagonal, so that nothing is said twice.
struct Machine {
    name: &'static str,
    /// (1,0), (2,0), (2,1), ... or one link for all pairs.
    pairs: Pairs,
    numa: &'static [Option<u8>],
    nics: &'static [(&'static str, &'static [Link])],
}

enum Pairs {
    All(Link),
}

const NV18: Link = Link::Nvlink(18);
const HALVES_OF_8: [Option<u8>; 8] = [
    Some(0),
    Some(0),
    Some(0),
    Some(0),
    Some(1),
    Some(1),
    Some(1),
    Some(1),
];

const MACHINES: &[Machine] = &[Machine {
    name: "hgx-h100-8",
    pairs: Pairs::All(NV18),
    numa: &HALVES_OF_8,
    nics: &[],
}];

impl Machine {
    fn matrix(&self) -> Option<LinkMatrix> {
        let Pairs::All(link) = self.pairs;
        let rows: Vec<Vec<Option<Link>>> = (0..self.numa.len())
            .map(|row| {
                (0..self.numa.len())
                    .map(|column| (row != column).then_some(link))
                    .collect()
            })
            .collect();
        let nics = self.nics.iter().map(|(name, links)| Nic {
            name: (*name).into(),
            links: links.to_vec(),
        });
        LinkMatrix::new(&rows, self.numa, nics.collect()).ok()
    }
}

/// The matrix of a machine in [`names`].
pub fn known(name: &str) -> Option<LinkMatrix> {
    let machine = MACHINES.iter().find(|machine| machine.name == name)?;
    machine.matrix()
}

/// The names of the known machines.
pub fn names() -> impl Iterator<Item = &'static str> {
    MACHINES.iter().map(|machine| machine.name)
}

/// The matrix of a node that tells only the product's name and the number of cards, where these
/// fix the shape.
pub fn for_product(product: &str, count: u32) -> Option<LinkMatrix> {
    let _ = (product, count);
    None
}

pub(super) fn names_text() -> String {
    let names: Vec<&str> = names().collect();
    names.join(", ")
}
