//! What a server is told by files: workflows, and the `outlast.toml` with its tasks, schedules, tokens and webhooks.

mod schedules;
mod settings;
mod watch;

use std::sync::Arc;

use anyhow::Result;
use outlast::Engine;
use outlast_server::{Access, Hooks, Tokens};

pub(crate) use settings::Settings;
pub(crate) use watch::{Changed, Watch};

use crate::commands::mistakes;
use crate::sources::{Source, Style};

/// An engine and what its server knows, which files may change while both run.
pub(crate) struct Site {
    engine: Engine,
    tokens: Arc<Tokens>,
    hooks: Hooks,
}

impl Site {
    /// With the tokens and webhooks of these settings. The engine has begun with their handlers.
    pub(crate) fn new(engine: Engine, settings: &Settings) -> Result<Site> {
        let tokens = Arc::new(Tokens::new(&settings.server.tokens)?);
        Ok(Site { engine, tokens, hooks: Hooks::new(settings.server.hooks.clone())? })
    }

    /// Who may use the server. One that can be reached from elsewhere needs tokens from the start.
    pub(crate) fn access(&self, has_tokens: bool) -> Access {
        let tokens = Arc::clone(&self.tokens);
        if has_tokens { Access::Tokens(tokens) } else { Access::Local(tokens) }
    }

    pub(crate) fn hooks(&self) -> Hooks {
        self.hooks.clone()
    }

    /// Takes other settings. Whatever of them cannot be used stays as it was.
    pub(crate) async fn take(&self, settings: Settings) -> Result<()> {
        self.engine.replace_handlers(settings.handlers)?;
        self.tokens.replace(&settings.server.tokens)?;
        self.hooks.replace(settings.server.hooks)?;
        schedules::put(&self.engine, &settings.schedules).await
    }

    /// Puts the schedules of settings whose rest is there already.
    pub(crate) async fn put_schedules(&self, settings: &Settings) -> Result<()> {
        schedules::put(&self.engine, &settings.schedules).await
    }

    /// Puts the workflows of a file, and gives their names.
    pub(crate) async fn put(&self, source: &Source) -> Result<Vec<String>> {
        source.compile().map_err(mistakes)?;
        let names = match source.style {
            Style::Script => self.engine.define_script(&source.name(), &source.text).await?,
            Style::Flow => self.engine.define_flow(&source.name(), &source.text).await?,
        };
        Ok(names)
    }
}
