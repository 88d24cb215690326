//! What a process needs of a card's memory besides what it declares.
//!
//! A declared amount and an [`Overhead`] go in, a [`Need`] comes out: the sum with all its terms, so
//! that an explanation can show it. [`OverheadTable::DEFAULT`] holds the project's measured defaults
//! (hardware notes, section 6.2; measured on an H200 with CUDA 13 where not said otherwise); each
//! term can be replaced. All amounts are MiB, all arithmetic is integer and saturates. Nothing here
//! asks a card anything.

/// What runs in a member besides its own data. The default is nothing: the overhead is switched off.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Hash)]
#[cfg_attr(
    feature = "serde",
    derive(serde::Serialize, serde::Deserialize),
    serde(default)
)]
pub struct Overhead {
    /// Processes with a context on the card; each pays for everything below. 0 switches it all off.
    pub processes: u16,
    /// Whether a process loads a framework such as PyTorch: kernels, cuBLAS, cuDNN.
    pub framework: bool,
    /// What the communicators of a process span.
    pub communicator: Communicator,
    /// How many communicators a process has; counts only between nodes, where each costs more, and
    /// 0 counts as 1.
    pub communicators: u16,
    /// Whether a process is an LLM engine, which keeps graphs and some slack.
    pub engine: bool,
}

impl Overhead {
    /// Nothing: what is declared is all that is needed.
    pub const NONE: Self = Self {
        processes: 0,
        framework: false,
        communicator: Communicator::None,
        communicators: 0,
        engine: false,
    };

    /// One process with a context and nothing else.
    pub const PROCESS: Self = Self {
        processes: 1,
        ..Self::NONE
    };
}

/// What a collective communicator (NCCL, RCCL) of a process spans.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Hash, PartialOrd, Ord)]
#[cfg_attr(feature = "serde", derive(serde::Serialize, serde::Deserialize))]
pub enum Communicator {
    /// There is none.
    #[default]
    None,
    /// No other rank on the node.
    Alone,
    /// Two ranks on the node.
    Two,
    /// More than two ranks on the node.
    Many,
    /// Ranks on several nodes.
    MultiNode,
}

/// What a process runs in.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, PartialOrd, Ord)]
#[cfg_attr(feature = "serde", derive(serde::Serialize, serde::Deserialize))]
pub enum Inside {
    /// A whole card, or a card shared by time slices: every process pays its context.
    Card,
    /// A MIG instance.
    MigInstance,
    /// A client of MPS.
    MpsClient,
}

/// What each part costs, in MiB.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
#[cfg_attr(
    feature = "serde",
    derive(serde::Serialize, serde::Deserialize),
    serde(default)
)]
pub struct OverheadTable {
    /// A context on a card of compute capability 9 and up, or of unknown capability.
    pub context_mib: u32,
    /// A context at 8.x.
    pub context_8_mib: u32,
    /// A context at 7.x and below.
    pub context_7_mib: u32,
    /// A context in a MIG instance.
    pub context_mig_mib: u32,
    /// A client of MPS.
    pub context_mps_mib: u32,
    /// The server of MPS, once for each card.
    pub mps_server_mib: u32,
    /// A framework's kernels and libraries.
    pub framework_mib: u32,
    /// A communicator without peers on the node.
    pub communicator_alone_mib: u32,
    /// A communicator with two ranks on the node.
    pub communicator_two_mib: u32,
    /// A communicator with more than two ranks on the node.
    pub communicator_many_mib: u32,
    /// The first communicator between nodes.
    pub communicator_multi_node_mib: u32,
    /// Each further communicator between nodes.
    pub communicator_further_mib: u32,
    /// Graphs and slack of an LLM engine, in percent of what it declares.
    pub engine_percent: u32,
    /// The least that an LLM engine keeps.
    pub engine_least_mib: u32,
    /// What the driver keeps of a whole card, in percent.
    pub reserved_percent: u32,
    /// The least that the driver keeps of a whole card.
    pub reserved_least_mib: u32,
    /// The most that the driver keeps of a whole card.
    pub reserved_most_mib: u32,
    /// What an idle MIG instance holds.
    pub reserved_mig_mib: u32,
}

/// The memory that a member needs, term by term, in MiB.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Hash)]
#[cfg_attr(feature = "serde", derive(serde::Serialize, serde::Deserialize))]
pub struct Need {
    /// What the member declared.
    pub declared: u32,
    /// Contexts of all its processes.
    pub context: u32,
    /// Frameworks of all its processes.
    pub framework: u32,
    /// Communicators of all its processes.
    pub communicator: u32,
    /// Graphs and slack of LLM engines.
    pub engine: u32,
    /// The sum, at most [`u32::MAX`].
    pub total: u32,
}

