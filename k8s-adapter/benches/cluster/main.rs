//! How long a cluster's pods wait for their nodes: a binder that decides nothing, kube-scheduler and
//! Gangline side by side, each beside a control plane of its own, one after the other.
//!
//! `make bench-cluster` runs all; `-- --help` says what can be chosen. Every time is taken from watch events:
//! a pod is seen, a pod is bound. Processor time is that of the processes themselves. It prints a table
//! and writes nothing.

mod load;
mod measure;
mod run;

use std::process::ExitCode;

use clap::Parser;
use comfy_table::{Cell, CellAlignment, Table, presets::ASCII_MARKDOWN};
use run::{Outcome, Who};

/// So many groups of so many pods each.
#[derive(Clone, Copy, Debug)]
struct Shape {
    groups: u32,
    size: u32,
}

fn shape(text: &str) -> Result<Shape, String> {
    let numbers = text.split_once('x').and_then(|(groups, size)| {
        let groups = groups.parse().ok().filter(|groups| *groups > 0)?;
        let size = size.parse().ok().filter(|size| *size > 0)?;
        Some(Shape { groups, size })
    });
    numbers.ok_or_else(|| format!("{text:?}; accepted: GROUPSxPODS such as 20x200"))
}

/// Times binding beside a real control plane.
#[derive(Debug, Parser)]
struct Arguments {
    /// Groups times pods of each.
    #[arg(long, value_delimiter = ',', value_parser = shape, default_value = "20x200,500x8,4000x1,1x2000")]
    shapes: Vec<Shape>,
    /// Nodes of eight GPUs.
    #[arg(long, default_value_t = 1000)]
    nodes: u32,
    /// Who binds.
    #[arg(long, value_delimiter = ',', value_enum, default_values_t = [Who::Floor, Who::KubeScheduler, Who::Gangline])]
    who: Vec<Who>,
    /// How often each is run.
    #[arg(long, default_value_t = 1)]
    repeat: u32,
    /// What cargo gives to every benchmark.
    #[arg(long, hide = true)]
    bench: bool,
}

fn main() -> ExitCode {
    let arguments = Arguments::parse();
    let mut table = Table::new();
    table.load_style(ASCII_MARKDOWN).set_header([
        "shape",
        "who",
        "all bound",
        "pods/s",
        "group p50",
        "group p99",
        "last group",
        "CPU a pod: scheduler + API server",
        "etcd",
        "half bound",
    ]);
    for column in 2..10 {
        if let Some(column) = table.column_mut(column) {
            column.set_cell_alignment(CellAlignment::Right);
        }
    }
    let mut failed = false;
    for shape in &arguments.shapes {
        for &who in &arguments.who {
            for _ in 0..arguments.repeat {
                let name = format!("{}x{}", shape.groups, shape.size);
                eprintln!("{name}, {who}");
                match run::run(who, arguments.nodes, shape.groups, shape.size) {
                    Ok(outcome) => {
                        failed |= outcome.bound < outcome.pods;
                        table.add_row(row(&name, who, &outcome));
                    }
                    Err(error) => {
                        eprintln!("error: {error}");
                        failed = true;
                    }
                }
            }
        }
    }
    println!("{table}");
    ExitCode::from(u8::from(failed))
}

fn row(name: &str, who: Who, outcome: &Outcome) -> Vec<Cell> {
    let seconds = |seconds: f64| format!("{seconds:.2} s");
    let each = |seconds: f64| {
        format!(
            "{:.2} ms",
            seconds * 1000.0 / f64::from(outcome.bound.max(1))
        )
    };
    let all = if outcome.bound == outcome.pods {
        seconds(outcome.all_bound)
    } else {
        format!("{} of {} pods", outcome.bound, outcome.pods)
    };
    [
        name.to_owned(),
        who.to_string(),
        all,
        format!("{:.0}", f64::from(outcome.bound) / outcome.all_bound),
        seconds(outcome.group_wait(0.5)),
        seconds(outcome.group_wait(0.99)),
        seconds(outcome.after_last_pod),
        format!(
            "{} = {} + {}",
            each(outcome.cpu.scheduler + outcome.cpu.api_server),
            each(outcome.cpu.scheduler),
            each(outcome.cpu.api_server)
        ),
        each(outcome.cpu.etcd),
        outcome.half_bound.to_string(),
    ]
    .map(Cell::new)
    .into()
}
