//! The rows of flow control in a working set.

use bytes::Bytes;

use super::WorkingSet;
use crate::rows::{Fault, HeldRow, HeldRows, RunRow, StartKey, StartKeyRow};

impl HeldRows for WorkingSet {
    fn held(&mut self, run: &RunRow) -> Result<Option<HeldRow>, Fault> {
        let changes = self.run_changes(&run.key);
        if let Some(changed) = changes.and_then(|changes| changes.held.as_ref()) {
            return Ok(changed.clone());
        }
        let reheld = changes.is_some_and(|changes| changes.reheld);
        if self.is_new(&run.key) {
            return Ok(None);
        }
        let Some(found) = self.run_facts(&run.key).and_then(|facts| facts.held.clone()) else {
            return self.miss(&run.key, |needs| needs.held = true);
        };
        let again = |held: HeldRow| if reheld { HeldRow { gate: None, ..held } } else { held };
        Ok(found?.map(again))
    }

    fn put_held(&mut self, held: &HeldRow) -> Result<(), Fault> {
        self.changes.of(&held.key).held = Some(Some(held.clone()));
        Ok(())
    }

    fn remove_held(&mut self, run: &RunRow) -> Result<(), Fault> {
        self.changes.of(&run.key).held = Some(None);
        Ok(())
    }

    fn rehold(&mut self, run: &RunRow) -> Result<(), Fault> {
        let changes = self.changes.of(&run.key);
        changes.reheld = true;
        if let Some(Some(held)) = &mut changes.held {
            held.gate = None;
        }
        Ok(())
    }

    fn leave(&mut self, run: &RunRow) -> Result<(), Fault> {
        let changes = self.changes.of(&run.key);
        changes.held = Some(None);
        changes.left = true;
        Ok(())
    }

    fn replace_input(&mut self, run: &RunRow, input: &Bytes) -> Result<(), Fault> {
        let changes = self.changes.of(&run.key);
        match &mut changes.created {
            Some(created) => *created = input.clone(),
            None => changes.replaced = Some(input.clone()),
        }
        Ok(())
    }

    fn start_key(&mut self, key: &StartKey) -> Result<Option<StartKeyRow>, Fault> {
        if let Some(changed) = self.changes.start_keys.get(key) {
            return Ok(Some(changed.clone()));
        }
        match self.facts.start_keys.get(key) {
            Some(found) => Ok(found.clone()?),
            None => {
                self.missing.start_keys.insert(key.clone());
                Err(Fault::Miss)
            }
        }
    }

    fn put_start_key(&mut self, key: &StartKey, row: &StartKeyRow) -> Result<(), Fault> {
        self.changes.start_keys.insert(key.clone(), row.clone());
        Ok(())
    }
}
