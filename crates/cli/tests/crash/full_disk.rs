//! A really full disk: the state of the project is on a small file system in a namespace of its own.

use std::fs;
use std::io::Write;
use std::path::Path;
use std::time::Duration;

use crate::project::Project;

/// A file system for the state of a project.
#[derive(Debug, Clone, Copy)]
pub(crate) struct SmallDisk {
    pub(crate) megabytes: u32,
}

impl Project {
    /// Runs the program with its state on a small disk, which is full every now and then once the first effect is
    /// there. Returns how often it was filled.
    pub(crate) fn run_on_full_disk(
        &self,
        arguments: &[&str],
        disk: SmallDisk,
        mut random: impl FnMut(u64) -> u64,
    ) -> u64 {
        let (small, kept) = (self.state_base(), self.path().join("kept"));
        fs::create_dir_all(&small).unwrap();
        let size = disk.megabytes;
        let script = format!(
            "small=$1; kept=$2; shift 2; mount -t tmpfs -o size={size}m,mode=0700 tmpfs \"$small\" && \"$0\" \"$@\"; \
             code=$?; rm -f \"$small/filler\"; cp -a \"$small/.\" \"$kept\"; exit $code"
        );
        let mut command = self.antiphon_in("unshare");
        command.args(["--user", "--map-root-user", "--mount", "sh", "-c", &script]);
        command.arg(env!("CARGO_BIN_EXE_antiphon")).args([&small, &kept]).args(arguments);
        let mut process = command.spawn().unwrap();
        let inside = Path::new("/proc").join(process.id().to_string()).join("root");
        let filler = inside.join(small.strip_prefix("/").unwrap()).join("filler");
        let mut times = 0;
        // A program that starts on a full disk says so and ends.
        while self.text("log").is_empty() && process.try_wait().unwrap().is_none() {
            std::thread::sleep(Duration::from_millis(1));
        }
        while process.try_wait().unwrap().is_none() {
            std::thread::sleep(Duration::from_millis(random(60)));
            // The process may have ended meanwhile, and its disk with it.
            if let Ok(mut file) = fs::File::create(&filler) {
                while file.write_all(&[0; 4096]).is_ok() {}
                times += 1;
            }
            std::thread::sleep(Duration::from_millis(random(400)));
            let _ = fs::remove_file(&filler);
        }
        let output = process.wait_with_output().unwrap();
        let err = String::from_utf8_lossy(&output.stderr);
        assert!(output.status.success(), "{err}");
        fs::remove_dir_all(&small).unwrap();
        fs::rename(kept, small).unwrap();
        times
    }
}
