//! What a reason must say.
//!
//! Data enters through serde as [`ReasonTest`] and is compared with a reason's facts.

use std::collections::BTreeMap;

use gangline::explain::{Cause, Reason, Shortfall};
use serde::Deserialize;

use super::{super::value::Count, Differences, level_label};

/// What a reason must say.
#[derive(Clone, Debug, Default, Deserialize)]
#[serde(deny_unknown_fields, default)]
pub struct ReasonTest {
    /// Its code.
    pub code: Option<String>,
    /// Part of its line for people.
    pub message: Option<String>,
    /// What is short, to the number.
    pub shortfall: Option<ShortfallTest>,
    /// The level that binds.
    pub level: Option<String>,
    /// How many members fit in the best domain of that level.
    pub best_fits: Option<Count>,
    /// How many nodes failed alone, by cause.
    pub causes: BTreeMap<Cause, Count>,
}

/// What a shortfall must say; what is absent may be anything.
#[derive(Clone, Debug, Default, Deserialize)]
#[serde(deny_unknown_fields, default)]
pub struct ShortfallTest {
    /// The resource.
    pub resource: Option<String>,
    /// How much is needed.
    pub needed: Option<Count>,
    /// How much is free.
    pub free: Option<Count>,
    /// How much is free in all, small pieces included.
    pub scattered: Option<Count>,
    /// The difference of needed and free.
    pub missing: Option<Count>,
}

impl From<String> for ReasonTest {
    fn from(code: String) -> Self {
        Self {
            code: Some(code),
            ..Self::default()
        }
    }
}

impl ReasonTest {
    pub(super) fn check(&self, reason: Option<&Reason>, differences: &mut Differences) {
        let Some(reason) = reason else {
            differences
                .0
                .push("reason: expected one, there is none".to_owned());
            return;
        };
        differences.equal("reason", self.code.as_deref(), reason.code());
        let line = reason.to_string();
        if let Some(part) = self.message.as_deref().filter(|part| !line.contains(part)) {
            differences
                .0
                .push(format!("reason: expected to say {part:?}, says {line:?}"));
        }
        let (shortfall, level, best, causes) = match innermost(reason) {
            Reason::DoesNotFit {
                shortfall,
                level,
                best_domain,
                causes,
                ..
            } => (
                shortfall.as_ref(),
                level.as_deref(),
                best_domain.as_ref(),
                causes.as_slice(),
            ),
            _ => (None, None, None, &[][..]),
        };
        for (cause, count) in &self.causes {
            let nodes = causes.iter().filter(|known| known.cause == *cause);
            let nodes = nodes.map(|known| i64::from(known.nodes)).sum();
            differences.count(&format!("nodes \"{cause}\""), Some(count), nodes);
        }
        if let Some(test) = &self.shortfall {
            test.check(shortfall, differences);
        }
        let expected = self.level.as_deref().map(level_label);
        differences.equal("level", expected.as_deref(), level.unwrap_or("none"));
        let fits = best.map_or(0, |best| i64::from(best.fits));
        differences.count("fits in the best domain", self.best_fits.as_ref(), fits);
    }
}

/// The reason at the end of a chain of siblings.
fn innermost(reason: &Reason) -> &Reason {
    match reason {
        Reason::WaitsForSibling { because, .. } | Reason::Surplus { because } => innermost(because),
        reason => reason,
    }
}

impl ShortfallTest {
    fn check(&self, shortfall: Option<&Shortfall>, differences: &mut Differences) {
        let Some(shortfall) = shortfall else {
            differences
                .0
                .push("shortfall: expected one, there is none".to_owned());
            return;
        };
        differences.equal("short of", self.resource.as_deref(), &shortfall.resource);
        differences.count("needed", self.needed.as_ref(), shortfall.needed);
        differences.count("free", self.free.as_ref(), shortfall.free);
        differences.count("scattered", self.scattered.as_ref(), shortfall.scattered);
        let missing = shortfall.needed.saturating_sub(shortfall.free);
        differences.count("missing", self.missing.as_ref(), missing);
    }
}
