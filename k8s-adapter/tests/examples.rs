//! The commands in the documents say what the documents show.
//!
//! Each `console` block of the documents below is run line by line in a copy of `docs/examples`; what
//! follows a `$ gangline` line must be what it prints, and its exit code is the comment at the end.
//! Pictures that the commands draw must be the ones that are checked in. `GANGLINE_UPDATE=1` writes
//! what is printed and drawn into the documents instead.

use std::{
    env,
    fmt::Write as _,
    fs,
    path::{Path, PathBuf},
    process::Command,
};

fn repository() -> PathBuf {
    let root = Path::new(env!("CARGO_MANIFEST_DIR")).parent();
    root.expect("the crate is in the repository").to_path_buf()
}

fn is_update() -> bool {
    env::var_os("GANGLINE_UPDATE").is_some()
}

/// Runs a command line of the documents in `directory`: standard output, then the exit code.
fn run(line: &str, directory: &Path) -> String {
    let mut words = line.split_whitespace();
    assert_eq!(
        words.next(),
        Some("gangline"),
        "only our own command is run"
    );
    let output = Command::new(env!("CARGO_BIN_EXE_gangline"))
        .args(words)
        .current_dir(directory)
        .env("NO_COLOR", "1")
        .output()
        .expect("the command starts");
    let mut text = String::from_utf8(output.stdout).expect("the command prints text");
    text.push_str(&String::from_utf8_lossy(&output.stderr));
    let code = output.status.code().expect("the command ends by itself");
    writeln!(text, "# exit code {code}").expect("text grows");
    text
}

/// The document with the output of each of its commands as it is now.
fn replayed(document: &str, directory: &Path) -> String {
    let mut text = String::new();
    let mut lines = document.lines().peekable();
    let mut in_console = false;
    while let Some(line) = lines.next() {
        if line.starts_with("```") {
            in_console = line == "```console";
        }
        text.push_str(line);
        text.push('\n');
        if let Some(command) = line.strip_prefix("$ ").filter(|_| in_console) {
            text.push_str(&run(command, directory));
            let is_output = |line: &&str| !line.starts_with("$ ") && !line.starts_with("```");
            while lines.next_if(is_output).is_some() {}
        }
    }
    text
}

/// All files of a folder and the folders in it.
fn files(folder: &Path) -> Vec<PathBuf> {
    let mut found = Vec::new();
    for entry in fs::read_dir(folder).expect("the folder can be read") {
        let path = entry.expect("the entry can be read").path();
        if path.is_dir() {
            found.extend(files(&path));
        } else {
            found.push(path);
        }
    }
    found.sort();
    found
}

#[test]
fn documents_show_what_the_commands_print() {
    let root = repository();
    let examples = root.join("docs/examples");
    let copy = Path::new(env!("CARGO_TARGET_TMPDIR")).join("documents");
    for file in files(&examples) {
        let target = copy.join(file.strip_prefix(&root).expect("is in the repository"));
        fs::create_dir_all(target.parent().expect("has a folder")).expect("folders can be made");
        fs::copy(&file, target).expect("files can be copied");
    }
    let mut documents = files(&examples);
    documents.retain(|file| file.extension().is_some_and(|end| end == "md"));
    documents.push(root.join("docs/cards.md"));
    documents.push(root.join("docs/scenarios.md"));
    let mut commands = 0;
    for path in &documents {
        let document = fs::read_to_string(path).expect("the document can be read");
        let now = replayed(&document, &copy);
        commands += now.matches("# exit code").count();
        if is_update() {
            fs::write(path, now).expect("the document can be written");
        } else {
            assert_eq!(
                document,
                now,
                "{} (GANGLINE_UPDATE=1 updates it)",
                path.display()
            );
        }
    }
    assert!(
        commands >= 8,
        "each example runs at least one command, some two"
    );
    for drawn in files(&copy.join("docs/examples")) {
        let checked_in = root.join(drawn.strip_prefix(&copy).expect("is in the copy"));
        if drawn.extension().is_none_or(|end| end != "svg") {
            continue;
        }
        let now = fs::read_to_string(&drawn).expect("the picture can be read");
        if is_update() {
            fs::write(&checked_in, now).expect("the picture can be written");
        } else {
            let before = fs::read_to_string(&checked_in).unwrap_or_default();
            assert!(before == now, "{} differs", checked_in.display());
        }
    }
}
