//! Where runs are kept.

use std::fmt;
use std::fs;
use std::path::{Path, PathBuf};
use std::str::FromStr;

use anyhow::{Context, Result};
use outlast::Outlast;
use reqwest::Url;

use crate::exit::{Exit, Stop};
use crate::words::shell;

/// The folder of everything Outlast keeps for the folder it is called in.
const FOLDER: &str = ".outlast";
/// The database in it.
const FILE: &str = ".outlast/outlast.db";

/// Which database.
#[derive(Clone, Debug, clap::Args)]
pub(crate) struct DatabaseArgs {
    /// Where runs are kept: `sqlite:PATH` or `postgres://USER@HOST/NAME` [default: sqlite:.outlast/outlast.db]
    #[arg(long, value_name = "URL", env = "OUTLAST_DATABASE", hide_env_values = true, global = true)]
    database: Option<Database>,
}

impl DatabaseArgs {
    pub(crate) fn get(&self) -> Database {
        self.database.clone().unwrap_or_else(|| Database::Sqlite(PathBuf::from(FILE)))
    }

    /// What to add to a command that somebody copies, so that it finds the same database.
    pub(crate) fn flag(&self) -> String {
        self.database.as_ref().map_or(String::new(), |database| format!(" --database {}", shell(&database.to_string())))
    }
}

/// Where runs are: behind a server, or in a database that this process opens.
#[derive(Clone, Debug, clap::Args)]
pub(crate) struct PlaceArgs {
    #[command(flatten)]
    database: DatabaseArgs,
    /// A server to ask instead of a database, such as http://127.0.0.1:7117; its token is read from OUTLAST_TOKEN
    #[arg(long, value_name = "URL", env = "OUTLAST_URL", global = true, value_parser = parse_url)]
    url: Option<Url>,
}

/// Where runs are.
pub(crate) enum Place {
    /// Behind a server.
    Server(Url),
    /// In a database that this process opens.
    Database(Database),
}

fn parse_url(text: &str) -> Result<Url, String> {
    let form = "write http://HOST:PORT or https://HOST";
    let url: Url = text.parse().map_err(|error| format!("{error}; {form}"))?;
    match (url.scheme(), url.username()) {
        ("http" | "https", "") if url.password().is_none() => Ok(url),
        ("http" | "https", _) => Err("a token is in OUTLAST_TOKEN, and not in the address".to_owned()),
        _ => Err(form.to_owned()),
    }
}

impl PlaceArgs {
    /// What is said on the command line counts more than what is in the environment; there, a server more than a database.
    pub(crate) fn get(&self) -> Result<Place> {
        let is_said = |variable: &str| std::env::var_os(variable).is_none_or(|value| value.is_empty());
        let database = self.database.database.is_some() && is_said("OUTLAST_DATABASE");
        match &self.url {
            Some(_) if database && is_said("OUTLAST_URL") => {
                Err(Stop::new(Exit::Usage, "say either --url or --database: runs are in one place").into())
            }
            Some(url) if !database => Ok(Place::Server(url.clone())),
            Some(_) | None => Ok(Place::Database(self.database.get())),
        }
    }

    /// Whether nobody else can have the runs while this process does.
    pub(crate) fn is_sole(&self) -> bool {
        matches!(self.get(), Ok(Place::Database(database)) if database.is_sole())
    }

    /// What to add to a command that somebody copies, so that it finds the same database.
    pub(crate) fn flag(&self) -> String {
        self.database.flag()
    }
}

/// A database.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) enum Database {
    /// One file, which belongs to one process at a time.
    Sqlite(PathBuf),
    /// A server, which any number of processes share.
    Postgres(String),
}

impl FromStr for Database {
    type Err = String;

    fn from_str(text: &str) -> Result<Database, String> {
        if let Some(path) = text.strip_prefix("sqlite:") {
            let path = path.strip_prefix("//").unwrap_or(path);
            let missing = || "which file? Write sqlite:PATH, such as sqlite:shop.db".to_owned();
            return if path.is_empty() { Err(missing()) } else { Ok(Database::Sqlite(PathBuf::from(path))) };
        }
        if text.starts_with("postgres://") || text.starts_with("postgresql://") {
            return Ok(Database::Postgres(text.to_owned()));
        }
        let forms = "write sqlite:PATH or postgres://USER@HOST/NAME";
        Err(if text.contains("://") { forms.to_owned() } else { format!("{forms}; did you mean sqlite:{text}?") })
    }
}

impl fmt::Display for Database {
    /// Without the password: this is shown.
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Database::Sqlite(path) => write!(f, "sqlite:{}", path.display()),
            Database::Postgres(url) => f.write_str(&without_password(url)),
        }
    }
}

/// Credentials come first and end at the first `@`, whatever is in them: so the driver reads it, too.
fn without_password(url: &str) -> String {
    let (scheme, rest) = url.split_once("://").unwrap_or(("postgres", url));
    let (user, rest) = match rest.split_once('@') {
        // What is no name of a user may be part of a secret.
        Some((user, rest)) => (user.split([':', '/', '?', '&']).next().map(|user| format!("{user}@")), rest),
        None => (None, rest),
    };
    let user = user.unwrap_or_default();
    let (place, settings) = rest.split_once('?').unwrap_or((rest, ""));
    // A password with an `@` in it, which should have been written as %40.
    let place = place.rsplit_once('@').map_or(place, |(_, place)| place);
    let shown: Vec<&str> = settings.split('&').filter(|said| !said.is_empty() && !is_password(said)).collect();
    if shown.iter().any(|said| said.contains('@')) {
        return format!("{scheme}://{user}…");
    }
    let settings = if shown.is_empty() { String::new() } else { format!("?{}", shown.join("&")) };
    format!("{scheme}://{user}{place}{settings}")
}

