//! The openb trace: nodes, task lists, published results, and the arrivals of one seed.

use std::{collections::BTreeMap, fs, path::Path};

use gangline::price::{CardState, Catalogue, Demand, KindSet, Mix, NodeKind, NodeState, WorkType};

/// What went wrong with a file.
#[derive(Debug)]
pub struct DataError(pub String);

/// The cluster.
pub struct Fleet {
    pub catalogue: Catalogue,
    models: Vec<String>,
    /// Nodes when empty, with their memory.
    pub nodes: Vec<(NodeState, i64)>,
    /// Thousandths of cards.
    pub capacity: i64,
}

/// One task: an index into [`List::types`] and the memory it asks for.
#[derive(Clone, Copy)]
pub struct Task {
    pub work: usize,
    pub mib: i64,
}

/// A task list.
pub struct List {
    pub name: String,
    pub types: Vec<WorkType>,
    /// Thousandths of cards by type.
    pub sizes: Vec<i64>,
    tasks: Vec<Task>,
    pub mix: Mix,
}

fn read(path: &Path) -> Result<Vec<Vec<String>>, DataError> {
    let text = fs::read_to_string(path)
        .map_err(|error| DataError(format!("{}: {error}", path.display())))?;
    let split = |line: &str| {
        line.split(',')
            .map(|field| field.trim().to_owned())
            .collect()
    };
    Ok(text.lines().skip(1).map(split).collect())
}

fn number(row: &[String], column: usize, path: &Path) -> Result<i64, DataError> {
    let field = row.get(column).map_or("", String::as_str);
    field
        .parse()
        .map_err(|_| DataError(format!("{}: `{field}` is not a number", path.display())))
}

impl Fleet {
    pub fn read(folder: &Path) -> Result<Self, DataError> {
        let path = folder.join("openb_node_list_gpu_node.csv");
        let mut fleet = Self {
            catalogue: Catalogue::default(),
            models: Vec::new(),
            nodes: Vec::new(),
            capacity: 0,
        };
        for row in read(&path)? {
            let (milli_cpu, mib, cards) = (
                number(&row, 1, &path)?,
                number(&row, 2, &path)?,
                number(&row, 3, &path)?,
            );
            let name = row.get(4).cloned().unwrap_or_default();
            let model = match fleet.models.iter().position(|known| *known == name) {
                Some(known) => known,
                None => {
                    fleet.models.push(name);
                    fleet.models.len() - 1
                }
            };
            let kind = NodeKind {
                model: model as u16,
                cards: cards as u16,
                milli_cpu,
                geometry: None,
            };
            let kinds = &mut fleet.catalogue.kinds;
            let kind_ix = match kinds.iter().position(|known| *known == kind) {
                Some(known) => known,
                None => {
                    kinds.push(kind);
                    kinds.len() - 1
                }
            };
            let free = (0..cards).map(|_| CardState::FREE);
            let state = NodeState::new(kind_ix as u16, milli_cpu, free);
            fleet.nodes.push((state, mib));
            fleet.capacity += cards * 1000;
        }
        Ok(fleet)
    }

    fn allowed(&self, spec: &str) -> Option<KindSet> {
        if spec.is_empty() {
            return None;
        }
        let named = |model: u16| {
            let name = self.models.get(usize::from(model));
            name.is_some_and(|name| spec.split('|').any(|wanted| wanted == name))
        };
        let kinds = (0_u16..).zip(&self.catalogue.kinds);
        Some(
            kinds
                .filter(|(_, kind)| named(kind.model))
                .map(|(ix, _)| ix)
                .collect(),
        )
    }
}

