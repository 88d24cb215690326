//! The search against an exhaustive judge on many random small worlds.
//!
//! `GANGLINE_ORACLE_WORLDS` sets how many (100,000 unless said); `GANGLINE_ORACLE_SEED` where to
//! start. A world that fails is made as small as it can be and written to `target/tmp` as a scenario.

#![allow(unreachable_pub, reason = "nothing reaches into a test")]

mod oracle {
    pub mod describe;
    pub mod naive;
    pub mod shrink;
    pub mod world;
}
mod support;

use std::{collections::BTreeMap, fmt::Write as _};

use gangline::{
    Verdict,
    bits::CardSet,
    request::{CardRequest, Template},
    units::{Nanos, Uid},
};
use oracle::{
    naive::{Answer, Placements, Question},
    shrink::smallest,
    world::{World, world},
};

/// What the engine says about one gang: verdict and (pod, node, cards).
struct Said {
    gang: String,
    verdict: Verdict,
    places: Vec<(Uid, String, CardSet)>,
}

/// Asks the engine about every gang of a world.
fn ask(world: &World) -> Result<Vec<Said>, String> {
    let mut engine = world.scheduler();
    engine.check().map_err(|error| error.to_string())?;
    let decisions = engine.decide(Nanos::ZERO).to_vec();
    engine.check().map_err(|error| error.to_string())?;
    let said = decisions.iter().map(|decision| {
        let places = engine.placements(decision).iter();
        Said {
            gang: engine
                .gang(decision.gang)
                .map_or_else(String::new, |gang| gang.name.into()),
            verdict: decision.verdict,
            places: places
                .map(|place| {
                    (
                        place.pod,
                        engine.node_name(place.node).into(),
                        place.devices.cards,
                    )
                })
                .collect(),
        }
    });
    Ok(said.collect())
}

/// How many gangs could be placed and how many could not.
#[derive(Clone, Copy, Debug, Default)]
struct Shares {
    feasible: u32,
    infeasible: u32,
    satisfied: u32,
}

/// Judges what was said about a world, gang after gang, as each left it to the next.
fn judge(world: &World, said: &[Said], shares: &mut Shares) -> Result<(), String> {
    let mut names: Vec<&str> = world
        .gangs
        .iter()
        .map(|gang| gang.key.name.as_str())
        .collect();
    let singles = world
        .pods
        .iter()
        .filter(|pod| pod.gang.is_none() && pod.node.is_none());
    names.extend(singles.map(|pod| pod.name.as_str()));
    // The engine's order is priority, then age, then identity; worlds give a lower age to none.
    let mut order: Vec<&str> = said.iter().map(|said| said.gang.as_str()).collect();
    order.extend(
        names
            .iter()
            .filter(|name| !said.iter().any(|said| said.gang == **name)),
    );
    let mut placed = Placements::new();
    let mut cards: BTreeMap<(String, String, u32), String> = BTreeMap::new();
    for name in order {
        let mut now_placed = placed.clone();
        let said = said.iter().find(|said| said.gang == name);
        let question = Question::new(world, name, &placed);
        let answer = question.answer();
        match &answer {
            Answer::Feasible(_) => shares.feasible += 1,
            Answer::Infeasible => shares.infeasible += 1,
            Answer::Satisfied => shares.satisfied += 1,
        }
        let verdict = said.map(|said| said.verdict);
        match (verdict, &answer) {
            (Some(Verdict::Placed), Answer::Infeasible) => {
                // Say which rule the plan breaks, if it can be said.
                let places = &said.expect("a verdict").places;
                let plan = plan_of(world, &question, places)?;
                question
                    .check(&plan)
                    .map_err(|rule| format!("{name}: placed, but {rule}"))?;
                return Err(format!("{name}: placed although the judge finds no plan"));
            }
            (Some(Verdict::Placed), _)
            | (None, Answer::Infeasible | Answer::Satisfied)
            | (Some(Verdict::Infeasible | Verdict::Waiting), Answer::Infeasible) => {}
            _ => {
                return Err(format!(
                    "{name}: engine says {verdict:?}, the judge {answer:?}"
                ));
            }
        }
        let Some(said) = said else { continue };
        let plan = plan_of(world, &question, &said.places)?;
        if verdict == Some(Verdict::Placed) {
            question
                .check(&plan)
                .map_err(|rule| format!("{name}: placed, but {rule}"))?;
        }
        for (member, node) in plan.iter().enumerate() {
            let (pod, Some(node)) = (question.waiting[member], node) else {
                continue;
            };
            let node = &world.nodes[*node].name;
            let given = said.places.iter().find(|(uid, ..)| *uid == pod.uid);
            for card in given.into_iter().flat_map(|(.., cards)| cards.iter()) {
                let kind = pod.template.cards.as_ref().map_or("", |ask| &ask.kind);
                let card = (node.clone(), kind.to_owned(), card);
                if let Some(other) = cards.insert(card.clone(), pod.name.clone()) {
                    return Err(format!("{card:?} given to {other} and {}", pod.name));
                }
            }
            now_placed.insert(pod.uid, node.clone());
        }
        drop(question);
        placed = now_placed;
    }
    Ok(())
}

