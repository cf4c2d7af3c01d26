//! Noticing that files have changed: by looking, which works on every file system.

use std::collections::BTreeMap;
use std::fs;
use std::path::{Path, PathBuf};
use std::time::{Duration, SystemTime};

use tokio::time::{Interval, MissedTickBehavior, interval};

use crate::sources::files_in;

/// How often files are looked at.
const LOOK: Duration = Duration::from_millis(400);

/// What is known of a file without reading it.
type Trace = (SystemTime, u64);

/// Files that are looked at.
pub(crate) struct Watch {
    /// The `outlast.toml`.
    config: PathBuf,
    /// The folder of the workflows, if they are looked at.
    folder: Option<PathBuf>,
    seen: BTreeMap<PathBuf, Trace>,
    looks: Interval,
}

/// What is not as it was.
#[derive(Debug, Default, PartialEq, Eq)]
pub(crate) struct Changed {
    /// The `outlast.toml` is new, other or gone.
    pub(crate) config: bool,
    /// Workflows that are new or other.
    pub(crate) files: Vec<PathBuf>,
    /// Workflows that are gone.
    pub(crate) gone: Vec<PathBuf>,
}

impl Watch {
    /// Looks at them for the first time.
    pub(crate) fn new(config: &Path, folder: Option<&Path>) -> Watch {
        let mut looks = interval(LOOK);
        looks.set_missed_tick_behavior(MissedTickBehavior::Delay);
        let mut watch =
            Watch { config: config.to_owned(), folder: folder.map(Path::to_owned), seen: BTreeMap::new(), looks };
        watch.seen = watch.look();
        watch
    }

    /// Waits until something has changed.
    pub(crate) async fn changed(&mut self) -> Changed {
        loop {
            self.looks.tick().await;
            if let Some(changed) = self.compare() {
                return changed;
            }
        }
    }

    /// What has changed since it was looked at last.
    fn compare(&mut self) -> Option<Changed> {
        let now = self.look();
        if now == self.seen {
            return None;
        }
        let before = std::mem::replace(&mut self.seen, now);
        let mut changed = Changed::default();
        for path in self.seen.keys().filter(|path| before.get(*path) != self.seen.get(*path)) {
            if *path == self.config { changed.config = true } else { changed.files.push(path.clone()) }
        }
        for path in before.keys().filter(|path| !self.seen.contains_key(*path)) {
            if *path == self.config { changed.config = true } else { changed.gone.push(path.clone()) }
        }
        Some(changed)
    }

    fn look(&self) -> BTreeMap<PathBuf, Trace> {
        let workflows = self.folder.as_deref().map(files_in).unwrap_or_default();
        let files = workflows.into_iter().chain([self.config.clone()]);
        files.filter_map(|path| trace(&path).map(|trace| (path, trace))).collect()
    }
}

fn trace(path: &Path) -> Option<Trace> {
    let about = fs::metadata(path).ok()?;
    Some((about.modified().unwrap_or(SystemTime::UNIX_EPOCH), about.len()))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[tokio::test]
    async fn what_is_new_other_or_gone_is_noticed_once() {
        let dir = tempfile::tempdir().unwrap();
        let path = |name: &str| dir.path().join(name);
        fs::write(path("a.wf"), "return 1").unwrap();
        let mut watch = Watch::new(&path("outlast.toml"), Some(dir.path()));
        fs::write(path("a.wf"), "return 22").unwrap();
        fs::write(path("b.wf"), "return 1").unwrap();
        fs::write(path("notes.txt"), "").unwrap();
        fs::write(path("outlast.toml"), "").unwrap();
        let all = Changed { config: true, files: vec![path("a.wf"), path("b.wf")], gone: Vec::new() };
        assert_eq!(watch.compare(), Some(all));
        fs::remove_file(path("a.wf")).unwrap();
        assert_eq!(watch.compare(), Some(Changed { gone: vec![path("a.wf")], ..Changed::default() }));
        fs::remove_file(path("outlast.toml")).unwrap();
        assert_eq!(watch.compare(), Some(Changed { config: true, ..Changed::default() }));
        assert_eq!(watch.compare(), None);
    }
}
