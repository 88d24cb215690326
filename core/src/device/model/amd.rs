//! To be filled.
use super::CardModel;

pub(super) static MODELS: &[CardModel] = &[];
