//! What ends a control plane when the process that started it is gone, however that went: killed,
//! aborted, interrupted.
//!
//! All programs are in one process group of their own, which a small process (the anchor) keeps in
//! being. A second one (the cleaner) waits on a pipe from the process that started all. When that
//! ends, the system closes the pipe, and the cleaner kills the group and removes the directory. It is
//! told nothing else, and asks nobody. In the ordinary case it only removes the directory.

use std::{
    env,
    fs::DirBuilder,
    io::{self, Write as _},
    os::unix::{fs::DirBuilderExt as _, process::CommandExt as _},
    path::{Path, PathBuf},
    process::{Child, Command, Stdio},
};

use rustix::process::{Pid, Signal, kill_process_group};

use crate::{Error, key};

/// Ends with its input, that is, with us.
const ANCHOR: &str = "read -r _";

/// `$1` is the process group, `$2` the directory. A line says that we have ended the group ourselves;
/// the end of the input without one says that we are gone. Then it does not end at the first try: what
/// is killed may write for another moment, and a program may have been about to start. (Whether the
/// group is empty cannot be asked: the dead count until somebody collects them.)
const CLEANER: &str = r#"
trap "" HUP INT TERM
if ! read -r _; then
    for _ in 1 2 3 4 5 6 7 8 9 10; do
        kill -s KILL -- "-$1"
        rm -rf -- "$2"
        sleep 0.1
    done
fi
rm -rf -- "$2"
"#;

#[derive(Debug)]
pub(crate) struct Guard {
    anchor: Child,
    cleaner: Child,
    directory: PathBuf,
}

impl Guard {
    /// Makes a directory, which goes when this is dropped or this process ends.
    pub(crate) fn new() -> Result<Self, Error> {
        let directory = env::temp_dir().join(format!("gangline-controlplane-{}", key::name()?));
        let shell = |script: &str, group: i32| {
            let mut command = Command::new("sh");
            command
                .args(["-c", script, "sh"])
                .current_dir("/")
                .process_group(group)
                .stdin(Stdio::piped())
                .stdout(Stdio::null())
                .stderr(Stdio::null());
            command
        };
        let failed = "start a shell that cleans up";
        let mut anchor = shell(ANCHOR, 0).spawn().map_err(Error::io(failed))?;
        let cleaner = shell(CLEANER, 0)
            .arg(anchor.id().to_string())
            .arg(&directory)
            .spawn()
            .map_err(Error::io(failed));
        let guard = match cleaner {
            Ok(cleaner) => Self {
                anchor,
                cleaner,
                directory,
            },
            Err(error) => {
                // Else it would wait for the end of this process, or stay uncollected.
                drop(anchor.kill());
                drop(anchor.wait());
                return Err(error);
            }
        };
        // The last, so that there is no moment in which it would stay.
        let made = DirBuilder::new().mode(0o700).create(&guard.directory);
        made.map_err(Error::io(format!("make {}", guard.directory.display())))?;
        Ok(guard)
    }

    /// The directory.
    pub(crate) fn directory(&self) -> &Path {
        &self.directory
    }

    /// The command's process will end with this process.
    pub(crate) fn attach(&self, command: &mut Command) {
        command.process_group(self.anchor.id() as i32);
    }

    fn clean_up(&mut self) -> io::Result<()> {
        // What was attached too; the anchor is not collected yet, so the number is still its group's.
        let _ = kill_process_group(Pid::from_child(&self.anchor), Signal::KILL);
        self.anchor.wait()?;
        if let Some(mut input) = self.cleaner.stdin.take() {
            input.write_all(b"the group has ended\n")?;
        }
        self.cleaner.wait()?;
        Ok(())
    }
}

impl Drop for Guard {
    fn drop(&mut self) {
        // Nobody is left to tell. What is not done here the cleaner does when this process ends.
        drop(self.clean_up());
    }
}
