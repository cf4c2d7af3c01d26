//! Testing workflows: an engine in memory, on one thread, with a clock that skips whatever time nothing happens in.
//!
//! ```
//! use std::time::Duration;
//! use outlast::testing::World;
//! use outlast::Ctx;
//!
//! async fn remind(ctx: Ctx, _: ()) -> outlast::Result<&'static str> {
//!     ctx.sleep(Duration::from_secs(30 * 24 * 60 * 60)).await?;
//!     Ok("a month has passed")
//! }
//!
//! let world = World::new();
//! let text: String = world.block_on(async {
//!     let engine = world.engine().workflow("remind", remind).start().await.unwrap();
//!     engine.start("remind", &()).await.unwrap().result().await.unwrap()
//! });
//! assert_eq!(text, "a month has passed");
//! ```

mod crash;
mod diff;
mod executor;
mod journal;
mod own;
mod process;
mod script;
mod simulation;
mod time;
mod world;

pub use crash::{Crashes, crash_everywhere, crash_everywhere_or};
pub use journal::{JournalText, journal};
pub use process::Process;
pub use script::Script;
pub use simulation::{Faults, Simulated, Simulation};
pub use time::WorldTime;
pub use world::{Programs, World};
