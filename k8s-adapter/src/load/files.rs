//! Paths to bytes: directories, standard input, gzip.

use std::{
    borrow::Cow,
    fs,
    io::{self, Read as _},
    path::{Path, PathBuf},
    sync::Arc,
};

use flate2::read::MultiGzDecoder;

use super::{Sink, reader::file_complaint};

/// Largest file after unpacking. A dump of 5,000 nodes and 140,000 pods has half a gigabyte; this
/// keeps a gzip bomb from taking the machine's memory.
const MAX_BYTES: u64 = 8 << 30;

/// A path that cannot be opened.
#[derive(Debug, thiserror::Error)]
#[error("{path}: {error}")]
pub struct LoadError {
    /// The path.
    pub path: String,
    /// Why not.
    #[source]
    pub error: io::Error,
}

/// A file that shall be read.
pub(super) struct Found {
    /// As the caller named it.
    pub(super) name: Arc<str>,
    /// Bytes on disk; 0 when unknown.
    pub(super) size: u64,
    path: Option<PathBuf>,
    /// Named by the caller, not found in a directory: it must be readable.
    named: bool,
}

/// All files that the paths stand for. A directory's files come sorted by path; entries that are
/// hidden, directories behind links (they may lead in circles) and files of other names are skipped.
pub(super) fn find(paths: &[PathBuf], sink: &mut dyn Sink) -> Result<Vec<Found>, LoadError> {
    let mut found = Vec::new();
    for path in paths {
        if path.as_os_str() == "-" {
            found.push(Found {
                name: "-".into(),
                size: 0,
                path: None,
                named: true,
            });
            continue;
        }
        let metadata = fs::metadata(path).map_err(|error| load_error(path, error))?;
        if metadata.is_dir() {
            let entries = fs::read_dir(path).map_err(|error| load_error(path, error))?;
            directory(entries, path, &mut found, sink);
        } else {
            found.push(file(path, metadata.len(), true));
        }
    }
    Ok(found)
}

fn directory(entries: fs::ReadDir, path: &Path, found: &mut Vec<Found>, sink: &mut dyn Sink) {
    let mut entries: Vec<_> = match entries.collect() {
        Ok(entries) => entries,
        Err(error) => return unreadable(path, &error, sink),
    };
    entries.sort_by_key(fs::DirEntry::file_name);
    for entry in entries {
        let path = entry.path();
        if entry.file_name().to_string_lossy().starts_with('.') {
            continue;
        }
        let is_directory = entry.file_type().is_ok_and(|kind| kind.is_dir());
        if is_directory {
            match fs::read_dir(&path) {
                Ok(inner) => directory(inner, &path, found, sink),
                Err(error) => unreadable(&path, &error, sink),
            }
        } else if has_known_name(&path) {
            match fs::metadata(&path) {
                Ok(metadata) if metadata.is_dir() => {}
                Ok(metadata) => found.push(file(&path, metadata.len(), false)),
                Err(error) => unreadable(&path, &error, sink),
            }
        }
    }
}

fn unreadable(path: &Path, error: &io::Error, sink: &mut dyn Sink) {
    let name = path.to_string_lossy().as_ref().into();
    sink.complaint(file_complaint(&name, error.to_string()));
}

fn file(path: &Path, size: u64, named: bool) -> Found {
    Found {
        name: path.to_string_lossy().as_ref().into(),
        size,
        path: Some(path.to_owned()),
        named,
    }
}

fn has_known_name(path: &Path) -> bool {
    let name = path.to_string_lossy().to_ascii_lowercase();
    let name = name.strip_suffix(".gz").unwrap_or(&name);
    [".yaml", ".yml", ".json"]
        .iter()
        .any(|suffix| name.ends_with(suffix))
}

fn load_error(path: &Path, error: io::Error) -> LoadError {
    LoadError {
        path: path.to_string_lossy().into_owned(),
        error,
    }
}

impl Found {
    /// Its unpacked bytes, or what is wrong with them.
    pub(super) fn read(&self) -> Result<Result<Vec<u8>, String>, LoadError> {
        let mut bytes = Vec::new();
        let read = match &self.path {
            None => io::stdin()
                .lock()
                .take(MAX_BYTES + 1)
                .read_to_end(&mut bytes),
            Some(path) => fs::File::open(path).and_then(|file| {
                bytes.reserve(usize::try_from(self.size.min(MAX_BYTES)).unwrap_or(0) + 1);
                file.take(MAX_BYTES + 1).read_to_end(&mut bytes)
            }),
        };
        match read {
            Ok(_) => Ok(unpack(bytes.into()).map(Cow::into_owned)),
            Err(error) if self.named => Err(LoadError {
                path: self.name.as_ref().into(),
                error,
            }),
            Err(error) => Ok(Err(error.to_string())),
        }
    }
}

/// Unpacks gzip, which is known by its first bytes, and leaves everything else as it is.
pub(super) fn unpack(bytes: Cow<'_, [u8]>) -> Result<Cow<'_, [u8]>, String> {
    let too_large = || format!("more than {} GiB", MAX_BYTES >> 30);
    if !bytes.starts_with(&[0x1f, 0x8b]) {
        return if bytes.len() as u64 > MAX_BYTES {
            Err(too_large())
        } else {
            Ok(bytes)
        };
    }
    let mut unpacked = Vec::new();
    let mut decoder = MultiGzDecoder::new(&*bytes).take(MAX_BYTES + 1);
    decoder.read_to_end(&mut unpacked).map_err(|error| {
        let place = unpacked.len();
        format!("broken gzip after {place} bytes of text, nothing of it is used ({error})")
    })?;
    if unpacked.len() as u64 > MAX_BYTES {
        return Err(too_large());
    }
    Ok(unpacked.into())
}
