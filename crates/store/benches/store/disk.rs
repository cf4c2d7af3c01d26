//! The disk's own limit.

use std::fs::File;
use std::io::Write;
use std::path::Path;
use std::time::{Duration, Instant};

/// Pages of 4 KiB appended to a growing file, each synced before the next.
pub(crate) fn appends_per_second(dir: &Path, sample: Duration) -> f64 {
    let mut file = File::create(dir.join("appends")).unwrap();
    let page = [7_u8; 4_096];
    let begun = Instant::now();
    let mut appends = 0_u32;
    while begun.elapsed() < sample {
        file.write_all(&page).unwrap();
        file.sync_data().unwrap();
        appends += 1;
    }
    f64::from(appends) / begun.elapsed().as_secs_f64()
}
