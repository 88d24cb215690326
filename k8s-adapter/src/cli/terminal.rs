//! Standard output and standard error: colours where they are wanted, bars where they can be seen.
//!
//! Text enters with colour codes, which are dropped unless it goes to a terminal (and `NO_COLOR` is
//! not set). A reader that goes away is no error: nobody is left to be told.

use std::{
    borrow::Cow,
    io::{self, Write},
    time::{Duration, Instant},
};

use anstyle::{AnsiColor, Style};
use indicatif::{ProgressBar, ProgressDrawTarget, ProgressStyle};

use super::CliError;

/// Work that takes less than this shows no bar.
const PATIENCE: Duration = Duration::from_secs(1);

/// Prints text on standard output.
pub(super) fn print(text: &str) -> Result<(), CliError> {
    let mut output = anstream::AutoStream::auto(io::stdout());
    settle(
        output
            .write_all(text.as_bytes())
            .and_then(|()| output.flush()),
    )
}

/// Prints bytes as they are on standard output.
pub(super) fn print_bytes(bytes: &[u8]) -> Result<(), CliError> {
    let mut output = io::stdout();
    settle(output.write_all(bytes).and_then(|()| output.flush()))
}

fn settle(written: io::Result<()>) -> Result<(), CliError> {
    match written {
        Err(error) if error.kind() == io::ErrorKind::BrokenPipe => Ok(()),
        written => written.map_err(CliError::Output),
    }
}

/// One line on standard error: what kind of line it is, then what there is to say.
pub(super) fn complain(kind: &str, line: &str) {
    let color = if kind == "warning" {
        AnsiColor::Yellow
    } else {
        AnsiColor::Red
    };
    let style: Style = color.on_default().bold();
    let mut output = anstream::AutoStream::auto(io::stderr());
    // When even standard error is gone there is nobody to tell.
    let _ = writeln!(output, "{style}{kind}{style:#}: {line}");
}

/// A bar on standard error: only on a terminal, and only when the work takes long.
pub(super) struct Progress {
    started: Instant,
    bar: ProgressBar,
    shown: bool,
}

impl Progress {
    pub(super) fn new() -> Self {
        let bar = ProgressBar::with_draw_target(None, ProgressDrawTarget::hidden());
        if let Ok(style) = ProgressStyle::with_template("{msg:10} {wide_bar} {percent:>3}%") {
            bar.set_style(style);
        }
        Self {
            started: Instant::now(),
            bar,
            shown: false,
        }
    }

    /// How far the work is. Cheap enough to be called often.
    pub(super) fn set(&mut self, what: impl Into<Cow<'static, str>>, done: u64, total: u64) {
        if !self.shown && self.started.elapsed() < PATIENCE {
            return;
        }
        if !self.shown {
            self.bar.set_draw_target(ProgressDrawTarget::stderr());
            self.shown = true;
        }
        self.bar.set_length(total);
        self.bar.set_message(what);
        self.bar.set_position(done);
    }
}

impl Drop for Progress {
    fn drop(&mut self) {
        self.bar.finish_and_clear();
    }
}
