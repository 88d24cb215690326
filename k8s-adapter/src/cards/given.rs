//! The devices that were chosen for a pod, as `gangline run` writes them on it when it binds it.
//!
//! Once it is bound, nothing else tells which of a node's devices were meant for a pod: a scheduler that
//! starts anew, and `gangline plan` on a dump, read them here. `0,4-7` are whole cards; of parts each
//! is `CARD:WHAT`, where `WHAT` is `share`, `replica` or, of a MIG instance, the vendor's number of its
//! profile and where it starts: `2:19@4`. A part whose card nobody knows has `?` and its place in the
//! node's list: `?:3`.

use gangline::device::{Devices, Slice};

use super::{ANNOTATIONS, card_numbers};
use crate::{annotations::DEVICES, api::Labels, problem::Problems, quantity::excerpt};

/// The devices as the annotation's value; none for a pod that has none.
#[cfg(any(feature = "live", test))]
pub(crate) fn written(devices: &Devices) -> Option<String> {
    if devices.is_empty() {
        return None;
    }
    let parts = devices.slices().map(|slice| match slice {
        Slice {
            card: Slice::NO_CARD,
            profile,
            ..
        } => format!("?:{profile}"),
        Slice {
            card,
            profile: Slice::SHARE,
            ..
        } => format!("{card}:share"),
        Slice {
            card,
            profile: Slice::REPLICA,
            ..
        } => format!("{card}:replica"),
        Slice {
            card,
            profile,
            start,
        } => format!("{card}:{profile}@{start}"),
    });
    let parts: Vec<String> = parts.collect();
    Some(if parts.is_empty() {
        devices.cards.to_string()
    } else {
        parts.join(",")
    })
}

/// The devices that a bound pod's annotations tell of.
pub(crate) fn read(annotations: &Labels, problems: &mut Problems) -> Option<Devices> {
    let text = annotations.get(DEVICES)?;
    let devices = devices(text);
    if devices.is_none() {
        problems.note(
            "InvalidAnnotation",
            &ANNOTATIONS.key(DEVICES),
            format_args!(
                "{:?}; accepted: cards such as 0,4-7 or parts such as 2:19@4, 2:share, 2:replica, ?:3",
                excerpt(text)
            ),
        );
    }
    devices
}

fn devices(text: &str) -> Option<Devices> {
    if !text.contains(':') {
        return card_numbers(text).map(Devices::of_cards);
    }
    let mut devices = Devices::NONE;
    for part in text.split(',') {
        let (card, what) = part.split_once(':')?;
        let slice = match (card, what) {
            ("?", place) => Slice {
                card: Slice::NO_CARD,
                profile: place.parse().ok()?,
                start: 0,
            },
            (card, "share") => of_card(card, Slice::SHARE, 0)?,
            (card, "replica") => of_card(card, Slice::REPLICA, 0)?,
            (card, what) => {
                let (profile, start) = what.split_once('@')?;
                let profile = profile.parse().ok()?;
                if profile >= Slice::SHARE {
                    return None;
                }
                of_card(card, profile, start.parse().ok()?)?
            }
        };
        if !devices.push(slice) {
            return None;
        }
    }
    Some(devices)
}

fn of_card(card: &str, profile: u8, start: u8) -> Option<Slice> {
    let card = card_numbers(card)?;
    let mut cards = card.iter();
    let card = u8::try_from(cards.next()?).ok()?;
    cards.next().is_none().then_some(Slice {
        card,
        profile,
        start,
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_is_written_is_read_again() {
        for text in [
            "0",
            "0,4-7",
            "63",
            "2:19@4",
            "0:share,1:share",
            "5:replica",
            "?:3,?:3",
            "0:9@0,0:9@4,1:19@6",
        ] {
            let devices = devices(text).expect(text);
            assert_eq!(written(&devices).as_deref(), Some(text));
        }
        assert_eq!(written(&Devices::NONE), None);
    }

    #[test]
    fn what_is_no_list_of_devices_is_refused() {
        for text in [
            "",
            "x",
            "64",
            "4-0",
            "0:",
            ":19@4",
            "0:19",
            "0:19@",
            "0:255@0",
            "0-1:share",
            "0,1:share",
            "0:share,0:share,0:share,0:share,0:share,0:share,0:share,0:share,0:share",
        ] {
            assert_eq!(devices(text), None, "{text}");
        }
    }
}
