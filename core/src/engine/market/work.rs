//! What the usual work asks of each kind of node, in the terms of the prices.
//!
//! A share of 20 GiB is a quarter of one card and half of another; "at least 20 GB" is one MIG profile
//! here and another there. So a member's ask is read once for each kind that could run it, and where
//! the answers differ it counts as several types of work, each expected as often as its kinds have
//! cards. Reads the cluster, adds to the mix, decides nothing.

use alloc::{string::String, vec::Vec};

use super::Market;
use crate::{
    cluster::{CPU_IX, class::ClassIx, shape::StaticFit, template::TemplateIx},
    device::{CardAsk, Hardware, Mode, Need, Part},
    engine::Scheduler,
    place::worth,
    price::{CARD_MILLI, Demand, KindSet, NodeKindIx, WorkType},
};

/// Members of a kind of work on some kinds of nodes.
struct Asked {
    demand: Demand,
    /// So many of it in one member.
    count: u32,
    kinds: KindSet,
    /// Cards of those kinds.
    cards: u64,
}

impl Scheduler {
    /// Adds what a template asks for to the mix.
    pub(super) fn add_work(
        &mut self,
        market: &mut Market,
        kinds: &[(ClassIx, NodeKindIx)],
        template: TemplateIx,
        weight: u64,
    ) {
        if weight == 0 {
            return;
        }
        let mut asked: Vec<Asked> = Vec::new();
        let mut parts = Vec::new();
        for &(class, kind) in kinds {
            let fit = self.cluster.static_fit(template, class);
            if !matches!(fit, StaticFit::Fits { .. }) {
                continue;
            }
            let class = self.cluster.classes.get(class);
            let pool = worth::main_pool(&class.cards);
            parts.clear();
            match (&self.cluster.template(template).cards, pool) {
                (None, _) => parts.push((1, Demand::None)),
                (Some(ask), Some(pool)) if pool.kind == ask.kind && pool.hardware.passes(ask) => {
                    demands(&pool.hardware, ask, &market.profiles, &mut parts);
                }
                (Some(_), _) => {}
            }
            let cards = pool.map_or(0, |pool| pool.all.len());
            let cards = u64::from(cards) * u64::from(class.count);
            for &(count, demand) in &parts {
                let known = asked
                    .iter_mut()
                    .find(|known| (known.demand, known.count) == (demand, count));
                if let Some(known) = known {
                    known.kinds.insert(kind);
                    known.cards = known.cards.saturating_add(cards);
                } else {
                    asked.push(Asked {
                        demand,
                        count,
                        kinds: KindSet::from_iter([kind]),
                        cards,
                    });
                }
            }
        }
        let every: KindSet = kinds.iter().map(|&(_, kind)| kind).collect();
        let milli_cpu = self.cluster.template(template).asks_for(CPU_IX);
        let cards: u128 = asked.iter().map(|asked| u128::from(asked.cards)).sum();
        let share = |of: u64| (u128::from(weight) * u128::from(of)).checked_div(cards);
        for asked in asked {
            // Without any cards there is one way to ask only.
            let part = share(asked.cards).map_or(weight, |part| part as u64);
            let work = WorkType {
                demand: asked.demand,
                milli_cpu,
                allowed: (asked.kinds != every).then_some(asked.kinds),
            };
            let count = u64::from(asked.count);
            market.mix.add_weight(&work, part.saturating_mul(count));
        }
    }
}

/// What an ask is on cards of some hardware, and how many times; nothing if they have no such parts.
fn demands(hardware: &Hardware, ask: &CardAsk, profiles: &[String], into: &mut Vec<(u32, Demand)>) {
    if ask.whole() > 0 && !hardware.whole.is_empty() {
        let count = u16::try_from(ask.whole()).unwrap_or(u16::MAX);
        into.push((1, Demand::Whole { count }));
    }
    let parts = ask
        .parts()
        .filter_map(|(count, part)| Some((count, demand(hardware, ask, part, profiles)?)));
    into.extend(parts);
}

fn demand(
    hardware: &Hardware,
    ask: &CardAsk,
    part: Part<'_>,
    profiles: &[String],
) -> Option<Demand> {
    match hardware.need(ask, part)? {
        Need::Replica => hardware.modes.iter().find_map(|mode| match mode {
            Mode::Replicas(replicas) => Some(share((*replicas).into(), 0)),
            _ => None,
        }),
        Need::Share(need) if hardware.modes.contains(&Mode::Shared) => {
            let memory = u64::from(need.memory_mib);
            let compute = u64::from(need.compute_milli);
            let all = hardware.memory_for_shares(need.reserving > 0);
            let by_memory = all.checked_div(memory).unwrap_or(u64::MAX);
            let by_compute = 1000_u64.checked_div(compute).unwrap_or(u64::MAX);
            let most = by_memory.min(by_compute).min(hardware.most_shares.into());
            let exact = (memory * 1000)
                .checked_div(hardware.memory_mib.into())
                .map_or(compute, |memory| memory.max(compute));
            (most > 0).then(|| share(most, exact))
        }
        Need::Share(_) => None,
        Need::Slice(choices) => {
            let geometry = hardware.geometry()?;
            let mut names = choices.iter().filter_map(|&ix| geometry.get(ix));
            let profile = names.find_map(|profile| {
                let mut known = profiles.iter();
                known.position(|known| known == profile.name)
            })?;
            Some(Demand::Slice {
                profile: profile as u16,
            })
        }
    }
}

/// A share of which a card holds so many at most and which takes about `exact` thousandths. A size that
/// is only rounded would tell one more of them, or one less.
fn share(most: u64, exact: u64) -> Demand {
    let card = u64::from(CARD_MILLI);
    let most = most.clamp(1, card);
    // With many to a card, no whole thousandth may say just so many.
    let milli = exact.max(card / (most + 1) + 1).min(card / most);
    Demand::Share {
        milli: milli as u16,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_card_holds_as_many_shares_in_the_prices_as_it_does() {
        for most in 1..2000 {
            for exact in [0, 1, 30, 333, 334, 500, 501, 1000, u64::MAX] {
                let Demand::Share { milli } = share(most, exact) else {
                    panic!("a share is a share");
                };
                let held = u64::from(CARD_MILLI / milli);
                if most <= 31 {
                    assert_eq!(held, most, "{milli} thousandths for {exact}");
                } else {
                    assert!(held >= most.min(1000), "{milli} thousandths for {exact}");
                }
            }
        }
    }
}
