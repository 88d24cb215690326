//! docs/metrics.md and the program tell the same.

use std::collections::{BTreeMap, BTreeSet};

use gangline::{engine::CardTotals, gang::life::Phase};
use tokio::sync::mpsc;

use super::*;
use crate::output::phase_word;

/// A metric as the document describes it: type, labels, and what it says of it.
type Described = (String, BTreeSet<String>, String);

/// The words between backticks.
fn quoted(text: &str) -> impl Iterator<Item = String> {
    text.split('`').skip(1).step_by(2).map(str::to_owned)
}

/// The tables of the document, by name.
fn described() -> BTreeMap<String, Described> {
    let document = include_str!("../../../../docs/metrics.md");
    let mut described = BTreeMap::new();
    for line in document.lines().filter(|line| line.starts_with("| `")) {
        let cells: Vec<&str> = line.split('|').map(str::trim).collect();
        let [_, names, kind, labels, meaning, _] = cells[..] else {
            panic!("a row has four cells: {line}");
        };
        for name in quoted(names) {
            let labels = quoted(labels).collect();
            described.insert(name, (kind.to_owned(), labels, meaning.to_owned()));
        }
    }
    described
}

/// A metric as it is told: type, labels, and the values of each label.
#[derive(Debug, Default)]
struct Told {
    kind: String,
    labels: BTreeMap<String, BTreeSet<String>>,
    values: usize,
}

fn told(text: &str) -> BTreeMap<String, Told> {
    let mut told: BTreeMap<String, Told> = BTreeMap::new();
    for line in text.lines() {
        if let Some(rest) = line.strip_prefix("# TYPE ") {
            let (name, kind) = rest.split_once(' ').expect("has a type");
            told.entry(name.to_owned()).or_default().kind = kind.to_owned();
        }
        if line.starts_with('#') || line.is_empty() {
            continue;
        }
        let (series, value) = line.rsplit_once(' ').expect("has a value");
        value.parse::<f64>().expect("is a number");
        let (name, labels) = series.split_once('{').unwrap_or((series, "}"));
        let of_histogram = ["_bucket", "_sum", "_count"];
        let name = of_histogram
            .iter()
            .find_map(|end| name.strip_suffix(end))
            .unwrap_or(name);
        let metric = told.get_mut(name).expect("the type comes first");
        metric.values += 1;
        let labels = labels.trim_end_matches('}').split(',');
        for label in labels.filter(|label| !label.is_empty()) {
            let (label, value) = label.split_once('=').expect("has a value");
            if label != "le" {
                let values = metric.labels.entry(label.to_owned()).or_default();
                values.insert(value.trim_matches('"').to_owned());
            }
        }
    }
    told
}

/// One in which everything was counted once.
fn all() -> (Arc<Metrics>, Figures) {
    let metrics = Arc::new(Metrics::new());
    metrics.asked("get", Some(200), Duration::from_millis(1));
    metrics.asked("watch", None, Duration::from_millis(1));
    for verdict in [
        Verdict::Placed,
        Verdict::Infeasible,
        Verdict::Undecided,
        Verdict::Waiting,
        Verdict::Release,
        Verdict::Failed,
    ] {
        metrics.decided(verdict);
    }
    let message = String::new();
    for outcome in [
        Outcome::Bound,
        Outcome::BoundElsewhere {
            node: String::new(),
        },
        Outcome::Gone,
        Outcome::Refused { message },
        Outcome::Abandoned,
    ] {
        metrics.bound(&outcome, Duration::from_millis(1));
    }
    let (changes, _heard) = mpsc::channel(8);
    metrics.count_backlog_of(changes.downgrade());
    let phases = [
        Phase::Gathering,
        Phase::Queued,
        Phase::Planned,
        Phase::Binding,
        Phase::Running,
        Phase::Degraded,
    ];
    let one = |code: &str| BTreeMap::from([(code.to_owned(), 1)]);
    let figures = Figures {
        groups: phases.map(|phase| (phase_word(phase), 1)).to_vec(),
        half_bound: 1,
        reservations: 1,
        cards: vec![("nvidia.com/gpu".to_owned(), CardTotals::default())],
        fragmentation: 0.5,
        pending: Pending {
            groups: one("DoesNotFit"),
            pods: one("WaitingForMembers"),
        },
    };
    (metrics, figures)
}

#[test]
fn the_document_and_the_program_name_the_same_metrics() {
    let (metrics, figures) = all();
    let heard = metrics.watch("scheduling.volcano.sh", "PodGroup");
    heard.restarts();
    let text = metrics.write(true, Some(&figures));
    let (told, described) = (told(&text), described());
    let names = |names: &mut dyn Iterator<Item = &String>| names.cloned().collect::<BTreeSet<_>>();
    assert_eq!(names(&mut told.keys()), names(&mut described.keys()));
    for (name, (kind, labels, meaning)) in described {
        let told = &told[&name];
        assert!(told.values > 0, "{name} has no value");
        assert_eq!(told.kind, kind, "{name}");
        assert_eq!(names(&mut told.labels.keys()), labels, "{name}");
        let meanings: BTreeSet<String> = quoted(&meaning).collect();
        for label in ["state", "verdict", "outcome"] {
            for value in told.labels.get(label).into_iter().flatten() {
                assert!(meanings.contains(value), "{name} does not tell of {value}");
            }
        }
    }
}

#[test]
fn who_stands_by_tells_nothing_about_the_cluster() {
    let (metrics, figures) = all();
    let told = told(&metrics.write(false, Some(&figures)));
    let about_itself = |name: &&String| {
        ["gangline_leader", "gangline_build_info"].contains(&name.as_str())
            || name.starts_with("gangline_api_request")
            || name.starts_with("process_")
    };
    assert_eq!(told.keys().filter(|name| !about_itself(name)).count(), 0);
    assert!(told.keys().count() > 5);
}

#[test]
fn a_watch_that_ended_is_told_of_no_more() {
    let (metrics, figures) = all();
    let heard = metrics.watch("", "Pod");
    let lag = |metrics: &Metrics| metrics.write(true, Some(&figures)).contains("kind=\"Pod\"");
    assert!(lag(&metrics));
    drop(heard);
    assert!(!lag(&metrics));
}
