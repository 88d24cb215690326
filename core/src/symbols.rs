//! Names as small integers: label keys and values, resource names, node names.
//!
//! A symbol is only ever compared for equality; whatever needs an order compares the text.

use alloc::{sync::Arc, vec::Vec};

use crate::hash::Map;

/// A name. Equal symbols of one table are equal texts.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub(crate) struct Symbol(pub(crate) u32);

/// The table of names. Grows with distinct names, never shrinks.
#[derive(Clone, Debug, Default)]
pub(crate) struct Symbols {
    by_text: Map<Arc<str>, Symbol>,
    texts: Vec<Arc<str>>,
}

impl Symbols {
    /// The symbol of a text, made if new.
    pub(crate) fn intern(&mut self, text: &str) -> Symbol {
        if let Some(&symbol) = self.by_text.get(text) {
            return symbol;
        }
        let symbol = Symbol(self.texts.len() as u32);
        let text: Arc<str> = text.into();
        self.texts.push(text.clone());
        self.by_text.insert(text, symbol);
        symbol
    }

    /// The symbol of a text, if anybody ever named it.
    pub(crate) fn get(&self, text: &str) -> Option<Symbol> {
        self.by_text.get(text).copied()
    }

    /// The text of a symbol.
    pub(crate) fn text(&self, symbol: Symbol) -> &str {
        self.texts.get(symbol.0 as usize).map_or("", |text| text)
    }
}
