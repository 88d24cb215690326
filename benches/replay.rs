//! What the replays share: their own random numbers, command line, tables and data.
//!
//! A replay is one command: `cargo bench -p gangline-benches --bench NAME -- [OPTIONS]`. It measures
//! how good decisions are, prints a table (or JSON), and draws what it printed when asked to.

pub mod mig;

use std::{
    fmt::Write as _,
    path::{Path, PathBuf},
    str::FromStr,
};

/// `SplitMix64`: a few lines, and the same everywhere.
#[derive(Clone, Debug)]
pub struct Random(u64);

impl Random {
    /// A stream of its own for each seed.
    pub fn new(seed: u64) -> Self {
        Self(seed.wrapping_mul(0xd134_2543_de82_ef95).wrapping_add(1))
    }

    /// 64 random bits.
    pub fn word(&mut self) -> u64 {
        self.0 = self.0.wrapping_add(0x9e37_79b9_7f4a_7c15);
        let mut word = self.0;
        word = (word ^ (word >> 30)).wrapping_mul(0xbf58_476d_1ce4_e5b9);
        word = (word ^ (word >> 27)).wrapping_mul(0x94d0_49bb_1331_11eb);
        word ^ (word >> 31)
    }

    /// A number below `count`.
    pub fn below(&mut self, count: usize) -> usize {
        ((u128::from(self.word()) * count as u128) >> 64) as usize
    }

    /// A number from 0 up to 1.
    pub fn unit(&mut self) -> f64 {
        (self.word() >> 11) as f64 / (1_u64 << 53) as f64
    }

    /// Exponentially distributed with mean 1.
    pub fn exponential(&mut self) -> f64 {
        -(1.0 - self.unit()).ln()
    }

    /// An index, as often as its share says.
    pub fn weighted(&mut self, shares: &[u32]) -> usize {
        let all: u32 = shares.iter().sum();
        let mut at = self.below(all as usize) as u32;
        for (index, &share) in shares.iter().enumerate() {
            if at < share {
                return index;
            }
            at -= share;
        }
        0
    }
}

/// The command line of a replay.
#[derive(Clone, Debug)]
pub struct Arguments {
    /// Print JSON instead of a table.
    pub json: bool,
    /// Draw into this folder.
    pub plots: Option<PathBuf>,
    values: Vec<(String, String)>,
}

impl Arguments {
    /// Reads the command line. Besides `--output json|table` and `--plots [FOLDER]` a replay has the
    /// options that it names, each with a value. Anything else ends the process with a message.
    pub fn read(options: &[&str]) -> Self {
        let mut arguments = Self {
            json: false,
            plots: None,
            values: Vec::new(),
        };
        let mut words = std::env::args().skip(1).peekable();
        while let Some(word) = words.next() {
            let value = words.next_if(|next| !next.starts_with("--"));
            match (word.as_str(), value) {
                // Cargo says this to every benchmark.
                ("--bench", _) => {}
                ("--output", Some(form)) if form == "json" || form == "table" => {
                    arguments.json = form == "json";
                }
                ("--plots", folder) => {
                    let usual = Path::new(env!("CARGO_MANIFEST_DIR")).join("../docs/plots");
                    arguments.plots = Some(folder.map_or(usual, PathBuf::from));
                }
                (name, Some(value)) if options.contains(&name) => {
                    arguments.values.push((name.to_owned(), value));
                }
                (word, _) => refuse(&format!(
                    "{word} is not understood; accepted: --output json|table, --plots [FOLDER], {}",
                    options.join(" VALUE, ") + if options.is_empty() { "" } else { " VALUE" }
                )),
            }
        }
        arguments
    }

    /// The value of an option.
    pub fn value<T: FromStr>(&self, name: &str, usual: T) -> T {
        let given = self.values.iter().rev().find(|(option, _)| option == name);
        given.map_or(usual, |(_, value)| {
            value
                .parse()
                .unwrap_or_else(|_| refuse(&format!("{name}: {value} is not understood")))
        })
    }
}

fn refuse(message: &str) -> ! {
    eprintln!("{message}");
    std::process::exit(2);
}

