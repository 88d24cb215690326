//! The annotation that says what a member's processes take of a card besides their data.

use gangline::device::overhead::{Communicator, Overhead};

/// What [`parse`] accepts.
pub(super) const ACCEPTED: &str = "off, or a list of process, processes=N, framework, nccl, \
                                   nccl=alone, nccl=two, nccl=many, nccl=nodes, communicators=N, \
                                   engine, such as framework,nccl";

/// Reads `off`, `process`, or a list such as `processes=2,framework,nccl=nodes`. Every word but `off`
/// stands for at least one process.
pub(super) fn parse(text: &str) -> Option<Overhead> {
    if text == "off" {
        return Some(Overhead::NONE);
    }
    let mut overhead = Overhead::PROCESS;
    for word in text.split(',') {
        let (word, value) = match word.trim().split_once('=') {
            Some((word, value)) => (word, Some(value)),
            None => (word.trim(), None),
        };
        match (word, value) {
            ("process", None) => {}
            ("processes", Some(number)) => overhead.processes = at_least_one(number)?,
            ("framework", None) => overhead.framework = true,
            ("engine", None) => overhead.engine = true,
            ("nccl", None | Some("many")) => overhead.communicator = Communicator::Many,
            ("nccl", Some("alone")) => overhead.communicator = Communicator::Alone,
            ("nccl", Some("two")) => overhead.communicator = Communicator::Two,
            ("nccl", Some("nodes")) => overhead.communicator = Communicator::MultiNode,
            ("communicators", Some(number)) => overhead.communicators = at_least_one(number)?,
            _ => return None,
        }
    }
    Some(overhead)
}

fn at_least_one(text: &str) -> Option<u16> {
    text.parse().ok().filter(|number| *number > 0)
}
