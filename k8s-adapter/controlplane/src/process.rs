//! One program as a process: start, look, stop, and its log.
//!
//! It writes to its log only, reads nothing, and ends with the process that started it.

use std::{
    env,
    fs::{File, OpenOptions},
    io::{self, Read, Seek, SeekFrom},
    path::{Path, PathBuf},
    process::{Child, Command, ExitStatus, Stdio},
};

use rustix::process::{Pid, Signal, kill_process};

use crate::{Error, Program, guard::Guard};

/// So much of a log's end tells why a program ended; it is also where a lost port shows.
const LOG_END_BYTES: u64 = 8192;

#[derive(Debug)]
pub(crate) struct Process {
    pub(crate) program: Program,
    file: PathBuf,
    arguments: Vec<String>,
    home: PathBuf,
    log: PathBuf,
    /// Where the log of the present run begins.
    log_start: u64,
    child: Option<Child>,
}

impl Process {
    /// Nothing runs yet.
    pub(crate) fn new(
        program: Program,
        programs: &Path,
        state: &Path,
        arguments: Vec<String>,
    ) -> Self {
        let name = program.file_name();
        Self {
            program,
            file: programs.join(name),
            arguments,
            home: state.to_owned(),
            log: state.join(format!("{name}.log")),
            log_start: 0,
            child: None,
        }
    }

    /// Starts it; where it runs already, does nothing.
    pub(crate) fn start(&mut self, guard: &Guard) -> Result<(), Error> {
        if self.child.is_some() {
            return Ok(());
        }
        let at_log = || format!("write {}", self.log.display());
        let log = OpenOptions::new()
            .create(true)
            .append(true)
            .open(&self.log)
            .map_err(Error::io(at_log()))?;
        self.log_start = log.metadata().map_err(Error::io(at_log()))?.len();
        let mut command = Command::new(&self.file);
        guard.attach(&mut command);
        command
            .args(&self.arguments)
            // Neither a kubeconfig nor a proxy of whoever runs the tests.
            .env_clear()
            .envs(env::var_os("PATH").map(|path| ("PATH", path)))
            .env("HOME", &self.home)
            .current_dir(&self.home)
            .stdin(Stdio::null())
            .stdout(log.try_clone().map_err(Error::io(at_log()))?)
            .stderr(log);
        let child = command
            .spawn()
            .map_err(Error::io(format!("start {}", self.file.display())))?;
        self.child = Some(child);
        Ok(())
    }

    /// Its process id while it runs.
    pub(crate) fn id(&self) -> Option<u32> {
        self.child.as_ref().map(Child::id)
    }

    /// How it ended, when it was started and did so by itself.
    pub(crate) fn ended(&mut self) -> Result<Option<ExitStatus>, Error> {
        let Some(child) = &mut self.child else {
            return Ok(None);
        };
        let status = child
            .try_wait()
            .map_err(Error::io(format!("look at {}", self.program)))?;
        if status.is_some() {
            self.child = None;
        }
        Ok(status)
    }

    /// Sends a signal.
    pub(crate) fn signal(&self, signal: Signal) -> Result<(), Error> {
        let child = self.child.as_ref().ok_or(Error::NotRunning {
            program: self.program,
        })?;
        kill_process(Pid::from_child(child), signal)
            .map_err(|errno| Error::io(format!("signal {}", self.program))(errno.into()))
    }

    /// Ends it at once and waits until it is gone, with all that it held. Where it does not run, does
    /// nothing.
    pub(crate) fn kill(&mut self) -> Result<(), Error> {
        let Some(mut child) = self.child.take() else {
            return Ok(());
        };
        child
            .kill()
            .and_then(|()| child.wait())
            .map_err(Error::io(format!("end {}", self.program)))?;
        Ok(())
    }

    /// All that it wrote, in all its runs.
    pub(crate) fn log(&self) -> Result<String, Error> {
        read_from(&self.log, 0).map_err(Error::io(format!("read {}", self.log.display())))
    }

    /// The file that it writes to.
    pub(crate) fn log_file(&self) -> &Path {
        &self.log
    }

    /// The last lines of the present run.
    pub(crate) fn end_of_log(&self) -> String {
        let length = self.log.metadata().map_or(0, |metadata| metadata.len());
        let start = self.log_start.max(length.saturating_sub(LOG_END_BYTES));
        read_from(&self.log, start).unwrap_or_else(|error| format!("(no log: {error})"))
    }
}

impl Drop for Process {
    fn drop(&mut self) {
        // Nobody is left to tell; what cannot be ended here ends with this process.
        drop(self.kill());
    }
}

fn read_from(path: &Path, start: u64) -> io::Result<String> {
    let mut file = File::open(path)?;
    file.seek(SeekFrom::Start(start))?;
    let mut bytes = Vec::new();
    file.read_to_end(&mut bytes)?;
    Ok(String::from_utf8_lossy(&bytes).into_owned())
}
