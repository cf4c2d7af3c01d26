//! Namespaces have small numbers in the tables; this remembers which. They are never removed, so what is known stays
//! true.

use std::collections::{BTreeMap, BTreeSet};
use std::sync::{PoisonError, RwLock};

use outlast_core::id::Namespace;
use tokio_postgres::Row;

use super::failure::Failure;
use super::session::Session;
use crate::error::StoreError;

#[derive(Debug, Default)]
pub(super) struct Namespaces(RwLock<Known>);

#[derive(Debug, Default)]
struct Known {
    ids: BTreeMap<Namespace, i32>,
    names: BTreeMap<i32, Namespace>,
}

impl Namespaces {
    pub(super) fn id(&self, name: &Namespace) -> Option<i32> {
        self.0.read().unwrap_or_else(PoisonError::into_inner).ids.get(name).copied()
    }

    pub(super) fn name(&self, id: i32) -> Option<Namespace> {
        self.0.read().unwrap_or_else(PoisonError::into_inner).names.get(&id).cloned()
    }

    fn remember(&self, rows: &[Row]) -> Result<(), Failure> {
        let mut known = self.0.write().unwrap_or_else(PoisonError::into_inner);
        for row in rows {
            let id: i32 = row.try_get(0)?;
            let name: &str = row.try_get(1)?;
            // One that was written by hand and cannot be named has runs nobody can ask for.
            if let Ok(name) = Namespace::new(name) {
                known.ids.insert(name.clone(), id);
                known.names.insert(id, name);
            }
        }
        Ok(())
    }

    /// Looks up the names that are not known yet. One that is unknown afterwards does not exist.
    pub(super) async fn learn<'a>(
        &self,
        session: &mut Session,
        names: impl IntoIterator<Item = &'a Namespace> + Send,
    ) -> Result<(), Failure> {
        let unknown: BTreeSet<&Namespace> = names.into_iter().filter(|name| self.id(name).is_none()).collect();
        if unknown.is_empty() {
            return Ok(());
        }
        let unknown: Vec<String> = unknown.into_iter().map(ToString::to_string).collect();
        let rows = session.ask("SELECT id, name FROM namespace WHERE name = ANY($1)", vec![Box::new(unknown)]).await?;
        self.remember(&rows)
    }

    /// Looks up the namespaces of rows, whose first column they are.
    pub(super) async fn cover(&self, session: &mut Session, rows: &[Row]) -> Result<(), Failure> {
        let mut unknown = BTreeSet::new();
        for row in rows {
            let id: i32 = row.try_get(0)?;
            if self.name(id).is_none() {
                unknown.insert(id);
            }
        }
        if unknown.is_empty() {
            return Ok(());
        }
        let unknown: Vec<i32> = unknown.into_iter().collect();
        let rows = session.ask("SELECT id, name FROM namespace WHERE id = ANY($1)", vec![Box::new(unknown)]).await?;
        self.remember(&rows)
    }

    /// Creates one; whether it is new.
    pub(super) async fn put(&self, session: &mut Session, name: &Namespace) -> Result<bool, Failure> {
        let sql = "INSERT INTO namespace (name) VALUES ($1::text) ON CONFLICT (name) DO NOTHING RETURNING id, name";
        let rows = session.ask(sql, vec![Box::new(name.as_str())]).await?;
        self.remember(&rows)?;
        Ok(!rows.is_empty())
    }

    /// All of them, by name.
    pub(super) async fn all(&self, session: &mut Session) -> Result<Vec<Namespace>, Failure> {
        let rows = session.ask("SELECT id, name FROM namespace ORDER BY name", Vec::new()).await?;
        self.remember(&rows)?;
        let named = rows.iter().map(|row| Namespace::new(row.get::<_, &str>(1)));
        let damaged = |error| Failure::from(StoreError::corrupt("the table of namespaces", format!("{error}")));
        named.collect::<Result<_, _>>().map_err(damaged)
    }
}
