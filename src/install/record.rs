//! What a settings file was before jess changed it.

use super::Error;
use serde_json::{Value, json};
use sha2::{Digest, Sha256};
use std::fs;
use std::os::unix::ffi::OsStrExt;
use std::os::unix::fs::{DirBuilderExt, OpenOptionsExt};
use std::path::{Path, PathBuf};

fn hex(bytes: &[u8]) -> String {
    Sha256::digest(bytes).iter().map(|b| format!("{b:02x}")).collect()
}

fn place(state: &Path, file: &Path) -> PathBuf {
    let name = hex(file.as_os_str().as_bytes());
    state.join("install").join(name.get(..32).unwrap_or(&name))
}

fn load(state: &Path, file: &Path) -> Option<Value> {
    serde_json::from_slice(&fs::read(place(state, file)).ok()?).ok()
}

/// Keeps what `file` was. A renewal keeps what it was before the first installation, if nothing else changed since.
pub fn keep(state: &Path, file: &Path, before: Option<&str>, after: &str) -> Result<(), Error> {
    let now = before.map(|b| hex(b.as_bytes()));
    let first = load(state, file)
        .filter(|r| now.is_some() && r.get("after").and_then(Value::as_str) == now.as_deref())
        .and_then(|r| r.get("before").cloned());
    let record = json!({
        "file": file.to_string_lossy(),
        "before": first.unwrap_or_else(|| before.map_or(Value::Null, Into::into)),
        "after": hex(after.as_bytes()),
    });
    let path = place(state, file);
    let io = |source| Error::Io { path: path.clone(), source };
    fs::DirBuilder::new().recursive(true).mode(0o700).create(path.parent().unwrap_or(state)).map_err(io)?;
    let mut out =
        fs::OpenOptions::new().write(true).create(true).truncate(true).mode(0o600).open(&path).map_err(io)?;
    std::io::Write::write_all(&mut out, record.to_string().as_bytes()).map_err(io)?;
    out.sync_all().map_err(io)
}

/// What the file was before, if it is now what jess made it: `Some(None)` when there was none.
pub fn before(state: &Path, file: &Path, now: &str) -> Option<Option<String>> {
    let record = load(state, file)?;
    if record.get("after").and_then(Value::as_str) != Some(hex(now.as_bytes()).as_str()) {
        return None;
    }
    match record.get("before")? {
        Value::Null => Some(None),
        Value::String(text) => Some(Some(text.clone())),
        _ => None,
    }
}

/// Forgets a file.
pub fn forget(state: &Path, file: &Path) {
    let _ = fs::remove_file(place(state, file));
}
