//! Where everything goes: domains as boxes in boxes, nodes in rows.
//!
//! Data enters as nodes ordered by topology path and leaves as a tree of [`Area`]s with sizes and
//! places, in pixels. Nothing is drawn here.

use gangline::engine::NodeView;

use super::node::Scale;

/// A rectangle with something in it.
#[derive(Debug)]
pub(super) struct Area<'a> {
    /// Its width.
    pub(super) width: f32,
    /// Its height.
    pub(super) height: f32,
    /// What it holds.
    pub(super) content: Content<'a>,
}

/// What an [`Area`] holds.
#[derive(Debug)]
pub(super) enum Content<'a> {
    /// One node.
    Node(&'a NodeView<'a>),
    /// Other areas with their left and top edges.
    Areas {
        /// Level and name of the domain; `None` for the cluster as a whole. A missing name means
        /// nodes that lack the level's label.
        domain: Option<(usize, Option<&'a str>)>,
        /// The areas.
        areas: Vec<(Area<'a>, f32, f32)>,
    },
}

/// Width over height that the cluster as a whole should have; the legend is beside it.
const WHOLE: f32 = 1.1;
/// The same for a box of boxes.
const WIDE: f32 = 1.6;
/// The same for a box of nodes inside another box: tall, as a rack is.
const TALL: f32 = 0.7;

/// Arranges all nodes.
pub(super) fn arrange<'a>(levels: &[String], nodes: &'a [NodeView<'a>], scale: &Scale) -> Area<'a> {
    let levels: Vec<usize> = (0..levels.len()).collect();
    domain(None, &levels, nodes, scale)
}

/// Arranges the nodes of one domain: its sub-domains, or its nodes when there is no further level.
fn domain<'a>(
    domain: Option<(usize, Option<&'a str>)>,
    levels: &[usize],
    nodes: &'a [NodeView<'a>],
    scale: &Scale,
) -> Area<'a> {
    let name = |node: &NodeView<'a>, level: usize| node.path.get(level).copied().flatten();
    // Levels that none of these nodes has would only add empty frames.
    let known = |level: &&usize| nodes.iter().any(|node| name(node, **level).is_some());
    let levels: Vec<usize> = levels.iter().filter(known).copied().collect();
    let whole = domain.is_none();
    let Some((&level, finer)) = levels.split_first() else {
        let ratio = if whole { WHOLE } else { TALL };
        return boxed(
            domain,
            node_areas(nodes, scale),
            ratio,
            scale.node_gap,
            scale,
        );
    };
    let areas = nodes
        .chunk_by(|a, b| name(a, level) == name(b, level))
        .map(|nodes| {
            let name = nodes.first().and_then(|node| name(node, level));
            self::domain(Some((level, name)), finer, nodes, scale)
        })
        .collect();
    boxed(
        domain,
        areas,
        if whole { WHOLE } else { WIDE },
        scale.pad,
        scale,
    )
}

/// One area a node, all as large as the largest.
fn node_areas<'a>(nodes: &'a [NodeView<'a>], scale: &Scale) -> Vec<Area<'a>> {
    let sizes = nodes.iter().map(|node| scale.node_size(node));
    let (width, height) = sizes.fold((0.0, 0.0), |(width, height): (f32, f32), size| {
        (width.max(size.0), height.max(size.1))
    });
    let area = |node| Area {
        width,
        height,
        content: Content::Node(node),
    };
    nodes.iter().map(area).collect()
}

/// Puts areas in rows inside a box; the number of columns is the one that comes closest to `ratio`.
fn boxed<'a>(
    domain: Option<(usize, Option<&'a str>)>,
    areas: Vec<Area<'a>>,
    ratio: f32,
    gap: f32,
    scale: &Scale,
) -> Area<'a> {
    let badness = |columns: &usize| {
        let (width, height) = size_in_rows(&areas, *columns, gap);
        ((width / height.max(1.0)) / ratio).ln().abs()
    };
    let columns = (1..=areas.len().max(1))
        .min_by(|a, b| badness(a).total_cmp(&badness(b)))
        .unwrap_or(1);
    // The cluster as a whole has no frame, so it needs no room for one.
    let (pad, title) = if domain.is_some() {
        (scale.pad, scale.title)
    } else {
        (0.0, 0.0)
    };
    let (inner_width, inner_height) = size_in_rows(&areas, columns, gap);
    let mut placed = Vec::with_capacity(areas.len());
    let mut top = title;
    let mut rest = areas.into_iter();
    loop {
        let mut row: Vec<Area<'a>> = rest.by_ref().take(columns).collect();
        let height = row.iter().map(|area| area.height).fold(0.0, f32::max);
        if row.is_empty() {
            break;
        }
        let mut left = pad;
        for mut area in row.drain(..) {
            area.height = height; // Neighbours end on one line.
            let width = area.width;
            placed.push((area, left, top));
            left += width + gap;
        }
        top += height + gap;
    }
    Area {
        // A box is at least as wide as a short name.
        width: (inner_width + 2.0 * pad).max(if domain.is_some() {
            scale.title_width
        } else {
            0.0
        }),
        height: inner_height + title + pad,
        content: Content::Areas {
            domain,
            areas: placed,
        },
    }
}

fn size_in_rows(areas: &[Area<'_>], columns: usize, gap: f32) -> (f32, f32) {
    let mut size: (f32, f32) = (0.0, 0.0);
    for row in areas.chunks(columns) {
        let width: f32 = row.iter().map(|area| area.width + gap).sum();
        size.0 = size.0.max(width - gap);
        size.1 += row.iter().map(|area| area.height).fold(0.0, f32::max) + gap;
    }
    (size.0, (size.1 - gap).max(0.0))
}