impl OverheadTable {
    /// The measured defaults; those for compute capability 8.x and below and for MIG are scaled from
    /// them.
    pub const DEFAULT: Self = Self {
        context_mib: 550,
        context_8_mib: 420,
        context_7_mib: 320,
        context_mig_mib: 256,
        context_mps_mib: 330,
        mps_server_mib: 64,
        framework_mib: 220,
        communicator_alone_mib: 128,
        communicator_two_mib: 560,
        communicator_many_mib: 700,
        communicator_multi_node_mib: 1_024,
        communicator_further_mib: 512,
        engine_percent: 2,
        engine_least_mib: 512,
        reserved_percent: 1,
        reserved_least_mib: 512,
        reserved_most_mib: 1_024,
        reserved_mig_mib: 64,
    };

    /// What a member needs that declares an amount, on a card of a compute capability (major, minor).
    /// An unknown capability counts as the most expensive one.
    pub const fn need_mib(
        &self,
        declared: u32,
        overhead: Overhead,
        inside: Inside,
        compute_capability: Option<(u8, u8)>,
    ) -> Need {
        let processes = overhead.processes as u32;
        let context = self.context_mib_in(inside, compute_capability);
        let framework = if overhead.framework {
            self.framework_mib
        } else {
            0
        };
        let engine = if overhead.engine && processes > 0 {
            let share = percent(declared, self.engine_percent);
            if share > self.engine_least_mib {
                share
            } else {
                self.engine_least_mib
            }
        } else {
            0
        };
        let need = Need {
            declared,
            context: context.saturating_mul(processes),
            framework: framework.saturating_mul(processes),
            communicator: self.communicator_mib(overhead).saturating_mul(processes),
            engine,
            total: 0,
        };
        Need {
            total: declared
                .saturating_add(need.context)
                .saturating_add(need.framework)
                .saturating_add(need.communicator)
                .saturating_add(need.engine),
            ..need
        }
    }

    /// What is left for members of a card or instance with this much memory. Below MPS the card also
    /// pays the server.
    pub const fn usable_mib(&self, total: u32, inside: Inside) -> u32 {
        let mut reserved = percent(total, self.reserved_percent);
        if reserved > self.reserved_most_mib {
            reserved = self.reserved_most_mib;
        }
        if reserved < self.reserved_least_mib {
            reserved = self.reserved_least_mib;
        }
        let kept = match inside {
            Inside::Card => reserved,
            Inside::MigInstance => self.reserved_mig_mib,
            Inside::MpsClient => reserved.saturating_add(self.mps_server_mib),
        };
        total.saturating_sub(kept)
    }

    const fn context_mib_in(&self, inside: Inside, compute_capability: Option<(u8, u8)>) -> u32 {
        match (inside, compute_capability) {
            (Inside::MigInstance, _) => self.context_mig_mib,
            (Inside::MpsClient, _) => self.context_mps_mib,
            (Inside::Card, Some((8, _))) => self.context_8_mib,
            (Inside::Card, Some((..=7, _))) => self.context_7_mib,
            (Inside::Card, _) => self.context_mib,
        }
    }

    const fn communicator_mib(&self, overhead: Overhead) -> u32 {
        match overhead.communicator {
            Communicator::None => 0,
            Communicator::Alone => self.communicator_alone_mib,
            Communicator::Two => self.communicator_two_mib,
            Communicator::Many => self.communicator_many_mib,
            Communicator::MultiNode => {
                let further = overhead.communicators.saturating_sub(1) as u32;
                self.communicator_multi_node_mib
                    .saturating_add(self.communicator_further_mib.saturating_mul(further))
            }
        }
    }
}

impl Default for OverheadTable {
    fn default() -> Self {
        Self::DEFAULT
    }
}

