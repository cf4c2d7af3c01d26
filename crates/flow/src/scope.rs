//! What names mean while a node is looked at.

use std::sync::Arc;

use outlast_core::failure::Failure;
use outlast_core::id::Key;
use outlast_script::{Limits, RunInfo};
use serde_json::{Value as Json, json};

use crate::load::names::TOKEN;
use crate::model::Body;
use crate::template::Template;

/// What is the same for a whole run.
pub(crate) struct World<'a> {
    pub(crate) input: &'a Arc<Json>,
    pub(crate) messages: &'a [Arc<Json>],
    pub(crate) info: &'a RunInfo,
    pub(crate) flow: &'a str,
    pub(crate) limits: Limits,
}

/// A list of nodes as its members see it, and what is around it.
pub(crate) struct Scope<'a> {
    pub(crate) world: &'a World<'a>,
    pub(crate) around: Option<&'a Scope<'a>>,
    pub(crate) body: &'a Body,
    pub(crate) outputs: &'a [Option<Arc<Json>>],
    pub(crate) previous: &'a [Option<Arc<Json>>],
    pub(crate) errors: &'a [Option<Arc<Json>>],
    pub(crate) turn: Option<Turn<'a>>,
}

/// The iteration the list of nodes is in.
#[derive(Clone, Copy)]
pub(crate) struct Turn<'a> {
    /// The name of the item; none for a loop.
    pub(crate) name: Option<&'a str>,
    pub(crate) item: Option<&'a Arc<Json>>,
    pub(crate) index: u32,
    pub(crate) total: u32,
    /// Whether the total is how many there will be, and not only how many there may be.
    pub(crate) is_exact: bool,
}

impl Scope<'_> {
    pub(crate) fn evaluate(&self, template: &Template) -> Result<Arc<Json>, Failure> {
        template.evaluate(&|name| self.get(name), self.world.limits)
    }

    pub(crate) fn evaluate_with_token(&self, template: &Template, key: &Key) -> Result<Arc<Json>, Failure> {
        let token = || Arc::new(Json::String((self.world.info.tokens)(key)));
        template.evaluate(&|name| if name == TOKEN { Some(token()) } else { self.get(name) }, self.world.limits)
    }

    pub(crate) fn text(&self, template: &Template) -> Result<String, Failure> {
        template.text(&|name| self.get(name), self.world.limits)
    }

    pub(crate) fn holds(&self, template: &Template) -> Result<bool, Failure> {
        template.holds(&|name| self.get(name), self.world.limits)
    }

    fn get(&self, name: &str) -> Option<Arc<Json>> {
        match name {
            "input" => return Some(Arc::clone(self.world.input)),
            "messages" => {
                return Some(Arc::new(Json::Array(self.world.messages.iter().map(|text| (**text).clone()).collect())));
            }
            "run" => return Some(Arc::new(json!({ "id": self.world.info.run_id, "flow": self.world.flow }))),
            "errors" => return Some(Arc::new(self.all_errors())),
            _ => {}
        }
        self.own(name).or_else(|| self.around.and_then(|around| around.get(name)))
    }

    fn own(&self, name: &str) -> Option<Arc<Json>> {
        if let Some(value) = self.turn.as_ref().and_then(|turn| turn.get(name)) {
            return Some(value);
        }
        let place = self.body.place(name)?;
        let past = || self.previous.get(place).cloned().flatten();
        // A node that was skipped has no output: it is null, and nobody further out is meant.
        Some(self.outputs.get(place).cloned().flatten().or_else(past).unwrap_or_default())
    }

    fn all_errors(&self) -> Json {
        let mut all = match self.around.map(Scope::all_errors) {
            Some(Json::Object(all)) => all,
            _ => serde_json::Map::new(),
        };
        let own = self.body.nodes.iter().zip(self.errors);
        all.extend(own.filter_map(|(node, error)| Some((node.id.to_string(), (**error.as_ref()?).clone()))));
        Json::Object(all)
    }
}

impl Turn<'_> {
    fn get(&self, name: &str) -> Option<Arc<Json>> {
        let value = match name {
            "$iteration" => json!(self.index),
            "$first" => json!(self.index == 0),
            "$last" => json!(self.is_exact && self.index + 1 == self.total),
            "$max_iterations" => json!(self.total),
            name if self.name == Some(name) => return Some(self.item.cloned().unwrap_or_default()),
            _ => return None,
        };
        Some(Arc::new(value))
    }
}