/// Whether a setting is one, also if its name is written in another way: `p%61ssword`.
fn is_password(setting: &str) -> bool {
    let name = setting.split('=').next().unwrap_or_default();
    name.contains('%') || name.eq_ignore_ascii_case("password")
}

impl Database {
    /// Whether nobody else can have it while this process does.
    pub(crate) fn is_sole(&self) -> bool {
        matches!(self, Database::Sqlite(_))
    }

    /// An engine on it that is still to be started. What is missing is made.
    pub(crate) fn create(&self) -> Result<Outlast> {
        if let Database::Sqlite(path) = self {
            make_folder(path)?;
        }
        Ok(self.builder())
    }

    /// An engine on it that is still to be started. It must be there: nobody looks at runs in a database that is not.
    pub(crate) fn open(&self) -> Result<Outlast> {
        match self {
            Database::Sqlite(path) if !path.exists() => {
                let message = format!("there is no database {}", path.display());
                let hint = "`outlast run FILE` makes one; or name another with --database sqlite:PATH";
                Err(Stop::new(Exit::NotFound, message).hint(hint).into())
            }
            Database::Sqlite(_) | Database::Postgres(_) => Ok(self.builder()),
        }
    }

    /// The folder its file is in, or would be; none if it is a server's. It must be there.
    pub(crate) fn folder(&self) -> Result<Option<PathBuf>> {
        let Database::Sqlite(path) = self else { return Ok(None) };
        if path == Path::new(FILE) && !Path::new(FOLDER).exists() {
            return Ok(Some(PathBuf::from(".")));
        }
        folder_of(path).map(|folder| Some(folder.unwrap_or(Path::new(".")).to_owned()))
    }

    fn builder(&self) -> Outlast {
        match self {
            Database::Sqlite(path) => Outlast::sqlite(path),
            Database::Postgres(url) => Outlast::postgres(url),
        }
    }
}

/// The default folder is made, and kept out of version control. Any other is the caller's.
fn make_folder(path: &Path) -> Result<()> {
    if path == Path::new(FILE) && !Path::new(FOLDER).exists() {
        fs::create_dir_all(FOLDER).with_context(|| format!("the folder {FOLDER} cannot be made here"))?;
        // Not having it is no reason to stop.
        let _ = fs::write(Path::new(FOLDER).join(".gitignore"), "*\n");
    }
    folder_of(path).map(drop)
}

/// The folder of a file, which must be there; none if it is the one the command is called in.
fn folder_of(path: &Path) -> Result<Option<&Path>> {
    let folder = path.parent().filter(|folder| !folder.as_os_str().is_empty());
    match folder {
        Some(folder) if !folder.is_dir() => {
            let message = format!("there is no folder {} for the database", folder.display());
            Err(Stop::new(Exit::NotFound, message)
                .hint(format!("mkdir -p {}", shell(&folder.to_string_lossy())))
                .into())
        }
        folder => Ok(folder),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_database_is_named_by_its_kind() {
        assert_eq!("sqlite:a/b.db".parse(), Ok(Database::Sqlite(PathBuf::from("a/b.db"))));
        assert_eq!("sqlite:///tmp/b.db".parse(), Ok(Database::Sqlite(PathBuf::from("/tmp/b.db"))));
        assert!("shop.db".parse::<Database>().unwrap_err().contains("did you mean sqlite:shop.db?"));
        assert!(!"mysql://db/shop".parse::<Database>().unwrap_err().contains("did you mean"));
        assert!("sqlite:".parse::<Database>().unwrap_err().contains("which file?"));
    }

    #[test]
    fn a_password_is_not_shown() {
        let database: Database = "postgres://ann:p@ss@db.example/shop".parse().unwrap();
        assert_eq!(database.to_string(), "postgres://ann@db.example/shop");
        for (url, shown) in [
            ("postgres://db/shop?user=ann&password=s3cret", "postgres://db/shop?user=ann"),
            ("postgres://ann@db/shop?password=s3cret@x", "postgres://ann@db/shop"),
            ("postgres://db/shop?p%61ssword=s3cret&sslmode=require", "postgres://db/shop?sslmode=require"),
            ("postgres://db/shop", "postgres://db/shop"),
            ("postgres://ann:se?cret@db/shop", "postgres://ann@db/shop"),
            ("postgres://ann:s&e?c&ret@db/shop?sslmode=require", "postgres://ann@db/shop?sslmode=require"),
            ("postgres://ann:se/cret@db/shop", "postgres://ann@db/shop"),
            ("postgres://ann:se:cret@db:5432/shop", "postgres://ann@db:5432/shop"),
            ("postgres://ann:s3cret@/shop?host=db", "postgres://ann@/shop?host=db"),
            ("postgres://ann:se?c@ret@db/shop?user=x", "postgres://ann@db/shop?user=x"),
            // Nobody can tell where such a password ends.
            ("postgres://ann:s@e?cret@db/shop", "postgres://ann@…"),
            ("postgres://db/shop?password=s3cret@x", "postgres://db@x"),
        ] {
            assert_eq!(url.parse::<Database>().unwrap().to_string(), shown);
        }
    }
}
