//! What an `outlast.toml` says about a server: its tokens and webhooks.

use std::num::NonZeroU32;

use serde::Deserialize;
use thiserror::Error;

use crate::auth::{Token, TokenError, Tokens};
use crate::hooks::{Hook, HookAction, HookError, HookSecret, Hooks};

/// Why a configuration cannot be used.
#[derive(Debug, Error)]
#[non_exhaustive]
pub enum ConfigError {
    /// It is no TOML, or has what nobody knows.
    #[error("{0}")]
    Toml(#[from] toml::de::Error),
    /// A token cannot be used.
    #[error(transparent)]
    Token(#[from] TokenError),
    /// A webhook cannot be used.
    #[error(transparent)]
    Hook(#[from] HookError),
    /// A webhook does both, or neither.
    #[error("the webhook {0:?} must `start` a workflow or `signal` a run")]
    Action(String),
    /// A secret is not there.
    #[error("the webhook {hook:?} has its secret in the environment variable {variable}, which is not set")]
    NoSecret {
        /// Whose.
        hook: String,
        /// Where it should be.
        variable: String,
    },
}

/// The `[server]`, `[[tokens]]` and `[[hooks]]` of an `outlast.toml`. Whatever else is in it is not looked at.
///
/// ```
/// use outlast_server::ServerConfig;
///
/// let text = r#"
/// [[hooks]]
/// id = "mT3k9bQx7fWz2LpR8sVn4cYd"
/// name = "payments"
/// secrets = ["env:PAYMENTS_SECRET"]
/// signal = "paid"
/// run = "/data/order"
/// "#;
/// let env = |name: &str| (name == "PAYMENTS_SECRET").then(|| "whsec_MfKQ9r8GKYqrTwjUPD8ILPZIo2LaLaSw".to_owned());
/// let config = ServerConfig::from_toml(text, env)?;
/// assert_eq!(config.hooks.len(), 1);
/// # Ok::<(), outlast_server::ConfigError>(())
/// ```
#[derive(Debug, Default)]
pub struct ServerConfig {
    /// Who may use the server.
    pub tokens: Vec<Token>,
    /// The webhooks it has.
    pub hooks: Vec<Hook>,
    /// Whether it answers questions in SQL.
    pub sql: bool,
    /// How many requests a second it takes from a namespace.
    pub requests_per_second: Option<NonZeroU32>,
}

#[derive(Deserialize)]
struct File {
    #[serde(default)]
    server: Section,
    #[serde(default)]
    tokens: Vec<Token>,
    #[serde(default)]
    hooks: Vec<HookEntry>,
}

#[derive(Default, Deserialize)]
#[serde(deny_unknown_fields)]
struct Section {
    #[serde(default)]
    sql: bool,
    requests_per_second: Option<NonZeroU32>,
}

#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
struct HookEntry {
    id: String,
    name: String,
    #[serde(default = "default_namespace")]
    namespace: String,
    #[serde(default)]
    secrets: Vec<String>,
    start: Option<String>,
    signal: Option<String>,
    run: Option<String>,
    map: Option<String>,
    #[serde(default)]
    wait: bool,
}

fn default_namespace() -> String {
    "default".to_owned()
}

impl ServerConfig {
    /// Reads a text. A secret is written as `env:NAME`, and `env` says what the variable has.
    pub fn from_toml(text: &str, env: impl Fn(&str) -> Option<String>) -> Result<ServerConfig, ConfigError> {
        let File { server: Section { sql, requests_per_second }, tokens, hooks } = toml::from_str(text)?;
        let hooks = hooks.into_iter().map(|entry| entry.hook(&env)).collect::<Result<Vec<_>, _>>()?;
        let config = ServerConfig { tokens, hooks, sql, requests_per_second };
        // What is wrong is said now, and not when somebody calls.
        Tokens::new(&config.tokens)?;
        Hooks::new(config.hooks.clone())?;
        Ok(config)
    }
}

impl HookEntry {
    fn hook(self, env: &impl Fn(&str) -> Option<String>) -> Result<Hook, ConfigError> {
        let HookEntry { id, name, namespace, secrets, start, signal, run, map, wait } = self;
        let action = match (start, signal) {
            (Some(workflow), signal) => HookAction::Start { workflow, signal },
            (None, Some(signal)) => HookAction::Signal { signal },
            (None, None) => return Err(ConfigError::Action(name)),
        };
        let secret = |text: String| match text.strip_prefix("env:") {
            Some(variable) => match env(variable) {
                Some(secret) => Ok(HookSecret::read(&secret)?),
                None => Err(ConfigError::NoSecret { hook: name.clone(), variable: variable.to_owned() }),
            },
            None => Ok(HookSecret::read(&text)?),
        };
        let secrets = secrets.into_iter().map(secret).collect::<Result<Vec<_>, ConfigError>>()?;
        Ok(Hook { id, name, namespace, secrets, action, run, map, wait })
    }
}