/// A part of an amount in percent, rounded up.
const fn percent(amount: u32, percent: u32) -> u32 {
    let part = (amount as u64 * percent as u64).div_ceil(100);
    if part > u32::MAX as u64 {
        u32::MAX
    } else {
        part as u32
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const HOPPER: Option<(u8, u8)> = Some((9, 0));

    fn total(overhead: Overhead, inside: Inside, capability: Option<(u8, u8)>) -> u32 {
        OverheadTable::DEFAULT
            .need_mib(20_480, overhead, inside, capability)
            .total
    }

    #[test]
    fn nothing_is_added_when_it_is_switched_off() {
        assert_eq!(total(Overhead::default(), Inside::Card, HOPPER), 20_480);
        let off = Overhead {
            processes: 0,
            framework: true,
            communicator: Communicator::Many,
            communicators: 3,
            engine: true,
        };
        assert_eq!(total(off, Inside::Card, HOPPER), 20_480);
    }

    #[test]
    fn a_context_costs_what_its_place_and_its_card_say() {
        let context = |inside, capability| total(Overhead::PROCESS, inside, capability) - 20_480;
        assert_eq!(context(Inside::Card, Some((12, 0))), 550);
        assert_eq!(context(Inside::Card, HOPPER), 550);
        assert_eq!(context(Inside::Card, Some((8, 6))), 420);
        assert_eq!(context(Inside::Card, Some((7, 5))), 320);
        assert_eq!(context(Inside::Card, None), 550, "the most expensive");
        assert_eq!(context(Inside::MigInstance, HOPPER), 256);
        assert_eq!(context(Inside::MpsClient, HOPPER), 330);
    }

    #[test]
    fn the_terms_add_up_for_each_process() {
        let overhead = Overhead {
            processes: 2,
            framework: true,
            communicator: Communicator::MultiNode,
            communicators: 3,
            engine: false,
        };
        let need = OverheadTable::DEFAULT.need_mib(1_000, overhead, Inside::Card, HOPPER);
        let expected = Need {
            declared: 1_000,
            context: 2 * 550,
            framework: 2 * 220,
            communicator: 2 * (1_024 + 2 * 512),
            engine: 0,
            total: 1_000 + 1_100 + 440 + 4_096,
        };
        assert_eq!(need, expected);
    }

    /// PyTorch with NCCL and one rank took about 1300 MiB on an H200.
    #[test]
    fn a_framework_with_peers_needs_about_what_was_measured() {
        let overhead = Overhead {
            framework: true,
            communicator: Communicator::Two,
            ..Overhead::PROCESS
        };
        let need = OverheadTable::DEFAULT.need_mib(0, overhead, Inside::Card, HOPPER);
        assert!(need.total.abs_diff(1_300) <= 100, "{need:?}");
    }

    #[test]
    fn an_engine_keeps_two_percent_and_at_least_half_a_gibibyte() {
        let overhead = Overhead {
            engine: true,
            ..Overhead::PROCESS
        };
        let engine = |declared| {
            let table = OverheadTable::DEFAULT;
            table
                .need_mib(declared, overhead, Inside::Card, HOPPER)
                .engine
        };
        assert_eq!(
            (engine(1_000), engine(140_000), engine(140_001)),
            (512, 2_800, 2_801)
        );
    }

    #[test]
    fn what_is_usable_is_bounded_on_both_sides() {
        let usable = |total, inside| OverheadTable::DEFAULT.usable_mib(total, inside);
        assert_eq!(usable(143_771, Inside::Card), 143_771 - 1_024);
        assert_eq!(usable(81_559, Inside::Card), 81_559 - 816);
        assert_eq!(usable(15_360, Inside::Card), 15_360 - 512);
        assert_eq!(usable(15_360, Inside::MpsClient), 15_360 - 576);
        assert_eq!(usable(16_384, Inside::MigInstance), 16_320);
        assert_eq!(usable(0, Inside::Card), 0);
    }

    #[test]
    fn hostile_amounts_saturate() {
        let overhead = Overhead {
            processes: u16::MAX,
            framework: true,
            communicator: Communicator::MultiNode,
            communicators: u16::MAX,
            engine: true,
        };
        let table = OverheadTable {
            context_mib: u32::MAX,
            engine_percent: u32::MAX,
            reserved_percent: u32::MAX,
            ..OverheadTable::DEFAULT
        };
        let need = table.need_mib(u32::MAX, overhead, Inside::Card, None);
        assert_eq!(
            (need.context, need.engine, need.total),
            (u32::MAX, u32::MAX, u32::MAX)
        );
        assert_eq!(table.usable_mib(u32::MAX, Inside::Card), u32::MAX - 1_024);
        let odd = OverheadTable {
            reserved_least_mib: u32::MAX,
            ..table
        };
        assert_eq!(odd.usable_mib(1_000, Inside::MpsClient), 0);
    }
}