impl List {
    pub fn read(folder: &Path, name: &str, fleet: &Fleet) -> Result<Self, DataError> {
        let path = folder.join(format!("openb_pod_list_{name}.csv"));
        let mut seen: BTreeMap<WorkType, usize> = BTreeMap::new();
        let mut list = Self {
            name: name.to_owned(),
            types: Vec::new(),
            sizes: Vec::new(),
            tasks: Vec::new(),
            mix: Mix::new(),
        };
        for row in read(&path)? {
            let demand = match number(&row, 3, &path)? {
                0 => Demand::None,
                1 => match number(&row, 4, &path)? {
                    1000 => Demand::Whole { count: 1 },
                    milli => Demand::Share {
                        milli: milli as u16,
                    },
                },
                count => Demand::Whole {
                    count: count as u16,
                },
            };
            let work = WorkType {
                demand,
                milli_cpu: number(&row, 1, &path)?,
                allowed: fleet.allowed(row.get(5).map_or("", String::as_str)),
            };
            list.mix.add(&work, 1);
            let work_ix = *seen.entry(work.clone()).or_insert_with(|| {
                list.sizes.push(work.size_milli(&fleet.catalogue));
                list.types.push(work);
                list.types.len() - 1
            });
            list.tasks.push(Task {
                work: work_ix,
                mib: number(&row, 2, &path)?,
            });
        }
        Ok(list)
    }

    /// The arrivals of a seed: the tasks shuffled, then random ones of the list until the next
    /// would pass 130 % of the cluster; a list that is larger is thinned.
    pub fn arrivals(&self, seed: u64, capacity: i64) -> Vec<Task> {
        let mut random = Random::new(seed);
        let mut tasks = self.tasks.clone();
        random.shuffle(&mut tasks);
        let most = capacity * 13 / 10;
        let size = |task: &Task| self.sizes[task.work];
        let mut sum: i64 = tasks.iter().map(size).sum();
        while sum > most {
            let Some(task) = tasks.pop() else { break };
            sum -= size(&task);
        }
        loop {
            let task = self.tasks[random.below(self.tasks.len())];
            // The published stop test counts one card of a task with several.
            if sum + size(&task).min(1000) > most {
                break;
            }
            sum += size(&task);
            tasks.push(task);
        }
        tasks
    }
}

/// SplitMix64: a few lines, and the same everywhere.
pub struct Random(u64);

impl Random {
    pub fn new(seed: u64) -> Self {
        Self(seed.wrapping_mul(0xd134_2543_de82_ef95).wrapping_add(1))
    }

    fn next(&mut self) -> u64 {
        self.0 = self.0.wrapping_add(0x9e37_79b9_7f4a_7c15);
        let mut word = self.0;
        word = (word ^ word >> 30).wrapping_mul(0xbf58_476d_1ce4_e5b9);
        word = (word ^ word >> 27).wrapping_mul(0x94d0_49bb_1331_11eb);
        word ^ word >> 31
    }

    fn below(&mut self, count: usize) -> usize {
        (u128::from(self.next()) * count as u128 >> 64) as usize
    }

    pub fn shuffle<T>(&mut self, items: &mut [T]) {
        for index in (1..items.len()).rev() {
            items.swap(index, self.below(index + 1));
        }
    }
}

/// Published mean GPU allocation of FGD, in percent, by list and load.
pub fn published(folder: &Path) -> Result<BTreeMap<(String, u32), f64>, DataError> {
    let path = folder.join("published_allocation.csv");
    let text = fs::read_to_string(&path)
        .map_err(|error| DataError(format!("{}: {error}", path.display())))?;
    let mut lines = text.lines();
    let loads: Vec<u32> = lines
        .next()
        .unwrap_or("")
        .split(',')
        .skip(2)
        .filter_map(|load| {
            load.trim_matches(|letter: char| !letter.is_ascii_digit())
                .parse()
                .ok()
        })
        .collect();
    let mut means = BTreeMap::new();
    for row in lines {
        let mut fields = row.split(',');
        let name = fields
            .next()
            .unwrap_or("")
            .trim_start_matches("openb_pod_list_");
        if fields.next() != Some("06-FGD") {
            continue;
        }
        for (load, value) in loads.iter().zip(fields) {
            if let Ok(value) = value.parse() {
                means.insert((name.to_owned(), *load), value);
            }
        }
    }
    Ok(means)
}
