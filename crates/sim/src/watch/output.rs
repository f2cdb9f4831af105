//! A file that is written while a run goes on.

use std::{
    fs::File,
    io::{self, BufWriter, Write as _},
    path::{Path, PathBuf},
};

/// The file. What fails first is kept until the end, for a run has no place for it.
pub(super) struct Output {
    path: PathBuf,
    file: Option<BufWriter<File>>,
    error: Option<io::Error>,
}

impl Output {
    pub(super) fn create(path: PathBuf) -> Self {
        match File::create(&path) {
            Ok(file) => Self { path, file: Some(BufWriter::with_capacity(1 << 16, file)), error: None },
            Err(error) => Self { path, file: None, error: Some(error) },
        }
    }

    pub(super) fn path(&self) -> &Path {
        &self.path
    }

    pub(super) fn write(&mut self, bytes: &[u8]) {
        if let Some(file) = &mut self.file
            && let Err(error) = file.write_all(bytes)
        {
            self.file = None;
            self.error = Some(error);
        }
    }

    pub(super) fn has_failed(&self) -> bool {
        self.error.is_some()
    }

    /// Writes what is left, and says whether everything has been written.
    pub(super) fn finish(mut self) -> Result<(), (PathBuf, io::Error)> {
        if let Some(mut file) = self.file.take() {
            self.error = file.flush().err();
        }
        match self.error {
            None => Ok(()),
            Some(error) => Err((self.path, error)),
        }
    }
}