/// The engine's places as a plan, after a look at the cards.
fn plan_of(
    world: &World,
    question: &Question<'_>,
    places: &[(Uid, String, CardSet)],
) -> Result<Vec<Option<usize>>, String> {
    let mut plan = vec![None; question.waiting.len()];
    for (uid, node, cards) in places {
        let member = question.waiting.iter().position(|pod| pod.uid == *uid);
        let member = member.ok_or_else(|| format!("{uid:?} does not wait"))?;
        let node = world.nodes.iter().position(|spec| spec.name == *node);
        let node = node.ok_or("placed on a node that is not there")?;
        let pod = question.waiting[member];
        let asked = pod.template.cards.as_ref();
        let there = asked.and_then(|asked| {
            world.nodes[node]
                .cards
                .iter()
                .find(|cards| cards.kind == asked.kind)
        });
        let usable = there.map_or(CardSet::EMPTY, |there| {
            CardSet::first(there.count)
                .unwrap_or_default()
                .difference(there.unhealthy)
        });
        if !usable.contains_all(*cards) || cards.len() != asked.map_or(0, CardRequest::whole_cards)
        {
            return Err(format!(
                "{}: given cards {cards}, which it cannot have",
                pod.name
            ));
        }
        if plan[member].replace(node).is_some() {
            return Err(format!("{}: placed twice", pod.name));
        }
    }
    Ok(plan)
}

fn examine(world: &World, shares: &mut Shares) -> Result<(), String> {
    judge(world, &ask(world)?, shares)
}

fn report(seed: u64, failing: &World, reason: &str) -> String {
    let smallest = smallest(failing, |world| {
        examine(world, &mut Shares::default()).is_err()
    });
    let error = examine(&smallest, &mut Shares::default()).expect_err("it still fails");
    let mut text = format!("seed {seed}: {reason}\nsmallest world that fails: {error}\n");
    write!(text, "{smallest}").expect("strings take everything");
    let folder = std::path::Path::new(env!("CARGO_TARGET_TMPDIR"));
    let path = folder.join(format!("oracle-{seed}.yaml"));
    if std::fs::write(&path, scenario(&smallest, &text)).is_ok() {
        write!(text, "\nas a scenario: {}", path.display()).expect("strings take everything");
    }
    text
}

/// A world as a scenario that starts from it, for `gangline simulate` (JSON is YAML).
fn scenario(world: &World, about: &str) -> String {
    serde_json::json!({
        "scenario": "the search and trying everything disagree",
        "about": about,
        "snapshot": world.scheduler().snapshot(),
        "events": [{ "at": "0s" }],
    })
    .to_string()
}

fn setting(name: &str, default: u64) -> u64 {
    std::env::var(name).map_or(default, |text| {
        text.parse()
            .unwrap_or_else(|_| panic!("{name} is {text:?}; accepted: a number"))
    })
}

