//! The openb trace: nodes, task lists, published results, and the arrivals of one seed.

use std::{collections::BTreeMap, fs};

use gangline::price::{CardState, Catalogue, Demand, KindSet, Mix, NodeKind, NodeState, WorkType};
use gangline_benches::replay::{Random, data};

/// The cluster.
#[derive(Default)]
pub struct Fleet {
    pub catalogue: Catalogue,
    models: Vec<String>,
    /// Nodes when empty, each with its memory.
    pub nodes: Vec<(NodeState, i64)>,
    /// Thousandths of cards.
    pub capacity: i64,
    /// Whether it is the whole cluster and not the sample.
    pub whole: bool,
}

/// One task: an index into [`List::types`], and the memory it asks for.
#[derive(Clone, Copy)]
pub struct Task {
    pub work: usize,
    pub mib: i64,
}

/// A list of tasks.
pub struct List {
    pub name: String,
    /// Distinct requests, memory aside.
    pub types: Vec<WorkType>,
    /// Thousandths of cards by type.
    pub sizes: Vec<i64>,
    tasks: Vec<Task>,
    /// How often each type occurs in the list.
    pub mix: Mix,
}

/// What is wrong with the data.
pub type Wrong = Box<dyn std::error::Error>;

fn read(name: &str) -> Result<Vec<Vec<String>>, Wrong> {
    let (path, _) = data(&format!("openb/{name}"));
    let text = fs::read_to_string(&path).map_err(|error| format!("{}: {error}", path.display()))?;
    let fields = |line: &str| {
        line.split(',')
            .map(|field| field.trim().to_owned())
            .collect()
    };
    Ok(text.lines().map(fields).collect())
}

/// A number of a row; an empty or missing field is an error that names the column.
fn number(row: &[String], column: usize) -> Result<i64, Wrong> {
    let field = row.get(column).map_or("", String::as_str);
    let wrong = || format!("column {}: `{field}` is not a whole number", column + 1);
    Ok(field.parse().map_err(|_| wrong())?)
}

impl Fleet {
    pub fn read() -> Result<Self, Wrong> {
        let name = "openb_node_list_gpu_node.csv";
        let mut fleet = Self {
            whole: data(&format!("openb/{name}")).1,
            ..Self::default()
        };
        for row in read(name)?.iter().skip(1) {
            let (milli_cpu, mib, cards) = (number(row, 1)?, number(row, 2)?, number(row, 3)?);
            let product = row.get(4).map_or("", String::as_str);
            let kind = NodeKind {
                model: find_or_push(&mut fleet.models, product.to_owned()),
                cards: cards as u16,
                whole_only: 0,
                milli_cpu,
                geometry: None,
            };
            let kind = find_or_push(&mut fleet.catalogue.kinds, kind);
            let free = (0..cards).map(|_| CardState::FREE);
            fleet
                .nodes
                .push((NodeState::new(kind, milli_cpu, free), mib));
            fleet.capacity += cards * 1000;
        }
        Ok(fleet)
    }

    /// The kinds of nodes that a task may use: of models that are named, `|` between them.
    fn allowed(&self, models: &str) -> Option<KindSet> {
        if models.is_empty() {
            return None;
        }
        let named = |kind: &NodeKind| {
            let product = self.models.get(usize::from(kind.model));
            product.is_some_and(|product| models.split('|').any(|model| model == product))
        };
        let kinds = (0_u16..).zip(&self.catalogue.kinds);
        Some(
            kinds
                .filter(|(_, kind)| named(kind))
                .map(|(ix, _)| ix)
                .collect(),
        )
    }
}

fn find_or_push<T: PartialEq>(items: &mut Vec<T>, item: T) -> u16 {
    let at = items
        .iter()
        .position(|known| *known == item)
        .unwrap_or_else(|| {
            items.push(item);
            items.len() - 1
        });
    at as u16
}

impl List {
    pub fn read(name: &str, fleet: &Fleet) -> Result<Self, Wrong> {
        let mut list = Self {
            name: name.to_owned(),
            types: Vec::new(),
            sizes: Vec::new(),
            tasks: Vec::new(),
            mix: Mix::new(),
        };
        for row in read(&format!("openb_pod_list_{name}.csv"))?.iter().skip(1) {
            let demand = match (number(row, 3)?, number(row, 4)) {
                (0, _) => Demand::None,
                (1, Ok(milli)) if milli < 1000 => Demand::Share {
                    milli: milli as u16,
                },
                (count, _) => Demand::Whole {
                    count: count as u16,
                },
            };
            let work = WorkType {
                demand,
                milli_cpu: number(row, 1)?,
                allowed: fleet.allowed(row.get(5).map_or("", String::as_str)),
            };
            list.mix.add(&work, 1);
            let size = work.size_milli(&fleet.catalogue);
            let work = usize::from(find_or_push(&mut list.types, work));
            if work == list.sizes.len() {
                list.sizes.push(size);
            }
            list.tasks.push(Task {
                work,
                mib: number(row, 2)?,
            });
        }
        Ok(list)
    }

    /// The arrivals of a seed, as the published experiment makes them: the tasks shuffled, thinned
    /// if they are more than 130 % of the cluster, then random ones of the list until the next would
    /// pass that. (The published stop test counts one card of a task with several.)
    pub fn arrivals(&self, seed: u64, capacity: i64) -> Vec<Task> {
        let mut random = Random::new(seed);
        let mut tasks = self.tasks.clone();
        shuffle(&mut tasks, &mut random);
        let most = capacity * 13 / 10;
        let size = |task: &Task| self.sizes.get(task.work).copied().unwrap_or(0);
        let mut sum: i64 = tasks.iter().map(size).sum();
        while sum > most {
            sum -= tasks.pop().as_ref().map_or(sum, size);
        }
        while let Some(task) = self.tasks.get(random.below(self.tasks.len())) {
            if sum + size(task).min(1000) > most {
                break;
            }
            sum += size(task);
            tasks.push(*task);
        }
        tasks
    }
}

/// A random order.
pub fn shuffle<T>(items: &mut [T], random: &mut Random) {
    for index in (1..items.len()).rev() {
        items.swap(index, random.below(index + 1));
    }
}

/// The published mean allocation of FGD in percent, by list and arrived load.
/// The sample is another cluster, so there is none for it.
pub fn published(fleet: &Fleet) -> BTreeMap<(String, usize), f64> {
    let rows = if fleet.whole {
        read("published_allocation.csv")
    } else {
        Ok(Vec::new())
    };
    let rows = rows.unwrap_or_default();
    let Some((loads, rows)) = rows.split_first() else {
        return BTreeMap::new();
    };
    let fgd = rows
        .iter()
        .filter(|row| row.get(1).is_some_and(|policy| policy.ends_with("FGD")));
    let cells = fgd.flat_map(|row| {
        let list = row
            .first()
            .map_or("", |name| name.trim_start_matches("openb_pod_list_"));
        let cells = loads.iter().zip(row).skip(2);
        cells.filter_map(move |(load, value)| {
            Some(((list.to_owned(), load.parse().ok()?), value.parse().ok()?))
        })
    });
    cells.collect()
}
