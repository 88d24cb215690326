//! Runs a control plane for a person: says where it is, and ends it when its input ends (Enter, or
//! Control-D).
//!
//! ```text
//! cargo run --package gangline-controlplane -- kube-controller-manager kwok
//! ```
#![forbid(unsafe_code)]

use std::{
    env,
    io::{self, Write},
    process::ExitCode,
};

use gangline_controlplane::{ControlPlane, Error, Program};

const OPTIONAL: [Program; 3] = [
    Program::ControllerManager,
    Program::Kwok,
    Program::Scheduler,
];

fn main() -> ExitCode {
    let mut builder = ControlPlane::builder();
    for argument in env::args().skip(1) {
        builder = match OPTIONAL
            .into_iter()
            .find(|program| program.file_name() == argument)
        {
            Some(Program::ControllerManager) => builder.controller_manager(),
            Some(Program::Kwok) => builder.kwok(),
            Some(Program::Scheduler) => builder.kube_scheduler(),
            _ => {
                let names = OPTIONAL.map(Program::file_name).join(", ");
                eprintln!("error: '{argument}' is not one of: {names}");
                return ExitCode::from(2);
            }
        };
    }
    let shown = builder.start().and_then(|control_plane| {
        let shown = show_until_input_ends(&control_plane);
        control_plane.passed();
        shown
    });
    match shown {
        Ok(()) => ExitCode::SUCCESS,
        Err(error) => {
            eprintln!("error: {error}");
            ExitCode::FAILURE
        }
    }
}

fn show_until_input_ends(control_plane: &ControlPlane) -> Result<(), Error> {
    let shown = |source| Error::Io {
        action: "show where it is".into(),
        source,
    };
    let mut output = io::stdout().lock();
    for program in [Program::Etcd, Program::ApiServer]
        .into_iter()
        .chain(OPTIONAL)
    {
        if let Some(id) = control_plane.process_id(program) {
            writeln!(output, "{program}: process {id}").map_err(shown)?;
        }
    }
    writeln!(output, "url: {}", control_plane.url()).map_err(shown)?;
    writeln!(
        output,
        "export KUBECONFIG={}",
        control_plane.kubeconfig().display()
    )
    .map_err(shown)?;
    output.flush().map_err(shown)?;
    let read = io::stdin().read_line(&mut String::new());
    read.map(drop).map_err(|source| Error::Io {
        action: "wait for input".into(),
        source,
    })
}
