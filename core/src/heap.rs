//! A binary min-heap on a plain list, for heaps whose first item is looked at and changed in place.
//!
//! `std`'s heap cannot lower or raise its first item without a borrow that outlives the look at
//! what it points to, and a sorted list is a valid heap here.

use alloc::vec::Vec;

/// Adds an item.
pub(crate) fn push<T: Ord>(heap: &mut Vec<T>, item: T) {
    heap.push(item);
    let mut at = heap.len() - 1;
    while at > 0 {
        let parent = (at - 1) / 2;
        if heap[parent] <= heap[at] {
            break;
        }
        heap.swap(parent, at);
        at = parent;
    }
}

/// Drops the least item.
pub(crate) fn pop<T: Ord>(heap: &mut Vec<T>) {
    if heap.is_empty() {
        return;
    }
    heap.swap_remove(0);
    sink_first(heap);
}

/// Moves the first item to its place after it has grown.
pub(crate) fn sink_first<T: Ord>(heap: &mut [T]) {
    let mut at = 0;
    loop {
        let (left, right) = (2 * at + 1, 2 * at + 2);
        let mut least = at;
        for child in [left, right] {
            if child < heap.len() && heap[child] < heap[least] {
                least = child;
            }
        }
        if least == at {
            return;
        }
        heap.swap(at, least);
        at = least;
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn items_leave_in_order_also_after_the_first_has_grown() {
        let mut heap = Vec::new();
        for item in [7, 3, 9, 1, 4, 4, 8, 0, 5] {
            push(&mut heap, item);
        }
        heap[0] = 6;
        sink_first(&mut heap);
        let mut left = Vec::new();
        while let Some(&first) = heap.first() {
            left.push(first);
            pop(&mut heap);
        }
        assert_eq!(left, [1, 3, 4, 4, 5, 6, 7, 8, 9]);
    }
}