/// A file of the shared data: of the folder that `GANGLINE_DATA` names, of `../shared/data`, or the
/// sample that is committed. Returns whether it is the whole one.
pub fn data(name: &str) -> (PathBuf, bool) {
    let here = Path::new(env!("CARGO_MANIFEST_DIR"));
    let named = std::env::var_os("GANGLINE_DATA").map(PathBuf::from);
    let shared = ["../../shared/data", "../../../shared/data"].map(|path| here.join(path));
    let folders = named.into_iter().chain(shared);
    let found = folders
        .map(|folder| folder.join(name))
        .find(|path| path.exists());
    match found {
        Some(path) => (path, true),
        None => (here.join("sample").join(name), false),
    }
}

/// A cell of a report.
#[derive(Clone, Debug, PartialEq)]
pub enum Cell {
    /// A word.
    Text(String),
    /// A number, and how many digits after the point are shown.
    Number(f64, usize),
    /// Not measured.
    Empty,
}

impl From<&str> for Cell {
    fn from(text: &str) -> Self {
        Self::Text(text.to_owned())
    }
}

/// Rows under named columns.
#[derive(Clone, Debug, Default)]
pub struct Report {
    title: String,
    columns: Vec<String>,
    rows: Vec<Vec<Cell>>,
}

impl Report {
    /// An empty report.
    pub fn new<C: Into<String>>(title: &str, columns: impl IntoIterator<Item = C>) -> Self {
        Self {
            title: title.to_owned(),
            columns: columns.into_iter().map(Into::into).collect(),
            rows: Vec::new(),
        }
    }

    /// Adds a row.
    pub fn push(&mut self, row: Vec<Cell>) {
        self.rows.push(row);
    }

    /// An aligned table: words to the left, numbers to the right.
    pub fn table(&self) -> String {
        let shown: Vec<Vec<String>> = self
            .rows
            .iter()
            .map(|row| row.iter().map(Cell::shown).collect())
            .collect();
        let width = |column: usize| {
            let cells = shown.iter().filter_map(|row| row.get(column));
            let widths = cells.map(|cell| cell.chars().count());
            let title = self
                .columns
                .get(column)
                .map_or(0, |title| title.chars().count());
            widths.fold(title, usize::max)
        };
        let widths: Vec<usize> = (0..self.columns.len()).map(width).collect();
        let mut text = format!("{}\n", self.title);
        let mut line = |cells: &[String], left: &dyn Fn(usize) -> bool| {
            let mut line = String::new();
            for (at, (cell, width)) in cells.iter().zip(&widths).enumerate() {
                let gap = if at == 0 { "" } else { "  " };
                let _ = if left(at) {
                    write!(line, "{gap}{cell:<width$}")
                } else {
                    write!(line, "{gap}{cell:>width$}")
                };
            }
            text.push_str(line.trim_end());
            text.push('\n');
        };
        let is_text = |column: usize| {
            let cell = self.rows.first().and_then(|row| row.get(column));
            matches!(cell, Some(Cell::Text(_)))
        };
        line(&self.columns, &is_text);
        for row in &shown {
            line(row, &is_text);
        }
        text
    }

    /// One object a row, as a JSON array.
    pub fn json(&self) -> serde_json::Value {
        let row = |row: &Vec<Cell>| {
            let cells = self.columns.iter().zip(row);
            let cells = cells.map(|(column, cell)| {
                let value = match cell {
                    Cell::Text(text) => text.as_str().into(),
                    Cell::Number(number, _) => (*number).into(),
                    Cell::Empty => serde_json::Value::Null,
                };
                (column.clone(), value)
            });
            serde_json::Value::Object(cells.collect())
        };
        self.rows.iter().map(row).collect()
    }
}

impl Cell {
    fn shown(&self) -> String {
        match self {
            Self::Text(text) => text.clone(),
            Self::Number(number, digits) => format!("{number:.digits$}"),
            Self::Empty => "-".to_owned(),
        }
    }
}

/// Prints reports as the command line asks.
pub fn print(arguments: &Arguments, reports: &[Report]) {
    if arguments.json {
        let reports = reports
            .iter()
            .map(|report| (report.title.clone(), report.json()));
        println!("{:#}", serde_json::Value::Object(reports.collect()));
    } else {
        let tables: Vec<String> = reports.iter().map(Report::table).collect();
        print!("{}", tables.join("\n"));
    }
}
