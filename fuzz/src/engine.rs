//! The engine under any sequence of outside events, four bytes each; see `events`.

#[path = "../../core/tests/support/events.rs"]
pub(crate) mod events;

/// The promises of the engine hold after each event.
pub fn engine(data: &[u8]) {
    events::run(data.as_chunks().0);
}
