//! The cards of one node by themselves: who gets which, without a cluster, groups or queues.
//!
//! For simulators, and for tests of the device layer alone. Requests enter, exact devices leave,
//! chosen by the functions that the engine's search uses. Never moves what was given, and never
//! gives what is taken.

use alloc::{string::String, sync::Arc, vec::Vec};

use super::{
    CardAsk, Devices, Inventory,
    ask::{CardRequestError, check_request},
    choose::choose,
    hardware::{Hardware, NodeCardsError, check_cards},
};
use crate::{bits::CardSet, cluster::spec::NodeCards, request::CardRequest, symbols::Symbols};

/// The node's only kind of card.
const KIND: u16 = 0;
/// The kind of requests that are for other cards.
const OTHER_KIND: u16 = 1;

/// The cards of one kind on one node, and what was given of them.
///
/// ```
/// use gangline::{
///     bits::CardSet,
///     cluster::NodeCards,
///     device::NodeAllocator,
///     request::CardRequest,
/// };
///
/// let cards = NodeCards {
///     kind: "nvidia.com/gpu".into(),
///     count: 4,
///     ..NodeCards::default()
/// };
/// let mut node = NodeAllocator::new(&cards)?;
/// let pair = CardRequest::whole("nvidia.com/gpu", 2);
/// let first = node.allocate(&pair)?.expect("four cards are free");
/// assert_eq!(first.cards, CardSet(0b0011));
/// assert_eq!(node.capacity(&pair)?, 1);
/// assert!(node.release(&pair, &first));
/// assert_eq!(node.capacity(&pair)?, 2);
/// # Ok::<(), Box<dyn std::error::Error>>(())
/// ```
#[derive(Clone, Debug)]
pub struct NodeAllocator {
    kind: String,
    inventory: Inventory,
    /// Words of share groups and of owners of cards.
    words: Symbols,
    given: Vec<(CardAsk, Devices)>,
}

impl NodeAllocator {
    /// All cards free. Errors: what [`check_cards`] refuses.
    pub fn new(cards: &NodeCards) -> Result<Self, NodeCardsError> {
        check_cards(cards)?;
        let hardware = Arc::new(Hardware::new(0, cards));
        let loose: Vec<u32> = cards.slices.values().copied().collect();
        let kinds = [(
            KIND,
            hardware,
            cards.count,
            (cards.unhealthy, cards.closed),
            loose.as_slice(),
        )];
        Ok(Self {
            kind: cards.kind.clone(),
            inventory: Inventory::new(kinds),
            words: Symbols::default(),
            given: Vec::new(),
        })
    }

    /// How many members with this request fit at once: exact. Errors: what [`check_request`] refuses.
    pub fn capacity(&mut self, request: &CardRequest) -> Result<u32, CardRequestError> {
        let ask = self.ask(request)?;
        Ok(self.inventory.capacity(&ask))
    }

    /// Gives a member its devices, the choice that destroys least; `None` if it does not fit. Cards
    /// without identity, above [`CardSet::CAPACITY`], are given without saying which. Errors: what
    /// [`check_request`] refuses.
    pub fn allocate(&mut self, request: &CardRequest) -> Result<Option<Devices>, CardRequestError> {
        let ask = self.ask(request)?;
        let found = choose(&self.inventory, &ask);
        if let Some(devices) = found {
            self.inventory.take(&ask, &devices);
            self.given.push((ask, devices));
        }
        Ok(found)
    }

    /// Takes back what [`allocate`](Self::allocate) gave for a request. False, and nothing changes, if
    /// it gave no such thing. O(what is given).
    pub fn release(&mut self, request: &CardRequest, devices: &Devices) -> bool {
        let same = |(ask, given): &(CardAsk, Devices)| ask.source == *request && given == devices;
        let Some(at) = self.given.iter().position(same) else {
            return false;
        };
        let (ask, devices) = self.given.swap_remove(at);
        self.inventory.give_back(&ask, &devices);
        true
    }

    /// Replaces the set of cards that must not be given to anyone. Who has one keeps it, counted.
    pub fn set_unhealthy(&mut self, cards: CardSet) {
        let closed = self.inventory.pool(KIND).map(|pool| pool.closed);
        let out = cards.union(closed.unwrap_or_default());
        self.inventory.set_unhealthy(KIND, out);
    }

    /// What is given now, in no particular order.
    pub fn given(&self) -> impl ExactSizeIterator<Item = (&CardRequest, &Devices)> {
        self.given
            .iter()
            .map(|(ask, devices)| (&ask.source, devices))
    }

    fn ask(&mut self, request: &CardRequest) -> Result<CardAsk, CardRequestError> {
        check_request(request)?;
        let kind = if request.kind == self.kind {
            KIND
        } else {
            OTHER_KIND
        };
        let mut word = |text: &str| (!text.is_empty()).then(|| self.words.intern(text));
        let (group, exclusive) = (word(&request.share_group), word(&request.exclusive));
        Ok(CardAsk::new(kind, request.clone(), group, exclusive))
    }
}
