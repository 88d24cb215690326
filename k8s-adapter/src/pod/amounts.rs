//! Amounts by resource name while they are being added up, in exact thousandths.

use crate::{
    api::{ResourceList, ResourceRequirements},
    problem::{FieldPath, Problems},
    quantity::Quantity,
};

/// Sums by name. Pods name two to five resources, so a list beats a tree.
#[derive(Clone, Debug, Default)]
pub(super) struct Amounts<'a>(Vec<(&'a str, i128)>);

impl<'a> Amounts<'a> {
    pub(super) fn get(&self, name: &str) -> i128 {
        self.0
            .iter()
            .find(|(held, _)| *held == name)
            .map_or(0, |(_, amount)| *amount)
    }

    pub(super) fn is_empty(&self) -> bool {
        self.0.is_empty()
    }

    pub(super) fn iter(&self) -> impl Iterator<Item = (&'a str, i128)> {
        self.0.iter().copied()
    }

    pub(super) fn set(&mut self, name: &'a str, amount: i128) {
        *self.slot(name) = amount;
    }

    /// Adds all of `other`.
    pub(super) fn add(&mut self, other: &Amounts<'a>) {
        for (name, amount) in other.iter() {
            // Single amounts are below 2^74, so it takes 2^53 of them to get here.
            let slot = self.slot(name);
            *slot = slot.saturating_add(amount);
        }
    }

    /// Raises each amount to that of `other`.
    pub(super) fn raise_to(&mut self, other: &Amounts<'a>) {
        for (name, amount) in other.iter() {
            let slot = self.slot(name);
            *slot = amount.max(*slot);
        }
    }

    /// Adds one quantity and gives its amount; notes it when it is no number.
    pub(super) fn add_quantity(
        &mut self,
        name: &'a str,
        quantity: &Quantity,
        field: &FieldPath<'_>,
        problems: &mut Problems,
    ) -> Option<i128> {
        match quantity.milli() {
            Ok(amount) => {
                let slot = self.slot(name);
                *slot = slot.saturating_add(amount);
                Some(amount)
            }
            Err(error) => {
                problems.note("InvalidQuantity", field, error);
                None
            }
        }
    }

    /// Adds a list of quantities.
    pub(super) fn add_list(
        &mut self,
        list: &'a ResourceList,
        path: &FieldPath<'_>,
        problems: &mut Problems,
    ) {
        for (name, quantity) in list.iter() {
            self.add_quantity(name, quantity, &path.key(name), problems);
        }
    }

    /// Adds a container's requests, and its limits where it has no request.
    pub(super) fn add_requirements(
        &mut self,
        requirements: &'a ResourceRequirements,
        path: &FieldPath<'_>,
        problems: &mut Problems,
    ) {
        let requests = path.name("requests");
        for (name, quantity) in requirements.requests.iter() {
            self.add_quantity(name, quantity, &requests.key(name), problems);
        }
        let limits = path.name("limits");
        for (name, quantity) in requirements.limits.iter() {
            if !requirements.requests.contains_key(name) {
                self.add_quantity(name, quantity, &limits.key(name), problems);
            }
        }
    }

    fn slot(&mut self, name: &'a str) -> &mut i128 {
        let position = self.0.iter().position(|(held, _)| *held == name);
        let position = position.unwrap_or_else(|| {
            self.0.push((name, 0));
            self.0.len() - 1
        });
        &mut self.0[position].1
    }
}
