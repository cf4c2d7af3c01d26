//! The `[schedules]` of an `outlast.toml`.

use std::collections::BTreeMap;
use std::time::Duration;

use anyhow::{Context, Result};
use outlast::{Engine, NewSchedule, Overlap};
use serde::Deserialize;

use crate::words::parse_length;

/// Schedules as they are written.
#[derive(Default, Deserialize)]
pub(super) struct Plans(BTreeMap<String, Plan>);

#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
struct Plan {
    workflow: String,
    #[serde(default)]
    input: Option<toml::Value>,
    cron: Option<String>,
    every: Option<String>,
    zone: Option<String>,
    overlap: Option<Overlap>,
    catch_up: Option<String>,
    jitter: Option<String>,
    note: Option<String>,
    #[serde(default)]
    paused: bool,
}

/// A schedule that can be put.
#[derive(Debug)]
pub(crate) struct Planned {
    pub(crate) id: String,
    pub(crate) workflow: String,
    /// When it fires, as it is written.
    pub(crate) when: String,
    input: serde_json::Value,
    cron: Option<String>,
    every: Option<Duration>,
    zone: Option<String>,
    overlap: Option<Overlap>,
    catch_up: Option<Duration>,
    jitter: Option<Duration>,
    note: Option<String>,
    paused: bool,
}

impl Plans {
    /// Checks them.
    pub(super) fn read(self) -> Result<Vec<Planned>, String> {
        let read = |(id, plan): (String, Plan)| plan.read(&id).map_err(|error| format!("schedules.{id}: {error}"));
        self.0.into_iter().map(read).collect()
    }
}

impl Plan {
    fn read(self, id: &str) -> Result<Planned, String> {
        let length = |text: Option<String>| text.as_deref().map(parse_length).transpose();
        let when = match (&self.cron, &self.every) {
            (Some(cron), None) => cron.clone(),
            (None, Some(every)) => format!("every {every}"),
            _ => return Err("write either `cron = \"0 3 * * *\"` or `every = \"5m\"`".to_owned()),
        };
        let input = serde_json::to_value(&self.input).map_err(|error| format!("its input is no JSON: {error}"))?;
        Ok(Planned {
            id: id.to_owned(),
            workflow: self.workflow,
            when,
            input,
            cron: self.cron,
            every: length(self.every)?,
            zone: self.zone,
            overlap: self.overlap,
            catch_up: length(self.catch_up)?,
            jitter: length(self.jitter)?,
            note: self.note,
            paused: self.paused,
        })
    }
}

impl Planned {
    fn draft<'e>(&self, engine: &'e Engine) -> NewSchedule<'e> {
        let mut draft = engine.schedule(&self.id).start(&self.workflow, &self.input);
        if let Some(cron) = &self.cron {
            draft = draft.cron(cron);
        }
        if let Some(every) = self.every {
            draft = draft.every(every);
        }
        if let Some(zone) = &self.zone {
            draft = draft.zone(zone);
        }
        if let Some(overlap) = self.overlap {
            draft = draft.overlap(overlap);
        }
        if let Some(window) = self.catch_up {
            draft = draft.catch_up(window);
        }
        if let Some(jitter) = self.jitter {
            draft = draft.jitter(jitter);
        }
        if let Some(note) = &self.note {
            draft = draft.note(note);
        }
        if self.paused { draft.paused() } else { draft }
    }
}

/// Puts schedules. What a file no longer has stays: others may have put it, too, and whoever wants it gone says so.
pub(super) async fn put(engine: &Engine, schedules: &[Planned]) -> Result<()> {
    for planned in schedules {
        planned.draft(engine).put().await.with_context(|| format!("the schedule {:?} cannot be put", planned.id))?;
    }
    Ok(())
}
