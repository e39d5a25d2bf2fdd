//! The end of the private temp folder of a sandbox.

use std::fs;
use std::os::unix::fs::PermissionsExt;
use std::path::Path;

use crate::Policy;

impl Policy {
    /// Removes the private temp folder, including read-only folders in it. What cannot be removed stays until the folder
    /// above is removed.
    pub fn remove_tmp(&self) {
        if fs::remove_dir_all(&self.tmp).is_err() {
            unlock(&self.tmp);
            let _ = fs::remove_dir_all(&self.tmp);
        }
    }
}

fn unlock(folder: &Path) {
    let _ = fs::set_permissions(folder, PermissionsExt::from_mode(0o700));
    let Ok(entries) = fs::read_dir(folder) else { return };
    for entry in entries.flatten() {
        if entry.file_type().is_ok_and(|kind| kind.is_dir()) {
            unlock(&entry.path());
        }
    }
}
