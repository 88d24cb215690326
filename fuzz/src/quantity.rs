//! Kubernetes quantities, whatever they say: refused in one line, or a number that agrees with
//! itself.

use gangline_k8s::quantity::{Quantity, milli_to_units};

/// Units are thousandths rounded up, a plus sign and leading zeros change nothing, and a quantity
/// in an object is the same as its text.
pub fn quantity(data: &[u8]) {
    if let Ok(quantity) = serde_json::from_slice::<Quantity>(data) {
        check(quantity.text());
    }
    if let Ok(text) = std::str::from_utf8(data) {
        check(text);
    }
}

fn check(text: &str) {
    let quantity = Quantity::new(text);
    let milli = quantity.milli();
    let units = quantity.units();
    match &milli {
        Ok(milli) => {
            assert!(*milli >= 0);
            assert_eq!(units.map(i128::from), Ok(milli_to_units(*milli)));
        }
        Err(error) => {
            assert_eq!(units.as_ref(), Err(error));
            assert!(!error.to_string().contains('\n'));
        }
    }
    let written = serde_json::to_string(text).expect("any text can be written");
    assert_eq!(
        serde_json::from_str::<Quantity>(&written).ok(),
        Some(quantity)
    );
    if text.starts_with(|first: char| first.is_ascii_digit()) {
        for prefix in ["+", "0", "+000"] {
            let same = Quantity::new(format!("{prefix}{text}"));
            assert_eq!(same.milli().ok(), milli.clone().ok(), "{prefix}");
        }
    }
}
