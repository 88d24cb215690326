//! One link between two cards, or between a card and a network card.

use alloc::string::String;
use core::{cmp::Ordering, fmt, str::FromStr};

use super::LinkError;

/// One direction of one NVLink in GB/s, from Volta to Hopper.
pub const NVLINK_GIGABYTES_PER_SECOND: u16 = 25;

/// One direction of one NVLink in GB/s by the name of the product: 20 for the P100, 50 for
/// Blackwell, [`NVLINK_GIGABYTES_PER_SECOND`] for all else.
///
/// Source: vendors' data sheets (general knowledge, not measured).
pub fn nvlink_gigabytes_per_second(product: &str) -> u16 {
    let names = |parts: &[&str]| parts.iter().any(|part| product.contains(part));
    if names(&["P100"]) {
        20
    } else if names(&["B100", "B200", "B300"]) {
        50
    } else {
        NVLINK_GIGABYTES_PER_SECOND
    }
}

/// How two cards reach each other, by the classes of `nvidia-smi topo -m`. Worse is less:
/// `SYS < NODE < PHB < PXB < PIX < XGMI3 < XGMI1 < NV1 < NV18`.
///
/// As text it is the class as `nvidia-smi` prints it (`SYS`, `NV12`); AMD's links, which that
/// program does not know, are `XGMI` and the number of hops.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
#[cfg_attr(feature = "serde", derive(serde::Serialize, serde::Deserialize))]
#[cfg_attr(feature = "serde", serde(try_from = "String", into = "String"))]
pub enum Link {
    /// `SYS`: over PCIe and the link between NUMA nodes.
    System,
    /// `NODE`: over PCIe and the link between host bridges of one NUMA node.
    Node,
    /// `PHB`: over PCIe and one host bridge.
    HostBridge,
    /// `PXB`: over several PCIe switches, no host bridge.
    MultiSwitch,
    /// `PIX`: over one PCIe switch at most.
    SingleSwitch,
    /// `XGMI#`: over AMD's links.
    Xgmi {
        /// Hops from card to card, `1..=`[`Link::MAX_HOPS`].
        hops: u8,
    },
    /// `NV#`: over as many bonded NVLinks, directly or through NVSwitch,
    /// `1..=`[`Link::MAX_NVLINKS`].
    Nvlink(u8),
}

impl Link {
    /// NVLinks of one pair, at most (Hopper and Blackwell boards).
    pub const MAX_NVLINKS: u8 = 18;
    /// XGMI hops, at most.
    pub const MAX_HOPS: u8 = 9;
    /// What the text of a link may be.
    pub const ACCEPTED: &str = "SYS, NODE, PHB, PXB, PIX, NV1 to NV18, XGMI1 to XGMI9";

    /// What the text of a PCIe link may be.
    pub const ACCEPTED_PCIE: &str = "SYS, NODE, PHB, PXB, PIX";

    /// Whether the pair is joined by NVLink or XGMI, so that peer-to-peer works. XGMI is routed
    /// within a hive, so any number of hops does; of NVLink only direct ones and those through a
    /// switch are ever listed.
    pub const fn is_fabric(self) -> bool {
        matches!(self, Self::Nvlink(_) | Self::Xgmi { .. })
    }

    /// Whether it is PCIe alone.
    pub const fn is_pcie(self) -> bool {
        !self.is_fabric()
    }

    /// One direction in GB/s for a speed of one NVLink (see [`nvlink_gigabytes_per_second`]);
    /// `None` for PCIe, whose generation the class does not tell. XGMI is taken as 50 a hop.
    pub const fn gigabytes_per_second(self, one_nvlink: u16) -> Option<u16> {
        match self {
            Self::Nvlink(links) => Some(one_nvlink.saturating_mul(links as u16)),
            Self::Xgmi { hops } if hops > 0 => Some(50 / hops as u16),
            _ => None,
        }
    }

    /// The link, when its number is possible.
    pub(super) const fn checked(self) -> Option<Self> {
        match self {
            Self::Nvlink(links) if links == 0 || links > Self::MAX_NVLINKS => None,
            Self::Xgmi { hops } if hops == 0 || hops > Self::MAX_HOPS => None,
            link => Some(link),
        }
    }

    /// Ascends with quality, and is different for different links.
    const fn rank(self) -> u16 {
        match self {
            Self::System => 0,
            Self::Node => 1,
            Self::HostBridge => 2,
            Self::MultiSwitch => 3,
            Self::SingleSwitch => 4,
            Self::Xgmi { hops } => 0x1ff - hops as u16,
            Self::Nvlink(links) => 0x200 + links as u16,
        }
    }
}

impl Ord for Link {
    fn cmp(&self, other: &Self) -> Ordering {
        self.rank().cmp(&other.rank())
    }
}

impl PartialOrd for Link {
    fn partial_cmp(&self, other: &Self) -> Option<Ordering> {
        Some(self.cmp(other))
    }
}

impl fmt::Display for Link {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::System => formatter.pad("SYS"),
            Self::Node => formatter.pad("NODE"),
            Self::HostBridge => formatter.pad("PHB"),
            Self::MultiSwitch => formatter.pad("PXB"),
            Self::SingleSwitch => formatter.pad("PIX"),
            Self::Xgmi { hops } => write!(formatter, "XGMI{hops}"),
            Self::Nvlink(links) => write!(formatter, "NV{links}"),
        }
    }
}

/// Reads a class as `nvidia-smi` prints it; `SOC` and `PSB` of old drivers are `SYS` and `PIX`.
impl FromStr for Link {
    type Err = LinkError;

    fn from_str(text: &str) -> Result<Self, LinkError> {
        let number = |digits: &str| -> Option<u8> {
            let plain = digits.bytes().all(|byte| byte.is_ascii_digit());
            (plain && !digits.starts_with('0')).then_some(())?;
            digits.parse().ok()
        };
        let link = match text {
            "SYS" | "SOC" => Some(Self::System),
            "NODE" => Some(Self::Node),
            "PHB" => Some(Self::HostBridge),
            "PXB" => Some(Self::MultiSwitch),
            "PIX" | "PSB" => Some(Self::SingleSwitch),
            _ => match (text.strip_prefix("NV"), text.strip_prefix("XGMI")) {
                (Some(links), _) => number(links).map(Self::Nvlink),
                (_, Some(hops)) => number(hops).map(|hops| Self::Xgmi { hops }),
                (None, None) => None,
            },
        };
        link.and_then(Self::checked).ok_or_else(|| LinkError::Link {
            value: super::text::shortened(text),
        })
    }
}

impl From<Link> for String {
    fn from(link: Link) -> Self {
        alloc::format!("{link}")
    }
}

impl TryFrom<String> for Link {
    type Error = LinkError;

    fn try_from(text: String) -> Result<Self, LinkError> {
        text.parse()
    }
}
