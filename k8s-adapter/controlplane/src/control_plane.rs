//! A control plane that runs.
//!
//! Its programs are reached by the URL, token and kubeconfig that it gives out. Tests may pause, kill
//! and restart each; dropping it ends all and removes its directory.

use std::{
    collections::BTreeMap,
    fs,
    path::{Path, PathBuf},
    thread,
    time::{Duration, Instant},
};

use rustix::process::Signal;
use tempfile::TempDir;

use crate::{Answer, Builder, Error, Program, http::Http, layout::Layout, process::Process};

/// Two seconds are usual; a busy machine with two cores may need a minute.
const PATIENCE: Duration = Duration::from_mins(5);
const POLL: Duration = Duration::from_millis(25);

/// A running control plane. It ends when this is dropped.
#[derive(Debug)]
pub struct ControlPlane {
    processes: BTreeMap<Program, Process>,
    layout: Layout,
    probe: Http,
    client: Http,
    // Last, so that it is removed when nobody writes there any more.
    directory: TempDir,
}

impl ControlPlane {
    /// The choices before a start.
    pub fn builder() -> Builder {
        Builder::new()
    }

    pub(crate) fn start(builder: &Builder, programs: &Path) -> Result<Self, Error> {
        let directory = tempfile::Builder::new()
            .prefix("gangline-controlplane-")
            .tempdir()
            .map_err(Error::io("make a temporary directory"))?;
        let layout = Layout::create(directory.path())?;
        let process = |&program: &Program| {
            let arguments = layout.arguments(program, builder);
            (
                program,
                Process::new(program, programs, directory.path(), arguments),
            )
        };
        let processes = builder.programs.iter().map(process).collect();
        let mut control_plane = Self {
            processes,
            layout,
            probe: Http::trusting_all(),
            client: Http::trusting(&[]),
            directory,
        };
        // The API server waits for etcd by itself; its clients would log and sleep.
        control_plane.process(Program::Etcd)?.start()?;
        control_plane.process(Program::ApiServer)?.start()?;
        control_plane.wait_until_ready(Program::ApiServer)?;
        let certificates = control_plane.layout.certificates();
        let pem = fs::read(&certificates)
            .map_err(Error::io(format!("read {}", certificates.display())))?;
        control_plane.client = Http::trusting(&pem);

        for process in control_plane.processes.values_mut() {
            process.start()?;
        }
        for &program in &builder.programs {
            control_plane.wait_until_ready(program)?;
        }
        Ok(control_plane)
    }

    /// A kubeconfig with all rights.
    pub fn kubeconfig(&self) -> PathBuf {
        self.layout.kubeconfig()
    }

    /// The API server's URL, without a slash at its end.
    pub fn url(&self) -> String {
        self.layout.api_server_url()
    }

    /// A bearer token with all rights.
    pub fn token(&self) -> &str {
        &self.layout.token
    }

    /// The certificates that the API server is to be believed by, PEM in a file.
    pub fn certificates(&self) -> PathBuf {
        self.layout.certificates()
    }

    /// A directory of this control plane, where a test may put files too; it goes with it.
    pub fn directory(&self) -> &Path {
        self.directory.path()
    }

    /// A program's process id, to measure it. None while it does not run.
    pub fn process_id(&self, program: Program) -> Option<u32> {
        self.processes.get(&program).and_then(Process::id)
    }

    /// All that a program wrote since the control plane started.
    pub fn log(&self, program: Program) -> Result<String, Error> {
        self.processes
            .get(&program)
            .ok_or(Error::NotRunning { program })?
            .log()
    }

    /// `GET` with all rights; `path` begins with a slash.
    pub fn get(&self, path: &str) -> Result<Answer, Error> {
        self.client
            .send("GET", &(self.url() + path), Some(self.token()), None)
    }

    /// `POST` of JSON with all rights; `path` begins with a slash.
    pub fn post(&self, path: &str, json: &str) -> Result<Answer, Error> {
        self.client
            .send("POST", &(self.url() + path), Some(self.token()), Some(json))
    }

    /// Stops a program where it stands (`SIGSTOP`): its connections stay and nothing answers.
    pub fn pause(&mut self, program: Program) -> Result<(), Error> {
        self.process(program)?.signal(Signal::STOP)
    }

    /// Lets a program that was paused go on.
    pub fn resume(&mut self, program: Program) -> Result<(), Error> {
        self.process(program)?.signal(Signal::CONT)
    }

    /// Ends a program at once (`SIGKILL`); its ports are free when this returns.
    pub fn kill(&mut self, program: Program) -> Result<(), Error> {
        self.process(program)?.kill()
    }

    /// Starts a program again with the same ports and state, after ending it where it runs, and
    /// returns when it is ready.
    pub fn restart(&mut self, program: Program) -> Result<(), Error> {
        let since = Instant::now();
        loop {
            let process = self.process(program)?;
            process.kill()?;
            process.start()?;
            match self.wait_until_ready(program) {
                // A connection of somebody else holds our port as its own end; such do not last.
                Err(error) if error.is_lost_port() && since.elapsed() < PATIENCE => {
                    thread::sleep(POLL);
                }
                result => return result,
            }
        }
    }

    fn process(&mut self, program: Program) -> Result<&mut Process, Error> {
        self.processes
            .get_mut(&program)
            .ok_or(Error::NotRunning { program })
    }

    /// Returns when the program says that it is ready, or when it or another has ended.
    fn wait_until_ready(&mut self, program: Program) -> Result<(), Error> {
        let url = self.layout.ready_url(program);
        let since = Instant::now();
        loop {
            let answer = self.probe.send("GET", &url, Some(&self.layout.token), None);
            // After the answer, so that it is not a stranger's on a port that ours could not have.
            for process in self.processes.values_mut() {
                if let Some(status) = process.ended()? {
                    let log = process.end_of_log();
                    return Err(Error::Ended {
                        program: process.program,
                        status,
                        log,
                    });
                }
            }
            let answer = match answer {
                Ok(Answer { status: 200, .. }) => return Ok(()),
                Ok(Answer { status, body }) => format!("status {status}: {body}"),
                Err(error) => error.to_string(),
            };
            let waited = since.elapsed();
            if waited > PATIENCE {
                let log = self.process(program)?.end_of_log();
                return Err(Error::NotReady {
                    program,
                    waited,
                    answer,
                    log,
                });
            }
            thread::sleep(POLL);
        }
    }
}

impl Drop for ControlPlane {
    fn drop(&mut self) {
        if thread::panicking() {
            // The directory goes, so what a failed test's reader wants to see is shown here.
            for process in self.processes.values() {
                eprintln!(
                    "--- the end of {}'s log:\n{}",
                    process.program,
                    process.end_of_log()
                );
            }
        }
        // The API server before etcd: without etcd it would hang. The others first, as they would
        // only complain.
        for process in self.processes.values_mut().rev() {
            // As in `Process::drop`, which tries again.
            drop(process.kill());
        }
    }
}
