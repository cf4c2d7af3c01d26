//! Tasks for Outlast that need no code of your own: any program as a task, HTTP requests, log lines.
//!
//! A [`CommandTask`] runs a program: JSON in on its standard input, JSON out on its standard output. [`TaskConfig`] reads them
//! from `outlast.toml`. [`builtins`] are `http.request`, `log` and `noop`.
//!
//! ```
//! use outlast::Outlast;
//! use outlast_tasks::{Options, TaskConfig, builtins};
//!
//! let config = r#"
//!     [tasks.charge]
//!     command = ["python3", "charge.py"]
//!     timeout = "30s"
//! "#;
//! let mut engine = Outlast::memory();
//! for handler in TaskConfig::from_toml(config, "/srv/shop")?.into_iter().chain(builtins(Options::default())) {
//!     engine = engine.handler(handler);
//! }
//! # drop(engine);
//! # Ok::<(), outlast_tasks::ConfigError>(())
//! ```

mod builtin;
mod command;
mod config;
mod duration;
mod http;

/// The code in the guide compiles and does what it says. Only here: a package has no guides.
#[cfg(doctest)]
#[doc = include_str!("../../../docs/tasks.md")]
struct Guide;

pub use builtin::{Options, builtins};
pub use command::{CommandTask, code};
pub use config::{ConfigError, TaskConfig};
pub use http::{HttpOptions, InvalidAllow};
