//! The group tree, flattened: nodes in pre-order, so that a sub-tree is a range.

use alloc::{boxed::Box, vec::Vec};
use core::ops::Range;

use crate::{
    cluster::{Cluster, domain::KeyIx},
    gang::{Group, GroupKind, Minimum, TopologyRule},
};

/// A node of the tree.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct TreeNode {
    pub(crate) name: Box<str>,
    pub(crate) parent: Option<u32>,
    /// One past its sub-tree.
    pub(crate) end: u32,
    pub(crate) required: Option<KeyIx>,
    pub(crate) preferred: Option<KeyIx>,
    pub(crate) kind: TreeKind,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum TreeKind {
    Leaf { count: u32, min: u32 },
    Inner(Minimum),
}

/// The flattened tree. Never empty: node 0 is the root.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct Tree {
    pub(crate) nodes: Vec<TreeNode>,
}

/// How a sub-tree stands, given counts for its leaves.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Standing {
    /// Its own minimum and those of the children that it needs are met.
    pub(crate) met: bool,
    /// Members counted.
    pub(crate) members: u32,
}

impl Tree {
    /// A gang of one.
    pub(crate) fn single() -> Self {
        let leaf = TreeNode {
            name: "".into(),
            parent: None,
            end: 1,
            required: None,
            preferred: None,
            kind: TreeKind::Leaf { count: 1, min: 1 },
        };
        Self {
            nodes: [leaf].into(),
        }
    }

    /// Flattens a checked tree; levels become partitions.
    pub(crate) fn new(root: &Group, cluster: &mut Cluster) -> Self {
        let mut tree = Self { nodes: Vec::new() };
        tree.add(root, None, cluster);
        tree
    }

    fn add(&mut self, group: &Group, parent: Option<u32>, cluster: &mut Cluster) {
        let ix = self.nodes.len();
        let TopologyRule {
            required,
            preferred,
        } = &group.topology;
        let mut key = |level: &Option<_>| level.as_deref().map(|level| cluster.key(level));
        self.nodes.push(TreeNode {
            name: group.name.as_str().into(),
            parent,
            end: 0,
            required: key(required),
            preferred: key(preferred),
            kind: match &group.kind {
                GroupKind::Role(role) => TreeKind::Leaf {
                    count: role.count,
                    min: role.min,
                },
                GroupKind::Group { min, .. } => TreeKind::Inner(*min),
            },
        });
        if let GroupKind::Group { children, .. } = &group.kind {
            for child in children {
                self.add(child, Some(ix as u32), cluster);
            }
        }
        self.nodes[ix].end = self.nodes.len() as u32;
    }

    /// Indexes of a node's children.
    pub(crate) fn children(&self, ix: u32) -> impl Iterator<Item = u32> + '_ {
        let end = self.nodes[ix as usize].end;
        let mut next = ix + 1;
        core::iter::from_fn(move || {
            let child = (next < end).then_some(next)?;
            next = self.nodes[child as usize].end;
            Some(child)
        })
    }

    /// The node and all below it.
    pub(crate) fn subtree(&self, ix: u32) -> Range<u32> {
        ix..self.nodes[ix as usize].end
    }

    /// A node and its ancestors, from the inside out.
    pub(crate) fn upward(&self, ix: u32) -> impl Iterator<Item = u32> + '_ {
        core::iter::successors(Some(ix), |&ix| self.nodes[ix as usize].parent)
    }

    /// Leaves, in order.
    pub(crate) fn leaves(&self) -> impl Iterator<Item = u32> + '_ {
        let is_leaf = |ix: &u32| matches!(self.nodes[*ix as usize].kind, TreeKind::Leaf { .. });
        (0..self.nodes.len() as u32).filter(is_leaf)
    }

    /// The leaf with this role name; the only leaf when the name is empty.
    pub(crate) fn leaf(&self, role: &str) -> Option<u32> {
        let mut leaves = self.leaves();
        if role.is_empty() {
            let first = leaves.next();
            return if leaves.next().is_none() { first } else { None };
        }
        leaves.find(|&leaf| *self.nodes[leaf as usize].name == *role)
    }

    /// How a sub-tree stands when leaf `l` counts `count(l)` members.
    pub(crate) fn standing(&self, ix: u32, count: &impl Fn(u32) -> u32) -> Standing {
        match self.nodes[ix as usize].kind {
            TreeKind::Leaf { min, .. } => {
                let members = count(ix);
                Standing {
                    met: members >= min,
                    members,
                }
            }
            TreeKind::Inner(minimum) => {
                let (mut all_met, mut met, mut members) = (true, 0, 0_u32);
                for child in self.children(ix) {
                    let child = self.standing(child, count);
                    members = members.saturating_add(child.members);
                    all_met &= child.met;
                    met += u32::from(child.met && child.members > 0);
                }
                let met = match minimum {
                    Minimum::Members(least) => all_met && members >= least,
                    Minimum::Children(least) => met >= least,
                };
                Standing { met, members }
            }
        }
    }

    /// Whether the counts keep every promise: somebody is there, the root's minimum is met, and no
    /// child that may be left out is there in part.
    pub(crate) fn is_whole(&self, ix: u32, count: &impl Fn(u32) -> u32) -> bool {
        let standing = self.standing(ix, count);
        (if standing.members == 0 {
            ix != 0
        } else {
            standing.met
        }) && self.children(ix).all(|child| self.is_whole(child, count))
    }

    /// The fewest members that meet a sub-tree's minimum, whatever leaves they are in.
    pub(crate) fn fewest(&self, ix: u32) -> u32 {
        match self.nodes[ix as usize].kind {
            TreeKind::Leaf { min, .. } => min,
            TreeKind::Inner(Minimum::Members(least)) => {
                let sum = self.children(ix).map(|child| self.fewest(child));
                sum.fold(0_u32, u32::saturating_add).max(least)
            }
            TreeKind::Inner(Minimum::Children(least)) => {
                let mut each: Vec<u32> = self
                    .children(ix)
                    .map(|child| self.fewest(child).max(1))
                    .collect();
                each.sort_unstable();
                each.into_iter()
                    .take(least as usize)
                    .fold(0, u32::saturating_add)
            }
        }
    }
}
