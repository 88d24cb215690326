//! Label requirements on any label value: no panic, and the operators keep their relations.

use arbitrary::{Arbitrary, Unstructured};
use gangline::request::selector::{Operator, Requirement};

/// A requirement's values and the label it meets.
#[derive(Arbitrary)]
struct Case {
    values: Vec<String>,
    label: Option<String>,
}

/// Opposite operators never agree, and both orders never hold at once.
pub fn selectors(data: &[u8]) {
    let Ok(case) = Case::arbitrary_take_rest(Unstructured::new(data)) else {
        return;
    };
    let accepts = |operator| {
        Requirement {
            key: String::new(),
            operator,
            values: case.values.clone(),
        }
        .accepts(case.label.as_deref())
    };
    assert_ne!(accepts(Operator::In), accepts(Operator::NotIn));
    assert_ne!(accepts(Operator::Exists), accepts(Operator::DoesNotExist));
    assert!(!(accepts(Operator::Gt) && accepts(Operator::Lt)));
    assert!(!accepts(Operator::In) || accepts(Operator::Exists));
}
