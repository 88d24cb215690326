//! The engine with nodes whose cards are used in parts, and pods that ask, take, fail and go. The
//! steps and the promises are those of `events`; here they are chosen so that most of them are about
//! cards.

use arbitrary::{Arbitrary, Unstructured};

use super::engine::events::{self, PARTS, Step};

/// One thing that happens. Numbers say to whom and how; `events` takes what it needs of them.
#[derive(Clone, Copy, Debug, Arbitrary)]
enum Act {
    /// A node comes or is described anew, with cards in some modes.
    Node { node: u8, count: u8, modes: u8 },
    /// Cards fail, come back, or are used in another way from now on.
    Cards { node: u8, how: u8, modes: u8 },
    /// A pod asks for parts of cards, by itself or as a member.
    Ask { pod: u8, gang: u8, template: u8 },
    /// A pod asks for whole cards.
    AskWhole { pod: u8, gang: u8, template: u8 },
    /// A group that has members or will have some.
    Gang { gang: u8, shape: u8, policy: u8 },
    /// All that is ready is decided.
    Decide,
    /// Open binds are confirmed.
    Confirm { all: u8 },
    /// An open bind fails, for good or for now.
    Fail { which: u8, permanent: bool },
    /// A pod is gone, or has ended.
    Free { pod: u8, ended: bool },
    /// Somebody else binds a pod and says which devices it has.
    Taken { pod: u8, node: u8, devices: u8 },
    /// A node is gone.
    Gone { node: u8 },
    /// Time passes.
    Wait { span: u8 },
    /// The engine is stopped, and another goes on.
    Restart,
}

impl Act {
    fn step(self) -> Step {
        match self {
            Self::Node { node, count, modes } => [PARTS + 5, node, count, modes],
            Self::Cards { node, how, modes } => [PARTS + 9, node, how, modes],
            Self::Ask {
                pod,
                gang,
                template,
            } => [PARTS, pod, gang & 0x3F, template],
            Self::AskWhole {
                pod,
                gang,
                template,
            } => [7, pod, gang & 0x3F, template],
            Self::Gang {
                gang,
                shape,
                policy,
            } => [3, gang, shape, policy],
            Self::Decide => [PARTS + 14, 0, 0, 0],
            Self::Confirm { all } => [PARTS + 13, all, 1, all],
            Self::Fail { which, permanent } => [17, which, u8::from(!permanent), 0],
            Self::Free { pod, ended: false } => [10, pod, 0, 0],
            Self::Free { pod, ended: true } => [12, pod, 1, 0],
            Self::Taken { pod, node, devices } => [PARTS + 11, pod, node, devices],
            Self::Gone { node } => [2, node, 0, 0],
            Self::Wait { span } => [18, 0, span, 0],
            Self::Restart => [19, 0, 0, 0],
        }
    }
}

/// The promises of the engine hold after each act; see `events`.
pub fn parts(data: &[u8]) {
    let mut source = Unstructured::new(data);
    let mut steps: Vec<Step> = Vec::new();
    // Not `arbitrary_iter`, which stops at every other act.
    while !source.is_empty() && steps.len() < events::MOST_STEPS {
        let Ok(act) = Act::arbitrary(&mut source) else {
            break;
        };
        steps.push(act.step());
    }
    events::run(&steps);
}
