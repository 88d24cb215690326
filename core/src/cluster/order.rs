//! The order of names that people expect: `n2` before `n10`.

use core::cmp::Ordering;

/// Compares texts with runs of digits compared as numbers; equal only for equal texts.
pub(crate) fn natural(a: &str, b: &str) -> Ordering {
    let (mut left, mut right) = (a.as_bytes(), b.as_bytes());
    loop {
        match (left.first(), right.first()) {
            (None, None) => return a.cmp(b),
            (None, Some(_)) => return Ordering::Less,
            (Some(_), None) => return Ordering::Greater,
            (Some(x), Some(y)) if x.is_ascii_digit() && y.is_ascii_digit() => {
                let (x, rest_left) = split_number(left);
                let (y, rest_right) = split_number(right);
                // Without leading zeros the longer run is the larger number.
                let order = x.len().cmp(&y.len()).then_with(|| x.cmp(y));
                if order != Ordering::Equal {
                    return order;
                }
                (left, right) = (rest_left, rest_right);
            }
            (Some(x), Some(y)) if x != y => return x.cmp(y),
            _ => (left, right) = (&left[1..], &right[1..]),
        }
    }
}

fn split_number(text: &[u8]) -> (&[u8], &[u8]) {
    let end = text
        .iter()
        .position(|byte| !byte.is_ascii_digit())
        .unwrap_or(text.len());
    let (digits, rest) = text.split_at(end);
    let zeros = digits.iter().take_while(|&&byte| byte == b'0').count();
    (&digits[zeros..], rest)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn numbers_in_names_compare_as_numbers() {
        for (less, more) in [
            ("n2", "n10"),
            ("n", "n0"),
            ("rack-9-node-10", "rack-10-node-2"),
            ("a1b", "a1c"),
            ("n01", "n1"),
            ("99999999999999999999998", "99999999999999999999999"),
        ] {
            assert_eq!(natural(less, more), Ordering::Less, "{less} {more}");
            assert_eq!(natural(more, less), Ordering::Greater, "{more} {less}");
        }
        assert_eq!(natural("n1", "n1"), Ordering::Equal);
    }
}
