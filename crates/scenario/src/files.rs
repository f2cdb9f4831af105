//! Files that a scenario names by their paths from its folder.

use std::fs::File;
use std::io::Read;
use std::path::Path;

use crate::FILE_BYTES_MAX;
use crate::quantity::shown;

/// Reads a text; the second is the hash of its content. `what` it is and of what it consists stand in the error, which says what
/// is wrong with the file.
pub(crate) fn read(folder: &Path, path: &str, (what, of): (&str, &str)) -> Result<(String, String), String> {
    let refuse = |what: &str| format!("{}: {what}", shown(path));
    let mut bytes = Vec::new();
    let limit = FILE_BYTES_MAX as u64 + 1;
    let full = folder.join(path);
    if full.is_dir() {
        return Err(refuse(&format!("a directory; expected a file with {what}")));
    }
    File::open(&full).and_then(|file| file.take(limit).read_to_end(&mut bytes)).map_err(|error| {
        refuse(&match error.kind() {
            std::io::ErrorKind::NotFound => {
                "no such file; expected a path from the scenario's folder".to_owned()
            }
            std::io::ErrorKind::PermissionDenied => "no permission to read".to_owned(),
            _ => format!("cannot be read: {error}"),
        })
    })?;
    if bytes.len() > FILE_BYTES_MAX {
        return Err(refuse(&format!("larger than {} MB, the most for {what}", FILE_BYTES_MAX / 1_000_000)));
    }
    let hash = blake3::hash(&bytes).to_hex().to_string();
    let text = String::from_utf8(bytes).map_err(|_| refuse(&format!("not a text file; expected {of}")))?;
    Ok((text, hash))
}
