//! Link matrices as text, whatever they say: refused in one line, or a matrix that is read back as
//! it is written and whose table keeps its promises.

use gangline::{
    bits::CardSet,
    device::links::{LinkMatrix, LinkTable, Nearness},
};

/// Cards of a machine whose table is made in each run; larger ones take long.
const CARDS_WITH_TABLE: u32 = 9;

/// The texts of drivers and the lines of annotations are read by one function.
pub fn links(data: &[u8]) {
    let Ok(text) = std::str::from_utf8(data) else {
        return;
    };
    let matrix = match LinkMatrix::from_text(text) {
        Ok(matrix) => matrix,
        Err(error) => {
            assert!(!error.to_string().contains('\n'), "{error}");
            assert!(LinkMatrix::from_topo_text(text).is_err());
            return;
        }
    };
    for written in [matrix.to_text(), matrix.to_string()] {
        assert_eq!(LinkMatrix::from_text(&written).as_ref(), Ok(&matrix));
    }
    let document = serde_json::to_string(&matrix).expect("text can be written");
    assert_eq!(serde_json::from_str(&document).ok(), Some(matrix.clone()));
    if matrix.cards() <= CARDS_WITH_TABLE {
        check_table(&matrix, data);
    }
}

/// Taking the best set of the free cards again and again yields the capacity.
fn check_table(matrix: &LinkMatrix, data: &[u8]) {
    let table = LinkTable::new(matrix);
    let free = data
        .iter()
        .fold(0, |sum: u64, byte| sum * 31 % 997 + u64::from(*byte));
    let all = CardSet::first(matrix.cards()).unwrap_or_default();
    for near in Nearness::ALL {
        for count in 1..=matrix.cards() {
            let mut rest = CardSet(free).intersection(all);
            for _ in 0..table.capacity(rest, count, near) {
                let best = table.best(rest, count, near).expect("there is room");
                assert!(rest.contains_all(best.cards) && best.cards.len() == count);
                assert_eq!(table.capacity(best.cards, count, near), 1);
                assert_eq!(table.order(best.cards).len(), count as usize);
                rest = rest.difference(best.cards);
            }
            assert_eq!(table.best(rest, count, near), None);
        }
    }
}