#[test]
fn the_search_says_what_trying_everything_says() {
    let worlds = setting("GANGLINE_ORACLE_WORLDS", 100_000);
    let first = setting("GANGLINE_ORACLE_SEED", 0);
    let mut shares = Shares::default();
    for seed in first..first + worlds {
        let world = world(seed);
        if let Err(reason) = examine(&world, &mut shares) {
            panic!("{}", report(seed, &world, &reason));
        }
    }
    println!("{worlds} worlds from seed {first}: {shares:?}");
    let judged = f64::from(shares.feasible + shares.infeasible);
    let share = f64::from(shares.feasible) / judged;
    // Worlds that are all easy or all hopeless would show nothing.
    assert!((0.25..=0.75).contains(&share) || worlds < 100, "{shares:?}");
}

#[test]
fn a_world_becomes_a_scenario() {
    let text = scenario(&world(7), "seed 7");
    let path = std::path::Path::new(env!("CARGO_TARGET_TMPDIR")).join("oracle-sample.yaml");
    std::fs::write(path, &text).expect("the target folder can be written");
    let read: serde_json::Value = serde_json::from_str(&text).expect("JSON");
    let pods = read["snapshot"]["pods"].as_array().expect("a list");
    assert_eq!(pods.len(), world(7).scheduler().snapshot().pods.len());
    assert!(!pods.is_empty());
}

/// The comparison can fail: an engine that lies is found out, and its world made small.
#[test]
fn wrong_answers_are_found_out() {
    let mut denied = 0;
    let mut conjured = 0;
    let mut misplaced = 0;
    for seed in 0..400 {
        let world = world(seed);
        let truth = ask(&world).expect("a sound world");
        let wrong = |said: &[Said]| judge(&world, said, &mut Shares::default()).is_err();
        for index in 0..truth.len() {
            let mut said = ask(&world).expect("a sound world");
            match said[index].verdict {
                Verdict::Placed => {
                    // "Infeasible" of something feasible, unless it runs already.
                    let name = said[index].gang.clone();
                    let nothing = Placements::new();
                    let first = index == 0
                        && Question::new(&world, &name, &nothing).answer() != Answer::Satisfied;
                    said[index].verdict = Verdict::Infeasible;
                    said[index].places.clear();
                    if first {
                        assert!(wrong(&said), "seed {seed}: a denial went unnoticed");
                        denied += 1;
                    }
                    // One member's cards given to another as well.
                    let mut said = ask(&world).expect("a sound world");
                    let with_cards = |place: &&(_, String, CardSet)| !place.2.is_empty();
                    if let Some(place) = said[index].places.iter().find(with_cards).cloned() {
                        said[index].places.push(place);
                        assert!(
                            wrong(&said),
                            "seed {seed}: a card given twice went unnoticed"
                        );
                        misplaced += 1;
                    }
                }
                Verdict::Infeasible => {
                    said[index].verdict = Verdict::Placed;
                    assert!(
                        wrong(&said),
                        "seed {seed}: a plan of nothing went unnoticed"
                    );
                    conjured += 1;
                }
                _ => {}
            }
        }
    }
    assert!(
        denied > 20 && conjured > 20 && misplaced > 20,
        "{denied} {conjured} {misplaced}"
    );
}

#[test]
fn a_failing_world_shrinks_to_its_core() {
    let denies_pairs = |world: &World| {
        // As if the engine called every gang of two or more waiting members infeasible.
        let nothing = Placements::new();
        world.gangs.iter().any(|gang| {
            let question = Question::new(world, &gang.key.name, &nothing);
            question.waiting.len() > 1 && matches!(question.answer(), Answer::Feasible(_))
        })
    };
    let seed = (0..10_000).find(|&seed| denies_pairs(&world(seed)) && world(seed).nodes.len() > 2);
    let smallest = smallest(&world(seed.expect("one such world")), denies_pairs);
    assert_eq!(
        (
            smallest.nodes.len(),
            smallest.gangs.len(),
            smallest.pods.len()
        ),
        (1, 1, 2)
    );
    let bare = |pod: &gangline::gang::PodSpec| {
        *pod.template
            == Template {
                namespace: "default".into(),
                ..Template::default()
            }
    };
    assert!(smallest.pods.iter().all(bare), "{smallest}");
}
