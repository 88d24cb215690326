//! The life cycle of a gang as a pure function: (state, event) -> (state, commands).

/// Where a gang is in its life.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Hash, PartialOrd, Ord)]
#[cfg_attr(feature = "serde", derive(serde::Serialize, serde::Deserialize))]
#[cfg_attr(feature = "serde", serde(rename_all = "kebab-case"))]
pub enum Phase {
    /// Members are missing. Holds nothing.
    #[default]
    Gathering,
    /// Complete enough to be tried. Holds nothing; the group clock runs.
    Queued,
    /// A plan exists and its room is held.
    Planned,
    /// Members are being bound, pod by pod.
    Binding,
    /// The minimum is met.
    Running,
    /// The minimum was met and is not any more, or binding ended short of it; a deadline runs.
    Degraded,
    /// Over: see [`End`].
    Ended(End),
}

/// How a gang ended.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, PartialOrd, Ord)]
#[cfg_attr(feature = "serde", derive(serde::Serialize, serde::Deserialize))]
#[cfg_attr(feature = "serde", serde(rename_all = "kebab-case"))]
pub enum End {
    /// Its members ended well.
    Completed,
    /// Its policy gave up on it.
    Failed,
    /// Its object or its last member was deleted.
    Deleted,
}
