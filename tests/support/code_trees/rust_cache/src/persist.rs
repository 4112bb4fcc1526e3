//! Keeps entries over a restart.

use std::fs::{self, File};
use std::io::{self, Read, Write};
use std::path::Path;

const MAGIC: &[u8; 4] = b"TIDE";

/// Writes entries beside the file and moves them over it, so that a crash leaves the old file or the new one.
pub fn save(path: &Path, entries: &[(String, Vec<u8>)]) -> io::Result<()> {
    let beside = path.with_extension("tmp");
    let mut file = File::create(&beside)?;
    file.write_all(MAGIC)?;
    for (key, value) in entries {
        file.write_all(&(key.len() as u32).to_le_bytes())?;
        file.write_all(key.as_bytes())?;
        file.write_all(&(value.len() as u32).to_le_bytes())?;
        file.write_all(value)?;
    }
    file.sync_all()?;
    fs::rename(beside, path)
}

/// Reads entries; a file that does not begin as it should is refused.
pub fn load(path: &Path) -> io::Result<Vec<(String, Vec<u8>)>> {
    let mut data = Vec::new();
    File::open(path)?.read_to_end(&mut data)?;
    if !data.starts_with(MAGIC) {
        return Err(io::Error::new(io::ErrorKind::InvalidData, "no cache file"));
    }
    let mut rest = &data[MAGIC.len()..];
    let mut entries = Vec::new();
    while !rest.is_empty() {
        let key = take(&mut rest);
        let value = take(&mut rest);
        entries.push((String::from_utf8_lossy(key).into_owned(), value.to_vec()));
    }
    Ok(entries)
}

fn take<'a>(rest: &mut &'a [u8]) -> &'a [u8] {
    let length = u32::from_le_bytes(rest[..4].try_into().unwrap()) as usize;
    let (field, left) = rest[4..].split_at(length);
    *rest = left;
    field
}
